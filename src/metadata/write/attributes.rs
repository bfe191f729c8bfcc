//! Finds the attributes of a node in its stored documents, and copies them as text.

use serde_json::value::RawValue;

use super::super::carry::{object_of, with_member};
use super::super::dimensions::{self, ARRAY_DIMENSIONS};
use super::super::document::{Edits, JsonDocument, attributes_in, is_empty, quoted, say_nothing};
use super::super::draft::hidden_filters;
use super::super::{ArrayMetadata, ZarrFormat, missing, n5, splice};
use super::source::{ChunkContent, StoredDocuments};
use crate::error::FormatError;
use crate::metadata::json;

/// The names of the dimensions that have one; `None` if there are no names.
type DimensionNames = Option<Vec<Option<String>>>;

/// The stored attributes of an array as the text of an object; `None` when there are none.
///
/// # Errors
///
/// When the attributes are not a JSON object.
pub fn of_array(
    format: ZarrFormat,
    source: &StoredDocuments<'_>,
) -> Result<Option<Vec<u8>>, FormatError> {
    match format {
        ZarrFormat::V3 => member(source.document, &[]),
        ZarrFormat::N5 => without_members(source.document),
        // The drafts keep the filters of an array among its attributes.
        ZarrFormat::Draft => {
            let document = JsonDocument::parse(source.document)?;
            let is_hidden = hidden_filters(&document.root()?)?.is_some();
            member(source.document, if is_hidden { &["filters"] } else { &[] })
        }
        ZarrFormat::PreV1 | ZarrFormat::V1 | ZarrFormat::V2 => {
            source.attributes.map_or(Ok(None), whole)
        }
    }
}

/// The document `text` of a node of N5, without the members that are no attributes; `None` when nothing is left.
pub(super) fn without_members(text: &[u8]) -> Result<Option<Vec<u8>>, FormatError> {
    let document = JsonDocument::parse(text)?;
    object_text(&document, document.value()?, &n5::OWN_MEMBERS)
}

/// The object in the document `text`; `None` when it is empty, or the document says nothing.
pub(super) fn whole(text: &[u8]) -> Result<Option<Vec<u8>>, FormatError> {
    if say_nothing(text) {
        return Ok(None);
    }
    let document = JsonDocument::parse(text).map_err(|error| error.within("attributes"))?;
    object_text(&document, document.value()?, &[])
}

/// The member `attributes` of the document `text`, without the attributes in `without`; `None` when
/// nothing is left.
pub(super) fn member(text: &[u8], without: &[&str]) -> Result<Option<Vec<u8>>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    match attributes_in(&root) {
        Some(value) => object_text(&document, value, without),
        None => Ok(None),
    }
}

fn object_text(
    document: &JsonDocument<'_>,
    value: &RawValue,
    without: &[&str],
) -> Result<Option<Vec<u8>>, FormatError> {
    let within = |error: FormatError| error.within("attributes");
    if without.is_empty() {
        // The members are not opened, because there may be very many and only their presence
        // matters.
        let inside = value.get().strip_prefix('{');
        let inside = inside.ok_or_else(|| within(json::mismatch(value, "an object")))?;
        let is_empty = inside.trim_start().starts_with('}');
        return Ok((!is_empty).then(|| document.text_of(value).to_vec()));
    }
    let members = document.members(value).map_err(within)?;
    if members
        .iter()
        .all(|member| without.contains(&member.name.as_str()))
    {
        return Ok(None);
    }
    let mut edits = Edits::default();
    splice::remove(&members, &mut edits, |member| {
        without.contains(&member.name.as_str())
    });
    Ok(Some(
        edits.apply_within(document.text, document.span(value)),
    ))
}

