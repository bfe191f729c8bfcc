//! `--info STORE PATH --at i,j,k`: where one element is stored, and its value.

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};

use super::config::{InfoConfig, ViewOptions};
use super::output::Output;
use crate::budget::Budget;
use crate::dtype::element_text;
use crate::error::{Error, FormatError};
use crate::escape::Text;
use crate::grid::{Dims, rank_of};
use crate::hierarchy::{ArrayNode, Hierarchy, Node, Recheck};
use crate::load::{
    Cache, ChunkedArray, Counters, Freshness, Loader, LoaderParts, LocatedChunk, Shards, Sources,
};
use crate::store::{Key, ObjectMeta, Prefix, Store};
use crate::threads::{Limits, Threads};

/// Why an element cannot be told.
#[derive(Debug, thiserror::Error)]
pub(super) enum AtError {
    /// PATH is no array.
    #[error("{0}: no array is here; --at wants the path of one")]
    NoArray(Prefix),
    /// The indices do not fit the array.
    #[error("--at {given}: {path} has the shape {shape}")]
    Outside {
        /// As they were typed.
        given: String,
        /// Of the array.
        path: Prefix,
        /// In brackets.
        shape: String,
    },
    /// The array, or the chunk, cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Error),
    /// The answer cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Writes where the element `indices` of the array at `path` is, and what it is.
///
/// # Errors
/// [`AtError`].
pub(super) fn tell(
    store: Arc<dyn Store>,
    path: &Prefix,
    indices: &[u64],
    config: &InfoConfig,
    out: &mut Output,
) -> Result<(), AtError> {
    let options = ViewOptions::default();
    let budget = Budget::with_patience(options.cache_budget_bytes, config.timeout);
    let hierarchy = Hierarchy::new(Arc::clone(&store), Arc::clone(&budget), Recheck::Never);
    let Node::Array(node) = hierarchy.tree_node(path)?.node else {
        return Err(AtError::NoArray(path.clone()));
    };
    let shape = &node.metadata.shape;
    let inside = indices
        .iter()
        .zip(shape)
        .all(|(index, length)| index < length);
    if indices.len() != shape.len() || !inside {
        return Err(AtError::Outside {
            given: list(indices, ","),
            path: path.clone(),
            shape: format!("({})", list(shape, ", ")),
        });
    }
    let counters = Arc::new(Counters::default());
    let sources = Sources::new(store, Freshness::Immutable, Arc::clone(&counters));
    // Nothing is left to other threads, and none is started.
    let limits = Limits {
        names: 1,
        reads: 1,
        prefetches: 1,
    };
    let loader = Loader::new(LoaderParts {
        sources,
        cache: Cache::new(budget, counters),
        threads: Threads::new(limits),
        decoders: 1,
        max_chunk_bytes: options.max_chunk_bytes,
        timeout: config.timeout,
        readahead: None,
    });
    let found = find(&node, &loader, indices)?;
    let text = if config.json {
        Text::new().json(&found.as_json(path, indices))
    } else {
        found.for_people(path, indices)
    };
    Ok(out.print(&text)?)
}

/// Where an element is.
struct Found {
    /// The innermost chunk.
    chunk: Dims,
    /// What it covers, cut at the array's end: first and one past the last, for each dimension.
    covers: Vec<(u64, u64)>,
    /// The number of the element in its chunk, C order.
    number: u64,
    /// The indices of the shard, where there are shards.
    shard: Option<Dims>,
    key: Key,
    stored: Stored,
    value: String,
}

/// What the store has of a chunk.
enum Stored {
    /// Neither object nor, in its shard, a chunk: the fill value is all there is.
    Absent { object: Option<ObjectMeta> },
    /// A range of the object.
    Range { offset: u64, nbytes: u64 },
    /// A range of the shard once its bytes-to-bytes codecs are undone.
    Decoded { offset: u64, nbytes: u64 },
}

fn find(node: &Arc<ArrayNode>, loader: &Arc<Loader>, indices: &[u64]) -> Result<Found, Error> {
    let in_document = |error| Error::Metadata {
        key: node.document.key.to_string(),
        error,
    };
    let array = ChunkedArray::new(node, Shards::Expand).map_err(in_document)?;
    let array = Arc::new(array);
    let layout = array.layout();
    let grid = layout.shown_grid().clone();
    let lengths = grid.chunk_shape();
    let chunk: Dims = indices.iter().zip(lengths).map(|(i, n)| i / n).collect();
    let within: Dims = indices.iter().zip(lengths).map(|(i, n)| i % n).collect();
    let number = rank_of(&within, lengths).ok_or(Error::Panicked)?;
    let covers = chunk
        .iter()
        .zip(lengths)
        .zip(grid.shape())
        .map(|((&index, &length), &end)| {
            (
                index * length,
                (index * length).saturating_add(length).min(end),
            )
        })
        .collect();
    let shard = layout.is_sharded().then(|| layout.stored_indices(&chunk));
    let key = array.stored_key(&chunk)?;
    let object = loader.open_stored(&array, &chunk, None)?;
    let located = match &object {
        Some(object) => loader.locate(&array, object, &chunk)?,
        None => None,
    };
    let (stored, value) = if let (Some(object), Some(located)) = (&object, &located) {
        let block = loader.decoded(&array, object, &chunk)?;
        let value = element_of(&array, &block, number).map_err(in_document)?;
        (stored(located), value)
    } else {
        let layout = array.layout();
        let value = element_text(layout.data_type(), layout.fill_value().bytes());
        let object = object.map(|object| *object.meta());
        (Stored::Absent { object }, value)
    };
    Ok(Found {
        chunk,
        covers,
        number,
        shard,
        key,
        stored,
        value,
    })
}

fn stored(located: &LocatedChunk) -> Stored {
    let (offset, nbytes) = (located.encoded.offset(), located.encoded.len());
    if located.encoded.in_memory().is_some() {
        return Stored::Decoded { offset, nbytes };
    }
    Stored::Range { offset, nbytes }
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
    let range = number
        .checked_mul(data_type.item_size)
        .and_then(|start| Some(start..start.checked_add(data_type.item_size)?))
        .and_then(|bytes| {
            Some(usize::try_from(bytes.start).ok()?..usize::try_from(bytes.end).ok()?)
        });
    let item = range
        .and_then(|range| chunk.get(range))
        .ok_or_else(outside)?;
    Ok(element_text(data_type, item))
}

impl Found {
    fn as_json(&self, path: &Prefix, indices: &[u64]) -> Value {
        let mut facts = json!({
            "path": path.to_text(),
            "indices": indices,
            "value": self.value,
            "chunk": self.chunk.as_slice(),
            "region": self.covers,
            "number_in_chunk": self.number,
            "key": self.key.to_text(),
        });
        let facts_of = match &self.stored {
            Stored::Absent { .. } => json!({ "stored": false }),
            Stored::Range { offset, nbytes } => {
                json!({ "stored": true, "offset": offset, "nbytes": nbytes })
            }
            Stored::Decoded { offset, nbytes } => {
                json!({ "stored": true, "offset_in_decoded_shard": offset, "nbytes": nbytes })
            }
        };
        if let (Some(facts), Value::Object(more)) = (facts.as_object_mut(), facts_of) {
            facts.extend(more);
            if let Some(shard) = &self.shard {
                facts.insert("shard".to_owned(), shard.as_slice().into());
            }
        }
        facts
    }

