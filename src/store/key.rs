//! Names within a store.
//!
//! A [`Key`] is bytes: relative, segments separated by `/`, no empty, `.` or `..` segment, no NUL.
//! It is checked once, where it enters the crate, and passed on as this type. A [`Prefix`] is the
//! root or a key that other keys lie below; it is written without the trailing `/`.

use std::fmt;
use std::sync::Arc;

use super::StoreError;
use crate::escape::Escaped;

/// Name of an object. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<[u8]>);

/// The root, or a key that other keys lie below. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix(Arc<[u8]>);

/// The most segments of a key that a zip file or a set of references may have. Each directory above a node is looked at for
/// documents, so that a short file with very deep names would take hours.
pub(super) const MOST_SEGMENTS: usize = 256;

/// Whether `name` has more segments than a name in a file of names may have.
pub(super) fn is_too_deep(name: &[u8]) -> bool {
    name.split(|&byte| byte == b'/')
        .nth(MOST_SEGMENTS)
        .is_some()
}

fn is_segment(segment: &[u8]) -> bool {
    !segment.is_empty() && segment != b"." && segment != b".." && !segment.contains(&0)
}

impl Key {
    /// Checks `bytes`.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`] for anything but relative, non-empty segments.
    pub fn parse(bytes: &[u8]) -> Result<Key, StoreError> {
        if bytes.split(|&b| b == b'/').all(is_segment) {
            Ok(Key(bytes.into()))
        } else {
            Err(StoreError::InvalidKey(
                String::from_utf8_lossy(bytes).into_owned(),
            ))
        }
    }

    /// The bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The last segment.
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|&b| b == b'/').next().unwrap_or(&self.0)
    }

    /// The key as text for programs, without escapes. Bytes that are not UTF-8 are replaced.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The prefix that contains the key.
    pub fn parent(&self) -> Prefix {
        let end = self.0.iter().rposition(|&b| b == b'/').unwrap_or(0);
        Prefix(self.0.get(..end).unwrap_or_default().into())
    }

    /// The same name, as a prefix.
    pub fn to_prefix(&self) -> Prefix {
        Prefix(self.0.clone())
    }

    /// Like [`Prefix::moved`].
    pub fn moved(&self, from: &Key, to: &Key) -> Option<Key> {
        self.to_prefix().moved(from, to)?.to_key()
    }
}

impl Prefix {
    /// The prefix of every key.
    pub fn root() -> Prefix {
        Prefix(Arc::from([].as_slice()))
    }

    /// Checks `bytes`; slashes at either end are ignored.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`] for an empty, `.` or `..` segment.
    pub fn parse(bytes: &[u8]) -> Result<Prefix, StoreError> {
        let mut trimmed = bytes;
        while let Some(rest) = trimmed.strip_prefix(b"/") {
            trimmed = rest;
        }
        while let Some(rest) = trimmed.strip_suffix(b"/") {
            trimmed = rest;
        }
        if trimmed.is_empty() {
            return Ok(Prefix::root());
        }
        Key::parse(trimmed).map(|key| key.to_prefix())
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes, without a trailing `/`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Like [`Key::to_text`]; the root is `/`.
    pub fn to_text(&self) -> String {
        self.to_key()
            .map_or_else(|| "/".to_owned(), |key| key.to_text())
    }

    /// The prefix as a key; `None` for the root.
    pub fn to_key(&self) -> Option<Key> {
        (!self.is_root()).then(|| Key(self.0.clone()))
    }

    /// The key `name` (one or more segments) below this prefix.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`] as [`Key::parse`].
    pub fn key(&self, name: &[u8]) -> Result<Key, StoreError> {
        Key::parse(&self.join(name))
    }

    /// `name` below this prefix, as bytes that need not be a key. With an empty name, the common beginning of all keys
    /// below this prefix.
    pub(super) fn join(&self, name: &[u8]) -> Vec<u8> {
        if self.is_root() {
            return name.to_vec();
        }
        [self.as_bytes(), b"/", name].concat()
    }

    /// This prefix and its ancestors, the root last.
    pub fn with_ancestors(&self) -> impl Iterator<Item = Prefix> {
        let above = |prefix: &Prefix| prefix.to_key().map(|key| key.parent());
        std::iter::successors(Some(self.clone()), above)
    }

    /// The new name of this prefix after `from` was renamed to `to`; `None` if this is neither `from` nor below it.
    pub fn moved(&self, from: &Key, to: &Key) -> Option<Prefix> {
        let rest = self.as_bytes().strip_prefix(from.as_bytes())?;
        let is_at_or_below = rest.is_empty() || rest.starts_with(b"/");
        let moved = is_at_or_below.then(|| [to.as_bytes(), rest].concat())?;
        Prefix::parse(&moved).ok()
    }

    /// The part of `key` below this prefix, or `None` when it lies elsewhere.
    pub fn strip<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        if self.is_root() {
            return Some(key);
        }
        key.strip_prefix(self.as_bytes())?.strip_prefix(b"/")
    }
}

