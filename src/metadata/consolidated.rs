//! Consolidated metadata: copies of the documents below a group, inside a document of the group.
//!
//! ```text
//! v2  .zmetadata  {"zarr_consolidated_format": 1, "metadata": {"a/b/.zarray": {…}, …}}
//! v3  zarr.json   {…, "consolidated_metadata": {"kind": "inline", "metadata": {"a/b": {…}, …}}}
//! ```
//!
//! A view that changes an array's document changes its copies in the same way. All other bytes stay
//! as they are, including indentation and the empty `consolidated_metadata` that zarr-python writes
//! into the copies of nested groups.

mod copy;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

pub use copy::{copied_names, copy_of, with_added, with_copy, with_documents};
use serde_json::value::RawValue;

use super::DocumentName;
use super::carry::with_member;
use super::document::{Edits, JsonDocument, MemberSpan};
use super::json::{self, Json, Members};
use super::splice::remove;
use super::strict_json;
use crate::error::FormatError;

/// The deepest nesting of copies that hold copies of their own.
const MAX_NESTING: usize = 16;

/// The document that a copy is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// The document of an array.
    Array,
    /// The document of a group.
    Group,
    /// The document of the attributes of a node of v2.
    Attributes,
}

/// The edit of the copy of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryEdit {
    /// The copy stays as it is.
    Keep,
    /// This document replaces the copy.
    Replace(Vec<u8>),
    /// The copy is removed.
    Remove,
}

/// Edits a v2 `.zmetadata` document. `edit` is called for each copy with the kind of the copied document, the path of
/// the node relative to the group ("" is the group's own prefix), and its text. [`EntryEdit::Remove`] of an array drops
/// its `.zattrs` too, and that of a group all copies below it. A document of another `zarr_consolidated_format` stays
/// unchanged.
///
/// # Errors
///
/// When it is no JSON object, or its entries are none.
pub fn edit_v2(text: &[u8], edit: &mut EditEntry<'_>) -> Result<Vec<u8>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let Some(metadata) = list_v2(&root) else {
        return Ok(text.to_vec());
    };
    let members = document
        .members(metadata)
        .map_err(|error| error.within("metadata"))?;
    let mut edits = Edits::default();
    let groups = members.iter().filter_map(|member| {
        let path = path_of(&member.name, DocumentName::ZGroup)?;
        Some((member, path.to_owned()))
    });
    let text_of = |member: &MemberSpan<'_>| document.text_of(member.value);
    let (replaced, gone) = edited_groups(groups, text_of, edit);
    for (member, _, bytes) in replaced {
        edits.replace(document.span(member.value), strict_json(bytes));
    }
    let (mut removed, mut without_array) = (HashSet::new(), HashSet::new());
    for (name, copied) in [
        (DocumentName::ZArray, Copied::Array),
        (DocumentName::ZAttrs, Copied::Attributes),
    ] {
        for member in &members {
            let Some(path) = path_of(&member.name, name) else {
                continue;
            };
            if gone.have(path) || copied == Copied::Attributes && without_array.contains(path) {
                removed.insert(member.span.start);
                continue;
            }
            match edit(copied, path, document.text_of(member.value)) {
                EntryEdit::Keep => {}
                // A document of its own may have a byte order mark.
                EntryEdit::Replace(bytes) => {
                    edits.replace(document.span(member.value), strict_json(bytes));
                }
                EntryEdit::Remove => {
                    removed.insert(member.span.start);
                    if copied == Copied::Array {
                        without_array.insert(path);
                    }
                }
            }
        }
    }
    remove(&members, &mut edits, |member| {
        let group = path_of(&member.name, DocumentName::ZGroup);
        removed.contains(&member.span.start) || group.is_some_and(|path| gone.have(path))
    });
    Ok(edits.apply(text))
}

/// Whether `root` is that of a v2 `.zmetadata` document of the known version.
pub(super) fn is_known_v2(root: &Members<'_>) -> bool {
    let format = root.get("zarr_consolidated_format").map(Json::of);
    matches!(format, Some(Ok(format)) if format.integer() == Some(1))
}

/// The object that has the copies of a v2 `.zmetadata` document of the known version.
fn list_v2<'d>(root: &Members<'d>) -> Option<&'d RawValue> {
    root.get_some("metadata").filter(|_| is_known_v2(root))
}

/// A copy of the document of a group, the path of the group, and the text that replaces it.
type ReplacedGroup<'d, 'm> = (&'m MemberSpan<'d>, String, Vec<u8>);

