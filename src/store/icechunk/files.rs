//! The files of a repository: fetched whole, checked, and the manifests among them remembered.
//!
//! All of them but the list of branches and tags are written once and never changed, so a manifest that was read holds
//! for every snapshot. The manifests that were used last are remembered, up to a limit in bytes.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lru::LruCache;

use super::envelope::{FileKind, table_of};
use super::flat::Malformed;
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
    /// The most bytes of one file, as it is stored and as it is decoded.
    most_file_bytes: u64,
    /// The most bytes of the manifests that are remembered, unless a single one has more.
    most_manifest_bytes: u64,
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
    /// The files in `store`, which may take `memory_bytes`.
    pub(super) fn new(store: Arc<dyn Store>, memory_bytes: u64) -> RepositoryFiles {
        RepositoryFiles {
            store,
            most_file_bytes: memory_bytes,
            most_manifest_bytes: memory_bytes / 4,
            manifests: Mutex::new(Manifests {
                by_id: LruCache::new(MOST_MANIFESTS),
                bytes: 0,
            }),
            decoding: Mutex::default(),
        }
    }

    /// The file at `key`; `None` if there is none.
    pub(super) fn fetch(&self, key: &Key) -> Result<Option<FetchedFile>, StoreError> {
        let mut file = Vec::new();
        let Some(fetched) = self.store.fetch(key, self.most_file_bytes, &mut file)? else {
            return Ok(None);
        };
        if !fetched.is_read {
            let size = fetched.object.meta().size();
            let most = self.most_file_bytes;
            let problem = format!("it has {size} bytes, and --cache-size allows {most}");
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
        let _one_at_a_time = lock(&self.decoding);
        table_of(file, kind, self.most_file_bytes).map_err(|problem| problem.of(key))
    }

    /// The snapshot `id`; `None` if there is none.
    pub(super) fn snapshot(&self, id: ObjectId) -> Result<Option<FetchedSnapshot>, StoreError> {
        let key = key_of("snapshots", id)?;
        let Some(FetchedFile { bytes, object }) = self.fetch(&key)? else {
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
            lock(&self.manifests)
                .by_id
                .get_or_insert(id, Arc::<ManifestSlot>::default),
        );
        let mut manifest = lock(&slot.0);
        if let Some(manifest) = &*manifest {
            return Ok(Arc::clone(manifest));
        }
        let key = key_of("manifests", id)?;
        let FetchedFile { bytes, object } = self
            .fetch(&key)?
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
        let slot = Arc::clone(lock(&self.manifests).by_id.get(&id)?);
        let manifest = slot.0.try_lock().ok()?;
        manifest.clone()
    }

    /// Counts the manifest `id`, which takes `bytes`, and forgets those that were used least recently.
    fn remember(&self, id: ObjectId, slot: &Arc<ManifestSlot>, bytes: u64) {
        let mut manifests = lock(&self.manifests);
        // The slot may have been forgotten while it was read.
        manifests.by_id.put(id, Arc::clone(slot));
        manifests.bytes = manifests.bytes.saturating_add(bytes);
        let mut forgotten = Vec::new();
        while manifests.bytes > self.most_manifest_bytes
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
        let manifest = self.0.try_lock().ok();
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
    Err(StoreError::Denied {
        key: key.to_string(),
        reason: "fewer users may read this file of the repository than its other files".to_owned(),
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
