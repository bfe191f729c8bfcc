//! Nodes of a store where each request takes long and names perhaps cannot be listed: which nodes
//! are found, and in how many requests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![cfg(debug_assertions)]

mod common;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use zarr_mount::fresh::Freshness;
use zarr_mount::store::testing::{CallKind, Flat, Recording, Refusal, Slow, wrap};
use zarr_mount::store::{Detail, Key, MemoryStore, Store};
use zarr_mount::view::{AbsentChunks, EntrySource, View, ViewKind, ViewOptions};

use common::{list, read, view, walk};

const HOUR: Duration = Duration::from_secs(3600);
const LATENCY: Duration = Duration::from_millis(2);
const IN_FLIGHT: usize = 64;
const ALL: [ViewKind; 3] = [ViewKind::Keys, ViewKind::Chunks, ViewKind::Arrays];

const GROUP_V2: &str = r#"{"zarr_format": 2}"#;
const GROUP_V3: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;
const ARRAY_V2: &str = r#"{"zarr_format": 2, "shape": [4, 2], "chunks": [2, 2], "dtype": "|u1",
    "compressor": null, "filters": null, "fill_value": 7, "order": "C",
    "dimension_separator": "/"}"#;
const ARRAY_V3: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [4, 2],
    "data_type": "uint8", "chunk_grid": {"name": "regular",
    "configuration": {"chunk_shape": [2, 2]}}, "chunk_key_encoding": {"name": "default"},
    "fill_value": 7, "codecs": [{"name": "bytes"}], "dimension_names": ["y", "x"]}"#;
/// The array above: the second chunk is stored.
const ELEMENTS: [u8; 8] = [7, 7, 7, 7, 1, 2, 3, 4];

/// How a store answers requests to list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Listed,
    Refused(Refusal),
}

const UNLISTED: [Names; 2] = [
    Names::Refused(Refusal::Unlisted),
    Names::Refused(Refusal::Denied),
];

struct Far {
    memory: Arc<MemoryStore>,
    recording: Arc<Recording>,
    view: Arc<View>,
}

/// A store of documents and chunks that are an hour old.
fn memory(objects: &[(&str, String)]) -> Arc<MemoryStore> {
    let memory = Arc::new(MemoryStore::new());
    for (key, bytes) in objects {
        put(&memory, key, bytes, SystemTime::now() - HOUR);
    }
    memory
}

fn put(memory: &MemoryStore, key: &str, bytes: &str, changed: SystemTime) {
    let key = Key::parse(key.as_bytes()).unwrap();
    memory.insert_at(key, bytes.as_bytes().to_vec(), changed);
}

fn far_with(memory: &Arc<MemoryStore>, names: Names, options: ViewOptions) -> Far {
    let within = Arc::clone(memory) as Arc<dyn Store>;
    let flat = match names {
        Names::Listed => Flat::new(within),
        Names::Refused(refusal) => Flat::unlisted(within, refusal),
    };
    let slow = Arc::new(Slow::new(LATENCY, IN_FLIGHT));
    let recording = Arc::new(Recording::default());
    let slow = wrap(Arc::new(flat) as Arc<dyn Store>, &slow);
    Far {
        memory: Arc::clone(memory),
        view: view(wrap(slow, &recording), options),
        recording,
    }
}

fn far(memory: &Arc<MemoryStore>, names: Names, kind: ViewKind) -> Far {
    let options = ViewOptions {
        views: vec![kind],
        freshness: Freshness::Checked(HOUR),
        ..ViewOptions::default()
    };
    far_with(memory, names, options)
}

