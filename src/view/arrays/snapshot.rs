//! Which version of each chunk an open file shows, so that its bytes are never a mix of two
//! versions.
//!
//! A file of a million chunks cannot hold all of them open. A snapshot stands for the store at one
//! moment, and remembers the versions of the objects that were read, which are absent or present. An
//! object that is read for the first time is of the moment if one of these proves it:
//!
//! * The store tells that it came to its key before the moment, or that the directory in which it is
//!   absent was not changed since, and the directories above it were not replaced since ([`Moment`],
//!   [`directories`]).
//! * It was of the same version when it was looked at before the moment ([`check`]).
//!
//! Where nothing does, the moment advances before the bytes are shown: all that was read is looked at
//! again ([`check`]). A read ends with [`Snapshot::confirm`], which does this once for all of its
//! objects.
//!
//! The versions of very many chunks are not all remembered. The moment of such a snapshot cannot
//! advance, and handles that are opened later do not share it.

mod check;
mod directories;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lru::{DefaultHasher, LruCache};

use super::audience::Audience;
use super::file::PlainFile;
use super::inputs::Inputs;
use super::lock;
use crate::error::Error;
use crate::fresh::Moment;
use crate::grid::Dims;
use crate::load::{ChunkedArray, Loader, ReaderIdentity, StatCallback, Versions};
use crate::store::{
    CancelToken, FileIdentity, Key, ObjectMeta, Prefix, Recency, StoreError, Version,
};

/// The most stored objects whose versions are remembered for good.
const MOST_SEEN: usize = 2048;
/// The same limit for stores without directories, while the file is open (about 200 bytes each): in
/// many of them nothing but these versions proves that an object is of the moment.
const MOST_SEEN_FAR: usize = 1 << 14;
/// The most objects beyond these whose versions are remembered while the file is open, so that the
/// lines of a row of chunks examine each object once.
const MOST_RECENT: usize = 1 << 13;

/// The store at one moment, as far as a file was read.
#[derive(Debug)]
pub(in crate::view) struct Snapshot {
    /// Distinguishes snapshots of one file that are open at the same time.
    pub(super) generation: u64,
    loader: Arc<Loader>,
    /// The users who may read the file, and so must be allowed to read its chunks.
    audience: Audience,
    /// The arrays in the file, in its order.
    arrays: Vec<Arc<ChunkedArray>>,
    /// Key and version of each array's document.
    documents: HashMap<ReaderIdentity, (Key, Version)>,
    /// A document of which the store does not tell whether it changed.
    untold_document: Option<Key>,
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

/// What the state of a snapshot has to know of the store.
#[derive(Debug, Clone, Copy)]
struct StoreTraits {
    never_changes: bool,
    /// Whether directories tell when names in them changed.
    has_directories: bool,
}

#[derive(Debug)]
struct SnapshotState {
    store: StoreTraits,
    since: Moment,
    /// How many moments were chosen so far. A look that began before the last of them was chosen may
    /// have been answered before it.
    moments: u64,
    /// When the last of them was chosen, or the snapshot was made. Answers that were asked for before
    /// are no looks after the moment, nor after the documents were read.
    chosen: Instant,
    /// Arrays whose document was checked.
    checked_documents: HashSet<ReaderIdentity>,
    /// What each directory is, `None` where it does not exist.
    directories: HashMap<Prefix, Option<FileIdentity>>,
    /// Directories in which objects were examined since the directories were last checked.
    unconfirmed: HashMap<Prefix, DirectoryLooks>,
    /// The number of the moment after which a directory, or one of several documents, may have been
    /// replaced.
    replaced_after: Option<u64>,
    seen: HashMap<StoredObjectId, (Key, Option<Version>), DefaultHasher>,
    /// Those of `seen` that nothing proves to be of the moment yet.
    unproven: Vec<Unproven>,
    /// Versions that objects had before the moment which were not read yet.
    foreseen: HashMap<StoredObjectId, Option<Version>, DefaultHasher>,
    /// Whether versions were read that are not in `seen`.
    overflowed: bool,
    /// The last of those versions.
    recent: LruCache<StoredObjectId, Option<Version>>,
    stale: bool,
}

/// A stored object: the identity of its array, and its indices.
type StoredObjectId = (ReaderIdentity, Dims);

/// An object that was read, and is not proven to be of the moment yet.
#[derive(Debug, Clone)]
struct Unproven {
    object: StoredObjectId,
    /// The number of the moment before the object was looked at.
    looked_after: u64,
    /// Whether one more look, after the moment, proves it: it was of the same version before.
    was_before: bool,
}

/// The objects of a directory that were examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DirectoryLooks {
    /// Whether an object was absent.
    is_absent: bool,
    /// How often an object was examined.
    looks: u64,
}

