//! Owners and modes of the directories above objects, which decide who may reach the objects.
//!
//! Many files lie in one directory, so its owner and mode are remembered for as long as the
//! attributes of files are trusted. Then a thousand files of one group need one examination of the
//! directories above them.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::{Freshness, LastCheck};
use crate::store::{Access, Prefix};
use crate::sync::{Mutex, PoisonError};

/// The number of directories that are remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");

/// Remembers the owners and modes of directories.
#[derive(Debug)]
pub struct DirectoryAccess {
    freshness: Freshness,
    known: Mutex<LruCache<Prefix, (LastCheck, Option<Access>)>>,
}

impl DirectoryAccess {
    /// Starts without directories.
    pub fn new(freshness: Freshness) -> DirectoryAccess {
        DirectoryAccess {
            freshness,
            known: Mutex::new(LruCache::new(REMEMBERED)),
        }
    }

    /// Owner and mode of the directory at `prefix`, if they are remembered and still trusted. The
    /// inner `None` means that there is no directory.
    pub fn get(&self, prefix: &Prefix) -> Option<Option<Access>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (checked, access) = known.get(prefix)?;
        self.freshness.trusts(checked).then_some(*access)
    }

    /// Remembers owner and mode of the directory at `prefix`, for which the store was asked at
    /// `checked`.
    pub fn put(&self, prefix: &Prefix, checked: LastCheck, access: Option<Access>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.put(prefix.clone(), (checked, access));
    }
}
