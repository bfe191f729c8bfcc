//! Documents that are shown in another Zarr version than the one of their nodes (`--as`).
//!
//! Such a document may be made of several objects, as the `zarr.json` of an array of v2 is. What was
//! written to it is carried back to them, one after the other: the attributes first, so that a new node
//! is whole when its own document appears.

use std::sync::Arc;

use crate::error::until_current;
use crate::error::{Error, FormatError};
use crate::files::NameLock;
use crate::files::{CleanFile, Encoded, Form, ObjectChange};
use crate::hierarchy::{ArrayNode, GroupNode, Node};
use crate::load::Cache;
use crate::metadata::carry::differences;
use crate::metadata::translate::{self, NodeDocuments, ShownAs, StoredAs};
use crate::metadata::write::{ChunkContent, StoredDocuments};
use crate::metadata::{DocumentName, NodeMetadata, Target, ZarrFormat, v2, v3};
use crate::store::{
    ChangeNote, DirWriter, Key, NewFile, ObjectMeta, Prefix, Replaces, StoreError, StoredFile,
};
use crate::view::nodes::directory::NameRole;
use crate::view::nodes::node::{ShownArray, check_can_show};
use crate::view::nodes::path::{NodePath, format_of};
use crate::view::options::AbsentChunks;
use crate::view::vnode::Vnode;
use crate::view::{OpenedVnode, View, ViewKind};

use super::consolidation::{Wish, consolidate};
use super::copies::HOLDERS;
use super::document::{DocumentForm, has_members, room_for};
use super::earlier_chunks::NewArray;
use super::objects::{MAX_DOCUMENT_BYTES, Objects, Text, changed, read_object};

/// The document `name` of the node at `path`, in the version that is shown.
#[derive(Debug)]
pub(in crate::view) struct TranslatedForm {
    pub(super) view: Arc<View>,
    pub(super) kind: ViewKind,
    pub(super) path: Prefix,
    pub(super) name: DocumentName,
}

