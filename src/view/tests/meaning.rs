//! Keys that become parts of arrays while the remembered nodes above them are still trusted.

use std::time::Duration;

use super::*;
use crate::store::testing::{Flat, Recording, wrap};

/// Remembered nodes are trusted for longer than a test takes.
const TRUSTING: Freshness = Freshness::Checked(Duration::from_secs(3600));

/// Two views, one of which has looked `t` up before it was an array.
fn asked_too_early(options: ViewOptions) -> Fixture {
    let store = Arc::new(MemoryStore::new());
    store.insert(Key::parse(b"zarr.json").unwrap(), GROUP.to_vec());
    let options = ViewOptions {
        freshness: TRUSTING,
        ..options
    };
    let view = Arc::new(View::new(Arc::clone(&store) as Arc<dyn Store>, options).unwrap());
    let fixture = Fixture { store, view };
    assert!(fixture.find("arrays/t.npy").unwrap().is_none());
    fixture
}

const GROUP: &[u8] = br#"{"zarr_format": 3, "node_type": "group"}"#;

fn beside_arrays(view: ViewKind) -> ViewOptions {
    ViewOptions {
        views: vec![ViewKind::Arrays, view],
        ..ViewOptions::default()
    }
}

/// The result that a program gets, because the kernel looks a stale name up again.
fn again<T>(look: impl Fn() -> Result<T, Error>) -> T {
    match look() {
        Err(Error::Stale) => look(),
        found => found,
    }
    .unwrap()
}

#[test]
fn a_chunk_is_decoded_although_its_array_was_asked_for_too_early() {
    let fixture = asked_too_early(beside_arrays(ViewKind::Chunks));
    fixture.put("t/c/0", b"ab____");
    assert_eq!(
        fixture.read("chunks/t/c/0").unwrap(),
        b"ab____",
        "of no array"
    );
    fixture.put("t/zarr.json", &text(&array(&[2], &[2], &crc32c())));
    let mut encoded = b"ab".to_vec();
    encoded.extend(crc32c::crc32c(b"ab").to_le_bytes());
    fixture.put("t/c/0", &encoded);
    // The directory `c`, which was looked up before, is a directory of chunks now.
    assert_eq!(fixture.read("chunks/t/c/0").unwrap(), b"ab");
    assert_eq!(fixture.json("chunks/t/zarr.json")["codecs"], plain());
}

#[test]
fn a_document_is_edited_although_its_array_was_asked_for_too_early() {
    for view in [ViewKind::Chunks, ViewKind::Keys] {
        let fixture = asked_too_early(beside_arrays(view));
        fixture.put("t/zarr.json", &text(&array(&[4], &[4], &sharded())));
        let name = format!("{}/t/zarr.json", view.name());
        let shown = again(|| fixture.read(&name));
        let shown: Value = serde_json::from_slice(&shown).unwrap();
        assert_eq!(shown["codecs"], plain(), "{name}");
    }
}

#[test]
fn an_inner_chunk_is_not_absent_because_its_array_was_asked_for_too_early() {
    let fixture = asked_too_early(beside_arrays(ViewKind::Keys));
    fixture.put("t/c/0", &shard((2, 2)));
    let directory = fixture.find("keys/t/c").unwrap().unwrap().id;
    fixture.put("t/zarr.json", &text(&array(&[4], &[4], &sharded())));
    // A program that holds the directory open finds inner chunks in it, and not the shard.
    for name in [b"0", b"1"] {
        let found = fixture.view.lookup(directory, name).unwrap().unwrap();
        assert_eq!(found.attributes.size, 2, "{name:?}");
    }
    for (name, bytes) in [("0", b"ab"), ("1", b"cd")] {
        let name = format!("keys/t/c/{name}");
        assert_eq!(again(|| fixture.read(&name)), bytes);
    }
}

/// Files that are not in an array, in a view of decoded chunks whose calls of the store are
/// recorded.
fn recorded(layer: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>) -> (Fixture, Arc<Recording>) {
    let store = Arc::new(MemoryStore::new());
    for key in ["t/notes.txt", "t/c/1/a.tif", "t/c/1/0"] {
        let key = Key::parse(key.as_bytes()).unwrap();
        store.insert(key, b"of no array".to_vec());
    }
    let recording = Arc::new(Recording::default());
    let shown = wrap(layer(Arc::clone(&store) as Arc<dyn Store>), &recording);
    let options = ViewOptions {
        freshness: TRUSTING,
        ..chunks()
    };
    let view = Arc::new(View::new(shown, options).unwrap());
    (Fixture { store, view }, recording)
}

/// The number of documents that the store is asked for when `path` is opened once more.
fn documents_asked_for(fixture: &Fixture, recording: &Recording, path: &str) -> usize {
    let found = fixture.find(path).unwrap().unwrap();
    let open = || fixture.view.open(found.id).unwrap().unwrap();
    open();
    recording.clear();
    open();
    let calls = recording.calls().into_iter();
    calls
        .filter(|call| call.path.to_text().ends_with("zarr.json"))
        .count()
}

#[test]
fn documents_are_checked_for_names_that_could_be_parts_of_chunk_keys() {
    let (fixture, recording) = recorded(|store| store);
    for (path, expected) in [("t/notes.txt", 0), ("t/c/1/a.tif", 0), ("t/c/1/0", 3)] {
        let asked = documents_asked_for(&fixture, &recording, path);
        assert_eq!(asked, expected, "{path}");
    }
}

#[test]
fn a_store_that_is_not_local_is_asked_once_for_the_documents_above_a_file() {
    let (fixture, recording) = recorded(|store| Arc::new(Flat::new(store)));
    assert_eq!(documents_asked_for(&fixture, &recording, "t/c/1/0"), 0);
}

#[test]
fn a_chunk_of_an_array_that_took_the_place_of_another_one_is_decoded() {
    let store = Arc::new(MemoryStore::new());
    let options = ViewOptions {
        freshness: TRUSTING,
        ..chunks()
    };
    let far = Arc::new(Flat::new(Arc::clone(&store) as Arc<dyn Store>));
    let view = Arc::new(View::new(far, options).unwrap());
    let fixture = Fixture { store, view };
    fixture.put("t/zarr.json", &text(&array(&[2], &[2], &plain())));
    fixture.put("t/c/0", b"ab");
    assert_eq!(fixture.read("t/c/0").unwrap(), b"ab");
    fixture.store.remove(&Key::parse(b"t/zarr.json").unwrap());
    fixture.put(
        "t/.zarray",
        br#"{"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": ">u2",
        "compressor": null, "filters": null, "fill_value": 0, "order": "C"}"#,
    );
    // The remembered array has no chunk with this name.
    fixture.put("t/0", &[0, 1]);
    assert_eq!(again(|| fixture.read("t/0")), [1, 0]);
}
