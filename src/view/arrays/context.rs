//! Metadata around an array that describes its axes: coordinate arrays, and the groups above it.

use std::sync::Arc;

use super::super::options::ViewKind;
use super::super::rights::is_refused;
use super::Arrays;
use super::inputs::Inputs;
use super::lock;
use crate::budget::Holding;
use crate::error::{Error, FormatError};
use crate::fresh::LastCheck;
use crate::hierarchy::{ArrayNode, Node};
use crate::metadata::attributes::{MEMORY_PER_BYTE, compact};
use crate::metadata::{Attributes, DocumentName, ZarrFormat, write};
use crate::plain::{Ancestor, GeoFacts, GeoSources, Surroundings, axes, axes_of_n5};
use crate::store::{Access, Key, ObjectMeta, Prefix, StatKind};
use crate::threads::Class;
use crate::view::nodes::path::NodePath;

/// Attributes of groups with longer JSON are not kept in memory.
const KEPT_GROUP_BYTES: u64 = 64 << 10;
/// The most groups above an array that are searched for `multiscales`, beginning with the nearest.
pub(super) const MOST_ANCESTORS: usize = 8;

/// The JSON of the attributes of a group, or the reason why it cannot be read.
type GroupText = Result<Vec<u8>, FormatError>;

/// The attributes of a group, and the documents that they were read from.
#[derive(Debug)]
pub(in crate::view) struct GroupFacts {
    pub(super) attributes: Attributes,
    /// The length of the JSON of all attributes, in bytes.
    pub(super) attribute_bytes: u64,
    /// The reason why some or all attributes are left out.
    pub(super) left_out: Option<FormatError>,
    pub(super) inputs: Inputs,
    /// When `inputs` were last seen unchanged.
    pub(super) checked: LastCheck,
}

/// The facts about an array in the documents around it.
pub(super) struct Around {
    pub(super) surroundings: Surroundings,
    /// The place of the array on the earth.
    pub(super) geo: GeoFacts,
}

impl Arrays {
    /// The attributes of the coordinate arrays of the array at `path`: one-dimensional arrays in
    /// the same group that have the name and the length of a dimension.
    fn coordinates(
        &self,
        path: &Prefix,
        node: &ArrayNode,
        dimension_names: &[Option<String>],
        inputs: &mut Inputs,
    ) -> Result<Vec<(String, Attributes)>, Error> {
        let mut coordinates = Vec::new();
        let Some(group) = path.to_key().map(|key| key.parent()) else {
            return Ok(coordinates);
        };
        for (name, &length) in dimension_names.iter().zip(&node.metadata.shape) {
            let Some(name) = name else { continue };
            let Some(child) = self.child_of(&group, name, inputs)? else {
                continue;
            };
            // A consolidated document with a copy of the array's document has copies for its coordinates, too.
            let hierarchy = &self.tree.hierarchy;
            if hierarchy.has_copied_child(&group, name.as_bytes())? == Some(false) {
                continue;
            }
            if self.are_unlisted(&group, &[name]) {
                // These documents may turn the array into a coordinate.
                for name in [DocumentName::ZarrJson, DocumentName::ZArray] {
                    let key = child.key(name.as_str().as_bytes())?;
                    inputs.observations.add_object(&key, None);
                }
                continue;
            }
            let resolved = match self.tree.resolve(ViewKind::Arrays, &child) {
                // The array is shown without a coordinate that the store refuses.
                Err(Error::Store(error)) if is_refused(&error) => {
                    inputs.add_refused();
                    continue;
                }
                resolved => resolved?,
            };
            let coordinate = match resolved.node {
                Node::Array(coordinate) => coordinate,
                Node::Implicit => {
                    self.observe_absent(&child, inputs)?;
                    continue;
                }
                Node::Group(_) | Node::Broken(_) => {
                    self.observe_documents(&child, inputs)?;
                    continue;
                }
            };
            if coordinate.metadata.shape.as_slice() != [length] {
                let document = &coordinate.document;
                inputs
                    .observations
                    .add_object(&document.key, Some(&document.meta));
                continue;
            }
            let mut own = Inputs::default();
            match self.short_attributes(&coordinate, &mut own) {
                Ok(Ok(attributes)) if may_mention(&own, node, inputs) => {
                    inputs.add_all(&own);
                    coordinates.push((name.clone(), attributes));
                }
                // The files of a coordinate report its errors. The attributes of a coordinate that fewer users may read
                // are not used.
                Ok(_) => inputs.observations.add_all(&own.observations),
                Err(Error::Store(error)) if is_refused(&error) => {
                    inputs.observations.add_all(&own.observations);
                    inputs.add_refused();
                }
                Err(error) => {
                    self.tree.hierarchy.forget(&child);
                    return Err(error);
                }
            }
        }
        Ok(coordinates)
    }

