//! Metadata documents that are written.
//!
//! A document describes the files that the view shows, so that what is written to it must be one that
//! the view could show. What a writer changed in it is carried back to the stored document, and the
//! result is shown again: where that is not what was written, nothing is saved.

use std::sync::Arc;

use crate::error::Error;
use crate::error::until_current;
use crate::files::NameLock;
use crate::files::{CleanFile, Encoded, Form};
use crate::load::Cache;
use crate::metadata::carry::{carried, differences, nothing_in};
use crate::metadata::strict;
use crate::metadata::{ArrayMetadata, DocumentName, NodeMetadata, v2, v3};
use crate::store::{ChangeNote, DirWriter, Key, StoreError, StoredFile};
use crate::view::documents::of_array::stored_form;
use crate::view::nodes::directory::NameRole;
use crate::view::nodes::node::{FileForm, ShownArray, check_can_show};
use crate::view::tree::Tree;
use crate::view::vnode::Vnode;
use crate::view::{OpenedVnode, Shards, View, ViewKind};

use super::copies::HOLDERS;
use super::earlier_chunks::NewArray;
use super::objects::{MAX_DOCUMENT_BYTES, read_document};

/// The document at `key`.
#[derive(Debug)]
pub(super) struct DocumentForm {
    pub(super) view: Arc<View>,
    pub(super) kind: ViewKind,
    pub(super) key: Key,
}

impl DocumentForm {
    /// The document as an edited one; `None` when it is shown as it is stored.
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

    fn refused(&self, reason: impl ToString) -> Error {
        Error::unacceptable(&self.key, reason)
    }

    /// The stored document with the changes of `written`, which the view shows as `shown`.
    fn carried(
        &self,
        array: &ShownArray,
        (stored, shown): (&[u8], &[u8]),
        written: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let tree = &self.view.tree;
        let new = carried(stored, shown, written).map_err(|error| self.refused(error))?;
        let metadata = tree.hierarchy.parse_array(&array.node, &new);
        let metadata = metadata.map_err(|error| self.refused(error))?;
        self.check_strict(&metadata, written, Some(shown))?;
        if !array.node.metadata.has_same_chunks(&metadata) {
            let changed = self.differences(shown, written)?;
            let mut fixed = changed.iter().filter(|name| !may_change(name));
            let name = fixed.next().or(changed.first());
            let name = name.map_or("shape", String::as_str);
            let reason = format!("{name:?} cannot be changed{}", hint(name));
            return Err(self.refused(reason));
        }
        self.check_shown(&new, &metadata, written)?;
        Ok(new)
    }

    /// Consolidated metadata in `written` is a wish to have it: its copies are those of the store.
    fn with_stored_copies(&self, written: &[u8]) -> Result<Vec<u8>, Error> {
        self.view.tree.with_stored_copies(&self.key, written)
    }

    /// The document of an array whose document was removed, and is made again while its chunks are
    /// there: what is stored is the old one, with what has changed, because chunks are encoded as it
    /// says. `None` where there was none, or where nothing of the array is left.
    pub(super) fn of_ended(&self, written: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let tree = &self.view.tree;
        let Some((array, stored)) = tree.ended_with(self.kind, &self.key) else {
            return Ok(None);
        };
        // Chunks that are shown as they are stored are whatever a new document says of them.
        if array.form == FileForm::Stored {
            return Ok(None);
        }
        let metadata = &array.node.metadata;
        let shown = tree.rendered(self.kind, &stored, metadata);
        let shown = shown.map_err(|error| self.refused(error))?;
        let carried = self.carried(&array, (&stored, &shown), written);
        if carried.is_err() && !self.view.has_chunks(&array)? {
            return Ok(None);
        }
        carried.map(Some).map_err(|error| {
            let reason = format!(
                "{error}; chunks of the array that was here are still there, remove them first"
            );
            self.refused(reason)
        })
    }

    fn differences(&self, one: &[u8], other: &[u8]) -> Result<Vec<String>, Error> {
        differences(one, other).map_err(|error| self.refused(error))
    }

    /// Refuses `stored` unless the view shows it as `written`.
    fn check_shown(
        &self,
        stored: &[u8],
        metadata: &ArrayMetadata,
        written: &[u8],
    ) -> Result<(), Error> {
        let tree = &self.view.tree;
        let shown = tree.rendered(self.kind, stored, metadata);
        let shown = shown.map_err(|error| self.refused(error))?;
        self.check_same(&shown, written)?;
        let can_show = check_can_show(metadata, (self.kind, None), &tree.options);
        can_show.map_err(|error| self.refused(error))
    }

    fn check_same(&self, shown: &[u8], written: &[u8]) -> Result<(), Error> {
        let mut changed = self.differences(shown, written)?;
        // A member that is null says the same as none, and none is shown.
        let nothing = nothing_in(written).map_err(|error| self.refused(error))?;
        changed.retain(|name| !nothing.contains(name));
        let Some(name) = changed.first() else {
            return Ok(());
        };
        let reason = format!("{name:?} is not what this view shows{}", hint(name));
        Err(self.refused(reason))
    }

