//! One reference as the table of a set keeps it, in 20 bytes.
//!
//! ```text
//! bytes   0..4       4..12     12..20
//! range   address    offset    length
//! whole   address    -         all ones
//! bad     ffff fffd  offset    length     a message, in the bytes that the set itself has
//! inline  ffff fffe  offset    length     in the bytes that the set itself has
//! absent  ffff ffff  -         -
//! ```

use std::sync::Arc;

use bytes::Bytes;

/// The bytes of a row.
pub(super) type RowBytes = [u8; 20];

/// A reference whose address is in a list of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// So many bytes from an offset of the target on.
    Range { address: u32, offset: u64, len: u64 },
    /// The whole target.
    Whole { address: u32 },
    /// Bytes of the set itself.
    Inline { offset: u64, len: u64 },
    /// A reference that cannot be understood. The bytes are a message that says why.
    Bad { offset: u64, len: u64 },
}

const BAD: u32 = u32::MAX - 2;
const INLINE: u32 = u32::MAX - 1;
const ABSENT: u32 = u32::MAX;
/// The most addresses that rows can name.
pub(super) const MOST_ADDRESSES: u32 = BAD;
/// The place of a reference that the set lacks.
pub(super) const ABSENT_ROW: RowBytes = [0xff; 20];

/// The value of a reference in a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReferenceValue {
    Inline(Vec<u8>),
    Whole(String),
    Range(String, u64, u64),
    /// It cannot be understood, for this reason.
    Bad(String),
}

/// A reference that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Inline(Bytes),
    /// The address, still a template, and the range; `None` for the whole target.
    At(Arc<str>, Option<(u64, u64)>),
    Bad(String),
}

impl Row {
    pub(super) fn to_bytes(self) -> RowBytes {
        let (address, offset, len) = match self {
            Row::Range {
                address,
                offset,
                len,
            } => (address, offset, len),
            Row::Whole { address } => (address, 0, u64::MAX),
            Row::Inline { offset, len } => (INLINE, offset, len),
            Row::Bad { offset, len } => (BAD, offset, len),
        };
        let mut bytes = [0; 20];
        let (start, rest) = bytes.split_at_mut(4);
        let (middle, end) = rest.split_at_mut(8);
        start.copy_from_slice(&address.to_ne_bytes());
        middle.copy_from_slice(&offset.to_ne_bytes());
        end.copy_from_slice(&len.to_ne_bytes());
        bytes
    }

    /// `None` for an absent reference.
    pub(super) fn of_bytes(bytes: &RowBytes) -> Option<Row> {
        let (address, rest) = bytes.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (len, _) = rest.split_first_chunk()?;
        let (offset, len) = (u64::from_ne_bytes(*offset), u64::from_ne_bytes(*len));
        match u32::from_ne_bytes(*address) {
            ABSENT => None,
            INLINE => Some(Row::Inline { offset, len }),
            BAD => Some(Row::Bad { offset, len }),
            address if len == u64::MAX => Some(Row::Whole { address }),
            address => Some(Row::Range {
                address,
                offset,
                len,
            }),
        }
    }

    /// The reference, with its address out of `addresses` or its bytes out of `inline`; `None` if they lack it.
    pub(super) fn found(self, addresses: &[Arc<str>], inline: &Bytes) -> Option<Found> {
        let address = |number: u32| {
            let at = usize::try_from(number).ok()?;
            addresses.get(at).cloned()
        };
        let bytes = |offset: u64, len: u64| {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(len).ok()?)?;
            (end <= inline.len()).then(|| inline.slice(start..end))
        };
        Some(match self {
            Row::Inline { offset, len } => Found::Inline(bytes(offset, len)?),
            Row::Bad { offset, len } => {
                let message = bytes(offset, len)?;
                Found::Bad(String::from_utf8_lossy(&message).into_owned())
            }
            Row::Whole { address: number } => Found::At(address(number)?, None),
            Row::Range {
                address: number,
                offset,
                len,
            } => Found::At(address(number)?, Some((offset, len))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back() {
        for row in [
            Row::Range {
                address: 7,
                offset: 1 << 40,
                len: 0,
            },
            Row::Whole { address: 0 },
            Row::Inline { offset: 3, len: 9 },
            Row::Bad { offset: 3, len: 9 },
        ] {
            assert_eq!(Row::of_bytes(&row.to_bytes()), Some(row));
        }
        assert_eq!(Row::of_bytes(&ABSENT_ROW), None);
    }
}
