//! Descriptions of nodes for pages that people read: the kind, dimensions, codecs, attributes and documents of the node
//! that a directory or a file of a view shows, and the stored chunks of a part of its grid.
//!
//! * this file: the node at a [`HeldVnode`];
//! * `texts`: its attributes and its documents;
//! * `window`: the chunks of a part of the grid.
//!
//! A description is bounded: long documents are left out, and only a window of the grid is examined.

mod texts;
mod window;

use super::vnode::{PlainName, Vnode};
use super::{HeldVnode, ViewKind};
use crate::dtype::{element_text, short_name};
use crate::error::Error;
use crate::grid::{AxisChunks, product};
use crate::hierarchy::{ArrayNode, Node};
use crate::load::{ChunkLayout, Shards};
use crate::metadata::ZarrFormat;
use crate::store::Prefix;

pub use texts::{NodeText, NodeTexts};
pub use window::{ChunkCell, ChunkState, ChunkWindow};

/// The most bytes of a fill value that are described.
const MOST_FILL_BYTES: usize = 256;

/// The description of a node.
#[derive(Debug, Clone)]
pub struct NodeDescription {
    /// The version of its documents, such as `Zarr v3`.
    pub format: &'static str,
    /// The kind of the node, with the facts that it has.
    pub kind: DescribedKind,
}

/// The kind of a node.
#[derive(Debug, Clone)]
pub enum DescribedKind {
    /// A group.
    Group,
    /// An array.
    Array(Box<ArrayDescription>),
    /// A node whose document cannot be used, with the reason.
    Unusable(String),
}

/// The description of an array.
#[derive(Debug, Clone)]
pub struct ArrayDescription {
    /// Its dimensions, outermost first.
    pub dimensions: Vec<DimensionDescription>,
    /// The data type, by a short name where it has one.
    pub data_type: String,
    /// The codecs, in the order of encoding.
    pub codecs: Vec<String>,
    /// The element of which absent chunks consist; `None` if it is not known.
    pub fill_value: Option<String>,
    /// The number of chunks of the grid; `None` if it does not fit 64 bits or is not known.
    pub n_chunks: Option<u64>,
    /// Whether the chunks are inner chunks of shards.
    pub is_sharded: bool,
    /// The bytes of all elements; `None` if their length varies or is not known.
    pub decoded_bytes: Option<u64>,
    /// The reason why the array cannot be decoded, if it cannot.
    pub problem: Option<String>,
}

/// One dimension of an array.
#[derive(Debug, Clone)]
pub struct DimensionDescription {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The number of elements.
    pub length: u64,
    /// The length of a chunk, in words where chunks differ in length.
    pub chunk: String,
    /// The length of a shard, if the array is sharded.
    pub shard: Option<String>,
    /// The number of chunks; `None` if it is not known.
    pub n_chunks: Option<u64>,
}

impl HeldVnode {
    /// A description of the node that this is the directory or a file of; `None` if there is no node with a document, as
    /// for a directory of chunks. Makes no request to the store for a node that is known.
    ///
    /// # Errors
    /// [`Error`] when the documents of the node cannot be read.
    pub fn describe(&self) -> Result<Option<NodeDescription>, Error> {
        Ok(self.node()?.and_then(|node| describe(&node)))
    }

    /// The path in the mount of a `.png` that shows the array that this is the directory or a file of; `None` if there is
    /// none.
    ///
    /// # Errors
    /// Those of [`HeldVnode::describe`].
    pub fn preview(&self) -> Result<Option<Vec<u8>>, Error> {
        let views = &self.view.tree.options.views;
        if !views.contains(&ViewKind::Arrays) || !matches!(self.node()?, Some(Node::Array(_))) {
            return Ok(None);
        }
        let path = self.node_path()?.and_then(|(_, path)| path.to_key());
        let Some(path) = path else {
            return Ok(None);
        };
        let above = match views.as_slice() {
            [_] => String::new(),
            _ => format!("{}/", ViewKind::Arrays.name()),
        };
        let file = [above.as_bytes(), path.as_bytes(), b".png"].concat();
        Ok(self.view.find_path(&file)?.map(|_| file))
    }

