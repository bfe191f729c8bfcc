//! The local header of an entry, which is in front of its bytes.
//!
//! ```text
//! at 0           4    8       26           28            30
//! P K \x03 \x04  ..   method  length of    length of     name, extra fields, then the bytes
//!                             the name     extra fields  of the entry
//! ```
//!
//! Sizes and the checksum are those of the central directory. The header only shows where the bytes
//! begin, and that they are those of the entry. It is parsed here because `rawzip` reads it in
//! several steps, each of which would be a request to a server.

/// Bytes before the name.
pub(super) const FIXED_BYTES: usize = 30;

const SIGNATURE: &[u8] = b"PK\x03\x04";

/// A local header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LocalHeader<'b> {
    /// Compression method.
    pub(super) method: u16,
    /// The name of the entry, as it is stored; `None` if the parsed bytes end before the end of
    /// the name.
    pub(super) name: Option<&'b [u8]>,
    /// The number of bytes of the header; the bytes of the entry follow.
    pub(super) len: u64,
}

impl<'b> LocalHeader<'b> {
    /// Parses `bytes`, which may end after the name.
    ///
    /// # Errors
    /// When they are no local header.
    pub(super) fn parse(bytes: &'b [u8]) -> Result<LocalHeader<'b>, String> {
        if !bytes.starts_with(SIGNATURE) {
            return Err("it does not begin with its signature".to_owned());
        }
        let number = |at: usize| {
            let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
            found.map(|bytes| u16::from_le_bytes(*bytes))
        };
        let (Some(method), Some(name_len), Some(extra_len)) = (number(8), number(26), number(28))
        else {
            return Err("it is cut short".to_owned());
        };
        let name_end = FIXED_BYTES + usize::from(name_len);
        Ok(LocalHeader {
            method,
            name: bytes.get(FIXED_BYTES..name_end),
            len: name_end as u64 + u64::from(extra_len),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_shows_where_the_bytes_begin() {
        let mut bytes = [SIGNATURE, &[0; 26], b"a/bextra"].concat();
        bytes[8] = 8;
        bytes[26] = 3;
        bytes[28] = 5;
        let header = LocalHeader::parse(&bytes).unwrap();
        let expected = LocalHeader {
            method: 8,
            name: Some(b"a/b"),
            len: 38,
        };
        assert_eq!(header, expected);
        let cut = LocalHeader::parse(&bytes[..32]).unwrap();
        assert_eq!((cut.name, cut.len), (None, 38));
        for wrong in [&bytes[..29], &bytes[1..], &[]] {
            LocalHeader::parse(wrong).unwrap_err();
        }
    }
}
