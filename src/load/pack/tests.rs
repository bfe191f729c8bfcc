use std::collections::BTreeMap;
use std::io::Read;

use proptest::prelude::*;

use super::*;
use crate::load::testing::Reader;
use crate::metadata::{NodeMetadata, v3};
use crate::store::{Key, MemoryStore};

/// Arrays of 2 dimensions: a name, the shape of the shards, and the codecs, in which `B` stands for `bytes` and
/// `C` for `crc32c`.
const ARRAYS: [(&str, [u64; 2], &str); 8] = [
    (
        "plain",
        [8, 6],
        r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 3], "codecs": [B], "index_codecs": [B, C]}}]"#,
    ),
    (
        "start",
        [8, 6],
        r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 3], "codecs": [B], "index_codecs": [B, C], "index_location": "start"}}]"#,
    ),
    (
        "no checksum",
        [8, 6],
        r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 6], "codecs": [B], "index_codecs": [B]}}]"#,
    ),
    (
        "transposed",
        [6, 8],
        r#"[{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 2], "codecs": [B], "index_codecs": [B, C]}}]"#,
    ),
    (
        "nested",
        [8, 6],
        r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 6], "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3], "codecs": [B], "index_codecs": [B, C], "index_location": "start"}}], "index_codecs": [B, C]}}]"#,
    ),
    (
        "nested with checksum",
        [8, 6],
        r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 6], "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [B], "index_codecs": [B, C]}}, C], "index_codecs": [B, C]}}]"#,
    ),
    (
        "gzip around",
        [8, 6],
        r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 2], "codecs": [B], "index_codecs": [B, C]}}, {"name": "gzip", "configuration": {"level": 1}}]"#,
    ),
    (
        "checksum around",
        [8, 6],
        r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [8, 2], "codecs": [B], "index_codecs": [B, C], "index_location": "start"}}, C]"#,
    ),
];

struct Fixture {
    reader: Reader,
    store: Arc<MemoryStore>,
    /// The indices of all inner chunks of the first shard that lie inside the array.
    chunks: Vec<Dims>,
}

fn fixture(number: usize, shape: [u64; 2]) -> Fixture {
    let (_, chunk, codecs) = ARRAYS[number];
    let codecs = codecs
        .replace(
            'B',
            r#"{"name": "bytes", "configuration": {"endian": "little"}}"#,
        )
        .replace("C,", r#"{"name": "crc32c"},"#)
        .replace("C]", r#"{"name": "crc32c"}]"#);
    let text = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": {shape:?}, "data_type": "float64", "fill_value": 0,
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {chunk:?}}}}},
            "chunk_key_encoding": {{"name": "default"}}, "codecs": {codecs}}}"#
    );
    let NodeMetadata::Array(metadata) = v3::parse(text.as_bytes()).unwrap() else {
        panic!("a group");
    };
    let store = Arc::new(MemoryStore::new());
    let reader = Reader::new(*metadata, Arc::<MemoryStore>::clone(&store), 1 << 24);
    let layout = reader.array.layout();
    let counts = layout.shown_grid().counts();
    let first = layout.shown_in(&[0, 0]).unwrap();
    let mut chunks = Vec::new();
    for i in 0..counts[0].min(first[0].count) {
        for j in 0..counts[1].min(first[1].count) {
            chunks.push(Dims::from_slice(&[i, j]));
        }
    }
    Fixture {
        reader,
        store,
        chunks,
    }
}

impl Fixture {
    fn key() -> Key {
        Key::parse(b"c/0/0").unwrap()
    }

    fn old(&self) -> Option<Arc<dyn Object>> {
        let Reader { loader, array } = &self.reader;
        loader.open_stored(array, &[0, 0], None).unwrap()
    }

    /// Packs the shard with these chunks, and puts it into the store.
    fn pack(&self, changed: &BTreeMap<Dims, Option<Vec<u8>>>) -> Result<u64, Error> {
        let bytes = tempfile::tempfile().unwrap();
        let mut at = 7;
        let mut new = BTreeMap::new();
        for (indices, chunk) in changed {
            let chunk = chunk.as_ref().map(|chunk| (at, chunk));
            if let Some((at, chunk)) = chunk {
                bytes.write_all_at(chunk, at).unwrap();
            }
            let len = chunk.map_or(0, |(_, chunk)| chunk.len() as u64);
            new.insert(indices.clone(), (chunk.is_some(), at, len));
            at += len + 3;
        }
        let file = Arc::new(bytes.try_clone().unwrap());
        let new = new.into_iter().map(|(indices, (is_there, offset, len))| {
            let file = Arc::clone(&file);
            let bytes = NewInnerChunk::Bytes { file, offset, len };
            let chunk = if is_there {
                bytes
            } else {
                NewInnerChunk::Erased
            };
            (indices, chunk)
        });
        let mut out = tempfile::tempfile().unwrap();
        let Reader { loader, array } = &self.reader;
        let new: BTreeMap<_, _> = new.collect();
        let n = loader.pack(array, self.old().as_ref(), &[0, 0], &new, &out)?;
        let mut shard = Vec::new();
        out.read_to_end(&mut shard).unwrap();
        bytes.set_len(0).unwrap();
        if n == 0 {
            self.store.remove(&Self::key());
        } else {
            self.store.insert(Self::key(), shard);
        }
        Ok(n)
    }

