//! Parses the configuration of `n5_default`.

use super::{Codec, Input, MAX_NESTING, list};
use crate::codec::{ArrayToArray, ArrayToBytes, N5Block, Transpose};
use crate::dtype::{ByteOrder, DataType, Element, FLOAT32, FLOAT64};
use crate::error::FormatError;
use crate::metadata::json::{self, Extension, Members};

pub(super) fn n5_default(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    if !is_of_n5(&input.data_type) {
        let name = &input.data_type.name;
        return Err(FormatError::unsupported("", "data type of N5", name));
    }
    if input.depth >= MAX_NESTING {
        let problem = format!("found codecs nested more than {MAX_NESTING} levels deep");
        return Err(FormatError::document("", problem));
    }
    let codecs = configuration.read("codecs", |value| {
        let specs = list(value)?;
        let chain = input.inside(input.shape.clone()).chain(&specs)?;
        let reversal = Transpose::reversal(input.shape.len());
        let is_reversed = chain.array_to_array == [ArrayToArray::Transpose(reversal)];
        let is_big_endian = match &chain.array_to_bytes {
            ArrayToBytes::Bytes(codec) => codec.endian.is_none_or(|order| order == ByteOrder::Big),
            _ => false,
        };
        if is_reversed && is_big_endian && are_named(&specs) {
            return Ok(chain);
        }
        let expected = "a transpose that reverses all axes, big-endian bytes, and at most one codec from bytes to bytes";
        Err(json::mismatch(value, expected))
    })?;
    let block = N5Block::new(codecs, input.shape.clone(), input.data_type.item_size)?;
    Ok(Codec::ArrayToBytes(ArrayToBytes::N5Block(Box::new(block))))
}

/// Whether the codecs are the two that a block must have, and perhaps one more.
fn are_named(specs: &[Extension<'_>]) -> bool {
    match specs {
        [transpose, bytes] | [transpose, bytes, _] => {
            transpose.name == "transpose" && bytes.name == "bytes"
        }
        _ => false,
    }
}

/// Whether N5 has elements of this type: whole numbers of one to eight bytes, and floating point numbers of four or eight.
fn is_of_n5(data_type: &DataType) -> bool {
    match data_type.element {
        Element::Integer(format) => format.bits.is_multiple_of(8),
        Element::Float(format) => format == FLOAT32 || format == FLOAT64,
        _ => false,
    }
}
