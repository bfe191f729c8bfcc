//! Single numbers: read from bytes, cast, and written to bytes.
//!
//! A number is held as an `f64` or an `i128`, whatever its type; filters compute on these two and
//! round to the type. One operation in `f64`, rounded, is exactly that operation in a type of at
//! most half as many bits.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::bytes::copy_start;
use crate::dtype::{DataType, Element, FloatFormat, IntegerFormat};
use crate::error::FormatError;

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Number {
    /// One byte, zero or not.
    Bool,
    /// A whole number.
    Integer(IntegerFormat),
    /// A floating point number.
    Float(FloatFormat),
}

/// A number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    /// A whole number, or 0 and 1 for false and true.
    Int(i128),
    /// A floating point number.
    Float(f64),
}

impl Value {
    /// Nearest `f64`.
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "rounds half to even")]
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
        }
    }

    /// Whether both are the same number, of whichever type; all NaNs are the same.
    pub(crate) fn is_same(self, other: Value) -> bool {
        self.order(other).is_eq()
    }

    /// The order of two numbers; all NaNs are the same, and above all others.
    pub(crate) fn order(self, other: Value) -> Ordering {
        match (self, other) {
            (Value::Int(one), Value::Int(other)) => one.cmp(&other),
            (one, other) => {
                let (one, other) = (one.as_f64(), other.as_f64());
                let order = one.partial_cmp(&other);
                order.unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()))
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(whole) => whole.fmt(f),
            Value::Float(number) => number.fmt(f),
        }
    }
}

/// Values are equal when their types and bits are; that is stricter than [`Value::is_same`].
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Int(one), Value::Int(other)) => one == other,
            (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Value::Int(value) => value.hash(state),
            Value::Float(value) => value.to_bits().hash(state),
        }
    }
}

impl Number {
    /// The type of number that an element of `data_type` is, with dates and durations as their
    /// counts; `None` when it is not a single number.
    pub(crate) fn of(data_type: &DataType) -> Option<Number> {
        match data_type.element {
            Element::Bool => Some(Number::Bool),
            Element::Integer(format) => Some(Number::Integer(format)),
            Element::Float(format) => Some(Number::Float(format)),
            Element::Time(_) => Some(Number::Integer(IntegerFormat::whole(8, true))),
            _ => None,
        }
    }

    /// Like [`Number::of`]; of a complex number, the type of its two parts.
    pub(crate) fn part_of(data_type: &DataType) -> Option<Number> {
        match data_type.element {
            Element::Complex(format) => Some(Number::Float(format)),
            _ => Number::of(data_type),
        }
    }

    /// The number of bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Number::Bool => 1,
            Number::Integer(format) => format.bytes,
            Number::Float(format) => format.bytes,
        }
    }

    /// The number of significant bits; in a narrow integer these are the low ones.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Number::Bool => 1,
            Number::Integer(format) => format.bits,
            Number::Float(format) => format.bit_count(),
        }
    }

    /// The number in `bytes`, little-endian.
    pub(crate) fn read(self, bytes: &[u8]) -> Value {
        let mut word = [0; 8];
        copy_start(bytes, &mut word);
        let word = u64::from_le_bytes(word);
        match self {
            Number::Bool => Value::Int(i128::from(word != 0)),
            Number::Integer(format) => Value::Int(wrapped(i128::from(word), format)),
            Number::Float(format) => Value::Float(format.value(word)),
        }
    }

    /// Writes a number that this type has, such as a result of [`Number::cast`], little-endian.
    pub(crate) fn write(self, value: Value, out: &mut [u8]) {
        let word = match (self, value) {
            (Number::Float(format), value) => format.of_value(value.as_f64()).unwrap_or(0),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the low bits are what is stored"
            )]
            (_, Value::Int(value)) => value as u64,
            #[expect(clippy::cast_possible_truncation, reason = "a cast left it whole")]
            (_, Value::Float(value)) => (value as i64).cast_unsigned(),
        };
        copy_start(&word.to_le_bytes(), out);
    }

    /// A C cast, as `numpy.ndarray.astype` does: integers wrap, floats are rounded half to even,
    /// and floats are truncated to integers. `None` if C leaves the result undefined, or the
    /// type does not have it.
    pub(crate) fn cast(self, value: Value) -> Option<Value> {
        match (self, value) {
            (Number::Bool, Value::Int(value)) => Some(Value::Int(i128::from(value != 0))),
            (Number::Bool, Value::Float(value)) => Some(Value::Int(i128::from(value != 0.0))),
            (Number::Integer(format), Value::Int(value)) => {
                Some(Value::Int(wrapped(value, format)))
            }
            (Number::Integer(format), Value::Float(value)) => {
                let whole = whole(value.trunc())?;
                format.holds(whole).then_some(Value::Int(whole))
            }
            (Number::Float(format), Value::Int(value)) => {
                #[expect(clippy::cast_precision_loss, reason = "rounds half to even")]
                let nearest = match format.bytes {
                    8 => value as f64,
                    // NumPy casts to float32 first for narrower types.
                    _ => f64::from(value as f32),
                };
                Number::rounded(format, nearest)
            }
            (Number::Float(format), Value::Float(value)) => Number::rounded(format, value),
        }
    }

    /// Rounds `exact`, the result of an operation in `f64`, to this type.
    pub(crate) fn rounded(format: FloatFormat, exact: f64) -> Option<Value> {
        if format.bytes == 8 {
            return Some(Value::Float(exact));
        }
        let bits = format.of_value(exact)?;
        Some(Value::Float(format.value(bits)))
    }
}

/// The number of `format` that the low bits of `value` are.
pub(super) fn wrapped(value: i128, format: IntegerFormat) -> i128 {
    let unused = 128 - format.bits;
    if format.signed {
        (value << unused) >> unused
    } else {
        ((value << unused).cast_unsigned() >> unused).cast_signed()
    }
}

/// A float without a fraction as an integer; `None` when it is NaN or far too large.
pub(super) fn whole(value: f64) -> Option<i128> {
    const PAST: f64 = 1.0e38;
    #[expect(clippy::cast_possible_truncation, reason = "smaller than 2^127")]
    (value.abs() < PAST).then_some(value as i128)
}

/// Decodes each number of `encoded` by `undo` to a number of `out`.
pub(super) fn map_numbers<E>(
    (from, encoded): (Number, &[u8]),
    (to, out): (Number, &mut [u8]),
    mut undo: impl FnMut(Value) -> Result<Value, E>,
) -> Result<(), E> {
    let numbers = encoded.chunks_exact(from.size());
    for (bytes, out) in numbers.zip(out.chunks_exact_mut(to.size())) {
        to.write(undo(from.read(bytes))?, out);
    }
    Ok(())
}

/// The error that the filter `codec` has no encoded number for `value`, which is number `index` of
/// its input.
pub(super) fn unencodable(codec: &'static str, index: u64, value: Value) -> FormatError {
    let problem = format!("{value}, number {index} of the chunk, has no encoded value");
    FormatError::encoded(codec, problem)
}
