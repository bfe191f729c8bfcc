//! Documents of new nodes, which are stored in the version of the group that they are in.

use super::super::document::is_empty;
use super::super::draft::{self, Generation};
use super::super::missing::{self, FILL_VALUE};
use super::super::render::Shards;
use super::super::write::{self, ChunkContent, StoredDocuments, Target};
use super::super::{ArrayMetadata, DocumentName, NodeMetadata, carry, strict, v3};
use super::texts::{
    ARRAY_DIMENSIONS, EMPTY, attributes_in, check_known, check_same_chunks, parse_array,
};
use super::{NodeDocuments, ShownAs, attributes_of};
use crate::dtype::FillValue;
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
        StoredAs::V2 => {
            let document = write::array(&metadata, &source, content, Target::V2)?;
            let attributes = write::array_attributes(&metadata, &source)?;
            (
                without_mask(document, &metadata, attributes.as_deref())?,
                missing::attributes_v2(&metadata, attributes, content)?,
            )
        }
        StoredAs::V3 => {
            let document = write::array(&metadata, &source, content, Target::V3)?;
            (with_mask_of_scalar(document, &metadata)?, None)
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

/// The v2 document of an array of v3. If the array has no missing value in v3, its v2 document has no fill value, as in
/// documents that xarray writes. The elements of absent chunks are then zeros, or "not a time".
fn without_mask(
    document: Vec<u8>,
    array: &ArrayMetadata,
    attributes: Option<&[u8]>,
) -> Result<Vec<u8>, FormatError> {
    let decoding = array.decoding.as_ref().map_err(Clone::clone)?;
    let undefined = FillValue::undefined(&decoding.data_type);
    let is_declared = missing::member(attributes.unwrap_or(EMPTY), FILL_VALUE, |_| Some(()))?;
    let is_named = array.dimension_names.is_some() && missing::is_opened_by_xarray(array);
    let fills_alike = decoding.fill_value.bytes() == undefined.bytes();
    if is_declared.is_some() || !is_named || !fills_alike {
        return Ok(document);
    }
    carry::with_member(&document, "fill_value", Some(b"null"))
}

/// The v3 document of an array of v2. An array without dimensions gets the attribute `_FillValue` at once, because xarray
/// opens it even if no list of names is written later. Other arrays get the attribute with the names of their dimensions.
fn with_mask_of_scalar(document: Vec<u8>, array: &ArrayMetadata) -> Result<Vec<u8>, FormatError> {
    let decoding = array.decoding.as_ref().map_err(Clone::clone)?;
    let is_masked = array.shape.is_empty() && decoding.fill_value.is_defined();
    let value = missing::spell_v3(&decoding.data_type, &decoding.fill_value);
    let Some(value) = value.filter(|_| is_masked) else {
        return Ok(document);
    };
    let attributes = attributes_in(&document)?;
    let attributes = carry::with_member(&attributes, FILL_VALUE, Some(value.as_bytes()))?;
    carry::with_member(&document, carry::ATTRIBUTES, Some(&attributes))
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
    let problem = "the version of the group above cannot express this";
    check_same_chunks(name, (&stored, written), problem)?;
    let of_view = match shown_as.content {
        ChunkContent::Decoded(_) | ChunkContent::Complete(_) => {
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
            after.shape.is_empty() || shown_again.dimension_names == after.dimension_names,
        ),
    ] {
        if !is_same {
            return Err(FormatError::document(member, problem));
        }
    }
    if name == DocumentName::ZarrJson {
        let (shown, written) = (attributes_in(&shown)?, attributes_in(written)?);
        let changed = carry::differences_in(carry::ObjectKind::Attributes, &shown, &written)?;
        // The names of the dimensions are among the attributes in v2.
        if let Some(member) = changed.iter().find(|member| *member != ARRAY_DIMENSIONS) {
            return Err(FormatError::document(member, problem));
        }
    }
    Ok(())
}
