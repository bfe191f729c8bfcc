//! The thread of the packer, with a store in which its calls panic.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::hierarchy::Node;
use crate::load::{ChunkedArray, Shards};
use crate::shards::InnerChunk;
use crate::shards::tests::{DOCUMENT, put, staging, store};
use crate::store::{
    Cursor, Detail, DirStore, Key, Listing, Object, ObjectMeta, Prefix, Profile, Stat, Store,
    StoreError, Symlinks, WriterOptions,
};

/// A store that panics when the thread of the packer reads it.
#[derive(Debug)]
struct Panicking {
    store: DirStore,
    panics: AtomicBool,
}

impl Panicking {
    fn store(&self) -> &DirStore {
        let is_packer = thread::current().name() == Some("packer");
        assert!(
            !is_packer || !self.panics.load(Ordering::SeqCst),
            "a panic that the test wants"
        );
        &self.store
    }
}

impl Store for Panicking {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        self.store().stat(key)
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.store().stat_root()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        self.store().open(key)
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        self.store().list(prefix, after, detail)
    }

    fn profile(&self) -> Profile {
        self.store.profile()
    }
}

/// Waits until `is_done`, and fails if that takes very long.
fn until(is_done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn shards_are_packed_after_a_panic() {
    let folder = store();
    let dir = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
    let writer = dir.writer(&WriterOptions::default()).unwrap().unwrap();
    let panicking = Arc::new(Panicking {
        store: dir,
        panics: AtomicBool::new(true),
    });
    let staging = staging(Arc::<Panicking>::clone(&panicking), writer);
    let Node::Array(node) = (staging.hierarchy.node(&Prefix::parse(b"a").unwrap())).unwrap() else {
        panic!("no array");
    };
    let array = Arc::new(ChunkedArray::new(&node, Shards::Expand).unwrap());
    let inner = InnerChunk::new(&staging, (&node, &array), &[0, 0]).unwrap();
    // The packer reads the store only if the document has changed.
    fs::write(folder.path().join("a/zarr.json"), format!("{DOCUMENT} ")).unwrap();
    put(&inner, 7);
    let shard = staging.shard(inner.shard()).unwrap();
    staging.packer.wake(&staging, Some(Arc::clone(&shard)));
    until(|| shard.lock().failed.is_some());
    assert_eq!(staging.n_parts(), 1);
    panicking.panics.store(false, Ordering::SeqCst);
    staging.packer.wake(&staging, Some(shard));
    until(|| staging.n_parts() == 0);
    staging.finish();
    assert!(folder.path().join("a/c/0/0").exists());
}
