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
//! later and is of the same version. The more objects were read, the more are looked at ahead, so the
//! number of checks grows with the logarithm of the objects, and the number of requests in proportion
//! to them. Answers that the store remembers do not count as looks ([`Recency`]).
//!
//! A version that goes and comes back between two looks is not noticed. That concerns objects that are
//! absent, and others where the store tells the same version of the same bytes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use super::directories::directories_of;
use super::{Snapshot, SnapshotState, StoredObjectId, lock};
use crate::error::Error;
use crate::fresh::Moment;
use crate::grid::{indices_of, rank_of};
use crate::load::{ChunkedArray, Versions};
use crate::store::{CancelToken, Key, ObjectMeta, Recency, StoreError, Version};

/// Objects that the store is asked for at once: few enough that one that changed is found soon.
const ASKED_AT_ONCE: usize = 256;

/// So many objects are looked at ahead for each one that is proven to be of the moment.
const AHEAD: usize = 3;

/// Objects that were read, with their keys and versions.
type Seen = Vec<(StoredObjectId, (Key, Option<Version>))>;

/// The versions that objects had before the moment.
type Foreseen = Vec<(StoredObjectId, Option<Version>)>;

impl Snapshot {
    /// Whether handles that are opened now show this snapshot: nothing has changed, as far as the
    /// store remembers. Where it remembers nothing, the moment advances to now.
    pub(in crate::view::arrays) fn is_current(&self) -> bool {
        if self.is_immutable() {
            return true;
        }
        if self.loader.sources().store().told_since().is_some() {
            let state = lock(&self.state);
            let is_shown = !state.stale && !state.overflowed;
            let seen: Seen = state.all_seen().collect();
            drop(state);
            return is_shown && self.is_unchanged(&seen).unwrap_or(false);
        }
        let asked = Moment::now();
        // One thread checks for all that open the file at this time; reads go on.
        let _alone = lock(&self.advancing);
        let state = lock(&self.state);
        let is_checked = !state.stale && !state.overflowed && state.since >= asked;
        drop(state);
        is_checked || self.advance().unwrap_or(false)
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
    /// have been answered before it.
    fn look_once_more(&self) -> Result<bool, Error> {
        let state = lock(&self.state);
        let late: Seen = state.unproven_seen().collect();
        let chosen = state.chosen;
        drop(state);
        let holds = Recency::scope(Some(chosen), || self.are_same(&late))?;
        lock(&self.state).unproven.drain(..late.len());
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
        let is_other = |(object, _): &(StoredObjectId, _)| alone.as_ref() != Some(object);
        let mut unchecked: Seen = state.all_seen().filter(is_other).collect();
        drop(state);
        let mut checked = HashSet::new();
        loop {
            if !Recency::scope(Some(chosen), || self.is_unchanged(&unchecked))? {
                return Ok(false);
            }
            checked.extend(unchecked.drain(..).map(|(object, _)| object));
            let mut state = lock(&self.state);
            if state.stale {
                return Ok(false);
            }
            if state.store.has_directories {
                // Whoever opens the file next sees what is in the store by then. In a store that is
                // far away, readers might go on forever.
                let added = |(object, _): &(StoredObjectId, _)| !checked.contains(object);
                unchecked.extend(state.all_seen().filter(added));
            }
            if unchecked.is_empty() {
                state.unproven.drain(..n_unproven);
                if state.replaced_after.is_some_and(|after| after < number) {
                    state.replaced_after = None;
                }
                state.directories.clear();
                if alone.is_none() {
                    state.since = state.since.max(now);
                }
                state.foresee(foreseen);
                return Ok(true);
            }
        }
    }

    /// Looks at the objects that are likely to be read next. Those that cannot be examined are left
    /// out, and those that may still change without a trace.
    fn look_ahead(&self) -> Foreseen {
        let state = lock(&self.state);
        let ahead = self.ahead(&state);
        // Not as they were before the others were read: a version may come back.
        let now = Some(Instant::now());
        drop(state);
        let mut foreseen = Vec::with_capacity(ahead.len());
        for group in ahead.chunks(ASKED_AT_ONCE) {
            let keys: Vec<Key> = group.iter().map(|(_, key)| key.clone()).collect();
            let found = Recency::scope(now, || self.loader.sources().stat_many(&keys));
            let freshness = self.loader.sources().freshness();
            let is_telling = |meta: &ObjectMeta| {
                meta.dating.tells_changes() && freshness.settles_in(meta).is_none()
            };
            let told = group.iter().zip(found).filter_map(|((object, _), found)| {
                let found = found.ok()?;
                let is_told = found.as_ref().is_none_or(is_telling);
                is_told.then(|| (object.clone(), found.map(|meta| meta.version)))
            });
            foreseen.extend(told);
        }
        foreseen
    }

    /// The objects that come after the last one that was read, in the order of the file: [`AHEAD`] for
    /// each that is proven to be of the moment. None where directories tell of changes.
    fn ahead(&self, state: &SnapshotState) -> Vec<(StoredObjectId, Key)> {
        let Some(last) = state.unproven.last() else {
            return Vec::new();
        };
        let (identity, stored) = &last.object;
        let is_last = |array: &Arc<ChunkedArray>| array.identity() == *identity;
        let Some(at) = self.arrays.iter().position(is_last) else {
            return Vec::new();
        };
        let held = state.seen.len() + state.foreseen.len();
        let count = AHEAD * (state.seen.len() - state.unproven.len());
        let count = count.min(state.most_seen().saturating_sub(held));
        if state.store.has_directories || count == 0 {
            return Vec::new();
        }
        let (before, from) = self.arrays.split_at(at);
        let (array, after) = from.split_at(1);
        let next = |array: &ChunkedArray| {
            let rank = rank_of(stored, array.layout().stored_counts());
            rank.map_or(0, |rank| rank.saturating_add(1))
        };
        let rest = array.iter().map(|array| (array, next(array)..u64::MAX));
        let first = array.iter().map(|array| (array, 0..next(array)));
        let others = after.iter().chain(before);
        let others = others.map(|array| (array, 0..u64::MAX));
        let order = rest.chain(others).chain(first);
        let stored = order.flat_map(|(array, ranks)| {
            let counts = array.layout().stored_counts();
            let indices = ranks.map_while(move |rank| indices_of(rank, counts));
            indices.map(move |indices| (array, indices))
        });
        let unseen = stored.filter_map(|(array, indices)| {
            let key = array.key_of_stored(&indices).ok()?;
            let object = (array.identity(), indices);
            let is_known = state.seen.contains_key(&object) || state.foreseen.contains_key(&object);
            (!is_known).then_some((object, key))
        });
        unseen.take(count).collect()
    }

    /// Whether the documents and `seen` are unchanged, and all readers of the file may still read
    /// them.
    fn is_unchanged(&self, seen: &Seen) -> Result<bool, Error> {
        if let Some(key) = &self.untold_document {
            warn_untold(key);
            return Ok(false);
        }
        let sources = self.loader.sources();
        let observations = &self.inputs.observations;
        let documents = observations.are_unchanged(|subjects| sources.observe(subjects));
        Ok(unless_gone(documents)? && self.are_same(seen)? && self.are_passable(seen)?)
    }

    /// Whether `seen` are unchanged. The store is asked for many of them at once.
    fn are_same(&self, seen: &Seen) -> Result<bool, Error> {
        for group in seen.chunks(ASKED_AT_ONCE) {
            let keys: Vec<Key> = group.iter().map(|(_, (key, _))| key.clone()).collect();
            let found = self.loader.sources().stat_many(&keys);
            for ((_, (key, version)), found) in group.iter().zip(found) {
                let is_same = found.map(|found| self.is_version(key, found, *version));
                if !unless_gone(is_same)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether all readers of the file may search the directories of `seen`.
    fn are_passable(&self, seen: &Seen) -> Result<bool, Error> {
        if !self.audience.is_limited() {
            return Ok(true);
        }
        let directories = directories_of(seen.iter().map(|(_, (key, _))| key));
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

    /// Whether `found` is of `version`, and all readers of the file may read it.
    fn is_version(&self, key: &Key, found: Option<ObjectMeta>, version: Option<Version>) -> bool {
        let may_read = |meta| self.audience.check_object(key, &meta).is_ok();
        if found.is_some_and(|meta| !meta.dating.tells_changes()) {
            warn_untold(key);
            return false;
        }
        found.map(|meta| meta.version) == version && found.is_none_or(may_read)
    }
}

impl SnapshotState {
    /// All objects that were read, with their versions.
    fn all_seen(&self) -> impl Iterator<Item = (StoredObjectId, (Key, Option<Version>))> {
        let seen = self.seen.iter();
        seen.map(|(object, seen)| (object.clone(), seen.clone()))
    }

    /// As [`SnapshotState::all_seen`], of those that are not proven to be of the moment, in the order
    /// in which they were read.
    fn unproven_seen(&self) -> impl Iterator<Item = (StoredObjectId, (Key, Option<Version>))> {
        self.unproven.iter().filter_map(|unproven| {
            let seen = self.seen.get(&unproven.object)?;
            Some((unproven.object.clone(), seen.clone()))
        })
    }

    /// The only object that is not proven to be of the moment, where the time at which it was read can
    /// be the next moment: it needs no second look then.
    fn alone(&self) -> Option<StoredObjectId> {
        let [only] = self.unproven.as_slice() else {
            return None;
        };
        let is_later = only.looked_after == self.moments;
        (is_later && !self.store.has_directories).then(|| only.object.clone())
    }

    /// Notes the versions that objects had before the moment.
    fn foresee(&mut self, foreseen: Foreseen) {
        let mut foreseen: HashMap<_, _> = foreseen.into_iter().collect();
        // They were read while the moment advanced.
        for unproven in &mut self.unproven {
            let version = foreseen.remove(&unproven.object);
            let seen = self.seen.get(&unproven.object).map(|(_, version)| *version);
            unproven.was_before |= version.is_some() && version == seen;
        }
        foreseen.retain(|object, _| !self.seen.contains_key(object));
        self.foreseen.extend(foreseen);
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
