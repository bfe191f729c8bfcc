//! The names in a URL.
//!
//! A name is any bytes but `/` and NUL. In a URL it is percent-encoded. A path has one spelling only: `.`, `..`, empty
//! names and an encoded slash are refused, so that no two programs can disagree about what a path means.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// The characters that are encoded in a name: all but those that RFC 3986 calls unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The longest path, decoded.
const MOST_BYTES: usize = 8 << 10;

/// A path of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestPath {
    /// The names from the root on, with slashes between them; empty for the root.
    pub(super) names: Vec<u8>,
    /// Whether the path ends in a slash, so that only a directory is meant.
    pub(super) is_directory: bool,
}

impl RequestPath {
    /// Parses the path of a URL, which begins with a slash. `None` for a path that nothing can have.
    pub(super) fn parse(path: &str) -> Option<RequestPath> {
        let path = path.strip_prefix('/')?;
        let mut names = Vec::new();
        if path.is_empty() {
            return Some(RequestPath {
                names,
                is_directory: true,
            });
        }
        let directory = path.strip_suffix('/');
        let is_directory = directory.is_some();
        for name in directory.unwrap_or(path).split('/') {
            let name: Vec<u8> = percent_decode_str(name).collect();
            if matches!(&name[..], b"" | b"." | b"..")
                || name.iter().any(|byte| b"/\0".contains(byte))
            {
                return None;
            }
            if !names.is_empty() {
                names.push(b'/');
            }
            names.extend(name);
        }
        (names.len() <= MOST_BYTES).then_some(RequestPath {
            names,
            is_directory,
        })
    }

    /// The last name; empty for the root.
    pub(super) fn last(&self) -> &[u8] {
        let mut names = self.names.rsplit(|&byte| byte == b'/');
        names.next().unwrap_or_default()
    }

    /// Whether this is the directory of the server itself, or below it. The view shows things of its own there, which
    /// are for the user of a mount alone.
    pub(super) fn is_own(&self) -> bool {
        let mut names = self.names.split(|&byte| byte == b'/');
        names.any(|name| name == b".zarr-mount")
    }

    /// The path of a URL for this, without a slash at its end.
    pub(super) fn href(&self) -> String {
        let names = self.names.split(|&byte| byte == b'/');
        let names = names.filter(|name| !name.is_empty());
        names.fold(String::new(), |href, name| href + "/" + &encode(name))
    }
}

/// `name` as a part of a URL.
pub(super) fn encode(name: &[u8]) -> String {
    percent_encode(name, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        let path = |names: &[u8], is_directory| RequestPath {
            names: names.to_vec(),
            is_directory,
        };
        for (text, expected) in [
            ("/", path(b"", true)),
            ("/a", path(b"a", false)),
            ("/a/", path(b"a", true)),
            ("/a/b%20c.npy", path(b"a/b c.npy", false)),
            ("/%ff/...", path(b"\xff/...", false)),
            // A percent sign that encodes nothing is itself.
            ("/100%", path(b"100%", false)),
        ] {
            assert_eq!(RequestPath::parse(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "*",
            "a",
            "//",
            "//a",
            "/a//b",
            "/a//",
            "/.",
            "/..",
            "/../etc/passwd",
            "/a/../b",
            "/%2e%2e/b",
            "/%2E./b",
            "/a%2fb",
            "/a%00",
            "/a/..%2f..%2fetc",
        ] {
            assert_eq!(RequestPath::parse(text), None, "{text}");
        }
        assert_eq!(RequestPath::parse(&format!("/{}", "a".repeat(9000))), None);
    }

    #[test]
    fn a_name_becomes_a_url_and_comes_back() {
        for name in [&b"a b"[..], b"%2e", b"?#&<>\"'", b"\xff\n", "ä".as_bytes()] {
            let path = RequestPath::parse(&format!("/x/{}", encode(name))).unwrap();
            assert_eq!(path.last(), name);
            assert_eq!(RequestPath::parse(&path.href()), Some(path));
        }
    }

    #[test]
    fn names_of_the_server_are_known_everywhere() {
        for (path, is_own) in [
            ("/.zarr-mount/log", true),
            ("/keys/.zarr%2dmount", true),
            ("/.zarr-mounts", false),
        ] {
            assert_eq!(RequestPath::parse(path).unwrap().is_own(), is_own, "{path}");
        }
    }
}
