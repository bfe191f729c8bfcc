//! Parses members of codec configurations.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::value::RawValue;

use super::{ArrayToArray, Codec, Input};
use crate::codec::{Elementwise, Filter, FilterKind, Number, Setting, Value};
use crate::dtype::{ByteOrder, DataType, FillValue};
use crate::error::FormatError;
use crate::metadata::json::{self, Json, Members};

/// The filter of `kind` from the data type of `input` to `encoded`.
pub(super) fn filter(input: &Input, kind: FilterKind, encoded: DataType) -> Codec {
    let filter = Filter::new(kind, &input.data_type, encoded);
    Codec::ArrayToArray(ArrayToArray::Filter(filter))
}

/// The filter that encodes each number by itself, from the data type of `input` to `encoded`.
pub(super) fn elementwise(
    input: &Input,
    operation: Elementwise,
    decoded: Number,
    encoded: DataType,
) -> Result<Codec, FormatError> {
    let kind = FilterKind::Elementwise {
        operation,
        decoded,
        encoded: number(&encoded)?,
    };
    Ok(filter(input, kind, encoded))
}

/// The number format of `data_type`, which must be a number.
pub(super) fn number(data_type: &DataType) -> Result<Number, FormatError> {
    Number::of(data_type).ok_or_else(|| no_number(data_type))
}

/// Like [`number`], where `bool` is not accepted.
pub(super) fn arithmetic(data_type: &DataType) -> Result<Number, FormatError> {
    number(data_type)
        .ok()
        .filter(|&number| number != Number::Bool)
        .ok_or_else(|| no_number(data_type))
}

fn no_number(data_type: &DataType) -> FormatError {
    FormatError::unsupported("", "data type before this codec", &data_type.name)
}

/// The data type that the member `name` spells as in v2; `None` when it is absent.
pub(super) fn data_type(
    configuration: &Members<'_>,
    name: &str,
) -> Result<Option<DataType>, FormatError> {
    let parsed = configuration.read_some(name, DataType::parse_v2)?;
    Ok(parsed.map(|(data_type, _)| data_type))
}

/// The type that a filter reads its input as: the member `name`, which must have the element size
/// of the input, or the data type of the input when it is absent.
pub(super) fn own_type(
    input: &Input,
    configuration: &Members<'_>,
    name: &str,
) -> Result<DataType, FormatError> {
    let own = &input.data_type;
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

/// A number as Python reads it, so that integers stay exact.
pub(super) fn value(configuration: &Members<'_>, name: &str) -> Result<Value, FormatError> {
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

/// The whole number of the member `name`, from `least` to `most`; `None` when it is absent.
pub(super) fn integer<T: Copy + Display + PartialOrd + TryFrom<i128>>(
    configuration: &Members<'_>,
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

/// The parameter `name` of an encoder, as `read` reads it; `default` when it is absent.
pub(super) fn setting<T>(
    configuration: &Members<'_>,
    name: &'static str,
    default: Option<T>,
    read: impl FnOnce(&RawValue) -> Option<T>,
) -> Setting<T> {
    let value = match configuration.get_some(name) {
        Some(raw) => read(raw),
        None => default,
    };
    value.ok_or(name)
}

/// Reads whole numbers of a range.
pub(super) fn within<T: Copy + PartialOrd + TryFrom<i128>>(
    range: RangeInclusive<T>,
) -> impl FnOnce(&RawValue) -> Option<T> {
    move |raw| {
        let value = T::try_from(integer_of(raw)?).ok();
        value.filter(|value| range.contains(value))
    }
}

/// A whole number.
pub(super) fn integer_of(raw: &RawValue) -> Option<i128> {
    Json::of(raw).ok()?.integer()
}

/// The meaning of the member `name`, which must be one of `words`; `None` when it is absent.
pub(super) fn word<T: Copy>(
    configuration: &Members<'_>,
    name: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, FormatError> {
    configuration.read_some(name, |raw| json::word(raw, words))
}

/// Refuses members that are not in `known`.
pub(in crate::metadata) fn check_known(
    configuration: &Members<'_>,
    known: &[&str],
) -> Result<(), FormatError> {
    match configuration.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(FormatError::unsupported(name, "member", name)),
        None => Ok(()),
    }
}
