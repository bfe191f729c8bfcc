//! Proves that all objects that a snapshot has shown were in the store, in these versions, at one moment.
//!
//! ```text
//!    examine ahead      the moment:      examine again
//!    other objects      now              all objects that were read
//!  ──────────────────────────┼──────────────────────────────> time
//! ```
//!
//! An object that was read was read before the moment. If it has the same version after the moment, it had that version
//! at the moment. The same holds for an object that was examined ahead, when it is read later and has the same version.
//! Answers that the mount remembers prove nothing here ([`Recency`]).
//!
//! So an object that was not examined before the moment needs a new moment, and one request for each object that was
//! read so far: without them, another object might have changed before this one was read. To keep the number of
//! requests proportional to the number of objects that are read, the next objects are examined ahead: those that follow
//! in the [`Pattern`] of the reader, [`AHEAD`] for each object that was read. Then the number of moments grows with the
//! logarithm of the number of objects. A reader that jumps about at random cannot be predicted. For it, as many objects
//! are examined ahead as are examined again, so that `n` objects of a file of `N` take at most about `n²` requests, and
//! no more than about `2 N + n`.
//!
//! When the file is opened again, the versions that objects had before count as examined ahead, too. Then only the
//! objects that are read take requests.
//!
//! A version that goes and comes back between two examinations is not noticed. That concerns absent objects, and
//! objects for which the store gives the same version for the same bytes.

use std::collections::HashSet;
use std::time::Instant;

use super::directories::directories_of;
use super::pattern::Pattern;
use super::seen_versions::{SeenVersion, StoredObject};
use super::{DocumentCheck, Snapshot, SnapshotState, lock};
use crate::error::Error;
use crate::fresh::Moment;
use crate::grid::product;
use crate::load::Versions;
use crate::store::{CancelToken, Key, ObjectMeta, Recency, StoreError};

/// The number of objects that are examined at once: few enough that an object that has changed is found soon.
const ASKED_AT_ONCE: usize = 256;

/// This many objects are examined ahead for each one whose version is proven, as long as most of them are read.
const AHEAD: usize = 3;

/// Objects, with the versions that they had.
type Seen = Vec<(StoredObject, SeenVersion)>;

impl Snapshot {
    /// Whether handles that are opened now show this snapshot. If the store remembers its answers, they must show no
    /// change; while no handle is open, each object must have such an answer, because an object that is not read again
    /// is not worth a request. If the store remembers none, the moment advances to now, for all open handles.
    pub(in crate::view::arrays) fn is_current(&self) -> bool {
        if self.is_immutable() {
            return true;
        }
        let asked = Moment::now();
        if self.loader.sources().store().told_since().is_some() {
            let state = lock(&self.state);
            let is_shown = !state.stale && !state.overflowed;
            let seen: Seen = state.seen.all_read().collect();
            drop(state);
            let is_asked = self.is_open() || self.is_remembered(&seen);
            return is_shown && is_asked && self.is_unchanged(&seen).unwrap_or(false);
        }
        // One thread checks for all callers that open the file at this time, and reads go on meanwhile.
        let _alone = lock(&self.advancing);
        let state = lock(&self.state);
        let is_checked = !state.stale && !state.overflowed && state.since >= asked;
        drop(state);
        is_checked || self.advance().unwrap_or(false)
    }

    /// Whether the mount remembers the store's answers for all of `seen`, so that no request is sent.
    fn is_remembered(&self, seen: &Seen) -> bool {
        let sources = self.loader.sources();
        let mut keys = seen.iter().map(|(object, _)| self.key(*object));
        keys.all(|key| key.is_ok_and(|key| sources.known(&key).is_some()))
    }

