//! Nodes of a store that is not local: round trips to find them, and the documents that decide.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use super::*;
use crate::store::testing::{Call, Flat, Layer, Recording, Refusal, Slow, wrap};
use crate::store::{Cursor, Detail, EntryKind, ListEntry, MemoryStore};

const HOUR: Duration = Duration::from_secs(3600);
const ARRAY: &str = r#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4"}"#;
const GROUP: &str = r#"{"zarr_format": 2}"#;
const GROUP_V3: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;

/// Denies access to some keys, as a bucket does for absent objects.
#[derive(Debug, Default)]
struct Denies(HashSet<String>);

impl Layer for Denies {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let key = call.path.to_text();
        if self.0.contains(&key) {
            let reason = "denied by the test".to_owned();
            return Err(StoreError::Denied { key, reason });
        }
        ask()
    }
}

/// Fails requests for a key until it is mended, as a server does that is overloaded.
#[derive(Debug)]
struct Fails {
    key: &'static str,
    is_mended: AtomicBool,
}

impl Layer for Fails {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let key = call.path.to_text();
        if key == self.key && !self.is_mended.load(Ordering::Relaxed) {
            return Err(StoreError::problem(key, "status 503"));
        }
        ask()
    }
}

struct Far {
    recording: Arc<Recording>,
    hierarchy: Hierarchy,
}

/// A store without directories that has `objects`, and denies access to `denied`.
fn far(objects: &[(&str, &str)], denied: &[&str], budget: u64) -> Far {
    let layer = Denies(denied.iter().map(|key| (*key).to_owned()).collect());
    layered(objects, &Arc::new(layer), budget)
}

/// A store without directories that has `objects`, with `layer` around it.
fn layered(objects: &[(&str, &str)], layer: &Arc<impl Layer>, budget: u64) -> Far {
    let memory = MemoryStore::new();
    for (key, text) in objects {
        let key = Key::parse(key.as_bytes()).unwrap();
        let changed = SystemTime::now() - HOUR;
        memory.insert_at(key, (*text).as_bytes().to_vec(), changed);
    }
    let slow = Arc::new(Slow::new(Duration::ZERO, 64));
    let recording = Arc::new(Recording::default());
    let flat: Arc<dyn Store> = Arc::new(Flat::new(Arc::new(memory)));
    let store = wrap(wrap(wrap(flat, &slow), layer), &recording);
    let freshness = Freshness::Checked(HOUR);
    Far {
        hierarchy: Hierarchy::new(store, Budget::new(budget), freshness),
        recording,
    }
}

impl Far {
    fn at(&self, path: &str) -> String {
        let prefix = Prefix::parse(path.as_bytes()).unwrap();
        match self.hierarchy.node(&prefix) {
            Ok(Node::Array(array)) => format!("array of {}", array.document.key),
            Ok(Node::Group(group)) => format!("{:?} group", group.format),
            Ok(Node::Implicit) => "implicit".to_owned(),
            Ok(Node::Broken(broken)) => format!("broken {}", broken.document.key),
            Err(error) => format!("error: {error}"),
        }
    }

    /// The numbers of round trips and of requests since the last call.
    fn asked(&self) -> (usize, usize) {
        let asked = (self.recording.round_trips(), self.recording.requests());
        self.recording.clear();
        asked
    }
}

