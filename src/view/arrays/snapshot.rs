//! Which version of each chunk an open file shows, so that it never mixes two.
//!
//! A file of a million chunks cannot hold them all open. A snapshot stands for the store at one
//! moment, and remembers the versions of the stored objects that were read so far. One that is
//! read for the first time and is older than the moment belongs to it. One that came later does
//! not. Then, if all that was read so far and the documents are still as they were, the moment
//! moves on to now, because what was shown is what is there now too; else the file is stale, for
//! good.
//!
//! What came later is told by its time of change, which nobody can set back, and by the
//! directories above it: one that is replaced brings old files along.
//!
//! Of a file of very many chunks not all versions are remembered. Then its moment cannot move,
//! and it is not shared with those who open the file later.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use lru::{DefaultHasher, LruCache};

use super::audience::Audience;
use super::file::PlainFile;
use super::inputs::Inputs;
use super::lock;
use crate::error::Error;
use crate::grid::Dims;
use crate::load::{ChunkedArray, Loader, Look, ReaderIdentity, Versions};
use crate::store::{GRAIN, Key, ObjectMeta, Prefix, StoreError, Version};

/// Stored objects whose versions are remembered.
const MOST_SEEN: usize = 2048;
/// Of others, those that were read last, so that the lines of a row of chunks ask once: while
/// someone reads.
const MOST_RECENT: usize = 1 << 13;
/// Directories that are remembered; of others, only their times say something.
const MOST_DIRECTORIES: usize = 2048;

/// Objects that the store is asked for at once: few enough for one that changed to be found soon.
const ASKED_AT_ONCE: usize = 64;

/// The store at one moment, as far as it was read.
#[derive(Debug)]
pub(in crate::view) struct Snapshot {
    /// Tells it from others of the same file that may be read at the same time.
    pub(super) generation: u64,
    loader: Arc<Loader>,
    /// Nothing changes.
    immutable: bool,
    /// The users who may read the file, and so all of its chunks.
    audience: Audience,
    /// The document of each array, by the identity of its reader.
    documents: HashMap<ReaderIdentity, (Key, Version)>,
    /// All that the file was made from.
    inputs: Arc<Inputs>,
    /// Readers that have it open.
    handles: AtomicUsize,
    clean: AtomicBool,
    /// Taken by the one who moves the moment.
    moving: Mutex<()>,
    state: Mutex<SnapshotState>,
}

#[derive(Debug)]
struct SnapshotState {
    since: SystemTime,
    /// Arrays whose document was seen to be as it was.
    entered: HashSet<ReaderIdentity>,
    /// Which directories they are: device and number, or none.
    directories: HashMap<Prefix, Option<(u64, u64)>>,
    /// Directories of what was looked at since they were.
    touched: HashMap<Prefix, DirectoryLooks>,
    /// How often the moment moved.
    moves: u64,
    seen: HashMap<StoredObjectId, (Key, Option<Version>), DefaultHasher>,
    /// Whether some that were read are not in `seen`.
    overflowed: bool,
    /// The last of those.
    recent: LruCache<StoredObjectId, Option<Version>>,
    stale: bool,
}

/// A stored object of an array: the identity of its reader, and the object's indices.
type StoredObjectId = (ReaderIdentity, Dims);

impl SnapshotState {
    /// Remembers for a while what is not in `seen`.
    fn remember(&mut self, object: StoredObjectId, version: Option<Version>) -> Result<(), Error> {
        if let Some(known) = self.recent.put(object, version)
            && known != version
        {
            // Another thread was first, and saw another one.
            self.stale = true;
            return Err(Error::Stale);
        }
        if self.recent.len() > MOST_RECENT {
            self.recent.pop_lru();
        }
        Ok(())
    }
}

/// What was looked at in a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DirectoryLooks {
    /// Whether something was absent.
    is_absent: bool,
    /// How often something was looked at.
    looks: u64,
}

