//! The attributes `_FillValue` and `missing_value` in a document of another version. xarray masks by both.
//!
//! `_FillValue` of v3 is one value of the type, and a strict document has no number for an infinity. But xarray takes
//! `missing_value` as it is in both versions, and `_FillValue` of v3 and the fill value of v2 may be infinite:
//!
//! ```text
//! v2   "fill_value": null, "_FillValue": [1.0, 2.0]       v3   "missing_value": [1.0, 2.0]
//! v2   "fill_value": null, "missing_value": -Infinity     v3   "_FillValue": "AAAAAAAA8P8="
//! v2   "fill_value": -9.0, "missing_value": -Infinity     v3   "_FillValue": "AAAAAAAA8P8=", "missing_value": -9.0
//! ```
//!
//! A NaN masks nothing, so it is left out. If it were written as text, it would be one more value that masks, and xarray
//! would make floats of whole numbers.
//!
//! Source: xarray 2026.9, `coding/variables.py`: `_check_fill_values`, `CFMaskCoder`.

use serde_json::value::RawValue;

use super::{FILL_VALUE, PACKING, float_text, spell_v3};
use crate::dtype::{DataType, Element, FillValue, FloatFormat, Variable};
use crate::error::FormatError;
use crate::metadata::carry::with_member;
use crate::metadata::document::{JsonDocument, quoted};
use crate::metadata::json::{self, Json};

/// The attribute that has more missing values.
pub(in crate::metadata) const MISSING_VALUE: &str = "missing_value";

/// The attributes as JSON, and a list of masks that they cannot express.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Masks {
    /// The attribute `_FillValue`.
    fill_value: Option<String>,
    /// The attribute `missing_value`.
    missing_value: Option<String>,
    /// The infinities that no attribute says.
    pub(super) lost: Vec<f64>,
}

/// One value of an attribute.
struct Item {
    text: String,
    number: Option<f64>,
}

impl Item {
    fn is_finite(&self) -> bool {
        self.number.is_none_or(f64::is_finite)
    }
}

/// The values of an attribute, and whether they are in a list.
#[derive(Default)]
struct Items {
    items: Vec<Item>,
    is_list: bool,
}

impl Items {
    /// The values of the attribute `missing_value` among those of `document`.
    fn missing_in(document: &JsonDocument<'_>) -> Result<Items, FormatError> {
        let root = document.root()?;
        let value = root.get(MISSING_VALUE);
        Ok(value.map_or_else(Items::default, |value| Items::of(document, value)))
    }

    fn of(document: &JsonDocument<'_>, value: &RawValue) -> Items {
        let item = |value: &RawValue| Item {
            text: String::from_utf8_lossy(document.text_of(value)).into_owned(),
            number: number(value),
        };
        match Json::of(value) {
            Ok(Json::Array(values)) => Items {
                items: values.into_iter().map(item).collect(),
                is_list: true,
            },
            _ => Items {
                items: vec![item(value)],
                is_list: false,
            },
        }
    }

    fn of_text(text: String) -> Items {
        Items {
            items: vec![Item { text, number: None }],
            is_list: false,
        }
    }

    /// These values and those of `more`. If `are_numbers`, the texts of `more` are left out, because readers would otherwise
    /// take all values for text.
    fn and(mut self, more: Items, are_numbers: bool) -> Items {
        let is_first = self.items.is_empty();
        let is_taken = |item: &Item| is_first || !are_numbers || item.number.is_some();
        self.items.extend(more.items.into_iter().filter(is_taken));
        self.is_list |= more.is_list;
        self
    }

    fn is_finite(&self) -> bool {
        self.items.iter().all(Item::is_finite)
    }

    /// Removes values that are not finite: the infinities, and whether there was a NaN.
    fn take_non_finite(&mut self) -> (Vec<f64>, bool) {
        let numbers = self.items.iter().filter_map(|item| item.number);
        let has_nan = numbers.clone().any(f64::is_nan);
        let mut infinite: Vec<f64> = numbers.filter(|number| number.is_infinite()).collect();
        infinite.dedup();
        self.items.retain(Item::is_finite);
        (infinite, has_nan)
    }

    fn text(&self) -> Option<String> {
        match self.items.as_slice() {
            [] if !self.is_list => None,
            [item] if !self.is_list => Some(item.text.clone()),
            items => {
                let texts: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
                Some(format!("[{}]", texts.join(", ")))
            }
        }
    }
}

