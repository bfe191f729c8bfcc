//! Typed attributes.
//!
//! | JSON | becomes |
//! |---|---|
//! | string | text; with a NUL in it, its JSON |
//! | integer, or a list of them | integers |
//! | float, or a list with one | floats, if every integer of it is exact as one |
//! | `true`, `false`, object, other list | text: compact JSON |
//! | `null` | nothing |
//! | `_FillValue`, `missing_value`, `valid_*`, `flag_values`, `flag_masks` of an array | elements of the array's type; nothing if they cannot be |
//! | `scale_factor`, `add_offset` of an array | floats |
//! | names that the libraries keep for themselves | nothing |
//!
//! An array of dates or durations gets the attribute `units`. An array of numbers whose fill value marks
//! missing data gets it as `_FillValue`, whatever its own `_FillValue` is. Truth values never have one: xarray would replace such elements by NaN,
//! which it then takes for true.

use super::own;
use super::time;
use crate::dtype::Element;
use crate::metadata::{Attributes, JsonTree};
use crate::plain::{Array, Group, Omitted};

/// The global attribute that lists what the file omits, one object on each line.
pub(in crate::plain) const OMITTED: &str = "zarr_omitted";
const FILL_VALUE: &str = "_FillValue";
const MISSING_VALUE: &str = "missing_value";
/// Attributes whose type is that of their variable.
const OWN_TYPE: [&str; 7] = [
    FILL_VALUE,
    MISSING_VALUE,
    "valid_min",
    "valid_max",
    "valid_range",
    "flag_values",
    "flag_masks",
];
const PACKING: [&str; 2] = ["scale_factor", "add_offset"];

/// An attribute.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::plain) struct Attribute {
    /// Its stored name, which is unique in the object.
    pub(in crate::plain) name: String,
    /// Its value.
    pub(in crate::plain) value: CfValue,
}

/// The value of an attribute. A single number is a list of one.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::plain) enum CfValue {
    /// UTF-8 without NUL.
    Text(String),
    /// Integers.
    Integers(Vec<i64>),
    /// Integers that do not all fit [`CfValue::Integers`].
    Unsigned(Vec<u64>),
    /// Floating point numbers.
    Floats(Vec<f64>),
    /// Elements of the type of the variable: decoded (little-endian), one after the other.
    Own(Vec<u8>),
}

/// The attributes of the array, in their order, and then those that express its fill value and its
/// time units.
pub(in crate::plain) fn of_array(array: &Array) -> Vec<Attribute> {
    let element = &array.data_type.element;
    let mut list = typed(&array.attributes, |name, value| {
        if OWN_TYPE.contains(&name) {
            own_value(element, name, value)
        } else if PACKING.contains(&name) {
            floats(std::slice::from_ref(value)).or_else(|| generic(value))
        } else {
            generic(value)
        }
    });
    if let Element::Time(format) = element {
        if let Some(units) = time::units(format) {
            set_text(&mut list, "units", &units);
            if !format.is_duration {
                // The default calendar of CF is Julian before 1582; NumPy's is Gregorian
                // throughout.
                set_text(&mut list, "calendar", "proleptic_gregorian");
            }
        }
        set(&mut list, FILL_VALUE, CfValue::Own(own::not_a_time()));
    } else if let Some(fill) = array.missing_fill()
        && matches!(element, Element::Integer(_) | Element::Float(_))
    {
        set(&mut list, FILL_VALUE, CfValue::Own(fill.to_vec()));
    }
    list
}

/// Adds attributes for types that `NetCDF` lacks: `dtype` of truth values, which are bytes as in
/// xarray, and `_Encoding` of text, which is chars. Single bytes have only the `_Encoding` that is stored: xarray joins them
/// to longer ones in the store and in the file, and makes text of them where it finds that attribute.
pub(in crate::plain) fn say_element(list: &mut Vec<Attribute>, array: &Array) {
    match &array.data_type.element {
        Element::Bool => set_text(list, "dtype", "bool"),
        // The attributes of a byte string may name another encoding.
        Element::Bytes { len } if *len == 1 || array.attributes.text("_Encoding").is_some() => {}
        Element::Bytes { .. } | Element::Text { .. } => set_text(list, "_Encoding", "utf-8"),
        _ => {}
    }
}

/// The attributes of the group, in their order, and the list of what its file omits.
pub(in crate::plain) fn of_group(group: &Group, omitted: &[Omitted]) -> Vec<Attribute> {
    let mut list = typed(&group.attributes, |_, value| generic(value));
    if !omitted.is_empty() {
        let lines = omitted
            .iter()
            .map(|omitted| line(&format!("{}: {}", omitted.name, omitted.reason)));
        let lines: Vec<String> = lines.collect();
        set_text(&mut list, OMITTED, &lines.join("\n"));
    }
    list
}

