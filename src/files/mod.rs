//! Files that are written through the mount.
//!
//! The documents and the chunks of Zarr nodes are *replaced whole*: writes go to a [`Draft`](crate::store::Draft),
//! which replaces the stored object when the file is closed or synced. All handles of the file share the draft, and see
//! writes at once. Other programs, which read the store, see the old bytes until then, and the new ones afterwards. All
//! other files are *written in place*, as on any file system. The name of a key decides which way is used
//! (`is_replaced_whole`).
//!
//! ```text
//!  open(O_TRUNC), create, truncate to 0        first write to a stored object
//!  ------------> empty draft                   ------------> draft with its bytes
//!                        \                        /
//!                         close, fsync: commit, the draft is the object
//! ```
//!
//! The modules to read first:
//!
//! | file | contents |
//! |---|---|
//! | `phase` | the states of an open file, and the table of the transitions between them |
//! | `state` | an open file: its name, its stored object, its phase; reads and changes |
//! | `begin`, `draft`, `draft_file` | the beginning of a draft; its parts; its bytes, in memory or in a file |
//! | `target` | the object of a file, which may be an inner chunk of a shard |
//! | `commit`, `merge` | close(2): a draft becomes the object |
//! | `failure` | conflicts, attempts that are repeated, and which program gets an error |
//! | `key_file`, `handle` | the lock of an open file; its handles |
//! | `names` | the effects of renames and removals on open files |
//!
//! * A file that does not show the bytes of its object has a `Form`. Its draft has the shown bytes. If only a part of a
//!   chunk was written, the draft has that part, and the other bytes are decoded when they are read, or when the draft
//!   is committed. Then the form makes the bytes of the object.
//! * A file that is only in the mount (*scratch*) is a draft that is never committed, until it is renamed to a name
//!   that has an object.
//! * An open file is a `KeyFile`, whatever the number of its handles. It keeps its fingerprint, and so its inode
//!   number, through all commits. When the last handle is closed, `Writing` remembers which version of the object has
//!   this fingerprint.
//! * Several handles share a draft. It is committed when a handle that has written is closed, or when
//!   one is synced. A handle that made the file empty writes the file anew. Until that handle is closed, a
//!   close of another handle commits nothing, so that the store never has half of a file.
//! * A commit names the version that it replaces. If another program has changed the object since, a draft of a chunk
//!   that began empty replaces it nevertheless, because its writer has not read it. Parts of a chunk, and members of a
//!   document, are merged into the new version if their writers have not read it. Any other draft is dropped, and its
//!   writer gets `ESTALE`.
//! * A draft whose last handle was closed before its commit failed is kept, and committed again later.
//! * Locks are taken in this order: a lock of `NameLocks`, then `open`, then the state of a file.

mod base;
mod begin;
mod commit;
mod draft;
mod draft_file;
mod ended;
mod failure;
mod form;
mod handle;
mod key_file;
mod merge;
mod name;
mod name_kinds;
mod name_locks;
mod names;
mod objects;
mod of_views;
mod phase;
mod retry;
mod saving;
mod state;
mod synced;
mod target;
mod texts;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use lru::LruCache;

use failure::Audience;
pub(crate) use form::{
    AfterCommit, CleanAttributes, CleanBytes, CleanFile, CommitEnd, Form, Meanings, ReadReply,
    Translation,
};
pub use handle::{HandleAccess, KeyHandle};
pub(crate) use handle::{HandleId, NewKind, ReadBytes};
pub(crate) use key_file::KeyFile;
pub(crate) use name_kinds::{
    is_document, is_replaced_whole, looks_like_a_chunk, may_be_old_document,
};
pub(crate) use name_locks::{NameLock, NameLocks};
pub(crate) use objects::{Objects, change as change_objects};
pub(crate) use of_views::Writings;
pub use phase::{FileEvent, OpenState};
use retry::Retries;
pub(crate) use state::FileAttributes;
pub(crate) use synced::Syncer;
use target::Target;
use texts::Texts;

use crate::counters::WriteCounters;
use crate::error::Error;
use crate::metadata::DocumentName;
use crate::recent_lines::RecentLines;
use crate::shards::Staging;
use crate::store::{DirWriter, Key, ObjectMeta, Prefix, Refusal, StoreError, Version};

/// The number of closed files whose fingerprints are remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("65536 is not 0");

