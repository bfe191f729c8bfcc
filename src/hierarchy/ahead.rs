//! Documents that are read ahead, all in one round trip.

use std::collections::HashMap;
use std::sync::Arc;

use super::document::counts_as_absent;
use super::read::{FETCHED_BYTES, OpenDocument};
use crate::budget::{Budget, Holding, Reservation};
use crate::fresh::LastCheck;
use crate::metadata::DocumentName;
use crate::store::{FetchBuffer, FetchRequest, Key, Store, StoreError};

/// Documents of up to this length, in bytes, are read as they are opened, if the budget has memory
/// for them at once.
const MOST_BYTES: u64 = 1 << 20;

/// Documents that were requested, by their keys.
#[derive(Debug)]
pub(super) struct DocumentsAhead {
    begun: LastCheck,
    /// `None` for an absent document.
    found: HashMap<Key, Option<OpenDocument>>,
    /// Documents that could not be opened, with the errors.
    failed: Vec<(Key, StoreError)>,
}

/// Memory for a document of a length that is not known yet.
struct DocumentBuffer<'b> {
    budget: &'b Arc<Budget>,
    bytes: Vec<u8>,
    memory: Option<Reservation>,
}

impl DocumentsAhead {
    /// Starts without requests.
    pub(super) fn new() -> DocumentsAhead {
        DocumentsAhead {
            begun: LastCheck::now(),
            found: HashMap::new(),
            failed: Vec::new(),
        }
    }

    /// A time before the first document was requested.
    pub(super) fn begun(&self) -> &LastCheck {
        &self.begun
    }

    /// Takes the document at `key`, which was requested ([`DocumentsAhead::has_asked`]); `None` when it is absent.
    pub(super) fn take(&mut self, key: &Key) -> Option<OpenDocument> {
        self.found.remove(key).flatten()
    }

    /// The document at `key`, if it exists.
    pub(super) fn get(&self, key: &Key) -> Option<&OpenDocument> {
        self.found.get(key)?.as_ref()
    }

    /// Whether the document at `key` was requested, and not taken.
    pub(super) fn has_asked(&self, key: &Key) -> bool {
        self.found.contains_key(key)
    }

    /// Why the document at `key` could not be opened.
    pub(super) fn error_at(&self, key: &Key) -> Option<&StoreError> {
        let mut failed = self.failed.iter();
        failed.find_map(|(at, error)| (at == key).then_some(error))
    }

    /// Whether any document exists.
    pub(super) fn has_any(&self) -> bool {
        self.found.values().any(Option::is_some)
    }

    /// Whether any document exists that makes a node, as attributes alone do not.
    fn has_node(&self) -> bool {
        let makes_node = |key: &Key| DocumentName::of(key.name()) != Some(DocumentName::ZAttrs);
        let mut found = self.found.iter();
        found.any(|(key, document)| document.is_some() && makes_node(key))
    }

    /// Decides about documents to which the store denies access. A bucket `hides_absence` from users who may not list it:
    /// it denies access to absent objects. Then these documents count as absent if another document makes a node.
    pub(super) fn settle(&mut self, hides_absence: bool) {
        if hides_absence && self.has_node() {
            let failed = self.failed.drain(..);
            let (denied, failed): (Vec<_>, Vec<_>) =
                failed.partition(|(_, error)| matches!(error, StoreError::Denied { .. }));
            self.failed = failed;
            self.found
                .extend(denied.into_iter().map(|(key, _)| (key, None)));
        }
    }
}

/// Opens the documents at `keys` in one round trip, and reads short ones. A document that cannot be opened does not count
/// as requested afterwards, so that it is requested again alone.
pub(super) fn open_many(
    store: &dyn Store,
    budget: &Arc<Budget>,
    keys: Vec<Key>,
    ahead: &mut DocumentsAhead,
) {
    let buffer = || DocumentBuffer {
        budget,
        bytes: Vec::new(),
        memory: None,
    };
    let mut buffers: Vec<_> = keys.iter().map(|_| buffer()).collect();
    let requests = keys.iter().zip(&mut buffers);
    let requests = requests.map(|(key, buffer)| FetchRequest {
        key,
        most_bytes: MOST_BYTES,
        buffer,
    });
    let mut requests: Vec<_> = requests.collect();
    let fetched = store.fetch_many(&mut requests);
    drop(requests);
    for ((key, buffer), fetched) in keys.into_iter().zip(buffers).zip(fetched) {
        match fetched {
            Ok(None) => {
                ahead.found.insert(key, None);
            }
            Ok(Some(fetched)) => {
                let document = OpenDocument {
                    key: key.clone(),
                    object: fetched.object,
                    bytes: fetched.is_read.then_some(buffer.bytes),
                    held: buffer.memory,
                };
                ahead.found.insert(key, Some(document));
            }
            // Files with this common name are rarely documents.
            Err(error) if counts_as_absent(&key, &error) => {
                ahead.found.insert(key, None);
            }
            Err(error) => ahead.failed.push((key, error)),
        }
    }
}

impl FetchBuffer for DocumentBuffer<'_> {
    fn of_len(&mut self, len: u64) -> Option<&mut [u8]> {
        self.memory = None;
        if len > FETCHED_BYTES {
            // A request must not wait for memory.
            let holding = Holding::SOURCE.to_hold("a document");
            self.memory = Some(self.budget.reserve_free(len, holding)?);
        }
        self.bytes.of_len(len)
    }
}
