//! GDAL's attribute `_CRS` in the documents of a mount with `--as`.

use crate::error::Error;
use crate::metadata::DocumentName;
use crate::metadata::crs_attribute::{with_crs, without_crs};
use crate::store::Prefix;
use crate::view::documents::Documents;

impl Documents {
    /// The value of the attribute for the document `name` of the node at `path`: JSON. `None` if none is added.
    pub(super) fn crs_to_add(
        &self,
        path: &Prefix,
        name: DocumentName,
    ) -> Result<Option<String>, Error> {
        let has_attributes = matches!(name, DocumentName::ZAttrs | DocumentName::ZarrJson);
        if !has_attributes || self.tree.options.shown_as.is_none() {
            return Ok(None);
        }
        self.arrays.gdal_crs(path)
    }

    /// `text`, the document `name` of the array at `path`, with the attribute.
    pub(super) fn with_crs(
        &self,
        path: &Prefix,
        name: DocumentName,
        text: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let is_absent = text.is_none();
        // A user who removes attributes finds none.
        if is_absent && self.tree.is_writable() {
            return Ok(None);
        }
        let Some(value) = self.crs_to_add(path, name)? else {
            return Ok(text);
        };
        let text = text.unwrap_or_else(|| b"{}".to_vec());
        let added = with_crs(name, &text, &value);
        added
            .map(Some)
            .map_err(|error| Error::in_document(path, error))
    }

    /// `written`, the document `name` of the array at `path`, without the attribute if the mount has added it, so that it
    /// is not stored.
    pub(in crate::view) fn without_added_crs(
        &self,
        path: &Prefix,
        name: DocumentName,
        written: &[u8],
    ) -> Result<Vec<u8>, Error> {
        match self.crs_to_add(path, name)? {
            Some(value) => {
                without_crs(name, written, &value).map_err(|error| Error::unacceptable(path, error))
            }
            None => Ok(written.to_vec()),
        }
    }
}
