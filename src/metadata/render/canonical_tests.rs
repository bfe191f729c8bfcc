//! Documents with quirks become those that every strict reader of their version takes.

use serde_json::{Value, json};

use super::super::{NodeMetadata, v2 as v2_documents, v3 as v3_documents};
use super::*;

const EXPANDED: ArrayForm = ArrayForm::Decoded(Shards::Expand);

fn render_v2(document: &str, shown: ArrayForm) -> Value {
    let parsed = v2_documents::parse_array(document.as_bytes()).unwrap();
    let text = array(document.as_bytes(), &parsed, shown).unwrap();
    let after = v2_documents::parse_array(&text).unwrap().decoding.unwrap();
    let before = parsed.decoding.unwrap();
    assert_eq!(after.fill_value.bytes(), before.fill_value.bytes());
    serde_json::from_slice(&text).unwrap()
}

fn render_v3(document: &Value, shown: ArrayForm) -> Value {
    let text = document.to_string();
    let Ok(NodeMetadata::Array(parsed)) = v3_documents::parse(text.as_bytes()) else {
        panic!("no array: {text}");
    };
    let text = array(text.as_bytes(), &parsed, shown).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn fill_values_of_v2_have_one_spelling() {
    for (dtype, stored, canonical) in [
        (r#""<c8""#, "0", "[0.0,0.0]"),
        (r#"">c16""#, "3.5", "[3.5,0.0]"),
        (r#""<c8""#, r#"[1, "NaN"]"#, r#"[1,"NaN"]"#),
        (r#""<c8""#, r#"[NaN, "1"]"#, r#"["NaN",1.0]"#),
        (r#""<f4""#, "-0", "0.0"),
        (r#""<f4""#, "-0.0", "-0.0"),
        (r#""|V4""#, "0", r#""AAAAAA==""#),
        (r#""|V4""#, r#""YWJjZA==""#, r#""YWJjZA==""#),
        (r#"[["a", ">i2"], ["b", "|u1"]]"#, "0", r#""AAAA""#),
        (r#"[["a", ">i2"], ["b", "|u1"]]"#, r#""AAEC""#, r#""AAEC""#),
        // tensorstore only accepts fill values that are a whole element.
        (r#""|S4""#, "0", r#""AAAAAA==""#),
        (r#""|S4""#, r#""""#, r#""AAAAAA==""#),
        (r#""|S4""#, r#""a""#, r#""YQAAAA==""#),
        (r#""|S4""#, r#""YWI""#, r#""WVdJAA==""#),
        (r#""|S4""#, r#""YWI=""#, r#""YWIAAA==""#),
        (r#""|S3""#, r#""YWJj""#, r#""YWJj""#),
        (r#""<U2""#, "0", r#""""#),
        (r#""<U2""#, r#""\u0061""#, r#""a""#),
        (r#""<i8""#, "-9.223372036854776e+18", "-9223372036854775808"),
        (r#""<M8[s]""#, "7.0", "7"),
        (r#""<M8[s]""#, r#""7""#, "7"),
        (r#""<M8[s]""#, r#""NaT""#, r#""NaT""#),
        (r#""<M8[s]""#, "null", "null"),
        // NumPy accepts no number as a date without a unit.
        (r#""<M8""#, "-9223372036854775808", r#""NaT""#),
        (r#""<M8""#, r#""NaT""#, r#""NaT""#),
        (r#""<m8""#, "-9223372036854775808", "-9223372036854775808"),
    ] {
        let document = format!(
            r#"{{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":{dtype},"fill_value":{stored},
            "order":"C","filters":null,"compressor":null}}"#
        );
        for shown in [EXPANDED, ArrayForm::Canonical] {
            let found = render_v2(&document, shown);
            assert_eq!(
                found["fill_value"].to_string(),
                canonical,
                "{dtype} {stored}"
            );
        }
    }
}

/// The number 0 stays the fill value of texts: readers differ in its meaning, but none refuses it.
#[test]
fn fill_values_of_objects_are_what_readers_take() {
    for (codec, stored, canonical) in [
        ("vlen-bytes", "0", r#""""#),
        ("vlen-bytes", r#""a""#, r#""YQ==""#),
        ("vlen-bytes", r#""YQ==""#, r#""YQ==""#),
        ("vlen-utf8", "0", "0"),
        ("vlen-utf8", r#""x""#, r#""x""#),
        ("json2", r#"{"a":1.0}"#, r#"{"a":1.0}"#),
    ] {
        let document = format!(
            r#"{{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"|O","fill_value":{stored},
            "order":"C","filters":[{{"id":"{codec}"}}],"compressor":null}}"#
        );
        let found = render_v2(&document, EXPANDED);
        assert_eq!(
            found["fill_value"].to_string(),
            canonical,
            "{codec} {stored}"
        );
        assert_eq!(found["filters"], json!([{"id": codec}]));
    }
}

#[test]
fn lengths_that_stand_alone_become_lists() {
    let v2 = r#"{"zarr_format":2,"shape":6,"chunks":3,"dtype":"<i4","fill_value":0,"order":"C","filters":null,
        "compressor":null}"#;
    let v3 = json!({
        "zarr_format": 3, "node_type": "array", "shape": 6, "data_type": "int32", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": 3}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    for shown in [EXPANDED, ArrayForm::Canonical] {
        let found = render_v2(v2, shown);
        assert_eq!(
            (&found["shape"], &found["chunks"]),
            (&json!([6]), &json!([3]))
        );
        let found = render_v3(&v3, shown);
        assert_eq!(found["shape"], json!([6]));
        assert_eq!(
            found["chunk_grid"]["configuration"]["chunk_shape"],
            json!([3])
        );
    }
}

#[test]
fn texts_of_integers_become_fill_values_of_v3() {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [6], "data_type": "int32", "fill_value": "-5",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    for shown in [EXPANDED, ArrayForm::Canonical] {
        assert_eq!(render_v3(&document, shown)["fill_value"], json!(-5));
    }
}

#[test]
fn attributes_that_say_nothing_become_an_empty_object() {
    for nothing in [json!(null), json!([])] {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [6], "data_type": "int8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [{"name": "bytes"}], "attributes": nothing,
        });
        for shown in [EXPANDED, ArrayForm::Canonical] {
            assert_eq!(render_v3(&document, shown)["attributes"], json!({}));
        }
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": nothing});
        let text = group_v3(group.to_string().as_bytes()).unwrap();
        let found: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(found["attributes"], json!({}));
    }
}

#[test]
fn codecs_of_v2_have_the_parameters_that_all_readers_take() {
    let whole = r#"{"id":"blosc","cname":"zstd","clevel":5,"shuffle":-1,"blocksize":0}"#;
    let blosc = r#"{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1,"blocksize":0}"#;
    for (filters, compressor, expected) in [
        (
            "null",
            r#"{"id":"zlib","level":1.0}"#,
            [json!(null), json!({"id": "zlib", "level": 1})],
        ),
        (
            r#"[{"id":"shuffle","elementsize":"4"}]"#,
            r#"{"id":"zlib","level":"1"}"#,
            [
                json!([{"id": "shuffle", "elementsize": 4}]),
                json!({"id": "zlib", "level": 1}),
            ],
        ),
        (
            "null",
            r#"{"id":"zlib","level":1,"more":2}"#,
            [json!(null), json!({"id": "zlib", "level": 1})],
        ),
        (
            "null",
            r#"{"id":"gzip"}"#,
            [json!(null), json!({"id": "gzip", "level": 1})],
        ),
        // tensorstore does not know `checksum`.
        (
            "null",
            r#"{"id":"zstd","level":1,"checksum":false}"#,
            [json!(null), json!({"id": "zstd", "level": 1})],
        ),
        (
            "null",
            whole,
            [json!(null), serde_json::from_str(whole).unwrap()],
        ),
        (
            "null",
            r#"{"id":"blosc"}"#,
            [json!(null), serde_json::from_str(blosc).unwrap()],
        ),
        (
            "null",
            r#"{"id":"blosc","cname":"lz4","clevel":5.0,"shuffle":"shuffle","blocksize":0,"typesize":4}"#,
            [json!(null), serde_json::from_str(blosc).unwrap()],
        ),
        (
            r#"[{"id":"shuffle","elementsize":4.0}]"#,
            r#"{"id":"zlib","level":1}"#,
            [
                json!([{"id": "shuffle", "elementsize": 4}]),
                json!({"id": "zlib", "level": 1}),
            ],
        ),
        // As a float, the offset has another meaning, so it stays one.
        (
            r#"[{"id":"fixedscaleoffset","offset":10.0,"scale":2,"dtype":"<i4","astype":"<i4","more":1}]"#,
            "null",
            [
                json!([{"id": "fixedscaleoffset", "offset": 10.0, "scale": 2, "dtype": "<i4", "astype": "<i4"}]),
                json!(null),
            ],
        ),
    ] {
        let document = format!(
            r#"{{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<i4","fill_value":0,
            "order":"C","filters":{filters},"compressor":{compressor}}}"#
        );
        let found = render_v2(&document, ArrayForm::Canonical);
        assert_eq!(
            [&found["filters"], &found["compressor"]],
            expected.each_ref(),
            "{compressor}"
        );
    }
}

/// The byte order of the elements is that of the first filter's input. The byte order of its output may be another one.
#[test]
fn filters_to_another_byte_order_leave_the_type_of_the_elements() {
    for (dtype, astype) in [("<f8", ">i2"), (">f8", "<i2")] {
        let document = format!(
            r#"{{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"{dtype}","fill_value":0,"order":"C",
            "filters":[{{"id":"fixedscaleoffset","offset":1,"scale":2,"dtype":"{dtype}","astype":"{astype}"}}],"compressor":null}}"#
        );
        let found = render_v2(&document, ArrayForm::Canonical);
        let stored: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(
            [&found["dtype"], &found["filters"]],
            [&stored["dtype"], &stored["filters"]]
        );
    }
}

#[test]
fn chunks_of_no_element_are_chunks_of_one() {
    let document = r#"{"zarr_format":2,"shape":[0,3],"chunks":[0,3],"dtype":"<i4","fill_value":0,
        "order":"F","filters":null,"compressor":null}"#;
    for shown in [EXPANDED, ArrayForm::Canonical] {
        assert_eq!(render_v2(document, shown)["chunks"], json!([1, 3]));
    }
}

#[test]
fn fewer_than_two_dimensions_have_one_order() {
    let document = r#"{"zarr_format":2,"shape":[],"chunks":[],"dtype":"<i4","fill_value":0,
        "order":"F","filters":null,"compressor":null}"#;
    assert_eq!(render_v2(document, ArrayForm::Canonical)["order"], "C");
}

#[test]
fn extensions_of_v3_have_one_spelling() {
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let document = |name: &str, value: Value| {
        let mut document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": [little],
        });
        document[name] = value;
        document
    };
    let regular = json!({"name": "regular", "configuration": {"chunk_shape": [2]}});
    let rectilinear = |lengths: Value| json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [lengths]}});
    let shards = |chunk: Value, level: Value, location: Value| {
        let zstd = json!({"name": "zstd", "configuration": {"level": level}});
        let index = [
            little.clone(),
            json!({"name": "crc32c", "configuration": null}),
        ];
        json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [chunk],
            "codecs": [little, zstd], "index_codecs": index, "index_location": location}}])
    };
    let mut plain_shards = shards(json!(1), json!(3), json!("end"));
    let inside = &mut plain_shards[0]["configuration"];
    inside["codecs"][1]["configuration"]["checksum"] = json!(false);
    inside["index_codecs"][1] = json!({"name": "crc32c"});
    let mut no_location = plain_shards.clone();
    let inside = no_location[0]["configuration"].as_object_mut().unwrap();
    inside.remove("index_location");
    for (name, stored, canonical) in [
        ("chunk_grid", rectilinear(json!(2.0)), regular.clone()),
        ("chunk_grid", rectilinear(json!([[2, 2]])), regular),
        (
            "chunk_grid",
            rectilinear(json!([3.0, [1, 2.0], 4])),
            rectilinear(json!([3, [1, 2], 4])),
        ),
        (
            "chunk_grid",
            json!({"name": "rectangular", "configuration": {"chunk_shape": [[3, 1]]}}),
            rectilinear(json!([3, 1])),
        ),
        (
            "data_type",
            json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1.0}}),
            json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}),
        ),
        (
            "data_type",
            json!({"name": "int16", "configuration": null}),
            json!("int16"),
        ),
        (
            "codecs",
            shards(json!(1.0), json!(3.0), json!("end")),
            plain_shards,
        ),
        (
            "codecs",
            shards(json!(1), json!(3), json!(null)),
            no_location,
        ),
    ] {
        let found = render_v3(&document(name, stored), ArrayForm::Canonical);
        assert_eq!(found, document(name, canonical));
    }
}

#[test]
fn fill_values_of_v3_have_one_spelling() {
    let bytes = json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}});
    let time =
        json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}});
    for (data_type, codec, stored, canonical) in [
        (bytes.clone(), "bytes", json!([97, 98]), json!("YWI=")),
        (bytes, "bytes", json!("YWI="), json!("YWI=")),
        (
            json!("variable_length_bytes"),
            "vlen-bytes",
            json!([97]),
            json!("YQ=="),
        ),
        (json!("r16"), "bytes", json!([1, 2]), json!("AQI=")),
        (time.clone(), "bytes", json!(7.0), json!(7)),
        (time, "bytes", json!("NaT"), json!("NaT")),
    ] {
        let codec = match (codec, &stored) {
            ("bytes", Value::Number(_) | Value::String(_))
                if data_type["name"] == "numpy.datetime64" =>
            {
                json!({"name": "bytes", "configuration": {"endian": "little"}})
            }
            _ => json!({"name": codec}),
        };
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": stored, "codecs": [codec],
        });
        for shown in [EXPANDED, ArrayForm::Canonical] {
            assert_eq!(
                render_v3(&document, shown)["fill_value"],
                canonical,
                "{data_type}"
            );
        }
    }
}
