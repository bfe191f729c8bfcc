//! What lies around an array and says something about it: coordinates, and groups above.

use std::sync::Arc;

use super::super::View;
use super::super::options::ViewKind;
use super::inputs::Inputs;
use super::lock;
use crate::budget::Holding;
use crate::error::Error;
use crate::hierarchy::{ArrayNode, Node, TreePlace};
use crate::metadata::attributes::MEMORY_PER_BYTE;
use crate::metadata::{Attributes, DocumentName};
use crate::plain::{Axis, axes};
use crate::store::Prefix;

/// Attributes of groups whose JSON is longer are not kept at hand.
const KEPT_GROUP_BYTES: usize = 64 << 10;
/// Groups around an array that are asked for multiscales, from the nearest on.
const MOST_ANCESTORS: usize = 8;

/// A group and what its documents say.
#[derive(Debug)]
pub(in crate::view) struct GroupFacts {
    attributes: Arc<Attributes>,
    inputs: Inputs,
}

impl View {
    /// The attributes of the coordinates beside the array at `path`: of the arrays of one
    /// dimension that are called as one of its dimensions.
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
            let Some(child) = self.child_called(&group, name.as_bytes())? else {
                continue;
            };
            let Node::Array(coordinate) = self.place(ViewKind::Arrays, &child)?.node else {
                // It may come to be one.
                for name in [DocumentName::ZarrJson, DocumentName::ZArray] {
                    let key = child.key(name.as_str().as_bytes())?;
                    inputs.add_object(&key, self.object_meta(&key)?.as_ref());
                }
                continue;
            };
            if coordinate.metadata.shape.as_slice() != [length] {
                let document = &coordinate.document;
                inputs.add_object(&document.key, Some(&document.meta));
                continue;
            }
            match self.short_attributes(&coordinate, inputs) {
                // What is wrong with a coordinate is said where that is shown.
                Ok(read) => coordinates.extend(read.ok().map(|found| (name.clone(), found))),
                Err(error) => {
                    self.hierarchy.forget(&child);
                    return Err(error);
                }
            }
        }
        Ok(coordinates)
    }

    /// The dimensions of the array at `path` in space and time.
    pub(super) fn axes_of(
        &self,
        path: &Prefix,
        node: &ArrayNode,
        dimension_names: &[Option<String>],
        inputs: &mut Inputs,
    ) -> Result<Vec<Axis>, Error> {
        let mut ancestors = Vec::new();
        let mut below = path.clone();
        while let Some(key) = below.to_key().filter(|_| ancestors.len() < MOST_ANCESTORS) {
            below = key.parent();
            let relative = below.strip(path.as_bytes()).unwrap_or_default();
            let Ok(relative) = str::from_utf8(relative) else {
                break;
            };
            let found = self.group_attributes_at(&below, inputs)?;
            ancestors.push((relative.to_owned(), found));
        }
        let coordinates = self.coordinates(path, node, dimension_names, inputs)?;
        let ancestors: Vec<(&str, &Attributes)> = ancestors
            .iter()
            .map(|(path, attributes)| (path.as_str(), attributes.as_ref()))
            .collect();
        let coordinates: Vec<(&str, &Attributes)> = coordinates
            .iter()
            .map(|(name, attributes)| (name.as_str(), attributes))
            .collect();
        Ok(axes(dimension_names, &ancestors, &coordinates))
    }

    /// The attributes of the group at `path`, none where it has none or they cannot be read as
    /// such: they say something about arrays, whose own are held to more.
    pub(super) fn group_attributes_at(
        &self,
        path: &Prefix,
        inputs: &mut Inputs,
    ) -> Result<Arc<Attributes>, Error> {
        let known = lock(&self.arrays.groups).get(path).cloned();
        if let Some(known) = known
            && self.are_unchanged(&known.inputs)?
        {
            inputs.add_all(&known.inputs);
            return Ok(Arc::clone(&known.attributes));
        }
        let mut own = Inputs::default();
        let place = self.place(ViewKind::Arrays, path)?;
        match &place.keys {
            TreePlace::Draft(draft) => {
                let key = draft.group_document()?;
                own.add_object(&key, self.object_meta(&key)?.as_ref());
            }
            TreePlace::Store | TreePlace::BelowArray => {
                for name in [DocumentName::ZarrJson, DocumentName::ZAttrs] {
                    let key = path.key(name.as_str().as_bytes())?;
                    own.add_object(&key, self.object_meta(&key)?.as_ref());
                }
            }
        }
        let text = match self.group_attributes(path, &place) {
            Ok(text) => text.unwrap_or_default(),
            Err(Error::Metadata { key, error }) => {
                self.say_once(&(path, "attributes"), || {
                    format!("{key}: attributes: {error}; they are left out")
                });
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        if !self.are_unchanged(&own)? {
            self.hierarchy.forget(path);
            return Err(Error::Stale);
        }
        inputs.add_all(&own);
        let bytes = text.len() as u64;
        let is_long = bytes > self.most_tree_bytes();
        let tree = if is_long { 0 } else { bytes };
        let holding = Holding::SOURCE.and_one().to_hold("attributes");
        let memory = tree.saturating_mul(MEMORY_PER_BYTE);
        let _reservation = self.shared.cache.reserve(memory, holding)?;
        let attributes = if text.is_empty() {
            Ok(Attributes::default())
        } else if is_long {
            self.say_once(&(path, "long attributes"), || {
                format!("{path}: attributes of {bytes} bytes: long ones are left out of the files of groups (see --cache-size)")
            });
            Attributes::parse_short(&text)
        } else {
            Attributes::parse(&text)
        };
        let attributes = attributes.unwrap_or_else(|error| {
            self.say_once(&(path, "attributes"), || {
                format!("{path}: attributes: {error}; they are left out")
            });
            Attributes::default()
        });
        let attributes = Arc::new(attributes);
        if (is_long || text.len() <= KEPT_GROUP_BYTES) && own.checked().is_some() {
            let facts = GroupFacts {
                attributes: Arc::clone(&attributes),
                inputs: own,
            };
            lock(&self.arrays.groups).put(path.clone(), Arc::new(facts));
        }
        Ok(attributes)
    }
}
