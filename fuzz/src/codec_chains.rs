//! Chains of codecs in every combination, and a chunk that is decoded and encoded.
//!
//! Most of what is chosen makes sense, so that the encoded bytes get far; the rest must be
//! refused. A codec that this version does not know is refused by name.

use serde_json::{Value, json};
use zarr_mount::metadata::{NodeMetadata, v2, v3};

use super::choices::Choices;
use super::decoding;

/// Shards in shards, at most.
const DEEPEST: usize = 2;

/// Data type and fill value, v3.
const TYPES: [(&str, &str); 16] = [
    ("uint8", "0"),
    ("bool", "false"),
    ("int16", "-2"),
    ("uint16", "7"),
    ("float16", "\"NaN\""),
    ("float32", "1.5"),
    ("int64", "-9223372036854775808"),
    ("complex64", "[0, \"Infinity\"]"),
    ("r24", "[1, 2, 3]"),
    ("float64", "\"0x7ff8000000000001\""),
    ("string", "\"a\""),
    ("bytes", "\"YQ==\""),
    ("bfloat16", "0"),
    ("variable_length_bytes", "\"\""),
    ("numpy.datetime64", "\"NaT\""),
    ("uint2", "1"),
];

/// Data type and fill value, v2.
const TYPESTRS: [(&str, &str); 12] = [
    ("\"|u1\"", "0"),
    ("\"|b1\"", "null"),
    ("\"<i2\"", "-2"),
    ("\">u2\"", "7"),
    ("\">f4\"", "\"NaN\""),
    ("\"<c8\"", "null"),
    ("\"<f8\"", "1.5"),
    ("\"|S3\"", "\"YWJj\""),
    ("\">U2\"", "\"\""),
    ("[[\"a\", \"<i2\"], [\"b\", \">f4\", [2]]]", "null"),
    ("\"|O\"", "\"\""),
    ("\"<M8[ns]\"", "0"),
];

/// Bytes-to-bytes codecs, v3.
const BYTES_TO_BYTES: [&str; 16] = [
    r#"{"name": "gzip", "configuration": {"level": 5}}"#,
    r#"{"name": "zstd", "configuration": {"level": 0, "checksum": true}}"#,
    r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}}"#,
    r#"{"name": "crc32c"}"#,
    r#""crc32c""#,
    r#"{"name": "numcodecs.zlib", "configuration": {"level": 1}}"#,
    r#"{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}"#,
    r#"{"name": "numcodecs.bz2", "configuration": {"level": 1}}"#,
    r#"{"name": "numcodecs.lzma", "configuration": {"format": 1, "check": -1, "preset": 0, "filters": null}}"#,
    r#"{"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}"#,
    r#"{"name": "numcodecs.crc32"}"#,
    r#"{"name": "numcodecs.adler32"}"#,
    r#"{"name": "numcodecs.fletcher32"}"#,
    r#"{"name": "numcodecs.jenkins_lookup3", "configuration": {"initval": 0}}"#,
    r#"{"name": "lz4"}"#,
    r#"{"name": "numcodecs.crc32c", "configuration": {"location": "start"}}"#,
];

/// Array-to-array codecs, v3, beside `transpose`.
const ARRAY_TO_ARRAY: [&str; 7] = [
    r#"{"name": "numcodecs.delta", "configuration": {"dtype": "<i2", "astype": "<i4"}}"#,
    r#"{"name": "numcodecs.fixedscaleoffset", "configuration": {"offset": 10, "scale": 2, "dtype": "<i2", "astype": "|u1"}}"#,
    r#"{"name": "numcodecs.quantize", "configuration": {"digits": 2, "dtype": "<f4"}}"#,
    r#"{"name": "numcodecs.bitround", "configuration": {"keepbits": 3}}"#,
    r#"{"name": "bitround", "configuration": {"keepbits": 3}}"#,
    r#"{"name": "numcodecs.astype", "configuration": {"encode_dtype": "<i2", "decode_dtype": "<f4"}}"#,
    r#"{"name": "numcodecs.packbits"}"#,
];

/// Array-to-bytes codecs, v3, beside `sharding_indexed`.
const ARRAY_TO_BYTES: [&str; 6] = [
    r#"{"name": "bytes", "configuration": {"endian": "little"}}"#,
    r#"{"name": "bytes", "configuration": {"endian": "big"}}"#,
    r#"{"name": "bytes"}"#,
    r#"{"name": "vlen-utf8"}"#,
    r#"{"name": "vlen-bytes"}"#,
    r#"{"name": "packbits"}"#,
];

