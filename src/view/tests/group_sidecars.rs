//! Sidecars of groups, and their names.

use super::arrays::{arrays, document, group};
use super::*;
use crate::plain::FileFormat;
use crate::store::testing::{CallKind, Recording, wrap};

fn titled(attributes: &Value) -> Vec<u8> {
    text(&json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}))
}

#[test]
fn a_group_with_attributes_has_a_sidecar_in_its_own_directory() {
    let objects: [(&str, &[u8]); 8] = [
        ("zarr.json", &titled(&json!({"title": "t", "a": [1, 2]}))),
        ("g/zarr.json", &group()),
        ("g/h/zarr.json", &titled(&json!({"omero": {"name": "n"}}))),
        ("g/h/t/zarr.json", &document("uint8", &[2], &[2])),
        ("i/v/.zgroup", br#"{"zarr_format": 2}"#),
        ("i/v/.zattrs", br#"{"history": "h"}"#),
        ("i/w/.zgroup", br#"{"zarr_format": 2}"#),
        ("i/w/.zattrs", b"{}"),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Npy]), &objects);
    assert_eq!(fixture.list(""), ["g", "i", "store.json"]);
    assert_eq!(fixture.list("g"), ["h"]);
    assert_eq!(fixture.list("g/h"), ["h.json", "t.json", "t.npy"]);
    assert_eq!(fixture.list("i"), ["v", "w"]);
    assert_eq!(fixture.list("i/v"), ["v.json"]);
    for none in ["g/g.json", "g/h.json", "i/i.json", "i/w/w.json"] {
        assert!(fixture.find(none).unwrap().is_none(), "{none}");
    }
    let told = fixture.json("store.json");
    let expected = json!({
        "node_type": "group", "zarr_format": 3, "attributes": {"title": "t", "a": [1, 2]},
        "files": {}, "left_out": {},
    });
    assert_eq!(told, expected);
    assert_eq!(
        fixture.json("i/v/v.json")["attributes"],
        json!({"history": "h"})
    );
    assert_eq!(
        fixture.json("g/h/h.json")["attributes"]["omero"]["name"],
        "n"
    );
    // A change of the attributes shows, and without attributes the file is gone.
    fixture.put("i/v/.zattrs", br#"{"history": "longer than before"}"#);
    let changed = fixture.json("i/v/v.json");
    assert_eq!(changed["attributes"]["history"], "longer than before");
    fixture.put("i/v/.zattrs", b"{}");
    assert!(fixture.find("i/v/v.json").unwrap().is_none());
    assert_eq!(fixture.list("i/v"), [""; 0]);
}

#[test]
fn an_array_or_a_directory_has_a_name_before_the_sidecar_of_a_group() {
    let attributes = titled(&json!({"is": "group"}));
    let objects: [(&str, &[u8]); 4] = [
        ("g/zarr.json", &attributes),
        ("g/g/zarr.json", &document("uint8", &[2], &[2])),
        ("h/zarr.json", &attributes),
        ("h/h.json/u/zarr.json", &document("uint8", &[2], &[2])),
    ];
    let mut options = arrays(&[FileFormat::Npy]);
    let fixture = Fixture::new(options.clone(), &objects);
    assert_eq!(fixture.list("g"), ["g.json", "g.json~", "g.npy"]);
    assert_eq!(fixture.json("g/g.json")["shape"], json!([2]));
    assert_eq!(fixture.json("g/g.json~")["attributes"]["is"], "group");
    assert_eq!(fixture.list("h"), ["h.json", "h.json~"]);
    assert_eq!(fixture.json("h/h.json~")["attributes"]["is"], "group");
    options.arrays.sidecars = false;
    let fixture = Fixture::new(options, &objects);
    assert_eq!(fixture.list("g"), ["g.npy"]);
    assert!(fixture.find("g/g.json~").unwrap().is_none());
}

#[test]
fn a_sidecar_names_the_files_of_its_group_and_what_they_leave_out() {
    let mut damaged = array(&[2], &[2], &json!([{"name": "nonesuch"}]));
    damaged["attributes"] = json!({"a": 1});
    let objects: [(&str, &[u8]); 3] = [
        ("zarr.json", &titled(&json!({"title": "t"}))),
        ("t/zarr.json", &document("uint8", &[2], &[2])),
        ("odd/zarr.json", &text(&damaged)),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Nc, FileFormat::H5ad]), &objects);
    let told = fixture.json("store.json");
    assert_eq!(told["files"], json!({"nc": "store.nc"}));
    let left_out = &told["left_out"];
    assert_eq!(left_out["nc"]["odd"], "metadata: cannot be decoded");
    assert!(
        left_out["h5ad"].as_str().unwrap().contains("AnnData"),
        "{left_out}"
    );
    // A group without arrays has no file, until it has an array.
    fixture.put("g/zarr.json", &titled(&json!({"title": "g"})));
    assert_eq!(fixture.json("g/g.json")["files"], json!({}));
    fixture.put("g/u/zarr.json", &document("uint8", &[2], &[2]));
    assert_eq!(fixture.json("g/g.json")["files"], json!({"nc": "g.nc"}));
}

