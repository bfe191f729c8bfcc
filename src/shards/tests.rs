//! A shard with staged inner chunks, and the journals that are found in a store.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use super::*;
use crate::budget::Budget;
use crate::counters::LoadCounters;
use crate::fresh::Freshness;
use crate::grid::Dims;
use crate::hierarchy::{ArrayNode, Node};
use crate::load::{ChunkedArray, GatedStore, LoaderParts, Shards, Sources};
use crate::store::coarse;
use crate::store::{
    DirStore, Durability, PartContent, Replaces, Store, StoreError, Symlinks, WriterOptions,
};
use crate::threads::{Limits, Threads};

/// The number of inner chunks that the tests of power loss change, of the sixteen in the first shard.
pub(super) const SLOTS: usize = 4;

/// The document of the array `a`, whose inner chunks are one uncompressed byte each.
pub(super) const DOCUMENT: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [8, 2], "data_type": "uint8",
    "fill_value": 0, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 2]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "sharding_indexed", "configuration": {
    "chunk_shape": [1, 1], "codecs": [{"name": "bytes"}], "index_codecs": [
    {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}]}"#;

/// A store with the array `a`. Its packer has ended, because the calls of one thread are recorded.
pub(super) struct Mounted {
    staging: Arc<Staging>,
    node: Arc<ArrayNode>,
    array: Arc<ChunkedArray>,
}

/// The staging of a store that `writer` changes, without any staged parts.
pub(super) fn staging(store: Arc<dyn Store>, writer: DirWriter) -> Arc<Staging> {
    const SECOND: Duration = Duration::from_secs(1);
    let counters = Arc::new(LoadCounters::default());
    let budget = Budget::with_patience(16 << 20, SECOND);
    let store = GatedStore::wrap(store);
    let profile = store.profile();
    let freshness = Freshness::Checked(Duration::ZERO);
    let limits = Limits {
        names: 1,
        changes: 1,
        reads: 1,
        prefetches: 1,
    };
    let loader = Loader::new(LoaderParts {
        sources: Sources::new(Arc::clone(&store), freshness, Arc::clone(&counters)),
        cache: Cache::new(Arc::clone(&budget), counters, profile),
        threads: Threads::new(limits),
        decoders: 1,
        max_chunk_bytes: 1 << 20,
        timeout: SECOND,
        readahead: None,
    });
    let hierarchy = Arc::new(Hierarchy::new(store, budget, freshness));
    Staging::new(Arc::new(writer), loader, hierarchy, Arc::default())
}

impl Mounted {
    pub(super) fn new(path: &Path, durability: Durability) -> Mounted {
        let store: Arc<dyn Store> = Arc::new(DirStore::open(path, Symlinks::Inside).unwrap());
        let options = WriterOptions {
            durability,
            ..WriterOptions::default()
        };
        let writer = store.writer(&options).unwrap().unwrap();
        let staging = staging(store, writer);
        let prefix = Prefix::parse(b"a").unwrap();
        let Node::Array(node) = staging.hierarchy.node(&prefix).unwrap() else {
            panic!("no array");
        };
        let array = Arc::new(ChunkedArray::new(&node, Shards::Expand).unwrap());
        staging.packer.end();
        Mounted {
            staging,
            node,
            array,
        }
    }

    pub(super) fn staging(&self) -> &Arc<Staging> {
        &self.staging
    }

    pub(super) fn inner(&self, slot: usize) -> InnerChunk {
        let indices = Dims::from_slice(&[slot as u64 / 2, slot as u64 % 2]);
        InnerChunk::new(self.staging(), (&self.node, &self.array), &indices).unwrap()
    }

    pub(super) fn bytes(&self, slot: usize) -> Option<Vec<u8>> {
        let found = self.inner(slot).find().unwrap()?;
        let mut bytes = vec![0; usize::try_from(found.encoded.len()).unwrap()];
        found.encoded.read_at(0, &mut bytes).unwrap();
        Some(bytes)
    }
}

/// Stages an inner chunk of this value, whatever the chunk was before.
pub(super) fn put(inner: &InnerChunk, value: u8) {
    let when = (SystemTime::now(), inner.access_by_document().unwrap());
    let put = inner.put(Some(&[value]), (Replaces::Anything, None), when);
    put.unwrap();
}

/// Writes the document of the array `a` with this shape to the store in `folder`.
fn write_document(folder: &tempfile::TempDir, shape: &str) {
    let document = DOCUMENT.replace("\"shape\": [8, 2]", &format!("\"shape\": {shape}"));
    fs::write(folder.path().join("a/zarr.json"), document).unwrap();
}

