//! What formats are told of an array: out of its documents, and those of the groups around it.

use std::sync::Arc;

use super::super::View;
use super::super::options::ViewKind;
use super::super::shown::{Shown, ShownArray};
use super::inputs::Inputs;
use super::lock;
use crate::budget::{Holding, Reservation};
use crate::codec::VariableLength;
use crate::error::{Error, FormatError};
use crate::hierarchy::{ArrayNode, Node};
use crate::metadata::attributes::{MEMORY_PER_BYTE, check_len};
use crate::metadata::{Attributes, ZarrFormat};
use crate::plain::{Array, Axis, FileFormat};
use crate::store::{Key, Prefix};

/// Attributes whose JSON is longer are not kept at hand.
const KEPT_BYTES: u64 = 4 << 10;
/// How often a node that changes while it is looked at is looked at again.
const MOST_TRIES: usize = 3;
/// Attribute in which xarray keeps the names of a v2 array's dimensions.
const ARRAY_DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// Attributes, how long they are in bytes of JSON, and the memory that is theirs.
pub(super) type ReadAttributes = (Result<Attributes, FormatError>, u64, Option<Reservation>);

/// An array and what its documents say.
#[derive(Debug)]
pub(in crate::view) struct ArrayFacts {
    pub(super) array: Arc<ShownArray>,
    /// None where they cannot be read.
    pub(super) attributes: Attributes,
    /// How long they are, in bytes of JSON.
    pub(super) attribute_bytes: u64,
    /// Why the attributes cannot be read. The elements are what they are without them.
    pub(super) attributes_error: Option<FormatError>,
    pub(super) dimension_names: Vec<Option<String>>,
    pub(super) axes: Vec<Axis>,
    pub(super) inputs: Inputs,
    /// For attributes that are kept although they are long.
    reserved: Option<Reservation>,
}

impl ArrayFacts {
    /// As `format` is told of it.
    ///
    /// # Errors
    /// When its elements have no fixed size, which no format of segments can hold; when its
    /// attributes cannot be read, and the format would say what they do.
    pub(super) fn array(
        &self,
        id: usize,
        name: &str,
        format: FileFormat,
    ) -> Result<Array, FormatError> {
        if let Some(error) = &self.attributes_error
            && !matches!(format, FileFormat::Raw | FileFormat::Npy)
        {
            return Err(error.clone());
        }
        let data_type = self.array.reader.layout().data_type();
        if data_type.is_variable() {
            let name = data_type.name.as_str();
            return Err(FormatError::inexpressible(
                "data type",
                name,
                format.title(),
            ));
        }
        Ok(self.described(id, name))
    }

    /// What selections call the dimensions: by their names, or else by those of the axes.
    pub(super) fn axis_names(&self) -> Vec<Option<String>> {
        let named = self.dimension_names.iter().zip(&self.axes);
        named
            .map(|(name, axis)| name.clone().or_else(|| axis.name.clone()))
            .collect()
    }

    /// As [`ArrayFacts::array`], whatever its elements are.
    pub(super) fn described(&self, id: usize, name: &str) -> Array {
        let layout = self.array.reader.layout();
        let metadata = &self.array.node.metadata;
        let is_v2 = metadata.zarr_format == ZarrFormat::V2;
        Array {
            id,
            name: name.to_owned(),
            shape: metadata.shape.clone(),
            data_type: layout.data_type().clone(),
            fill_value: layout.fill_value().clone(),
            dimension_names: self.dimension_names.clone(),
            attributes: self.attributes.clone(),
            axes: self.axes.clone(),
            fill_is_missing: is_v2
                && layout.fill_value().is_defined()
                && self.attributes.get(ARRAY_DIMENSIONS).is_some(),
        }
    }
}

impl View {
    /// The facts of the array at `path`; `None` where there is none.
    ///
    /// # Errors
    /// [`Error`] when it cannot be decoded, or its attributes cannot be read.
    pub(super) fn array_facts(&self, path: &Prefix) -> Result<Option<Arc<ArrayFacts>>, Error> {
        for _ in 0..MOST_TRIES {
            match self.try_array_facts(path) {
                // It changed while it was looked at.
                Err(Error::Stale) => self.forget_node(path)?,
                found => return found,
            }
        }
        self.try_array_facts(path)
    }

    /// Forgets what is remembered of the node at `path`.
    pub(super) fn forget_node(&self, path: &Prefix) -> Result<(), Error> {
        if let Node::Array(node) = self.place(ViewKind::Arrays, path)?.node {
            self.hierarchy.forget(&node.prefix);
            self.hierarchy.forget(&node.document.key.parent());
        }
        self.hierarchy.forget(path);
        Ok(())
    }

