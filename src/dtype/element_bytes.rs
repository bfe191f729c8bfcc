//! Reads the bytes of one element as a number, as text, or as the fields of a record.

use super::element::{Element, Field};
use crate::error::FormatError;

/// The little-endian unsigned integer in `bytes`, of which the first 8 count.
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    let low = bytes.iter().take(8).rev();
    low.fold(0, |value, &byte| (value << 8) | u64::from(byte))
}

/// Like [`unsigned`], with the sign that the highest bit gives.
pub(crate) fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * u32::try_from(bytes.len().clamp(1, 8)).unwrap_or(8);
    (unsigned(bytes) << unused).cast_signed() >> unused
}

/// `bytes` without the NULs at the end.
pub(crate) fn without_padding(bytes: &[u8]) -> &[u8] {
    let last = bytes.iter().rposition(|&byte| byte != 0);
    last.and_then(|last| bytes.get(..=last)).unwrap_or_default()
}

/// The text of little-endian UTF-32 units, without the NULs at the end.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    for unit in bytes.chunks(4) {
        text.push(char::from_u32(u32::try_from(unsigned(unit)).ok()?)?);
    }
    text.truncate(text.trim_end_matches('\0').len());
    Some(text)
}

/// The characters of `text` as little-endian UTF-32.
pub(crate) fn utf32(text: &str) -> Vec<u8> {
    let units = text.chars().map(u32::from);
    units.flat_map(u32::to_le_bytes).collect()
}

/// The fields of a record, each with its bytes as they are stored.
pub(crate) fn split<'a>(
    fields: &'a [Field],
    bytes: &'a [u8],
) -> impl Iterator<Item = (&'a Field, &'a [u8])> {
    let mut rest = bytes;
    fields.iter().map(move |field| {
        let size = field.size().ok().flatten().unwrap_or(u64::MAX);
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(rest.len());
        let (own, after) = rest.split_at(size);
        rest = after;
        (field, own)
    })
}

impl Field {
    /// The stored bytes of the field in little-endian order; those of a nested record stay as they
    /// are.
    pub(crate) fn little(&self, stored: &[u8]) -> Result<Vec<u8>, FormatError> {
        let mut bytes = stored.to_vec();
        if !matches!(self.element, Element::Record(_)) {
            self.element.reorder(self.order, &mut bytes)?;
        }
        Ok(bytes)
    }
}
