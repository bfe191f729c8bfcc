//! The short name of a data type, for people: the one that `NumPy` prints, where it has the type.

use std::fmt::Write;

use super::element::{Element, Field, TimeFormat, Variable};
use super::{DataType, FLOAT32, FLOAT64};

/// The most fields of a record that are named.
const MOST_NAMED: usize = 8;

/// The name of `data_type` as `NumPy` prints it: `int32`, `>i4` (where the bytes are stored in the other order),
/// `datetime64[s]`, `<U4`. Types that `NumPy` lacks have their names of v3, and records those of their fields.
pub fn short_name(data_type: &DataType) -> String {
    // A typestring with the other byte order is what NumPy prints. One byte has no order.
    if data_type.name.starts_with('>') && data_type.element.unit() > 1 {
        return data_type.name.clone();
    }
    let mut out = String::new();
    // Writing to a string never fails.
    let _ = write_name(&data_type.element, &mut out);
    out
}

fn write_name(element: &Element, out: &mut String) -> std::fmt::Result {
    match element {
        Element::Bool => write!(out, "bool"),
        Element::Integer(format) => {
            let unsigned = if format.signed { "" } else { "u" };
            write!(out, "{unsigned}int{}", format.bits)
        }
        Element::Float(format) => write!(out, "{}", format.name()),
        Element::Complex(format) if *format == FLOAT32 => write!(out, "complex64"),
        Element::Complex(format) if *format == FLOAT64 => write!(out, "complex128"),
        Element::Complex(format) => write!(out, "complex_{}", format.name()),
        Element::Time(time) => write_time(time, out),
        Element::Bytes { len } => write!(out, "|S{len}"),
        Element::Text { units } => write!(out, "<U{units}"),
        Element::Raw { len } => write!(out, "|V{len}"),
        Element::Record(fields) => write_record(fields, out),
        Element::Variable(Variable::Text) => write!(out, "string"),
        Element::Variable(Variable::Bytes) => write!(out, "bytes"),
        Element::Variable(Variable::Object) => write!(out, "object"),
    }
}

fn write_time(time: &TimeFormat, out: &mut String) -> std::fmt::Result {
    let kind = if time.is_duration {
        "timedelta64"
    } else {
        "datetime64"
    };
    match (time.unit.as_str(), time.scale) {
        ("generic", _) => write!(out, "{kind}"),
        (unit, 1) => write!(out, "{kind}[{unit}]"),
        (unit, scale) => write!(out, "{kind}[{scale}{unit}]"),
    }
}

/// The fields in braces, as in `{x: int32, m: float64 (2, 2)}`. Padding is left out.
fn write_record(fields: &[Field], out: &mut String) -> std::fmt::Result {
    let named = fields.iter().filter(|field| !field.name.is_empty());
    let count = named.clone().count();
    out.push('{');
    for (i, field) in named.take(MOST_NAMED).enumerate() {
        let separator = if i == 0 { "" } else { ", " };
        write!(out, "{separator}{}: ", field.name)?;
        write_name(&field.element, out)?;
        if !field.shape.is_empty() {
            let lengths: Vec<String> = field.shape.iter().map(u64::to_string).collect();
            write!(out, " ({})", lengths.join(", "))?;
        }
    }
    if count > MOST_NAMED {
        write!(out, ", … of {count} fields")?;
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{ByteOrder, typestr};

    fn of(name: &str) -> DataType {
        let (element, _) = typestr::parse(name).unwrap();
        DataType::of(name.to_owned(), element).unwrap()
    }

    #[test]
    fn names_are_those_that_numpy_prints() {
        for (typestr, name) in [
            ("|b1", "bool"),
            ("<i4", "int32"),
            (">i4", ">i4"),
            ("|u1", "uint8"),
            (">u1", "uint8"),
            ("<f8", "float64"),
            ("<c8", "complex64"),
            ("<M8[s]", "datetime64[s]"),
            ("<m8[25us]", "timedelta64[25us]"),
            ("<M8", "datetime64"),
            ("<U4", "<U4"),
            ("|S3", "|S3"),
            ("|V16", "|V16"),
            ("int4", "int4"),
            ("bfloat16", "bfloat16"),
            ("complex_float16", "complex_float16"),
        ] {
            assert_eq!(short_name(&of(typestr)), name);
        }
        assert_eq!(short_name(&DataType::objects("vlen-utf8")), "string");
        assert_eq!(short_name(&DataType::objects("vlen-bytes")), "bytes");
        assert_eq!(short_name(&DataType::objects("json2")), "object");
    }

    #[test]
    fn records_have_the_names_of_their_fields() {
        let field = |name: &str, shape: &[u64]| Field {
            name: name.to_owned(),
            element: of("<i2").element,
            shape: shape.to_vec(),
            order: ByteOrder::Little,
        };
        let named = |fields: Vec<Field>| {
            let record = Element::Record(fields.into());
            short_name(&DataType::of("structured".to_owned(), record).unwrap())
        };
        let few = vec![field("x", &[]), field("", &[3]), field("m", &[2, 2])];
        assert_eq!(named(few), "{x: int16, m: int16 (2, 2)}");
        let many = (0..9).map(|i| field(&format!("f{i}"), &[])).collect();
        assert!(named(many).ends_with("f7: int16, … of 9 fields}"));
    }
}
