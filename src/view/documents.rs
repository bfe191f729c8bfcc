//! Metadata documents as a view shows them: edited where its files differ from the stored ones,
//! byte for byte where they do not.
//!
//! A consolidated copy is edited entry by entry in the same way. An entry of an array that the
//! view translates is held against the array's own document first: where the two disagree about
//! chunks, the files are what the own document says, and the copy must say so too.

use std::sync::Arc;
use std::time::Duration;

use super::View;
use super::attributes::{array_in, hash};
use super::current::look_twice;
use super::options::ViewKind;
use super::rights::is_closed;
use super::shown::{Form, Shown, ShownArray};
use crate::budget::Holding;
use crate::error::Error;
use crate::hierarchy::{Document, Text, chunk_identity};
use crate::load::{Block, BlockKey, Owner, Part};
use crate::metadata::consolidated::{self, EntryEdit};
use crate::metadata::{ArrayMetadata, DocumentName, NodeMetadata, ZarrFormat, render, v2, v3};
use crate::store::{Key, ObjectMeta, Readers, StoreError};

/// A consolidated document is held against the documents that it copies this often at most.
const CONSOLIDATED_RECHECK: Duration = Duration::from_secs(10);

impl View {
    /// The document at `key` as `view` shows it, with the attributes of the stored one.
    pub(super) fn document(
        &self,
        view: ViewKind,
        key: &Key,
    ) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        look_twice(|| self.try_document(view, key))
    }

    fn try_document(
        &self,
        view: ViewKind,
        key: &Key,
    ) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        let Some(meta) = self.loader.sources().stat_settled(key)? else {
            return Ok(None);
        };
        // An edit depends on the model too, which must not be behind the document.
        let (identity, epoch) = match self.array_of_document(view, key)? {
            Some(array) => {
                if array.node.document.key == *key && !self.options.immutable {
                    self.check_version(&array.node, &array.path, Some(meta.version))?;
                }
                (array.node.identity, 0)
            }
            None => (0, self.epoch(meta.size())),
        };
        let block_key = BlockKey {
            // Those who may read it decide which documents it may be made from.
            owner: Owner::Object(hash(&(view, key, identity, meta.access()))),
            version: meta.version,
            part: Part::Document { epoch },
        };
        let text = self.loader.cache().load(block_key, || {
            let text = self
                .hierarchy
                .read_as(key, Holding::NOTHING.to_hold("a document"), edited_bytes)?
                .filter(|text| text.document.meta.version == meta.version);
            let text = text.ok_or_else(|| StoreError::Changed {
                key: key.to_string(),
            })?;
            self.document_block(self.edited(view, &text)?)
        })?;
        Ok(Some((meta, text)))
    }

    /// A block of the text of a document.
    pub(super) fn document_block(&self, mut text: Vec<u8>) -> Result<Block, Error> {
        text.shrink_to_fit();
        let reservation = self
            .loader
            .cache()
            .reserve(text.len() as u64, Holding::SOURCE)?;
        // Its version is what it says; said once, because a copy may be long.
        let stamp = hash(&text);
        Ok(Block::stamped(text, reservation, stamp))
    }

    /// The array whose own document is at `key`.
    fn array_of_document(
        &self,
        view: ViewKind,
        key: &Key,
    ) -> Result<Option<Arc<ShownArray>>, Error> {
        let Some(prefix) = self.hierarchy.described_by(key)? else {
            return Ok(None);
        };
        let array = array_in(self.shown(view, &prefix)?);
        Ok(array.filter(|array| array.node.document.key == *key))
    }

    /// Counts the rechecks of a document that copies others. A long one takes longer to check, and
    /// is checked less often.
    pub(super) fn epoch(&self, size: u64) -> u64 {
        if self.options.immutable {
            return 0;
        }
        let period = self.options.ttl.max(CONSOLIDATED_RECHECK).as_secs();
        let period = period.saturating_mul(1 + size / (1 << 20)).max(1);
        self.started.elapsed().as_secs() / period
    }

    fn edited(&self, view: ViewKind, text: &Text) -> Result<Vec<u8>, Error> {
        let key = &text.document.key;
        if is_zmetadata(key) {
            return self.edit_copies(view, text, ZarrFormat::V2);
        }
        if let Some(array) = self.array_of_document(view, key)? {
            return self.translated(&array, &text.bytes);
        }
        self.edit_copies(view, text, ZarrFormat::V3)
    }

    /// The document `name` of an array that is shown in its own version; `None` when there is
    /// none.
    pub(super) fn own_document(
        &self,
        array: &ShownArray,
        name: DocumentName,
    ) -> Result<Option<Vec<u8>>, Error> {
        if name == DocumentName::ZAttrs {
            let Some(key) = &array.node.attributes else {
                return Ok(None);
            };
            let text = self.hierarchy.read(key, Holding::SOURCE)?;
            return Ok(text.map(|text| text.bytes));
        }
        let key = &array.node.document.key;
        match self.hierarchy.read(key, Holding::SOURCE)? {
            Some(text) => self.translated(array, &text.bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Makes sure that the document of an array can say what the view shows.
    pub(super) fn check_document(&self, array: &ShownArray) -> Result<(), Error> {
        if array.foreign.is_some() {
            return self.array_text(array, DocumentName::ZarrJson).map(|_| ());
        }
        // What can be decoded can be edited, but not in the oldest versions.
        match (array.form, array.node.metadata.zarr_format) {
            (Form::Stored, _) | (_, ZarrFormat::V2 | ZarrFormat::V3) => Ok(()),
            _ => self.own_document(array, DocumentName::ZarrJson).map(|_| ()),
        }
    }

    /// A consolidated document, each copy edited as the view shows its array.
    fn edit_copies(
        &self,
        view: ViewKind,
        text: &Text,
        format: ZarrFormat,
    ) -> Result<Vec<u8>, Error> {
        let (document, text) = (&text.document, text.bytes.as_slice());
        let group = document.key.parent();
        let mut failed = None;
        let mut edit = |path: &str, entry: &[u8]| {
            match self.edit_entry(view, document, (path, entry), format) {
                Ok(edit) => edit,
                Err(Error::Metadata { key, error }) => {
                    // Without its entry the array is absent from the copy: an error to a reader,
                    // where a wrong entry would be wrong values.
                    log::debug!("{group}: the copy of {key} is left out: {error}");
                    EntryEdit::Remove
                }
                Err(Error::Store(error)) if is_closed(&error) => {
                    self.say_once(&(&group, path, "copy"), || {
                        format!("{}: the copy of {path} is left out: {error}", document.key)
                    });
                    EntryEdit::Remove
                }
                Err(error) => {
                    failed.get_or_insert(error);
                    EntryEdit::Remove
                }
            }
        };
        let edited = match format {
            ZarrFormat::V2 => consolidated::edit_v2(text, &mut edit),
            _ => consolidated::edit_v3(text, &mut edit),
        };
        // What could not be looked at now is not to be missing for as long as this is kept.
        match (failed, edited) {
            (Some(error), _) => Err(error),
            (None, Ok(edited)) => Ok(edited),
            (None, Err(error)) => {
                // What is no consolidated document copies nothing: as stored.
                log::debug!("{}: not edited: {error}", document.key);
                Ok(text.to_vec())
            }
        }
    }

    /// The document of `array` (or a copy of it) as its view shows it.
    fn translated(&self, array: &ShownArray, text: &[u8]) -> Result<Vec<u8>, Error> {
        let shown = match array.form {
            Form::Stored => render::Shown::Stored,
            Form::Encoded => render::Shown::Expanded,
            Form::Decoded => render::Shown::Decoded(self.options.shards),
        };
        let edited = render::array(text, &array.node.metadata, shown);
        edited.map_err(|error| Error::Metadata {
            key: array.node.document.key.to_string(),
            error,
        })
    }

    /// The edit of the copy `entry`, in a consolidated `document`, of the document of the array
    /// at `path` below its group.
    fn edit_entry(
        &self,
        view: ViewKind,
        document: &Document,
        (path, entry): (&str, &[u8]),
        format: ZarrFormat,
    ) -> Result<EntryEdit, Error> {
        let group = &document.key.parent();
        let prefix = match group.key(path.as_bytes()) {
            Ok(key) => key.to_prefix(),
            Err(_) if path.is_empty() => group.clone(),
            // Nothing can be there.
            Err(_) => return Ok(EntryEdit::Remove),
        };
        if self.is_hidden_by_control(group, path.split('/').next().unwrap_or_default().as_bytes()) {
            return Ok(EntryEdit::Remove);
        }
        let array = match self.shown(view, &prefix)? {
            Shown::Array(array) => array,
            // The keys view shows such keys as they are, and so the copy.
            Shown::Plain if view == ViewKind::Keys => return Ok(EntryEdit::Keep),
            Shown::Plain | Shown::Unusable(_) => return Ok(EntryEdit::Remove),
        };
        if array.form == Form::Stored {
            return Ok(EntryEdit::Keep);
        }
        if array.node.metadata.zarr_format != format {
            return Ok(EntryEdit::Remove);
        }
        let agrees = parse_array(entry, format)
            .is_some_and(|copy| chunk_identity(&prefix, &copy) == array.node.chunk_identity);
        let own;
        let text = if agrees {
            entry
        } else {
            self.check_may_copy(&array.node.document, document)?;
            own = self
                .hierarchy
                .read(&array.node.document.key, Holding::SOURCE)?;
            match &own {
                Some(own) => own.bytes.as_slice(),
                None => return Ok(EntryEdit::Remove),
            }
        };
        Ok(EntryEdit::Replace(self.translated(&array, text)?))
    }
}

impl View {
    /// Refuses a document of which a consolidated one would be a copy, where fewer may read it.
    fn check_may_copy(&self, original: &Document, copy: &Document) -> Result<(), Error> {
        let (mut of_original, mut of_copy) = (Readers::default(), Readers::default());
        self.add_object(&original.key, &original.meta, &mut of_original)?;
        self.add_object(&copy.key, &copy.meta, &mut of_copy)?;
        if of_original.include(copy.meta.access(), &of_copy) {
            return Ok(());
        }
        Err(Error::Store(StoreError::Denied {
            key: original.key.to_string(),
            reason: format!("fewer may read it than {}", copy.key),
        }))
    }
}

/// Memory that a document of `bytes` takes while it is edited: its text, the same masked, the places
/// of its members, and what is made of it.
fn edited_bytes(bytes: u64) -> u64 {
    bytes.saturating_mul(4)
}

fn is_zmetadata(key: &Key) -> bool {
    DocumentName::of(key.name()) == Some(DocumentName::ZMetadata)
}

fn parse_array(text: &[u8], format: ZarrFormat) -> Option<ArrayMetadata> {
    match format {
        ZarrFormat::V2 => v2::parse_array(text).ok(),
        _ => match v3::parse(text).ok()? {
            NodeMetadata::Array(array) => Some(*array),
            NodeMetadata::Group(_) => None,
        },
    }
}
