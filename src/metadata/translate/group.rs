//! Changes of the documents of a group.

use super::super::document::{JsonDocument, say_nothing};
use super::super::write::StoredDocuments;
use super::super::{DocumentName, NodeMetadata, ZarrFormat, strict, v2, v3};
use super::NodeDocuments;
use super::array::put_attributes;
use super::texts::{EMPTY, attributes_in, check_known};
use crate::error::FormatError;

/// The documents of a group that is stored in the version `format`, after its document `name`, which
/// the view shows in another version, was `written`.
///
/// # Errors
///
/// When it is no document of a group, or has members that the stored version cannot express.
pub fn group(
    format: ZarrFormat,
    stored: &StoredDocuments<'_>,
    (name, written): (DocumentName, &[u8]),
) -> Result<NodeDocuments, FormatError> {
    if format == ZarrFormat::N5 {
        return Err(FormatError::unsupported("", "format for writing", "N5"));
    }
    let mut new = NodeDocuments {
        is_array: false,
        document: stored.document.to_vec(),
        attributes: stored.attributes.map(<[u8]>::to_vec),
    };
    let attributes = stored.attributes.filter(|text| !say_nothing(text));
    if let Some(written) = attributes_of((name, written))? {
        let own = match format {
            ZarrFormat::V3 | ZarrFormat::Draft => attributes_in(stored.document)?,
            _ => attributes.unwrap_or(EMPTY).to_vec(),
        };
        put_attributes(format, &mut new, (&own, &written))?;
    }
    Ok(new)
}

/// The attributes of a group, an object, in the document `name` of v2 or v3; `None` in a document that
/// has none.
///
/// # Errors
///
/// Those of [`group`].
pub fn attributes_of(
    (name, written): (DocumentName, &[u8]),
) -> Result<Option<Vec<u8>>, FormatError> {
    match name {
        DocumentName::ZarrJson => {
            if v3::parse(written)? != NodeMetadata::Group {
                let problem = "a group with nodes in it does not become an array";
                return Err(FormatError::document("node_type", problem));
            }
            let known = [
                "zarr_format",
                "node_type",
                "attributes",
                "consolidated_metadata",
            ];
            check_known(EMPTY, written, &known)?;
            strict::check_attributes_v3(written)?;
            attributes_in(written).map(Some)
        }
        DocumentName::ZAttrs => {
            JsonDocument::parse(written)?.root()?;
            Ok(Some(written.to_vec()))
        }
        DocumentName::ZGroup => v2::parse_group(written).map(|()| None),
        DocumentName::ZArray | DocumentName::ZMetadata => Ok(None),
    }
}
