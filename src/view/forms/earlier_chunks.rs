//! Chunks that were made before the document of their array, as tar(1) and `cp -r` may make them: they may write
//! directories before the files beside them. Without a document such chunks are ordinary files, so the document is
//! refused if it describes them wrongly.

use crate::budget::Holding;
use crate::error::Error;
use crate::files::looks_like_a_chunk;
use crate::load::{ChunkedArray, Shards, Slice};
use crate::metadata::ArrayMetadata;
use crate::store::{EntryKind, Key, Prefix};
use crate::translate::{EarlierChunk, no_chunk};
use crate::view::{View, ViewKind};

use super::stored_bytes::read_encoded;

/// The document of a new array, which is about to be stored.
pub(super) struct NewArray<'a> {
    /// The key of the document.
    pub(super) key: &'a Key,
    /// The prefix of the array's chunks.
    pub(super) prefix: &'a Prefix,
    /// The metadata in the document.
    pub(super) metadata: &'a ArrayMetadata,
}

impl View {
    /// Refuses the document of a `new` array in the view `kind` if the store has files with the names of its chunks
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
            let reason =
                format!("{key} was made before the document, and a program is still writing it");
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
                    _ => {
                        if let Some(indices) = metadata.chunk_keys.decode(name, rank) {
                            self.check_earlier_chunk(kind, new, (&key, &indices))?;
                        }
                    }
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
        (key, indices): (&Key, &[u64]),
    ) -> Result<(), Error> {
        let array = ChunkedArray::of(new.prefix, new.metadata, Shards::Keep);
        let array = array.map_err(|error| no_chunk(new.key, key, error))?;
        let loader = &self.tree.loader;
        let chunk = EarlierChunk {
            document: new.key,
            key,
            indices,
            array: &array,
            is_decoded: kind == ViewKind::Chunks,
            max_bytes: loader.max_chunk_bytes(),
        };
        let Some(stored) = self.tree.open_stored(key)? else {
            return Ok(());
        };
        let len = stored.meta.size();
        if chunk.is_chunk_by_len(len)? {
            return Ok(());
        }
        let holding = Holding::SOURCE.to_hold("a chunk that is checked");
        let _room = loader.cache().reserve(chunk.memory(len), holding)?;
        let read = Slice::of_stored(self.tree.writer()?, key, &stored)
            .map_err(Error::from)
            .and_then(|encoded| read_encoded(loader, &encoded, Some(array.layout())));
        loader.decoding(|| chunk.check(read))
    }
}
