//! The facts about an array that formats need, from its own documents and from those around it.

use std::sync::{Arc, Weak};

use super::super::options::ViewKind;
use super::Arrays;
use super::context::GroupFacts;
use super::inputs::{Inputs, hold};
use super::lock;
use crate::budget::{Holding, Reservation};
use crate::error::{Error, FormatError};
use crate::fresh::{LastCheck, Observations};
use crate::hierarchy::{ArrayDocuments, ArrayNode, Node};
use crate::metadata::attributes::{MEMORY_PER_BYTE, check_len, compact};
use crate::metadata::{Attributes, ZarrFormat, dimension_names};
use crate::plain::{Array, Axis, FileFormat, GeoFacts, Selected, Selection, Strings};
use crate::store::Prefix;
use crate::view::nodes::node::{ShownArray, ShownNode};

/// Attributes with longer JSON are not kept in memory, unless the budget has room for them.
const KEPT_BYTES: u64 = 4 << 10;
/// Facts of arrays with larger models are not kept in memory.
const KEPT_MODEL_BYTES: u64 = 64 << 10;
/// How often an array is read again because it has changed while its facts were gathered.
const MOST_TRIES: usize = 3;
/// The memory of the budget that the reader of attributes holds: the array's document and the document of its
/// attributes.
const HOLDING_DOCUMENTS: Holding = Holding::SOURCE.and_one().and_one();

/// Attributes with more JSON than this part of the cache are long: only their short members are
/// parsed.
const TREE_PART: u64 = 64;
/// The longest attributes of a grid mapping variable, in bytes of JSON.
const MOST_GRID_MAPPING_BYTES: u64 = 256 << 10;
/// An estimate of the memory of a channel and its name.
const MEMORY_PER_CHANNEL: u64 = 128;

/// Attributes with JSON of up to this many bytes are never long.
const LEAST_TREE_BYTES: u64 = 256 << 10;

/// Parsed attributes.
pub(super) struct ReadAttributes {
    /// The parsed attributes; of long ones, only the short members. Otherwise the reason why they cannot be parsed.
    pub(super) attributes: Result<Attributes, FormatError>,
    /// The length of the JSON, in bytes.
    pub(super) bytes: u64,
    /// Memory of the parsed attributes.
    reserved: Option<Reservation>,
}

/// An array, and the facts from its documents.
#[derive(Debug)]
pub(in crate::view) struct ArrayFacts {
    pub(super) array: Arc<ShownArray>,
    /// Empty where the attributes cannot be read.
    pub(super) attributes: Attributes,
    /// The length of the JSON of all attributes, and of those that were parsed completely, in
    /// bytes.
    pub(super) attribute_bytes: u64,
    pub(super) tree_bytes: u64,
    /// The error for formats that need all attributes, if only the short members were parsed.
    pub(super) too_long: Option<FormatError>,
    /// The reason why the attributes cannot be read. The elements can be read without them.
    pub(super) attributes_error: Option<FormatError>,
    pub(super) dimension_names: Vec<Option<String>>,
    /// Whether all dimensions have names, without which xarray opens no array of v2.
    is_named: bool,
    pub(super) axes: Vec<Axis>,
    /// The reason why the axes have no spacings and units.
    pub(super) axes_error: Option<FormatError>,
    /// The georeference of the array in the documents.
    pub(super) geo: GeoFacts,
    /// The name of the image of which the array is a level.
    image: Option<String>,
    pub(super) inputs: Inputs,
    /// When `inputs` were last seen unchanged.
    checked: LastCheck,
    /// The groups above the array, whose documents are among `inputs`, too. While these groups are kept, their
    /// documents are checked once for all arrays below them.
    groups: Vec<Weak<GroupFacts>>,
    /// When those of `inputs` that are not the documents of `groups` were last seen unchanged.
    own_checked: LastCheck,
    /// Memory of long attributes that are kept.
    reserved: Option<Reservation>,
}

