//! The `delta` filter: differences between neighbours.
//!
//! Name: `numcodecs.delta`; in v2 the filter `delta`.
//!
//! ```json
//! { "name": "numcodecs.delta", "configuration": { "dtype": "<i4", "astype": "<i2" } }
//! ```
//!
//! Differences are stored as `astype` and summed in `dtype`: integers wrap round, floats round
//! after every sum.

use super::super::number::{Number, Value, each};
use crate::error::FormatError;

pub(super) const NAME: &str = "numcodecs.delta";

/// Sums `encoded` up.
pub(super) fn decode(
    encoded: (Number, &[u8]),
    (to, out): (Number, &mut [u8]),
) -> Result<(), FormatError> {
    let mut sum: Option<Value> = None;
    each(encoded, (to, out), |stored| {
        let next = to.cast(stored).and_then(|difference| match sum {
            // Nothing is added to the first one: minus zero stays what it is.
            None => Some(difference),
            Some(sum) => add(to, sum, difference),
        });
        let next = next.ok_or_else(|| {
            let problem = format!("{stored:?} is no difference of numbers of this type");
            FormatError::encoded(NAME, problem)
        })?;
        sum = Some(next);
        Ok(next)
    })
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
