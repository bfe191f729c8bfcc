//! The staged parts of one shard.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use super::{PATIENCE, QUIET, RETRY};
use crate::grid::{Dims, indices_of, rank_of};
use crate::hierarchy::ArrayNode;
use crate::load::ChunkedArray;
use crate::store::{Journal, JournalFile, Key, NewFile, ObjectMeta, PartContent, Times, Version};

/// A shard with staged parts.
#[derive(Debug)]
pub(super) struct StagedShard {
    pub(super) key: Key,
    pub(super) node: Arc<ArrayNode>,
    pub(super) array: Arc<ChunkedArray>,
    pub(super) slots: Slots,
    state: Mutex<ShardState>,
    /// Held while the shard is packed. It is locked before the state.
    packing: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct ShardState {
    /// The journal for the next part; `None` before there is one.
    pub(super) journal: Option<Journal>,
    /// Journals of parts that are being packed.
    pub(super) sealed: Vec<Journal>,
    pub(super) parts: BTreeMap<u64, StagedPart>,
    /// All parts up to this number are packed, or were replaced by parts that are packed.
    pub(super) packed_until: u64,
    /// The version of the shard on which all parts are based.
    pub(super) base: Base,
    pub(super) first: Instant,
    pub(super) last: Instant,
    /// The time of the last pack, if it failed.
    pub(super) failed: Option<Instant>,
    /// Whether the shard was taken out of the table.
    pub(super) is_unregistered: bool,
    /// The mode and the owner of the shard, or of the new shard.
    pub(super) access: NewFile,
    /// The mode and the owner that are shown. They differ if the shard has an access list.
    pub(super) shown: NewFile,
}

/// The version of a shard on which its staged parts are based.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// This version; `None` if there is no shard.
    Version(Option<Version>),
    /// Several versions, because another program has written the shard meanwhile.
    Several,
}

/// An inner chunk that is staged.
#[derive(Debug, Clone)]
pub(super) struct StagedPart {
    /// The number of this part. No other part has it, and later parts have greater numbers.
    pub(super) number: u64,
    pub(super) mtime: SystemTime,
    /// The content of the part.
    pub(super) new: PartContent,
    /// The content of the chunk in the shard.
    pub(super) before: PartContent,
    /// The journal, and the offset of the part's first byte in it.
    pub(super) file: Arc<JournalFile>,
    pub(super) offset: u64,
}

/// The slots of a shard: the places of the inner chunks in it, in C order, in the axes of the array.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    /// The first inner chunk.
    pub(super) first: Dims,
    /// The number of inner chunks of a whole shard, in each dimension.
    counts: Dims,
    /// The number of inner chunks that lie inside the array.
    pub(super) n_inside: u64,
}

impl Slots {
    /// The slots of the shard that has the inner chunk `indices`. The chunk may lie outside of the array, if the array
    /// has become smaller. Never `None` for a chunk of the grid.
    pub(super) fn of(array: &ChunkedArray, indices: &[u64]) -> Option<Slots> {
        let layout = array.layout();
        let shown = layout.shown_in(&layout.stored_indices(indices))?;
        let (mut first, mut counts, mut n_inside) = (Dims::new(), Dims::new(), 1_u64);
        for (axis, whole) in shown.iter().zip(layout.shown_grid().counts()) {
            first.push(axis.first);
            counts.push(axis.count);
            n_inside = n_inside.checked_mul(whole.saturating_sub(axis.first).min(axis.count))?;
        }
        Some(Slots {
            first,
            counts,
            n_inside,
        })
    }

    /// The slot of the inner chunk `indices`.
    pub(super) fn slot(&self, indices: &[u64]) -> Option<u64> {
        let within = indices.iter().zip(&self.first);
        let within: Option<Dims> = within
            .map(|(index, first)| index.checked_sub(*first))
            .collect();
        rank_of(&within?, &self.counts)
    }

    /// The inner chunk in `slot`.
    pub(super) fn indices(&self, slot: u64) -> Option<Dims> {
        let within = indices_of(slot, &self.counts)?;
        let sum = within.iter().zip(&self.first);
        sum.map(|(within, first)| within.checked_add(*first))
            .collect()
    }
}

