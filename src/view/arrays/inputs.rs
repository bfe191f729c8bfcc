//! What a file was made from: keys of the store and their versions, so that a change of one is
//! seen without making the file again.

use std::collections::{HashMap, HashSet};
use std::time::{Instant, SystemTime};

use super::super::View;
use super::super::attributes::hash;
use crate::chunk::Sources;
use crate::error::Error;
use crate::store::{Key, ObjectMeta, Prefix, StatKind, StoreError, Version};

/// Keys and their versions.
#[derive(Debug, Clone, Default)]
pub(in crate::view) struct Inputs {
    /// With the permission bits, which decide who may read.
    entries: HashMap<Place, Option<(Version, u32)>>,
    /// Whether one may still change without showing it.
    is_young: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Object(Key),
    Directory(Prefix),
}

impl Inputs {
    /// Another object, as it was when it was looked at.
    pub(super) fn add_object(&mut self, key: &Key, meta: Option<&ObjectMeta>) {
        self.add(Place::Object(key.clone()), meta);
    }

    /// Another directory, which changes when a name in it comes or goes.
    pub(super) fn add_directory(&mut self, prefix: &Prefix, meta: Option<&ObjectMeta>) {
        self.add(Place::Directory(prefix.clone()), meta);
    }

    /// All of `others`.
    pub(super) fn add_all(&mut self, others: &Inputs) {
        self.is_young |= others.is_young;
        let others = others.entries.iter();
        self.entries
            .extend(others.map(|(place, version)| (place.clone(), *version)));
    }

    fn add(&mut self, place: Place, meta: Option<&ObjectMeta>) {
        let young = |meta: &ObjectMeta| meta.settles_in(SystemTime::now()).is_some();
        self.is_young |= meta.is_some_and(young);
        self.entries
            .insert(place, meta.map(|meta| (meta.version, meta.mode)));
    }

    /// The prefixes that they are, or are in.
    pub(super) fn prefixes(&self) -> HashSet<Prefix> {
        let prefix = |place: &Place| match place {
            Place::Object(key) => key.parent(),
            Place::Directory(prefix) => prefix.clone(),
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

    /// Whether none of them changed.
    pub(super) fn are_unchanged(&self, sources: &Sources) -> Result<bool, StoreError> {
        for (place, version) in &self.entries {
            let now = match place {
                Place::Object(key) => {
                    let stat = sources.store().stat(key)?;
                    let stat = stat.filter(|stat| stat.kind == StatKind::Object);
                    stat.map(|stat| stat.meta)
                }
                Place::Directory(prefix) => sources.stat_prefix(prefix)?,
            };
            if now.map(|meta| (meta.version, meta.mode)) != *version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Until when they need not be looked at again; `None` when they must be.
    pub(super) fn checked(&self) -> Option<Instant> {
        (!self.is_young).then(Instant::now)
    }
}

impl View {
    /// Whether nothing of `inputs` changed.
    pub(super) fn are_unchanged(&self, inputs: &Inputs) -> Result<bool, Error> {
        Ok(inputs.are_unchanged(&self.shared.sources)?)
    }

    /// The attributes of the object at `key`; `None` when there is none.
    pub(in crate::view) fn object_meta(&self, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        let stat = self.stat(key)?;
        Ok(stat
            .filter(|stat| stat.kind == StatKind::Object)
            .map(|stat| stat.meta))
    }
}
