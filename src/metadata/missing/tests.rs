use serde_json::{Value, json};

use super::*;
use crate::metadata::render::Shards;
use crate::metadata::write::{StoredDocuments, Target, array_attributes_v2};
use crate::metadata::{NodeMetadata, strict_json, v2, v3, write};

const KEYS: ChunkContent = ChunkContent::Encoded(Shards::Expand);
const STORED: ChunkContent = ChunkContent::Decoded(Shards::Expand);
const FILES: ChunkContent = ChunkContent::Complete(Shards::Expand);

fn parsed(document: &Value) -> ArrayMetadata {
    let text = document.to_string();
    if document["zarr_format"] == 2 {
        return v2::parse_array(text.as_bytes()).unwrap();
    }
    match v3::parse(text.as_bytes()).unwrap() {
        NodeMetadata::Array(array) => *array,
        NodeMetadata::Group => panic!("a group"),
    }
}

fn of_v3(data_type: &str, fill_value: &Value, names: &Value, attributes: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": fill_value,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": names, "attributes": attributes,
    })
}

/// The fill value and the attributes that a document of v2 has for an array of v3.
fn as_v2(document: &Value, content: ChunkContent) -> (Value, Value) {
    let (array, text) = (parsed(document), document.to_string());
    let source = StoredDocuments {
        document: text.as_bytes(),
        attributes: None,
    };
    let shown = write::array(&array, &source, content, Target::V2).unwrap();
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    let attributes = array_attributes_v2(&array, &source, content).unwrap();
    let attributes = attributes.unwrap_or_else(|| b"{}".to_vec());
    let mut attributes: Value = serde_json::from_slice(&attributes).unwrap();
    attributes
        .as_object_mut()
        .unwrap()
        .remove("_ARRAY_DIMENSIONS");
    (shown["fill_value"].clone(), attributes)
}

#[test]
fn a_document_of_v2_says_the_missing_value_where_all_chunks_are_files() {
    // Data type, fill value, names and attributes in v3; fill value and attributes in v2. In base64: -9999, NaN, infinity,
    // 0.1, 1.5, -2.
    let cases = json!([
        // Nothing is declared.
        ["int32", 0, ["x"], {}, null, {}],
        ["int32", -1, ["x"], {}, null, {}],
        ["bool", false, ["x"], {}, null, {}],
        ["float32", -9999.0, ["x"], {}, null, {}],
        // A NaN masks nothing, but it decides the type of packed numbers.
        ["float32", "NaN", ["x"], {}, "NaN", {}],
        ["float32", "NaN", ["x"], {"scale_factor": 0.1}, null, {"scale_factor": 0.1}],
        // Without names xarray does not open it, and GDAL takes the fill value.
        ["int32", -1, null, {}, -1, {}],
        ["int32", -1, [null], {}, -1, {}],
        // A declared missing value becomes the fill value.
        ["int16", 0, ["x"], {"_FillValue": -9, "a": 1}, -9, {"a": 1}],
        ["int16", 0, null, {"_FillValue": -9}, -9, {}],
        ["bool", false, ["x"], {"_FillValue": true}, true, {}],
        ["float64", "NaN", ["x"], {"_FillValue": "AAAAAICHw8A="}, -9999.0, {}],
        ["float32", 0.0, ["x"], {"_FillValue": "AAAAAAAA+H8="}, "NaN", {}],
        ["float16", 0.0, ["x"], {"_FillValue": "AAAAAAAA8H8="}, "Infinity", {}],
        ["float32", 0.0, ["x"], {"_FillValue": -9999}, -9999.0, {}],
        ["complex64", [0.0, 0.0], ["x"], {"_FillValue": ["AAAAAAAA+D8=", "AAAAAAAAAMA="]}, [1.5, -2.0], {}],
        // No element has the value, so that it masks none.
        ["float32", 0.0, ["x"], {"_FillValue": "mpmZmZmZuT8="}, null, {"_FillValue": 0.1}],
        ["uint8", 0, ["x"], {"_FillValue": -1}, null, {"_FillValue": -1}],
        ["float32", 0.0, ["x"], {"_FillValue": "none"}, null, {"_FillValue": "none"}],
        // v2 cannot say this NaN, which no chunk needs.
        ["float32", "0x7fc00001", null, {}, null, {}],
    ]);
    for case in cases.as_array().unwrap() {
        let data_type = case[0].as_str().unwrap();
        let document = of_v3(data_type, &case[1], &case[2], &case[3]);
        let expected = (case[4].clone(), case[5].clone());
        assert_eq!(as_v2(&document, FILES), expected, "{case}");
    }
}

