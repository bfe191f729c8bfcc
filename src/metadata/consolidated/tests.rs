//! Edits of consolidated metadata.

use super::*;
use crate::metadata::ZarrFormat;

/// The text with the copies of the documents of arrays edited.
fn v2(text: &str, mut edit: impl FnMut(&str, &[u8]) -> EntryEdit) -> String {
    let mut edit = |copied, path: &str, text: &[u8]| match copied {
        Copied::Array => edit(path, text),
        _ => EntryEdit::Keep,
    };
    String::from_utf8(edit_v2(text.as_bytes(), &mut edit).unwrap()).unwrap()
}

fn v3(text: &str, mut edit: impl FnMut(&str, &[u8]) -> EntryEdit) -> String {
    let mut edit = |copied, path: &str, text: &[u8]| match copied {
        Copied::Array => edit(path, text),
        _ => EntryEdit::Keep,
    };
    String::from_utf8(edit_v3(text.as_bytes(), &mut edit).unwrap()).unwrap()
}

const ZMETADATA: &str = r#"{
    "metadata": {
        ".zattrs": {"title": NaN},
        ".zgroup": {
            "zarr_format": 2
        },
        "a/.zarray": {"shape": [1.0]},
        "a/.zattrs": {},
        "g/b/.zarray": {"shape": [2]},
        "g/x.zarray": {"not": "an array"}
    },
    "zarr_consolidated_format": 1
}
"#;