impl ArrayFacts {
    /// The description of the array for `format`.
    ///
    /// # Errors [`FormatError`] when the elements neither have a fixed size nor are `strings`, or when `format` would
    /// have to describe attributes that cannot be read.
    pub(super) fn array(
        &self,
        id: usize,
        name: &str,
        format: FileFormat,
        strings: Option<Arc<Strings>>,
    ) -> Result<Array, FormatError> {
        if let Some(error) = self.attributes_error.as_ref().or(self.too_long.as_ref())
            && !format.tells_only_elements()
        {
            return Err(error.clone());
        }
        let data_type = self.array.chunked.layout().data_type();
        if data_type.is_variable() && strings.is_none() {
            let name = data_type.name.as_str();
            return Err(FormatError::inexpressible(
                "data type",
                name,
                format.title(),
            ));
        }
        Ok(Array {
            strings,
            ..self.described(id, name)
        })
    }

    /// When all inputs were last seen unchanged.
    pub(super) fn last_checked(&self) -> LastCheck {
        let groups: Option<Vec<_>> = self.groups.iter().map(Weak::upgrade).collect();
        match groups {
            Some(groups) => groups
                .iter()
                .fold(self.own_checked.clone(), |checked, group| {
                    checked.or_older(&group.checked)
                }),
            None => self.checked.clone(),
        }
    }

    /// An estimate of the memory of the facts.
    pub(super) fn memory_bytes(&self) -> u64 {
        let attributes = self.tree_bytes.saturating_mul(MEMORY_PER_BYTE);
        let inputs = self.inputs.observations.memory_bytes();
        let channels = self.axes.iter().map(|axis| axis.channels.len());
        let channels = MEMORY_PER_CHANNEL * channels.sum::<usize>() as u64;
        self.array.node.model_bytes + attributes + inputs + channels + self.geo.memory_bytes()
    }

    /// The elements of a selection, or all elements; `None` if the selection is outside of the
    /// array.
    pub(super) fn selected(&self, selection: Option<&Selection>) -> Option<Selected> {
        let shape = &self.array.node.metadata.shape;
        let Some(selection) = selection else {
            return Some(Selected::whole(shape));
        };
        // A selection names dimensions by their own names, or else by the names of the axes.
        let axes = self.dimension_names.iter().zip(&self.axes);
        let names = axes.map(|(own, axis)| own.clone().or_else(|| axis.name.clone()));
        let names: Vec<_> = names.collect();
        selection.of(shape, &names).ok()
    }

    /// Like [`ArrayFacts::array`], without any check.
    pub(super) fn described(&self, id: usize, name: &str) -> Array {
        let layout = self.array.chunked.layout();
        let metadata = &self.array.node.metadata;
        let is_v2 = metadata.zarr_format == ZarrFormat::V2;
        Array {
            id,
            name: name.to_owned(),
            image: self.image.clone(),
            shape: metadata.shape.clone(),
            data_type: layout.data_type().clone(),
            strings: None,
            fill_value: layout.fill_value().clone(),
            dimension_names: self.dimension_names.clone(),
            attributes: self.attributes.clone(),
            axes: self.axes.clone(),
            geo: self.geo.known.clone(),
            fill_is_missing: is_v2 && layout.fill_value().is_defined() && self.is_named,
            chunk: Some(layout.shown_grid().longest_chunk().into()),
        }
    }
}

impl Arrays {
    /// The facts of the array at `path`; `None` if no array is shown.
    ///
    /// # Errors
    /// [`Error`] when its documents cannot be read.
    pub(super) fn array_facts(&self, path: &Prefix) -> Result<Option<Arc<ArrayFacts>>, Error> {
        for _ in 0..MOST_TRIES {
            match self.try_array_facts(path) {
                // The array changed while its documents were read.
                Err(Error::Stale) => self.forget_node(path)?,
                found => return found,
            }
        }
        self.try_array_facts(path)
    }

    /// Whether `observations`, which were last checked at `checked`, are unchanged. They are not checked again within a
    /// moment.
    pub(super) fn are_current(&self, observations: &Observations, checked: &LastCheck) -> bool {
        let freshness = self.tree.freshness_in_a_row();
        hold(observations, freshness, checked, self.tree.loader.sources())
    }