impl Far {
    fn names(&self, path: &str) -> Vec<String> {
        let entries = list(&self.view, path, Detail::Names).into_iter();
        let names = entries.map(|entry| String::from_utf8(entry.name).unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Checks that the listing of a directory of chunks ends with an error that says so.
    fn ends_with_error(&self, path: &str) {
        let (id, _) = walk(&self.view, path).unwrap().unwrap();
        let mut directory = self.view.open_directory(id).unwrap().unwrap();
        let error = loop {
            match directory.next_entry(Detail::Names) {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{path}: the listing seems complete"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(
            error.contains("its chunks are not listed"),
            "{path}: {error}"
        );
    }

    fn exists(&self, path: &str) -> bool {
        walk(&self.view, path).unwrap().is_some()
    }

    fn text(&self, path: &str) -> Option<String> {
        let bytes = read(&self.view, path).unwrap()?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// The calls since this was last called.
    fn calls(&self) -> Vec<String> {
        let calls = self.recording.calls();
        self.recording.clear();
        calls.iter().map(ToString::to_string).collect()
    }
}

fn chunk() -> String {
    "\u{1}\u{2}\u{3}\u{4}".to_owned()
}

/// A group of v2 or v3 with `n` arrays in a group of it, and consolidated metadata.
fn consolidated(is_v2: bool, n: usize) -> Vec<(String, String)> {
    let (mut objects, mut copies) = (Vec::new(), Vec::new());
    let names = (0..n).map(|n| format!("g/a{n}"));
    if is_v2 {
        copies.push(format!("\"g/.zgroup\": {GROUP_V2}"));
        objects.push((".zgroup".to_owned(), GROUP_V2.to_owned()));
        objects.push(("g/.zgroup".to_owned(), GROUP_V2.to_owned()));
        for name in names {
            copies.push(format!("\"{name}/.zarray\": {ARRAY_V2}"));
            objects.push((format!("{name}/.zarray"), ARRAY_V2.to_owned()));
            objects.push((format!("{name}/1/0"), chunk()));
        }
        let text = format!(
            r#"{{"zarr_consolidated_format": 1, "metadata": {{{}}}}}"#,
            copies.join(", ")
        );
        objects.push((".zmetadata".to_owned(), text));
        return objects;
    }
    let nested = GROUP_V3.replace(
        "\"group\"",
        "\"group\", \"consolidated_metadata\": {\"kind\": \"inline\", \"metadata\": {}}",
    );
    copies.push(format!("\"g\": {nested}"));
    objects.push(("g/zarr.json".to_owned(), GROUP_V3.to_owned()));
    for name in names {
        copies.push(format!("\"{name}\": {ARRAY_V3}"));
        objects.push((format!("{name}/zarr.json"), ARRAY_V3.to_owned()));
        objects.push((format!("{name}/c/1/0"), chunk()));
    }
    let text = GROUP_V3.replace(
        "\"group\"",
        &format!(
            r#""group", "consolidated_metadata": {{"kind": "inline", "must_understand": false,
            "metadata": {{{}}}}}"#,
            copies.join(", ")
        ),
    );
    objects.push(("zarr.json".to_owned(), text));
    objects
}

fn borrowed(objects: &[(String, String)]) -> Vec<(&str, String)> {
    let borrowed = objects.iter();
    borrowed
        .map(|(key, text)| (key.as_str(), text.clone()))
        .collect()
}

fn npy(elements: &[u8]) -> impl Fn(&[u8]) -> bool {
    move |file: &[u8]| file.ends_with(elements)
}

#[test]
fn consolidated_metadata_finds_nodes_in_one_round_trip() {
    for is_v2 in [true, false] {
        let memory = memory(&borrowed(&consolidated(is_v2, 3)));
        for kind in [ViewKind::Chunks, ViewKind::Arrays] {
            let far = far(&memory, Names::Listed, kind);
            far.recording.clear();
            let root = far.names("");
            assert!(root.contains(&"g".to_owned()), "{root:?}");
            assert_eq!(
                far.recording.round_trips(),
                1,
                "{kind:?}: {:?}",
                far.calls()
            );
            let calls = far.calls();
            assert!(
                calls.iter().all(|call| call.starts_with("fetch ")),
                "{calls:?}"
            );
            let names = far.names("g");
            let expected: &[&str] = match (kind, is_v2) {
                (ViewKind::Arrays, _) => &[
                    "a0.json", "a0.npy", "a1.json", "a1.npy", "a2.json", "a2.npy",
                ],
                (_, true) => &[".zgroup", "a0", "a1", "a2"],
                (_, false) => &["a0", "a1", "a2", "zarr.json"],
            };
            assert_eq!(names, expected);
            let entries = list(&far.view, "g", Detail::Attributes);
            assert!(entries.iter().all(|entry| entry.attributes.is_some()));
            assert_eq!(far.calls(), [""; 0], "{kind:?} of v2: {is_v2}");
        }
    }
}

#[test]
fn elements_are_read_through_copies() {
    for is_v2 in [true, false] {
        for names in [Names::Listed, UNLISTED[0], UNLISTED[1]] {
            let memory = memory(&borrowed(&consolidated(is_v2, 1)));
            let arrays = far(&memory, names, ViewKind::Arrays);
            let file = read(&arrays.view, "g/a0.npy").unwrap().unwrap();
            assert!(npy(&ELEMENTS)(&file), "{names:?}");
            let chunks = far(&memory, names, ViewKind::Chunks);
            let path = if is_v2 { "g/a0/1/0" } else { "g/a0/c/1/0" };
            assert_eq!(chunks.text(path), Some(chunk()), "{names:?}");
            let absent = path.replace("1/0", "0/0");
            assert_eq!(
                chunks.text(&absent).as_deref(),
                Some("\u{7}\u{7}\u{7}\u{7}")
            );
            let below = if is_v2 { "g/a0" } else { "g/a0/c" };
            let listed = chunks.names(below);
            assert!(
                listed.ends_with(&["0".to_owned(), "1".to_owned()]) || is_v2,
                "{listed:?}"
            );
            assert_eq!(chunks.names(&format!("{below}/1")), ["0"], "{names:?}");
            let keys = far(&memory, names, ViewKind::Keys);
            assert_eq!(keys.text(path), Some(chunk()), "{names:?}");
            assert!(!keys.exists(&absent), "{names:?}");
        }
    }
}

#[test]
fn the_keys_view_shows_stored_documents_and_copies_of_those_that_are_not_stored() {
    let mut objects = consolidated(true, 2);
    objects.retain(|(key, _)| key != "g/a1/.zarray");
    // The same document, spelled in another way.
    let spelled = ARRAY_V2.replace("    ", "");
    objects.retain(|(key, _)| key != "g/a0/.zarray");
    objects.push(("g/a0/.zarray".to_owned(), spelled.clone()));
    let memory = memory(&borrowed(&objects));
    for names in [Names::Listed, UNLISTED[0]] {
        let keys = far(&memory, names, ViewKind::Keys);
        assert_eq!(keys.text("g/a0/.zarray").as_deref(), Some(spelled.as_str()));
        assert_eq!(keys.text("g/a1/.zarray").as_deref(), Some(ARRAY_V2));
        assert!(keys.exists("g/a1"), "{names:?}");
        let root = keys.names("");
        assert_eq!(root, [".zgroup", ".zmetadata", "g"], "{names:?}");
        assert_eq!(keys.names("g"), [".zgroup", "a0", "a1"], "{names:?}");
        match names {
            Names::Listed => assert_eq!(keys.names("g/a0"), [".zarray", "1"]),
            Names::Refused(_) => keys.ends_with_error("g/a0"),
        }
    }
}

#[test]
fn names_that_copies_do_not_mention_are_looked_for() {
    for is_v2 in [true, false] {
        let mut objects = consolidated(is_v2, 1);
        let (name, text) = if is_v2 {
            (".zarray", ARRAY_V2)
        } else {
            ("zarr.json", ARRAY_V3)
        };
        objects.push((format!("g/new/{name}"), text.to_owned()));
        objects.push(("g/README.md".to_owned(), "read".to_owned()));
        let memory = memory(&borrowed(&objects));
        for names in [Names::Listed, UNLISTED[0], UNLISTED[1]] {
            for kind in ALL {
                let far = far(&memory, names, kind);
                let path = if kind == ViewKind::Arrays {
                    "g/new.npy"
                } else {
                    "g/new"
                };
                assert!(far.exists(path), "{kind:?} {names:?}");
                assert!(!far.exists("g/none"), "{kind:?} {names:?}");
                if kind != ViewKind::Arrays {
                    assert_eq!(far.text("g/README.md").as_deref(), Some("read"));
                }
            }
        }
    }
}

#[test]
fn copies_are_made_anew_when_their_document_changes() {
    for is_v2 in [true, false] {
        for has_documents in [true, false] {
            let document = if is_v2 { ".zmetadata" } else { "zarr.json" };
            let all = consolidated(is_v2, 2);
            let stored = |n: usize| {
                let mut objects = consolidated(is_v2, n);
                let is_kept = |key: &str| !key.contains('/') || has_documents;
                objects.retain(|(key, _)| is_kept(key));
                objects
            };
            let memory = memory(&borrowed(&stored(2)));
            let options = ViewOptions {
                views: vec![ViewKind::Chunks],
                freshness: Freshness::Checked(Duration::ZERO),
                ..ViewOptions::default()
            };
            let far = far_with(&memory, Names::Listed, options);
            assert!(far.exists("g/a1"));
            let is_node = |name: &&String| name.starts_with('a');
            assert_eq!(far.names("g").iter().filter(is_node).count(), 2);
            let shorter = consolidated(is_v2, 1);
            let text = |objects: &[(String, String)]| {
                let mut objects = objects.iter();
                objects.find(|(key, _)| key == document).unwrap().1.clone()
            };
            let earlier = SystemTime::now() - HOUR / 2;
            put(&far.memory, document, &text(&shorter), earlier);
            assert_eq!(far.names("g").iter().filter(is_node).count(), 1);
            assert_eq!(far.exists("g/a1"), has_documents, "by its own document");
            put(&far.memory, document, &text(&all), earlier + HOUR / 4);
            assert_eq!(far.names("g").iter().filter(is_node).count(), 2);
            assert!(far.exists("g/a1"));
        }
    }
}

#[test]
fn a_broken_copy_is_a_broken_node_and_a_null_is_no_copy() {
    let group = |copies: &str| {
        let text = format!("\"group\", \"consolidated_metadata\": {copies}");
        GROUP_V3.replace("\"group\"", &text)
    };
    let broken = r#"{"kind": "inline", "metadata": {"b": {"zarr_format": 3, "node_type": "array"},
        "m": {"zarr_format": 3, "node_type": "group", "more": {"must_understand": true}},
        "../x": 1, "g": {"zarr_format": 3, "node_type": "group"}}}"#;
    let stored = memory(&[
        ("zarr.json", group(broken)),
        ("a/zarr.json", ARRAY_V3.to_owned()),
    ]);
    let far_arrays = far(&stored, Names::Listed, ViewKind::Arrays);
    // The nodes in a group whose document cannot be used are shown, beside the reason.
    assert_eq!(
        far_arrays.names(""),
        ["b.ERROR.txt", "g", "m", "m.ERROR.txt"]
    );
    assert!(far_arrays.text("b.ERROR.txt").is_some());
    for none in ["null", r#"{"kind": "other", "metadata": {"b": 1}}"#, "1"] {
        let stored = memory(&[
            ("zarr.json", group(none)),
            ("a/zarr.json", ARRAY_V3.to_owned()),
        ]);
        let far = far(&stored, Names::Listed, ViewKind::Chunks);
        assert!(far.names("").contains(&"a".to_owned()), "{none}");
    }
    // A list without entries says that there are no nodes.
    let stored = memory(&[
        ("zarr.json", group(r#"{"kind": "inline", "metadata": {}}"#)),
        ("a/zarr.json", ARRAY_V3.to_owned()),
    ]);
    let far = far(&stored, Names::Listed, ViewKind::Chunks);
    assert_eq!(far.names(""), ["zarr.json"]);
    assert!(far.exists("a"));
}

#[test]
fn without_copies_names_are_listed_and_documents_read_together() {
    const N: usize = 40;
    let mut objects = consolidated(false, N);
    objects.retain(|(key, _)| key != "zarr.json");
    objects.push(("zarr.json".to_owned(), GROUP_V3.to_owned()));
    let memory = memory(&borrowed(&objects));
    let far = far(&memory, Names::Listed, ViewKind::Arrays);
    assert_eq!(far.names(""), ["g"]);
    far.recording.clear();
    assert_eq!(far.names("g").len(), 2 * N);
    let calls = far.recording.calls();
    let count = |kind| calls.iter().filter(|call| call.kind == kind).count();
    assert_eq!(count(CallKind::List), 1, "{calls:?}");
    let of_arrays = calls.iter().map(ToString::to_string);
    let of_arrays = of_arrays.filter(|call| call.contains(" g/a")).count();
    assert_eq!(of_arrays, N, "one document each: {calls:?}");
    // The group itself, which is looked at in several steps.
    assert!(calls.len() <= N + 8, "{calls:?}");
}

#[test]
fn documents_that_decide_are_asked_for_together() {
    for (document, text) in [("zarr.json", GROUP_V3), (".zgroup", GROUP_V2)] {
        let memory = memory(&[(document, text.to_owned())]);
        let far = far(&memory, Names::Listed, ViewKind::Chunks);
        far.recording.clear();
        assert!(far.view.finds_anything().unwrap());
        assert_eq!(far.recording.round_trips(), 1, "{:?}", far.calls());
        assert!(!far.exists("none"));
    }
}

#[test]
fn nodes_are_found_by_name_where_names_cannot_be_listed() {
    let memory = memory(&[
        ("zarr.json", GROUP_V3.to_owned()),
        ("g/zarr.json", GROUP_V3.to_owned()),
        ("g/a/zarr.json", ARRAY_V3.to_owned()),
        ("g/a/c/1/0", chunk()),
        ("g/x/zarr.json", ARRAY_V3.to_owned()),
        ("h/.zgroup", GROUP_V2.to_owned()),
    ]);
    for names in UNLISTED {
        for kind in ALL {
            let far = far(&memory, names, kind);
            let own = |names: &[&str]| {
                let has_document = kind != ViewKind::Arrays;
                let names = names.iter().copied();
                let names = names.filter(|name| has_document || !name.ends_with("zarr.json"));
                names.map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(far.names(""), own(&["zarr.json"]), "{kind:?}");
            assert!(far.exists("g") && far.exists("h"), "{kind:?}");
            assert!(!far.exists("none"), "{kind:?}");
            assert_eq!(far.names(""), own(&["g", "h", "zarr.json"]), "{kind:?}");
            let array = if kind == ViewKind::Arrays {
                "a.npy"
            } else {
                "a"
            };
            assert!(far.exists(&format!("g/{array}")), "{kind:?}");
            // The array has a coordinate called `x`, and one called `y` that does not exist.
            let expected = match kind {
                ViewKind::Arrays => vec!["a.json", "a.npy", "x.json", "x.npy"],
                _ => vec!["a", "x", "zarr.json"],
            };
            assert_eq!(far.names("g"), expected, "{kind:?}");
            if kind != ViewKind::Arrays {
                assert_eq!(far.text("g/a/c/1/0"), Some(chunk()), "{kind:?}");
                assert!(!far.exists("g/a/c/5/0"), "{kind:?}: outside of the grid");
            }
        }
    }
}

#[test]
fn images_of_ome_are_listed_where_names_cannot_be() {
    const SCALES: &str = r#"{"multiscales": [{"datasets": [{"path": "0"}, {"path": "s/1"},
        {"path": "gone"}]}]}"#;
    let v3 =
        format!(r#"{{"zarr_format": 3, "node_type": "group", "attributes": {{"ome": {SCALES}}}}}"#);
    for objects in [
        [
            ("zarr.json", v3),
            ("0/zarr.json", ARRAY_V3.to_owned()),
            ("s/1/zarr.json", ARRAY_V3.to_owned()),
            ("lost/zarr.json", ARRAY_V3.to_owned()),
        ]
        .to_vec(),
        [
            (".zgroup", GROUP_V2.to_owned()),
            (".zattrs", SCALES.to_owned()),
            ("0/.zarray", ARRAY_V2.to_owned()),
            ("s/1/.zarray", ARRAY_V2.to_owned()),
            ("lost/.zarray", ARRAY_V2.to_owned()),
        ]
        .to_vec(),
    ] {
        let memory = memory(&objects);
        for names in UNLISTED {
            let chunks = far(&memory, names, ViewKind::Chunks);
            let mut listed = chunks.names("");
            listed.retain(|name| name != "zarr.json" && !name.starts_with('.'));
            assert_eq!(listed, ["0", "s"], "{names:?}");
            let arrays = far(&memory, names, ViewKind::Arrays);
            assert_eq!(
                arrays.names(""),
                ["0.json", "0.npy", "array.json", "s"],
                "{names:?}"
            );
            assert_eq!(arrays.names("s"), ["1.json", "1.npy"], "{names:?}");
        }
    }
}

