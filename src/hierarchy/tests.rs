//! Stores of every version, in memory.

use std::time::Duration;

use super::*;
use crate::store::{Cursor, Detail, EntryKind, MemoryStore};

const V1: &str = r#"{"zarr_format": 1, "shape": [4], "chunks": [2], "dtype": "<i4",
    "compression": null, "compression_opts": null, "fill_value": 0, "order": "C"}"#;
const V2: &str = r#"{"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<i4"}"#;
const V3: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": "default", "fill_value": 0, "codecs": ["bytes"]}"#;
const V3_GROUP: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;
const PRE_V1: &str = r#"{"shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": 0,
    "cname": "lz4", "clevel": 5, "shuffle": 1}"#;
const N5: &str = r#"{"dimensions": [4], "blockSize": [2], "dataType": "int32",
    "compression": {"type": "raw"}}"#;
const PROTOCOL: &str = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0",
    "metadata_key_suffix": ".json", "extensions": []}"#;
const CORE: &str = r#"{"zarr_format": "https://purl.org/zarr/spec/core/3.0", "extensions": [],
    "metadata_encoding": {"type": "json", "metadata_key_suffix": ".json"}}"#;
const DRAFT_ARRAY: &str = r#"{"shape": [4], "data_type": "<i4", "fill_value": 0,
    "chunk_grid": {"type": "regular", "chunk_shape": [2], "separator": "/"},
    "chunk_memory_layout": "C", "extensions": [], "attributes": {}}"#;
const DRAFT_GROUP: &str = r#"{"attributes": {}}"#;

struct Tree {
    store: Arc<MemoryStore>,
    hierarchy: Hierarchy,
}

/// A store with an object for each key, and a hierarchy that checks it at every look-up.
fn tree(objects: &[(&str, &str)]) -> Tree {
    let store = Arc::new(MemoryStore::new());
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let freshness = Freshness::Checked(Duration::ZERO);
    let hierarchy = Hierarchy::new(shared, Budget::new(1 << 30), freshness);
    let tree = Tree { store, hierarchy };
    for (key, text) in objects {
        tree.put(key, text);
    }
    tree
}

fn prefix(path: &str) -> Prefix {
    Prefix::parse(path.as_bytes()).unwrap()
}

fn key(path: &str) -> Key {
    Key::parse(path.as_bytes()).unwrap()
}

impl Tree {
    fn put(&self, path: &str, text: &str) {
        self.store.insert(key(path), text.to_owned());
    }

    fn at(&self, path: &str) -> String {
        describe(&self.hierarchy.node(&prefix(path)).unwrap())
    }

    fn in_tree(&self, path: &str) -> (String, TreePlace) {
        let found = self.hierarchy.tree_node(&prefix(path)).unwrap();
        (describe(&found.node), found.place)
    }

    fn described_by(&self, path: &str) -> Option<String> {
        let prefix = self.hierarchy.described_by(&key(path)).unwrap()?;
        Some(String::from_utf8(prefix.as_bytes().to_vec()).unwrap())
    }
}

/// A description of a node in one line.
fn describe(node: &Node) -> String {
    match node {
        Node::Array(array) => {
            let attributes = array.attributes.as_ref();
            let attributes = attributes.map_or(String::new(), |key| format!(", {key}"));
            let format = array.metadata.zarr_format;
            format!("{format:?} array of {}{attributes}", array.document.key)
        }
        Node::Group(group) => match &group.document {
            Some(document) => format!("{:?} group of {}", group.format, document.key),
            None => format!("{:?} group", group.format),
        },
        Node::Implicit => "implicit".to_owned(),
        Node::Broken(broken) => format!("broken {}: {}", broken.document.key, broken.error),
    }
}