#[test]
fn v2_arrays_are_offered_by_path_and_text() {
    let mut seen = Vec::new();
    let kept = v2(ZMETADATA, |path, text| {
        seen.push((path.to_owned(), String::from_utf8(text.to_vec()).unwrap()));
        EntryEdit::Keep
    });
    assert_eq!(kept, ZMETADATA);
    let expected = [("a", r#"{"shape": [1.0]}"#), ("g/b", r#"{"shape": [2]}"#)];
    assert_eq!(
        seen,
        expected.map(|(path, text)| (path.to_owned(), text.to_owned()))
    );
}

#[test]
fn v2_entries_are_replaced_and_removed_in_place() {
    let replaced = v2(ZMETADATA, |path, _| match path {
        "a" => EntryEdit::Replace(b"{}".to_vec()),
        _ => EntryEdit::Keep,
    });
    assert_eq!(replaced, ZMETADATA.replace(r#"{"shape": [1.0]}"#, "{}"));
    let marked = v2(ZMETADATA, |path, _| match path {
        "a" => EntryEdit::Replace("\u{feff}{}".as_bytes().to_vec()),
        _ => EntryEdit::Keep,
    });
    assert_eq!(
        marked, replaced,
        "a byte order mark is only at the beginning of a file"
    );
    let removed = v2(ZMETADATA, |path, _| match path {
        "a" => EntryEdit::Remove,
        _ => EntryEdit::Keep,
    });
    let both = ",\n        \"a/.zarray\": {\"shape\": [1.0]},\n        \"a/.zattrs\": {}";
    assert_eq!(removed, ZMETADATA.replace(both, ""));
}

#[test]
fn v2_attributes_are_offered_after_the_arrays() {
    let mut seen = Vec::new();
    let mut edit = |copied: Copied, path: &str, _: &[u8]| {
        seen.push(format!("{path}:{copied:?}"));
        match (copied, path) {
            (Copied::Array, "a") => EntryEdit::Remove,
            (Copied::Attributes, "") => EntryEdit::Replace(b"{}".to_vec()),
            _ => EntryEdit::Keep,
        }
    };
    let edited = edit_v2(ZMETADATA.as_bytes(), &mut edit).unwrap();
    assert_eq!(seen, [":Group", "a:Array", "g/b:Array", ":Attributes"]);
    let gone = ",\n        \"a/.zarray\": {\"shape\": [1.0]},\n        \"a/.zattrs\": {}";
    let expected = ZMETADATA
        .replace(gone, "")
        .replace(r#"{"title": NaN}"#, "{}");
    assert_eq!(String::from_utf8(edited).unwrap(), expected);
}

#[test]
fn removals_leave_sound_json_whatever_they_take() {
    let names = ["a", "b", "c", "d"];
    for goes in 0..16_u32 {
        let is_going = |name: &str| {
            let at = names.iter().position(|n| *n == name).unwrap();
            goes & (1 << at) != 0
        };
        let entries: Vec<String> = names
            .iter()
            .map(|n| format!("\"{n}/.zarray\" : {{}}"))
            .collect();
        let text = format!(
            r#"{{"metadata": {{ {} }}, "zarr_consolidated_format": 1}}"#,
            entries.join(" , ")
        );
        let edited = v2(&text, |path, _| {
            if is_going(path) {
                EntryEdit::Remove
            } else {
                EntryEdit::Keep
            }
        });
        let mut left = Vec::new();
        let again = v2(&edited, |path, _| {
            left.push(path.to_owned());
            EntryEdit::Keep
        });
        assert_eq!(again, edited);
        let stay: Vec<_> = names.into_iter().filter(|name| !is_going(name)).collect();
        assert_eq!(left, stay, "{edited}");
    }
}

#[test]
fn the_version_may_be_spelled_as_a_float() {
    let text = r#"{"zarr_consolidated_format": 1.0, "metadata": {"a/.zarray": {}}}"#;
    assert!(crate::metadata::v2::is_consolidated(text.as_bytes()));
    let edited = v2(text, |_, _| EntryEdit::Replace(b"[]".to_vec()));
    assert_eq!(edited, text.replace("{}", "[]"));
    let copies = copies_v2(text.as_bytes()).unwrap().unwrap();
    assert_eq!(copies.len(), 1);
    let names = copied_names(text.as_bytes(), ZarrFormat::V2).unwrap();
    assert!(names.unwrap().contains("a/.zarray"));
}

#[test]
fn nodes_below_groups_that_are_gone_are_found() {
    let paths = [
        "", "a", "a/b", "a/b/c", "a-b", "a-b/c", "ab", "a0", "b", "b/a",
    ];
    for gone in 0..1_u32 << paths.len() {
        let gone: Vec<&str> = (0..paths.len())
            .filter(|i| gone >> i & 1 == 1)
            .map(|i| paths[i])
            .collect();
        let groups = GoneGroups::new(gone.iter().rev().map(|&path| path.to_owned()).collect());
        for path in paths {
            let is_below = |above: &&str| {
                above.is_empty() || path == *above || path.starts_with(&format!("{above}/"))
            };
            assert_eq!(
                groups.have(path),
                gone.iter().any(is_below),
                "{path} {gone:?}"
            );
        }
    }
}

#[test]
fn the_group_itself_may_be_the_array() {
    let text = r#"{"zarr_consolidated_format":1,"metadata":{".zarray":{},".zattrs":{}}}"#;
    let removed = v2(text, |path, _| {
        assert_eq!(path, "");
        EntryEdit::Remove
    });
    assert_eq!(removed, r#"{"zarr_consolidated_format":1,"metadata":{}}"#);
}

#[test]
fn v3_copies_are_edited_and_empty_ones_of_nested_groups_stay() {
    let text = r#"{"zarr_format": 3, "node_type": "group", "attributes": {},
  "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {
    "x": {"shape": [6], "node_type": "array"},
    "g": {"node_type": "group", "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}}},
    "g/y": {"node_type": "array", "fill_value": NaN},
    "h": {"node_type": "group", "consolidated_metadata": {"kind": "inline", "metadata": {"z": {"node_type": "array"}}}}
  }}}"#;
    let mut seen = Vec::new();
    let edited = v3(text, |path, text| {
        seen.push(path.to_owned());
        match path {
            "x" => EntryEdit::Remove,
            "h/z" => EntryEdit::Replace(b"{\"new\": 1}".to_vec()),
            _ => {
                assert_eq!(text, br#"{"node_type": "array", "fill_value": NaN}"#);
                EntryEdit::Keep
            }
        }
    });
    assert_eq!(seen, ["x", "g/y", "h/z"]);
    let expected = text
        .replace(
            "\"x\": {\"shape\": [6], \"node_type\": \"array\"},\n    ",
            "",
        )
        .replace(r#""z": {"node_type": "array"}"#, r#""z": {"new": 1}"#);
    assert_eq!(edited, expected);
}

#[test]
fn copies_of_groups_are_replaced_and_keep_the_copies_in_them() {
    let of_v2 = r#"{"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": "2"}, "g/.zgroup": {}, "g/h/.zgroup": {}, "g/b/.zarray": {}, "g/.zattrs": {}, "a/.zarray": {}}}"#;
    let mut edit = |copied, path: &str, _: &[u8]| match (copied, path) {
        (Copied::Group, "") => EntryEdit::Replace(b"{\"zarr_format\": 2}".to_vec()),
        (Copied::Group, "g") => EntryEdit::Remove,
        (Copied::Array, "g/b") => unreachable!("no reader finds it"),
        _ => EntryEdit::Replace(b"{}".to_vec()),
    };
    let edited = edit_v2(of_v2.as_bytes(), &mut edit).unwrap();
    let expected = of_v2.replace(r#""2""#, "2").replace(
        r#""g/.zgroup": {}, "g/h/.zgroup": {}, "g/b/.zarray": {}, "g/.zattrs": {}, "#,
        "",
    );
    assert_eq!(String::from_utf8(edited).unwrap(), expected);
    let of_v3 = r#"{"consolidated_metadata": {"kind": "inline", "metadata": {
        "g": {"node_type": "group", "attributes": {"old": NaN}, "consolidated_metadata": {"kind": "inline", "metadata": {
            "a": {"node_type": "array"}}}},
        "g/h": {"node_type": "group"}}}}"#;
    let mut edit = |copied, path: &str, _: &[u8]| match (copied, path) {
        (Copied::Group, "g") => {
            let own = "{\"new\": NaN, \"consolidated_metadata\": {\"own\": 1}}";
            EntryEdit::Replace(own.as_bytes().to_vec())
        }
        (Copied::Group, _) => EntryEdit::Replace(b"{\"new\": 2}".to_vec()),
        (Copied::Array, "g/a") => EntryEdit::Replace(b"{}".to_vec()),
        _ => EntryEdit::Keep,
    };
    let edited = edit_v3(of_v3.as_bytes(), &mut edit).unwrap();
    let expected = r#"{"consolidated_metadata": {"kind": "inline", "metadata": {
        "g": {"new": "NaN", "consolidated_metadata": {"kind": "inline", "metadata": {
            "a": {}}}},
        "g/h": {"new": 2}}}}"#;
    assert_eq!(String::from_utf8(edited).unwrap(), expected);
    let mut edit = |copied, path: &str, _: &[u8]| match (copied, path) {
        (Copied::Group, "g") => EntryEdit::Remove,
        (Copied::Array, _) => unreachable!("no reader finds it"),
        _ => EntryEdit::Replace(b"{}".to_vec()),
    };
    let edited = edit_v3(of_v3.as_bytes(), &mut edit).unwrap();
    let expected = r#"{"consolidated_metadata": {"kind": "inline", "metadata": {
        }}}"#;
    assert_eq!(
        String::from_utf8(edited).unwrap().replace(' ', ""),
        expected.replace(' ', "")
    );
}

