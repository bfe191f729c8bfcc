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
            if let Some(known) = known.as_ref().filter(|_| is_good) {
                known.open();
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
            snapshot.open();
            snapshots.put(name, &snapshot);
            return Ok(snapshot);
        }
    }
}
