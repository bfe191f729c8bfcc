//! Packs the parts that an earlier daemon has left in journals, and saves the chunks that it could not save.
//!
//! A part is packed if the shard has the content that the part replaced, or the content of an earlier part of the same
//! journals. If the shard has the content of the part already, there is nothing to do. Any other content was written by
//! another program since, and stays.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::Staging;
use super::shard::{Base, Slots, StagedPart, StagedShard};
use crate::error::Error;
use crate::grid::Dims;
use crate::hierarchy::{ArrayNode, BrokenKind, Node};
use crate::load::{ChunkedArray, Shards};
use crate::store::{Key, LeftJournal, NewFile, PartContent, StoreError};

/// The outcome of a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Inner chunks that are in their shards now, and chunks that are saved now.
    pub packed: usize,
    /// Chunks that another program has changed since, and whose new bytes stay.
    pub changed: usize,
    /// Chunks that stay in their journals, because they cannot be saved.
    pub left: usize,
    /// Journals that cannot be used.
    pub unusable: usize,
    /// Changes of documents whose copies in consolidated metadata are up to date now.
    pub copied: usize,
    /// Changes of documents whose copies cannot be brought up to date.
    pub stale: usize,
}

/// The chunks in left journals: how many there are, and how many of them were handled.
#[derive(Debug, Default)]
pub(super) struct RecoveryCounters {
    found: AtomicU64,
    done: AtomicU64,
}

/// The object whose parts a journal has.
pub(super) enum Place {
    /// A shard.
    Shard(ShardPlace),
    /// A chunk of this array, which has no shards.
    Whole(Arc<ArrayNode>),
}

/// The place of a shard in its array.
pub(super) struct ShardPlace {
    node: Arc<ArrayNode>,
    array: Arc<ChunkedArray>,
    /// The first inner chunk of the shard.
    first: Dims,
}

impl Staging {
    /// Packs the parts that an earlier daemon has left in journals. The caller calls this before any chunk is staged.
    ///
    /// # Errors
    /// [`Error::Store`] when the journals cannot be listed.
    pub(crate) fn recover(self: &Arc<Self>) -> Result<Recovered, Error> {
        let (left, unusable) = self.writer.left_journals()?;
        let mut found = Recovered {
            unusable,
            ..Recovered::default()
        };
        let mut by_shard: BTreeMap<Vec<u8>, Vec<LeftJournal>> = BTreeMap::new();
        for journal in left {
            let key = journal.key.as_bytes().to_vec();
            by_shard.entry(key).or_default().push(journal);
        }
        let count = |counter: &AtomicU64, n: usize| counter.fetch_add(n as u64, Ordering::Relaxed);
        for journals in by_shard.values() {
            count(&self.recovery.found, n_slots(journals));
        }
        for journals in by_shard.into_values() {
            let Some(key) = journals.first().map(|journal| journal.key.clone()) else {
                continue;
            };
            let all = n_slots(&journals);
            match self.recover_journals(&key, journals) {
                Ok(shard) => {
                    found.packed += shard.packed;
                    found.changed += shard.changed;
                    found.left += shard.left;
                }
                Err(error) => {
                    log::error!("{key}: {all} chunks stay in the journal: {error}");
                    found.left += all;
                }
            }
            count(&self.recovery.done, all);
        }
        self.writer.sync_removed_journals()?;
        Ok(found)
    }

