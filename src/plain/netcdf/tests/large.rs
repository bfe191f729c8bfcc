//! Arrays that are too large for CDF-2, for a header or for any file: by arithmetic alone.

use super::*;
use crate::plain::PartContent;

/// Version, record dimension, names in order, bytes.
fn outline(made: &GroupFile) -> (u8, Option<String>, Vec<String>, u64) {
    let PartContent::Bytes(header) = &made.layout.parts()[0].content else {
        panic!("the header is first");
    };
    let header = File::parse(header);
    let record = header.dimensions.iter().find(|(_, length)| *length == 0);
    let names = header.variables.iter().map(|v| v.name.clone()).collect();
    let record = record.map(|(name, _)| name.clone());
    (header.version, record, names, made.layout.len())
}

fn of(arrays: Vec<Array>) -> (u8, Option<String>, Vec<String>, u64) {
    let made = classic_file(&group(arrays), Cdf::Two, &Options::default()).unwrap();
    assert_eq!(made.omitted, []);
    outline(&made)
}

const MOST: u64 = (1 << 32) - 4;

fn time() -> Array {
    named("t", "\"<f8\"", &[5], &["t"])
}

#[test]
fn one_that_is_too_large_is_last() {
    let fits = named("a", "\"|u1\"", &[MOST / 4, 4], &["p", "q"]);
    let large = named("a", "\"|u1\"", &[MOST / 4 + 1, 4], &["p", "q"]);
    let small = named("b", "\"<i2\"", &[3], &["r"]);
    let (version, record, names, len) = of(vec![fits, small.clone(), time()]);
    assert_eq!((version, record), (2, None));
    assert_eq!(names, ["t", "a", "b"]);
    assert_eq!(len, 8192 + (1 << 32) + 8);
    let (version, record, names, len) = of(vec![large, small, time()]);
    assert_eq!((version, record), (2, None));
    assert_eq!(names, ["t", "b", "a"]);
    assert_eq!(len, 8192 + (1 << 32));
}

#[test]
fn several_that_are_too_large_become_records() {
    // 5 records of 2 GiB, 4 GiB and 8 bytes.
    let short = named("b", "\"<i2\"", &[5, 1 << 15, 1 << 15], &["t", "y", "x"]);
    let float = named("a", "\"<f4\"", &[5, 1 << 15, 1 << 15], &["t", "y", "x"]);
    let square = named("s", "\"|i1\"", &[5, 5], &["t", "t"]);
    let arrays = vec![float.clone(), short.clone(), square, time()];
    let (version, record, names, len) = of(arrays);
    assert_eq!((version, record.as_deref()), (2, Some("t")));
    assert_eq!(
        names,
        ["t", "b", "s", "a"],
        "4 GiB in a record is too large: last"
    );
    assert_eq!(len, 4096 + 5 * (8 + (1 << 31) + 8 + (1 << 32)));
    // Two records that are too large: CDF-5, with no need of records.
    let double = named("d", "\"<f8\"", &[5, 1 << 15, 1 << 15], &["t", "y", "x"]);
    let (version, record, ..) = of(vec![float.clone(), double, time()]);
    assert_eq!((version, record), (5, None));
    // No first dimension in common.
    let other = named("o", "\"<f4\"", &[6, 1 << 15, 1 << 15], &["t", "y", "x"]);
    let (version, record, ..) = of(vec![float.clone(), other, time()]);
    assert_eq!((version, record), (5, None));
    // One without length takes the record dimension.
    let none = named("none", "\"<f4\"", &[0], &["n"]);
    let (version, record, ..) = of(vec![float, none]);
    assert_eq!((version, record.as_deref()), (5, Some("n")));
}

#[test]
fn lengths_of_32_bits_take_cdf5() {
    let long = |len| of(vec![named("a", "\"|u1\"", &[len], &["x"])]).0;
    assert_eq!((long((1 << 31) - 1), long(1 << 31)), (2, 5));
}

#[test]
fn a_dimension_is_unlimited_on_request() {
    let arrays = vec![
        named("a", "\"|u1\"", &[5, 3], &["t", "y"]),
        named("b", "\"|u1\"", &[4, 3], &["t", "y"]),
        named("c", "\"|u1\"", &[3, 5], &["y", "t"]),
        time(),
    ];
    let group = group(arrays);
    let made = classic_file(&group, Cdf::Two, &unlimited("t")).unwrap();
    let (version, record, names, len) = outline(&made);
    assert_eq!((version, record.as_deref()), (2, Some("t")));
    assert_eq!(names, ["t", "a", "b", "c"]);
    // The fixed variables have 12 and 15 bytes, each in 16; 5 records of 8 and 3 bytes follow.
    assert_eq!(len, 4096 + 16 + 16 + 5 * 12);
    let PartContent::Bytes(header) = &made.layout.parts()[0].content else {
        panic!("the header is first");
    };
    let header = File::parse(header);
    let dimensions: Vec<_> = header
        .dimensions
        .iter()
        .map(|(n, l)| (n.as_str(), *l))
        .collect();
    assert_eq!(dimensions, [("t", 0), ("y", 3), ("t_4", 4), ("t_5", 5)]);
    // A dimension that is unknown, or first in no array, does not become the record dimension.
    for name in ["z", "x"] {
        let made = classic_file(&group, Cdf::Two, &unlimited(name)).unwrap();
        assert_eq!(outline(&made).1, None);
    }
}

#[test]
fn dimensions_are_limited() {
    let many: Vec<Array> = (0..1030)
        .map(|i| named(&format!("v{i:04}"), "\"|u1\"", &[1 + i], &[""]))
        .collect();
    let made = classic_file(&group(many), Cdf::Two, &Options::default()).unwrap();
    let left: Vec<&str> = made.omitted.iter().map(|left| left.name.as_str()).collect();
    assert_eq!(left, ["v1024", "v1025", "v1026", "v1027", "v1028", "v1029"]);
    let reason = made.omitted[0].reason.to_string();
    assert!(
        reason.starts_with("dimensions: `more than 1024"),
        "{reason}"
    );
}

#[test]
fn groups_too_large_for_a_header_or_a_file_are_refused() {
    let large = |arrays| {
        let error = classic_file(&group(arrays), Cdf::Two, &Options::default());
        matches!(error, Err(FormatError::TooLarge { .. }))
    };
    let half = |name| named(name, "\"<f8\"", &[1 << 59], &["x"]);
    assert!(!large(vec![half("a")]));
    assert!(large(vec![half("a"), half("b")]));
    let text = format!("{{\"text\": \"{}\"}}", "x".repeat(3 << 20));
    let wordy = |n: usize| {
        let words = (0..n).map(|i| {
            let mut array = named(&format!("v{i}"), "\"|u1\"", &[], &[]);
            array.attributes = attributes(&text);
            array
        });
        words.collect::<Vec<_>>()
    };
    assert!(!large(wordy(21)));
    assert!(large(wordy(22)));
    // No product of lengths may wrap round, and no zero hides it.
    let none = named("none", "\"<f8\"", &[0, 1 << 40, 1 << 40], &["", "", ""]);
    let mut whole = group(vec![none, time()]);
    whole.arrays[0].attributes = attributes("{}");
    let made = classic_file(&whole, Cdf::Five, &Options::default()).unwrap();
    assert_eq!(made.omitted.len(), 1);
}
