//! Documents that are shown in another Zarr version than the one of their nodes (`--as`).

use std::sync::Arc;

use crate::error::until_current;
use crate::error::{Error, FormatError};
use crate::files::{AfterCommit, CleanFile, CommitEnd, Form, NameLock, Objects, Translation};
use crate::hierarchy::{ArrayNode, GroupNode, Node};
use crate::load::Cache;
use crate::metadata::translate::{self, ShownAs, StoredAs};
use crate::metadata::{ArrayMetadata, DocumentName, NodeMetadata, Target, ZarrFormat};
use crate::store::{
    ChangeNote, DirWriter, Key, NewFile, Prefix, Replaces, StoreError, StoredFile, Version,
};
use crate::translate::copies::{HOLDERS, Wish};
use crate::translate::{
    Encoded, ForeignDocument, NodeTexts, ObjectChange, Rules, StoredArray, Text,
    memory_for_document, parse_new, says_the_same,
};
use crate::view::nodes::directory::NameRole;
use crate::view::nodes::node::ShownArray;
use crate::view::nodes::path::{NodePath, format_of};
use crate::view::vnode::Vnode;
use crate::view::{OpenedVnode, View, ViewKind};

use super::document::DocumentForm;
use super::earlier_chunks::NewArray;
use super::objects::read_object;

/// The document `name` of the node at `path`, in the version that is shown.
#[derive(Debug, Clone)]
pub(in crate::view) struct TranslatedForm {
    pub(super) view: Arc<View>,
    pub(super) kind: ViewKind,
    pub(super) path: Prefix,
    pub(super) name: DocumentName,
}

impl TranslatedForm {
    pub(super) fn key(&self) -> Result<Key, StoreError> {
        self.key_of(self.name)
    }

    /// The key of the document `name` of the node.
    pub(super) fn key_of(&self, name: DocumentName) -> Result<Key, StoreError> {
        self.path.key(name.as_str().as_bytes())
    }

    fn vnode(&self) -> Vnode {
        Vnode::Written {
            view: self.kind,
            path: self.path.clone(),
            name: self.name,
        }
    }

    fn resolved(&self) -> Result<NodePath, Error> {
        self.view.tree.resolve(self.kind, &self.path)
    }

    pub(super) fn document(&self) -> Result<ForeignDocument, StoreError> {
        Ok(ForeignDocument {
            key: self.key()?,
            name: self.name,
            presentation: self.view.tree.options.presentation(self.kind),
        })
    }

    fn writer(&self) -> Result<&DirWriter, Error> {
        self.view.tree.writer()
    }

    /// The text of the document, made of the stored objects; `None` if the node has no such document.
    pub(super) fn text(&self) -> Result<Option<Vec<u8>>, Error> {
        let found = self.view.document_of(&self.vnode())?;
        Ok(found.map(|(_, text)| text.to_vec()))
    }

    pub(super) fn read(&self, key: Key) -> Result<Text, Error> {
        read_object(self.writer()?, key)
    }

    /// The changes to the store that give the node the metadata in `written`.
    fn changes(&self, written: &[u8], before: Option<&[u8]>) -> Result<Vec<ObjectChange>, Error> {
        let (resolved, document) = (self.resolved()?, self.document()?);
        let Some(target) = resolved.foreign else {
            return Err(Error::Stale);
        };
        match &resolved.node {
            Node::Array(node) => {
                let (array, texts) = self.array(node)?;
                let parse = |text: &[u8]| self.parse(&array, text);
                let documents = &self.view.documents;
                let written = documents.without_added_crs(&self.path, self.name, written)?;
                document.of_array(stored_array(&array)?, &texts, &written, parse)
            }
            Node::Group(group) if document.makes_array(written) => {
                self.new_array(&resolved, Some(group), target, written)
            }
            Node::Group(group) => {
                let wish = document.wish(written, before)?;
                self.of_group(group, &resolved, written, wish)
            }
            Node::Implicit => self.new_array(&resolved, None, target, written),
            Node::Broken(broken) => Err(document.refused(&broken.error)),
        }
    }

    /// The array `node`, and the texts of the stored documents that describe it.
    pub(super) fn array(&self, node: &ArrayNode) -> Result<(Arc<ShownArray>, NodeTexts), Error> {
        let tree = &self.view.tree;
        let array = tree.shown(self.kind, &self.path)?.into_array();
        let cannot = "this view cannot show the array";
        let Some(array) = array else {
            return Err(self.document()?.refused(cannot));
        };
        let texts = Objects::of_array(node).texts(self.writer()?)?;
        if texts.own.replaces != Replaces::Version(node.document.meta.version) {
            tree.hierarchy.forget(&node.prefix);
            return Err(StoreError::changed(&texts.own.key).into());
        }
        Ok((array, texts))
    }

