//! The part of a snapshot that reads change: the versions of the objects that were read, and which of them are proven.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use lru::{DefaultHasher, LruCache};

use super::seen_versions::{SeenVersions, StoredObject};
use super::{MOST_RECENT, MOST_SEEN, MOST_SEEN_FAR};
use crate::budget::Reservation;
use crate::error::Error;
use crate::fresh::Moment;
use crate::load::ReaderIdentity;
use crate::store::{FileIdentity, Key, ObjectMeta, Prefix, Version};

/// The properties of the store that the state of a snapshot depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreTraits {
    pub(super) never_changes: bool,
    /// Whether the times of directories show when names in them changed.
    pub(super) has_directories: bool,
}

/// The state of a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotState {
    pub(super) store: StoreTraits,
    pub(super) since: Moment,
    /// The number of moments that were chosen so far. A request that was sent before the last of them was chosen may
    /// have been answered before it.
    pub(super) moments: u64,
    /// When the last moment was chosen, or since when all documents are known. An answer to an earlier request proves
    /// nothing about the objects after the moment, or beside the documents.
    pub(super) chosen: Instant,
    /// Arrays whose documents were checked.
    pub(super) checked_documents: HashSet<ReaderIdentity, DefaultHasher>,
    /// The identity of each directory, `None` if it does not exist.
    pub(super) directories: HashMap<Prefix, Option<FileIdentity>>,
    /// Directories in which objects were examined since the directories were last checked.
    pub(super) unconfirmed: HashMap<Prefix, ExaminedDirectory, DefaultHasher>,
    /// The number of the moment after which a directory, or one of several documents, may have been replaced.
    pub(super) replaced_after: Option<u64>,
    /// The objects that were read, and those whose version before the moment is known.
    pub(super) seen: SeenVersions,
    /// The number of objects in `seen` for which memory is reserved.
    pub(super) room: usize,
    pub(super) reserved: Vec<Reservation>,
    /// Objects that were read, and that are not yet proven to have had their version at the moment.
    pub(super) unproven: Vec<Unproven>,
    /// How many objects were examined ahead before the moment, and how many of these were read since.
    pub(super) guesses: (usize, usize),
    pub(super) document_check: DocumentCheck,
    /// Whether versions were read that are not in `seen`.
    pub(super) overflowed: bool,
    /// The versions that were read last.
    pub(super) recent: LruCache<StoredObject, Option<Version>>,
    /// The versions that were read last through an earlier snapshot.
    pub(super) earlier: HashMap<StoredObject, Version>,
    pub(super) stale: bool,
}

/// An object that was read, and that is not yet proven to have had its version at the moment.
#[derive(Debug, Clone)]
pub(super) struct Unproven {
    pub(super) object: StoredObject,
    /// The number of the moment before the object was examined.
    pub(super) examined_after: u64,
    /// Whether the object had the same version before the moment. If so, one examination after the moment proves that
    /// it had this version at the moment.
    pub(super) was_before: bool,
}

/// Whether the documents were examined after the moment, which proves their versions at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentCheck {
    /// They were examined, or no object was examined before the moment.
    Done,
    /// They were not examined, and no object that was examined before the moment has been read.
    Left,
    /// They were not examined, and an object that was read relies on the moment.
    Due,
}

/// The objects of a directory that were examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ExaminedDirectory {
    /// Whether an object was absent.
    pub(super) is_absent: bool,
    /// How many times objects were examined.
    pub(super) count: u64,
}

/// The result of examining an object for the first time.
#[derive(Debug)]
pub(super) struct FirstExamination {
    pub(super) found: Option<ObjectMeta>,
    /// The number of the moment before the object was examined.
    pub(super) after: u64,
}

impl SnapshotState {
    /// The most objects whose versions are remembered.
    pub(super) fn most_seen(&self) -> usize {
        if self.store.has_directories {
            MOST_SEEN
        } else {
            MOST_SEEN_FAR
        }
    }

    /// Adds an object that was examined. There is no room for it if the budget has no memory.
    pub(super) fn add(
        &mut self,
        object: StoredObject,
        key: &Key,
        first: &FirstExamination,
    ) -> Result<Option<Version>, Error> {
        let version = first.found.map(|meta| meta.version);
        let known = self.seen.get(object);
        if let Some(known) = known.filter(|known| known.is_read()) {
            // Another thread read it before, or the whole version was forgotten.
            if !known.is_of(version) {
                return self.fail();
            }
            return self.remember(object, version);
        }
        let is_dated = match &first.found {
            Some(meta) => !self.since.may_precede(meta),
            None => self.store.has_directories,
        };
        let was_foreseen = known.is_some_and(|known| known.is_of(version));
        let was_before = is_dated || was_foreseen;
        let is_proven = was_before && first.after == self.moments || self.store.never_changes;
        if known.is_none() && self.seen.len() >= self.room {
            self.seen.forget_ahead();
        }
        if known.is_some() || self.seen.len() < self.room {
            if !is_proven {
                self.unproven.push(Unproven {
                    object,
                    examined_after: first.after,
                    was_before,
                });
            }
            self.guesses.1 += usize::from(known.is_some());
            if was_foreseen && !is_dated && self.document_check == DocumentCheck::Left {
                self.document_check = DocumentCheck::Due;
            }
            self.seen.add_read(object, version);
            return self.remember(object, version);
        }
        self.overflowed = true;
        if !is_proven {
            let (read, most) = (self.seen.n_read(), self.most_seen());
            let advice = if read < most {
                "a larger --cache-size has room for more, or give"
            } else {
                "give"
            };
            log::warn!(
                "{key}: the versions of the {read} objects that were read are remembered, but no \
                 more, so that a change of this object is not noticed; {advice} --immutable if the \
                 store never changes"
            );
            return self.fail();
        }
        self.remember(object, version)
    }

    /// Remembers the whole version of an object.
    pub(super) fn remember(
        &mut self,
        object: StoredObject,
        version: Option<Version>,
    ) -> Result<Option<Version>, Error> {
        if let Some(known) = self.recent.put(object, version)
            && known != version
        {
            // Another thread read another version before.
            return self.fail();
        }
        if self.recent.len() > MOST_RECENT {
            self.recent.pop_lru();
        }
        Ok(version)
    }

    /// Forgets whole versions until at most `most` are left.
    pub(super) fn keep_recent(&mut self, most: usize) {
        while self.recent.len() > most {
            self.recent.pop_lru();
        }
    }

    /// The snapshot can show no more bytes.
    pub(super) fn fail<T>(&mut self) -> Result<T, Error> {
        self.stale = true;
        Err(Error::Stale)
    }

    /// Whether all objects that were read are proven to have had their versions at the moment.
    pub(super) fn is_proven(&self) -> bool {
        let is_due = self.document_check == DocumentCheck::Due;
        self.unproven.is_empty() && self.replaced_after.is_none() && !is_due
    }
}
