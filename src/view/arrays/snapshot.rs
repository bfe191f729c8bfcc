//! The versions of the chunks that an open file shows, so that its bytes are never a mix of two versions.
//!
//! A file of a million chunks cannot hold all of them open. A snapshot stands for the store at one moment, and
//! remembers the versions of the objects that were read; absence counts as a version. An object that is read for the
//! first time is known to have had its version at the moment if one of these proves it:
//!
//! * The store dates the object before the moment. For an absent object, its directory has not changed since the
//!   moment. In both cases, the directories above were not replaced since ([`Moment`], [`directories`]).
//! * It had the same version when it was examined before the moment ([`check`]).
//!
//! If neither proves it, the moment advances before the bytes are shown: all objects that were read are examined again
//! ([`check`]). A read ends with [`Snapshot::confirm`], which does this once for all of its objects.
//!
//! The versions of very many chunks are not all remembered. The moment of such a snapshot cannot advance, and handles
//! that are opened later do not share it. In stores without directories, whose objects often have no other proof, a
//! version takes few bytes ([`SeenVersions`]), and those of a million objects are remembered while the file is open.

mod check;
mod directories;
mod pattern;
mod seen_versions;
mod state;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lru::{DefaultHasher, LruCache};
use seen_versions::{SeenVersions, StoredObject};
use state::{DocumentCheck, FirstExamination, SnapshotState, StoreTraits};

use super::audience::Audience;
use super::file::PlainFile;
use super::inputs::Inputs;
use super::lock;
use crate::budget::Holding;
use crate::error::Error;
use crate::fresh::Moment;
use crate::grid::{indices_of, rank_of};
use crate::load::{ChunkedArray, Loader, ReaderIdentity, StatCallback, Versions};
use crate::store::{CancelToken, Key, Recency, StoreError, Version};

/// The most stored objects whose versions are remembered for good.
const MOST_SEEN: usize = 2048;
/// The same limit for stores without directories, while the file is open. In many of them, these versions are the only
/// proof that an object had its version at the moment.
const MOST_SEEN_FAR: usize = 1 << 20;
/// This many versions of objects of a store without directories are remembered without a reservation of memory.
const FREE_SEEN_FAR: usize = 1 << 14;
/// The most memory that the version of an object takes: in a table, which may be growing, and in the list of a check.
const SEEN_BYTES: usize = 96;
/// The most objects whose whole version is remembered while the file is open, so that the lines of a row of chunks
/// examine each object once.
const MOST_RECENT: usize = 1 << 14;

/// The part of the store that was read of a file, at one moment.
#[derive(Debug)]
pub(in crate::view) struct Snapshot {
    /// Distinguishes snapshots of one file that are open at the same time.
    pub(super) generation: u64,
    /// Distinguishes it from all other snapshots of the mount.
    pub(super) number: u64,
    loader: Arc<Loader>,
    /// The users who may read the file, and so must be allowed to read its chunks.
    audience: Audience,
    /// The arrays in the file, in its order.
    arrays: Vec<Arc<ChunkedArray>>,
    /// The place of each array in `arrays`, and key and version of its document.
    documents: HashMap<ReaderIdentity, (usize, Key, Version), DefaultHasher>,
    /// A document whose changes the store does not reveal.
    untold_document: Option<Key>,
    /// All inputs of the file.
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
    /// Cancels the requests that only these handles wait for, once the last handle is closed. The next handle that is
    /// opened gets another token.
    token: Arc<CancelToken>,
}