    /// Proves that all objects that were read had their versions at one moment, which advances if necessary.
    ///
    /// # Errors
    /// [`Error::Stale`] when they had not; [`StoreError::Io`] when the store does not answer, and the next read tries
    /// again.
    pub(super) fn prove(&self) -> Result<(), Error> {
        if lock(&self.state).is_proven() {
            return Ok(());
        }
        // One thread checks for all threads.
        let _alone = lock(&self.advancing);
        let state = lock(&self.state);
        if state.stale {
            return Err(Error::Stale);
        }
        if state.is_proven() {
            return Ok(());
        }
        let is_late = state.replaced_after.is_none()
            && state.unproven.iter().all(|unproven| unproven.was_before);
        drop(state);
        // These requests are cancelled once no handle is open.
        let holds = CancelToken::scope(self.cancel_token(), || {
            if is_late {
                self.examine_again()
            } else {
                self.advance()
            }
        });
        if holds? {
            return Ok(());
        }
        lock(&self.state).fail()
    }

    /// Examines objects again that had the same version before the moment, and whose last requests may have been
    /// answered before it. Examines the documents, too, if they were not examined after the moment.
    fn examine_again(&self) -> Result<bool, Error> {
        let state = lock(&self.state);
        let n_unproven = state.unproven.len();
        let late: Seen = state.unproven_seen().collect();
        let (chosen, is_due) = (state.chosen, state.document_check == DocumentCheck::Due);
        drop(state);
        let holds = Recency::scope(Some(chosen), || {
            let are_documents_same = !is_due || self.are_documents_unchanged()?;
            Ok::<_, Error>(are_documents_same && self.are_same(&late)?)
        })?;
        let mut state = lock(&self.state);
        state.unproven.drain(..n_unproven);
        if is_due {
            state.document_check = DocumentCheck::Done;
        }
        Ok(holds)
    }

    /// Advances the moment to now. Returns `false` when an object has changed, or when too many were read to check
    /// them. The requests are sent without the lock that every read takes.
    fn advance(&self) -> Result<bool, Error> {
        let foreseen = self.examine_ahead();
        let mut state = lock(&self.state);
        if state.stale || state.overflowed {
            return Ok(false);
        }
        let n_unproven = state.unproven.len();
        let alone = state.alone().filter(|_| foreseen.is_empty());
        // Requests from here on are sent after the moment.
        let now = Moment::now();
        let chosen = Instant::now();
        state.chosen = chosen;
        state.moments += 1;
        let number = state.moments;
        let is_other = |(object, _): &(StoredObject, _)| alone.as_ref() != Some(object);
        let mut unchecked: Seen = state.seen.all_read().filter(is_other).collect();
        let has_directories = state.store.has_directories;
        drop(state);
        let mut checked = HashSet::new();
        loop {
            if !Recency::scope(Some(chosen), || self.is_unchanged(&unchecked))? {
                return Ok(false);
            }
            let seen = std::mem::take(&mut unchecked);
            let mut state = lock(&self.state);
            if state.stale {
                return Ok(false);
            }
            if has_directories {
                // Objects that were read meanwhile are examined, too, so that a caller that opens the file next sees
                // the store as it is then. In a store without directories, readers might make this loop go on forever.
                checked.extend(seen.into_iter().map(|(object, _)| object));
                let added = |(object, _): &(StoredObject, _)| !checked.contains(object);
                unchecked.extend(state.seen.all_read().filter(added));
            }
            if unchecked.is_empty() {
                state.unproven.drain(..n_unproven);
                if state.replaced_after.is_some_and(|after| after < number) {
                    state.replaced_after = None;
                }
                state.directories.clear();
                state.document_check = DocumentCheck::Done;
                if alone.is_none() {
                    state.since = state.since.max(now);
                }
                state.foresee(&foreseen);
                return Ok(true);
            }
        }
    }

