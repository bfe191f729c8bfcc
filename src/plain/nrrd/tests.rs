use super::super::testing::{array, attributes};
use super::super::{AxisKind, Selected};
use super::*;

fn axis(name: &str, kind: AxisKind, spacing: f64, unit: &str) -> Axis {
    Axis {
        name: Some(name.to_owned()),
        kind,
        spacing: Some(spacing),
        unit: Some(unit.to_owned()),
        ..Axis::default()
    }
}

#[test]
fn a_plain_header_is_the_least() {
    let told = header(&array("t", r#""<u2""#, &[3, 4, 5])).unwrap();
    let expected = "NRRD0005\ntype: uint16\ndimension: 3\nsizes: 5 4 3\nendian: little\n\
                    encoding: raw\ndata file: t.raw\n\n";
    assert_eq!(told, expected);
}

#[test]
fn axes_and_attributes_are_told() {
    let mut array = array("t", r#""<c8""#, &[2, 3, 4]);
    array.axes = vec![
        axis("t", AxisKind::Time, 30.0, "second"),
        axis("y\"", AxisKind::Space, 0.5, "micrometer"),
        axis("x", AxisKind::Space, 0.25, "micrometer"),
    ];
    let selected = Selected {
        start: [1, 0, 2].as_slice().into(),
        shape: [1, 3, 2].as_slice().into(),
        kept: vec![0, 1, 2],
    };
    array.attributes = attributes(
        r##"{"a\\b": "1\n2", "n": [1, NaN], "#": 1, "x: y": 1, "": 1, "b": "\u0000", "é": "ü"}"##,
    );
    let told = header(&selected.apply(&array)).unwrap();
    let expected = r#"NRRD0005
type: float
dimension: 4
sizes: 2 2 3 1
spacings: nan 0.25 0.5 30.0
axis mins: nan 0.5 nan 30.0
centers: none node none node
units: "" "um" "um" "s"
kinds: complex space space time
labels: "" "x" "y\"" "t"
endian: little
encoding: raw
a\\b:=1\n2
n:=[1,"NaN"]
data file: t.raw

"#;
    assert_eq!(told, expected);
}

#[test]
fn axes_that_are_all_in_space_span_one() {
    let mut array = array("t", r#""<u2""#, &[2, 3, 4]);
    array.axes = vec![
        axis("c", AxisKind::Channel, 1.0, ""),
        axis("y", AxisKind::Space, 0.5, "micrometer"),
        axis("x", AxisKind::Space, 0.25, "micrometer"),
    ];
    array.axes[0].spacing = None;
    array.axes[1].origin = Some(-3.0);
    array.attributes = attributes(r#"{"Units": "K"}"#);
    let told = header(&array).unwrap();
    let expected = r#"NRRD0005
type: uint16
dimension: 3
sizes: 4 3 2
space dimension: 2
space units: "um" "um"
space directions: (0.25,0.0) (0.0,0.5) none
space origin: (0.0,-3.0)
kinds: space space list
labels: "x" "y" "c"
endian: little
encoding: raw
zarr_Units:=K
data file: t.raw

"#;
    assert_eq!(told, expected);
}

#[test]
fn axes_without_a_spacing_span_no_space() {
    let mut array = array("t", r#""<u2""#, &[3, 4]);
    array.axes = vec![
        axis("y", AxisKind::Space, 0.5, "micrometer"),
        axis("x", AxisKind::Space, 0.25, "micrometer"),
    ];
    (array.axes[0].spacing, array.axes[0].unit) = (None, None);
    let told = header(&array).unwrap();
    let expected = "spacings: 0.25 nan\nunits: \"um\" \"\"\nkinds: space space\n";
    assert!(
        told.contains(expected) && !told.contains("directions"),
        "{told}"
    );
}

#[test]
fn times_say_their_unit() {
    let told = header(&array("t", r#""<M8[25s]""#, &[1])).unwrap();
    assert!(
        told.contains("type: int64\n") && told.contains("\nzarr_units:=25 s since 1970-01-01\n")
    );
}

#[test]
fn what_nrrd_lacks_is_refused_by_name() {
    for (name, typestr, shape, found) in [
        ("t", r#""<f2""#, &[1][..], "data type: `<f2`"),
        ("t", r#""|S2""#, &[1], "data type: `|S2`"),
        ("t", r#""<u2""#, &[], "shape: `[]`"),
        ("t", r#""<u2""#, &[3, 0], "shape: `[3, 0]`"),
        ("t", r#""<u2""#, &[1; 17], "shape: `[1, 1"),
        ("t", r#""<c8""#, &[1; 16], "shape: `[1, 1"),
        ("a\nb", r#""<u2""#, &[1], "name: `a\\nb`"),
        ("a%db", r#""<u2""#, &[1], "name: `a%db`"),
    ] {
        let error = layout(&array(name, typestr, shape))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(found), "{error}");
    }
    let data_file = |name| raw::data_file(name, FileFormat::Nhdr);
    assert_eq!(data_file("LISTing").unwrap(), "./LISTing.raw");
    assert_eq!(data_file("C: x").unwrap(), "./C: x.raw");
    assert_eq!(data_file("50%").unwrap(), "50%.raw");
    assert_eq!(data_file("a b@3,:").unwrap(), "a b@3,:.raw");
}
