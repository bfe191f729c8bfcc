//! Filters that apply the same operation to every element.
//!
//! | name | decoded from encoded `e` |
//! |---|---|
//! | `numcodecs.fixedscaleoffset` | `e / scale + offset`, in floating point, cut off for integers |
//! | `numcodecs.quantize`, `numcodecs.astype` | `e`, cast |
//! | `bitround`, `numcodecs.bitround` | `e` |
//! | `scale_offset` | `e / scale + offset`, in the array's type, exactly |
//! | `cast_value` | `e`, cast by rules that it names |
//!
//! ```json
//! { "name": "numcodecs.fixedscaleoffset",
//!   "configuration": { "offset": 10, "scale": 2, "dtype": "<i4", "astype": "|u1" } }
//! ```
//!
//! Specs: numcodecs, section "Filters"; `bitround`, `scale_offset` and `cast_value` in
//! zarr-extensions.

use super::super::{
    bytes::copy_start,
    number::{Number, Value},
};
use super::CastValue;
use crate::error::FormatError;

/// The operation of a filter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Elementwise {
    /// `numcodecs.fixedscaleoffset`.
    FixedScaleOffset {
        /// Subtracted first.
        offset: Value,
        /// Multiplied with.
        scale: Value,
    },
    /// `numcodecs.quantize`.
    Quantize {
        /// Decimal digits kept.
        digits: i32,
    },
    /// `bitround`.
    BitRound {
        /// The number of bits kept: of the mantissa of a float, or from the highest bit set of an
        /// integer.
        keepbits: u32,
    },
    /// `numcodecs.astype`.
    AsType,
    /// `scale_offset`.
    ScaleOffset {
        /// Subtracted first.
        offset: Value,
        /// Multiplied with.
        scale: Value,
    },
    /// `cast_value`.
    CastValue(Box<CastValue>),
}

impl Elementwise {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Elementwise::FixedScaleOffset { .. } => "numcodecs.fixedscaleoffset",
            Elementwise::Quantize { .. } => "numcodecs.quantize",
            Elementwise::BitRound { .. } => "bitround",
            Elementwise::AsType => "numcodecs.astype",
            Elementwise::ScaleOffset { .. } => "scale_offset",
            Elementwise::CastValue(_) => "cast_value",
        }
    }

    /// Whether decoding leaves the bytes of an element as they are.
    pub(super) fn is_identity(&self, decoded: Number, encoded: Number) -> bool {
        match self {
            Elementwise::BitRound { .. } => true,
            Elementwise::Quantize { .. } | Elementwise::AsType => decoded == encoded,
            _ => false,
        }
    }

    /// Decodes one number; `None` when the decoded type does not have the result.
    pub(super) fn decode(&self, value: Value, decoded: Number, encoded: Number) -> Option<Value> {
        match self {
            Elementwise::FixedScaleOffset { offset, scale } => {
                let (offset, scale) = (offset.as_f64(), scale.as_f64());
                let value = value.as_f64();
                decoded.cast(match encoded {
                    // NumPy casts scalars to the type of the array before it computes.
                    Number::Float(format) if format.bytes < 8 => {
                        let round = |exact| Number::rounded(format, exact).map(Value::as_f64);
                        let quotient = round(value / round(scale)?)?;
                        Value::Float(round(quotient + round(offset)?)?)
                    }
                    _ => Value::Float(value / scale + offset),
                })
            }
            Elementwise::Quantize { .. } | Elementwise::AsType => decoded.cast(value),
            Elementwise::BitRound { .. } => Some(value),
            Elementwise::ScaleOffset { offset, scale } => {
                let quotient = exact(decoded, value, *scale, i128::checked_div, |a, b| a / b)?;
                if let (Value::Int(value), Value::Int(quotient), Value::Int(scale)) =
                    (value, quotient, scale)
                    && quotient.checked_mul(*scale) != Some(value)
                {
                    return None;
                }
                exact(decoded, quotient, *offset, i128::checked_add, |a, b| a + b)
            }
            Elementwise::CastValue(cast) => cast.cast(&cast.decode, value, decoded),
        }
    }

    /// Encodes one number; `None` when the encoded type does not have the result.
    pub(super) fn encode(&self, value: Value, decoded: Number, encoded: Number) -> Option<Value> {
        match self {
            Elementwise::FixedScaleOffset { offset, scale } => {
                encoded.cast(fixed_scale_offset(value, *offset, *scale, decoded)?)
            }
            Elementwise::Quantize { digits } => {
                let scale = quantum(*digits);
                let Number::Float(format) = decoded else {
                    return None;
                };
                let round = |exact| Number::rounded(format, exact).map(Value::as_f64);
                let scale = round(scale)?;
                let scaled = round(value.as_f64() * scale)?.round_ties_even();
                encoded.cast(Value::Float(round(scaled / scale)?))
            }
            // `bit_round` rounds the bits of numbers, not their values.
            Elementwise::BitRound { .. } => Some(value),
            Elementwise::AsType => encoded.cast(value),
            Elementwise::ScaleOffset { offset, scale } => {
                let moved = exact(decoded, value, *offset, i128::checked_sub, |a, b| a - b)?;
                exact(decoded, moved, *scale, i128::checked_mul, |a, b| a * b)
            }
            Elementwise::CastValue(cast) => cast.cast(&cast.encode, value, encoded),
        }
    }

    pub(super) fn refusal(&self, value: Value) -> FormatError {
        let problem = format!("{value} stands for no value of the decoded type");
        FormatError::encoded(self.name(), problem)
    }
}

