//! Parses the configuration of `bitround`, which is the same in v3 and in numcodecs.

use super::{Codec, Input, members};
use crate::codec::{Elementwise, FilterKind, Number};
use crate::error::FormatError;
use crate::metadata::json::{self, Members};

/// The filter `bitround` after `input`.
pub(super) fn bitround(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let keepbits = members::integer(configuration, "keepbits", (0, 64))?
        .ok_or_else(|| json::missing("keepbits"))?;
    let number = Number::part_of(&input.data_type).filter(|&number| number != Number::Bool);
    let number = match number {
        Some(number) => number,
        None => members::arithmetic(&input.data_type)?,
    };
    let kind = FilterKind::Elementwise {
        operation: Elementwise::BitRound { keepbits },
        decoded: number,
        encoded: number,
    };
    Ok(members::filter(input, kind, input.data_type.clone()))
}
