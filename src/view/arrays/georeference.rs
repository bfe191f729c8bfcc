//! The place of an array on the earth: the variable that its attributes name for that, and the coordinates along its
//! axes y and x. The coordinates are elements: they are read for a file that holds a transform, and again after one of
//! their chunks has changed.

use std::sync::Arc;

use super::super::options::ViewKind;
use super::super::rights::{is_refused, more_private};
use super::Arrays;
use super::audience::Audience;
use super::context::may_mention;
use super::facts::ArrayFacts;
use super::inputs::Inputs;
use super::strings::chunks_of;
use crate::error::{Error, FormatError};
use crate::grid::Dims;
use crate::hierarchy::{ArrayNode, Node};
use crate::load::Deadline;
use crate::metadata::{Attributes, DocumentName};
use crate::plain::geo::{CoordinateNumbers, Crs, Spacing, grid_mapping};
use crate::plain::{FileFormat, GeoFacts, GeoSources, Georeference, Selected};
use crate::store::{Key, Prefix};

/// The most coordinates along an axis, and the most chunks that hold them.
const MOST_COORDINATES: u64 = 1 << 20;
const MOST_CHUNKS: u64 = 256;

impl Arrays {
    /// The georeference of the array at `path` in the documents. `sources` has all of them but the grid mapping.
    pub(super) fn geo_facts(
        &self,
        path: &Prefix,
        node: &ArrayNode,
        sources: GeoSources<'_>,
        inputs: &mut Inputs,
    ) -> Result<GeoFacts, Error> {
        let group = sources.ancestors.first().map(|group| group.attributes);
        let name = grid_mapping::name(sources.attributes, sources.dimension_names, group);
        let found = match name {
            Some(name) => self.grid_mapping(path, node, name, inputs)?,
            None => Ok(None),
        };
        let (mapping, problem) = match found {
            Ok(mapping) => (mapping, None),
            Err(error) => (None, Some(error.within("grid_mapping"))),
        };
        let mut facts = GeoSources {
            grid_mapping: mapping.as_ref(),
            ..sources
        }
        .find();
        facts.problems.extend(problem);
        let has_crs = facts.known.as_ref().is_some_and(|geo| geo.crs.is_some());
        if let Some(name) = sources.attributes.text("grid_mapping")
            && mapping.is_none()
            && facts.problems.is_empty()
            && !has_crs
        {
            let problem = format!("no array of the variable {name:?} is found");
            let problem = FormatError::document("grid_mapping", problem);
            facts.problems.push(problem);
        }
        Ok(facts)
    }

