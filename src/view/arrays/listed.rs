//! Names that were listed a moment ago. They tell that a name is free, which saves a request for the
//! name of each file.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;

use super::Arrays;
use super::lock;
use crate::fresh::LastCheck;
use crate::store::Prefix;

/// The most directories that are remembered. Each has few names, because a listing reads few names
/// ahead.
const KEPT: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not 0");

/// The names of the prefixes in a prefix of the store, all of them.
pub(super) type ListedNames = Arc<HashSet<Vec<u8>>>;

/// The prefixes that were listed last, and when.
#[derive(Debug)]
pub(super) struct ListedDirectories(LruCache<Prefix, (LastCheck, ListedNames)>);

impl Default for ListedDirectories {
    fn default() -> Self {
        ListedDirectories(LruCache::new(KEPT))
    }
}

impl Arrays {
    /// The names of the prefixes in the prefix `path`, if they were all listed a moment ago.
    pub(super) fn listed_directories(&self, path: &Prefix) -> Option<ListedNames> {
        let mut listed = lock(&self.listed);
        let (begun, names) = listed.0.get(path)?;
        let is_trusted = self.tree.freshness_in_a_row().trusts(begun);
        is_trusted.then(|| Arc::clone(names))
    }

    /// Remembers the `names` of all prefixes in the prefix `path`, in a listing that was begun at
    /// the time `begun`.
    pub(super) fn remember_listed(&self, path: &Prefix, begun: LastCheck, names: ListedNames) {
        let listed = lock(&self.listed).0.put(path.clone(), (begun, names));
        drop(listed);
    }
}
