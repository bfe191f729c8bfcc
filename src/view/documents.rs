//! Metadata documents as a view shows them: edited where its files differ from the stored ones,
//! byte for byte where they do not.
//!
//! A consolidated copy is edited entry by entry in the same way. An entry of an array that the
//! view translates is held against the array's own document first: where the two disagree about
//! chunks, the files are what the own document says, and the copy must say so too.

use std::sync::Arc;
use std::time::Duration;

use super::View;
use super::attributes::hash;
use super::options::ViewKind;
use super::shown::{Form, Shown, ShownArray};
use crate::budget::Holding;
use crate::chunk::{Block, BlockKey, Part};
use crate::error::{Error, FormatError};
use crate::hierarchy::{Node, chunk_identity};
use crate::metadata::consolidated::{self, EntryEdit};
use crate::metadata::{ArrayMetadata, DocumentName, NodeMetadata, ZarrFormat, render, v2, v3};
use crate::store::{Key, ObjectMeta, Prefix, StoreError};

/// A consolidated document is held against the documents that it copies this often at most.
const CONSOLIDATED_RECHECK: Duration = Duration::from_secs(10);

impl View {
    /// The document at `key` as `view` shows it, with the attributes of the stored one.
    pub(super) fn document(
        &self,
        view: ViewKind,
        key: &Key,
    ) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        let Some(meta) = self.shared.sources.stat_settled(key)? else {
            return Ok(None);
        };
        let block_key = BlockKey {
            array: hash(&(view, key)),
            version: meta.version,
            part: Part::Document {
                epoch: self.epoch(key, meta.size())?,
            },
        };
        let text = self.shared.cache.get_or_load(block_key, || {
            let text = self
                .hierarchy
                .read(key, Holding::NOTHING)?
                .filter(|text| text.document.meta.version == meta.version);
            let text = text.ok_or_else(|| StoreError::Changed {
                key: key.to_string(),
            })?;
            let mut shown = self.edited(view, key, &text.bytes)?;
            shown.shrink_to_fit();
            let reservation = self
                .shared
                .cache
                .reserve(shown.len() as u64, Holding::SOURCE)?;
            // Its version is what it says; said once, because a copy may be long.
            let stamp = hash(&shown);
            Ok(Block::stamped(shown, reservation, stamp))
        })?;
        Ok(Some((meta, text)))
    }

    /// Counts the rechecks of what `key` copies; an array's own document copies nothing. A long
    /// document takes longer to check, and is checked less often.
    fn epoch(&self, key: &Key, size: u64) -> Result<u64, Error> {
        let is_group =
            is_zmetadata(key) || matches!(self.hierarchy.node(&key.parent())?, Node::Group(_));
        if self.options.immutable || !is_group {
            return Ok(0);
        }
        let period = self.options.ttl.max(CONSOLIDATED_RECHECK).as_secs();
        let period = period.saturating_mul(1 + size / (1 << 20)).max(1);
        Ok(self.started.elapsed().as_secs() / period)
    }

    fn edited(&self, view: ViewKind, key: &Key, text: &[u8]) -> Result<Vec<u8>, Error> {
        let prefix = key.parent();
        if is_zmetadata(key) {
            return self.edit_copies(view, key, text, ZarrFormat::V2);
        }
        match self.shown(view, &prefix)? {
            Shown::Array(array) if array.node.document.key == *key => self
                .translated(&array, text)
                .map_err(|error| Error::Metadata {
                    key: key.to_string(),
                    error,
                }),
            _ => self.edit_copies(view, key, text, ZarrFormat::V3),
        }
    }

    /// The consolidated document at `key`, each copy edited as the view shows its array.
    fn edit_copies(
        &self,
        view: ViewKind,
        key: &Key,
        text: &[u8],
        format: ZarrFormat,
    ) -> Result<Vec<u8>, Error> {
        let group = key.parent();
        let mut failed = None;
        let mut edit = |path: &str, entry: &[u8]| {
            match self.edit_entry(view, &group, path, entry, format) {
                Ok(edit) => edit,
                Err(Error::Metadata { key, error }) => {
                    // Without its entry the array is absent from the copy: an error to a reader,
                    // where a wrong entry would be wrong values.
                    log::debug!("{group}: the copy of {key} is left out: {error}");
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
                log::debug!("{key}: not edited: {error}");
                Ok(text.to_vec())
            }
        }
    }

    /// The document of `array` (or a copy of it) as its view shows it.
    fn translated(&self, array: &ShownArray, text: &[u8]) -> Result<Vec<u8>, FormatError> {
        let shown = match array.form {
            Form::Stored => render::Shown::Stored,
            Form::Expanded => render::Shown::Expanded,
            Form::Decoded => render::Shown::Decoded(self.options.shards),
        };
        render::array(text, &array.node.metadata, shown)
    }

    /// What becomes of the copy `entry` of the document of the array at `path` below `group`.
    fn edit_entry(
        &self,
        view: ViewKind,
        group: &Prefix,
        path: &str,
        entry: &[u8],
        format: ZarrFormat,
    ) -> Result<EntryEdit, Error> {
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
            own = self
                .hierarchy
                .read(&array.node.document.key, Holding::SOURCE)?;
            match &own {
                Some(own) => own.bytes.as_slice(),
                None => return Ok(EntryEdit::Remove),
            }
        };
        let shown = self
            .translated(&array, text)
            .map_err(|error| Error::Metadata {
                key: array.node.document.key.to_string(),
                error,
            })?;
        Ok(EntryEdit::Replace(shown))
    }
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
