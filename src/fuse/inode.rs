//! Inode numbers: one for each version of a vnode, and what the kernel may cache under each.
//!
//! The kernel caches pages and attributes by inode number, and gives out file handles that have it. A
//! number therefore stands for one version of the bytes. The first version that is reported has the
//! vnode's own number. A later one, while the first is remembered, has a fresh number from a counter
//! that the view's numbers never reach. [`InodeVersions`] compares fingerprints; it does no I/O and
//! knows no FUSE.
//!
//! Bounded tables remember which attributes and bytes the kernel caches. If an entry was evicted from a
//! table, the kernel's cache is dropped at the next open ([`Comparison::FirstOpen`]), which is always
//! correct. Directories and files that are never cached have fingerprint 0 and are not recorded.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::view::{VnodeAttributes, VnodeId};

/// The first fresh number: those below are the view's.
const FIRST_FRESH: u64 = 1 << 62;

/// How many closed files, and how many files that were never opened, have their versions remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("65536 is not 0");

/// How many fresh numbers are remembered that the kernel has forgotten.
const REMEMBERED_FRESH: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The versions that inode numbers stand for. `B` is a shared backing file of passthrough.
#[derive(Debug)]
pub(super) struct InodeVersions<B> {
    table: Mutex<InodeTable<B>>,
    /// Whether any vnode ever had a fresh number. If not, listings of millions of files need no lock.
    gave_fresh: AtomicBool,
}

#[derive(Debug)]
struct InodeTable<B> {
    next_fresh: u64,
    /// Numbers with open handles.
    pinned: HashMap<u64, PinnedInode<B>>,
    /// Fingerprints of closed files whose pages the kernel may cache.
    opened: LruCache<u64, u64>,
    /// Fingerprints that were reported to the kernel of inodes that were never opened.
    looked_up: LruCache<u64, u64>,
    /// The newest fresh number of each vnode that has one.
    newest: HashMap<VnodeId, u64>,
    /// Every fresh number that the kernel refers to.
    fresh: HashMap<u64, FreshInode>,
    /// Fresh numbers that the kernel has forgotten, with their fingerprints: file handles may have
    /// them.
    forgotten: LruCache<u64, (VnodeId, u64)>,
    /// Whether `opened` ever evicted an inode whose pages the kernel may cache.
    forgot_opened: bool,
}

#[derive(Debug)]
struct FreshInode {
    vnode: VnodeId,
    /// Lookups that the kernel has not forgotten (FORGET).
    references: u64,
}

/// An inode with open handles.
#[derive(Debug)]
pub(super) struct PinnedInode<B> {
    attributes: VnodeAttributes,
    /// `None` until the first open has decided.
    mode: Option<ReadMode<B>>,
    handles: u64,
}

/// How the handles of an inode are read. The kernel refuses to mix the two modes on one inode.
#[derive(Debug, Clone)]
pub(super) enum ReadMode<B> {
    /// By the daemon, into the page cache.
    Cached,
    /// By the kernel itself, from this file, which all handles share.
    Passthrough(B),
}

/// How the current version compares with the one that an inode number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// They are the same: the kernel's pages are valid.
    Same,
    /// They differ: the number is stale, and the name must be looked up again.
    Changed,
    /// The inode was not opened before, as far as is known: its number may stand for this version from now on, once the
    /// kernel has dropped its cache of another version.
    FirstOpen(StaleCache),
}

/// The parts of another version that the kernel may have in its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StaleCache {
    Nothing,
    Attributes,
    PagesAndAttributes,
}

impl<B: Clone> InodeVersions<B> {
    pub(super) fn new() -> InodeVersions<B> {
        InodeVersions::remembering(REMEMBERED)
    }

    fn remembering(count: NonZeroUsize) -> InodeVersions<B> {
        InodeVersions {
            table: Mutex::new(InodeTable {
                next_fresh: FIRST_FRESH,
                pinned: HashMap::new(),
                opened: LruCache::new(count),
                looked_up: LruCache::new(count),
                newest: HashMap::new(),
                fresh: HashMap::new(),
                forgotten: LruCache::new(REMEMBERED_FRESH),
                forgot_opened: false,
            }),
            gave_fresh: AtomicBool::new(false),
        }
    }

