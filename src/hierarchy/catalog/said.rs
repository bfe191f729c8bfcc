//! Messages that are logged once.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::store::Prefix;

/// The most subjects that are remembered.
const MOST_SUBJECTS: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// The subjects of logged warnings.
#[derive(Debug)]
pub(super) struct SaidOnce(Mutex<LruCache<Prefix, ()>>);

impl Default for SaidOnce {
    fn default() -> Self {
        SaidOnce(Mutex::new(LruCache::new(MOST_SUBJECTS)))
    }
}

impl SaidOnce {
    /// Logs a warning about `subject`, unless one was logged before.
    pub(super) fn warn(&self, subject: &Prefix, message: impl FnOnce() -> String) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.put(subject.clone(), ()).is_none() {
            drop(said);
            log::warn!("{}", message());
        }
    }
}