/// The store in `folder`, after the array got this shape.
fn of_shape(folder: &tempfile::TempDir, shape: &str) -> Mounted {
    write_document(folder, shape);
    Mounted::new(folder.path(), Durability::Never)
}

/// A store in which the array `a` has no chunks.
pub(super) fn store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/c/0")).unwrap();
    fs::write(folder.path().join("a/zarr.json"), DOCUMENT).unwrap();
    folder
}

#[test]
fn a_record_of_an_unknown_inner_chunk_does_not_stop_the_others_of_its_journal() {
    let folder = store();
    let mounted = Mounted::new(folder.path(), Durability::Never);
    let writer = &mounted.staging().writer;
    let shard = mounted.inner(0).shard().clone();
    let mut journal = writer.begin_journal(&shard, DOCUMENT.as_bytes()).unwrap();
    // The shard has eight times two slots.
    for slot in [16, u64::MAX, 1] {
        let nothing = PartContent::Nothing;
        journal.append(slot, Some(&[7]), nothing).unwrap();
    }
    let found = mounted.staging().recover().unwrap();
    let expected = Recovered {
        packed: 1,
        ..Recovered::default()
    };
    assert_eq!(found, expected);
    assert_eq!(mounted.bytes(0), None);
    assert_eq!(mounted.bytes(1), Some(vec![7]));
    let journals = folder.path().join(".zarr-mount/journal");
    assert!(fs::read_dir(journals).unwrap().next().is_none());
}

#[test]
fn nothing_is_staged_for_a_shard_that_is_a_symbolic_link() {
    let folder = store();
    let [shard, other] = ["a/c/0/0", "other"].map(|name| folder.path().join(name));
    let first = Mounted::new(folder.path(), Durability::Never);
    put(&first.inner(0), 7);
    first.staging().finish();
    drop(first);
    fs::rename(&shard, &other).unwrap();
    std::os::unix::fs::symlink("../../../other", &shard).unwrap();
    let before = fs::read(&other).unwrap();

    let mounted = Mounted::new(folder.path(), Durability::Never);
    let inner = mounted.inner(0);
    let when = (SystemTime::now(), inner.access_by_document().unwrap());
    let put = inner.put(Some(&[8]), (Replaces::Anything, None), when);
    for changed in [put.map(drop), inner.erase()] {
        let is_refused = matches!(changed, Err(Error::Store(StoreError::Denied { .. })));
        assert!(is_refused, "{changed:?}");
    }
    assert_eq!(mounted.bytes(0), Some(vec![7]));
    mounted.staging().finish();
    assert_eq!(fs::read(&other).unwrap(), before);
    assert!(fs::symlink_metadata(&shard).unwrap().is_symlink());
    let journals = folder.path().join(".zarr-mount/journal");
    assert!(!journals.exists() || fs::read_dir(journals).unwrap().next().is_none());
}

#[test]
fn inner_chunks_outside_of_an_array_that_has_become_smaller_can_be_erased() {
    let folder = store();
    let large = of_shape(&folder, "[16, 2]");
    for slot in 0..32 {
        put(&large.inner(slot), 7);
    }
    large.staging().finish();
    drop(large);
    // One shard is partly inside, and one is outside.
    let small = of_shape(&folder, "[3, 2]");
    for slot in [7, 15, 16, 31] {
        small.inner(slot).erase().unwrap();
    }
    assert!(small.inner(31).erase().is_err());
    small.staging().finish();
    drop(small);
    let large = of_shape(&folder, "[16, 2]");
    let erased: Vec<_> = (0..32)
        .filter(|slot| large.bytes(*slot).is_none())
        .collect();
    assert_eq!(erased, [7, 15, 16, 31]);
}

#[test]
fn a_sync_waits_for_the_part_that_has_replaced_its_own() {
    let folder = store();
    let mounted = Mounted::new(folder.path(), Durability::Never);
    let staging = mounted.staging();
    let inner = mounted.inner(0);
    put(&inner, 7);
    let shard = staging.shard(inner.shard()).unwrap();
    let asked = staging.last_part.load(Ordering::Relaxed);
    put(&inner, 8);
    staging.pack_until(&shard, asked).unwrap();
    assert_eq!(staging.n_parts(), 0);
    assert_eq!(mounted.bytes(0), Some(vec![8]));
}

