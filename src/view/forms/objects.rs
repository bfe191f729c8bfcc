//! The objects that hold the documents of a node, and changes of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::SystemTime;

use super::stored_bytes::stored_slice;
use crate::error::{Error, FormatError};
use crate::hierarchy::{ArrayNode, Node, TreeNode, TreePlace};
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::{DirWriter, Key, ObjectMeta, Prefix, Replaces, StoredFile, Version};
use crate::translate::{MAX_DOCUMENT_BYTES, NodeTexts, Text};
use crate::view::ViewKind;
use crate::view::nodes::path::NodePath;
use crate::view::tree::Tree;

/// The objects that hold the documents of a node. Each may be absent in the store.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) own: Option<Key>,
    pub(super) attributes: Option<Key>,
    /// Copies of the documents of other nodes, which a document in another version has in it.
    pub(super) copies: Option<Key>,
}

impl Objects {
    pub(super) fn of(resolved: &NodePath) -> Result<Objects, Error> {
        Ok(match &resolved.node {
            Node::Array(node) => Objects::of_array(node),
            Node::Group(group) if group.format == ZarrFormat::V2 => {
                let key = |name: DocumentName| resolved.path.key(name.as_str().as_bytes());
                Objects {
                    own: Some(key(DocumentName::ZGroup)?),
                    attributes: Some(key(DocumentName::ZAttrs)?),
                    copies: Some(key(DocumentName::ZMetadata)?),
                }
            }
            Node::Group(group) => Objects {
                own: group.document.as_ref().map(|document| document.key.clone()),
                attributes: None,
                copies: None,
            },
            Node::Broken(_) | Node::Implicit => Objects::default(),
        })
    }

    pub(super) fn of_array(node: &ArrayNode) -> Objects {
        Objects {
            own: Some(node.document.key.clone()),
            attributes: node.attributes.clone(),
            copies: None,
        }
    }

    /// The texts of the node's own documents.
    ///
    /// # Errors
    /// [`Error::Stale`] where it has none; [`Error`] when one cannot be read.
    pub(super) fn texts(&self, writer: &DirWriter) -> Result<NodeTexts, Error> {
        let read = |key: &Key| read_object(writer, key.clone());
        Ok(NodeTexts {
            own: read(self.own.as_ref().ok_or(Error::Stale)?)?,
            attributes: self.attributes.as_ref().map(read).transpose()?,
        })
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.own.iter().chain(&self.attributes).chain(&self.copies)
    }

    /// The attributes of the objects together, of which `ask` gives those of one; `None` where none of the node's
    /// own documents is there.
    pub(super) fn meta<E>(
        &self,
        mut ask: impl FnMut(&Key) -> Result<Option<ObjectMeta>, E>,
    ) -> Result<Option<ObjectMeta>, E> {
        let mut ask = |key: &Option<Key>| key.as_ref().map_or(Ok(None), &mut ask);
        let own = together(ask(&self.own)?, ask(&self.attributes)?);
        let copies = ask(&self.copies)?.filter(|_| own.is_some());
        Ok(together(own, copies))
    }
}

impl Tree {
    /// Forgets what was known of the node at `path`, whose documents or directories were written or
    /// removed.
    pub(super) fn node_changed(&self, path: &Prefix) {
        self.hierarchy.forget(path);
        self.forget_ended(path);
        let node = self.hierarchy.tree_node(path);
        if let Ok(TreeNode {
            place: TreePlace::Draft(draft),
            ..
        }) = node
        {
            self.hierarchy.forget_draft(&draft);
        }
    }

    /// The attributes of the stored documents of the node at `path`, together; `None` where it has none.
    pub(in crate::view) fn documents_now(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Option<ObjectMeta>, Error> {
        let objects = Objects::of(&self.resolve(view, path)?)?;
        let writer = self.writer()?;
        Ok(objects.meta(|key| writer.stat(key))?)
    }
}

/// The document at `key`, which has not changed since it was opened.
///
/// # Errors
/// [`Error`] when it is too long, [`StoreError::Changed`] when it has changed.
pub(super) fn read_document(
    writer: &DirWriter,
    key: &Key,
    stored: &StoredFile,
) -> Result<Vec<u8>, Error> {
    let bytes = stored_slice(writer, key, stored)?;
    FormatError::check_limit("the size of the document", bytes.len(), MAX_DOCUMENT_BYTES)
        .map_err(|error| Error::in_document(key, error))?;
    bytes.read_all()
}

/// Reads the object at `key`, which may be absent.
pub(super) fn read_object(writer: &DirWriter, key: Key) -> Result<Text, Error> {
    let Some(stored) = writer.open_object(&key, false)? else {
        return Ok(Text {
            key,
            bytes: None,
            replaces: Replaces::Nothing,
        });
    };
    let bytes = read_document(writer, &key, &stored)?;
    Ok(Text {
        key,
        bytes: Some(bytes),
        replaces: Replaces::Version(stored.meta.version),
    })
}

/// The attributes of two objects together: those of the first one, with a version that changes with
/// each of them.
fn together(own: Option<ObjectMeta>, other: Option<ObjectMeta>) -> Option<ObjectMeta> {
    let (Some(own), Some(other)) = (own, other) else {
        return own.or(other);
    };
    let mut hasher = DefaultHasher::new();
    (own.version, other.version).hash(&mut hasher);
    let version = Version {
        mtime: own.version.mtime.max(other.version.mtime),
        tag: hasher.finish(),
        ..own.version
    };
    let now = SystemTime::now();
    let is_settled = own.settles_in(now).or(other.settles_in(now)).is_none();
    Some(ObjectMeta {
        version,
        // Nobody has to wait until they are older.
        is_own: is_settled,
        ..own
    })
}
