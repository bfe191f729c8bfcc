//! The `cast_value` codec: numbers are cast to another type, by rules that its configuration gives.
//!
//! Spec: <https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value>.
//!
//! ```json
//! { "name": "cast_value", "configuration": {
//!   "data_type": "uint8", "rounding": "nearest-even", "out_of_range": "clamp",
//!   "scalar_map": { "encode": [["NaN", 0]], "decode": [[0, "NaN"]] } } }
//! ```
//!
//! If the map has an entry for the number, that entry is the result. Else, if the other type has the same
//! number, this number is the result. Else the number is rounded, and clamped or wrapped, if the
//! configuration says how; otherwise it is an error. Encoding and decoding follow the same rules.

use std::cmp::Ordering;

use super::super::number::{Number, Value, whole, wrapped};
use crate::dtype::{FloatFormat, IntegerFormat};

/// How a number that the type does not have is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rounding {
    /// To the nearest, half to the even one.
    NearestEven,
    /// Towards zero.
    TowardsZero,
    /// Up.
    TowardsPositive,
    /// Down.
    TowardsNegative,
    /// To the nearest, half away from zero.
    NearestAway,
}

/// The rule for numbers outside the range of the target type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OutOfRange {
    /// It is an error.
    Refuse,
    /// It becomes the nearest end of the range, or infinity.
    Clamp,
    /// Its low bits are the result.
    Wrap,
}

/// The rules of a cast.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CastValue {
    /// How numbers are rounded.
    pub(crate) rounding: Rounding,
    /// The rule for numbers outside the range of the target type.
    pub(crate) out_of_range: OutOfRange,
    /// The map for encoding, from decoded numbers to encoded ones.
    pub(crate) encode: ScalarMap,
    /// The map for decoding, from encoded numbers to decoded ones.
    pub(crate) decode: ScalarMap,
}

/// The numbers of one type that become certain numbers of another type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ScalarMap {
    /// In the order of the first numbers, each of which is there once.
    pairs: Vec<(Value, Value)>,
}

impl ScalarMap {
    /// The map of `pairs`, whose first numbers are of one type. Of several pairs with the same first number, the first
    /// one counts.
    pub(crate) fn new(mut pairs: Vec<(Value, Value)>) -> ScalarMap {
        pairs.sort_by(|(one, _), (other, _)| one.order(*other));
        pairs.dedup_by(|(other, _), (one, _)| one.is_same(*other));
        ScalarMap { pairs }
    }

    fn get(&self, value: Value) -> Option<Value> {
        let found = self.pairs.binary_search_by(|(from, _)| from.order(value));
        let (_, to) = self.pairs.get(found.ok()?)?;
        Some(*to)
    }
}

impl CastValue {
    /// The number of type `to` that `value` becomes. An entry of `map` goes first. `None` if the cast is
    /// an error.
    pub(super) fn cast(&self, map: &ScalarMap, value: Value, to: Number) -> Option<Value> {
        if let Some(mapped) = map.get(value) {
            return Some(mapped);
        }
        match (to, value) {
            (Number::Integer(format), Value::Int(value)) => self.in_range(value, format),
            (Number::Integer(format), Value::Float(value)) if value.is_finite() => {
                let rounded = self.rounded(value);
                if let Some(whole) = whole(rounded) {
                    return self.in_range(whole, format);
                }
                match self.out_of_range {
                    OutOfRange::Refuse => None,
                    // The low bits of so large a float are zeros.
                    OutOfRange::Wrap => Some(Value::Int(0)),
                    OutOfRange::Clamp => {
                        self.in_range(if rounded < 0.0 { i128::MIN } else { i128::MAX }, format)
                    }
                }
            }
            (Number::Float(format), value) => self.to_float(value, format),
            _ => None,
        }
    }

