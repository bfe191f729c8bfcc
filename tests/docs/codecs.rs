//! The tables of codecs.

use serde_json::{Value, json};

use super::documents::{self, Parsed, little};
use super::support::{Differences, everywhere, in_chunks, in_keys};
use super::{quoted, table};

/// The data type to try a codec of numcodecs with, and its parameters.
pub(crate) fn numcodecs(id: &str) -> (&'static str, Value) {
    match id {
        "delta" => ("<i4", json!({"dtype": "<i4"})),
        "fixedscaleoffset" => (
            "<f4",
            json!({"offset": 0, "scale": 10, "dtype": "<f4", "astype": "<i2"}),
        ),
        "quantize" => ("<f4", json!({"digits": 1, "dtype": "<f4"})),
        "bitround" => ("<f4", json!({"keepbits": 3})),
        "astype" => ("<i4", json!({"encode_dtype": "<i2", "decode_dtype": "<i4"})),
        "packbits" => ("|b1", json!({})),
        "categorize" => ("<U2", json!({"labels": ["a"], "dtype": "<U2"})),
        "vlen-array" => ("|O", json!({"dtype": "<i4"})),
        "vlen-utf8" | "vlen-bytes" | "json2" | "json" | "msgpack2" | "msgpack" | "pickle" => {
            ("|O", json!({}))
        }
        "pcodec" => ("<i4", json!({"level": 8})),
        "zfpy" => ("<f4", json!({"mode": 4, "tolerance": 0.1})),
        _ => ("<i4", json!({})),
    }
}

/// Arrays with the codec `id`: two of v2 (as the compressor, as a filter), two of a draft (the same), and one of v3.
pub(crate) fn with_numcodecs(id: &str) -> Vec<Parsed> {
    let (dtype, parameters) = numcodecs(id);
    let mut config = parameters.clone();
    config["id"] = json!(id);
    let dtype_v2 = json!(dtype);
    let filters = [config.clone()];
    vec![
        documents::v2(&dtype_v2, &[], &config),
        documents::v2(&dtype_v2, &filters, &Value::Null),
        documents::draft(&dtype_v2, &[], Some((id, &parameters))),
        documents::draft(&dtype_v2, &filters, None),
        numcodecs_v3(id, dtype, &parameters),
    ]
}

fn numcodecs_v3(id: &str, dtype: &str, parameters: &Value) -> Parsed {
    let (data_type, fill_value) = match dtype {
        "<f4" => (json!("float32"), json!(0.0)),
        "|b1" => (json!("bool"), json!(false)),
        "<U2" => (
            json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}),
            json!(""),
        ),
        "|O" => (json!("string"), json!("")),
        _ => (json!("int32"), json!(0)),
    };
    let codec = json!({"name": format!("numcodecs.{id}"), "configuration": parameters});
    let codecs = match id {
        "delta" | "fixedscaleoffset" | "quantize" | "bitround" | "astype" | "packbits"
        | "categorize" => json!([codec, little()]),
        "pcodec" | "zfpy" => json!([codec]),
        _ if dtype == "|O" => json!([codec]),
        _ => json!([little(), codec]),
    };
    documents::v3(&data_type, &fill_value, &codecs)
}

#[test]
fn codecs_of_numcodecs() {
    let mut differences = Differences::default();
    for row in table("Codecs of numcodecs") {
        for id in quoted(&row["id"]) {
            let all = with_numcodecs(&id);
            let [v2, v2_filter, draft, draft_filter, v3] = all.as_slice() else {
                panic!("{id}");
            };
            let columns: [(&str, &[&Parsed]); 3] = [
                ("v2", &[v2, v2_filter]),
                ("drafts", &[draft, draft_filter]),
                ("v3", &[v3]),
            ];
            for (column, sources) in columns {
                let found: Vec<bool> = sources.iter().map(|source| source.is_decoded()).collect();
                differences.check(&id, column, &row[column], &found);
            }
            for (column, sources) in [
                ("`keys --as v2`", [draft, draft_filter, v3].as_slice()),
                ("`keys --as v3`", &[v2, v2_filter, draft, draft_filter]),
            ] {
                differences.check_translation(&id, (column, &row[column]), sources, in_keys);
            }
            // Decoded chunks have no such codec any more.
            for parsed in all.iter().filter(|parsed| parsed.is_decoded()) {
                let [_, as_v2, _, as_v3] = everywhere(parsed);
                assert!(as_v2 && as_v3, "{id}");
            }
        }
    }
}

pub(crate) fn with_codec_v3(name: &str) -> Parsed {
    let bytes = little();
    let codec = |configuration: Value| json!({"name": name, "configuration": configuration});
    let (data_type, codecs) = match name {
        "bytes" => ("int32", json!([bytes])),
        "endian" => ("int32", json!([codec(json!({"endian": "big"}))])),
        "transpose" => ("int32", json!([codec(json!({"order": [0]})), bytes])),
        "reshape" => ("int32", json!([codec(json!({"shape": [2]})), bytes])),
        "bitround"
        | "https://codec.zarrs.dev/array_to_array/bitround"
        | "https://codec.zarrs.dev/array_to_bytes/bitround" => {
            ("float32", json!([codec(json!({"keepbits": 3})), bytes]))
        }
        "scale_offset" => (
            "float32",
            json!([codec(json!({"offset": 1, "scale": 10})), bytes]),
        ),
        "cast_value" => (
            "int32",
            json!([codec(json!({"data_type": "int16"})), bytes]),
        ),
        "sharding_indexed" => (
            "int32",
            json!([codec(json!({
                "chunk_shape": [1], "codecs": [bytes], "index_codecs": [bytes],
            }))]),
        ),
        "https://codec.zarrs.dev/array_to_bytes/pcodec" => ("int32", json!([codec(json!({}))])),
        "zfp" | "https://codec.zarrs.dev/array_to_bytes/zfp" => {
            ("float32", json!([codec(json!({"mode": "reversible"}))]))
        }
        "https://codec.zarrs.dev/array_to_bytes/zfpy" => ("float32", json!([codec(json!({}))])),
        "packbits" => ("bool", json!([{"name": name}])),
        "vlen-utf8" => ("string", json!([{"name": name}])),
        "vlen-bytes" => ("bytes", json!([{"name": name}])),
        "n5_default" => {
            let transpose = json!({"name": "transpose", "configuration": {"order": [0]}});
            (
                "uint8",
                json!([codec(json!({"codecs": [transpose, "bytes"]}))]),
            )
        }
        "conditional" => ("int32", json!([bytes, codec(json!({"codecs": ["gzip"]}))])),
        _ => ("int32", json!([bytes, codec(json!({}))])),
    };
    let fill_value = match data_type {
        "bool" => json!(false),
        "string" => json!(""),
        "bytes" => json!([]),
        _ => json!(0),
    };
    documents::v3(&json!(data_type), &fill_value, &codecs)
}

#[test]
fn codecs_of_v3() {
    let mut differences = Differences::default();
    for row in table("Codecs of v3") {
        for name in quoted(&row["name"]) {
            let parsed = with_codec_v3(&name);
            differences.check(&name, "decoded", &row["decoded"], &[parsed.is_decoded()]);
            for (column, view) in [
                ("`keys --as v2`", in_keys as fn((bool, bool)) -> Vec<bool>),
                ("`chunks --as v2`", in_chunks),
            ] {
                differences.check_translation(&name, (column, &row[column]), &[&parsed], view);
            }
        }
    }
}
