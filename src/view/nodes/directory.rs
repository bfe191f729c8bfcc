//! The directory of a group or an array, or a directory without a node: which names of the store it shows, and which
//! generated names it adds.

use crate::error::Error;
use crate::hierarchy::{BrokenKind, DraftNode, Node, TreePlace};
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::{Detail, EntryKind, Key, ListEntry, Prefix};
use crate::view::View;
use crate::view::chunks::names::ChunkName;
use crate::view::listing::name_stream::NameStream;
use crate::view::nodes::node::{
    FileForm, ShownNode, Unusable, makes_an_array, may_be_part_of_chunk_key,
};
use crate::view::nodes::path::NodePath;
use crate::view::options::ViewKind;
use crate::view::tree::Tree;
use crate::view::vnode::{CONTROL, Vnode};

/// A directory of the view that is not a directory of chunks.
#[derive(Debug)]
pub(in crate::view) struct NodeDirectory {
    pub(in crate::view) resolved: NodePath,
    pub(in crate::view) shown: ShownNode,
}

/// How a name of the store is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::view) enum NameRole {
    /// The key is shown under its stored name, with its stored bytes.
    AsStored,
    /// The key is a document that is shown edited.
    Edited(Key),
    /// The key is the document of a draft's array that cannot be shown. It lies apart from the array's chunks, and is
    /// shown under a name that no reader looks for.
    Renamed(Vec<u8>),
    /// The key is not shown: it is, or would describe, a file that the view does not show.
    Hidden,
}

/// Attributes of v2 that are longer are shown as they are stored.
const MOST_MENDED_BYTES: u64 = 1 << 20;

/// The suffix of the name of a document that no reader should find.
const UNSUPPORTED: &[u8] = b".unsupported";

impl NodeDirectory {
    /// Whether nodes can be below it.
    pub(in crate::view) fn has_children(&self) -> bool {
        self.shown.has_children()
    }
}