    /// Reads `text`, a stored document of `array`.
    pub(super) fn parse(
        &self,
        array: &ShownArray,
        text: &[u8],
    ) -> Result<ArrayMetadata, FormatError> {
        match self.view.tree.hierarchy.parse_array(&array.node, text) {
            Err(Error::Metadata { error, .. }) => Err(error),
            parsed => parsed.map_err(|error| FormatError::document("", error.to_string())),
        }
    }

    /// The changes that make the documents of an array again after its own document was removed while its chunks
    /// stayed.
    fn of_ended(&self, array: &ShownArray, written: &[u8]) -> Result<Vec<ObjectChange>, Error> {
        let ended = (self.view.tree).ended_with(self.kind, &array.node.document.key);
        let (_, before) = ended.ok_or(Error::Stale)?;
        let texts = Objects::of_array(&array.node).texts(self.writer()?)?;
        let parse = |text: &[u8]| self.parse(array, text);
        let (document, array) = (self.document()?, stored_array(array)?);
        document.of_ended(array, (&before, &texts), written, parse)
    }

    /// The changes that give a group the metadata in `written`, and the consolidated metadata that it asks for.
    pub(super) fn of_group(
        &self,
        group: &GroupNode,
        resolved: &NodePath,
        written: &[u8],
        wish: Option<Wish>,
    ) -> Result<Vec<ObjectChange>, Error> {
        let (format, document) = (group.format, self.document()?);
        let texts = Objects::of(resolved)?.texts(self.writer()?)?;
        let Some(wish) = wish else {
            return document.of_group(format, &texts, written);
        };
        let mut copies = Vec::new();
        for name in wish.names(format) {
            let Ok(key) = self.path.key(name.as_bytes()) else {
                continue;
            };
            copies.extend(self.read(key)?.bytes.map(|bytes| (name, bytes)));
        }
        let holder = match format {
            ZarrFormat::V3 | ZarrFormat::Draft => None,
            _ => Some(self.read(self.key_of(DocumentName::ZMetadata)?)?),
        };
        let copies = (&wish, copies);
        document.of_group_with_copies((format, &texts), written, copies, holder.as_ref())
    }

    /// The form of the document where it is stored in the version that is shown.
    fn as_stored(&self) -> Result<DocumentForm, Error> {
        Ok(DocumentForm {
            view: Arc::clone(&self.view),
            kind: self.kind,
            key: self.key()?,
        })
    }

    /// The changes that make a new array or a new group in the place of `group`, or where no node is.
    fn new_array(
        &self,
        resolved: &NodePath,
        group: Option<&GroupNode>,
        target: Target,
        written: &[u8],
    ) -> Result<Vec<ObjectChange>, Error> {
        let (tree, document) = (&self.view.tree, self.document()?);
        let is_array = document.makes_array(written);
        let ended = tree.ended(self.kind, &self.path);
        let is_own = |array: &ShownArray| array.node.metadata.zarr_format == target.zarr_format();
        if ended.as_deref().is_some_and(is_own) {
            let own = self.as_stored()?;
            if let Some(text) = own.of_ended(written)? {
                let changed = self.read(own.key)?.changed(Some(text));
                return Ok(changed.into_iter().collect());
            }
        } else if let Some(array) = ended
            && self.view.has_chunks(&array)?
        {
            return self.of_ended(&array, written).map_err(|error| {
                let reason = "chunks of the array that was here are still there, remove them first";
                document.refused(format!("{error}; {reason}"))
            });
        }
        if is_array && tree.has_nodes_below(self.kind, &self.path)? {
            return Err(document.refused("a group with nodes in it does not become an array"));
        }
        let format = match (group, resolved.draft()) {
            (_, Some(_)) => Some(ZarrFormat::Draft),
            (Some(group), _) => Some(group.format),
            (None, _) => self.format_above()?,
        };
        let format = format.unwrap_or(target.zarr_format());
        let to = match (format, resolved.draft()) {
            (_, Some(draft)) => StoredAs::Draft(draft.layout.generation()),
            (ZarrFormat::V2, _) => StoredAs::V2,
            _ => StoredAs::V3,
        };
        if format == target.zarr_format() {
            let own = self.as_stored()?;
            let text = own.checked_new(written)?;
            let own = self.read(own.key)?;
            return Ok(own.changed(Some(text)).into_iter().collect());
        }
        let objects = match group {
            Some(_) => Objects::of(resolved)?,
            None => Objects::default(),
        };
        let (old, attributes) = self.old_group(group, &objects)?;
        let new = document.new_node(written, attributes.as_deref(), (target, to))?;
        self.check_new(&document, written)?;
        let own = match (resolved.draft(), to, new.is_array) {
            (Some(draft), _, true) => draft.array_document()?,
            (Some(draft), _, false) => draft.group_document()?,
            (None, StoredAs::V2, true) => self.key_of(DocumentName::ZArray)?,
            (None, StoredAs::V2, false) => self.key_of(DocumentName::ZGroup)?,
            (None, ..) => self.key_of(DocumentName::ZarrJson)?,
        };
        let mut changes = Vec::new();
        if to == StoredAs::V2 {
            let attributes = self.read(self.key_of(DocumentName::ZAttrs)?)?;
            changes.extend(attributes.changed(new.attributes));
        }
        let own = self.read(own)?;
        changes.extend(own.changed(Some(new.document)));
        changes.extend(
            old.filter(|old| old.key != own.key)
                .and_then(|old| old.changed(None)),
        );
        Ok(changes)
    }

