//! GDAL's attribute `_CRS`, by which its driver of Zarr knows the coordinate system of an array. Documents that are
//! shown in a version of the user's choice have it where the store has the coordinate system in another form.
//!
//! ```text
//! .zattrs     {"grid_mapping": "crs", "_CRS": {"wkt": ..}}
//! zarr.json   {.., "attributes": {"grid_mapping": "crs", "_CRS": {"wkt": ..}}}
//! ```
//!
//! <https://gdal.org/drivers/raster/zarr.html>, section "SRS encoding".

use super::DocumentName;
use super::carry::{differences, object_of, with_member};
use super::document::JsonDocument;
use super::translate::attributes_in;
use crate::error::FormatError;

const CRS: &str = "_CRS";
const ATTRIBUTES: &str = "attributes";

/// `text`, the document `name` of an array, with the attribute of this `value`, JSON. If the document has the attribute
/// already, that stays.
///
/// # Errors
/// When the document or its attributes are no JSON object.
pub fn with_crs(name: DocumentName, text: &[u8], value: &str) -> Result<Vec<u8>, FormatError> {
    edited(name, text, |attributes| {
        let is_absent = own(attributes)?.is_none();
        let added = is_absent.then(|| with_member(attributes, CRS, Some(value.as_bytes())));
        added.transpose()
    })
}

/// `text`, the document `name` of an array, without the attribute, if that is the one of this `value`, JSON.
///
/// # Errors
/// When the document or its attributes are no JSON object.
pub fn without_crs(name: DocumentName, text: &[u8], value: &str) -> Result<Vec<u8>, FormatError> {
    edited(name, text, |attributes| {
        let Some(own) = own(attributes)? else {
            return Ok(None);
        };
        let added = object_of(CRS, value.as_bytes());
        let is_added = differences(&object_of(CRS, &own), &added)?.is_empty();
        let removed = is_added.then(|| with_member(attributes, CRS, None));
        removed.transpose()
    })
}

/// The document with the attributes that `edit` makes. `edit` returns `None` if it changes nothing.
fn edited(
    name: DocumentName,
    text: &[u8],
    edit: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, FormatError>,
) -> Result<Vec<u8>, FormatError> {
    match name {
        DocumentName::ZAttrs => Ok(edit(text)?.unwrap_or_else(|| text.to_vec())),
        DocumentName::ZarrJson => match edit(&attributes_in(text)?)? {
            Some(attributes) => with_member(text, ATTRIBUTES, Some(&attributes)),
            None => Ok(text.to_vec()),
        },
        DocumentName::ZArray | DocumentName::ZGroup | DocumentName::ZMetadata => Ok(text.to_vec()),
    }
}

/// The text of the attribute in an object of attributes.
fn own(attributes: &[u8]) -> Result<Option<Vec<u8>>, FormatError> {
    let document = JsonDocument::parse(attributes)?;
    let found = document.root()?.get(CRS);
    Ok(found.map(|value| document.text_of(value).to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = r#"{"url": "http://www.opengis.net/def/crs/EPSG/0/32632"}"#;

    fn with(name: DocumentName, text: &str) -> String {
        String::from_utf8(with_crs(name, text.as_bytes(), VALUE).unwrap()).unwrap()
    }

    fn without(name: DocumentName, text: &str) -> String {
        String::from_utf8(without_crs(name, text.as_bytes(), VALUE).unwrap()).unwrap()
    }

    #[test]
    fn the_attribute_is_added_and_taken_out_again() {
        for (name, text) in [
            (DocumentName::ZAttrs, r#"{"a":  1}"#),
            (DocumentName::ZAttrs, "{}"),
            (
                DocumentName::ZarrJson,
                r#"{"zarr_format": 3, "attributes": {"a":  1}}"#,
            ),
            (
                DocumentName::ZarrJson,
                r#"{"attributes": {},  "zarr_format": 3}"#,
            ),
        ] {
            let shown = with(name, text);
            assert!(shown.contains(VALUE), "{shown}");
            assert_eq!(without(name, &shown), text);
        }
        let shown = with(DocumentName::ZarrJson, r#"{"zarr_format": 3}"#);
        assert_eq!(
            without(DocumentName::ZarrJson, &shown),
            r#"{"zarr_format": 3, "attributes": {}}"#
        );
        assert_eq!(with(DocumentName::ZArray, "{}"), "{}");
    }

    #[test]
    fn an_attribute_of_the_user_stays() {
        for text in [
            r#"{"_CRS": null}"#,
            r#"{"_CRS": {"url": "EPSG:4326"}, "a": 1}"#,
        ] {
            assert_eq!(with(DocumentName::ZAttrs, text), text);
            assert_eq!(without(DocumentName::ZAttrs, text), text);
        }
        let respelled = format!(r#"{{"a": 1, "_CRS" : {}}}"#, VALUE.replace(": ", ":"));
        assert_eq!(without(DocumentName::ZAttrs, &respelled), r#"{"a": 1}"#);
        assert!(with_crs(DocumentName::ZAttrs, b"[]", VALUE).is_err());
    }
}
