//! Documents of every Zarr version, and the one model that they are parsed into.
//!
//! A document without the members that every array needs (shape, chunk shape, key encoding) is
//! refused. The members that decoding needs (data type, fill value, codecs) may be unknown to this
//! build: the array is still listed, and [`ArrayMetadata::decoding`] says why it cannot be decoded.
//!
//! `json` reads JSON one level at a time, and `spell` the data types and fill values in it, which it
//! also writes.
//!
//! [`render`] and [`consolidated`] edit documents for the views. An edit replaces parts of the text, and all other
//! bytes stay as they are. [`mod@write`] writes documents of another version from the model, and [`translate`] carries
//! changes of such a document back.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod attributes;
pub(crate) mod base64;
pub mod carry;
mod chunk_key;
mod codecs;
pub mod consolidated;
pub mod crs_attribute;
mod dimensions;
mod document;
pub mod draft;
mod json;
pub mod mentions;
pub mod merge;
pub mod missing;
pub mod n5;
mod numcodecs;
pub mod outline;
pub mod pre_v1;
pub mod render;
mod spell;
mod splice;
pub mod strict;
mod strict_json;
pub mod translate;
mod unshard;
pub mod v1;
pub mod v2;
pub mod v3;
mod whole_numbers;
pub mod write;

pub use attributes::{Attributes, JsonTree};
pub use chunk_key::{ChunkKeyEncoding, KeyKind};
pub(crate) use chunk_key::{index_of, push_index};
pub use dimensions::dimension_names;
pub use document::{
    check_array_document_len, check_attributes_document, check_outlined, say_nothing,
};
pub use strict_json::strict_json;
pub use write::Target;

use crate::codec::{ArrayToArray, CodecChain};
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::grid::{self, ChunkLengths, Dims};

/// The documents that a prefix may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentName {
    /// v3: array or group, with attributes and perhaps consolidated metadata.
    ZarrJson,
    /// v2: array.
    ZArray,
    /// v2: group.
    ZGroup,
    /// v2: attributes of an array or a group.
    ZAttrs,
    /// v2: consolidated metadata of a group.
    ZMetadata,
}

impl DocumentName {
    /// All of them.
    pub const ALL: [DocumentName; 5] = [
        DocumentName::ZarrJson,
        DocumentName::ZArray,
        DocumentName::ZGroup,
        DocumentName::ZAttrs,
        DocumentName::ZMetadata,
    ];

    /// The last segment of the document's key.
    pub fn as_str(self) -> &'static str {
        match self {
            DocumentName::ZarrJson => "zarr.json",
            DocumentName::ZArray => ".zarray",
            DocumentName::ZGroup => ".zgroup",
            DocumentName::ZAttrs => ".zattrs",
            DocumentName::ZMetadata => ".zmetadata",
        }
    }

    /// The document that the last segment of a key names, if any.
    pub fn of(segment: &[u8]) -> Option<DocumentName> {
        DocumentName::ALL
            .into_iter()
            .find(|name| name.as_str().as_bytes() == segment)
    }
}

/// The generation of the format that a document belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZarrFormat {
    /// zarr-python 0.4: `__zmeta__`, `__zattr__`.
    PreV1,
    /// Zarr v1: `meta`, `attrs`; one array, no groups.
    V1,
    /// Zarr v2: `.zarray`, `.zgroup`, `.zattrs`.
    V2,
    /// The v3 drafts of 2019 to 2022: one `zarr.json` for a hierarchy below `meta` and `data`.
    Draft,
    /// Zarr v3: `zarr.json`.
    V3,
    /// N5: `attributes.json`.
    N5,
}

/// The parsed document of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMetadata {
    /// An array.
    Array(Box<ArrayMetadata>),
    /// A group. The model has no members for it, because the attributes of nodes are not kept.
    Group,
}

