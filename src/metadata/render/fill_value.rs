//! Whether a fill value is in the one spelling that all readers of its version take.

use serde_json::value::RawValue;

use crate::dtype::{Element, FloatFormat};
use crate::metadata::json::{self, Json};

/// Whether `value`, the fill value of elements of v2, is.
pub(super) fn is_canonical_v2(element: &Element, value: &RawValue) -> bool {
    let text = value.get();
    text == "null"
        || match element {
            Element::Float(format) => {
                format.is_read_alike(text)
                    || matches!(text, "\"NaN\"" | "\"Infinity\"" | "\"-Infinity\"")
            }
            element => is_canonical(element, text),
        }
}

/// Whether `value`, the fill value of elements of v3, is.
pub(super) fn is_canonical_v3(element: &Element, value: &RawValue) -> bool {
    let is_float = |format: &FloatFormat, text: &str| {
        let is_name = matches!(text, "\"NaN\"" | "\"Infinity\"" | "\"-Infinity\"");
        format.is_read_alike(text) || is_name || text.starts_with("\"0x")
    };
    match element {
        Element::Float(format) => is_float(format, value.get()),
        Element::Complex(format) => match Json::of(value) {
            Ok(Json::Array(parts)) => parts.iter().all(|part| is_float(format, part.get())),
            _ => false,
        },
        element => is_canonical(element, value.get()),
    }
}

fn is_canonical(element: &Element, text: &str) -> bool {
    match element {
        Element::Bool => matches!(text, "true" | "false"),
        Element::Integer(format) => {
            let is_spelled = begins_number(text) && !text.contains(['.', 'e', 'E']);
            is_spelled && json::integer(text).is_some_and(|value| format.holds(value))
        }
        // How other elements are spelled is either wrong or the same for all readers.
        _ => true,
    }
}

fn begins_number(text: &str) -> bool {
    text.trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_digit())
}
