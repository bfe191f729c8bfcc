//! The parameters of a stream, and its optional header.
//!
//! ```text
//! bits   32 "zfp" and the version of the format, 5
//!        48 the lengths of the dimensions less one, the last dimension first
//!         2 the number of dimensions less one
//!         2 the type: int32, int64, float32, float64
//!   12 / 64 the mode
//! ```
//!
//! The fields are written from the lowest bits: the type first, then the number of dimensions.

use super::bits::{BitReader, BitWriter};
use super::{Field, FormatError, NumberType};

/// The parameters of the blocks of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Parameters {
    /// Bits of a block at least; zeros fill it.
    pub(super) min_bits: u32,
    /// Bits of a block at most.
    pub(super) max_bits: u32,
    /// Bit planes of a block at most.
    pub(super) max_precision: u32,
    /// The exponent of the lowest bit plane of floats; less than [`MIN_EXPONENT`] in the reversible mode.
    pub(super) min_exponent: i32,
}

/// The most bits that a block can have.
const MAX_BITS: u32 = 16_658;
/// The most bits that a block may be filled up to: as many as a header can say.
const MOST_MIN_BITS: u32 = 1 << 15;
const MAX_PRECISION: u32 = 64;
/// The least exponent of a bit of a float.
const MIN_EXPONENT: i32 = -1074;

/// Parameters with which no bit is left out.
const ALL: Parameters = Parameters {
    min_bits: 1,
    max_bits: MAX_BITS,
    max_precision: MAX_PRECISION,
    min_exponent: MIN_EXPONENT,
};

/// How many bits are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ZfpMode {
    /// As all four parameters say.
    Expert {
        /// Bits of a block at least.
        min_bits: u32,
        /// Bits of a block at most.
        max_bits: u32,
        /// Bit planes of a block at most.
        max_precision: u32,
        /// The exponent of the lowest bit plane of floats.
        min_exponent: i32,
    },
    /// This many bits for each number.
    Rate(f64),
    /// This many bit planes; all of them if it is zero.
    Precision(u32),
    /// As many bit planes as floats need for this absolute error; all of them if it is zero.
    Accuracy(f64),
    /// All bit planes, so that no bit of a number is lost.
    Reversible,
}

impl Parameters {
    /// The parameters of `mode`, in blocks of `dimensions`.
    pub(super) fn new(
        mode: ZfpMode,
        number: NumberType,
        dimensions: u32,
    ) -> Result<Parameters, FormatError> {
        let parameters = match mode {
            ZfpMode::Expert {
                min_bits,
                max_bits,
                max_precision,
                min_exponent,
            } => Parameters {
                min_bits,
                max_bits,
                max_precision,
                min_exponent,
            },
            ZfpMode::Rate(rate) => {
                let bits = f64::from(1_u32 << (2 * dimensions)) * rate + 0.5;
                if !(1.0..f64::from(MOST_MIN_BITS) + 1.0).contains(&bits) {
                    return Err(FormatError::document(
                        "rate",
                        format!("found {rate}, expected bits of a number"),
                    ));
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is in the range"
                )]
                let bits = (bits as u32).max(number.header_bits(false));
                Parameters {
                    min_bits: bits,
                    max_bits: bits,
                    ..ALL
                }
            }
            ZfpMode::Precision(0) => ALL,
            ZfpMode::Precision(planes) => Parameters {
                max_precision: planes.min(MAX_PRECISION),
                ..ALL
            },
            ZfpMode::Accuracy(tolerance) if tolerance <= 0.0 => ALL,
            ZfpMode::Accuracy(tolerance) => {
                if !tolerance.is_finite() {
                    return Err(FormatError::document(
                        "tolerance",
                        format!("found {tolerance}, expected a number"),
                    ));
                }
                Parameters {
                    min_exponent: exponent_of(tolerance),
                    ..ALL
                }
            }
            ZfpMode::Reversible => Parameters {
                min_exponent: MIN_EXPONENT - 1,
                ..ALL
            },
        };
        parameters
            .check(number)
            .map_err(|problem| FormatError::document("", problem))?;
        Ok(parameters)
    }

    /// Parameters with which no bit is left out.
    pub(super) fn most() -> Parameters {
        ALL
    }

    pub(super) fn is_reversible(self) -> bool {
        self.min_exponent < MIN_EXPONENT
    }

    /// Checks that a block can be stored with these parameters.
    fn check(self, number: NumberType) -> Result<(), String> {
        let Parameters {
            min_bits,
            max_bits,
            max_precision,
            ..
        } = self;
        if min_bits > max_bits
            || min_bits > MOST_MIN_BITS
            || !(1..=MAX_PRECISION).contains(&max_precision)
        {
            return Err(format!(
                "found {min_bits} to {max_bits} bits and {max_precision} bit planes of a block, expected \
                 up to {MOST_MIN_BITS} bits and {MAX_PRECISION} bit planes"
            ));
        }
        let needed = number.header_bits(self.is_reversible());
        if max_bits < needed {
            return Err(format!(
                "found {max_bits} bits of a block, expected {needed} or more"
            ));
        }
        Ok(())
    }

    /// The most bits of a block of numbers in `dimensions`. Each coefficient has a bit in each plane. Each coefficient
    /// but the last one also takes one more bit, once, which says that its plane does not end there.
    pub(super) fn block_bits(self, number: NumberType, dimensions: u32) -> u64 {
        let size = 1_u64 << (2 * dimensions);
        let planes = self.max_precision.min(number.bits());
        let most = u64::from(number.header_bits(true)) + size - 1 + size * u64::from(planes);
        most.min(self.max_bits.into()).max(self.min_bits.into())
    }

    /// The field of a header that has the mode, and its number of bits.
    fn mode(self) -> (u64, u32) {
        let Parameters {
            min_bits,
            max_bits,
            max_precision,
            min_exponent,
        } = self;
        let exact = Parameters {
            min_bits,
            max_bits,
            ..ALL
        } == self
            && min_bits == max_bits;
        let short = if self == ALL {
            None
        } else if exact && max_bits <= 2048 {
            Some(max_bits.saturating_sub(1))
        } else if (Parameters {
            max_precision,
            ..ALL
        }) == self
        {
            Some(2047 + max_precision)
        } else if (Parameters {
            min_exponent,
            ..ALL
        }) == self
            && min_exponent <= 843
        {
            // The number of the reversible mode stands for the exponent just below the least exponent.
            u32::try_from(min_exponent - MIN_EXPONENT + 2177).ok()
        } else {
            None
        };
        if let Some(mode) = short {
            return (mode.into(), 12);
        }
        let field = |value: u32, most: u32| u64::from(value.clamp(1, most) - 1);
        let exponent = u64::try_from((min_exponent + 16_495).clamp(0, 0x7fff)).unwrap_or(0);
        let mode = (exponent << 37)
            | (field(max_precision, 128) << 30)
            | (field(max_bits, 1 << 15) << 15)
            | field(min_bits, 1 << 15);
        ((mode << 12) | 0xfff, 64)
    }

    fn read(reader: &mut BitReader<'_>) -> Parameters {
        let field = |bits: u64| u32::try_from(bits).unwrap_or(u32::MAX);
        match field(reader.bits(12)) {
            rate @ 0..2048 => Parameters {
                min_bits: rate + 1,
                max_bits: rate + 1,
                ..ALL
            },
            planes @ 2048..2176 => Parameters {
                max_precision: planes - 2047,
                ..ALL
            },
            exponent @ 2176..0xfff => Parameters {
                min_exponent: exponent.cast_signed() - 2177 + MIN_EXPONENT,
                ..ALL
            },
            _ => Parameters {
                min_bits: field(reader.bits(15)) + 1,
                max_bits: field(reader.bits(15)) + 1,
                max_precision: field(reader.bits(7)) + 1,
                min_exponent: field(reader.bits(15)).cast_signed() - 16_495,
            },
        }
    }
}

