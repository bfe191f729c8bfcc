mod parser;

use std::collections::BTreeMap;

use super::*;
use crate::dtype::FillValue;
use crate::plain::Array;
use crate::plain::testing::{array, attributes, check_slices, counting, strings, whole};
use parser::{Object, objects, references, texts};

/// An array with names of its dimensions; `id` is its index in the list of all arrays.
fn named(id: usize, name: &str, typestr: &str, shape: &[u64], dimensions: &[&str]) -> Array {
    let mut array = array(name, typestr, shape);
    array.id = id;
    for (to, name) in array.dimension_names.iter_mut().zip(dimensions) {
        *to = Some((*name).to_owned());
    }
    array
}

fn of_arrays(arrays: Vec<Array>) -> Group {
    Group {
        arrays,
        ..Group::default()
    }
}

/// A file, its objects by their paths, and the names of the omitted ones.
type Written = (Vec<u8>, BTreeMap<String, Object>, Vec<String>);

/// Writes the group by the convention of h5py, and reads all of it.
fn written(group: &Group) -> Written {
    written_by(Convention::H5py, group)
}

/// Writes the group, and reads all of it.
fn written_by(convention: Convention, group: &Group) -> Written {
    let mut arrays: Vec<&Array> = Vec::new();
    let mut pending = vec![group];
    while let Some(group) = pending.pop() {
        arrays.extend(&group.arrays);
        pending.extend(&group.groups);
    }
    arrays.sort_by_key(|array| array.id);
    let elements: Vec<Vec<u8>> = arrays
        .iter()
        .map(|array| match array.strings {
            Some(_) => Vec::new(),
            None => counting(array, u8::try_from(array.id).unwrap()),
        })
        .collect();
    let elements: Vec<(&Array, &[u8])> = arrays
        .iter()
        .zip(&elements)
        .map(|(array, bytes)| (*array, bytes.as_slice()))
        .collect();
    let file = file(group, convention).unwrap();
    check_slices(&file.layout, &elements);
    let bytes = whole(&file.layout, &elements);
    let omitted = file.omitted.iter().map(|omitted| omitted.name.clone());
    let found = objects(&bytes);
    (bytes, found, omitted.collect())
}

/// The bytes of an object's data.
fn data<'a>(file: &'a [u8], object: &Object) -> &'a [u8] {
    let (address, len) = object.data.unwrap();
    let at = usize::try_from(address.unwrap()).unwrap();
    &file[at..at + usize::try_from(len).unwrap()]
}