/// An array of any version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayMetadata {
    /// The version of its document.
    pub zarr_format: ZarrFormat,
    /// Length in each dimension, in elements.
    pub shape: Dims,
    /// Lengths of the outer chunks (the shards, when sharded) in each dimension, 1 or more, in
    /// elements. For a grid that is not known it is the whole array, and `decoding` is an error.
    pub chunks: ChunkLengths,
    /// The data type as the document spells it, for messages.
    pub data_type: String,
    /// Names of the codecs as the document spells them, in the order of encoding. The codecs of a
    /// shard's inner chunks are in brackets: `sharding_indexed(bytes, zstd)`.
    pub codecs: Vec<String>,
    /// How chunk keys are spelled.
    pub chunk_keys: ChunkKeyEncoding,
    /// Whether the document leaves the separator of chunk keys out, as v2 did before
    /// `dimension_separator`. Then `chunk_keys` has the default, and the stored keys may have
    /// another one.
    pub separator_is_assumed: bool,
    /// The name of each dimension that has one; `None` when the document has no names.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// The names of dimensions that `NCZarr` has in the document of a v2 array. They count where the attributes have no names
    /// ([`dimension_names`]).
    pub dimension_references: Option<Vec<String>>,
    /// Warnings about parts of the document that are ambiguous, and how they are read.
    pub doubts: Vec<String>,
    /// Everything that decoding needs, or the reason why the array cannot be decoded.
    pub decoding: Result<Decoding, FormatError>,
}

/// Everything that decoding needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decoding {
    /// The type of an element.
    pub data_type: DataType,
    /// The element that absent chunks are filled with.
    pub fill_value: FillValue,
    /// The codecs that turn encoded bytes into elements. The counts in a shard are those of the
    /// longest one ([`CodecChain::for_shape`]).
    pub codecs: CodecChain,
    /// The codecs as a JSON list in the spelling of final v3, for a document of any version: a v2
    /// filter `delta` is `numcodecs.delta`, order F is a `transpose`, and a draft's sharding
    /// transformer is `sharding_indexed`.
    pub pipeline: String,
}

impl ArrayMetadata {
    /// Whether chunks mean the same in both arrays, which have the same rank and may have other lengths.
    /// How documents spell types and codecs does not matter.
    pub fn has_same_chunks(&self, other: &ArrayMetadata) -> bool {
        let is_decoded_alike = match (&self.decoding, &other.decoding) {
            (Ok(one), Ok(two)) => {
                one.data_type == two.data_type
                    && one.fill_value == two.fill_value
                    && self.has_same_codecs((one, two), other)
            }
            (Err(one), Err(two)) => {
                one == two && self.data_type == other.data_type && self.codecs == other.codecs
            }
            _ => false,
        };
        is_decoded_alike
            && self.zarr_format == other.zarr_format
            && self.shape.len() == other.shape.len()
            && self
                .chunks
                .agree_with(&other.chunks, (&self.shape, &other.shape))
            && self.chunk_keys == other.chunk_keys
    }

    /// Whether the codecs of both arrays are the same for chunks of one shape. If a list of chunk lengths has
    /// grown, its longest chunk may be longer, and the codecs then have other numbers of inner chunks.
    fn has_same_codecs(&self, codecs: (&Decoding, &Decoding), other: &ArrayMetadata) -> bool {
        let (one, two) = codecs;
        let longest = other.chunks.longest();
        if self.chunks.longest() == longest {
            return one.codecs == two.codecs;
        }
        let for_other = one.codecs.for_shape(&longest);
        for_other.is_ok_and(|codecs| *codecs == two.codecs)
    }

