//! The `zfp` and `zfpy` codecs: blocks of numbers as bit planes of transformed integers.
//!
//! Specs: <https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zfp>,
//! <https://zfp.readthedocs.io/en/latest/algorithm.html>. Names: `zfp`; `numcodecs.zfpy`, in v2 the compressor `zfpy`,
//! whose streams have a header.
//!
//! ```json
//! { "name": "zfp", "configuration": { "mode": "fixed_accuracy", "tolerance": 0.05 } }
//! { "name": "numcodecs.zfpy", "configuration": { "mode": 4, "tolerance": 0.05 } }
//! ```
//!
//! A chunk is divided into blocks of four elements along each axis. Elements are repeated to fill a block at the edge.
//! Blocks are written one after the other, as bits ([`bits`]); a stream has whole words of 64 bits.
//!
//! zfp itself is a C library that reads from its buffer without a check, and whose crates run libclang when they are
//! built (`docs/decisions/0016-own-zfp.md`). Here bits behind the end of the input are zeros, and the block that has
//! some is an error.

mod bit_planes;
mod bits;
mod block;
mod field;
mod order;
mod parameters;
mod planes;
mod stored;

use bits::{BitReader, BitWriter};
use block::Value;
use field::{Field, NumberType, repeated};
pub use parameters::ZfpMode;
use parameters::{Parameters, read_header, write_header};
use stored::Stored;

use super::bytes::copy_start;
use super::number::Number;
use super::setting::{Setting, known, not_for_writing};
use crate::dtype::{DataType, FLOAT32, FLOAT64};
use crate::error::FormatError;

const NAME: &str = "zfp";
const NAME_OF_NUMCODECS: &str = "numcodecs.zfpy";

/// The codec, for chunks of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zfp {
    field: Field,
    number: NumberType,
    stored: Stored,
    /// Bytes of an element of the array.
    element_size: usize,
    framing: Framing,
}

/// The place of the parameters of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Framing {
    /// In the document.
    Bare {
        parameters: Parameters,
        /// The parameters of zarrs where they differ: it counts the bits of a fixed rate as in three dimensions,
        /// whatever the number of dimensions is.
        of_zarrs: Option<Parameters>,
    },
    /// In a header. The parameters of the document are for writing.
    WithHeader(Setting<Parameters>),
}

/// Calls a function for the type of the numbers and the size of the blocks.
macro_rules! by_block {
    ($codec:expr, $dimensions:expr, $function:ident $arguments:tt) => {
        match $codec.number {
            NumberType::Int32 => by_block!(@ $codec, $dimensions, $function, i32, $arguments),
            NumberType::Int64 => by_block!(@ $codec, $dimensions, $function, i64, $arguments),
            NumberType::Float32 => by_block!(@ $codec, $dimensions, $function, f32, $arguments),
            NumberType::Float64 => by_block!(@ $codec, $dimensions, $function, f64, $arguments),
        }
    };
    (@ $codec:expr, $dimensions:expr, $function:ident, $number:ty, $arguments:tt) => {
        match $dimensions {
            1 => $codec.$function::<$number, 4>$arguments,
            2 => $codec.$function::<$number, 16>$arguments,
            3 => $codec.$function::<$number, 64>$arguments,
            _ => $codec.$function::<$number, 256>$arguments,
        }
    };
}

impl Zfp {
    /// The codec `zfp`, whose streams have no header, for chunks of `shape` of `data_type`.
    ///
    /// # Errors
    /// More than four dimensions, a type that zfp does not have, or parameters that no block can have.
    pub fn bare(data_type: &DataType, shape: &[u64], mode: ZfpMode) -> Result<Zfp, FormatError> {
        let (number, stored) = number_type(data_type)?;
        let field = Field::of(shape)?;
        let parameters = Parameters::new(mode, number, field.dimensions)?;
        let of_zarrs = match mode {
            ZfpMode::Rate(_) => Some(Parameters::new(mode, number, 3)?),
            _ => None,
        };
        let of_zarrs = of_zarrs.filter(|of_zarrs| *of_zarrs != parameters);
        let framing = Framing::Bare {
            parameters,
            of_zarrs,
        };
        Ok(Zfp::new(data_type, (number, stored), field, framing))
    }

    /// The codec of streams with a header, for chunks of `shape` of `data_type`. `mode` is for writing.
    ///
    /// # Errors
    /// More than four dimensions, or a type that zfp does not have.
    pub fn with_header(
        data_type: &DataType,
        shape: &[u64],
        mode: Setting<ZfpMode>,
    ) -> Result<Zfp, FormatError> {
        let (number, stored) = number_type(data_type)?;
        let field = Field::of(shape)?;
        let parameters = mode
            .and_then(|mode| Parameters::new(mode, number, field.dimensions).map_err(|_| "mode"));
        let framing = Framing::WithHeader(parameters);
        Ok(Zfp::new(data_type, (number, stored), field, framing))
    }

