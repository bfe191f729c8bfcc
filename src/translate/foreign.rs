//! Documents that are shown in another Zarr version than that of their nodes (`--as`).
//!
//! Such a document may be made from several objects, as the `zarr.json` of an array of v2 is. The changes that are
//! written to it are carried back to these objects, one after the other: the attributes first, so that a new node is
//! whole when its own document appears.

use super::copies::{NamedTexts, Wish, consolidate_v3, consolidated_v2};
use super::document::check_object;
use super::{ObjectChange, Presentation};
use crate::error::{Error, FormatError};
use crate::metadata::translate::{self, NodeDocuments, ShownAs, StoredAs};
use crate::metadata::write::StoredDocuments;
use crate::metadata::{ArrayMetadata, DocumentName, NodeMetadata, Target, ZarrFormat, v3};
use crate::store::{Key, Replaces};

const EMPTY: &[u8] = b"{}";

/// The bytes of an object, and the version that a change of them replaces.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) key: Key,
    /// `None` if the object is absent.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) replaces: Replaces,
}

impl Text {
    /// The change of the object to `bytes`, if it changes at all.
    pub(crate) fn changed(&self, bytes: Option<Vec<u8>>) -> Option<ObjectChange> {
        (bytes != self.bytes).then(|| ObjectChange {
            key: self.key.clone(),
            bytes,
            replaces: self.replaces,
        })
    }
}

/// The stored documents of a node.
#[derive(Debug)]
pub(crate) struct NodeTexts {
    pub(crate) own: Text,
    /// The document of its attributes, if the version has one.
    pub(crate) attributes: Option<Text>,
}

impl NodeTexts {
    fn stored<'a>(&'a self, absent: &'a [u8]) -> StoredDocuments<'a> {
        let attributes = self.attributes.as_ref();
        StoredDocuments {
            document: self.own.bytes.as_deref().unwrap_or(absent),
            attributes: attributes.and_then(|text| text.bytes.as_deref()),
        }
    }

    /// The changes to `new`, the attributes first.
    fn changed(&self, new: NodeDocuments) -> Vec<ObjectChange> {
        let attributes = self.attributes.as_ref();
        let attributes = attributes.and_then(|text| text.changed(new.attributes));
        let own = self.own.changed(Some(new.document));
        attributes.into_iter().chain(own).collect()
    }

    /// Like [`changed`](Self::changed), except that an absent own document stays absent.
    fn changed_where_stored(&self, new: NodeDocuments) -> Vec<ObjectChange> {
        let mut changes = self.changed(new);
        changes.retain(|change| self.own.bytes.is_some() || change.key != self.own.key);
        changes
    }
}

/// An array that is shown in another version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredArray<'a> {
    pub(crate) metadata: &'a ArrayMetadata,
    pub(crate) shown_as: ShownAs,
}

/// A document that is shown in another version than the one of its node.
#[derive(Debug)]
pub(crate) struct ForeignDocument {
    /// The key that it would have, for messages.
    pub(crate) key: Key,
    pub(crate) name: DocumentName,
    pub(crate) presentation: Presentation,
}

impl ForeignDocument {
    /// Checks that `written` is a JSON object.
    ///
    /// # Errors
    /// [`Error::Unacceptable`].
    pub(crate) fn check_object(&self, written: &[u8]) -> Result<(), Error> {
        check_object(&self.key, written)
    }

    /// Whether `written` describes an array.
    pub(crate) fn makes_array(&self, written: &[u8]) -> bool {
        match self.name {
            DocumentName::ZArray => true,
            DocumentName::ZarrJson => matches!(v3::parse(written), Ok(NodeMetadata::Array(_))),
            _ => false,
        }
    }

    /// The changes of the documents of `array` that carry `written` back to them. `parse` reads a stored document of
    /// the array.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when the array cannot be changed in this way, or the view could not show it.
    pub(crate) fn of_array(
        &self,
        array: StoredArray<'_>,
        texts: &NodeTexts,
        written: &[u8],
        parse: impl Fn(&[u8]) -> Result<ArrayMetadata, FormatError>,
    ) -> Result<Vec<ObjectChange>, Error> {
        let new = self.carried(array, &texts.stored(b""), written, parse)?;
        Ok(texts.changed_where_stored(new))
    }

    /// The changes that restore the documents of an array whose own document, `before`, was removed while its chunks
    /// stayed. The stored document is the old one with the changes, because the chunks are encoded as the old one says.
    ///
    /// # Errors
    /// Those of [`of_array`](Self::of_array).
    pub(crate) fn of_ended(
        &self,
        array: StoredArray<'_>,
        (before, texts): (&[u8], &NodeTexts),
        written: &[u8],
        parse: impl Fn(&[u8]) -> Result<ArrayMetadata, FormatError>,
    ) -> Result<Vec<ObjectChange>, Error> {
        let stored = StoredDocuments {
            document: before,
            attributes: None,
        };
        let new = self.carried(array, &stored, written, parse)?;
        Ok(texts.changed(new))
    }

