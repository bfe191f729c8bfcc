//! Metadata documents of a writable view.

use std::sync::Arc;

use crate::error::Error;
use crate::error::until_current;
use crate::files::{AfterCommit, CleanFile, CommitEnd, Form, NameLock, Translation};
use crate::load::Cache;
use crate::metadata::{DocumentName, NodeMetadata};
use crate::store::{ChangeNote, Key, StoreError, StoredFile};
use crate::translate::copies::HOLDERS;
use crate::translate::{
    DescribedArray, Document, Encoded, Rules, is_array, memory_for_document, parse_new,
    says_the_same,
};
use crate::view::nodes::directory::NameRole;
use crate::view::nodes::node::{FileForm, ShownArray};
use crate::view::tree::Tree;
use crate::view::vnode::Vnode;
use crate::view::{OpenedVnode, View, ViewKind};

use super::earlier_chunks::NewArray;
use super::objects::read_document;

/// The document at `key`.
#[derive(Debug, Clone)]
pub(super) struct DocumentForm {
    pub(super) view: Arc<View>,
    pub(super) kind: ViewKind,
    pub(super) key: Key,
}

impl DocumentForm {
    /// The vnode of the document if the view shows it edited; `None` when it is shown as it is stored.
    fn edited(&self) -> Result<Option<Vnode>, Error> {
        let (tree, parent) = (&self.view.tree, self.key.parent());
        let folder = tree.folder(self.kind, &parent)?;
        Ok(match tree.role_of(&folder, self.key.name())? {
            NameRole::Edited(key) => Some(Vnode::Document {
                view: self.kind,
                key,
            }),
            _ => None,
        })
    }

    fn document(&self) -> Document<'_> {
        Document {
            key: &self.key,
            presentation: self.view.tree.options.presentation(self.kind),
        }
    }

    /// `written` without the coordinate system that the view has added to the shown document.
    fn without_added_crs(&self, written: &[u8]) -> Result<Vec<u8>, Error> {
        let documents = &self.view.documents;
        match DocumentName::of(self.key.name()) {
            Some(name) => documents.without_added_crs(&self.key.parent(), name, written),
            None => Ok(written.to_vec()),
        }
    }

    /// The stored document of `array` with the changes of `written`, which the view shows as `shown`.
    fn carried(
        &self,
        array: &ShownArray,
        (stored, shown): (&[u8], &[u8]),
        written: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let described = DescribedArray {
            metadata: &array.node.metadata,
            stored,
            shown,
        };
        let hierarchy = &self.view.tree.hierarchy;
        let parse = |text: &[u8]| hierarchy.parse_array(&array.node, text);
        self.document().of_array(described, written, parse)
    }

    /// The document of an array whose document was removed and is made again while its chunks are there. The text to
    /// store is the old one with the changes in `written`, because the chunks are encoded as the old one says. `None`
    /// where there was no such array, or where nothing of it is left.
    pub(super) fn of_ended(&self, written: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let Some((array, stored)) = self.view.tree.ended_with(self.kind, &self.key) else {
            return Ok(None);
        };
        // Chunks that are shown as they are stored may be described by any new document.
        if array.form == FileForm::Stored {
            return Ok(None);
        }
        let document = self.document();
        let shown = document.shown(&stored, &array.node.metadata)?;
        let carried = self.carried(&array, (&stored, &shown), written);
        if carried.is_err() && !self.view.has_chunks(&array)? {
            return Ok(None);
        }
        carried.map(Some).map_err(|error| {
            let reason = format!(
                "{error}; chunks of the array that was here are still there, remove them first"
            );
            document.refused(reason)
        })
    }

    /// The new document `written`, in the form that is stored. Consolidated metadata in it says only that the group is
    /// to have some; the stored copies are made of the store's documents.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when no reader could use the document, or when the view would show it changed.
    pub(super) fn checked_new(&self, written: &[u8]) -> Result<Vec<u8>, Error> {
        let (document, tree) = (self.document(), &self.view.tree);
        let parsed = parse_new(DocumentName::of(self.key.name()), written);
        if let NodeMetadata::Array(mut metadata) =
            parsed.map_err(|error| document.refused(error))?
        {
            let prefix = &self.key.parent();
            // A program may have made chunks before the document.
            tree.hierarchy.find_separator(prefix, &mut metadata)?;
            document.check_new_array(&metadata, written)?;
            let new = NewArray {
                key: &self.key,
                prefix,
                metadata: &metadata,
            };
            self.view.check_earlier_chunks(self.kind, &new)?;
        }
        tree.with_stored_copies(&self.key, written)
    }
}

impl DocumentForm {
    fn committed(&self, end: CommitEnd, note: Option<ChangeNote>) {
        let tree = &self.view.tree;
        let key = std::slice::from_ref(&self.key);
        if end == CommitEnd::Failed {
            return self.view.update_copies(key, note);
        }
        tree.hierarchy.forget(&self.key.parent());
        // The document of a draft lies apart from its array.
        if let Ok(Some(prefix)) = tree.hierarchy.described_by(&self.key) {
            tree.hierarchy.forget(&prefix);
            tree.forget_ended(&prefix);
        }
        if end == CommitEnd::New {
            self.view.store_groups_above(self.kind, &self.key.parent());
        }
        self.view.update_copies(key, note);
        if let Ok(Some(shown)) = self.edited() {
            // When the document was made, there was no array or group that it described.
            let (view, key) = (self.kind, self.key.clone());
            let made = Vnode::Object { view, key };
            tree.numbers.replace(&made, &shown);
        }
    }