#[test]
fn an_empty_group_is_these_bytes() {
    // Put together by hand; the checksums by another program.
    let mut expected = b"\x89HDF\r\n\x1a\n\x02\x08\x08\0".to_vec();
    for address in [0, u64::MAX, 102, 48] {
        expected.extend(u64::to_le_bytes(address));
    }
    expected.extend([0xab, 0xd8, 0xed, 0xc3]);
    expected.extend(b"OHDR\x02\x06\x28\0\0\0");
    expected.extend([2, 26, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([255; 16]);
    expected.extend([10, 2, 0, 0, 0, 0, 0, 0]);
    expected.extend([0xd0, 0xb7, 0x6e, 0xdb]);
    let (file, ..) = written(&Group::default());
    assert_eq!(file, expected);
}

#[test]
fn every_type_is_spelled_as_the_specification_has_it() {
    let record = r#"[["a", ">i2"], ["", "|V2"], ["b", "<c8", [2, 3]], ["c", "|b1"]]"#;
    let float32 = "11201f0004000000000020001708001 77f000000".replace(' ', "");
    let complex = format!("3602000008000000 7200 00 {float32} 6900 04 {float32}");
    let truth = "3802000001000000 1008000001000000 00000800 46414c534500 5452554500 0001";
    let types = [
        ("\"|i1\"", "1008000001000000 00000800".to_owned()),
        ("\"<u2\"", "1000000002000000 00001000".to_owned()),
        ("\"<i8\"", "1008000008000000 00004000".to_owned()),
        ("\"<M8[s]\"", "1008000008000000 00004000".to_owned()),
        (
            "\"<f2\"",
            "11200f0002000000 00001000 0a05000a 0f000000".to_owned(),
        ),
        ("\"<f4\"", float32.clone()),
        (
            "\"<f8\"",
            "11203f0008000000 00004000 340b0034 ff030000".to_owned(),
        ),
        ("\"<c8\"", complex.clone()),
        ("\"|b1\"", truth.to_owned()),
        ("\"|S5\"", "1301000005000000".to_owned()),
        ("\"<U2\"", "1311000008000000".to_owned()),
        ("\"|V7\"", "1500000007000000".to_owned()),
        (
            record,
            format!(
                "3603000035000000 6100 00 1009000002000000 00001000 6200 04 \
                 3a00000030000000 02 02000000 03000000 {complex} 6300 34 {truth}"
            ),
        ),
    ];
    for (typestr, expected) in types {
        let mut member = named(0, "a", typestr, &[], &[]);
        // The elements are no Unicode.
        if typestr.contains('U') {
            member.shape = [0].into_iter().collect();
            member.dimension_names = vec![None];
        }
        let (_, found, omitted) = written(&of_arrays(vec![member]));
        assert_eq!(omitted, [""; 0], "{typestr}");
        let expected = expected.replace(' ', "");
        let expected: Vec<u8> = (0..expected.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&expected[at..at + 2], 16).unwrap())
            .collect();
        assert_eq!(found["/a"].datatype, expected, "{typestr}");
    }
}

#[test]
fn arrays_that_hdf5_has_no_type_for_are_left_out_by_name() {
    let mut members: Vec<Array> = [
        "\"bfloat16\"",
        "\"int4\"",
        "\"float8_e5m2\"",
        "\"<U20000\"",
        r#"[["a", "<U20000"]]"#,
        r#"[["", "|V2"]]"#,
        r#"[["a", "|u1"], ["a", "|u1"]]"#,
    ]
    .iter()
    .enumerate()
    .map(|(id, typestr)| named(id, &format!("a{id}"), typestr, &[1], &[]))
    .collect();
    members.push(named(7, "rank", "\"|u1\"", &[1; 33], &[]));
    members.push(named(8, "long", "\"|u1\"", &[0, 1 << 61], &[]));
    members.push(named(9, "left", "\"|u1\"", &[1; 32], &[]));
    let (_, found, omitted) = written(&of_arrays(members));
    let expected = ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "rank", "long"];
    assert_eq!(omitted, expected);
    assert!(found.contains_key("/left"));
    let told = found[""].attribute("zarr_omitted").unwrap();
    let told = std::str::from_utf8(told).unwrap();
    assert!(
        told.starts_with("a0: data type: `bfloat16` cannot be expressed in HDF5\n"),
        "{told}"
    );
    assert_eq!(told.lines().count(), expected.len());
}

