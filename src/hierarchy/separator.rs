//! Finds in the store what documents leave out about chunk keys.
//!
//! In v2 the separator may be missing: `NestedDirectoryStore` of zarr-python, and early OME-Zarr,
//! wrote `0/0` without recording it. The key of chunk 0 shows the separator, or, where that chunk
//! is absent, the key of the first stored chunk.

use super::Hierarchy;
use crate::error::Error;
use crate::metadata::{ArrayMetadata, ChunkKeyEncoding, KeyKind};
use crate::store::{Cursor, Detail, EntryKind, Prefix};

/// The number of names that are examined to find a stored chunk.
const MOST_NAMES: usize = 64;

impl Hierarchy {
    /// Corrects the separator that is assumed for `array` at `prefix`. False when the store does
    /// not show it, because the array has no chunks yet.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn find_separator(
        &self,
        prefix: &Prefix,
        array: &mut ArrayMetadata,
    ) -> Result<bool, Error> {
        // A key of one index has no separator.
        if !array.separator_is_assumed || array.shape.len() < 2 {
            return Ok(true);
        }
        let Some(separator) = self.stored_separator(prefix, array)? else {
            return Ok(false);
        };
        if array.chunk_keys.separator != separator {
            log::info!(
                "{prefix}: chunk keys are read with the separator `{}`, which the store has and \
                 the document does not say",
                char::from(separator)
            );
            array.chunk_keys.separator = separator;
        }
        Ok(true)
    }

    /// Corrects the key of the one chunk of a draft's `array` of rank 0: `c` in the text of the
    /// draft, `c0` as zarr-python 2 writes it. False when the store does not show it.
    pub(super) fn find_scalar_key(
        &self,
        prefix: &Prefix,
        array: &mut ArrayMetadata,
    ) -> Result<bool, Error> {
        if array.chunk_keys.kind != KeyKind::Draft || !array.shape.is_empty() {
            return Ok(true);
        }
        for kind in [KeyKind::Draft, KeyKind::DraftScalar] {
            let keys = ChunkKeyEncoding {
                kind,
                ..array.chunk_keys
            };
            let key = prefix.key(&keys.encode(&[]))?;
            if self.object_meta(&key)?.is_some() {
                array.chunk_keys = keys;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn stored_separator(
        &self,
        prefix: &Prefix,
        array: &ArrayMetadata,
    ) -> Result<Option<u8>, Error> {
        let first: Vec<u64> = array.shape.iter().map(|_| 0).collect();
        for separator in [b'.', b'/'] {
            let mut keys = array.chunk_keys;
            keys.separator = separator;
            let key = prefix.key(&keys.encode(&first))?;
            if self.object_meta(&key)?.is_some() {
                return Ok(Some(separator));
            }
        }
        let Some(mut listing) = self.store.list(prefix, Cursor::START, Detail::Names)? else {
            return Ok(None);
        };
        for _ in 0..MOST_NAMES {
            let Some(entry) = listing.next_entry()? else {
                break;
            };
            let rank = array.shape.len();
            match entry.kind {
                EntryKind::Object if array.chunk_keys.decode(&entry.name, rank).is_some() => {
                    return Ok(Some(b'.'));
                }
                EntryKind::Prefix if array.chunk_keys.decode(&entry.name, 1).is_some() => {
                    return Ok(Some(b'/'));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}
