//! Names below an array, as parts of chunk keys.
//!
//! ```text
//! default `/`   c  /  0  /  1        a/c is a directory of no indices yet, a/c/0 of one
//! default `.`   c.0.1                one file name
//! v2 `/`            0  /  1          the array's own directory has no indices yet
//! v2 `.`        0.1
//! draft `/`         c0 / 1           as v2, but for the first name
//! draft `.`     c0.1
//! pre-v1        __zdata__/0.1.blosc  one file name in a directory of no indices yet
//! ```
//!
//! A view of another version spells stored keys differently. Both spellings have the same levels:
//! the shown directory of some indices corresponds to the stored directory of the same indices.
//!
//! Source: Zarr v3 core, section "Chunk key encodings".

use crate::grid::Dims;
use crate::hierarchy::ArrayNode;
use crate::metadata::{ChunkKeyEncoding, KeyKind, index_of, push_index};

/// The meaning of a name in the directory of an array, or in a directory of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::view) enum ChunkName {
    /// The directory of the chunks that begin with these indices.
    Directory(Dims),
    /// The chunk of these indices.
    Chunk(Dims),
    /// Not part of a chunk key.
    Other,
}

/// How the chunk keys of an array of some rank are split into names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::view) struct ChunkNames {
    pub(in crate::view) encoding: ChunkKeyEncoding,
    pub(in crate::view) rank: usize,
}

impl ChunkNames {
    /// The names under which the chunks of `node` are stored.
    pub(in crate::view) fn of(node: &ArrayNode) -> ChunkNames {
        ChunkNames {
            encoding: node.metadata.chunk_keys,
            rank: node.metadata.shape.len(),
        }
    }

    /// Whether each index of a chunk is a name of its own, rather than all indices one name.
    pub(in crate::view) fn is_nested(self) -> bool {
        self.encoding.separator == b'/' && self.rank > 0
    }

