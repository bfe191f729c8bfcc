//! The files of a repository: fetched whole, checked, and the manifests among them remembered.
//!
//! All of them but the list of branches and tags are written once and never changed, so a manifest that was read holds
//! for every snapshot. The manifests that were used last are remembered, up to a limit in bytes ([`limits`](super::limits)).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;

use super::envelope::{FileKind, table_of};
use super::flat::Malformed;
use super::limits::Limits;
use super::manifest::Manifest;
use super::object_id::ObjectId;
use super::snapshot::Snapshot;
use crate::store::{Access, Key, Object, ReadRight, Store, StoreError};

/// The most manifests that are remembered.
const MOST_MANIFESTS: usize = 4096;

/// The files of a repository.
#[derive(Debug)]
pub(super) struct RepositoryFiles {
    pub(super) store: Arc<dyn Store>,
    limits: Limits,
    /// The most bytes that a list of branches, or a snapshot, has taken.
    longest: AtomicU64,
    manifests: Mutex<Manifests>,
    /// Held while a file is decoded: one at a time, because each may take much memory.
    decoding: Mutex<()>,
}

#[derive(Debug)]
struct Manifests {
    by_id: LruCache<ObjectId, Arc<ManifestSlot>>,
    bytes: u64,
}

/// The place of a manifest, which is empty until the manifest was read. Other callers that need it wait until then.
#[derive(Debug, Default)]
struct ManifestSlot {
    manifest: Mutex<Option<Arc<Manifest>>>,
    /// Its bytes that are counted in [`Manifests`]; 0 while it is read. Changed only while all manifests are locked.
    counted: AtomicU64,
}

/// A file of the repository, whole.
#[derive(Debug)]
pub(super) struct FetchedFile {
    pub(super) bytes: Bytes,
    /// The object that it was read from.
    pub(super) object: Arc<dyn Object>,
}

/// A snapshot, and the object that it was read from.
type FetchedSnapshot = (Snapshot, Arc<dyn Object>);

impl RepositoryFiles {
    /// The files in `store`, while nothing is known of them.
    pub(super) fn new(store: Arc<dyn Store>, limits: Limits) -> RepositoryFiles {
        RepositoryFiles {
            store,
            limits,
            longest: AtomicU64::new(0),
            manifests: Mutex::new(Manifests {
                by_id: LruCache::unbounded(),
                bytes: 0,
            }),
            decoding: Mutex::default(),
        }
    }

    /// Adapts the limits to the repository, whose `snapshot` was read.
    pub(super) fn adapt(&mut self, snapshot: &Snapshot) -> Result<(), Malformed> {
        let longest = *self.longest.get_mut();
        self.limits.adapt(longest, snapshot.manifest_bytes()?);
        Ok(())
    }

    /// The memory that is kept for the files.
    pub(super) fn held_bytes(&self) -> u64 {
        self.limits.held_bytes()
    }

    /// The file at `key`, which is of this `kind`; `None` if there is none.
    pub(super) fn fetch(
        &self,
        key: &Key,
        kind: FileKind,
    ) -> Result<Option<FetchedFile>, StoreError> {
        let mut file = Vec::new();
        let most_bytes = self.limits.most_bytes(kind);
        let Some(fetched) = self.store.fetch(key, most_bytes, &mut file)? else {
            return Ok(None);
        };
        if !fetched.is_read {
            let size = fetched.object.meta().size();
            let problem = format!("it has {size} bytes, and --cache-size allows {most_bytes}");
            return Err(StoreError::damaged(key, problem));
        }
        Ok(Some(FetchedFile {
            bytes: file.into(),
            object: fetched.object,
        }))
    }

    /// The table in `file`, which was read from `key`.
    pub(super) fn table(
        &self,
        key: &Key,
        file: &Bytes,
        kind: FileKind,
    ) -> Result<Bytes, StoreError> {
        let _one_at_a_time = self.decoding.lock();
        let table = table_of(file, kind, self.limits.most_bytes(kind));
        let table = table.map_err(|problem| problem.of(key))?;
        if kind != FileKind::Manifest {
            self.longest
                .fetch_max(table.len() as u64, Ordering::Relaxed);
        }
        Ok(table)
    }

    /// The snapshot `id`; `None` if there is none.
    pub(super) fn snapshot(&self, id: ObjectId) -> Result<Option<FetchedSnapshot>, StoreError> {
        let key = key_of("snapshots", id)?;
        let Some(FetchedFile { bytes, object }) = self.fetch(&key, FileKind::Snapshot)? else {
            return Ok(None);
        };
        let table = self.table(&key, &bytes, FileKind::Snapshot)?;
        let snapshot = Snapshot::read(table, id).map_err(|problem| problem.of(&key))?;
        Ok(Some((snapshot, object)))
    }

