//! Finds the document that makes a prefix a node. Documents are looked for in a fixed order.

use std::sync::Arc;

use super::ahead::{DocumentsAhead, open_many};
use super::catalog::Catalog;
use super::document::{OmittedParts, is_common_name};
use super::node::{BrokenKind, Document, GroupNode, Node};
use super::node_cache::CachedNode;
use super::read::OpenDocument;
use super::{DocumentText, Hierarchy};
use crate::budget::Holding;
use crate::error::{Error, FormatError};
use crate::fresh::{LastCheck, Observations};
use crate::metadata::{
    DocumentName, NodeMetadata, ZarrFormat, check_array_document_len, check_outlined, draft,
    pre_v1, v1, v2, v3,
};
use crate::store::{Key, ObjectMeta, Prefix, Stat, StoreError};

/// Files that are larger than this, in bytes, are no documents if their name is a [common](is_common_name) one.
pub(super) const MAX_COMMON_BYTES: u64 = 4 << 20;

/// A `zarr.json` that is longer than this, in bytes, is read as an outline: without its attributes
/// and its copies of other documents.
const LONG_BYTES: u64 = 1 << 20;

/// The names of the documents that make a prefix a node, in the order in which they decide.
pub(super) const NAMES: [&[u8]; 7] = [
    b"zarr.json",
    b".zarray",
    b".zgroup",
    b".zmetadata",
    b"meta",
    b"__zmeta__",
    b"attributes.json",
];

/// A search for the documents of one prefix, which records every key that it has examined.
#[derive(Debug)]
pub(super) struct DocumentSearch<'h> {
    pub(super) hierarchy: &'h Hierarchy,
    begun: LastCheck,
    pub(super) observations: Observations,
    /// Documents of a store that is not local, which were read together.
    ahead: Option<DocumentsAhead>,
    /// The last document that could not be parsed, such as one that is too large. Its error has the key only as text.
    unparsed: Option<Key>,
}

impl Hierarchy {
    /// Looks for the node at `prefix`, which is outside of the hierarchies of drafts.
    pub(super) fn load(&self, prefix: &Prefix) -> Result<CachedNode, Error> {
        let mut search = DocumentSearch::new(self);
        if let Some(catalog) = &self.catalog {
            self.look_at_groups_above(catalog, prefix)?;
        }
        if !self.store.profile().is_local {
            search.look_ahead(prefix)?;
        }
        let node = match search.node_at(prefix) {
            Ok(node) => node.unwrap_or(Node::Implicit),
            Err(error) => match (error, search.unparsed.take()) {
                (Error::Metadata { error, .. }, Some(key)) => search.broken(key, error)?,
                (error, _) => return Err(error),
            },
        };
        if let Some(catalog) = &self.catalog {
            catalog.remember(prefix, !matches!(node, Node::Implicit));
        }
        Ok(search.into_cached(node))
    }

    /// Makes sure that the catalog knows which of the groups above `prefix` have consolidated metadata.
    fn look_at_groups_above(&self, catalog: &Catalog, prefix: &Prefix) -> Result<(), Error> {
        let mut above: Vec<Prefix> = prefix.with_ancestors().skip(1).collect();
        above.reverse();
        for group in above {
            if catalog.is_covered(prefix) {
                break;
            }
            if catalog.has_looked_at(&group) {
                continue;
            }
            if matches!(self.plain_node(&group)?, Node::Array(_)) {
                break;
            }
            if !catalog.has_looked_at(&group) {
                catalog.look_at(&group)?;
            }
        }
        Ok(())
    }

    /// The version of the group that `prefix` is in, if that is cached.
    fn format_of_group_above(&self, prefix: &Prefix) -> Option<ZarrFormat> {
        let above = prefix.to_key()?.parent();
        match self.lock().get(&above)?.node {
            Node::Group(group) => Some(group.format),
            _ => None,
        }
    }
}