#[test]
fn a_sync_of_an_inner_chunk_waits_for_drafts_of_others() {
    let folder = store();
    let mounted = Mounted::new(folder.path(), Durability::Never);
    let first = mounted.inner(0);
    let other = mounted.inner(1);
    put(&first, 7);
    let draft = other.begin_draft();
    assert_eq!(mounted.staging().n_drafts(first.shard()), 1);
    std::thread::scope(|scope| {
        let syncs = scope.spawn(|| first.sync(None, None).unwrap());
        put(&other, 7);
        drop(draft);
        syncs.join().unwrap();
        other.sync(None, None).unwrap();
    });
    assert_eq!(mounted.staging().n_drafts(first.shard()), 0);
    assert_eq!(
        [mounted.bytes(0), mounted.bytes(1)],
        [Some(vec![7]), Some(vec![7])]
    );
    assert_eq!(mounted.staging().n_parts(), 0);
}

#[test]
fn a_shard_is_read_again_if_its_times_do_not_reveal_a_write() {
    coarse::show();
    let shard_of = |slots: [usize; 4], first: u8| {
        let folder = store();
        let mounted = Mounted::new(folder.path(), Durability::Never);
        for (slot, value) in slots.into_iter().zip(first..) {
            put(&mounted.inner(slot), value);
        }
        mounted.staging().settle(mounted.inner(0).shard()).unwrap();
        (folder, mounted)
    };
    let (folder, mounted) = shard_of([0, 1, 2, 3], 1);
    let (other, _) = shard_of([0, 5, 6, 7], 1);
    put(&mounted.inner(0), 9);
    // Another program writes in place, without another length.
    let path = |folder: &tempfile::TempDir| folder.path().join("a/c/0/0");
    let theirs = fs::read(path(&other)).unwrap();
    assert_eq!(theirs.len(), fs::read(path(&folder)).unwrap().len());
    fs::write(path(&folder), theirs).unwrap();
    mounted.staging().settle(mounted.inner(0).shard()).unwrap();
    let found: Vec<_> = (0..8).map(|slot| mounted.bytes(slot)).collect();
    let expected = [9, 0, 0, 0, 0, 2, 3, 4].map(|value| (value > 0).then(|| vec![value]));
    assert_eq!(found, expected);
}

#[test]
fn parts_left_by_a_writer_of_the_directory_above_are_packed_in_the_store() {
    let folder = store();
    let outer = Mounted::new(folder.path(), Durability::Never);
    put(&outer.inner(1), 7);
    drop(outer);
    let path = folder.path().join("a");
    let inner: Arc<dyn Store> = Arc::new(DirStore::open(&path, Symlinks::Inside).unwrap());
    let writer = inner.writer(&WriterOptions::default()).unwrap().unwrap();
    let staging = staging(inner, writer);
    let expected = Recovered {
        packed: 1,
        ..Recovered::default()
    };
    assert_eq!(staging.recover().unwrap(), expected);
    assert_eq!(staging.recover().unwrap(), Recovered::default());
    drop(staging);
    let outer = Mounted::new(folder.path(), Durability::Never);
    assert_eq!(outer.bytes(1), Some(vec![7]));
}

#[test]
fn inner_chunks_of_a_deleted_journal_are_counted_apart() {
    let folder = store();
    let mounted = Mounted::new(folder.path(), Durability::Never);
    put(&mounted.inner(1), 7);
    let staging = mounted.staging();
    assert_eq!((staging.n_parts(), staging.n_deleted()), (1, 0));
    fs::remove_dir_all(folder.path().join(".zarr-mount")).unwrap();
    assert_eq!((staging.n_parts(), staging.n_deleted()), (1, 1));
}

#[test]
fn the_pack_of_a_resized_array_keeps_the_inner_chunks_of_its_larger_shape() {
    let folder = store();
    let large = of_shape(&folder, "[8, 2]");
    put(&large.inner(15), 7);
    large.staging().finish();
    drop(large);
    let mounted = of_shape(&folder, "[3, 2]");
    // Programs have opened all chunks, and another one makes the array larger before they are written.
    let opened = [0, 1, 2, 3, 4, 5].map(|slot| mounted.inner(slot));
    write_document(&folder, "[8, 2]");
    for inner in &opened {
        put(inner, 8);
    }
    mounted.staging().settle(opened[0].shard()).unwrap();
    assert_eq!(mounted.staging().n_parts(), 0);
    drop((opened, mounted));
    let large = Mounted::new(folder.path(), Durability::Never);
    let found: Vec<_> = (0..16).filter_map(|slot| large.bytes(slot)).collect();
    assert_eq!(found.concat(), [8, 8, 8, 8, 8, 8, 7]);
}

