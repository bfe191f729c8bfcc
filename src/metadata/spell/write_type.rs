//! Writes data types as documents spell them: the inverse of
//! [`read_type_v2`](super::read_type_v2) and [`read_type_v3`](super::read_type_v3).
//!
//! | type | v2 | v3 |
//! |---|---|---|
//! | numbers | `"<i4"`, `"\|b1"` | `"int32"`, `"bool"` |
//! | times | `"<M8[25s]"` | `numpy.datetime64` of `unit` and `scale_factor` |
//! | bytes, text, raw | `"\|S3"`, `"<U5"`, `"\|V8"` | `null_terminated_bytes`, `fixed_length_utf32`, `raw_bytes` |
//! | records | `[["a", ">i2"], ["b", "\|u1", [3]]]` | `structured` or `struct`, without sub-arrays |
//! | variable | `"\|O"` | `"string"`, `"bytes"` |
//!
//! Where v3 has several names for a type, the one that zarr-python 3.1 opens is written
//! (`raw_bytes`, not `r64`). That version knows records only as `structured` and reads them as
//! little-endian, whatever the codec says. A big-endian record is therefore called `struct`, which
//! it refuses and which later readers read correctly.
//!
//! Sources: Zarr v2, section "Data type encoding"; zarr-extensions, `data-types`.

use std::collections::HashSet;
use std::fmt::Display;

use serde_json::{Value, json};

use crate::dtype::{ByteOrder, DataType, Element, Field, IntegerFormat, TimeFormat, Variable};
use crate::error::FormatError;

impl DataType {
    /// The JSON of a v2 `dtype` whose numbers are stored in `order`. Each field of a record has its
    /// own order.
    ///
    /// # Errors
    ///
    /// When v2 has no name for the type.
    pub(crate) fn spell_v2(&self, order: ByteOrder) -> Result<String, FormatError> {
        let value = typestr(&self.element, order).ok_or_else(|| self.unspellable("v2"))?;
        Ok(value.to_string())
    }

    /// The JSON of a v3 `data_type`.
    ///
    /// # Errors
    ///
    /// When v3 has no name for the type: sub-arrays in records, and objects other than strings.
    pub(crate) fn spell_v3(&self) -> Result<String, FormatError> {
        self.element_v3(&self.element)
    }

    fn element_v3(&self, element: &Element) -> Result<String, FormatError> {
        let sized = |name, bytes: u64| extension(name, &json!({"length_bytes": bytes}));
        let name = match element {
            Element::Bool => "bool".to_owned(),
            Element::Integer(format) => {
                let sign = if format.signed { "" } else { "u" };
                format!("{sign}int{}", format.bits)
            }
            Element::Float(format) => format.name().to_owned(),
            Element::Complex(format) => match format.name() {
                "float32" => "complex64".to_owned(),
                "float64" => "complex128".to_owned(),
                part => format!("complex_{part}"),
            },
            // These names are registered, and every zarr-python 3 reads them.
            Element::Variable(Variable::Text) => "string".to_owned(),
            Element::Variable(Variable::Bytes) => "bytes".to_owned(),
            Element::Variable(Variable::Object) => return Err(self.unspellable("v3")),
            Element::Time(time) => {
                let name = if time.is_duration {
                    "numpy.timedelta64"
                } else {
                    "numpy.datetime64"
                };
                let configuration = json!({"unit": time.unit, "scale_factor": time.scale});
                return Ok(extension(name, &configuration));
            }
            Element::Bytes { len } => return Ok(sized("null_terminated_bytes", *len)),
            Element::Raw { len } => return Ok(sized("raw_bytes", *len)),
            Element::Text { units } => {
                return Ok(sized("fixed_length_utf32", units.saturating_mul(4)));
            }
            Element::Record(fields) => return self.record_v3(element, fields),
        };
        Ok(format!("\"{name}\""))
    }