#[test]
fn chunks_are_listed_from_the_grid_where_names_cannot_be() {
    let memory = memory(&[("zarr.json", ARRAY_V3.to_owned()), ("c/1/0", chunk())]);
    for names in UNLISTED {
        let chunks = far(&memory, names, ViewKind::Chunks);
        assert_eq!(chunks.names(""), ["c", "zarr.json"]);
        assert_eq!(chunks.names("c"), ["0", "1"]);
        assert_eq!(chunks.names("c/0"), ["0"]);
        let options = ViewOptions {
            views: vec![ViewKind::Chunks],
            missing: AbsentChunks::Hide,
            ..ViewOptions::default()
        };
        let hidden = far_with(&memory, names, options);
        hidden.ends_with_error("c");
        assert_eq!(hidden.text("c/1/0"), Some(chunk()));
        assert!(!hidden.exists("c/0/0"));
        let keys = far(&memory, names, ViewKind::Keys);
        assert_eq!(keys.names(""), ["c", "zarr.json"]);
        keys.ends_with_error("c");
        keys.ends_with_error("c/1");
        assert_eq!(keys.text("c/1/0"), Some(chunk()));
    }
}

/// Otherwise `cp -r` would copy an array without its chunks, and end with status 0.
#[test]
fn a_directory_of_chunks_is_not_empty_where_names_cannot_be_listed() {
    let flat = ARRAY_V2.replace(r#""/""#, r#"".""#);
    let sharded = ARRAY_V3.replace(
        r#"{"name": "bytes"}"#,
        r#"{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 2],
        "codecs": [{"name": "bytes"}], "index_codecs": [{"name": "bytes",
        "configuration": {"endian": "little"}}]}}"#,
    );
    let empty = ARRAY_V2.replace("[4, 2]", "[0, 2]");
    let of_v2 = format!(
        r#"{{"zarr_consolidated_format": 1, "metadata": {{"flat/.zarray": {flat},
        "empty/.zarray": {empty}, "broken/.zarray": {}}}}}"#,
        flat.replace("|u1", "|x9")
    );
    let memory = memory(&[
        ("a/.zgroup", GROUP_V2.to_owned()),
        ("a/.zmetadata", of_v2),
        ("a/flat/.zarray", flat.clone()),
        ("a/empty/.zarray", empty),
        ("a/broken/.zarray", flat.replace("|u1", "|x9")),
        ("s/zarr.json", sharded),
    ]);
    for names in UNLISTED {
        let keys = far(&memory, names, ViewKind::Keys);
        keys.ends_with_error("a/flat");
        keys.ends_with_error("a/broken");
        assert!(keys.names("a").contains(&"flat".to_owned()));
        assert!(keys.names("a/empty").contains(&".zarray".to_owned()));
        assert_eq!(keys.names("s"), ["c", "zarr.json"]);
        keys.ends_with_error("s/c");
    }
}

