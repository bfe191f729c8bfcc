//! Compares files with bytes that are spelled by hand, and with what a reader finds.

mod large;
mod properties;
mod reader;

use super::*;
use crate::dtype::FillValue;
use crate::plain::Array;
use crate::plain::testing::{array, attributes, check_slices, strings, whole};
use reader::File;

/// An array whose dimensions have names (`""`: none).
fn named(name: &str, typestr: &str, shape: &[u64], dimensions: &[&str]) -> Array {
    let mut array = array(name, typestr, shape);
    array.dimension_names = dimensions
        .iter()
        .map(|name| (!name.is_empty()).then(|| (*name).to_owned()))
        .collect();
    array
}

fn group(arrays: Vec<Array>) -> Group {
    let mut group = Group {
        name: "g".to_owned(),
        arrays,
        ..Group::default()
    };
    for (id, array) in group.arrays.iter_mut().enumerate() {
        array.id = id;
    }
    group
}

fn unlimited(name: &str) -> Options {
    Options {
        unlimited: Some(name.to_owned()),
        ..Options::default()
    }
}

/// The file of the group, whose arrays have these elements, and its header.
fn made(
    group: &Group,
    version: Cdf,
    options: &Options,
    elements: &[Vec<u8>],
) -> (Vec<u8>, File, GroupFile) {
    let made = classic_file(group, version, options).unwrap();
    let elements = elements.iter().map(Vec::as_slice);
    let arrays: Vec<(&Array, &[u8])> = group.arrays.iter().zip(elements).collect();
    let bytes = whole(&made.layout, &arrays);
    check_slices(&made.layout, &arrays);
    let header = File::parse(&bytes);
    (bytes, header, made)
}

/// Words and texts of a header, each padded to 4 bytes.
fn spelled(parts: &[&dyn std::fmt::Debug], wide: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        let part = format!("{part:?}");
        if let Some(text) = part.strip_prefix('"') {
            bytes.extend_from_slice(text.trim_end_matches('"').as_bytes());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        } else if let Some(word) = part.strip_prefix("Word(") {
            let word: u32 = word.trim_end_matches(')').parse().unwrap();
            bytes.extend_from_slice(&word.to_be_bytes());
        } else {
            let number: u64 = part.parse().unwrap();
            let number = number.to_be_bytes();
            bytes.extend_from_slice(if wide { &number } else { &number[4..] });
        }
    }
    bytes
}

