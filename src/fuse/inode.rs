//! Inode numbers: one for each version of a vnode, and what the kernel may hold under each.
//!
//! The kernel keeps pages and attributes by inode number. A number therefore stands for one
//! version of the bytes: the first version that is shown has the vnode's own number, a later
//! one, while the kernel may still hold pages of the first, a fresh number from a counter that
//! the view's numbers never reach. [`Versions`] compares fingerprints; it does no I/O and knows
//! no FUSE.
//!
//! What the kernel holds is remembered in bounded tables. Where a table forgot, the kernel's
//! copy must be dropped at the next open ([`Comparison::FirstOpen`]), which is always right.
//! Directories and files that are never cached have fingerprint 0 and are not recorded.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::view::{Attributes, VnodeId};

/// Numbers from here on are given out here, those below are the view's.
const FIRST_FRESH: u64 = 1 << 62;

/// Closed files, and files never opened, whose versions are remembered: 65536 of each.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("65536 is not 0");

/// Told of a number that was shown with more than one version. Of replies that are under way
/// together the kernel takes the attributes of the first to arrive, which nobody knows here.
const SEVERAL: u64 = 0;

/// Which number stands for what. `B` is what a passthrough file is backed by.
#[derive(Debug)]
pub(super) struct Versions<B> {
    table: Mutex<Table<B>>,
    /// Whether any vnode ever had a number but its own: listings ask about millions.
    gave_fresh: AtomicBool,
}

#[derive(Debug)]
struct Table<B> {
    next_fresh: u64,
    /// Numbers with open handles.
    pinned: HashMap<u64, Pinned<B>>,
    /// Fingerprints of closed files whose pages the kernel may hold.
    opened: LruCache<u64, u64>,
    /// Fingerprints that the kernel was told of numbers that were never opened, or [`SEVERAL`].
    looked_up: LruCache<u64, u64>,
    /// The newest fresh number of each vnode that has one.
    newest: HashMap<VnodeId, u64>,
    /// Every fresh number that the kernel holds.
    fresh: HashMap<u64, Fresh>,
    /// Whether `opened` ever dropped a number that the kernel may hold pages of.
    forgot_opened: bool,
}

#[derive(Debug)]
struct Fresh {
    vnode: VnodeId,
    /// Lookups that the kernel has not taken back.
    references: u64,
}

/// A number with open handles.
#[derive(Debug)]
pub(super) struct Pinned<B> {
    attributes: Attributes,
    /// `None` until the first open has decided.
    mode: Option<Mode<B>>,
    handles: u64,
}

/// Who reads for the handles of a number. The kernel refuses to mix the two on one inode.
#[derive(Debug)]
pub(super) enum Mode<B> {
    /// The daemon, into the page cache.
    Cached,
    /// The kernel itself, from this file, which all handles share.
    Passthrough(Arc<B>),
}

// By hand: deriving would ask for `B: Clone`.
impl<B> Clone for Mode<B> {
    fn clone(&self) -> Self {
        match self {
            Mode::Cached => Mode::Cached,
            Mode::Passthrough(backing) => Mode::Passthrough(Arc::clone(backing)),
        }
    }
}

/// How the version that is there now compares with the one that a number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// The same: the kernel's pages are good.
    Same,
    /// Another: the number is stale, the name must be looked up again.
    Changed,
    /// Not opened as far as is known: the number may stand for this version from now on, once
    /// the kernel has dropped what it may hold.
    FirstOpen(Leftovers),
}

/// What the kernel may hold of another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftovers {
    Nothing,
    Attributes,
    PagesAndAttributes,
}

impl<B> Versions<B> {
    pub(super) fn new() -> Versions<B> {
        Versions::remembering(REMEMBERED)
    }

    fn remembering(count: NonZeroUsize) -> Versions<B> {
        Versions {
            table: Mutex::new(Table {
                next_fresh: FIRST_FRESH,
                pinned: HashMap::new(),
                opened: LruCache::new(count),
                looked_up: LruCache::new(count),
                newest: HashMap::new(),
                fresh: HashMap::new(),
                forgot_opened: false,
            }),
            gave_fresh: AtomicBool::new(false),
        }
    }

    /// The number under which the kernel is told of this version of `vnode`, by a reply that
    /// counts as a lookup.
    pub(super) fn told(&self, vnode: VnodeId, fingerprint: u64) -> u64 {
        if fingerprint == 0 {
            return vnode.0;
        }
        let mut table = self.lock();
        let shown = table.shown(vnode);
        let ino = match table.known(shown) {
            Some(known) if known == fingerprint => shown,
            Some(_) => {
                self.gave_fresh.store(true, Ordering::Release);
                table.fresh(vnode, fingerprint)
            }
            None => {
                table.remember_told(shown, fingerprint);
                shown
            }
        };
        if let Some(fresh) = table.fresh.get_mut(&ino) {
            fresh.references += 1;
        }
        ino
    }

    /// The number of `vnode` for a listing that tells names only.
    pub(super) fn shown(&self, vnode: VnodeId) -> u64 {
        if !self.gave_fresh.load(Ordering::Acquire) {
            return vnode.0;
        }
        self.lock().shown(vnode)
    }

    /// A number that stands for nothing and is not remembered.
    pub(super) fn placeholder(&self) -> u64 {
        self.lock().take_fresh()
    }

    /// The vnode that `ino` is a version of; `None` for a placeholder, or when the kernel has
    /// forgotten the number.
    pub(super) fn vnode(&self, ino: u64) -> Option<VnodeId> {
        if ino < FIRST_FRESH {
            return Some(VnodeId(ino));
        }
        self.lock().fresh.get(&ino).map(|fresh| fresh.vnode)
    }

