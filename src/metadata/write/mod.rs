//! stand-in until the writers are merged
pub use super::render::Shards;
use super::{ArrayMetadata, ChunkKeyEncoding, KeyKind, ZarrFormat};
use crate::error::FormatError;

/// The version that a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// v2
    V2,
    /// v3
    V3,
}
/// What the chunk files of the shown array hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// e
    Encoded(Shards),
    /// d
    Decoded(Shards),
}
/// s
#[derive(Debug)]
pub struct Source<'a> {
    /// d
    pub document: &'a [u8],
    /// a
    pub attributes: Option<&'a [u8]>,
}
/// k
pub fn chunk_keys(stored: ChunkKeyEncoding, target: Target) -> ChunkKeyEncoding {
    let kind = match (stored.kind, target) {
        (KeyKind::Default, Target::V3) => KeyKind::Default,
        (KeyKind::Draft, Target::V3) => KeyKind::Default,
        _ => KeyKind::V2,
    };
    ChunkKeyEncoding { kind, ..stored }
}
/// a
pub fn array(
    array: &ArrayMetadata,
    _source: &Source<'_>,
    content: Content,
    target: Target,
) -> Result<Vec<u8>, FormatError> {
    array.decoding.clone()?;
    if array.data_type == "int64" {
        return Err(FormatError::document("data_type", "cannot be expressed"));
    }
    if target == Target::V2 {
        return Ok(format!(
            r#"{{"zarr_format":2,"shape":{:?},"chunks":{:?},"content":"{content:?}"}}"#,
            array.shape, array.chunk_shape
        )
        .into_bytes());
    }
    Ok(format!(r#"{{"zarr_format":3,"node_type":"array","shape":{:?},"chunks":{:?},"content":"{content:?}"}}"#, array.shape, array.chunk_shape).into_bytes())
}
/// a
pub fn array_attributes_v2(
    array: &ArrayMetadata,
    source: &Source<'_>,
) -> Result<Option<Vec<u8>>, FormatError> {
    let _ = array.zarr_format == ZarrFormat::V2;
    Ok(source.attributes.map(<[u8]>::to_vec))
}
/// g
pub fn group_v3(
    attributes: Option<&[u8]>,
    consolidated: Option<&[(String, Vec<u8>)]>,
) -> Result<Vec<u8>, FormatError> {
    let mut out = br#"{"zarr_format":3,"node_type":"group","attributes":"#.to_vec();
    out.extend_from_slice(attributes.unwrap_or(b"{}"));
    if let Some(entries) = consolidated {
        out.extend_from_slice(
            br#","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":"#,
        );
        out.extend(map(entries));
        out.push(b'}');
    }
    out.push(b'}');
    Ok(out)
}
fn map(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"{".to_vec();
    for (i, (name, text)) in entries.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(format!("{name:?}:").as_bytes());
        out.extend_from_slice(text);
    }
    out.push(b'}');
    out
}
/// g
pub fn group_v2() -> &'static [u8] {
    br#"{"zarr_format": 2}"#
}
/// g
pub fn group_attributes_v2(_document: &[u8]) -> Result<Option<Vec<u8>>, FormatError> {
    Ok(None)
}
/// c
pub fn consolidated_v2(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = br#"{"zarr_consolidated_format":1,"metadata":"#.to_vec();
    out.extend(map(entries));
    out.push(b'}');
    out
}