impl Snapshot {
    /// The store as it is now.
    pub(super) fn new(
        generation: u64,
        loader: Arc<Loader>,
        immutable: bool,
        audience: Audience,
        file: &PlainFile,
    ) -> Snapshot {
        let documents = file.sources.iter().map(|source| {
            let document = &source.array.node.document;
            let version = document.meta.version;
            (source.chunked().identity(), (document.key.clone(), version))
        });
        Snapshot {
            generation,
            loader,
            immutable,
            audience,
            documents: documents.collect(),
            inputs: Arc::clone(&file.inputs),
            handles: AtomicUsize::new(0),
            clean: AtomicBool::new(false),
            moving: Mutex::default(),
            state: Mutex::new(SnapshotState {
                since: SystemTime::now(),
                entered: HashSet::new(),
                directories: HashMap::new(),
                touched: HashMap::new(),
                moves: 0,
                seen: HashMap::default(),
                overflowed: false,
                recent: LruCache::unbounded(),
                stale: false,
            }),
        }
    }

    /// One more reader, until [`Snapshot::close`].
    pub(super) fn open(&self) {
        self.handles.fetch_add(1, Ordering::AcqRel);
    }

    /// One reader less.
    pub(super) fn close(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            lock(&self.state).recent = LruCache::unbounded();
        }
    }

    /// Whether someone reads it.
    pub(super) fn is_open(&self) -> bool {
        self.handles.load(Ordering::Acquire) > 0
    }

    /// Whether it is of `file`, for these users, and not of what the same name was before or after.
    pub(super) fn is_of(&self, file: &PlainFile, audience: Audience) -> bool {
        self.inputs.fingerprint() == file.inputs.fingerprint() && self.audience == audience
    }

    /// Whether all that the kernel holds of the file was read from this snapshot.
    pub(super) fn is_clean(&self) -> bool {
        self.clean.load(Ordering::Acquire)
    }

    /// The kernel holds nothing of the file.
    pub(super) fn set_clean(&self) {
        self.clean.store(true, Ordering::Release);
    }

    /// Makes this the store as it is now; `false` when it is not, or too much was read to say. The store
    /// is asked without the lock, which every read takes: if another one moved it meanwhile, it is asked
    /// again.
    pub(super) fn moves_to_now(&self) -> bool {
        if self.immutable {
            return true;
        }
        let asked = SystemTime::now();
        // One asks for all who open the file meanwhile; reads go on.
        let _alone = lock(&self.moving);
        loop {
            let now = SystemTime::now();
            let (seen, directories, moves) = {
                let state = lock(&self.state);
                if state.stale || state.overflowed {
                    return false;
                }
                if state.since >= asked {
                    return true;
                }
                let seen: Vec<_> = state.seen.values().cloned().collect();
                let directories = if self.audience.is_limited() {
                    state.directories.keys().cloned().collect()
                } else {
                    Vec::new()
                };
                (seen, directories, state.moves)
            };
            if !self.is_unchanged(&seen, &directories) {
                return false;
            }
            let mut state = lock(&self.state);
            if state.stale || state.overflowed {
                return false;
            }
            // What was looked at for the first time meanwhile is older than the moment before, and there.
            if state.moves == moves {
                state.moves += 1;
                state.directories.clear();
                state.since = state.since.max(now);
                return true;
            }
        }
    }

    /// Whether the documents and the objects that were read are as they were, and all who may read the
    /// file may still go to them. The store is asked for many of them at once.
    fn is_unchanged(&self, seen: &[(Key, Option<Version>)], directories: &[Prefix]) -> bool {
        let sources = self.loader.sources();
        // What cannot be looked at any more is not what it was.
        let is_same = |(key, version): &(Key, Option<Version>), found| matches!(found, Ok(found) if self.is_version(key, found, *version));
        let are_same = |seen: &[(Key, Option<Version>)]| {
            let keys: Vec<Key> = seen.iter().map(|(key, _)| key.clone()).collect();
            let found = sources.stat_many(&keys);
            seen.iter()
                .zip(found)
                .all(|(seen, found)| is_same(seen, found))
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

    /// Whether `found` is `version`, and all who may read the file may read it.
    fn is_version(&self, key: &Key, found: Option<ObjectMeta>, version: Option<Version>) -> bool {
        let may_read = |meta| self.audience.check_object(key, &meta).is_ok();
        found.map(|meta| meta.version) == version && found.is_none_or(may_read)
    }

    /// The version of an object that was not read yet, if it belongs to this snapshot.
    fn first_look(
        &self,
        array: &ChunkedArray,
        key: &Key,
        look: Look<'_>,
    ) -> Result<Option<Version>, Error> {
        let parent = key.parent();
        let mut came_later = false;
        // The directories first: whoever replaces one from here on is noticed when the read ends.
        if self.immutable {
            self.audience
                .check_search_path(self.loader.sources(), &parent)?;
        } else if !lock(&self.state).directories.contains_key(&parent) {
            came_later |= self.is_replaced([(parent.clone(), false)])?;
        }
        let found = look(key)?;
        if let Some(meta) = &found {
            self.audience.check_object(key, meta)?;
        }
        let version = found.map(|meta| meta.version);
        if self.immutable {
            return Ok(version);
        }
        let mut state = lock(&self.state);
        let touched = state.touched.entry(parent).or_default();
        touched.is_absent |= found.is_none();
        touched.looks += 1;
        came_later |= found.is_some_and(|meta| is_later(meta.times.ctime, state.since));
        drop(state);
        if !self.enter(array)? {
            return Err(self.becomes_stale());
        }
        self.keeps_up(came_later)?;
        Ok(version)
    }

    /// What has to be asked when a read is done, once for all of it: whether the directories of
    /// the objects that it looked at for the first time are the same still.
    ///
    /// # Errors
    /// [`Error::Stale`] when they are not, and what was read is no one state of the store.
    pub(super) fn confirm(&self) -> Result<(), Error> {
        let touched = lock(&self.state).touched.clone();
        if touched.is_empty() {
            return Ok(());
        }
        let directories = touched.iter();
        let directories = directories.map(|(prefix, touched)| (prefix.clone(), touched.is_absent));
        let came_later = match self.is_replaced(directories) {
            // It was closed after what lies in it was looked at. What is in the cache by now may
            // not be shown by this snapshot.
            Err(error @ Error::Store(StoreError::Denied { .. })) => {
                lock(&self.state).stale = true;
                return Err(error);
            }
            replaced => replaced?,
        };
        self.keeps_up(came_later)?;
        // Where others looked meanwhile, they ask for themselves.
        let mut state = lock(&self.state);
        state
            .touched
            .retain(|prefix, now| touched.get(prefix) != Some(now));
        Ok(())
    }

    /// Whether all that was looked at was confirmed.
    pub(super) fn is_confirmed(&self) -> bool {
        lock(&self.state).touched.is_empty()
    }

    /// Moves to now when something came later, or becomes stale.
    fn keeps_up(&self, came_later: bool) -> Result<(), Error> {
        if came_later && !self.moves_to_now() {
            return Err(self.becomes_stale());
        }
        Ok(())
    }

    fn becomes_stale(&self) -> Error {
        lock(&self.state).stale = true;
        Error::Stale
    }

    /// Whether one of `directories`, or one above, is not the one that it was; or, of those in
    /// which something was found to be absent, whether something may have been taken out of it,
    /// or of the nearest one above that exists.
    fn is_replaced(
        &self,
        directories: impl IntoIterator<Item = (Prefix, bool)>,
    ) -> Result<bool, Error> {
        let since = lock(&self.state).since;
        let is_changed =
            |meta: Option<&ObjectMeta>| meta.is_some_and(|meta| is_later(meta.times.ctime, since));
        let (mut way, mut places, mut absent) = (Vec::new(), HashMap::new(), Vec::new());
        for (directory, is_absent) in directories {
            for prefix in up_from(&directory) {
                if places.contains_key(&prefix) {
                    // And so are those above it.
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
        // Remembered once none of them is closed: a look at what is remembered asks no more.
        for (prefix, meta) in way.iter().zip(&found) {
            is_replaced |= self.is_another(prefix, meta.as_ref(), is_changed(meta.as_ref()));
        }
        let mut nearest = absent.iter().filter_map(|directory| {
            up_from(directory).find_map(|prefix| found.get(*places.get(&prefix)?)?.as_ref())
        });
        Ok(is_replaced | nearest.any(|meta| is_changed(Some(meta))))
    }

    /// Whether all who may read the file may go through the directory at `prefix`, if there is one.
    fn may_pass(&self, prefix: &Prefix, meta: Option<&ObjectMeta>) -> Result<(), Error> {
        meta.map_or(Ok(()), |meta| {
            self.audience.check_directory(prefix, meta.access())
        })
    }

    /// Whether a directory is not the one that it was; of one that is seen for the first time,
    /// whether it `changed`.
    fn is_another(&self, prefix: &Prefix, meta: Option<&ObjectMeta>, changed: bool) -> bool {
        let identity = meta.map(|meta| (meta.version.tag, meta.version.inode));
        let mut state = lock(&self.state);
        if let Some(known) = state.directories.get(prefix) {
            return *known != identity;
        }
        if state.directories.len() < MOST_DIRECTORIES {
            state.directories.insert(prefix.clone(), identity);
        }
        changed
    }

    /// Whether the document of `array` is the one that the file was made from;
    /// asked once.
    fn enter(&self, array: &ChunkedArray) -> Result<bool, Error> {
        let identity = array.identity();
        if lock(&self.state).entered.contains(&identity) {
            return Ok(true);
        }
        let Some((key, version)) = self.documents.get(&identity) else {
            // Of another version of the file.
            return Ok(false);
        };
        let now = self.loader.sources().stat(key)?;
        if now.map(|meta| meta.version) != Some(*version) {
            return Ok(false);
        }
        lock(&self.state).entered.insert(identity);
        Ok(true)
    }
}

impl Versions for Snapshot {
    fn version(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        look: Look<'_>,
    ) -> Result<Option<Version>, Error> {
        if let Some(known) = self.known(array, indices) {
            return Ok(known);
        }
        if lock(&self.state).stale {
            return Err(Error::Stale);
        }
        let key = array.stored_key(indices)?;
        let object = object(array, indices);
        let mut moves = lock(&self.state).moves;
        let version = self.first_look(array, &key, look)?;
        loop {
            let mut state = lock(&self.state);
            if let Some((_, known)) = state.seen.get(&object) {
                // Another thread was first.
                if *known != version {
                    state.stale = true;
                    return Err(Error::Stale);
                }
                return Ok(version);
            }
            if state.moves == moves {
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
            // The moment moved, and this was not among what was seen to be there still.
            moves = state.moves;
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

    fn settle(&self) {
        // A read that finds them unsettled asks again, and says what is wrong.
        let _ = self.confirm();
    }
}

fn object(array: &ChunkedArray, indices: &[u64]) -> StoredObjectId {
    (array.identity(), array.layout().stored_indices(indices))
}

/// `directory`, and those above it, up to the root.
fn up_from(directory: &Prefix) -> impl Iterator<Item = Prefix> {
    let parent = |prefix: &Prefix| prefix.to_key().map(|key| key.parent());
    std::iter::successors(Some(directory.clone()), parent)
}

/// Whether what changed at `changed` may have done so after `since`. File times lag behind the
/// clock by its grain; one that is ahead of the clock was set by another clock, and says nothing.
fn is_later(changed: SystemTime, since: SystemTime) -> bool {
    const AHEAD: Duration = Duration::from_millis(100);
    changed > since - GRAIN && changed <= SystemTime::now() + AHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_since_is_later() {
        let now = SystemTime::now();
        let second = Duration::from_secs(1);
        assert!(is_later(now, now), "within the grain");
        assert!(!is_later(now - second, now));
        assert!(is_later(now, now - second));
        assert!(!is_later(now + 60 * second, now), "another clock");
    }
}
