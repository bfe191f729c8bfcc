//! The documents of one array, as its view shows them.

use crate::budget::Holding;
use crate::error::Error;
use crate::metadata::missing::MissingInV2;
use crate::metadata::write::{StoredDocuments, attributes_of_array};
use crate::metadata::{DocumentName, Target, ZarrFormat, write};
use crate::view::nodes::node::{FileForm, ReadAttributes, ShownArray};
use crate::view::options::ViewKind;
use crate::view::tree::Tree;

impl Tree {
    /// The document `name` of an array as its view shows it; `None` when the array has no such
    /// document.
    pub(in crate::view) fn array_document(
        &self,
        array: &ShownArray,
        name: DocumentName,
    ) -> Result<Option<Vec<u8>>, Error> {
        if let Some(target) = array.foreign {
            return self.array_text(array, name, target);
        }
        let key = if name == DocumentName::ZAttrs {
            array.node.attributes.as_ref()
        } else {
            Some(&array.node.document.key)
        };
        let text = match key {
            Some(key) => self.hierarchy.read(key, Holding::SOURCE)?,
            None => None,
        };
        let Some(text) = text else { return Ok(None) };
        Ok(Some(match name {
            DocumentName::ZAttrs => text.bytes,
            _ => self.translated(array, &text.bytes)?,
        }))
    }

    /// Checks that the document of an array can describe the files that the view shows. If the document of its
    /// attributes is read for that, its key and its version are put into `attributes`.
    pub(in crate::view) fn check_document(
        &self,
        array: &ShownArray,
        attributes: &mut Option<ReadAttributes>,
    ) -> Result<(), Error> {
        // The arrays view shows no document of the array.
        if array.view == ViewKind::Arrays {
            return Ok(());
        }
        if let Some(target) = array.foreign {
            let read = |version| {
                let key = array.node.attributes.clone()?;
                Some(ReadAttributes { key, version })
            };
            *attributes = read(None);
            let documents = self.hierarchy.documents(&array.node)?;
            let documents = documents.ok_or(Error::Stale)?;
            *attributes = read(documents.attributes().map(|found| found.meta.version));
            return written(array, DocumentName::ZarrJson, target, &documents.source()).map(drop);
        }
        match (array.form, array.node.metadata.zarr_format) {
            // Every v2 or v3 document that can be decoded can be edited; those of older versions
            // are tried.
            (FileForm::Stored, _) | (_, ZarrFormat::V2 | ZarrFormat::V3) => Ok(()),
            _ => self
                .array_document(array, DocumentName::ZarrJson)
                .map(|_| ()),
        }
    }

    /// The document of `array`, or a consolidated copy of it, as the view shows it.
    pub(in crate::view) fn translated(
        &self,
        array: &ShownArray,
        text: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let presentation = self.options.presentation(array.view);
        presentation
            .render(text, &array.node.metadata, array.form)
            .map_err(|error| Error::in_document(&array.node.document.key, error))
    }

    /// The elements that programs take as missing according to the v2 document of an array.
    pub(in crate::view) fn missing_in_v2(&self, array: &ShownArray) -> Result<MissingInV2, Error> {
        let documents = self.hierarchy.documents(&array.node)?;
        let documents = documents.ok_or(Error::Stale)?;
        let metadata = &array.node.metadata;
        let attributes = attributes_of_array(metadata.zarr_format, &documents.source());
        let found =
            attributes.and_then(|text| MissingInV2::of(metadata, text.as_deref(), array.content));
        found.map_err(|error| Error::in_document(&array.node.document.key, error))
    }

    /// The document `name` of an array, written in `target`; `None` when it has no such document.
    pub(in crate::view) fn array_text(
        &self,
        array: &ShownArray,
        name: DocumentName,
        target: Target,
    ) -> Result<Option<Vec<u8>>, Error> {
        let documents = self.hierarchy.documents(&array.node)?;
        let documents = documents.ok_or(Error::Stale)?;
        written(array, name, target, &documents.source())
    }
}

/// The document `name` of `array` in the version of `target`, made of the stored documents; `None` if it has none.
fn written(
    array: &ShownArray,
    name: DocumentName,
    target: Target,
    source: &StoredDocuments<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    let metadata = &array.node.metadata;
    let text = match name {
        DocumentName::ZAttrs => write::array_attributes_v2(metadata, source, array.content),
        _ => write::array(metadata, source, array.content, target).map(Some),
    };
    text.map_err(|error| Error::in_document(&array.node.document.key, error))
}