#[test]
fn evicted_copies_are_read_again() {
    let memory = memory(&borrowed(&consolidated(true, 3)));
    let far = far(&memory, Names::Listed, ViewKind::Chunks);
    assert_eq!(far.names("g").len(), 4);
    far.recording.clear();
    let budget = far.view.loader().cache().budget();
    let all = budget.limit();
    drop(budget.reserve(all, zarr_mount::budget::Holding::NOTHING));
    assert!(far.exists("g/a2"));
    assert_eq!(far.recording.round_trips(), 1, "{:?}", far.calls());
    assert_eq!(far.names("g").len(), 4);
}

#[test]
fn a_thousand_arrays_are_listed_without_a_request() {
    let memory = memory(&borrowed(&consolidated(false, 1000)));
    let far = far(&memory, Names::Listed, ViewKind::Arrays);
    assert_eq!(far.names("g").len(), 2000);
    let lists = far.recording.count(CallKind::List);
    assert_eq!(lists, 0);
    // The root of the store and the documents of its group.
    assert!(far.recording.requests() <= 9, "{:?}", far.calls());
    far.recording.clear();
    let file = read(&far.view, "g/a7.json").unwrap();
    assert!(file.is_some() && walk(&far.view, "g/a7.npy").unwrap().is_some());
    assert_eq!(far.calls(), [""; 0]);
}