#[test]
fn documents_of_other_formats_are_absent_where_the_format_is_said() {
    let Tree { store, .. } = &tree(&[
        ("a/zarr.json", V3),
        ("a/.zarray", V2),
        ("a/.zattrs", "{}"),
        ("a/meta", V1),
        ("a/attributes.json", N5),
        ("a/0/0", ""),
        ("g/attributes.json", "{}"),
        ("g/zarr.json/0", ""),
        ("d/zarr.json", PROTOCOL),
    ]);
    for (format, [a, g, h, d], names) in [
        (
            ZarrFormat::V3,
            [
                "V3 array of a/zarr.json",
                "implicit",
                "implicit",
                "broken d/zarr.json: zarr_format",
            ],
            &["0", "zarr.json"][..],
        ),
        (
            ZarrFormat::V2,
            [
                "V2 array of a/.zarray, a/.zattrs",
                "implicit",
                "implicit",
                "implicit",
            ],
            &[".zarray", ".zattrs", "0"],
        ),
        (
            ZarrFormat::N5,
            [
                "N5 array of a/attributes.json",
                "N5 group of g/attributes.json",
                "implicit",
                "implicit",
            ],
            &["0", "attributes.json"],
        ),
    ] {
        let store: Arc<dyn Store> = Arc::clone(store) as _;
        let budget = Budget::new(1 << 30);
        let hierarchy = Hierarchy::of_format(store, budget, Freshness::Immutable, Some(format));
        for (path, expected) in [("a", a), ("g", g), ("h", h), ("d", d)] {
            let found = describe(&hierarchy.node(&prefix(path)).unwrap());
            assert!(found.starts_with(expected), "{format:?} {path}: {found}");
        }
        // Directories without a document are groups in N5.
        let is_container = format == ZarrFormat::N5;
        for path in ["", "h", "a/0"] {
            let is_group = hierarchy.is_group_of_n5(&prefix(path)).unwrap();
            assert_eq!(is_group, is_container && path != "a/0", "{format:?} {path}");
        }
        let store = hierarchy.store();
        let listing = store.list(&prefix("a"), Cursor::START, Detail::Names);
        let mut listing = listing.unwrap().unwrap();
        let mut found = Vec::new();
        while let Some(entry) = listing.next_entry().unwrap() {
            found.push(String::from_utf8(entry.name).unwrap());
        }
        found.sort();
        assert_eq!(found, names);
        let (other, prefix) = (key("a/__zmeta__"), key("g/zarr.json"));
        let stats = store.stat_many(&[other.clone(), prefix.clone(), key("a/zarr.json")]);
        let stats: Vec<bool> = stats
            .iter()
            .map(|stat| stat.as_ref().unwrap().is_some())
            .collect();
        assert_eq!(stats, [false, true, format == ZarrFormat::V3]);
        assert!(store.open(&other).unwrap().is_none());
    }
}

