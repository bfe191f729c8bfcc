//! Copies of documents that are written, so that consolidated metadata is not stale.

use serde_json::value::RawValue;

use super::{NAME, copies_v2, copies_v3, inline};
use crate::error::FormatError;
use crate::metadata::ZarrFormat;
use crate::metadata::document::{Edits, JsonDocument, MemberSpan, quoted};
use crate::metadata::splice;

/// The consolidated document `text` with `copy` as its copy of the document of `name`, which is a key
/// (v2) or a path (v3) relative to the group. Without a `copy` there is none any more. `None` when
/// `text` has no copies, or this one is what it should be.
///
/// # Errors
///
/// When it is no JSON object, or its entries are none.
pub fn with_copy(
    text: &[u8],
    format: ZarrFormat,
    (name, copy): (&str, Option<&[u8]>),
) -> Result<Option<Vec<u8>>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let Some(metadata) = list(&document, format)? else {
        return Ok(None);
    };
    let members = document.members(metadata)?;
    let old = members.iter().rev().find(|member| member.name == name);
    let mut edits = Edits::default();
    match (old, copy) {
        (None, None) => return Ok(None),
        (Some(old), Some(copy)) if document.text_of(old.value) == copy => return Ok(None),
        (Some(old), Some(copy)) => edits.replace(document.span(old.value), copy),
        (Some(_), None) => splice::remove(&members, &mut edits, |member: &MemberSpan<'_>| {
            member.name == name
        }),
        (None, Some(copy)) => {
            // zarr-python finds the nodes of one group only where they are listed one after the other.
            let is_beside =
                |member: &&MemberSpan<'_>| group_of(&member.name, format) == group_of(name, format);
            let beside = members.iter().rev().find(is_beside);
            let (at, comma) = match beside.or(members.last()) {
                Some(last) => (last.span.end, &b", "[..]),
                None => (document.span(metadata).start + 1, &b""[..]),
            };
            let added = [comma, quoted(name).as_bytes(), b": ", copy].concat();
            edits.replace(at..at, added);
        }
    }
    Ok(Some(edits.apply(text)))
}

/// The path of the group that has the node whose document is listed as `name`; `None` for the nodes of the group itself
/// that has the list.
fn group_of(name: &str, format: ZarrFormat) -> Option<&str> {
    let node = match format {
        ZarrFormat::V2 => name.rsplit_once('/').map_or("", |(node, _)| node),
        _ => name,
    };
    node.rsplit_once('/').map(|(group, _)| group)
}

/// The consolidated document `text`, where each copy is the document that `read` returns for its key,
/// relative to the group, and copies are left out for which it returns none. `None` when `text` has no
/// copies.
///
/// # Errors
///
/// As [`with_copy`], and those of `read`.
pub fn with_documents<E: From<FormatError>>(
    text: &[u8],
    format: ZarrFormat,
    mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>, E>,
) -> Result<Option<Vec<u8>>, E> {
    let copies = match format {
        ZarrFormat::V2 => copies_v2(text)?,
        _ => copies_v3(text)?,
    };
    let Some(copies) = copies else {
        return Ok(None);
    };
    let mut edits = Edits::default();
    let mut gone = Vec::new();
    for copy in copies {
        match read(&copy.key)? {
            Some(document) => edits.replace(copy.span, document),
            None => gone.push(copy.key),
        }
    }
    let mut text = edits.apply(text);
    for key in gone {
        let name = match format {
            ZarrFormat::V2 => key.as_str(),
            _ => key.strip_suffix("/zarr.json").unwrap_or(&key),
        };
        text = with_copy(&text, format, (name, None))?.unwrap_or(text);
    }
    Ok(Some(text))
}

