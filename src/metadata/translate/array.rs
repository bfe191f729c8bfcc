//! Changes of the documents of an array.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::carry::{ObjectKind, carried_in, differences_in};
use super::super::document::{is_empty, list_of, say_nothing};
use super::super::missing::{self, FILL_VALUE, MISSING_VALUE, MissingInV2};
use super::super::write::{self, StoredDocuments};
use super::super::{ArrayMetadata, DocumentName, ZarrFormat, carry, render, strict, v3};
use super::texts::{
    ARRAY_DIMENSIONS, EMPTY, attributes_in, check_known, check_same_chunks, dimension_names_in,
    list_of_names, member_text, parse_array,
};
use super::{NodeDocuments, ShownAs};
use crate::dtype::DataType;
use crate::error::FormatError;
use crate::grid::Dims;

/// The problem that errors name where a member must not change.
const FIXED: &str = "it cannot be changed";

type Names = Option<Vec<Option<String>>>;

/// The changes that a written document makes to an array.
#[derive(Default)]
struct Change {
    shape: Option<Dims>,
    /// The attributes, an object, as the stored version has them.
    attributes: Option<Vec<u8>>,
    /// The names of the dimensions in the array's own document.
    names: Option<Names>,
}

/// The stored documents of `array` after the document `name` of it, which the view shows, was
/// `written`. `parse` reads the array's own document.
///
/// # Errors
///
/// When something was written that must not change, which the error names, or that the version in
/// which the array is stored cannot express.
pub fn array(
    array: &ArrayMetadata,
    stored: &StoredDocuments<'_>,
    shown_as: ShownAs,
    (name, written): (DocumentName, &[u8]),
    parse: impl Fn(&[u8]) -> Result<ArrayMetadata, FormatError>,
) -> Result<NodeDocuments, FormatError> {
    if array.zarr_format == ZarrFormat::N5 {
        return Err(FormatError::unsupported("", "format for writing", "N5"));
    }
    let own = write::attributes_of_array(array.zarr_format, stored)?;
    let own = own.unwrap_or_else(|| EMPTY.to_vec());
    let change = match name {
        DocumentName::ZAttrs => of_attributes(array, (stored, shown_as), &own, written)?,
        _ => of_document(array, stored, shown_as, (name, written), &own)?,
    };
    let mut new = NodeDocuments {
        is_array: true,
        document: stored.document.to_vec(),
        attributes: stored.attributes.map(<[u8]>::to_vec),
    };
    if let Some(shape) = change.shape.filter(|shape| *shape != array.shape) {
        let changed = carry::with_member(&new.document, "shape", Some(list_of(&shape).as_bytes()))?;
        new.document = v3::covering(&changed)?.into_owned();
    }
    if let Some(names) = change.names {
        let names = names.map(|names| Value::from_iter(names).to_string());
        let names = names.as_ref().map(String::as_bytes);
        new.document = carry::with_member(&new.document, "dimension_names", names)?;
    }
    if let Some(attributes) = &change.attributes {
        put_attributes(array.zarr_format, &mut new, (&own, attributes))?;
    }
    check(array, &new, shown_as, (name, written), parse)?;
    Ok(new)
}

/// Changes the attributes in `documents`, of which `before` was shown, to `after`.
pub(super) fn put_attributes(
    format: ZarrFormat,
    documents: &mut NodeDocuments,
    (before, after): (&[u8], &[u8]),
) -> Result<(), FormatError> {
    if matches!(format, ZarrFormat::V3 | ZarrFormat::Draft) {
        let [before, after] = [before, after].map(|text| carry::object_of("attributes", text));
        documents.document = carry::carried(&documents.document, &before, &after)?;
        return Ok(());
    }
    let stored = documents.attributes.as_deref();
    let stored = stored.filter(|text| !say_nothing(text));
    let new = carried_in(
        ObjectKind::Attributes,
        stored.unwrap_or(EMPTY),
        before,
        after,
    )?;
    documents.attributes = match stored {
        None if is_empty(&new)? => None,
        _ => Some(new),
    };
    Ok(())
}

