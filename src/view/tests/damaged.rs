//! Documents that are damaged so much that the kind of their node is unknown: the nodes that they hide are errors in
//! each view.

use super::arrays::{arrays, document, group};
use super::*;
use crate::metadata::Target;
use crate::plain::FileFormat;
use crate::store::testing::{Flat, Refusal};

const PROTOCOL: &str = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json",
    "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": []}"#;
const DRAFT: &str = r#"{"shape": [4], "data_type": "|u1", "fill_value": 7, "chunk_memory_layout": "C", "extensions": [],
    "chunk_grid": {"type": "regular", "chunk_shape": [2], "separator": "/"}, "attributes": {}}"#;
const V1: &str = r#"{"zarr_format": 1, "shape": [4], "chunks": [2], "dtype": "|u1", "compression": "none",
    "compression_opts": null, "fill_value": 7, "order": "C"}"#;

/// The remains of a document.
const DAMAGES: [&[u8]; 5] = [
    b"",
    b"\0\0\0",
    b"{\"zarr_fo",
    b"<html></html>",
    b"\xff\xfe\x01",
];

fn npy() -> ViewOptions {
    arrays(&[FileFormat::Npy])
}

fn as_version(options: ViewOptions, target: Target) -> ViewOptions {
    ViewOptions {
        shown_as: Some(target),
        ..options
    }
}

fn assert_damaged(fixture: &Fixture, paths: &[&str], context: &str) {
    for path in paths {
        let found = fixture.find(path);
        let kind = found.as_ref().map_err(Error::kind).err();
        assert_eq!(kind, Some(ErrorKind::Io), "{context}: {path}: {found:?}");
    }
}

#[test]
fn children_of_a_document_that_does_not_say_group_are_shown_in_each_view() {
    for damage in DAMAGES {
        let objects: [(&str, &[u8]); 6] = [
            ("zarr.json", &group()),
            ("g/zarr.json", damage),
            ("g/x/zarr.json", &document("uint8", &[4], &[2])),
            ("g/x/c/0", b"ab"),
            ("g/notes/a.txt", b"no node"),
            ("g/c/0", b"a chunk, if g was an array"),
        ];
        let context = String::from_utf8_lossy(damage);
        let fixture = Fixture::new(npy(), &objects);
        assert_eq!(fixture.list(""), ["g", "g.ERROR.txt"], "{context}");
        assert_eq!(fixture.list("g"), ["notes", "x.json", "x.npy"], "{context}");
        assert!(fixture.read("g/x.npy").unwrap().ends_with(b"ab\x07\x07"));
        assert!(fixture.find("g/y.npy").unwrap().is_none());
        let hidden = ["g/c", "g/0", "g/0.npy", "g/0@1.npy", "g/0.json"];
        assert_damaged(&fixture, &hidden, &context);

        let fixture = Fixture::new(chunks(), &objects);
        let shown = ["ERROR.txt", "notes", "x", "zarr.json.unsupported"];
        assert_eq!(fixture.list("g"), shown, "{context}");
        assert_eq!(fixture.read("g/x/c/0").unwrap(), b"ab");
        assert_damaged(&fixture, &["g/c", "g/0"], &context);
    }
}

/// A web server may answer each request with one page.
#[test]
fn an_object_is_not_a_child_of_a_damaged_group() {
    let page = b"<html></html>";
    let objects: [(&str, &[u8]); 6] = [
        ("zarr.json", &group()),
        ("g/zarr.json", page),
        ("g/0", page),
        ("g/0/zarr.json", page),
        ("g/1/zarr.json", &document("uint8", &[4], &[2])),
        ("g/1/c/0", b"ab"),
    ];
    let fixture = Fixture::new(chunks(), &objects);
    assert_damaged(&fixture, &["g/0"], "a page");
    assert_eq!(fixture.read("g/1/c/0").unwrap(), b"ab");
}

#[test]
fn a_document_that_says_array_has_no_children() {
    let damage = br#"{"node_type": "array", "zarr_format": 3, "#;
    let objects: [(&str, &[u8]); 2] = [
        ("a/zarr.json", damage),
        ("a/x/zarr.json", &document("uint8", &[4], &[2])),
    ];
    let fixture = Fixture::new(npy(), &objects);
    assert_eq!(fixture.list(""), ["a.ERROR.txt"]);
    assert!(fixture.find("a").unwrap().is_none());
}

#[test]
fn a_damaged_document_of_v1_hides_no_chunk() {
    for damage in DAMAGES {
        let context = String::from_utf8_lossy(damage);
        let is_cut_off = !matches!(damage.first(), Some(b'<' | b'\xff'));
        let objects: [(&str, &[u8]); 6] = [
            ("a/meta", damage),
            ("a/attrs", b"{}"),
            ("a/1", b"ab"),
            ("b/meta", damage),
            ("b/1", b"ab"),
            ("c/meta", damage),
        ];
        for options in [chunks(), as_version(chunks(), Target::V3)] {
            let fixture = Fixture::new(options, &objects);
            assert_damaged(&fixture, &["a/0", "a/1", "a/0.0", "a/c"], &context);
            assert!(fixture.list("a").contains(&"ERROR.txt".to_owned()));
            if is_cut_off {
                assert_damaged(&fixture, &["b/0", "b/1"], &context);
            } else {
                assert_eq!(
                    fixture.read("b/1").unwrap(),
                    b"ab",
                    "any file may be called meta"
                );
            }
            assert!(
                fixture.find("c/0").unwrap().is_none(),
                "no document says that c is an array"
            );
        }
        let fixture = Fixture::new(npy(), &objects);
        assert_damaged(&fixture, &["a/0", "a/1.npy"], &context);
        let fixture = Fixture::new(ViewOptions::default(), &objects);
        assert_eq!(fixture.read("a/1").unwrap(), b"ab", "as stored");
        assert_damaged(&fixture, &["a/0"], &context);
    }
}

