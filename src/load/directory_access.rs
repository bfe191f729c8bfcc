//! Owners and modes of the directories above objects, which decide who may reach the objects.
//!
//! Many files lie in one directory, so its owner and mode are remembered for as long as the
//! attributes of files are trusted. Then a thousand files of one group need one look at the
//! directories above them.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::store::{Access, ObjectMeta, Prefix, StoreError};

/// The number of directories that are remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");

/// Remembers the owners and modes of directories.
#[derive(Debug)]
pub(super) struct DirectoryAccess {
    /// How long an owner and mode are trusted; `None` means for ever.
    ttl: Option<Duration>,
    known: Mutex<LruCache<Prefix, (Instant, Option<Access>)>>,
}

impl DirectoryAccess {
    /// Remembers nothing yet.
    pub(super) fn new(ttl: Option<Duration>) -> DirectoryAccess {
        DirectoryAccess {
            ttl,
            known: Mutex::new(LruCache::new(REMEMBERED)),
        }
    }

    /// Owner and mode of the directory at `prefix`, whose current attributes `stat` gives; `None`
    /// where there is no directory.
    ///
    /// # Errors
    /// Those of `stat`.
    pub(super) fn get(
        &self,
        prefix: &Prefix,
        stat: impl FnOnce() -> Result<Option<ObjectMeta>, StoreError>,
    ) -> Result<Option<Access>, StoreError> {
        let known = self.lock().get(prefix).copied();
        if let Some((checked, access)) = known
            && self.ttl.is_none_or(|ttl| checked.elapsed() < ttl)
        {
            return Ok(access);
        }
        let now = Instant::now();
        let access = stat()?.map(|meta| meta.access());
        self.lock().put(prefix.clone(), (now, access));
        Ok(access)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<Prefix, (Instant, Option<Access>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
