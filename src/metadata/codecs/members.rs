//! Members of configurations.

use serde_json::value::RawValue;

use super::{ArrayToArray, Seen, Stage};
use crate::codec::{Filter, FilterKind, Number, Value};
use crate::dtype::json::{self, Json, Object};
use crate::dtype::{ByteOrder, DataType, FillValue};
use crate::error::FormatError;

/// The filter from what the codec sees to elements of `encoded`.
pub(super) fn filter(seen: &Seen, kind: FilterKind, encoded: DataType) -> Stage {
    let filter = Filter::new(kind, &seen.data_type, encoded);
    Stage::ArrayToArray(ArrayToArray::Filter(filter))
}

/// The number that an element of `data_type` is.
pub(super) fn number(data_type: &DataType) -> Result<Number, FormatError> {
    Number::of(data_type).ok_or_else(|| no_number(data_type))
}

/// As [`number`], where truth values will not do.
pub(super) fn arithmetic(data_type: &DataType) -> Result<Number, FormatError> {
    number(data_type)
        .ok()
        .filter(|&number| number != Number::Bool)
        .ok_or_else(|| no_number(data_type))
}

fn no_number(data_type: &DataType) -> FormatError {
    FormatError::unsupported("", "data type before this codec", &data_type.name)
}

/// The data type, in v2's spelling, that the member `name` says; `None` without.
pub(super) fn data_type(
    configuration: &Object<'_>,
    name: &str,
) -> Result<Option<DataType>, FormatError> {
    let Some(value) = configuration.get_some(name) else {
        return Ok(None);
    };
    let (data_type, _) = DataType::parse_v2(value).map_err(|error| error.within(name))?;
    Ok(Some(data_type))
}

/// The type that a filter takes elements for: what the member `name` says, as long as they are
/// of that size, or what they are.
pub(super) fn own_type(
    seen: &Seen,
    configuration: &Object<'_>,
    name: &str,
) -> Result<DataType, FormatError> {
    match (
        data_type(configuration, name)?,
        configuration.get_some(name),
    ) {
        (Some(found), Some(value)) if found.item_size != seen.data_type.item_size => {
            let own = &seen.data_type;
            let expected = format!("a type of {} bytes, as `{}` is", own.item_size, own.name);
            Err(json::mismatch(value, &expected).within(name))
        }
        (Some(found), _) => Ok(found),
        (None, _) => Ok(seen.data_type.clone()),
    }
}

/// A number as Python reads it: whole ones stay exact.
pub(super) fn value(configuration: &Object<'_>, name: &str) -> Result<Value, FormatError> {
    let raw = configuration.require(name)?;
    let value = match Json::of(raw)? {
        Json::NonFinite(value) => Some(Value::Float(value)),
        Json::Number(text) => match text.parse::<i64>() {
            Ok(whole) => Some(Value::Int(whole.into())),
            Err(_) => text.parse().ok().map(Value::Float),
        },
        _ => None,
    };
    value.ok_or_else(|| json::mismatch(raw, "a number").within(name))
}

/// A number of `data_type`, spelled as a fill value of v3.
pub(super) fn scalar(data_type: &DataType, raw: &RawValue) -> Result<Value, FormatError> {
    let element = FillValue::parse_v3(data_type, raw, ByteOrder::Little)?;
    Ok(number(data_type)?.read(element.bytes()))
}

/// A whole number from `least` to `most`; `None` without.
pub(super) fn integer(
    configuration: &Object<'_>,
    name: &str,
    (least, most): (i64, i64),
) -> Result<Option<i64>, FormatError> {
    let Some(raw) = configuration.get_some(name) else {
        return Ok(None);
    };
    let value = match Json::of(raw)? {
        Json::Number(text) => json::integer(text).and_then(|value| i64::try_from(value).ok()),
        _ => None,
    };
    value
        .filter(|value| (least..=most).contains(value))
        .map(Some)
        .ok_or_else(|| {
            let expected = format!("a whole number from {least} to {most}");
            json::mismatch(raw, &expected).within(name)
        })
}

/// One of some words, and what it stands for; `None` without.
pub(super) fn word<T: Copy>(
    configuration: &Object<'_>,
    name: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, FormatError> {
    let Some(raw) = configuration.get_some(name) else {
        return Ok(None);
    };
    let found = match Json::of(raw)? {
        Json::String(text) => words.iter().find(|(word, _)| *word == text),
        _ => None,
    };
    found.map(|&(_, value)| Some(value)).ok_or_else(|| {
        let words: Vec<String> = words
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        json::mismatch(raw, &words.join(" or ")).within(name)
    })
}

/// Refuses members beside those of `known`, where a specification does.
pub(super) fn check_known(configuration: &Object<'_>, known: &[&str]) -> Result<(), FormatError> {
    match configuration.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(FormatError::unsupported(name, "member", name)),
        None => Ok(()),
    }
}