/// The number `value`, also where JSON has none for it.
fn number(value: &RawValue) -> Option<f64> {
    match Json::of(value).ok()? {
        Json::Number(text) => text.parse().ok(),
        Json::NonFinite(value) => Some(value),
        _ => None,
    }
}

/// The meaning in v3 of the attribute `_FillValue` of v2.
enum Said<'v> {
    /// It masks nothing.
    Nothing,
    /// `_FillValue`, as xarray spells it.
    Value(String),
    /// A value of the attribute `missing_value`, which xarray takes as it is.
    AsItIs(&'v RawValue),
}

impl<'v> Said<'v> {
    fn of(data_type: &DataType, value: &'v RawValue) -> Said<'v> {
        let one = match Json::of(value) {
            Ok(Json::Array(items)) => items.first().copied().filter(|_| items.len() == 1),
            _ => None,
        };
        let one = one.unwrap_or(value);
        let Ok(json) = Json::of(one) else {
            return Said::AsItIs(value);
        };
        let whole = json.integer();
        match (&data_type.element, json, number(one)) {
            (_, Json::Null, _) => Said::Nothing,
            (Element::Float(_), _, Some(number)) => Said::Value(float_text(number)),
            (Element::Bool | Element::Integer(_), _, Some(number)) if number.is_nan() => {
                Said::Nothing
            }
            (Element::Bool | Element::Integer(_), Json::Bool(_), _) => {
                Said::Value(one.get().to_owned())
            }
            (Element::Integer(_), _, _) if whole.is_some() => Said::Value(one.get().to_owned()),
            (Element::Bool, _, _) if matches!(whole, Some(0 | 1)) => {
                Said::Value(one.get().to_owned())
            }
            _ => Said::AsItIs(value),
        }
    }
}

impl Masks {
    /// The masks of an array of v2 with the fill value `stored` and these `attributes`, in v3.
    ///
    /// # Errors
    /// When the attributes are not a JSON object.
    pub(super) fn in_v3(
        data_type: &DataType,
        stored: &FillValue,
        attributes: &[u8],
    ) -> Result<Masks, FormatError> {
        let document = JsonDocument::parse(attributes)?;
        let root = document.root()?;
        let mut more = Items::missing_in(&document)?;
        let mut masks = Masks::default();
        let mut also = Items::default();
        if stored.is_defined() {
            masks.fill_value = spell_v3(data_type, stored);
            if is_text(data_type) && stored.is_undisputed() {
                also = stored.spell_v2(data_type).map_or(also, Items::of_text);
            }
        } else {
            match root.get(FILL_VALUE).map(|value| Said::of(data_type, value)) {
                None | Some(Said::Nothing) => {}
                Some(Said::Value(text)) => masks.fill_value = Some(text),
                Some(Said::AsItIs(value)) => also = Items::of(&document, value),
            }
        }
        more = more.and(also, !is_text(data_type));
        match data_type.element {
            _ if more.is_finite() => masks.missing_value = more.text(),
            Element::Float(_) => masks.place(more),
            _ => masks.missing_value = without_non_finite(data_type, more),
        }
        Ok(masks)
    }

    /// Says the values `more` of floats in v3, of which some are not finite. `_FillValue` says one of them.
    fn place(&mut self, mut more: Items) {
        let (infinite, has_nan) = more.take_non_finite();
        let mut said = self.fill_value.as_deref().and_then(|text| {
            let text = text.strip_prefix('"')?.strip_suffix('"')?;
            super::float_of(text)
        });
        for value in infinite {
            match said {
                Some(one) if one.is_infinite() => {
                    if one.to_bits() != value.to_bits() {
                        self.lost.push(value);
                    }
                    continue;
                }
                Some(one) if one.is_finite() => more.items.push(Item {
                    text: serde_json::Value::from(one).to_string(),
                    number: Some(one),
                }),
                _ => {}
            }
            said = Some(value);
        }
        let said = said.or(has_nan.then_some(f64::NAN));
        self.fill_value = said.map(float_text);
        more.is_list &= !more.items.is_empty();
        more.is_list |= more.items.len() > 1;
        self.missing_value = more.text();
    }

