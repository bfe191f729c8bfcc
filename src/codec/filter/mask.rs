//! The `packbits` filter of numcodecs: eight booleans in a byte.
//!
//! Name: `numcodecs.packbits`; in v2 the filter `packbits`. The registered codec `packbits` is
//! another one, with the bits of a byte in the other order.
//!
//! ```text
//! true false true true false      03 b0
//!                                 |  1011 0000   first element in the highest bit
//!                                 3 bits of the last byte are padding
//! ```

use crate::error::FormatError;

pub(super) const NAME: &str = "numcodecs.packbits";

/// The encoded length of `elements` booleans, including the byte that counts the padding.
pub(super) fn encoded_len(elements: u64) -> u64 {
    elements.div_ceil(8).saturating_add(1)
}

/// Unpacks each boolean to one byte. The caller has compared the lengths.
pub(super) fn decode(encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
    let (&padding, packed) = encoded
        .split_first()
        .ok_or_else(|| FormatError::encoded(NAME, "no bytes at all"))?;
    let expected = (8 - out.len() % 8) % 8;
    if usize::from(padding) != expected {
        let problem = format!("{padding} bits of padding, expected {expected}");
        return Err(FormatError::encoded(NAME, problem));
    }
    for (bits, out) in packed.iter().zip(out.chunks_mut(8)) {
        for (i, element) in (0..8).zip(out) {
            *element = (bits >> (7 - i)) & 1;
        }
    }
    Ok(())
}

/// Packs each byte to one bit, which is zero if the byte is. The caller has compared the lengths.
pub(super) fn encode(decoded: &[u8], out: &mut [u8]) {
    let Some((padding, packed)) = out.split_first_mut() else {
        return;
    };
    *padding = u8::try_from((8 - decoded.len() % 8) % 8).unwrap_or(0);
    for (elements, bits) in decoded.chunks(8).zip(packed) {
        let set = (0..8).zip(elements).filter(|(_, element)| **element != 0);
        *bits = set.fold(0, |bits, (i, _)| bits | 1 << (7 - i));
    }
}
