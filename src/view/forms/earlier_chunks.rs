//! Chunks that were made before the document of their array, as tar(1) and `cp -r` make them: directories come
//! before the files beside them. Without a document, these are files like any other, so that the document is refused
//! where they are no chunks.

use crate::budget::Holding;
use crate::dtype::Element;
use crate::error::{Error, FormatError};
use crate::files::looks_like_a_chunk;
use crate::load::{ChunkedArray, Shards};
use crate::metadata::ArrayMetadata;
use crate::store::{EntryKind, Key, Prefix};
use crate::view::{View, ViewKind};

use super::chunk::read_encoded;

/// The document of a new array, which is about to be stored.
pub(super) struct NewArray<'a> {
    /// The key of the document.
    pub(super) key: &'a Key,
    /// The prefix of the array's chunks.
    pub(super) prefix: &'a Prefix,
    /// What the document says.
    pub(super) metadata: &'a ArrayMetadata,
}

impl View {
    /// Refuses the document of a `new` array in the view `kind` if the store has files by the names of its chunks
    /// that the view would refuse as chunks.
    pub(super) fn check_earlier_chunks(
        &self,
        kind: ViewKind,
        new: &NewArray<'_>,
    ) -> Result<(), Error> {
        if kind != ViewKind::Chunks && !self.tree.options.writes.checks {
            return Ok(());
        }
        let writing = self.tree.writing(kind);
        if let Some(key) = writing.and_then(|writing| writing.first_plain_draft_below(new.prefix)) {
            let reason = format!("{key} is written still, and was made before the document");
            return Err(Error::unacceptable(new.key, reason));
        }
        let &NewArray {
            prefix, metadata, ..
        } = new;
        let rank = metadata.shape.len();
        let mut left = vec![prefix.clone()];
        while let Some(directory) = left.pop() {
            self.finds_entry(&directory, &mut |entry| {
                let key = directory.key(&entry.name)?;
                let name = prefix.strip(key.as_bytes()).unwrap_or_default();
                match entry.kind {
                    EntryKind::Prefix if looks_like_a_chunk(&entry.name) => {
                        left.push(key.to_prefix());
                    }
                    EntryKind::Prefix => {}
                    _ if metadata.chunk_keys.decode(name, rank).is_some() => {
                        self.check_earlier_chunk(kind, new, &key)?;
                    }
                    _ => {}
                }
                Ok(false)
            })?;
        }
        Ok(())
    }

    fn check_earlier_chunk(
        &self,
        kind: ViewKind,
        new: &NewArray<'_>,
        key: &Key,
    ) -> Result<(), Error> {
        let refused = |problem: &dyn std::fmt::Display| {
            let reason =
                format!("{key}, which was made before the document, is no chunk: {problem}");
            Error::unacceptable(new.key, reason)
        };
        let array = ChunkedArray::of(new.prefix, new.metadata, Shards::Keep);
        let array = array.map_err(|error| refused(&error))?;
        let layout = array.layout();
        let Some(stored) = self.tree.open_stored(key)? else {
            return Ok(());
        };
        let is_bool = layout.data_type().element == Element::Bool;
        if let Some(len) = layout.decoded_len() {
            let most = self.tree.loader.max_chunk_bytes();
            let what = "the size of a decoded chunk (see --max-chunk)";
            FormatError::check_limit(what, len, most).map_err(|error| refused(&error))?;
            if kind == ViewKind::Chunks && !is_bool && layout.is_identity() {
                let found = stored.meta.size();
                let problem = format!("it has {found} bytes, not {len}");
                return if found == len {
                    Ok(())
                } else {
                    Err(refused(&problem))
                };
            }
        }
        let len = layout.decoded_len().unwrap_or(stored.meta.size());
        let room = layout.encode_bytes(len).saturating_add(stored.meta.size());
        let holding = Holding::SOURCE.to_hold("a chunk that is checked");
        let _room = self.tree.loader.cache().reserve(room, holding)?;
        let read = read_encoded(self, (key, None), Some(layout), &stored);
        let decoded = read.and_then(|read| self.tree.loader.decode_bytes(&array, key, &read));
        match decoded {
            Ok(decoded) if is_bool && decoded.iter().any(|byte| *byte > 1) => {
                Err(refused(&"it has bytes that are no booleans"))
            }
            Ok(_) => Ok(()),
            Err(Error::Chunk { error, .. }) => Err(refused(&error)),
            Err(error) => Err(error),
        }
    }
}
