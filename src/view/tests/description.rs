//! Descriptions of nodes: dimensions, attributes, documents, and the stored chunks of a window.

use super::*;
use crate::view::{ChunkState, DescribedKind, HeldVnode};

fn held(fixture: &Fixture, path: &str) -> HeldVnode {
    fixture.view.find_path(path.as_bytes()).unwrap().unwrap()
}

fn states(fixture: &Fixture, path: &str, first: &[u64]) -> Vec<(String, ChunkState)> {
    let window = held(fixture, path).chunk_window(first).unwrap().unwrap();
    let cells = window.cells.into_iter();
    cells
        .map(|cell| (String::from_utf8(cell.path).unwrap(), cell.state))
        .collect()
}

#[test]
fn an_array_is_described_with_its_attributes_and_documents() {
    let mut document = array(&[4], &[2], &plain());
    document["dimension_names"] = json!(["x"]);
    document["attributes"] = json!({"units": "K", "a": [1]});
    let document = text(&document);
    let fixture = Fixture::new(chunks(), &[("a/zarr.json", &document)]);
    let vnode = held(&fixture, "a");
    let described = vnode.describe().unwrap().unwrap();
    assert_eq!(described.format, "Zarr v3");
    let DescribedKind::Array(array) = described.kind else {
        panic!("no array");
    };
    let [dimension] = array.dimensions.as_slice() else {
        panic!("{:?}", array.dimensions);
    };
    assert_eq!((dimension.length, dimension.n_chunks), (4, Some(2)));
    assert_eq!(
        (dimension.name.as_deref(), dimension.chunk.as_str()),
        (Some("x"), "2")
    );
    assert_eq!((array.n_chunks, array.decoded_bytes), (Some(2), Some(4)));
    assert_eq!(array.fill_value.as_deref(), Some("7"));
    let texts = vnode.texts().unwrap();
    let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        texts.attributes,
        [named("a", "[1]"), named("units", "\"K\"")]
    );
    assert_eq!(texts.documents[0].key, "a/zarr.json");
    assert_eq!(
        texts.documents[0].text.as_ref().unwrap().as_bytes(),
        document
    );
    assert!(
        held(&fixture, "a/c").describe().unwrap().is_none(),
        "chunks are no node"
    );
}

#[test]
fn names_of_dimensions_and_attributes_of_v2_are_found() {
    let document = json!({
        "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "compressor": null,
        "fill_value": 0, "order": "C", "filters": null,
    });
    let objects: [(&str, &[u8]); 4] = [
        (".zgroup", br#"{"zarr_format": 2}"#),
        (".zattrs", br#"{"title": "t"}"#),
        ("a/.zarray", &text(&document)),
        ("a/.zattrs", br#"{"_ARRAY_DIMENSIONS": ["y"]}"#),
    ];
    let fixture = Fixture::new(ViewOptions::default(), &objects);
    let texts = held(&fixture, "a").texts().unwrap();
    assert_eq!(texts.dimension_names, Some(vec![Some("y".to_owned())]));
    assert_eq!(texts.documents.len(), 2);
    let texts = held(&fixture, "").texts().unwrap();
    assert_eq!(texts.attributes, [("title".to_owned(), "\"t\"".to_owned())]);
}

#[test]
fn stored_chunks_of_a_window_are_told_from_absent_ones() {
    let document = text(&array(&[6], &[2], &plain()));
    let objects: [(&str, &[u8]); 2] = [("a/zarr.json", &document), ("a/c/1", b"ab")];
    let fixture = Fixture::new(chunks(), &objects);
    let of = |number: u64, state| (format!("c/{number}"), state);
    let all = [
        of(0, ChunkState::Absent),
        of(1, ChunkState::Stored(2)),
        of(2, ChunkState::Absent),
    ];
    assert_eq!(states(&fixture, "a", &[]), all);
    assert_eq!(states(&fixture, "a", &[1]), all[1..]);
}

#[test]
fn inner_chunks_of_shards_are_found_and_damage_is_told() {
    let document = text(&array(&[8], &[4], &sharded()));
    let objects: [(&str, &[u8]); 3] = [
        ("a/zarr.json", &document),
        ("a/c/0", &shard(EMPTY)),
        ("a/c/1", b"short"),
    ];
    let fixture = Fixture::new(chunks(), &objects);
    let found = states(&fixture, "a", &[]);
    assert_eq!(found[0], ("c/0".to_owned(), ChunkState::Stored(2)));
    assert_eq!(found[1].1, ChunkState::Absent);
    let is_damaged = |state: &ChunkState| matches!(state, ChunkState::Unreadable(_));
    assert!(
        is_damaged(&found[2].1) && is_damaged(&found[3].1),
        "{found:?}"
    );
}

#[test]
fn a_window_of_a_huge_grid_examines_few_chunks() {
    let document = text(&array(&[1 << 31, 1 << 31], &[2, 2], &plain()));
    let fixture = Fixture::new(chunks(), &[("a/zarr.json", &document)]);
    let window = held(&fixture, "a")
        .chunk_window(&[5, u64::MAX])
        .unwrap()
        .unwrap();
    assert_eq!(window.first, [5, (1 << 30) - 1]);
    assert_eq!(
        (window.rows, window.columns, window.cells.len()),
        (16, 1, 16)
    );
}

#[test]
fn the_preview_is_a_file_of_the_arrays_view() {
    let document = text(&array(&[4, 4], &[2, 2], &plain()));
    let png = ArrayOptions {
        files: vec![FileFormat::Png],
        ..ArrayOptions::default()
    };
    for (views, found) in [
        (
            vec![ViewKind::Chunks, ViewKind::Arrays],
            Some(b"arrays/g/a.png".to_vec()),
        ),
        (vec![ViewKind::Chunks, ViewKind::Keys], None),
    ] {
        let options = ViewOptions {
            views,
            arrays: png.clone(),
            ..ViewOptions::default()
        };
        let objects: [(&str, &[u8]); 2] = [
            (
                "g/zarr.json",
                br#"{"zarr_format": 3, "node_type": "group"}"#,
            ),
            ("g/a/zarr.json", &document),
        ];
        let fixture = Fixture::new(options, &objects);
        assert_eq!(held(&fixture, "chunks/g/a").preview().unwrap(), found);
        assert_eq!(held(&fixture, "chunks/g").preview().unwrap(), None);
    }
}