fn zmetadata(entries: &str) -> String {
    format!(r#"{{"zarr_consolidated_format": 1, "metadata": {{{entries}}}}}"#)
}

#[test]
fn documents_are_requested_together_and_the_first_one_decides() {
    for (objects, expected) in [
        (
            &[("zarr.json", GROUP_V3), (".zarray", ARRAY)][..],
            "V3 group",
        ),
        (
            &[(".zarray", ARRAY), (".zgroup", GROUP)],
            "array of .zarray",
        ),
        (&[(".zgroup", GROUP)], "V2 group"),
        (&[("attributes.json", r#"{"n5": "2.0.0"}"#)], "N5 group"),
        (&[("meta", "{}")], "implicit"),
        (&[], "implicit"),
    ] {
        let far = far(objects, &[], 1 << 20);
        assert_eq!(far.at(""), expected);
        assert_eq!(far.asked(), (1, 8), "{objects:?}");
    }
    // It may be a damaged document of v1, whose attributes are requested.
    let far = far(&[("meta", "a note")], &[], 1 << 20);
    assert_eq!((far.at(""), far.asked()), ("implicit".to_owned(), (2, 9)));
}

#[test]
fn a_short_document_is_read_once_although_its_attributes_are_needed_later() {
    let text = r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": "default", "fill_value": 0, "codecs": ["bytes"]}"#;
    let far = far(&[("a/zarr.json", text)], &[], 1 << 20);
    let found = far.hierarchy.node(&Prefix::parse(b"a").unwrap()).unwrap();
    let Node::Array(array) = found else {
        panic!("{found:?}")
    };
    far.asked();
    std::thread::sleep(Duration::from_millis(20));
    let documents = far.hierarchy.documents(&array).unwrap().unwrap();
    assert_eq!(documents.source().document, text.as_bytes());
    assert_eq!(far.asked(), (0, 0));
}

#[test]
fn likely_documents_of_a_group_are_requested_first() {
    let far = far(
        &[
            ("three/zarr.json", GROUP_V3),
            ("three/a/zarr.json", GROUP_V3),
            ("three/b/.zgroup", GROUP),
            ("two/.zgroup", GROUP),
            ("two/a/.zarray", ARRAY),
        ],
        &[],
        1 << 20,
    );
    assert_eq!(
        (far.at("three").as_str(), far.at("two").as_str()),
        ("V3 group", "V2 group")
    );
    far.asked();
    for (path, expected, asked) in [
        ("three/a", "V3 group", (1, 1)),
        ("three/b", "V2 group", (2, 7)),
        ("two/a", "array of two/a/.zarray", (1, 5)),
        ("two/none", "implicit", (2, 8)),
    ] {
        assert_eq!(far.at(path), expected);
        assert_eq!(far.asked(), asked, "{path}");
        assert_eq!(far.at(path), expected);
        assert_eq!(far.asked(), (0, 0), "{path} again");
    }
}

#[test]
fn copies_are_found_by_a_lookup_below_their_group() {
    let text = zmetadata(&format!(r#""g/h/a/.zarray": {ARRAY}"#));
    let far = far(&[(".zgroup", GROUP), (".zmetadata", &text)], &[], 1 << 20);
    assert_eq!(far.at("g/h/a"), "array of g/h/a/.zarray");
    assert_eq!(far.asked(), (1, 8), "the documents of the root");
    assert_eq!(far.at("g/h"), "implicit");
    assert_eq!(far.asked(), (0, 0));
}

#[test]
fn the_outermost_copies_count() {
    let (outer, inner) = (
        zmetadata(&format!(r#""g/.zgroup": {GROUP}, "g/a/.zarray": {ARRAY}"#)),
        zmetadata(&format!(r#""b/.zarray": {ARRAY}"#)),
    );
    let far = far(
        &[
            (".zgroup", GROUP),
            (".zmetadata", &outer),
            ("g/.zgroup", GROUP),
            ("g/.zmetadata", &inner),
            ("h/.zgroup", GROUP),
            ("h/.zmetadata", &inner),
        ],
        &[],
        1 << 20,
    );
    assert_eq!(far.at("g/a"), "array of g/a/.zarray");
    assert_eq!(far.at("g/b"), "implicit");
    assert_eq!(far.at("h"), "V2 group", "not mentioned, and stored");
}

#[test]
fn the_nearest_group_with_copies_counts_where_none_above_has_any() {
    let inner = zmetadata(&format!(r#""b/.zarray": {ARRAY}"#));
    let far = far(
        &[
            (".zgroup", GROUP),
            ("g/.zgroup", GROUP),
            ("g/.zmetadata", &inner),
        ],
        &[],
        1 << 20,
    );
    assert_eq!(far.at("g/b"), "array of g/b/.zarray");
    assert_eq!(far.at("b"), "implicit");
}

#[test]
fn copies_that_are_made_later_are_found() {
    let memory = Arc::new(MemoryStore::new());
    let put = |key: &str, text: &str| {
        let key = Key::parse(key.as_bytes()).unwrap();
        memory.insert_at(key, text.as_bytes().to_vec(), SystemTime::now() - HOUR);
    };
    put(".zgroup", GROUP);
    put("g/.zgroup", GROUP);
    let slow = Arc::new(Slow::new(Duration::ZERO, 64));
    let flat: Arc<dyn Store> = Arc::new(Flat::new(Arc::clone(&memory) as Arc<dyn Store>));
    let store = wrap(flat, &slow);
    let recording = Arc::new(Recording::default());
    let far = Far {
        hierarchy: Hierarchy::new(
            wrap(store, &recording),
            Budget::new(1 << 20),
            Freshness::Checked(Duration::ZERO),
        ),
        recording,
    };
    for (group, array) in [("g", "g/a"), ("", "b")] {
        assert_eq!(
            (far.at(group).as_str(), far.at(array).as_str()),
            ("V2 group", "implicit")
        );
        let name = array.trim_start_matches("g/");
        let copies = zmetadata(&format!(r#""{name}/.zarray": {ARRAY}"#));
        put(
            format!("{group}/.zmetadata").trim_start_matches('/'),
            &copies,
        );
        assert_eq!(far.at(group), "V2 group");
        assert_eq!(far.at(array), format!("array of {array}/.zarray"));
    }
}

#[test]
fn a_group_with_a_document_that_cannot_be_read_is_examined_again() {
    let copies = zmetadata(&format!(r#""a/.zarray": {ARRAY}"#));
    let v2 = [("g/.zgroup", GROUP), ("g/.zmetadata", copies.as_str())];
    let v3 = [("g/zarr.json", GROUP_V3), ("g/.zmetadata", copies.as_str())];
    let v2_array = [("g/.zarray", ARRAY), ("g/.zmetadata", copies.as_str())];
    for (objects, key, first, then) in [
        (
            v2,
            "g/.zmetadata",
            "error: g/.zmetadata: status 503",
            "array of g/a/.zarray",
        ),
        // The copies of another version are left over from an earlier group.
        (
            v3,
            "g/zarr.json",
            "error: g/zarr.json: status 503",
            "implicit",
        ),
        (v3, "g/.zmetadata", "implicit", "implicit"),
        (v2_array, "g/.zmetadata", "implicit", "implicit"),
    ] {
        let fails = Arc::new(Fails {
            key,
            is_mended: AtomicBool::new(false),
        });
        let far = layered(&objects, &fails, 1 << 20);
        assert_eq!(far.at("g/a"), first, "{key} of {objects:?}");
        fails.is_mended.store(true, Ordering::Relaxed);
        assert_eq!(far.at("g/a"), then, "{key} of {objects:?}");
    }
}

#[test]
fn copies_that_take_too_much_memory_are_not_used() {
    let long = " ".repeat(200 << 10);
    let text = zmetadata(&format!(r#"{long}"a/.zarray": {ARRAY}"#));
    let objects = [(".zgroup", GROUP), (".zmetadata", text.as_str())];
    assert_eq!(far(&objects, &[], 64 << 20).at("a"), "array of a/.zarray");
    assert_eq!(far(&objects, &[], 1 << 20).at("a"), "implicit");
}

#[test]
fn denied_documents_of_a_bucket_count_as_absent_beside_a_document() {
    let names = ["zarr.json", ".zarray", ".zmetadata", "__zmeta__"];
    let found = far(&[(".zgroup", GROUP)], &names, 1 << 20);
    assert_eq!(found.at(""), "V2 group");
    let nothing = far(&[], &names, 1 << 20);
    assert!(
        nothing
            .at("")
            .starts_with("error: zarr.json: access denied")
    );
}

#[test]
fn a_document_that_is_denied_is_not_absent_beside_attributes_alone() {
    let objects = [(".zgroup", GROUP), ("a/.zattrs", "{}"), ("a/0", "")];
    for denied in [&["a/.zarray"][..], &["a/.zarray", "a/.zgroup"]] {
        let found = far(&objects, denied, 1 << 20);
        assert_eq!(found.at(""), "V2 group");
        let expected = "error: a/.zarray: access denied";
        assert!(found.at("a").starts_with(expected), "{}", found.at("a"));
    }
}

/// The names that `store` lists in `path` after `after`, and the cursor after each of them.
fn listed(store: &dyn Store, path: &str, after: Cursor) -> Vec<(String, Cursor)> {
    let prefix = Prefix::parse(path.as_bytes()).unwrap();
    let listing = store.list(&prefix, after, Detail::Attributes).unwrap();
    let Some(mut listing) = listing else {
        return Vec::new();
    };
    let entries = std::iter::from_fn(|| listing.next_entry().unwrap());
    let name = |entry: ListEntry| {
        assert!(entry.meta.is_some(), "{:?}", entry.name);
        let kind = if entry.kind == EntryKind::Prefix {
            "/"
        } else {
            ""
        };
        let name = String::from_utf8(entry.name).unwrap();
        (format!("{name}{kind}"), entry.cursor)
    };
    entries.map(name).collect()
}

#[test]
fn a_listing_of_copies_resumes_after_every_entry() {
    let entries = ["g", "g/a", "g/a-b", "g/a.b", "g/h/i", "g0"];
    let entries = entries.map(|path| format!("\"{path}/.zarray\": {ARRAY}"));
    let text = zmetadata(&format!(
        r#"{}, ".zattrs": {{}}, "g/.zattrs": {{}}, "g/.zgroup": {GROUP}"#,
        entries.get(1..).unwrap().join(", ")
    ));
    let far = far(&[(".zgroup", GROUP), (".zmetadata", &text)], &[], 1 << 20);
    assert_eq!(far.at(""), "V2 group");
    far.asked();
    let store = far.hierarchy.store();
    for (path, expected) in [
        ("", &[".zgroup", ".zmetadata", ".zattrs", "g/", "g0/"][..]),
        ("g", &[".zattrs", ".zgroup", "a-b/", "a.b/", "a/", "h/"]),
        ("g/h", &["i/"]),
    ] {
        let all = listed(&**store, path, Cursor::START);
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected, "{path}");
        for (at, (name, cursor)) in all.iter().enumerate() {
            let rest = listed(&**store, path, cursor.clone());
            assert_eq!(rest, all[at + 1..], "{path}: after {name}");
        }
    }
    assert_eq!(far.asked(), (1, 1), "the attributes of the root");
}

#[test]
fn a_listing_of_known_names_resumes_after_every_entry() {
    let memory = MemoryStore::new();
    for name in ["zarr.json", "a/zarr.json", "b/zarr.json", "b/c/zarr.json"] {
        let key = Key::parse(name.as_bytes()).unwrap();
        memory.insert_at(key, GROUP_V3, SystemTime::now() - HOUR);
    }
    let unlisted: Arc<dyn Store> = Arc::new(Flat::unlisted(Arc::new(memory), Refusal::Unlisted));
    let budget = Budget::new(1 << 20);
    let hierarchy = Hierarchy::new(unlisted, budget, Freshness::Checked(HOUR));
    for path in ["a", "b/c", "none", "a"] {
        hierarchy
            .node(&Prefix::parse(path.as_bytes()).unwrap())
            .unwrap();
    }
    let store = hierarchy.store();
    let all = listed(&**store, "", Cursor::START);
    let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a/", "b/", "zarr.json"]);
    for (at, (name, cursor)) in all.iter().enumerate() {
        let rest = listed(&**store, "", cursor.clone());
        assert_eq!(rest, all[at + 1..], "after {name}");
    }
    assert!(hierarchy.is_unlisted());
}

#[test]
fn a_walk_over_all_names_tells_which_groups_have_unknown_ones() {
    let memory = MemoryStore::new();
    memory.insert(Key::parse(b"zarr.json").unwrap(), GROUP_V3);
    let unlisted: Arc<dyn Store> = Arc::new(Flat::unlisted(Arc::new(memory), Refusal::Unlisted));
    let budget = Budget::new(1 << 20);
    let hierarchy = Hierarchy::new(unlisted, budget, Freshness::Checked(HOUR));
    let root = Prefix::root();
    let outcomes = |walk: Walk<'_>| -> Vec<bool> { walk.map(|(_, found)| found.is_ok()).collect() };
    assert_eq!(outcomes(Walk::new(&hierarchy, &root)), [true]);
    assert_eq!(
        outcomes(Walk::of_all_names(&hierarchy, &root)),
        [true, false]
    );
}
