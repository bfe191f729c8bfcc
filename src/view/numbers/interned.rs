//! Vnodes that are numbered one by one, and remembered while the kernel knows them.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use lru::LruCache;

use crate::view::vnode::Vnode;

/// How many of the vnodes that the kernel has forgotten are remembered.
pub(super) const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// Vnodes by their numbers.
#[derive(Debug)]
pub(super) struct Interned {
    /// The vnodes that the kernel knows, with its reference counts.
    pub(super) held: HashMap<u64, (Vnode, u64)>,
    /// The vnodes that the kernel has forgotten.
    pub(super) forgotten: LruCache<u64, Vnode>,
    /// The numbers of vnodes that do not have the number that is their hash. A renamed vnode has the number of its old
    /// name. A vnode has another number, too, if its hash was taken.
    pub(super) renamed: HashMap<Vnode, u64>,
    /// The source of numbers for vnodes whose hash was taken.
    pub(super) salt: u64,
}

impl Default for Interned {
    fn default() -> Self {
        Interned {
            held: HashMap::new(),
            forgotten: LruCache::new(REMEMBERED),
            renamed: HashMap::new(),
            salt: 0,
        }
    }
}

impl Interned {
    /// The vnode that has `number`.
    pub(super) fn holder(&self, number: u64) -> Option<&Vnode> {
        match self.held.get(&number) {
            Some((vnode, _)) => Some(vnode),
            None => self.forgotten.peek(&number),
        }
    }
}
