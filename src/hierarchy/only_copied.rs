//! Arrays of which the store has only the copies of their documents, in consolidated metadata.
//!
//! In a store with directories, the documents decide, so these arrays are not shown. The user gets a message.

use super::node::{GroupNode, Node};
use super::{Hierarchy, StatKind};
use crate::budget::Holding;
use crate::error::Error;
use crate::metadata::{DocumentName, ZarrFormat, consolidated};
use crate::store::Prefix;

/// The most copies that are examined.
const MOST_COPIES: usize = 1000;
/// Longer consolidated metadata, in bytes, is not read for this message.
const MOST_BYTES: u64 = 4 << 20;

impl Hierarchy {
    /// The paths below the group at `prefix` of arrays that its consolidated metadata names, and that have no
    /// document. Looks at a bounded part of the metadata.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read, or the metadata is invalid.
    pub fn only_copied(&self, prefix: &Prefix) -> Result<Vec<Prefix>, Error> {
        // With a catalog, the copies take the place of documents.
        let Node::Group(group) = self.node(prefix)? else {
            return Ok(Vec::new());
        };
        let Some(name) = holder_of_copies(&group).filter(|_| self.catalog.is_none()) else {
            return Ok(Vec::new());
        };
        let key = prefix.key(name.as_str().as_bytes())?;
        let stat = self.store.stat(&key)?;
        if !stat.is_some_and(|stat| stat.kind == StatKind::Object && stat.meta.size() <= MOST_BYTES)
        {
            return Ok(Vec::new());
        }
        let Some(text) = self.read(&key, Holding::SOURCE)? else {
            return Ok(Vec::new());
        };
        let copies = match name {
            DocumentName::ZMetadata => consolidated::copies_v2(&text.bytes),
            _ => consolidated::copies_v3(&text.bytes),
        };
        let copies = copies.map_err(|error| Error::in_document(&key, error))?;
        let arrays = copies.into_iter().flatten().filter(|copy| copy.is_array);
        let mut missing = Vec::new();
        for copy in arrays.take(MOST_COPIES) {
            // No key has this name, so no array can be there.
            let Ok(own) = prefix.key(copy.key.as_bytes()) else {
                continue;
            };
            if self.store.stat(&own)?.is_none() {
                let array = own.parent();
                if matches!(self.node(&array)?, Node::Implicit) && self.has_prefix(&array)? {
                    missing.push(array);
                }
            }
        }
        Ok(missing)
    }

    /// Whether the store has `prefix`. If an array was removed and still has a copy, the store lacks its prefix.
    fn has_prefix(&self, prefix: &Prefix) -> Result<bool, Error> {
        let Some(key) = prefix.to_key() else {
            return Ok(true);
        };
        let stat = self.store.stat(&key)?;
        Ok(stat.is_some_and(|stat| stat.kind == StatKind::Prefix))
    }
}

/// The document that has the copies of a group, where its version has one.
fn holder_of_copies(group: &GroupNode) -> Option<DocumentName> {
    match group.format {
        ZarrFormat::V2 => Some(DocumentName::ZMetadata),
        ZarrFormat::V3 => Some(DocumentName::ZarrJson),
        _ => None,
    }
}
