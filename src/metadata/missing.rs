//! Missing values: the elements that xarray and GDAL read as no data.
//!
//! | | v2 | v3 |
//! |---|---|---|
//! | absent chunks hold | `fill_value` | `fill_value` |
//! | xarray reads as missing | `fill_value`; where that is `null`, the attribute `_FillValue` | the attribute `_FillValue` |
//! | a float of the attribute is | a number | base64 of an `f64`, little-endian |
//! | GDAL reads as missing | `fill_value` | `fill_value` |
//!
//! So a document of v2 with the `fill_value` of v3 would mask elements that are data. Where all chunks are
//! files, `fill_value` fills nothing, and says the missing value instead.
//!
//! xarray masks the values of the attribute `missing_value`, too, in both versions (`masks`).
//!
//! xarray opens only arrays whose dimensions all have names. The others keep their fill value, for GDAL.
//!
//! Source: xarray 2026.9, `backends/zarr.py`: `FillValueCoder`, `open_store_variable`.

mod masks;

use serde_json::value::RawValue;

use super::document::{JsonDocument, is_empty};
use super::json::Json;
use super::spell::Dialect;
use super::write::{ChunkContent, StoredDocuments, attributes_of_array};
use super::{ArrayMetadata, ZarrFormat, base64, render};
use crate::dtype::{DataType, Element, FLOAT64, FillValue, FloatFormat, element_text};
use crate::error::FormatError;
pub(super) use masks::MISSING_VALUE;
use masks::{Masks, Place};

/// The attribute that has the missing value.
pub(super) const FILL_VALUE: &str = "_FillValue";

/// The attributes that make xarray compute other numbers from the elements.
const PACKING: [&str; 2] = ["scale_factor", "add_offset"];

/// The missing value of an array in a document of v2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingInV2 {
    /// The fill value of the document; undefined where it has none.
    pub fill_value: FillValue,
    /// Whether the fill value says what the attribute `_FillValue` says, which is left out then.
    is_of_attribute: bool,
}

impl MissingInV2 {
    /// The missing value of `array`, which has these `attributes`, where a document of v2 describes `content`.
    ///
    /// # Errors
    /// When the array cannot be decoded, or the attributes are not a JSON object.
    pub fn of(
        array: &ArrayMetadata,
        attributes: Option<&[u8]>,
        content: ChunkContent,
    ) -> Result<MissingInV2, FormatError> {
        let decoding = array.decoding.as_ref().map_err(Clone::clone)?;
        let data_type = render::stored_type(decoding);
        // The fill value of N5 is no missing value.
        if array.zarr_format == ZarrFormat::N5 {
            let zero = FillValue::of_type(&data_type, decoding.fill_value.bytes().to_vec());
            let is_complete = matches!(content, ChunkContent::Complete(_));
            return Ok(MissingInV2 {
                fill_value: if is_complete {
                    FillValue::undefined(&data_type)
                } else {
                    zero
                },
                is_of_attribute: false,
            });
        }
        let is_v3 = array.zarr_format == ZarrFormat::V3;
        // `null` means 0 in v3, but readers of v2 may show whatever is in memory.
        let zero = FillValue::of_type(&data_type, decoding.fill_value.bytes().to_vec());
        let is_null = is_v3 && !decoding.fill_value.is_defined() && !data_type.is_variable();
        let stored = if is_null { &zero } else { &decoding.fill_value };
        let attributes = attributes.filter(|_| is_v3);
        let declared = match attributes {
            Some(text) => Declared::of(&data_type, text)?,
            None => Declared::default(),
        };
        let is_complete = matches!(content, ChunkContent::Complete(_));
        let is_opened = is_v3 && is_opened_by_xarray(array);
        let wanted = match (&declared.value, &declared.also) {
            _ if !is_complete => Some(stored),
            (_, Some(also)) if is_opened => Some(also),
            (Some(value), _) => Some(value),
            // xarray masks nothing by a NaN, but GDAL finds missing elements by it.
            (None, _) if is_opened => {
                (is_nan(&data_type, stored) && !declared.is_packed).then_some(stored)
            }
            (None, _) => Some(stored),
        };
        // No chunk needs a fill value that v2 cannot say.
        let can_say = |value: &&FillValue| !is_complete || value.spell_v2(&data_type).is_ok();
        let fill_value = wanted.filter(can_say).cloned();
        let fill_value = fill_value.unwrap_or_else(|| FillValue::undefined(&data_type));
        let is_of_attribute = declared.value.as_ref().is_some_and(|value| {
            is_same(&data_type, value, &fill_value)
                || is_nan(&data_type, value) && declared.also.as_ref() == Some(&fill_value)
        });
        Ok(MissingInV2 {
            fill_value,
            is_of_attribute,
        })
    }
}