    /// Whether all inputs of `facts` are unchanged.
    fn has_current_inputs(&self, facts: &ArrayFacts) -> bool {
        let groups: Option<Vec<_>> = facts.groups.iter().map(Weak::upgrade).collect();
        let Some(groups) = groups else {
            return self.are_current(&facts.inputs.observations, &facts.checked);
        };
        let is_current =
            |group: &Arc<GroupFacts>| self.are_current(&group.inputs.observations, &group.checked);
        let checked = &facts.own_checked;
        let has_current_own = self.tree.freshness_in_a_row().trusts(checked)
            || self.are_current(&facts.inputs.observations.unshared(), checked);
        has_current_own && groups.iter().all(is_current)
    }

    /// Forgets the facts of the arrays and groups at `prefixes`, and their nodes and names.
    pub(super) fn forget_facts(&self, prefixes: impl IntoIterator<Item = Prefix>) {
        for prefix in prefixes {
            lock(&self.facts).pop(&prefix);
            lock(&self.groups).pop(&prefix);
            lock(&self.idle.members).pop(&prefix);
            lock(&self.listed).pop(&prefix);
            self.tree.hierarchy.forget(&prefix);
        }
    }

    /// Forgets the node at `path`, so that it is looked up again.
    pub(super) fn forget_node(&self, path: &Prefix) -> Result<(), Error> {
        if let Node::Array(node) = self.tree.resolve(ViewKind::Arrays, path)?.node {
            self.tree.forget_array(&node, path);
        }
        self.tree.hierarchy.forget(path);
        Ok(())
    }

    fn try_array_facts(&self, path: &Prefix) -> Result<Option<Arc<ArrayFacts>>, Error> {
        let resolved = self.tree.resolve(ViewKind::Arrays, path)?;
        let Node::Array(node) = &resolved.node else {
            return Ok(None);
        };
        let known = lock(&self.facts).get(path);
        let large = lock(&self.idle.facts).clone();
        for known in known.into_iter().chain(large) {
            if Arc::ptr_eq(&known.array.node, node)
                && known.array.path == *path
                && self.has_current_inputs(&known)
            {
                return Ok(Some(known));
            }
        }
        let array = match self.tree.shown_at(&resolved)? {
            ShownNode::Array(array) => array,
            ShownNode::Plain | ShownNode::Unusable(_) => return Ok(None),
        };
        let facts = Arc::new(self.make_facts(path, node, array)?);
        if !facts.inputs.observations.are_settled() {
            return Ok(Some(facts));
        }
        let model = facts.array.node.model_bytes;
        if facts.tree_bytes <= KEPT_BYTES && model <= KEPT_MODEL_BYTES {
            let bytes = facts.memory_bytes();
            let removed = lock(&self.facts).put(path, Arc::clone(&facts), bytes);
            drop(removed);
        } else if facts.reserved.is_some() {
            // One of them is kept, for the next format of the same array. The previous one is dropped after the lock is
            // released.
            let last = lock(&self.idle.facts).replace(Arc::clone(&facts));
            drop(last);
        }
        Ok(Some(facts))
    }

