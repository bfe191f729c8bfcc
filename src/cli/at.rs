//! `--info STORE PATH --at i,j,k`: where one element is stored, and its value.

use std::sync::Arc;

use serde_json::{Value, json};

use super::config::{InfoConfig, ViewOptions};
use super::error::CliError;
use super::json_element::json_element;
use super::store::{SAVED_BY, budget_beside, waiting_in};
use crate::budget::Budget;
use crate::dtype::{Element, element_text};
use crate::error::{Error, FormatError};
use crate::escape::Text;
use crate::fresh::Freshness;
use crate::grid::{Dims, rank_of};
use crate::hierarchy::{ArrayNode, Hierarchy, Node};
use crate::load::{ChunkedArray, Loader, LocatedChunk, Shards};
use crate::store::{Key, Prefix, Store, WaitingParts};
use crate::view::View;

/// The place and the value of the element `indices` of the array at `path`.
///
/// # Errors
/// PATH is no array, the indices do not fit it, or the chunk cannot be read.
pub(super) fn describe_element(
    store: Arc<dyn Store>,
    path: &Prefix,
    indices: &[i128],
    config: &InfoConfig,
) -> Result<Text, CliError> {
    let (options, hierarchy) = for_one_look(&store, config);
    let found = hierarchy.tree_node(path).map_err(CliError::failed)?;
    let Node::Array(node) = found.node else {
        return Err(CliError::Failed(format!(
            "{path}: no array is here; --at wants the path of an array"
        )));
    };
    let shape = &node.metadata.shape;
    let indices = from_the_start(indices, shape).ok_or_else(|| {
        CliError::Failed(format!(
            "--at {}: {path} has the shape ({})",
            list(indices, ","),
            list(shape, ", ")
        ))
    })?;
    let indices = indices.as_slice();
    let waiting = waiting_in(&*store);
    // The view starts no thread here: this thread loads the chunk.
    let view = View::new(store, options).map_err(CliError::failed)?;
    let found = find(&node, view.loader(), indices, &waiting).map_err(CliError::failed)?;
    Ok(if config.json {
        Text::new().json(found.as_json(path, indices))
    } else {
        found.as_text(path, indices)
    })
}

/// The options of a view, and the hierarchy, for a command that looks at `store` once.
pub(super) fn for_one_look(
    store: &Arc<dyn Store>,
    config: &InfoConfig,
) -> (ViewOptions, Hierarchy) {
    let (freshness, read_as) = (Freshness::Immutable, config.read_as);
    let options = ViewOptions {
        read_as,
        freshness,
        cache_budget_bytes: budget_beside(&**store, config.cache_budget_bytes),
        max_chunk_bytes: config.max_chunk_bytes,
        timeout: config.timeout,
        ..ViewOptions::default()
    };
    let budget = Budget::with_patience(options.cache_budget_bytes, config.timeout);
    let hierarchy = Hierarchy::of_format(Arc::clone(store), budget, freshness, read_as);
    (options, hierarchy)
}

/// The indices in an array of this shape, in which negative indices count from the end of their axis; `None` if no
/// element has these indices.
fn from_the_start(indices: &[i128], shape: &[u64]) -> Option<Vec<u64>> {
    let from_the_start = |(&index, &length): (&i128, &u64)| {
        let length = i128::from(length);
        let index = if index < 0 {
            index.checked_add(length)?
        } else {
            index
        };
        u64::try_from(index).ok().filter(|_| index < length)
    };
    let fits = indices.len() == shape.len();
    fits.then(|| indices.iter().zip(shape).map(from_the_start).collect())?
}

/// The place where an element is stored, and its value.
struct ElementLocation {
    /// The innermost chunk.
    chunk: Dims,
    /// The indices within the array that the chunk covers, for each dimension: the first, and one
    /// past the last.
    covers: Vec<(u64, u64)>,
    /// The position of the element in its chunk, in C order.
    number: u64,
    /// The indices of the shard, where there are shards.
    shard: Option<Dims>,
    key: Key,
    /// Whether there is an object at the key.
    has_object: bool,
    /// The place of the chunk in the object; `None` if it consists of the fill value.
    located: Option<LocatedChunk>,
    element: Element,
    value: String,
    /// Whether the latest version of the chunk waits in a journal.
    is_in_journal: bool,
}

