//! Documents of new nodes, which are stored in the version of the group that they are in.

use super::super::draft::{self, Generation};
use super::super::render::Shards;
use super::super::write::{self, ChunkContent, StoredDocuments, Target};
use super::super::{ArrayMetadata, DocumentName, NodeMetadata, carry, strict, v3};
use super::texts::{
    ARRAY_DIMENSIONS, EMPTY, attributes_in, check_known, check_same_chunks, has_names, is_empty,
    parse_array,
};
use super::{NodeDocuments, ShownAs, attributes_of};
use crate::error::FormatError;

/// The version in which a new node is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredAs {
    /// Zarr v2.
    V2,
    /// Zarr v3.
    V3,
    /// A draft of v3.
    Draft(Generation),
}

/// The documents in the version `to` of a new node, whose document `name` was `written` in another
/// version. A group that was there may have had `attributes`, which the node keeps.
///
/// # Errors
///
/// When the version `to` cannot express the node, or the view would show it otherwise.
pub fn new_node(
    (name, written): (DocumentName, &[u8]),
    attributes: Option<&[u8]>,
    shown_as: ShownAs,
    to: StoredAs,
) -> Result<NodeDocuments, FormatError> {
    let is_array = match name {
        DocumentName::ZArray => true,
        DocumentName::ZarrJson => matches!(v3::parse(written)?, NodeMetadata::Array(_)),
        _ => false,
    };
    if !is_array {
        let attributes = attributes_of((name, written))?.or(attributes.map(<[u8]>::to_vec));
        return group(attributes.as_deref(), to);
    }
    let metadata = parse_array(name, written)?;
    strict::check_array(&metadata, written, None)?;
    let source = StoredDocuments {
        document: written,
        attributes,
    };
    let content = ChunkContent::Encoded(Shards::Keep);
    let (document, attributes) = match to {
        StoredAs::V2 => (
            write::array(&metadata, &source, content, Target::V2)?,
            write::array_attributes(&metadata, &source)?,
        ),
        StoredAs::V3 => {
            let document = write::array(&metadata, &source, content, Target::V3)?;
            let document = match name {
                DocumentName::ZArray => without_names(document, metadata.shape.len())?,
                _ => document,
            };
            (document, None)
        }
        StoredAs::Draft(generation) => (write::array_draft(&metadata, &source, generation)?, None),
    };
    let new = NodeDocuments {
        is_array: true,
        document,
        attributes,
    };
    check(&new, (name, written), shown_as, to)?;
    Ok(new)
}

/// The v3 document of an array without the attribute that says the names of its dimensions in v2, which the
/// document has a member for.
fn without_names(mut document: Vec<u8>, rank: usize) -> Result<Vec<u8>, FormatError> {
    let attributes = attributes_in(&document)?;
    if has_names(&attributes, rank) {
        let rest = carry::with_member(&attributes, ARRAY_DIMENSIONS, None)?;
        document = carry::with_member(&document, "attributes", Some(&rest))?;
    }
    Ok(document)
}

fn group(attributes: Option<&[u8]>, to: StoredAs) -> Result<NodeDocuments, FormatError> {
    let attributes = attributes.unwrap_or(EMPTY);
    Ok(match to {
        StoredAs::V2 => NodeDocuments {
            is_array: false,
            document: write::group_v2().to_vec(),
            attributes: (!is_empty(attributes)?).then(|| attributes.to_vec()),
        },
        StoredAs::V3 => NodeDocuments {
            is_array: false,
            document: write::group_v3(Some(attributes), None)?,
            attributes: None,
        },
        StoredAs::Draft(generation) => NodeDocuments {
            is_array: false,
            document: write::group_draft(attributes, generation)?,
            attributes: None,
        },
    })
}

/// Refuses `new` unless the view shows it as `written`.
fn check(
    new: &NodeDocuments,
    (name, written): (DocumentName, &[u8]),
    shown_as: ShownAs,
    to: StoredAs,
) -> Result<(), FormatError> {
    let metadata: ArrayMetadata = match to {
        StoredAs::V2 => parse_array(DocumentName::ZArray, &new.document)?,
        StoredAs::V3 => parse_array(DocumentName::ZarrJson, &new.document)?,
        StoredAs::Draft(generation) => draft::parse_array(&new.document, generation)?,
    };
    let source = StoredDocuments {
        document: &new.document,
        attributes: new.attributes.as_deref(),
    };
    let shown = write::array(&metadata, &source, shown_as.content, shown_as.target)?;
    check_known(&shown, written, &["attributes", "storage_transformers"])?;
    let stored = ChunkContent::Encoded(Shards::Keep);
    let stored = write::array(&metadata, &source, stored, shown_as.target)?;
    let problem = "the version of the group above cannot say this";
    check_same_chunks(name, (&stored, written), problem)?;
    let of_view = match shown_as.content {
        ChunkContent::Decoded(_) => {
            "in this view chunks are not encoded, so that a new array has neither compressor nor filters, \
             its order is C, and its numbers are little-endian"
        }
        ChunkContent::Encoded(_) => problem,
    };
    let after = check_same_chunks(name, (&shown, written), of_view)?;
    let shown_again = parse_array(name, &shown)?;
    for (member, is_same) in [
        ("shape", shown_again.shape == after.shape),
        (
            "dimension_names",
            shown_again.dimension_names == after.dimension_names,
        ),
    ] {
        if !is_same {
            return Err(FormatError::document(member, problem));
        }
    }
    if name == DocumentName::ZarrJson {
        let changed = carry::differences(&attributes_in(&shown)?, &attributes_in(written)?)?;
        // The names of the dimensions are among the attributes in v2.
        if let Some(member) = changed.iter().find(|member| *member != ARRAY_DIMENSIONS) {
            return Err(FormatError::document(member, problem));
        }
    }
    Ok(())
}
