//! Reads data types of Zarr v2: a typestring of `NumPy`, or a list of fields.
//!
//! ```text
//! "<i4"  "|b1"  ">M8[25s]"  "<U5"  "|S3"  "|V8"
//! [["id", "<i4"], [["title", "v"], ">f8", [2, 3]], ["", "|V4"]]
//! ```
//!
//! Source: Zarr v2, section "Data type encoding".

use serde_json::value::RawValue;

use crate::dtype::{ByteOrder, DataType, Element, Field, MAX_NESTING, typestr};
use crate::error::FormatError;
use crate::metadata::json::{self, Json};

impl DataType {
    /// The data type that `value`, the JSON of a v2 `dtype` member, spells, and the order of its
    /// stored bytes (little-endian where it spells none).
    ///
    /// # Errors
    ///
    /// When it is not a data type, or one that this build does not know.
    pub fn parse_v2(value: &RawValue) -> Result<(DataType, ByteOrder), FormatError> {
        let (element, order) = parse(value)?;
        let name = match Json::of(value)? {
            Json::String(name) => name,
            _ => "structured".to_owned(),
        };
        Ok((DataType::of(name, element)?, order))
    }
}

/// The element and the byte order of a `dtype` member.
pub(crate) fn parse(value: &RawValue) -> Result<(Element, ByteOrder), FormatError> {
    let (element, order) = parse_nested(value, 0)?;
    if element.size()? == 0 {
        return Err(json::mismatch(value, "a type of at least one byte"));
    }
    Ok((element, order))
}

fn parse_nested(value: &RawValue, depth: usize) -> Result<(Element, ByteOrder), FormatError> {
    match Json::of(value)? {
        Json::String(name) => typestr::parse(&name),
        Json::Array(fields) => {
            if depth == MAX_NESTING {
                let problem = format!("structured types nest more than {MAX_NESTING} levels deep");
                return Err(FormatError::document("", problem));
            }
            if fields.is_empty() {
                let problem = "a structured type without fields";
                return Err(FormatError::document("", problem));
            }
            let fields = json::each(fields, |text| field(text, depth))?;
            Ok((Element::Record(fields), ByteOrder::Little))
        }
        _ => Err(json::mismatch(value, "a typestring or a list of fields")),
    }
}

/// A field `[name, type]` or `[name, type, shape]`, whose name may be `[title, name]`.
fn field(text: &RawValue, depth: usize) -> Result<Field, FormatError> {
    const EXPECTED: &str = "a field: [name, type] or [name, type, shape]";
    let parts = json::array(text, EXPECTED)?;
    let (name, element, shape) = match parts.as_slice() {
        [name, element] => (name, element, None),
        [name, element, shape] => (name, element, Some(shape)),
        _ => return Err(json::mismatch(text, EXPECTED)),
    };
    let name = match Json::of(name)? {
        Json::String(name) => name,
        Json::Array(titled) => match titled.as_slice() {
            [_title, name] => json::string(name, "a field name")?,
            _ => return Err(json::mismatch(name, "a field name or [title, name]")),
        },
        _ => return Err(json::mismatch(name, "a field name or [title, name]")),
    };
    let (element, order) = parse_nested(element, depth + 1).map_err(|error| error.within("[1]"))?;
    let shape = match shape {
        Some(shape) => sub_array(shape).map_err(|error| error.within("[2]"))?,
        None => Vec::new(),
    };
    let field = Field {
        name,
        element,
        shape,
        order,
    };
    match (field.size()?, parts.get(2)) {
        (None, Some(shape)) => {
            let expected = "a shape whose size fits 64 bits";
            Err(json::mismatch(shape, expected).within("[2]"))
        }
        _ => Ok(field),
    }
}

/// The shape of a sub-array, a list of lengths or one length.
fn sub_array(shape: &RawValue) -> Result<Vec<u64>, FormatError> {
    let lengths = match Json::of(shape)? {
        Json::Array(lengths) => lengths,
        _ => vec![shape],
    };
    lengths.into_iter().map(json::length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::ItemLayout::{self, Structured};

    fn parse(text: &str) -> Result<(u64, ItemLayout, ByteOrder), FormatError> {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        DataType::parse_v2(&raw).map(|(dtype, order)| (dtype.item_size, dtype.layout, order))
    }

    #[test]
    fn fields_are_packed_with_sub_arrays_titles_and_padding() {
        for (text, size, multi_byte) in [
            (r#"[["id","<i4"],["v",">f8"],["name","|S5"]]"#, 17, true),
            (r#"[["a","|i1"],["b","|V3"],["c","|S2"]]"#, 6, false),
            (r#"[["m","<i2",[2,3]],[["Title","x"],"|u1",2]]"#, 14, true),
            (
                r#"[["a","|u1"],["","|V3"],["p",[["x","<U2"],["y","|b1"]]],["","|V3"]]"#,
                16,
                true,
            ),
        ] {
            let expected = (size, Structured { multi_byte }, ByteOrder::Little);
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_type_is_refused_by_name() {
        for (text, message) in [
            (r#""<q9""#, "unsupported data type `<q9`"),
            (r#""|O""#, "unsupported data type `|O`"),
            (r#""<f16""#, "unsupported data type `<f16`"),
            (
                r#""<M8[fortnight]""#,
                "unsupported data type `<M8[fortnight]`",
            ),
            (
                r#""float8_e4m3fnz""#,
                "unsupported data type `float8_e4m3fnz`",
            ),
            (r#""|S0""#, "at least one byte"),
            (r#""<U9999999999999999999""#, "the size of one element"),
            (r#""|S99999999999999999999""#, "unsupported data type"),
            (r#"[["a","|O"]]"#, "[0][1]: unsupported data type `|O`"),
            (r#"[["a"]]"#, "[0]: found [\"a\"], expected a field"),
            ("[]", "without fields"),
            ("7", "expected a typestring"),
            (r#"[["a","|V8",[4294967296,4294967296]]]"#, "[0][2]: found"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_not_an_overflow() {
        let text = format!(
            "{}\"<i4\"{}",
            "[[\"a\",".repeat(50_000),
            "]]".repeat(50_000)
        );
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains("levels deep"), "{error}");
    }
}