    /// Refuses the document of a new array if the view could not show the array, or if files with the names of its
    /// chunks were made before it and are no chunks.
    fn check_new(&self, document: &ForeignDocument, written: &[u8]) -> Result<(), Error> {
        let parsed = parse_new(Some(self.name), written);
        let NodeMetadata::Array(metadata) = parsed.map_err(|error| document.refused(error))? else {
            return Ok(());
        };
        let can_show = document.presentation.check_can_show(&metadata, None);
        can_show.map_err(|error| document.refused(error))?;
        let new = NewArray {
            key: &document.key,
            prefix: &self.path,
            metadata: &metadata,
        };
        self.view.check_earlier_chunks(self.kind, &new)
    }

    /// The own document of the group that becomes an array, and its attributes.
    fn old_group(
        &self,
        group: Option<&GroupNode>,
        objects: &Objects,
    ) -> Result<(Option<Text>, Option<Vec<u8>>), Error> {
        if group.is_none() {
            return Ok((None, None));
        }
        let own = objects.own.clone().map(|key| self.read(key)).transpose()?;
        let attributes = match (&objects.attributes, &own) {
            (Some(key), _) => self.read(key.clone())?.bytes,
            (None, Some(own)) => {
                let text = own.bytes.as_deref().unwrap_or(b"{}");
                let found = translate::attributes_in(text);
                Some(found.map_err(|error| Error::in_document(&own.key, error))?)
            }
            (None, None) => None,
        };
        Ok((own, attributes))
    }

    /// The version of the nearest group above.
    pub(super) fn format_above(&self) -> Result<Option<ZarrFormat>, Error> {
        for above in self.path.with_ancestors().skip(1) {
            match self.view.tree.resolve(self.kind, &above)?.node {
                Node::Group(group) => return Ok(Some(group.format)),
                Node::Array(_) | Node::Broken(_) => return Ok(None),
                Node::Implicit => {}
            }
        }
        Ok(None)
    }
}

impl TranslatedForm {
    fn committed(&self, end: CommitEnd, keys: &[Key], note: Option<ChangeNote>) {
        if end == CommitEnd::Failed {
            return self.view.update_copies(keys, note);
        }
        self.view.tree.node_changed(&self.path);
        self.view.tree.show_again(&self.path, self.name);
        if end == CommitEnd::New {
            self.view.store_groups_above(self.kind, &self.path);
        }
        self.view.update_copies(keys, note);
        let (Ok(key), Ok(folder)) = (self.key(), self.view.tree.folder(self.kind, &self.path))
        else {
            return;
        };
        if folder.resolved.foreign.is_some() {
            return;
        }
        // The node is of the version that is shown, so that its document is an object.
        let name = self.name.as_str().as_bytes();
        let view = self.kind;
        let shown = match self.view.tree.role_of(&folder, name) {
            Ok(NameRole::Edited(key)) => Vnode::Document { view, key },
            _ => Vnode::Object { view, key },
        };
        self.view.tree.numbers.replace(&self.vnode(), &shown);
    }

    /// The version of the objects together.
    fn version_now(&self) -> Result<Option<Version>, Error> {
        let now = self.view.tree.documents_now(self.kind, &self.path)?;
        Ok(now.map(|meta| meta.version))
    }

    fn open_once(&self) -> Result<Option<CleanFile>, Error> {
        let stored = Objects::of(&self.resolved()?)?.open(self.writer()?)?;
        let Some((opened, _)) = self.view.open_document(self.vnode())? else {
            return Ok(None);
        };
        if self.version_now()? != stored.as_ref().map(|stored| stored.meta.version) {
            return Err(Error::Stale);
        }
        if stored.is_none() {
            self.view.expect_group(self.kind, &self.path);
        }
        let OpenedVnode { attributes, file } = opened;
        Ok(Some(CleanFile {
            file,
            stored,
            attributes: attributes.into(),
        }))
    }
}

impl Translation for TranslatedForm {
    fn cache(&self) -> &Cache {
        self.view.tree.loader.cache()
    }

