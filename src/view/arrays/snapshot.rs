//! Which version of each chunk an open file shows, so that its bytes are never a mix of two
//! versions.
//!
//! A file of a million chunks cannot hold all of them open. A snapshot stands for the store at one
//! moment, and remembers the versions of the objects that were read. An object that is read for the
//! first time belongs to the snapshot when it is older than that moment. When it is newer,
//! everything that was read so far is checked: if the documents and the objects are unchanged, the
//! moment advances to now, because all bytes that were shown are current; otherwise the file stays
//! stale.
//!
//! Whether an object is newer is told by the time of its change, and by the directories above it,
//! which bring older files along when they are replaced ([`Moment`]).
//!
//! The versions of very many chunks are not all remembered. The moment of such a snapshot cannot
//! advance, and handles that are opened later do not share it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lru::{DefaultHasher, LruCache};

use super::audience::Audience;
use super::file::PlainFile;
use super::inputs::Inputs;
use super::lock;
use crate::error::Error;
use crate::fresh::Moment;
use crate::grid::Dims;
use crate::load::{ChunkedArray, Loader, ReaderIdentity, StatCallback, Versions};
use crate::store::{CancelToken, FileIdentity, Key, ObjectMeta, Prefix, StoreError, Version};

/// The most stored objects whose versions are remembered for good.
const MOST_SEEN: usize = 2048;
/// The most objects beyond these whose versions are remembered while the file is open, so that the
/// lines of a row of chunks examine each object once.
const MOST_RECENT: usize = 1 << 13;
/// The most directories that are remembered. Other directories are judged by the time of their
/// change alone.
const MOST_DIRECTORIES: usize = 2048;

/// Objects that the store is asked for at once: few enough that one that changed is found soon.
const ASKED_AT_ONCE: usize = 64;

/// The store at one moment, as far as a file was read.
#[derive(Debug)]
pub(in crate::view) struct Snapshot {
    /// Distinguishes snapshots of one file that are open at the same time.
    pub(super) generation: u64,
    loader: Arc<Loader>,
    /// The users who may read the file, and so must be allowed to read its chunks.
    audience: Audience,
    /// Key and version of each array's document.
    documents: HashMap<ReaderIdentity, (Key, Version)>,
    /// Everything that the file was made from.
    inputs: Arc<Inputs>,
    handles: Mutex<Handles>,
    clean: AtomicBool,
    /// Held while the moment advances.
    advancing: Mutex<()>,
    state: Mutex<SnapshotState>,
}

/// The open handles of a file.
#[derive(Debug)]
struct Handles {
    count: usize,
    /// Cancels the requests that only these handles wait for, once the last one is closed. The next
    /// one that is opened gets another token.
    token: Arc<CancelToken>,
}

#[derive(Debug)]
struct SnapshotState {
    since: Moment,
    /// Arrays whose document was checked.
    checked_documents: HashSet<ReaderIdentity>,
    /// What each directory is, `None` where it does not exist.
    directories: HashMap<Prefix, Option<FileIdentity>>,
    /// Directories in which objects were examined since the directories were last checked.
    unconfirmed: HashMap<Prefix, DirectoryLooks>,
    /// How often the moment advanced.
    advances: u64,
    seen: HashMap<StoredObjectId, (Key, Option<Version>), DefaultHasher>,
    /// Whether versions were read that are not in `seen`.
    overflowed: bool,
    /// The last of those versions.
    recent: LruCache<StoredObjectId, Option<Version>>,
    stale: bool,
}

/// A stored object: the identity of its array, and its indices.
type StoredObjectId = (ReaderIdentity, Dims);

impl SnapshotState {
    /// Remembers a version that has no room in `seen`.
    fn remember(&mut self, object: StoredObjectId, version: Option<Version>) -> Result<(), Error> {
        if let Some(known) = self.recent.put(object, version)
            && known != version
        {
            // Another thread saw another version first.
            self.stale = true;
            return Err(Error::Stale);
        }
        if self.recent.len() > MOST_RECENT {
            self.recent.pop_lru();
        }
        Ok(())
    }
}

