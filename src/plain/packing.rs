//! CF attributes about values: which value marks missing data, and the scale and offset of packed
//! data.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Array;
use crate::dtype::{DataType, Element, element_text};
use crate::metadata::{Attributes, JsonTree};

/// The value that marks missing data, in the type of the array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MissingValue {
    /// For integer types; within the range of the type.
    Integer(i128),
    /// For floating point types.
    Float(f64),
}

/// The value that marks missing data, as it is stored: `_FillValue`, `missing_value`, or a fill
/// value that means missing data. Beside such a fill value, another `_FillValue` does not count. The
/// fill value comes last, because it is often zero where the data have another mark, too. A NaN needs
/// no mark, so any other value goes before it.
pub(super) fn missing(array: &Array) -> Option<MissingValue> {
    let fill = array.missing_fill().and_then(|_| fill_value(array));
    let attribute = |name| value_of(array, array.attributes.get(name)?);
    let own = attribute("_FillValue").filter(|own| fill.is_none_or(|fill| fill == *own));
    let marks = [own, attribute("missing_value"), fill];
    let mut marks = marks.into_iter().flatten();
    let is_nan = |mark: &MissingValue| matches!(mark, MissingValue::Float(value) if value.is_nan());
    marks
        .clone()
        .find(|mark| !is_nan(mark))
        .or_else(|| marks.next())
}

/// The value of an attribute, if it is one that an element of the array can have. h5py and kerchunk write a number as a
/// list of one.
pub(super) fn value_of(array: &Array, attribute: &JsonTree) -> Option<MissingValue> {
    let attribute = match attribute.as_list() {
        Some([one]) => one,
        _ => attribute,
    };
    match &array.data_type.element {
        Element::Integer(format) => {
            let value = match attribute {
                JsonTree::Integer(value) => Some(*value),
                JsonTree::Float(value) => whole(*value),
                _ => None,
            };
            value
                .filter(|&value| format.holds(value))
                .map(MissingValue::Integer)
        }
        Element::Float(_) => {
            let value = match attribute {
                JsonTree::Text(text) => float(text),
                value => value.as_number(),
            };
            value.map(MissingValue::Float)
        }
        _ => None,
    }
}

/// The fill value of an array of integers or floating point numbers, if it is defined.
pub(super) fn fill_value(array: &Array) -> Option<MissingValue> {
    array.fill_value.is_defined().then_some(())?;
    let bytes = array.fill_value.bytes();
    match &array.data_type.element {
        Element::Integer(_) => {
            let value = element_text(&array.data_type, bytes).parse().ok();
            value.map(MissingValue::Integer)
        }
        Element::Float(format) => Some(MissingValue::Float(format.value(format.bits(bytes)))),
        _ => None,
    }
}

fn whole(value: f64) -> Option<i128> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole, and small enough"
    )]
    let integer = value as i128;
    (value.fract() == 0.0 && value.abs() < 1e15).then_some(integer)
}

/// Parses the names of numbers that JSON lacks, or eight bytes in base64, which is how xarray
/// writes floats in Zarr v3.
fn float(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => {
            let bytes = STANDARD.decode(text).ok()?;
            Some(f64::from_le_bytes(bytes.try_into().ok()?))
        }
    }
}

/// Whether `_Unsigned` says that the elements stand for numbers of the other sign: signed integers for unsigned ones, as in
/// files of NetCDF-3, or unsigned integers for signed ones.
pub(super) fn has_other_sign(data_type: &DataType, attributes: &Attributes) -> bool {
    let Element::Integer(format) = &data_type.element else {
        return false;
    };
    let other = if format.signed { "true" } else { "false" };
    attributes.text("_Unsigned") == Some(other)
}