    fn carried(
        &self,
        array: StoredArray<'_>,
        stored: &StoredDocuments<'_>,
        written: &[u8],
        parse: impl Fn(&[u8]) -> Result<ArrayMetadata, FormatError>,
    ) -> Result<NodeDocuments, Error> {
        let written = (self.name, written);
        let shown_as = array.shown_as;
        let new = translate::array(array.metadata, stored, shown_as, written, &parse);
        let can_be_shown = |new: NodeDocuments| {
            let metadata = parse(&new.document)?;
            (self.presentation).check_can_show(&metadata, Some(shown_as.target))?;
            Ok(new)
        };
        let new = new.and_then(can_be_shown);
        new.map_err(|error| self.refused(error))
    }

    /// The wish for consolidated metadata of a program that has `written` the document over the document `before`.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when the document has no consolidated metadata that can be parsed.
    pub(crate) fn wish(
        &self,
        written: &[u8],
        before: Option<&[u8]>,
    ) -> Result<Option<Wish>, Error> {
        Wish::of((self.name, written), before).map_err(|error| self.refused(error))
    }

    /// The documents to store when `written` replaces the document of a group of the version `format`.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when the group cannot become as it is written.
    pub(crate) fn of_group(
        &self,
        format: ZarrFormat,
        texts: &NodeTexts,
        written: &[u8],
    ) -> Result<Vec<ObjectChange>, Error> {
        Ok(texts.changed_where_stored(self.group(format, texts, written)?))
    }

    /// Like [`of_group`](Self::of_group), with the wish for consolidated metadata. The `copies` are those of the existing
    /// documents that the wish [names](Wish::names). In v2 they have an object of their own, `holder`.
    ///
    /// # Errors
    /// Those of [`of_group`](Self::of_group).
    pub(crate) fn of_group_with_copies(
        &self,
        (format, texts): (ZarrFormat, &NodeTexts),
        written: &[u8],
        (wish, copies): (&Wish, NamedTexts),
        holder: Option<&Text>,
    ) -> Result<Vec<ObjectChange>, Error> {
        let mut new = self.group(format, texts, written)?;
        if format == ZarrFormat::Draft {
            return Err(self.refused("drafts have no consolidated metadata"));
        }
        let copies_changed = match holder {
            None => {
                consolidate_v3(wish, copies, &mut new).map_err(|error| self.refused(error))?;
                None
            }
            Some(holder) => {
                let text = consolidated_v2(wish, copies, &new);
                holder.changed(text.map_err(|error| self.refused(error))?)
            }
        };
        let mut changes = texts.changed_where_stored(new);
        changes.extend(copies_changed);
        Ok(changes)
    }

    fn group(
        &self,
        format: ZarrFormat,
        texts: &NodeTexts,
        written: &[u8],
    ) -> Result<NodeDocuments, Error> {
        // A group of v2 may have only consolidated metadata.
        let stored = texts.stored(b"{\"zarr_format\": 2}");
        let new = translate::group(format, &stored, (self.name, written));
        new.map_err(|error| self.refused(error))
    }

    /// The documents of the new node `written`, which is stored in the version `to`. A group that was there before may
    /// have left `attributes`.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when that version cannot express the node, or the view would show it differently.
    pub(crate) fn new_node(
        &self,
        written: &[u8],
        attributes: Option<&[u8]>,
        (target, to): (Target, StoredAs),
    ) -> Result<NodeDocuments, Error> {
        let shown_as = ShownAs {
            target,
            content: self.presentation.content_of_new(),
        };
        let new = translate::new_node((self.name, written), attributes, shown_as, to);
        new.map_err(|error| self.refused(error))
    }

    /// The changes that remove the attributes of an array, which are shown as a document of their own.
    ///
    /// # Errors
    /// Those of [`of_array`](Self::of_array).
    pub(crate) fn without_attributes(
        &self,
        array: StoredArray<'_>,
        texts: &NodeTexts,
        parse: impl Fn(&[u8]) -> Result<ArrayMetadata, FormatError>,
    ) -> Result<Vec<ObjectChange>, Error> {
        let mut changes = self.of_array(array, texts, EMPTY, parse)?;
        let attributes = texts.attributes.as_ref().map(|text| &text.key);
        for change in &mut changes {
            if attributes == Some(&change.key) {
                change.bytes = None;
            }
        }
        Ok(changes)
    }

    /// The error for a document that must not be saved.
    pub(crate) fn refused(&self, reason: impl ToString) -> Error {
        Error::unacceptable(&self.key, reason)
    }
}

#[cfg(test)]
mod tests;
