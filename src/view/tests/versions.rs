//! Nodes of every Zarr version, shown in their own version and in another one.

use super::*;

const URI: &str = "https://purl.org/zarr/spec/protocol/core/3.0";

/// The keys of each store.
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
            // Four stored bytes behind a blosc header.
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

/// Every path below `path`, and whether it is a directory. Each path is looked up again.
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
            if let Some(listed) = entry.attributes {
                assert_eq!(again.attributes, listed, "{case}: {place}");
            } else {
                // Only the size of text is unknown before it is decoded.
                assert!(place.contains("/text/"), "{case}: {place}");
            }
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
fn chunks_keep_their_bytes_under_the_names_of_the_version_that_is_shown() {
    for (name, objects, stored, v2, v3) in [
        ("v2", v2(), "a/0.1", "a/0.1", "a/0.1"),
        ("v3", v3(), "p/c/1", "p/1", "p/c/1"),
        ("draft", draft(), "data/root/a/c0/1", "a/0/1", "a/c/0/1"),
        (
            "draft",
            draft(),
            "data/root/g/b/c1/0",
            "g/b/1/0",
            "g/b/c/1/0",
        ),
        ("v1", v1(), "0.1", "0.1", "0.1"),
        ("pre-v1", pre_v1(), "__zdata__/0.1.blosc", "0.1", "0.1"),
    ] {
        let bytes = |path: &str| {
            let mut found = objects.iter().filter(|(key, _)| *key == path);
            found.next().unwrap().1.clone()
        };
        for (shown_as, path) in [
            (None, stored),
            (Some(Target::V2), v2),
            (Some(Target::V3), v3),
        ] {
            let fixture = mount(&objects, ViewKind::Keys, shown_as);
            assert_eq!(fixture.read(path).unwrap(), bytes(stored), "{name} {path}");
            if shown_as.is_some() && path != stored {
                assert!(fixture.find(stored).unwrap().is_none(), "{name} {stored}");
            }
            let decoded = mount(&objects, ViewKind::Chunks, shown_as);
            if shown_as.is_some() {
                let len = bytes(stored).len();
                let expected = bytes(stored).split_off(if name == "pre-v1" { len - 4 } else { 0 });
                assert_eq!(decoded.read(path).unwrap(), expected, "{name} {path}");
            }
        }
    }
}

#[test]
fn the_files_of_every_version() {
    let lists = |objects: &Objects, view, shown_as: Option<Target>| {
        files(&mount(objects, view, shown_as), "files").join(" ")
    };
    let (v2_target, v3_target) = (Some(Target::V2), Some(Target::V3));
    for (objects, view, shown_as, expected) in [
        (v1(), ViewKind::Keys, None, "0.1 attrs meta"),
        (v1(), ViewKind::Keys, v2_target, ".zarray .zattrs 0.1"),
        (v1(), ViewKind::Keys, v3_target, "0.1 zarr.json"),
        (
            v1(),
            ViewKind::Chunks,
            v3_target,
            "0.0 0.1 1.0 1.1 zarr.json",
        ),
        (
            pre_v1(),
            ViewKind::Keys,
            None,
            "__zattr__ __zdata__/0.1.blosc __zmeta__",
        ),
        (pre_v1(), ViewKind::Keys, v2_target, ".zarray .zattrs 0.1"),
        (pre_v1(), ViewKind::Keys, v3_target, "0.1 zarr.json"),
        (
            pre_v1(),
            ViewKind::Chunks,
            None,
            "ERROR.txt __zattr__ __zmeta__.unsupported",
        ),
        (
            pre_v1(),
            ViewKind::Chunks,
            v2_target,
            ".zarray .zattrs 0.0 0.1 1.0 1.1",
        ),
    ] {
        assert_eq!(
            lists(&objects, view, shown_as),
            expected,
            "{view:?} {shown_as:?}"
        );
    }
    assert_eq!(
        lists(&draft(), ViewKind::Keys, v2_target),
        ".zattrs .zgroup .zmetadata README a/.zarray a/.zattrs a/0/1 g/.zgroup g/b/.zarray \
         g/b/.zattrs g/b/1/0 i/.zgroup i/c/.zarray i/c/.zattrs odd/ERROR.txt \
         odd/odd.array.json.unsupported"
    );
    assert_eq!(
        lists(&v3(), ViewKind::Keys, v2_target),
        ".zattrs .zgroup .zmetadata odd/ERROR.txt odd/zarr.json.unsupported p/.zarray p/1 \
         plain/.zgroup plain/README s/.zarray s/0 s/1 s/2"
    );
    assert_eq!(
        lists(&v2(), ViewKind::Keys, v3_target),
        "README a/0.1 a/notes a/zarr.json broken/.zarray.unsupported broken/ERROR.txt g/b/1/0 \
         g/b/1/notes g/b/zarr.json g/zarr.json odd/.zarray.unsupported odd/ERROR.txt zarr.json"
    );
}