/// Compressors and filters, v2.
const V2_CODECS: [&str; 20] = [
    r#"{"id": "zlib", "level": 1}"#,
    r#"{"id": "gzip", "level": 1}"#,
    r#"{"id": "zstd", "level": 1}"#,
    r#"{"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2, "blocksize": 0}"#,
    r#"{"id": "blosc", "cname": "blosclz", "clevel": 5, "shuffle": -1}"#,
    r#"{"id": "lz4", "acceleration": 1}"#,
    r#"{"id": "bz2", "level": 1}"#,
    r#"{"id": "lzma", "format": 3, "check": 0, "preset": null, "filters": [{"id": 33, "dict_size": 4096}]}"#,
    r#"{"id": "shuffle", "elementsize": 4}"#,
    r#"{"id": "shuffle", "elementsize": 0}"#,
    r#"{"id": "delta", "dtype": "<i2"}"#,
    r#"{"id": "delta", "dtype": "|u1", "astype": ">i4"}"#,
    r#"{"id": "fixedscaleoffset", "offset": 0.5, "scale": 0, "dtype": "<f8", "astype": "<i2"}"#,
    r#"{"id": "quantize", "digits": 300, "dtype": "<f8"}"#,
    r#"{"id": "packbits"}"#,
    r#"{"id": "crc32", "location": "end"}"#,
    r#"{"id": "fletcher32"}"#,
    r#"{"id": "vlen-utf8"}"#,
    r#"{"id": "vlen-bytes"}"#,
    r#"{"id": "vlen-array", "dtype": "<i4"}"#,
];

/// Makes a document of the first bytes and decodes the others by it.
pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    if choices.flag() {
        let document = v2_document(&mut choices).to_string();
        if let Ok(array) = v2::parse_array(document.as_bytes()) {
            decoding::check(&array, choices.rest());
        }
    } else {
        let document = v3_document(&mut choices).to_string();
        if let Ok(NodeMetadata::Array(array)) = v3::parse(document.as_bytes()) {
            decoding::check(&array, choices.rest());
        }
    }
}

fn v2_document(choices: &mut Choices<'_>) -> Value {
    let (dtype, fill_value) = choices.one_of(&TYPESTRS);
    let shape = choices.up_to(3, |choices| 1 + choices.below(9));
    json!({
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": raw(dtype), "fill_value": raw(fill_value),
        "order": choices.one_of(&["C", "F"]),
        "filters": choices.up_to(2, |choices| raw(choices.one_of(&V2_CODECS))),
        "compressor": choices.flag().then(|| raw(choices.one_of(&V2_CODECS))),
    })
}

fn v3_document(choices: &mut Choices<'_>) -> Value {
    let (data_type, fill_value) = choices.one_of(&TYPES);
    let data_type = match data_type {
        "numpy.datetime64" => {
            json!({"name": data_type, "configuration": {"unit": "s", "scale_factor": 10}})
        }
        name => json!(name),
    };
    let shape = choices.up_to(3, |choices| 1 + choices.below(9));
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape,
        "data_type": data_type, "fill_value": raw(fill_value),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": chain(choices, &shape, DEEPEST),
    })
}

fn chain(choices: &mut Choices<'_>, shape: &[usize], depth: usize) -> Value {
    let mut codecs = choices.up_to(2, |choices| {
        if choices.below(4) > 0 {
            transpose(choices, shape.len())
        } else {
            raw(choices.one_of(&ARRAY_TO_ARRAY))
        }
    });
    codecs.push(if depth > 0 && choices.below(3) == 0 {
        sharding(choices, shape, depth)
    } else {
        raw(choices.one_of(&ARRAY_TO_BYTES))
    });
    codecs.extend(choices.up_to(3, |choices| raw(choices.one_of(&BYTES_TO_BYTES))));
    Value::Array(codecs)
}

/// A permutation of the axes, and sometimes none.
fn transpose(choices: &mut Choices<'_>, rank: usize) -> Value {
    let mut order: Vec<usize> = (0..rank).collect();
    for axis in 1..rank {
        order.swap(axis, choices.below(axis + 1));
    }
    if choices.below(16) == 15 {
        order.push(0);
    }
    json!({"name": "transpose", "configuration": {"order": order}})
}

fn sharding(choices: &mut Choices<'_>, shape: &[usize], depth: usize) -> Value {
    let divide = |length: &usize| {
        let divisors: Vec<usize> = (1..=*length)
            .filter(|n| length.is_multiple_of(*n))
            .collect();
        choices.one_of(&divisors)
    };
    let chunk_shape: Vec<usize> = shape.iter().map(divide).collect();
    let mut index_codecs = vec![raw(choices.one_of(&ARRAY_TO_BYTES[..2]))];
    index_codecs.extend(choices.up_to(2, |_| json!({"name": "crc32c"})));
    json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunk_shape,
        "codecs": chain(choices, &chunk_shape, depth - 1),
        "index_codecs": index_codecs,
        "index_location": choices.one_of(&["start", "end"]),
    }})
}

fn raw(text: &str) -> Value {
    serde_json::from_str(text).expect("the tables hold JSON")
}