    fn for_people(&self, path: &Prefix, indices: &[u64]) -> Text {
        let region: Vec<String> = self
            .covers
            .iter()
            .map(|(from, to)| format!("{from}:{to}"))
            .collect();
        let mut text = Text::new()
            .line(format_args!(
                "{path}[{}] = {}",
                list(indices, ", "),
                self.value
            ))
            .line(format_args!(
                "chunk   ({})  [{}]  element {} in it",
                list(&self.chunk, ", "),
                region.join(", "),
                self.number
            ));
        if let Some(shard) = &self.shard {
            text = text.line(format_args!("shard   ({})", list(shard, ", ")));
        }
        text.line(format_args!("key     {}", self.key))
            .line(match &self.stored {
                Stored::Absent { object: None } => {
                    "bytes   none: no such key, so the fill value".to_owned()
                }
                Stored::Absent { object: Some(_) } => {
                    "bytes   none: the shard has no such chunk, so the fill value".to_owned()
                }
                Stored::Range { offset, nbytes } => {
                    format!("bytes   {offset}..{}  ({nbytes})", offset + nbytes)
                }
                Stored::Decoded { offset, nbytes } => format!(
                    "bytes   {offset}..{}  ({nbytes}) of the shard once it is decompressed",
                    offset + nbytes
                ),
            })
    }
}

fn list(numbers: &[u64], separator: &str) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(separator)
}
