//! Members of configurations.

use std::fmt::Display;

use serde_json::value::RawValue;

use super::{ArrayToArray, Seen, Stage};
use crate::codec::{Elementwise, Filter, FilterKind, Number, Value};
use crate::dtype::json::{self, Json, Object};
use crate::dtype::{ByteOrder, DataType, FillValue};
use crate::error::FormatError;

/// The filter from what the codec sees to elements of `encoded`.
pub(super) fn filter(seen: &Seen, kind: FilterKind, encoded: DataType) -> Stage {
    let filter = Filter::new(kind, &seen.data_type, encoded);
    Stage::ArrayToArray(ArrayToArray::Filter(filter))
}

/// The filter of one number after the other, from what the codec sees to elements of `encoded`.
pub(super) fn elementwise(
    seen: &Seen,
    operation: Elementwise,
    decoded: Number,
    encoded: DataType,
) -> Result<Stage, FormatError> {
    let kind = FilterKind::Elementwise {
        operation,
        decoded,
        encoded: number(&encoded)?,
    };
    Ok(filter(seen, kind, encoded))
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
    let parsed = configuration.read_some(name, DataType::parse_v2)?;
    Ok(parsed.map(|(data_type, _)| data_type))
}

/// The type that a filter takes elements for: what the member `name` says, as long as they are
/// of that size, or what they are.
pub(super) fn own_type(
    seen: &Seen,
    configuration: &Object<'_>,
    name: &str,
) -> Result<DataType, FormatError> {
    let own = &seen.data_type;
    let read = |value| match DataType::parse_v2(value)? {
        (found, _) if found.item_size == own.item_size => Ok(found),
        _ => {
            let expected = format!("a type of {} bytes, as `{}` is", own.item_size, own.name);
            Err(json::mismatch(value, &expected))
        }
    };
    let found = configuration.read_some(name, read)?;
    Ok(found.unwrap_or_else(|| own.clone()))
}

/// A number as Python reads it: whole ones stay exact.
pub(super) fn value(configuration: &Object<'_>, name: &str) -> Result<Value, FormatError> {
    let read = |raw| {
        let value = match Json::of(raw)? {
            Json::NonFinite(value) => Some(Value::Float(value)),
            Json::Number(text) => match text.parse::<i64>() {
                Ok(whole) => Some(Value::Int(whole.into())),
                Err(_) => text.parse().ok().map(Value::Float),
            },
            _ => None,
        };
        value.ok_or_else(|| json::mismatch(raw, "a number"))
    };
    configuration.read(name, read)
}

/// A number of `data_type`, spelled as a fill value of v3.
pub(super) fn scalar(data_type: &DataType, raw: &RawValue) -> Result<Value, FormatError> {
    let element = FillValue::parse_v3(data_type, raw, ByteOrder::Little)?;
    Ok(number(data_type)?.read(element.bytes()))
}

/// A whole number from `least` to `most`; `None` without.
pub(super) fn integer<T: Copy + Display + PartialOrd + TryFrom<i128>>(
    configuration: &Object<'_>,
    name: &str,
    (least, most): (T, T),
) -> Result<Option<T>, FormatError> {
    configuration.read_some(name, |raw| {
        let value = Json::of(raw)?.integer();
        value
            .and_then(|value| T::try_from(value).ok())
            .filter(|value| (least..=most).contains(value))
            .ok_or_else(|| json::mismatch(raw, &format!("a whole number from {least} to {most}")))
    })
}

/// One of some words, and what it stands for; `None` without.
pub(super) fn word<T: Copy>(
    configuration: &Object<'_>,
    name: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, FormatError> {
    configuration.read_some(name, |raw| json::word(raw, words))
}

/// Refuses members beside those of `known`, where a specification does.
pub(super) fn check_known(configuration: &Object<'_>, known: &[&str]) -> Result<(), FormatError> {
    match configuration.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(FormatError::unsupported(name, "member", name)),
        None => Ok(()),
    }
}