#[test]
fn zlib_under_the_name_of_gzip_is_not_shown_as_gzip() {
    let mut document: Value = serde_json::from_slice(&v2_array("|u1", ".")).unwrap();
    document["compressor"] = json!({"id": "gzip", "level": 1});
    // A zlib stream of four bytes that are stored without compression.
    let zlib = b"\x78\x01\x01\x04\x00\xfb\xffabcd\x03\xd8\x01\x8b".to_vec();
    let objects = vec![
        (".zarray", text(&document)),
        ("0.0", zlib.clone()),
        ("0.1", b"\x1f\x8bthe rest".to_vec()),
    ];
    let v3 = mount(&objects, ViewKind::Keys, Some(Target::V3));
    assert_eq!(v3.json("zarr.json")["codecs"][1]["name"], "gzip");
    assert!(v3.read("0.0").is_err());
    assert_eq!(v3.read("0.1").unwrap(), b"\x1f\x8bthe rest");
    let keys = mount(&objects, ViewKind::Keys, None);
    assert_eq!(keys.read("0.0").unwrap(), zlib);
    let decoded = mount(&objects, ViewKind::Chunks, Some(Target::V3));
    assert_eq!(decoded.read("0.0").unwrap(), b"abcd");
}

#[test]
fn a_chunk_of_text_has_its_decoded_size() {
    let mut objects: Objects = vec![(
        "zarr.json",
        br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec(),
    )];
    let mut document = array(&[4], &[2], &json!([{"name": "vlen-utf8"}]));
    document["data_type"] = "string".into();
    document["fill_value"] = "no".into();
    // Two elements, `a` and `bcd`.
    let chunk = [&[2, 0, 0, 0, 1, 0, 0, 0][..], b"a", &[3, 0, 0, 0], b"bcd"].concat();
    objects.push(("text/zarr.json", text(&document)));
    objects.push(("text/c/0", chunk.clone()));
    for shown_as in [None, Some(Target::V2)] {
        let fixture = mount(&objects, ViewKind::Chunks, shown_as);
        let path = |n| match shown_as {
            None => format!("text/c/{n}"),
            Some(_) => format!("text/{n}"),
        };
        assert_eq!(
            walk(&fixture, "text")
                .iter()
                .filter(|(found, _)| found[1..] == path(0))
                .count(),
            1
        );
        assert_eq!(
            fixture.find(&path(0)).unwrap().unwrap().attributes.size,
            chunk.len() as u64
        );
        assert_eq!(fixture.read(&path(0)).unwrap(), chunk);
        let absent = [
            &[2, 0, 0, 0][..],
            &[2, 0, 0, 0],
            b"no",
            &[2, 0, 0, 0],
            b"no",
        ]
        .concat();
        assert_eq!(fixture.read(&path(1)).unwrap(), absent);
    }
    let options = ViewOptions {
        max_chunk_bytes: 8,
        ..chunks()
    };
    let borrowed: Vec<_> = objects
        .iter()
        .map(|(key, bytes)| (*key, bytes.as_slice()))
        .collect();
    let small = Fixture::new(options, &borrowed);
    assert!(small.find("text/zarr.json").unwrap().is_some());
    assert!(
        small.find("text/c/0").is_err(),
        "too large, once it is decoded"
    );
    let mut damaged = objects.clone();
    damaged.push(("text/c/0", b"\xff\xff\xff\xff".to_vec()));
    let fixture = mount(&damaged, ViewKind::Chunks, None);
    assert!(fixture.find("text/c/0").is_err());
    assert!(fixture.entries("text/c").contains(&("0".to_owned(), false)));
}

