//! The `pcodec` codec: numbers in a standalone file of pco.
//!
//! Spec: <https://github.com/pcodec/pcodec/blob/main/docs/format.md>. Names:
//! `numcodecs.pcodec`; in v2 the compressor `pcodec`.
//!
//! ```json
//! { "name": "numcodecs.pcodec", "configuration": { "level": 8, "mode_spec": "auto" } }
//! ```
//!
//! The file stores the type of its numbers, which must be that of the array.

use pco::standalone::simple_decompress_into;

use super::number::Number;
use crate::buffers::NoMemory;
use crate::dtype::{DataType, FLOAT16, FLOAT32, FLOAT64};
use crate::error::FormatError;

const NAME: &str = "numcodecs.pcodec";

/// The memory for the tables of one chunk of a file, and for the numbers that it refers back to.
const STATE_BYTES: u64 = 4 << 20;

/// The codec, by the type of the numbers in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pcodec {
    number: Number,
}

impl Pcodec {
    /// The codec for elements of `data_type`.
    ///
    /// # Errors
    /// pco has no such type.
    pub fn new(data_type: &DataType) -> Result<Pcodec, FormatError> {
        let number = Number::of(data_type).filter(|&number| match number {
            Number::Bool => false,
            Number::Integer(format) => format.bits as usize == 8 * format.bytes,
            Number::Float(format) => [FLOAT16, FLOAT32, FLOAT64].contains(&format),
        });
        let number = number
            .ok_or_else(|| FormatError::unsupported("", "data type of pcodec", &data_type.name))?;
        Ok(Pcodec { number })
    }

    /// The maximum encoded length of `length` bytes that is accepted.
    pub(super) fn encoded_limit(length: u64) -> u64 {
        const HEADERS: u64 = 64 << 10;
        length.saturating_add(length / 8).saturating_add(HEADERS)
    }

    /// An upper bound of the memory that decoding to `length` bytes takes: the numbers, before they
    /// are bytes.
    pub(super) fn state_bytes(length: u64) -> u64 {
        length.saturating_add(STATE_BYTES)
    }

    /// Decodes `encoded` to all of `out`.
    ///
    /// # Errors
    /// It is not a whole file of as many numbers of this type.
    pub(super) fn decode(&self, encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        macro_rules! numbers {
            ($number:ty) => {{
                let count = out.len() / size_of::<$number>();
                let mut numbers: Vec<$number> = Vec::new();
                let reserved = numbers.try_reserve_exact(count);
                reserved.map_err(|_| NoMemory { needed: out.len() })?;
                numbers.resize(count, <$number>::default());
                let progress = simple_decompress_into(encoded, &mut numbers)
                    .map_err(|error| FormatError::encoded(NAME, error.to_string()))?;
                if progress.n_processed != numbers.len() || !progress.finished {
                    let problem = format!("not a file of {} numbers", numbers.len());
                    return Err(FormatError::encoded(NAME, problem));
                }
                let places = out.chunks_exact_mut(size_of::<$number>());
                for (to, number) in places.zip(numbers) {
                    to.copy_from_slice(&number.to_le_bytes());
                }
            }};
        }
        match self.number {
            Number::Float(format) => match format.bytes {
                2 => numbers!(half::f16),
                4 => numbers!(f32),
                _ => numbers!(f64),
            },
            Number::Integer(format) => match (format.bytes, format.signed) {
                (1, false) => numbers!(u8),
                (2, false) => numbers!(u16),
                (4, false) => numbers!(u32),
                (_, false) => numbers!(u64),
                (1, true) => numbers!(i8),
                (2, true) => numbers!(i16),
                (4, true) => numbers!(i32),
                (_, true) => numbers!(i64),
            },
            Number::Bool => return Err(FormatError::encoded(NAME, "no numbers")),
        }
        Ok(())
    }
}
