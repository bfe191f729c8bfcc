//! Typestrings of `NumPy`: `<i4`, `|b1`, `>M8[25s]`, `<U5`, `|S3`, `|V8`.
//!
//! A name without a byte order (`i4`, written into codec configurations by zarr-python 3), `=`
//! and a `|` on a number of several bytes are read as little-endian.
//!
//! Source: Zarr v2, section "Data type encoding".

use super::element::{Element, IntegerFormat, TimeFormat};
use super::float::{FLOAT16, FLOAT32, FLOAT64};
use super::{ByteOrder, v3_name};
use crate::error::FormatError;

/// The element that a typestring names, and its byte order: little-endian where it names none.
pub(crate) fn parse(name: &str) -> Result<(Element, ByteOrder), FormatError> {
    let without_order = name.strip_prefix(['<', '>', '|', '=']).unwrap_or(name);
    // tensorstore writes the v3 names of types that NumPy lacks, such as `bfloat16`.
    let element = numpy(without_order)
        .or_else(|| v3_name::without_parameters(name))
        .ok_or_else(|| FormatError::unsupported("", "data type", name))?;
    // A number of one byte has no order, whatever the character says.
    Ok(if name.starts_with('>') && element.unit() > 1 {
        (element, ByteOrder::Big)
    } else {
        (element, ByteOrder::Little)
    })
}

/// The type of a typestring whose byte order character was removed.
fn numpy(name: &str) -> Option<Element> {
    let kind = name.chars().next()?;
    let rest = name.get(kind.len_utf8()..)?;
    let (digits, unit) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size: u64 = digits.parse().ok()?;
    if matches!(kind, 'm' | 'M') {
        let (unit, scale) = time_unit(if unit.is_empty() { "[generic]" } else { unit })?;
        return (size == 8).then_some(Element::Time(TimeFormat {
            is_duration: kind == 'm',
            unit,
            scale,
        }));
    }
    if !unit.is_empty() {
        return None;
    }
    Some(match (kind, size) {
        ('b', 1) => Element::Bool,
        ('i' | 'u', 1 | 2 | 4 | 8) => Element::Integer(IntegerFormat::whole(
            usize::try_from(size).ok()?,
            kind == 'i',
        )),
        ('f', 2) => Element::Float(FLOAT16),
        ('f', 4) => Element::Float(FLOAT32),
        ('f', 8) => Element::Float(FLOAT64),
        ('c', 8) => Element::Complex(FLOAT32),
        ('c', 16) => Element::Complex(FLOAT64),
        ('S', len) => Element::Bytes { len },
        ('U', units) => Element::Text { units },
        ('V', len) => Element::Raw { len },
        _ => return None,
    })
}

/// The time unit and its count in brackets: `[s]`, `[25s]`, `[generic]`.
fn time_unit(text: &str) -> Option<(String, u32)> {
    let text = text.strip_prefix('[')?.strip_suffix(']')?;
    let name = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let scale = match text.strip_suffix(name)? {
        "" => 1,
        digits => digits.parse().ok().filter(|&scale: &u32| scale > 0)?,
    };
    Some((v3_name::time_unit(name)?.to_owned(), scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typestrings_say_size_unit_and_order() {
        use ByteOrder::{Big, Little};
        for (text, size, unit, order) in [
            ("|b1", 1, 1, Little),
            ("<i4", 4, 4, Little),
            (">u8", 8, 8, Big),
            (">i1", 1, 1, Little),
            ("i4", 4, 4, Little),
            ("=f8", 8, 8, Little),
            ("|i4", 4, 4, Little),
            ("<f2", 2, 2, Little),
            (">c16", 16, 8, Big),
            ("<M8[ns]", 8, 8, Little),
            (">m8[25s]", 8, 8, Big),
            ("<M8", 8, 8, Little),
            ("<M8[generic]", 8, 8, Little),
            ("<M8[\u{3bc}s]", 8, 8, Little),
            ("|S3", 3, 1, Little),
            (">U5", 20, 4, Big),
            ("|V2000000000", 2_000_000_000, 1, Little),
            ("|S99999999999", 99_999_999_999, 1, Little),
            ("bfloat16", 2, 2, Little),
            ("int4", 1, 1, Little),
        ] {
            let (element, found) = parse(text).unwrap();
            assert_eq!((element.size(), element.unit()), (Ok(size), unit), "{text}");
            assert_eq!(found, order, "{text}");
        }
    }
}