impl StagedShard {
    /// A shard without staged parts. `base` is the state of the shard in the store.
    pub(super) fn new(
        (key, node, array): (Key, Arc<ArrayNode>, Arc<ChunkedArray>),
        slots: Slots,
        base: Option<Version>,
        (access, shown): (NewFile, NewFile),
    ) -> StagedShard {
        let now = Instant::now();
        StagedShard {
            key,
            node,
            array,
            slots,
            state: Mutex::new(ShardState {
                journal: None,
                sealed: Vec::new(),
                parts: BTreeMap::new(),
                packed_until: 0,
                base: Base::Version(base),
                first: now,
                last: now,
                failed: None,
                is_unregistered: false,
                access,
                shown,
            }),
            packing: Mutex::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ShardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread packs the shard.
    pub(super) fn begin_packing(&self) -> MutexGuard<'_, ()> {
        self.packing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the staged parts are chunks of the current array `node`.
    pub(super) fn is_of(&self, node: &Arc<ArrayNode>) -> bool {
        Arc::ptr_eq(&self.node, node) || self.node.metadata.has_same_chunks(&node.metadata)
    }

    pub(super) fn n_parts(&self) -> usize {
        self.lock().parts.len()
    }

    /// The number of parts in journals that were deleted.
    pub(super) fn n_deleted(&self) -> usize {
        let state = self.lock();
        let is_deleted = |part: &&StagedPart| part.file.is_deleted();
        state.parts.values().filter(is_deleted).count()
    }

    /// Whether any staged part has bytes, so is no removal of an inner chunk.
    pub(super) fn has_chunks(&self) -> bool {
        let state = self.lock();
        let mut parts = state.parts.values();
        parts.any(|part| part.new != PartContent::Nothing)
    }

    /// Whether the shard is due to be packed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let state = self.lock();
        let since = |moment| now.saturating_duration_since(moment);
        if state.parts.is_empty() {
            return false;
        }
        if let Some(failed) = state.failed {
            return since(failed) >= RETRY;
        }
        self.is_complete(&state) || since(state.last) >= QUIET || since(state.first) >= PATIENCE
    }

    /// Whether all inner chunks inside the array are staged, so that hardly another part will follow.
    pub(super) fn is_complete(&self, state: &ShardState) -> bool {
        let n_inside = self.slots.n_inside;
        state.failed.is_none() && n_inside > 0 && state.parts.len() as u64 >= n_inside
    }
}

impl ShardState {
    /// Adds a part, or replaces the one in its slot.
    pub(super) fn stage(&mut self, slot: u64, part: StagedPart) {
        self.last = Instant::now();
        if self.parts.is_empty() {
            self.first = self.last;
        }
        self.parts.insert(slot, part);
    }

    /// Notes that the next part is based on the version `base` of the shard.
    pub(super) fn note_base(&mut self, base: Base) {
        if self.parts.is_empty() {
            self.base = base;
        } else if self.base != base {
            self.base = Base::Several;
        }
    }
}

impl StagedPart {
    /// The attributes of the part, which has a version of its own.
    pub(super) fn meta(&self, tag: u64, access: NewFile) -> ObjectMeta {
        part_meta((self.number, self.len(), self.mtime), tag, access)
    }

    /// Like [`StagedPart::meta`]; `None` if the chunk was erased.
    pub(super) fn shown(&self, tag: u64, access: NewFile) -> Option<ObjectMeta> {
        (self.new != PartContent::Nothing).then(|| self.meta(tag, access))
    }

    pub(super) fn len(&self) -> u64 {
        match self.new {
            PartContent::Bytes { len, .. } => len,
            PartContent::Nothing | PartContent::Unknown => 0,
        }
    }
}

/// The attributes of a part with this number, length and time of writing.
pub(super) fn part_meta(
    (number, len, mtime): (u64, u64, SystemTime),
    tag: u64,
    access: NewFile,
) -> ObjectMeta {
    ObjectMeta {
        version: Version {
            size: len,
            mtime,
            inode: number,
            tag,
        },
        times: Times {
            atime: mtime,
            mtime,
            ctime: mtime,
        },
        mode: access.mode,
        uid: access.uid,
        gid: access.gid,
        // The number distinguishes any two contents.
        dating: crate::store::Dating::Tag,
        arrival: crate::store::Arrival::Changed,
        is_own: false,
    }
}
