//! The knowledge of the catalog about a key.

use std::ops::Range;
use std::sync::Arc;

use super::super::document::is_common_name;
use super::copies::Copies;
use super::groups::{Catalog, Covered};
use crate::metadata::DocumentName;
use crate::store::{EntryKind, Key, ListEntry, Object, ObjectMeta, Prefix, StoreError};

/// The knowledge of the catalog about a key.
pub(super) enum Known {
    /// It is a copy of a document, or the document that has the copies.
    Copy(CopyObject),
    /// It is a document of a group that has copies of others, as it was found.
    Own(Option<ObjectMeta>),
    /// It is a prefix.
    Prefix(ObjectMeta),
    /// It would be a document of a node that has other documents.
    Absent,
    /// The catalog does not know it.
    Unknown,
}

/// A copy of a document, as an object.
#[derive(Debug)]
pub(super) struct CopyObject {
    key: Key,
    pub(super) meta: ObjectMeta,
    copies: Arc<Copies>,
    span: Range<usize>,
}

impl Catalog {
    /// The knowledge about `key`.
    pub(super) fn known(&self, key: &Key) -> Result<Known, StoreError> {
        let (parent, name) = (key.parent(), key.name());
        let Some(covered) = self.covering(&parent)? else {
            // The root of copies is a prefix too.
            let prefix = key.to_prefix();
            let covered = self.covering(&prefix)?;
            let is_group = covered.is_some_and(|covered| covered.holder.group == prefix);
            return Ok(if is_group {
                Known::Prefix(self.prefix_meta()?)
            } else {
                Known::Unknown
            });
        };
        let Covered { holder, copies } = &covered;
        let copy = |span: Range<usize>| {
            Known::Copy(CopyObject {
                key: key.clone(),
                meta: holder.copy_meta(span.len()),
                copies: Arc::clone(copies),
                span,
            })
        };
        if *key == holder.key {
            return Ok(copy(copies.whole()));
        }
        if let Some((_, own)) = holder.own.iter().find(|(own, _)| own == key) {
            return Ok(Known::Own(*own));
        }
        let path = holder.group.strip(key.as_bytes()).unwrap_or_default();
        if let Some(entry) = copies.get(path) {
            return Ok(copy(entry.span.clone()));
        }
        if copies.node_at(path).is_some() {
            return Ok(Known::Prefix(self.prefix_meta()?));
        }
        let is_absent = if parent == holder.group {
            DocumentName::of(name) == Some(DocumentName::ZAttrs)
        } else {
            let node = holder.group.strip(parent.as_bytes()).unwrap_or_default();
            is_document_name(name) && copies.node_at(node).is_some()
        };
        Ok(if is_absent {
            Known::Absent
        } else {
            Known::Unknown
        })
    }

    /// The document that has a copy of the document at `key`, if there is one in memory. It is not examined.
    pub(super) fn document_with(&self, key: &Key) -> Option<Key> {
        if !is_document_name(key.name()) {
            return None;
        }
        let holder = self.holder_of(&key.parent())?;
        let path = holder.group.strip(key.as_bytes())?;
        let has_copy = holder.lock().as_ref()?.get(path).is_some();
        has_copy.then(|| holder.key.clone())
    }

    /// Whether the group at `prefix` has a child called `name`; `None` if no copies describe its
    /// children.
    pub(in crate::hierarchy) fn has_copied_child(
        &self,
        prefix: &Prefix,
        name: &[u8],
    ) -> Result<Option<bool>, StoreError> {
        let Some(covered) = self.covering(prefix)? else {
            return Ok(None);
        };
        let key = prefix.key(name)?;
        let path = covered.holder.group.strip(key.as_bytes());
        let child = covered.copies.node_at(path.unwrap_or_default());
        Ok(Some(child.is_some()))
    }

    /// `entry` of the store's listing of `prefix`. If the entry has a copy, it gets the attributes of the
    /// copy. `None` if the entry is not shown.
    pub(super) fn checked(&self, prefix: &Prefix, entry: ListEntry) -> Option<ListEntry> {
        if entry.kind != EntryKind::Object || !is_document_name(&entry.name) {
            return Some(entry);
        }
        let known = prefix.key(&entry.name).and_then(|key| self.known(&key));
        match known {
            Ok(Known::Copy(copy)) => Some(ListEntry {
                meta: Some(copy.meta),
                ..entry
            }),
            Ok(Known::Absent) => None,
            _ => Some(entry),
        }
    }
}

impl Object for CopyObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let text = self.copies.text_of(&self.span);
        let start = usize::try_from(offset_bytes).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(buf.len())?));
        match range.and_then(|range| text.get(range)) {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(StoreError::Short {
                key: self.key.to_string(),
                offset: offset_bytes,
                len: buf.len() as u64,
                size: text.len() as u64,
            }),
        }
    }

    /// The copy is in memory, and does not change.
    fn verify(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Whether a name is that of a document which makes a node, or belongs to one.
pub(super) fn is_document_name(name: &[u8]) -> bool {
    DocumentName::of(name).is_some() || name == b"__zmeta__" || is_common_name(name)
}
