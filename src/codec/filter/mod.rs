//! Filters: array-to-array codecs that change elements, not their order.
//!
//! ```text
//! decoded --delta, scale, cast, pack..--> encoded         10 11 12 13  --delta-->  10 1 1 1
//! ```
//!
//! Most of them are those of numcodecs, with its semantics; the others are registered in
//! zarr-extensions. A filter is given elements in C order, little-endian, and knows of no other
//! filter. It encodes chunks, and single elements: the fill value, which absent inner chunks of a
//! shard have ([`Filter::encode_element`]).

mod cast_value;
mod categorize;
mod delta;
mod elementwise;
mod encode;
mod mask;

pub(crate) use cast_value::{CastValue, OutOfRange, Rounding, ScalarMap};
pub(crate) use categorize::Categories;
pub(crate) use elementwise::Elementwise;

use super::decoded::expect_length;
use super::number::{Number, map_numbers};
use crate::dtype::DataType;
use crate::error::FormatError;
use crate::grid::{self, Dims};

/// A filter from elements of one type to elements of another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filter {
    kind: FilterKind,
    decoded_size: u64,
    encoded: DataType,
    is_identity: bool,
}

/// The operation of a filter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FilterKind {
    /// An operation on every element, which does not depend on other elements.
    Elementwise {
        /// The operation.
        operation: Elementwise,
        /// The type of a decoded number.
        decoded: Number,
        /// The type of an encoded number.
        encoded: Number,
    },
    /// Each element is stored as the difference from the one before.
    Delta {
        /// The type of a decoded number, in which differences are summed.
        decoded: Number,
        /// The type of a difference.
        encoded: Number,
    },
    /// Eight booleans in a byte, behind a byte that counts the bits of padding.
    Mask,
    /// Numbers that stand for strings.
    Categories(Categories),
}

impl Filter {
    /// A filter from elements of `decoded` to elements of `encoded`.
    pub(crate) fn new(kind: FilterKind, decoded: &DataType, encoded: DataType) -> Filter {
        let same_bytes = matches!(
            &kind,
            FilterKind::Elementwise { operation, decoded, encoded }
                if operation.is_identity(*decoded, *encoded)
        );
        let numbers = |of: &DataType| (of.item_size, of.swap_unit());
        Filter {
            is_identity: same_bytes && numbers(decoded) == numbers(&encoded),
            kind,
            decoded_size: decoded.item_size,
            encoded,
        }
    }

    /// Its name in a codec list.
    pub fn name(&self) -> &'static str {
        match &self.kind {
            FilterKind::Elementwise { operation, .. } => operation.name(),
            FilterKind::Delta { .. } => delta::NAME,
            FilterKind::Mask => mask::NAME,
            FilterKind::Categories(_) => categorize::NAME,
        }
    }

    /// The type of encoded elements.
    pub fn encoded_type(&self) -> &DataType {
        &self.encoded
    }

    /// Whether an encoded element depends on its decoded one alone.
    pub fn is_elementwise(&self) -> bool {
        matches!(
            self.kind,
            FilterKind::Elementwise { .. } | FilterKind::Categories(_)
        )
    }

    /// Whether decoding changes neither the bytes nor the size of the numbers that they make up.
    pub(super) fn is_identity(&self) -> bool {
        self.is_identity
    }

    /// Shape of the encoded elements, from that of the decoded ones.
    pub(super) fn encoded_shape(&self, shape: &[u64]) -> Dims {
        match self.kind {
            FilterKind::Mask => {
                let elements = grid::product(shape).unwrap_or(u64::MAX);
                [mask::encoded_len(elements)][..].into()
            }
            _ => shape.into(),
        }
    }

    /// The number of bytes of the encoded elements, from that of the decoded ones.
    pub(super) fn encoded_len(&self, decoded_len: u64) -> u64 {
        match self.kind {
            FilterKind::Mask => mask::encoded_len(decoded_len),
            _ => (decoded_len / self.decoded_size.max(1)).saturating_mul(self.encoded.item_size),
        }
    }

    /// Decodes `encoded`, all of it, to all of `out`.
    ///
    /// # Errors
    /// A number that the decoded type does not have, or lengths that do not fit.
    pub(super) fn decode(&self, encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let expected = self.encoded_len(out.len() as u64);
        expect_length(self.name(), encoded.len(), expected)?;
        match &self.kind {
            FilterKind::Elementwise {
                operation,
                decoded,
                encoded: stored,
            } => {
                if operation.is_identity(*decoded, *stored) {
                    expect_length(self.name(), encoded.len(), out.len() as u64)?;
                    out.copy_from_slice(encoded);
                    return Ok(());
                }
                map_numbers((*stored, encoded), (*decoded, out), |value| {
                    operation
                        .decode(value, *decoded, *stored)
                        .ok_or_else(|| operation.refusal(value))
                })
            }
            FilterKind::Delta {
                decoded,
                encoded: stored,
            } => delta::decode((*stored, encoded), (*decoded, out)),
            FilterKind::Mask => mask::decode(encoded, out),
            FilterKind::Categories(categories) => {
                let size = usize::try_from(self.decoded_size).unwrap_or(usize::MAX);
                categories.decode(encoded, size, out);
                Ok(())
            }
        }
    }
}