/// Four bytes in every version.
#[derive(Debug)]
struct Word(#[expect(dead_code, reason = "read by Debug")] u32);

#[test]
fn a_small_file_byte_by_byte() {
    let mut x = named("x", "\"<i4\"", &[2], &["x"]);
    x.attributes = attributes(r#"{"units": "m"}"#);
    let mut group = group(vec![x]);
    group.attributes = attributes(r#"{"title": "t", "n": 7}"#);
    let elements = vec![vec![1, 0, 0, 0, 2, 0, 0, 0]];
    for (version, number, wide) in [(Cdf::Two, 2, false), (Cdf::Five, 5, true)] {
        let (bytes, header, _) = made(&group, version, &Options::default(), &elements);
        let mut expected = vec![b'C', b'D', b'F', number];
        let parts: [&dyn std::fmt::Debug; 40] = [
            &0, // records
            &Word(10),
            &1,
            &1,
            &"x",
            &2, // dimensions
            &Word(12),
            &2,
            &5,
            &"title",
            &Word(2),
            &1,
            &"t", // global attributes
            &1,
            &"n",
            &Word(4),
            &1,
            &Word(7), //
            &Word(11),
            &1,
            &1,
            &"x",
            &1,
            &0, // variables: name, rank, dimension
            &Word(12),
            &1,
            &5,
            &"units",
            &Word(2),
            &1,
            &"m", //
            &Word(4),
            &8,
            &Word(0),
            &Word(4096), // type, bytes, begin
            &"",
            &"",
            &"",
            &"",
            &"",
        ];
        expected.extend(spelled(&parts, wide));
        assert_eq!(header.header_len, expected.len());
        expected.resize(4096, 0);
        expected.extend([0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(bytes, expected);
    }
}

#[test]
fn a_group_without_arrays_is_a_header() {
    let mut group = group(vec![]);
    group.omitted.push(Omitted {
        name: "sub/a".to_owned(),
        reason: FileFormat::Nc.refused("data type", "x"),
    });
    let (bytes, header, made) = made(&group, Cdf::Two, &Options::default(), &[]);
    assert_eq!(header.header_len, bytes.len());
    assert_eq!(made.omitted, group.omitted);
    assert_eq!(header.attributes[0].name, "zarr_omitted");
    let text = "sub/a: data type: `x` cannot be expressed in NetCDF";
    assert_eq!(header.attributes[0].bytes, text.as_bytes());
}

#[test]
fn omissions_are_named() {
    let refused = |typestr: &str| {
        let whole = group(vec![array("a", typestr, &[2]), array("b", "\"<i2\"", &[2])]);
        let file = classic_file(&whole, Cdf::Two, &Options::default()).unwrap();
        assert_eq!(file.omitted.len(), 1, "{typestr}");
        let alone = group(vec![array("a", typestr, &[2])]);
        let error = super::classic_file(&alone, Cdf::Five, &Options::default()).unwrap_err();
        (file.omitted[0].reason.to_string(), error.to_string())
    };
    for typestr in [
        "\"<f2\"",
        "\"|V4\"",
        "[[\"a\", \"<i4\"]]",
        "\"<M8[W]\"",
        "\"<M8[25s]\"",
        "\"<U16385\"",
    ] {
        let (reason, alone) = refused(typestr);
        assert!(reason.starts_with("data type: `"), "{reason}");
        assert_eq!(alone, format!("a.{reason}"));
    }
    let text = group(vec![array("a", "\"<U16384\"", &[2])]);
    assert!(classic_file(&text, Cdf::Two, &Options::default()).is_ok());
}

#[test]
fn attributes_have_the_type_of_the_variable() {
    let mut small = array("u", "\"<u2\"", &[1]);
    small.attributes = attributes(
        r#"{"valid_range": [0, 65535], "wide": 5000000000, "loss": [9007199254740993],
            "_Unsigned": "no", "a/b": "1", "a_b": "2"}"#,
    );
    small.fill_is_missing = true;
    small.fill_value = FillValue::new(vec![0xfe, 0xff], true);
    let flag = array("flag", "\"|b1\"", &[1]);
    let text = array("text", "\"|S3\"", &[1]);
    let mut latin = array("latin", "\"|S3\"", &[1]);
    latin.attributes = attributes(r#"{"_Encoding": "latin-1"}"#);
    let group = group(vec![small, flag, text, latin]);
    let elements = vec![vec![1, 0], vec![3], b"ab\0".to_vec(), vec![0xe9, 0, 0]];
    let of = |version| {
        let (bytes, header, _) = made(&group, version, &Options::default(), &elements);
        let list = |name: &str| -> Vec<(String, u32, Vec<u8>)> {
            let found = header.variable(name).attributes.iter();
            found
                .map(|a| (a.name.clone(), a.kind, a.bytes.clone()))
                .collect()
        };
        let lists = ["u", "flag", "text", "latin"].map(list);
        let kinds: Vec<u32> = header.variables.iter().map(|v| v.kind).collect();
        assert_eq!(
            header.values(&bytes, header.variable("flag")),
            [1],
            "3 is true"
        );
        assert_eq!(header.values(&bytes, header.variable("text")), b"ab\0");
        (kinds, lists)
    };
    let said = |name: &str, kind, bytes: &[u8]| (name.to_owned(), kind, bytes.to_vec());
    let (kinds, [u, flag, text, latin]) = of(Cdf::Two);
    assert_eq!(kinds, [3, 1, 2, 2]);
    let expected = [
        said("valid_range", 3, &[0, 0, 255, 255]),
        said("wide", 6, &5e9_f64.to_be_bytes()),
        said("loss", 2, b"9007199254740993"),
        said("_Unsigned", 2, b"true"),
        said("a_b", 2, b"1"),
        said("a_b_2", 2, b"2"),
        said("_FillValue", 3, &[255, 254]),
    ];
    assert_eq!(u, expected);
    assert_eq!(flag, [said("dtype", 2, b"bool")]);
    assert_eq!(text, [said("_Encoding", 2, b"utf-8")]);
    assert_eq!(latin, [said("_Encoding", 2, b"latin-1")]);
    let (kinds, [u, ..]) = of(Cdf::Five);
    assert_eq!(kinds, [8, 7, 2, 2]);
    assert_eq!(u[0], said("valid_range", 8, &[0, 0, 255, 255]));
    assert_eq!(u[1], said("wide", 10, &5_000_000_000_i64.to_be_bytes()));
    assert_eq!(
        u[2],
        said("loss", 10, &9_007_199_254_740_993_i64.to_be_bytes())
    );
    assert_eq!(u[3], said("_Unsigned", 2, b"no"), "as it is stored");
}

#[test]
fn single_bytes_are_chars() {
    let mut times = named("Times", "\"|S1\"", &[2, 3], &["Time", "DateStrLen"]);
    let elements = vec![b"abcdef".to_vec()];
    for (stored, said) in [
        ("{}", &[][..]),
        (r#"{"_Encoding": "ascii"}"#, &b"ascii"[..]),
    ] {
        times.attributes = attributes(stored);
        let whole = group(vec![times.clone()]);
        for version in [Cdf::Two, Cdf::Five] {
            let (bytes, header, _) = made(&whole, version, &Options::default(), &elements);
            let variable = header.variable("Times");
            assert_eq!((variable.kind, variable.dimensions.len()), (2, 2));
            assert_eq!(header.values(&bytes, variable), b"abcdef");
            let found = variable.attributes.iter().flat_map(|a| a.bytes.clone());
            assert_eq!(found.collect::<Vec<u8>>(), said);
        }
    }
}

#[test]
fn unsigned_elements_may_stand_for_signed_numbers() {
    let mut bytes = array("u", "\"|u1\"", &[1]);
    bytes.attributes = attributes(r#"{"_Unsigned": "false"}"#);
    let (_, header, _) = made(
        &group(vec![bytes]),
        Cdf::Two,
        &Options::default(),
        &[vec![200]],
    );
    let found = &header.variable("u").attributes;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].name, &*found[0].bytes),
        ("_Unsigned", &b"false"[..])
    );
}

#[test]
fn text_and_pairs_have_one_more_dimension() {
    let group = group(vec![
        array("c", "\"<c8\"", &[2]),
        array("u", "\"<U2\"", &[1]),
        array("d", "\"<M8[h]\"", &[]),
    ]);
    let unicode = ['é', '日'].map(|c| u32::from(c).to_le_bytes()).concat();
    let elements = vec![(0..16).collect(), unicode, vec![1, 2, 3, 4, 5, 6, 7, 8]];
    let (bytes, header, _) = made(&group, Cdf::Two, &Options::default(), &elements);
    assert_eq!(header.version, 5, "dates are of 64 bits");
    let names: Vec<&str> = header
        .dimensions
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["dim_2", "ri", "dim_1", "string8"]);
    let complex = header.variable("c");
    assert_eq!((header.shape(complex), complex.kind), (vec![2, 2], 5));
    let swapped = [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12];
    assert_eq!(header.values(&bytes, complex), swapped);
    let text = header.variable("u");
    assert_eq!((header.shape(text), text.kind), (vec![1, 8], 2));
    assert_eq!(header.values(&bytes, text), "é日\0\0\0".as_bytes());
    let date = header.variable("d");
    assert_eq!((header.shape(date), date.kind), (vec![], 10));
    assert_eq!(header.values(&bytes, date), [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(date.attributes[0].bytes, b"hours since 1970-01-01");
}

/// The first bytes of a file of the format `nc`, and the names of its omissions.
fn magic(group: &Group, options: &Options) -> (Vec<u8>, Vec<String>) {
    let made = file(group, options).unwrap();
    let mut start = vec![0; 4];
    made.layout.plan(0, 4).fill(&made.layout, &mut start);
    let omitted = made.omitted.into_iter().map(|omitted| omitted.name);
    (start, omitted.collect())
}

#[test]
fn groups_that_do_not_fit_cdf2_become_netcdf4() {
    let int = || named("i", "\"<i4\"", &[2], &["x"]);
    let classic = (b"CDF\x02".to_vec(), vec![]);
    let hdf5 = (b"\x89HDF".to_vec(), vec![]);
    let default = Options::default();
    assert_eq!(magic(&group(vec![int()]), &default), classic);
    for other in ["\"<i8\"", "\"<M8[ns]\"", r#"[["a", "<i4"]]"#] {
        let whole = group(vec![int(), named("o", other, &[2], &["x"])]);
        assert_eq!(magic(&whole, &default), hdf5, "{other}");
    }
    // Neither of them can hold float16.
    let whole = group(vec![int(), named("o", "\"<f2\"", &[2], &["x"])]);
    let (magic_bytes, omitted) = magic(&whole, &default);
    assert_eq!((magic_bytes, omitted), (classic.0, vec!["o".to_owned()]));
    let records = Options {
        unlimited: Some("x".to_owned()),
        ..Options::default()
    };
    let whole = group(vec![int(), named("o", "\"<i8\"", &[2], &["x"])]);
    assert_eq!(magic(&whole, &records).0, b"CDF\x05");
    // A group without that dimension has no records.
    assert_eq!(magic(&whole, &unlimited("t")), hdf5);
}

#[test]
fn strings_are_chars_as_wide_as_the_longest() {
    let text = strings(0, "s", &["a", "", "zoë"]);
    let (bytes, header, made) = made(
        &group(vec![text]),
        Cdf::Two,
        &Options::default(),
        &[Vec::new()],
    );
    assert!(made.omitted.is_empty());
    let variable = header.variable("s");
    assert_eq!(header.shape(variable), [3, 4]);
    let values = header.values(&bytes, variable);
    assert_eq!(values, [&b"a\0\0\0\0\0\0\0"[..], "zoë".as_bytes()].concat());
    // Each string is padded to the longest, and together they exceed the 4 MiB that may be in
    // memory.
    let long = "x".repeat(50_000);
    let mut many = vec![""; 60];
    many.push(&long);
    let one = group(vec![strings(0, "s", &many)]);
    assert_eq!(magic(&one, &Options::default()).0, b"CDF\x02");
    let two = vec![strings(0, "s", &many), strings(1, "t", &many)];
    assert_eq!(magic(&group(two), &Options::default()).0, b"\x89HDF");
    let wide = group(vec![strings(0, "s", &[&many[..], &many[..]].concat())]);
    assert_eq!(magic(&wide, &Options::default()).0, b"\x89HDF");
    let classic = classic_file(&wide, Cdf::Five, &Options::default());
    assert!(classic.is_err(), "the only array is omitted");
    // Along the record dimension they would be spread over the file.
    let records = Options {
        unlimited: Some("s".to_owned()),
        ..Options::default()
    };
    let other = named("o", "\"<i4\"", &[1], &["s"]);
    let along = group(vec![strings(0, "s", &["a"]), other]);
    let (start, omitted) = magic(&along, &records);
    assert_eq!(
        (start, omitted),
        (b"CDF\x02".to_vec(), vec!["s".to_owned()])
    );
}
