//! Files that are written through the mount.
//!
//! The documents and the chunks of Zarr nodes are *replaced whole*: what is written goes to a
//! [`Draft`](crate::store::Draft), which takes the place of the stored object when the file is closed
//! or synced. All handles of the file share the draft, and see what was written at once; whoever
//! looks into the store sees the old bytes until then, and the new ones afterwards. All other files
//! are *written in place*, as on any file system. The name of a key tells which it is
//! ([`is_replaced_whole`]).
//!
//! ```text
//!  open(O_TRUNC), create, truncate to 0        first write to a stored object
//!  ------------> empty draft                   ------------> draft with its bytes
//!                        \                        /
//!                         close, fsync: commit, the draft is the object
//! ```
//!
//! * An open file is a [`KeyFile`], whatever the number of its handles. It keeps its fingerprint, and
//!   so its inode number, through all commits; when the last handle is released, [`Writing`] remembers
//!   which version of the object has this fingerprint.
//! * Several handles share a draft. It is committed when a handle that has written is closed, or when
//!   one is synced. A handle that made the file empty writes it anew: until that one is closed, closing
//!   another handle commits nothing, so that no half of a file is in the store.
//! * A commit names the version that it takes the place of. Where somebody else has changed the
//!   object since, a draft that began empty takes its place all the same, because its writer has
//!   not read it; any other one is dropped, and the writer is told (`ESTALE`).
//! * Locks are taken in this order: `names`, then `open`, then the state of a file. Whoever changes
//!   names has `names` alone, so that no commit meets a rename half-way.

mod handle;
mod key_file;
mod names;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use lru::LruCache;

pub use handle::HandleAccess;
pub(super) use handle::KeyHandle;
pub(super) use key_file::KeyFile;

use super::shown_node::looks_like_a_chunk;
use crate::metadata::DocumentName;
use crate::store::{DirWriter, Key, ObjectMeta, Prefix, Refusal, StoreError, Version};

/// Closed files of which the fingerprint is remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("65536 is not 0");

/// Documents of Zarr before v2, and the ends of the names of those of the drafts.
const OLD_DOCUMENTS: [&[u8]; 4] = [b"meta", b"attrs", b"__zmeta__", b"__zattr__"];
const DRAFT_DOCUMENTS: [&[u8]; 2] = [b".array.json", b".group.json"];

/// Whether the object at `key` is replaced whole when it is written, because it is a document or a
/// chunk, by its name. A name of digits and dots may be one of something else, which does no harm.
pub(super) fn is_replaced_whole(key: &Key) -> bool {
    let name = key.name();
    DocumentName::of(name).is_some()
        || OLD_DOCUMENTS.contains(&name)
        || DRAFT_DOCUMENTS.iter().any(|end| name.ends_with(end))
        || looks_like_a_chunk(name)
}

/// What is written through a mount.
#[derive(Debug)]
pub(super) struct Writing {
    writer: DirWriter,
    /// The open files, by the keys that they have now.
    open: Mutex<HashMap<Key, Arc<KeyFile>>>,
    own: Mutex<LruCache<Key, OwnVersion>>,
    names: RwLock<()>,
    hasher: RandomState,
    made: AtomicU64,
    /// Whether the mount ends, so that nothing new is written.
    has_ended: AtomicBool,
}

/// The version that an object had when the last handle of its file was released.
#[derive(Debug, Clone, Copy)]
struct OwnVersion {
    version: Version,
    fingerprint: u64,
}

impl Writing {
    /// Nothing is written yet.
    pub(super) fn new(writer: DirWriter) -> Writing {
        Writing {
            writer,
            open: Mutex::default(),
            own: Mutex::new(LruCache::new(REMEMBERED)),
            names: RwLock::default(),
            hasher: RandomState::new(),
            made: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
        }
    }

    /// The attributes and the fingerprint of the file at `key`, where `stored` is what the store has
    /// there. `None` when nothing is there.
    pub(super) fn shown(
        &self,
        key: &Key,
        stored: Option<ObjectMeta>,
    ) -> Result<Option<(ObjectMeta, u64)>, StoreError> {
        let open = self.lock_open().get(key).cloned();
        if let Some(file) = open {
            return file.shown(self, key, stored);
        }
        // It may have been opened, committed and closed since the caller looked.
        let own = self.lock_own().peek(key).map(|own| own.version);
        let is_late = own.is_some_and(|own| stored.is_none_or(|meta| meta.version != own));
        let stored = if is_late {
            self.writer.stat(key)?
        } else {
            stored
        };
        Ok(stored.map(|meta| (meta, self.fingerprint(key, &meta.version))))
    }

    /// The fingerprint of the object at `key`, which is not open.
    fn fingerprint(&self, key: &Key, version: &Version) -> u64 {
        let mut own = self.lock_own();
        let known = own.get(key).filter(|own| own.version == *version);
        known.map_or_else(|| version.fingerprint(), |own| own.fingerprint)
    }

