//! Data types and shapes in the spelling of Python.

use std::fmt::Write;

use crate::dtype::{ByteOrder, DataType, Element};
use crate::error::FormatError;
use crate::plain::FileFormat;
use crate::plain::number::Scalar;

/// The text of `repr(numpy.lib.format.dtype_to_descr(dtype))`.
///
/// # Errors
///
/// When `NumPy` has no such type.
pub(super) fn descr(data_type: &DataType) -> Result<String, FormatError> {
    element(&data_type.element, ByteOrder::Little).map_err(|refused| match refused {
        Refused::Type => FileFormat::Npy.refused("data type", &data_type.name),
        Refused::Field(name) => FileFormat::Npy.refused("field of the data type", name),
    })
}

/// A tuple of lengths: `()`, `(3,)` or `(3, 4)`.
pub(super) fn tuple(lengths: &[u64]) -> String {
    match lengths {
        [only] => format!("({only},)"),
        lengths => {
            let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
            format!("({})", lengths.join(", "))
        }
    }
}

/// The part of a data type that `NumPy` lacks.
enum Refused {
    /// The whole type.
    Type,
    /// The field with this name.
    Field(String),
}

fn element(element: &Element, order: ByteOrder) -> Result<String, Refused> {
    let (kind, size) = match element {
        Element::Record(_) => return record(element),
        Element::Bytes { len } => ('S', *len),
        Element::Raw { len } => ('V', *len),
        Element::Text { units } => ('U', *units),
        number => {
            Scalar::of_element(number).ok_or(Refused::Type)?;
            let kind = match number {
                Element::Bool => 'b',
                Element::Integer(format) if format.signed => 'i',
                Element::Integer(_) => 'u',
                Element::Float(_) => 'f',
                Element::Complex(_) => 'c',
                Element::Time(time) if time.is_duration => 'm',
                _ => 'M',
            };
            (kind, number.size().map_err(|_| Refused::Type)?)
        }
    };
    let order = match order {
        _ if element.unit() == 1 => '|',
        ByteOrder::Little => '<',
        ByteOrder::Big => '>',
    };
    let mut text = format!("'{order}{kind}{size}");
    if let Element::Time(time) = element
        && time.unit != "generic"
    {
        text.push('[');
        if time.scale != 1 {
            text.push_str(&time.scale.to_string());
        }
        text.push_str(&time.unit);
        text.push(']');
    }
    text.push('\'');
    Ok(text)
}

/// The list of fields of a record. Padding is a field without a name, and adjacent padding is
/// merged.
fn record(record: &Element) -> Result<String, Refused> {
    let Element::Record(fields) = record else {
        return Err(Refused::Type);
    };
    let mut names = std::collections::HashSet::new();
    let mut items = Vec::new();
    let mut padding = 0_u64;
    for field in fields.iter() {
        let refused = |_| Refused::Field(field.name.clone());
        if field.name.is_empty() {
            // NumPy would give a name to a field without a name, or drop it, unless it is raw
            // bytes.
            let size = field.size().map_err(refused)?;
            let is_padding = matches!(field.element, Element::Raw { .. });
            let size = size.filter(|_| is_padding).ok_or(Refused::Type)?;
            padding = padding.checked_add(size).ok_or(Refused::Type)?;
            continue;
        }
        pad(&mut items, &mut padding);
        if !names.insert(field.name.as_str()) {
            return Err(Refused::Field(field.name.clone()));
        }
        let name = string(&field.name);
        let inner = element(&field.element, field.order).map_err(|inner| match inner {
            Refused::Type => Refused::Field(field.name.clone()),
            Refused::Field(inner) => Refused::Field(format!("{}.{inner}", field.name)),
        })?;
        items.push(if field.shape.is_empty() {
            format!("({name}, {inner})")
        } else {
            format!("({name}, {inner}, {})", tuple(&field.shape))
        });
    }
    pad(&mut items, &mut padding);
    Ok(format!("[{}]", items.join(", ")))
}

fn pad(items: &mut Vec<String>, padding: &mut u64) {
    if *padding > 0 {
        items.push(format!("('', '|V{padding}')"));
        *padding = 0;
    }
}

/// The text of Python's `repr(text)`.
fn string(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for character in text.chars() {
        // Writing to a string never fails.
        let _ = match character {
            '\\' => write!(out, "\\\\"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            _ if character == quote => write!(out, "\\{quote}"),
            _ if is_printable(character) => write!(out, "{character}"),
            _ => match u32::from(character) {
                code @ ..=0xff => write!(out, "\\x{code:02x}"),
                code @ ..=0xffff => write!(out, "\\u{code:04x}"),
                code => write!(out, "\\U{code:08x}"),
            },
        };
    }
    out.push(quote);
    out
}

/// Whether Python's `repr` leaves the character as it is. Python escapes the same characters as
/// Rust: all that are no letter, mark, number, punctuation or symbol, except the blank. Rust
/// escapes a mark only at the beginning of a text, so the text here begins with a letter.
fn is_printable(character: char) -> bool {
    match character {
        '\'' | '"' => true,
        _ => {
            let text: String = ['a', character].iter().collect();
            text.escape_debug().count() == 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_python_spells_it() {
        for (text, expected) in [
            ("a b", "'a b'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("\"", "'\"'"),
            ("\\\t\r\n", "'\\\\\\t\\r\\n'"),
            ("\0\x1b\x7f\u{85}\u{a0}", "'\\x00\\x1b\\x7f\\x85\\xa0'"),
            ("é日\u{301}", "'é日\u{301}'"),
            ("\u{200b}\u{2028}\u{e000}", "'\\u200b\\u2028\\ue000'"),
            ("🦀\u{e0001}", "'🦀\\U000e0001'"),
        ] {
            assert_eq!(string(text), expected);
        }
    }
}