    /// How many chunks were found in left journals, and how many of them were handled.
    pub(crate) fn recovery(&self) -> (u64, u64) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (of(&self.recovery.found), of(&self.recovery.done))
    }

    /// Packs the shard at `key` with the parts of `journals` that were written for its array.
    fn recover_journals(
        self: &Arc<Self>,
        key: &Key,
        journals: Vec<LeftJournal>,
    ) -> Result<Recovered, Error> {
        let Some(place) = self.place_of(key)? else {
            if !journals.iter().all(LeftJournal::only_erases) {
                let problem = "no array has a shard or a chunk with this key";
                return Err(StoreError::problem(key, problem).into());
            }
            // The chunks were removed with their array.
            let packed = n_slots(&journals);
            for left in journals {
                left.journal.remove();
            }
            return Ok(Recovered {
                packed,
                ..Recovered::default()
            });
        };
        let node = match &place {
            Place::Shard(place) => &place.node,
            Place::Whole(node) => node,
        };
        let (mut journals, others) = self.of_array(node, journals);
        let left = n_slots(&others);
        let place = match place {
            Place::Shard(place) => place,
            Place::Whole(node) => {
                let document = (&node.document.key, &node.document.meta);
                let recovered = self.recover_whole(key, document, journals)?;
                return Ok(Recovered { left, ..recovered });
            }
        };
        let slots = Slots::of(&place.array, &place.first).ok_or(Error::Stale)?;
        for journal in &mut journals {
            let n = journal.records.len();
            let records = &mut journal.records;
            records.retain(|record| slots.indices(record.slot).is_some());
            if records.len() < n {
                log::error!("{key}: its journal has inner chunks that no shard of its array has");
            }
        }
        let recovered = if journals.is_empty() {
            Recovered::default()
        } else {
            self.recover_shard(key, (place, slots), journals)?
        };
        Ok(Recovered { left, ..recovered })
    }

    /// Packs the shard at `key`, which is at `place`.
    fn recover_shard(
        self: &Arc<Self>,
        key: &Key,
        (place, slots): (ShardPlace, Slots),
        journals: Vec<LeftJournal>,
    ) -> Result<Recovered, Error> {
        let ShardPlace { node, array, .. } = place;
        let stored = self.writer.open_object(key, false)?;
        let object = match &stored {
            Some(stored) => Some(self.writer.object_to_copy(key, stored)?),
            None => None,
        };
        let access = if let Some(stored) = &stored {
            NewFile::like(&stored.meta)
        } else {
            let document = &node.document;
            (self.writer).new_like((&document.key, &document.meta), key)?
        };
        let version = stored.map(|stored| stored.meta.version);
        let what = (key.clone(), node, array);
        let shard = Arc::new(StagedShard::new(what, slots, version, (access, access)));
        // The contents that each slot may have, unless another program has changed it.
        let mut own: HashMap<u64, Vec<PartContent>> = HashMap::new();
        let mut parts: BTreeMap<u64, StagedPart> = BTreeMap::new();
        for journal in &journals {
            for record in &journal.records {
                let known = own.entry(record.slot).or_default();
                known.extend([record.before, record.new]);
                let part = StagedPart {
                    number: self.last_part.fetch_add(1, Ordering::Relaxed) + 1,
                    mtime: SystemTime::now(),
                    new: record.new,
                    before: record.before,
                    file: Arc::clone(journal.journal.file()),
                    offset: record.offset,
                };
                parts.insert(record.slot, part);
            }
        }
        let n = parts.len();
        let mut changed = 0;
        for (slot, known) in own {
            let now = self.content_in(&shard, slot, object.as_ref())?;
            let Some(part) = parts.get_mut(&slot) else {
                continue;
            };
            if now == part.new {
                parts.remove(&slot);
            } else if known.contains(&now) {
                part.before = now;
            } else {
                parts.remove(&slot);
                changed += 1;
            }
        }
        if changed > 0 {
            log::error!(
                "{key}: another program has changed {changed} of {n} inner chunks that an earlier \
                 mount had not written to the shard yet; its changes stay"
            );
        }
        let mut state = shard.lock();
        state.sealed = journals.into_iter().map(|left| left.journal).collect();
        let bytes: u64 = state.sealed.iter().map(crate::store::Journal::len).sum();
        self.journaled.fetch_add(bytes, Ordering::Relaxed);
        state.base = Base::Version(version);
        state.parts = parts;
        // If the shard cannot be packed now, its parts stay staged, so that the mount shows them.
        let mut shards = self.lock_shards();
        shards.insert(key.clone(), Arc::clone(&shard));
        self.n_shards.store(shards.len(), Ordering::Release);
        drop(shards);
        self.unregister_if_empty(&shard, &mut state);
        drop(state);
        if let Err(error) = self.pack(&shard) {
            self.packer.wake(self, None);
            return Err(error);
        }
        Ok(Recovered {
            packed: n - changed,
            changed,
            ..Recovered::default()
        })
    }

    /// Finds the array that has the object at `key` as a shard or a chunk; `None` when no array has it. The object may lie
    /// outside of the array, if the array has become smaller.
    ///
    /// # Errors
    /// [`Error::Metadata`] when the document above the object cannot be used, so that it may be the document of the
    /// array; [`Error::Store`].
    pub(super) fn place_of(&self, key: &Key) -> Result<Option<Place>, Error> {
        for prefix in key.parent().with_ancestors() {
            let node = match self.hierarchy.node(&prefix)? {
                Node::Array(node) => node,
                Node::Broken(broken) if broken.kind != BrokenKind::Group => {
                    let (document, error) = (&broken.document.key, broken.error.clone());
                    return Err(Error::in_document(document, error));
                }
                Node::Group(_) | Node::Implicit | Node::Broken(_) => continue,
            };
            let name = prefix.strip(key.as_bytes()).unwrap_or_default();
            let metadata = &node.metadata;
            let stored = metadata.chunk_keys.decode(name, metadata.shape.len());
            let array = ChunkedArray::new(&node, Shards::Expand);
            let array = array.map_err(|error| Error::in_document(&node.document.key, error))?;
            let layout = array.layout();
            let Some(stored) = stored else {
                return Ok(None);
            };
            if !layout.is_sharded() {
                return Ok(Some(Place::Whole(node)));
            }
            let Some(shown) = layout.shown_in(&stored) else {
                let problem = "its array lists the lengths of its chunks, and none of this one";
                return Err(StoreError::problem(key, problem).into());
            };
            let first = shown.iter().map(|axis| axis.first).collect();
            let array = Arc::new(array);
            return Ok(Some(Place::Shard(ShardPlace { node, array, first })));
        }
        Ok(None)
    }

    /// Splits `journals` into those that were written for the current array `node`, and the others. Another array may
    /// have been at this path before. Chunks of that array that were erased are gone with it.
    fn of_array(
        &self,
        node: &ArrayNode,
        journals: Vec<LeftJournal>,
    ) -> (Vec<LeftJournal>, Vec<LeftJournal>) {
        let is_of = |journal: &LeftJournal| {
            let then = self.hierarchy.parse_array(node, &journal.document);
            then.is_ok_and(|then| then.has_same_chunks(&node.metadata))
        };
        let (own, mut others): (Vec<_>, Vec<_>) = journals.into_iter().partition(is_of);
        others.retain(|other| {
            let key = &other.key;
            if other.only_erases() {
                log::warn!("{key}: chunks were erased of an array that another array has replaced");
                other.journal.remove();
                return false;
            }
            log::error!(
                "{key}: chunks stay in the journal, because the document of their array describes other chunks now"
            );
            true
        });
        (own, others)
    }
}

/// The number of inner chunks of a shard that `journals` have.
fn n_slots(journals: &[LeftJournal]) -> usize {
    let records = journals.iter().flat_map(|journal| &journal.records);
    let slots: HashSet<_> = records.map(|record| record.slot).collect();
    slots.len()
}