/// The copies of groups that `edit` replaces, and the paths of the groups whose copies it removes. Copies below a
/// removed one are not replaced, because readers find no node below a group without a copy.
fn edited_groups<'d, 'm>(
    groups: impl Iterator<Item = (&'m MemberSpan<'d>, String)>,
    text_of: impl Fn(&MemberSpan<'d>) -> &'d [u8],
    edit: &mut EditEntry<'_>,
) -> (Vec<ReplacedGroup<'d, 'm>>, GoneGroups)
where
    'd: 'm,
{
    let (mut replaced, mut gone) = (Vec::new(), Vec::new());
    for (member, path) in groups {
        match edit(Copied::Group, &path, text_of(member)) {
            EntryEdit::Keep => {}
            EntryEdit::Replace(bytes) => replaced.push((member, path, bytes)),
            EntryEdit::Remove => gone.push(path),
        }
    }
    let gone = GoneGroups::new(gone);
    replaced.retain(|(_, path, _)| !gone.have(path));
    (replaced, gone)
}

/// The groups whose copies are removed: their paths, each with a slash behind it, in order. None of them is below another
/// one, so that only the last one before a path can be above it, however long the path is.
struct GoneGroups(Vec<String>);

impl GoneGroups {
    fn new(paths: Vec<String>) -> GoneGroups {
        let with_slash = |path: String| if path.is_empty() { path } else { path + "/" };
        let mut paths: Vec<String> = paths.into_iter().map(with_slash).collect();
        paths.sort_unstable();
        paths.dedup_by(|path, above| path.starts_with(&**above));
        GoneGroups(paths)
    }

    /// Whether the node at `path` is one of the groups, or below one.
    fn have(&self, path: &str) -> bool {
        let whole = || path.bytes().chain([b'/']);
        let next = self.0.partition_point(|gone| gone.bytes().le(whole()));
        let last = next.checked_sub(1).and_then(|last| self.0.get(last));
        last.is_some_and(|gone| gone.bytes().eq(whole().take(gone.len())))
    }
}

/// Decides about one copy: the kind of the copied document, the path of its node, and its text.
pub type EditEntry<'f> = dyn FnMut(Copied, &str, &[u8]) -> EntryEdit + 'f;

/// Edits the inline `consolidated_metadata` of a v3 group document. `edit` is called for each copy with the kind of the
/// copied document, the path of the node relative to the group, and its text. The copy of a group that is replaced
/// keeps the copies in it. A document that holds no copies, or copies of another kind than `inline`, stays unchanged.
///
/// # Errors
///
/// When it is no JSON object, or its entries are none.
pub fn edit_v3(text: &[u8], edit: &mut EditEntry<'_>) -> Result<Vec<u8>, FormatError> {
    edit_below(text, "", 0, edit)
}

/// Like [`edit_v3`], of the document of the group at `prefix` ("" or ending in `/`), which is nested in `depth` others.
fn edit_below(
    text: &[u8],
    prefix: &str,
    depth: usize,
    edit: &mut EditEntry<'_>,
) -> Result<Vec<u8>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let mut edits = Edits::default();
    edit_group(
        &document,
        &document.root()?,
        (prefix, depth),
        edit,
        &mut edits,
    )?;
    Ok(edits.apply(text))
}

/// A copy of a document in consolidated metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedDocument {
    /// Its key, relative to the group.
    pub key: String,
    /// Its text, as a part of the text of the document that it is copied in.
    pub span: Range<usize>,
    /// Whether it says that its node is an array.
    pub is_array: bool,
}

/// The copies in a v2 `.zmetadata` document; `None` when it is of another
/// `zarr_consolidated_format`.
///
/// # Errors
///
/// When it is no JSON object, or its entries are none.
pub fn copies_v2(text: &[u8]) -> Result<Option<Vec<CopiedDocument>>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let Some(metadata) = list_v2(&root) else {
        return Ok(None);
    };
    let members = json::object(metadata, "an object").map_err(|error| error.within("metadata"))?;
    let copies = members.iter().filter_map(|(name, value)| {
        let last = name.rsplit('/').next().unwrap_or_default();
        let document_name = DocumentName::of(last.as_bytes())?;
        let is_copied = matches!(
            document_name,
            DocumentName::ZArray | DocumentName::ZGroup | DocumentName::ZAttrs
        );
        is_copied.then(|| CopiedDocument {
            key: name.to_owned(),
            span: document.span(value),
            is_array: document_name == DocumentName::ZArray,
        })
    });
    Ok(Some(copies.collect()))
}