#[test]
fn a_document_of_v2_says_what_absent_chunks_hold_where_they_are_absent() {
    let cases = json!([
        ["int32", 0, {}, {}],
        ["int32", 0, {"_FillValue": -9}, {"_FillValue": -9}],
        ["int32", -9, {"_FillValue": -9}, {}],
        ["float32", "NaN", {"_FillValue": "AAAAAAAA+H8="}, {}],
        ["float32", 0.0, {"_FillValue": "AAAAAICHw8A="}, {"_FillValue": -9999.0}],
    ]);
    for case in cases.as_array().unwrap() {
        let data_type = case[0].as_str().unwrap();
        let document = of_v3(data_type, &case[1], &json!(["x"]), &case[2]);
        for content in [KEYS, STORED] {
            let expected = (case[1].clone(), case[3].clone());
            assert_eq!(as_v2(&document, content), expected, "{case}");
        }
    }
}

/// The document of a v2 array with this type and fill value.
fn of_v2(dtype: &Value, fill_value: &Value) -> Value {
    json!({
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": dtype, "compressor": null,
        "fill_value": fill_value, "order": "C", "filters": null,
    })
}

#[test]
fn a_document_of_v3_says_what_v2_masks() {
    // Type, fill value and attributes in v2; attributes in v3.
    let cases = json!([
        ["<i4", 0, {"_ARRAY_DIMENSIONS": ["x"]}, {"_FillValue": 0}],
        ["<i4", -1, {"_ARRAY_DIMENSIONS": ["x"], "_FillValue": 7, "a": 1}, {"_FillValue": -1, "a": 1}],
        ["|b1", false, {"_ARRAY_DIMENSIONS": ["x"]}, {"_FillValue": false}],
        [">f4", -9999.0, {"_ARRAY_DIMENSIONS": ["x"]}, {"_FillValue": "AAAAAICHw8A="}],
        ["<f8", "NaN", {"_ARRAY_DIMENSIONS": ["x"]}, {"_FillValue": "AAAAAAAA+H8="}],
        ["<c8", [1.5, -2.0], {"_ARRAY_DIMENSIONS": ["x"]}, {"_FillValue": ["AAAAAAAA+D8=", "AAAAAAAAAMA="]}],
        // Without a fill value, the attribute is the mask.
        ["<i4", null, {"_ARRAY_DIMENSIONS": ["x"]}, {}],
        ["<f4", null, {"_ARRAY_DIMENSIONS": ["x"], "_FillValue": -9999.0}, {"_FillValue": "AAAAAICHw8A="}],
        // xarray reads no attribute for these types.
        ["<M8[s]", 0, {"_ARRAY_DIMENSIONS": ["x"]}, {}],
        ["|S2", "YQ==", {"_ARRAY_DIMENSIONS": ["x"]}, {}],
        // xarray opens no array without a name for each dimension.
        ["<i4", 0, {"a": 1}, {"a": 1}],
        ["<i4", 0, {"_ARRAY_DIMENSIONS": ["y", "x"]}, {"_ARRAY_DIMENSIONS": ["y", "x"]}],
    ]);
    for case in cases.as_array().unwrap() {
        let document = of_v2(&case[0], &case[1]);
        let (text, attributes) = (document.to_string(), case[2].to_string());
        let source = StoredDocuments {
            document: text.as_bytes(),
            attributes: Some(attributes.as_bytes()),
        };
        for content in [KEYS, FILES] {
            let shown = write::array(&parsed(&document), &source, content, Target::V3).unwrap();
            let shown: Value = serde_json::from_slice(&shown).unwrap();
            assert_eq!(shown["attributes"], case[3], "{case}");
        }
    }
}