    fn rounded(&self, value: f64) -> f64 {
        match self.rounding {
            Rounding::NearestEven => value.round_ties_even(),
            Rounding::TowardsZero => value.trunc(),
            Rounding::TowardsPositive => value.ceil(),
            Rounding::TowardsNegative => value.floor(),
            Rounding::NearestAway => value.round(),
        }
    }

    fn in_range(&self, value: i128, format: IntegerFormat) -> Option<Value> {
        if format.holds(value) {
            return Some(Value::Int(value));
        }
        match self.out_of_range {
            OutOfRange::Refuse => None,
            OutOfRange::Wrap => Some(Value::Int(wrapped(value, format))),
            OutOfRange::Clamp => {
                let (least, most) = format.range();
                Some(Value::Int(value.clamp(least, most)))
            }
        }
    }

    fn to_float(&self, value: Value, format: FloatFormat) -> Option<Value> {
        let given = value.as_f64();
        if matches!(value, Value::Float(_)) && !given.is_finite() {
            let bits = format.of_value(given)?;
            return Some(Value::Float(format.value(bits)));
        }
        // The two floats that the number lies between.
        let (below, above) = enclosing_floats(value, format);
        let (toward, away) = if given < 0.0 {
            (above, below)
        } else {
            (below, above)
        };
        let rounded = match self.rounding {
            Rounding::TowardsPositive => above,
            Rounding::TowardsNegative => below,
            Rounding::TowardsZero => toward,
            Rounding::NearestEven => nearest(value, format),
            Rounding::NearestAway => match (toward, away) {
                (Some(toward), Some(away)) if is_middle(value, toward, away) => Some(away),
                _ => nearest(value, format),
            },
        };
        match rounded {
            Some(rounded) if rounded.is_finite() => Some(Value::Float(rounded)),
            _ if self.out_of_range == OutOfRange::Clamp => {
                // In a format without zero, small positive numbers are below the least one.
                let is_low = given < format.value(format.end(true));
                let end = if is_low {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                };
                let bits = format.of_value(end);
                let bits = bits.unwrap_or_else(|| format.end(is_low));
                Some(Value::Float(format.value(bits)))
            }
            _ => None,
        }
    }
}

/// The float of `format` nearest to `value`, half to even.
fn nearest(value: Value, format: FloatFormat) -> Option<f64> {
    let bits = match value {
        Value::Float(value) => format.of_value(value)?,
        #[expect(clippy::cast_precision_loss, reason = "rounds half to even")]
        Value::Int(value) if format.bytes == 4 => u64::from((value as f32).to_bits()),
        Value::Int(_) => format.of_value(value.as_f64())?,
    };
    Some(format.value(bits))
}

/// The greatest float of `format` that is not above `value`, and the least that is not below: the
/// same when `value` is one of them.
fn enclosing_floats(value: Value, format: FloatFormat) -> (Option<f64>, Option<f64>) {
    let Some(near) = nearest(value, format) else {
        return (None, None);
    };
    match compare(near, value) {
        Ordering::Equal => (Some(near), Some(near)),
        Ordering::Less => (Some(near), format.next(near, true)),
        Ordering::Greater => (format.next(near, false), Some(near)),
    }
}

/// Compares a float with a number, exactly. Zeros of both signs are the same number.
fn compare(float: f64, value: Value) -> Ordering {
    match value {
        Value::Float(value) => float.partial_cmp(&value).unwrap_or(Ordering::Equal),
        Value::Int(value) => match whole(float) {
            Some(whole) => whole.cmp(&value),
            None => float.total_cmp(&0.0),
        },
    }
}

/// Whether `value` is in the middle between the two.
fn is_middle(value: Value, one: f64, other: f64) -> bool {
    match value {
        Value::Float(value) => (value - one)
            .abs()
            .total_cmp(&(other - value).abs())
            .is_eq(),
        Value::Int(value) => match (whole(one), whole(other)) {
            (Some(one), Some(other)) => one != other && value - one == other - value,
            _ => false,
        },
    }
}