/// The store after the inner chunks 0 and 16 were written, and their removal was journaled, but not packed. They are in
/// two shards.
fn with_journaled_removals() -> tempfile::TempDir {
    let folder = store();
    let large = of_shape(&folder, "[16, 2]");
    let chunks = [0, 16].map(|slot| large.inner(slot));
    for chunk in &chunks {
        put(chunk, 7);
    }
    large.staging().settle_below(&Prefix::root()).unwrap();
    for chunk in &chunks {
        chunk.erase().unwrap();
    }
    folder
}

#[test]
fn removals_outside_of_an_array_that_has_become_smaller_are_recovered() {
    let folder = with_journaled_removals();
    let small = of_shape(&folder, "[3, 2]");
    let expected = Recovered {
        packed: 2,
        ..Recovered::default()
    };
    assert_eq!(small.staging().recover().unwrap(), expected);
    drop(small);
    let large = of_shape(&folder, "[16, 2]");
    assert_eq!([large.bytes(0), large.bytes(16)], [None, None]);
    assert!(!folder.path().join("a/c/1/0").exists());
}

#[test]
fn removals_wait_in_their_journals_while_the_document_cannot_be_used() {
    let folder = with_journaled_removals();
    let mounted = Mounted::new(folder.path(), Durability::Never);
    fs::write(folder.path().join("a/zarr.json"), "{").unwrap();
    let left = Recovered {
        left: 2,
        ..Recovered::default()
    };
    assert_eq!(mounted.staging().recover().unwrap(), left);
    drop(mounted);
    let mounted = of_shape(&folder, "[16, 2]");
    let packed = Recovered {
        packed: 2,
        ..Recovered::default()
    };
    assert_eq!(mounted.staging().recover().unwrap(), packed);
    assert_eq!([mounted.bytes(0), mounted.bytes(16)], [None, None]);
}

#[test]
fn removals_of_an_array_that_was_removed_are_forgotten() {
    let folder = with_journaled_removals();
    let mounted = Mounted::new(folder.path(), Durability::Never);
    fs::remove_file(folder.path().join("a/zarr.json")).unwrap();
    let packed = Recovered {
        packed: 2,
        ..Recovered::default()
    };
    assert_eq!(mounted.staging().recover().unwrap(), packed);
    assert_eq!(mounted.staging().recover().unwrap(), Recovered::default());
}

#[test]
fn a_sync_gets_the_error_of_a_removal_that_is_lost() {
    let folder = store();
    let mounted = Mounted::new(folder.path(), Durability::Never);
    let inner = mounted.inner(0);
    put(&inner, 7);
    mounted.staging().settle(inner.shard()).unwrap();
    let when = (SystemTime::now(), inner.access_by_document().unwrap());
    let (_, removal) = inner.put(None, (Replaces::Anything, None), when).unwrap();
    assert!(removal.is_some());
    // Another program writes the inner chunk.
    let shard = folder.path().join("a/c/0/0");
    let mut bytes = fs::read(&shard).unwrap();
    let place = bytes.iter().position(|byte| *byte == 7).unwrap();
    bytes[place] = 9;
    fs::write(folder.path().join("new"), bytes).unwrap();
    fs::rename(folder.path().join("new"), &shard).unwrap();
    let synced = inner.sync(None, removal);
    assert!(
        matches!(synced, Err(Error::Store(StoreError::Changed { .. }))),
        "{synced:?}"
    );
    assert_eq!(mounted.bytes(0), Some(vec![9]));
}

#[test]
fn a_journal_is_not_begun_for_an_array_that_was_made_anew() {
    let folder = store();
    let mounted = Mounted::new(folder.path(), Durability::Never);
    let inner = mounted.inner(0);
    let when = (SystemTime::now(), inner.access_by_document().unwrap());
    let anew = DOCUMENT.replace("uint8", "int8");
    fs::write(folder.path().join("a/zarr.json"), anew).unwrap();
    let staged = inner.put(Some(&[7]), (Replaces::Anything, None), when);
    assert!(
        matches!(staged, Err(Error::Store(StoreError::Changed { .. }))),
        "{staged:?}"
    );
    assert_eq!(mounted.staging().n_parts(), 0);
    // A document that differs in other ways describes the same chunks.
    write_document(&folder, "[16, 2]");
    put(&inner, 7);
    drop((inner, mounted));
    let mounted = Mounted::new(folder.path(), Durability::Never);
    assert_eq!(mounted.staging().recover().unwrap().packed, 1);
}
