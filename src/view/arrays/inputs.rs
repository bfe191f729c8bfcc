//! What a file was made from: stored objects and directories with their versions, so that a change
//! is noticed without making the file again; and the users who may read all of it.

use std::collections::{HashMap, HashSet};
use std::time::{Instant, SystemTime};

use super::super::View;
use super::super::attributes::hash;
use crate::error::Error;
use crate::load::Sources;
use crate::store::{
    Access, Key, ObjectMeta, Prefix, ReadRight, Readers, StatKind, StoreError, Version,
};

/// Stored objects and directories, as they were when a file was made.
#[derive(Debug, Clone, Default)]
pub(in crate::view) struct Inputs {
    entries: HashMap<InputKey, Option<InputState>>,
    /// The users who may read everything that is in the file. Objects that were only examined do
    /// not count.
    pub(super) readers: Readers,
    /// Whether an input is younger than the grain of file times, so that it could change without a
    /// new version.
    is_young: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum InputKey {
    Object(Key),
    Directory(Prefix),
    /// A directory above objects, of which only owner and mode matter.
    Parent(Prefix),
}

/// An input as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct InputState {
    /// `None` for a directory whose contents do not matter.
    version: Option<Version>,
    access: Access,
}

impl From<&ObjectMeta> for InputState {
    fn from(meta: &ObjectMeta) -> InputState {
        InputState {
            version: Some(meta.version),
            access: meta.access(),
        }
    }
}

impl Inputs {
    /// Adds an object that was examined, `None` where it does not exist.
    pub(super) fn add_object(&mut self, key: &Key, meta: Option<&ObjectMeta>) {
        self.add(InputKey::Object(key.clone()), meta);
    }

    /// Adds a directory, whose version changes when names in it are added or removed.
    pub(super) fn add_directory(&mut self, prefix: &Prefix, meta: Option<&ObjectMeta>) {
        self.add(InputKey::Directory(prefix.clone()), meta);
    }

    /// Adds `others`, whose contents are in the file.
    pub(super) fn add_all(&mut self, others: &Inputs) {
        self.readers.add_all(&others.readers);
        self.add_seen(others);
    }

    /// Adds `others`, which were examined only: their contents are not in the file.
    pub(super) fn add_seen(&mut self, others: &Inputs) {
        self.is_young |= others.is_young;
        let others = others.entries.iter();
        self.entries
            .extend(others.map(|(key, version)| (key.clone(), *version)));
    }

    fn add(&mut self, key: InputKey, meta: Option<&ObjectMeta>) {
        let young = |meta: &ObjectMeta| meta.settles_in(SystemTime::now()).is_some();
        self.is_young |= meta.is_some_and(young);
        self.entries.insert(key, meta.map(InputState::from));
    }

    /// Adds a document whose contents are in the file.
    pub(super) fn add_document(
        &mut self,
        sources: &Sources,
        key: &Key,
        meta: &ObjectMeta,
    ) -> Result<(), Error> {
        self.add_object(key, Some(meta));
        if let Some(right) = sources.object_right(meta) {
            self.readers.add(right);
        }
        self.add_search(sources, &key.parent())
    }

    /// Adds `prefix` and all directories above it: readers of the file must be allowed to search
    /// them.
    pub(super) fn add_search(&mut self, sources: &Sources, prefix: &Prefix) -> Result<(), Error> {
        for directory in prefix.on_the_way() {
            if let Some(access) = self.observe_access(sources, &directory)? {
                self.readers.add(ReadRight::of_directory(access));
            }
        }
        Ok(())
    }

    /// Adds a directory whose names are in the file.
    pub(super) fn add_names(&mut self, sources: &Sources, prefix: &Prefix) -> Result<(), Error> {
        if let Some(access) = self.observe_access(sources, prefix)? {
            self.readers.add(ReadRight::of_listed_directory(access));
        }
        self.add_search(sources, prefix)
    }

    /// Adds a directory of which only owner and mode matter, because they decide who can reach
    /// objects in it.
    pub(super) fn observe_access(
        &mut self,
        sources: &Sources,
        prefix: &Prefix,
    ) -> Result<Option<Access>, Error> {
        let access = sources.directory_access(prefix)?;
        let seen = access.map(|access| InputState {
            version: None,
            access,
        });
        self.entries.insert(InputKey::Parent(prefix.clone()), seen);
        Ok(access)
    }

    /// The prefixes of all inputs, and of the directories that they are in.
    pub(super) fn prefixes(&self) -> HashSet<Prefix> {
        let prefix = |key: &InputKey| match key {
            InputKey::Object(key) => key.parent(),
            InputKey::Directory(prefix) | InputKey::Parent(prefix) => prefix.clone(),
        };
        self.entries.keys().map(prefix).collect()
    }

    /// An estimate of their memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        const ENTRY: u64 = 256;
        self.entries.len() as u64 * ENTRY
    }

    /// A hash of the inputs and their versions, valid within this process.
    pub(super) fn fingerprint(&self) -> u64 {
        // The sum does not depend on the order of the entries.
        let entries = self.entries.iter();
        entries.map(|entry| hash(&entry)).fold(1, u64::wrapping_add)
    }

    /// Whether all inputs are unchanged. An input that cannot be examined counts as changed.
    pub(super) fn are_unchanged(&self, sources: &Sources) -> bool {
        let mut entries = self.entries.iter();
        entries.all(|(key, seen)| key.now(sources).is_ok_and(|now| now == *seen))
    }

    /// The time of this check; `None` when an input is too young for the check to last.
    pub(super) fn checked(&self) -> Option<Instant> {
        (!self.is_young).then(Instant::now)
    }
}

impl InputKey {
    /// The current state of this input.
    fn now(&self, sources: &Sources) -> Result<Option<InputState>, StoreError> {
        Ok(match self {
            InputKey::Object(key) => {
                let stat = sources.store().stat(key)?;
                let stat = stat.filter(|stat| stat.kind == StatKind::Object);
                stat.map(|stat| InputState::from(&stat.meta))
            }
            InputKey::Directory(prefix) => {
                let meta = sources.stat_prefix(prefix)?;
                meta.as_ref().map(InputState::from)
            }
            InputKey::Parent(prefix) => {
                sources.directory_access(prefix)?.map(|access| InputState {
                    version: None,
                    access,
                })
            }
        })
    }
}

impl View {
    /// The attributes of the object at `key`; `None` when it does not exist.
    pub(in crate::view) fn object_meta(&self, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        let stat = self.stat(key)?;
        let object = stat.filter(|stat| stat.kind == StatKind::Object);
        Ok(object.map(|stat| stat.meta))
    }
}
