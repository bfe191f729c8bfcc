//! The kind of a file by its name alone: a document, a chunk, or neither.

use crate::metadata::DocumentName;
use crate::store::Key;

/// Documents of Zarr before v2, and the ends of the names of those of the drafts.
const OLD_DOCUMENTS: [&[u8]; 4] = [b"meta", b"attrs", b"__zmeta__", b"__zattr__"];
const DRAFT_DOCUMENTS: [&[u8]; 2] = [b".array.json", b".group.json"];

/// The documents of the root in the later drafts, and the name of their directory.
const DRAFT_ROOT_DOCUMENTS: [&[u8]; 2] = [b"array.json", b"group.json"];
const DRAFT_ROOT_DIRECTORY: &[u8] = b"meta";

/// Whether a file of this name is a document. Other files may have the names of documents of Zarr before v2, so those
/// are not among these ([`may_be_old_document`]).
pub(crate) fn is_document(key: &Key) -> bool {
    let name = key.name();
    let is_of_root = || {
        let parent = key.parent().to_key();
        parent.is_some_and(|parent| parent.name() == DRAFT_ROOT_DIRECTORY)
    };
    DocumentName::of(name).is_some()
        || DRAFT_DOCUMENTS.iter().any(|end| name.ends_with(end))
        || DRAFT_ROOT_DOCUMENTS.contains(&name) && is_of_root()
}

/// Whether a file of this name is a document if there is an array of Zarr before v2.
pub(crate) fn may_be_old_document(key: &Key) -> bool {
    OLD_DOCUMENTS.contains(&key.name())
}

/// Whether the object at `key` is replaced as a whole when it is written, because its name is that of a document or a
/// chunk. Another file may have a name of digits and dots, which does no harm.
pub(crate) fn is_replaced_whole(key: &Key) -> bool {
    let name = key.name();
    is_document(key) || may_be_old_document(key) || looks_like_a_chunk(name)
}

/// Whether `name` could be a chunk key or its first segment: `c`, `c.0.1`, `0`, `0.1`.
pub(crate) fn looks_like_a_chunk(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"c").unwrap_or(name);
    rest.iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && !name.starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_chunks_are_replaced_whole() {
        for (key, expected) in [
            ("zarr.json", true),
            ("a/.zattrs", true),
            ("a/0.0", true),
            ("a/c/0/12", true),
            ("a/c.0.1", true),
            ("a/c", true),
            ("meta/root/a.array.json", true),
            ("meta/array.json", true),
            ("meta/group.json", true),
            ("a/array.json", false),
            ("a/notes.txt", false),
            ("a/0.0.1f2e.partial", false),
            ("a/c/0/0.__lock", false),
            ("a/.0.0.Ab12Cd", false),
        ] {
            let key = Key::parse(key.as_bytes()).unwrap();
            assert_eq!(is_replaced_whole(&key), expected, "{key}");
        }
    }
}