    /// The shape of the innermost chunks of a sharded array, in the axes of the array. `None`
    /// when it is not sharded, or cannot be decoded.
    ///
    /// A transpose before the sharding codec moves axes. Where axis `i` of the codec's input is
    /// axis `p[i]` of the array, an inner chunk of the codec's `chunk_shape` `c` has length `c[i]`
    /// in axis `p[i]`.
    ///
    /// ```text
    /// array axes (y, x), transpose [1, 0], sharding chunk_shape [2, 3]:  p = [1, 0]
    /// the sharding codec sees (x, y): 2 along x, 3 along y              inner chunk (3, 2)
    /// ```
    pub fn inner_chunk_shape(&self) -> Option<Dims> {
        let decoding = self.decoding.as_ref().ok()?;
        let mut axes: Vec<usize> = (0..self.shape.len()).collect();
        let mut chain = &decoding.codecs;
        let mut inner = None;
        loop {
            for codec in &chain.array_to_array {
                let ArrayToArray::Transpose(transpose) = codec else {
                    continue;
                };
                axes = transpose
                    .order()
                    .iter()
                    .map(|&axis| axes.get(axis).copied())
                    .collect::<Option<_>>()?;
            }
            let Some(sharding) = chain.sharding() else {
                return inner;
            };
            let mut shape: Dims = self.shape.iter().map(|_| 1).collect();
            for (&axis, &length) in axes.iter().zip(&sharding.chunk_shape) {
                *shape.get_mut(axis)? = length;
            }
            inner = Some(shape);
            chain = &sharding.codecs;
        }
    }
}

impl Decoding {
    /// Puts the parts together, and checks that the size of a chunk fits 63 bits and that the
    /// codecs can encode the fill value. `chunk_shape` is that of the longest chunk.
    fn new(
        data_type: DataType,
        fill_value: FillValue,
        codecs: CodecChain,
        pipeline: String,
        chunk_shape: &[u64],
    ) -> Result<Decoding, FormatError> {
        const LIMIT: u64 = i64::MAX.cast_unsigned();
        let bytes = grid::product(chunk_shape)
            .and_then(|elements| elements.checked_mul(data_type.item_size));
        if bytes.is_none_or(|bytes| bytes > LIMIT) {
            let found = format!("{chunk_shape:?} elements of {} bytes", data_type.item_size);
            return Err(FormatError::too_large(
                "the size of one chunk",
                found,
                LIMIT,
            ));
        }
        codecs
            .check_fill(&fill_value)
            .map_err(|error| error.within("codecs"))?;
        Ok(Decoding {
            data_type,
            fill_value,
            codecs,
            pipeline,
        })
    }
}

/// The chunk shape, checked against the shape of the array. A length of zero, which zarr-python
/// writes where the array has no elements in that dimension, becomes 1 there and is refused
/// elsewhere.
fn check_chunk_shape(shape: &[u64], chunk_shape: &[u64]) -> Result<Dims, FormatError> {
    if shape.len() != chunk_shape.len() {
        let problem = format!(
            "found {} chunk lengths, expected {}, one for each dimension of the shape",
            chunk_shape.len(),
            shape.len()
        );
        return Err(FormatError::document("", problem));
    }
    shape
        .iter()
        .zip(chunk_shape)
        .enumerate()
        .map(|(i, (&length, &chunk))| match (chunk, length) {
            (0, 0) => Ok(1),
            (0, _) => Err(FormatError::document(
                format!("[{i}]"),
                "found a chunk length of 0, expected 1 or more",
            )),
            _ => Ok(chunk),
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test's own texts")]
mod damage;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_names_are_found_by_segment() {
        for name in DocumentName::ALL {
            assert_eq!(DocumentName::of(name.as_str().as_bytes()), Some(name));
        }
        assert_eq!(DocumentName::of(b"zarr.json.bak"), None);
    }

    #[test]
    fn chunk_lengths_fit_the_shape() {
        assert_eq!(check_chunk_shape(&[8, 0], &[9, 0]).unwrap()[..], [9, 1]);
        assert!(check_chunk_shape(&[8], &[0]).is_err());
        assert!(check_chunk_shape(&[8], &[4, 4]).is_err());
        assert_eq!(check_chunk_shape(&[], &[]).unwrap().len(), 0);
    }
}
