//! The objects that hold the documents of a node, and changes of them.

use crate::error::{Error, FormatError};
use crate::files::Objects;
use crate::hierarchy::{ArrayNode, Node, TreeNode, TreePlace};
use crate::load::Slice;
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::{DirWriter, Key, ObjectMeta, Prefix, Replaces, StoredFile};
use crate::translate::{MAX_DOCUMENT_BYTES, NodeTexts, Text};
use crate::view::ViewKind;
use crate::view::nodes::path::NodePath;
use crate::view::tree::Tree;

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
    /// [`Error::Stale`] where the node has none; [`Error`] when one cannot be read.
    pub(super) fn texts(&self, writer: &DirWriter) -> Result<NodeTexts, Error> {
        let read = |key: &Key| read_object(writer, key.clone());
        Ok(NodeTexts {
            own: read(self.own.as_ref().ok_or(Error::Stale)?)?,
            attributes: self.attributes.as_ref().map(read).transpose()?,
        })
    }
}

impl Tree {
    /// Forgets everything known about the node at `path`, because its documents or directories were written or removed.
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

    /// The common attributes of the stored documents of the node at `path`; `None` if it has none.
    pub(in crate::view) fn documents_now(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Option<ObjectMeta>, Error> {
        let objects = Objects::of(&self.resolve(view, path)?)?;
        let writer = self.writer()?;
        Ok(objects.now(writer)?)
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
    let bytes = Slice::of_stored(writer, key, stored)?;
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
