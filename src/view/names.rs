//! Names below an array: which are parts of chunk keys.
//!
//! ```text
//! default `/`   c  /  0  /  1        a/c is a directory of no indices yet, a/c/0 of one
//! default `.`   c.0.1                one file name
//! v2 `/`            0  /  1          the array's own directory has no indices yet
//! v2 `.`        0.1
//! ```
//!
//! Source: Zarr v3 core, section "Chunk key encodings".

use crate::grid::Dims;
use crate::metadata::{ChunkKeyEncoding, KeyKind, index_of};

/// What a name in an array's directory, or in a directory of chunks, is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// The directory of the chunks whose first indices are these.
    Directory(Dims),
    /// A chunk.
    Chunk(Dims),
    /// No part of a chunk key.
    Other,
}

/// How chunk keys of an array of some rank fall into names.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkNames {
    pub(super) encoding: ChunkKeyEncoding,
    pub(super) rank: usize,
}

impl ChunkNames {
    /// Whether a chunk is a path of directories rather than one name.
    pub(super) fn is_nested(self) -> bool {
        self.encoding.separator == b'/' && self.rank > 0
    }

    /// What `name` in the array's own directory is.
    pub(super) fn in_array(self, name: &[u8]) -> Name {
        if !self.is_nested() {
            return match self.encoding.decode(name, self.rank) {
                Some(indices) => Name::Chunk(indices),
                None => Name::Other,
            };
        }
        match self.encoding.kind {
            KeyKind::Default if name == b"c" => Name::Directory(Dims::new()),
            KeyKind::Default => Name::Other,
            KeyKind::V2 => self.in_directory(&[], name),
            KeyKind::Draft => match name.strip_prefix(b"c") {
                Some(index) => self.in_directory(&[], index),
                None => Name::Other,
            },
            KeyKind::PreV1 => Name::Other,
        }
    }

    /// What `name` in the directory of the chunks that begin with `first` is.
    pub(super) fn in_directory(self, first: &[u64], name: &[u8]) -> Name {
        let Some(index) = index_of(name) else {
            return Name::Other;
        };
        let mut indices: Dims = first.into();
        indices.push(index);
        if indices.len() == self.rank {
            Name::Chunk(indices)
        } else {
            Name::Directory(indices)
        }
    }

    /// The name of a chunk, or of a directory of chunks, in the directory that holds it.
    pub(super) fn name_of(self, indices: &[u64]) -> Vec<u8> {
        match indices.last() {
            Some(index) if self.is_nested() => index.to_string().into_bytes(),
            None if self.is_nested() => b"c".to_vec(),
            _ => self.encoding.encode(indices),
        }
    }

    /// The key, relative to the array, of the directory of the chunks that begin with `first`;
    /// empty for the array's own.
    pub(super) fn directory_key(self, first: &[u64]) -> Vec<u8> {
        let mut key = match self.encoding.kind {
            KeyKind::Default => b"c".to_vec(),
            _ => Vec::new(),
        };
        for index in first {
            if !key.is_empty() {
                key.push(b'/');
            }
            key.extend_from_slice(index.to_string().as_bytes());
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kind: KeyKind, separator: u8, rank: usize) -> ChunkNames {
        let encoding = ChunkKeyEncoding { kind, separator };
        ChunkNames { encoding, rank }
    }

    #[test]
    fn nested_names_are_taken_one_level_at_a_time() {
        let default = names(KeyKind::Default, b'/', 2);
        assert_eq!(default.in_array(b"c"), Name::Directory(Dims::new()));
        assert_eq!(default.in_array(b"0"), Name::Other);
        assert_eq!(
            default.in_directory(&[], b"3"),
            Name::Directory([3].as_slice().into())
        );
        assert_eq!(
            default.in_directory(&[3], b"0"),
            Name::Chunk([3, 0].as_slice().into())
        );
        assert_eq!(default.directory_key(&[3]), b"c/3");
        let v2 = names(KeyKind::V2, b'/', 1);
        assert_eq!(v2.in_array(b"7"), Name::Chunk([7].as_slice().into()));
        assert_eq!(v2.directory_key(&[]), b"");
    }

    #[test]
    fn only_canonical_numbers_are_indices() {
        for bad in [
            "",
            "00",
            "01",
            "+1",
            "-1",
            "1a",
            " 1",
            "18446744073709551616",
        ] {
            assert_eq!(index_of(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(index_of(b"18446744073709551615"), Some(u64::MAX));
    }
}