    /// The facts about the array at `path` in the documents around it, and the groups above it that were searched for
    /// them.
    pub(super) fn around(
        &self,
        path: &Prefix,
        node: &ArrayNode,
        (dimension_names, attributes): (&[Option<String>], &Attributes),
        inputs: &mut Inputs,
    ) -> Result<(Around, Vec<Arc<GroupFacts>>), Error> {
        let (mut ancestors, mut groups) = (Vec::new(), Vec::new());
        let mut below = path.clone();
        while let Some(key) = below.to_key().filter(|_| ancestors.len() < MOST_ANCESTORS) {
            below = key.parent();
            let relative = below.strip(path.as_bytes()).unwrap_or_default();
            let Ok(relative) = str::from_utf8(relative) else {
                break;
            };
            let found = self.group_facts(&below)?;
            groups.push(Arc::clone(&found));
            if may_mention(&found.inputs, node, inputs) {
                inputs.add_all(&found.inputs);
                ancestors.push((relative.to_owned(), self.text_name_of(&below), found));
            } else {
                inputs.observations.add_all(&found.inputs.observations);
            }
        }
        let ancestors = ancestors.iter().map(|(path, name, group)| Ancestor {
            path,
            name,
            attributes: &group.attributes,
        });
        let ancestors: Vec<_> = ancestors.collect();
        if node.metadata.zarr_format == ZarrFormat::N5 {
            let axes = axes_of_n5(dimension_names, attributes, &ancestors);
            let surroundings = Surroundings {
                axes,
                ..Surroundings::default()
            };
            let geo = GeoFacts::default();
            return Ok((Around { surroundings, geo }, groups));
        }
        let coordinates = self.coordinates(path, node, dimension_names, inputs)?;
        let coordinates = coordinates.iter();
        let coordinates: Vec<_> = coordinates
            .map(|(name, attributes)| (name.as_str(), attributes))
            .collect();
        let shape = &node.metadata.shape;
        let surroundings = axes(shape, dimension_names, &ancestors, &coordinates);
        let sources = GeoSources {
            shape,
            dimension_names,
            attributes,
            ancestors: &ancestors,
            coordinates: &coordinates,
            grid_mapping: None,
        };
        let geo = self.geo_facts(path, node, sources, inputs)?;
        Ok((Around { surroundings, geo }, groups))
    }

    /// Reads the attributes of the group at `path`, and of the groups above it, on other threads if
    /// the store is remote. The files of all arrays in the group need them.
    pub(in crate::view) fn read_groups_ahead(self: &Arc<Self>, path: &Prefix) {
        if self.tree.loader.is_local() {
            return;
        }
        for group in path.with_ancestors().take(MOST_ANCESTORS) {
            let arrays = Arc::clone(self);
            // A caller that needs the attributes gets the error.
            let read = move || drop(arrays.group_facts(&group));
            self.tree.loader.threads().submit(Class::Names, read);
        }
    }

    /// The attributes of the group at `path`; none if the group has none, or they cannot be read. Errors are only
    /// logged, because these attributes merely describe arrays.
    pub(super) fn group_facts(&self, path: &Prefix) -> Result<Arc<GroupFacts>, Error> {
        let is_trusted = |known: &Arc<GroupFacts>| {
            let freshness = self.tree.freshness_in_a_row();
            freshness.trusts(&known.checked)
        };
        let known = lock(&self.groups).get(path).filter(is_trusted);
        if let Some(known) = known {
            return Ok(known);
        }
        // A local store answers sooner than another thread could be waited for.
        let is_local = self.tree.loader.is_local();
        let _read = (!is_local).then(|| self.group_reads.begin_or_wait(path));
        let known = lock(&self.groups).get(path);
        let begun = LastCheck::now();
        if let Some(known) = known
            && self.are_current(&known.inputs.observations, &known.checked)
        {
            return Ok(known);
        }
        let resolved = self.tree.resolve(ViewKind::Arrays, path)?;
        let (text, own) = self.read_group(&resolved)?;
        let read = match text {
            Ok(text) => Ok(self.read_attributes(&text, Holding::SOURCE.and_one())?),
            Err(error) => Err(error),
        };
        let bytes = read.as_ref().map_or(0, |read| read.bytes);
        let is_long = bytes > self.most_tree_bytes();
        if is_long {
            self.tree.warn_once(&(path, "long attributes"), || {
                format!("{path}: attributes of {bytes} bytes: long ones are left out of the files of groups (see --cache-size)")
            });
        }
        let mut left_out = is_long.then(|| {
            let what = "the size of the attributes in bytes (see --cache-size)";
            FormatError::too_large(what, bytes, self.most_tree_bytes())
        });
        let read = read.and_then(|read| read.attributes);
        let attributes = read.unwrap_or_else(|error| {
            self.tree.warn_once(&(path, "attributes"), || {
                format!("{path}: attributes: {error}; they are left out")
            });
            left_out = Some(error);
            Attributes::default()
        });
        let is_kept = (is_long || bytes <= KEPT_GROUP_BYTES) && own.observations.are_settled();
        let facts = Arc::new(GroupFacts {
            attributes,
            attribute_bytes: bytes,
            left_out,
            inputs: Inputs {
                // The files of the arrays below the group depend on these observations.
                observations: own.observations.shared(),
                ..own
            },
            checked: begun,
        });
        if is_kept {
            // Only short members of long attributes were parsed.
            let attributes = bytes.min(KEPT_GROUP_BYTES).saturating_mul(MEMORY_PER_BYTE);
            let inputs = facts.inputs.observations.memory_bytes();
            let removed = lock(&self.groups).put(path, Arc::clone(&facts), attributes + inputs);
            drop(removed);
        }
        Ok(facts)
    }

