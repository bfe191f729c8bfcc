//! The `delta` filter: differences between successive elements.
//!
//! Name: `numcodecs.delta`; in v2 the filter `delta`.
//!
//! ```json
//! { "name": "numcodecs.delta", "configuration": { "dtype": "<i4", "astype": "<i2" } }
//! ```
//!
//! Differences are stored as `astype`, the decoded sums are of `dtype`. As in `numpy.cumsum`,
//! integers wrap, and floats are rounded after every sum, in the wider one of the two types.

use super::super::number::{Number, Value, map_numbers, unencodable};
use crate::dtype::{FLOAT32, FLOAT64};
use crate::error::FormatError;

pub(super) const NAME: &str = "numcodecs.delta";

/// Decodes differences to their sums.
pub(super) fn decode(
    (from, encoded): (Number, &[u8]),
    (to, out): (Number, &mut [u8]),
) -> Result<(), FormatError> {
    let common = common(from, to);
    let mut sum: Option<Value> = None;
    map_numbers((from, encoded), (to, out), |difference| {
        // The first element is not added to zero, so that minus zero stays minus zero.
        sum = match sum {
            None => common.cast(difference),
            Some(sum) => add(common, sum, difference),
        };
        sum.and_then(|sum| to.cast(sum)).ok_or_else(|| {
            let problem = format!("{difference:?} is no difference of numbers of this type");
            FormatError::encoded(NAME, problem)
        })
    })
}

/// Encodes numbers to their differences, which wrap or are rounded in the type of the numbers.
pub(super) fn encode(
    (from, decoded): (Number, &[u8]),
    (to, out): (Number, &mut [u8]),
) -> Result<(), FormatError> {
    let (mut index, mut before) = (0, None);
    map_numbers((from, decoded), (to, out), |value| {
        let at = index;
        index += 1;
        let difference = match before.replace(value) {
            None => Some(value),
            Some(before) => subtract(from, value, before),
        };
        let encoded = difference.and_then(|difference| to.cast(difference));
        encoded.ok_or_else(|| unencodable(NAME, at, value))
    })
}

/// Whether all numbers decode to the original ones: integers that wrap in no fewer bits, and have a
/// meaning for each pattern of bits.
pub(super) fn is_exact(decoded: Number, encoded: Number) -> bool {
    match (decoded, encoded) {
        (Number::Integer(own), Number::Integer(stored)) => {
            own.bits as usize == 8 * own.bytes && stored.bits >= own.bits
        }
        _ => false,
    }
}

/// The type of the intermediate sums, which has all numbers of both types.
fn common(difference: Number, sum: Number) -> Number {
    let Number::Float(format) = sum else {
        return sum;
    };
    let bytes = match difference {
        Number::Float(difference) => difference.bytes,
        // The mantissa must have all bits of the integer.
        Number::Integer(format) if format.bytes == 1 => 2,
        Number::Integer(format) if format.bytes == 2 => 4,
        Number::Bool | Number::Integer(_) => 8,
    };
    if bytes <= format.bytes {
        return sum;
    }
    Number::Float(if bytes == 4 { FLOAT32 } else { FLOAT64 })
}

fn add(number: Number, one: Value, other: Value) -> Option<Value> {
    match (number, one, other) {
        (Number::Float(format), one, other) => {
            Number::rounded(format, one.as_f64() + other.as_f64())
        }
        (_, Value::Int(one), Value::Int(other)) => number.cast(Value::Int(one + other)),
        _ => None,
    }
}

fn subtract(number: Number, one: Value, other: Value) -> Option<Value> {
    let negated = match other {
        Value::Int(other) => Value::Int(-other),
        Value::Float(other) => Value::Float(-other),
    };
    add(number, one, negated)
}
