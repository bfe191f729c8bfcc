//! One element as text for people.

use std::fmt::Write;

use super::DataType;
use super::element::{Element, Field, Variable};
use super::element_bytes::{signed, split, text, unsigned, without_padding};

/// The most bytes of one element that are shown; an ellipsis replaces the rest.
const MOST_BYTES: usize = 64 * 1024;

/// The element of `data_type` with the decoded bytes `bytes`, as text: numbers in decimal, times as
/// counts of their unit, strings in quotes, bytes as Python writes them, a record as its fields.
///
/// Bytes that are missing at the end are zeros.
pub fn element_text(data_type: &DataType, bytes: &[u8]) -> String {
    let mut out = String::new();
    let is_cut = bytes.len() > MOST_BYTES;
    write_element(
        &data_type.element,
        bytes.get(..MOST_BYTES).unwrap_or(bytes),
        &mut out,
    );
    if is_cut {
        out.push('…');
    }
    out
}

fn write_element(element: &Element, bytes: &[u8], out: &mut String) {
    // Writing to a string never fails.
    let _ = match element {
        Element::Bool => write!(out, "{}", bytes.first().is_some_and(|&byte| byte != 0)),
        Element::Integer(format) => {
            // The high bits of a narrow integer are unused.
            let unused = 64 - format.bits;
            let bits = unsigned(bytes) << unused;
            if format.signed {
                write!(out, "{}", bits.cast_signed() >> unused)
            } else {
                write!(out, "{}", bits >> unused)
            }
        }
        Element::Float(format) => number(format.value(format.bits(bytes)), format.bytes, out),
        Element::Complex(format) => {
            let (real, imaginary) = bytes.split_at_checked(format.bytes).unwrap_or_default();
            let part = |bytes: &[u8], out: &mut String| {
                number(format.value(format.bits(bytes)), format.bytes, out)
            };
            out.push('(');
            part(real, out).and_then(|()| {
                out.push_str(", ");
                part(imaginary, out)?;
                out.push(')');
                Ok(())
            })
        }
        Element::Time(time) => match signed(bytes) {
            i64::MIN => write!(out, "NaT"),
            count if time.unit == "generic" => write!(out, "{count}"),
            count => {
                let kind = if time.is_duration {
                    ""
                } else {
                    " since 1970-01-01"
                };
                let scale = (time.scale != 1).then(|| format!("{} ", time.scale));
                let scale = scale.unwrap_or_default();
                write!(out, "{count} {scale}{}{kind}", time.unit)
            }
        },
        Element::Bytes { .. } => bytes_text(without_padding(bytes), out),
        Element::Raw { .. } | Element::Variable(Variable::Bytes | Variable::Object) => {
            bytes_text(bytes, out)
        }
        Element::Text { .. } => match text(bytes) {
            Some(text) => write!(out, "{text:?}"),
            None => bytes_text(bytes, out),
        },
        Element::Variable(Variable::Text) => match str::from_utf8(bytes) {
            Ok(text) => write!(out, "{text:?}"),
            Err(_) => bytes_text(bytes, out),
        },
        Element::Record(fields) => {
            record(fields, bytes, out);
            Ok(())
        }
    };
}

/// A number; a `float32` with the fewest digits that identify it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the value came from an f32"
)]
fn number(value: f64, bytes: usize, out: &mut String) -> std::fmt::Result {
    if bytes == 4 {
        return write!(out, "{:?}", value as f32);
    }
    write!(out, "{value:?}")
}

fn bytes_text(bytes: &[u8], out: &mut String) -> std::fmt::Result {
    write!(out, "b\"{}\"", bytes.escape_ascii())
}