/// The changes that `written`, the array's document in the shown version, makes.
fn of_document(
    array: &ArrayMetadata,
    stored: &StoredDocuments<'_>,
    shown_as: ShownAs,
    (name, written): (DocumentName, &[u8]),
    own: &[u8],
) -> Result<Change, FormatError> {
    let shown = write::array(array, stored, shown_as.content, shown_as.target)?;
    let after = check_same_chunks(name, (&shown, written), FIXED)?;
    if name == DocumentName::ZArray {
        check_known(&shown, written, &[])?;
        return Ok(Change {
            shape: Some(after.shape),
            ..Change::default()
        });
    }
    let more = ["attributes", "dimension_names", "storage_transformers"];
    check_known(&shown, written, &more)?;
    strict::check_attributes_v3(written)?;
    let before = parse_array(name, &shown)?;
    let mut attributes = attributes_in(written)?;
    let shown_attributes = attributes_in(&shown)?;
    let spell = |value: &RawValue| {
        // Without names the attribute is shown as it is stored.
        let named = after.dimension_names.as_ref().map(|_| &before);
        named.and_then(|array| respelled(array, value, missing::respelled_v2))
    };
    attributes = with_missing(attributes, (own, &shown_attributes), spell)?;
    if after.dimension_names.is_some() || before.dimension_names.is_some() {
        attributes = with_names(&attributes, own, (&before, &after))?;
    }
    Ok(Change {
        shape: Some(after.shape),
        attributes: Some(attributes),
        names: None,
    })
}

/// The written `attributes`, in which `_FillValue` and `missing_value` are those of the stored attributes `own`, unless they
/// differ from those of the `shown` attributes. A new `_FillValue` is respelled by `spell`. The `shown` attributes may have
/// one of the two in place of the other, or the fill value in place of either, or none.
fn with_missing(
    attributes: Vec<u8>,
    (own, shown): (&[u8], &[u8]),
    spell: impl FnOnce(&RawValue) -> Option<String>,
) -> Result<Vec<u8>, FormatError> {
    let changed = carry::differences(shown, &attributes)?;
    let is_new = |name: &str| changed.iter().any(|member| member == name);
    let mut attributes = attributes;
    for name in [FILL_VALUE, MISSING_VALUE] {
        if !is_new(name) {
            let value = member_text(own, name)?;
            attributes = carry::with_member(&attributes, name, value.as_deref())?;
        }
    }
    match missing::member(&attributes, FILL_VALUE, spell)?.filter(|_| is_new(FILL_VALUE)) {
        Some(value) => carry::with_member(&attributes, FILL_VALUE, Some(value.as_bytes())),
        None => Ok(attributes),
    }
}

/// The attribute `_FillValue` of `array` as `spell` spells it.
fn respelled(
    array: &ArrayMetadata,
    value: &RawValue,
    spell: impl FnOnce(&DataType, &RawValue) -> Option<String>,
) -> Option<String> {
    let decoding = array.decoding.as_ref().ok()?;
    spell(&render::stored_type(decoding), value)
}

/// Whether the member `name` is not the same in both objects.
fn differs(name: &str, one: &[u8], other: &[u8]) -> Result<bool, FormatError> {
    let members = carry::differences(one, other)?;
    Ok(members.iter().any(|member| member == name))
}

/// The written `attributes`, in which `_ARRAY_DIMENSIONS` are the names of the dimensions of `after`. Names that are the
/// same as `before` stay where the store has them, which may be another place.
fn with_names(
    attributes: &[u8],
    own: &[u8],
    (before, after): (&ArrayMetadata, &ArrayMetadata),
) -> Result<Vec<u8>, FormatError> {
    let has = |member: &String| member == ARRAY_DIMENSIONS;
    let is_written = carry::differences(attributes, EMPTY)?.iter().any(has);
    if is_written && carry::differences(own, attributes)?.iter().any(has) {
        let names = dimension_names_in(attributes, after.shape.len())?;
        if names != after.dimension_names {
            let problem = "the attribute _ARRAY_DIMENSIONS says something else";
            return Err(FormatError::document("dimension_names", problem));
        }
    }
    if after.dimension_names == before.dimension_names {
        let list = member_text(own, ARRAY_DIMENSIONS)?;
        return carry::with_member(attributes, ARRAY_DIMENSIONS, list.as_deref());
    }
    let names = after.dimension_names.as_ref().map(|names| {
        list_of_names(names).ok_or_else(|| {
            let problem = "the stored version has a name for each dimension, or none";
            FormatError::document("dimension_names", problem)
        })
    });
    carry::with_member(attributes, ARRAY_DIMENSIONS, names.transpose()?.as_deref())
}