    /// The attributes of the group at `path` as compact JSON, of any length.
    pub(super) fn compact_group_attributes(
        &self,
        path: &Prefix,
    ) -> Result<Result<String, FormatError>, Error> {
        let resolved = self.tree.resolve(ViewKind::Arrays, path)?;
        let (text, _) = self.read_group(&resolved)?;
        Ok(text.and_then(|text| match text.as_slice() {
            [] => Ok("{}".to_owned()),
            text => compact(text),
        }))
    }

    /// The JSON of the attributes of a group, empty if the group has none, or the reason why it cannot be read; and the
    /// documents that decide this.
    fn read_group(&self, resolved: &NodePath) -> Result<(GroupText, Inputs), Error> {
        let sources = self.tree.loader.sources();
        let mut own = Inputs::default();
        let document = resolved.group_document().map(|document| &document.key);
        let holder = match &resolved.node {
            Node::Group(group) if group.format == ZarrFormat::V2 => Some(
                resolved
                    .path
                    .key(DocumentName::ZAttrs.as_str().as_bytes())?,
            ),
            _ => document.cloned(),
        };
        let mut others = documents_of_group(resolved)?;
        let mut attributes = Ok(Vec::new());
        if let Some(key) = holder {
            match self.group_attributes_at(resolved, &key) {
                Ok(Some((meta, text))) => {
                    others.retain(|other| *other != key);
                    own.add_document(sources, &key, &meta)?;
                    attributes = Ok(text);
                }
                Ok(None) => {}
                Err(Error::Metadata { key, error }) => {
                    self.tree.warn_once(&(&resolved.path, "attributes"), || {
                        format!("{key}: attributes: {error}; they are left out")
                    });
                    attributes = Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        let stats = sources.store().stat_many(&others);
        for (key, stat) in others.iter().zip(stats) {
            let found = stat?.filter(|stat| stat.kind == StatKind::Object);
            match found.map(|stat| stat.meta) {
                Some(meta) if Some(key) == document => own.add_document(sources, key, &meta)?,
                meta => own.observations.add_object(key, meta.as_ref()),
            }
        }
        Ok((attributes, own))
    }

    /// The attributes in the document of a group at `key`, and the version that they were read from; `None` if there is
    /// no such document.
    fn group_attributes_at(
        &self,
        resolved: &NodePath,
        key: &Key,
    ) -> Result<Option<(ObjectMeta, Vec<u8>)>, Error> {
        let format = match &resolved.node {
            Node::Group(group) => group.format,
            _ => ZarrFormat::V3,
        };
        let is_separate = DocumentName::of(key.name()) == Some(DocumentName::ZAttrs);
        let Some(text) = self.tree.hierarchy.read(key, Holding::SOURCE)? else {
            return Ok(None);
        };
        let attributes = if is_separate {
            Some(text.bytes)
        } else {
            write::group_attributes_v2(format, &text.bytes)
                .map_err(|error| Error::in_document(key, error))?
        };
        Ok(Some((text.document.meta, attributes.unwrap_or_default())))
    }
}

/// The documents whose presence, or contents, decide the attributes of a group.
fn documents_of_group(resolved: &NodePath) -> Result<Vec<Key>, Error> {
    if let Some(draft) = resolved.draft() {
        return Ok(vec![draft.group_document()?]);
    }
    let mut documents = Vec::new();
    for name in [DocumentName::ZarrJson, DocumentName::ZAttrs] {
        documents.push(resolved.path.key(name.as_str().as_bytes())?);
    }
    let own = resolved
        .group_document()
        .map(|document| document.key.clone());
    documents.extend(own.filter(|key| !documents.contains(key)));
    Ok(documents)
}

/// Whether all users who may read the files of the array `node`, which are made from `inputs` so far, may read `others`
/// too.
pub(super) fn may_mention(others: &Inputs, node: &ArrayNode, inputs: &Inputs) -> bool {
    let access: Access = node.document.meta.access();
    let shown = access.with_mode(inputs.readers.bits_for(access));
    others.readers.include(shown, &inputs.readers)
}