#[test]
fn values_that_another_version_cannot_express_are_reported() {
    let of = |document: &Value, attributes: &str, content, target| {
        lost(
            &parsed(document),
            Some(attributes.as_bytes()),
            (content, target),
        )
        .unwrap()
    };
    let cases = json!([
        // Data type, fill value and attributes in v3; what the keys view says.
        ["int32", 0, {}, "xarray takes the fill value 0 for missing"],
        ["int32", 0, {"_FillValue": -1}, "xarray takes the fill value 0 for missing"],
        ["int32", -1, {"_FillValue": -1}, null],
        ["float32", "NaN", {}, null],
        ["float32", "NaN", {"scale_factor": 0.5}, "xarray takes the fill value \"NaN\" for missing"],
    ]);
    for case in cases.as_array().unwrap() {
        let (data_type, attributes) = (case[0].as_str().unwrap(), case[2].to_string());
        let document = of_v3(data_type, &case[1], &json!(["x"]), &json!({}));
        let told = of(&document, &attributes, KEYS, ZarrFormat::V2);
        assert_eq!(told.as_deref(), case[3].as_str(), "{case}");
        assert_eq!(of(&document, &attributes, FILES, ZarrFormat::V2), None);
        let without = of_v3(data_type, &case[1], &Value::Null, &json!({}));
        assert_eq!(of(&without, &attributes, KEYS, ZarrFormat::V2), None);
    }
    for (dtype, fill_value, is_told) in [
        ("<i4", json!(0), false),
        ("|S1", json!("YQ=="), true),
        ("|S1", Value::Null, false),
        ("<M8[s]", json!("NaT"), true),
    ] {
        let document = of_v2(&json!(dtype), &fill_value);
        let told = of(
            &document,
            r#"{"_ARRAY_DIMENSIONS": ["x"]}"#,
            FILES,
            ZarrFormat::V3,
        );
        assert_eq!(told.is_some(), is_told, "{dtype} {told:?}");
    }
}

#[test]
fn the_last_attribute_that_the_fill_value_says_leaves_the_names_alone() {
    let mut document = of_v3(
        "float64",
        &json!(0),
        &Value::Null,
        &json!({"_FillValue": "AAAAAAAAAAA="}),
    );
    document["shape"] = json!([]);
    document["chunk_grid"]["configuration"]["chunk_shape"] = json!([]);
    let (array, text) = (parsed(&document), document.to_string());
    let source = StoredDocuments {
        document: text.as_bytes(),
        attributes: None,
    };
    let shown = array_attributes_v2(&array, &source, FILES).unwrap();
    let shown: Value = serde_json::from_slice(&shown.unwrap()).unwrap();
    assert_eq!(shown, json!({"_ARRAY_DIMENSIONS": []}));
}

#[test]
fn null_of_v3_is_a_number_in_v2_where_chunks_may_be_absent() {
    for (data_type, zero) in [("int32", json!(0)), ("bool", json!(false))] {
        let document = of_v3(data_type, &Value::Null, &Value::Null, &json!({}));
        for content in [KEYS, STORED, FILES] {
            assert_eq!(as_v2(&document, content).0, zero, "{data_type}");
        }
    }
}

