use super::super::testing::{array, check_slices, counting, whole};
use super::*;

/// The file: text before the blanks, and what follows them.
fn file(array: &Array) -> (String, Vec<u8>) {
    let elements = counting(array, 5);
    let layout = layout(array).unwrap();
    let file = whole(&layout, &[(array, &elements)]);
    check_slices(&layout, &[(array, &elements)]);
    assert_eq!(file[4096 - 9], b'_');
    let text = String::from_utf8(file[..4096 - 9].to_vec()).unwrap();
    (text.trim_end().to_owned(), file[4096 - 8..].to_vec())
}

#[test]
fn elements_begin_at_4096() {
    let mut array = array("a<b", r#""<u2""#, &[2, 3, 4]);
    array.axes[0].spacing = Some(2.0);
    array.axes[2].spacing = Some(0.5);
    array.axes[2].origin = Some(-1.0);
    let (text, rest) = file(&array);
    let expected = r#"<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="0 3 0 2 0 1" Origin="-1.0 0.0 0.0" Spacing="0.5 1.0 2.0">
    <Piece Extent="0 3 0 2 0 1">
      <PointData Scalars="a&lt;b">
        <DataArray type="UInt16" Name="a&lt;b" NumberOfComponents="1" format="appended" offset="0"/>
      </PointData>
    </Piece>
  </ImageData>
  <AppendedData encoding="raw">"#;
    assert_eq!(text, expected);
    assert_eq!(rest[..8], 48_u64.to_le_bytes());
    assert_eq!(&rest[8..56], counting(&array, 5));
    assert_eq!(&rest[56..], b"\n  </AppendedData>\n</VTKFile>\n");
}

#[test]
fn all_lengths_are_in_the_unit_of_x() {
    let mut array = array("t", r#""<u2""#, &[2, 3, 4]);
    for (axis, unit, spacing) in [
        (0, "micrometer", 0.5),
        (1, "furlong", 2.0),
        (2, "nanometer", 100.0),
    ] {
        array.axes[axis].unit = Some(unit.to_owned());
        array.axes[axis].spacing = Some(spacing);
        array.axes[axis].origin = Some(2.0 * spacing);
    }
    let (text, _) = file(&array);
    let expected = r#"Origin="200.0 4.0 1000.0" Spacing="100.0 2.0 500.0""#;
    assert!(text.contains(expected), "{text}");
    for axis in &mut array.axes {
        axis.kind = AxisKind::Space;
    }
    assert!(file(&array).0.contains(expected));
    (array.axes[1].spacing, array.axes[1].origin) = (None, None);
    let expected = r#"Origin="0.0 0.0 0.0" Spacing="1.0 1.0 1.0""#;
    assert!(file(&array).0.contains(expected), "one size is not known");
}

#[test]
fn first_channels_are_arrays_and_last_ones_components() {
    let mut array = array("t", r#""<c8""#, &[1, 3, 1, 2, 5]);
    array.axes[1].kind = AxisKind::Channel;
    let (text, rest) = file(&array);
    assert!(text.contains("\"0 4 0 1 0 0\""));
    for (i, offset) in [0, 88, 176].into_iter().enumerate() {
        let tag = format!(
            "<DataArray type=\"Float32\" Name=\"t_{i}\" NumberOfComponents=\"2\" \
             format=\"appended\" offset=\"{offset}\"/>"
        );
        assert!(text.contains(&tag), "{text}");
        assert_eq!(rest[offset..offset + 8], 80_u64.to_le_bytes());
        let own = &counting(&array, 5)[i * 80..][..80];
        assert_eq!(&rest[offset + 8..offset + 88], own);
    }
    let mut rgb = super::super::testing::array("rgb", r#""|b1""#, &[4, 5, 3]);
    rgb.axes[2].kind = AxisKind::Channel;
    let (text, rest) = file(&rgb);
    assert!(text.contains("\"0 4 0 3 0 0\"") && text.contains("NumberOfComponents=\"3\""));
    assert!(rest[8..68].iter().all(|&byte| byte <= 1));
}

#[test]
fn what_vtk_lacks_is_refused_by_name() {
    for (typestr, shape, found) in [
        (r#""<f2""#, &[1][..], "data type: `<f2`"),
        (r#""<M8[s]""#, &[1], "data type: `<M8[s]`"),
        (r#""|S2""#, &[1], "data type: `|S2`"),
        (r#""<u2""#, &[], "shape: `[]`"),
        (r#""<u2""#, &[3, 0], "shape: `[3, 0]`"),
        (r#""<u2""#, &[2, 1, 1, 1], "shape: `[2, 1"),
        (r#""|u1""#, &[1 << 31], "shape: `[2147483648]`"),
    ] {
        let error = layout(&array("t", typestr, shape)).unwrap_err().to_string();
        assert!(error.starts_with(found), "{error}");
    }
    let mut many = array("t", r#""|u1""#, &[4097, 1]);
    assert!(layout(&many).is_ok());
    many.axes[0].kind = AxisKind::Channel;
    assert!(layout(&many).is_err());
}