/// Sets the attribute `name`, and replaces an existing one.
fn set(list: &mut Vec<Attribute>, name: &str, value: CfValue) {
    match list.iter_mut().find(|attribute| attribute.name == name) {
        Some(attribute) => attribute.value = value,
        None => list.push(Attribute {
            name: name.to_owned(),
            value,
        }),
    }
}

/// Sets the attribute `name` to `text`.
pub(in crate::plain) fn set_text(list: &mut Vec<Attribute>, name: &str, text: &str) {
    set(list, name, CfValue::Text(text.to_owned()));
}

/// Whether the attribute `name` is reserved by a library, or expressed by other parts of the file.
fn is_reserved(name: &str) -> bool {
    name == "_ARRAY_DIMENSIONS"
        || name == "_NCProperties"
        || name.starts_with("_Netcdf4")
        || name.starts_with("_NCZARR")
        || name.starts_with("_nczarr")
}

fn typed(
    attributes: &Attributes,
    value_of: impl Fn(&str, &JsonTree) -> Option<CfValue>,
) -> Vec<Attribute> {
    attributes
        .iter()
        .filter(|(name, _)| !is_reserved(name))
        .filter_map(|(name, value)| {
            Some(Attribute {
                name: name.to_owned(),
                value: value_of(name, value)?,
            })
        })
        .collect()
}

/// The items of a list; any other value is one item.
fn items(value: &JsonTree) -> &[JsonTree] {
    value
        .as_list()
        .unwrap_or_else(|| std::slice::from_ref(value))
}

fn own_value(element: &Element, name: &str, value: &JsonTree) -> Option<CfValue> {
    let values = items(value);
    let marks_missing = name == FILL_VALUE || name == MISSING_VALUE;
    if values.is_empty()
        || (name == FILL_VALUE && values.len() != 1)
        || (marks_missing && *element == Element::Bool)
    {
        return None;
    }
    let elements = values.iter().map(|item| own::element_of(element, item));
    Some(CfValue::Own(elements.collect::<Option<Vec<_>>>()?.concat()))
}

fn generic(value: &JsonTree) -> Option<CfValue> {
    Some(match value {
        JsonTree::Null => return None,
        JsonTree::Text(text) if !text.contains('\0') => CfValue::Text(text.clone()),
        JsonTree::Text(_) | JsonTree::Bool(_) | JsonTree::Object(_) => {
            CfValue::Text(value.to_string())
        }
        JsonTree::Integer(_) | JsonTree::Float(_) | JsonTree::List(_) => {
            numbers(items(value)).unwrap_or_else(|| CfValue::Text(value.to_string()))
        }
    })
}

fn numbers(values: &[JsonTree]) -> Option<CfValue> {
    let integers = |value: &JsonTree| match value {
        JsonTree::Integer(value) => Some(*value),
        _ => None,
    };
    if let Some(values) = values.iter().map(integers).collect::<Option<Vec<i128>>>() {
        let signed = values.iter().map(|&value| i64::try_from(value).ok());
        if let Some(signed) = signed.collect() {
            return Some(CfValue::Integers(signed));
        }
        let unsigned = values.iter().map(|&value| u64::try_from(value).ok());
        if let Some(unsigned) = unsigned.collect() {
            return Some(CfValue::Unsigned(unsigned));
        }
    }
    floats(values)
}

fn floats(values: &[JsonTree]) -> Option<CfValue> {
    let values = values.iter().map(|value| match *value {
        JsonTree::Float(value) => Some(value),
        JsonTree::Integer(value) => exact(value),
        _ => None,
    });
    Some(CfValue::Floats(values.collect::<Option<_>>()?))
}

/// `values` as 32-bit integers, if all of them fit.
pub(in crate::plain) fn narrow(values: &[i64]) -> Option<Vec<i32>> {
    let narrow = values.iter().map(|&value| i32::try_from(value).ok());
    narrow.collect()
}

/// The bytes of all `values`; `each` encodes one.
pub(in crate::plain) fn bytes_of<T: Copy, const N: usize>(
    values: &[T],
    each: fn(T) -> [u8; N],
) -> Vec<u8> {
    values.iter().flat_map(|&value| each(value)).collect()
}

/// `value` as a float, if that is exact.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "taken only if it comes back the same; the conversion back saturates"
)]
pub(in crate::plain) fn exact(value: i128) -> Option<f64> {
    let float = value as f64;
    (float as i128 == value && value != i128::MAX).then_some(float)
}

/// `text` with `?` for every control character, so that it stays on one line and contains no NUL.
fn line(text: &str) -> String {
    text.replace(char::is_control, "?")
}

#[cfg(test)]
mod tests;