    /// The directory that holds all chunks, if it is not the array's own directory.
    pub(in crate::view) fn root(self) -> Option<&'static [u8]> {
        match self.encoding.kind {
            KeyKind::Default if self.is_nested() => Some(b"c"),
            KeyKind::PreV1 => Some(b"__zdata__"),
            _ => None,
        }
    }

    /// The meaning of `name` in the array's own directory.
    pub(in crate::view) fn in_array(self, name: &[u8]) -> ChunkName {
        match self.root() {
            Some(root) if root == name => ChunkName::Directory(Dims::new()),
            Some(_) => ChunkName::Other,
            None => self.in_directory(&[], name),
        }
    }

    /// The number of names in the array's own directory, with a grid of `counts`, that are made of one index: those of
    /// chunks, or of directories of chunks.
    pub(in crate::view) fn n_names_in_array(self, counts: &[u64]) -> u64 {
        let has_names = self.root().is_none() && (self.is_nested() || self.rank == 1);
        counts.first().copied().filter(|_| has_names).unwrap_or(0)
    }

    /// The meaning of `name` in the directory of the chunks that begin with `first`.
    pub(in crate::view) fn in_directory(self, first: &[u64], name: &[u8]) -> ChunkName {
        if !self.is_nested() {
            return match self.encoding.decode(&self.below(first, name), self.rank) {
                Some(indices) => ChunkName::Chunk(indices),
                None => ChunkName::Other,
            };
        }
        let digits = match self.encoding.kind {
            KeyKind::Draft if first.is_empty() => name.strip_prefix(b"c"),
            _ => Some(name),
        };
        let Some(index) = digits.and_then(index_of) else {
            return ChunkName::Other;
        };
        let mut indices: Dims = first.into();
        indices.push(index);
        if indices.len() == self.rank {
            ChunkName::Chunk(indices)
        } else {
            ChunkName::Directory(indices)
        }
    }

    /// The indices of the chunk with this `key`, which is relative to the array.
    pub(in crate::view) fn indices_of(self, key: &[u8]) -> Option<Dims> {
        self.encoding.decode(key, self.rank)
    }

    /// The last name in the key of a chunk, or of a directory of chunks.
    pub(in crate::view) fn name_of(self, indices: &[u64]) -> Vec<u8> {
        if let (true, Some((last, before))) = (self.is_nested(), indices.split_last()) {
            let is_first = before.is_empty() && self.encoding.kind == KeyKind::Draft;
            let mut name = if is_first { b"c".to_vec() } else { Vec::new() };
            push_index(&mut name, *last);
            return name;
        }
        let mut key = if indices.len() == self.rank {
            self.encoding.encode(indices)
        } else {
            self.directory_key(indices)
        };
        if self.root().is_none() {
            return key;
        }
        let name = key.iter().rposition(|&byte| byte == b'/');
        key.split_off(name.map_or(0, |slash| slash + 1))
    }

    /// The key, relative to the array, of the directory of the chunks that begin with `first`;
    /// empty for the array's own directory. In N5, no other directory has all of them.
    pub(in crate::view) fn directory_key(self, first: &[u64]) -> Vec<u8> {
        if self.encoding.kind == KeyKind::N5 {
            return Vec::new();
        }
        let mut key = self.root().unwrap_or_default().to_vec();
        for index in first {
            if !key.is_empty() {
                key.push(b'/');
            } else if self.encoding.kind == KeyKind::Draft {
                key.push(b'c');
            }
            push_index(&mut key, *index);
        }
        key
    }

    /// The key, relative to the array, of `name` in the directory of the chunks that begin with
    /// `first`.
    fn below(self, first: &[u64], name: &[u8]) -> Vec<u8> {
        let mut key = self.directory_key(first);
        if !key.is_empty() {
            key.push(b'/');
        }
        key.extend_from_slice(name);
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
    fn names_are_taken_one_level_at_a_time() {
        use KeyKind::{Default, Draft, PreV1, V2};
        for (kind, separator, indices, key) in [
            (Default, b'/', &[3, 10][..], "c/3/10"),
            (Default, b'/', &[3], "c/3"),
            (Default, b'/', &[], "c"),
            (Default, b'.', &[3, 10], "c.3.10"),
            (V2, b'/', &[3, 10], "3/10"),
            (V2, b'/', &[3], "3"),
            (V2, b'/', &[], "0"),
            (V2, b'.', &[3, 10], "3.10"),
            (Draft, b'/', &[3, 10], "c3/10"),
            (Draft, b'/', &[3], "c3"),
            (Draft, b'/', &[], "c"),
            (Draft, b'.', &[3, 10], "c3.10"),
            (PreV1, b'.', &[3, 10], "__zdata__/3.10.blosc"),
        ] {
            let names = names(kind, separator, indices.len());
            let mut found = ChunkName::Other;
            let mut spelled = Vec::new();
            for segment in key.split('/') {
                found = match &found {
                    ChunkName::Directory(first) => names.in_directory(first, segment.as_bytes()),
                    _ => names.in_array(segment.as_bytes()),
                };
                let (ChunkName::Directory(here) | ChunkName::Chunk(here)) = &found else {
                    panic!("{key}: {segment}");
                };
                spelled.push(String::from_utf8(names.name_of(here)).unwrap());
                if let ChunkName::Directory(here) = &found {
                    let directory = names.directory_key(here);
                    assert_eq!(directory, spelled.join("/").as_bytes(), "{key}");
                }
            }
            assert_eq!(found, ChunkName::Chunk(indices.into()), "{key}");
            assert_eq!(spelled.join("/"), key);
        }
    }

    #[test]
    fn other_names_are_not_parts_of_chunk_keys() {
        use KeyKind::{Default, Draft, PreV1, V2};
        for (kind, separator, rank, name) in [
            (Default, b'/', 2, "0"),
            (Default, b'/', 2, "c.0.0"),
            (Default, b'.', 2, "c"),
            (V2, b'/', 2, "c"),
            (V2, b'.', 2, "0"),
            (Draft, b'/', 2, "0"),
            (Draft, b'/', 2, "c"),
            (PreV1, b'.', 2, "0.0"),
            (PreV1, b'.', 2, "0.0.blosc"),
        ] {
            let names = names(kind, separator, rank);
            assert_eq!(names.in_array(name.as_bytes()), ChunkName::Other, "{name}");
        }
        let pre_v1 = names(PreV1, b'.', 2);
        assert_eq!(pre_v1.in_directory(&[], b"0.0"), ChunkName::Other);
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