/// The open files of one view of a mount. For them, a write through another view is a write by another program.
#[derive(Debug)]
pub(crate) struct Writing {
    writer: Arc<DirWriter>,
    /// The open files, by their current keys.
    open: Mutex<HashMap<Key, Arc<KeyFile>>>,
    /// Files that are still open, and that were detached from their keys.
    left: Mutex<Vec<(Key, Weak<KeyFile>)>>,
    own: Mutex<LruCache<Key, OwnVersion>>,
    texts: Texts,
    names: NameLocks,
    commits: Commits,
    counters: Arc<WriteCounters>,
    /// The reasons why the last changes were refused.
    refused: Arc<RecentLines>,
    /// The journals of inner chunks of shards.
    staging: Arc<Staging>,
    /// Checks before each commit whether a key still has the same meaning.
    meanings: OnceLock<Box<dyn Meanings>>,
    hasher: RandomState,
    made: AtomicU64,
    /// Whether the mount is ending, so that no new changes are accepted.
    has_ended: AtomicBool,
    retries: Retries,
}

/// Counts commits, so that an open knows whether one came in between.
#[derive(Debug, Default)]
struct Commits {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Commits {
    /// The number of commits; `None` while one is under way.
    fn count(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }

    /// Counts a commit, which ends when the result is dropped.
    fn begin(&self) -> CommitGuard<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        CommitGuard(self)
    }
}

/// A commit that has begun.
struct CommitGuard<'a>(&'a Commits);

impl Drop for CommitGuard<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// The version that an object had when the last handle of its file was released; `None` when it was
/// absent.
#[derive(Debug, Clone, Copy)]
struct OwnVersion {
    version: Option<Version>,
    fingerprint: u64,
}

/// The attributes that are shown of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownFile {
    /// The attributes of its object, or of the draft; `None` when there is neither.
    pub(crate) meta: Option<ObjectMeta>,
    /// Its fingerprint, if it was written through the mount. Otherwise its version gives one.
    pub(crate) fingerprint: Option<u64>,
    /// Whether the attributes, the length included, are those of the draft.
    pub(crate) is_draft: bool,
}

impl Writing {
    /// The files of a view, none of which is open yet.
    fn new(
        writer: Arc<DirWriter>,
        counters: Arc<WriteCounters>,
        staging: Arc<Staging>,
        refused: Arc<RecentLines>,
    ) -> Writing {
        Writing {
            writer,
            staging,
            refused,
            meanings: OnceLock::new(),
            open: Mutex::default(),
            left: Mutex::default(),
            own: Mutex::new(LruCache::new(REMEMBERED)),
            texts: Texts::default(),
            names: NameLocks::default(),
            commits: Commits::default(),
            counters,
            hasher: RandomState::new(),
            made: AtomicU64::new(1),
            has_ended: AtomicBool::new(false),
            retries: Retries::default(),
        }
    }

    /// Whether the current documents mean the same for the file at `key`, with this form, as when it was opened.
    fn is_current(&self, key: &Key, form: Option<&dyn Form>) -> Result<bool, Error> {
        match (form, self.meanings.get()) {
            (Some(form), _) => form.is_current(),
            (None, Some(meanings)) => meanings.is_plain(key),
            (None, None) => Ok(true),
        }
    }

    /// Fails with [`Error::Stale`] unless the current documents mean the same, as [`Writing::is_current`] says.
    fn check_current(&self, key: &Key, form: Option<&dyn Form>) -> Result<(), Error> {
        self.is_current(key, form)?
            .then_some(())
            .ok_or(Error::Stale)
    }

    /// The current attributes of the stored object of the file at `key`, with this form.
    fn now(&self, key: &Key, form: Option<&dyn Form>) -> Result<Option<ObjectMeta>, Error> {
        Target::of(&self.writer, key, form).now()
    }

    /// The attributes that are shown of the file at `key`, whose object in the store has the attributes `stored`.
    pub(crate) fn shown(&self, key: &Key, stored: Option<ObjectMeta>) -> Result<ShownFile, Error> {
        self.shown_by(key, stored, || Ok(self.writer.stat(key)?))
    }

