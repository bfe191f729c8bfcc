//! Names in a group of a store that cannot list them: the names of its documents, of nodes that were
//! looked up and found before, and of existing nodes that documents mention.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use super::super::ahead::{DocumentsAhead, open_many};
use super::said::SaidOnce;
use crate::budget::Budget;
use crate::fresh::{Freshness, LastCheck};
use crate::metadata::DocumentName;
use crate::metadata::mentions::Mentions;
use crate::store::{EntryKind, Key, ObjectMeta, Prefix, Store, StoreError};

/// The most nodes that are remembered because they were found by name.
const MOST_FOUND: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");
/// The most groups whose names are remembered.
const MOST_GROUPS: NonZeroUsize = NonZeroUsize::new(256).expect("256 is not 0");
/// The most nodes that are looked for at once in one group. No others are looked for after this number of them.
const MOST_CANDIDATES: usize = 64;
/// Documents of up to this length, in bytes, are searched for names.
const MOST_SEARCHED: usize = 256 << 10;

/// The names that were found, and those that documents mention.
#[derive(Debug)]
pub(super) struct Guesses {
    store: Arc<dyn Store>,
    budget: Arc<Budget>,
    freshness: Freshness,
    said: Arc<SaidOnce>,
    found: Mutex<LruCache<Prefix, ()>>,
    groups: Mutex<LruCache<Prefix, NamesOfGroup>>,
}

/// The names that exist in a group, and the time at which they were looked for.
type NamesOfGroup = (LastCheck, Arc<[KnownName]>);

/// A name that exists.
#[derive(Debug, Clone)]
pub(super) struct KnownName {
    pub(super) name: Vec<u8>,
    pub(super) kind: EntryKind,
    pub(super) meta: ObjectMeta,
}

impl Guesses {
    /// The guesses about `store`, before any node was found.
    pub(super) fn new(
        store: &Arc<dyn Store>,
        budget: &Arc<Budget>,
        freshness: Freshness,
        said: &Arc<SaidOnce>,
    ) -> Guesses {
        Guesses {
            store: Arc::clone(store),
            budget: Arc::clone(budget),
            freshness,
            said: Arc::clone(said),
            found: Mutex::new(LruCache::new(MOST_FOUND)),
            groups: Mutex::new(LruCache::new(MOST_GROUPS)),
        }
    }

    /// Remembers whether a node was found at `prefix`.
    pub(super) fn remember(&self, prefix: &Prefix, is_node: bool) {
        let mut found = lock(&self.found);
        if !is_node {
            found.pop(prefix);
        } else if !prefix.is_root() {
            found.put(prefix.clone(), ());
        }
    }

    /// Whether a node was found below `prefix`.
    pub(super) fn has_found_below(&self, prefix: &Prefix) -> bool {
        !self.names_found_in(prefix).is_empty()
    }

    /// The known names in the group at `prefix`, in order. Prefixes have the attributes `meta`.
    /// `error` is the reason why names cannot be listed.
    pub(super) fn names_in(
        &self,
        prefix: &Prefix,
        meta: ObjectMeta,
        error: &StoreError,
    ) -> Vec<KnownName> {
        let known = lock(&self.groups).get(prefix).cloned();
        let known = known.filter(|(begun, _)| self.freshness.trusts(begun));
        let names = if let Some((_, names)) = known {
            names
        } else {
            let begun = LastCheck::now();
            let names: Arc<[KnownName]> = self.find_names_in(prefix, meta).into();
            lock(&self.groups).put(prefix.clone(), (begun, Arc::clone(&names)));
            names
        };
        if !names.is_empty() {
            self.said.warn(prefix, || {
                format!(
                    "{error}; the listing is incomplete: it has the documents of {prefix} and the \
                     nodes that are known by name, and others open by name"
                )
            });
        }
        let mut all: BTreeMap<(Vec<u8>, bool), KnownName> = BTreeMap::new();
        let found = self.names_found_in(prefix).into_iter();
        let found = found.map(|name| KnownName {
            name,
            kind: EntryKind::Prefix,
            meta,
        });
        for name in names.iter().cloned().chain(found) {
            let is_prefix = name.kind == EntryKind::Prefix;
            all.insert((name.name.clone(), is_prefix), name);
        }
        all.into_values().collect()
    }