impl Tree {
    /// The directory at `path`, which must exist.
    pub(in crate::view) fn folder(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<NodeDirectory, Error> {
        let resolved = self.resolve(view, path)?;
        let shown = self.shown_at(&resolved)?;
        Ok(NodeDirectory { resolved, shown })
    }

    /// How the stored `name` is shown.
    pub(in crate::view) fn role_of(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
    ) -> Result<NameRole, Error> {
        if folder.resolved.replaces(name) {
            return Ok(NameRole::Hidden);
        }
        if let Some(draft) = folder.resolved.draft() {
            // Below its root, a draft's hierarchy shows only nodes.
            let is_plain = draft.path.is_root()
                && ![&b"meta"[..], b"data", b"zarr.json"].contains(&name)
                && self.draft_child(folder, name)?.is_none();
            return Ok(if is_plain {
                NameRole::AsStored
            } else {
                NameRole::Hidden
            });
        }
        let key = folder.resolved.path.key(name)?;
        if DocumentName::of(name) == Some(DocumentName::ZAttrs)
            && self.mends_attributes(folder, &key)?
        {
            return Ok(NameRole::Edited(key));
        }
        match &folder.shown {
            ShownNode::Array(array) => {
                if DocumentName::of(name) == Some(DocumentName::ZMetadata) {
                    return Ok(NameRole::Edited(key));
                }
                if array.form == FileForm::Stored && self.options.shown_as.is_none() {
                    return Ok(NameRole::AsStored);
                }
                if key == array.node.document.key {
                    return Ok(NameRole::Edited(key));
                }
                if array.form == FileForm::Stored {
                    return Ok(NameRole::AsStored);
                }
                // A document of another version describes the stored chunks, which are not shown.
                let goes = makes_an_array(name) || array.stored.in_array(name) != ChunkName::Other;
                Ok(if goes {
                    NameRole::Hidden
                } else {
                    NameRole::AsStored
                })
            }
            ShownNode::Unusable(unusable) if self.hides(folder, unusable, name)? => {
                Ok(NameRole::Hidden)
            }
            ShownNode::Plain | ShownNode::Unusable(_) => self.plain_role(folder, key),
        }
    }

    /// How a key in a group, or in a directory without a node, is shown.
    fn plain_role(&self, folder: &NodeDirectory, key: Key) -> Result<NameRole, Error> {
        match DocumentName::of(key.name()) {
            Some(DocumentName::ZarrJson | DocumentName::ZGroup)
                if self.is_unasked(folder.resolved.view, &key)? =>
            {
                return Ok(NameRole::Hidden);
            }
            Some(DocumentName::ZMetadata) if self.is_copy_of_draft(&folder.resolved.path)? => {
                return Ok(NameRole::Hidden);
            }
            Some(DocumentName::ZMetadata) => return Ok(NameRole::Edited(key)),
            Some(DocumentName::ZGroup) if self.mends(folder) => return Ok(NameRole::Edited(key)),
            Some(DocumentName::ZarrJson) => {
                // A document without consolidated metadata needs no edit, and may be too long for
                // one.
                let is_group = matches!(
                    &folder.resolved.node,
                    Node::Group(group) if group.format == ZarrFormat::V3 && !group.is_only_long
                );
                return Ok(if is_group {
                    NameRole::Edited(key)
                } else {
                    NameRole::AsStored
                });
            }
            _ => {}
        }
        if self.options.shown_as.is_some() {
            return Ok(NameRole::AsStored);
        }
        let Some(array) = self.hierarchy.described_by(&key)? else {
            return Ok(NameRole::AsStored);
        };
        Ok(match self.shown(folder.resolved.view, &array)? {
            ShownNode::Array(array) if array.form != FileForm::Stored => NameRole::Edited(key),
            ShownNode::Unusable(_) => {
                let renamed = [key.name(), UNSUPPORTED].concat();
                NameRole::Renamed(self.free_name(&folder.resolved.path, renamed)?)
            }
            ShownNode::Array(_) | ShownNode::Plain => NameRole::AsStored,
        })
    }

    /// Whether the document of the group `folder` has a fault that its view mends.
    fn mends(&self, folder: &NodeDirectory) -> bool {
        let is_faulty = matches!(&folder.resolved.node, Node::Group(group) if group.is_faulty);
        is_faulty && !self.shows_own_bytes(folder.resolved.view)
    }

    /// Whether `key` has the attributes of a node of v2 that is shown in its own version by a view that mends faults.
    fn mends_attributes(&self, folder: &NodeDirectory, key: &Key) -> Result<bool, Error> {
        let is_of_node = match (&folder.shown, &folder.resolved.node) {
            (ShownNode::Array(array), _) => array.node.attributes.as_ref() == Some(key),
            (ShownNode::Plain, Node::Group(group)) => group.format == ZarrFormat::V2,
            _ => false,
        };
        if !is_of_node || self.shows_own_bytes(folder.resolved.view) {
            return Ok(false);
        }
        let meta = self.object_meta(key)?;
        Ok(meta.is_some_and(|meta| meta.size() <= MOST_MENDED_BYTES))
    }

    /// Whether `view` shows documents that need no change as they are stored, whatever quirks they have.
    pub(in crate::view) fn shows_own_bytes(&self, view: ViewKind) -> bool {
        view == ViewKind::Keys && self.options.shown_as.is_none()
    }

    /// Whether the `.zmetadata` at `prefix` holds copies of a draft's documents, which describe
    /// stored chunks that may not be shown.
    fn is_copy_of_draft(&self, prefix: &Prefix) -> Result<bool, Error> {
        let Some(root) = prefix.as_bytes().strip_suffix(b"meta/root/consolidated") else {
            return Ok(false);
        };
        let root = Prefix::parse(root)?;
        Ok(matches!(
            self.hierarchy.node(&root)?,
            Node::Group(group) if group.format == ZarrFormat::Draft
        ))
    }

    /// Whether the stored `name` is hidden beside an array that cannot be shown. If the document does not say how chunk
    /// keys are spelled, all names that could be chunk keys are hidden, because a reader would take encoded bytes for
    /// decoded ones. Nodes stay visible: a group may have children called `0` and `1`.
    fn hides(
        &self,
        folder: &NodeDirectory,
        unusable: &Unusable,
        name: &[u8],
    ) -> Result<bool, Error> {
        if unusable.hides(name) {
            return Ok(true);
        }
        if unusable.names.is_some()
            || unusable.kind == BrokenKind::Group
            || !may_be_part_of_chunk_key(name)
        {
            return Ok(false);
        }
        let child = folder.resolved.path.key(name)?.to_prefix();
        Ok(matches!(self.hierarchy.node(&child)?, Node::Implicit))
    }

    /// The vnode of the generated `name`. Its attributes show whether it exists.
    pub(in crate::view) fn generated(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
    ) -> Result<Option<Vnode>, Error> {
        let mut added = self.added(folder)?.into_iter();
        if let Some((_, vnode)) = added.find(|(added, _)| added == name) {
            return Ok(Some(vnode));
        }
        // This may be the name of a renamed document of a draft.
        let mut untilded = name;
        while let Some(shorter) = untilded.strip_suffix(b"~") {
            untilded = shorter;
        }
        let document = untilded.strip_suffix(UNSUPPORTED);
        let document = document.filter(|document| !document.is_empty());
        let (Some(document), false) = (document, matches!(folder.shown, ShownNode::Unusable(_)))
        else {
            return Ok(None);
        };
        let (view, key) = (folder.resolved.view, folder.resolved.path.key(document)?);
        let renamed = self.role_of(folder, document)? == NameRole::Renamed(name.to_vec());
        Ok(renamed.then_some(Vnode::Unsupported { view, key }))
    }

    /// The generated names, and their vnodes, whether or not these exist.
    fn added(&self, folder: &NodeDirectory) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        if let ShownNode::Unusable(unusable) = &folder.shown {
            return self.files_beside_unusable(folder, unusable);
        }
        let (view, path) = (folder.resolved.view, &folder.resolved.path);
        if self.is_writable() && self.ended(view, path).is_some() {
            // The array that was here has lost its document, and the directory is not a group.
            return Ok(Vec::new());
        }
        let written = folder.resolved.written().iter().map(|&name| {
            let (view, path) = (folder.resolved.view, folder.resolved.path.clone());
            let vnode = Vnode::Written { view, path, name };
            (name.as_str().as_bytes().to_vec(), vnode)
        });
        Ok(written.collect())
    }