    /// The value of GDAL's attribute `_CRS`, which is JSON, for the array at `path`, if the store has the CRS of the
    /// array in another form. `None` if it has no CRS, or if the documents around the array cannot be used to find
    /// one.
    pub(in crate::view) fn gdal_crs(&self, path: &Prefix) -> Result<Option<String>, Error> {
        let resolved = self.tree.resolve(ViewKind::Arrays, path)?;
        let Node::Array(node) = &resolved.node else {
            return Ok(None);
        };
        if node.metadata.shape.len() < 2 {
            return Ok(None);
        }
        let facts = match self.array_facts(path) {
            Ok(Some(facts)) => facts,
            Ok(None) | Err(Error::Metadata { .. } | Error::TooLarge { .. }) => return Ok(None),
            Err(Error::Store(error)) if is_refused(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_known = facts.too_long.is_none() && facts.attributes_error.is_none();
        if !is_known || facts.attributes.get("_CRS").is_some() {
            return Ok(None);
        }
        let crs = facts.geo.known.as_ref().and_then(|geo| geo.crs.as_ref());
        Ok(crs.and_then(Crs::gdal_attribute))
    }

    /// The reasons why an array has no georeference, or not all of it, in files of the requested formats.
    pub(super) fn georeference_problems(
        &self,
        facts: &ArrayFacts,
    ) -> Result<Vec<FormatError>, Error> {
        let mut problems = facts.geo.problems.clone();
        let formats = &self.tree.options.arrays.files;
        if formats.iter().any(|format| format.tells_transform()) {
            let mut inputs = facts.inputs.clone();
            let found = self.with_coordinates(facts, &mut inputs)?;
            problems.extend(found.err());
        }
        Ok(problems)
    }

    /// The attributes of the grid mapping variable `name` for the array at `path`. The variable is the array called
    /// `name` in the nearest group that has one, from the group of the array upwards. `None` if no group has one, or
    /// if the store refuses it.
    fn grid_mapping(
        &self,
        path: &Prefix,
        node: &ArrayNode,
        name: &str,
        inputs: &mut Inputs,
    ) -> Result<Result<Option<Attributes>, FormatError>, Error> {
        let Some(group) = path.to_key().map(|key| key.parent()) else {
            return Ok(Ok(None));
        };
        for group in group.with_ancestors() {
            let Some(child) = self.child_of(&group, name, inputs)? else {
                continue;
            };
            let resolved = match self.tree.resolve(ViewKind::Arrays, &child) {
                // The array is shown without a variable that the store refuses.
                Err(Error::Store(error)) if is_refused(&error) => {
                    inputs.add_refused();
                    return Ok(Ok(None));
                }
                // The array is also shown without a variable whose document is wrong.
                Err(Error::Metadata { error, .. }) => {
                    self.observe_documents(&child, inputs)?;
                    return Ok(Err(error));
                }
                resolved => resolved?,
            };
            let variable = match resolved.node {
                Node::Array(variable) => variable,
                Node::Broken(broken) => {
                    self.observe_documents(&child, inputs)?;
                    return Ok(Err(broken.error.clone()));
                }
                Node::Implicit => {
                    self.observe_absent(&child, inputs)?;
                    continue;
                }
                Node::Group(_) => {
                    self.observe_documents(&child, inputs)?;
                    continue;
                }
            };
            let mut own = Inputs::default();
            let attributes = match self.grid_mapping_attributes(&variable, &mut own) {
                Err(Error::Store(error)) if is_refused(&error) => {
                    inputs.add_refused();
                    Ok(None)
                }
                Err(error) => {
                    self.tree.hierarchy.forget(&child);
                    return Err(error);
                }
                Ok(_) if !may_mention(&own, node, inputs) => Err(more_private()),
                Ok(attributes) => {
                    inputs.add_all(&own);
                    return Ok(attributes.map(Some));
                }
            };
            inputs.observations.add_all(&own.observations);
            return Ok(attributes);
        }
        Ok(Ok(None))
    }

    /// The keys of the documents that may turn the node at `path` into another one.
    fn documents_at(&self, path: &Prefix) -> Result<Vec<Key>, Error> {
        // The document of a draft's node lies apart. Another node may be damaged.
        if let Ok(resolved) = self.tree.resolve(ViewKind::Arrays, path)
            && let Some(draft) = resolved.draft()
        {
            return Ok(vec![draft.array_document()?]);
        }
        let names = [DocumentName::ZarrJson, DocumentName::ZArray];
        let keys = names.map(|name| path.key(name.as_str().as_bytes()));
        Ok(keys.into_iter().collect::<Result<_, _>>()?)
    }

    /// The path of the child `name` of a group, whether or not it exists. In a draft, the document of an absent child is
    /// added to `inputs`, and the child has no path.
    pub(super) fn child_of(
        &self,
        group: &Prefix,
        name: &str,
        inputs: &mut Inputs,
    ) -> Result<Option<Prefix>, Error> {
        let child = self.child_called(group, name.as_bytes())?;
        if child.is_none()
            && self
                .tree
                .resolve(ViewKind::Arrays, group)?
                .draft()
                .is_some()
            && let Ok(key) = group.key(name.as_bytes())
        {
            self.observe_documents(&key.to_prefix(), inputs)?;
        }
        Ok(child)
    }

    /// Observes the documents that may turn the node at `path` into an array. If one of them is there, the absence of the
    /// array was trusted for too long, and the node is looked up again.
    pub(super) fn observe_absent(&self, path: &Prefix, inputs: &mut Inputs) -> Result<(), Error> {
        if self.observe_documents(path, inputs)? {
            inputs.observations.add_unobserved();
            self.tree.hierarchy.forget(path);
        }
        Ok(())
    }

    /// Observes the documents that may turn the node at `path` into another one. Returns whether one of them is there.
    pub(super) fn observe_documents(
        &self,
        path: &Prefix,
        inputs: &mut Inputs,
    ) -> Result<bool, Error> {
        let mut are_there = false;
        for key in self.documents_at(path)? {
            let found = self.tree.object_meta(&key)?;
            are_there |= found.is_some();
            inputs.observations.add_object(&key, found.as_ref());
        }
        Ok(are_there)
    }

    /// The georeference of an array with a transform from its coordinates, where a file of `format` tells it and the
    /// documents do not. The coordinates are added to `inputs`. `None` if they give no transform, which is logged.
    pub(super) fn geo_of_coordinates(
        &self,
        facts: &ArrayFacts,
        format: FileFormat,
        inputs: &mut Inputs,
    ) -> Result<Option<Arc<Georeference>>, Error> {
        if !format.tells_transform() {
            return Ok(None);
        }
        let found = self.with_coordinates(facts, inputs)?;
        Ok(found.unwrap_or_else(|error| {
            let path = &facts.array.path;
            self.tree.warn_once(&(path, "coordinates"), || {
                format!("{path}: no transform: {error}")
            });
            None
        }))
    }

    /// The georeference of an array with a transform from its coordinates; `None` if it has none. The coordinates are
    /// added to `inputs`.
    fn with_coordinates(
        &self,
        facts: &ArrayFacts,
        inputs: &mut Inputs,
    ) -> Result<Result<Option<Arc<Georeference>>, FormatError>, Error> {
        let path = &facts.array.path;
        let group = path.to_key().map(|key| key.parent());
        let (Some(names), Some(group)) = (&facts.geo.coordinates, group) else {
            return Ok(Ok(None));
        };
        let bits = inputs
            .readers
            .bits_for(facts.array.node.document.meta.access());
        let audience = self.audience(&facts.array.node.document.meta, bits);
        let deadline = self.tree.loader.deadline();
        let mut spacings = Vec::new();
        for (name, axis) in names.iter().zip(facts.geo.axes) {
            let Some(child) = self.child_called(&group, name.as_bytes())? else {
                return Ok(Ok(None));
            };
            let length = facts.array.node.metadata.shape.get(axis).copied();
            let spacing = match self.spacing(&child, length, (audience, deadline), inputs) {
                Err(Error::Store(error)) if is_refused(&error) => {
                    inputs.add_refused();
                    Err(more_private())
                }
                Err(Error::Chunk { error, .. } | Error::Metadata { error, .. }) => Err(error),
                Err(Error::TooLarge { needed, limit, .. }) => {
                    let what = "the memory of a chunk of coordinates in bytes";
                    Err(FormatError::too_large(what, needed, limit))
                }
                spacing => spacing?,
            };
            match spacing {
                Ok(spacing) => spacings.push(spacing),
                Err(error) => return Ok(Err(error.within(name))),
            }
        }
        let spacings = <[Spacing; 2]>::try_from(spacings).ok();
        Ok(Ok(spacings.map(|spacings| {
            Arc::new(facts.geo.with_coordinates(spacings))
        })))
    }

    /// The spacing of the coordinates at `path`, which must be `length` in number; or the reason why there is no spacing.
    fn spacing(
        &self,
        path: &Prefix,
        length: Option<u64>,
        readers: (Audience, Deadline),
        inputs: &mut Inputs,
    ) -> Result<Result<Spacing, FormatError>, Error> {
        let Some(facts) = self.array_facts(path)? else {
            let error = FormatError::document("metadata", "cannot be decoded");
            return Ok(Err(error));
        };
        inputs.observations.add_all(&facts.inputs.observations);
        let layout = facts.array.chunked.layout();
        let (Some(length), &[found]) = (length, facts.array.node.metadata.shape.as_slice()) else {
            return Err(Error::Stale);
        };
        if found != length {
            return Err(Error::Stale);
        }
        let numbers = match CoordinateNumbers::of(layout.data_type(), &facts.attributes) {
            Ok(numbers) => numbers,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) =
            FormatError::check_limit("the number of coordinates", length, MOST_COORDINATES)
        {
            return Ok(Err(error));
        }
        let selected = Selected::whole(&facts.array.node.metadata.shape);
        let chunks = match chunks_of(layout.shown_grid(), &selected) {
            Ok(chunks) if chunks.total <= MOST_CHUNKS => chunks,
            Ok(_) | Err(_) => {
                let what = "the number of chunks of coordinates";
                return Ok(Err(FormatError::above_limit(what, MOST_CHUNKS)));
            }
        };
        let all: Vec<Dims> = chunks.collect();
        let coordinates = Coordinates {
            arrays: self,
            facts: &facts,
            numbers,
            readers,
        };
        let Some((first, others)) = all.split_first() else {
            return Ok(Spacing::of(&numbers, (0.0, 0.0), 0));
        };
        let first = coordinates.of_chunk(first, inputs)?;
        let (between, last) = match others.split_last() {
            Some((last, between)) => (between, coordinates.of_chunk(last, inputs)?),
            None => (others, Vec::new()),
        };
        let ends = (first.first(), last.last().or(first.last()));
        let (Some(&(_, from)), Some(&(_, to))) = ends else {
            return Err(Error::Stale);
        };
        let spacing = match Spacing::of(&numbers, (from, to), length) {
            Ok(spacing) => spacing,
            Err(error) => return Ok(Err(error)),
        };
        let check = |places: Vec<(u64, f64)>| {
            let mut places = places.into_iter();
            places.try_for_each(|(index, place)| spacing.check(index, place))
        };
        let mut checked = check(first);
        for chunk in between {
            if checked.is_ok() {
                checked = check(coordinates.of_chunk(chunk, inputs)?);
            }
        }
        let checked = checked.and_then(|()| check(last));
        Ok(checked.map(|()| spacing))
    }
}

/// A coordinate array whose elements are read.
struct Coordinates<'a> {
    arrays: &'a Arrays,
    facts: &'a ArrayFacts,
    numbers: CoordinateNumbers,
    readers: (Audience, Deadline),
}

impl Coordinates<'_> {
    /// The coordinates in the chunk `indices`, each with its index.
    fn of_chunk(&self, indices: &Dims, inputs: &mut Inputs) -> Result<Vec<(u64, f64)>, Error> {
        let (audience, deadline) = self.readers;
        deadline.check(|| self.facts.array.path.to_string())?;
        let loader = &self.arrays.tree.loader;
        let chunked = &self.facts.array.chunked;
        let layout = chunked.layout();
        let span = layout.shown_grid().chunks().axes().iter().zip(indices);
        let span = span.map(|(axis, &index)| axis.span(index)).next().flatten();
        let (start, length) = span.ok_or(Error::Stale)?;
        let whole = self
            .facts
            .array
            .node
            .metadata
            .shape
            .first()
            .copied()
            .unwrap_or(0);
        let length = length.min(whole.saturating_sub(start));
        let key = chunked.stored_key(indices)?;
        let object = loader.open_stored(chunked, indices, None)?;
        let meta = object.as_ref().map(|object| object.meta());
        inputs.observations.add_object(&key, meta);
        let mut block = None;
        if let Some(object) = &object {
            audience.check_object(&key, object.meta())?;
            audience.check_search(loader.sources(), &key.parent())?;
            if loader.locate(chunked, object, indices)?.is_some() {
                block = Some(loader.decoded(chunked, object, indices)?);
            }
        }
        let size = usize::try_from(layout.data_type().item_size).unwrap_or(usize::MAX);
        let fill = layout.fill_value().bytes();
        let mut elements = block.as_ref().map(|block| block.chunks_exact(size));
        let mut found = Vec::new();
        for index in start..start.saturating_add(length) {
            let element = match &mut elements {
                Some(elements) => elements.next().ok_or(Error::Stale)?,
                None => fill,
            };
            found.push((index, self.numbers.value(element).ok_or(Error::Stale)?));
        }
        Ok(found)
    }
}