/// The `.zattrs` of an array, as it is shown beside a document of `content`: as [`array_attributes`] has it, but
/// the fill value and `_FillValue` say the missing values of v2. An array of v3 without dimensions has an empty list of
/// names: xarray opens no variable of v2 without the list, and libraries store no names for such an array in v3.
///
/// # Errors
///
/// When the attributes are not a JSON object.
pub fn array_attributes_v2(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
    content: ChunkContent,
) -> Result<Option<Vec<u8>>, FormatError> {
    let attributes = of_array(array.zarr_format, source)?;
    let attributes = missing::attributes_v2(array, attributes, content)?;
    let is_scalar = array.zarr_format == ZarrFormat::V3 && array.shape.is_empty();
    let names = array.dimension_names.as_deref();
    with_names(names.or(is_scalar.then_some(&[])), attributes)
}

/// The attributes of an array in v2, `None` when there are none, with the names of its dimensions.
///
/// # Errors
///
/// When the attributes are not a JSON object.
pub fn array_attributes(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
) -> Result<Option<Vec<u8>>, FormatError> {
    let attributes = of_array(array.zarr_format, source)?;
    with_names(array.dimension_names.as_deref(), attributes)
}

/// The attributes with the `names` of the document as `_ARRAY_DIMENSIONS`. If there are names, an attribute of that
/// name remains from another version, and readers of v3 ignore it.
fn with_names(
    names: Option<&[Option<String>]>,
    attributes: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, FormatError> {
    let Some(names) = names else {
        return Ok(attributes);
    };
    let names = names.iter().map(|name| name.as_deref().map(quoted));
    // v2 has no list in which a name is missing.
    let list = names.collect::<Option<Vec<String>>>();
    let list = list.map(|names| format!("[{}]", names.join(", ")));
    let Some(text) = attributes else {
        return Ok(list.map(|list| object_of(ARRAY_DIMENSIONS, list.as_bytes())));
    };
    let has_list = missing::member(&text, ARRAY_DIMENSIONS, |_| Some(()))?.is_some();
    Ok(match &list {
        Some(list) if !has_list => {
            // `text` is an object of one member or more, and begins with its brace.
            let rest = text.get(1..).unwrap_or_default();
            let added = format!("{{\"{ARRAY_DIMENSIONS}\": {list}, ");
            Some([added.as_bytes(), rest].concat())
        }
        None if !has_list => Some(text),
        _ => {
            let list = list.as_deref().map(str::as_bytes);
            let left = with_member(&text, ARRAY_DIMENSIONS, list)?;
            (!is_empty(&left)?).then_some(left)
        }
    })
}

/// The attributes of an array in v3, `None` when there are none, and the names of its dimensions. A list of names among
/// the attributes is left out, and what xarray reads as missing in v2 is the attribute `_FillValue`.
///
/// # Errors
///
/// When the attributes are not a JSON object.
pub(super) fn array_attributes_v3(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
) -> Result<(Option<Vec<u8>>, DimensionNames), FormatError> {
    let attributes = of_array(array.zarr_format, source)?;
    let names = dimension_names(array, attributes.as_deref())?;
    if names.is_none() || array.dimension_names.is_some() {
        return Ok((attributes, names));
    }
    let text = attributes.unwrap_or_else(|| b"{}".to_vec());
    let text = with_member(&text, ARRAY_DIMENSIONS, None)?;
    Ok((Some(missing::attributes_v3(array, text)?), names))
}

/// The names of the dimensions of an array, which has these `attributes`.
///
/// # Errors
///
/// When the attributes are not a JSON object.
pub fn dimension_names(
    array: &ArrayMetadata,
    attributes: Option<&[u8]>,
) -> Result<Option<Vec<Option<String>>>, FormatError> {
    let Some(attributes) = attributes.filter(|_| array.dimension_names.is_none()) else {
        return Ok(dimensions::dimension_names(array, |_| None));
    };
    let document = JsonDocument::parse(attributes)?;
    let root = document.root()?;
    let texts = |path: &[&str]| dimensions::texts(&root, path);
    Ok(dimensions::dimension_names(array, texts))
}