    fn open_once(&self) -> Result<Option<CleanFile>, Error> {
        let (view, tree) = (&self.view, &self.view.tree);
        let Some(stored) = tree.open_stored(&self.key)? else {
            return Ok(None);
        };
        let opened = if let Some(vnode) = self.edited()? {
            view.open_document(vnode)?
        } else {
            let object = tree.sources_of(self.kind).open(&self.key)?;
            object.map(|object| {
                let version = object.meta().version;
                (view.open_object(object, &self.key), version)
            })
        };
        let Some((opened, version)) = opened else {
            return Ok(None);
        };
        if version != stored.meta.version {
            return Err(Error::Stale);
        }
        let OpenedVnode { attributes, file } = opened;
        Ok(Some(CleanFile {
            file,
            stored: Some(stored),
            attributes: attributes.into(),
        }))
    }
}

impl Translation for DocumentForm {
    fn cache(&self) -> &Cache {
        self.view.tree.loader.cache()
    }

    fn memory(&self, len: u64) -> Result<u64, Error> {
        Ok(memory_for_document(len))
    }

    fn decode(&self, stored: Option<&StoredFile>) -> Result<Vec<u8>, Error> {
        let Some(stored) = stored else {
            return Ok(Vec::new());
        };
        let Some(vnode) = self.edited()? else {
            return read_document(self.view.tree.writer()?, &self.key, stored);
        };
        let found = self.view.document_of(&vnode)?;
        let found = found.filter(|(meta, _)| meta.version == stored.meta.version);
        let (_, text) = found.ok_or_else(|| StoreError::changed(&self.key))?;
        Ok(text.to_vec())
    }

    fn encode(&self, shown: &[u8], stored: Option<&StoredFile>) -> Result<Encoded, Error> {
        let (written, document) = (shown, self.document());
        document.check_object(written)?;
        let Some(stored) = stored else {
            if let Some(document) = self.of_ended(written)? {
                return Ok(Encoded::Bytes(document));
            }
            return self.checked_new(written).map(Encoded::Bytes);
        };
        let text = read_document(self.view.tree.writer()?, &self.key, stored)?;
        let before = self.decode(Some(stored))?;
        if says_the_same(self.key.name(), &before, written) {
            return Ok(Encoded::Unchanged);
        }
        let written = self.without_added_crs(written)?;
        let written = written.as_slice();
        let (was_array, becomes_array) = (is_array(&before), is_array(written));
        if becomes_array == Some(true)
            && was_array != Some(true)
            && self.view.has_other_names(&self.key)?
        {
            return Err(document.refused("a group with nodes in it does not become an array"));
        }
        if let Some(array) = self.view.array_described_by(self.kind, &self.key)? {
            // Chunks that are not in the store yet could not be saved without the array.
            let becomes_group = becomes_array == Some(false)
                && !self.view.has_other_names(&self.key)?
                && !self.view.has_something_of(&array)?;
            if !becomes_group {
                let new = self.carried(&array, (&text, &before), written)?;
                return Ok(Encoded::Bytes(new));
            }
        }
        let new = self.checked_new(written)?;
        if self.edited()?.is_none() {
            return Ok(Encoded::Bytes(new));
        }
        let new = document.of_other((&text, &before), new)?;
        Ok(Encoded::Bytes(new))
    }
}

impl Form for DocumentForm {
    fn rules(&self) -> Rules {
        let name = DocumentName::of(self.key.name());
        Rules::of_document(name, self.view.tree.options.writes)
    }

    fn open(&self) -> Result<Option<CleanFile>, Error> {
        until_current(|| self.open_once())
    }

    fn exists(&self) -> Result<bool, Error> {
        let (tree, key) = (&self.view.tree, &self.key);
        let is_stored = tree.writer()?.stat(key)?.is_some();
        Ok(is_stored && !tree.is_unasked(self.kind, key)?)
    }

    fn keep_copies(&self) -> Option<NameLock<'_>> {
        let name = DocumentName::of(self.key.name());
        let is_holder = name.is_some_and(|name| HOLDERS.contains(&name));
        is_holder.then(|| self.view.keep_copies([self.key.to_prefix()]))
    }

    fn before_commit(&self, encoded: &Encoded) -> Result<Option<AfterCommit>, Error> {
        let note = self.view.note_commit(&self.key.parent(), encoded)?;
        let form = self.clone();
        Ok(Some(Box::new(move |end| form.committed(end, note))))
    }

    fn moved(&self, key: &Key) -> Option<Arc<dyn Form>> {
        Some(Arc::new(DocumentForm {
            view: Arc::clone(&self.view),
            kind: self.kind,
            key: key.clone(),
        }))
    }
}

impl Tree {
    /// The object at `key`, open for reading.
    pub(super) fn open_stored(&self, key: &Key) -> Result<Option<StoredFile>, Error> {
        Ok(self.writer()?.open_object(key, false)?)
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