    /// The manifest `id`, which all users to whom the access `shown` grants the content have to be allowed to read.
    pub(super) fn manifest(
        &self,
        id: ObjectId,
        shown: Option<Access>,
    ) -> Result<Arc<Manifest>, StoreError> {
        let mut manifests = self.manifests.lock();
        let slot = manifests.by_id.get_or_insert(id, Arc::default);
        let slot = Arc::clone(slot);
        let forgotten = manifests.forget_beyond(self.limits.most_bytes(FileKind::Manifest));
        drop(manifests);
        drop(forgotten);
        let mut manifest = slot.manifest.lock();
        if let Some(manifest) = &*manifest {
            return Ok(Arc::clone(manifest));
        }
        let key = key_of("manifests", id)?;
        let FetchedFile { bytes, object } = self
            .fetch(&key, FileKind::Manifest)?
            .ok_or_else(|| StoreError::damaged(&key, "the manifest is missing"))?;
        check_rights(&key, &*object, shown)?;
        let table = self.table(&key, &bytes, FileKind::Manifest)?;
        let read = Manifest::read(table, id).map_err(|problem| problem.of(&key))?;
        let read = Arc::new(read);
        *manifest = Some(Arc::clone(&read));
        drop(manifest);
        self.remember(id, &slot, read.memory_bytes());
        Ok(read)
    }

    /// The manifest `id`, if it is in memory.
    pub(super) fn known_manifest(&self, id: ObjectId) -> Option<Arc<Manifest>> {
        let slot = Arc::clone(self.manifests.lock().by_id.get(&id)?);
        let manifest = slot.manifest.try_lock()?;
        manifest.clone()
    }

    /// Counts the manifest `id`, which takes `bytes`, and forgets those that were used least recently.
    fn remember(&self, id: ObjectId, slot: &Arc<ManifestSlot>, bytes: u64) {
        let mut manifests = self.manifests.lock();
        // The slot may have been forgotten while it was read, and have been replaced by another one.
        let replaced = manifests.by_id.put(id, Arc::clone(slot));
        manifests.end_count(replaced.as_deref());
        slot.counted.store(bytes, Ordering::Relaxed);
        manifests.bytes = manifests.bytes.saturating_add(bytes);
        let forgotten = manifests.forget_beyond(self.limits.most_bytes(FileKind::Manifest));
        drop(manifests);
        drop((replaced, forgotten));
    }
}

impl Manifests {
    /// Forgets the manifests that were used least recently, until at most `most_bytes` are left, and returns them.
    fn forget_beyond(&mut self, most_bytes: u64) -> Vec<Arc<ManifestSlot>> {
        let mut forgotten = Vec::new();
        while (self.bytes > most_bytes || self.by_id.len() > MOST_MANIFESTS)
            && self.by_id.len() > 1
            && let Some((_, slot)) = self.by_id.pop_lru()
        {
            self.end_count(Some(&*slot));
            forgotten.push(slot);
        }
        forgotten
    }

    /// Subtracts the bytes of a slot that leaves.
    fn end_count(&mut self, slot: Option<&ManifestSlot>) {
        let counted = slot.map_or(0, |slot| slot.counted.swap(0, Ordering::Relaxed));
        self.bytes = self.bytes.saturating_sub(counted);
    }
}

impl Malformed {
    /// The error that the file at `key` is malformed.
    pub(super) fn of(self, key: &Key) -> StoreError {
        let Malformed(problem) = self;
        StoreError::damaged(key, problem)
    }
}

/// The key of the file `id` in the directory `directory` of the repository.
pub(super) fn key_of(directory: &str, id: ObjectId) -> Result<Key, StoreError> {
    Key::parse(format!("{directory}/{id}").as_bytes())
}

/// Checks that all users to whom the access `shown` grants the content of a repository may read its file at `key`.
/// `None` if no other users can reach the mount.
pub(super) fn check_rights(
    key: &Key,
    file: &dyn Object,
    shown: Option<Access>,
) -> Result<(), StoreError> {
    let right = ReadRight::of_object(file.meta().access());
    if shown.is_none_or(|shown| shown.is_within(right)) {
        return Ok(());
    }
    let reason = "fewer users may read this file of the repository than its other files";
    Err(StoreError::denied(key, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    /// Whether the count of bytes is that of the slots that are remembered.
    fn is_counted(files: &RepositoryFiles) -> bool {
        let manifests = files.manifests.lock();
        let each = manifests.by_id.iter();
        let each = each.map(|(_, slot)| slot.counted.load(Ordering::Relaxed));
        manifests.bytes == each.sum::<u64>()
    }

    #[test]
    fn bytes_of_manifests_are_those_that_are_remembered() {
        let store = Arc::new(MemoryStore::new());
        let files = RepositoryFiles::new(store, Limits::of_budget(40 << 10));
        let id = |number: usize| {
            let mut id = [0; 12];
            id[..8].copy_from_slice(&number.to_le_bytes());
            ObjectId(id)
        };
        let slot = || Arc::new(ManifestSlot::default());
        for number in 0..MOST_MANIFESTS + 10 {
            files.remember(id(number), &slot(), 2);
        }
        assert_eq!(files.manifests.lock().bytes, 2 * MOST_MANIFESTS as u64);
        // A slot that takes the place of another one, and slots of manifests that are missing.
        files.remember(id(MOST_MANIFESTS), &slot(), 5);
        assert!(is_counted(&files));
        for number in 0..10 {
            assert!(files.manifest(id(number), None).is_err());
        }
        assert!(is_counted(&files) && files.manifests.lock().by_id.len() == MOST_MANIFESTS);
        files.remember(id(0), &slot(), 20 << 10);
        assert!(is_counted(&files) && files.manifests.lock().by_id.len() == 1);
    }
}