    /// Examines the objects that are likely to be read next. Objects that cannot be examined are left out, and so are
    /// those that may still change without a trace.
    fn examine_ahead(&self) -> Seen {
        let wanted = lock(&self.state).wanted_ahead();
        let has_room = wanted == 0 || self.has_room(wanted);
        let mut state = lock(&self.state);
        if !has_room {
            // The objects that the reader has jumped over make room for the next ones.
            state.seen.forget_ahead();
        }
        let room = state.room.saturating_sub(state.seen.len());
        let ahead = self.ahead(&state, wanted.min(room));
        // Answers from before the other objects were read do not count: a version may come back.
        let now = Some(Instant::now());
        drop(state);
        let mut foreseen = Vec::with_capacity(ahead.len());
        for group in ahead.chunks(ASKED_AT_ONCE) {
            let keys = group
                .iter()
                .filter_map(|object| Some((*object, self.key(*object).ok()?)));
            let (objects, keys): (Vec<_>, Vec<Key>) = keys.unzip();
            let found = Recency::scope(now, || self.loader.sources().stat_many(&keys));
            let freshness = self.loader.sources().freshness();
            let is_telling = |meta: &ObjectMeta| {
                meta.dating.tells_changes() && freshness.settles_in(meta).is_none()
            };
            let told = objects
                .into_iter()
                .zip(found)
                .filter_map(|(object, found)| {
                    let found = found.ok()?;
                    let is_told = found.as_ref().is_none_or(is_telling);
                    is_told.then(|| (object, SeenVersion::ahead(found.map(|meta| meta.version))))
                });
            foreseen.extend(told);
        }
        foreseen
    }

    /// At most `count` objects that are likely to be read next: those that follow the last one in the pattern of the
    /// reader, or in the order of the file.
    fn ahead(&self, state: &SnapshotState, count: usize) -> Vec<StoredObject> {
        let Some(last) = state.unproven.last().filter(|_| count > 0) else {
            return Vec::new();
        };
        let StoredObject { array, rank } = last.object;
        let end = |array: usize| {
            let array = self.arrays.get(array);
            array.map_or(0, |array| {
                product(array.layout().stored_counts()).unwrap_or(u64::MAX)
            })
        };
        let is_unseen = |object: &StoredObject| state.seen.get(*object).is_none();
        let of_array = |array| move |rank| StoredObject { array, rank };
        let pattern = Pattern::of(state.seen.ranks_read(array), rank);
        let is_anywhere = pattern.is_none();
        if let Some(pattern) = pattern.filter(|pattern| !pattern.is_dense()) {
            let next = pattern.ranks(rank, end(array)).map(of_array(array));
            return next.filter(is_unseen).take(count).collect();
        }
        let rest = (rank.saturating_add(1)..end(array)).map(of_array(array));
        let others = (array + 1..self.arrays.len()).chain(0..array);
        let others = others.flat_map(|array| (0..end(array)).map(of_array(array)));
        // A reader that reads in order does not come back.
        let before = (0..rank).filter(|_| is_anywhere).map(of_array(array));
        let next = rest.chain(others).chain(before);
        next.filter(is_unseen).take(count).collect()
    }

    /// Whether the documents and `seen` are unchanged, and all readers of the file may still read them.
    fn is_unchanged(&self, seen: &Seen) -> Result<bool, Error> {
        Ok(self.are_documents_unchanged()? && self.are_same(seen)? && self.are_passable(seen)?)
    }

    fn are_documents_unchanged(&self) -> Result<bool, Error> {
        if let Some(key) = &self.untold_document {
            warn_untold(key);
            return Ok(false);
        }
        let sources = self.loader.sources();
        let observations = &self.inputs.observations;
        unless_gone(observations.are_unchanged(|subjects| sources.observe(subjects)))
    }

