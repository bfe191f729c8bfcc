//! Proves that all that a snapshot has shown was in the store at one moment.
//!
//! ```text
//!    look ahead at      the moment:      look again at
//!    other objects      now              all that was read
//!  ──────────────────────────┼──────────────────────────────> time
//! ```
//!
//! What was read was read before the moment. If it is of the same version after it, it was of that
//! version at the moment. The same holds for an object that was looked at ahead, when it is read
//! later and is of the same version. Answers that the store remembers do not count as looks
//! ([`Recency`]).
//!
//! So an object that nobody looked at before the moment takes a new moment, and one request for each
//! object that was read so far: without any of these, something might have changed before the object was
//! read. What makes the number of requests proportional to the objects that are read is that the next
//! ones are looked at ahead: those that follow in the [`Pattern`] of the reader, [`AHEAD`] for each that
//! was read. The number of moments then grows with the logarithm of the objects. A reader that jumps
//! about at random cannot be foretold. For it, as many objects are looked at ahead as are asked for again,
//! so that `n` objects of a file of `N` take at most about `n²` requests, and no more than about `2 N + n`.
//!
//! When the file is opened again, the versions that objects had before are looks ahead, too: nothing is
//! asked for but what is read.
//!
//! A version that goes and comes back between two looks is not noticed. That concerns objects that are
//! absent, and others where the store tells the same version of the same bytes.

use std::collections::HashSet;
use std::time::Instant;

use super::directories::directories_of;
use super::looks::{Look, StoredObject};
use super::pattern::Pattern;
use super::{DocumentLook, Snapshot, SnapshotState, lock};
use crate::error::Error;
use crate::fresh::Moment;
use crate::grid::product;
use crate::load::Versions;
use crate::store::{CancelToken, Key, ObjectMeta, Recency, StoreError};

/// Objects that the store is asked for at once: few enough that one that changed is found soon.
const ASKED_AT_ONCE: usize = 256;

/// So many objects are looked at ahead for each one that is proven to be of the moment, as long as most
/// of them are read.
const AHEAD: usize = 3;

/// Objects, with the versions that they had.
type Seen = Vec<(StoredObject, Look)>;

impl Snapshot {
    /// Whether handles that are opened now show this snapshot: nothing has changed, as far as the
    /// store remembers. Where it remembers nothing, the moment advances to now, and other handles that
    /// are open share it. Without these, nothing has to be asked for before it is read again.
    pub(in crate::view::arrays) fn is_current(&self) -> bool {
        if self.is_immutable() {
            return true;
        }
        let asked = Moment::now();
        if self.loader.sources().store().told_since().is_some() {
            let state = lock(&self.state);
            let is_shown = !state.stale && !state.overflowed;
            let seen: Seen = state.looks.all_read().collect();
            drop(state);
            let is_asked = self.is_open() || self.is_remembered(&seen);
            return is_shown && is_asked && self.is_unchanged(&seen).unwrap_or(false);
        }
        // One thread checks for all that open the file at this time; reads go on.
        let _alone = lock(&self.advancing);
        let state = lock(&self.state);
        let is_checked = !state.stale && !state.overflowed && state.since >= asked;
        drop(state);
        is_checked || self.advance().unwrap_or(false)
    }

    /// Whether the store remembers the objects `seen`, so that it is not asked for them.
    fn is_remembered(&self, seen: &Seen) -> bool {
        let sources = self.loader.sources();
        let mut keys = seen.iter().map(|(object, _)| self.key(*object));
        keys.all(|key| key.is_ok_and(|key| sources.known(&key).is_some()))
    }

    /// Proves that all that was read is of one moment, which advances where necessary.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is not; [`StoreError::Io`] when the store cannot be asked, which the
    /// next read does again.
    pub(super) fn prove(&self) -> Result<(), Error> {
        if lock(&self.state).is_proven() {
            return Ok(());
        }
        // One thread checks for all.
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
        // These requests are for the open handles alone.
        let holds = CancelToken::scope(self.cancel_token(), || {
            if is_late {
                self.look_once_more()
            } else {
                self.advance()
            }
        });
        if holds? {
            return Ok(());
        }
        lock(&self.state).fail()
    }