/// The objects of a directory that were examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DirectoryLooks {
    /// Whether an object was absent.
    is_absent: bool,
    /// How often an object was examined.
    looks: u64,
}

impl Snapshot {
    /// A snapshot of the store as it is now.
    pub(super) fn new(
        generation: u64,
        loader: Arc<Loader>,
        audience: Audience,
        file: &PlainFile,
    ) -> Snapshot {
        let documents = file.sources.iter().map(|source| {
            let document = &source.array.node.document;
            let version = document.meta.version;
            (
                source.array.chunked.identity(),
                (document.key.clone(), version),
            )
        });
        let since = Moment::known_to(&**loader.sources().store());
        Snapshot {
            generation,
            loader,
            audience,
            documents: documents.collect(),
            inputs: Arc::clone(&file.inputs),
            handles: Mutex::new(Handles {
                count: 0,
                token: CancelToken::new(),
            }),
            clean: AtomicBool::new(false),
            advancing: Mutex::default(),
            state: Mutex::new(SnapshotState {
                since,
                checked_documents: HashSet::new(),
                directories: HashMap::new(),
                unconfirmed: HashMap::new(),
                advances: 0,
                seen: HashMap::default(),
                overflowed: false,
                recent: LruCache::unbounded(),
                stale: false,
            }),
        }
    }

    fn is_immutable(&self) -> bool {
        self.loader.sources().freshness().is_immutable()
    }

    /// Counts an open handle, until [`Snapshot::close`].
    pub(super) fn open(&self) {
        let mut handles = lock(&self.handles);
        if handles.count == 0 {
            handles.token = CancelToken::new();
        }
        handles.count += 1;
    }

    /// Counts a handle that was closed. After the last one, requests that were made for it alone
    /// are cancelled, and those that a thread makes for it a little later.
    pub(super) fn close(&self) {
        let mut handles = lock(&self.handles);
        handles.count = handles.count.saturating_sub(1);
        if handles.count > 0 {
            return;
        }
        let token = Arc::clone(&handles.token);
        drop(handles);
        token.cancel();
        lock(&self.state).recent = LruCache::unbounded();
    }

    /// Whether a handle is open.
    pub(super) fn is_open(&self) -> bool {
        lock(&self.handles).count > 0
    }

    /// Whether this is a snapshot of the same version of `file`, for the same users.
    pub(super) fn is_of(&self, file: &PlainFile, audience: Audience) -> bool {
        self.inputs.observations.fingerprint() == file.inputs.observations.fingerprint()
            && self.audience == audience
    }

    /// Whether all pages that the kernel holds of the file were read from this snapshot.
    pub(super) fn is_clean(&self) -> bool {
        self.clean.load(Ordering::Acquire)
    }

    /// The kernel holds no pages of the file.
    pub(super) fn set_clean(&self) {
        self.clean.store(true, Ordering::Release);
    }

    /// Whether handles that are opened now show this snapshot: nothing has changed, as far as the
    /// store remembers. Where it remembers nothing, the moment advances to now.
    pub(super) fn is_current(&self) -> bool {
        if self.loader.sources().store().told_since().is_none() {
            return self.advance_to_now();
        }
        let state = lock(&self.state);
        let is_shown = !state.stale && !state.overflowed;
        let seen: Vec<_> = state.seen.values().cloned().collect();
        drop(state);
        is_shown && self.is_unchanged(&seen)
    }