    fn node(&self) -> Result<Option<Node>, Error> {
        let Some((view, path)) = self.node_path()? else {
            return Ok(None);
        };
        Ok(Some(self.view.tree.resolve(view, &path)?.node))
    }

    /// The view, and the path in it, of the node that this belongs to.
    fn node_path(&self) -> Result<Option<(ViewKind, Prefix)>, Error> {
        Ok(match self.view.vnode(self.id)? {
            Vnode::Prefix { view, path } => Some((view, path)),
            Vnode::Plain(PlainName { path, .. }) => Some((ViewKind::Arrays, path)),
            _ => None,
        })
    }
}

fn describe(node: &Node) -> Option<NodeDescription> {
    Some(match node {
        Node::Implicit => return None,
        Node::Group(group) => NodeDescription {
            format: format_name(group.format),
            kind: DescribedKind::Group,
        },
        Node::Broken(broken) => NodeDescription {
            format: "unknown version",
            kind: DescribedKind::Unusable(format!("{}: {}", broken.document.key, broken.error)),
        },
        Node::Array(array) => NodeDescription {
            format: format_name(array.metadata.zarr_format),
            kind: DescribedKind::Array(Box::new(describe_array(array))),
        },
    })
}

fn format_name(format: ZarrFormat) -> &'static str {
    match format {
        ZarrFormat::PreV1 => "Zarr before v1",
        ZarrFormat::V1 => "Zarr v1",
        ZarrFormat::V2 => "Zarr v2",
        ZarrFormat::Draft => "draft of Zarr v3",
        ZarrFormat::V3 => "Zarr v3",
        ZarrFormat::N5 => "N5",
    }
}

fn describe_array(array: &ArrayNode) -> ArrayDescription {
    let metadata = &array.metadata;
    let decoding = metadata.decoding.as_ref();
    let layout = ChunkLayout::new(metadata, Shards::Expand);
    let (grid, is_sharded) = match &layout {
        Ok(layout) => (Some(layout.shown_grid()), layout.is_sharded()),
        Err(_) => (None, false),
    };
    let dimensions = metadata.shape.iter().zip(metadata.chunks.axes());
    let dimensions = dimensions.enumerate().map(|(axis, (&length, stored))| {
        let names = metadata.dimension_names.as_ref();
        let shown = grid.and_then(|grid| grid.axis(axis)).unwrap_or(stored);
        DimensionDescription {
            name: names.and_then(|names| names.get(axis)?.clone()),
            length,
            chunk: chunk_text(shown),
            shard: is_sharded.then(|| chunk_text(stored)),
            n_chunks: grid.and_then(|grid| grid.counts().get(axis).copied()),
        }
    });
    ArrayDescription {
        dimensions: dimensions.collect(),
        data_type: decoding.map_or_else(
            |_| metadata.data_type.clone(),
            |decoding| short_name(&decoding.data_type),
        ),
        codecs: metadata.codecs.clone(),
        fill_value: decoding.ok().map(|decoding| {
            let bytes = decoding.fill_value.bytes();
            let shown = bytes.get(..MOST_FILL_BYTES).unwrap_or(bytes);
            element_text(&decoding.data_type, shown)
        }),
        n_chunks: grid.and_then(crate::grid::ChunkGrid::n_chunks),
        is_sharded,
        decoded_bytes: decoding.ok().and_then(|decoding| {
            let size = Some(decoding.data_type.item_size).filter(|&size| size > 0)?;
            product(&metadata.shape)?.checked_mul(size)
        }),
        problem: layout.err().map(|error| error.to_string()),
    }
}

fn chunk_text(chunks: &AxisChunks) -> String {
    match chunks {
        AxisChunks::Equal(length) => length.to_string(),
        AxisChunks::Listed(_) => format!("up to {}", chunks.longest()),
    }
}