/// The missing value that the attributes of an array in v3 declare.
#[derive(Default)]
struct Declared {
    /// The missing value, if an element can have it.
    value: Option<FillValue>,
    /// The number of the attribute `missing_value` that JSON cannot spell, if `value` masks nothing.
    also: Option<FillValue>,
    is_packed: bool,
}

impl Declared {
    fn of(data_type: &DataType, attributes: &[u8]) -> Result<Declared, FormatError> {
        let document = JsonDocument::parse(attributes)?;
        let root = document.root()?;
        let own = root.get(FILL_VALUE);
        let value = own.and_then(|value| element(data_type, value));
        let also = match (
            &data_type.element,
            masks::non_finite(root.get(MISSING_VALUE)),
        ) {
            (Element::Float(format), Some(number)) => exact(*format, number),
            _ => None,
        };
        let also = also.map(|bytes| FillValue::of_type(data_type, bytes));
        let masks_nothing = match &value {
            Some(value) => is_nan(data_type, value),
            None => own.is_none(),
        };
        Ok(Declared {
            value,
            also: also.filter(|_| masks_nothing),
            is_packed: PACKING.iter().any(|name| root.get(name).is_some()),
        })
    }
}

/// The value of the attribute `_FillValue` of an array of v3 as text for people, because xarray spells it in base64;
/// `None` if it says no element.
pub fn declared_text(array: &ArrayMetadata, attributes: &[u8]) -> Option<String> {
    if array.zarr_format != ZarrFormat::V3 {
        return None;
    }
    let data_type = &array.decoding.as_ref().ok()?.data_type;
    let declared = Declared::of(data_type, attributes).ok()?;
    Some(element_text(data_type, declared.value?.bytes()))
}

/// The element that the attribute `_FillValue` of v3 says; `None` if no element equals it. A writer other than
/// xarray may have spelled a float as in v2.
fn element(data_type: &DataType, value: &RawValue) -> Option<FillValue> {
    let json = Json::of(value).ok()?;
    let bytes = match (&data_type.element, &json) {
        (Element::Bool, _) => vec![u8::from(is_true(&json))],
        (Element::Integer(_), Json::Bool(value)) => vec![u8::from(*value)],
        (Element::Integer(format), Json::Number(text)) if json.integer().is_none() => {
            let whole = text.parse::<f64>().ok()?.trunc();
            let whole: i128 = format!("{whole:.0}").parse().ok()?;
            let bytes = whole.to_le_bytes().into_iter().take(format.bytes);
            format.holds(whole).then(|| bytes.collect())?
        }
        (Element::Float(format), Json::String(text)) if let Some(value) = float_of(text) => {
            exact(*format, value)?
        }
        (Element::Complex(format), Json::Array(parts)) => {
            let mut bytes = Vec::new();
            for part in parts {
                let Ok(Json::String(text)) = Json::of(part) else {
                    return None;
                };
                bytes.extend(exact(*format, float_of(&text)?)?);
            }
            (bytes.len() == 2 * format.bytes).then_some(bytes)?
        }
        (Element::Integer(_) | Element::Float(_), _) => {
            return FillValue::parse(data_type, Some(value), Dialect::V3)
                .ok()
                .filter(FillValue::is_defined);
        }
        _ => return None,
    };
    Some(FillValue::of_type(data_type, bytes))
}

/// Whether `value` is true in Python, which is how xarray reads the attribute of an array of truth values.
fn is_true(value: &Json<'_>) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(value) => *value,
        Json::Number(text) => text.parse() != Ok(0.0),
        Json::NonFinite(_) => true,
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => members.iter().next().is_some(),
    }
}

/// The bytes of the number of this format that equals `value`.
fn exact(format: FloatFormat, value: f64) -> Option<Vec<u8>> {
    let bits = if value.is_nan() {
        format.nan()?
    } else if value.is_infinite() {
        format.infinity(value < 0.0)?
    } else {
        let bits = format.of_decimal(&serde_json::Value::from(value).to_string())?;
        (format.value(bits).to_bits() == value.to_bits()).then_some(bits)?
    };
    Some(bits.to_le_bytes().into_iter().take(format.bytes).collect())
}