/// The object that has the copies.
fn list<'d>(
    document: &'d JsonDocument<'_>,
    format: ZarrFormat,
) -> Result<Option<&'d RawValue>, FormatError> {
    let root = document.root()?;
    if format == ZarrFormat::V2 {
        let known = root.get("zarr_consolidated_format").map(RawValue::get) == Some("1");
        return Ok(root.get_some("metadata").filter(|_| known));
    }
    let held = inline(&root).map_err(|error| error.within(NAME))?;
    Ok(held.and_then(|held| held.get_some("metadata")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &[u8] =
        br#"{"zarr_consolidated_format": 1, "metadata": {"a/.zarray": {"x": 1}, ".zgroup": {}}}"#;
    const V3: &[u8] =
        br#"{"node_type": "group", "consolidated_metadata": {"kind": "inline", "metadata": {}}}"#;

    #[test]
    fn a_copy_is_replaced_added_and_removed() {
        for (text, format, name, copy, expected) in [
            (
                V2,
                ZarrFormat::V2,
                "a/.zarray",
                Some("{}"),
                Some(
                    r#"{"zarr_consolidated_format": 1, "metadata": {"a/.zarray": {}, ".zgroup": {}}}"#,
                ),
            ),
            (
                V2,
                ZarrFormat::V2,
                "b/.zattrs",
                Some("{}"),
                Some(
                    r#"{"zarr_consolidated_format": 1, "metadata": {"a/.zarray": {"x": 1}, ".zgroup": {}, "b/.zattrs": {}}}"#,
                ),
            ),
            (
                V2,
                ZarrFormat::V2,
                "a/.zarray",
                None,
                Some(r#"{"zarr_consolidated_format": 1, "metadata": {".zgroup": {}}}"#),
            ),
            (V2, ZarrFormat::V2, "a/.zarray", Some(r#"{"x": 1}"#), None),
            (V2, ZarrFormat::V2, "b/.zarray", None, None),
            (
                V3,
                ZarrFormat::V3,
                "a/b",
                Some(r#"{"node_type": "array"}"#),
                Some(
                    r#"{"node_type": "group", "consolidated_metadata": {"kind": "inline", "metadata": {"a/b": {"node_type": "array"}}}}"#,
                ),
            ),
            (b"{}", ZarrFormat::V2, "a/.zarray", Some("{}"), None),
            (b"{}", ZarrFormat::V3, "a", Some("{}"), None),
        ] {
            let found = with_copy(text, format, (name, copy.map(str::as_bytes))).unwrap();
            let found = found.map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), expected, "{name} {copy:?}");
        }
    }

    /// zarr-python does not find all nodes of a group else.
    #[test]
    fn a_new_node_is_listed_beside_those_of_its_group() {
        let names = |format, listed: [&str; 3], name: &str| {
            let listed = listed.map(|name| format!("{}: {{}}", quoted(name)));
            let listed = listed.join(", ");
            let text = match format {
                ZarrFormat::V2 => {
                    format!(r#"{{"zarr_consolidated_format": 1, "metadata": {{{listed}}}}}"#)
                }
                _ => format!(
                    r#"{{"consolidated_metadata": {{"kind": "inline", "metadata": {{{listed}}}}}}}"#
                ),
            };
            let text = with_copy(text.as_bytes(), format, (name, Some(b"{}")));
            let text = text.unwrap().unwrap();
            let copies = match format {
                ZarrFormat::V2 => copies_v2(&text),
                _ => copies_v3(&text),
            };
            let copies = copies.unwrap().unwrap().into_iter();
            copies.map(|copy| copy.key).collect::<Vec<_>>()
        };
        let v3 = names(ZarrFormat::V3, ["g", "g/a", "h/b"], "g/n");
        assert_eq!(
            v3,
            ["g", "g/a", "g/n", "h/b"].map(|node| format!("{node}/zarr.json"))
        );
        let v2 = names(
            ZarrFormat::V2,
            ["g/a/.zarray", "g/a/.zattrs", "h/b/.zarray"],
            "g/n/.zarray",
        );
        assert_eq!(
            v2,
            ["g/a/.zarray", "g/a/.zattrs", "g/n/.zarray", "h/b/.zarray"]
        );
    }

    #[test]
    fn copies_are_those_of_the_store() {
        let read = |key: &str| -> Result<Option<Vec<u8>>, FormatError> {
            Ok((key == ".zgroup").then(|| b"{\"zarr_format\": 2}".to_vec()))
        };
        let found = with_documents(V2, ZarrFormat::V2, read).unwrap().unwrap();
        assert_eq!(
            String::from_utf8(found).unwrap(),
            r#"{"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}}}"#
        );
        assert_eq!(with_documents(b"{}", ZarrFormat::V3, read).unwrap(), None);
    }
}