    /// The codec for chunks of `shape`, with the same parameters.
    ///
    /// # Errors
    /// More than four dimensions.
    pub(super) fn for_shape(&self, shape: &[u64]) -> Result<Zfp, FormatError> {
        let field = Field::of(shape)?;
        Ok(Zfp { field, ..*self })
    }

    fn new(
        data_type: &DataType,
        (number, stored): (NumberType, Stored),
        field: Field,
        framing: Framing,
    ) -> Zfp {
        Zfp {
            field,
            number,
            stored,
            element_size: usize::try_from(data_type.item_size).unwrap_or(usize::MAX),
            framing,
        }
    }

    /// Its name in a codec list.
    pub(super) fn name(&self) -> &'static str {
        match self.framing {
            Framing::Bare { .. } => NAME,
            Framing::WithHeader(_) => NAME_OF_NUMCODECS,
        }
    }

    /// The maximum encoded length of a chunk.
    pub(super) fn encoded_limit(&self) -> u64 {
        const HEADER_BITS: u64 = 148;
        let block_bits =
            |parameters: Parameters, dimensions| parameters.block_bits(self.number, dimensions);
        let dimensions = self.field.dimensions;
        let bits = match self.framing {
            Framing::Bare {
                parameters,
                of_zarrs,
            } => {
                let of_zarrs = of_zarrs.map_or(0, |parameters| block_bits(parameters, dimensions));
                block_bits(parameters, dimensions).max(of_zarrs)
            }
            // A header may say another mode.
            Framing::WithHeader(parameters) => {
                let most = Parameters::most();
                let own = parameters.map_or(0, |parameters| block_bits(parameters, dimensions));
                block_bits(most, dimensions).max(own)
            }
        };
        let bits = self
            .field
            .blocks()
            .saturating_mul(bits)
            .saturating_add(HEADER_BITS);
        bits.div_ceil(64).saturating_mul(8)
    }

    /// Whether some elements decode to other values than were encoded.
    pub(super) fn can_lose(&self) -> bool {
        let parameters = match self.framing {
            Framing::Bare { parameters, .. } => Ok(parameters),
            Framing::WithHeader(parameters) => parameters,
        };
        let is_reversible = parameters.is_ok_and(Parameters::is_reversible);
        !is_reversible || matches!(self.stored, Stored::Unsigned(_))
    }

    /// Checks that chunks can be encoded, with parameters on which readers agree.
    ///
    /// # Errors
    /// The document does not say them, or readers do not agree on them.
    pub(super) fn check_encodes(&self) -> Result<(), FormatError> {
        self.encoder().map(|_| ())
    }

    fn encoder(&self) -> Result<Parameters, FormatError> {
        match &self.framing {
            Framing::Bare {
                of_zarrs: Some(_), ..
            } => Err(not_for_writing(
                "zfp of a fixed rate in other than three dimensions, where zarrs counts other bits than its specification",
            )),
            Framing::Bare { parameters, .. } => Ok(*parameters),
            Framing::WithHeader(parameters) => known(NAME_OF_NUMCODECS, parameters).copied(),
        }
    }

    /// Decodes `encoded` to all of `out`.
    ///
    /// # Errors
    /// It is not a whole stream of this array.
    pub(super) fn decode(&self, encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let error = |problem| FormatError::encoded(self.name(), problem);
        let mut reader = BitReader::new(encoded);
        let (parameters, field) = match self.framing {
            Framing::Bare {
                parameters,
                of_zarrs,
            } => {
                // Blocks of a fixed rate all have the same length, by which the two can be distinguished.
                let length = |parameters: Parameters| {
                    let bits = self
                        .field
                        .blocks()
                        .saturating_mul(parameters.max_bits.into());
                    bits.div_ceil(64).saturating_mul(8)
                };
                let is_own = |parameters: Parameters| length(parameters) == encoded.len() as u64;
                let parameters = of_zarrs
                    .filter(|&of_zarrs| !is_own(parameters) && is_own(of_zarrs))
                    .unwrap_or(parameters);
                (parameters, self.field)
            }
            Framing::WithHeader(_) => {
                read_header(self.field, self.number, &mut reader).map_err(error)?
            }
        };
        let expected = field
            .count()
            .and_then(|count| count.checked_mul(self.element_size));
        if expected != Some(out.len()) {
            return Err(error(format!("{field} for {} bytes", out.len())));
        }
        let is_whole = by_block!(
            self,
            field.dimensions,
            decode_blocks(parameters, field, &mut reader, out)
        );
        if !is_whole {
            return Err(error(format!("{} bytes, expected more", encoded.len())));
        }
        // The last word is filled with zeros.
        if reader.remaining() >= 64 {
            return Err(error(format!(
                "{} bytes behind the last block",
                reader.remaining() / 8
            )));
        }
        Ok(())
    }

    /// Reads all blocks; false when the input ends before the last one does.
    fn decode_blocks<T: Value, const N: usize>(
        &self,
        parameters: Parameters,
        field: Field,
        reader: &mut BitReader<'_>,
        out: &mut [u8],
    ) -> bool {
        let size = self.element_size;
        let offsets = field.row_offsets::<N>();
        let decoded = field.block_starts().try_for_each(|begin| {
            let block: [T; N] = T::decode(parameters, reader);
            let rows = block.as_chunks::<4>().0;
            if let Some(first) = field.whole_block::<N>(begin) {
                for (numbers, offset) in rows.iter().zip(offsets) {
                    let first = (first + offset) * size;
                    if let Some(elements) = out.get_mut(first..first + 4 * size) {
                        T::store(self.stored, numbers, elements);
                    }
                }
                return (!reader.is_overrun()).then_some(());
            }
            for (row, numbers) in rows.iter().enumerate() {
                let Some((first, count)) = field.row(begin, row) else {
                    continue;
                };
                let elements = out.get_mut(first * size..(first + count) * size);
                if let (Some(elements), Some(numbers)) = (elements, numbers.get(..count)) {
                    T::store(self.stored, numbers, elements);
                }
            }
            (!reader.is_overrun()).then_some(())
        });
        decoded.is_some()
    }

    /// Encodes all of `elements`.
    ///
    /// # Errors
    /// A number that the mode has no bits for, dimensions that are too long for a header, or no
    /// memory.
    pub(super) fn encode(&self, elements: &[u8]) -> Result<Vec<u8>, FormatError> {
        let parameters = self.encoder()?;
        let room = usize::try_from(self.encoded_limit()).unwrap_or(usize::MAX);
        let mut writer = BitWriter::new(room)?;
        if let Framing::WithHeader(_) = self.framing {
            write_header(parameters, self.field, self.number, &mut writer)?;
        }
        by_block!(
            self,
            self.field.dimensions,
            encode_blocks(parameters, elements, &mut writer)
        )?;
        Ok(writer.finish())
    }

    fn encode_blocks<T: Value, const N: usize>(
        &self,
        parameters: Parameters,
        elements: &[u8],
        writer: &mut BitWriter,
    ) -> Result<(), FormatError> {
        let size = self.element_size;
        let offsets = self.field.row_offsets::<N>();
        self.field.block_starts().try_for_each(|begin| {
            let mut block = [T::default(); N];
            let rows = block.as_chunks_mut::<4>().0;
            if let Some(first) = self.field.whole_block::<N>(begin) {
                for (numbers, offset) in rows.iter_mut().zip(offsets) {
                    let first = (first + offset) * size;
                    if let Some(elements) = elements.get(first..first + 4 * size) {
                        T::load(self.stored, elements, numbers);
                    }
                }
                return T::encode(parameters, &block, writer);
            }
            for (row, numbers) in rows.iter_mut().enumerate() {
                let (first, own) = self.field.repeated_row(begin, row);
                let elements = elements.get(first * size..(first + own) * size);
                if let (Some(elements), Some(numbers)) = (elements, numbers.get_mut(..own)) {
                    T::load(self.stored, elements, numbers);
                }
                if own < 4 {
                    let at = |place| numbers.get(repeated(place, own)).copied();
                    *numbers = [0, 1, 2, 3].map(|place| at(place).unwrap_or_default());
                }
            }
            T::encode(parameters, &block, writer)
        })
    }
}

/// The type of the blocks of numbers of `data_type`, and how they are elements of it.
fn number_type(data_type: &DataType) -> Result<(NumberType, Stored), FormatError> {
    let found = match Number::of(data_type) {
        Some(Number::Float(FLOAT32)) => Some((NumberType::Float32, Stored::AsIs)),
        Some(Number::Float(FLOAT64)) => Some((NumberType::Float64, Stored::AsIs)),
        Some(Number::Integer(format)) => {
            let number = if format.bits == 64 {
                NumberType::Int64
            } else {
                NumberType::Int32
            };
            let stored = match (format.bits, format.signed) {
                (32 | 64, true) => Stored::AsIs,
                (32 | 64, false) => Stored::Unsigned(format),
                _ => Stored::Narrow(format),
            };
            Some((number, stored))
        }
        _ => None,
    };
    found.ok_or_else(|| FormatError::unsupported("", "data type of zfp", &data_type.name))
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test's own bytes")]
mod tests;
