//! Views of stores, case by case, without a mount.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

mod again;
mod arrays;
mod copies;
mod damaged;
mod description;
mod exchanged;
mod gone;
mod group_sidecars;
mod groups;
mod listed_chunks;
mod meaning;
mod refused;
mod sidecars;
mod versions;

use super::*;
use crate::error::ErrorKind;
use crate::fresh::Freshness;
use crate::load::Patience;
use crate::store::{Key, MemoryStore};

fn array(shape: &[u64], chunks: &[u64], codecs: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 7, "codecs": codecs,
    })
}

fn plain() -> Value {
    json!([{"name": "bytes"}])
}

fn crc32c() -> Value {
    json!([{"name": "bytes"}, {"name": "crc32c"}])
}

fn sharded() -> Value {
    json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2], "codecs": [{"name": "bytes"}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }}])
}

/// A shard of two chunks of two bytes each; `second` is the index entry of the second chunk.
fn shard(second: (u64, u64)) -> Vec<u8> {
    let mut bytes = b"abcd".to_vec();
    for number in [0, 2, second.0, second.1] {
        bytes.extend(u64::to_le_bytes(number));
    }
    bytes
}

const EMPTY: (u64, u64) = (u64::MAX, u64::MAX);

struct Fixture {
    store: Arc<MemoryStore>,
    view: Arc<View>,
}

/// Reads the bytes of a file. Reads at even offsets may wait for the store on this thread, but reads at odd offsets may
/// not.
fn read_at(file: &Arc<OpenFile>, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
    let (send, receive) = mpsc::channel();
    let patience = if offset.is_multiple_of(2) {
        Patience::Waits
    } else {
        Patience::Never
    };
    file.read(offset, len, patience, None, move |bytes| {
        send.send(bytes.map(|bytes| bytes.to_vec())).unwrap();
    });
    receive.recv().unwrap()
}

impl Fixture {
    fn new(options: ViewOptions, objects: &[(&str, &[u8])]) -> Fixture {
        Fixture::layered(options, objects, |store| store)
    }

