//! Sidecars of arrays, which say what the current files are, also where no document of the array has changed.

use super::arrays::{arrays, document, group};
use super::*;
use crate::plain::FileFormat;

#[test]
fn a_coarser_level_brings_a_preview() {
    let multiscale = json!({"version": "0.4", "axes": [{"name": "y"}, {"name": "x"}],
        "datasets": [{"path": "s0"}, {"path": "s1"}]});
    let image = json!({"zarr_format": 3, "node_type": "group", "attributes": {"multiscales": [multiscale]}});
    let fixture = Fixture::new(arrays(&[FileFormat::Png]), &[]);
    fixture.put_old("zarr.json", &text(&image));
    // Too many chunks would have to be decoded.
    fixture.put_old("s0/zarr.json", &document("uint8", &[4096, 4096], &[32, 32]));
    assert!(fixture.json("s0.json")["left_out"]["png"].is_string());
    fixture.put_old("s1/zarr.json", &document("uint8", &[512, 512], &[512, 512]));
    assert!(fixture.find("s0.png").unwrap().is_some());
    assert_eq!(fixture.json("s0.json")["files"], json!({"png": "s0.png"}));
    assert!(fixture.store.remove(&Key::parse(b"s1/zarr.json").unwrap()));
    assert!(fixture.find("s0.png").unwrap().is_none());
    assert!(fixture.json("s0.json")["left_out"]["png"].is_string());
}

#[test]
fn a_file_has_the_name_that_its_sidecar_says_when_the_plain_name_is_taken() {
    let formats = [FileFormat::Npy, FileFormat::Raw, FileFormat::Nc];
    let fixture = Fixture::new(arrays(&formats), &[]);
    let attributes = json!({"zarr_format": 3, "node_type": "group", "attributes": {"title": "g"}});
    fixture.put_old("g/zarr.json", &text(&attributes));
    fixture.put_old("g/t/zarr.json", &document("uint8", &[4], &[4]));
    let plain = json!({"npy": "t.npy", "raw": "t.raw", "nc": "g.nc"});
    assert_eq!(fixture.json("g/t.json")["files"], plain);
    assert_eq!(fixture.json("g/g.json")["files"], json!({"nc": "g.nc"}));
    let taken = ["g/t.npy/zarr.json", "g/t.raw/zarr.json", "g/g.nc/zarr.json"];
    for key in taken {
        fixture.put_old(key, &group());
    }
    let others = json!({"npy": "t.npy~", "raw": "t.raw~", "nc": "g.nc~"});
    assert_eq!(fixture.json("g/t.json")["files"], others);
    assert_eq!(fixture.json("g/g.json")["files"], json!({"nc": "g.nc~"}));
    for key in taken {
        assert!(fixture.store.remove(&Key::parse(key.as_bytes()).unwrap()));
    }
    assert_eq!(fixture.json("g/t.json")["files"], plain);
    assert_eq!(fixture.json("g/g.json")["files"], json!({"nc": "g.nc"}));
}

#[test]
fn a_group_above_makes_a_group_a_part_of_an_anndata_object() {
    let with = |attributes: Value| {
        text(&json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}))
    };
    let fixture = Fixture::new(arrays(&[FileFormat::H5ad]), &[]);
    fixture.put_old("a/zarr.json", &with(json!({"title": "cells"})));
    let frame = json!({"encoding-type": "dataframe", "_index": "i", "column-order": []});
    fixture.put_old("a/obs/zarr.json", &with(frame));
    fixture.put_old("a/obs/i/zarr.json", &document("uint8", &[4], &[4]));
    assert!(fixture.json("a/obs/obs.json")["left_out"]["h5ad"].is_string());
    assert_eq!(fixture.json("a/obs/i.json")["files"], json!({}));
    let object = json!({"encoding-type": "anndata", "encoding-version": "0.1.0"});
    fixture.put_old("a/zarr.json", &with(object));
    assert!(fixture.json("a/obs/obs.json")["left_out"]["h5ad"].is_null());
    let told = fixture.json("a/obs/i.json");
    assert!(
        told["files"]["h5ad"] == "../a.h5ad" || told["left_out"]["h5ad"].is_string(),
        "{told}"
    );
}
