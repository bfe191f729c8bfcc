//! The groups that have copies of the documents below them.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use lru::LruCache;

use super::super::ahead::{DocumentsAhead, open_many};
use super::super::document::copied_bytes;
use super::super::read::{MAX_DOCUMENT_BYTES, OpenDocument};
use super::copies::{CopiedNode, Copies};
use super::guesses::{Guesses, KnownName};
use super::said::SaidOnce;
use crate::budget::{Budget, Evict, Holding};
use crate::buffers::zeroed;
use crate::fresh::{Freshness, LastCheck};
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::{Cursor, Detail, Key, ObjectMeta, Prefix, Store, StoreError, Version};

/// The most groups that are remembered with the answer whether they have copies.
const MOST_GROUPS: NonZeroUsize = NonZeroUsize::new(16_384).expect("16384 is not 0");

/// The documents that decide whether a group has copies of others.
const OF_GROUP: [DocumentName; 4] = [
    DocumentName::ZarrJson,
    DocumentName::ZArray,
    DocumentName::ZGroup,
    DocumentName::ZMetadata,
];

/// The nodes of a store that are known without a request.
#[derive(Debug)]
pub(in crate::hierarchy) struct Catalog {
    pub(super) store: Arc<dyn Store>,
    budget: Arc<Budget>,
    freshness: Freshness,
    groups: Mutex<KnownGroups>,
    guesses: Guesses,
    said: Arc<SaidOnce>,
    /// The attributes of all prefixes, which are those of the root.
    prefix_meta: OnceLock<ObjectMeta>,
    /// A [`NamesAre`] as a number.
    names_are: AtomicU8,
}

/// The groups that were examined: those with copies, and `None` for the others.
#[derive(Debug)]
struct KnownGroups {
    generation: u64,
    by_prefix: LruCache<Prefix, Option<Arc<Holder>>>,
}

/// A group that has copies of the documents below it.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) group: Prefix,
    /// The document that has them.
    pub(super) key: Key,
    meta: ObjectMeta,
    /// The group's own documents, as they were found.
    pub(super) own: Vec<(Key, Option<ObjectMeta>)>,
    /// Whether a later change of these documents shows in their attributes.
    is_settled: bool,
    checked: LastCheck,
    /// `None` if they were evicted.
    copies: Mutex<Option<Arc<Copies>>>,
}

/// A holder whose copies are in memory and were checked.
#[derive(Debug, Clone)]
pub(super) struct Covered {
    pub(super) holder: Arc<Holder>,
    pub(super) copies: Arc<Copies>,
}

/// Whether names can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum NamesAre {
    Unknown,
    Listed,
    Unlisted,
}

impl Catalog {
    /// The catalog of `store`; `None` if the store is local or has directories, so that its own
    /// documents and names are the truth.
    pub(in crate::hierarchy) fn of(
        store: &Arc<dyn Store>,
        budget: &Arc<Budget>,
        freshness: Freshness,
    ) -> Option<Arc<Catalog>> {
        let profile = store.profile();
        if profile.is_local || profile.has_directories {
            return None;
        }
        let said = Arc::new(SaidOnce::default());
        Some(Arc::new(Catalog {
            store: Arc::clone(store),
            budget: Arc::clone(budget),
            freshness,
            groups: Mutex::new(KnownGroups {
                generation: 0,
                by_prefix: LruCache::new(MOST_GROUPS),
            }),
            guesses: Guesses::new(store, budget, freshness, &said),
            said,
            prefix_meta: OnceLock::new(),
            names_are: AtomicU8::new(NamesAre::Unknown as u8),
        }))
    }

    /// Whether the documents of the group at `prefix` were examined.
    pub(in crate::hierarchy) fn has_looked_at(&self, prefix: &Prefix) -> bool {
        self.lock().by_prefix.contains(prefix)
    }

    /// Whether a group above `prefix` has copies of the nodes below it.
    pub(in crate::hierarchy) fn is_covered(&self, prefix: &Prefix) -> bool {
        self.holder_of(prefix)
            .is_some_and(|holder| holder.group != *prefix)
    }

