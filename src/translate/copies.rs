//! Consolidated metadata: the copies that a group has of the documents of the nodes below it. The copies are made from
//! the stored documents. If a program writes consolidated metadata, its copies are ignored, and the mount makes copies of
//! the stored documents in their place.

use std::collections::BTreeSet;
use std::io::{self, Read};

use crate::error::FormatError;
use crate::metadata::carry::with_member;
use crate::metadata::consolidated::{copies_v2, copies_v3, is_inline};
use crate::metadata::say_nothing;
use crate::metadata::translate::NodeDocuments;
use crate::metadata::{DocumentName, ZarrFormat, write};
use crate::store::{Key, Prefix};

/// The documents that may have copies of other documents.
pub(crate) const HOLDERS: [DocumentName; 2] = [DocumentName::ZarrJson, DocumentName::ZMetadata];

/// The text that a document contains if it has copies of others.
const MARKS: [&[u8]; 2] = [
    b"\"consolidated_metadata\"",
    b"\"zarr_consolidated_format\"",
];

/// The names of documents, relative to a group, and their texts.
pub(crate) type NamedTexts = Vec<(String, Vec<u8>)>;

/// The wish of a program for consolidated metadata.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Copies of the documents of the nodes at these paths, which are relative to the group.
    Have(BTreeSet<String>),
    /// No copies.
    Drop,
}

impl Wish {
    /// The wish of a program that has `written` a document over the document `before`; `None` if that does not concern
    /// consolidated metadata.
    pub(crate) fn of(
        (name, written): (DocumentName, &[u8]),
        before: Option<&[u8]>,
    ) -> Result<Option<Wish>, FormatError> {
        let copies = match name {
            DocumentName::ZMetadata => copies_v2(written)?.ok_or_else(|| {
                let problem = "there is no consolidated metadata of version 1 in it";
                FormatError::document("zarr_consolidated_format", problem)
            })?,
            DocumentName::ZarrJson if is_inline(written) => copies_v3(written)?.unwrap_or_default(),
            DocumentName::ZarrJson if before.is_some_and(is_inline) => return Ok(Some(Wish::Drop)),
            _ => return Ok(None),
        };
        let path = |key: &str| key.rsplit_once('/').map_or("", |(path, _)| path).to_owned();
        let paths = copies.iter().map(|copy| path(&copy.key)).collect();
        Ok(Some(Wish::Have(paths)))
    }

    /// The documents that may be copied into a group of this version, by their names relative to it. The documents of
    /// the group itself are not among them.
    pub(crate) fn names(&self, format: ZarrFormat) -> Vec<String> {
        const V2: [DocumentName; 3] = [
            DocumentName::ZArray,
            DocumentName::ZAttrs,
            DocumentName::ZGroup,
        ];
        let (Wish::Have(paths), names) = (
            self,
            match format {
                ZarrFormat::V3 => &[DocumentName::ZarrJson][..],
                _ => &V2,
            },
        ) else {
            return Vec::new();
        };
        let below = paths.iter().filter(|path| !path.is_empty());
        let below_path = |path: &String| {
            let path = path.clone();
            names
                .iter()
                .map(move |name| format!("{path}/{}", name.as_str()))
        };
        below.flat_map(below_path).collect()
    }
}

/// Puts `copies` into `new`, the documents of a group of v3, or removes all copies from it.
///
/// # Errors
/// [`FormatError`] when the documents cannot be parsed.
pub(super) fn consolidate_v3(
    wish: &Wish,
    copies: NamedTexts,
    new: &mut NodeDocuments,
) -> Result<(), FormatError> {
    let copies = match wish {
        Wish::Drop => None,
        Wish::Have(_) => {
            let copies = copies.into_iter().filter_map(|(key, text)| {
                let path = key.strip_suffix("/zarr.json")?.to_owned();
                Some((path, text))
            });
            Some(write::consolidated_v3(&copies.collect::<Vec<_>>())?)
        }
    };
    new.document = with_member(&new.document, "consolidated_metadata", copies.as_deref())?;
    Ok(())
}

/// The consolidated metadata of a group of v2 that has the documents `new`, with `copies` of others; `None` if the wish
/// is to have none.
///
/// # Errors
/// [`FormatError`] when the documents cannot be parsed.
pub(super) fn consolidated_v2(
    wish: &Wish,
    copies: NamedTexts,
    new: &NodeDocuments,
) -> Result<Option<Vec<u8>>, FormatError> {
    if *wish == Wish::Drop {
        return Ok(None);
    }
    let name = |name: DocumentName| name.as_str().to_owned();
    let attributes = new.attributes.clone();
    let attributes = attributes.map(|text| (name(DocumentName::ZAttrs), text));
    let group = (name(DocumentName::ZGroup), new.document.clone());
    let copies = attributes.into_iter().chain([group]).chain(copies);
    // A document of attributes may be empty, and is no JSON then.
    let says = |(name, text): &(String, Vec<u8>)| {
        !name.ends_with(DocumentName::ZAttrs.as_str()) || !say_nothing(text)
    };
    let copies = copies.filter(says);
    write::consolidated_v2(&copies.collect::<Vec<_>>()).map(Some)
}

/// Whether a document may have copies of others.
pub(crate) fn has_mark(text: &[u8]) -> bool {
    let is_marked = |mark: &&[u8]| text.windows(mark.len()).any(|part| part == *mark);
    MARKS.iter().any(is_marked)
}

/// Like [`has_mark`], for a document of any length, of which only a part is in memory at a time.
///
/// # Errors
/// Those of `document`.
pub(crate) fn has_mark_in(mut document: impl Read) -> io::Result<bool> {
    const PART_BYTES: u64 = 1 << 20;
    let longest = MARKS.iter().map(|mark| mark.len()).max().unwrap_or(0);
    let mut part = Vec::new();
    loop {
        // A mark may begin in the part before.
        part.drain(..part.len().saturating_sub(longest));
        let read = document.by_ref().take(PART_BYTES).read_to_end(&mut part)?;
        if read == 0 {
            return Ok(false);
        }
        if has_mark(&part) {
            return Ok(true);
        }
    }
}

/// The name of the copy of the document at `key` in the consolidated metadata of `group`; `None` if the document is not
/// below the group, is of another version, or is the one that has the copies.
pub(crate) fn copied_name(group: &Prefix, key: &Key, format: ZarrFormat) -> Option<String> {
    let relative = String::from_utf8_lossy(group.strip(key.as_bytes())?);
    let is_v3 = DocumentName::of(key.name()) == Some(DocumentName::ZarrJson);
    match format {
        ZarrFormat::V2 if is_v3 => None,
        ZarrFormat::V2 => Some(relative.into_owned()),
        _ => relative.strip_suffix("/zarr.json").map(str::to_owned),
    }
}

/// The document that has the copies of documents called `name`, and their version.
pub(crate) fn holder_of(name: DocumentName) -> (DocumentName, ZarrFormat) {
    match name {
        DocumentName::ZarrJson => (DocumentName::ZarrJson, ZarrFormat::V3),
        _ => (DocumentName::ZMetadata, ZarrFormat::V2),
    }
}

#[cfg(test)]
mod tests;
