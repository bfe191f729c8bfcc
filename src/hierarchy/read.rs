//! Reads documents.
//!
//! A short document is opened and read by one request. A long one is read after its memory is
//! reserved, and the parts of it that are long are left out where that is possible.

use std::sync::Arc;
use std::time::Duration;

use super::Hierarchy;
use super::document::{OmittedParts, most_outlined, most_parsed_bytes, parsed_bytes};
use super::node::{ArrayNode, Document, RecentText};
use crate::budget::{Holding, Reservation};
use crate::buffers::zeroed;
use crate::error::{Error, FormatError};
use crate::fresh::LastCheck;
use crate::metadata::outline::Outline;
use crate::metadata::write::StoredDocuments;
use crate::metadata::{DocumentName, say_nothing};
use crate::store::{Fetched, Key, Object, StatKind, StoreError};

/// The largest metadata document that is read, in bytes: enough for the consolidated metadata of a
/// million nodes.
pub const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// Memory, in bytes, that one document may take however small the budget is. The budget admits
/// reservations above its limit one at a time.
const LEAST_DOCUMENT_MEMORY: u64 = 20 << 20;

/// Documents of up to this length, in bytes, are read as they are opened, before memory is reserved
/// for them: a request to the store must not wait for memory.
pub(super) const FETCHED_BYTES: u64 = 16 << 10;

/// Texts of up to this length, in bytes, stay with their document for a moment.
const RECENT_BYTES: usize = 4 << 10;

/// For this long after a document was read, its text is kept for the parts that the model leaves out,
/// even with a time to live of 0, because a listing needs these parts right after it has found the node.
const RECENT: Duration = Duration::from_millis(10);

/// The text of a document, whose memory is reserved in the budget while it exists.
#[derive(Debug)]
pub struct DocumentText {
    /// The key and the attributes of the document.
    pub document: Document,
    /// The text.
    pub bytes: Vec<u8>,
    /// `None` for a copy of a text that a node keeps.
    reservation: Option<Reservation>,
}

/// The documents of one array.
#[derive(Debug)]
pub struct ArrayDocuments {
    own: DocumentText,
    /// The document of its attributes, where the version has one and it exists.
    attributes: Option<DocumentText>,
}

/// A document that was opened.
#[derive(Debug)]
pub(super) struct OpenDocument {
    pub(super) key: Key,
    pub(super) object: Arc<dyn Object>,
    /// Its bytes, where it is short.
    pub(super) bytes: Option<Vec<u8>>,
    /// Memory of these bytes, where it was reserved.
    pub(super) held: Option<Reservation>,
}

impl Hierarchy {
    /// Reads the documents of `array`, for the parts that the model does not keep; `None` when they
    /// are gone.
    ///
    /// # Errors
    /// Those of [`Hierarchy::read`].
    pub fn documents(&self, array: &ArrayNode) -> Result<Option<ArrayDocuments>, Error> {
        let Some(own) = self.text(&array.document)? else {
            return Ok(None);
        };
        let attributes = match &array.attributes {
            // The memory of the array's own document is held meanwhile, and a request must not wait
            // for memory that it holds itself.
            Some(key) => self.read(key, Holding::SOURCE.and_one())?,
            None => None,
        };
        Ok(Some(ArrayDocuments { own, attributes }))
    }

    /// The text of `document`, which was read before; `None` when it is gone.
    ///
    /// # Errors
    /// Those of [`Hierarchy::read`].
    pub fn text(&self, document: &Document) -> Result<Option<DocumentText>, Error> {
        match self.recent(document) {
            Some(text) => Ok(Some(text)),
            None => self.read(&document.key, Holding::SOURCE),
        }
    }

    /// The text of `document`, if it was kept and is still trusted.
    fn recent(&self, document: &Document) -> Option<DocumentText> {
        let recent = document.recent.as_ref()?;
        let is_trusted = self.freshness.trusts(&recent.read) || recent.read.is_within(RECENT);
        is_trusted.then(|| DocumentText {
            bytes: recent.bytes.clone(),
            document: document.clone(),
            reservation: None,
        })
    }

