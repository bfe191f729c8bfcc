//! The position at which a listing resumes.

use std::fmt;

use smallvec::SmallVec;

/// A position in a listing: bytes that only the store that made them can interpret. In a directory, they are the 8
/// bytes of an offset. In an object store, they are a name to start after, or a continuation token of the server. Short
/// positions are held inline, so that no entry of a directory costs an allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cursor(SmallVec<[u8; 16]>);

impl Cursor {
    /// Before the first entry.
    pub const START: Cursor = Cursor(SmallVec::new_const());

    /// The position that a store encodes as `bytes`; no bytes are the start.
    pub fn new(bytes: &[u8]) -> Cursor {
        Cursor(SmallVec::from_slice(bytes))
    }

    /// The bytes, as the store gave them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether this is before the first entry.
    pub fn is_start(&self) -> bool {
        self.0.is_empty()
    }

    /// After an object or a prefix called `name`, in a store that lists in the order of keys. A
    /// prefix keeps the `/` at its end: where a key is both, the prefix comes later.
    pub(crate) fn after(name: &[u8], is_prefix: bool) -> Cursor {
        let mut bytes = SmallVec::from_slice(name);
        if is_prefix {
            bytes.push(b'/');
        }
        Cursor(bytes)
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({})", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_of_a_directory_is_held_inline() {
        let cursor = Cursor::new(&u64::MAX.to_ne_bytes());
        assert!(!cursor.0.spilled() && !cursor.is_start());
        assert_eq!(cursor.as_bytes(), u64::MAX.to_ne_bytes());
        assert_eq!(Cursor::new(b""), Cursor::START);
    }

    #[test]
    fn an_object_and_a_prefix_of_one_name_are_two_places() {
        assert_eq!(Cursor::after(b"a", false), Cursor::new(b"a"));
        assert_eq!(Cursor::after(b"a", true), Cursor::new(b"a/"));
    }
}