    /// Looks for the documents of the group at `prefix`, and for the nodes that these mention.
    fn find_names_in(&self, prefix: &Prefix, meta: ObjectMeta) -> Vec<KnownName> {
        let keys = documents_of(prefix);
        let ahead = self.read(keys.clone());
        let mut names = Vec::new();
        for key in &keys {
            if let Some(document) = ahead.get(key) {
                names.push(KnownName {
                    name: key.name().to_vec(),
                    kind: EntryKind::Object,
                    meta: *document.object.meta(),
                });
            }
        }
        let mentioned = mentions_in(&ahead, &keys).below.into_iter();
        let mut left: BTreeSet<Prefix> = mentioned
            .filter_map(|path| Some(prefix.key(path.as_bytes()).ok()?.to_prefix()))
            .collect();
        let found = self.names_found_in(prefix).into_iter();
        left.extend(found.filter_map(|name| Some(prefix.key(&name).ok()?.to_prefix())));
        let (mut asked, mut children) = (BTreeSet::new(), BTreeSet::new());
        // Arrays mention their coordinates, and these may mention other nodes.
        while !left.is_empty() && asked.len() < MOST_CANDIDATES {
            let candidates: Vec<Prefix> = left
                .iter()
                .take(MOST_CANDIDATES - asked.len())
                .cloned()
                .collect();
            let keys: Vec<Key> = candidates.iter().flat_map(documents_of).collect();
            let ahead = self.read(keys);
            left.clear();
            for candidate in candidates {
                let keys = documents_of(&candidate);
                if !keys.iter().any(|key| ahead.get(key).is_some()) {
                    asked.insert(candidate);
                    continue;
                }
                self.remember(&candidate, true);
                let path = prefix.strip(candidate.as_bytes()).unwrap_or_default();
                let name = path.split(|&byte| byte == b'/').next().unwrap_or_default();
                children.insert(name.to_vec());
                let beside = candidate.to_key().map(|key| key.parent());
                let beside = beside.filter(|beside| beside == prefix);
                for mentioned in mentions_in(&ahead, &keys).beside {
                    let key = beside.as_ref().map(|group| group.key(mentioned.as_bytes()));
                    left.extend(key.and_then(Result::ok).map(|key| key.to_prefix()));
                }
                asked.insert(candidate);
            }
            left.retain(|candidate| !asked.contains(candidate));
        }
        names.extend(children.into_iter().map(|name| KnownName {
            name,
            kind: EntryKind::Prefix,
            meta,
        }));
        names
    }

    /// Reads documents in one round trip. Those that the store refuses are absent.
    fn read(&self, keys: Vec<Key>) -> DocumentsAhead {
        let mut ahead = DocumentsAhead::new();
        open_many(&*self.store, &self.budget, keys, &mut ahead);
        ahead
    }

    /// The first name below `prefix` in the path of each node that was found there.
    fn names_found_in(&self, prefix: &Prefix) -> BTreeSet<Vec<u8>> {
        let found = lock(&self.found);
        let names = found.iter().filter_map(|(path, ())| {
            let path = prefix.strip(path.as_bytes())?;
            path.split(|&byte| byte == b'/').next().map(<[u8]>::to_vec)
        });
        names.filter(|name| !name.is_empty()).collect()
    }
}

/// The keys of the documents that a node at `prefix` may have.
fn documents_of(prefix: &Prefix) -> Vec<Key> {
    let names = DocumentName::ALL.iter();
    let keys = names.filter_map(|name| prefix.key(name.as_str().as_bytes()).ok());
    keys.collect()
}

/// The names that the documents at `keys` mention.
fn mentions_in(ahead: &DocumentsAhead, keys: &[Key]) -> Mentions {
    let mut all = Mentions::default();
    for key in keys {
        let text = ahead
            .get(key)
            .and_then(|document| document.bytes.as_deref());
        if let Some(text) = text.filter(|text| text.len() <= MOST_SEARCHED) {
            let Mentions { below, beside } = Mentions::of(text);
            all.below.extend(below);
            all.beside.extend(beside);
        }
    }
    all
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
