//! Carries the changes of a document in one Zarr version back to the documents of a node that is stored in another
//! version ([`write`](super::write) is the other direction).
//!
//! ```text
//! stored, v2     .zarray {"shape": [9], "compressor": {"id": "zstd", ..}, ..}    .zattrs {}
//! shown as v3    zarr.json {"shape": [9], "codecs": [..], "attributes": {}, ..}
//! written        zarr.json {"shape": [12], "codecs": [..], "attributes": {"a": 1}, ..}
//! stored, v2     .zarray {"shape": [12], "compressor": {"id": "zstd", ..}, ..}   .zattrs {"a": 1}
//! ```
//!
//! A writer may change the shape, the names of the dimensions and the attributes of an array, and the
//! attributes of a group. The stored documents are edited, and all that did not change stays byte for
//! byte. Then they are shown again, and the result must say the same as the written document.

mod array;
mod group;
mod new;
mod texts;

pub use array::array;
pub use group::{attributes_of, group};
pub use new::{StoredAs, new_node};
pub use texts::attributes_in;

use super::write::{ChunkContent, Target};

/// The documents of a node in the version in which it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDocuments {
    /// Whether the node is an array.
    pub is_array: bool,
    /// The node's own document.
    pub document: Vec<u8>,
    /// The document of its attributes, where the version has one; `None` if there are none.
    pub attributes: Option<Vec<u8>>,
}

/// How a view shows an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownAs {
    /// The version of the documents.
    pub target: Target,
    /// The content of the chunk files.
    pub content: ChunkContent,
}

#[cfg(test)]
mod tests;