    /// Like [`Writing::shown`], where `now` reads the attributes again.
    pub(crate) fn shown_by(
        &self,
        key: &Key,
        stored: Option<ObjectMeta>,
        now: impl Fn() -> Result<Option<ObjectMeta>, Error>,
    ) -> Result<ShownFile, Error> {
        let open = self.lock_open().get(key).cloned();
        if let Some(file) = open {
            let shown = file.shown(self, key, stored)?;
            if shown.fingerprint.is_some() || shown.meta.is_some() {
                return Ok(shown);
            }
            // Absence is remembered with a fingerprint other than that of the file, of which the kernel has pages.
            let own = self.own_fingerprint(key, None);
            let fingerprint = own.unwrap_or_else(|| self.new_fingerprint());
            self.remember(key, None, fingerprint);
            return Ok(ShownFile {
                fingerprint: Some(fingerprint),
                ..shown
            });
        }
        // The file may have been opened, committed and closed since the caller read the attributes.
        let version = |meta: Option<ObjectMeta>| meta.map(|meta| meta.version);
        let own = self.lock_own().get(key).copied();
        let is_late = own.is_some_and(|own| own.version != version(stored));
        let stored = if is_late { now()? } else { stored };
        Ok(ShownFile {
            meta: stored,
            fingerprint: self.own_fingerprint(key, version(stored)),
            is_draft: false,
        })
    }

    /// The fingerprint of the object at `key`, which is not open, if this mount has written it.
    fn own_fingerprint(&self, key: &Key, version: Option<Version>) -> Option<u64> {
        let mut own = self.lock_own();
        let known = own.get_mut(key)?;
        if known.version == version {
            return Some(known.fingerprint);
        }
        if version.is_none() {
            // Another program has removed the object, and the kernel may have its pages.
            known.version = None;
            known.fingerprint = self.new_fingerprint();
            return Some(known.fingerprint);
        }
        None
    }

    /// Remembers that the object at `key` has this fingerprint.
    fn remember(&self, key: &Key, meta: Option<&ObjectMeta>, fingerprint: u64) {
        let own = OwnVersion {
            version: meta.map(|meta| meta.version),
            fingerprint,
        };
        self.lock_own().put(key.clone(), own);
    }

    /// Whether the file at `key` is only in the mount.
    pub(crate) fn is_scratch(&self, key: &Key) -> bool {
        let file = self.lock_open().get(key).cloned();
        file.is_some_and(|file| file.is_scratch())
    }

    /// Detaches `file` from `key`, which stands for another file now: the object was removed or replaced.
    fn detach(&self, key: &Key, file: &Arc<KeyFile>) {
        self.unregister(key, file);
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|(_, file)| file.strong_count() > 0);
        left.push((key.clone(), Arc::downgrade(file)));
        drop(left);
        // If nothing is stored, the old fingerprint would count again, and the kernel has pages for it.
        self.remember(key, None, self.new_fingerprint());
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
    pub(crate) fn made_in(&self, prefix: &Prefix) -> Vec<Key> {
        let here = self.open_where(|key| key.parent() == *prefix);
        let made = here.into_iter().filter(|(_, file)| file.is_new());
        made.map(|(key, _)| key).collect()
    }

    /// Whether files below `prefix` were made that are not in the store yet.
    fn has_made_below(&self, prefix: &Prefix) -> bool {
        self.has_made_where(|key| is_below(key, prefix))
    }

    /// Like [`Writing::has_made_below`], but counts only files with the names of chunks.
    fn has_made_chunks_below(&self, prefix: &Prefix) -> bool {
        self.has_made_where(|key| is_below(key, prefix) && looks_like_a_chunk(key.name()))
    }

    fn has_made_where(&self, wanted: impl Fn(&Key) -> bool) -> bool {
        let found = self.open_where(wanted);
        found.iter().any(|(_, file)| file.is_new())
    }

    /// The first key of a file below `prefix` that is named as a chunk, has no form, and is written.
    pub(crate) fn first_plain_draft_below(&self, prefix: &Prefix) -> Option<Key> {
        let below = |key: &Key| is_below(key, prefix) && looks_like_a_chunk(key.name());
        let written = self.open_where(below).into_iter();
        let mut plain = written.filter(|(_, file)| file.has_draft() && file.lock().form.is_none());
        plain.next().map(|(key, _)| key)
    }

    /// The open files whose keys are `wanted`. Their own locks are taken after that of the table is released, because a
    /// file is locked while it is committed.
    fn open_where(&self, wanted: impl Fn(&Key) -> bool) -> Vec<(Key, Arc<KeyFile>)> {
        let open = self.lock_open();
        let found = open.iter().filter(|(key, _)| wanted(key));
        found
            .map(|(key, file)| (key.clone(), Arc::clone(file)))
            .collect()
    }

