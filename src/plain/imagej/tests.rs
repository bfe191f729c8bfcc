//! Headers against TIFF 6.0, and planes in the order that `ImageJ` has them.

use super::super::testing::{array, check_slices, counting, whole};
use super::super::{Array, AxisKind, Channel};
use super::*;

fn image(typestr: &str, shape: &[u64], names: &str) -> Array {
    let mut array = array("a", &format!("\"{typestr}\""), shape);
    for (axis, name) in array.axes.iter_mut().zip(names.chars()) {
        axis.kind = match name {
            't' => AxisKind::Time,
            'c' => AxisKind::Channel,
            _ => AxisKind::Space,
        };
    }
    array
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

/// Tag, type, count and value of each entry.
fn entries(file: &[u8]) -> Vec<(u16, u16, u32, u32)> {
    assert_eq!(&file[..8], b"II\x2a\0\x08\0\0\0");
    let n = usize::from(u16_at(file, 8));
    assert_eq!(u32_at(file, 10 + 12 * n), 0, "no next directory");
    let entry = |i| {
        let at = 10 + 12 * i;
        let value = u32_at(file, at + 8);
        (
            u16_at(file, at),
            u16_at(file, at + 2),
            u32_at(file, at + 4),
            value,
        )
    };
    (0..n).map(entry).collect()
}

fn text(file: &[u8]) -> String {
    let entry = entries(file)
        .into_iter()
        .find(|entry| entry.0 == 270)
        .unwrap();
    let [from, len] = [entry.3, entry.2].map(|n| n as usize);
    assert_eq!(file[from + len - 1], 0);
    String::from_utf8(file[from..from + len - 1].to_vec()).unwrap()
}

#[test]
fn one_directory_tells_of_all_planes() {
    let array = image("<i2", &[2, 3, 4, 5, 6], "tczyx");
    let bytes = counting(&array, 1);
    let layout = layout(&array).unwrap();
    let file = whole(&layout, &[(&array, &bytes)]);
    assert_eq!(file.len(), 4096 + bytes.len());
    let expected = [
        (254, 4, 1, 0),
        (256, 4, 1, 6),
        (257, 4, 1, 5),
        (258, 3, 1, 16),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (270, 2, 95, 170),
        (273, 4, 1, 4096),
        (277, 3, 1, 1),
        (278, 4, 1, 5),
        (279, 4, 1, 60),
        (296, 3, 1, 1),
        (339, 3, 1, 2),
    ];
    assert_eq!(entries(&file), expected);
    let expected = "ImageJ=1.54f\nimages=24\nchannels=3\nslices=4\nframes=2\nhyperstack=true\nmode=grayscale\nloop=false\n";
    assert_eq!(text(&file), expected);
    for plane in 0..24 {
        let (t, z, c) = (plane / 12, plane % 12 / 3, plane % 3);
        let of_array = (t * 3 + c) * 4 + z;
        let at = 4096 + 60 * plane;
        assert_eq!(file[at..at + 60], bytes[60 * of_array..60 * of_array + 60]);
    }
    check_slices(&layout, &[(&array, &bytes)]);
}

#[test]
fn sizes_are_pixels_per_unit() {
    let mut array = image("<f4", &[2, 3, 4, 5], "tzyx");
    let sizes = [
        (0.5, "minute", None),
        (2000.0, "nanometer", Some(3000.0)),
        (0.36, "micrometer", Some(3.6)),
        (0.325, "micrometer", None),
    ];
    for (axis, (spacing, unit, origin)) in array.axes.iter_mut().zip(sizes) {
        axis.spacing = Some(spacing);
        axis.unit = Some(unit.to_owned());
        axis.origin = origin;
    }
    let bytes = counting(&array, 0);
    let file = whole(&layout(&array).unwrap(), &[(&array, &bytes)]);
    let entries = entries(&file);
    assert_eq!(entries.len(), 15);
    let resolution = |tag| entries.iter().find(|entry| entry.0 == tag).unwrap();
    for (tag, expected) in [(282, [40, 13]), (283, [25, 9])] {
        let &(_, kind, count, at) = resolution(tag);
        assert_eq!((kind, count, at % 2), (5, 1, 0));
        assert_eq!([0, 4].map(|i| u32_at(&file, at as usize + i)), expected);
    }
    let text = text(&file);
    let lines = "\nunit=micron\nspacing=2.0\nfinterval=30.0\nyorigin=-10.0\nzorigin=-1.5\nloop=";
    assert!(text.contains(lines), "{text}");
    // Readers would take an unknown size of z for 1 micron.
    let mut partly = array.clone();
    partly.axes[1].spacing = None;
    let file = whole(&layout(&partly).unwrap(), &[(&partly, &bytes)]);
    assert!(!super::tests::text(&file).contains("unit="));
    // Lengths in units that no factor relates have no common unit.
    array.axes[2].unit = Some("pixel".to_owned());
    let file = whole(&layout(&array).unwrap(), &[(&array, &bytes)]);
    assert!(!super::tests::text(&file).contains("unit="));
    assert_eq!(super::tests::entries(&file).len(), 13);
}

/// An image of channels of these names, colours and windows.
fn of_channels(typestr: &str, shape: &[u64], channels: &[(&str, [u8; 3], [f64; 2])]) -> Array {
    let mut array = image(typestr, shape, "czyx");
    let channels = channels.iter().map(|(label, color, window)| Channel {
        label: Some((*label).to_owned()),
        color: Some(*color),
        window: Some(*window),
    });
    array.axes[0].channels = channels.collect();
    array
}

const CHANNELS: [(&str, [u8; 3], [f64; 2]); 2] = [
    ("é", [0, 0, 255], [1.0, 2.5]),
    ("GFP", [100, 255, 0], [0.0, 9.0]),
];

#[test]
fn channels_have_labels_ranges_and_tables_of_colours() {
    let array = of_channels("<u2", &[2, 3, 4, 5], &CHANNELS);
    let bytes = counting(&array, 1);
    let layout = layout(&array).unwrap();
    let file = whole(&layout, &[(&array, &bytes)]);
    let all = entries(&file);
    let of = |tag| all.iter().find(|entry| entry.0 == tag).unwrap();
    let &(_, kind, n_lengths, lengths_at) = of(50838);
    let &(_, metadata_kind, n_bytes, metadata_at) = of(50839);
    assert_eq!((kind, metadata_kind), (4, 1));
    let lengths = (0..n_lengths as usize).map(|i| u32_at(&file, lengths_at as usize + 4 * i));
    let lengths: Vec<u32> = lengths.collect();
    assert_eq!(lengths, [28, 2, 6, 2, 6, 2, 6, 32, 768, 768]);
    assert_eq!(lengths.iter().sum::<u32>(), n_bytes);
    let metadata = &file[metadata_at as usize..][..n_bytes as usize];
    let kinds = b"JIJIlbal\x06\0\0\0gnar\x01\0\0\0stul\x02\0\0\0";
    assert_eq!(&metadata[..28], kinds);
    assert_eq!(&metadata[28..36], b"\xe9\0G\0F\0P\0");
    let ranges = [1.0_f64, 2.5, 0.0, 9.0].map(f64::to_le_bytes).concat();
    assert_eq!(metadata[52..84], ranges);
    let [blue, green] = [84, 84 + 768].map(|at| &metadata[at..at + 768]);
    assert_eq!([blue[255], blue[511], blue[512], blue[767]], [0, 0, 0, 255]);
    assert_eq!([green[128], green[255], green[511]], [50, 100, 255]);
    let description = text(&file);
    assert!(description.contains("\nmode=composite\n"), "{description}");
    assert!(!description.contains("min="), "{description}");
    check_slices(&layout, &[(&array, &bytes)]);
}

#[test]
fn what_imagej_cannot_say_of_channels_is_left_out() {
    let text_of = |array: &Array| {
        let bytes = counting(array, 1);
        let file = whole(&layout(array).unwrap(), &[(array, &bytes)]);
        let has_metadata = entries(&file).iter().any(|entry| entry.0 == 50839);
        (text(&file), has_metadata)
    };
    // A single channel has its range in the description, and a label.
    let (one, has_metadata) = text_of(&of_channels("|u1", &[1, 1, 4, 5], &CHANNELS[..1]));
    assert!(
        one.contains("\nmin=1.0\nmax=2.5\n") && has_metadata,
        "{one}"
    );
    // ImageJ counts signed integers from -32,768.
    let (signed, _) = text_of(&of_channels("<i2", &[1, 1, 4, 5], &CHANNELS[..1]));
    assert!(!signed.contains("min="), "{signed}");
    let mut partly = of_channels("|u1", &[2, 1, 4, 5], &CHANNELS);
    partly.axes[0].channels[1] = Channel::default();
    let (text, has_metadata) = text_of(&partly);
    assert!(text.contains("mode=grayscale") && has_metadata, "{text}");
    partly.axes[0].channels[0] = Channel::default();
    assert!(!text_of(&partly).1);
    let many = [CHANNELS[0]; 8];
    let (text, _) = text_of(&of_channels("|u1", &[8, 1, 4, 5], &many));
    assert!(text.contains("\nmode=color\n"), "{text}");
    // Very many planes have no labels.
    let many = layout(&of_channels("|u1", &[2, 2049, 4, 5], &CHANNELS)).unwrap();
    assert!(many.memory_bytes() < 16 << 10);
}

#[test]
fn truth_values_are_numbers_and_other_types_refused() {
    let array = image("|b1", &[2, 3], "yx");
    let file = whole(&layout(&array).unwrap(), &[(&array, &[0, 1, 2, 255, 0, 7])]);
    assert_eq!(file[4096..], [0, 1, 1, 1, 0, 1]);
    assert!(!text(&file).contains("images"), "one plane is no stack");
    for typestr in ["|i1", "<f2", "<f8", "<c8", "|S2", "<M8[s]"] {
        let refused = layout(&image(typestr, &[2, 3], "yx"))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("data type") && refused.contains("ImageJ"),
            "{refused}"
        );
    }
}

