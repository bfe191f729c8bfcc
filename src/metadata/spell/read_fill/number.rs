//! Numbers of fill values, spelled in decimal, by name, or as their bits.

use super::super::dialect::Dialect;
use crate::dtype::{Element, FloatFormat};
use crate::metadata::json::Json;

pub(super) fn low_bytes(little_endian: &[u8], n: usize) -> Vec<u8> {
    little_endian.iter().take(n).copied().collect()
}

pub(super) fn float(json: &Json<'_>, format: FloatFormat, dialect: Dialect) -> Option<Vec<u8>> {
    let bits = match json {
        // It is a whole number for Python and tensorstore, and so has no sign.
        Json::Number("-0") => format.of_decimal("0"),
        Json::Number(text) => format.of_decimal(text),
        Json::NonFinite(value) if value.is_nan() => format.nan(),
        Json::NonFinite(value) => format.infinity(*value < 0.0),
        Json::String(text) => float_of_text(text, format, dialect),
        _ => None,
    }?;
    Some(low_bytes(&bits.to_le_bytes(), format.bytes))
}

fn float_of_text(text: &str, format: FloatFormat, dialect: Dialect) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "nan" => return format.nan(),
        "infinity" | "+infinity" | "inf" | "+inf" => return format.infinity(false),
        "-infinity" | "-inf" => return format.infinity(true),
        _ => {}
    }
    if dialect.is_lenient() {
        return format.of_decimal(text);
    }
    let bits = bit_string(text, format.bytes)?;
    Some(
        bits.iter()
            .fold(0, |bits, &byte| (bits << 8) | u64::from(byte)),
    )
}

/// The `len` bytes that `0x…` or `0b…` spells in full, the most significant first.
fn bit_string(text: &str, len: usize) -> Option<Vec<u8>> {
    let (digits, radix, per_byte) = match (text.strip_prefix("0x"), text.strip_prefix("0b")) {
        (Some(digits), _) => (digits, 16, 2),
        (None, Some(digits)) => (digits, 2, 8),
        (None, None) => return None,
    };
    if Some(digits.len()) != len.checked_mul(per_byte) {
        return None;
    }
    digits
        .as_bytes()
        .chunks(per_byte)
        .map(|digits| {
            let digits = str::from_utf8(digits).ok()?;
            // `from_str_radix` would accept a sign.
            let plain = !digits.starts_with(['+', '-']);
            plain.then(|| u8::from_str_radix(digits, radix).ok())?
        })
        .collect()
}

/// The element that `0x…` or `0b…` spells in a draft: a number, most significant digit first, or
/// raw bytes.
pub(super) fn bits(text: &str, element: &Element) -> Option<Vec<u8>> {
    let is_number = match element {
        Element::Integer(_) | Element::Float(_) | Element::Time(_) => true,
        Element::Raw { .. } => false,
        _ => return None,
    };
    let len = usize::try_from(element.size().ok()?).ok()?;
    let mut bytes = bit_string(text, len)?;
    if is_number {
        bytes.reverse();
    }
    Some(bytes)
}

pub(super) fn complex(json: &Json<'_>, format: FloatFormat, dialect: Dialect) -> Option<Vec<u8>> {
    match json {
        Json::Array(parts) => {
            let [real, imaginary] = parts.as_slice() else {
                return None;
            };
            let mut bytes = float(&Json::of(real).ok()?, format, dialect)?;
            bytes.extend(float(&Json::of(imaginary).ok()?, format, dialect)?);
            Some(bytes)
        }
        real if dialect.is_lenient() => {
            let mut bytes = float(real, format, dialect)?;
            bytes.resize(2 * format.bytes, 0);
            Some(bytes)
        }
        _ => None,
    }
}
