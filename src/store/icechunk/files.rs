//! The files of a repository: fetched whole, checked, and the manifests among them remembered.
//!
//! All of them but the list of branches and tags are written once and never changed, so a manifest that was read holds
//! for every snapshot. The manifests that were used last are remembered, up to a limit in bytes ([`limits`](super::limits)).

use std::num::NonZeroUsize;
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
const MOST_MANIFESTS: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");

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

/// A manifest, while it is read and later. Other callers that need it meanwhile wait.
#[derive(Debug, Default)]
struct ManifestSlot(Mutex<Option<Arc<Manifest>>>);

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
                by_id: LruCache::new(MOST_MANIFESTS),
                bytes: 0,
            }),
            decoding: Mutex::default(),
        }
    }

    /// Adapts the limits to what a repository has whose `snapshot` was read.
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

    /// The manifest `id`, which all users who may read `shown` have to be allowed to read.
    pub(super) fn manifest(
        &self,
        id: ObjectId,
        shown: Option<Access>,
    ) -> Result<Arc<Manifest>, StoreError> {
        let slot = Arc::clone(
            self.manifests
                .lock()
                .by_id
                .get_or_insert(id, Arc::<ManifestSlot>::default),
        );
        let mut manifest = slot.0.lock();
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
        let manifest = slot.0.try_lock()?;
        manifest.clone()
    }

    /// Counts the manifest `id`, which takes `bytes`, and forgets those that were used least recently.
    fn remember(&self, id: ObjectId, slot: &Arc<ManifestSlot>, bytes: u64) {
        let mut manifests = self.manifests.lock();
        // The slot may have been forgotten while it was read.
        manifests.by_id.put(id, Arc::clone(slot));
        manifests.bytes = manifests.bytes.saturating_add(bytes);
        let mut forgotten = Vec::new();
        while manifests.bytes > self.limits.most_bytes(FileKind::Manifest)
            && manifests.by_id.len() > 1
            && let Some((_, slot)) = manifests.by_id.pop_lru()
        {
            let bytes = slot.memory_bytes();
            manifests.bytes = manifests.bytes.saturating_sub(bytes);
            forgotten.push(slot);
        }
        drop(manifests);
        drop(forgotten);
    }
}

impl ManifestSlot {
    /// The memory that its manifest takes; 0 while that is read.
    fn memory_bytes(&self) -> u64 {
        let manifest = self.0.try_lock();
        let manifest = manifest.as_ref().and_then(|manifest| manifest.as_ref());
        manifest.map_or(0, |manifest| manifest.memory_bytes())
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
