//! Keys for entry names that are not valid keys.
//!
//! Names in a zip file are any bytes. A name with a segment that no key has (empty, `.` or `..`, or with a NUL) is
//! percent-encoded. This encodes the segments `.` and `..`, every NUL, and, so that no two names become the same key,
//! every `%`. An empty segment becomes `%2F`. Other names stay as they are.
//!
//! ```text
//! ../../etc/passwd   %2E%2E/%2E%2E/etc/passwd
//! /data/zarr.json    %2F/data/zarr.json
//! a//50%             a/%2F/50%25
//! ```
//!
//! Some programs of Windows write `\` between the segments, where the format wants `/`. Where no
//! name of a zip file has a `/`, `\` separates them too, as for Info-ZIP's unzip ([`Separator`]).

use std::borrow::Cow;

/// The byte that separates the segments of all names of a zip file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Separator {
    #[default]
    Slash,
    Backslash,
}

impl Separator {
    /// `name` with `/` between its segments.
    pub(super) fn slashed(self, name: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Separator::Slash => Cow::Borrowed(name),
            Separator::Backslash => {
                let slash = |&byte: &u8| if byte == b'\\' { b'/' } else { byte };
                Cow::Owned(name.iter().map(slash).collect())
            }
        }
    }
}

/// `name`, with `/` between its segments, as the bytes of a key.
pub(super) fn to_key(name: &[u8]) -> Cow<'_, [u8]> {
    let is_key = |segment: &[u8]| !matches!(segment, b"" | b"." | b"..") && !segment.contains(&0);
    if name.split(|&byte| byte == b'/').all(is_key) {
        return Cow::Borrowed(name);
    }
    let mut key = Vec::with_capacity(name.len() + 16);
    for (number, segment) in name.split(|&byte| byte == b'/').enumerate() {
        if number > 0 {
            key.push(b'/');
        }
        match segment {
            b"" => key.extend_from_slice(b"%2F"),
            b"." => key.extend_from_slice(b"%2E"),
            b".." => key.extend_from_slice(b"%2E%2E"),
            _ => segment.iter().for_each(|&byte| match byte {
                0 => key.extend_from_slice(b"%00"),
                b'%' => key.extend_from_slice(b"%25"),
                _ => key.push(byte),
            }),
        }
    }
    Cow::Owned(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;

    #[test]
    fn keys_stay_as_they_are() {
        for name in [
            "a",
            "zarr.json",
            "a/50%",
            "%2E/a",
            "..a",
            "a\\..\\b",
            "\u{e9}",
        ] {
            assert_eq!(to_key(name.as_bytes()), name.as_bytes(), "{name}");
        }
        assert_eq!(&*to_key(b"latin\xe9"), b"latin\xe9");
    }

    #[test]
    fn others_are_encoded_into_keys_that_differ() {
        for (name, expected) in [
            ("", "%2F"),
            ("/", "%2F/%2F"),
            ("/data/zarr.json", "%2F/data/zarr.json"),
            ("a//50%", "a/%2F/50%25"),
            ("a//50%25", "a/%2F/50%2525"),
            ("../../etc/passwd", "%2E%2E/%2E%2E/etc/passwd"),
            ("./a", "%2E/a"),
            ("./%2E", "%2E/%252E"),
            ("%2E/.", "%252E/%2E"),
            ("a\0b", "a%00b"),
        ] {
            let key = to_key(name.as_bytes());
            assert_eq!(key, expected.as_bytes(), "{name:?}");
            assert!(Key::parse(&key).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn backslashes_become_slashes_where_they_separate() {
        for (name, slashed) in [
            ("zarr.json", "zarr.json"),
            ("a\\c\\0", "a/c/0"),
            ("a\\", "a/"),
        ] {
            let found = Separator::Backslash.slashed(name.as_bytes());
            assert_eq!(&*found, slashed.as_bytes());
            let found = Separator::Slash.slashed(name.as_bytes());
            assert_eq!(&*found, name.as_bytes());
        }
    }
}