    /// Refuses a document that a strict reader of its version does not take, or reads other keys by. `shown`
    /// is what its writer has changed; `None` for a new document.
    fn check_strict(
        &self,
        metadata: &ArrayMetadata,
        written: &[u8],
        shown: Option<&[u8]>,
    ) -> Result<(), Error> {
        if DocumentName::of(self.key.name()).is_none() {
            // Documents before v2 have no strict readers.
            return Ok(());
        }
        let checked = strict::check_array(metadata, written, shown);
        checked.map_err(|error| self.refused(error))?;
        let name = "dimension_separator";
        let is_dropped = || {
            let changed = shown.map_or(Ok(vec![name.to_owned()]), |shown| {
                differences(shown, written)
            });
            Ok::<_, Error>(
                changed
                    .map_err(|error| self.refused(error))?
                    .iter()
                    .any(|changed| changed == name),
            )
        };
        if metadata.separator_is_assumed && metadata.chunk_keys.separator == b'/' && is_dropped()? {
            let reason =
                format!("{name:?} is missing, and the keys of chunks have the separator \"/\"");
            return Err(self.refused(reason));
        }
        Ok(())
    }

    /// Refuses the document of a new array where files that were made before it are no chunks.
    fn check_earlier_chunks(&self, metadata: &ArrayMetadata) -> Result<(), Error> {
        let new = NewArray {
            key: &self.key,
            prefix: &self.key.parent(),
            metadata,
        };
        self.view.check_earlier_chunks(self.kind, &new)
    }

    /// The new document `written`, as it is stored.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when no reader could use it, or the view would show it otherwise.
    pub(super) fn checked_new(&self, written: &[u8]) -> Result<Vec<u8>, Error> {
        self.check_new(written)?;
        self.with_stored_copies(written)
    }

    /// Refuses a document that no reader could use, or that the view would show otherwise.
    fn check_new(&self, written: &[u8]) -> Result<(), Error> {
        let parsed = |error| self.refused(error);
        let name = DocumentName::of(self.key.name());
        match name {
            Some(DocumentName::ZarrJson) => match v3::parse(written).map_err(parsed)? {
                NodeMetadata::Array(metadata) => {
                    self.check_strict(&metadata, written, None)?;
                    self.check_shown(written, &metadata, written)?;
                    self.check_earlier_chunks(&metadata)
                }
                NodeMetadata::Group => Ok(()),
            },
            Some(DocumentName::ZArray) => {
                let mut metadata = v2::parse_array(written).map_err(parsed)?;
                // Chunks may have been made before it.
                let hierarchy = &self.view.tree.hierarchy;
                hierarchy.find_separator(&self.key.parent(), &mut metadata)?;
                self.check_strict(&metadata, written, None)?;
                self.check_shown(written, &metadata, written)?;
                self.check_earlier_chunks(&metadata)
            }
            Some(DocumentName::ZGroup) => v2::parse_group(written).map_err(parsed),
            // Any object, which `difference` has checked that it is.
            Some(DocumentName::ZAttrs | DocumentName::ZMetadata) | None => Ok(()),
        }
    }
}

impl DocumentForm {
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

impl Form for DocumentForm {
    fn len(&self) -> Option<u64> {
        None
    }

    fn max_len(&self) -> u64 {
        MAX_DOCUMENT_BYTES
    }

    fn open(&self) -> Result<Option<CleanFile>, Error> {
        until_current(|| self.open_once())
    }

    fn exists(&self, writer: &DirWriter, key: &Key) -> Result<bool, Error> {
        let is_stored = writer.stat(key)?.is_some();
        Ok(is_stored && !self.view.tree.is_unasked(self.kind, key)?)
    }

    fn cache(&self) -> &Cache {
        self.view.tree.loader.cache()
    }

    fn room(&self, len: u64) -> Result<u64, Error> {
        Ok(room_for(len))
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
        let written = shown;
        if written.is_empty() {
            return Err(self.refused("the document is empty"));
        }
        // This also checks that it is an object.
        self.differences(written, written)?;
        let Some(stored) = stored else {
            if let Some(document) = self.of_ended(written)? {
                return Ok(Encoded::Bytes(document));
            }
            return self.checked_new(written).map(Encoded::Bytes);
        };
        let text = read_document(self.view.tree.writer()?, &self.key, stored)?;
        let before = self.decode(Some(stored))?;
        let changed = differences(&before, written);
        if changed.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(Encoded::Unchanged);
        }
        let is_array = |text: &[u8]| matches!(v3::parse(text), Ok(NodeMetadata::Array(_)));
        if is_array(written) && !is_array(&before) && self.view.has_other_names(&self.key)? {
            return Err(self.refused("a group with nodes in it does not become an array"));
        }
        let becomes_group = matches!(v3::parse(written), Ok(NodeMetadata::Group))
            && !self.view.has_other_names(&self.key)?;
        if let Some(array) = self.view.array_described_by(self.kind, &self.key)?
            && !becomes_group
        {
            let new = self.carried(&array, (&text, &before), written)?;
            return Ok(Encoded::Bytes(new));
        }
        let written = self.checked_new(written)?;
        let is_attributes = DocumentName::of(self.key.name()) == Some(DocumentName::ZAttrs);
        // Attributes that no reader could read are written anew.
        let is_unread = is_attributes && differences(&text, &text).is_err();
        if self.edited()?.is_none() || is_unread {
            return Ok(Encoded::Bytes(written));
        }
        let new = carried(&text, &before, &written).map_err(|error| self.refused(error))?;
        Ok(Encoded::Bytes(new))
    }

