//! The names of documents of the formats that are read. This module does not know their contents.

/// Documents at the root of a hierarchy, and beside the chunks of an array.
const DOCUMENTS: [&[u8]; 11] = [
    b"zarr.json",
    b".zarray",
    b".zgroup",
    b".zattrs",
    b".zmetadata",
    b"attributes.json",
    b"meta",
    b"attrs",
    b"__zmeta__",
    b"__zattr__",
    b".nczarr",
];

/// The documents that show what kind of node is at the root.
pub(super) const ROOT_DOCUMENTS: [&[u8]; 10] = [
    b"zarr.json",
    b".zmetadata",
    b".zgroup",
    b".zarray",
    b".zattrs",
    b"attributes.json",
    b"meta",
    b"__zmeta__",
    // The documents of a repository of Icechunk.
    b"repo",
    b"refs/branch.main/ref.json",
];

/// Whether an object of this name is a document. Documents of the v3 drafts have names that end in
/// this way.
pub(super) fn is_document(name: &[u8]) -> bool {
    let of_draft = [b".array.json".as_slice(), b".group.json"];
    DOCUMENTS.contains(&name) || of_draft.iter().any(|end| name.ends_with(end))
}

/// Whether only a document can have this name, so that no key is looked for below it. In a
/// hierarchy of the v3 drafts, `meta` is a prefix.
pub(super) fn is_no_prefix(name: &[u8]) -> bool {
    is_document(name) && name != b"meta" && name != b"attrs"
}