#[test]
fn links_and_layouts_lead_to_groups_and_payloads() {
    let mut inner = of_arrays(vec![named(2, "c", "\"<u4\"", &[2, 3, 4, 5, 6], &[])]);
    inner.name = "日本".to_owned();
    inner.attributes = attributes(r#"{"title": "Größe"}"#);
    let mut group = of_arrays(vec![
        named(0, "small", "\"<i2\"", &[3], &[]),
        named(1, "large", "\"<f8\"", &[32, 32], &[]),
        named(3, "none", "\"<f8\"", &[0, 4], &[]),
        named(4, "scalar", "\"|b1\"", &[], &[]),
    ]);
    let mut deep = Group {
        name: "(g".to_owned(),
        ..Group::default()
    };
    deep.groups.push(inner);
    group.groups.push(deep);
    let (file, found, omitted) = written(&group);
    assert_eq!(omitted, [""; 0]);
    let paths = ["/small", "/large", "/none", "/scalar", "/_g", "/_g/日本/c"];
    assert!(paths.iter().all(|path| found.contains_key(*path)));
    assert_eq!(found["/_g"].attribute("zarr_name"), Some(&b"(g"[..]));
    let title = found["/_g/日本"].attribute("title");
    assert_eq!(title, Some("Größe".as_bytes()));

    for (id, path, alignment) in [(0, "/small", 8), (1, "/large", 4096), (2, "/_g/日本/c", 8)] {
        let object = &found[path];
        assert_eq!(object.data.unwrap().0.unwrap() % alignment, 0, "{path}");
        let of = named(0, "", "\"|u1\"", &[object.data.unwrap().1], &[]);
        assert_eq!(data(&file, object), counting(&of, id), "{path}");
    }
    assert_eq!(found["/none"].data, Some((None, 0)));
    assert_eq!(found["/none"].shape, Some(vec![0, 4]));
    assert_eq!(found["/scalar"].shape, Some(vec![]));
    // Any byte but 0 is true.
    assert_eq!(data(&file, &found["/scalar"]), [1]);
}

#[test]
fn dimensions_are_scales_as_netcdf_writes_them() {
    let group = of_arrays(vec![
        named(0, "air", "\"<f4\"", &[2, 3, 3], &["time", "x", "x"]),
        named(1, "time", "\"<i8\"", &[2], &["time"]),
        named(2, "y", "\"<i8\"", &[4], &["time"]),
        named(3, "x", "\"<i8\"", &[], &[]),
    ]);
    let (file, found, _) = written(&group);
    let links: Vec<&str> = found[""]
        .links
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    // The dimension x cannot have the name of an array that is not along it.
    assert_eq!(links, ["time", "x_2", "time_4", "air", "y", "x"]);
    for (id, path) in [(0, "/time"), (1, "/x_2"), (2, "/time_4")] {
        let scale = &found[path];
        assert_eq!(scale.attribute("CLASS"), Some(&b"DIMENSION_SCALE\0"[..]));
        assert_eq!(scale.attribute("_Netcdf4Dimid"), Some(&[id, 0, 0, 0][..]));
    }
    assert_eq!(found["/time"].attribute("NAME"), Some(&b"time\0"[..]));
    let name = b"This is a netCDF dimension but not a netCDF variable.         3\0";
    assert_eq!(found["/x_2"].attribute("NAME"), Some(&name[..]));
    assert_eq!(found["/x_2"].data, Some((None, 12)));

    let of = |path: &str| {
        let list = found[path].attribute("DIMENSION_LIST").unwrap();
        references(&file, list)
    };
    let [time, x, time_4] = ["/time", "/x_2", "/time_4"].map(|path| found[path].address);
    assert_eq!(of("/air"), [time, x, x]);
    assert_eq!(of("/y"), [time_4]);
    assert_eq!(found["/x"].attribute("DIMENSION_LIST"), None);
}

#[test]
fn attributes_have_types_and_an_order() {
    let mut member = named(0, "a", "\"<i2\"", &[1], &[]);
    member.attributes = attributes(
        r#"{"z": "ü", "n": 3, "wide": 5000000000, "huge": 18446744073709551615, "f": 0.5,
            "list": [1, 2], "none": [], "empty": "", "tree": {"a": [true]}, "CLASS": "mine",
            "_FillValue": -2, "a/b": 1, "a_b": 2}"#,
    );
    member.fill_value = FillValue::new(vec![1, 2], true);
    let mut time = named(1, "t", "\"<M8[25s]\"", &[1], &[]);
    time.fill_value = FillValue::new(i64::MIN.to_le_bytes().to_vec(), true);
    let mut half = named(2, "h", "\"<f2\"", &[1], &[]);
    half.attributes = attributes(r#"{"_FillValue": -1.5}"#);
    half.fill_value = FillValue::new(vec![0, 0xbe], true);
    let mut group = of_arrays(vec![member, time, half]);
    let long = "x".repeat(60_000);
    let too_long = "x".repeat(65_536);
    let text = format!(r#"{{"long": "{long}", "too long": "{too_long}", "zarr_omitted": 1}}"#);
    group.attributes = attributes(&text);
    let (_, found, omitted) = written(&group);
    assert_eq!(omitted, ["a:CLASS", ":too long", ":zarr_omitted"]);
    let object = &found["/a"];
    let names: Vec<&str> = object.attributes.iter().map(|(n, ..)| n.as_str()).collect();
    assert_eq!(
        names[1..],
        [
            "z",
            "n",
            "wide",
            "huge",
            "f",
            "list",
            "none",
            "empty",
            "tree",
            "_FillValue",
            "a_b",
            "a_b_2"
        ]
    );
    for (name, class, value) in [
        ("z", 0x13, "ü".as_bytes()),
        ("n", 0x10, &[3, 0, 0, 0]),
        ("wide", 0x10, &5_000_000_000_u64.to_le_bytes()),
        ("huge", 0x10, &[255; 8]),
        ("f", 0x11, &0.5_f64.to_le_bytes()),
        ("list", 0x10, &[1, 0, 0, 0, 2, 0, 0, 0]),
        ("none", 0x10, &[]),
        ("empty", 0x13, &[0]),
        ("tree", 0x13, br#"{"a":[true]}"#),
        ("_FillValue", 0x10, &[0xfe, 0xff]),
    ] {
        assert_eq!(object.attribute(name), Some(value), "{name}");
        let (_, of, _) = object.attributes.iter().find(|(n, ..)| n == name).unwrap();
        assert_eq!(of[0], class, "{name}");
    }
    assert_eq!(object.fill_value, Some(vec![1, 2]));
    // CF has no word for 25 seconds.
    let time = &found["/t"];
    assert_eq!(time.attribute("zarr_data_type"), Some(&b"<M8[25s]"[..]));
    let nat = i64::MIN.to_le_bytes();
    assert_eq!(time.attribute("_FillValue"), Some(&nat[..]));
    // The NetCDF library would fail with float16 attributes.
    let wide = (-1.5_f32).to_le_bytes();
    assert_eq!(found["/h"].attribute("_FillValue"), Some(&wide[..]));
    assert_eq!(found["/h"].fill_value, None);
    assert_eq!(found[""].attribute("long").unwrap().len(), 60_000);
}

#[test]
fn named_types_come_before_their_datasets() {
    let record = r#"[["z", "<c16"], ["f", "<f2"]]"#;
    let group = of_arrays(vec![
        named(0, "half", record, &[1], &[]),
        named(1, "record", "\"|b1\"", &[1], &[]),
        named(2, "raw", "\"|V3\"", &[1], &[]),
        named(3, "rec", r#"[["z", "<c16"], ["n", "<u2"]]"#, &[1], &[]),
        named(4, "rec too", r#"[["z", "<c16"], ["n", "<u2"]]"#, &[1], &[]),
    ]);
    let (_, found, _) = written(&group);
    let links: Vec<&str> = found[""]
        .links
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let types = ["_PFNC_DOUBLE_COMPLEX_TYPE", "record_2"];
    assert_eq!(links[..3], [&types[..], &["dim_1"]].concat());
    assert_eq!(found["/rec"].datatype, found["/record_2"].datatype);
    // Two datasets and the link refer to it; a type within another has no reference.
    assert_eq!(found["/record_2"].references, Some(3));
    assert_eq!(found["/_PFNC_DOUBLE_COMPLEX_TYPE"].references, None);
    assert_eq!(found["/rec"].data.map(|(_, len)| len), Some(18));
}

#[test]
fn a_group_of_thousands_and_one_beyond_four_gib() {
    let mut members: Vec<Array> = (0..2000)
        .map(|id| {
            named(
                id,
                &format!("array {id}"),
                "\"<i4\"",
                &[2, id as u64],
                &["y"],
            )
        })
        .collect();
    members.push(named(2000, "z", "\"|u1\"", &[5, 1 << 30], &[]));
    let file = file(&of_arrays(members), Convention::H5py).unwrap();
    assert!(file.layout.len() > 5 << 30);
    let last = file.layout.parts().last().unwrap();
    assert_eq!(last.offset % 4096, 0);
    assert_eq!(last.offset + (5 << 30), file.layout.len());
    assert!(file.layout.memory_bytes() < 2 << 20);
}

#[test]
fn headers_are_bounded() {
    let long = "x".repeat(60_000);
    let members = (0..1200).map(|id| {
        let mut member = named(id, &format!("a{id}"), "\"|u1\"", &[], &[]);
        member.attributes = attributes(&format!(r#"{{"a": "{long}"}}"#));
        member
    });
    let refused = file(&of_arrays(members.collect()), Convention::H5py);
    assert!(matches!(refused, Err(FormatError::TooLarge { .. })));
}

#[test]
fn strings_of_any_length_are_in_heaps() {
    let many: Vec<String> = (0..9000).map(|i| "x".repeat(i % 40)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = "y".repeat(100_000);
    for convention in [Convention::H5py, Convention::NetCdf, Convention::AnnData] {
        let group = of_arrays(vec![
            strings(0, "many", &many),
            strings(1, "name", &["zoë", "", &long]),
            strings(2, "none", &[]),
            strings(3, "nul", &["a\0b"]),
        ]);
        let (file, found, omitted) = written_by(convention, &group);
        assert_eq!(omitted, ["nul"]);
        let name = &found["/name"];
        let any = [
            &[0x19, 1, 1, 0, 16, 0, 0, 0, 0x10, 0, 0, 0, 1][..],
            &[0; 5],
            &[8, 0],
        ];
        assert_eq!(name.datatype, any.concat());
        assert_eq!(texts(&file, data(&file, name)), ["zoë", "", &long]);
        assert_eq!(texts(&file, data(&file, &found["/many"])), many);
        assert_eq!(found["/none"].data, Some((None, 0)));
        let is_scale = name.attribute("CLASS").is_some();
        assert_eq!(is_scale, convention != Convention::AnnData);
    }
}

#[test]
fn netcdf_has_types_and_dimensions_of_its_own() {
    let group = of_arrays(vec![
        named(0, "air", "\"<f4\"", &[2, 3], &["time", "x"]),
        named(1, "time", "\"<i8\"", &[2], &["time"]),
        named(2, "x", "\"<i8\"", &[2], &["time"]),
        named(3, "flag", "\"|b1\"", &[3], &["x"]),
        named(4, "wave", "\"<c8\"", &[3], &["x"]),
        named(5, "code", "\"|S5\"", &[3], &["code"]),
        named(6, "half", "\"<f2\"", &[3], &["x"]),
        named(7, "raw", "\"|V2\"", &[3], &["x"]),
        named(8, "odd", "\"<M8[W]\"", &[3], &["x"]),
        named(9, "rec", r#"[["a", "<i4"]]"#, &[3], &["x"]),
        named(10, "char", "\"|S1\"", &[2, 3], &["time", "x"]),
    ]);
    let (file, found, omitted) = written_by(Convention::NetCdf, &group);
    assert_eq!(omitted, ["half", "raw", "odd"]);
    let links = found[""].links.iter();
    let links: Vec<&str> = links.map(|(name, _)| name.as_str()).collect();
    // The array x is not along the dimension x.
    let expected = [
        "record",
        "time",
        "code",
        "string5",
        "x",
        "ri",
        "air",
        "_nc4_non_coord_x",
        "flag",
        "wave",
        "rec",
        "char",
    ];
    assert_eq!(links, expected);
    assert_eq!(found["/_nc4_non_coord_x"].attribute("zarr_name"), None);
    let writer = found[""].attribute("_NCProperties").unwrap();
    assert!(writer.starts_with(b"version=2,zarr-mount="));

    let flag = &found["/flag"];
    assert_eq!(flag.datatype[..2], [0x10, 0x08], "int8");
    assert_eq!(flag.attribute("dtype"), Some(&b"bool"[..]));
    assert!(data(&file, flag).iter().all(|&byte| byte < 2));
    assert_eq!(found["/wave"].shape, Some(vec![3, 2]));
    assert_eq!(found["/wave"].datatype[0], 0x11);
    let code = &found["/code"];
    assert_eq!(code.shape, Some(vec![3, 5]));
    assert_eq!(code.datatype, [0x13, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(code.attribute("_Encoding"), Some(&b"utf-8"[..]));
    let char = &found["/char"];
    assert_eq!(char.shape, Some(vec![2, 3]));
    assert_eq!(char.datatype, code.datatype);
    assert_eq!(char.attribute("_Encoding"), None);

    let id = |path: &str| found[path].attribute("_Netcdf4Dimid").unwrap().to_vec();
    let ids = |path: &str| {
        found[path]
            .attribute("_Netcdf4Coordinates")
            .map(<[u8]>::to_vec)
    };
    assert_eq!(ids("/air"), Some([id("/time"), id("/x")].concat()));
    // A scale of two dimensions, which has no list of scales.
    assert_eq!(ids("/code"), Some([id("/code"), id("/string5")].concat()));
    assert_eq!(code.attribute("DIMENSION_LIST"), None);
    assert_eq!(code.attribute("CLASS"), Some(&b"DIMENSION_SCALE\0"[..]));
    assert_eq!(ids("/time"), None);
    let [time, x] = ["/time", "/x"].map(|path| found[path].address);
    let list = found["/air"].attribute("DIMENSION_LIST").unwrap();
    assert_eq!(references(&file, list), [time, x]);
}

#[test]
fn anndata_has_its_own_names_and_attributes() {
    let mut none = named(0, "none", "\"|b1\"", &[], &[]);
    none.attributes = attributes(r#"{"encoding-type": "null"}"#);
    let rec = named(1, "a:(b", r#"[["n", "<i4"], ["t", "|S3"]]"#, &[1], &["x"]);
    let text = named(2, "text", r#"[["n", "<i4"], ["t", ">U3"]]"#, &[0], &["x"]);
    let mut raw = none.clone();
    (raw.id, raw.name) = (4, "raw".to_owned());
    let mut group = of_arrays(vec![none, rec, text, raw]);
    group.attributes = attributes(
        r#"{"encoding-type": "anndata", "column-order": ["a", "zoë"], "empty": [], "ordered": true,
            "n": 3, "shape": [5, 6], "huge": 18446744073709551615, "mixed": [1, 0.5],
            "flags": [true, false], "tree": {"a": [true]}, "nothing": null, "a/b": 1}"#,
    );
    let inner = of_arrays(vec![strings(3, "index", &["g1", "g2"])]);
    group.groups.push(Group {
        name: "-var ".to_owned(),
        ..inner
    });
    let (file, found, omitted) = written_by(Convention::AnnData, &group);
    assert_eq!(omitted, [""; 0]);
    let links = found[""].links.iter();
    let links: Vec<&str> = links.map(|(name, _)| name.as_str()).collect();
    assert_eq!(links, ["none", "a:(b", "text", "-var "]);
    assert_eq!(
        texts(&file, data(&file, &found["/-var /index"])),
        ["g1", "g2"]
    );
    assert_eq!(found["/none"].data, Some((None, 0)));
    assert_eq!(found["/none"].shape, Some(vec![0]), "null");
    // The library takes text of a record for ASCII, with a length in bytes.
    let rest = &found["/text"].datatype[found["/text"].datatype.len() - 8..];
    assert_eq!(rest, [0x13, 1, 0, 0, 12, 0, 0, 0]);

    let root = &found[""];
    for (name, all) in [
        ("encoding-type", &["anndata"][..]),
        ("column-order", &["a", "zoë"]),
        ("tree", &[r#"{"a":[true]}"#]),
    ] {
        assert_eq!(texts(&file, root.attribute(name).unwrap()), all);
    }
    for (name, class, value) in [
        ("empty", 0x11, &[][..]),
        ("ordered", 0x38, &[1]),
        ("n", 0x10, &3_i64.to_le_bytes()),
        (
            "shape",
            0x10,
            &[5_i64.to_le_bytes(), 6_i64.to_le_bytes()].concat(),
        ),
        ("huge", 0x10, &[255; 8]),
        (
            "mixed",
            0x11,
            &[1_f64.to_le_bytes(), 0.5_f64.to_le_bytes()].concat(),
        ),
        ("flags", 0x38, &[1, 0]),
        ("a/b", 0x10, &1_i64.to_le_bytes()),
    ] {
        assert_eq!(root.attribute(name), Some(value), "{name}");
        let (_, of, _) = root.attributes.iter().find(|(n, ..)| n == name).unwrap();
        assert_eq!(of[0], class, "{name}");
    }
    assert_eq!(root.attribute("nothing"), None);
}

#[test]
fn anndata_has_all_parts_of_an_element_or_no_file() {
    let refused = |group: &Group| file(group, Convention::AnnData).unwrap_err().to_string();
    let mut table = of_arrays(vec![
        strings(0, "index", &["a"]),
        named(1, "n", "\"<i4\"", &[1], &[]),
    ]);
    table.name = "obs".to_owned();
    table.attributes = attributes(
        r#"{"encoding-type": "dataframe", "_index": "index", "column-order": ["n", "m"]}"#,
    );
    let mut whole = Group {
        attributes: attributes(r#"{"encoding-type": "anndata"}"#),
        groups: vec![table],
        ..Group::default()
    };
    assert_eq!(refused(&whole), "obs: m: this column is not shown");
    whole.groups[0]
        .arrays
        .push(named(2, "m", "\"|b1\"", &[1], &[]));
    assert!(file(&whole, Convention::AnnData).is_ok());
    // A column that the format cannot hold; a member of a dictionary may be missing.
    whole.groups[0]
        .arrays
        .push(named(3, "odd", "\"bfloat16\"", &[1], &[]));
    assert!(refused(&whole).starts_with("obs: data type: `bfloat16`"));
    whole.groups[0].attributes = attributes(r#"{"encoding-type": "dict"}"#);
    let made = file(&whole, Convention::AnnData).unwrap();
    assert_eq!(made.omitted[0].name, "obs/odd");
    // More than a header message holds.
    let names: Vec<String> = (0..5000).map(|i| format!("\"c{i}\"")).collect();
    let order = format!(r#"{{"column-order": [{}]}}"#, names.join(","));
    whole.groups[0].attributes = attributes(&order);
    assert!(refused(&whole).starts_with("obs: column-order: "));
}
