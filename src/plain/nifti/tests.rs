//! Fields of both headers at the offsets of `nifti1.h` and `nifti2.h`.

use super::super::testing::{array, attributes, check_slices, counting, whole};
use super::super::{Array, AxisKind};
use super::*;

fn volume(typestr: &str, shape: &[u64], names: &str) -> Array {
    let mut array = array("a", &format!("\"{typestr}\""), shape);
    for (axis, name) in array.axes.iter_mut().zip(names.chars()) {
        axis.name = Some(name.to_string());
        axis.kind = match name {
            't' => AxisKind::Time,
            'c' => AxisKind::Channel,
            'z' | 'y' | 'x' => AxisKind::Space,
            _ => AxisKind::Other,
        };
    }
    array
}

fn place(array: &mut Array, axis: usize, spacing: f64, origin: f64, unit: &str) {
    let axis = &mut array.axes[axis];
    axis.spacing = Some(spacing);
    axis.origin = Some(origin);
    axis.unit = Some(unit.to_owned());
}

/// The part of the file before its elements.
fn header(array: &Array) -> Vec<u8> {
    let parts = layout(array).unwrap();
    let mut header = vec![0; 4096];
    let none = |_: &Elements, _, _: &mut [u8]| Ok::<(), FormatError>(());
    parts.read(0, &mut header, none).unwrap();
    header
}

fn shorts(header: &[u8], at: usize, n: usize) -> Vec<i16> {
    let (numbers, _) = header[at..at + 2 * n].as_chunks();
    numbers
        .iter()
        .map(|number| i16::from_le_bytes(*number))
        .collect()
}

fn floats(header: &[u8], at: usize, n: usize) -> Vec<f32> {
    let (numbers, _) = header[at..at + 4 * n].as_chunks();
    numbers
        .iter()
        .map(|number| f32::from_le_bytes(*number))
        .collect()
}

fn doubles(header: &[u8], at: usize, n: usize) -> Vec<f64> {
    let (numbers, _) = header[at..at + 8 * n].as_chunks();
    numbers
        .iter()
        .map(|number| f64::from_le_bytes(*number))
        .collect()
}

fn description(header: &[u8], at: usize) -> String {
    let text: Vec<u8> = header[at..at + 80]
        .iter()
        .copied()
        .take_while(|&byte| byte != 0)
        .collect();
    assert!(text.len() < 80);
    String::from_utf8(text).unwrap()
}