#[test]
fn a_draft_is_a_tree_of_nodes_in_another_version() {
    let fixture = mount(&draft(), ViewKind::Keys, Some(Target::V3));
    assert_eq!(
        fixture.list(""),
        ["README", "a", "g", "i", "odd", "zarr.json"]
    );
    assert_eq!(fixture.list("a"), ["c", "zarr.json"]);
    assert_eq!(fixture.list("i"), ["c", "zarr.json"]);
    assert_eq!(
        fixture.json("zarr.json")["attributes"],
        json!({"title": "t"})
    );
    assert_eq!(fixture.json("i/zarr.json")["node_type"], "group");
    for hidden in [
        "meta",
        "data",
        "consolidated",
        "a/c0",
        "g/c0",
        "nothing",
        "a/b",
    ] {
        assert!(fixture.find(hidden).unwrap().is_none(), "{hidden}");
    }
    let v2 = mount(&draft(), ViewKind::Keys, Some(Target::V2));
    assert_eq!(v2.list("i"), [".zgroup", "c"]);
    assert_eq!(v2.json(".zattrs"), json!({"title": "t"}));
    assert!(v2.find("zarr.json").unwrap().is_none());
}

#[test]
fn an_array_that_a_version_cannot_express_is_not_shown_in_either_view() {
    for view in [ViewKind::Keys, ViewKind::Chunks] {
        for (objects, shown_as, expected) in [
            (v2(), Target::V3, [".zarray.unsupported", "ERROR.txt"]),
            (v3(), Target::V2, ["ERROR.txt", "zarr.json.unsupported"]),
            (
                draft(),
                Target::V2,
                ["ERROR.txt", "odd.array.json.unsupported"],
            ),
            (
                draft(),
                Target::V3,
                ["ERROR.txt", "odd.array.json.unsupported"],
            ),
        ] {
            let fixture = mount(&objects, view, Some(shown_as));
            assert_eq!(fixture.list("odd"), expected);
            let note = String::from_utf8(fixture.read("odd/ERROR.txt").unwrap()).unwrap();
            assert!(note.starts_with("odd cannot be shown"), "{note}");
            for hidden in ["zarr.json", ".zarray", "notes.txt"] {
                let path = format!("odd/{hidden}");
                assert!(fixture.find(&path).unwrap().is_none(), "{path}");
            }
            for refused in ["0.0", "c", "0", "c/0", "0/0"] {
                let path = format!("odd/{refused}");
                let kind = refusal(&fixture, &path);
                assert_eq!(kind, ErrorKind::Unsupported, "{path}");
            }
        }
    }
    let own = mount(&v2(), ViewKind::Keys, Some(Target::V2));
    assert_eq!(own.list("odd"), [".zarray", "0.0"]);
}

#[test]
fn the_document_of_a_drafts_array_that_cannot_be_decoded_is_renamed_where_it_lies() {
    let mut objects = draft();
    objects.push((
        "meta/root/odd.array.json.unsupported",
        b"the store's own".to_vec(),
    ));
    let fixture = mount(&objects, ViewKind::Chunks, None);
    assert_eq!(fixture.list("data/root/odd"), ["ERROR.txt"]);
    assert!(fixture.find("meta/root/odd.array.json").unwrap().is_none());
    let own = fixture
        .read("meta/root/odd.array.json.unsupported")
        .unwrap();
    assert_eq!(own, b"the store's own");
    let renamed = fixture
        .read("meta/root/odd.array.json.unsupported~")
        .unwrap();
    assert_eq!(renamed, draft_array(&json!("u1"), Some("nonesuch")));
    assert!(
        fixture
            .find("meta/root/odd.array.json.unsupported~~")
            .unwrap()
            .is_none()
    );
    let keys = mount(&objects, ViewKind::Keys, None);
    assert!(keys.find("meta/root/odd.array.json").unwrap().is_some());
    assert_eq!(keys.list("data/root/odd"), ["c0"]);
}