/// The result of looking at an object for the first time.
#[derive(Debug)]
struct FirstLook {
    found: Option<ObjectMeta>,
    /// The number of the moment before the look.
    after: u64,
}

impl SnapshotState {
    /// The most objects whose versions are remembered for good.
    fn most_seen(&self) -> usize {
        if self.store.has_directories {
            MOST_SEEN
        } else {
            MOST_SEEN_FAR
        }
    }

    /// Adds an object that was looked at for the first time.
    fn add(
        &mut self,
        object: StoredObjectId,
        key: Key,
        look: &FirstLook,
    ) -> Result<Option<Version>, Error> {
        let version = look.found.map(|meta| meta.version);
        if let Some((_, known)) = self.seen.get(&object) {
            // Another thread saw it first.
            return if *known == version {
                Ok(version)
            } else {
                self.fail()
            };
        }
        let is_dated = match &look.found {
            Some(meta) => !self.since.may_precede(meta),
            None => self.store.has_directories,
        };
        let was_before = is_dated || self.foreseen.remove(&object) == Some(version);
        let is_proven = was_before && look.after == self.moments || self.store.never_changes;
        let most = self.most_seen();
        if self.seen.len() < most {
            if !is_proven {
                self.unproven.push(Unproven {
                    object: object.clone(),
                    looked_after: look.after,
                    was_before,
                });
            }
            self.seen.insert(object, (key, version));
            return Ok(version);
        }
        self.overflowed = true;
        if !is_proven {
            log::warn!(
                "{key}: more than {most} objects were read, and nothing tells whether this one \
                 changed meanwhile; give --immutable if the store never changes"
            );
            return self.fail();
        }
        self.remember(object, version)
    }

    /// Remembers a version that has no room in `seen`.
    fn remember(
        &mut self,
        object: StoredObjectId,
        version: Option<Version>,
    ) -> Result<Option<Version>, Error> {
        if let Some(known) = self.recent.put(object, version)
            && known != version
        {
            // Another thread saw another version first.
            return self.fail();
        }
        if self.recent.len() > MOST_RECENT {
            self.recent.pop_lru();
        }
        Ok(version)
    }

    /// Nothing more can be shown.
    fn fail<T>(&mut self) -> Result<T, Error> {
        self.stale = true;
        Err(Error::Stale)
    }

    /// Whether all that was read is proven to be of the moment.
    fn is_proven(&self) -> bool {
        self.unproven.is_empty() && self.replaced_after.is_none()
    }
}

