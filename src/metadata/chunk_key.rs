//! Chunk keys: the conversion of indices to a key and back.
//!
//! | encoding | rank 0 | (5) | (1, 23) | levels of (1, 23) |
//! |---|---|---|---|---|
//! | `default` `/` | `c` | `c/5` | `c/1/23` | `c`, `1`, `23` |
//! | `default` `.` | `c` | `c.5` | `c.1.23` | `c.1.23` |
//! | `v2` `/` | `0` | `5` | `1/23` | `1`, `23` |
//! | `v2` `.` | `0` | `5` | `1.23` | `1.23` |
//! | draft `/` | `c` | `c5` | `c1/23` | `c1`, `23` |
//! | draft of zarr-python 2 | `c` or `c0` | | | |
//! | draft `.` | `c` | `c5` | `c1.23` | `c1.23` |
//! | N5 | – | `5` | `23/1` | `23`, `1` |
//! | pre-v1 | – | `__zdata__/5.blosc` | `__zdata__/1.23.blosc` | `__zdata__`, `1.23.blosc` |
//!
//! Sources: Zarr v3 core, section "Chunk key encoding"; Zarr v2, section "Chunks".

use serde_json::value::RawValue;

use super::json;
use crate::error::FormatError;
use crate::grid::Dims;

/// The kind of a chunk key encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// v3 `default`: `c` and the indices, with separators between them.
    Default,
    /// v3 `v2`, and Zarr v1 and v2 themselves: the indices alone, `0` at rank 0.
    V2,
    /// The v3 drafts: `c` directly before the indices.
    Draft,
    /// A draft's array of rank 0 as zarr-python 2 writes it: its one chunk is `c0`.
    DraftScalar,
    /// zarr-python 0.4: keys in a directory of their own that end in `.blosc`.
    PreV1,
    /// N5: the indices alone, from the last to the first.
    N5,
}

/// The capacity for a key, in bytes, which few keys exceed.
const EXPECTED_LEN: usize = 32;

const PRE_V1_DIRECTORY: &[u8] = b"__zdata__/";
const PRE_V1_SUFFIX: &[u8] = b".blosc";

/// How chunk keys, which are relative to the array, are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkKeyEncoding {
    /// The kind of the encoding.
    pub kind: KeyKind,
    /// The separator of the indices: `/` or `.`.
    pub separator: u8,
}

impl ChunkKeyEncoding {
    /// The key of the chunk at `indices`.
    pub fn encode(&self, indices: &[u64]) -> Vec<u8> {
        let mut key = Vec::with_capacity(EXPECTED_LEN);
        key.extend_from_slice(match self.kind {
            KeyKind::Default | KeyKind::Draft => b"c",
            KeyKind::DraftScalar => b"c0",
            KeyKind::V2 if indices.is_empty() => b"0",
            KeyKind::V2 | KeyKind::N5 => b"",
            KeyKind::PreV1 => PRE_V1_DIRECTORY,
        });
        for i in 0..indices.len() {
            if i > 0 || self.kind == KeyKind::Default {
                key.push(self.separator);
            }
            let index = if self.kind == KeyKind::N5 {
                indices.iter().nth_back(i)
            } else {
                indices.get(i)
            };
            push_index(&mut key, index.copied().unwrap_or_default());
        }
        if self.kind == KeyKind::PreV1 {
            key.extend_from_slice(PRE_V1_SUFFIX);
        }
        key
    }

    /// The indices of the chunk at `key`; `None` when it is not a chunk key of this rank. An index
    /// has no sign and no leading zeros. It may be outside of the grid.
    pub fn decode(&self, key: &[u8], rank: usize) -> Option<Dims> {
        let indices = match (self.kind, rank) {
            (KeyKind::Default | KeyKind::Draft, 0) => return (key == b"c").then(Dims::new),
            (KeyKind::V2, 0) => return (key == b"0").then(Dims::new),
            (KeyKind::DraftScalar, _) => return (key == b"c0").then(Dims::new),
            (KeyKind::PreV1 | KeyKind::N5, 0) => return None,
            (KeyKind::Default, _) => {
                let (separator, indices) = key.strip_prefix(b"c")?.split_first()?;
                (*separator == self.separator).then_some(indices)?
            }
            (KeyKind::V2 | KeyKind::N5, _) => key,
            (KeyKind::Draft, _) => key.strip_prefix(b"c")?,
            (KeyKind::PreV1, _) => key
                .strip_prefix(PRE_V1_DIRECTORY)?
                .strip_suffix(PRE_V1_SUFFIX)?,
        };
        let mut indices: Dims = indices
            .split(|&byte| byte == self.separator)
            .map(index_of)
            .collect::<Option<_>>()?;
        if self.kind == KeyKind::N5 {
            indices.reverse();
        }
        (indices.len() == rank).then_some(indices)
    }
}

impl ChunkKeyEncoding {
    /// The indices of the first chunk below the directory at `key`; `None` if no chunks of arrays of this rank lie
    /// there. The chunk may be outside of the grid.
    pub fn decode_directory(&self, key: &[u8], rank: usize) -> Option<Dims> {
        if self.separator != b'/' {
            return None;
        }
        let known = (0..rank).find_map(|known| self.decode(key, known))?;
        let others = std::iter::repeat_n(0, rank.checked_sub(known.len())?);
        Some(if self.kind == KeyKind::N5 {
            others.chain(known).collect()
        } else {
            known.into_iter().chain(others).collect()
        })
    }
}

