//! The text of a document that belongs to a fingerprint.
//!
//! The shown text of a document depends not only on the document's own object: copies of other documents may be in it.
//! So it may change while the version of its object stays the same. The kernel has pages of the text that was first
//! shown under a fingerprint, and another text must not be shown under that fingerprint.

use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use super::{REMEMBERED, Writing};
use crate::store::Version;

/// A fingerprint of a document, and the version that its object has.
pub(super) type DocumentVersion = (u64, Option<Version>);

/// The stamps of the texts that were shown.
#[derive(Debug)]
pub(super) struct Texts(Mutex<LruCache<DocumentVersion, u64>>);

impl Default for Texts {
    fn default() -> Texts {
        Texts(Mutex::new(LruCache::new(REMEMBERED)))
    }
}

impl Writing {
    /// Whether the text with this stamp is the one that a document shows in this version, under this fingerprint. The
    /// first text for which this is called is that text.
    pub(crate) fn is_text_of(&self, document: DocumentVersion, stamp: u64) -> bool {
        let mut texts = self.texts.0.lock().unwrap_or_else(PoisonError::into_inner);
        *texts.get_or_insert(document, || stamp) == stamp
    }
}