/// The changes that `written`, the document of the attributes in v2, makes. A list of names in it becomes the member
/// `dimension_names` of v3, as xarray means it.
fn of_attributes(
    array: &ArrayMetadata,
    (stored, shown_as): (&StoredDocuments<'_>, ShownAs),
    own: &[u8],
    written: &[u8],
) -> Result<Change, FormatError> {
    let only = |attributes| Change {
        attributes: Some(attributes),
        ..Change::default()
    };
    if array.zarr_format != ZarrFormat::V3 {
        return Ok(only(written.to_vec()));
    }
    let shown = write::array_attributes_v2(array, stored, shown_as.content)?;
    let shown = shown.as_deref().unwrap_or(EMPTY);
    let spell = |value: &RawValue| respelled(array, value, missing::respelled_v3);
    let with_own = with_missing(written.to_vec(), (own, shown), spell)?;
    if !differs(ARRAY_DIMENSIONS, shown, written)? {
        // The store may have another attribute of that name, or none.
        let list = member_text(own, ARRAY_DIMENSIONS)?;
        let attributes = carry::with_member(&with_own, ARRAY_DIMENSIONS, list.as_deref())?;
        return Ok(only(attributes));
    }
    // Names of which one is missing are not shown in v2, so that they do not change. An array without dimensions
    // has no names, whatever its document has.
    let before = array.dimension_names.as_ref();
    let is_shown =
        before.is_some_and(|names| names.iter().all(Option::is_some) && !names.is_empty());
    Ok(match dimension_names_in(written, array.shape.len()) {
        Ok(Some(names)) => {
            let attributes = carry::with_member(&with_own, ARRAY_DIMENSIONS, None)?;
            let attributes = with_mask((array, own), attributes, shown_as)?;
            Change {
                names: Some(Some(names)),
                ..only(attributes)
            }
        }
        _ => Change {
            names: is_shown.then_some(None),
            ..only(with_own)
        },
    })
}

/// The `attributes` of an array of v3 whose dimensions get names through v2. Once an array of v2 has such names, xarray
/// takes its fill value for missing. So the v3 array gets `_FillValue`, as it does if `.zattrs` is written before
/// `.zarray`.
fn with_mask(
    (array, own): (&ArrayMetadata, &[u8]),
    attributes: Vec<u8>,
    shown_as: ShownAs,
) -> Result<Vec<u8>, FormatError> {
    let is_declared = differs(FILL_VALUE, &attributes, EMPTY)?;
    if is_declared || missing::is_opened_by_xarray(array) {
        return Ok(attributes);
    }
    let shown = MissingInV2::of(array, Some(own), shown_as.content)?.fill_value;
    let decoding = array.decoding.as_ref().map_err(Clone::clone)?;
    match missing::spell_v3(&render::stored_type(decoding), &shown) {
        Some(value) => carry::with_member(&attributes, FILL_VALUE, Some(value.as_bytes())),
        None => Ok(attributes),
    }
}

/// Refuses `new` unless the view shows it as `written`.
fn check(
    array: &ArrayMetadata,
    new: &NodeDocuments,
    shown_as: ShownAs,
    (name, written): (DocumentName, &[u8]),
    parse: impl Fn(&[u8]) -> Result<ArrayMetadata, FormatError>,
) -> Result<(), FormatError> {
    let metadata = parse(&new.document)?;
    let refused = |member: &str| {
        let problem = "the node would not be shown as it was written";
        Err(FormatError::document(member, problem))
    };
    if !metadata.has_same_chunks(array) {
        return refused("the document");
    }
    let source = StoredDocuments {
        document: &new.document,
        attributes: new.attributes.as_deref(),
    };
    if name == DocumentName::ZAttrs {
        let shown = write::array_attributes_v2(&metadata, &source, shown_as.content)?;
        let shown = shown.as_deref().unwrap_or(EMPTY);
        let mut changed = differences_in(ObjectKind::Attributes, shown, written)?;
        // It is shown of every array without dimensions, and may be missing.
        let may_miss = metadata.shape.is_empty() && !differs(ARRAY_DIMENSIONS, written, EMPTY)?;
        changed.retain(|member| member != ARRAY_DIMENSIONS || !may_miss);
        // The fill value says it.
        let is_said = missing::is_said_in_v2(&metadata, &source, (shown_as.content, written))?;
        changed.retain(|member| member != FILL_VALUE || !is_said);
        return changed.first().map_or(Ok(()), |member| refused(member));
    }
    let shown = write::array(&metadata, &source, shown_as.content, shown_as.target)?;
    let after = check_same_chunks(name, (&shown, written), FIXED)?;
    let shown_again = parse_array(name, &shown)?;
    if shown_again.shape != after.shape {
        return refused("shape");
    }
    if name == DocumentName::ZArray {
        return Ok(());
    }
    if shown_again.dimension_names != after.dimension_names {
        return refused("dimension_names");
    }
    let (shown, written) = (attributes_in(&shown)?, attributes_in(written)?);
    let changed = differences_in(ObjectKind::Attributes, &shown, &written)?;
    // In v2, the names of the dimensions are among the attributes. They are those of `dimension_names`. `_FillValue` is
    // shown for every array with names and a fill value, but may be missing from a written document.
    let is_without = !differs(FILL_VALUE, &written, EMPTY)?;
    let may_differ =
        |member: &str| member == ARRAY_DIMENSIONS || member == FILL_VALUE && is_without;
    match changed.iter().find(|member| !may_differ(member)) {
        Some(member) if member == FILL_VALUE => refused(FILL_VALUE),
        Some(_) => refused("attributes"),
        None => Ok(()),
    }
}