    /// The inode number to report for this version of `vnode`, in a reply that counts as a lookup.
    pub(super) fn number_to_report(&self, vnode: VnodeId, fingerprint: u64) -> u64 {
        if fingerprint == 0 {
            return vnode.0;
        }
        let mut table = self.lock();
        let shown = table.newest_number(vnode);
        let ino = match table.reported(shown) {
            Some(reported) if reported == fingerprint => shown,
            Some(_) => {
                self.gave_fresh.store(true, Ordering::Release);
                table.fresh(vnode, fingerprint)
            }
            None => {
                table.looked_up.put(shown, fingerprint);
                shown
            }
        };
        if let Some(fresh) = table.fresh.get_mut(&ino) {
            fresh.references += 1;
        }
        ino
    }

    /// Notes the attributes of a file that was written to, whose handles are open. Attributes of another file, which
    /// has its name by now, are ignored. Returns whether the mode differs.
    pub(super) fn changed(&self, ino: u64, attributes: VnodeAttributes) -> bool {
        if let Some(pinned) = self.lock().pinned.get_mut(&ino)
            && pinned.attributes.fingerprint == attributes.fingerprint
        {
            let before = std::mem::replace(&mut pinned.attributes, attributes);
            return before.mode != attributes.mode;
        }
        false
    }

    /// The newest number of `vnode`, for a listing of names alone.
    pub(super) fn newest_number(&self, vnode: VnodeId) -> u64 {
        if !self.gave_fresh.load(Ordering::Acquire) {
            return vnode.0;
        }
        self.lock().newest_number(vnode)
    }

    /// A number that stands for no vnode and is not remembered.
    pub(super) fn placeholder(&self) -> u64 {
        self.lock().take_fresh()
    }

    /// The vnode that `ino` is a version of; `None` for a placeholder, or if the kernel has
    /// forgotten the number.
    pub(super) fn vnode(&self, ino: u64) -> Option<VnodeId> {
        if ino < FIRST_FRESH {
            return Some(VnodeId(ino));
        }
        self.lock().fresh.get(&ino).map(|fresh| fresh.vnode)
    }