    /// Whether `seen` are unchanged. Requests for many of them are sent at once.
    fn are_same(&self, seen: &Seen) -> Result<bool, Error> {
        for group in seen.chunks(ASKED_AT_ONCE) {
            let keys = self.keys(group)?;
            let found = self.loader.sources().stat_many(&keys);
            for ((key, (_, seen)), found) in keys.iter().zip(group).zip(found) {
                let is_same = found.map(|found| self.is_version(key, found, *seen));
                if !unless_gone(is_same)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn keys(&self, seen: &[(StoredObject, SeenVersion)]) -> Result<Vec<Key>, Error> {
        seen.iter().map(|(object, _)| self.key(*object)).collect()
    }

    /// Whether all readers of the file may search the directories of `seen`.
    fn are_passable(&self, seen: &Seen) -> Result<bool, Error> {
        if !self.audience.is_limited() {
            return Ok(true);
        }
        let keys = self.keys(seen)?;
        let directories = directories_of(keys.iter());
        for group in directories.chunks(ASKED_AT_ONCE) {
            let found = self.loader.sources().stat_prefixes(group);
            let may_pass = |found: Vec<Option<ObjectMeta>>| {
                let mut found = group.iter().zip(&found);
                found.all(|(prefix, meta)| self.may_pass(prefix, meta.as_ref()).is_ok())
            };
            if !unless_gone(found.map(may_pass))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `found` has the version `seen`, and all readers of the file may read it.
    fn is_version(&self, key: &Key, found: Option<ObjectMeta>, seen: SeenVersion) -> bool {
        let may_read = |meta| self.audience.check_object(key, &meta).is_ok();
        if found.is_some_and(|meta| !meta.dating.tells_changes()) {
            warn_untold(key);
            return false;
        }
        seen.is_of(found.map(|meta| meta.version)) && found.is_none_or(may_read)
    }
}

impl SnapshotState {
    /// The objects whose version at the moment is not proven, in the order in which they were read.
    fn unproven_seen(&self) -> impl Iterator<Item = (StoredObject, SeenVersion)> {
        let unproven = self.unproven.iter().map(|unproven| unproven.object);
        unproven.filter_map(|object| Some((object, self.seen.get(object)?)))
    }

    /// The number of objects that are examined ahead before the next moment; none if directories reveal changes.
    fn wanted_ahead(&self) -> usize {
        let (examined, read) = self.guesses;
        let each = if 2 * read >= examined { AHEAD } else { 1 };
        if self.store.has_directories {
            return 0;
        }
        each * self.seen.n_read().saturating_sub(self.unproven.len())
    }

    /// The only object whose version at the moment is not proven, if the time at which it was read can be the next
    /// moment: then it needs no second examination.
    fn alone(&self) -> Option<StoredObject> {
        let [only] = self.unproven.as_slice() else {
            return None;
        };
        let is_later = only.examined_after == self.moments;
        (is_later && !self.store.has_directories).then_some(only.object)
    }

    /// Notes the versions that objects had before the moment.
    fn foresee(&mut self, foreseen: &Seen) {
        self.guesses = (foreseen.len(), 0);
        for &(object, seen) in foreseen {
            if let Some(read) = self.seen.get(object).filter(|known| known.is_read()) {
                // The object was read while the moment advanced.
                let mut unproven = self.unproven.iter_mut();
                if let Some(unproven) = unproven.find(|unproven| unproven.object == object) {
                    unproven.was_before |= read.is_same(seen);
                }
            } else if self.seen.len() < self.room {
                self.seen.add_ahead(object, seen);
            }
        }
    }
}

/// The answer to the question whether an object is the same. An object for which the store does not answer now is an
/// error, and other errors show that another object is there.
fn unless_gone(is_same: Result<bool, StoreError>) -> Result<bool, Error> {
    match is_same {
        Err(error @ StoreError::Io { .. }) => Err(error.into()),
        is_same => Ok(is_same.unwrap_or(false)),
    }
}

fn warn_untold(key: &Key) {
    log::warn!(
        "{key}: the server sends neither an ETag nor a time of modification, so that a change while \
         a file is read is not noticed; give --immutable if the store never changes"
    );
}
