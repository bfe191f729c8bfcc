//! What a file was made from: keys of the store and their versions, so that a change of one is
//! seen without making the file again; and who may read all that the file says of them.

use std::collections::{HashMap, HashSet};
use std::time::{Instant, SystemTime};

use super::super::View;
use super::super::attributes::hash;
use crate::error::Error;
use crate::load::Sources;
use crate::store::{
    Access, Key, ObjectMeta, Prefix, ReadRight, Readers, StatKind, StoreError, Version,
};

/// Keys and their versions.
#[derive(Debug, Clone, Default)]
pub(in crate::view) struct Inputs {
    entries: HashMap<InputKey, Option<InputState>>,
    /// Those who may read what the file was made from. What was looked at and is not in the file
    /// does not count.
    readers: Readers,
    /// Whether one may still change without showing it.
    is_young: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum InputKey {
    Object(Key),
    Directory(Prefix),
    /// A directory that leads to others: only who may go through it matters.
    SearchPath(Prefix),
}

/// The object that was found at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct InputState {
    /// None of a directory whose contents do not matter.
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
    /// Another object, as it was when it was looked at.
    pub(super) fn add_object(&mut self, key: &Key, meta: Option<&ObjectMeta>) {
        self.add(InputKey::Object(key.clone()), meta);
    }

    /// Another directory, which changes when a name in it comes or goes.
    pub(super) fn add_directory(&mut self, prefix: &Prefix, meta: Option<&ObjectMeta>) {
        self.add(InputKey::Directory(prefix.clone()), meta);
    }

    /// All of `others`, which the file says something of.
    pub(super) fn add_all(&mut self, others: &Inputs) {
        self.readers.add_all(&others.readers);
        self.add_seen(others);
    }

    /// All of `others`, which were looked at, and which the file says nothing of.
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

    /// The users who may read all that the file was made from.
    pub(super) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// A document that the file says something of.
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
        self.add_search_rights(sources, &key.parent())
    }

    /// All directories from the root of the store to `prefix`, which whoever reads the file must be
    /// able to go through.
    pub(super) fn add_search_rights(
        &mut self,
        sources: &Sources,
        prefix: &Prefix,
    ) -> Result<(), Error> {
        for directory in prefix.on_the_way() {
            if let Some(access) = self.observe_access(sources, &directory)? {
                self.readers.add(ReadRight::of_directory(access));
            }
        }
        Ok(())
    }

    /// A directory whose names the file tells.
    pub(super) fn add_names(&mut self, sources: &Sources, prefix: &Prefix) -> Result<(), Error> {
        if let Some(access) = self.observe_access(sources, prefix)? {
            self.readers.add(ReadRight::of_listed_directory(access));
        }
        self.add_search_rights(sources, prefix)
    }

    /// A directory, of which only owner and mode matter: with them changes what can be reached.
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
        self.entries
            .insert(InputKey::SearchPath(prefix.clone()), seen);
        Ok(access)
    }

    /// The prefixes that they are, or are in.
    pub(super) fn prefixes(&self) -> HashSet<Prefix> {
        let prefix = |key: &InputKey| match key {
            InputKey::Object(key) => key.parent(),
            InputKey::Directory(prefix) | InputKey::SearchPath(prefix) => prefix.clone(),
        };
        self.entries.keys().map(prefix).collect()
    }

    /// Memory that they take, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        const ENTRY: u64 = 256;
        self.entries.len() as u64 * ENTRY
    }

    /// Stands for these versions, within this process.
    pub(super) fn fingerprint(&self) -> u64 {
        // The order in which they were added says nothing.
        let entries = self.entries.iter();
        entries.map(|entry| hash(&entry)).fold(1, u64::wrapping_add)
    }

    /// Whether none of them changed. What cannot be looked at any more is not what it was.
    pub(super) fn are_unchanged(&self, sources: &Sources) -> bool {
        let mut entries = self.entries.iter();
        entries.all(|(key, seen)| key.now(sources).is_ok_and(|now| now == *seen))
    }

    /// Until when they need not be looked at again; `None` when they must be.
    pub(super) fn checked(&self) -> Option<Instant> {
        (!self.is_young).then(Instant::now)
    }
}

impl InputKey {
    /// The object that is there now.
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
            InputKey::SearchPath(prefix) => {
                sources.directory_access(prefix)?.map(|access| InputState {
                    version: None,
                    access,
                })
            }
        })
    }
}

impl View {
    /// The attributes of the object at `key`; `None` when there is none.
    pub(in crate::view) fn object_meta(&self, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        let stat = self.stat(key)?;
        let object = stat.filter(|stat| stat.kind == StatKind::Object);
        Ok(object.map(|stat| stat.meta))
    }
}
