//! Consolidated metadata in another version, made by walking the nodes below a group. Each copy is
//! made from the node's own documents, as the view shows them.

use std::sync::atomic::Ordering;

use crate::error::{Error, FormatError};
use crate::fresh::Observations;
use crate::hierarchy::Node;
use crate::metadata::write;
use crate::metadata::{DocumentName, Target, ZarrFormat};
use crate::store::{Access, Prefix, Readers};
use crate::view::documents::Documents;
use crate::view::nodes::directory::NodeDirectory;
use crate::view::nodes::node::ShownNode;
use crate::view::nodes::path::NodePath;
use crate::view::rights::{is_refused, more_private, refused};

/// The most nodes and directories that are walked.
const MOST_NODES: usize = 1000;
/// The most bytes of all copies, and the share of the cache that they may have.
const MOST_BYTES: u64 = 16 << 20;
const SHARE_OF_CACHE: u64 = 4;

/// A document and its key (v2) or path (v3), relative to the group.
pub(in crate::view) type DocumentCopy = (String, Vec<u8>);

impl Documents {
    /// Copies of the documents of all nodes below a group, as consolidated metadata of `target`;
    /// `None` when they are too many or too long. They are shown to `audience`: users who have the given
    /// access and are among the given readers. A node that fewer users may read, or that the store
    /// refuses, is left out, and the log names it. The documents that are copied are added to `observed`.
    pub(in crate::view) fn copies(
        &self,
        group: &NodePath,
        target: Target,
        audience: (Access, &Readers),
        observed: &mut Observations,
    ) -> Result<Option<Vec<DocumentCopy>>, Error> {
        let (view, group) = (group.view, &group.path);
        let deadline = self.tree.loader.deadline();
        let most_bytes = MOST_BYTES.min(self.tree.loader.cache().budget().limit() / SHARE_OF_CACHE);
        let (mut copies, mut n_nodes, mut n_bytes) = (Vec::new(), 0, 0);
        let give_up = || {
            if !self.gave_up_walking.swap(true, Ordering::Relaxed) {
                log::warn!(
                    "{group}: too many nodes, too much metadata or too slow a store for consolidated metadata: none is shown"
                );
            }
            Ok(None)
        };
        let mut pending = vec![group.clone()];
        while let Some(path) = pending.pop() {
            n_nodes += 1;
            let late = deadline.check(|| group.to_string()).is_err();
            if late || n_nodes > MOST_NODES {
                return give_up();
            }
            // Logs that this node is left out.
            let leave_out = |reason: &FormatError| {
                self.tree.warn_once(&(group, &path, "consolidated"), || {
                    format!("{group}: {path} is not in the consolidated metadata: {reason}")
                });
            };
            let folder = match self.tree.folder(view, &path) {
                Err(Error::Store(error)) if is_refused(&error) => {
                    leave_out(&refused(&error));
                    continue;
                }
                folder => folder?,
            };
            // The name of the group itself is empty.
            let name = group.strip(path.as_bytes()).unwrap_or_default();
            let Ok(name) = str::from_utf8(name) else {
                continue;
            };
            let own = self.copies_of(&folder, name, target, audience);
            let own = own.and_then(|own| {
                self.observe_documents(&folder.resolved, observed)?;
                Ok(own)
            });
            match own {
                Err(Error::Store(error)) if is_refused(&error) => leave_out(&refused(&error)),
                Ok(None) => leave_out(&more_private()),
                Ok(Some(mut found)) => {
                    n_bytes += found.iter().map(|(_, text)| text.len() as u64).sum::<u64>();
                    if n_bytes > most_bytes {
                        return give_up();
                    }
                    copies.append(&mut found);
                }
                Err(Error::Metadata { key, error }) => {
                    // Readers report a node without a copy as missing, but a wrong copy would make them read wrong
                    // values.
                    log::debug!("{group}: the copy of {key} is left out: {error}");
                }
                Err(error) => return Err(error),
            }
            match self.children_for(&folder, audience) {
                Err(Error::Store(error)) if is_refused(&error) => leave_out(&refused(&error)),
                children => pending.extend(children?.into_iter().map(|(_, path)| path)),
            }
        }
        copies.sort_unstable();
        Ok(Some(copies))
    }