    /// Looks again at objects that were of the same version before the moment, and whose requests may
    /// have been answered before it, and at the documents if nobody did after the moment.
    fn look_once_more(&self) -> Result<bool, Error> {
        let state = lock(&self.state);
        let n_unproven = state.unproven.len();
        let late: Seen = state.unproven_seen().collect();
        let (chosen, is_due) = (state.chosen, state.document_look == DocumentLook::Due);
        drop(state);
        let holds = Recency::scope(Some(chosen), || {
            let are_documents_same = !is_due || self.are_documents_unchanged()?;
            Ok::<_, Error>(are_documents_same && self.are_same(&late)?)
        })?;
        let mut state = lock(&self.state);
        state.unproven.drain(..n_unproven);
        if is_due {
            state.document_look = DocumentLook::Done;
        }
        Ok(holds)
    }

    /// Advances the moment to now. Returns `false` when something has changed, or when too much was
    /// read to check it. The store is asked without the lock that every read takes.
    fn advance(&self) -> Result<bool, Error> {
        let foreseen = self.look_ahead();
        let mut state = lock(&self.state);
        if state.stale || state.overflowed {
            return Ok(false);
        }
        let n_unproven = state.unproven.len();
        let alone = state.alone().filter(|_| foreseen.is_empty());
        // Looks that begin from here on are asked for after the moment.
        let now = Moment::now();
        let chosen = Instant::now();
        state.chosen = chosen;
        state.moments += 1;
        let number = state.moments;
        let is_other = |(object, _): &(StoredObject, _)| alone.as_ref() != Some(object);
        let mut unchecked: Seen = state.looks.all_read().filter(is_other).collect();
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
                // Whoever opens the file next sees what is in the store by then. In a store that is
                // far away, readers might go on forever.
                checked.extend(seen.into_iter().map(|(object, _)| object));
                let added = |(object, _): &(StoredObject, _)| !checked.contains(object);
                unchecked.extend(state.looks.all_read().filter(added));
            }
            if unchecked.is_empty() {
                state.unproven.drain(..n_unproven);
                if state.replaced_after.is_some_and(|after| after < number) {
                    state.replaced_after = None;
                }
                state.directories.clear();
                state.document_look = DocumentLook::Done;
                if alone.is_none() {
                    state.since = state.since.max(now);
                }
                state.foresee(&foreseen);
                return Ok(true);
            }
        }
    }

    /// Looks at the objects that are likely to be read next. Those that cannot be examined are left
    /// out, and those that may still change without a trace.
    fn look_ahead(&self) -> Seen {
        let wanted = lock(&self.state).wanted_ahead();
        let has_room = wanted == 0 || self.has_room(wanted);
        let mut state = lock(&self.state);
        if !has_room {
            // What was jumped over makes room for what comes next.
            state.looks.forget_ahead();
        }
        let room = state.room.saturating_sub(state.looks.len());
        let ahead = self.ahead(&state, wanted.min(room));
        // Not as they were before the others were read: a version may come back.
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
                    is_told.then(|| (object, Look::ahead(found.map(|meta| meta.version))))
                });
            foreseen.extend(told);
        }
        foreseen
    }

    /// At most `count` objects that are likely to be read next: those that follow the last one in the
    /// pattern of the reader, or in the order of the file.
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
        let is_unseen = |object: &StoredObject| state.looks.get(*object).is_none();
        let of_array = |array| move |rank| StoredObject { array, rank };
        let pattern = Pattern::of(state.looks.ranks_read(array), rank);
        let is_anywhere = pattern.is_none();
        if let Some(pattern) = pattern.filter(|pattern| !pattern.is_dense()) {
            let next = pattern.ranks(rank, end(array)).map(of_array(array));
            return next.filter(is_unseen).take(count).collect();
        }
        let rest = (rank.saturating_add(1)..end(array)).map(of_array(array));
        let others = (array + 1..self.arrays.len()).chain(0..array);
        let others = others.flat_map(|array| (0..end(array)).map(of_array(array)));
        // Whoever reads in order does not come back.
        let before = (0..rank).filter(|_| is_anywhere).map(of_array(array));
        let next = rest.chain(others).chain(before);
        next.filter(is_unseen).take(count).collect()
    }

    /// Whether the documents and `seen` are unchanged, and all readers of the file may still read
    /// them.
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

    /// Whether `seen` are unchanged. The store is asked for many of them at once.
    fn are_same(&self, seen: &Seen) -> Result<bool, Error> {
        for group in seen.chunks(ASKED_AT_ONCE) {
            let keys = self.keys(group)?;
            let found = self.loader.sources().stat_many(&keys);
            for ((key, (_, look)), found) in keys.iter().zip(group).zip(found) {
                let is_same = found.map(|found| self.is_version(key, found, *look));
                if !unless_gone(is_same)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn keys(&self, seen: &[(StoredObject, Look)]) -> Result<Vec<Key>, Error> {
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

    /// Whether `found` is of the version of `look`, and all readers of the file may read it.
    fn is_version(&self, key: &Key, found: Option<ObjectMeta>, look: Look) -> bool {
        let may_read = |meta| self.audience.check_object(key, &meta).is_ok();
        if found.is_some_and(|meta| !meta.dating.tells_changes()) {
            warn_untold(key);
            return false;
        }
        look.is_of(found.map(|meta| meta.version)) && found.is_none_or(may_read)
    }
}

impl SnapshotState {
    /// The objects that are not proven to be of the moment, in the order in which they were read.
    fn unproven_seen(&self) -> impl Iterator<Item = (StoredObject, Look)> {
        let unproven = self.unproven.iter().map(|unproven| unproven.object);
        unproven.filter_map(|object| Some((object, self.looks.get(object)?)))
    }

    /// How many objects are looked at ahead before the next moment. None where directories tell of
    /// changes.
    fn wanted_ahead(&self) -> usize {
        let (looked, read) = self.guesses;
        let each = if 2 * read >= looked { AHEAD } else { 1 };
        if self.store.has_directories {
            return 0;
        }
        each * self.looks.n_read().saturating_sub(self.unproven.len())
    }

    /// The only object that is not proven to be of the moment, where the time at which it was read can
    /// be the next moment: it needs no second look then.
    fn alone(&self) -> Option<StoredObject> {
        let [only] = self.unproven.as_slice() else {
            return None;
        };
        let is_later = only.looked_after == self.moments;
        (is_later && !self.store.has_directories).then_some(only.object)
    }

    /// Notes the versions that objects had before the moment.
    fn foresee(&mut self, foreseen: &Seen) {
        self.guesses = (foreseen.len(), 0);
        for &(object, look) in foreseen {
            if let Some(read) = self.looks.get(object).filter(|known| known.is_read()) {
                // It was read while the moment advanced.
                let mut unproven = self.unproven.iter_mut();
                if let Some(unproven) = unproven.find(|unproven| unproven.object == object) {
                    unproven.was_before |= read.is_same(look);
                }
            } else if self.looks.len() < self.room {
                self.looks.add_ahead(object, look);
            }
        }
    }
}

/// The answer to the question whether something is the same. A store that cannot be asked now is an
/// error, and other errors tell that something else is there.
fn unless_gone(is_same: Result<bool, StoreError>) -> Result<bool, Error> {
    match is_same {
        Err(error @ StoreError::Io { .. }) => Err(error.into()),
        is_same => Ok(is_same.unwrap_or(false)),
    }
}

fn warn_untold(key: &Key) {
    log::warn!(
        "{key}: the server tells neither an ETag nor a time of modification, so that nothing tells \
         whether it changed while a file was read; give --immutable if the store never changes"
    );
}