    fn make_facts(
        &self,
        path: &Prefix,
        node: &ArrayNode,
        array: Arc<ShownArray>,
    ) -> Result<ArrayFacts, Error> {
        let begun = LastCheck::now();
        let mut inputs = Inputs::default();
        let read = match self.attributes_text(node, &mut inputs)? {
            Ok((text, _held)) => self.read_attributes(&text, HOLDING_DOCUMENTS)?,
            Err(error) => ReadAttributes {
                attributes: Err(error),
                bytes: 0,
                reserved: None,
            },
        };
        let (attributes, attributes_error) = match read.attributes {
            Ok(attributes) => (attributes, None),
            Err(error) => {
                let key = node.attributes.as_ref().unwrap_or(&node.document.key);
                let error = error.within("attributes");
                self.tree.warn_once(key, || format!("{key}: {error}"));
                (Attributes::default(), Some(error))
            }
        };
        let most = self.most_tree_bytes();
        let what = "the size of the attributes (see --cache-size)";
        let too_long = FormatError::check_limit(what, read.bytes, most).err();
        // Only short members were parsed, which take little memory.
        let tree_bytes = if too_long.is_some() { 0 } else { read.bytes };
        let is_kept = tree_bytes > KEPT_BYTES
            && tree_bytes.saturating_mul(MEMORY_PER_BYTE)
                <= self.tree.loader.cache().budget().limit() / 8;
        let reserved = read.reserved.filter(|_| is_kept).map(|mut reserved| {
            reserved.keep();
            reserved
        });
        let names = dimension_names(&node.metadata, |path| texts(&attributes, path));
        let is_named = names.is_some();
        let dimension_names = names.unwrap_or_else(|| vec![None; node.metadata.shape.len()]);
        // The chunks may be stored apart from the document.
        inputs.add_search(self.tree.loader.sources(), &node.prefix)?;
        let (around, groups) =
            self.around(path, node, (&dimension_names, &attributes), &mut inputs)?;
        let surroundings = around.surroundings;
        if let Some(error) = &surroundings.left_out {
            self.tree
                .warn_once(&(path, "axes"), || format!("{path}: {error}"));
        }
        for problem in around.geo.problems.iter().map(ToString::to_string) {
            self.tree.warn_once(&(path, &problem), || {
                format!("{path}: no georeference: {problem}")
            });
        }
        Ok(ArrayFacts {
            array,
            attributes,
            attribute_bytes: read.bytes,
            tree_bytes,
            too_long,
            attributes_error,
            dimension_names,
            is_named,
            axes: surroundings.axes,
            geo: around.geo,
            image: surroundings.image,
            axes_error: surroundings.left_out,
            inputs,
            checked: begun.clone(),
            groups: groups.iter().map(Arc::downgrade).collect(),
            own_checked: begun,
            reserved,
        })
    }

    /// The most bytes of JSON that are parsed completely.
    pub(super) fn most_tree_bytes(&self) -> u64 {
        (self.tree.loader.cache().budget().limit() / TREE_PART).max(LEAST_TREE_BYTES)
    }

    /// The JSON of the attributes of an array, empty if it has none, and the documents that have this JSON.
    fn attributes_text(
        &self,
        node: &ArrayNode,
        inputs: &mut Inputs,
    ) -> Result<Result<(Vec<u8>, ArrayDocuments), FormatError>, Error> {
        let sources = self.tree.loader.sources();
        if let Some(key) = &node.attributes {
            let meta = self.tree.object_meta(key)?;
            // Documents that are too long are not read at all.
            let bytes = meta.map_or(0, |meta| meta.size());
            if let Err(error) = check_len(usize::try_from(bytes).unwrap_or(usize::MAX)) {
                inputs.add_document(sources, &node.document.key, &node.document.meta)?;
                inputs.observations.add_object(key, meta.as_ref());
                return Ok(Err(error));
            }
        }
        let documents = self.documents_of(node)?;
        inputs.add_document(sources, &node.document.key, &node.document.meta)?;
        match (&node.attributes, documents.attributes()) {
            (Some(key), Some(document)) => inputs.add_document(sources, key, &document.meta)?,
            (Some(key), None) => inputs.observations.add_object(key, None),
            (None, _) => {}
        }
        let format = node.metadata.zarr_format;
        let text = Attributes::text_of_array(format, &documents.source());
        Ok(text.map(|text| (text.unwrap_or_default(), documents)))
    }

    /// The attributes of a grid mapping variable. They are short, but their members may be longer than those that
    /// [`Arrays::short_attributes`] reads.
    pub(super) fn grid_mapping_attributes(
        &self,
        node: &ArrayNode,
        inputs: &mut Inputs,
    ) -> Result<Result<Attributes, FormatError>, Error> {
        let text = self.attributes_text(node, inputs)?;
        Ok(text.and_then(|(text, _held)| {
            let what = "the size of the attributes of a grid mapping in bytes";
            FormatError::check_limit(what, text.len() as u64, MOST_GRID_MAPPING_BYTES)?;
            match text.as_slice() {
                [] => Ok(Attributes::default()),
                text => Attributes::parse(text),
            }
        }))
    }