#[test]
fn consolidated_metadata_is_made_from_the_nodes_own_documents() {
    let keys = |value: &Value| {
        let members = value.as_object().unwrap();
        members.keys().cloned().collect::<Vec<_>>()
    };
    let fixture = mount(&v3(), ViewKind::Chunks, Some(Target::V2));
    let document = fixture.json(".zmetadata");
    assert_eq!(document["zarr_consolidated_format"], 1);
    let copies = &document["metadata"];
    assert_eq!(
        keys(copies),
        [
            ".zattrs",
            ".zgroup",
            "p/.zarray",
            "plain/.zgroup",
            "s/.zarray"
        ]
    );
    assert_eq!(copies["s/.zarray"], fixture.json("s/.zarray"));
    assert!(fixture.find("s/.zmetadata").unwrap().is_none());

    let mut objects = v2();
    let plain = mount(&objects, ViewKind::Keys, Some(Target::V3));
    assert!(
        plain
            .json("zarr.json")
            .get("consolidated_metadata")
            .is_none()
    );
    let stale = br#"{"zarr_consolidated_format": 1, "metadata": {"gone/.zarray": {}}}"#;
    objects.push((".zmetadata", stale.to_vec()));
    let fixture = mount(&objects, ViewKind::Keys, Some(Target::V3));
    let copies = &fixture.json("zarr.json")["consolidated_metadata"]["metadata"];
    assert_eq!(keys(copies), ["a", "g", "g/b"]);
    assert_eq!(copies["g/b"], fixture.json("g/b/zarr.json"));
    assert!(fixture.find(".zmetadata").unwrap().is_none());
}

#[test]
fn too_many_nodes_are_not_consolidated() {
    let names: Vec<String> = (0..1000).map(|i| format!("n{i}/README")).collect();
    let objects: Vec<_> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let options = ViewOptions {
        shown_as: Some(Target::V2),
        ..ViewOptions::default()
    };
    let few = Fixture::new(options.clone(), &objects[1..]);
    assert_eq!(
        few.json(".zmetadata")["metadata"]
            .as_object()
            .unwrap()
            .len(),
        1000
    );
    let many = Fixture::new(options, &objects);
    assert!(many.find(".zmetadata").unwrap().is_none());
    assert!(many.find("n7/.zgroup").unwrap().is_some());
}

#[test]
fn more_metadata_than_the_cache_has_room_for_is_not_consolidated() {
    let (limit, half) = (1 << 20, "x".repeat(1 << 17));
    let attributes = text(&json!({ "text": half }));
    let group = br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec();
    let long = text(&json!({
        "zarr_format": 3, "node_type": "group", "attributes": {"text": half},
    }));
    assert!(attributes.len() < limit / 4 && attributes.len() * 2 > limit / 4);
    let options = ViewOptions {
        shown_as: Some(Target::V2),
        cache_budget_bytes: limit as u64,
        ..ViewOptions::default()
    };
    let root = ("zarr.json", &group[..]);
    let one = [root, ("a/zarr.json", &long[..])];
    let fixture = Fixture::new(options.clone(), &one);
    let copies = &fixture.json(".zmetadata")["metadata"];
    assert_eq!(copies["a/.zattrs"]["text"], half);
    let two = [root, one[1], ("b/zarr.json", &long[..])];
    let fixture = Fixture::new(options, &two);
    assert!(fixture.find(".zmetadata").unwrap().is_none());
    assert_eq!(fixture.json("b/.zattrs")["text"], half);
}

#[test]
fn listed_entries_are_found_as_they_were_listed() {
    for (name, objects) in stores() {
        for view in [ViewKind::Keys, ViewKind::Chunks] {
            for shown_as in [None, Some(Target::V2), Some(Target::V3)] {
                let case = format!("{name} {view:?} {shown_as:?}");
                let fixture = mount(&objects, view, shown_as);
                assert!(!walk(&fixture, &case).is_empty(), "{case}");
            }
        }
    }
}

#[test]
fn an_array_is_shown_once_its_attributes_are_mended() {
    let mut objects = v2();
    for (key, bytes) in &mut objects {
        if *key == "a/.zattrs" {
            *bytes = b"{".to_vec();
        }
    }
    let fixture = mount(&objects, ViewKind::Chunks, Some(Target::V3));
    for (attributes, is_usable) in [
        (None, false),
        (Some(&b"[1]"[..]), false),
        (Some(br#"{"units": "m"}"#), true),
    ] {
        if let Some(attributes) = attributes {
            fixture.put("a/.zattrs", attributes);
        }
        for _ in 0..2 {
            let names = fixture.list("a");
            assert_eq!(
                !names.contains(&"ERROR.txt".to_owned()),
                is_usable,
                "{names:?}"
            );
        }
    }
    assert_eq!(
        fixture.json("a/zarr.json")["attributes"],
        json!({"units": "m"})
    );
}