    fn record_v3(&self, element: &Element, fields: &[Field]) -> Result<String, FormatError> {
        let named = named_fields(fields);
        let is_big = is_big_record(element);
        let fields = named
            .into_iter()
            .zip(fields)
            .map(|(name, field)| {
                if !field.shape.is_empty() {
                    let name = format!("field {name} with a shape");
                    return Err(FormatError::inexpressible("data_type", name, "v3"));
                }
                let (name, data_type) = (Value::from(name), self.element_v3(&field.element)?);
                Ok(if is_big {
                    format!("{{\"name\": {name}, \"data_type\": {data_type}}}")
                } else {
                    format!("[{name}, {data_type}]")
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let name = if is_big { "struct" } else { "structured" };
        let configuration = format!("{{\"fields\": [{}]}}", fields.join(", "));
        Ok(extension(name, &configuration))
    }

    fn unspellable(&self, version: &'static str) -> FormatError {
        FormatError::inexpressible("data_type", self.name.as_str(), version)
    }
}

/// The v2 spelling of the type; `None` if there is none.
fn typestr(element: &Element, order: ByteOrder) -> Option<Value> {
    let character = match order {
        _ if element.unit() == 1 => '|',
        ByteOrder::Little => '<',
        ByteOrder::Big => '>',
    };
    let (kind, size) = match element {
        Element::Bool => ('b', 1),
        Element::Integer(format) => {
            let whole = IntegerFormat::whole(format.bytes, format.signed);
            let kind = if format.signed { 'i' } else { 'u' };
            (*format == whole).then_some((kind, format.bytes.try_into().ok()?))?
        }
        Element::Float(format) => (
            numpy_has(format.name()).then_some('f')?,
            element.size().ok()?,
        ),
        Element::Complex(format) => {
            let is_known = matches!(format.name(), "float32" | "float64");
            (is_known.then_some('c')?, element.size().ok()?)
        }
        Element::Time(time) => return Some(time_typestr(time, character).into()),
        Element::Bytes { len } => ('S', *len),
        Element::Raw { len } => ('V', *len),
        Element::Text { units } => ('U', *units),
        Element::Variable(_) => return Some("|O".into()),
        Element::Record(fields) => {
            return fields.iter().map(field_v2).collect();
        }
    };
    Some(format!("{character}{kind}{size}").into())
}

fn numpy_has(float: &str) -> bool {
    matches!(float, "float16" | "float32" | "float64")
}

fn time_typestr(time: &TimeFormat, character: char) -> String {
    let kind = if time.is_duration { 'm' } else { 'M' };
    let unit = match (time.unit.as_str(), time.scale) {
        ("generic", _) => String::new(),
        (unit, 1) => format!("[{unit}]"),
        (unit, scale) => format!("[{scale}{unit}]"),
    };
    format!("{character}{kind}8{unit}")
}

fn field_v2(field: &Field) -> Option<Value> {
    let element = typestr(&field.element, field.order)?;
    Some(if field.shape.is_empty() {
        json!([field.name, element])
    } else {
        json!([field.name, element, field.shape])
    })
}

/// The JSON of a name and its configuration. The name must need no escape.
fn extension(name: &str, configuration: &dyn Display) -> String {
    format!("{{\"name\": \"{name}\", \"configuration\": {configuration}}}")
}

/// Whether the record has big-endian fields, so that v3 must call it `struct`.
pub(super) fn is_big_record(element: &Element) -> bool {
    element.field_orders().contains(&ByteOrder::Big)
}

/// The names of the fields in v3. Padding, which has no name in v2, is called `__pad0`, `__pad1`, …
pub(super) fn named_fields(fields: &[Field]) -> Vec<String> {
    let taken: HashSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let mut free = (0_u64..)
        .map(|i| format!("__pad{i}"))
        .filter(|name| !taken.contains(name.as_str()));
    fields
        .iter()
        .map(|field| match field.name.as_str() {
            "" => free.next().unwrap_or_default(),
            name => name.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn v2_types_come_back() {
        for text in [
            r#""|b1""#,
            r#""|i1""#,
            r#""<i2""#,
            r#"">u8""#,
            r#""<f2""#,
            r#"">f8""#,
            r#""<c8""#,
            r#"">c16""#,
            r#""<M8[25s]""#,
            r#"">m8[ns]""#,
            r#""<M8""#,
            r#""|S3""#,
            r#"">U5""#,
            r#""|V8""#,
            r#"[["a",">i2"],["","|V3"],["m","<f4",[2,3]],["r",[["x",">U1"],["y","|u1"]]]]"#,
        ] {
            let (data_type, order) = DataType::parse_v2(&raw(text)).unwrap();
            assert_eq!(data_type.spell_v2(order).unwrap(), text);
        }
        assert_eq!(
            DataType::objects("vlen-utf8")
                .spell_v2(ByteOrder::Little)
                .unwrap(),
            r#""|O""#
        );
    }

    #[test]
    fn v3_types_come_back() {
        for text in [
            r#""bool""#,
            r#""int8""#,
            r#""uint64""#,
            r#""int4""#,
            r#""uint2""#,
            r#""float16""#,
            r#""bfloat16""#,
            r#""float8_e4m3fnuz""#,
            r#""complex64""#,
            r#""complex_float16""#,
            r#"{"configuration":{"scale_factor":10,"unit":"s"},"name":"numpy.datetime64"}"#,
            r#"{"configuration":{"scale_factor":1,"unit":"generic"},"name":"numpy.timedelta64"}"#,
            r#"{"configuration":{"length_bytes":3},"name":"null_terminated_bytes"}"#,
            r#"{"configuration":{"length_bytes":8},"name":"fixed_length_utf32"}"#,
            r#"{"configuration":{"length_bytes":2},"name":"raw_bytes"}"#,
            r#"{"configuration":{"fields":[["a","int16"],["b",{"configuration":{"fields":[["c","uint8"]]},"name":"structured"}]]},"name":"structured"}"#,
        ] {
            let data_type = DataType::parse_v3(&raw(text)).unwrap();
            let spelled: Value = serde_json::from_str(&data_type.spell_v3().unwrap()).unwrap();
            assert_eq!(spelled, serde_json::from_str::<Value>(text).unwrap());
            let (alias, name) = (r#""complex_float32""#, r#""complex64""#);
            assert_eq!(
                DataType::parse_v3(&raw(alias)).unwrap().spell_v3().unwrap(),
                name
            );
        }
    }

    #[test]
    fn big_endian_records_are_structs_and_padding_has_a_name() {
        let text = r#"[["__pad0",">i2"],["","|V3"],["","|V1"]]"#;
        let (data_type, _) = DataType::parse_v2(&raw(text)).unwrap();
        let spelled: Value = serde_json::from_str(&data_type.spell_v3().unwrap()).unwrap();
        let raw_bytes = |n| json!({"name": "raw_bytes", "configuration": {"length_bytes": n}});
        let fields = json!([
            {"name": "__pad0", "data_type": "int16"},
            {"name": "__pad1", "data_type": raw_bytes(3)},
            {"name": "__pad2", "data_type": raw_bytes(1)},
        ]);
        assert_eq!(
            spelled,
            json!({"name": "struct", "configuration": {"fields": fields}})
        );
        let little = data_type.with_field_order(ByteOrder::Little);
        assert_eq!(little.element.field_orders(), [ByteOrder::Little]);
        assert!(little.spell_v3().unwrap().contains(r#""structured""#));
    }

    #[test]
    fn what_has_no_name_is_refused_by_name() {
        for name in [
            "bfloat16",
            "float8_e5m2",
            "float4_e2m1fn",
            "int4",
            "uint2",
            "complex_float16",
        ] {
            let data_type = DataType::parse_v3(&raw(&format!("{name:?}"))).unwrap();
            let error = data_type
                .spell_v2(ByteOrder::Little)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(&format!("`{name}` cannot be expressed in v2")),
                "{error}"
            );
        }
        let (sub_array, _) = DataType::parse_v2(&raw(r#"[["m","<f4",[2]]]"#)).unwrap();
        let error = sub_array.spell_v3().unwrap_err().to_string();
        assert!(
            error.contains("`field m with a shape` cannot be expressed in v3"),
            "{error}"
        );
        let error = DataType::objects("json2")
            .spell_v3()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`|O of json2` cannot be expressed in v3"),
            "{error}"
        );
    }
}