    /// `ERROR.txt`, and the renamed document where it lies in this directory. Neither name hides a
    /// stored key.
    fn files_beside_unusable(
        &self,
        folder: &NodeDirectory,
        unusable: &Unusable,
    ) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let (view, path) = (folder.resolved.view, folder.resolved.path.clone());
        let key = unusable.document.key.clone();
        let note = b"ERROR.txt".to_vec();
        let renamed = [key.name(), UNSUPPORTED].concat();
        if folder.resolved.draft().is_some() {
            // No stored keys are shown in this directory, so the names are free.
            return Ok(vec![
                (note, Vnode::ErrorNote { view, path }),
                (renamed, Vnode::Unsupported { view, key }),
            ]);
        }
        // `ERROR.txt` comes first, because it goes with the document: a program that removes all listed names in order
        // finds both.
        let note = self.free_name(&path, note)?;
        let of_note = Vnode::ErrorNote {
            view,
            path: path.clone(),
        };
        let mut added = vec![(note, of_note)];
        if key.parent() == path {
            let renamed = self.free_name(&path, renamed)?;
            added.push((renamed, Vnode::Unsupported { view, key }));
        }
        Ok(added)
    }

    /// `name`, followed by as many `~` as it takes to be no name of the store. If a store has very many such names, as
    /// a web server has that answers every name, the last of them hides a stored key.
    fn free_name(&self, prefix: &Prefix, mut name: Vec<u8>) -> Result<Vec<u8>, Error> {
        const MOST: usize = 8;
        let longest = name.len() + MOST;
        while name.len() < longest && self.stat(&prefix.key(&name)?)?.is_some() {
            name.push(b'~');
        }
        Ok(name)
    }

    /// The path of the child `name` of a draft's group; `None` if there is no such node.
    pub(in crate::view) fn draft_child(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
    ) -> Result<Option<Prefix>, Error> {
        let Some(draft) = folder.resolved.draft().filter(|_| folder.has_children()) else {
            return Ok(None);
        };
        let child = folder.resolved.path.key(name)?.to_prefix();
        let TreePlace::Draft(node) = self.hierarchy.tree_node(&child)?.place else {
            return Ok(None);
        };
        if !node.exists || self.holds_copies(draft, &node, name)? {
            return Ok(None);
        }
        Ok(Some(child))
    }

    /// Names and paths of the nodes in a directory. The listing ends after `most + 1` nodes.
    pub(in crate::view) fn nodes_in(
        &self,
        folder: &NodeDirectory,
        most: usize,
    ) -> Result<Vec<(Vec<u8>, Prefix)>, Error> {
        let mut nodes = Vec::new();
        let mut names = NameStream::new(folder.resolved.listed()?);
        while nodes.len() <= most
            && let Some(entry) = names.next(self.store(), Detail::Names)?
        {
            nodes.extend(self.node_listed(folder, &entry)?);
        }
        Ok(nodes)
    }

    /// Whether nodes with documents are below the directory at `path`. A directory with too many names to examine
    /// counts as having some.
    pub(in crate::view) fn has_nodes_below(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<bool, Error> {
        const MOST_DIRECTORIES: usize = 1000;
        let mut left = vec![path.clone()];
        let mut seen = 0;
        while let Some(path) = left.pop() {
            let folder = self.folder(view, &path)?;
            for (_, below) in self.nodes_in(&folder, MOST_DIRECTORIES)? {
                if !matches!(self.resolve(view, &below)?.node, Node::Implicit) {
                    return Ok(true);
                }
                seen += 1;
                left.push(below);
            }
            if seen > MOST_DIRECTORIES {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Name and path of the node that an entry of the store's listing stands for, if any.
    pub(in crate::view) fn node_listed(
        &self,
        folder: &NodeDirectory,
        entry: &ListEntry,
    ) -> Result<Option<(Vec<u8>, Prefix)>, Error> {
        let path = &folder.resolved.path;
        if folder.resolved.draft().is_some() {
            return self.listed_child(folder, entry);
        }
        let is_prefix = match entry.kind {
            EntryKind::Prefix => true,
            // A file that cannot be examined does not end the listing; looking it up gives the
            // error.
            EntryKind::Object => self
                .store_directory(folder, &entry.name)
                .is_ok_and(|found| found.is_some()),
            EntryKind::Unreadable => false,
        };
        if !is_prefix || entry.name == CONTROL {
            return Ok(None);
        }
        if let ShownNode::Unusable(unusable) = &folder.shown
            && self.hides(folder, unusable, &entry.name)?
        {
            return Ok(None);
        }
        Ok(Some((
            entry.name.clone(),
            path.key(&entry.name)?.to_prefix(),
        )))
    }

    /// Name and path of the child of a draft's group that an entry of the store's listing stands for. Up to three
    /// entries stand for one child (an array document, a group document, and a directory of its own children); only the
    /// first of them yields it.
    pub(in crate::view) fn listed_child(
        &self,
        folder: &NodeDirectory,
        entry: &ListEntry,
    ) -> Result<Option<(Vec<u8>, Prefix)>, Error> {
        let Some(name) = folder
            .resolved
            .draft()
            .and_then(|draft| draft.child(&entry.name, entry.kind))
        else {
            return Ok(None);
        };
        if name == CONTROL {
            return Ok(None);
        }
        let Some(path) = self.draft_child(folder, name)? else {
            return Ok(None);
        };
        let TreePlace::Draft(child) = self.hierarchy.tree_node(&path)?.place else {
            return Ok(None);
        };
        let (array, group) = (child.array_document()?, child.group_document()?);
        let is_first = array.name() == entry.name
            || !self.is_object(&array)?
                && (group.name() == entry.name || !self.is_object(&group)?);
        Ok(is_first.then(|| (name.to_vec(), path)))
    }

    fn is_object(&self, key: &Key) -> Result<bool, Error> {
        Ok(self.object_meta(key)?.is_some())
    }

    /// Whether a draft's child is the directory of its consolidated metadata, and not a node.
    fn holds_copies(
        &self,
        draft: &DraftNode,
        child: &DraftNode,
        name: &[u8],
    ) -> Result<bool, Error> {
        if !draft.path.is_root() || name != b"consolidated" {
            return Ok(false);
        }
        let copies = child
            .children()?
            .key(DocumentName::ZMetadata.as_str().as_bytes())?;
        Ok(self.is_object(&copies)?
            && !self.is_object(&child.array_document()?)?
            && !self.is_object(&child.group_document()?)?)
    }
}

impl View {
    /// The generated names that exist, and their vnodes.
    pub(in crate::view) fn all_generated(
        &self,
        folder: &NodeDirectory,
    ) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let mut added = self.tree.added(folder)?;
        // A document that cannot be written is listed. Its lookup gives the error.
        added.retain(|(_, vnode)| {
            !matches!(vnode, Vnode::Written { .. }) || !matches!(self.document_of(vnode), Ok(None))
        });
        Ok(added)
    }
}