/// The inline copies in a v3 group document; `None` when it has none. Copies within copies are left
/// out: all nodes are in the outermost list, and zarr-python writes empty lists into the copies of
/// nested groups.
///
/// # Errors
///
/// Those of [`copies_v2`].
pub fn copies_v3(text: &[u8]) -> Result<Option<Vec<CopiedDocument>>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let Some(held) = inline(&document.root()?)? else {
        return Ok(None);
    };
    let Some(metadata) = held.get_some("metadata") else {
        return Ok(None);
    };
    let within = |error: FormatError| error.within("metadata").within(NAME);
    let members = json::object(metadata, "an object").map_err(within)?;
    let mut copies = Vec::new();
    for (path, value) in members.iter() {
        let node_type = match Json::of(value).map_err(within)? {
            Json::Object(node) => node.get("node_type").map(RawValue::get),
            _ => None,
        };
        copies.push(CopiedDocument {
            key: format!("{path}/{}", DocumentName::ZarrJson.as_str()),
            span: document.span(value),
            is_array: node_type == Some("\"array\""),
        });
    }
    Ok(Some(copies))
}

/// Whether the v3 group document `text` has inline copies of other documents.
pub fn is_inline(text: &[u8]) -> bool {
    let held = || -> Result<bool, FormatError> {
        Ok(inline(&JsonDocument::parse(text)?.root()?)?.is_some())
    };
    // A document that cannot be parsed has no usable copies.
    held().unwrap_or(false)
}

const NAME: &str = "consolidated_metadata";

/// The member `consolidated_metadata` of the document of `group`, if it is of the kind `inline`.
fn inline<'a>(group: &Members<'a>) -> Result<Option<Members<'a>>, FormatError> {
    let is_inline =
        |copies: &Members<'_>| copies.get("kind").map(RawValue::get) == Some("\"inline\"");
    Ok(match group.get(NAME).map(Json::of).transpose()? {
        Some(Json::Object(copies)) => Some(copies).filter(is_inline),
        _ => None,
    })
}

/// Edits the copies in the document of a group.
fn edit_group(
    document: &JsonDocument<'_>,
    group: &Members<'_>,
    (prefix, depth): (&str, usize),
    edit: &mut EditEntry<'_>,
    edits: &mut Edits,
) -> Result<(), FormatError> {
    let Some(metadata) = inline(group)?.and_then(|copies| copies.get_some("metadata")) else {
        return Ok(());
    };
    if depth == MAX_NESTING {
        let problem = format!("copies of documents nest more than {MAX_NESTING} levels deep");
        return Err(FormatError::document(NAME, problem));
    }
    let members = document
        .members(metadata)
        .map_err(|error| error.within("metadata").within(NAME))?;
    let mut nodes = Vec::new();
    for member in &members {
        if let Json::Object(node) = Json::of(member.value)? {
            let is_array = node.get("node_type").map(RawValue::get) == Some("\"array\"");
            nodes.push((member, node, is_array));
        }
    }
    let path_of = |member: &MemberSpan<'_>| format!("{prefix}{}", member.name);
    let groups = nodes.iter().filter(|(_, _, is_array)| !is_array);
    let groups = groups.map(|(member, ..)| (*member, path_of(member)));
    let (replaced, gone) = edited_groups(groups, |member| document.text_of(member.value), edit);
    let mut replaced: HashMap<String, Vec<u8>> = replaced
        .into_iter()
        .map(|(_, path, bytes)| (path, bytes))
        .collect();
    let mut removed = HashSet::new();
    for (member, node, is_array) in &nodes {
        let path = path_of(member);
        if gone.have(&path) {
            removed.insert(member.span.start);
            continue;
        }
        let below = format!("{path}/");
        let bytes = match (is_array, replaced.remove(&path)) {
            (true, _) => match edit(Copied::Array, &path, document.text_of(member.value)) {
                EntryEdit::Keep => continue,
                EntryEdit::Replace(bytes) => bytes,
                EntryEdit::Remove => {
                    removed.insert(member.span.start);
                    continue;
                }
            },
            (false, Some(bytes)) => {
                let copies = node.get(NAME).map(|copies| document.text_of(copies));
                let bytes = with_member(&bytes, NAME, copies)?;
                edit_below(&bytes, &below, depth + 1, edit)?
            }
            (false, None) => {
                edit_group(document, node, (&below, depth + 1), edit, edits)?;
                continue;
            }
        };
        // A document of its own may have a byte order mark.
        edits.replace(document.span(member.value), strict_json(bytes));
    }
    remove(&members, edits, |member| {
        removed.contains(&member.span.start)
    });
    Ok(())
}

/// The path of the node whose `document` has the key `key`; `None` when it is another document.
fn path_of(key: &str, document: DocumentName) -> Option<&str> {
    match key.strip_suffix(document.as_str())? {
        "" => Some(""),
        prefix => prefix.strip_suffix('/'),
    }
}

#[cfg(test)]
mod tests;
