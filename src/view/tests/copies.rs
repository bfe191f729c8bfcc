//! Consolidated metadata is as new as the documents that it copies.

use super::*;
use crate::metadata::Target;

const HOUR: Duration = Duration::from_secs(3600);

/// A store in which documents are trusted for an hour.
fn fixture(options: ViewOptions) -> Fixture {
    let options = ViewOptions {
        freshness: Freshness::Checked(HOUR),
        ..options
    };
    let fixture = Fixture::trusting(options, &[], |store| store);
    let group = json!({
        "zarr_format": 3, "node_type": "group", "attributes": {},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {
            "s": array(&[8], &[8], &plain()),
        }},
    });
    fixture.put_old("zarr.json", &text(&group));
    fixture.put_old("s/zarr.json", &text(&array(&[8], &[4], &sharded())));
    fixture
}

fn copy_of_s(fixture: &Fixture, path: &str) -> Value {
    let shown = fixture.json(path);
    let of_v3 = &shown["consolidated_metadata"]["metadata"]["s"];
    let of_v2 = &shown["metadata"]["s/.zarray"];
    if of_v2.is_null() { of_v3 } else { of_v2 }.clone()
}

#[test]
fn a_document_that_has_changed_is_copied_anew_at_the_next_open() {
    let as_v2 = ViewOptions {
        shown_as: Some(Target::V2),
        ..ViewOptions::default()
    };
    for (options, path, of_absent) in [
        // This view shows a copy without an original as it is stored.
        (ViewOptions::default(), "zarr.json", json!([8])),
        (chunks(), "zarr.json", Value::Null),
        (as_v2, ".zmetadata", Value::Null),
    ] {
        let fixture = fixture(options);
        assert_eq!(copy_of_s(&fixture, path)["shape"], json!([8]), "{path}");
        fixture.put_old("s/zarr.json", &text(&array(&[80], &[4], &sharded())));
        assert_eq!(copy_of_s(&fixture, path)["shape"], json!([80]), "{path}");
        fixture.store.remove(&Key::parse(b"s/zarr.json").unwrap());
        assert_eq!(copy_of_s(&fixture, path)["shape"], of_absent, "{path}");
        fixture.put_old("s/zarr.json", &text(&array(&[160], &[4], &sharded())));
        // A new node may be late where the store has no copies.
        if path == "zarr.json" {
            assert_eq!(copy_of_s(&fixture, path)["shape"], json!([160]), "{path}");
        }
    }
}

#[test]
fn the_same_documents_are_copied_once() {
    let fixture = fixture(chunks());
    let opened = || {
        let found = fixture.find("zarr.json").unwrap().unwrap();
        fixture.view.open(found.id).unwrap().unwrap().attributes
    };
    let misses = || fixture.view.loader().cache().counters().cache_misses.get();
    let (first, made) = (opened(), misses());
    assert_eq!((opened(), misses()), (first, made));
}

#[test]
fn the_document_of_an_array_that_comes_to_a_known_path_is_edited() {
    let group = text(&json!({"zarr_format": 3, "node_type": "group", "attributes": {}}));
    let plain = text(&array(&[8], &[8], &plain()));
    for before in [None, Some(group), Some(plain)] {
        for asks in [&["g/t/zarr.json"][..], &["g/t"], &["g/t/c/0"], &["g"], &[]] {
            let fixture = fixture(ViewOptions::default());
            fixture.put_old("g/t/other", b"o");
            if let Some(before) = &before {
                fixture.put_old("g/t/zarr.json", before);
            }
            for path in asks {
                let found = fixture.find(path).unwrap();
                if path.ends_with("json") && found.is_some() {
                    fixture.json(path);
                }
            }
            fixture.put_old("g/t/zarr.json", &text(&array(&[8], &[4], &sharded())));
            let mut shown = fixture.read("g/t/zarr.json");
            if let Err(Error::Stale) = shown {
                // The document was shown as it is stored before, and the kernel looks again.
                shown = fixture.read("g/t/zarr.json");
            }
            let shown: Value = serde_json::from_slice(&shown.unwrap()).unwrap();
            assert_eq!(shown["codecs"], super::plain(), "{before:?} {asks:?}");
            assert_eq!(
                shown["chunk_grid"]["configuration"]["chunk_shape"],
                json!([2])
            );
        }
    }
}