#[test]
fn labels_of_any_width_are_integers_as_they_are() {
    for (typestr, bits, format) in [
        ("<i4", 32, 2),
        (">u4", 32, 1),
        ("<i8", 64, 2),
        ("<u8", 64, 1),
    ] {
        let array = image(typestr, &[4, 2, 3], "zyx");
        let layout = layout(&array).unwrap();
        let bytes = counting(&array, 1);
        let file = whole(&layout, &[(&array, &bytes)]);
        assert_eq!(file[4096..], bytes, "{typestr}");
        let of = |tag| entries(&file).into_iter().find(|entry| entry.0 == tag);
        assert_eq!(of(258), Some((258, 3, 1, bits)), "{typestr}");
        assert_eq!(of(339), Some((339, 3, 1, format)), "{typestr}");
        assert!(text(&file).contains("images=4\n"), "{typestr}");
    }
}

#[test]
fn files_are_longer_than_offsets_but_planes_are_not() {
    let long = image("<u2", &[100, 20_000, 20_000], "zyx");
    assert_eq!(layout(&long).unwrap().len(), 4096 + 80_000_000_000);
    for shape in [[1, 65_536, 32_768], [1 << 31, 1, 1]] {
        let refused = layout(&image("|u1", &shape, "zyx"));
        assert!(
            matches!(refused, Err(FormatError::TooLarge { .. })),
            "{shape:?}"
        );
    }
    assert!(layout(&image("|u1", &[u64::MAX; 5], "tczyx")).is_err());
}