    /// Looks at the documents of the group at `prefix`.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    pub(in crate::hierarchy) fn look_at(&self, prefix: &Prefix) -> Result<(), StoreError> {
        let keys = OF_GROUP.map(|name| prefix.key(name.as_str().as_bytes()));
        let keys: Vec<Key> = keys.into_iter().collect::<Result<_, _>>()?;
        let mut ahead = DocumentsAhead::new();
        open_many(&*self.store, &self.budget, keys, &mut ahead);
        ahead.settle(true);
        self.add_group(prefix, &ahead)
    }

    /// Remembers the copies that the documents of the group at `prefix` have.
    ///
    /// # Errors
    /// [`StoreError`] when a document cannot be read that decides whether the group has copies, or when there is no memory
    /// for them. Then nothing is remembered: without its copies, nodes of the group would seem to be absent.
    pub(in crate::hierarchy) fn add_group(
        &self,
        prefix: &Prefix,
        ahead: &DocumentsAhead,
    ) -> Result<(), StoreError> {
        let generation = self.store.generation();
        let own = OF_GROUP.map(|name| prefix.key(name.as_str().as_bytes()));
        let own: Vec<Key> = own.into_iter().collect::<Result<_, _>>()?;
        check_decided(&own, ahead)?;
        let found = |name: DocumentName| {
            let mut keys = own.iter();
            let key = keys.find(|key| is_called(key, name))?;
            ahead.get(key)
        };
        let document = match (
            found(DocumentName::ZarrJson),
            found(DocumentName::ZArray),
            found(DocumentName::ZMetadata),
        ) {
            (Some(document), _, _) => Some((document, ZarrFormat::V3)),
            (None, None, Some(document)) => Some((document, ZarrFormat::V2)),
            _ => None,
        };
        let mut holder = None;
        if let Some((document, format)) = document
            && let Some(copies) = self.copies_in(document, format)?
        {
            let known = own.iter().filter(|key| ahead.has_asked(key));
            let known = known.map(|key| {
                let meta = ahead.get(key).map(|document| *document.object.meta());
                (key.clone(), meta)
            });
            let own: Vec<_> = known.collect();
            let now = SystemTime::now();
            let mut found = own.iter().filter_map(|(_, meta)| meta.as_ref());
            let is_settled = found.all(|meta| meta.settles_in(now).is_none());
            holder = Some(Arc::new(Holder {
                group: prefix.clone(),
                key: document.key.clone(),
                meta: *document.object.meta(),
                own,
                is_settled,
                checked: ahead.begun().clone(),
                copies: Mutex::new(Some(Arc::new(copies))),
            }));
        }
        let mut groups = self.lock();
        groups.enter(generation);
        let replaced = groups.by_prefix.put(prefix.clone(), holder);
        drop(groups);
        // Gives memory back to the budget, which must not happen under the lock.
        drop(replaced);
        Ok(())
    }

    /// The copies in `document`; `None` if it has none, or where they cannot be used.
    fn copies_in(
        &self,
        document: &OpenDocument,
        format: ZarrFormat,
    ) -> Result<Option<Copies>, StoreError> {
        const MEMBER: &[u8] = b"\"consolidated_metadata\"";
        let (key, size) = (&document.key, document.size());
        let short = document.bytes.as_ref();
        if format != ZarrFormat::V2
            && short.is_some_and(|text| !text.windows(MEMBER.len()).any(|part| part == MEMBER))
        {
            return Ok(None);
        }
        let needed = copied_bytes(size);
        if size > MAX_DOCUMENT_BYTES || needed > self.budget.limit() / 2 {
            self.said.warn(&key.to_prefix(), || {
                format!("{key}: {size} bytes are too much for a catalog (see --cache-size): nodes are looked for one by one")
            });
            return Ok(None);
        }
        let holding = Holding::SOURCE.and_one().and_one();
        let memory = self
            .budget
            .reserve(needed, holding.to_hold("consolidated metadata"));
        let memory = memory.map_err(|error| StoreError::problem(key, error.to_string()))?;
        let text = if let Some(text) = short {
            text.clone()
        } else {
            let text = zeroed(usize::try_from(size).unwrap_or(usize::MAX));
            let mut text = text.map_err(|error| StoreError::problem(key, error.to_string()))?;
            document.object.read_at(0, &mut text)?;
            text
        };
        Ok(Copies::parse(text, format, memory).unwrap_or_else(|error| {
            self.said.warn(&key.to_prefix(), || {
                format!("{key}: no consolidated metadata: {error}")
            });
            None
        }))
    }

    /// The outermost group with copies that `prefix` is in.
    pub(super) fn holder_of(&self, prefix: &Prefix) -> Option<Arc<Holder>> {
        let generation = self.store.generation();
        let mut groups = self.lock();
        groups.enter(generation);
        let mut found = None;
        for group in prefix.with_ancestors() {
            if let Some(Some(holder)) = groups.by_prefix.get(&group) {
                found = Some(Arc::clone(holder));
            }
        }
        found
    }

    /// The copies of the nodes below the outermost group that `prefix` is in. They were checked within the time to
    /// live.
    pub(super) fn covering(&self, prefix: &Prefix) -> Result<Option<Covered>, StoreError> {
        /// How often a group that changes is examined again.
        const MOST_TRIES: usize = 16;
        let mut read_now = None;
        for _ in 0..MOST_TRIES {
            let Some(holder) = self.holder_of(prefix) else {
                return Ok(None);
            };
            // Documents that were read just now count, even if no answer is trusted for longer.
            if read_now.as_ref() == Some(&holder.group) || self.holds(&holder)? {
                let copies = holder.lock().clone();
                if let Some(copies) = copies {
                    return Ok(Some(Covered { holder, copies }));
                }
            }
            self.look_at(&holder.group)?;
            read_now = Some(holder.group.clone());
        }
        // Without its copies, nodes of the group would seem to be absent.
        Err(StoreError::problem(
            prefix.to_string(),
            "its consolidated metadata changes, or leaves memory, whenever it is read",
        ))
    }

    /// A time before which no trusted answer, of copies or of the store, was given. `since` is that time for the
    /// store's remembered answers. Copies are checked by those answers, and trusted for the time to live.
    pub(super) fn trusted_before(&self, since: SystemTime) -> SystemTime {
        match self.freshness {
            Freshness::Checked(ttl) => since.checked_sub(ttl).unwrap_or(SystemTime::UNIX_EPOCH),
            Freshness::Immutable => since,
        }
    }

    /// Whether the documents of a group are still those that were found.
    fn holds(&self, holder: &Holder) -> Result<bool, StoreError> {
        if self.freshness.trusts(&holder.checked) {
            return Ok(true);
        }
        if !holder.is_settled {
            return Ok(false);
        }
        let begun = LastCheck::now();
        // Beside a `zarr.json`, no other document counts.
        let counts_alone = is_called(&holder.key, DocumentName::ZarrJson);
        let counted = |key: &Key| !counts_alone || *key == holder.key;
        let looked_at: Vec<_> = holder.own.iter().filter(|(key, _)| counted(key)).collect();
        let keys: Vec<Key> = looked_at.iter().map(|(key, _)| key.clone()).collect();
        let now = self.store.stat_objects(&keys);
        for ((_, before), now) in looked_at.into_iter().zip(now) {
            let now = match now {
                // These errors count as absence, as they did when the holder was made.
                Err(StoreError::Denied { .. } | StoreError::NotAnObject { .. }) => None,
                now => now?,
            };
            let seen = |meta: &ObjectMeta| (meta.version, meta.access());
            if now.as_ref().map(seen) != before.as_ref().map(seen) {
                return Ok(false);
            }
        }
        holder.checked.set(&begun);
        Ok(true)
    }

    /// The attributes of each prefix.
    pub(super) fn prefix_meta(&self) -> Result<ObjectMeta, StoreError> {
        if let Some(meta) = self.prefix_meta.get() {
            return Ok(*meta);
        }
        let meta = self.store.stat_root()?;
        Ok(*self.prefix_meta.get_or_init(|| meta))
    }

    /// Whether the names in the store cannot be listed, so that a node is found by its name only.
    /// One request finds this out.
    pub(in crate::hierarchy) fn is_unlisted(&self) -> bool {
        if self.names_are.load(Ordering::Relaxed) == NamesAre::Unknown as u8 {
            let listed = self
                .store
                .list(&Prefix::root(), Cursor::START, Detail::Names);
            self.note_listing(&Prefix::root(), listed.as_ref().err());
        }
        self.names_are.load(Ordering::Relaxed) == NamesAre::Unlisted as u8
    }

    /// Learns from the answer to a listing of `prefix`.
    pub(super) fn note_listing(&self, prefix: &Prefix, error: Option<&StoreError>) {
        let names_are = match error {
            Some(StoreError::Unlisted { .. }) => NamesAre::Unlisted,
            Some(StoreError::Denied { .. }) if prefix.is_root() => NamesAre::Unlisted,
            // A zip file in a store that cannot list its names can list those within.
            None if prefix.is_root() => NamesAre::Listed,
            _ => return,
        };
        self.names_are.store(names_are as u8, Ordering::Relaxed);
    }

    /// Remembers whether a node was found at `prefix`.
    pub(in crate::hierarchy) fn remember(&self, prefix: &Prefix, is_node: bool) {
        self.guesses.remember(prefix, is_node);
    }

    /// Whether a node was found below `prefix`.
    pub(in crate::hierarchy) fn has_found_below(&self, prefix: &Prefix) -> bool {
        self.guesses.has_found_below(prefix)
    }

    /// The known names in the group at `prefix`, in order. `error` is the reason why they cannot be
    /// listed.
    pub(super) fn names_known_in(
        &self,
        prefix: &Prefix,
        error: &StoreError,
    ) -> Result<Vec<KnownName>, StoreError> {
        let meta = self.prefix_meta()?;
        Ok(self.guesses.names_in(prefix, meta, error))
    }

    fn lock(&self) -> MutexGuard<'_, KnownGroups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails if one of `own`, the documents of a group, could not be opened and decides whether the group has copies. Beside a