fn find(
    node: &Arc<ArrayNode>,
    loader: &Arc<Loader>,
    indices: &[u64],
    waiting: &WaitingParts,
) -> Result<ElementLocation, Error> {
    let in_document = |error| Error::Metadata {
        key: node.document.key.to_string(),
        error,
    };
    let array = Arc::new(ChunkedArray::new(node, Shards::Expand).map_err(in_document)?);
    let layout = array.layout();
    let grid = layout.shown_grid();
    let outside = || {
        let key = &node.document.key;
        Error::internal(format!("{key}: no chunk with the element {indices:?}"))
    };
    let (mut chunk, mut within, mut lengths) = (Dims::new(), Dims::new(), Dims::new());
    let mut covers = Vec::new();
    let axes = grid.chunks().axes().iter().zip(grid.shape());
    for (&index, (chunks, &end)) in indices.iter().zip(axes) {
        let number = chunks.chunk_at(index);
        let (first, length) = chunks.span(number).ok_or_else(outside)?;
        chunk.push(number);
        within.push(index - first);
        lengths.push(length);
        covers.push((first, first.saturating_add(length).min(end)));
    }
    let number = rank_of(&within, &lengths).ok_or_else(outside)?;
    let object = loader.open_stored(&array, &chunk, None)?;
    let located = match &object {
        Some(object) => loader.locate(&array, object, &chunk)?,
        None => None,
    };
    let value = if let (Some(object), Some(_)) = (&object, &located) {
        let block = loader.decoded(&array, object, &chunk)?;
        element_of(&array, &block, number).map_err(in_document)?
    } else {
        element_text(layout.data_type(), layout.fill_value().bytes())
    };
    let key = array.stored_key(&chunk)?;
    let shown = layout.shown_in(&layout.stored_indices(&chunk));
    let shown = shown.ok_or_else(outside)?;
    let counts: Dims = shown.iter().map(|axis| axis.count).collect();
    let in_object = chunk
        .iter()
        .zip(&shown)
        .map(|(index, axis)| index - axis.first);
    let in_object: Dims = in_object.collect();
    let part = rank_of(&in_object, &counts).map(|number| (key.clone(), number));
    Ok(ElementLocation {
        covers,
        number,
        shard: layout.is_sharded().then(|| layout.stored_indices(&chunk)),
        key,
        is_in_journal: part.is_some_and(|part| waiting.contains(&part)),
        element: layout.data_type().element.clone(),
        chunk,
        has_object: object.is_some(),
        located,
        value,
    })
}

/// The element of this number in a decoded chunk, as text.
fn element_of(array: &ChunkedArray, chunk: &[u8], number: u64) -> Result<String, FormatError> {
    let data_type = array.layout().data_type();
    let outside = || FormatError::encoded("chunk", format!("no element {number}"));
    if let Some(codec) = array.layout().variable_length()
        && data_type.is_variable()
    {
        if !codec.has_items() {
            return Ok(format!("(an object of {})", codec.name()));
        }
        let item = codec.item(chunk, number).ok_or_else(outside)?;
        return Ok(element_text(data_type, item));
    }
    let item = |size: usize| {
        let start = usize::try_from(number).ok()?.checked_mul(size)?;
        chunk.get(start..)?.get(..size)
    };
    let size = usize::try_from(data_type.item_size).ok();
    let item = size.and_then(item).ok_or_else(outside)?;
    Ok(element_text(data_type, item))
}

impl ElementLocation {
    fn as_json(&self, path: &Prefix, indices: &[u64]) -> Value {
        let mut facts = json!({
            "path": path.to_text(),
            "indices": indices,
            "value": json_element(&self.element, &self.value),
            "chunk": self.chunk.as_slice(),
            "region": self.covers,
            "number_in_chunk": self.number,
            "key": self.key.to_text(),
            "stored": self.located.is_some(),
            "in_journal": self.is_in_journal,
        });
        if let Some(LocatedChunk { encoded, .. }) = &self.located {
            let offset = match encoded.in_memory() {
                Some(_) => "offset_in_decoded_shard",
                None => "offset",
            };
            facts[offset] = encoded.offset().into();
            facts["nbytes"] = encoded.len().into();
        }
        if let Some(shard) = &self.shard {
            facts["shard"] = shard.as_slice().into();
        }
        facts
    }

    fn as_text(&self, path: &Prefix, indices: &[u64]) -> Text {
        let region = self.covers.iter().map(|(from, to)| format!("{from}:{to}"));
        let region = region.collect::<Vec<_>>().join(", ");
        let chunk = list(&self.chunk, ", ");
        let (number, value) = (self.number, &self.value);
        let mut text = Text::new()
            .line(format_args!("{path}[{}] = {value}", list(indices, ", ")))
            .line(format_args!(
                "chunk   ({chunk})  [{region}]  element {number} in it"
            ));
        if let Some(shard) = &self.shard {
            text = text.line(format_args!("shard   ({})", list(shard, ", ")));
        }
        text = text
            .line(format_args!("key     {}", self.key))
            .line(match &self.located {
                None if self.has_object => {
                    "bytes   none: the shard has no such chunk, so the fill value".to_owned()
                }
                None => "bytes   none: no such key, so the fill value".to_owned(),
                Some(LocatedChunk { encoded, .. }) => {
                    let (offset, nbytes) = (encoded.offset(), encoded.len());
                    let of_what = match encoded.in_memory() {
                        Some(_) => " of the shard once it is decompressed",
                        None => "",
                    };
                    let end = offset + nbytes;
                    format!("bytes   {offset}..{end}  ({nbytes}){of_what}")
                }
            });
        if self.is_in_journal {
            let saved_by = SAVED_BY;
            text = text.line(format_args!(
                "journal a later version of this chunk waits there, not shown; {saved_by}"
            ));
        }
        text
    }
}

fn list<N: ToString>(numbers: &[N], separator: &str) -> String {
    let numbers: Vec<String> = numbers.iter().map(N::to_string).collect();
    numbers.join(separator)
}
