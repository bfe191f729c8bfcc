//! `.npy`: `NumPy`'s own file, byte for byte what `np.save` of `NumPy` 2 writes for an array in C
//! order.
//!
//! ```text
//! off  size
//! 0    6     93 'NUMPY'
//! 6    2     1 0, or 2 0 (text of more than 65,535 bytes), or 3 0 (names beyond Latin-1)
//! 8    2     length of the text, u16 (4 bytes, u32, in versions 2 and 3)
//! 10         {'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }
//!            blanks so that the first length may grow to 21 digits, then 1 to 64 more so that
//!            the elements begin at a multiple of 64, '\n'
//! ```
//!
//! Unlike in other formats, the elements begin directly after the header and not at a multiple of
//! 4096: it is more useful that the file is identical to what `np.save` writes. `NumPy` reads a
//! text of more than 10,000 characters (records with hundreds of fields) only with `np.load(...,
//! max_header_size=...)`, and has no arrays of more than 64 dimensions.
//!
//! Source: `numpy.lib.format`, and the NEP 1 that it replaces.

use super::{Array, Elements, Layout, Transform};
use crate::error::FormatError;

mod descr;

/// The alignment of the elements.
const ALIGN: usize = 64;
/// The width that is reserved for the first length, in digits, so that the array can grow in place.
const GROWTH_DIGITS: usize = 21;

pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    Layout::of_header(header(array)?, 1, Elements::all(array, Transform::None)?)
}

fn header(array: &Array) -> Result<Vec<u8>, FormatError> {
    let descr = descr::descr(&array.data_type)?;
    let shape = descr::tuple(&array.shape);
    let mut text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    if let Some(first) = array.shape.first() {
        let room = GROWTH_DIGITS.saturating_sub(first.to_string().len());
        text.extend(std::iter::repeat_n(' ', room));
    }
    let latin1: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    let (version, text) = match latin1 {
        Some(latin1) if fits_version_1(&latin1) => (1, latin1),
        Some(latin1) => (2, latin1),
        None => (3, text.into_bytes()),
    };
    let before = if version == 1 { 10 } else { 12 };
    let length = text.len() + 1 + padding(before, &text);
    let mut header = b"\x93NUMPY".to_vec();
    header.extend([version, 0]);
    if version == 1 {
        // This cannot fail: `fits_version_1` has checked it.
        header.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    } else {
        let length = u32::try_from(length)
            .map_err(|_| FormatError::too_large("the header of an npy file", length, u32::MAX))?;
        header.extend(length.to_le_bytes());
    }
    header.extend(&text);
    header.resize(before + length - 1, b' ');
    header.push(b'\n');
    Ok(header)
}

fn fits_version_1(text: &[u8]) -> bool {
    u16::try_from(text.len() + 1 + padding(10, text)).is_ok()
}

/// The number of blanks between the text and the line feed: 1 to 64.
fn padding(before: usize, text: &[u8]) -> usize {
    ALIGN - (before + text.len() + 1) % ALIGN
}

#[cfg(test)]
mod tests;