#[test]
fn another_file_called_meta_is_not_damage() {
    for meta in [&b"{}"[..], b"{\"zarr_format\": 2}", b"{\"shape\": [1]}"] {
        let objects: [(&str, &[u8]); 3] = [("a/meta", meta), ("a/attrs", b"{}"), ("a/1", b"ab")];
        let fixture = Fixture::new(chunks(), &objects);
        assert_eq!(fixture.list("a"), ["1", "attrs", "meta"]);
        assert!(fixture.find("a/0").unwrap().is_none());
    }
    let nameless = V1.replace("\"zarr_format\": 1, ", "");
    let objects: [(&str, &[u8]); 2] = [("a/meta", nameless.as_bytes()), ("a/attrs", b"{}")];
    assert_damaged(
        &Fixture::new(chunks(), &objects),
        &["a/0"],
        "no zarr_format",
    );
}

fn draft<'o>(root: &'o [u8], of_group: &'o [u8], of_array: &'o [u8]) -> [(&'o str, &'o [u8]); 6] {
    [
        ("r/zarr.json", root),
        ("r/meta/root/g.group.json", of_group),
        ("r/meta/root/g/a.array.json", of_array),
        ("r/meta/root/b.array.json", DRAFT.as_bytes()),
        ("r/data/root/g/a/c0", b"ab"),
        ("r/data/root/b/c0", b"ab"),
    ]
}

#[test]
fn nodes_of_a_draft_whose_root_is_damaged_are_errors() {
    for damage in DAMAGES {
        let context = String::from_utf8_lossy(damage);
        let objects = draft(damage, b"{\"attributes\": {}}", DRAFT.as_bytes());
        let stored = ["r/data/root/b/c0", "r/data/root/b/c1", "r/data/root/g/a/c1"];
        assert_damaged(&Fixture::new(chunks(), &objects), &stored, &context);
        assert_damaged(
            &Fixture::new(ViewOptions::default(), &objects),
            &stored[1..],
            &context,
        );
        for (target, chunk) in [(Target::V2, "r/b/0"), (Target::V3, "r/b/c/0")] {
            for options in [chunks(), ViewOptions::default()] {
                let fixture = Fixture::new(as_version(options, target), &objects);
                assert_damaged(&fixture, &["r/b", "r/g", chunk], &context);
                assert!(fixture.find("r/other").unwrap().is_none());
            }
        }
        let fixture = Fixture::new(npy(), &objects);
        assert_damaged(
            &fixture,
            &["r/b.npy", "r/b.json", "r/b@0.npy", "r/g"],
            &context,
        );
        assert!(fixture.find("r/other.npy").unwrap().is_none());
    }
}

#[test]
fn an_array_in_a_damaged_group_of_a_draft_is_shown() {
    for damage in DAMAGES {
        let objects = draft(PROTOCOL.as_bytes(), damage, DRAFT.as_bytes());
        let fixture = Fixture::new(npy(), &objects);
        assert!(fixture.read("r/g/a.npy").unwrap().ends_with(b"ab\x07\x07"));
        let fixture = Fixture::new(as_version(chunks(), Target::V3), &objects);
        assert_eq!(fixture.read("r/g/a/c/1").unwrap(), b"\x07\x07");
        assert!(fixture.list("r/g").contains(&"ERROR.txt".to_owned()));
    }
}

#[test]
fn an_array_of_a_draft_that_is_damaged_is_an_error() {
    for damage in DAMAGES {
        let context = String::from_utf8_lossy(damage);
        let objects = draft(PROTOCOL.as_bytes(), b"{\"attributes\": {}}", damage);
        let fixture = Fixture::new(npy(), &objects);
        assert_eq!(fixture.list("r/g"), ["a.ERROR.txt"], "{context}");
        let fixture = Fixture::new(as_version(chunks(), Target::V2), &objects);
        assert_damaged(&fixture, &["r/g/a/0", "r/g/a/1"], &context);
    }
}

/// A plain directory may have been found below an array whose document was damaged.
#[test]
fn a_directory_of_an_array_that_was_mended_exists_in_a_store_without_directories() {
    let array = br#"{"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "|u1", "compressor": null,
        "fill_value": 7, "order": "C", "filters": null, "dimension_separator": "/"}"#;
    let objects: [(&str, &[u8]); 3] = [
        (".zgroup", br#"{"zarr_format": 2}"#),
        ("x/.zarray", array),
        ("x/0/1", b"abcd"),
    ];
    let options = ViewOptions {
        views: vec![ViewKind::Keys],
        ..ViewOptions::default()
    };
    let layer = |store| -> Arc<dyn Store> { Arc::new(Flat::unlisted(store, Refusal::Unlisted)) };
    let fixture = Fixture::layered(options, &objects, layer);
    for (path, exists) in [("x/0", true), ("x/1", true), ("x/2", false), ("x/y", false)] {
        let directory = Vnode::Prefix {
            view: ViewKind::Keys,
            path: Prefix::parse(path.as_bytes()).unwrap(),
        };
        let attributes = fixture.view.attributes_of(&directory).unwrap();
        let kind = attributes.map(|attributes| attributes.kind);
        assert_eq!(kind, exists.then_some(VnodeKind::Directory), "{path}");
        let listed = fixture.view.list(&directory).unwrap();
        assert_eq!(listed.is_some(), exists, "{path}");
    }
}