/// The number that xarray spells as `text` in v3.
fn float_of(text: &str) -> Option<f64> {
    let bytes = base64::decode(text)?;
    Some(f64::from_le_bytes(bytes.try_into().ok()?))
}

/// The JSON of a number as xarray spells it in v3.
fn float_text(value: f64) -> String {
    let value = if value.is_nan() { f64::NAN } else { value };
    format!("\"{}\"", base64::encode(&value.to_le_bytes()))
}

/// The JSON of the attribute `_FillValue` of v3 that says `value`; `None` if xarray reads no attribute for elements
/// of this type.
pub(super) fn spell_v3(data_type: &DataType, value: &FillValue) -> Option<String> {
    let number = |format: FloatFormat, bytes: &[u8]| {
        let is_known = ["float16", "float32", "float64"].contains(&format.name());
        is_known.then(|| float_text(format.value(format.bits(bytes))))
    };
    match &data_type.element {
        Element::Bool | Element::Integer(_) => value.spell_v3(data_type).ok(),
        Element::Float(format) => number(*format, value.bytes()),
        Element::Complex(format) => {
            let (real, imaginary) = value.bytes().split_at_checked(format.bytes)?;
            let (real, imaginary) = (number(*format, real)?, number(*format, imaginary)?);
            Some(format!("[{real}, {imaginary}]"))
        }
        _ => None,
    }
}

/// The attribute `_FillValue` of v3 as it is spelled in v2; `None` if that is the same text.
pub(super) fn respelled_v2(data_type: &DataType, value: &RawValue) -> Option<String> {
    let Element::Float(_) = data_type.element else {
        return None;
    };
    let Json::String(text) = Json::of(value).ok()? else {
        return None;
    };
    // JSON has no number for NaN and the infinities.
    let value = float_of(&text).filter(|value| value.is_finite())?;
    Some(serde_json::Value::from(value).to_string())
}

/// The attribute `_FillValue` of v2 as it is spelled in v3; `None` if that is the same text.
pub(super) fn respelled_v3(data_type: &DataType, value: &RawValue) -> Option<String> {
    let Element::Float(_) = data_type.element else {
        return None;
    };
    let value = match Json::of(value).ok()? {
        Json::Number(text) => FLOAT64.value(FLOAT64.of_decimal(text)?),
        Json::NonFinite(value) => value,
        _ => return None,
    };
    Some(float_text(value))
}

/// The attributes of `array` as v2 has them: `_FillValue` is left out where the fill value says it.
///
/// # Errors
/// Those of [`MissingInV2::of`].
pub(super) fn attributes_v2(
    array: &ArrayMetadata,
    attributes: Option<Vec<u8>>,
    content: ChunkContent,
) -> Result<Option<Vec<u8>>, FormatError> {
    let (Some(text), Ok(decoding), ZarrFormat::V3) =
        (&attributes, &array.decoding, array.zarr_format)
    else {
        return Ok(attributes);
    };
    let data_type = render::stored_type(decoding);
    let left = masks_in_v2(array, &data_type, (text, content))?.put(text.clone())?;
    Ok((!is_empty(&left)?).then_some(left))
}

/// The masks that a document of v2 has for the `attributes` of an array of v3.
fn masks_in_v2(
    array: &ArrayMetadata,
    data_type: &DataType,
    (attributes, content): (&[u8], ChunkContent),
) -> Result<Masks, FormatError> {
    let shown = MissingInV2::of(array, Some(attributes), content)?;
    let fill_value = if shown.is_of_attribute {
        None
    } else {
        let document = JsonDocument::parse(attributes)?;
        document.root()?.get(FILL_VALUE).map(|value| {
            let text = || String::from_utf8_lossy(document.text_of(value)).into_owned();
            respelled_v2(data_type, value).unwrap_or_else(text)
        })
    };
    Masks::in_v2(data_type, &shown.fill_value, (attributes, fill_value))
}

/// Whether the attribute `_FillValue` among the `written` attributes of v2 says the same as the fill value that is
/// shown of `array`, which has the documents `source`.
///
/// # Errors
/// Those of [`MissingInV2::of`].
pub(super) fn is_said_in_v2(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
    (content, written): (ChunkContent, &[u8]),
) -> Result<bool, FormatError> {
    let attributes = attributes_of_array(array.zarr_format, source)?;
    let shown = MissingInV2::of(array, attributes.as_deref(), content)?;
    let decoding = array.decoding.as_ref().map_err(Clone::clone)?;
    let data_type = render::stored_type(decoding);
    let value = member(written, FILL_VALUE, |value| element(&data_type, value))?;
    Ok(value.is_some_and(|value| is_same(&data_type, &value, &shown.fill_value)))
}