    /// The kernel forgets `times` lookups of `ino`. Returns the vnode that they referred to; `None`
    /// for a placeholder.
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
            // A newer version may have another number by now.
            if table.newest.get(&vnode) == Some(&ino) {
                table.newest.remove(&vnode);
            }
            if let Some(fingerprint) = table.reported(ino) {
                table.forgotten.put(ino, (vnode, fingerprint));
            }
            table.opened.pop(&ino);
            table.looked_up.pop(&ino);
        }
        Some(vnode)
    }

    /// The vnode that `ino` is a version of, also if the kernel has forgotten the number.
    pub(super) fn recall(&self, ino: u64) -> Option<VnodeId> {
        let known = self.vnode(ino);
        known.or_else(|| self.lock().forgotten.get(&ino).map(|(vnode, _)| *vnode))
    }

    /// Whether `ino`, a number of `vnode` from a file handle, may be reported for this version, in a reply that counts
    /// as a lookup.
    pub(super) fn report_again(&self, ino: u64, vnode: VnodeId, fingerprint: u64) -> bool {
        if fingerprint == 0 {
            return ino == vnode.0;
        }
        let mut table = self.lock();
        if let Some((_, version)) = table.forgotten.peek(&ino).copied() {
            if version != fingerprint {
                return false;
            }
            table.forgotten.pop(&ino);
            table.newest.entry(vnode).or_insert(ino);
            let references = 0;
            table.fresh.insert(ino, FreshInode { vnode, references });
            self.gave_fresh.store(true, Ordering::Release);
        }
        match table.reported(ino) {
            Some(reported) if reported != fingerprint => return false,
            Some(_) => {}
            // The generation of the handle shows whether it is of another version.
            None => {
                table.looked_up.put(ino, fingerprint);
            }
        }
        if let Some(fresh) = table.fresh.get_mut(&ino) {
            fresh.references += 1;
        }
        true
    }

    /// The attributes that the open handles of `ino` were opened with.
    pub(super) fn pinned_attributes(&self, ino: u64) -> Option<VnodeAttributes> {
        self.lock().pinned.get(&ino).map(|pinned| pinned.attributes)
    }

    /// Whether attributes of version `fingerprint` may be reported for `ino`; if so, remembers that
    /// they were.
    pub(super) fn may_report(&self, ino: u64, fingerprint: u64) -> bool {
        let mut table = self.lock();
        if let Some(reported) = table.reported(ino) {
            return reported == fingerprint;
        }
        if fingerprint != 0 {
            table.looked_up.put(ino, fingerprint);
        }
        true
    }

    /// Compares the version that was just opened with the one that `ino` stands for, and counts a
    /// handle of `ino` unless they differ.
    ///
    /// From here on, only this version is reported for `ino`. An older reply that the kernel has
    /// not received yet does no harm: after an invalidation, the kernel ignores the attributes of
    /// requests that began before it.
    pub(super) fn open(&self, ino: u64, attributes: VnodeAttributes) -> Comparison {
        let mut table = self.lock();
        let comparison = table.compare(ino, attributes.fingerprint);
        if comparison != Comparison::Changed {
            table.opened.pop(&ino);
            table.looked_up.pop(&ino);
            let pinned = table.pinned.entry(ino).or_insert(PinnedInode {
                attributes,
                mode: None,
                handles: 0,
            });
            pinned.handles += 1;
        }
        comparison
    }

    /// How the open handles of `ino` are read; `None` when the first is yet to decide.
    pub(super) fn mode(&self, ino: u64) -> Option<ReadMode<B>> {
        self.lock().pinned.get(&ino)?.mode.clone()
    }

    /// Decides how the open handles of `ino` are read.
    pub(super) fn set_mode(&self, ino: u64, mode: ReadMode<B>) {
        if let Some(pinned) = self.lock().pinned.get_mut(&ino) {
            pinned.mode = Some(mode);
        }
    }

    /// Closes a handle of `ino`. The last one returns the state of the inode, which the caller
    /// drops without the lock: dropping a backing file is a system call.
    pub(super) fn close(&self, ino: u64) -> Option<PinnedInode<B>> {
        let mut table = self.lock();
        let pinned = table.pinned.get_mut(&ino)?;
        pinned.handles = pinned.handles.saturating_sub(1);
        if pinned.handles > 0 {
            return None;
        }
        let last = table.pinned.remove(&ino)?;
        // FORGET may arrive before RELEASE: then the kernel caches nothing under this number.
        if ino < FIRST_FRESH || table.fresh.contains_key(&ino) {
            let evicted = table.opened.push(ino, last.attributes.fingerprint);
            table.forgot_opened |= evicted.is_some_and(|(other, _)| other != ino);
        }
        Some(last)
    }

    fn lock(&self) -> MutexGuard<'_, InodeTable<B>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> InodeTable<B> {
    fn newest_number(&self, vnode: VnodeId) -> u64 {
        self.newest.get(&vnode).copied().unwrap_or(vnode.0)
    }

    /// The version whose pages the kernel may cache under `ino`.
    fn known(&mut self, ino: u64) -> Option<u64> {
        match self.pinned.get(&ino) {
            Some(pinned) => Some(pinned.attributes.fingerprint),
            None => self.opened.get(&ino).copied(),
        }
    }

    /// The version that was reported to the kernel under `ino`.
    fn reported(&mut self, ino: u64) -> Option<u64> {
        let known = self.known(ino);
        known.or_else(|| self.looked_up.get(&ino).copied())
    }

    fn compare(&mut self, ino: u64, fingerprint: u64) -> Comparison {
        match self.known(ino) {
            Some(known) if known == fingerprint => Comparison::Same,
            Some(_) => Comparison::Changed,
            None => match self.looked_up.get(&ino) {
                Some(reported) if *reported != fingerprint => Comparison::Changed,
                _ if self.forgot_opened => Comparison::FirstOpen(StaleCache::PagesAndAttributes),
                Some(_) => Comparison::FirstOpen(StaleCache::Nothing),
                None => Comparison::FirstOpen(StaleCache::Attributes),
            },
        }
    }

    fn fresh(&mut self, vnode: VnodeId, fingerprint: u64) -> u64 {
        let ino = self.take_fresh();
        self.newest.insert(vnode, ino);
        let references = 0;
        self.fresh.insert(ino, FreshInode { vnode, references });
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