    /// The encoded bytes of all chunks.
    fn shown(&self) -> BTreeMap<Dims, Option<Vec<u8>>> {
        let Reader { loader, array } = &self.reader;
        let old = self.old();
        let find = |indices: &Dims| {
            let located = loader.locate(array, old.as_ref()?, indices).unwrap();
            located.map(|chunk| chunk.encoded.read_all().unwrap())
        };
        let all = self.chunks.iter();
        all.map(|indices| (indices.clone(), find(indices)))
            .collect()
    }
}

fn changes() -> impl Strategy<Value = Vec<BTreeMap<usize, Option<Vec<u8>>>>> {
    let chunk = proptest::option::weighted(0.7, prop::collection::vec(any::<u8>(), 1..30));
    let change = prop::collection::btree_map(0..16_usize, chunk, 0..12);
    prop::collection::vec(change, 1..6)
}

proptest! {
    #[test]
    fn packed_shards_have_the_chunks_of_a_map(
        number in 0..ARRAYS.len(),
        shape in [1..20_u64, 1..20_u64],
        changes in changes(),
    ) {
        let fixture = fixture(number, shape);
        let mut expected: BTreeMap<Dims, Option<Vec<u8>>> =
            fixture.chunks.iter().map(|indices| (indices.clone(), None)).collect();
        for change in changes {
            let n = fixture.chunks.len();
            let change: BTreeMap<Dims, _> = change
                .into_iter()
                .map(|(at, chunk)| (fixture.chunks[at % n].clone(), chunk))
                .collect();
            let kept = fixture.pack(&change).unwrap();
            expected.extend(change);
            prop_assert_eq!(kept > 0, expected.values().any(Option::is_some));
            prop_assert_eq!(fixture.shown(), expected.clone());
        }
    }
}

fn all(fixture: &Fixture, byte: u8) -> BTreeMap<Dims, Option<Vec<u8>>> {
    let chunks = fixture.chunks.iter();
    chunks
        .map(|indices| (indices.clone(), Some(vec![byte; 20])))
        .collect()
}

#[test]
fn a_shard_has_no_gaps_and_the_order_of_its_slots() {
    let fixture = fixture(0, [16, 12]);
    fixture.pack(&all(&fixture, 1)).unwrap();
    let one = BTreeMap::from([(fixture.chunks[1].clone(), Some(vec![2; 3]))]);
    assert_eq!(fixture.pack(&one).unwrap(), 4);
    let shard = fixture.old().unwrap();
    assert_eq!(shard.meta().size(), 3 * 20 + 3 + 4 * 16 + 4);
    let mut bytes = [0; 26];
    shard.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, *[[1; 20].as_slice(), &[2; 3], &[1; 3]].concat());
}

#[test]
fn a_wrong_index_is_an_error_unless_all_chunks_are_new() {
    for number in 0..ARRAYS.len() {
        let fixture = fixture(number, [5, 7]);
        fixture.store.insert(Fixture::key(), vec![9; 11]);
        let every = all(&fixture, 3);
        let mut some = every.clone();
        some.pop_first();
        let error = fixture.pack(&some).unwrap_err();
        assert!(matches!(error, Error::Chunk { .. }), "{number}: {error}");
        fixture.pack(&every).unwrap();
        assert_eq!(fixture.shown(), every, "{number}");
    }
}

#[test]
fn chunks_outside_of_the_array_are_kept() {
    for number in 0..ARRAYS.len() {
        let (large, small) = (fixture(number, [16, 16]), fixture(number, [3, 2]));
        let stored = |fixture: &Fixture| {
            let slice = Slice::of_object(fixture.old().unwrap(), "a shard".into());
            slice.read_all().unwrap()
        };
        let mut expected = all(&large, 1);
        large.pack(&expected).unwrap();
        small.store.insert(Fixture::key(), stored(&large));
        let inside = all(&small, 2);
        assert!(inside.len() < expected.len(), "{number}");
        small.pack(&inside).unwrap();
        large.store.insert(Fixture::key(), stored(&small));
        expected.extend(inside);
        assert_eq!(large.shown(), expected, "{number}");
    }
}

#[test]
fn bytes_that_several_entries_share_are_not_multiplied() {
    let fixture = fixture(2, [16, 12]);
    let entry: Vec<u8> = [0_u64, 40].into_iter().flat_map(u64::to_le_bytes).collect();
    let shard = [vec![1; 40], entry.repeat(4)].concat();
    fixture.store.insert(Fixture::key(), shard);
    assert_eq!(fixture.shown().into_values().flatten().count(), 4);
    let one = BTreeMap::from([(fixture.chunks[0].clone(), Some(vec![2; 3]))]);
    let error = fixture.pack(&one).unwrap_err();
    assert!(
        error.to_string().contains("entries of the index overlap"),
        "{error}"
    );
}
