//! Encodes elements, and says which filters can lose something of them.

use super::{Elementwise, Filter, FilterKind, delta, elementwise::bit_round, mask};
use crate::codec::decoded::expect_length;
use crate::codec::number::{Number, map_numbers, unencodable};
use crate::error::FormatError;

impl Filter {
    /// Whether some elements decode to other values than were encoded.
    pub(in crate::codec) fn can_lose(&self) -> bool {
        match &self.kind {
            FilterKind::Elementwise {
                operation,
                decoded,
                encoded,
            } => match operation {
                Elementwise::AsType => !is_same_bytes(*decoded, *encoded),
                _ => true,
            },
            FilterKind::Delta { decoded, encoded } => !delta::is_exact(*decoded, *encoded),
            FilterKind::Mask | FilterKind::Categories(_) => true,
        }
    }

    /// Encodes `decoded`, all of it, to all of `out`.
    ///
    /// # Errors
    /// An element that the encoded type has no value for, or lengths that do not fit.
    pub(in crate::codec) fn encode(
        &self,
        decoded: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        let expected = self.encoded_len(decoded.len() as u64);
        expect_length(self.name(), out.len(), expected)?;
        match &self.kind {
            FilterKind::Elementwise {
                operation,
                decoded: own,
                encoded: stored,
            } => match operation {
                Elementwise::BitRound { keepbits } => {
                    bit_round(*keepbits, *own, decoded, out);
                    Ok(())
                }
                Elementwise::AsType if is_same_bytes(*own, *stored) => {
                    out.copy_from_slice(decoded);
                    Ok(())
                }
                _ => {
                    let mut index = 0_u64;
                    map_numbers((*own, decoded), (*stored, out), |value| {
                        let at = index;
                        index += 1;
                        let encoded = operation.encode(value, *own, *stored);
                        encoded.ok_or_else(|| unencodable(self.name(), at, value))
                    })
                }
            },
            FilterKind::Delta {
                decoded: own,
                encoded: stored,
            } => delta::encode((*own, decoded), (*stored, out)),
            FilterKind::Mask => {
                mask::encode(decoded, out);
                Ok(())
            }
            FilterKind::Categories(categories) => {
                let size = usize::try_from(self.decoded_size).unwrap_or(usize::MAX);
                categories.encode(decoded, size, out)
            }
        }
    }

    /// Encodes one element; `None` when that is impossible, or depends on other elements.
    pub(crate) fn encode_element(&self, element: &[u8]) -> Option<Vec<u8>> {
        if !self.is_elementwise() {
            return None;
        }
        let mut out = vec![0; usize::try_from(self.encoded.item_size).ok()?];
        self.encode(element, &mut out).ok()?;
        Some(out)
    }
}

/// Whether numbers of both types are the same bytes.
fn is_same_bytes(decoded: Number, encoded: Number) -> bool {
    decoded == encoded
}