    fn keep_copies(&self) -> Option<NameLock<'_>> {
        let name = DocumentName::of(self.key.name());
        let is_holder = name.is_some_and(|name| HOLDERS.contains(&name));
        is_holder.then(|| self.view.keep_copies([self.key.to_prefix()]))
    }

    fn note(&self, encoded: &Encoded) -> Result<Option<ChangeNote>, Error> {
        self.view.note_commit(&self.key.parent(), encoded)
    }

    fn committed(&self, is_new: bool, note: Option<ChangeNote>) {
        let tree = &self.view.tree;
        tree.hierarchy.forget(&self.key.parent());
        // The document of a draft lies apart from its array.
        if let Ok(Some(prefix)) = tree.hierarchy.described_by(&self.key) {
            tree.hierarchy.forget(&prefix);
            tree.forget_ended(&prefix);
        }
        if is_new {
            self.view.store_groups_above(self.kind, &self.key.parent());
        }
        self.view
            .update_copies(std::slice::from_ref(&self.key), note);
        if let Ok(Some(shown)) = self.edited() {
            // It had no array, or group, to describe when it was made.
            let (view, key) = (self.kind, self.key.clone());
            let made = Vnode::Object { view, key };
            tree.numbers.replace(&made, &shown);
        }
    }

    fn respells(&self) -> bool {
        true
    }

    fn merges(&self) -> bool {
        self.view.tree.options.writes.merges()
    }

    fn is_document(&self) -> bool {
        true
    }

    fn merges_members(&self) -> bool {
        has_members(DocumentName::of(self.key.name()))
    }

    fn moved(&self, key: &Key) -> Option<Arc<dyn Form>> {
        Some(Arc::new(DocumentForm {
            view: Arc::clone(&self.view),
            kind: self.kind,
            key: key.clone(),
        }))
    }
}

/// Whether the members of a document are merged with those that somebody else has written: all but those of a
/// copy of documents, which is made of the stored ones in any case.
pub(super) fn has_members(name: Option<DocumentName>) -> bool {
    name != Some(DocumentName::ZMetadata)
}

/// The memory, in bytes, for a document of `len` bytes: the texts that are stored, shown, written and
/// carried, and what they are parsed into.
pub(super) fn room_for(len: u64) -> u64 {
    const TIMES: u64 = 12;
    len.saturating_add(1 << 16).saturating_mul(TIMES)
}

/// Whether a document of an array may get another value of this member.
fn may_change(name: &str) -> bool {
    ["attributes", "shape", "dimension_names"].contains(&name)
}

/// What to do about a member that is not as the view shows it.
fn hint(member: &str) -> &'static str {
    match member {
        "codecs" | "compressor" | "filters" | "compression" => {
            "; in this view chunks are not encoded, so that a new array has no codec but `bytes` \
             (little-endian), and no compressor"
        }
        "chunk_grid" | "storage_transformers" => {
            "; new arrays with shards are made through --view keys --shards keep"
        }
        _ => "",
    }
}

impl Tree {
    /// The document `stored` of an array with this metadata as `view` shows it.
    fn rendered(
        &self,
        view: ViewKind,
        stored: &[u8],
        metadata: &ArrayMetadata,
    ) -> Result<Vec<u8>, crate::error::FormatError> {
        use crate::metadata::render::{self, ArrayForm};
        let decoding = metadata.decoding.as_ref();
        let is_sharded = decoding.is_ok_and(|decoding| decoding.codecs.sharding().is_some());
        let form = match view {
            ViewKind::Chunks => ArrayForm::Decoded(self.options.shards),
            ViewKind::Keys if is_sharded && self.options.shards == Shards::Expand => {
                ArrayForm::Expanded
            }
            ViewKind::Keys | ViewKind::Arrays => stored_form(self.options.shown_as),
        };
        render::array(stored, metadata, form)
    }

    /// The object at `key`, open for reading.
    pub(super) fn open_stored(&self, key: &Key) -> Result<Option<StoredFile>, Error> {
        Ok(self.writer()?.open_object(key, false)?)
    }
}