#[test]
fn the_first_document_decides() {
    for (objects, expected) in [
        (
            &[("a/zarr.json", V3), ("a/.zarray", V2)][..],
            "V3 array of a/zarr.json",
        ),
        (&[("a/zarr.json", V3_GROUP)], "V3 group of a/zarr.json"),
        (
            &[("a/.zarray", V2), ("a/.zgroup", "{\"zarr_format\": 2}")],
            "V2 array of a/.zarray, a/.zattrs",
        ),
        (
            &[("a/.zgroup", "{\"zarr_format\": 2}")],
            "V2 group of a/.zgroup",
        ),
        (
            &[(
                "a/.zmetadata",
                r#"{"zarr_consolidated_format": 1, "metadata": {}}"#,
            )],
            "V2 group",
        ),
        (
            &[("a/.zmetadata", r#"{"zarr_consolidated_format": 2}"#)],
            "implicit",
        ),
        (&[("a/meta", V1)], "V1 array of a/meta, a/attrs"),
        (
            &[("a/__zmeta__", PRE_V1)],
            "PreV1 array of a/__zmeta__, a/__zattr__",
        ),
        (
            &[("a/__zmeta__", "(dp0")],
            "broken a/__zmeta__: the document: unsupported document `pickle of zarr-python 0.3",
        ),
        (
            &[("a/attributes.json", r#"{"n5": "2.0.0"}"#)],
            "N5 group of a/attributes.json",
        ),
        (
            &[("a/attributes.json", r#"{"n5": "5.0.0"}"#)],
            "broken a/attributes.json: n5: unsupported version of N5 `5.0.0`",
        ),
        (&[("a/attributes.json", "{}")], "implicit"),
        (
            &[
                ("attributes.json", r#"{"n5": "2.0.0"}"#),
                ("a/attributes.json", "{}"),
            ],
            "N5 group of a/attributes.json",
        ),
        (
            &[("a/attributes.json", N5)],
            "N5 array of a/attributes.json",
        ),
        (
            &[
                ("a/attributes.json", N5),
                ("a/.zgroup", r#"{"zarr_format": 2}"#),
            ],
            "V2 group of a/.zgroup",
        ),
        (&[("a/zarr.json", PROTOCOL)], "Draft group of a/zarr.json"),
        (
            &[("a/zarr.json", r#"{"zarr_format": "x/protocol/core/4.0"}"#)],
            "broken a/zarr.json: zarr_format: found \"x/protocol/core/4.0\"",
        ),
        (
            &[("a/zarr.json", r#"{"zarr_format": 4}"#)],
            "broken a/zarr.json: zarr_format: found 4",
        ),
        (&[("a/zarr.json", "nonsense")], "broken a/zarr.json: line 1"),
    ] {
        let found = tree(objects).at("a");
        assert!(found.starts_with(expected), "{objects:?}: {found}");
    }
}

#[test]
fn files_of_common_names_need_not_be_documents() {
    for (name, text) in [
        ("meta", "anything"),
        ("meta", r#"{"zarr_format": 2}"#),
        ("meta", "[1]"),
        ("attributes.json", r#"{"colour": "red"}"#),
        ("attributes.json", ""),
        ("meta/zarr.json/x", ""),
        ("zarr.json/x", ""),
    ] {
        let tree = tree(&[(&format!("a/{name}"), text)]);
        assert_eq!(tree.at("a"), "implicit", "{name} {text}");
    }
}

#[test]
fn changed_documents_are_seen() {
    let tree = tree(&[]);
    assert_eq!(tree.at("a"), "implicit");
    tree.put("a/meta", "a note");
    assert_eq!(tree.at("a"), "implicit");
    tree.put("a/meta", V1);
    assert_eq!(tree.at("a"), "V1 array of a/meta, a/attrs");
    tree.put("a/.zgroup", "{\"zarr_format\": 2}");
    assert_eq!(tree.at("a"), "V2 group of a/.zgroup");
    tree.store.remove(&key("a/.zgroup"));
    tree.store.remove(&key("a/meta"));
    assert_eq!(tree.at("a"), "implicit");
    tree.put("zarr.json", PROTOCOL);
    tree.put("meta/root/a.array.json", DRAFT_ARRAY);
    assert_eq!(
        tree.at("data/root/a"),
        "Draft array of meta/root/a.array.json"
    );
    tree.store.remove(&key("meta/root/a.array.json"));
    assert_eq!(tree.at("data/root/a"), "implicit");
    tree.put("zarr.json", V3_GROUP);
    tree.put("data/root/a/.zarray", V2);
    assert!(tree.at("data/root/a").starts_with("V2 array"));
}

#[test]
fn a_separator_that_no_document_has_is_the_stored_one() {
    let nested = V2.replace("\"<i4\"", "\"<i4\", \"dimension_separator\": \".\"");
    let vector = V2.replace("[4, 4]", "[4]").replace("[2, 2]", "[2]");
    for (document, chunk, separator) in [
        (V2, None, b'.'),
        (V2, Some("0.0"), b'.'),
        (V2, Some("0/0"), b'/'),
        (V2, Some("1.1"), b'.'),
        (V2, Some("1/1"), b'/'),
        (V2, Some("x/1"), b'.'),
        (nested.as_str(), Some("0/0"), b'.'),
        (vector.as_str(), Some("0/0"), b'.'),
    ] {
        let tree = tree(&[("a/.zarray", document)]);
        // The array is looked up before it has a chunk, so it must be looked up again.
        tree.at("a");
        if let Some(chunk) = chunk {
            tree.put(&format!("a/{chunk}"), "bytes");
        }
        let Node::Array(array) = tree.hierarchy.node(&prefix("a")).unwrap() else {
            panic!("no array");
        };
        assert_eq!(
            array.metadata.chunk_keys.separator, separator,
            "{document} {chunk:?}"
        );
    }
}

#[test]
fn arrays_of_a_draft_live_where_their_chunks_do() {
    for (entry, documents, data) in [
        (PROTOCOL, "h/meta/root/", "h/data/root/"),
        (CORE, "h/meta/", "h/data/"),
    ] {
        let document = format!("{documents}g/a.array.json");
        let group = format!("{documents}g.group.json");
        let tree = tree(&[
            ("h/zarr.json", entry),
            (&document, DRAFT_ARRAY),
            (&group, DRAFT_GROUP),
            (&format!("{data}g/a/c0"), "bytes"),
        ]);
        let array = format!("Draft array of {document}");
        assert_eq!(tree.at(&format!("{data}g/a")), array);
        for path in ["", "g", "g/a/c0", "other"] {
            assert_eq!(tree.at(&format!("{data}{path}")), "implicit", "{path}");
        }
        for path in [
            "h/data",
            "h/meta",
            "h/meta/root",
            "h/meta/root/g",
            "h/meta/g",
        ] {
            assert_eq!(tree.at(path), "implicit", "{path}");
        }
        assert_eq!(tree.described_by(&document), Some(format!("{data}g/a")));
        assert_eq!(tree.described_by(&group), None);
        assert_eq!(
            tree.described_by(&format!("{documents}none.array.json")),
            None
        );
        assert_eq!(tree.described_by("h/zarr.json"), None);

        let (found, place) = tree.in_tree("h/g/a");
        let TreePlace::Draft(node) = place else {
            panic!("{place:?}");
        };
        assert_eq!(found, array);
        assert_eq!(node.data().unwrap(), prefix(&format!("{data}g/a")));
        assert_eq!(node.array_document().unwrap(), key(&document));
        let (found, place) = tree.in_tree("h/g");
        let TreePlace::Draft(node) = place else {
            panic!("{place:?}");
        };
        assert_eq!(found, format!("Draft group of {group}"));
        assert_eq!(node.children().unwrap(), prefix(&format!("{documents}g")));
        assert_eq!(
            node.child(b"a.array.json", EntryKind::Object),
            Some(&b"a"[..])
        );
        assert_eq!(node.child(b"b", EntryKind::Prefix), Some(&b"b"[..]));
        assert_eq!(node.child(b"b", EntryKind::Object), None);
        assert!(matches!(tree.in_tree("h/g/a/c0").1, TreePlace::BelowArray));
        let exists = |path| match tree.in_tree(path) {
            (found, TreePlace::Draft(node)) => (found, node.exists),
            (_, place) => panic!("{place:?}"),
        };
        assert_eq!(exists("h/none"), ("implicit".to_owned(), false));
        assert_eq!(exists("h"), ("implicit".to_owned(), true));
    }
}

#[test]
fn the_root_of_a_draft_may_be_an_array_and_groups_implicit() {
    for (entry, document, data) in [
        (PROTOCOL, "meta/root.array.json", "data/root"),
        (CORE, "meta/array.json", "data"),
    ] {
        let tree = tree(&[("zarr.json", entry), (document, DRAFT_ARRAY)]);
        let array = format!("Draft array of {document}");
        assert_eq!(tree.at(""), "Draft group of zarr.json");
        assert_eq!(tree.at(data), array);
        assert_eq!(tree.described_by(document).as_deref(), Some(data));
        assert_eq!(tree.in_tree("").0, array);
        assert!(matches!(tree.in_tree("c0").1, TreePlace::BelowArray));
    }
    let tree = tree(&[
        ("zarr.json", PROTOCOL),
        ("meta/root/g/h/a.array.json", DRAFT_ARRAY),
    ]);
    for path in ["g", "g/h"] {
        let (found, place) = tree.in_tree(path);
        assert_eq!(found, "implicit");
        assert!(
            matches!(place, TreePlace::Draft(node) if node.exists),
            "{path}"
        );
    }
}

#[test]
fn the_keys_decide_the_layout_before_the_version_does() {
    for (entry, document, data) in [
        (PROTOCOL, "meta/a.array.json", "data/a"),
        (CORE, "meta/root/a.array.json", "data/root/a"),
        // Where a node called `root` is beside others, the version decides.
        (CORE, "meta/root.array.json", "data/root"),
    ] {
        let tree = tree(&[("zarr.json", entry), (document, DRAFT_ARRAY)]);
        assert_eq!(tree.at(data), format!("Draft array of {document}"));
    }
    let tree = tree(&[
        ("zarr.json", CORE),
        ("meta/group.json", DRAFT_GROUP),
        ("meta/root/a.array.json", DRAFT_ARRAY),
    ]);
    assert_eq!(
        tree.at("data/root/a"),
        "Draft array of meta/root/a.array.json"
    );
    assert_eq!(
        tree.in_tree("root/a").0,
        "Draft array of meta/root/a.array.json"
    );
}

#[test]
fn a_draft_that_must_not_be_understood_is_no_hierarchy() {
    let entry = CORE.replace("[]", r#"[{"extension": "x", "must_understand": true}]"#);
    let tree = tree(&[("zarr.json", &entry), ("meta/a.array.json", DRAFT_ARRAY)]);
    assert!(
        tree.at("").starts_with("broken zarr.json: extensions[0]"),
        "{}",
        tree.at("")
    );
    for found in [tree.at("data/a"), tree.in_tree("a").0] {
        assert_eq!(found, tree.at(""), "its arrays cannot be shown either");
    }
    assert_eq!(tree.at("data/b"), "implicit");
}

#[test]
fn other_documents_describe_the_prefix_that_they_lie_at() {
    let tree = tree(&[
        ("zarr.json", V3_GROUP),
        ("a/zarr.json", V3),
        ("a/.zarray", V2),
        ("data/b/.zarray", V2),
        ("c/meta", V1),
        ("d/__zmeta__", PRE_V1),
    ]);
    for (document, path) in [
        ("zarr.json", None),
        ("a/zarr.json", Some("a")),
        ("a/.zarray", None),
        ("data/b/.zarray", Some("data/b")),
        ("data/b/.zattrs", None),
        ("c/meta", Some("c")),
        ("d/__zmeta__", Some("d")),
        ("e/.zarray", None),
    ] {
        assert_eq!(tree.described_by(document).as_deref(), path, "{document}");
    }
    assert!(matches!(tree.in_tree("a").1, TreePlace::Store));
    assert!(matches!(tree.in_tree("a/c/0").1, TreePlace::BelowArray));
    assert!(matches!(tree.in_tree("x/y").1, TreePlace::Store));
}

#[test]
fn nodes_above_a_path_are_remembered_until_they_change() {
    let store = Arc::new(MemoryStore::new());
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let freshness = Freshness::Checked(Duration::from_secs(3600));
    let hierarchy = Hierarchy::new(shared, Budget::new(1 << 30), freshness);
    let put = |path: &str, text: &str| store.insert(key(path), text.to_owned());
    for path in ["zarr.json", "a/zarr.json", "a/b/zarr.json"] {
        put(path, V3_GROUP);
    }
    put("a/b/c/zarr.json", V3);
    let is_below_array = |path: &str| {
        let found = hierarchy.tree_node(&prefix(path)).unwrap();
        matches!(found.place, TreePlace::BelowArray)
    };
    assert!(!is_below_array("a/b/c"));
    assert!(is_below_array("a/b/c/d"));
    // Another thread has found the change of `a`.
    put("a/zarr.json", V3);
    assert!(!is_below_array("a/b/c"), "it is trusted still");
    hierarchy.forget(&prefix("a"));
    assert!(is_below_array("a/b/c"));
    put("a/zarr.json", V3_GROUP);
    hierarchy.forget(&prefix("a"));
    assert!(!is_below_array("a/b/c"));
}

#[test]
fn no_path_is_trusted_for_longer_than_the_nodes_above_it() {
    let tree = tree(&[("a/zarr.json", V3_GROUP), ("a/b/c/zarr.json", V3)]);
    let is_below_array = || {
        let found = tree.hierarchy.tree_node(&prefix("a/b/c")).unwrap();
        matches!(found.place, TreePlace::BelowArray)
    };
    assert!(!is_below_array());
    tree.put("a/zarr.json", V3);
    assert!(is_below_array());
    tree.put("a/zarr.json", PROTOCOL);
    assert!(!is_below_array(), "it is a path of a draft");
    tree.put("a/zarr.json", V3_GROUP);
    assert!(!is_below_array());
}

/// The model of a long list of chunk lengths is kept while the budget has memory for it, and gives it back.
#[test]
fn a_document_that_is_too_large_is_a_broken_node_whatever_its_name() {
    let store = Arc::new(MemoryStore::new());
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let freshness = Freshness::Checked(Duration::ZERO);
    let hierarchy = Hierarchy::new(shared, Budget::new(1 << 20), freshness);
    for prefix in [&b"a"[..], b"a\\b", b"a\xff"] {
        let prefix = Prefix::parse(prefix).unwrap();
        let key = prefix.key(b".zgroup").unwrap();
        // Twice as many bytes are more than any document gets with this budget.
        store.insert(key.clone(), vec![b' '; 11 << 20]);
        match hierarchy.node(&prefix) {
            Ok(Node::Broken(broken)) => assert_eq!(broken.document.key, key),
            other => panic!("{prefix}: {other:?}"),
        }
        store.remove(&key);
    }
}

#[test]
fn large_nodes_are_cached_in_memory_of_the_budget() {
    let lengths: Vec<String> = (0..100_000).map(|i| (1 + i % 3).to_string()).collect();
    let grid = format!(
        r#"{{"name": "rectilinear", "configuration": {{"kind": "inline", "chunk_shapes": [[{}]]}}}}"#,
        lengths.join(", ")
    );
    let regular = r#"{"name": "regular", "configuration": {"chunk_shape": [2]}}"#;
    let text = V3.replace("[4]", "[199999]").replace(regular, &grid);
    let document = |tree: &Tree| match tree.hierarchy.node(&prefix("a")).unwrap() {
        Node::Array(array) => array,
        other => panic!("{other:?}"),
    };
    for (budget, is_cached) in [(64 << 20, true), (4 << 20, false)] {
        let store = Arc::new(MemoryStore::new());
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let budget = Budget::new(budget);
        let freshness = Freshness::Checked(Duration::from_secs(3600));
        let hierarchy = Hierarchy::new(shared, Arc::clone(&budget), freshness);
        let tree = Tree { store, hierarchy };
        tree.put("a/zarr.json", &text);
        tree.put("b/zarr.json", V3);
        let [small, large] = ["b", "a"].map(|path| tree.hierarchy.node(&prefix(path)).unwrap());
        assert!(matches!((small, large), (Node::Array(_), Node::Array(_))));
        let first = document(&tree);
        assert!(first.model_bytes > 1 << 20, "{}", first.model_bytes);
        assert_eq!(Arc::ptr_eq(&first, &document(&tree)), is_cached);
        let reserved = if is_cached { first.model_bytes } else { 0 };
        assert_eq!(budget.used_and_peak().0, reserved);
        for evictable in tree.hierarchy.evictable() {
            assert_eq!(evictable.upgrade().unwrap().evict_kept(), is_cached);
        }
        assert_eq!(budget.used_and_peak().0, 0);
    }
}
