//! Fill values in the one spelling that all readers of their version take.

use serde_json::value::RawValue;

use super::super::Decoding;
use super::super::carry::is_same;
use super::super::codecs;
use super::edit::stored_type;
use crate::dtype::{Element, FloatFormat, Variable};
use crate::error::FormatError;
use crate::metadata::json::{self, Json};

/// The canonical spelling of `value`, the fill value of a document of v2; `None` if it has this spelling.
pub(super) fn canonical_v2(
    decoding: &Decoding,
    value: &RawValue,
) -> Result<Option<String>, FormatError> {
    let data_type = &decoding.data_type;
    let is_canonical = match &data_type.element {
        _ if value.get() == "null" => Some(true),
        // Some readers take the number 0 for the text "0" and others for no text, but none refuses it.
        Element::Variable(Variable::Text) => Some(true),
        element => is_canonical(element, value, is_named_or_decimal),
    };
    respelled(value, is_canonical, || {
        decoding.fill_value.spell_v2(data_type)
    })
}

/// The canonical spelling of `value`, the fill value of a document of v3; `None` if it has this spelling.
pub(super) fn canonical_v3(
    decoding: &Decoding,
    value: &RawValue,
) -> Result<Option<String>, FormatError> {
    let data_type = stored_type(decoding);
    let is_float = |format: &FloatFormat, text: &str| {
        is_named_or_decimal(format, text) || text.starts_with("\"0x")
    };
    let is_canonical = match &data_type.element {
        // An object of the fields, or base64.
        Element::Record(_) => Some(true),
        element => is_canonical(element, value, is_float),
    };
    respelled(value, is_canonical, || {
        decoding.fill_value.spell_v3(&data_type)
    })
}

/// The spelling that `spelled` returns; `None` if `value` is canonical, or, if that is not known, means the same.
fn respelled(
    value: &RawValue,
    is_canonical: Option<bool>,
    spelled: impl FnOnce() -> Result<String, FormatError>,
) -> Result<Option<String>, FormatError> {
    match is_canonical {
        Some(true) => Ok(None),
        Some(false) => spelled().map(Some),
        // An element that is too large to be written stays as it is.
        None => spelled().map_or(Ok(None), |spelled| {
            let is_said = is_same("fill_value", (value, codecs::parse(&spelled)?))?;
            Ok((!is_said).then_some(spelled))
        }),
    }
}

fn is_named_or_decimal(format: &FloatFormat, text: &str) -> bool {
    format.is_read_alike(text) || matches!(text, "\"NaN\"" | "\"Infinity\"" | "\"-Infinity\"")
}

/// Whether `value` is canonical; `None` for elements of which this program's spelling is the only canonical one.
fn is_canonical(
    element: &Element,
    value: &RawValue,
    is_float: impl Fn(&FloatFormat, &str) -> bool,
) -> Option<bool> {
    let text = value.get();
    match element {
        Element::Bool => Some(matches!(text, "true" | "false")),
        Element::Integer(format) => {
            let whole = whole_number(text);
            Some(whole.is_some_and(|value| format.holds(value)))
        }
        Element::Time(format) => {
            let is_number = !format.is_unitless_date() && whole_number(text).is_some();
            Some(is_number || text == "\"NaT\"")
        }
        Element::Float(format) => Some(is_float(format, text)),
        Element::Complex(format) => Some(match Json::of(value) {
            Ok(Json::Array(parts)) => parts.iter().all(|part| is_float(format, part.get())),
            _ => false,
        }),
        // Its meaning depends on the object codec.
        Element::Variable(Variable::Object) => Some(true),
        _ => None,
    }
}

/// The whole number that `text` spells without a point, an exponent or quotes.
fn whole_number(text: &str) -> Option<i128> {
    let is_spelled = (text.trim_start_matches('-')).starts_with(|c: char| c.is_ascii_digit());
    (is_spelled && !text.contains(['.', 'e', 'E'])).then(|| json::integer(text))?
}
