//! The snapshots of all files, by the names of the files.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use lru::LruCache;

use super::super::vnode::PlainName;
use super::Arrays;
use super::file::PlainFile;
use super::lock;
use super::snapshot::Snapshot;
use crate::error::Error;

/// The most snapshots that are kept after their last handle was closed.
const KEPT: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");
/// The most files whose generation is remembered.
const MOST_NAMES: usize = 1 << 16;

/// The snapshots of open files, and of some closed ones.
#[derive(Debug)]
pub(super) struct Snapshots {
    by_name: HashMap<PlainName, (u64, Weak<Snapshot>)>,
    /// Snapshots of closed files. The kernel may keep the pages of such a file if it has not
    /// changed.
    recent: LruCache<PlainName, Arc<Snapshot>>,
    /// How many were made.
    made: u64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Snapshots {
            by_name: HashMap::new(),
            recent: LruCache::new(KEPT),
            made: 0,
        }
    }
}

impl Snapshots {
    /// The generation of the file called `name`: 0 until two snapshots of it were open at the same
    /// time.
    pub(super) fn generation(&self, name: &PlainName) -> u64 {
        self.by_name
            .get(name)
            .map_or(0, |(generation, _)| *generation)
    }

    /// The newest snapshot of the file called `name`.
    fn get(&mut self, name: &PlainName) -> Option<Arc<Snapshot>> {
        let known = self.by_name.get(name)?.1.upgrade()?;
        self.recent.promote(name);
        Some(known)
    }

    fn put(&mut self, name: &PlainName, snapshot: &Arc<Snapshot>) {
        // The generations of closed files are useful, but they must not take memory without limit.
        if self.by_name.len() >= MOST_NAMES {
            self.by_name
                .retain(|_, (_, known)| known.strong_count() > 0);
        }
        let held = (snapshot.generation, Arc::downgrade(snapshot));
        self.by_name.insert(name.clone(), held);
        self.recent.put(name.clone(), Arc::clone(snapshot));
    }
}

impl Arrays {
    /// The snapshot for a new handle of `file`, counted as open.
    ///
    /// If other handles still read an older snapshot, the new one gets another generation, and so
    /// another inode number. Otherwise the inode number stays the same, as when a file is written
    /// to, and only the pages in the kernel may be older ([`Snapshot::is_clean`]).
    pub(super) fn snapshot(&self, file: &PlainFile) -> Result<Arc<Snapshot>, Error> {
        let name = &file.name;
        let audience = self.audience(&file.meta, file.mode);
        loop {
            let known = lock(&self.snapshots).get(name);
            let same = known.as_ref().filter(|known| known.is_of(file, audience));
            let is_good = same.is_some_and(|known| known.is_current());
            // The snapshot is checked and counted under one lock, so that other threads see that it
            // is open.
            let mut snapshots = lock(&self.snapshots);
            let newest = snapshots.get(name);
            if newest.as_ref().map(Arc::as_ptr) != known.as_ref().map(Arc::as_ptr) {
                continue;
            }
            if let Some(known) = known.as_ref().filter(|_| is_good)
                && known.open()
            {
                return Ok(Arc::clone(known));
            }
            let others = known.as_ref().is_some_and(|known| known.is_open());
            let generation = snapshots.generation(name) + u64::from(others);
            let loader = Arc::clone(&self.tree.loader);
            let earlier = same.map(|known| &**known);
            snapshots.made += 1;
            let numbers = (generation, snapshots.made);
            let snapshot = Snapshot::new(numbers, loader, audience, (file, earlier));
            let snapshot = Arc::new(snapshot);
            snapshots.put(name, &snapshot);
            return Ok(snapshot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::fresh::Freshness;
    use crate::load::Patience;
    use crate::plain::FileFormat;
    use crate::store::testing::Flat;
    use crate::store::{Key, MemoryStore};
    use crate::view::{ArrayOptions, View, ViewKind, ViewOptions};

    #[test]
    fn a_snapshot_whose_versions_were_forgotten_is_not_opened_again() {
        let store = Arc::new(MemoryStore::new());
        let old = SystemTime::now() - Duration::from_secs(3600);
        let put = |key: String, bytes: &[u8]| {
            let key = Key::parse(key.as_bytes()).unwrap();
            store.insert_at(key, bytes.to_vec(), old);
        };
        // More objects than the versions that a closed file keeps.
        let n = 2100;
        let document = serde_json::json!({
            "zarr_format": 2, "shape": [n], "chunks": [1], "dtype": "|u1", "compressor": null, "fill_value": 0,
            "filters": null, "order": "C",
        });
        put("a/.zarray".to_owned(), document.to_string().as_bytes());
        for chunk in 0..n {
            put(format!("a/{chunk}"), b"x");
        }
        let options = ViewOptions {
            views: vec![ViewKind::Arrays],
            freshness: Freshness::Checked(Duration::ZERO),
            arrays: ArrayOptions {
                files: vec![FileFormat::Raw],
                ..ArrayOptions::default()
            },
            ..ViewOptions::default()
        };
        let view = Arc::new(View::new(Arc::new(Flat::new(store)), options).unwrap());
        let opened = || {
            let found = view.find_path(b"a.raw").unwrap().unwrap();
            found.open().unwrap().unwrap().file
        };
        let read = |file: &Arc<crate::view::OpenFile>| {
            let (send, receive) = mpsc::channel();
            file.read(0, n, Patience::Waits, None, move |read| {
                send.send(read.map(|bytes| bytes.to_vec())).unwrap();
            });
            receive.recv().unwrap().unwrap()
        };
        let file = opened();
        assert_eq!(read(&file), vec![b'x'; n]);
        let snapshots = lock(&view.arrays.snapshots);
        let (_, known) = snapshots.by_name.values().next().unwrap();
        let known = known.upgrade().unwrap();
        drop(snapshots);
        // Another handle is opened, before and after the last handle is closed.
        assert!(known.open());
        known.close();
        drop(file);
        assert!(!known.open() && !known.is_open());
        assert_eq!(read(&opened()), vec![b'x'; n]);
    }
}
