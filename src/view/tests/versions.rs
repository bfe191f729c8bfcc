//! Nodes of every version, natively and in another one.

use super::*;

const URI: &str = "https://purl.org/zarr/spec/protocol/core/3.0";

/// What is in each of the stores.
type Objects = Vec<(&'static str, Vec<u8>)>;

fn v2_array(dtype: &str, separator: &str) -> Vec<u8> {
    text(&json!({
        "zarr_format": 2, "shape": [3, 4], "chunks": [2, 2], "dtype": dtype, "order": "C",
        "compressor": null, "filters": null, "fill_value": 7, "dimension_separator": separator,
    }))
}

fn v2() -> Objects {
    vec![
        (".zgroup", br#"{"zarr_format": 2}"#.to_vec()),
        (".zattrs", br#"{"title": "t"}"#.to_vec()),
        ("README", b"read me".to_vec()),
        ("a/.zarray", v2_array("|u1", ".")),
        ("a/.zattrs", br#"{"units": "K"}"#.to_vec()),
        ("a/0.1", b"abcd".to_vec()),
        ("a/9.9", b"left over".to_vec()),
        ("a/notes", b"plain".to_vec()),
        ("g/b/.zarray", v2_array("|u1", "/")),
        ("g/b/1/0", b"efgh".to_vec()),
        ("g/b/1/notes", b"plain".to_vec()),
        ("broken/.zarray", b"{".to_vec()),
        ("broken/0.0", b"xxxx".to_vec()),
        ("odd/.zarray", v2_array("|O", ".")),
        ("odd/0.0", b"xxxx".to_vec()),
    ]
}

fn v3() -> Objects {
    vec![
        (
            "zarr.json",
            text(&json!({
                "zarr_format": 3, "node_type": "group", "attributes": {"title": "t"},
                "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {
                    "gone": array(&[2], &[2], &plain()), "s": array(&[8], &[8], &plain()),
                }},
            })),
        ),
        ("s/zarr.json", text(&array(&[8], &[4], &sharded()))),
        ("s/c/0", shard((2, 2))),
        ("s/c/1", shard(EMPTY)),
        ("p/zarr.json", text(&array(&[5], &[2], &plain()))),
        ("p/c/1", b"xy".to_vec()),
        ("p/0", b"no chunk".to_vec()),
        (
            "odd/zarr.json",
            text(&array(
                &[4],
                &[2],
                &json!([{"name": "bytes"}, {"name": "nonesuch"}]),
            )),
        ),
        ("odd/c/0", b"xx".to_vec()),
        ("plain/README", b"no node".to_vec()),
    ]
}

fn draft_array(data_type: &Value, compressor: Option<&str>) -> Vec<u8> {
    let mut document = json!({
        "shape": [3, 4], "data_type": data_type, "fill_value": 7, "chunk_memory_layout": "C",
        "chunk_grid": {"type": "regular", "chunk_shape": [2, 2], "separator": "/"},
        "extensions": [], "attributes": {"units": "K"},
    });
    if let Some(codec) = compressor {
        let codec = format!("https://purl.org/zarr/spec/codec/{codec}/1.0");
        document["compressor"] = json!({"codec": codec, "configuration": {}});
    }
    text(&document)
}

fn draft() -> Objects {
    vec![
        (
            "zarr.json",
            text(&json!({
                "zarr_format": URI, "metadata_encoding": URI, "metadata_key_suffix": ".json",
                "extensions": [],
            })),
        ),
        ("README", b"read me".to_vec()),
        (
            "meta/root.group.json",
            br#"{"attributes": {"title": "t"}}"#.to_vec(),
        ),
        ("meta/root/a.array.json", draft_array(&json!("|u1"), None)),
        ("meta/root/g.group.json", br#"{"attributes": {}}"#.to_vec()),
        ("meta/root/g/b.array.json", draft_array(&json!("u1"), None)),
        ("meta/root/i/c.array.json", draft_array(&json!("u1"), None)),
        (
            "meta/root/odd.array.json",
            draft_array(&json!("u1"), Some("nonesuch")),
        ),
        ("meta/root/consolidated/.zmetadata", b"{}".to_vec()),
        ("data/root/a/c0/1", b"abcd".to_vec()),
        ("data/root/g/b/c1/0", b"efgh".to_vec()),
        ("data/root/odd/c0/0", b"xxxx".to_vec()),
    ]
}

fn v1() -> Objects {
    vec![
        (
            "meta",
            text(&json!({
                "zarr_format": 1, "shape": [3, 4], "chunks": [2, 2], "dtype": "|u1", "order": "C",
                "compression": "none", "compression_opts": null, "fill_value": 7,
            })),
        ),
        ("attrs", br#"{"units": "K"}"#.to_vec()),
        ("0.1", b"abcd".to_vec()),
    ]
}

fn pre_v1() -> Objects {
    vec![
        (
            "__zmeta__",
            text(&json!({
                "shape": [3, 4], "chunks": [2, 2], "dtype": "|u1", "fill_value": 7,
                "cname": "lz4", "clevel": 5, "shuffle": 1,
            })),
        ),
        ("__zattr__", br#"{"units": "K"}"#.to_vec()),
        (
            "__zdata__/0.1.blosc",
            // Four bytes as they are, behind the header of blosc.
            [
                &[2, 1, 0x13, 1, 4, 0, 0, 0, 4, 0, 0, 0, 20, 0, 0, 0],
                &b"abcd"[..],
            ]
            .concat(),
        ),
    ]
}

fn stores() -> [(&'static str, Objects); 5] {
    [
        ("v2", v2()),
        ("v3", v3()),
        ("draft", draft()),
        ("v1", v1()),
        ("pre-v1", pre_v1()),
    ]
}

fn mount(objects: &Objects, view: ViewKind, shown_as: Option<Target>) -> Fixture {
    let objects: Vec<_> = objects
        .iter()
        .map(|(key, bytes)| (*key, bytes.as_slice()))
        .collect();
    let options = ViewOptions {
        views: vec![view],
        shown_as,
        ..ViewOptions::default()
    };
    Fixture::new(options, &objects)
}

/// Every path below `path`, and whether it is a directory; each is looked up again.
fn walk(fixture: &Fixture, case: &str) -> Vec<(String, VnodeKind)> {
    let mut found = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(path) = pending.pop() {
        let directory = fixture.find(&path).unwrap().unwrap();
        let mut listing = fixture.view.open_directory(directory.id).unwrap().unwrap();
        let mut names = std::collections::HashSet::new();
        while let Some(entry) = listing.next_entry(Detail::Attributes).unwrap() {
            let name = String::from_utf8(entry.name.clone()).unwrap();
            assert!(names.insert(name.clone()), "{case}: {path}/{name} twice");
            let place = format!("{path}/{name}");
            let again = fixture
                .find(&place)
                .unwrap()
                .unwrap_or_else(|| panic!("{case}: no {place}"));
            assert_eq!(again.id, entry.id, "{case}: {place}");
            assert_eq!(again.attributes.kind, entry.kind, "{case}: {place}");
            assert_eq!(Some(again.attributes), entry.attributes, "{case}: {place}");
            let stat = fixture.view.attributes(again.id).unwrap();
            assert_eq!(stat, Some(again.attributes), "{case}: {place}");
            if entry.kind == VnodeKind::Directory {
                pending.push(place.clone());
            } else {
                let opened = fixture.view.open(again.id).unwrap().unwrap();
                assert_eq!(opened.attributes, again.attributes, "{case}: {place}");
                let bytes = fixture.read(&place).unwrap();
                assert_eq!(bytes.len() as u64, again.attributes.size, "{case}: {place}");
            }
            found.push((place, entry.kind));
        }
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    found
}

fn files(fixture: &Fixture, case: &str) -> Vec<String> {
    let found = walk(fixture, case).into_iter();
    let files = found.filter(|(_, kind)| *kind == VnodeKind::File);
    files
        .map(|(path, _)| path.trim_start_matches('/').to_owned())
        .collect()
}

#[test]
fn what_is_listed_is_found_as_it_was_listed() {
    for (name, objects) in stores() {
        for view in [ViewKind::Keys, ViewKind::Chunks] {
            for shown_as in [None, Some(Target::V2), Some(Target::V3)] {
                let case = format!("{name} {view:?} {shown_as:?}");
                let fixture = mount(&objects, view, shown_as);
                assert!(!walk(&fixture, &case).is_empty(), "{case}");
                println!("{case}: {:#?}", files(&fixture, &case));
            }
        }
    }
}