    /// Reads the document at `key`; `None` when it is absent. `holding` is the part of the budget
    /// that the caller holds already.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Metadata`] when the document is larger than
    /// [`MAX_DOCUMENT_BYTES`], or takes more memory than the budget allows for one document.
    pub fn read(&self, key: &Key, holding: Holding) -> Result<Option<DocumentText>, Error> {
        // Parsing may need a second copy, in which bare NaN are replaced.
        self.read_as(key, holding.to_hold("a document"), |size| {
            size.saturating_mul(2)
        })
    }

    /// Like [`Hierarchy::read`], where a document of n bytes takes `memory(n)` bytes of memory.
    ///
    /// # Errors
    /// Those of [`Hierarchy::read`].
    pub fn read_as(
        &self,
        key: &Key,
        holding: Holding,
        memory: impl FnOnce(u64) -> u64,
    ) -> Result<Option<DocumentText>, Error> {
        let Some(opened) = self.open(key)? else {
            return Ok(None);
        };
        self.read_whole(opened, holding, memory).map(Some)
    }

    /// Reads all of a document that was opened, as [`Hierarchy::read_as`] does.
    pub(super) fn read_whole(
        &self,
        opened: OpenDocument,
        holding: Holding,
        memory: impl FnOnce(u64) -> u64,
    ) -> Result<DocumentText, Error> {
        let size = opened.size();
        let needed = memory(size);
        self.check_document(&opened.key, size, needed)?;
        let holding = match &opened.held {
            Some(_) => holding.and_one(),
            None => holding,
        };
        let reservation = self.budget.reserve(needed, holding)?;
        let bytes = if let Some(bytes) = opened.bytes {
            bytes
        } else {
            // No memory has a length that does not fit `usize`.
            let mut bytes = zeroed(usize::try_from(size).unwrap_or(usize::MAX))?;
            opened.object.read_at(0, &mut bytes)?;
            bytes
        };
        Ok(DocumentText {
            bytes: without_nothing(&opened.key, bytes),
            document: Document::new(opened.key, *opened.object.meta()),
            reservation: Some(reservation),
        })
    }

    /// Reads all of a document that was opened and will be parsed. Reserves the memory that any document of its length may take,
    /// and then what this one takes.
    pub(super) fn read_parsed(
        &self,
        opened: OpenDocument,
        holding: Holding,
    ) -> Result<DocumentText, Error> {
        let most = self.most_document_memory();
        let memory = |size: u64| {
            most_parsed_bytes(size)
                .min(most)
                .max(size.saturating_mul(2))
        };
        let text = self.read_whole(opened, holding, memory)?;
        self.with_parsed_memory(text)
    }

    /// `text`, with no more memory reserved than parsing it takes.
    fn with_parsed_memory(&self, mut text: DocumentText) -> Result<DocumentText, Error> {
        let needed = parsed_bytes(&text.bytes);
        self.check_document(&text.document.key, text.bytes.len() as u64, needed)?;
        if let Some(reservation) = &mut text.reservation {
            reservation.shrink_to(needed);
        }
        Ok(text)
    }

    /// Reads a document that was opened piece by piece, without its attributes and its copies of
    /// other documents.
    pub(super) fn read_outline(
        &self,
        opened: OpenDocument,
    ) -> Result<(DocumentText, OmittedParts), Error> {
        const PIECE_BYTES: u64 = 64 << 10;
        const MOST_PIECE_BYTES: u64 = 4 << 20;
        // Each piece is a request to a remote store.
        let piece_bytes = self.store.profile().request_bytes;
        let piece_bytes = piece_bytes.clamp(PIECE_BYTES, MOST_PIECE_BYTES);
        let size = opened.size();
        let most_memory = self.most_document_memory();
        let most = most_outlined(most_memory);
        let holding = Holding::SOURCE.to_hold("a document");
        let parsed = most_parsed_bytes(most.min(size)).min(most_memory);
        let needed = parsed.saturating_add(piece_bytes);
        let reservation = self.budget.reserve(needed, holding)?;
        let mut outline = Outline::new(usize::try_from(most).unwrap_or(usize::MAX));
        let mut piece = vec![0; usize::try_from(piece_bytes).unwrap_or_default()];
        let mut offset = 0;
        while offset < size {
            let len = usize::try_from((size - offset).min(piece_bytes)).unwrap_or_default();
            let piece = piece.get_mut(..len).unwrap_or_default();
            opened.object.read_at(offset, piece)?;
            outline.feed(piece).map_err(|error| Error::Metadata {
                key: opened.key.to_string(),
                error,
            })?;
            offset += len as u64;
        }
        drop(piece);
        let (bytes, has_copies) = outline.finish();
        let text = self.with_parsed_memory(DocumentText {
            document: Document::new(opened.key, *opened.object.meta()),
            bytes,
            reservation: Some(reservation),
        })?;
        let omitted = if has_copies {
            OmittedParts::Copies
        } else {
            OmittedParts::Attributes
        };
        Ok((text, omitted))
    }

