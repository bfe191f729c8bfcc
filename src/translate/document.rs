//! Metadata documents that are shown in the version in which they are stored.
//!
//! A document describes the files that the view shows, so a program may write only a document that the view could show.
//! The changes that the program made are carried back to the stored document, and the result is shown again. If the
//! result differs from the written document, nothing is saved.

use super::presentation::Presentation;
use crate::error::{Error, FormatError};
use crate::metadata::carry::{
    ObjectKind, carried, carried_in, differences, differences_in, nothing_in,
};
use crate::metadata::{ArrayMetadata, DocumentName, NodeMetadata, strict, v2, v3};
use crate::store::Key;

/// The member that gives the separator of chunk keys.
const SEPARATOR: &str = "dimension_separator";

/// A document that is shown in the version in which it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    pub(crate) key: &'a Key,
    pub(crate) presentation: Presentation,
}

/// The array that a document describes, and its texts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DescribedArray<'a> {
    pub(crate) metadata: &'a ArrayMetadata,
    pub(crate) stored: &'a [u8],
    pub(crate) shown: &'a [u8],
}

impl Document<'_> {
    /// Checks that `written` is a JSON object.
    ///
    /// # Errors
    /// [`Error::Unacceptable`].
    pub(crate) fn check_object(&self, written: &[u8]) -> Result<(), Error> {
        check_object(self.key, written)
    }

    /// The stored document of `array` with the changes that `written` makes to the shown one. `parse` reads a stored
    /// document of the array.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when the array cannot be changed in this way, or would not be shown as it was written.
    pub(crate) fn of_array(
        &self,
        array: DescribedArray<'_>,
        written: &[u8],
        parse: impl Fn(&[u8]) -> Result<ArrayMetadata, Error>,
    ) -> Result<Vec<u8>, Error> {
        let DescribedArray { stored, shown, .. } = array;
        let new = carried(stored, shown, written).map_err(|error| self.refused(error))?;
        let new = v3::covering(&new).map_err(|error| self.refused(error))?;
        let metadata = parse(&new).map_err(|error| self.refused(error))?;
        self.check_strict(&metadata, written, Some(shown))?;
        if !array.metadata.has_same_chunks(&metadata) {
            let changed = self.differences(shown, written)?;
            let mut fixed = changed.iter().filter(|name| !may_change(name));
            let name = fixed.next().or(changed.first());
            let name = name.map_or("shape", String::as_str);
            let reason = format!("{name:?} cannot be changed{}", hint(name));
            return Err(self.refused(reason));
        }
        self.check_shown(&new, &metadata, written)?;
        Ok(new.into_owned())
    }

    /// Refuses the document `written` of a new array if a strict reader could not use it, or if the view would show it
    /// differently.
    ///
    /// # Errors
    /// [`Error::Unacceptable`].
    pub(crate) fn check_new_array(
        &self,
        metadata: &ArrayMetadata,
        written: &[u8],
    ) -> Result<(), Error> {
        self.check_strict(metadata, written, None)?;
        self.check_shown(written, metadata, written)
    }

    /// The document to store when `written` replaces the document of a node that is not an array. That document was
    /// `stored`, and `shown` in its own version.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when it is not a JSON object.
    pub(crate) fn of_other(
        &self,
        (stored, shown): (&[u8], &[u8]),
        written: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let is_attributes = DocumentName::of(self.key.name()) == Some(DocumentName::ZAttrs);
        // Attributes that no reader can parse are written anew.
        if is_attributes && differences(stored, stored).is_err() {
            return Ok(written);
        }
        let kind = ObjectKind::of(self.key.name());
        carried_in(kind, stored, shown, &written).map_err(|error| self.refused(error))
    }

    /// Refuses `stored` unless the view shows it as `written`.
    fn check_shown(
        &self,
        stored: &[u8],
        metadata: &ArrayMetadata,
        written: &[u8],
    ) -> Result<(), Error> {
        let shown = self.shown(stored, metadata)?;
        self.check_same(&shown, written)?;
        let can_show = self.presentation.check_can_show(metadata, None);
        can_show.map_err(|error| self.refused(error))
    }

    /// The document `stored` of an array with this metadata, as the view shows it.
    ///
    /// # Errors
    /// [`Error::Unacceptable`] when the view cannot show it.
    pub(crate) fn shown(&self, stored: &[u8], metadata: &ArrayMetadata) -> Result<Vec<u8>, Error> {
        let (form, _) = self.presentation.form_of_chunks(metadata, None);
        let shown = self.presentation.render(stored, metadata, form);
        shown.map_err(|error| self.refused(error))
    }

    fn check_same(&self, shown: &[u8], written: &[u8]) -> Result<(), Error> {
        let mut changed = self.differences(shown, written)?;
        // A member that is null means the same as an absent one, and is not shown.
        let nothing = nothing_in(written).map_err(|error| self.refused(error))?;
        changed.retain(|name| !nothing.contains(name));
        let Some(name) = changed.first() else {
            return Ok(());
        };
        let reason = format!("{name:?} is not what this view shows{}", hint(name));
        Err(self.refused(reason))
    }

    /// Refuses a document that a strict reader of its version does not accept, or whose chunks such a reader looks for
    /// under other keys. `shown` is the document that the writer has changed; `None` for a new document.
    fn check_strict(
        &self,
        metadata: &ArrayMetadata,
        written: &[u8],
        shown: Option<&[u8]>,
    ) -> Result<(), Error> {
        if DocumentName::of(self.key.name()).is_none() {
            // Documents before v2 have no strict readers.
            return Ok(());
        }
        let checked = strict::check_array(metadata, written, shown);
        checked.map_err(|error| self.refused(error))?;
        if !metadata.separator_is_assumed || metadata.chunk_keys.separator != b'/' {
            return Ok(());
        }
        let is_dropped = match shown {
            Some(shown) => (self.differences(shown, written)?.iter()).any(|name| name == SEPARATOR),
            None => true,
        };
        if is_dropped {
            let reason = format!(
                "{SEPARATOR:?} is missing, and the keys of chunks have the separator \"/\""
            );
            return Err(self.refused(reason));
        }
        Ok(())
    }

    fn differences(&self, one: &[u8], other: &[u8]) -> Result<Vec<String>, Error> {
        differences(one, other).map_err(|error| self.refused(error))
    }

    /// The error for a document that must not be saved.
    pub(crate) fn refused(&self, reason: impl ToString) -> Error {
        Error::unacceptable(self.key, reason)
    }
}

