//! The identities of files and nodes, and their spelling in the names of files.
//!
//! 12 bytes become 20 characters of Crockford's base 32, upper case: 5 bits each, with 4 bits of 0 at the end.

use std::fmt;

/// The identity of a snapshot, a manifest or a file of chunks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ObjectId(pub(super) [u8; 12]);

/// The identity of a node, which it keeps as long as it exists.
pub(super) type NodeId = [u8; 8];

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The length of the spelling.
const SPELLED: usize = 20;

impl ObjectId {
    /// The identity that is spelled `text`; small letters count as capital ones.
    pub(super) fn parse(text: &str) -> Option<ObjectId> {
        if text.len() != SPELLED {
            return None;
        }
        let mut bits: u128 = 0;
        for character in text.bytes() {
            let character = character.to_ascii_uppercase();
            let value = ALPHABET.iter().position(|&known| known == character)?;
            bits = bits << 5 | u128::try_from(value).ok()?;
        }
        // 100 bits, of which the last 4 are no part of the identity.
        let [_, _, _, _, bytes @ ..] = (bits >> 4).to_be_bytes();
        (bits.trailing_zeros() >= 4).then_some(ObjectId(bytes))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut wide = [0; 16];
        wide[4..].copy_from_slice(&self.0);
        let bits = u128::from_be_bytes(wide) << 4;
        for at in (0..SPELLED).rev() {
            let value = usize::try_from(bits >> (5 * at) & 31).unwrap_or(0);
            write!(f, "{}", char::from(ALPHABET[value]))?;
        }
        Ok(())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_spelled_as_in_the_specification() {
        let id = ObjectId([
            0x0b, 0x1c, 0xc8, 0xd6, 0x78, 0x75, 0x80, 0xf0, 0xe3, 0x3a, 0x65, 0x34,
        ]);
        assert_eq!(id.to_string(), "1CECHNKREP0F1RSTCMT0");
        assert_eq!(ObjectId::parse("1CECHNKREP0F1RSTCMT0"), Some(id));
        assert_eq!(ObjectId::parse("1cechnkrep0f1rstcmt0"), Some(id));
        let last = ObjectId([0xff; 12]);
        assert_eq!(ObjectId::parse(&last.to_string()), Some(last));
    }

    #[test]
    fn other_texts_are_no_identities() {
        for text in [
            "",
            "main",
            "1CECHNKREP0F1RSTCMT",
            "1CECHNKREP0F1RSTCMT1",
            "1CECHNKREP0F1RSTCMU0",
            "1CECHNKREP0F1RSTC\u{e9}0",
        ] {
            assert_eq!(ObjectId::parse(text), None, "{text}");
        }
    }
}