    /// Opens the document at `key`, and reads a short one; `None` when it is absent.
    pub(super) fn open(&self, key: &Key) -> Result<Option<OpenDocument>, Error> {
        let mut bytes = Vec::new();
        let fetched = match self.store.fetch(key, FETCHED_BYTES, &mut bytes) {
            // A directory with the name of a document counts as absent, as it does for the Zarr
            // libraries.
            Err(StoreError::NotAnObject { .. } | StoreError::Denied { .. })
                if self.is_prefix(key)? =>
            {
                None
            }
            fetched => fetched?,
        };
        Ok(fetched.map(|Fetched { object, is_read }| OpenDocument {
            key: key.clone(),
            object,
            bytes: is_read.then_some(bytes),
            held: None,
        }))
    }

    fn is_prefix(&self, key: &Key) -> Result<bool, StoreError> {
        let stat = self.store.stat(key)?;
        Ok(stat.is_some_and(|stat| stat.kind == StatKind::Prefix))
    }

    /// Memory, in bytes, that one document may take.
    fn most_document_memory(&self) -> u64 {
        (self.budget.limit() / 4 * 3).max(LEAST_DOCUMENT_MEMORY)
    }

    /// Fails when a document of `size` bytes, which takes `needed` bytes of memory, is too large.
    fn check_document(&self, key: &Key, size: u64, needed: u64) -> Result<(), Error> {
        let memory = "the memory that the document takes (see --cache-size)";
        FormatError::check_limit("the size of the document", size, MAX_DOCUMENT_BYTES)
            .and_then(|()| FormatError::check_limit(memory, needed, self.most_document_memory()))
            .map_err(|error| Error::Metadata {
                key: key.to_string(),
                error,
            })
    }
}

/// The text of the document at `key`. Attributes of v2 that say nothing count as `{}`: some programs leave
/// such a file when they have no attributes to write.
fn without_nothing(key: &Key, text: Vec<u8>) -> Vec<u8> {
    let is_attributes = DocumentName::of(key.name()) == Some(DocumentName::ZAttrs);
    if is_attributes && say_nothing(&text) {
        return b"{}".to_vec();
    }
    text
}

impl OpenDocument {
    /// Its length in bytes.
    pub(super) fn size(&self) -> u64 {
        self.object.meta().size()
    }
}

impl DocumentText {
    /// The document, which keeps the text where that is short.
    pub(super) fn into_document(self) -> Document {
        let recent = (self.bytes.len() <= RECENT_BYTES).then(|| {
            Arc::new(RecentText {
                bytes: self.bytes,
                read: LastCheck::now(),
            })
        });
        Document {
            recent,
            ..self.document
        }
    }
}

impl ArrayDocuments {
    /// The array's own document, as it was read.
    pub fn own(&self) -> &Document {
        &self.own.document
    }

    /// The document of the array's attributes, as it was read, where there is one.
    pub fn attributes(&self) -> Option<&Document> {
        self.attributes.as_ref().map(|text| &text.document)
    }

    /// The texts from which a document of another version is written.
    pub fn source(&self) -> StoredDocuments<'_> {
        StoredDocuments {
            document: &self.own.bytes,
            attributes: self.attributes.as_ref().map(|text| text.bytes.as_slice()),
        }
    }
}