/// The node that the new document `written` of this name describes. A document that does not describe a node by
/// itself counts as that of a group.
///
/// # Errors
/// [`FormatError`] when no reader could use it.
pub(crate) fn parse_new(
    name: Option<DocumentName>,
    written: &[u8],
) -> Result<NodeMetadata, FormatError> {
    match name {
        Some(DocumentName::ZarrJson) => {
            strict::check_attributes_v3(written)?;
            v3::parse(written)
        }
        Some(DocumentName::ZArray) => {
            v2::parse_array(written).map(|array| NodeMetadata::Array(Box::new(array)))
        }
        Some(DocumentName::ZGroup) => v2::parse_group(written).map(|()| NodeMetadata::Group),
        // Any object is accepted.
        Some(DocumentName::ZAttrs | DocumentName::ZMetadata) | None => Ok(NodeMetadata::Group),
    }
}

/// Checks that `written`, a document, is a JSON object.
pub(super) fn check_object(name: &impl std::fmt::Display, written: &[u8]) -> Result<(), Error> {
    if written.is_empty() {
        return Err(Error::unacceptable(name, "the document is empty"));
    }
    let read = differences(written, written);
    read.map(drop)
        .map_err(|error| Error::unacceptable(name, error))
}

/// Whether `written` and `shown`, documents of this `name`, mean the same.
pub(crate) fn says_the_same(name: &[u8], shown: &[u8], written: &[u8]) -> bool {
    differences_in(ObjectKind::of(name), shown, written).is_ok_and(|changed| changed.is_empty())
}

/// Whether a document `text` of v3 describes an array (`true`) or a group (`false`); `None` if it describes neither.
pub(crate) fn is_array(text: &[u8]) -> Option<bool> {
    v3::parse(text)
        .ok()
        .map(|node| matches!(node, NodeMetadata::Array(_)))
}

/// The memory, in bytes, for a document of `len` bytes: the stored, shown, written and carried texts, and their parsed
/// forms.
pub(crate) fn memory_for_document(len: u64) -> u64 {
    const TIMES: u64 = 12;
    len.saturating_add(1 << 16).saturating_mul(TIMES)
}

/// Whether this member of an array's document may change.
fn may_change(name: &str) -> bool {
    ["attributes", "shape", "dimension_names"].contains(&name)
}

/// Advice about a member that differs from the one that the view shows.
fn hint(member: &str) -> &'static str {
    match member {
        "codecs" | "compressor" | "filters" | "compression" => {
            "; in this view chunks are not encoded, so that a new array has no codec but `bytes` \
             (little-endian), and no compressor"
        }
        "chunk_grid" => {
            "; chunks of equal lengths have a regular grid, and new arrays with shards are made through \
             --view keys --shards keep"
        }
        "storage_transformers" => {
            "; new arrays with shards are made through --view keys --shards keep"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