    /// The short members of the attributes of an array.
    pub(super) fn short_attributes(
        &self,
        node: &ArrayNode,
        inputs: &mut Inputs,
    ) -> Result<Result<Attributes, FormatError>, Error> {
        let text = self.attributes_text(node, inputs)?;
        Ok(text.and_then(|(text, _held)| match text.as_slice() {
            [] => Ok(Attributes::default()),
            text => Attributes::parse_short(text),
        }))
    }

    /// The attributes with the JSON `text`; no attributes if it is empty. `holding` is the memory of the budget that
    /// the caller holds.
    pub(super) fn read_attributes(
        &self,
        text: &[u8],
        holding: Holding,
    ) -> Result<ReadAttributes, Error> {
        let bytes = text.len() as u64;
        let mut reserved = None;
        let attributes = if text.is_empty() {
            Ok(Attributes::default())
        } else if bytes > self.most_tree_bytes() {
            Attributes::parse_short(text)
        } else {
            let memory = bytes.saturating_mul(MEMORY_PER_BYTE);
            let holding = holding.to_hold("attributes");
            reserved = Some(self.tree.loader.cache().reserve(memory, holding)?);
            Attributes::parse(text)
        };
        Ok(ReadAttributes {
            attributes,
            bytes,
            reserved,
        })
    }

    /// The attributes of an array as compact JSON, of any length.
    pub(super) fn compact_attributes(
        &self,
        node: &ArrayNode,
    ) -> Result<Result<String, FormatError>, Error> {
        let documents = self.documents_of(node)?;
        let text = Attributes::text_of_array(node.metadata.zarr_format, &documents.source());
        Ok(text.and_then(|text| match text {
            Some(text) => compact(&text),
            None => Ok("{}".to_owned()),
        }))
    }

    /// The documents of `node`, in the version that it was parsed from: attributes of another
    /// version may not match its shape and data type.
    fn documents_of(&self, node: &ArrayNode) -> Result<ArrayDocuments, Error> {
        let documents = self.tree.hierarchy.documents(node)?.ok_or(Error::Stale)?;
        if documents.own().meta.version != node.document.meta.version {
            return Err(Error::Stale);
        }
        Ok(documents)
    }
}

/// The list of texts at `path` in the attributes.
fn texts(attributes: &Attributes, path: &[&str]) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    let value = rest.iter().try_fold(attributes.get(first)?, |value, name| {
        value.as_object()?.get(name)
    });
    let texts = value?.as_list()?.iter().map(|item| item.as_text());
    texts.map(|text| text.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::fresh::Freshness;
    use crate::plain::Layout;
    use crate::store::{Key, MemoryStore};
    use crate::view::{View, ViewKind, ViewOptions};

    #[test]
    fn a_file_is_trusted_no_longer_than_its_facts() {
        let store = Arc::new(MemoryStore::new());
        let document = serde_json::json!({
            "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "compressor": null, "fill_value": 0,
            "filters": null, "order": "C",
        });
        let old = SystemTime::now() - Duration::from_secs(3600);
        let key = Key::parse(b"a/.zarray").unwrap();
        store.insert_at(key, document.to_string().into_bytes(), old);
        let options = ViewOptions {
            views: vec![ViewKind::Arrays],
            freshness: Freshness::Checked(Duration::from_secs(3600)),
            ..ViewOptions::default()
        };
        let view = View::new(store, options).unwrap();
        let path = Prefix::parse(b"a").unwrap();
        let facts = view.arrays.array_facts(&path).unwrap().unwrap();
        let checked = format!("{:?}", facts.last_checked());
        while format!("{:?}", LastCheck::now()) == checked {
            std::thread::yield_now();
        }
        let file = facts.parts(Layout::of_bytes(Vec::new()));
        assert_eq!(format!("{:?}", file.checked), checked);
    }
}
