//! The documents of foreign nodes (`--as`), written in the version that is shown.
//!
//! They are kept in the cache like edited documents. A directory without any metadata document is
//! shown as a group, with the documents that groups have in the version that is shown.

use std::sync::Arc;

use crate::budget::Holding;
use crate::error::Error;
use crate::fresh::Observations;
use crate::hierarchy::{DocumentText, GroupNode, Node};
use crate::load::Block;
use crate::metadata::write;
use crate::metadata::{DocumentName, Target, ZarrFormat, consolidated, strict_json};
use crate::store::{Access, Key, ObjectMeta, Prefix, Readers, Version};
use crate::view::documents::Documents;
use crate::view::fingerprint::hash;
use crate::view::nodes::node::ShownNode;
use crate::view::nodes::path::NodePath;
use crate::view::options::ViewKind;
use crate::view::rights::limited_to;

impl Documents {
    /// The document `name` of the foreign node at `path`, with the attributes of the node's own
    /// document. `None` when the node has no such document.
    pub(in crate::view) fn written(
        &self,
        view: ViewKind,
        path: &Prefix,
        name: DocumentName,
    ) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        let resolved = self.tree.resolve(view, path)?;
        if !resolved.written().contains(&name) || self.may_become_array(&resolved)? {
            return Ok(None);
        }
        // A reader would take the array for a group.
        if matches!(resolved.node, Node::Implicit) && self.tree.is_only_copied(path) {
            return Ok(None);
        }
        let is_unshown = self.tree.is_unshown(view, path, name);
        // Attributes that are in the store are always shown, and so are arrays.
        let is_hidden = match &resolved.node {
            Node::Implicit => is_unshown,
            Node::Group(_) => is_unshown && name != DocumentName::ZAttrs,
            Node::Array(_) | Node::Broken(_) => false,
        };
        if is_hidden {
            return Ok(None);
        }
        let Some((backing, attributes)) = self.backing(&resolved)? else {
            return Ok(None);
        };
        if let Node::Array(node) = &resolved.node {
            // The text is written from the parsed array, which must be of the same version as its
            // document.
            self.tree.check_version(node, path, Some(backing.version))?;
        }
        let mut readers = self.readers_of_node(&resolved)?;
        // A consolidated document also has the names of the nodes below the group.
        if name == DocumentName::ZMetadata
            || name == DocumentName::ZarrJson && self.holds_consolidated(&resolved)?
        {
            self.tree.add_names(&resolved, &mut readers)?;
        }
        let meta = limited_to(&backing, &readers);
        let place = hash(&(view, path, name));
        let (identity, making, epoch) = if let Node::Array(node) = &resolved.node {
            (node.identity, None, 0)
        } else {
            let making = self.begin_copies(name, place);
            (0, making, self.epoch(meta.size()))
        };
        let originals = making.as_ref().map(|making| making.state);
        // The readers of the document decide which copies are in it, so they are part of the key.
        let access = meta.access();
        let copies = self.copies_version(&resolved)?;
        // The coordinate system of an array may be in documents of other nodes.
        let crs = match &resolved.node {
            Node::Array(_) => self.crs_to_add(path, name)?,
            _ => None,
        };
        let versions = (attributes, copies, is_unshown, crs);
        let identity = hash(&(place, versions, identity, originals, access, &readers));
        let text = self
            .tree
            .document_block(identity, meta.version, epoch, || {
                self.with_copies(making.as_ref(), |observed| {
                    // An empty text stands for a document that the node does not have.
                    let text = self.write(&resolved, name, (access, &readers), observed)?;
                    Ok(strict_json(text.unwrap_or_default()))
                })
            })?;
        Ok((!text.is_empty()).then_some((meta, text)))
    }

    /// Whether a directory without a document may become an array. Programs make the directory of an array, and the
    /// directories of its chunks, before its document, and must not find a group there. In a mount with `--rw`, only a
    /// directory with nodes below it is shown as a group.
    fn may_become_array(&self, resolved: &NodePath) -> Result<bool, Error> {
        let is_new = matches!(resolved.node, Node::Implicit);
        if !self.tree.is_writable() || !is_new {
            return Ok(false);
        }
        let has_nodes = self.tree.has_nodes_below(resolved.view, &resolved.path)?;
        Ok(!has_nodes)
    }

    /// The attributes of the node's own document (of its directory, if it has no document), and the version of the
    /// document that holds the node's attributes, if that is another document.
    fn backing(&self, resolved: &NodePath) -> Result<Option<(ObjectMeta, Option<Version>)>, Error> {
        let sources = self.tree.loader.sources();
        let meta = match (resolved.document(), &resolved.node) {
            (_, Node::Broken(_)) => None,
            (Some(document), _) => sources.stat_settled(&document.key)?,
            (None, _) => self.tree.directory_meta(resolved.view, &resolved.path)?,
        };
        let attributes = match self.attributes_key(resolved)? {
            Some(key) => sources.stat_settled(&key)?,
            None => None,
        };
        Ok(meta.map(|meta| {
            let meta = written_with(meta, attributes.as_ref());
            (meta, attributes.map(|meta| meta.version))
        }))
    }

    /// The users who may read all documents of a node. For a node without documents, these are the users who may reach
    /// it.
    pub(in crate::view) fn readers_of_node(&self, resolved: &NodePath) -> Result<Readers, Error> {
        let mut readers = Readers::default();
        let own = resolved.document().map(|document| &document.key);
        let attributes = self.attributes_key(resolved)?;
        for key in own.into_iter().chain(&attributes) {
            if let Some(meta) = self.tree.object_meta(key)? {
                self.tree.add_object(key, &meta, &mut readers)?;
            }
        }
        if own.is_none() {
            self.tree.add_search(&resolved.path, &mut readers)?;
        }
        Ok(readers)
    }

    /// The key of the document that holds only the attributes of a node, if the node's version has such a document.
    pub(in crate::view) fn attributes_key(
        &self,
        resolved: &NodePath,
    ) -> Result<Option<Key>, Error> {
        let key = match &resolved.node {
            Node::Array(node) => node.attributes.clone(),
            Node::Group(group) if group.format == ZarrFormat::V2 => Some(
                resolved
                    .path
                    .key(DocumentName::ZAttrs.as_str().as_bytes())?,
            ),
            _ => None,
        };
        let Some(key) = key else { return Ok(None) };
        Ok(self.tree.object_meta(&key)?.map(|_| key))
    }

    /// The text of the document `name` of a node; `None` when it has no such document. `audience`
    /// limits the copies in it: it is the access that the document will be shown with, and the
    /// users who may read everything else that it is made from. The documents that are copied are added to `observed`.
    fn write(
        &self,
        resolved: &NodePath,
        name: DocumentName,
        audience: (Access, &Readers),
        observed: &mut Observations,
    ) -> Result<Option<Vec<u8>>, Error> {
        // If attributes may be written, their document is shown, unless it was removed.
        let (view, path) = (resolved.view, &resolved.path);
        let is_shown = self.tree.is_writable() && !self.tree.is_unshown(view, path, name);
        let or_empty = |text: Option<Vec<u8>>| {
            let empty = || is_shown.then(|| b"{}\n".to_vec());
            text.or_else(empty)
        };
        if let Node::Array(_) = &resolved.node {
            return match self.tree.shown_at(resolved)? {
                ShownNode::Array(array) => {
                    let text = self.tree.array_document(&array, name)?;
                    let text = match name {
                        DocumentName::ZAttrs => or_empty(text),
                        _ => text,
                    };
                    self.with_crs(path, name, text)
                }
                ShownNode::Plain | ShownNode::Unusable(_) => Ok(None),
            };
        }
        let text = match name {
            DocumentName::ZarrJson => {
                let copies = if self.holds_consolidated(resolved)? {
                    self.copies(resolved, Target::V3, audience, observed)?
                } else {
                    None
                };
                let attributes = self.group_attributes(resolved)?;
                Some(write::group_v3(attributes.as_deref(), copies.as_deref()))
            }
            DocumentName::ZGroup => Some(Ok(write::group_v2().to_vec())),
            DocumentName::ZAttrs => or_empty(self.group_attributes(resolved)?).map(Ok),
            // Readers of v2 need consolidated metadata to find the nodes of a hierarchy without listing it. In a mount
            // with `--rw`, a program would not find new nodes in it for a while.
            DocumentName::ZMetadata
                if resolved.path.is_root() && !self.tree.is_writable()
                    || self.holds_consolidated(resolved)? =>
            {
                let copies = self.copies(resolved, Target::V2, audience, observed)?;
                copies.map(|copies| write::consolidated_v2(&copies))
            }
            _ => None,
        };
        text.transpose()
            .map_err(|error| Error::in_document(&resolved.path, error))
    }

    /// The attributes of a group, a JSON object; `None` when it has none.
    pub(in crate::view) fn group_attributes(
        &self,
        resolved: &NodePath,
    ) -> Result<Option<Vec<u8>>, Error> {
        if let Some(key) = self.attributes_key(resolved)? {
            let text = self.tree.hierarchy.read(&key, Holding::SOURCE)?;
            return Ok(text.map(|text| text.bytes));
        }
        let (Some(text), Node::Group(group)) = (self.group_document(resolved)?, &resolved.node)
        else {
            return Ok(None);
        };
        write::group_attributes_v2(group.format, &text.bytes)
            .map_err(|error| Error::in_document(&text.document.key, error))
    }

    /// The text of the document of a group, in a version that has the attributes in the same document.
    fn group_document(&self, resolved: &NodePath) -> Result<Option<DocumentText>, Error> {
        match &resolved.node {
            Node::Group(GroupNode {
                format: ZarrFormat::V3 | ZarrFormat::Draft | ZarrFormat::N5,
                document: Some(document),
                ..
            }) => self.tree.hierarchy.read(&document.key, Holding::SOURCE),
            _ => Ok(None),
        }
    }

    /// The version of the object with the consolidated metadata of a group of v2, if the mount writes that object, and
    /// so changes it with each node.
    fn copies_version(&self, resolved: &NodePath) -> Result<Option<Version>, Error> {
        let is_v2 = matches!(&resolved.node, Node::Group(group) if group.format == ZarrFormat::V2);
        if !is_v2 || !self.tree.is_writable() {
            return Ok(None);
        }
        let name = DocumentName::ZMetadata.as_str();
        let meta = self
            .tree
            .object_meta(&resolved.path.key(name.as_bytes())?)?;
        Ok(meta.map(|meta| meta.version))
    }

    /// Whether the store has consolidated metadata for a group.
    fn holds_consolidated(&self, resolved: &NodePath) -> Result<bool, Error> {
        match &resolved.node {
            Node::Group(group) if group.format == ZarrFormat::V2 => {
                let name = DocumentName::ZMetadata.as_str();
                let key = resolved.path.key(name.as_bytes())?;
                Ok(self.tree.stat(&key)?.is_some())
            }
            Node::Group(group) if group.format == ZarrFormat::V3 => {
                let text = self.group_document(resolved)?;
                Ok(text.is_some_and(|text| consolidated::is_inline(&text.bytes)))
            }
            _ => Ok(false),
        }
    }
}

/// `meta`, with write bits only for users who may also write the document of the attributes.
fn written_with(meta: ObjectMeta, attributes: Option<&ObjectMeta>) -> ObjectMeta {
    const WRITES: u32 = 0o222;
    let Some(attributes) = attributes else {
        return meta;
    };
    let is_alike = (meta.uid, meta.gid) == (attributes.uid, attributes.gid);
    let allowed = if is_alike { attributes.mode } else { 0 };
    ObjectMeta {
        mode: meta.mode & (allowed | !WRITES),
        ..meta
    }
}