    /// Advances the moment to now. Returns `false` when something has changed, or when too much was
    /// read to check it. The store is asked without the lock that every read takes; if another
    /// thread advances the moment meanwhile, everything is checked again.
    fn advance_to_now(&self) -> bool {
        if self.is_immutable() {
            return true;
        }
        let asked = Moment::now();
        // One thread checks for all that open the file at this time; reads go on.
        let _alone = lock(&self.advancing);
        loop {
            let now = Moment::now();
            // What was told before this moment may have changed since.
            self.loader.sources().store().ask_again();
            let (mut unchecked, advances): (Vec<_>, u64) = {
                let state = lock(&self.state);
                if state.stale || state.overflowed {
                    return false;
                }
                if state.since >= asked {
                    return true;
                }
                (state.seen.values().cloned().collect(), state.advances)
            };
            let mut checked = HashSet::new();
            loop {
                if !self.is_unchanged(&unchecked) {
                    return false;
                }
                checked.extend(unchecked.drain(..).map(|(key, _)| key));
                let mut state = lock(&self.state);
                if state.stale || state.overflowed {
                    return false;
                }
                if state.advances != advances {
                    break;
                }
                // A read that has added an object meanwhile may have looked at it before this moment, and
                // the object may have changed since.
                let added = state.seen.values();
                let added = added.filter(|(key, _)| !checked.contains(key));
                unchecked.extend(added.cloned());
                if unchecked.is_empty() {
                    state.advances += 1;
                    state.directories.clear();
                    state.since = state.since.max(now);
                    return true;
                }
            }
        }
    }

    /// Whether the documents and the objects that were read are unchanged, and all readers of the
    /// file may still read them. The store is asked for many of them at once.
    fn is_unchanged(&self, seen: &[(Key, Option<Version>)]) -> bool {
        let directories = if self.audience.is_limited() {
            directories_of(seen.iter().map(|(key, _)| key))
        } else {
            Vec::new()
        };
        let sources = self.loader.sources();
        let are_same = |seen: &[(Key, Option<Version>)]| {
            let keys: Vec<Key> = seen.iter().map(|(key, _)| key.clone()).collect();
            let found = sources.stat_many(&keys);
            // An object that cannot be examined counts as changed.
            seen.iter().zip(found).all(|((key, version), found)| {
                found.is_ok_and(|found| self.is_version(key, found, *version))
            })
        };
        let are_passable = |directories: &[Prefix]| {
            let found = sources.stat_prefixes(directories).unwrap_or_default();
            let mut found = directories.iter().zip(&found);
            found.len() == directories.len()
                && found.all(|(prefix, meta)| self.may_pass(prefix, meta.as_ref()).is_ok())
        };
        self.inputs.are_unchanged(sources)
            && seen.chunks(ASKED_AT_ONCE).all(are_same)
            && directories.chunks(ASKED_AT_ONCE).all(are_passable)
    }

    /// Whether `found` is of `version`, and all readers of the file may read it.
    fn is_version(&self, key: &Key, found: Option<ObjectMeta>, version: Option<Version>) -> bool {
        let may_read = |meta| self.audience.check_object(key, &meta).is_ok();
        found.map(|meta| meta.version) == version && found.is_none_or(may_read)
    }

    /// The version of an object that is read for the first time, if it belongs to this snapshot.
    fn first_look(
        &self,
        array: &ChunkedArray,
        key: &Key,
        look: StatCallback<'_>,
    ) -> Result<Option<Version>, Error> {
        let parent = key.parent();
        let mut came_later = false;
        // The directories are examined first: whoever replaces one after that is noticed when the
        // read ends.
        if self.is_immutable() {
            self.audience.check_search(self.loader.sources(), &parent)?;
        } else if !lock(&self.state).directories.contains_key(&parent) {
            came_later |= self.is_replaced([(parent.clone(), false)])?;
        }
        let found = look(key)?;
        if let Some(meta) = &found {
            self.audience.check_object(key, meta)?;
        }
        let version = found.map(|meta| meta.version);
        if self.is_immutable() {
            return Ok(version);
        }
        let mut state = lock(&self.state);
        let unconfirmed = state.unconfirmed.entry(parent).or_default();
        unconfirmed.is_absent |= found.is_none();
        unconfirmed.looks += 1;
        came_later |= found.is_some_and(|meta| state.since.may_precede(&meta));
        drop(state);
        if !self.check_document(array)? {
            return Err(self.becomes_stale());
        }
        self.advance_or_fail(came_later)?;
        Ok(version)
    }