/// One operation in the type of an array; `None` when that type does not have the result.
fn exact(
    number: Number,
    one: Value,
    other: Value,
    integers: fn(i128, i128) -> Option<i128>,
    floats: fn(f64, f64) -> f64,
) -> Option<Value> {
    match (number, one, other) {
        (Number::Integer(format), Value::Int(one), Value::Int(other)) => {
            let result = integers(one, other)?;
            format.holds(result).then_some(Value::Int(result))
        }
        (Number::Float(format), one, other) => {
            let (one, other) = (one.as_f64(), other.as_f64());
            let result = Number::rounded(format, floats(one, other))?.as_f64();
            // The type cannot represent a result that is infinite or NaN but comes from finite
            // numbers.
            let sound = result.is_finite() || !one.is_finite() || !other.is_finite();
            sound.then_some(Value::Float(result))
        }
        _ => None,
    }
}

/// `(value - offset) * scale`, rounded half to even, before the cast. A step wraps when both of its
/// operands are integers.
fn fixed_scale_offset(value: Value, offset: Value, scale: Value, decoded: Number) -> Option<Value> {
    let step = |one: Value,
                other: Value,
                integers: fn(i128, i128) -> i128,
                floats: fn(f64, f64) -> f64| {
        match (decoded, one, other) {
            (Number::Float(format), one, other) => {
                let other = Number::rounded(format, other.as_f64())?;
                Number::rounded(format, floats(one.as_f64(), other.as_f64()))
            }
            (_, Value::Int(one), Value::Int(other)) => {
                decoded.cast(Value::Int(integers(one, other)))
            }
            _ => Some(Value::Float(floats(one.as_f64(), other.as_f64()))),
        }
    };
    let moved = step(value, offset, i128::wrapping_sub, |one, other| one - other)?;
    let scaled = step(moved, scale, i128::wrapping_mul, |one, other| one * other)?;
    Some(match scaled {
        Value::Float(scaled) => Value::Float(scaled.round_ties_even()),
        Value::Int(_) => scaled,
    })
}

/// A power of two. To keep `digits` decimal digits, numbers are rounded to multiples of its inverse.
fn quantum(digits: i32) -> f64 {
    let exponent = 10_f64.powf(f64::from(-digits)).log10();
    let exponent = exponent.abs().ceil().copysign(exponent);
    10_f64.powf(-exponent).log2().ceil().exp2()
}

/// Rounds numbers half to even, so that `keepbits` bits stay of the mantissa, or from the highest
/// bit set. The bits are those of numcodecs also where a number is NaN.
pub(super) fn bit_round(keepbits: u32, number: Number, decoded: &[u8], out: &mut [u8]) {
    let size = number.size();
    for (from, to) in decoded.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
        let mut bytes = [0; 8];
        copy_start(from, &mut bytes);
        let word = u64::from_le_bytes(bytes);
        let most = match number {
            Number::Float(format) => format.mantissa_bits,
            _ => u64::BITS - word.leading_zeros(),
        };
        let rounded = match most.checked_sub(keepbits) {
            Some(dropped @ 1..) => {
                let half = ((word >> dropped) & 1) + ((1 << (dropped - 1)) - 1);
                (word.wrapping_add(half) >> dropped) << dropped
            }
            _ => word,
        };
        copy_start(&rounded.to_le_bytes(), to);
    }
}