#[test]
fn long_and_damaged_attributes_have_a_sidecar() {
    let long = json!({"note": "x".repeat(300 << 10), "short": [1, 2], "list": vec![7; 50_000]});
    let objects: [(&str, &[u8]); 4] = [
        ("long/zarr.json", &titled(&long)),
        ("damaged/.zgroup", br#"{"zarr_format": 2}"#),
        ("damaged/.zattrs", br#"{"title": "t", "cut": "#),
        ("damaged/t/zarr.json", &document("uint8", &[2], &[2])),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Npy]), &objects);
    assert_eq!(fixture.json("long/long.json")["attributes"], long);
    let size = fixture
        .find("long/long.json")
        .unwrap()
        .unwrap()
        .attributes
        .size;
    assert_eq!(size, fixture.read("long/long.json").unwrap().len() as u64);
    // Attributes of more than 4 MiB are read neither of arrays nor of groups.
    let endless = titled(&json!({"title": "t", "note": "x".repeat(5 << 20)}));
    fixture.put("endless/zarr.json", &endless);
    let told = fixture.json("endless/endless.json");
    assert_eq!(told["attributes"], json!({}));
    let reason = told["attributes_error"].as_str().unwrap();
    assert!(reason.contains("limit of 4194304"), "{reason}");
    let told = fixture.json("damaged/damaged.json");
    assert_eq!(told["attributes"], json!({}));
    let reason = told["attributes_error"].as_str().unwrap();
    assert!(reason.contains("EOF"), "{reason}");
    assert!(fixture.list("damaged").contains(&"t.npy".to_owned()));
}

/// How often the document of a group is read when the group is listed.
fn reads_of_the_document(sidecars: bool) -> usize {
    let recording = Arc::new(Recording::default());
    let mut options = arrays(&[FileFormat::Tif]);
    options.arrays.sidecars = sidecars;
    options.freshness = Freshness::Immutable;
    let fixture = Fixture::trusting(options, &[], |store| wrap(store, &recording));
    fixture.put_old("g/zarr.json", &titled(&json!({"title": "t"})));
    for name in 0..3 {
        let path = format!("g/t{name}/zarr.json");
        fixture.put_old(&path, &document("uint8", &[2, 2], &[2, 2]));
    }
    let listed = fixture.list("g");
    assert_eq!(listed.contains(&"g.json".to_owned()), sidecars);
    let calls = recording.calls();
    let is_of_absent = |path: &str| path == "g/g" || path.starts_with("g/g/") || path == "g/g.json";
    let of_names = calls
        .iter()
        .filter(|call| is_of_absent(&call.path.to_string()));
    assert_eq!(
        of_names.count(),
        0,
        "the listing shows which names are free"
    );
    let is_read = |kind| matches!(kind, CallKind::Fetch | CallKind::Open);
    let reads = calls
        .iter()
        .filter(|call| is_read(call.kind) && call.path.to_string() == "g/zarr.json");
    reads.count()
}

#[test]
fn a_listing_takes_no_further_request_for_the_sidecar_of_its_group() {
    assert_eq!(reads_of_the_document(true), reads_of_the_document(false));
}
