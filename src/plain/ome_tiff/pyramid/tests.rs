//! Levels that fit, and the reasons why others are left out.

use super::super::super::testing::{array, attributes, counting, whole};
use super::super::super::{Array, AxisKind, Group, NarrowType, Options};
use super::*;

/// A level with the axes `names`.
fn level(name: &str, typestr: &str, shape: &[u64], names: &str) -> Array {
    let mut array = array(name, &format!("\"{typestr}\""), shape);
    for (axis, name) in array.axes.iter_mut().zip(names.chars()) {
        axis.kind = match name {
            't' => AxisKind::Time,
            'c' => AxisKind::Channel,
            _ => AxisKind::Space,
        };
    }
    array
}

fn group(mut levels: Vec<Array>) -> Group {
    for (id, level) in levels.iter_mut().enumerate() {
        level.id = id;
    }
    Group {
        name: "cells".to_owned(),
        arrays: levels,
        ..Group::default()
    }
}

fn reasons(levels: Vec<Array>) -> Vec<(String, String)> {
    let file = file(&group(levels), &Options::default()).unwrap();
    let omitted = file.omitted.into_iter();
    let omitted = omitted.map(|omitted| (omitted.name, omitted.reason.to_string()));
    omitted.collect()
}

#[test]
fn levels_reduce_y_and_x_only() {
    let finest = || level("0", "<u2", &[2, 4, 64, 48], "czyx");
    let fits = level("1", "<u2", &[2, 4, 32, 24], "czyx");
    let narrow = level("2", "<u2", &[2, 4, 32, 12], "czyx");
    assert_eq!(reasons(vec![finest(), fits.clone(), narrow]), []);
    for (other, reason) in [
        (level("x", "<u2", &[2, 2, 32, 24], "czyx"), "2 slices"),
        (level("x", "<u2", &[1, 4, 32, 24], "czyx"), "1 channels"),
        (level("x", "<u2", &[2, 4, 32, 24], "tzyx"), "axes"),
        (level("x", "<u2", &[4, 32, 24], "zyx"), "axes"),
        (level("x", "<i2", &[2, 4, 32, 24], "czyx"), "data type"),
        (level("x", "<f4", &[2, 4, 32, 24], "czyx"), "data type"),
        (level("x", "<u8", &[2, 4, 32, 24], "czyx"), "data type"),
        (
            level("x", "<u2", &[2, 4, 64, 48], "czyx"),
            "not fewer than the 64 x 48",
        ),
        (level("x", "<u2", &[2, 4, 16, 49], "czyx"), "not fewer"),
        (level("x", "<u2", &[2, 4, 0, 24], "czyx"), "length 0"),
        (level("x", "<u2", &[24], "x"), "1 dimensions"),
    ] {
        let found = reasons(vec![finest(), other, fits.clone()]);
        let [(name, said)] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(name == "x" && said.contains(reason), "{said}");
    }
    // Each level is smaller than the one before it, and not only than the finest.
    let again = level("x", "<u2", &[2, 4, 32, 24], "czyx");
    assert_eq!(reasons(vec![finest(), fits, again]).len(), 1);
}

#[test]
fn units_of_the_finest_level_are_named() {
    let mut levels = vec![
        level("0", "<u2", &[64, 48], "yx"),
        level("1", "<u2", &[32, 24], "yx"),
    ];
    for axis in levels.iter_mut().flat_map(|level| &mut level.axes) {
        axis.spacing = Some(1.0);
        axis.unit = Some("bogus".to_owned());
    }
    let names = reasons(levels).into_iter().map(|(name, _)| name);
    assert_eq!(names.collect::<Vec<_>>(), ["0:X", "0:Y"]);
}

#[test]
fn an_image_without_levels_has_no_file() {
    let refused = file(
        &group(vec![level("0", "<i8", &[4, 4], "yx")]),
        &Options::default(),
    );
    let reason = refused.unwrap_err().to_string();
    assert!(
        reason.contains("0.data type") && reason.contains("OME"),
        "{reason}"
    );
    assert!(file(&Group::default(), &Options::default()).is_err());
    let narrowed = Options {
        integers: Some(NarrowType::UInt8),
        ..Options::default()
    };
    let labels = group(vec![
        level("0", "<i8", &[4, 4], "yx"),
        level("1", "<i4", &[2, 2], "yx"),
    ]);
    assert_eq!(file(&labels, &narrowed).unwrap().omitted, []);
}

#[test]
fn the_xml_is_of_the_group() {
    let mut finest = level("0", "<u2", &[64, 48], "yx");
    finest.image = Some("two cells".to_owned());
    let bytes = counting(&finest, 1);
    let mut image = group(vec![finest.clone(), level("1", "<u2", &[64, 48], "yx")]);
    image.attributes = attributes(r#"{"omero": {"channels": [{"window": {"start": 1}}]}}"#);
    let made = file(&image, &Options::default()).unwrap();
    let file = whole(&made.layout, &[(&finest, &bytes)]);
    let text = String::from_utf8_lossy(&file);
    for part in [
        r#"<Image ID="Image:0" Name="two cells">"#,
        r#"<M K="zarr_omitted">1: shape: 64 x 48 pixels"#,
        r#"<M K="omero">{&quot;channels&quot;:[{&quot;window&quot;:{&quot;start&quot;:1}}]}</M>"#,
    ] {
        assert!(text.contains(part), "{part}");
    }
}
