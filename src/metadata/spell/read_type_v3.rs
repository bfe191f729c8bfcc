//! Reads data types of Zarr v3: core names, and the registered and unregistered extensions that
//! writers use.
//!
//! ```text
//! "int32"   "r24"   {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
//! {"name": "struct", "configuration": {"fields": [{"name": "id", "data_type": "int32"}]}}
//! {"name": "structured", "configuration": {"fields": [["id", "int32"]]}}
//! ```
//!
//! Sources: Zarr v3 core, section "Data types"; zarr-extensions, `data-types`; zarr-python 3.1
//! for `null_terminated_bytes` and `raw_bytes`.

use serde_json::value::RawValue;

use crate::dtype::{
    ByteOrder, DataType, Element, Field, MAX_NESTING, TimeFormat, Variable, v3_name,
};
use crate::error::FormatError;
use crate::metadata::codecs::members::check_known;
use crate::metadata::json::{self, Extension, Json, Members};

impl DataType {
    /// The data type that `value`, the JSON of a v3 `data_type` member, names.
    ///
    /// # Errors
    ///
    /// When it is not a data type, or one that this build does not know.
    pub fn parse_v3(value: &RawValue) -> Result<DataType, FormatError> {
        let extension = Extension::of(value, EXPECTED_TYPE)?;
        // Types of variable length are known at the top level only: a record cannot have them as
        // fields.
        let element = match extension.name.as_str() {
            "string" => Element::Variable(Variable::Text),
            // The first name is registered; zarr-python and zarrs have used the others.
            "bytes" | "variable_length_bytes" | "binary" => Element::Variable(Variable::Bytes),
            _ => of_fixed_size(&extension, 0)?,
        };
        check_parameters(&extension)?;
        DataType::of(extension.name, element)
    }
}

const EXPECTED_TYPE: &str = "a data type: a name, or an object of name and configuration";

/// Refuses parameters that a known type does not have: they may change what its elements are.
fn check_parameters(extension: &Extension<'_>) -> Result<(), FormatError> {
    let known: &[&str] = match extension.name.as_str() {
        "numpy.datetime64" | "numpy.timedelta64" => &["unit", "scale_factor"],
        "null_terminated_bytes" | "raw_bytes" | "fixed_length_utf32" => &["length_bytes"],
        "struct" | "structured" => &["fields"],
        _ => &[],
    };
    check_known(&extension.configuration, known).map_err(|error| error.within("configuration"))
}

fn of_fixed_size(extension: &Extension<'_>, depth: usize) -> Result<Element, FormatError> {
    let (name, configuration) = (extension.name.as_str(), &extension.configuration);
    if let Some(element) = v3_name::without_parameters(name) {
        return Ok(element);
    }
    let within = |error: FormatError| error.within("configuration");
    let parameter = |least| length_bytes(configuration, least).map_err(within);
    match name {
        "numpy.datetime64" | "numpy.timedelta64" => {
            let (unit, scale) = time(configuration).map_err(within)?;
            Ok(Element::Time(TimeFormat {
                is_duration: name == "numpy.timedelta64",
                unit,
                scale,
            }))
        }
        "null_terminated_bytes" => Ok(Element::Bytes { len: parameter(1)? }),
        "raw_bytes" => Ok(Element::Raw { len: parameter(1)? }),
        "fixed_length_utf32" => Ok(Element::Text {
            units: parameter(4)? / 4,
        }),
        "struct" | "structured" => {
            if depth == MAX_NESTING {
                let problem = format!("structured types nest more than {MAX_NESTING} levels deep");
                return Err(FormatError::document("", problem));
            }
            fields(configuration, depth).map_err(within)
        }
        _ => Err(FormatError::unsupported("", "data type", name)),
    }
}

/// The members `unit` and `scale_factor`.
fn time(configuration: &Members<'_>) -> Result<(String, u32), FormatError> {
    let name = configuration.read("unit", |unit| json::string(unit, "a time unit"))?;
    let Some(name) = v3_name::time_unit(&name) else {
        return Err(FormatError::unsupported("unit", "time unit", name));
    };
    let scale = |raw| match json::length(raw).map(u32::try_from) {
        Ok(Ok(factor @ 1..=0x7fff_ffff)) => Ok(factor),
        _ => Err(json::mismatch(raw, "a whole number from 1 to 2^31 - 1")),
    };
    Ok((name.to_owned(), configuration.read("scale_factor", scale)?))
}

/// The member `length_bytes`, a multiple of `unit` above zero.
fn length_bytes(configuration: &Members<'_>, unit: u64) -> Result<u64, FormatError> {
    configuration.read("length_bytes", |value| match json::length(value)? {
        length if length > 0 && length.is_multiple_of(unit) => Ok(length),
        _ => Err(json::mismatch(
            value,
            &format!("a multiple of {unit} above zero"),
        )),
    })
}

fn fields(configuration: &Members<'_>, depth: usize) -> Result<Element, FormatError> {
    let list = |list| json::list(list, "a list of fields", |text| field(text, depth));
    let fields: Vec<Field> = configuration.read("fields", list)?;
    if fields.is_empty() {
        let problem = "a structured type without fields";
        return Err(FormatError::document("fields", problem));
    }
    let mut names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        if let [one, next] = pair
            && one == next
        {
            let problem = format!("two fields are named `{one}`");
            return Err(FormatError::document("fields", problem));
        }
    }
    Ok(Element::Record(fields.into()))
}