/// Type, fill value, and attributes beside the names in v2; attributes in v3. In base64: 3, -infinity, NaN.
const ODD_MASKS: [(&str, &str, &str, &str); 27] = [
    (
        "<f4",
        "null",
        r#""_FillValue": [3.0]"#,
        r#"{"_FillValue": "AAAAAAAACEA="}"#,
    ),
    (
        "<f4",
        "null",
        r#""_FillValue": [3, 4]"#,
        r#"{"missing_value": [3, 4]}"#,
    ),
    (
        "<f4",
        "null",
        r#""_FillValue": "NaN""#,
        r#"{"missing_value": "NaN"}"#,
    ),
    (
        "<f4",
        "null",
        r#""_FillValue": "AAAAAAAACEA=""#,
        r#"{"missing_value": "AAAAAAAACEA="}"#,
    ),
    ("<f4", "null", r#""_FillValue": null"#, "{}"),
    (
        "<f4",
        "null",
        r#""_FillValue": -Infinity"#,
        r#"{"_FillValue": "AAAAAAAA8P8="}"#,
    ),
    (
        "<f4",
        "null",
        r#""_FillValue": -1e999"#,
        r#"{"_FillValue": "AAAAAAAA8P8="}"#,
    ),
    (
        "<f4",
        "null",
        r#""missing_value": -Infinity"#,
        r#"{"_FillValue": "AAAAAAAA8P8="}"#,
    ),
    (
        "<f4",
        "null",
        r#""missing_value": NaN"#,
        r#"{"_FillValue": "AAAAAAAA+H8="}"#,
    ),
    (
        "<f4",
        "3",
        r#""missing_value": NaN"#,
        r#"{"_FillValue": "AAAAAAAACEA="}"#,
    ),
    (
        "<f4",
        "3",
        r#""missing_value": -Infinity"#,
        r#"{"_FillValue": "AAAAAAAA8P8=", "missing_value": 3.0}"#,
    ),
    (
        "<f4",
        "3",
        r#""missing_value": [-Infinity, NaN, 4]"#,
        r#"{"_FillValue": "AAAAAAAA8P8=", "missing_value": [4, 3.0]}"#,
    ),
    (
        "<f4",
        "null",
        r#""_FillValue": [3, 4], "missing_value": 5"#,
        r#"{"missing_value": [5, 3, 4]}"#,
    ),
    (
        "<f4",
        "null",
        r#""_FillValue": "x", "missing_value": 5"#,
        r#"{"missing_value": 5}"#,
    ),
    (
        "<c8",
        "null",
        r#""_FillValue": 3"#,
        r#"{"missing_value": 3}"#,
    ),
    (
        "|u1",
        "null",
        r#""_FillValue": [3]"#,
        r#"{"_FillValue": 3}"#,
    ),
    (
        "|u1",
        "null",
        r#""_FillValue": 3.5"#,
        r#"{"missing_value": 3.5}"#,
    ),
    (
        "|u1",
        "null",
        r#""_FillValue": true"#,
        r#"{"_FillValue": true}"#,
    ),
    ("|u1", "null", r#""_FillValue": NaN"#, "{}"),
    ("|u1", "null", r#""missing_value": NaN"#, "{}"),
    (
        "|u1",
        "null",
        r#""missing_value": -Infinity"#,
        r#"{"missing_value": "-Infinity"}"#,
    ),
    (
        "|u1",
        "null",
        r#""missing_value": [NaN, 3]"#,
        r#"{"missing_value": [3]}"#,
    ),
    ("|b1", "null", r#""_FillValue": 1"#, r#"{"_FillValue": 1}"#),
    (
        "|b1",
        "null",
        r#""_FillValue": "false""#,
        r#"{"missing_value": "false"}"#,
    ),
    (
        "<U1",
        "\"a\"",
        r#""_FillValue": "b""#,
        r#"{"missing_value": "a"}"#,
    ),
    (
        "<U1",
        "null",
        r#""_FillValue": "b""#,
        r#"{"missing_value": "b"}"#,
    ),
    ("|S1", "\"YQ==\"", r#""_FillValue": "b""#, "{}"),
];

#[test]
fn masks_that_v3_has_no_fill_value_for_are_said_in_another_way() {
    for (dtype, fill_value, attributes, expected) in ODD_MASKS {
        let fill_value = serde_json::from_str(fill_value).unwrap();
        let document = of_v2(&json!(dtype), &fill_value);
        let text = document.to_string();
        let own = format!(r#"{{"_ARRAY_DIMENSIONS": ["x"], {attributes}}}"#);
        let source = StoredDocuments {
            document: text.as_bytes(),
            attributes: Some(own.as_bytes()),
        };
        let shown = write::array(&parsed(&document), &source, KEYS, Target::V3).unwrap();
        let shown: Value = serde_json::from_slice(&strict_json(shown)).unwrap();
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(
            shown["attributes"], expected,
            "{dtype} {fill_value} {attributes}"
        );
    }
}

#[test]
fn masks_for_which_v2_has_no_number_are_the_fill_value_where_all_chunks_are_files() {
    // Type, fill value and attributes in v3; fill value and attributes in v2. In base64: 3, NaN.
    for (data_type, fill_value, attributes, fill, expected) in [
        (
            "float32",
            "0.0",
            r#"{"missing_value": -Infinity}"#,
            "\"-Infinity\"",
            "{}",
        ),
        (
            "float32",
            "0.0",
            r#"{"missing_value": [NaN, Infinity, 4.0]}"#,
            "\"Infinity\"",
            r#"{"missing_value": [4.0]}"#,
        ),
        (
            "float32",
            "0.0",
            r#"{"missing_value": NaN}"#,
            "\"NaN\"",
            "{}",
        ),
        (
            "float32",
            "0.0",
            r#"{"_FillValue": "AAAAAAAA+H8=", "missing_value": -Infinity}"#,
            "\"-Infinity\"",
            "{}",
        ),
        (
            "float32",
            "0.0",
            r#"{"_FillValue": "AAAAAAAACEA=", "missing_value": NaN}"#,
            "3.0",
            "{}",
        ),
        ("uint8", "0", r#"{"missing_value": NaN}"#, "null", "{}"),
        ("uint8", "0", r#"{"_FillValue": 3.5}"#, "3", "{}"),
        ("uint8", "0", r#"{"_FillValue": true}"#, "1", "{}"),
        ("bool", "false", r#"{"_FillValue": null}"#, "false", "{}"),
        ("bool", "false", r#"{"_FillValue": "false"}"#, "true", "{}"),
    ] {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let document = of_v3(data_type, &value(fill_value), &json!(["x"]), &json!({}));
        let array = parsed(&document);
        let text = document.to_string();
        let text = text.replace(
            r#""attributes":{}"#,
            &format!(r#""attributes":{attributes}"#),
        );
        let source = StoredDocuments {
            document: text.as_bytes(),
            attributes: None,
        };
        let shown = write::array(&array, &source, FILES, Target::V2).unwrap();
        let shown: Value = serde_json::from_slice(&shown).unwrap();
        assert_eq!(shown["fill_value"], value(fill), "{data_type} {attributes}");
        let shown = array_attributes_v2(&array, &source, FILES)
            .unwrap()
            .unwrap();
        let mut shown: Value = serde_json::from_slice(&shown).unwrap();
        shown.as_object_mut().unwrap().remove("_ARRAY_DIMENSIONS");
        assert_eq!(shown, value(expected), "{data_type} {attributes}");
    }
}

#[test]
fn numbers_that_no_document_has_are_reported() {
    for (document, attributes, target, expected) in [
        (
            of_v2(&json!("<f4"), &json!(3)),
            r#""missing_value": [-Infinity, Infinity]"#,
            ZarrFormat::V3,
            "xarray takes no Infinity for missing",
        ),
        (
            of_v2(&json!("<f4"), &json!(3)),
            r#""valid_max": Infinity, "n": [1, NaN]"#,
            ZarrFormat::V3,
            "JSON has no numbers such as NaN and Infinity, so they are text in valid_max, n",
        ),
        (
            of_v2(&json!("<f4"), &json!(3)),
            r#""missing_value": NaN"#,
            ZarrFormat::V2,
            "",
        ),
        (
            of_v2(&json!("<f4"), &json!(3)),
            r#""missing_value": Infinity"#,
            ZarrFormat::V2,
            "JSON has no numbers such as NaN and Infinity, so they are text in missing_value",
        ),
        (
            of_v2(&json!("<i4"), &json!(3)),
            r#""missing_value": NaN"#,
            ZarrFormat::V2,
            "JSON has no numbers such as NaN and Infinity, so they are text in missing_value",
        ),
        (
            of_v3("float32", &json!(0), &json!(["x"]), &json!({})),
            r#""_FillValue": "AAAAAAAACEA=", "missing_value": Infinity"#,
            ZarrFormat::V2,
            "xarray takes no Infinity for missing",
        ),
    ] {
        let own = format!(r#"{{"_ARRAY_DIMENSIONS": ["x"], {attributes}}}"#);
        let told = lost(&parsed(&document), Some(own.as_bytes()), (FILES, target)).unwrap();
        assert_eq!(
            told.as_deref().unwrap_or_default(),
            expected,
            "{attributes}"
        );
    }
}
