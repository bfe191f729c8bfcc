//! Rules of a file that do not change with its object. They are data for open files, and not a translation.

use super::options::{Conflict, WriteOptions};
use super::{Presentation, chunk};
use crate::load::ChunkLayout;
use crate::metadata::DocumentName;

/// The longest document that is written, in bytes.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// The rules of a file that does not show the bytes of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The only length that the file may have, in bytes; `None` if several are allowed.
    pub(crate) len: Option<u64>,
    /// The greatest length that the file may have, in bytes.
    pub(crate) max_len: u64,
    /// The content that was not written and may be taken from another version of the object than the opened one.
    pub(crate) merge: Merge,
    /// The outcome for a draft whose writer may have read the opened version, if another program has changed the object.
    pub(crate) conflict: Conflict,
    /// The bytes that a draft has.
    pub(crate) draft: DraftBytes,
    /// Whether the file is a document. Its text is made from other objects, too. After a commit the document may show
    /// another text than the written one, with the same meaning.
    pub(crate) is_document: bool,
    /// Whether the file is not shown if it has no object.
    pub(crate) hides_absent: bool,
}

/// Content that may be taken from another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Nothing.
    No,
    /// The bytes that were not written.
    Parts,
    /// The members of a document that were not changed.
    Members,
}

/// The bytes that a draft has, and their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DraftBytes {
    /// The bytes that the store gets. They are in a file.
    Stored,
    /// Bytes that are encoded before the store gets them. They may be in memory.
    Encoded,
    /// At first a copy of the object, whose bytes the file shows.
    Copied,
}

impl Rules {
    /// The rules of a document of this `name`, which is `None` for documents of Zarr before v2.
    pub(crate) fn of_document(name: Option<DocumentName>, writes: WriteOptions) -> Rules {
        Rules {
            len: None,
            max_len: MAX_DOCUMENT_BYTES,
            // The copies in it are made from the stored documents in any case.
            merge: if name == Some(DocumentName::ZMetadata) {
                Merge::Parts
            } else {
                Merge::Members
            },
            conflict: writes.conflict,
            draft: DraftBytes::Stored,
            is_document: true,
            hides_absent: false,
        }
    }

    /// The rules of a file with the elements of the chunk `indices`.
    pub(crate) fn of_elements(
        (layout, indices): (&ChunkLayout, &[u64]),
        presentation: &Presentation,
        writes: WriteOptions,
    ) -> Rules {
        let len = layout.decoded_len(indices);
        Rules {
            len,
            max_len: len.unwrap_or(presentation.max_chunk_bytes),
            merge: Merge::Parts,
            conflict: writes.conflict,
            draft: if chunk::is_stored_as_shown(layout) {
                DraftBytes::Stored
            } else {
                DraftBytes::Encoded
            },
            is_document: false,
            hides_absent: !presentation.fills_absent || !layout.shows_absent(),
        }
    }

    /// The rules of a file with the encoded bytes of a chunk.
    pub(crate) fn of_encoded(writes: WriteOptions) -> Rules {
        Rules {
            len: None,
            max_len: u64::MAX,
            merge: Merge::No,
            conflict: writes.conflict,
            draft: DraftBytes::Copied,
            is_document: false,
            hides_absent: false,
        }
    }

    /// Whether members of a document that were not changed may be taken from another version.
    pub(crate) fn merges_members(&self) -> bool {
        self.merge == Merge::Members
    }

    /// Whether content that was not written is taken from another version, although the writer may have read the opened
    /// one.
    pub(crate) fn merges_in_any_case(&self) -> bool {
        self.merge != Merge::No && self.conflict == Conflict::Merge
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translate::testing::{BYTES, GZIP, array, presentation};

    #[test]
    fn the_bytes_of_a_draft_are_in_a_file_only_where_the_store_gets_them() {
        let rules = |codecs: &[&str]| {
            let array = array("int32", "0", codecs);
            Rules::of_elements(
                (array.layout(), &[0]),
                &presentation(true),
                WriteOptions::default(),
            )
        };
        assert_eq!(rules(&[BYTES]).draft, DraftBytes::Stored);
        let zipped = rules(&[BYTES, GZIP]);
        assert_eq!(zipped.draft, DraftBytes::Encoded);
        assert_eq!((zipped.len, zipped.max_len), (Some(8), 8));
    }

    #[test]
    fn members_of_documents_are_merged_but_those_of_copies() {
        let of = |name| Rules::of_document(Some(name), WriteOptions::default());
        assert!(of(DocumentName::ZarrJson).merges_members());
        assert!(!of(DocumentName::ZMetadata).merges_members());
        assert!(Rules::of_document(None, WriteOptions::default()).merges_members());
        let merging = WriteOptions {
            conflict: Conflict::Merge,
            ..WriteOptions::default()
        };
        assert!(Rules::of_document(None, merging).merges_in_any_case());
        assert!(!Rules::of_encoded(merging).merges_in_any_case());
    }
}