/// A field of `struct`, `{"name": .., "data_type": ..}`, or of `structured`, `[name, type]`.
fn field(text: &RawValue, depth: usize) -> Result<Field, FormatError> {
    const EXPECTED: &str = "a field: an object of name and data_type, or [name, type]";
    let (name, element) = match Json::of(text)? {
        Json::Array(parts) => match parts.as_slice() {
            [name, element] => (*name, *element),
            _ => return Err(json::mismatch(text, EXPECTED)),
        },
        Json::Object(members) => (members.require("name")?, members.require("data_type")?),
        _ => return Err(json::mismatch(text, EXPECTED)),
    };
    let name_text = json::string(name, "a field name")?;
    if name_text.is_empty() {
        return Err(json::mismatch(name, "a field name"));
    }
    Ok(Field {
        element: Extension::of(element, EXPECTED_TYPE)
            .and_then(|element| {
                check_parameters(&element)?;
                of_fixed_size(&element, depth + 1)
            })
            .map_err(|error| error.within(&format!("`{name_text}`")))?,
        name: name_text,
        shape: Vec::new(),
        order: ByteOrder::Little,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::ItemLayout::{self, Numbers, Structured};

    fn parse(text: &str) -> Result<(u64, ItemLayout), FormatError> {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        DataType::parse_v3(&raw).map(|dtype| (dtype.item_size, dtype.layout))
    }

    #[test]
    fn names_say_size_and_unit() {
        for (name, size, unit) in [
            ("bool", 1, 1),
            ("int8", 1, 1),
            ("uint64", 8, 8),
            ("float16", 2, 2),
            ("bfloat16", 2, 2),
            ("float8_e5m2fnuz", 1, 1),
            ("float6_e2m3fn", 1, 1),
            ("float4_e2m1fn", 1, 1),
            ("int2", 1, 1),
            ("uint4", 1, 1),
            ("complex64", 8, 4),
            ("complex_float64", 16, 8),
            ("complex_float16", 4, 2),
            ("complex_bfloat16", 4, 2),
            ("complex_float8_e4m3", 2, 1),
            ("r8", 1, 1),
            ("r24", 3, 1),
        ] {
            for text in [format!("\"{name}\""), format!(r#"{{"name":"{name}"}}"#)] {
                assert_eq!(parse(&text), Ok((size, Numbers { unit })), "{text}");
            }
        }
    }

    #[test]
    fn strings_and_bytes_are_of_any_length() {
        for (text, kind) in [
            (r#""string""#, Variable::Text),
            (r#"{"name":"string"}"#, Variable::Text),
            (r#""bytes""#, Variable::Bytes),
            (r#""variable_length_bytes""#, Variable::Bytes),
            (r#""binary""#, Variable::Bytes),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
            let data_type = DataType::parse_v3(&raw).unwrap();
            assert_eq!(data_type.element, Element::Variable(kind), "{text}");
            assert_eq!((data_type.item_size, data_type.is_variable()), (0, true));
        }
    }

    #[test]
    fn configured_types_and_provisional_spellings() {
        for (text, size, layout) in [
            (
                r#"{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":10}}"#,
                8,
                Numbers { unit: 8 },
            ),
            (
                r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":24}}"#,
                24,
                Numbers { unit: 4 },
            ),
            (
                r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":5}}"#,
                5,
                Numbers { unit: 1 },
            ),
            (
                r#"{"name":"raw_bytes","configuration":{"length_bytes":2}}"#,
                2,
                Numbers { unit: 1 },
            ),
            (
                r#"{"type":"int16","fallback":"int8"}"#,
                2,
                Numbers { unit: 2 },
            ),
            (
                r#"{"name":"structured","configuration":{"fields":[["id","int32"],["v","float64"],["flag","uint8"]]}}"#,
                13,
                Structured { multi_byte: true },
            ),
            (
                r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"},{"name":"b","data_type":{"name":"struct","configuration":{"fields":[{"name":"c","data_type":"r16"}]}}}]}}"#,
                3,
                Structured { multi_byte: false },
            ),
        ] {
            assert_eq!(parse(text), Ok((size, layout)), "{text}");
        }
    }

    #[test]
    fn what_is_no_type_is_refused_by_name() {
        for (text, message) in [
            (r#""int33""#, "unsupported data type `int33`"),
            (r#""float8_e4m3fnz""#, "unsupported data type"),
            (r#""r12""#, "unsupported data type `r12`"),
            (r#""r0""#, "unsupported data type `r0`"),
            (r#""r""#, "unsupported data type `r`"),
            (r#""<i4""#, "unsupported data type `<i4`"),
            (
                r#"{"name":"raw_bytes"}"#,
                "configuration.length_bytes: missing",
            ),
            (
                r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":6}}"#,
                "configuration.length_bytes: found 6",
            ),
            (
                r#"{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":0}}"#,
                "configuration.scale_factor: found 0",
            ),
            (
                r#"{"name":"numpy.datetime64","configuration":{"unit":"x","scale_factor":1}}"#,
                "unsupported time unit `x`",
            ),
            (
                r#"{"name":"struct","configuration":{"fields":[]}}"#,
                "configuration.fields: a structured type without fields",
            ),
            (
                r#"{"name":"structured","configuration":{"fields":[["a","int8"],["a","int8"]]}}"#,
                "two fields are named `a`",
            ),
            (
                r#"{"name":"structured","configuration":{"fields":[["a","string"]]}}"#,
                "configuration.fields[0].`a`: unsupported",
            ),
            (
                r#"{"name":"int32","configuration":{"x":1}}"#,
                "configuration.x: unsupported member `x`",
            ),
            (
                r#"{"name":"raw_bytes","configuration":{"length_bytes":6,"unit":"s"}}"#,
                "configuration.unit: unsupported member `unit`",
            ),
            (
                r#"{"name":"struct","configuration":{"fields":[["a",{"name":"int8","configuration":{"x":1}}]]}}"#,
                "`a`.configuration.x: unsupported",
            ),
            ("3", "found 3, expected a data type"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