/// `scale_factor` and `add_offset`, if at least one of them is present. They do not apply to elements that stand for numbers
/// of the other sign.
pub(super) fn scale_and_offset(array: &Array) -> Option<(f64, f64)> {
    if has_other_sign(&array.data_type, &array.attributes) {
        return None;
    }
    let number = |name| {
        let number = array.attributes.number(name);
        number.filter(|number| number.is_finite())
    };
    match (number("scale_factor"), number("add_offset")) {
        (None, None) => None,
        (scale, offset) => Some((scale.unwrap_or(1.0), offset.unwrap_or(0.0))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{array, attributes};
    use super::*;
    use crate::dtype::FillValue;

    fn of(typestr: &str, json: &str) -> Option<MissingValue> {
        let mut array = array("t", &format!("\"{typestr}\""), &[1]);
        array.attributes = attributes(json);
        missing(&array)
    }

    #[test]
    fn a_missing_value_is_of_the_type() {
        let integer = |value| Some(MissingValue::Integer(value));
        for (typestr, json, value) in [
            ("<i2", r#"{"_FillValue": -32768}"#, integer(-32768)),
            ("<i2", r#"{"missing_value": -1.0}"#, integer(-1)),
            ("<u2", r#"{"_FillValue": -1}"#, None),
            ("<i2", r#"{"_FillValue": 1.5}"#, None),
            ("<i2", r#"{"_FillValue": "x"}"#, None),
            ("<i2", r#"{"_FillValue": [-9999]}"#, integer(-9999)),
            ("<i2", r#"{"_FillValue": [-9999, 1]}"#, None),
            ("<i2", r#"{"_FillValue": [[-9999]]}"#, None),
            (
                "<f4",
                r#"{"missing_value": ["-Infinity"]}"#,
                Some(MissingValue::Float(f64::NEG_INFINITY)),
            ),
            (
                "<u8",
                r#"{"_FillValue": 18446744073709551615}"#,
                integer((1 << 64) - 1),
            ),
            (
                "<f4",
                r#"{"_FillValue": 1e20}"#,
                Some(MissingValue::Float(1e20)),
            ),
            (
                "<f4",
                r#"{"_FillValue": "AAAAAAAA8D8="}"#,
                Some(MissingValue::Float(1.0)),
            ),
            (
                "<f4",
                r#"{"_FillValue": "-Infinity"}"#,
                Some(MissingValue::Float(f64::NEG_INFINITY)),
            ),
            ("|S1", r#"{"_FillValue": 0}"#, None),
            ("<i2", "{}", None),
        ] {
            assert_eq!(of(typestr, json), value, "{typestr} {json}");
        }
        let mut array = array("t", r#""<i2""#, &[1]);
        array.fill_value = FillValue::new(vec![7, 0], true);
        assert_eq!(missing(&array), None);
        array.fill_is_missing = true;
        for (json, value) in [
            ("{}", 7),
            (r#"{"_FillValue": -1}"#, 7),
            (r#"{"_FillValue": null}"#, 7),
            (r#"{"_FillValue": 7, "missing_value": 5}"#, 7),
            (r#"{"_FillValue": -1, "missing_value": 5}"#, 5),
            (r#"{"_FillValue": "none", "missing_value": 5}"#, 5),
            (r#"{"missing_value": "none"}"#, 7),
        ] {
            array.attributes = attributes(json);
            assert_eq!(missing(&array), integer(value), "{json}");
        }
    }

    #[test]
    fn a_nan_marks_nothing_beside_a_number() {
        let json = r#"{"_FillValue": "NaN", "missing_value": -9999}"#;
        assert_eq!(of("<f4", json), Some(MissingValue::Float(-9999.0)));
        let alone = of("<f4", r#"{"_FillValue": "NaN", "missing_value": "none"}"#);
        let is_nan = |mark| matches!(mark, MissingValue::Float(value) if value.is_nan());
        assert!(alone.is_some_and(is_nan));
    }

    #[test]
    fn elements_of_the_other_sign_have_no_scale() {
        for (typestr, is_unsigned, has_scale) in [
            ("<i2", "true", false),
            ("<i2", "false", true),
            ("<u2", "true", true),
            ("<u2", "false", false),
            ("<f4", "true", true),
        ] {
            let mut array = array("t", &format!("\"{typestr}\""), &[1]);
            let json = format!(r#"{{"_Unsigned": "{is_unsigned}", "scale_factor": 0.5}}"#);
            array.attributes = attributes(&json);
            assert_eq!(
                scale_and_offset(&array).is_some(),
                has_scale,
                "{typestr} {is_unsigned}"
            );
        }
    }

    #[test]
    fn either_of_scale_and_offset_will_do() {
        let mut array = array("t", r#""<i2""#, &[1]);
        assert_eq!(scale_and_offset(&array), None);
        array.attributes = attributes(r#"{"add_offset": 3}"#);
        assert_eq!(scale_and_offset(&array), Some((1.0, 3.0)));
    }
}