    /// Checks, once for a whole read, that the directories of the objects that it examined were not
    /// replaced meanwhile.
    ///
    /// # Errors [`Error::Stale`] when one was replaced, so that the bytes of the read may be a mix
    /// of two versions.
    pub(super) fn confirm(&self) -> Result<(), Error> {
        let unconfirmed = lock(&self.state).unconfirmed.clone();
        if unconfirmed.is_empty() {
            return Ok(());
        }
        let directories = unconfirmed.iter();
        let directories =
            directories.map(|(prefix, unconfirmed)| (prefix.clone(), unconfirmed.is_absent));
        let came_later = match self.is_replaced(directories) {
            // The directory was closed to readers of the file after its objects were examined.
            // Their bytes may be in the cache, which this snapshot must not show any more.
            Err(error @ Error::Store(StoreError::Denied { .. })) => {
                lock(&self.state).stale = true;
                return Err(error);
            }
            replaced => replaced?,
        };
        self.advance_or_fail(came_later)?;
        // Directories that other reads examined meanwhile are left to them.
        let mut state = lock(&self.state);
        state
            .unconfirmed
            .retain(|prefix, now| unconfirmed.get(prefix) != Some(now));
        Ok(())
    }

    /// Whether all directories of examined objects were checked.
    pub(super) fn is_confirmed(&self) -> bool {
        lock(&self.state).unconfirmed.is_empty()
    }

    /// Advances the moment if something is newer; the file becomes stale if that fails.
    fn advance_or_fail(&self, came_later: bool) -> Result<(), Error> {
        if came_later && !self.advance_to_now() {
            return Err(self.becomes_stale());
        }
        Ok(())
    }

    fn becomes_stale(&self) -> Error {
        lock(&self.state).stale = true;
        Error::Stale
    }

    /// Whether one of `directories`, or one above it, was replaced. Where an object was absent (the
    /// flag of a directory), the nearest directory that exists must not have changed either,
    /// because the object may have been removed from it.
    fn is_replaced(
        &self,
        directories: impl IntoIterator<Item = (Prefix, bool)>,
    ) -> Result<bool, Error> {
        let since = lock(&self.state).since;
        let is_changed =
            |meta: Option<&ObjectMeta>| meta.is_some_and(|meta| since.may_precede(meta));
        let (mut way, mut places, mut absent) = (Vec::new(), HashMap::new(), Vec::new());
        for (directory, is_absent) in directories {
            for prefix in up_from(&directory) {
                if places.contains_key(&prefix) {
                    // The directories above it were added with it.
                    break;
                }
                places.insert(prefix.clone(), way.len());
                way.push(prefix);
            }
            if is_absent {
                absent.push(directory);
            }
        }
        let found = self.loader.sources().stat_prefixes(&way)?;
        for (prefix, meta) in way.iter().zip(&found) {
            self.may_pass(prefix, meta.as_ref())?;
        }
        let mut is_replaced = false;
        // They are remembered only after all of them were found to be open: remembered ones are not
        // examined again.
        for (prefix, meta) in way.iter().zip(&found) {
            is_replaced |= self.is_swapped(prefix, meta.as_ref(), is_changed(meta.as_ref()));
        }
        let mut nearest = absent.iter().filter_map(|directory| {
            up_from(directory).find_map(|prefix| found.get(*places.get(&prefix)?)?.as_ref())
        });
        Ok(is_replaced | nearest.any(|meta| is_changed(Some(meta))))
    }

    /// Whether all readers of the file may search the directory at `prefix`, if it exists.
    fn may_pass(&self, prefix: &Prefix, meta: Option<&ObjectMeta>) -> Result<(), Error> {
        meta.map_or(Ok(()), |meta| {
            self.audience.check_directory(prefix, meta.access())
        })
    }