/// The separator that a document spells `"/"` or `"."`.
pub(super) fn parse_separator(value: &RawValue) -> Result<u8, FormatError> {
    json::word(value, &[("/", b'/'), (".", b'.')])
}

/// The index with the decimal `digits`, which must have no sign and no leading zeros.
pub(crate) fn index_of(digits: &[u8]) -> Option<u64> {
    let plain = match digits {
        [] => false,
        [b'0', rest @ ..] => rest.is_empty(),
        _ => digits.iter().all(u8::is_ascii_digit),
    };
    plain
        .then(|| str::from_utf8(digits).ok()?.parse().ok())
        .flatten()
}

/// Adds `index` in decimal digits to `key`. It allocates no string, because listings have millions
/// of keys.
pub(crate) fn push_index(key: &mut Vec<u8>, index: u64) {
    /// The number of digits of `u64::MAX`.
    const MOST: usize = 20;
    let mut digits = [0; MOST];
    let mut rest = index;
    let mut start = MOST;
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + u8::try_from(rest % 10).expect("less than ten");
        rest /= 10;
        start = at;
        if rest == 0 {
            break;
        }
    }
    key.extend_from_slice(digits.get(start..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn encoding(kind: KeyKind, separator: u8) -> ChunkKeyEncoding {
        ChunkKeyEncoding { kind, separator }
    }

    #[test]
    fn keys_and_indices_are_inverse() {
        use KeyKind::{Default, Draft, V2};
        for (kind, separator, keys) in [
            (Default, b'/', ["c", "c/5", "c/1/23/45"]),
            (Default, b'.', ["c", "c.5", "c.1.23.45"]),
            (V2, b'/', ["0", "5", "1/23/45"]),
            (V2, b'.', ["0", "5", "1.23.45"]),
            (Draft, b'/', ["c", "c5", "c1/23/45"]),
            (Draft, b'.', ["c", "c5", "c1.23.45"]),
        ] {
            let encoding = encoding(kind, separator);
            for (key, indices) in keys.into_iter().zip([&[][..], &[5], &[1, 23, 45]]) {
                assert_eq!(encoding.encode(indices), key.as_bytes());
                let decoded = encoding.decode(key.as_bytes(), indices.len());
                assert_eq!(decoded.as_deref(), Some(indices), "{key}");
            }
        }
        for index in [0, 9, 10, 1005, u64::MAX] {
            let mut spelled = b"a".to_vec();
            push_index(&mut spelled, index);
            assert_eq!(spelled, format!("a{index}").as_bytes());
        }
        let n5 = encoding(KeyKind::N5, b'/');
        assert_eq!(n5.encode(&[1, 23, 45]), b"45/23/1");
        assert_eq!(n5.decode(b"45/23/1", 3).as_deref(), Some(&[1, 23, 45][..]));
        let last = encoding(V2, b'.').encode(&[u64::MAX]);
        assert_eq!(
            encoding(V2, b'.').decode(&last, 1).as_deref(),
            Some(&[u64::MAX][..])
        );
    }

    #[test]
    fn directories_of_chunks_are_known() {
        use KeyKind::{Default, N5, V2};
        for (kind, separator, key, expected) in [
            (Default, b'/', "c", Some([0, 0, 0])),
            (Default, b'/', "c/2", Some([2, 0, 0])),
            (Default, b'/', "c/2/3", Some([2, 3, 0])),
            (Default, b'/', "c/2/3/4", None),
            (Default, b'/', "c/x", None),
            (Default, b'.', "c.2", None),
            (V2, b'/', "2/3", Some([2, 3, 0])),
            (N5, b'/', "2/3", Some([0, 3, 2])),
        ] {
            let found = encoding(kind, separator).decode_directory(key.as_bytes(), 3);
            assert_eq!(found.as_deref(), expected.as_ref().map(|x| &x[..]), "{key}");
        }
    }

    #[test]
    fn other_keys_are_no_chunks() {
        use KeyKind::{Default, V2};
        for (kind, separator, key, rank) in [
            (Default, b'/', "c", 1),
            (Default, b'/', "c/", 1),
            (Default, b'/', "c/0", 0),
            (Default, b'/', "c/0/0", 1),
            (Default, b'/', "c/00", 1),
            (Default, b'/', "c/+1", 1),
            (Default, b'/', "c/-1", 1),
            (Default, b'/', "c/1/", 1),
            (Default, b'/', "c.1", 1),
            (Default, b'/', "c/18446744073709551616", 1),
            (Default, b'/', "1", 1),
            (Default, b'/', "", 0),
            (V2, b'.', "0.0", 1),
            (V2, b'.', "0", 2),
            (V2, b'.', "0/0", 2),
            (V2, b'.', "", 1),
            (V2, b'.', "1", 0),
            (V2, b'.', "01", 1),
            (V2, b'.', "c", 0),
            (V2, b'/', ".zarray", 1),
        ] {
            assert_eq!(
                encoding(kind, separator).decode(key.as_bytes(), rank),
                None,
                "{key}"
            );
        }
    }
}