/// Writes a name with its control characters escaped, since a terminal would obey them. Backslashes
/// are doubled, so that a name that contains an escape reads differently from a name that is
/// spelled like one.
fn write_lossy(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = String::from_utf8_lossy(bytes).replace('\\', r"\\");
    write!(f, "{}", Escaped(name))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_lossy(&self.0, f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str("/");
        }
        write_lossy(&self.0, f)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefix({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_segments_are_keys() {
        for good in ["a", "a/b", "c/0/1", ".zarray", "a/...", "..a", "\u{e9}"] {
            assert!(Key::parse(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in [
            "", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/.", "a\0b",
        ] {
            assert!(Key::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Key::parse(b"latin\xe9").is_ok(), "keys are bytes");
    }

    #[test]
    fn names_are_shown_without_control_characters() {
        for (name, shown) in [
            ("it's \"a\"", "it's \"a\""),
            ("a\u{1b}[2J\nb/\u{202e}c", r"a\u{1b}[2J\nb/\u{202e}c"),
            (r"a\u{1b}", r"a\\u{1b}"),
        ] {
            let key = Key::parse(name.as_bytes()).unwrap();
            assert_eq!(key.to_string(), shown);
            assert_eq!(key.to_text(), name);
            assert_eq!(key.to_prefix().to_string(), shown);
            assert_eq!(key.to_prefix().to_text(), name);
        }
    }

    #[test]
    fn prefixes_come_with_their_ancestors() {
        let ancestry = |path: &[u8]| -> Vec<String> {
            let prefix = Prefix::parse(path).unwrap();
            prefix
                .with_ancestors()
                .map(|prefix| prefix.to_string())
                .collect()
        };
        assert_eq!(ancestry(b"a/b/c"), ["a/b/c", "a/b", "a", "/"]);
        assert_eq!(ancestry(b""), ["/"]);
    }

    #[test]
    fn prefixes_and_keys_take_each_other_apart() {
        let key = Key::parse(b"a/b/c").unwrap();
        assert_eq!(key.name(), b"c");
        assert_eq!(key.parent().as_bytes(), b"a/b");
        assert_eq!(key.parent().key(b"c").unwrap(), key);
        assert_eq!(Key::parse(b"c").unwrap().parent(), Prefix::root());
        assert_eq!(Prefix::parse(b"/a/").unwrap().strip(b"a/b").unwrap(), b"b");
        assert_eq!(Prefix::parse(b"a").unwrap().strip(b"ab"), None);
    }

    #[test]
    fn what_is_below_a_renamed_prefix_is_renamed() {
        let key = |text: &str| Key::parse(text.as_bytes()).unwrap();
        for (before, after) in [
            ("a", Some("g/b")),
            ("a/c", Some("g/b/c")),
            ("ab", None),
            ("g/a", None),
        ] {
            let moved = key(before).moved(&key("a"), &key("g/b"));
            assert_eq!(moved, after.map(key), "{before}");
        }
        assert_eq!(Prefix::root().moved(&key("a"), &key("b")), None);
    }
}
