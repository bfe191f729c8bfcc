//! Directories against the `BigTIFF` layout.

use super::super::testing::{array, attributes, check_slices, counting, read, whole};
use super::super::{Array, AxisKind, Channel};
use super::*;

fn image(typestr: &str, shape: &[u64], names: &str) -> Array {
    let mut array = array("a<b", &format!("\"{typestr}\""), shape);
    for (axis, name) in array.axes.iter_mut().zip(names.chars()) {
        axis.kind = match name {
            't' => AxisKind::Time,
            'c' => AxisKind::Channel,
            _ => AxisKind::Space,
        };
    }
    array
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let digits = bytes[at..at + len].iter().rev();
    digits.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// Tag, type, count and value of each entry of the directory at `at`; the next directory.
fn directory(file: &[u8], at: usize) -> (Vec<[u64; 4]>, usize) {
    let n = index(number(file, at, 8));
    let entry = |i| {
        let at = at + 8 + 20 * i;
        [(0, 2), (2, 2), (4, 8), (12, 8)].map(|(skip, len)| number(file, at + skip, len))
    };
    let next = index(number(file, at + 8 + 20 * n, 8));
    ((0..n).map(entry).collect(), next)
}

#[test]
fn a_directory_for_each_plane() {
    let array = image("<f8", &[2, 3, 5, 6], "tcyx");
    let bytes = counting(&array, 3);
    let layout = layout(&array).unwrap();
    let file = whole(&layout, &[(&array, &bytes)]);
    assert_eq!(&file[..16], b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0");
    let (first, second) = directory(&file, 16);
    assert_eq!(second, 16 + 256);
    let [_, kind, count, at] = *first.iter().find(|entry| entry[0] == 270).unwrap();
    assert_eq!((kind, at), (2, 16 + 256 + 5 * 236));
    let payload = (at + count).next_multiple_of(4096);
    let mut at = 16;
    for plane in 0..6 {
        let (entries, next) = directory(&file, at);
        let expected = [
            [254, 4, 1, 0],
            [256, 4, 1, 6],
            [257, 4, 1, 5],
            [258, 3, 1, 64],
            [259, 3, 1, 1],
            [262, 3, 1, 1],
            [273, 16, 1, payload + 240 * plane],
            [277, 3, 1, 1],
            [278, 4, 1, 5],
            [279, 16, 1, 240],
            [339, 3, 1, 3],
        ];
        let own: Vec<_> = entries
            .into_iter()
            .filter(|entry| entry[0] != 270)
            .collect();
        assert_eq!(own, expected);
        at = next;
    }
    assert_eq!(at, 0);
    assert_eq!(file[index(payload)..], bytes);
    check_slices(&layout, &[(&array, &bytes)]);
}

fn xml_of(array: &Array) -> String {
    let bytes = counting(array, 0);
    let file = whole(&layout(array).unwrap(), &[(array, &bytes)]);
    let (entries, _) = directory(&file, 16);
    let [_, _, count, at] = *entries.iter().find(|entry| entry[0] == 270).unwrap();
    let text = &file[index(at)..index(at + count - 1)];
    assert_eq!(file[index(at + count - 1)], 0);
    String::from_utf8(text.to_vec()).unwrap()
}

#[test]
fn the_xml_tells_sizes_and_order() {
    let mut array = image("<u2", &[2, 3, 4, 5, 6], "ctzyx");
    let sizes = [
        (1.0, None, None),
        (1.5, Some("second"), None),
        (2.0, Some("micrometer"), Some(-7.5)),
        (65.0, Some("nanometer"), None),
        (65.0, None, None),
    ];
    for (axis, (spacing, unit, origin)) in array.axes.iter_mut().zip(sizes) {
        axis.spacing = Some(spacing);
        axis.unit = unit.map(str::to_owned);
        axis.origin = origin;
    }
    array.attributes = attributes(r#"{"k<": "a & b", "n": [1, null]}"#);
    let xml = xml_of(&array);
    for part in [
        r#"<Image ID="Image:0" Name="a&lt;b">"#,
        r#" DimensionOrder="XYZTC" Type="uint16" BigEndian="false" "#,
        r#" SizeX="6" SizeY="5" SizeZ="4" SizeC="2" SizeT="3" "#,
        r#" PhysicalSizeX="65.0" PhysicalSizeXUnit="reference frame""#,
        r#" PhysicalSizeY="65.0" PhysicalSizeYUnit="nm""#,
        r#" PhysicalSizeZ="2.0" PhysicalSizeZUnit="µm""#,
        r#" TimeIncrement="1.5" TimeIncrementUnit="s">"#,
        r#"<Channel ID="Channel:0:1" SamplesPerPixel="1"/>"#,
        r#"<TiffData IFD="0" PlaneCount="24"/>"#,
        r#"<Plane TheZ="0" TheC="0" TheT="0" PositionZ="-7.5" PositionZUnit="µm"/>"#,
        r#"<M K="k&lt;">a &amp; b</M>"#,
        r#"<M K="n">[1,null]</M>"#,
    ] {
        assert!(xml.contains(part), "{part}\n{xml}");
    }
    for (names, shape, order) in [
        ("yx", &[5, 6][..], "XYZCT"),
        ("cyx", &[3, 5, 6], "XYCZT"),
        ("tyx", &[3, 5, 6], "XYTZC"),
        ("tczyx", &[2, 3, 4, 5, 6], "XYZCT"),
        ("tzcyx", &[2, 3, 4, 5, 6], "XYCZT"),
    ] {
        let xml = xml_of(&image("|u1", shape, names));
        let part = format!(r#"DimensionOrder="{order}""#);
        assert!(xml.contains(&part), "{names}\n{xml}");
        assert!(!xml.contains("Annotation") && !xml.contains("PhysicalSize"));
    }
}

#[test]
fn units_that_ome_lacks_are_named() {
    let mut array = image("<u2", &[2, 3, 4, 5], "tzyx");
    for (axis, unit) in array.axes.iter_mut().zip(["frame", "pixel", "bogus", "um"]) {
        axis.spacing = Some(0.5);
        axis.unit = Some(unit.to_owned());
    }
    let xml = xml_of(&array);
    for part in [
        r#" PhysicalSizeX="0.5" PhysicalSizeXUnit="µm""#,
        r#" PhysicalSizeY="0.5" PhysicalSizeYUnit="reference frame""#,
        r#" PhysicalSizeZ="0.5" PhysicalSizeZUnit="pixel""#,
        r#"<M K="zarr_omitted">a&lt;b:Y: unit: `bogus` cannot be expressed in OME-TIFF&#10;a&lt;b:T: unit: `frame` cannot"#,
    ] {
        assert!(xml.contains(part), "{part}\n{xml}");
    }
    assert!(!xml.contains("TimeIncrement"), "{xml}");
    // A unit without a size says nothing.
    array.axes[2].spacing = None;
    assert!(!xml_of(&array).contains("bogus"));
}

#[test]
fn the_xml_has_the_image_and_its_channels() {
    let mut array = image("<u2", &[2, 4, 5], "cyx");
    array.image = Some("cells & more".to_owned());
    array.axes[0].channels = vec![
        Channel {
            label: Some("<DAPI>".to_owned()),
            color: Some([0, 0, 255]),
            window: Some([0.0, 1.0]),
        },
        Channel {
            color: Some([255, 0, 1]),
            ..Channel::default()
        },
    ];
    let xml = xml_of(&array);
    for part in [
        r#"<Image ID="Image:0" Name="cells &amp; more">"#,
        r#"<Channel ID="Channel:0:0" Name="&lt;DAPI&gt;" Color="65535" SamplesPerPixel="1"/>"#,
        r#"<Channel ID="Channel:0:1" Color="-16776705" SamplesPerPixel="1"/>"#,
    ] {
        assert!(xml.contains(part), "{part}\n{xml}");
    }
}

#[test]
fn types_of_the_model() {
    let cases = [
        ("|b1", "uint8"),
        ("|i1", "int8"),
        ("<u4", "uint32"),
        ("<f4", "float"),
        ("<f8", "double"),
        ("<c8", "complex"),
        ("<c16", "double-complex"),
    ];
    for (typestr, name) in cases {
        let xml = xml_of(&image(typestr, &[2, 2], "yx"));
        assert!(xml.contains(&format!(r#"Type="{name}""#)), "{typestr}");
    }
    for typestr in ["<i8", "<u8", "<f2", "<M8[s]", "<U2"] {
        let refused = layout(&image(typestr, &[2, 2], "yx"))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("data type") && refused.contains("OME"),
            "{refused}"
        );
    }
}

#[test]
fn a_million_planes_take_no_memory() {
    let array = image("<u2", &[1000, 1000, 2000, 2000], "tcyx");
    let layout = layout(&array).unwrap();
    assert!(layout.memory_bytes() < 1 << 20);
    let plane = 8_000_000;
    assert!(layout.len() > plane * 1_000_000 + 236_000_000);
    let payload = layout.len() - plane * 1_000_000;
    for plane_index in [1, 2, 77_777, 999_999_u64] {
        let at = 16 + 256 + 236 * (plane_index - 1);
        let whole = read(&layout, &[], at, 236);
        let (entries, next) = directory(&whole, 0);
        let strip = entries.iter().find(|entry| entry[0] == 273).unwrap();
        assert_eq!(strip[3], payload + plane_index * plane);
        let expected = if plane_index == 999_999 { 0 } else { at + 236 };
        assert_eq!(next as u64, expected);
        // A read may begin in the directory before, and end anywhere.
        let around = read(&layout, &[], at - 5, 100);
        assert_eq!(around[5..], whole[..95]);
    }
    assert!(super::layout(&image("|u1", &[1 << 31, 1, 1], "zyx")).is_err());
    assert!(super::layout(&image("|u1", &[1, 1 << 31], "yx")).is_err());
    assert!(super::layout(&image("|u1", &[u64::MAX; 5], "tczyx")).is_err());
}
