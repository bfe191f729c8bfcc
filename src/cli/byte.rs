//! `--info STORE KEY --offset BYTE`: which chunk has a byte of a stored object, the reverse of `--at`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::at::for_one_look;
use super::config::InfoConfig;
use super::error::CliError;
use crate::error::{Error, PlaceInArray};
use crate::escape::Text;
use crate::grid::Dims;
use crate::hierarchy::{ArrayNode, Hierarchy, Node};
use crate::load::{ByteOwner, ChunkedArray, Shards};
use crate::metadata::DocumentName;
use crate::store::{Key, Prefix, Store};
use crate::view::View;

/// Describes the chunk, or the other part of a shard, that has the byte at `offset` of the object at `key`.
///
/// # Errors
/// KEY is no chunk of an array, it has no such byte, or the index of the shard is damaged.
pub(super) fn describe_byte(
    store: Arc<dyn Store>,
    key: &Prefix,
    offset: u64,
    config: &InfoConfig,
) -> Result<Text, CliError> {
    let refused = |problem: &str| Err(CliError::Failed(format!("{key}: {problem}")));
    let Some(key) = key.to_key() else {
        return refused("--offset wants the key of a stored chunk or shard");
    };
    let (options, hierarchy) = for_one_look(&store, config);
    let Some((node, stored)) = stored_chunk(&hierarchy, &key).map_err(CliError::failed)? else {
        return refused("no chunk of an array has this key");
    };
    let array = ChunkedArray::new(&node, Shards::Expand)
        .map_err(|error| Error::in_document(&node.document.key, error))
        .map_err(CliError::failed)?;
    let array = Arc::new(array);
    let counts = array.layout().stored_counts();
    let is_inside = stored
        .iter()
        .zip(counts)
        .all(|(index, count)| index < count);
    let place = array.place_of_stored(&stored).filter(|_| is_inside);
    let Some(place) = place else {
        return refused("a chunk outside of the array, which readers ignore");
    };
    // The view starts no thread here: this thread reads the index.
    let view = View::new(store, options).map_err(CliError::failed)?;
    let loader = view.loader();
    let first = array.layout().shown_in(&stored);
    let first = first.map(|axes| axes.iter().map(|axis| axis.first).collect::<Dims>());
    let object = loader.open_stored(&array, &first.unwrap_or_default(), None);
    let Some(object) = object.map_err(CliError::failed)? else {
        return refused("no such key in the store, so that its chunks have the fill value");
    };
    let size = object.meta().size();
    if offset >= size {
        return refused(&format!("--offset {offset}: the object has {size} bytes"));
    }
    let owner = loader
        .owner_of_byte(&array, (&object, &stored), offset)
        .map_err(|error| CliError::Failed(error.with_place()))?;
    let place = match &owner {
        ByteOwner::Chunk { indices, .. } => array.place_of(indices).unwrap_or(place),
        ByteOwner::Index { .. } | ByteOwner::WholeShard | ByteOwner::Nothing => place,
    };
    let found = FoundByte {
        key,
        offset,
        size,
        owner,
        place,
    };
    Ok(if config.json {
        Text::new().json(found.as_json())
    } else {
        found.as_text()
    })
}

/// The array that the object at `key` is a chunk of, and the indices of the chunk.
fn stored_chunk(hierarchy: &Hierarchy, key: &Key) -> Result<Option<(Arc<ArrayNode>, Dims)>, Error> {
    if DocumentName::of(key.name()).is_some() {
        return Ok(None);
    }
    for prefix in key.parent().with_ancestors() {
        if let Node::Array(node) = hierarchy.node(&prefix)? {
            let metadata = &node.metadata;
            let relative = node.prefix.strip(key.as_bytes()).unwrap_or_default();
            let stored = metadata.chunk_keys.decode(relative, metadata.shape.len());
            return Ok(stored.map(|stored| (node, stored)));
        }
    }
    Ok(None)
}

/// A byte, and what it belongs to.
struct FoundByte {
    key: Key,
    offset: u64,
    size: u64,
    owner: ByteOwner,
    /// The chunk, or the shard if the byte belongs to no chunk alone.
    place: PlaceInArray,
}

impl FoundByte {
    fn as_json(&self) -> Value {
        let mut facts = json!({
            "key": self.key.to_text(),
            "offset": self.offset,
            "size": self.size,
            "path": self.place.array.to_text(),
            "region": self.place.region,
        });
        let (part, bytes) = match &self.owner {
            ByteOwner::Chunk { start, end, .. } => ("chunk", Some([start, end])),
            ByteOwner::Index { start, end } => ("index", Some([start, end])),
            ByteOwner::WholeShard => ("shard", None),
            ByteOwner::Nothing => ("none", None),
        };
        facts["part"] = part.into();
        if let Some(bytes) = bytes {
            facts["bytes"] = json!(bytes);
        }
        if let Some(chunk) = &self.place.chunk {
            facts["chunk"] = chunk.as_slice().into();
        }
        if let Some(shard) = &self.place.shard {
            facts["shard"] = shard.as_slice().into();
        }
        facts
    }

    fn as_text(&self) -> Text {
        let (offset, size) = (self.offset, self.size);
        let text = Text::new()
            .line(format_args!("{}: byte {offset} of {size}", self.key))
            .line(format_args!("array   {}", self.place.array))
            .line(format_args!("place   {}", self.place));
        let within = |start: &u64, end: &u64| {
            let (number, length) = (offset - start, end - start);
            format!("bytes   {start}..{end}  ({length}), of which this is number {number}")
        };
        match &self.owner {
            ByteOwner::Chunk { start, end, .. } => text.line(within(start, end)),
            ByteOwner::Index { start, end } => text
                .line("part    the index of the shard")
                .line(within(start, end)),
            ByteOwner::WholeShard => {
                text.line("part    the shard is compressed as a whole, so the byte belongs to no single chunk")
            }
            ByteOwner::Nothing => text.line("part    none: no entry of the index has this byte"),
        }
    }
}
