//! N5: `attributes.json`, which has the metadata of a dataset and the attributes of its user side by side.
//!
//! ```json
//! {"n5": "4.0.0", "dimensions": [20, 30], "blockSize": [10, 10], "dataType": "int16",
//!  "compression": {"type": "gzip", "level": 5}, "resolution": [4, 4]}
//! ```
//!
//! The first dimension of N5 varies fastest. The array of the model has the dimensions in reverse order, as zarr-python
//! and z5 read them, so that elements have the order of Zarr. Its chunks are
//! [blocks of N5](crate::codec::N5Block), and absent ones hold zeros. A directory of a container is a group, whether it
//! has the document or not.
//!
//! Source: N5 specification 4.0, <https://github.com/saalfeldlab/n5>.

mod compression;

use serde_json::value::RawValue;

use self::compression::Compression;
use super::document::{JsonDocument, check_array_document_len, lengths, list_of, object_text};
use super::json::{self, Json, Members};
use super::{ArrayMetadata, ChunkKeyEncoding, Decoding, KeyKind, ZarrFormat, check_chunk_shape};
use super::{codecs, document::spelled};
use crate::codec::{ArrayToBytes, BytesToBytes, CodecChain};
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::grid::ChunkLengths;

/// The name of the document.
pub const DOCUMENT: &str = "attributes.json";

/// The members of the document that are no attributes of its user.
pub(super) const OWN_MEMBERS: [&str; 6] = [
    "n5",
    "dimensions",
    "blockSize",
    "dataType",
    "compression",
    "compressionType",
];

/// The members that make a directory a dataset.
const OF_DATASET: [&str; 3] = ["dimensions", "blockSize", "dataType"];

const DATA_TYPES: [&str; 10] = [
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64",
];

/// The largest major version that is read.
const LAST_MAJOR: u64 = 4;

/// The node that a document describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum N5Node {
    /// A dataset, which is an array.
    Dataset,
    /// A group whose document says the version of N5, as that at the root of a container does.
    Root,
    /// A group, if it is in a container: the document is an object without a member of N5.
    Group,
}

/// The node that `text` describes, if it is the only document of its directory; `None` when it is no JSON object.
pub fn node(text: &[u8]) -> Option<N5Node> {
    let document = JsonDocument::parse(text).ok()?;
    let root = document.root().ok()?;
    let has = |member: &&str| root.get(member).is_some();
    Some(if OF_DATASET.iter().all(has) {
        N5Node::Dataset
    } else if root.get("n5").is_some() {
        N5Node::Root
    } else {
        N5Node::Group
    })
}

/// Whether `text` is the `attributes.json` of an N5 group or dataset, and not another file of that
/// name.
pub fn is_attributes(text: &[u8]) -> bool {
    matches!(node(text), Some(N5Node::Dataset | N5Node::Root))
}

/// Checks the version in the document of a group.
///
/// # Errors
///
/// When this build does not read the version.
pub fn parse_group(text: &[u8]) -> Result<(), FormatError> {
    check_version(&JsonDocument::parse(text)?.root()?)
}

/// Parses the document of a dataset.
///
/// # Errors
///
/// When it is not a usable document. An array whose only fault is that it cannot be decoded is `Ok`, with the reason in
/// [`ArrayMetadata::decoding`].
pub fn parse_array(text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    check_array_document_len(text.len() as u64)?;
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    check_version(&root)?;
    let mut shape = root.read("dimensions", lengths)?;
    if shape.is_empty() {
        let problem = "found no dimension, expected one or more: a block would have no name";
        return Err(FormatError::document("dimensions", problem));
    }
    let block_size = |value| check_chunk_shape(&shape, &lengths(value)?);
    let mut chunk_shape = root.read("blockSize", block_size)?;
    shape.reverse();
    chunk_shape.reverse();
    let data_type = root.require("dataType")?;
    let compression = Compression::of(&root)?;
    let decoding = check_members(&root)
        .and_then(|()| root.read("dataType", parse_type))
        .and_then(|data_type| decoding(data_type, &compression, &chunk_shape));
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::N5,
        dimension_names: axes(&root, shape.len()),
        dimension_references: None,
        shape,
        chunks: ChunkLengths::equal(&chunk_shape),
        data_type: spelled(data_type),
        codecs: vec![compression.name().to_owned()],
        chunk_keys: ChunkKeyEncoding {
            kind: KeyKind::N5,
            separator: b'/',
        },
        separator_is_assumed: false,
        doubts: Vec::new(),
        decoding,
    })
}