    /// Remembers that the object at `key` has this fingerprint.
    fn remember(&self, key: &Key, meta: &ObjectMeta, fingerprint: u64) {
        let own = OwnVersion {
            version: meta.version,
            fingerprint,
        };
        self.lock_own().put(key.clone(), own);
    }

    /// A fingerprint that no file has had.
    fn new_fingerprint(&self) -> u64 {
        self.hasher.hash_one(self.new_number()).max(1)
    }

    /// A number that nothing else has.
    fn new_number(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// The keys in `prefix` of files that were made and are not in the store yet.
    pub(super) fn made_in(&self, prefix: &Prefix) -> Vec<Key> {
        let here = self.open_where(|key| key.parent() == *prefix);
        let made = here.into_iter().filter(|(_, file)| file.is_new());
        made.map(|(key, _)| key).collect()
    }

    /// Whether files below `prefix` were made that are not in the store yet.
    fn has_made_below(&self, prefix: &Prefix) -> bool {
        let below = self.open_where(|key| is_below(key, prefix));
        below.iter().any(|(_, file)| file.is_new())
    }

    /// The open files whose keys are `wanted`. Their own locks are taken after that of the table is
    /// given back, because a file is locked while it is committed.
    fn open_where(&self, wanted: impl Fn(&Key) -> bool) -> Vec<(Key, Arc<KeyFile>)> {
        let open = self.lock_open();
        let found = open.iter().filter(|(key, _)| wanted(key));
        found
            .map(|(key, file)| (key.clone(), Arc::clone(file)))
            .collect()
    }

    /// Commits all files, and makes them survive a loss of power.
    ///
    /// # Errors
    /// The first error, after all were tried.
    pub(super) fn sync_all(&self) -> Result<(), StoreError> {
        let _names = self.read_names();
        self.sync_files(|_| true)
    }

    /// Commits and syncs the files whose keys are `wanted`.
    fn sync_files(&self, wanted: impl Fn(&Key) -> bool) -> Result<(), StoreError> {
        let mut result = Ok(());
        for (_, file) in self.open_where(wanted) {
            let synced = file.sync(self);
            result = result.and(synced);
        }
        result
    }

    /// Commits the files below `prefix`, and makes the names in it survive a loss of power.
    ///
    /// # Errors
    /// The first error, after all were tried.
    pub(super) fn sync_below(&self, prefix: &Prefix) -> Result<(), StoreError> {
        let _names = self.read_names();
        let synced = self.sync_files(|key| is_below(key, prefix));
        synced.and(self.writer.sync_names(prefix))
    }

    /// Commits all files and ends all writing.
    pub(super) fn finish(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        let _names = self.read_names();
        let mut lost = 0;
        for (_, file) in self.open_where(|_| true) {
            if let Err(error) = file.commit(self) {
                log::error!("not saved when the mount ended: {error}");
                lost += 1;
            }
        }
        if lost > 0 {
            log::error!("{lost} files were not saved");
        }
        self.writer.finish();
    }

    fn check_goes_on(&self) -> Result<(), StoreError> {
        if self.has_ended.load(Ordering::SeqCst) {
            return Err(StoreError::refused("", Refusal::ReadOnly));
        }
        Ok(())
    }

    /// Removes `file` from the open ones, if it is the one at `key`.
    fn leave(&self, key: &Key, file: &Arc<KeyFile>) {
        let mut open = self.lock_open();
        if open.get(key).is_some_and(|held| Arc::ptr_eq(held, file)) {
            open.remove(key);
        }
    }

    fn lock_open(&self) -> MutexGuard<'_, HashMap<Key, Arc<KeyFile>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_own(&self) -> MutexGuard<'_, LruCache<Key, OwnVersion>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For work that must not meet a change of names.
    fn read_names(&self) -> RwLockReadGuard<'_, ()> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For changes of names.
    fn write_names(&self) -> RwLockWriteGuard<'_, ()> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `key` begins with `prefix` and a slash.
fn is_below(key: &Key, prefix: &Prefix) -> bool {
    prefix
        .strip(key.as_bytes())
        .is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_chunks_are_replaced_whole() {
        for (key, expected) in [
            ("zarr.json", true),
            ("a/.zattrs", true),
            ("a/0.0", true),
            ("a/c/0/12", true),
            ("a/c.0.1", true),
            ("a/c", true),
            ("meta/root/a.array.json", true),
            ("a/notes.txt", false),
            ("a/0.0.1f2e.partial", false),
            ("a/c/0/0.__lock", false),
            ("a/.0.0.Ab12Cd", false),
        ] {
            let key = Key::parse(key.as_bytes()).unwrap();
            assert_eq!(is_replaced_whole(&key), expected, "{key}");
        }
    }
}