impl<'h> DocumentSearch<'h> {
    /// A search that has not examined any key yet.
    pub(super) fn new(hierarchy: &'h Hierarchy) -> DocumentSearch<'h> {
        DocumentSearch {
            hierarchy,
            begun: LastCheck::now(),
            observations: Observations::default(),
            ahead: None,
            unparsed: None,
        }
    }

    /// Opens the documents that are likely at the prefix in one round trip, and where there are
    /// none, the less likely ones in another. The group around the prefix decides which are likely.
    fn look_ahead(&mut self, prefix: &Prefix) -> Result<(), Error> {
        let hierarchy = self.hierarchy;
        let likely = match hierarchy.format_of_group_above(prefix) {
            Some(ZarrFormat::V3) => 1,
            Some(ZarrFormat::V2) => 4,
            _ => NAMES.len(),
        };
        let keys = NAMES.iter().map(|name| prefix.key(name));
        let mut keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
        let rest = keys.split_off(likely);
        if likely > 1 {
            // An array of v2 has its attributes in this document.
            keys.push(prefix.key(b".zattrs")?);
        }
        let mut ahead = DocumentsAhead::new();
        for keys in [keys, rest] {
            if !ahead.has_any() && !keys.is_empty() {
                open_many(&*hierarchy.store, &hierarchy.budget, keys, &mut ahead);
                ahead.settle(hierarchy.catalog.is_some());
            }
        }
        if let Some(catalog) = &hierarchy.catalog
            && !catalog.is_covered(prefix)
        {
            // An error here does not show whether there is a node. The catalog examines the group again before a node
            // below it is looked for.
            if let Err(error) = catalog.add_group(prefix, &ahead) {
                log::debug!("{prefix}: its consolidated metadata is unknown: {error}");
            }
        }
        self.ahead = Some(ahead);
        Ok(())
    }

    /// Like [`Hierarchy::open`], for a document that may have been opened ahead.
    fn open(&mut self, key: &Key) -> Result<Option<OpenDocument>, Error> {
        let ahead = self.ahead.as_mut();
        match ahead.filter(|ahead| ahead.has_asked(key)) {
            Some(ahead) => Ok(ahead.take(key)),
            None => self.hierarchy.open(key),
        }
    }

    /// The cache entry of `node`, with all keys that were examined.
    pub(super) fn into_cached(self, node: Node) -> CachedNode {
        CachedNode {
            observations: Arc::new(self.observations),
            draft: None,
            checked: Arc::new(self.begun),
            lineage: None,
            reserved: None,
            memory_bytes: match &node {
                // Only arrays have a model of their metadata.
                Node::Group(_) | Node::Implicit | Node::Broken(_) => 0,
                Node::Array(array) => array.model_bytes + array.document.recent_bytes(),
            },
            node,
        }
    }

    /// Records the document that was found at `key`, or its absence.
    fn note(&mut self, key: &Key, text: Option<&DocumentText>) {
        let meta = text.map(|text| text.document.meta);
        self.observations.add_object(key, meta.as_ref());
    }

    /// Reads the document at `key`; `None` when there is none.
    pub(super) fn read(&mut self, key: &Key) -> Result<Option<DocumentText>, Error> {
        // The caller may hold memory for a consolidated document that copies this one.
        let holding = Holding::SOURCE.to_hold("a document");
        let opened = self.open(key)?;
        let read = |opened| self.hierarchy.read_parsed(opened, holding);
        let text = opened.map(read).transpose();
        let text = self.noting_unparsed(key, text)?;
        self.note(key, text.as_ref());
        Ok(text)
    }

    /// Reads the document at `key`, or only the outline of a long one. Also returns which parts the
    /// outline leaves out.
    fn read_outline(&mut self, key: &Key) -> Result<Option<(DocumentText, OmittedParts)>, Error> {
        let Some(opened) = self.open(key)? else {
            self.note(key, None);
            return Ok(None);
        };
        let found = if opened.size() > LONG_BYTES {
            self.hierarchy.read_outline(opened)
        } else {
            let holding = Holding::SOURCE.to_hold("a document");
            let text = self.hierarchy.read_parsed(opened, holding);
            text.map(|text| (text, OmittedParts::Nothing))
        };
        let found = self.noting_unparsed(key, found)?;
        self.note(key, Some(&found.0));
        Ok(Some(found))
    }

    /// The result of reading the document at `key`, which is noted if it cannot be parsed.
    fn noting_unparsed<T>(&mut self, key: &Key, read: Result<T, Error>) -> Result<T, Error> {
        if let Err(Error::Metadata { .. }) = &read {
            self.unparsed = Some(key.clone());
        }
        read
    }

    /// The node of a document at `key` that cannot be used. The document is read again when it
    /// changes.
    fn broken(&mut self, key: Key, error: FormatError) -> Result<Node, Error> {
        let stat = self.hierarchy.store.stat(&key)?.ok_or(Error::Stale)?;
        let meta = stat.meta;
        self.observations.add_object(&key, Some(&meta));
        let kind = match DocumentName::of(key.name()) {
            Some(DocumentName::ZarrJson) => BrokenKind::Unknown,
            Some(DocumentName::ZGroup) => BrokenKind::Group,
            _ => BrokenKind::Array,
        };
        Ok(Node::broken(Document::new(key, meta), error, kind))
    }

    /// Like [`DocumentSearch::read`], for a file with these attributes that need not be a document:
    /// `None` when it is too large, denied, or no object.
    fn read_common(&mut self, key: &Key, meta: ObjectMeta) -> Result<Option<DocumentText>, Error> {
        if meta.size() > MAX_COMMON_BYTES {
            self.observations.add_object(key, Some(&meta));
            return Ok(None);
        }
        match self.read(key) {
            Err(Error::Store(StoreError::Denied { .. } | StoreError::NotAnObject { .. })) => {
                self.observations.add_object(key, Some(&meta));
                Ok(None)
            }
            text => text,
        }
    }

    fn node_at(&mut self, prefix: &Prefix) -> Result<Option<Node>, Error> {
        if let Some((text, omitted)) = self.read_outline(&prefix.key(b"zarr.json")?)? {
            return self.zarr_json(prefix, text, omitted).map(Some);
        }
        if let Some(text) = self.read(&prefix.key(b".zarray")?)? {
            let mut metadata = v2::parse_array(&text.bytes);
            if let Ok(array) = &mut metadata {
                let is_certain = self.hierarchy.find_separator(prefix, array)?;
                if !is_certain {
                    self.observations.add_unobserved();
                }
            }
            let attributes = prefix.key(b".zattrs")?;
            let document = text.into_document();
            let node = Node::array(prefix, document, Some(attributes), metadata);
            return Ok(Some(node));
        }
        if let Some(text) = self.read(&prefix.key(b".zgroup")?)? {
            self.note_copies(prefix)?;
            return Ok(Some(match v2::parse_group(&text.bytes) {
                Ok(()) => Node::Group(GroupNode {
                    is_faulty: !v2::is_canonical_group(&text.bytes),
                    ..GroupNode::new(ZarrFormat::V2, Some(text.document))
                }),
                Err(error) if v2::is_faulty_group(&text.bytes) => {
                    Node::faulty_group(ZarrFormat::V2, text.document, &error)
                }
                Err(error) => Node::broken(text.document, error, BrokenKind::Group),
            }));
        }
        self.rarer_node_at(prefix)
    }

    /// Records the consolidated metadata of the group of v2 at `prefix`, or its absence. The catalog learns of copies when
    /// the group is read, so that the group is read again when they are made.
    fn note_copies(&mut self, prefix: &Prefix) -> Result<(), Error> {
        if self.hierarchy.catalog.is_none() {
            return Ok(());
        }
        let key = prefix.key(b".zmetadata")?;
        let ahead = self.ahead.as_ref();
        match ahead.filter(|ahead| ahead.has_asked(&key)) {
            Some(ahead) => {
                let meta = ahead.get(&key).map(|opened| *opened.object.meta());
                self.observations.add_object(&key, meta.as_ref());
            }
            None => self.observations.add_unobserved(),
        }
        Ok(())
    }

    /// Looks for the kinds of documents that are rarer than those of v2 and v3. Most prefixes have none of them, so all
    /// of them are requested at once.
    fn rarer_node_at(&mut self, prefix: &Prefix) -> Result<Option<Node>, Error> {
        let rarer = NAMES.get(3..).unwrap_or_default();
        let keys: Vec<Key> = rarer
            .iter()
            .map(|name| prefix.key(name))
            .collect::<Result<_, _>>()?;
        let ahead = self.ahead.as_ref();
        let ahead = ahead.filter(|ahead| keys.iter().all(|key| ahead.has_asked(key)));
        let stats = match ahead {
            Some(ahead) => {
                let found = keys.iter().map(|key| ahead.get(key));
                let meta = |opened: &OpenDocument| Stat::of_object(*opened.object.meta());
                found.map(|opened| Ok(opened.map(meta))).collect()
            }
            None => self.hierarchy.store.stat_many(&keys),
        };
        for (key, stat) in keys.iter().zip(stats) {
            let Some(meta) = super::meta_in(key, stat)? else {
                self.observations.add_object(key, None);
                continue;
            };
            let found = self.rarer_node_of(prefix, key, meta)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The node of the rarer document at `key` with these attributes, if it is one.
    fn rarer_node_of(
        &mut self,
        prefix: &Prefix,
        key: &Key,
        meta: ObjectMeta,
    ) -> Result<Option<Node>, Error> {
        let name = key.name();
        let text = match name {
            b".zmetadata" => self.read_copies(key)?,
            name if is_common_name(name) => self.read_common(key, meta)?,
            _ => self.read(key)?,
        };
        let Some(text) = text else { return Ok(None) };
        Ok(match name {
            b".zmetadata" if v2::is_consolidated(&text.bytes) => {
                Some(Node::Group(GroupNode::new(ZarrFormat::V2, None)))
            }
            b"meta" if v1::is_array(&text.bytes) => {
                let (attributes, metadata) = (prefix.key(b"attrs")?, v1::parse_array(&text.bytes));
                let document = text.into_document();
                Some(Node::array(prefix, document, Some(attributes), metadata))
            }
            b"meta" => self.damaged_v1(prefix, text)?,
            b"__zmeta__" => {
                let metadata = pre_v1::parse_array(&text.bytes);
                let (attributes, document) = (prefix.key(b"__zattr__")?, text.into_document());
                Some(Node::array(prefix, document, Some(attributes), metadata))
            }
            b"attributes.json" => self.n5_node(prefix, text)?,
            _ => None,
        })
    }

    /// Like [`DocumentSearch::read`], for consolidated metadata: `None` when it is too large to be
    /// read.
    fn read_copies(&mut self, key: &Key) -> Result<Option<DocumentText>, Error> {
        match self.read(key) {
            Err(Error::Metadata { key: name, error }) => {
                log::warn!("{name}: {error}");
                self.unparsed = None;
                let meta = self.hierarchy.object_meta(key)?;
                self.observations.add_object(key, meta.as_ref());
                Ok(None)
            }
            text => text,
        }
    }

    /// Checks the parts of `document` that its outline leaves out, because views edit the whole
    /// document. The inner result is about the document, the outer one about reading it.
    fn check_outlined(&mut self, document: &Document) -> Result<Result<(), FormatError>, Error> {
        // The caller holds memory for the outline.
        let whole = self
            .hierarchy
            .read(&document.key, Holding::SOURCE.and_one());
        let whole = self
            .noting_unparsed(&document.key, whole)?
            .filter(|whole| whole.document.meta.version == document.meta.version)
            .ok_or(Error::Stale)?;
        Ok(check_outlined(&whole.bytes))
    }

    fn zarr_json(
        &mut self,
        prefix: &Prefix,
        text: DocumentText,
        omitted: OmittedParts,
    ) -> Result<Node, Error> {
        let (parsed, document) = (v3::parse(&text.bytes), text.document.clone());
        let error = match parsed {
            Ok(NodeMetadata::Array(metadata)) => {
                if let Err(error) = check_array_document_len(document.meta.size()) {
                    return Ok(Node::array(prefix, document, None, Err(error)));
                }
                if omitted != OmittedParts::Nothing
                    && let Err(error) = self.check_outlined(&document)?
                {
                    return Ok(Node::broken(document, error, BrokenKind::Array));
                }
                let document = if omitted == OmittedParts::Nothing {
                    text.into_document()
                } else {
                    document
                };
                return Ok(Node::array(prefix, document, None, Ok(*metadata)));
            }
            Ok(NodeMetadata::Group) => {
                return Ok(Node::Group(GroupNode {
                    is_only_long: omitted == OmittedParts::Attributes,
                    ..GroupNode::new(ZarrFormat::V3, Some(document))
                }));
            }
            Err(error) => error,
        };
        // A draft is another format than the version that it became.
        let reads_drafts = self.hierarchy.read_as.is_none();
        Ok(match draft::parse_entry(&text.bytes) {
            Ok(Some(stated)) if reads_drafts => {
                // The layout may change without a change of this document.
                self.observations.add_unobserved();
                let layout = self.hierarchy.draft_layout(prefix, stated)?;
                Node::Group(GroupNode {
                    draft: Some(layout.into()),
                    ..GroupNode::new(ZarrFormat::Draft, Some(document))
                })
            }
            _ if v3::is_faulty_group(&text.bytes) => {
                Node::faulty_group(ZarrFormat::V3, document, &error)
            }
            outcome => {
                let kind = match v3::said_type(&text.bytes) {
                    Some(v3::NodeType::Group) => BrokenKind::Group,
                    Some(v3::NodeType::Array) => BrokenKind::Array,
                    None => BrokenKind::Unknown,
                };
                Node::broken(document, outcome.err().unwrap_or(error), kind)
            }
        })
    }
}