    fn memory(&self, len: u64) -> Result<u64, Error> {
        Ok(memory_for_document(len))
    }

    fn decode(&self, stored: Option<&StoredFile>) -> Result<Vec<u8>, Error> {
        let text = self.text()?;
        self.check_version(stored)?;
        // The node may have other documents but not this one.
        Ok(text.unwrap_or_else(|| b"{}".to_vec()))
    }

    fn encode(&self, shown: &[u8], stored: Option<&StoredFile>) -> Result<Encoded, Error> {
        self.document()?.check_object(shown)?;
        self.check_version(stored)?;
        let before = self.text()?;
        let is_stored = stored.is_some();
        if let Some(before) = before.as_deref().filter(|_| is_stored)
            && says_the_same(self.name.as_str().as_bytes(), before, shown)
        {
            return Ok(Encoded::Unchanged);
        }
        let changes = self.changes(shown, before.as_deref())?;
        self.check_version(stored)?;
        if changes.is_empty() {
            return Ok(Encoded::Unchanged);
        }
        Ok(Encoded::Objects(changes))
    }
}

impl Form for TranslatedForm {
    fn rules(&self) -> Rules {
        Rules::of_document(Some(self.name), self.view.tree.options.writes)
    }

    fn open(&self) -> Result<Option<CleanFile>, Error> {
        until_current(|| self.open_once())
    }

    fn exists(&self) -> Result<bool, Error> {
        // The node may have other documents but not this one.
        Ok(self.text()?.is_some())
    }

    fn objects(&self) -> Result<Option<Objects>, Error> {
        Objects::of(&self.resolved()?).map(Some)
    }

    fn new_file(&self) -> Result<NewFile, Error> {
        let resolved = self.resolved()?;
        if let Some(document) = resolved.document() {
            let like = (&document.key, &document.meta);
            return Ok(self.writer()?.new_like(like, &self.key()?)?);
        }
        let meta = self.view.tree.directory_meta(self.kind, &self.path)?;
        let new = NewFile::like(&meta.ok_or(Error::Stale)?);
        let mode = new.mode & 0o666;
        Ok(NewFile { mode, ..new })
    }

    fn keep_copies(&self) -> Option<NameLock<'_>> {
        // One of these holders may be the object of this document.
        let holders = HOLDERS.map(|name| self.path.key(name.as_str().as_bytes()));
        let holders = holders.iter().flatten().map(Key::to_prefix);
        Some(self.view.keep_copies(holders))
    }

    fn before_commit(&self, encoded: &Encoded) -> Result<Option<AfterCommit>, Error> {
        let note = self.view.note_commit(&self.path, encoded)?;
        let form = self.clone();
        // An object that the change erases is no part of the node afterwards.
        let keys: Vec<_> = match encoded {
            Encoded::Objects(changes) => changes.iter().map(|change| change.key.clone()).collect(),
            _ => Vec::new(),
        };
        Ok(Some(Box::new(move |end| form.committed(end, &keys, note))))
    }

    fn moved(&self, key: &Key) -> Option<Arc<dyn Form>> {
        Some(Arc::new(TranslatedForm {
            view: Arc::clone(&self.view),
            kind: self.kind,
            path: key.parent(),
            name: self.name,
        }))
    }
}

impl TranslatedForm {
    /// Fails unless the objects have the versions that `stored` was opened with.
    fn check_version(&self, stored: Option<&StoredFile>) -> Result<(), Error> {
        if self.version_now()? == stored.map(|stored| stored.meta.version) {
            return Ok(());
        }
        Err(StoreError::changed(&self.key()?).into())
    }
}

/// The properties of `array` that the translation of its documents needs.
pub(super) fn stored_array(array: &ShownArray) -> Result<StoredArray<'_>, Error> {
    Ok(StoredArray {
        metadata: &array.node.metadata,
        shown_as: ShownAs {
            target: array.foreign.ok_or(Error::Stale)?,
            content: array.content,
        },
    })
}

impl View {
    /// Whether `name` in the directory of a node that is shown in another version is a document of that
    /// version.
    pub(super) fn translated_form(
        self: &Arc<Self>,
        resolved: &NodePath,
        name: &[u8],
    ) -> Option<TranslatedForm> {
        use DocumentName::{ZArray, ZAttrs};
        let target = resolved.foreign?;
        let name = DocumentName::of(name)?;
        let is_of_node = match &resolved.node {
            Node::Array(_) => target == Target::V3 || matches!(name, ZArray | ZAttrs),
            Node::Broken(_) => false,
            Node::Group(_) | Node::Implicit => true,
        };
        (is_of_node && format_of(name) == target.zarr_format()).then(|| TranslatedForm {
            view: Arc::clone(self),
            kind: resolved.view,
            path: resolved.path.clone(),
            name,
        })
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