impl TranslatedForm {
    pub(super) fn key(&self) -> Result<Key, StoreError> {
        self.path.key(self.name.as_str().as_bytes())
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

    fn refused(&self, reason: impl ToString) -> Error {
        let key = self.key();
        let key = key.map_or_else(|_| self.name.as_str().to_owned(), |key| key.to_string());
        Error::unacceptable(&key, reason)
    }

    fn writer(&self) -> Result<&DirWriter, Error> {
        self.view.tree.writer()
    }

    /// What the store has of the document; `None` where the node has no such document.
    pub(super) fn text(&self) -> Result<Option<Vec<u8>>, Error> {
        let found = self.view.document_of(&self.vnode())?;
        Ok(found.map(|(_, text)| text.to_vec()))
    }

    pub(super) fn read(&self, key: Key) -> Result<Text, Error> {
        read_object(self.writer()?, key)
    }

    /// The changes that make the node what `written` says.
    fn changes(&self, written: &[u8], before: Option<&[u8]>) -> Result<Vec<ObjectChange>, Error> {
        let resolved = self.resolved()?;
        let Some(target) = resolved.foreign else {
            return Err(Error::Stale);
        };
        match &resolved.node {
            Node::Array(node) => self.of_array(node, written),
            Node::Group(group) if self.makes_array(written) => {
                self.new_array(&resolved, Some(group), target, written)
            }
            Node::Group(group) => {
                let objects = Objects::of(&resolved)?;
                let wish = Wish::of((self.name, written), before);
                let wish = wish.map_err(|error| self.refused(error))?;
                self.of_group(group, objects, written, wish)
            }
            Node::Implicit => self.new_array(&resolved, None, target, written),
            Node::Broken(broken) => Err(self.refused(&broken.error)),
        }
    }

    fn makes_array(&self, written: &[u8]) -> bool {
        match self.name {
            DocumentName::ZArray => true,
            DocumentName::ZarrJson => matches!(v3::parse(written), Ok(NodeMetadata::Array(_))),
            _ => false,
        }
    }

    pub(super) fn of_array(
        &self,
        node: &ArrayNode,
        written: &[u8],
    ) -> Result<Vec<ObjectChange>, Error> {
        let tree = &self.view.tree;
        let array = tree.shown(self.kind, &self.path)?.into_array();
        let array = array.ok_or_else(|| self.refused("this view cannot show the array"))?;
        let own = self.read(node.document.key.clone())?;
        let attributes = node.attributes.clone().map(|key| self.read(key));
        let attributes = attributes.transpose()?;
        if own.replaces != Replaces::Version(node.document.meta.version) {
            tree.hierarchy.forget(&node.prefix);
            return Err(StoreError::changed(&own.key).into());
        }
        let stored = StoredDocuments {
            document: own.bytes.as_deref().unwrap_or_default(),
            attributes: attributes.as_ref().and_then(|text| text.bytes.as_deref()),
        };
        let new = self.carried(&array, &stored, written)?;
        Ok(changed(&own, attributes.as_ref(), new))
    }

    /// The changes that make the document of an array whose document was removed, and whose chunks are
    /// there: what is stored is the old one, with what has changed, because chunks are encoded as it
    /// says.
    fn of_ended(&self, array: &ShownArray, written: &[u8]) -> Result<Vec<ObjectChange>, Error> {
        let key = &array.node.document.key;
        let (_, document) = self
            .view
            .tree
            .ended_with(self.kind, key)
            .ok_or(Error::Stale)?;
        let stored = StoredDocuments {
            document: &document,
            attributes: None,
        };
        let new = self.carried(array, &stored, written)?;
        let attributes = array.node.attributes.clone().map(|key| self.read(key));
        let attributes = attributes.transpose()?;
        let changed = attributes.and_then(|text| text.changed(new.attributes));
        let own = self.read(key.clone())?.changed(Some(new.document));
        Ok(changed.into_iter().chain(own).collect())
    }

    /// The documents of `array`, which has the `stored` ones, with what was `written`.
    fn carried(
        &self,
        array: &ShownArray,
        stored: &StoredDocuments<'_>,
        written: &[u8],
    ) -> Result<NodeDocuments, Error> {
        let shown_as = ShownAs {
            target: array.foreign.ok_or(Error::Stale)?,
            content: array.content,
        };
        let hierarchy = &self.view.tree.hierarchy;
        let parse = |text: &[u8]| match hierarchy.parse_array(&array.node, text) {
            Err(Error::Metadata { error, .. }) => Err(error),
            parsed => parsed.map_err(|error| FormatError::document("", error.to_string())),
        };
        let written = (self.name, written);
        let new = translate::array(&array.node.metadata, stored, shown_as, written, parse);
        let can_be_shown = |new: NodeDocuments| {
            let (metadata, place) = (parse(&new.document)?, (self.kind, array.foreign));
            check_can_show(&metadata, place, &self.view.tree.options)?;
            Ok(new)
        };
        let new = new.and_then(can_be_shown);
        new.map_err(|error| self.refused(error))
    }

    pub(super) fn of_group(
        &self,
        group: &GroupNode,
        objects: Objects,
        written: &[u8],
        wish: Option<Wish>,
    ) -> Result<Vec<ObjectChange>, Error> {
        let own = self.read(objects.own.ok_or(Error::Stale)?)?;
        let attributes = objects.attributes.map(|key| self.read(key)).transpose()?;
        let stored = StoredDocuments {
            // A group of v2 may have consolidated metadata alone.
            document: own.bytes.as_deref().unwrap_or(b"{\"zarr_format\": 2}"),
            attributes: attributes.as_ref().and_then(|text| text.bytes.as_deref()),
        };
        let new = translate::group(group.format, &stored, (self.name, written));
        let mut new = new.map_err(|error| self.refused(error))?;
        let mut more = None;
        if let Some(wish) = wish {
            if group.format == ZarrFormat::Draft {
                return Err(self.refused("drafts have no consolidated metadata"));
            }
            let place = (self.writer()?, &self.path);
            more = consolidate(place, group.format, &wish, &mut new)?;
        }
        let mut changes = changed(&own, attributes.as_ref(), new);
        changes.extend(more);
        Ok(changes)
    }

    /// The form of the document where it is stored in the version that is shown.
    fn as_stored(&self) -> Result<DocumentForm, Error> {
        Ok(DocumentForm {
            view: Arc::clone(&self.view),
            kind: self.kind,
            key: self.key()?,
        })
    }

    /// The changes that make a new array, or a new group, where `group` or nothing is.
    fn new_array(
        &self,
        resolved: &NodePath,
        group: Option<&GroupNode>,
        target: Target,
        written: &[u8],
    ) -> Result<Vec<ObjectChange>, Error> {
        let tree = &self.view.tree;
        let is_array = self.makes_array(written);
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
                self.refused(format!("{error}; {reason}"))
            });
        }
        if is_array && tree.has_nodes_below(self.kind, &self.path)? {
            return Err(self.refused("a group with nodes in it does not become an array"));
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
        let shown_as = ShownAs {
            target,
            content: match self.kind {
                ViewKind::Chunks if tree.options.missing == AbsentChunks::Fill => {
                    ChunkContent::Complete(tree.options.shards)
                }
                ViewKind::Chunks => ChunkContent::Decoded(tree.options.shards),
                _ => ChunkContent::Encoded(tree.options.shards),
            },
        };
        let text = written;
        let written = (self.name, written);
        let new = translate::new_node(written, attributes.as_deref(), shown_as, to);
        let new = new.map_err(|error| self.refused(error))?;
        self.check_new(text)?;
        let of_name = |name: DocumentName| self.path.key(name.as_str().as_bytes());
        let own = match (resolved.draft(), to, new.is_array) {
            (Some(draft), _, true) => draft.array_document()?,
            (Some(draft), _, false) => draft.group_document()?,
            (None, StoredAs::V2, true) => of_name(DocumentName::ZArray)?,
            (None, StoredAs::V2, false) => of_name(DocumentName::ZGroup)?,
            (None, ..) => of_name(DocumentName::ZarrJson)?,
        };
        let mut changes = Vec::new();
        if to == StoredAs::V2 {
            let attributes = self.read(of_name(DocumentName::ZAttrs)?)?;
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

    /// Refuses the document of a new array that the view could not show, or whose chunks were made before it and are
    /// none.
    fn check_new(&self, written: &[u8]) -> Result<(), Error> {
        let metadata = match self.name {
            DocumentName::ZArray => v2::parse_array(written),
            DocumentName::ZarrJson => match v3::parse(written) {
                Ok(NodeMetadata::Array(metadata)) => Ok(*metadata),
                Ok(NodeMetadata::Group) => return Ok(()),
                Err(error) => Err(error),
            },
            _ => return Ok(()),
        };
        let metadata = metadata.map_err(|error| self.refused(error))?;
        check_can_show(&metadata, (self.kind, None), &self.view.tree.options)
            .map_err(|error| self.refused(error))?;
        let new = NewArray {
            key: &self.key()?,
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
    fn open_once(&self) -> Result<Option<CleanFile>, Error> {
        let key = self.key()?;
        let stored = self.open_now(self.writer()?, &key)?;
        let Some((opened, _)) = self.view.open_document(self.vnode())? else {
            return Ok(None);
        };
        let now = self.now(self.writer()?, &key)?;
        let version = |meta: &ObjectMeta| meta.version;
        if now.as_ref().map(version) != stored.as_ref().map(|stored| stored.meta.version) {
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

impl Form for TranslatedForm {
    fn len(&self) -> Option<u64> {
        None
    }

    fn max_len(&self) -> u64 {
        MAX_DOCUMENT_BYTES
    }

    fn open(&self) -> Result<Option<CleanFile>, Error> {
        until_current(|| self.open_once())
    }

    fn now(&self, _: &DirWriter, _: &Key) -> Result<Option<ObjectMeta>, Error> {
        self.view.tree.documents_now(self.kind, &self.path)
    }

    fn exists(&self, _: &DirWriter, _: &Key) -> Result<bool, Error> {
        // The node may have documents, and not this one.
        Ok(self.text()?.is_some())
    }

    fn open_now(&self, writer: &DirWriter, _: &Key) -> Result<Option<StoredFile>, Error> {
        let objects = Objects::of(&self.resolved()?)?;
        let mut opened = None;
        let meta = objects.meta(|key| {
            let stored = writer.open_object(key, false)?;
            let meta = stored.as_ref().map(|stored| stored.meta);
            opened = opened.take().or(stored);
            Ok::<_, Error>(meta)
        })?;
        let stored = opened.zip(meta);
        Ok(stored.map(|(stored, meta)| StoredFile { meta, ..stored }))
    }

    fn objects(&self) -> Result<Option<Vec<Key>>, Error> {
        let objects = Objects::of(&self.resolved()?)?;
        Ok(Some(objects.keys().cloned().collect()))
    }

    fn cache(&self) -> &Cache {
        self.view.tree.loader.cache()
    }

    fn room(&self, len: u64) -> Result<u64, Error> {
        Ok(room_for(len))
    }

    fn decode(&self, stored: Option<&StoredFile>) -> Result<Vec<u8>, Error> {
        let text = self.text()?;
        self.check_version(stored)?;
        // The node may have other documents, and not this one.
        Ok(text.unwrap_or_else(|| b"{}".to_vec()))
    }

    fn encode(&self, shown: &[u8], stored: Option<&StoredFile>) -> Result<Encoded, Error> {
        if shown.is_empty() {
            return Err(self.refused("the document is empty"));
        }
        // This checks that it is an object.
        differences(shown, shown).map_err(|error| self.refused(error))?;
        self.check_version(stored)?;
        let before = self.text()?;
        let is_stored = stored.is_some();
        if let Some(before) = before.as_deref().filter(|_| is_stored)
            && differences(before, shown).is_ok_and(|changed| changed.is_empty())
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
        // One of them may be its object.
        let holders = HOLDERS.map(|name| self.path.key(name.as_str().as_bytes()));
        let holders = holders.iter().flatten().map(Key::to_prefix);
        Some(self.view.keep_copies(holders))
    }

    fn note(&self, encoded: &Encoded) -> Result<Option<ChangeNote>, Error> {
        self.view.note_commit(&self.path, encoded)
    }

    fn committed(&self, is_new: bool, note: Option<ChangeNote>) {
        self.view.tree.node_changed(&self.path);
        self.view.tree.show_again(&self.path, self.name);
        if is_new {
            self.view.store_groups_above(self.kind, &self.path);
        }
        self.view.update_copies_of_node(self.kind, &self.path, note);
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
        has_members(Some(self.name))
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
        let key = self.key()?;
        let now = self.now(self.writer()?, &key)?.map(|meta| meta.version);
        if now == stored.map(|stored| stored.meta.version) {
            return Ok(());
        }
        Err(StoreError::changed(&key).into())
    }
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

    /// Brings the copies of the documents of a node up to date, which were written.
    fn update_copies_of_node(&self, view: ViewKind, path: &Prefix, note: Option<ChangeNote>) {
        let objects = self.tree.resolve(view, path);
        let objects = objects.and_then(|resolved| Objects::of(&resolved));
        let keys: Vec<_> = objects.iter().flat_map(Objects::keys).cloned().collect();
        self.update_copies(&keys, note);
    }
}