    /// Adds the documents of a node to `observed`.
    fn observe_documents(
        &self,
        resolved: &NodePath,
        observed: &mut Observations,
    ) -> Result<(), Error> {
        if let Some(own) = resolved.document() {
            observed.add_object(&own.key, Some(&own.meta));
        }
        // The attributes may be absent.
        let attributes = match &resolved.node {
            Node::Array(node) => node.attributes.clone(),
            Node::Group(group) if group.format == ZarrFormat::V2 => {
                let name = DocumentName::ZAttrs.as_str().as_bytes();
                Some(resolved.path.key(name)?)
            }
            _ => None,
        };
        if let Some(key) = attributes {
            observed.add_object(&key, self.tree.object_meta(&key)?.as_ref());
        }
        Ok(())
    }

    /// The nodes in a group; none unless all of `audience` may list the group.
    fn children_for(
        &self,
        folder: &NodeDirectory,
        (shown, readers): (Access, &Readers),
    ) -> Result<Vec<(Vec<u8>, Prefix)>, Error> {
        let mut own = Readers::default();
        self.tree.add_names(&folder.resolved, &mut own)?;
        // Readers do not find a node if a group above it has no copy.
        let is_copied = matches!(folder.shown, ShownNode::Plain);
        if !is_copied || !own.include(shown, readers) {
            return Ok(Vec::new());
        }
        self.tree.nodes_in(folder, MOST_NODES)
    }

    /// The documents of one node, called `name` relative to the group; `None` unless all of
    /// `audience` may read them.
    fn copies_of(
        &self,
        folder: &NodeDirectory,
        name: &str,
        target: Target,
        (shown, readers): (Access, &Readers),
    ) -> Result<Option<Vec<DocumentCopy>>, Error> {
        use DocumentName::{ZArray, ZAttrs, ZGroup, ZarrJson};
        if !self
            .readers_of_node(&folder.resolved)?
            .include(shown, readers)
        {
            return Ok(None);
        }
        let documents = match (&folder.shown, target) {
            (ShownNode::Unusable(_), _) => Vec::new(),
            (ShownNode::Array(array), Target::V3) => {
                let text = self.tree.array_document(array, ZarrJson)?;
                vec![(ZarrJson, self.with_crs(&array.path, ZarrJson, text)?)]
            }
            (ShownNode::Array(array), Target::V2) => {
                let attributes = self.tree.array_document(array, ZAttrs)?;
                vec![
                    (ZArray, self.tree.array_document(array, ZArray)?),
                    (ZAttrs, self.with_crs(&array.path, ZAttrs, attributes)?),
                ]
            }
            (ShownNode::Plain, Target::V3) => {
                let attributes = self.group_attributes(&folder.resolved)?;
                let text = write::group_v3(attributes.as_deref(), None)
                    .map_err(|error| Error::in_document(&folder.resolved.path, error))?;
                vec![(ZarrJson, Some(text))]
            }
            (ShownNode::Plain, Target::V2) => vec![
                (ZGroup, Some(write::group_v2().to_vec())),
                (ZAttrs, self.group_attributes(&folder.resolved)?),
            ],
        };
        let copies = documents.into_iter().filter_map(|(document, text)| {
            let key = match (target, name.is_empty()) {
                // In v3, the copies are in the document of the group.
                (Target::V3, true) => return None,
                (Target::V3, false) => name.to_owned(),
                (Target::V2, true) => document.as_str().to_owned(),
                (Target::V2, false) => format!("{name}/{}", document.as_str()),
            };
            Some((key, text?))
        });
        Ok(Some(copies.collect()))
    }
}
