//! Finds the attributes of a node in its stored documents, and copies them as text.

use serde_json::value::RawValue;

use super::super::attributes::say_nothing;
use super::super::carry::with_member;
use super::super::document::{Edits, JsonDocument, quoted};
use super::super::{ArrayMetadata, ZarrFormat, missing, splice};
use super::source::{ChunkContent, StoredDocuments};
use crate::error::FormatError;
use crate::metadata::json::{self, Json, Members};

/// The attribute with the names of a v2 array's dimensions, by the convention of xarray.
const ARRAY_DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// The names of the dimensions that have one; `None` where there are no names.
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
        // The drafts keep the filters of an array among its attributes.
        ZarrFormat::Draft => member(source.document, &["filters"]),
        ZarrFormat::PreV1 | ZarrFormat::V1 | ZarrFormat::V2 => {
            source.attributes.map_or(Ok(None), whole)
        }
    }
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
    match root.get_some("attributes") {
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
/// `_FillValue` is left out where the fill value says it, and `_ARRAY_DIMENSIONS` of a v3 array without dimensions is an
/// empty list. xarray opens no variable of v2 without the list, and libraries store no names for such an array in v3.
///
/// # Errors
///
/// When the attributes are not a JSON object.
pub fn array_attributes_v2(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
    content: ChunkContent,
) -> Result<Option<Vec<u8>>, FormatError> {
    let attributes = array_attributes(array, source)?;
    let attributes = missing::attributes_v2(array, attributes, content)?;
    if array.zarr_format != ZarrFormat::V3 || !array.shape.is_empty() {
        return Ok(attributes);
    }
    with_list(attributes, "[]").map(Some)
}

/// The attributes of an array in v2, `None` when there are none. The dimension names are added as
/// `_ARRAY_DIMENSIONS`, unless that attribute exists or a name is missing.
///
/// # Errors
///
/// When the attributes are not a JSON object.
pub fn array_attributes(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
) -> Result<Option<Vec<u8>>, FormatError> {
    let attributes = of_array(array.zarr_format, source)?;
    let names = array.dimension_names.iter().flatten();
    let names = names.map(|name| name.as_deref().map(quoted));
    match names.collect::<Option<Vec<String>>>() {
        Some(names) if !names.is_empty() => {
            with_list(attributes, &format!("[{}]", names.join(", "))).map(Some)
        }
        _ => Ok(attributes),
    }
}

/// The attributes with this list of names, unless they have one.
fn with_list(attributes: Option<Vec<u8>>, list: &str) -> Result<Vec<u8>, FormatError> {
    let added = format!("{{\"{ARRAY_DIMENSIONS}\": {list}");
    let Some(attributes) = attributes else {
        return Ok([added.as_bytes(), b"}"].concat());
    };
    let document = JsonDocument::parse(&attributes)?;
    if document.root()?.get(ARRAY_DIMENSIONS).is_some() {
        return Ok(attributes);
    }
    // `attributes` is an object of one member or more, and begins with its brace.
    let rest = attributes.get(1..).unwrap_or_default();
    Ok([added.as_bytes(), b", ", rest].concat())
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
    let (Some(text), Some(_), None) = (&attributes, &names, &array.dimension_names) else {
        return Ok((attributes, names));
    };
    let text = with_member(text, ARRAY_DIMENSIONS, None)?;
    Ok((Some(missing::attributes_v3(array, text)?), names))
}

/// The names of the dimensions of an array: those of its document, or those in `_ARRAY_DIMENSIONS`.
///
/// # Errors
///
/// When the attributes are not a JSON object.
pub fn dimension_names(
    array: &ArrayMetadata,
    attributes: Option<&[u8]>,
) -> Result<Option<Vec<Option<String>>>, FormatError> {
    if array.dimension_names.is_some() {
        return Ok(array.dimension_names.clone());
    }
    let Some(attributes) = attributes else {
        return Ok(None);
    };
    let document = JsonDocument::parse(attributes)?;
    Ok(names(&document.root()?, array.shape.len()))
}

/// The names in `_ARRAY_DIMENSIONS`; `None` when it is not a list of one name for each dimension.
fn names(attributes: &Members<'_>, rank: usize) -> Option<Vec<Option<String>>> {
    let value = attributes.get(ARRAY_DIMENSIONS)?;
    let Ok(Json::Array(items)) = Json::of(value) else {
        return None;
    };
    let names = items
        .into_iter()
        .map(|item| json::string(item, "a name").ok());
    let names: Vec<String> = names.collect::<Option<_>>()?;
    (names.len() == rank).then(|| names.into_iter().map(Some).collect())
}