/// A record such as `{a: 1, b: [2, 3]}`, without its padding.
fn record(fields: &[Field], bytes: &[u8], out: &mut String) {
    out.push('{');
    let mut separator = "";
    for (field, own) in split(fields, bytes) {
        if field.name.is_empty() {
            continue;
        }
        out.push_str(separator);
        separator = ", ";
        out.push_str(&field.name);
        out.push_str(": ");
        let own = field.little(own).unwrap_or_default();
        if field.shape.is_empty() {
            write_element(&field.element, &own, out);
        } else {
            let size = field
                .element
                .size()
                .ok()
                .and_then(|size| usize::try_from(size).ok());
            out.push('[');
            for (i, item) in own.chunks(size.unwrap_or(1).max(1)).enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_element(&field.element, item, out);
            }
            out.push(']');
        }
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{ByteOrder, typestr};

    fn of(typestr: &str) -> DataType {
        let (element, _) = typestr::parse(typestr).unwrap();
        DataType::of(typestr.to_owned(), element).unwrap()
    }

    fn field(name: &str, typestr: &str, shape: &[u64]) -> Field {
        let (element, order) = typestr::parse(typestr).unwrap();
        Field {
            name: name.to_owned(),
            element,
            shape: shape.to_vec(),
            order,
        }
    }

    fn record(fields: impl IntoIterator<Item = Field>) -> DataType {
        let record = Element::Record(fields.into_iter().collect());
        DataType::of("structured".to_owned(), record).unwrap()
    }

    #[test]
    fn elements_of_every_kind() {
        for (dtype, bytes, text) in [
            ("|b1", &[1][..], "true"),
            ("|i1", &[0xff], "-1"),
            (">u8", &[0xff; 8], "18446744073709551615"),
            ("int4", &[0x0f], "-1"),
            ("uint2", &[0xff], "3"),
            ("<f4", &[0xcd, 0xcc, 0xcc, 0x3d], "0.1"),
            ("<f8", &[0, 0, 0, 0, 0, 0, 0, 0x80], "-0.0"),
            ("<f2", &[0, 0x7c], "inf"),
            ("<c8", &[0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f], "(1.0, NaN)"),
            (
                "<M8[25s]",
                &[2, 0, 0, 0, 0, 0, 0, 0],
                "2 25 s since 1970-01-01",
            ),
            ("<m8[ns]", &[2, 0, 0, 0, 0, 0, 0, 0], "2 ns"),
            ("<M8[s]", &[0, 0, 0, 0, 0, 0, 0, 0x80], "NaT"),
            ("|S4", b"a\"\0\0", r#"b"a\"""#),
            ("|V2", b"a\0", r#"b"a\x00""#),
            ("<U2", &[0xe9, 0, 0, 0, 0, 0, 0, 0], "\"é\""),
            ("<U1", &[0, 0, 0, 0xff], r#"b"\x00\x00\x00\xff""#),
        ] {
            assert_eq!(element_text(&of(dtype), bytes), text, "{dtype}");
        }
        assert_eq!(
            element_text(&DataType::objects("vlen-utf8"), b"a\nb"),
            r#""a\nb""#
        );
        assert_eq!(
            element_text(&DataType::objects("vlen-bytes"), b"\xff"),
            r#"b"\xff""#
        );
    }

    #[test]
    fn records_are_shown_field_by_field() {
        let inner = Field {
            element: record([field("x", ">u2", &[])]).element,
            ..field("r", "|V2", &[])
        };
        let outer = record([
            field("a", ">i2", &[]),
            field("", "|V1", &[]),
            field("m", "<i2", &[2]),
            inner,
        ]);
        let text = element_text(&outer, &[0, 1, 9, 2, 0, 3, 0, 0, 4]);
        assert_eq!(text, "{a: 1, m: [2, 3], r: {x: 4}}");
    }

    #[test]
    fn what_is_missing_is_zero_and_what_is_long_is_cut() {
        let record = record([field("a", "<i4", &[]), field("b", "|S9", &[])]);
        assert_eq!(element_text(&record, &[1]), r#"{a: 1, b: b""}"#);
        let text = element_text(&of("|V70000"), &vec![b'x'; 70_000]);
        assert_eq!(text.len(), MOST_BYTES + 3 + "…".len());
    }

    #[test]
    fn fields_of_a_v3_record_have_the_order_of_its_codec() {
        let data_type = record([field("a", "int16", &[])]);
        assert_eq!(element_text(&data_type, &[1, 0]), "{a: 1}");
        let big = data_type.with_field_order(ByteOrder::Big);
        assert_eq!(element_text(&big, &[0, 1]), "{a: 1}");
    }
}
