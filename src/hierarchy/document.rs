//! Names of documents, and the memory that reading them takes.

use crate::store::{Key, StoreError};

/// Memory, in bytes, that each byte of a document takes while it is parsed: for the list of its
/// values and for the model.
const PARSED_PER_BYTE: u64 = 8;
/// Up to this length, in bytes, the memory budget counts only the text of a document and one copy
/// of it, not the parsed values.
const SHORT_BYTES: u64 = 64 << 10;

/// The parts that an outline leaves out of its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OmittedParts {
    /// It leaves nothing out.
    Nothing,
    /// It leaves attributes out, where there are any, but no copies of other documents.
    Attributes,
    /// It leaves copies of other documents out, and perhaps attributes.
    Copies,
}

/// Memory, in bytes, that a document of `bytes` takes while it is parsed.
pub(super) fn parsed_bytes(bytes: u64) -> u64 {
    let per_byte = if bytes > SHORT_BYTES {
        PARSED_PER_BYTE
    } else {
        2
    };
    bytes.saturating_mul(per_byte)
}

/// The longest outline, in bytes, when a document may take `memory` bytes.
pub(super) fn most_outlined(memory: u64) -> u64 {
    memory / PARSED_PER_BYTE
}

/// Whether a file of this name may be something else than a document, so that its content decides.
pub(super) fn is_common_name(name: &[u8]) -> bool {
    matches!(name, b"meta" | b"attributes.json")
}

/// Whether `error` at `key` counts as absence. The error of a file that is probably no document must not end
/// the search for others, except that of a medium that cannot be read.
pub(super) fn counts_as_absent(key: &Key, error: &StoreError) -> bool {
    is_common_name(key.name()) && !error.is_of_medium()
}

/// Whether a document of this name may describe an array that lives beside it.
pub(super) fn is_array_document(name: &[u8]) -> bool {
    matches!(name, b"zarr.json" | b".zarray" | b"meta" | b"__zmeta__")
}
