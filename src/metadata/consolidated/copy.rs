//! Copies of documents that are written, so that consolidated metadata is not stale.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::value::RawValue;

use super::{NAME, copies_v2, copies_v3, inline, list_v2};
use crate::error::FormatError;
use crate::metadata::ZarrFormat;
use crate::metadata::document::{Edits, JsonDocument, MemberSpan, quoted};
use crate::metadata::splice;

/// The consolidated document `text` with `copy` as its copy of the document of `name`, which is a key (v2) or a path
/// (v3) relative to the group. Without a `copy`, the copy is removed. `None` when `text` has no copies, or has this one
/// already.
///
/// # Errors
///
/// When it is no JSON object, or its list of copies is none.
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
            let start = document.span(metadata).start;
            add((&members, start), format, vec![(name, copy)], &mut edits);
        }
    }
    Ok(Some(edits.apply(text)))
}

/// The object that is the document `text`, as consolidated metadata copies it: without a byte order mark, or white
/// space around it.
///
/// # Errors
///
/// When it is no JSON object.
pub fn copy_of(text: &[u8]) -> Result<&[u8], FormatError> {
    let document = JsonDocument::parse(text)?;
    document.root()?;
    Ok(document.text_of(document.value()?))
}

/// The names of the copies in the consolidated document `text`, as [`with_copy`] takes them; `None` when it has no
/// copies.
///
/// # Errors
///
/// Those of [`with_copy`].
pub fn copied_names(
    text: &[u8],
    format: ZarrFormat,
) -> Result<Option<HashSet<String>>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let Some(metadata) = list(&document, format)? else {
        return Ok(None);
    };
    let members = document.members(metadata)?.into_iter();
    Ok(Some(members.map(|member| member.name).collect()))
}

/// The consolidated document `text` with the copies `added`, none of which it has, by their names as [`with_copy`]
/// takes them.
///
/// # Errors
///
/// Those of [`with_copy`].
pub fn with_added(
    text: &[u8],
    format: ZarrFormat,
    added: &[(String, Vec<u8>)],
) -> Result<Vec<u8>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let Some(metadata) = list(&document, format)? else {
        return Ok(text.to_vec());
    };
    let members = document.members(metadata)?;
    let added = added.iter().map(|(name, copy)| (&**name, &**copy));
    let (mut edits, start) = (Edits::default(), document.span(metadata).start);
    add((&members, start), format, added.collect(), &mut edits);
    Ok(edits.apply(text))
}

/// Adds copies to an object of these `members`, which begins at `start`. zarr-python finds the nodes of one group only
/// where they are listed one after the other.
fn add(
    (members, start): (&[MemberSpan<'_>], usize),
    format: ZarrFormat,
    mut added: Vec<(&str, &[u8])>,
    edits: &mut Edits,
) {
    let ends = members.iter();
    let ends = ends.map(|member| (group_of(&member.name, format), member.span.end));
    let ends: HashMap<_, _> = ends.collect();
    // Behind the last member, its own group goes on before others begin.
    added.sort_by_key(|(name, _)| {
        let group = group_of(name, format);
        (!ends.contains_key(&group), group, *name)
    });
    let last = members.last().map(|last| last.span.end);
    let mut places = BTreeMap::<usize, Vec<u8>>::new();
    for (name, copy) in added {
        let after = ends.get(&group_of(name, format)).copied().or(last);
        let text = places.entry(after.unwrap_or(start + 1)).or_default();
        if after.is_some() || !text.is_empty() {
            text.extend(b", ");
        }
        text.extend(quoted(name).as_bytes());
        text.extend(b": ");
        text.extend(copy);
    }
    for (at, text) in places {
        edits.replace(at..at, text);
    }
}

/// The path of the group that has the node whose document is listed as `name`; `None` for the group that has the list,
/// and for nodes directly in it.
fn group_of(name: &str, format: ZarrFormat) -> Option<&str> {
    let node = match format {
        ZarrFormat::V2 => name.rsplit_once('/').map_or("", |(node, _)| node),
        _ => name,
    };
    node.rsplit_once('/').map(|(group, _)| group)
}

/// The consolidated document `text` with new copies: `read` gets a key relative to the group, and returns
/// the document to copy. A copy for which `read` returns none is left out. `None` when `text` has no
/// copies.
///
/// # Errors
///
/// Those of [`with_copy`], and those of `read`.
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
        return Ok(list_v2(&root));
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
    fn a_copy_has_no_byte_order_mark() {
        let document = "\u{feff} {\"a\": NaN}\n";
        assert_eq!(copy_of(document.as_bytes()).unwrap(), b"{\"a\": NaN}");
        assert!(copy_of(b"[]").is_err());
        assert!(copy_of(b"").is_err());
    }

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

    /// Otherwise, zarr-python would not find all nodes of a group.
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
    fn many_copies_are_added_beside_those_of_their_groups() {
        let added = |text: &[u8], format, names: &[&str]| {
            let added = names.iter().map(|name| (name.to_string(), b"{}".to_vec()));
            let text = with_added(text, format, &added.collect::<Vec<_>>()).unwrap();
            let found = copied_names(&text, format).unwrap().unwrap();
            assert!(names.iter().all(|name| found.contains(*name)));
            let copies = copies_v3(&text).unwrap().unwrap().into_iter();
            let nodes = copies.map(|copy| copy.key.replace("/zarr.json", ""));
            nodes.collect::<Vec<_>>()
        };
        let with = |listed: &str| {
            format!(
                r#"{{"consolidated_metadata": {{"kind": "inline", "metadata": {{{listed}}}}}}}"#
            )
        };
        let text = with(r#""h": {}, "g/a": {}"#);
        let names = ["a/x", "g", "g/b", "h/y", "a", "a/w"];
        assert_eq!(
            added(text.as_bytes(), ZarrFormat::V3, &names),
            ["h", "a", "g", "g/a", "g/b", "a/w", "a/x", "h/y"]
        );
        assert_eq!(
            added(with(" ").as_bytes(), ZarrFormat::V3, &["b", "a"]),
            ["a", "b"]
        );
        assert_eq!(with_added(b"{}", ZarrFormat::V3, &[]).unwrap(), b"{}");
        assert_eq!(copied_names(b"{}", ZarrFormat::V2).unwrap(), None);
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