#[test]
fn what_is_not_consolidated_stays_as_it_is() {
    let never = |_: &str, _: &[u8]| -> EntryEdit { unreachable!("there is no array") };
    for text in [
        r#"{"zarr_format": 3, "node_type": "group"}"#,
        r#"{"consolidated_metadata": null}"#,
        r#"{"consolidated_metadata": {"kind": "other", "metadata": {"a": {"node_type": "array"}}}}"#,
        r#"{"consolidated_metadata": {"kind": "inline", "metadata": {"a": 5, "b": {}}}}"#,
    ] {
        assert_eq!(v3(text, never), text);
    }
    for text in [
        r#"{"zarr_consolidated_format": 2, "metadata": {"a/.zarray": {}}}"#,
        r#"{"zarr_consolidated_format": 1}"#,
        "{}",
    ] {
        assert_eq!(v2(text, never), text);
    }
    for text in [
        "",
        "[]",
        r#"{"zarr_consolidated_format": 1, "metadata": []}"#,
    ] {
        assert!(
            edit_v2(text.as_bytes(), &mut |_, _, _| EntryEdit::Keep).is_err(),
            "{text}"
        );
    }
    let open = r#"{"consolidated_metadata":{"kind":"inline","metadata":{"g":"#;
    let deep = format!("{}{{}}{}", open.repeat(2_000), "}}}".repeat(2_000));
    assert!(edit_v3(deep.as_bytes(), &mut |_, _, _| EntryEdit::Keep).is_err());
}

fn copied(text: &str, copies: Result<Option<Vec<CopiedDocument>>, FormatError>) -> Vec<String> {
    let copies = copies.unwrap().unwrap_or_default().into_iter();
    let line = |copy: CopiedDocument| {
        let kind = if copy.is_array { "array" } else { "other" };
        format!("{} {kind} {}", copy.key, &text[copy.span])
    };
    copies.map(line).collect()
}

#[test]
fn copies_are_spans_of_their_document() {
    assert_eq!(
        copied(ZMETADATA, copies_v2(ZMETADATA.as_bytes())),
        [
            ".zattrs other {\"title\": NaN}",
            ".zgroup other {\n            \"zarr_format\": 2\n        }",
            "a/.zarray array {\"shape\": [1.0]}",
            "a/.zattrs other {}",
            "g/b/.zarray array {\"shape\": [2]}",
        ]
    );
    let v3 = r#"{"consolidated_metadata": {"kind": "inline", "metadata": {
        "g": {"node_type": "group", "consolidated_metadata": {"kind": "inline", "metadata": {}}},
        "g/a": {"node_type": "array"}, "odd": 1}}}"#;
    assert_eq!(
        copied(v3, copies_v3(v3.as_bytes())),
        [
            "g/zarr.json other {\"node_type\": \"group\", \"consolidated_metadata\": \
             {\"kind\": \"inline\", \"metadata\": {}}}",
            "g/a/zarr.json array {\"node_type\": \"array\"}",
            "odd/zarr.json other 1",
        ]
    );
}

#[test]
fn what_holds_no_copies_has_none() {
    let none = Ok(None);
    for text in ["{}", r#"{"zarr_consolidated_format": 2, "metadata": {}}"#] {
        assert_eq!(copies_v2(text.as_bytes()), none, "{text}");
    }
    for text in [
        "{}",
        r#"{"consolidated_metadata": null}"#,
        r#"{"consolidated_metadata": {"kind": "other", "metadata": {}}}"#,
        r#"{"consolidated_metadata": {"kind": "inline", "metadata": null}}"#,
    ] {
        assert_eq!(copies_v3(text.as_bytes()), none, "{text}");
    }
    let all = copies_v3(br#"{"consolidated_metadata": {"kind": "inline", "metadata": {}}}"#);
    assert_eq!(all, Ok(Some(Vec::new())), "a group without children");
    assert!(copies_v2(br#"{"zarr_consolidated_format": 1, "metadata": []}"#).is_err());
    assert!(copies_v3(b"nonsense").is_err());
}
