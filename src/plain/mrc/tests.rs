//! Headers against the table of MRC2014.

use super::super::Array;
use super::super::testing::{array, check_slices, counting, whole};
use super::*;

fn place(array: &mut Array, axis: usize, spacing: f64, origin: f64, unit: &str) {
    let axis = &mut array.axes[axis];
    axis.kind = AxisKind::Space;
    axis.spacing = Some(spacing);
    axis.origin = Some(origin);
    axis.unit = Some(unit.to_owned());
}

fn integers(file: &[u8], at: usize, n: usize) -> Vec<i32> {
    let (numbers, _) = file[at..at + 4 * n].as_chunks();
    numbers
        .iter()
        .map(|number| i32::from_le_bytes(*number))
        .collect()
}

fn floats(file: &[u8], at: usize, n: usize) -> Vec<f32> {
    let (numbers, _) = file[at..at + 4 * n].as_chunks();
    numbers
        .iter()
        .map(|number| f32::from_le_bytes(*number))
        .collect()
}

#[test]
fn a_volume_has_its_cell_in_angstrom() {
    let mut array = array("map é", r#""<f4""#, &[3, 4, 5]);
    place(&mut array, 0, 1.5, 0.0, "angstrom");
    place(&mut array, 1, 0.25, -1.0, "nanometer");
    place(&mut array, 2, 0.0005, 0.001, "micrometer");
    let bytes = counting(&array, 2);
    let layout = layout(&array).unwrap();
    let file = whole(&layout, &[(&array, &bytes)]);
    assert_eq!(integers(&file, 0, 4), [5, 4, 3, 2]);
    assert_eq!(integers(&file, 16, 3), [0; 3]);
    assert_eq!(integers(&file, 28, 3), [5, 4, 3]);
    assert_eq!(floats(&file, 40, 6), [25.0, 10.0, 4.5, 90.0, 90.0, 90.0]);
    assert_eq!(integers(&file, 64, 3), [1, 2, 3]);
    assert_eq!(floats(&file, 76, 3), [0.0, -1.0, -2.0]);
    assert_eq!(integers(&file, 88, 2), [1, 0]);
    assert_eq!(integers(&file, 108, 1), [20140]);
    assert_eq!(floats(&file, 196, 3), [10.0, -10.0, 0.0]);
    assert_eq!(file[208..216], *b"MAP DD\0\0");
    assert_eq!(floats(&file, 216, 1), [-1.0]);
    assert_eq!(integers(&file, 220, 1), [1]);
    assert_eq!(file[224..242], *b"zarr-mount: map ? ");
    assert_eq!(file[304..1024], [0; 720]);
    assert_eq!(file[1024..], bytes);
    check_slices(&layout, &[(&array, &bytes)]);
}

#[test]
fn images_are_stacks_along_time_and_channels() {
    // Shape, kind of the first axis; nz, mz, space group.
    let cases: [(&[u64], AxisKind, [i32; 3]); 6] = [
        (&[4, 5], AxisKind::Other, [1, 1, 0]),
        (&[3, 4, 5], AxisKind::Other, [3, 3, 1]),
        (&[3, 4, 5], AxisKind::Space, [3, 3, 1]),
        (&[3, 4, 5], AxisKind::Time, [3, 1, 0]),
        (&[3, 1, 4, 5], AxisKind::Channel, [3, 1, 0]),
        (&[1, 1, 3, 4, 5], AxisKind::Time, [3, 3, 1]),
    ];
    for (shape, kind, [nz, mz, group]) in cases {
        let mut array = array("a", r#""<i2""#, shape);
        array.axes[0].kind = kind;
        let bytes = counting(&array, 0);
        let file = whole(&layout(&array).unwrap(), &[(&array, &bytes)]);
        assert_eq!(integers(&file, 0, 4), [5, 4, nz, 1], "{shape:?}");
        assert_eq!(integers(&file, 28, 3), [5, 4, mz], "{shape:?}");
        assert_eq!(integers(&file, 88, 1), [group], "{shape:?}");
        assert_eq!(floats(&file, 40, 3), [0.0; 3], "not known");
    }
}

#[test]
fn modes_of_types_and_what_is_refused() {
    let modes = [
        ("|i1", 0),
        ("<i2", 1),
        ("<f4", 2),
        ("<c8", 4),
        ("<u2", 6),
        ("<f2", 12),
    ];
    for (typestr, mode) in modes {
        let array = array("a", &format!("\"{typestr}\""), &[2, 3]);
        let bytes = counting(&array, 0);
        let file = whole(&layout(&array).unwrap(), &[(&array, &bytes)]);
        assert_eq!(integers(&file, 12, 1), [mode], "{typestr}");
    }
    for typestr in ["|b1", "|u1", "<i4", "<f8", "<c16", "|S2"] {
        let array = array("a", &format!("\"{typestr}\""), &[2, 3]);
        let refused = layout(&array).unwrap_err().to_string();
        assert!(
            refused.contains("data type") && refused.contains("MRC"),
            "{refused}"
        );
    }
    let shapes: [&[u64]; 5] = [&[], &[4], &[2, 0], &[2, 2, 2, 2], &[1 << 31, 1, 1]];
    for shape in shapes {
        assert!(layout(&array("a", r#""<i2""#, shape)).is_err(), "{shape:?}");
    }
}