    /// The kernel takes back `times` lookups of `ino`. Tells which vnode the references go back
    /// to; `None` for a placeholder.
    pub(super) fn forget(&self, ino: u64, times: u64) -> Option<VnodeId> {
        if ino < FIRST_FRESH {
            return Some(VnodeId(ino));
        }
        let mut table = self.lock();
        let fresh = table.fresh.get_mut(&ino)?;
        fresh.references = fresh.references.saturating_sub(times);
        let (vnode, references) = (fresh.vnode, fresh.references);
        if references == 0 {
            table.fresh.remove(&ino);
            // A still newer version may have taken the place.
            if table.newest.get(&vnode) == Some(&ino) {
                table.newest.remove(&vnode);
            }
            table.opened.pop(&ino);
            table.looked_up.pop(&ino);
        }
        Some(vnode)
    }

    /// The attributes that the open handles of `ino` were opened with.
    pub(super) fn pinned_attributes(&self, ino: u64) -> Option<Attributes> {
        self.lock().pinned.get(&ino).map(|pinned| pinned.attributes)
    }

    /// Whether the kernel may be told attributes of version `fingerprint` for `ino`; if so,
    /// remembers that it was.
    pub(super) fn may_tell(&self, ino: u64, fingerprint: u64) -> bool {
        let mut table = self.lock();
        if let Some(known) = table.known(ino) {
            return known == fingerprint;
        }
        if fingerprint != 0 {
            table.remember_told(ino, fingerprint);
        }
        true
    }

    /// Compares the version that was just opened with the one that `ino` stands for, and counts
    /// a handle of it unless it is another.
    ///
    /// From here on the kernel is told of this version only. What it was told before, and has
    /// not received yet, it ignores when the leftovers are dropped: it compares the times at
    /// which request and drop began.
    pub(super) fn open(&self, ino: u64, attributes: Attributes) -> Comparison {
        let mut table = self.lock();
        let comparison = table.compare(ino, attributes.fingerprint);
        if comparison != Comparison::Changed {
            table.opened.pop(&ino);
            table.looked_up.pop(&ino);
            let pinned = table.pinned.entry(ino).or_insert(Pinned {
                attributes,
                mode: None,
                handles: 0,
            });
            pinned.handles += 1;
        }
        comparison
    }

    /// Who reads for the open handles of `ino`; `None` when the first is to decide.
    pub(super) fn mode(&self, ino: u64) -> Option<Mode<B>> {
        self.lock().pinned.get(&ino)?.mode.clone()
    }

    /// Decides who reads for the open handles of `ino`.
    pub(super) fn set_mode(&self, ino: u64, mode: Mode<B>) {
        if let Some(pinned) = self.lock().pinned.get_mut(&ino) {
            pinned.mode = Some(mode);
        }
    }

    /// One handle of `ino` less. Returns what the last one leaves, to be dropped by the caller:
    /// dropping a backing file is a system call.
    pub(super) fn close(&self, ino: u64) -> Option<Pinned<B>> {
        let mut table = self.lock();
        let pinned = table.pinned.get_mut(&ino)?;
        pinned.handles = pinned.handles.saturating_sub(1);
        if pinned.handles > 0 {
            return None;
        }
        let last = table.pinned.remove(&ino)?;
        // FORGET may overtake RELEASE: then the kernel holds nothing under this number.
        if ino < FIRST_FRESH || table.fresh.contains_key(&ino) {
            let evicted = table.opened.push(ino, last.attributes.fingerprint);
            table.forgot_opened |= evicted.is_some_and(|(other, _)| other != ino);
        }
        Some(last)
    }

    fn lock(&self) -> MutexGuard<'_, Table<B>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Table<B> {
    fn shown(&self, vnode: VnodeId) -> u64 {
        self.newest.get(&vnode).copied().unwrap_or(vnode.0)
    }

    /// The version whose pages the kernel may hold under `ino`.
    fn known(&mut self, ino: u64) -> Option<u64> {
        match self.pinned.get(&ino) {
            Some(pinned) => Some(pinned.attributes.fingerprint),
            None => self.opened.get(&ino).copied(),
        }
    }

    fn compare(&mut self, ino: u64, fingerprint: u64) -> Comparison {
        match self.known(ino) {
            Some(known) if known == fingerprint => Comparison::Same,
            Some(_) => Comparison::Changed,
            None if self.forgot_opened => Comparison::FirstOpen(Leftovers::PagesAndAttributes),
            None if self.looked_up.get(&ino) == Some(&fingerprint) => {
                Comparison::FirstOpen(Leftovers::Nothing)
            }
            None => Comparison::FirstOpen(Leftovers::Attributes),
        }
    }

    fn remember_told(&mut self, ino: u64, fingerprint: u64) {
        match self.looked_up.get_mut(&ino) {
            Some(told) if *told == fingerprint => {}
            Some(told) => *told = SEVERAL,
            None => {
                self.looked_up.put(ino, fingerprint);
            }
        }
    }

    fn fresh(&mut self, vnode: VnodeId, fingerprint: u64) -> u64 {
        let ino = self.take_fresh();
        self.newest.insert(vnode, ino);
        let references = 0;
        self.fresh.insert(ino, Fresh { vnode, references });
        self.looked_up.put(ino, fingerprint);
        ino
    }

    fn take_fresh(&mut self) -> u64 {
        let ino = self.next_fresh;
        self.next_fresh += 1;
        ino
    }
}

#[cfg(test)]
mod tests;