    /// A view that sees its store through a layer.
    fn layered(
        options: ViewOptions,
        objects: &[(&str, &[u8])],
        layer: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Fixture {
        let options = ViewOptions {
            // Documents are checked at each use, so that the tests need not wait.
            freshness: Freshness::Checked(std::time::Duration::ZERO),
            ..options
        };
        Fixture::trusting(options, objects, layer)
    }

    /// Like [`Fixture::layered`], where documents are trusted as `options` say.
    fn trusting(
        options: ViewOptions,
        objects: &[(&str, &[u8])],
        layer: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Fixture {
        let store = Arc::new(MemoryStore::new());
        for (key, bytes) in objects {
            store.insert(Key::parse(key.as_bytes()).unwrap(), bytes.to_vec());
        }
        let shown = layer(Arc::clone(&store) as Arc<dyn Store>);
        let view = Arc::new(View::new(shown, options).unwrap());
        Fixture { store, view }
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        self.store
            .insert(Key::parse(key.as_bytes()).unwrap(), bytes.to_vec());
    }

    /// Like [`Fixture::put`], of an object that is old enough to be trusted: an object that was written just now could
    /// change within the grain of the clock.
    fn put_old(&self, key: &str, bytes: &[u8]) {
        let key = Key::parse(key.as_bytes()).unwrap();
        let written = SystemTime::now() - Duration::from_secs(3600);
        self.store.insert_at(key, bytes.to_vec(), written);
    }

    fn find(&self, path: &str) -> Result<Option<LookupResult>, Error> {
        let attributes = self.view.attributes(VnodeId::ROOT)?.unwrap();
        let id = VnodeId::ROOT;
        let mut found = LookupResult { id, attributes };
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match self.view.lookup(found.id, name.as_bytes())? {
                Some(next) => found = next,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let found = self.find(path)?.unwrap_or_else(|| panic!("no {path}"));
        let file = self.view.open(found.id)?.unwrap().file;
        let len = usize::try_from(file.len()).unwrap();
        read_at(&file, 0, len)
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.read(path).unwrap()).unwrap()
    }

    fn list(&self, path: &str) -> Vec<String> {
        let mut names: Vec<_> = self
            .entries(path)
            .into_iter()
            .map(|entry| entry.0)
            .collect();
        names.sort_unstable();
        names
    }

    /// Names of the entries, and whether each has attributes.
    fn entries(&self, path: &str) -> Vec<(String, bool)> {
        let found = self.find(path).unwrap().unwrap();
        let mut directory = self.view.open_directory(found.id).unwrap().unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = directory.next_entry(Detail::Attributes).unwrap() {
            let name = String::from_utf8(entry.name).unwrap();
            entries.push((name, entry.attributes.is_some()));
        }
        entries
    }
}

/// The kind of the error for a name that is neither found nor absent.
fn refusal(fixture: &Fixture, path: &str) -> ErrorKind {
    fixture.find(path).unwrap_err().kind()
}

fn chunks() -> ViewOptions {
    ViewOptions {
        views: vec![ViewKind::Chunks],
        ..ViewOptions::default()
    }
}

fn text(document: &Value) -> Vec<u8> {
    document.to_string().into_bytes()
}

#[test]
fn several_views_are_directories_and_the_control_directory_is_hidden() {
    let options = ViewOptions {
        views: vec![ViewKind::Keys, ViewKind::Chunks],
        ..ViewOptions::default()
    };
    let document = text(&array(&[2], &[2], &crc32c()));
    let fixture = Fixture::new(options, &[("zarr.json", &document)]);
    assert_eq!(fixture.list(""), ["chunks", "keys"]);
    assert_eq!(fixture.read("keys/zarr.json").unwrap(), document);
    assert_eq!(fixture.json("chunks/zarr.json")["codecs"], plain());
    let statistics = fixture.json(".zarr-mount/stats.json");
    assert_eq!(statistics["cache"]["budget_bytes"], 256 << 20);
    assert!(fixture.find("keys/.zarr-mount").unwrap().is_none());
}

#[test]
fn an_array_that_cannot_be_decoded_is_not_an_array_in_the_chunks_view() {
    let document = text(&array(
        &[4],
        &[2],
        &json!([{"name": "bytes"}, {"name": "pcodec"}]),
    ));
    let objects: [(&str, &[u8]); 4] = [
        ("a/zarr.json", &document),
        ("a/ERROR.txt", b"the store's own"),
        ("a/c/0", b"xx"),
        ("a/.zarray", b"{}"),
    ];
    let fixture = Fixture::new(chunks(), &objects);
    let shown = ["ERROR.txt", "ERROR.txt~", "zarr.json.unsupported"];
    assert_eq!(fixture.list("a"), shown);
    assert_eq!(fixture.read("a/ERROR.txt").unwrap(), b"the store's own");
    let note = String::from_utf8(fixture.read("a/ERROR.txt~").unwrap()).unwrap();
    assert!(note.contains("`pcodec`"), "{note}");
    assert_eq!(fixture.read("a/zarr.json.unsupported").unwrap(), document);
    for hidden in ["a/zarr.json", "a/.zarray", "a/notes.txt"] {
        assert!(fixture.find(hidden).unwrap().is_none(), "{hidden}");
    }
    assert_eq!(refusal(&fixture, "a/c"), ErrorKind::Unsupported);
    let keys = Fixture::new(ViewOptions::default(), &objects);
    assert_eq!(keys.list("a"), [".zarray", "ERROR.txt", "c", "zarr.json"]);
    assert_eq!(keys.read("a/c/0").unwrap(), b"xx");
    assert_eq!(refusal(&keys, "a/c/1"), ErrorKind::Unsupported);
    let kept = ViewOptions {
        shards: Shards::Keep,
        ..ViewOptions::default()
    };
    let kept = Fixture::new(kept, &objects);
    assert!(kept.find("a/c/1").unwrap().is_none(), "as in the store");
}

#[test]
fn no_encoded_chunk_passes_for_decoded_beside_a_broken_document() {
    let array = text(&array(&[2], &[2], &plain()));
    let objects: [(&str, &[u8]); 6] = [
        ("g/zarr.json", b"{"),
        ("g/c/0", b"encoded"),
        ("g/0.1", b"encoded"),
        ("g/1/zarr.json", &array),
        ("g/1/c/0", b"xy"),
        ("g/notes.txt", b"kept"),
    ];
    let fixture = Fixture::new(chunks(), &objects);
    let shown = ["1", "ERROR.txt", "notes.txt", "zarr.json.unsupported"];
    assert_eq!(fixture.list("g"), shown);
    for damaged in ["g/c", "g/0.1", "g/0", "g/c.7"] {
        assert_eq!(refusal(&fixture, damaged), ErrorKind::Io, "{damaged}");
    }
    assert!(fixture.find("g/other.txt").unwrap().is_none());
    assert_eq!(fixture.read("g/1/c/0").unwrap(), b"xy");
    let keys = Fixture::new(ViewOptions::default(), &objects);
    assert_eq!(keys.list("g"), ["0.1", "1", "c", "notes.txt", "zarr.json"]);
    assert_eq!(keys.read("g/c/0").unwrap(), b"encoded");
    for absent in ["g/0.2", "g/c/1"] {
        assert_eq!(refusal(&keys, absent), ErrorKind::Io, "{absent}");
    }
}

#[test]
fn keys_of_a_store_with_the_name_of_the_daemons_directory_are_hidden() {
    let objects: [(&str, &[u8]); 3] = [
        (".zarr-mount/own", b"x"),
        ("g/.zarr-mount/own", b"x"),
        (
            "g/.zarr-mount/zarr.json",
            br#"{"zarr_format": 3, "node_type": "group"}"#,
        ),
    ];
    let fixture = Fixture::new(ViewOptions::default(), &objects);
    assert_eq!(fixture.list(""), ["g"]);
    assert!(fixture.list("g").is_empty());
    assert!(fixture.find(".zarr-mount/own").unwrap().is_none());
    let options = ViewOptions {
        views: vec![ViewKind::Keys, ViewKind::Chunks, ViewKind::Arrays],
        ..ViewOptions::default()
    };
    let all = Fixture::new(options, &objects);
    for view in ["keys", "chunks", "arrays"] {
        assert_eq!(all.list(view), ["g"]);
        assert!(all.list(&format!("{view}/g")).is_empty());
        for place in ["", "/g"] {
            assert!(
                all.find(&format!("{view}{place}/.zarr-mount"))
                    .unwrap()
                    .is_none()
            );
        }
    }
}

#[test]
fn a_document_of_another_version_beside_a_translated_array_is_hidden() {
    let document = text(&array(&[2], &[2], &crc32c()));
    let objects: [(&str, &[u8]); 2] = [("zarr.json", &document), (".zarray", b"{}")];
    assert_eq!(
        Fixture::new(chunks(), &objects).list(""),
        ["c", "zarr.json"]
    );
    let keys = Fixture::new(ViewOptions::default(), &objects);
    assert_eq!(keys.list(""), [".zarray", "zarr.json"]);
}

#[test]
fn consolidated_copies_describe_the_files() {
    let good = array(&[2], &[2], &crc32c());
    let bad = array(&[2], &[2], &json!([{"name": "bytes"}, {"name": "pcodec"}]));
    let root = json!({
        "zarr_format": 3, "node_type": "group", "attributes": {"n": 1},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {
            "good": good,
            // The copy of the document from before the array was rewritten with other chunks.
            "stale": array(&[8], &[8], &crc32c()),
            "bad": bad,
            // The copy is valid, but the array's own document is not.
            "broken": good,
            "gone": good,
            "sub": {"zarr_format": 3, "node_type": "group"},
        }},
    });
    let fixture = Fixture::new(
        chunks(),
        &[
            ("zarr.json", &text(&root)),
            ("good/zarr.json", &text(&good)),
            ("stale/zarr.json", &text(&array(&[8], &[2], &plain()))),
            ("bad/zarr.json", &text(&bad)),
            ("broken/zarr.json", b"{"),
            (
                "sub/zarr.json",
                br#"{"zarr_format": 3, "node_type": "group"}"#,
            ),
        ],
    );
    let shown = fixture.json("zarr.json");
    let copies = shown["consolidated_metadata"]["metadata"]
        .as_object()
        .unwrap();
    assert_eq!(copies.keys().collect::<Vec<_>>(), ["good", "stale", "sub"]);
    assert_eq!(copies["good"], fixture.json("good/zarr.json"));
    assert_eq!(copies["stale"], fixture.json("stale/zarr.json"));
    assert_eq!(shown["attributes"], json!({"n": 1}));
}

#[test]
fn an_array_that_grows_keeps_its_chunks_and_another_layout_does_not() {
    let fixture = Fixture::new(
        chunks(),
        &[
            ("a/zarr.json", &text(&array(&[4], &[2], &plain()))),
            ("a/c/0", b"xy"),
        ],
    );
    let before = fixture.find("a/c/0").unwrap().unwrap();
    assert!(fixture.find("a/c/2").unwrap().is_none());
    fixture.put("a/zarr.json", &text(&array(&[6], &[2], &plain())));
    assert_eq!(fixture.find("a/c/0").unwrap().unwrap().id, before.id);
    assert_eq!(fixture.read("a/c/2").unwrap(), [7, 7]);
    fixture.put("a/zarr.json", &text(&array(&[6], &[3], &plain())));
    assert!(matches!(
        fixture.view.attributes(before.id),
        Err(Error::Stale)
    ));
    assert_ne!(fixture.find("a/c/0").unwrap().unwrap().id, before.id);
}

#[test]
fn each_slot_of_an_invalid_shard_index_is_listed_and_gives_an_error() {
    let fixture = Fixture::new(
        ViewOptions::default(),
        &[
            ("zarr.json", &text(&array(&[8], &[4], &sharded()))),
            ("c/0", &shard((2, 9999))),
            ("c/1", &shard(EMPTY)),
        ],
    );
    for slot in ["c/0", "c/1"] {
        let error = fixture.find(slot).unwrap_err();
        assert!(matches!(error, Error::Chunk { .. }), "{error}");
    }
    assert_eq!(fixture.read("c/2").unwrap(), b"ab");
    assert!(fixture.find("c/3").unwrap().is_none(), "an empty slot");
    let mut entries = fixture.entries("c");
    entries.sort_unstable();
    let named = [("0", false), ("1", false), ("2", true)];
    assert_eq!(entries, named.map(|(name, known)| (name.to_owned(), known)));
}

#[test]
fn a_chunk_is_decoded_once_per_version_and_failures_are_not_cached() {
    let fixture = Fixture::new(
        chunks(),
        &[
            ("zarr.json", &text(&array(&[2], &[2], &crc32c()))),
            ("c/0", b"xyzzy!"),
        ],
    );
    let decodes = || {
        let statistics = fixture.json(".zarr-mount/stats.json");
        statistics["chunks"]["decodes"].as_u64().unwrap()
    };
    assert!(fixture.read("c/0").is_err() && fixture.read("c/0").is_err());
    assert_eq!(decodes(), 2);
    let mut sound = b"xy".to_vec();
    sound.extend(::crc32c::crc32c(b"xy").to_le_bytes());
    fixture.put("c/0", &sound);
    for _ in 0..5 {
        assert_eq!(fixture.read("c/0").unwrap(), b"xy");
    }
    assert_eq!(decodes(), 3);
}

#[test]
fn absent_chunks_are_files_of_fill_values_or_hidden() {
    let document = text(&array(&[5], &[2], &plain()));
    let objects: [(&str, &[u8]); 2] = [("zarr.json", &document), ("c/1", b"xy")];
    let fixture = Fixture::new(chunks(), &objects);
    assert_eq!(fixture.list("c"), ["0", "1", "2"]);
    assert_eq!(fixture.read("c/0").unwrap(), [7, 7]);
    let options = ViewOptions {
        missing: AbsentChunks::Hide,
        ..chunks()
    };
    assert_eq!(Fixture::new(options, &objects).list("c"), ["1"]);
}

#[test]
fn a_huge_grid_lists_stored_chunks_and_opens_the_others_by_name() {
    let document = text(&array(&[1 << 50], &[1], &plain()));
    let fixture = Fixture::new(
        chunks(),
        &[("zarr.json", &document), ("c/12345678901", b"x")],
    );
    assert_eq!(fixture.list("c"), ["12345678901"]);
    assert_eq!(fixture.read("c/999999999999").unwrap(), [7]);
}

#[test]
fn a_mode_grants_no_more_than_that_of_the_backing_object() {
    let options = ViewOptions {
        uid: Some(12),
        gid: Some(34),
        umask: Some(0o027),
        ..ViewOptions::default()
    };
    let fixture = Fixture::new(options, &[("file", b"x")]);
    let file = fixture.find("file").unwrap().unwrap().attributes;
    assert_eq!((file.mode, file.uid, file.gid), (0o440, 12, 34));
    let root = fixture.find("").unwrap().unwrap().attributes;
    assert_eq!(root.mode, 0o550);
}

#[test]
fn references_to_plain_keys_are_released() {
    let fixture = Fixture::new(ViewOptions::default(), &[("file", b"x")]);
    let first = fixture.find("file").unwrap().unwrap();
    fixture.find("file").unwrap();
    fixture.view.forget(first.id, 1);
    assert!(fixture.view.attributes(first.id).is_ok());
    fixture.view.forget(first.id, 1);
    assert!(matches!(
        fixture.view.attributes(first.id),
        Err(Error::Stale)
    ));
}