/// The `attributes` of `array`, of v2 and with names for its dimensions, as v3 has them: `_FillValue` says what the
/// fill value says in v2.
///
/// # Errors
/// When the attributes are not a JSON object.
pub(super) fn attributes_v3(
    array: &ArrayMetadata,
    attributes: Vec<u8>,
) -> Result<Vec<u8>, FormatError> {
    let (Ok(decoding), ZarrFormat::V2) = (&array.decoding, array.zarr_format) else {
        return Ok(attributes);
    };
    let data_type = render::stored_type(decoding);
    Masks::in_v3(&data_type, &decoding.fill_value, &attributes)?.put(attributes)
}

/// The result of `read` for the member `name` of the object `text`; `None` if there is no such member.
pub(super) fn member<T>(
    text: &[u8],
    name: &str,
    read: impl FnOnce(&RawValue) -> Option<T>,
) -> Result<Option<T>, FormatError> {
    let document = JsonDocument::parse(text)?;
    Ok(document.root()?.get(name).and_then(read))
}

/// Whether xarray opens the array, which is of v3: its dimensions have names.
pub(super) fn is_opened_by_xarray(array: &ArrayMetadata) -> bool {
    let names = array.dimension_names.iter().flatten();
    names.filter(|name| name.is_some()).count() == array.shape.len()
}

fn is_nan(data_type: &DataType, value: &FillValue) -> bool {
    match &data_type.element {
        Element::Float(format) => format.value(format.bits(value.bytes())).is_nan(),
        _ => false,
    }
}

/// Whether xarray finds the same elements by both values.
fn is_same(data_type: &DataType, one: &FillValue, other: &FillValue) -> bool {
    let are_nan = || is_nan(data_type, one) && is_nan(data_type, other);
    other.is_defined() && (one.bytes() == other.bytes() || are_nan())
}

/// The reason why programs read other missing values or attributes than from the store, if the document of `array`,
/// which has these `attributes`, is written in the version `target`; `None` if they read the same.
///
/// # Errors
/// When the array cannot be decoded, or the attributes are not a JSON object.
pub fn lost(
    array: &ArrayMetadata,
    attributes: Option<&[u8]>,
    (content, target): (ChunkContent, ZarrFormat),
) -> Result<Option<String>, FormatError> {
    let decoding = array.decoding.as_ref().map_err(Clone::clone)?;
    let data_type = render::stored_type(decoding);
    let stored = &decoding.fill_value;
    let text = attributes.unwrap_or(b"{}");
    let mut reasons = Vec::new();
    let mut lost = Vec::new();
    match (array.zarr_format, target) {
        (ZarrFormat::V3, ZarrFormat::V2) if is_opened_by_xarray(array) => {
            let complete = ChunkContent::Complete(content.shards());
            let wanted = MissingInV2::of(array, attributes, complete)?.fill_value;
            let shown = MissingInV2::of(array, attributes, content)?.fill_value;
            if wanted != shown && !(is_same(&data_type, &wanted, &shown) && wanted.is_defined()) {
                let value = shown.spell_v2(&data_type)?;
                reasons.push(format!("xarray takes the fill value {value} for missing"));
            }
            lost = masks_in_v2(array, &data_type, (text, content))?.lost;
        }
        (ZarrFormat::V2, ZarrFormat::V3)
            if super::write::dimension_names(array, attributes)?.is_some() =>
        {
            let masks = Masks::in_v3(&data_type, stored, text)?;
            if stored.is_defined() && !masks.say_any() {
                reasons.push(format!("xarray takes no {} for missing", array.data_type));
            }
            lost = masks.lost;
        }
        _ => {}
    }
    if !lost.is_empty() {
        let names: Vec<&str> = lost.into_iter().map(super::json::name_of).collect();
        reasons.push(format!(
            "xarray takes no {} for missing",
            names.join(" and ")
        ));
    }
    let place = if array.zarr_format == target {
        Place::Stored
    } else {
        Place::Foreign
    };
    let texts = masks::texts(&data_type, text, place)?;
    if !texts.is_empty() {
        let names = texts.join(", ");
        reasons.push(format!(
            "JSON has no numbers such as NaN and Infinity, so they are text in {names}"
        ));
    }
    Ok((!reasons.is_empty()).then(|| reasons.join(", and ")))
}

#[cfg(test)]
mod tests;
