//! Writes the documents of groups, with copies of the documents below them.

use super::super::ZarrFormat;
use super::super::document::{JsonDocument, quoted};
use super::attributes;
use super::members::document;
use crate::error::FormatError;

/// The `zarr.json` of a group with the attributes object `attributes` and copies of the
/// documents at the paths below it.
///
/// # Errors
///
/// When the attributes are not a JSON object, or a copy is not JSON.
pub fn group_v3(
    attributes: Option<&[u8]>,
    consolidated: Option<&[(String, Vec<u8>)]>,
) -> Result<Vec<u8>, FormatError> {
    let attributes = attributes.map_or(Ok(None), attributes::whole)?;
    let mut members: Vec<(&str, &[u8])> = vec![
        ("zarr_format", b"3"),
        ("node_type", b"\"group\""),
        ("attributes", attributes.as_deref().unwrap_or(b"{}")),
    ];
    let copies;
    if let Some(entries) = consolidated {
        copies = consolidated_v3(entries)?;
        members.push(("consolidated_metadata", &copies));
    }
    Ok(document(&members))
}

/// The member `consolidated_metadata` of a group's `zarr.json`, with copies of the documents at the
/// paths below it.
///
/// # Errors
///
/// When a copy is not JSON.
pub fn consolidated_v3(entries: &[(String, Vec<u8>)]) -> Result<Vec<u8>, FormatError> {
    let entries = copies_of(entries)?;
    let head = b"{\"kind\": \"inline\", \"must_understand\": false, \"metadata\": ";
    Ok([head, entries.as_slice(), b"}"].concat())
}

/// The `.zgroup` of every group.
pub fn group_v2() -> &'static [u8] {
    b"{\n  \"zarr_format\": 2\n}\n"
}

/// The `.zattrs` of a group of v3, a draft or N5, whose document is `document`; `None` when it would be
/// empty. [`group_v3`] takes the same text.
///
/// # Errors
///
/// When the document or its attributes are not a JSON object.
pub fn group_attributes_v2(
    format: ZarrFormat,
    document: &[u8],
) -> Result<Option<Vec<u8>>, FormatError> {
    match format {
        ZarrFormat::N5 => attributes::without_members(document),
        _ => attributes::member(document, &[]),
    }
}

/// The `.zmetadata` of a group, with copies of the documents at the given keys below it.
///
/// # Errors
///
/// When a document is not JSON.
pub fn consolidated_v2(entries: &[(String, Vec<u8>)]) -> Result<Vec<u8>, FormatError> {
    let entries = copies_of(entries)?;
    Ok(document(&[
        ("zarr_consolidated_format", b"1"),
        ("metadata", &entries),
    ]))
}

/// The JSON of an object with the documents as members.
fn copies_of(entries: &[(String, Vec<u8>)]) -> Result<Vec<u8>, FormatError> {
    let members = entries
        .iter()
        .map(|(name, text)| {
            // The copy has no white space or byte order mark around the value.
            let document = JsonDocument::parse(text).map_err(|error| error.within(name))?;
            let value = document.text_of(document.value()?);
            Ok([quoted(name).as_bytes(), b": ", value].concat())
        })
        .collect::<Result<Vec<_>, FormatError>>()?;
    Ok([b"{", members.join(&b",\n"[..]).as_slice(), b"}"].concat())
}