impl Snapshot {
    /// A snapshot of the current store, with one open handle. It takes over the versions that objects had when they were
    /// read through an `earlier` snapshot of the same file.
    pub(super) fn new(
        (generation, number): (u64, u64),
        loader: Arc<Loader>,
        audience: Audience,
        (file, earlier): (&PlainFile, Option<&Snapshot>),
    ) -> Snapshot {
        let since = Moment::known_to(&**loader.sources().store());
        let mut undated = HashSet::new();
        let mut arrays: Vec<Arc<ChunkedArray>> = Vec::new();
        let mut documents = HashMap::default();
        for source in &file.sources {
            let document = &source.array.node.document;
            if since.may_precede(&document.meta) {
                undated.insert(&document.key);
            }
            let array = &source.array.chunked;
            documents.entry(array.identity()).or_insert_with(|| {
                arrays.push(Arc::clone(array));
                (
                    arrays.len() - 1,
                    document.key.clone(),
                    document.meta.version,
                )
            });
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
        let earlier = earlier.filter(|_| !store.has_directories);
        let seen = earlier.map(Snapshot::seen_so_far);
        // The versions from the earlier snapshot are older than this moment. Without them, answers count that were requested
        // while the documents were there.
        let documented: Option<Vec<Instant>> = file
            .sources
            .iter()
            .map(|source| sources.store().told_at(&source.array.node.document.key))
            .map(|told| told.map(|told| told.answered))
            .collect();
        let documented = documented.and_then(|told| told.into_iter().max());
        let chosen = documented.filter(|_| seen.is_none());
        let chosen = chosen.unwrap_or_else(Instant::now);
        let document_check = match seen {
            Some(_) if !store.never_changes => DocumentCheck::Left,
            _ => DocumentCheck::Done,
        };
        let (seen, earlier) = seen.unwrap_or_default();
        Snapshot {
            generation,
            number,
            arrays,
            untold_document,
            loader,
            audience,
            documents,
            inputs: Arc::clone(&file.inputs),
            handles: Mutex::new(Handles {
                count: 1,
                token: CancelToken::new(),
            }),
            clean: AtomicBool::new(false),
            advancing: Mutex::default(),
            state: Mutex::new(SnapshotState {
                store,
                since,
                moments: 0,
                chosen,
                checked_documents: HashSet::default(),
                directories: HashMap::new(),
                unconfirmed: HashMap::default(),
                // A single document has the time at which it was read.
                replaced_after: (undated.len() > 1).then_some(0),
                room: if store.has_directories {
                    MOST_SEEN
                } else {
                    FREE_SEEN_FAR
                },
                reserved: Vec::new(),
                unproven: Vec::new(),
                guesses: (0, 0),
                document_check,
                overflowed: false,
                recent: LruCache::unbounded(),
                seen,
                earlier,
                stale: false,
            }),
        }
    }

    /// The number of the snapshot, which no other one of the mount has; `None` if the store never changes, so that all
    /// snapshots of a file are the same.
    pub(super) fn version(&self) -> Option<u64> {
        (!self.is_immutable()).then_some(self.number)
    }

    fn is_immutable(&self) -> bool {
        self.loader.sources().freshness().is_immutable()
    }

    /// Counts an open handle, until [`Snapshot::close`]. Returns false, and counts none, if the snapshot can show no more
    /// bytes: another thread may have closed the last handle since the caller asked whether the snapshot is current.
    #[must_use]
    pub(super) fn open(&self) -> bool {
        let mut handles = lock(&self.handles);
        if lock(&self.state).stale {
            return false;
        }
        if handles.count == 0 {
            handles.token = CancelToken::new();
        }
        handles.count += 1;
        true
    }

    /// Counts a handle that was closed. After the last one, requests that were made for these handles alone are
    /// cancelled, and also those that a thread makes for them a little later.
    pub(super) fn close(&self) {
        let mut handles = lock(&self.handles);
        handles.count = handles.count.saturating_sub(1);
        if handles.count > 0 {
            return;
        }
        let token = Arc::clone(&handles.token);
        // `handles` stays locked meanwhile, so that no handle is opened whose snapshot becomes stale.
        let mut state = lock(&self.state);
        let mut forgotten = SeenVersions::default();
        // More versions take too much memory for a file that may not be opened again.
        if state.seen.len() > MOST_SEEN {
            state.seen.forget_ahead();
        }
        if state.seen.len() > MOST_SEEN {
            state.stale = true;
            forgotten = std::mem::take(&mut state.seen);
        }
        let is_whole = !state.stale && !state.overflowed;
        state.keep_recent(if is_whole { MOST_SEEN } else { 0 });
        let reserved = std::mem::take(&mut state.reserved);
        if !reserved.is_empty() {
            state.room = FREE_SEEN_FAR;
        }
        drop(state);
        drop(handles);
        token.cancel();
        drop(forgotten);
        drop(reserved);
    }

    /// The versions of the objects that were seen, for another snapshot of the same file.
    fn seen_so_far(&self) -> (SeenVersions, HashMap<StoredObject, Version>) {
        let state = lock(&self.state);
        let recent = state.recent.iter();
        let recent = recent.filter_map(|(object, version)| Some((*object, (*version)?)));
        let mut versions: HashMap<_, _> = recent.take(MOST_SEEN).collect();
        for (object, version) in &state.earlier {
            if versions.len() < MOST_SEEN {
                versions.entry(*object).or_insert(*version);
            }
        }
        (state.seen.to_ahead(), versions)
    }

    /// Whether there is memory for the versions of `more` objects. Missing memory is reserved.
    fn has_room(&self, more: usize) -> bool {
        loop {
            let state = lock(&self.state);
            let (room, most) = (state.room, state.most_seen());
            let wanted = state.seen.len().saturating_add(more);
            drop(state);
            if wanted <= room || wanted > most {
                return wanted <= room;
            }
            let wanted = wanted.max(2 * room).min(most);
            let bytes = (wanted - room).saturating_mul(SEEN_BYTES) as u64;
            let holding = Holding::NOTHING.to_hold("the versions of chunks of an open file");
            let cache = self.loader.cache();
            let Some(reserved) = cache.reserve_kept_if_spare(bytes, holding) else {
                return false;
            };
            let mut state = lock(&self.state);
            if state.room == room {
                state.room = wanted;
                state.reserved.push(reserved);
            }
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

    /// Notes that the kernel holds no pages of the file.
    pub(super) fn set_clean(&self) {
        self.clean.store(true, Ordering::Release);
    }

    /// Examines an object for the first time.
    fn examine_first(
        &self,
        array: &ChunkedArray,
        key: &Key,
        stat: StatCallback<'_>,
    ) -> Result<FirstExamination, Error> {
        let parent = key.parent();
        // The directories are examined first: if one is replaced after that, the end of the read notices it.
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
        let found = Recency::scope(Some(chosen), || stat(key))?;
        if let Some(meta) = &found {
            self.audience.check_object(key, meta)?;
        }
        if self.is_immutable() {
            return Ok(FirstExamination { found, after });
        }
        let mut state = lock(&self.state);
        let unconfirmed = state.unconfirmed.entry(parent).or_default();
        unconfirmed.is_absent |= found.is_none();
        unconfirmed.count += 1;
        drop(state);
        if !self.check_document(array)? {
            return lock(&self.state).fail();
        }
        Ok(FirstExamination { found, after })
    }

    /// The stored object that holds the chunk `indices`; `None` if the array is not in the file.
    fn object(&self, array: &ChunkedArray, indices: &[u64]) -> Option<StoredObject> {
        let (place, ..) = self.documents.get(&array.identity())?;
        let layout = array.layout();
        let rank = rank_of(&layout.stored_indices(indices), layout.stored_counts())?;
        Some(StoredObject {
            array: *place,
            rank,
        })
    }

    /// The key of a stored object.
    fn key(&self, object: StoredObject) -> Result<Key, Error> {
        let array = self.arrays.get(object.array).ok_or(Error::Stale)?;
        let indices = indices_of(object.rank, array.layout().stored_counts());
        Ok(array.key_of_stored(&indices.ok_or(Error::Stale)?)?)
    }

    fn note_replaced(&self) {
        let mut state = lock(&self.state);
        state.replaced_after = Some(state.moments);
    }

    /// Checks, once for a whole read, that the objects that it examined had their versions at the moment, and that
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
        // Directories that other reads examined meanwhile are left to those reads.
        let mut state = lock(&self.state);
        state
            .unconfirmed
            .retain(|prefix, now| unconfirmed.get(prefix) != Some(now));
        Ok(())
    }

    /// Whether all examined objects were checked.
    pub(super) fn is_confirmed(&self) -> bool {
        let state = lock(&self.state);
        state.unconfirmed.is_empty() && state.is_proven()
    }

    /// Whether the document of `array` is the one from which the file was made. It is examined once.
    fn check_document(&self, array: &ChunkedArray) -> Result<bool, Error> {
        let identity = array.identity();
        if lock(&self.state).checked_documents.contains(&identity) {
            return Ok(true);
        }
        let Some((_, key, version)) = self.documents.get(&identity) else {
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
        stat: StatCallback<'_>,
    ) -> Result<Option<Version>, Error> {
        if let Some(known) = self.known(array, indices) {
            return Ok(known);
        }
        if lock(&self.state).stale {
            return Err(Error::Stale);
        }
        let key = array.stored_key(indices)?;
        let first = self.examine_first(array, &key, stat)?;
        let Some(object) = self.object(array, indices) else {
            // The array belongs to another version of the file.
            return lock(&self.state).fail();
        };
        self.has_room(1);
        let is_open = self.is_open();
        let mut state = lock(&self.state);
        let version = state.add(object, &key, &first)?;
        if !is_open {
            state.keep_recent(MOST_SEEN);
        }
        Ok(version)
    }

    fn earlier(&self, array: &ChunkedArray, indices: &[u64]) -> Option<Version> {
        let object = self.object(array, indices)?;
        lock(&self.state).earlier.get(&object).copied()
    }

    fn known(&self, array: &ChunkedArray, indices: &[u64]) -> Option<Option<Version>> {
        let object = self.object(array, indices)?;
        let mut state = lock(&self.state);
        if state.stale {
            return None;
        }
        state.recent.get(&object).copied()
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