    /// Like [`Writing::open_where`], with the files that were detached from their keys.
    fn all_where(&self, wanted: impl Fn(&Key) -> bool) -> Vec<Arc<KeyFile>> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left = left.iter().filter(|(key, _)| wanted(key));
        let mut all: Vec<_> = left.filter_map(|(_, file)| file.upgrade()).collect();
        all.extend(self.open_where(wanted).into_iter().map(|(_, file)| file));
        all
    }

    /// Commits the files whose keys are `wanted`. The caller then syncs all changes.
    ///
    /// # Errors
    /// The first error, after all files were tried.
    fn commit_where(&self, who: Syncer, wanted: impl Fn(&Key) -> bool) -> Result<(), Error> {
        let mut result = Ok(());
        // A lost file has nothing to save, and its own handles get the error.
        let all = self.all_where(wanted).into_iter();
        for file in all.filter(|file| !file.lock().is_lost()) {
            let _name = self.keep_name(&file);
            result = result.and(file.sync(self, who));
        }
        result
    }

    /// Commits the draft of `file`, for a program that changes its name.
    fn commit_of(&self, file: &KeyFile) -> Result<(), Error> {
        let committed = file.lock().commit(self);
        committed.or_else(|error| file.after_failure(error, Audience::Other))
    }

    /// Commits the files below `prefix`, whose prefix in the store is `stored`, and makes all changes there
    /// survive a loss of power.
    ///
    /// # Errors
    /// The first error, after all files were tried.
    pub(crate) fn sync_below(&self, prefix: &Prefix, stored: &Prefix) -> Result<(), Error> {
        let committed = self.commit_where(Syncer::Directory, |key| is_below(key, prefix));
        let committed = committed.and(self.staging.settle_below(prefix));
        let removed = self.writer.sync_removed_journals();
        let synced = removed.and(self.writer.sync_below(stored));
        committed?;
        Ok(synced?)
    }

    /// How many files have drafts that are not in the store yet, and how many are only in the mount.
    fn n_drafts(&self) -> (usize, usize) {
        let (mut drafts, mut scratch) = (0, 0);
        for file in self.all_where(|_| true) {
            if file.is_scratch() {
                scratch += 1;
            } else if file.has_draft() {
                drafts += 1;
            }
        }
        (drafts, scratch)
    }

    /// Whether one more file that is not saved may be kept. Each takes a descriptor for as long as it exists, and none
    /// is kept when the mount ends.
    fn has_room_for_unsaved(&self) -> bool {
        let has_ended = self.has_ended.load(Ordering::SeqCst);
        !has_ended && self.lock_open().len() <= self.writer.most_drafts()
    }

    fn check_goes_on(&self) -> Result<(), Error> {
        if self.has_ended.load(Ordering::SeqCst) {
            return Err(StoreError::refused("", Refusal::ReadOnly).into());
        }
        Ok(())
    }

    /// Removes `file` from the open files, if it is the one at `key`.
    fn unregister(&self, key: &Key, file: &Arc<KeyFile>) {
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

    /// A lock for work on the file at `key`.
    fn share_name(&self, key: &Key) -> NameLock<'_> {
        self.names.share(vec![key.to_prefix()])
    }

    /// A lock for changes of the names `keys`, and of the files at the `other` paths. Documents of one directory may
    /// come from one object, and those of the groups above may have copies of them, so no such document is saved
    /// meanwhile.
    fn take_names(&self, keys: &[&Key], other: &[Prefix]) -> NameLock<'_> {
        let mut paths: Vec<_> = keys.iter().map(|key| key.to_prefix()).collect();
        paths.extend_from_slice(other);
        for key in keys {
            if DocumentName::of(key.name()).is_none() {
                continue;
            }
            for group in key.parent().with_ancestors() {
                let documents = DocumentName::ALL.map(|name| group.key(name.as_str().as_bytes()));
                paths.extend(documents.into_iter().flatten().map(|key| key.to_prefix()));
            }
        }
        self.names.take(paths)
    }

    /// Prevents a change of the name of `file`. `None` when the file has no name, and so never gets one.
    fn keep_name(&self, file: &KeyFile) -> Option<NameLock<'_>> {
        let mut locked = file.key()?;
        let mut lock = self.share_name(&locked);
        loop {
            // The file may have been renamed in between.
            let key = file.key()?;
            if key == locked {
                return Some(lock);
            }
            lock.move_to(&key.to_prefix());
            locked = key;
        }
    }
}

/// Whether `key` begins with `prefix` and a slash.
fn is_below(key: &Key, prefix: &Prefix) -> bool {
    prefix
        .strip(key.as_bytes())
        .is_some_and(|rest| !rest.is_empty())
}