/// Refuses versions that may mean something else. A document without a version may be of any version.
fn check_version(root: &Members<'_>) -> Result<(), FormatError> {
    let Some(value) = root.get_some("n5") else {
        return Ok(());
    };
    let version = json::string(value, "a version").map_err(|error| error.within("n5"))?;
    let major = version.split('.').next().unwrap_or_default();
    match major.parse::<u64>() {
        Ok(major) if major <= LAST_MAJOR => Ok(()),
        _ => Err(FormatError::unsupported("n5", "version of N5", version)),
    }
}

/// Refuses the members of datasets that have shards or a list of codecs, whose files are more than blocks.
fn check_members(root: &Members<'_>) -> Result<(), FormatError> {
    let found = ["shardSize", "codecs"].into_iter();
    match found.into_iter().find(|name| root.get_some(name).is_some()) {
        Some(name) => Err(FormatError::unsupported(name, "member of N5", name)),
        None => Ok(()),
    }
}

fn parse_type(value: &RawValue) -> Result<DataType, FormatError> {
    let name = json::string(value, "a data type")?;
    if DATA_TYPES.contains(&name.as_str()) {
        return DataType::parse_v3(value);
    }
    Err(FormatError::unsupported("", "data type of N5", name))
}

/// The names of the dimensions in the attribute `axes`, which has them from the fastest one, if it is a list of as many
/// different names.
fn axes(root: &Members<'_>, rank: usize) -> Option<Vec<Option<String>>> {
    let items = match Json::of(root.get("axes")?) {
        Ok(Json::Array(items)) if items.len() == rank => items,
        _ => return None,
    };
    let names = items.into_iter().rev();
    let names = names.map(|item| json::string(item, "a name").ok());
    let names: Vec<String> = names.collect::<Option<_>>()?;
    let are_distinct = names.iter().enumerate().all(|(i, name)| {
        let mut before = names.iter().take(i);
        !name.is_empty() && before.all(|other| other != name)
    });
    are_distinct.then(|| names.into_iter().map(Some).collect())
}

/// The codecs of blocks. A v3 document spells them with two transposes: the first gives the axes the order of N5, and the
/// second, in the block, gives the elements their order. Together they change nothing, so this chain has neither.
fn decoding(
    data_type: DataType,
    compression: &Compression,
    chunk_shape: &[u64],
) -> Result<Decoding, FormatError> {
    let reversed: Vec<u64> = (0..chunk_shape.len() as u64).rev().collect();
    let order = object_text([("order", list_of(&reversed))]);
    let transpose = format!(r#"{{"name": "transpose", "configuration": {order}}}"#);
    let big_endian = r#"{"name": "bytes", "configuration": {"endian": "big"}}"#;
    let pipeline_with = |compressor: Option<String>| {
        let compressor = compressor.map_or_else(String::new, |text| format!(", {text}"));
        format!(
            r#"[{transpose}, {{"name": "n5_default", "configuration": {{"codecs": [{transpose}, {big_endian}{compressor}]}}}}]"#
        )
    };
    let compressor = compression.spell_v3(data_type.item_size)?;
    let is_in_zarr = *compression != Compression::Lz4;
    let known = pipeline_with(compressor.clone().filter(|_| is_in_zarr));
    let chain = codecs::chain(
        &codecs::list(codecs::parse(&known)?)?,
        &data_type,
        chunk_shape,
    )?;
    let ArrayToBytes::N5Block(block) = chain.array_to_bytes else {
        return Err(FormatError::document("compression", "found no block"));
    };
    let own = (!is_in_zarr).then_some(BytesToBytes::Lz4Blocks);
    let chain = CodecChain {
        array_to_array: Vec::new(),
        array_to_bytes: ArrayToBytes::N5Block(Box::new(block.in_container(own))),
        bytes_to_bytes: Vec::new(),
    };
    let zero = FillValue::undefined(&data_type);
    Decoding::new(
        data_type,
        zero,
        chain,
        pipeline_with(compressor),
        chunk_shape,
    )
}

#[cfg(test)]
mod tests;