/// `zarr.json`, no other document counts, and an array has no copies.
fn check_decided(own: &[Key], ahead: &DocumentsAhead) -> Result<(), StoreError> {
    for key in own {
        if let Some(error) = ahead.error_at(key).filter(|error| may_pass(error)) {
            return Err(error.clone());
        }
        let decides =
            is_called(key, DocumentName::ZarrJson) || is_called(key, DocumentName::ZArray);
        if decides && ahead.get(key).is_some() {
            break;
        }
    }
    Ok(())
}

/// Whether a later request may succeed. After other errors, the document has no copies, like one that is damaged.
fn may_pass(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Io { .. }
            | StoreError::Denied { .. }
            | StoreError::Changed { .. }
            | StoreError::Short { .. }
    )
}

fn is_called(key: &Key, name: DocumentName) -> bool {
    key.name() == name.as_str().as_bytes()
}

impl KnownGroups {
    /// Forgets all groups if the store is of another generation.
    fn enter(&mut self, generation: u64) {
        if self.generation != generation {
            self.by_prefix.clear();
            self.generation = generation;
        }
    }
}

impl Holder {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Arc<Copies>>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The attributes of a copy of `len` bytes: those of the document that has it.
    pub(super) fn copy_meta(&self, len: usize) -> ObjectMeta {
        ObjectMeta {
            version: Version {
                size: len as u64,
                ..self.meta.version
            },
            ..self.meta
        }
    }
}

impl Covered {
    /// The node at `path` below the group, according to the copies; `None` if they do not mention it.
    pub(super) fn node_at(&self, path: &[u8]) -> Option<CopiedNode> {
        if path.is_empty() {
            return Some(CopiedNode::Group);
        }
        self.copies.node_at(path)
    }
}

impl Evict for Catalog {
    fn evict_one(&self) -> bool {
        let groups = self.lock();
        let mut holders = groups.by_prefix.iter().rev();
        let evicted = holders.find_map(|(_, holder)| holder.as_ref()?.lock().take());
        drop(groups);
        // Its memory is released without the lock.
        evicted.is_some()
    }

    fn evict_kept(&self) -> bool {
        self.evict_one()
    }
}
