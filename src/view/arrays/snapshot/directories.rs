//! The directories above the objects of a snapshot. If a directory is replaced, other objects are at their keys, which
//! may be older than any moment. If it is closed, readers may no longer reach its objects.

use std::collections::{HashMap, HashSet};

use super::{Snapshot, lock};
use crate::error::Error;
use crate::store::{Key, ObjectMeta, Prefix};

/// The most directories that are remembered. Other directories are judged by the time of their change alone.
const MOST_DIRECTORIES: usize = 2048;

impl Snapshot {
    /// Whether one of `directories`, or one above it, was replaced. If an object was absent (the flag of a directory),
    /// the nearest directory that exists must not have changed either, because the object may have been removed from
    /// it.
    pub(super) fn is_replaced(
        &self,
        directories: impl IntoIterator<Item = (Prefix, bool)>,
    ) -> Result<bool, Error> {
        let since = lock(&self.state).since;
        let is_changed =
            |meta: Option<&ObjectMeta>| meta.is_some_and(|meta| since.may_precede(meta));
        let (mut way, mut places, mut absent) = (Vec::new(), HashMap::new(), Vec::new());
        for (directory, is_absent) in directories {
            for prefix in up_from(&directory) {
                if places.contains_key(&prefix) {
                    // The directories above it were added together with it.
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
        // Directories are remembered only after all of them were found to be searchable: remembered directories are not
        // examined again.
        for (prefix, meta) in way.iter().zip(&found) {
            is_replaced |= self.is_swapped(prefix, meta.as_ref(), is_changed(meta.as_ref()));
        }
        let mut nearest = absent.iter().filter_map(|directory| {
            up_from(directory).find_map(|prefix| found.get(*places.get(&prefix)?)?.as_ref())
        });
        Ok(is_replaced | nearest.any(|meta| is_changed(Some(meta))))
    }

    /// Whether all readers of the file may search the directory at `prefix`, if it exists.
    pub(super) fn may_pass(&self, prefix: &Prefix, meta: Option<&ObjectMeta>) -> Result<(), Error> {
        meta.map_or(Ok(()), |meta| {
            self.audience.check_directory(prefix, meta.access())
        })
    }

    /// Whether a directory was replaced since it was remembered. A directory that is seen for the
    /// first time counts as replaced if it `changed`.
    fn is_swapped(&self, prefix: &Prefix, meta: Option<&ObjectMeta>, changed: bool) -> bool {
        let identity = meta.map(|meta| meta.version.file_identity());
        let mut state = lock(&self.state);
        if let Some(known) = state.directories.get(prefix) {
            return *known != identity;
        }
        if state.directories.len() < MOST_DIRECTORIES {
            state.directories.insert(prefix.clone(), identity);
        }
        changed
    }
}

/// The directories that hold the objects at `keys`, and those above them, each once.
pub(super) fn directories_of<'k>(keys: impl Iterator<Item = &'k Key>) -> Vec<Prefix> {
    let mut found = HashSet::new();
    for key in keys {
        // The directories above a known one are known, too.
        let parent = key.parent();
        for directory in up_from(&parent) {
            if !found.insert(directory) {
                break;
            }
        }
    }
    found.into_iter().collect()
}

/// `directory`, and those above it, up to the root.
fn up_from(directory: &Prefix) -> impl Iterator<Item = Prefix> {
    let parent = |prefix: &Prefix| prefix.to_key().map(|key| key.parent());
    std::iter::successors(Some(directory.clone()), parent)
}