    /// The masks of an array of v3 in v2, where its fill value is `shown` and `fill_value` is the attribute.
    ///
    /// # Errors
    /// When the attributes are not a JSON object.
    pub(super) fn in_v2(
        data_type: &DataType,
        shown: &FillValue,
        (attributes, fill_value): (&[u8], Option<String>),
    ) -> Result<Masks, FormatError> {
        let document = JsonDocument::parse(attributes)?;
        let mut more = Items::missing_in(&document)?;
        let mut masks = Masks {
            fill_value,
            ..Masks::default()
        };
        match data_type.element {
            _ if more.is_finite() => masks.missing_value = more.text(),
            Element::Float(format) if shown.is_defined() => {
                let said = value_of(format, shown);
                let (mut infinite, _) = more.take_non_finite();
                infinite.retain(|value| value.to_bits() != said.to_bits());
                masks.lost = infinite;
                more.is_list &= !more.items.is_empty();
                masks.missing_value = more.text();
            }
            _ => masks.missing_value = without_non_finite(data_type, more),
        }
        Ok(masks)
    }

    /// Whether an attribute says something.
    pub(super) fn say_any(&self) -> bool {
        self.fill_value.is_some() || self.missing_value.is_some()
    }

    /// The `attributes` with these masks in place of the earlier ones.
    ///
    /// # Errors
    /// When the attributes are not a JSON object.
    pub(super) fn put(self, attributes: Vec<u8>) -> Result<Vec<u8>, FormatError> {
        let mut attributes = attributes;
        for (name, value) in [
            (FILL_VALUE, self.fill_value),
            (MISSING_VALUE, self.missing_value),
        ] {
            attributes = with_member(&attributes, name, value.as_deref().map(str::as_bytes))?;
        }
        Ok(attributes)
    }
}

/// The first infinity of the attribute `missing_value`, or its NaN; `None` if all its numbers are finite.
pub(super) fn non_finite(missing_value: Option<&RawValue>) -> Option<f64> {
    let value = missing_value?;
    let numbers: Vec<f64> = match Json::of(value).ok()? {
        Json::Array(items) => items.into_iter().filter_map(number).collect(),
        _ => number(value).into_iter().collect(),
    };
    let infinite = numbers.iter().find(|number| number.is_infinite());
    infinite
        .or(numbers.iter().find(|number| number.is_nan()))
        .copied()
}

/// The values of elements that are not finite floats, without numbers that equal no element. An infinity makes floats of
/// whole numbers, as any text does.
fn without_non_finite(data_type: &DataType, mut items: Items) -> Option<String> {
    if !matches!(data_type.element, Element::Bool | Element::Integer(_)) {
        return items.text();
    }
    let (infinite, _) = items.take_non_finite();
    items.is_list &= !items.items.is_empty();
    let name = infinite.first().map(|value| quoted(json::name_of(*value)));
    items.text().or(name)
}

fn value_of(format: FloatFormat, value: &FillValue) -> f64 {
    format.value(format.bits(value.bytes()))
}

/// Whether elements are characters, which xarray compares with those of an attribute.
fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type.element,
        Element::Text { .. } | Element::Variable(Variable::Text)
    )
}

/// Which attributes of an array have numbers that a strict document says as texts.
///
/// # Errors
/// When the attributes are not a JSON object.
pub(super) fn texts(
    data_type: &DataType,
    attributes: &[u8],
    place: Place,
) -> Result<Vec<String>, FormatError> {
    let document = JsonDocument::parse(attributes)?;
    let root = document.root()?;
    let is_packed = PACKING.iter().any(|name| root.get(name).is_some());
    let is_float = matches!(data_type.element, Element::Float(_)) && !is_packed;
    let is_text = |name: &str, value: &RawValue| {
        let items = Items::of(&document, value);
        let masks = [FILL_VALUE, MISSING_VALUE].contains(&name);
        let has_infinity = || {
            items
                .items
                .iter()
                .any(|item| item.number.is_some_and(f64::is_infinite))
        };
        // A NaN alone masks no float, and neither does the text, which decides the type of packed numbers.
        let is_nothing = || is_float && !items.is_list && !has_infinity();
        !items.is_finite() && (!masks || place == Place::Stored && !is_nothing())
    };
    let found = root.iter().filter(|(name, value)| is_text(name, value));
    Ok(found.map(|(name, _)| name.to_owned()).collect())
}

/// Whether a document is shown in its own version, or in another one, where the masks are said in other ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Its own version.
    Stored,
    /// Another version.
    Foreign,
}