impl Snapshot {
    /// A snapshot of the store as it is now.
    pub(super) fn new(
        generation: u64,
        loader: Arc<Loader>,
        audience: Audience,
        file: &PlainFile,
    ) -> Snapshot {
        let since = Moment::known_to(&**loader.sources().store());
        let mut undated = HashSet::new();
        let documents = file.sources.iter().map(|source| {
            let document = &source.array.node.document;
            if since.may_precede(&document.meta) {
                undated.insert(&document.key);
            }
            let version = document.meta.version;
            (
                source.array.chunked.identity(),
                (document.key.clone(), version),
            )
        });
        let documents = documents.collect();
        let mut arrays: Vec<Arc<ChunkedArray>> = Vec::new();
        for source in &file.sources {
            let array = &source.array.chunked;
            if !arrays
                .iter()
                .any(|known| known.identity() == array.identity())
            {
                arrays.push(Arc::clone(array));
            }
        }
        let untold = file
            .sources
            .iter()
            .map(|source| &source.array.node.document);
        let untold = untold.filter(|document| !document.meta.dating.tells_changes());
        let untold_document = untold.map(|document| document.key.clone()).next();
        let sources = loader.sources();
        let store = StoreTraits {
            never_changes: sources.freshness().is_immutable(),
            has_directories: sources.store().profile().has_directories,
        };
        Snapshot {
            generation,
            arrays,
            untold_document,
            loader,
            audience,
            documents,
            inputs: Arc::clone(&file.inputs),
            handles: Mutex::new(Handles {
                count: 0,
                token: CancelToken::new(),
            }),
            clean: AtomicBool::new(false),
            advancing: Mutex::default(),
            state: Mutex::new(SnapshotState {
                store,
                since,
                moments: 0,
                chosen: Instant::now(),
                checked_documents: HashSet::new(),
                directories: HashMap::new(),
                unconfirmed: HashMap::new(),
                // One document is of the time when it was read.
                replaced_after: (undated.len() > 1).then_some(0),
                seen: HashMap::default(),
                unproven: Vec::new(),
                foreseen: HashMap::default(),
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
        let mut state = lock(&self.state);
        state.recent = LruCache::unbounded();
        state.foreseen = HashMap::default();
        if state.seen.len() > MOST_SEEN {
            // This takes too much memory for a file that may not be opened again.
            state.stale = true;
            state.seen = HashMap::default();
        }
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

    /// Looks at an object for the first time.
    fn first_look(
        &self,
        array: &ChunkedArray,
        key: &Key,
        look: StatCallback<'_>,
    ) -> Result<FirstLook, Error> {
        let parent = key.parent();
        // The directories are examined first: whoever replaces one after that is noticed when the
        // read ends.
        if self.is_immutable() {
            self.audience.check_search(self.loader.sources(), &parent)?;
        } else if !lock(&self.state).directories.contains_key(&parent)
            && self.is_replaced([(parent.clone(), false)])?
        {
            self.note_replaced();
        }
        let state = lock(&self.state);
        let (after, chosen) = (state.moments, state.chosen);
        drop(state);
        let found = Recency::scope(Some(chosen), || look(key))?;
        if let Some(meta) = &found {
            self.audience.check_object(key, meta)?;
        }
        if self.is_immutable() {
            return Ok(FirstLook { found, after });
        }
        let mut state = lock(&self.state);
        let unconfirmed = state.unconfirmed.entry(parent).or_default();
        unconfirmed.is_absent |= found.is_none();
        unconfirmed.looks += 1;
        drop(state);
        if !self.check_document(array)? {
            return lock(&self.state).fail();
        }
        Ok(FirstLook { found, after })
    }

    fn note_replaced(&self) {
        let mut state = lock(&self.state);
        state.replaced_after = Some(state.moments);
    }

    /// Checks, once for a whole read, that the objects that it examined are of the moment, and that
    /// their directories were not replaced meanwhile.
    ///
    /// # Errors
    /// [`Error::Stale`] when the bytes of the read may be a mix of two versions, and errors of the
    /// store.
    pub(super) fn confirm(&self) -> Result<(), Error> {
        let unconfirmed = lock(&self.state).unconfirmed.clone();
        if !unconfirmed.is_empty() {
            let directories = unconfirmed.iter();
            let directories =
                directories.map(|(prefix, unconfirmed)| (prefix.clone(), unconfirmed.is_absent));
            match self.is_replaced(directories) {
                // The directory was closed to readers of the file after its objects were examined.
                // Their bytes may be in the cache, which this snapshot must not show any more.
                Err(error @ Error::Store(StoreError::Denied { .. })) => {
                    lock(&self.state).stale = true;
                    return Err(error);
                }
                Err(error) => return Err(error),
                Ok(true) => self.note_replaced(),
                Ok(false) => {}
            }
        }
        self.prove()?;
        // Directories that other reads examined meanwhile are left to them.
        let mut state = lock(&self.state);
        state
            .unconfirmed
            .retain(|prefix, now| unconfirmed.get(prefix) != Some(now));
        Ok(())
    }

    /// Whether everything that was examined was checked.
    pub(super) fn is_confirmed(&self) -> bool {
        let state = lock(&self.state);
        state.unconfirmed.is_empty() && state.is_proven()
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
        let look = self.first_look(array, &key, look)?;
        let object = object(array, indices);
        let is_open = self.is_open();
        let mut state = lock(&self.state);
        let version = state.add(object, key, &look)?;
        if !is_open {
            state.recent.clear();
        }
        Ok(version)
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
        // An error is ignored here: the read that follows finds the objects unconfirmed, and
        // reports it.
        let _ = self.confirm();
    }
}

fn object(array: &ChunkedArray, indices: &[u64]) -> StoredObjectId {
    (array.identity(), array.layout().stored_indices(indices))
}