#[test]
fn nifti_1_has_its_fields_where_they_belong() {
    let mut array = volume("<i2", &[2, 3, 4, 5], "tzyx");
    place(&mut array, 0, 0.5, 2.0, "minute");
    place(&mut array, 1, 2000.0, 500.0, "nanometer");
    place(&mut array, 2, 0.5, 0.0, "micrometer");
    place(&mut array, 3, 0.25, -8.0, "micrometer");
    array.attributes = attributes(r#"{"scale_factor": 0.5, "add_offset": 10}"#);
    let bytes = counting(&array, 0);
    let layout = layout(&array).unwrap();
    let file = whole(&layout, &[(&array, &bytes)]);
    assert_eq!(file[..4], 348_i32.to_le_bytes());
    assert_eq!(file[344..352], *b"n+1\0\0\0\0\0");
    assert_eq!(shorts(&file, 40, 8), [4, 5, 4, 3, 2, 1, 1, 1]);
    assert_eq!(shorts(&file, 70, 2), [4, 16]);
    assert_eq!(
        floats(&file, 76, 8),
        [1.0, 0.25, 0.5, 2.0, 30.0, 1.0, 1.0, 1.0]
    );
    assert_eq!(floats(&file, 108, 3), [4096.0, 0.5, 10.0]);
    assert_eq!(file[123], 3 | 8, "micrometres and seconds");
    assert_eq!(floats(&file, 136, 1), [120.0]);
    assert_eq!(description(&file, 148), "");
    assert_eq!(shorts(&file, 252, 2), [0, 1]);
    let rows = [0.25, 0.0, 0.0, -8.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 2.0, 0.5];
    assert_eq!(floats(&file, 280, 12), rows);
    assert_eq!(file[352..4096], [0; 4096 - 352]);
    assert_eq!(file[4096..], bytes);
    check_slices(&layout, &[(&array, &bytes)]);
}

#[test]
fn nifti_2_is_for_long_dimensions() {
    let mut array = volume("<u2", &[3, 40_000], "yx");
    place(&mut array, 1, 0.1, 0.3, "angstrom");
    place(&mut array, 0, 1.0, 0.0, "meter");
    array.attributes = attributes(r#"{"scale_factor": 0.1}"#);
    let file = header(&array);
    assert_eq!(file[..4], 540_i32.to_le_bytes());
    assert_eq!(file[4..12], *b"n+2\0\r\n\x1a\n");
    assert_eq!(shorts(&file, 12, 2), [512, 16]);
    let dim: Vec<u64> = (0..8)
        .map(|i| doubles(&file, 16 + 8 * i, 1)[0].to_bits())
        .collect();
    assert_eq!(dim, [3, 40_000, 3, 1, 1, 1, 1, 1]);
    assert_eq!(doubles(&file, 104, 4), [1.0, 1e-5, 1e6, 1.0]);
    assert_eq!(file[168..176], 4096_i64.to_le_bytes());
    assert_eq!(doubles(&file, 176, 2), [0.1, 0.0]);
    assert_eq!(description(&file, 240), "");
    assert_eq!(file[344..352], [0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(doubles(&file, 400, 4), [1e-5, 0.0, 0.0, 0.3 / 1e4]);
    assert_eq!(file[500..504], [3, 0, 0, 0]);
    assert_eq!(file[540..544], [0; 4]);
    assert_eq!(
        header(&volume("<u2", &[32_767, 2], "yx"))[344..348],
        *b"n+1\0"
    );
}

#[test]
fn axes_are_on_the_dimensions_meant_for_them() {
    let cases: [(&str, &[u64], &[i16], &str); 16] = [
        ("x", &[5], &[5], ""),
        ("yx", &[4, 5], &[5, 4, 1], ""),
        ("tyx", &[3, 4, 5], &[5, 4, 1, 3], ""),
        ("cyx", &[3, 4, 5], &[5, 4, 1, 1, 3], ""),
        ("czyx", &[2, 3, 4, 5], &[5, 4, 3, 1, 2], ""),
        ("ctzyx", &[2, 6, 3, 4, 5], &[5, 4, 3, 6, 2], ""),
        ("tczyx", &[2, 6, 3, 4, 5], &[5, 4, 3, 6, 2], "dim4=c dim5=t"),
        ("tczyx", &[1, 6, 3, 4, 5], &[5, 4, 3, 1, 6], ""),
        ("tczyx", &[2, 1, 3, 4, 5], &[5, 4, 3, 2], ""),
        ("tczyx", &[1, 1, 3, 4, 5], &[5, 4, 3], ""),
        ("tczyx", &[2, 1, 1, 4, 5], &[5, 4, 1, 2], ""),
        ("ztyx", &[1, 2, 4, 5], &[5, 4, 1, 2], ""),
        ("ztyx", &[3, 2, 4, 5], &[5, 4, 2, 3], "dim3=t dim4=z"),
        ("yxc", &[4, 5, 3], &[3, 5, 4], "dim1=c"),
        ("?????", &[1, 2, 3, 4, 5], &[5, 4, 3, 2, 1], ""),
        ("???????", &[2; 7], &[2; 7], ""),
    ];
    for (names, shape, expected, remark) in cases {
        let array = volume("|u1", shape, names);
        let file = header(&array);
        let rank = usize::try_from(shorts(&file, 40, 1)[0]).unwrap();
        assert_eq!(shorts(&file, 42, rank), expected, "{names} {shape:?}");
        assert_eq!(shorts(&file, 42 + 2 * rank, 7 - rank), vec![1; 7 - rank]);
        assert_eq!(description(&file, 148), remark, "{names} {shape:?}");
    }
    let extra = volume("|u1", &[1, 2, 2, 2, 2, 2, 1, 2, 2], "?????????");
    assert_eq!(shorts(&header(&extra), 40, 8), [7, 2, 2, 2, 2, 2, 2, 2]);
    let shapes: [&[u64]; 3] = [&[], &[2; 8], &[3, 0]];
    for shape in shapes {
        assert!(
            layout(&volume("|u1", shape, "????????")).is_err(),
            "{shape:?}"
        );
    }
}

#[test]
fn sizes_that_cannot_be_expressed_are_left_out() {
    let mut array = volume("<i2", &[2, 3, 4], "zyx");
    array.attributes = attributes(r#"{"scale_factor": 0.1}"#);
    place(&mut array, 0, 1.0, 0.0, "pixel");
    place(&mut array, 1, 0.5, 0.0, "micrometer");
    place(&mut array, 2, 1.0, 0.0, "pixel");
    let file = header(&array);
    let remark = "voxel sizes left out; CF scale_factor, add_offset not applied";
    assert_eq!(description(&file, 148), remark);
    assert_eq!(floats(&file, 76, 4), [1.0; 4]);
    assert_eq!(floats(&file, 112, 2), [0.0, 0.0]);
    assert_eq!(file[123], 0);
    // Sizes of one unknown unit keep their ratios.
    place(&mut array, 1, 0.5, 0.0, "pixel");
    let file = header(&array);
    assert_eq!(
        (floats(&file, 76, 4), file[123]),
        (vec![1.0, 1.0, 0.5, 1.0], 0)
    );
    // A size that is not known has no ratio.
    let mut partly = array.clone();
    partly.axes[2].spacing = None;
    let file = header(&partly);
    assert_eq!(floats(&file, 76, 4), [1.0; 4]);
    assert_eq!(description(&file, 148), remark);
    // An axis that is not in space does not change the ratios.
    place(&mut array, 0, 5.0, 0.0, "degree");
    array.axes[0].kind = AxisKind::Other;
    let file = header(&array);
    assert_eq!(floats(&file, 76, 4), [1.0, 1.0, 0.5, 1.0]);
    assert!(!description(&file, 148).contains("left out"));
    for wrong in [
        r#"{"scale_factor": "2"}"#,
        r#"{"scale_factor": 0}"#,
        r#"{"add_offset": NaN}"#,
    ] {
        array.attributes = attributes(wrong);
        let file = header(&array);
        assert_eq!(floats(&file, 112, 2), [0.0, 0.0], "{wrong}");
        assert!(description(&file, 148).contains("CF"), "{wrong}");
    }
    array.axes[2].name = Some("é".repeat(200));
    array.axes[2].kind = AxisKind::Channel;
    let long = description(&header(&array), 148);
    assert!(long.starts_with("dim1=???") && long.len() == 79, "{long}");
}

#[test]
fn codes_of_types() {
    let cases = [
        ("|b1", [2, 8]),
        ("|u1", [2, 8]),
        ("|i1", [256, 8]),
        ("<u2", [512, 16]),
        ("<i4", [8, 32]),
        ("<u4", [768, 32]),
        ("<i8", [1024, 64]),
        ("<u8", [1280, 64]),
        ("<f4", [16, 32]),
        ("<f8", [64, 64]),
        ("<c8", [32, 64]),
        ("<c16", [1792, 128]),
    ];
    for (typestr, codes) in cases {
        let file = header(&volume(typestr, &[2, 2], "yx"));
        assert_eq!(shorts(&file, 70, 2), codes, "{typestr}");
    }
    for typestr in ["<f2", "<M8[s]", "|S4", "|V3"] {
        let refused = layout(&volume(typestr, &[2, 2], "yx"))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("data type") && refused.contains("NIfTI"),
            "{refused}"
        );
    }
    let array = volume("|b1", &[1, 4], "yx");
    let file = whole(&layout(&array).unwrap(), &[(&array, &[0, 1, 2, 255])]);
    assert_eq!(file[4096..], [0, 1, 1, 1]);
}
