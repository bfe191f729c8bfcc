//! Tests each row of the table in the documentation of the module.

use super::*;
use crate::dtype::FillValue;
use crate::error::FormatError;
use crate::plain::testing::{array, attributes};

#[expect(clippy::unnecessary_wraps, reason = "compared with optional values")]
fn text(value: &str) -> Option<CfValue> {
    Some(CfValue::Text(value.to_owned()))
}

fn of(typestr: &str, json: &str) -> Vec<Attribute> {
    let mut array = array("a", typestr, &[2]);
    array.attributes = attributes(json);
    of_array(&array)
}

fn value(list: &[Attribute], name: &str) -> Option<CfValue> {
    let mut found = list.iter().filter(|attribute| attribute.name == name);
    let value = found.next().map(|attribute| attribute.value.clone());
    assert!(found.next().is_none(), "{name} twice");
    value
}

#[test]
fn json_becomes_typed() {
    let list = of(
        "\"<f4\"",
        r#"{"s": "é", "empty": "", "nul": "a\u0000b", "i": 3, "wide": 9223372036854775807,
            "u": [1, 9223372036854775808], "huge": 1e400, "f": 0.5, "mix": [1, 0.5],
            "loss": [9007199254740993, 0.5], "both": [-1, 9223372036854775808], "t": true,
            "n": null, "none": [], "strings": ["a", "b"], "bools": [true], "deep": [[1]],
            "o": {"k": NaN}, "nan": "NaN", "over": 18446744073709551616,
            "odd": 18446744073709551617, "scale_factor": 2, "_ARRAY_DIMENSIONS": ["x"],
            "_NCProperties": "v", "_Netcdf4Dimid": 0, "_NCZARR_ARRAY": {}, "_nczarr_x": 1}"#,
    );
    for (name, expected) in [
        ("s", text("é")),
        ("empty", text("")),
        ("nul", text(r#""a\u0000b""#)),
        ("i", Some(CfValue::Integers(vec![3]))),
        ("wide", Some(CfValue::Integers(vec![i64::MAX]))),
        ("u", Some(CfValue::Unsigned(vec![1, 1 << 63]))),
        ("huge", Some(CfValue::Floats(vec![f64::INFINITY]))),
        ("f", Some(CfValue::Floats(vec![0.5]))),
        ("mix", Some(CfValue::Floats(vec![1.0, 0.5]))),
        ("loss", text("[9007199254740993,0.5]")),
        ("both", Some(CfValue::Floats(vec![-1.0, 2_f64.powi(63)]))),
        ("t", text("true")),
        ("n", None),
        ("none", Some(CfValue::Integers(vec![]))),
        ("strings", text(r#"["a","b"]"#)),
        ("bools", text("[true]")),
        ("deep", text("[[1]]")),
        ("o", text(r#"{"k":"NaN"}"#)),
        ("nan", text("NaN")),
        ("over", Some(CfValue::Floats(vec![2_f64.powi(64)]))),
        ("odd", text("18446744073709551617")),
        ("scale_factor", Some(CfValue::Floats(vec![2.0]))),
        ("_ARRAY_DIMENSIONS", None),
        ("_NCProperties", None),
        ("_Netcdf4Dimid", None),
        ("_NCZARR_ARRAY", None),
        ("_nczarr_x", None),
        ("_FillValue", None),
    ] {
        assert_eq!(value(&list, name), expected, "{name}");
    }
}

#[test]
fn some_attributes_have_the_type_of_the_variable() {
    let list = of(
        "\"<i2\"",
        r#"{"_FillValue": -1, "valid_range": [0, 256], "flag_values": [1], "flag_masks": [],
            "missing_value": 40000, "valid_min": "low", "scale_factor": 0.1}"#,
    );
    let own = |bytes: &[u8]| Some(CfValue::Own(bytes.to_vec()));
    assert_eq!(value(&list, "_FillValue"), own(&[255, 255]));
    assert_eq!(value(&list, "valid_range"), own(&[0, 0, 0, 1]));
    assert_eq!(value(&list, "flag_values"), own(&[1, 0]));
    assert_eq!(value(&list, "flag_masks"), None);
    assert_eq!(value(&list, "missing_value"), None);
    assert_eq!(value(&list, "valid_min"), None);
    let scale = Some(CfValue::Floats(vec![0.1]));
    assert_eq!(value(&list, "scale_factor"), scale);
    let two = of("\"<i2\"", r#"{"_FillValue": [1, 2]}"#);
    assert_eq!(value(&two, "_FillValue"), None);
}

#[test]
fn a_fill_value_that_means_missing_becomes_an_attribute() {
    let mut array = array("a", "\"<i2\"", &[2]);
    array.fill_is_missing = true;
    assert_eq!(of_array(&array), [], "null says nothing");
    array.fill_value = FillValue::new(vec![7, 0], true);
    let fill = |list: &[Attribute]| value(list, "_FillValue");
    assert_eq!(fill(&of_array(&array)), Some(CfValue::Own(vec![7, 0])));
    for own in ["8", "null", "\"none\"", "\"\"", "[]", "1e20"] {
        array.attributes = attributes(&format!(r#"{{"_FillValue": {own}}}"#));
        let found = fill(&of_array(&array));
        assert_eq!(found, Some(CfValue::Own(vec![7, 0])), "{own}");
    }
    array.fill_value = FillValue::undefined(&array.data_type);
    array.attributes = attributes(r#"{"_FillValue": 8}"#);
    assert_eq!(fill(&of_array(&array)), Some(CfValue::Own(vec![8, 0])));
    array.attributes = Attributes::default();
    array.fill_value = FillValue::new(vec![7, 0], true);
    array.fill_is_missing = false;
    assert_eq!(of_array(&array), []);
}

#[test]
fn truth_values_are_never_missing() {
    let mut array = array("a", "\"|b1\"", &[2]);
    array.fill_is_missing = true;
    array.fill_value = FillValue::new(vec![0], true);
    assert_eq!(of_array(&array), []);
    array.attributes =
        attributes(r#"{"_FillValue": false, "missing_value": true, "valid_max": true}"#);
    let list = of_array(&array);
    assert_eq!(list.len(), 1);
    assert_eq!(value(&list, "valid_max"), Some(CfValue::Own(vec![1])));
}

#[test]
fn dates_say_their_units() {
    let list = of("\"<M8[s]\"", r#"{"units": "none", "_FillValue": 0}"#);
    assert_eq!(value(&list, "units"), text("seconds since 1970-01-01"));
    assert_eq!(value(&list, "calendar"), text("proleptic_gregorian"));
    let nat = Some(CfValue::Own(vec![0, 0, 0, 0, 0, 0, 0, 0x80]));
    assert_eq!(value(&list, "_FillValue"), nat);
    let list = of("\"<m8[ms]\"", "{}");
    assert_eq!(value(&list, "units"), text("milliseconds"));
    assert_eq!(value(&list, "calendar"), None);
}

#[test]
fn a_group_lists_its_omissions() {
    let omitted = Omitted {
        name: "a\nb".to_owned(),
        reason: FormatError::inexpressible("data type", "float16", "NetCDF"),
    };
    let group = Group {
        attributes: attributes(r#"{"title": "t", "_FillValue": 1}"#),
        ..Group::default()
    };
    let list = of_group(&group, &[omitted.clone(), omitted]);
    assert_eq!(
        value(&list, "_FillValue"),
        Some(CfValue::Integers(vec![1])),
        "no variable, no type"
    );
    let line = "a?b: data type: `float16` cannot be expressed in NetCDF";
    assert_eq!(
        value(&list, "zarr_omitted"),
        text(&format!("{line}\n{line}"))
    );
    assert_eq!(value(&of_group(&group, &[]), "zarr_omitted"), None);
}
