//! Sets of references, in JSON and in Parquet: opened, listed and read.

use std::sync::Arc;

use zarr_mount::store::{Key, MemoryStore, OpenOptions, ReferenceStore, Store};

use super::walk::each_object;

/// The memory budget, of which a set holds at most half.
const BUDGET_BYTES: u64 = 1 << 20;

const METADATA: &str = r#"{"record_size": 4, "metadata": {
    "x/.zarray": {"shape": [4, 5], "chunks": [2, 2]}, "s/.zarray": {"shape": [], "chunks": []}}}"#;

/// Takes `data` for a set in JSON.
pub fn run_json(data: &[u8]) {
    let store = MemoryStore::new();
    store.insert(key(b"set.json"), data.to_vec());
    walk(store, b"set.json");
}

/// Takes `data` for a file of references in Parquet.
pub fn run_parquet(data: &[u8]) {
    let store = MemoryStore::new();
    store.insert(key(b"set/.zmetadata"), METADATA);
    store.insert(key(b"set/x/refs.0.parq"), data.to_vec());
    walk(store, b"set/.zmetadata");
}

fn key(name: &[u8]) -> Key {
    Key::parse(name).expect("a key")
}

/// Everything that is listed can be examined, and everything that is read has the length that was told.
fn walk(store: MemoryStore, name: &[u8]) {
    store.insert(key(b"target"), vec![7; 1000]);
    let options = OpenOptions {
        memory_bytes: Some(BUDGET_BYTES),
        ..OpenOptions::default()
    };
    let Ok(set) = ReferenceStore::within(Arc::new(store), key(name), &options) else {
        return;
    };
    assert!(set.held_bytes() <= BUDGET_BYTES / 2);
    each_object(&set, |key, meta| {
        let Ok(Some(object)) = set.open(key) else {
            return;
        };
        assert_eq!(object.meta().size(), meta.size());
        let mut bytes = vec![0; usize::try_from(meta.size()).expect("it is in memory")];
        object.read_at(0, &mut bytes).expect("it was opened");
    });
}