/// The greatest e for which two to the power of e is at most `value`, which is above zero.
fn exponent_of(value: f64) -> i32 {
    let bits = value.to_bits();
    match i32::try_from(bits >> 52).unwrap_or(0) {
        0 => i32::try_from(bits.ilog2()).unwrap_or(0) + MIN_EXPONENT,
        biased => biased - 1023,
    }
}

/// The bits of a length in a header.
fn length_bits(dimensions: u32) -> u32 {
    48 / dimensions.max(1)
}

/// Writes a header.
///
/// # Errors
/// The dimensions are too long for one.
pub(super) fn write_header(
    parameters: Parameters,
    field: Field,
    number: NumberType,
    writer: &mut BitWriter,
) -> Result<(), FormatError> {
    writer.bits(u64::from_le_bytes(*b"zfp\x05\0\0\0\0"), 32);
    writer.bits(number.code(), 2);
    writer.bits(u64::from(field.dimensions) - 1, 2);
    let bits = length_bits(field.dimensions);
    for &length in field.lengths() {
        let last = (length as u64).saturating_sub(1);
        FormatError::check_limit("the length of a dimension in zfp", last, (1 << bits) - 1)?;
        writer.bits(last, bits);
    }
    writer.zeros(48 % field.dimensions);
    let (mode, bits) = parameters.mode();
    writer.bits(mode, bits);
    Ok(())
}

/// Reads a header. `field` and `number` are those of the array. The header may also describe the numbers as an array of one
/// dimension, because numcodecs writes the output of a filter like that.
///
/// # Errors
/// No header, or that of another array.
pub(super) fn read_header(
    field: Field,
    number: NumberType,
    reader: &mut BitReader<'_>,
) -> Result<(Parameters, Field), String> {
    let magic = reader.bits(32).to_le_bytes();
    match magic {
        [b'z', b'f', b'p', 5, ..] => {}
        [b'z', b'f', b'p', version, ..] => {
            return Err(format!("found version {version} of the format, expected 5"));
        }
        _ => return Err("found no header of zfp".to_owned()),
    }
    let code = reader.bits(2);
    if code != number.code() {
        let found = NumberType::of_code(code);
        return Err(format!(
            "its header says {}, expected {}",
            found.name(),
            number.name()
        ));
    }
    let dimensions = u32::try_from(reader.bits(2)).unwrap_or(0) + 1;
    let mut found = Field {
        dimensions,
        lengths: [1; 4],
    };
    for length in found.lengths.iter_mut().take(dimensions as usize) {
        *length = usize::try_from(reader.bits(length_bits(dimensions)) + 1).unwrap_or(usize::MAX);
    }
    let is_flat =
        dimensions == 1 && Some(found.lengths) == field.count().map(|count| [count, 1, 1, 1]);
    if found != field && !is_flat {
        return Err(format!("its header says {found}, expected {field}"));
    }
    let parameters = Parameters::read(reader);
    parameters
        .check(number)
        .map_err(|problem| format!("its header: {problem}"))?;
    Ok((parameters, found))
}