    fn try_array_facts(&self, path: &Prefix) -> Result<Option<Arc<ArrayFacts>>, Error> {
        let place = self.place(ViewKind::Arrays, path)?;
        let Node::Array(node) = &place.node else {
            return Ok(None);
        };
        let known = lock(&self.arrays.facts).get(path).cloned();
        let large = lock(&self.arrays.large_facts).clone();
        for known in known.into_iter().chain(large) {
            if Arc::ptr_eq(&known.array.node, node)
                && known.array.path == *path
                && self.are_unchanged(&known.inputs)
            {
                return Ok(Some(known));
            }
        }
        let array = match self.shown_at(ViewKind::Arrays, path, &place)? {
            Shown::Array(array) => array,
            Shown::Plain | Shown::Unusable(_) => return Ok(None),
        };
        let facts = Arc::new(self.make_facts(path, node, array)?);
        if facts.inputs.checked().is_none() {
            return Ok(Some(facts));
        }
        if facts.attribute_bytes <= KEPT_BYTES {
            lock(&self.arrays.facts).put(path.clone(), Arc::clone(&facts));
        } else if facts.reserved.is_some() {
            // One, for the next format of the same array. The last one goes outside of the lock.
            let last = lock(&self.arrays.large_facts).replace(Arc::clone(&facts));
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
        let mut inputs = Inputs::default();
        let (attributes, bytes, reserved) = self.array_attributes(node, &mut inputs)?;
        let (attributes, attributes_error) = match attributes {
            Ok(attributes) => (attributes, None),
            Err(error) => {
                let key = node.attributes.as_ref().unwrap_or(&node.document.key);
                let error = error.within("attributes");
                self.say_once(key, || format!("{key}: {error}"));
                (Attributes::default(), Some(error))
            }
        };
        // Others are not asked for memory while this one holds more than a little.
        let is_kept = bytes > KEPT_BYTES
            && bytes.saturating_mul(MEMORY_PER_BYTE) <= self.shared.cache.budget().limit() / 8;
        let reserved = reserved.filter(|_| is_kept);
        let dimension_names = dimension_names(node, &attributes);
        // Chunks may lie apart from the document.
        inputs.add_way(&self.shared.sources, &node.prefix)?;
        let axes = self.axes_of(path, node, &dimension_names, &mut inputs)?;
        Ok(ArrayFacts {
            array,
            attributes,
            attribute_bytes: bytes,
            attributes_error,
            dimension_names,
            axes,
            inputs,
            reserved,
        })
    }

    /// The attributes of an array, how long they are, and the memory that is theirs.
    pub(super) fn array_attributes(
        &self,
        node: &ArrayNode,
        inputs: &mut Inputs,
    ) -> Result<ReadAttributes, Error> {
        let sources = &self.shared.sources;
        if let Some(key) = &node.attributes {
            let meta = self.object_meta(key)?;
            // What is too long is not even read.
            let bytes = meta.map_or(0, |meta| meta.size());
            if let Err(error) = check_len(usize::try_from(bytes).unwrap_or(usize::MAX)) {
                inputs.add_document(sources, &node.document.key, &node.document.meta)?;
                inputs.add_object(key, meta.as_ref());
                return Ok((Err(error), 0, None));
            }
        }
        let documents = self.hierarchy.documents(node)?.ok_or(Error::Stale)?;
        // Shape and type are of the version that was parsed: attributes of another are not theirs.
        if documents.own().meta.version != node.document.meta.version {
            return Err(Error::Stale);
        }
        inputs.add_document(sources, &node.document.key, &node.document.meta)?;
        match (&node.attributes, documents.attributes()) {
            (Some(key), Some(document)) => inputs.add_document(sources, key, &document.meta)?,
            (Some(key), None) => inputs.add_object(key, None),
            (None, _) => {}
        }
        let source = documents.source();
        let bytes = source.attributes.map_or(source.document.len(), <[u8]>::len) as u64;
        let memory = bytes.saturating_mul(MEMORY_PER_BYTE);
        let holding = Holding::SOURCE.and_one();
        let reservation = self.shared.cache.reserve(memory, holding)?;
        let attributes = Attributes::of_array(node.metadata.zarr_format, &source);
        Ok((attributes, bytes, Some(reservation)))
    }

    /// Logs a warning about `subject`, once.
    pub(in crate::view) fn say_once<T: std::hash::Hash>(
        &self,
        subject: &T,
        message: impl FnOnce() -> String,
    ) {
        let subject = super::super::attributes::hash(subject);
        if lock(&self.arrays.said).put(subject, ()).is_none() {
            log::warn!("{}", message());
        }
    }
}

pub(super) fn in_document(key: &Key, error: FormatError) -> Error {
    Error::Metadata {
        key: key.to_string(),
        error,
    }
}

/// A name for each dimension, where there is one.
fn dimension_names(node: &ArrayNode, attributes: &Attributes) -> Vec<Option<String>> {
    let rank = node.metadata.shape.len();
    let own = node.metadata.dimension_names.clone();
    own.filter(|names| names.len() == rank)
        .or_else(|| {
            let names = attributes.get(ARRAY_DIMENSIONS)?.as_list()?;
            let names: Vec<_> = names
                .iter()
                .map(|name| name.as_text().map(str::to_owned))
                .collect();
            (names.len() == rank && names.iter().all(Option::is_some)).then_some(names)
        })
        .unwrap_or_else(|| vec![None; rank])
}

/// Whether it holds strings or bytes of any length.
pub(super) fn is_text(facts: &ArrayFacts) -> bool {
    let kind = facts.array.reader.layout().variable_length();
    matches!(kind, Some(VariableLength::Text | VariableLength::Bytes))
}
