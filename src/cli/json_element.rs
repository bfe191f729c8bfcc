//! The value of an element in the JSON of `--info`.

use serde_json::{Number, Value};

use crate::dtype::Element;

/// Programs hold numbers of JSON as `f64`, in which all integers up to this one are exact.
const MOST_EXACT: u64 = 1 << 53;

/// The element with this text as a number or truth value where JSON has it exactly; else the text.
pub(super) fn json_element(element: &Element, text: &str) -> Value {
    let number = match element {
        Element::Bool => text.parse().ok().map(Value::Bool),
        Element::Integer(_) => {
            let number: Option<i64> = text.parse().ok();
            let exact = number.filter(|number| number.unsigned_abs() <= MOST_EXACT);
            exact.map(Value::from)
        }
        Element::Float(float) => {
            // The text of an f32 has only the digits that distinguish it from other f32 values.
            let number: Option<f64> = match float.bytes {
                4 => text.parse::<f32>().ok().map(f64::from),
                _ => text.parse().ok(),
            };
            number.and_then(Number::from_f64).map(Value::Number)
        }
        _ => None,
    };
    number.unwrap_or_else(|| text.into())
}