    /// Whether a directory was replaced since it was remembered. A directory that is seen for the
    /// first time counts as replaced if it `changed`.
    fn is_swapped(&self, prefix: &Prefix, meta: Option<&ObjectMeta>, changed: bool) -> bool {
        let identity = meta.map(|meta| meta.version.file_identity());
        let mut state = lock(&self.state);
        if let Some(known) = state.directories.get(prefix) {
            return *known != identity;
        }
        if state.directories.len() < MOST_DIRECTORIES {
            state.directories.insert(prefix.clone(), identity);
        }
        changed
    }

    /// Whether the document of `array` is the one that the file was made from; examined once.
    fn check_document(&self, array: &ChunkedArray) -> Result<bool, Error> {
        let identity = array.identity();
        if lock(&self.state).checked_documents.contains(&identity) {
            return Ok(true);
        }
        let Some((key, version)) = self.documents.get(&identity) else {
            // The array belongs to another version of the file.
            return Ok(false);
        };
        let now = self.loader.sources().stat(key)?;
        if now.map(|meta| meta.version) != Some(*version) {
            return Ok(false);
        }
        lock(&self.state).checked_documents.insert(identity);
        Ok(true)
    }
}

impl Versions for Snapshot {
    fn version(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        look: StatCallback<'_>,
    ) -> Result<Option<Version>, Error> {
        if let Some(known) = self.known(array, indices) {
            return Ok(known);
        }
        if lock(&self.state).stale {
            return Err(Error::Stale);
        }
        let key = array.stored_key(indices)?;
        let object = object(array, indices);
        let mut advances = lock(&self.state).advances;
        let version = self.first_look(array, &key, look)?;
        loop {
            let mut state = lock(&self.state);
            if let Some((_, known)) = state.seen.get(&object) {
                // Another thread saw it first.
                if *known != version {
                    state.stale = true;
                    return Err(Error::Stale);
                }
                return Ok(version);
            }
            if state.advances == advances {
                if state.seen.len() < MOST_SEEN {
                    state.seen.insert(object, (key, version));
                } else {
                    state.overflowed = true;
                    if self.is_open() {
                        state.remember(object, version)?;
                    }
                }
                return Ok(version);
            }
            // The moment advanced without checking this object.
            advances = state.advances;
            drop(state);
            if self.loader.sources().stat(&key)?.map(|meta| meta.version) != version {
                return Err(self.becomes_stale());
            }
        }
    }

    fn known(&self, array: &ChunkedArray, indices: &[u64]) -> Option<Option<Version>> {
        let mut state = lock(&self.state);
        if state.stale {
            return None;
        }
        let object = object(array, indices);
        match state.seen.get(&object) {
            Some(seen) => Some(seen.1),
            None if state.overflowed => state.recent.get(&object).copied(),
            None => None,
        }
    }

    fn cancel_token(&self) -> Option<Arc<CancelToken>> {
        Some(Arc::clone(&lock(&self.handles).token))
    }

    fn settle(&self) {
        // An error is ignored here: the read that follows finds the directories unconfirmed, and
        // reports it.
        let _ = self.confirm();
    }
}

fn object(array: &ChunkedArray, indices: &[u64]) -> StoredObjectId {
    (array.identity(), array.layout().stored_indices(indices))
}

/// The directories that hold the objects at `keys`, and those above them, each once.
fn directories_of<'k>(keys: impl Iterator<Item = &'k Key>) -> Vec<Prefix> {
    let mut found = HashSet::new();
    for key in keys {
        // The directories above a known one are known, too.
        let parent = key.parent();
        for directory in up_from(&parent) {
            if !found.insert(directory) {
                break;
            }
        }
    }
    found.into_iter().collect()
}

/// `directory`, and those above it, up to the root.
fn up_from(directory: &Prefix) -> impl Iterator<Item = Prefix> {
    let parent = |prefix: &Prefix| prefix.to_key().map(|key| key.parent());
    std::iter::successors(Some(directory.clone()), parent)
}
