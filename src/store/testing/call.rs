//! The calls to a store.

use std::fmt;
use std::ops::Range;

use crate::store::{Key, Prefix};

/// The kinds of calls that are requests to a remote store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// The attributes of a key, or of the root.
    Stat,
    /// An object is opened.
    Open,
    /// The first page of a listing.
    List,
    /// Each page of a listing after the first.
    Next,
    /// One or several ranges of an object.
    Read,
    /// An object is opened and read.
    Fetch,
    /// An object is checked for another version.
    Verify,
}

impl CallKind {
    const ALL: [CallKind; 7] = [
        CallKind::Stat,
        CallKind::Open,
        CallKind::List,
        CallKind::Next,
        CallKind::Read,
        CallKind::Fetch,
        CallKind::Verify,
    ];

    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        match self {
            CallKind::Stat => "stat",
            CallKind::Open => "open",
            CallKind::List => "list",
            CallKind::Next => "next",
            CallKind::Read => "read",
            CallKind::Fetch => "fetch",
            CallKind::Verify => "verify",
        }
    }

    /// The kind with this name.
    pub fn of_name(name: &str) -> Option<CallKind> {
        CallKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One call. As text, it is a line such as `read a/c/0 0..4096`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The kind of the call.
    pub kind: CallKind,
    /// The key, or the prefix that is listed.
    pub path: Prefix,
    /// The ranges to read, of a [`CallKind::Read`] or [`CallKind::Fetch`].
    pub ranges: Vec<Range<u64>>,
}

impl Call {
    /// A call that reads no bytes.
    pub(super) fn new(kind: CallKind, path: Prefix) -> Call {
        let ranges = Vec::new();
        Call { kind, path, ranges }
    }

    /// A call for `ranges` of the bytes at `key`.
    pub(super) fn for_bytes(
        kind: CallKind,
        key: &Key,
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) -> Call {
        Call {
            kind,
            path: key.to_prefix(),
            ranges: ranges.into_iter().collect(),
        }
    }

    /// Whether it is a request to a remote store, which a read of no bytes is not.
    pub fn is_request(&self) -> bool {
        self.kind != CallKind::Read || self.ranges.iter().any(|range| !range.is_empty())
    }

    /// Whether it reads bytes of an object that is not a metadata document, going by its name.
    pub fn is_for_chunk(&self) -> bool {
        let name = self.path.to_key();
        let name = name.as_ref().map_or(&b""[..], Key::name);
        let is_document = name.ends_with(b".json") || name.starts_with(b".z");
        matches!(self.kind, CallKind::Read | CallKind::Fetch) && !is_document
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.path)?;
        let mut ranges = self.ranges.iter();
        ranges.try_for_each(|range| write!(f, " {}..{}", range.start, range.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, ranges: &[Range<u64>]) -> Call {
        let key = Key::parse(key.as_bytes()).unwrap();
        Call::for_bytes(CallKind::Read, &key, ranges.to_vec())
    }

    #[test]
    fn a_call_is_a_line() {
        let call = read("a/c/0", &[0..10, 20..24]);
        assert_eq!(call.to_string(), "read a/c/0 0..10 20..24");
        let call = Call::new(CallKind::List, Prefix::root());
        assert_eq!(call.to_string(), "list /");
        for kind in CallKind::ALL {
            assert_eq!(CallKind::of_name(kind.name()), Some(kind));
        }
    }

    #[test]
    fn no_bytes_are_no_request() {
        assert!(read("a", &[0..0, 2..3]).is_request());
        assert!(!read("a", &[5..5, 7..7]).is_request());
        assert!(Call::new(CallKind::Verify, Prefix::root()).is_request());
    }

    #[test]
    fn documents_are_no_chunks() {
        for (key, is_chunk) in [
            ("a/c/0", true),
            ("0.0", true),
            ("a/zarr.json", false),
            (".zarray", false),
            ("a/.zmetadata", false),
        ] {
            assert_eq!(read(key, &[]).is_for_chunk(), is_chunk, "{key}");
        }
        let stat = Call::new(CallKind::Stat, Prefix::parse(b"a/c/0").unwrap());
        assert!(!stat.is_for_chunk());
    }
}
