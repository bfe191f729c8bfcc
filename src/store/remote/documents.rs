//! The names of documents of the formats that are read. Nothing here knows what is in them.

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

/// The documents that tell what is at the root.
pub(super) const ROOT_DOCUMENTS: [&[u8]; 8] = [
    b"zarr.json",
    b".zmetadata",
    b".zgroup",
    b".zarray",
    b".zattrs",
    b"attributes.json",
    b"meta",
    b"__zmeta__",
];

/// Whether an object of this name is a document. Those of the v3 drafts have names that end so.
pub(super) fn is_document(name: &[u8]) -> bool {
    let of_draft = [b".array.json".as_slice(), b".group.json"];
    DOCUMENTS.contains(&name) || of_draft.iter().any(|end| name.ends_with(end))
}

/// Whether nothing but a document has this name, so that no key is looked for below it. In a
/// hierarchy of the v3 drafts, `meta` is a prefix.
pub(super) fn is_no_prefix(name: &[u8]) -> bool {
    is_document(name) && name != b"meta" && name != b"attrs"
}
