//! Filters decode as numcodecs does; filters that it does not have follow their specifications.

use serde_json::Value;

use super::*;
use crate::codec::ChunkSpec;
#[cfg(feature = "pcodec")]
use crate::codec::Losses;
use crate::dtype::FillValue;

/// The chain of `codecs` for chunks of `length` elements, and the data type.
pub(super) fn chain_of(
    codecs: &str,
    data_type: &str,
    length: u64,
) -> Result<(CodecChain, DataType), FormatError> {
    let codecs: Box<RawValue> = serde_json::from_str(codecs).unwrap();
    let data_type: Box<RawValue> = serde_json::from_str(data_type).unwrap();
    let data_type = DataType::parse_v3(&data_type)?;
    Ok((chain(&list(&codecs)?, &data_type, &[length])?, data_type))
}

pub(super) fn decode(
    (chain, data_type): &(CodecChain, DataType),
    length: u64,
    encoded: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let fill = FillValue::undefined(data_type);
    let shape = [length];
    let spec = spec_of(data_type, &shape, &fill);
    let mut out = vec![0xee; usize::try_from(spec.decoded_len().unwrap()).unwrap()];
    chain.decode(&spec, encoded, &mut out)?;
    Ok(out)
}

/// The encoded form of a chunk of one dimension.
#[cfg(feature = "pcodec")]
pub(super) fn encode(
    (chain, data_type): &(CodecChain, DataType),
    length: u64,
    decoded: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let fill = FillValue::undefined(data_type);
    let shape = [length];
    chain.encode(&spec_of(data_type, &shape, &fill), decoded, Losses::Refused)
}

fn spec_of<'a>(dtype: &'a DataType, shape: &'a [u64], fill: &'a FillValue) -> ChunkSpec<'a> {
    ChunkSpec { shape, dtype, fill }
}

pub(super) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn chunks_decode_as_numcodecs_decodes_them() {
    let chunks: Vec<Value> = serde_json::from_str(include_str!("filters.json")).unwrap();
    let mut refused = 0;
    for chunk in &chunks {
        let data_type = chunk["data_type"].to_string();
        let codecs = format!("[{}, {LITTLE}]", chunk["codec"]);
        let encoded = unhex(chunk["encoded"].as_str().unwrap());
        let found = decode(&chain_of(&codecs, &data_type, 11).unwrap(), 11, &encoded);
        if let Some(decoded) = chunk["decoded"].as_str() {
            assert_eq!(found.unwrap(), unhex(decoded), "{chunk}");
        } else {
            assert!(found.is_err(), "{chunk}");
            refused += 1;
        }
    }
    assert!(chunks.len() > 50 && refused > 0);
}

#[test]
fn fill_values_are_encoded_as_numcodecs_encodes_them() {
    let chunks: Vec<Value> = serde_json::from_str(include_str!("filters.json")).unwrap();
    let mut compared = 0;
    for chunk in &chunks {
        let (Some(source), Some(made)) = (chunk["source"].as_str(), chunk["made"].as_str()) else {
            continue;
        };
        let codecs = format!("[{}, {LITTLE}]", chunk["codec"]);
        let (chain, data_type) = chain_of(&codecs, &chunk["data_type"].to_string(), 11).unwrap();
        let ArrayToArray::Filter(filter) = &chain.array_to_array[0] else {
            panic!("{chunk}");
        };
        let size = |data_type: &DataType| usize::try_from(data_type.item_size).unwrap();
        let (source, made) = (unhex(source), unhex(made));
        let elements = source.chunks(size(&data_type));
        for (element, made) in elements.zip(made.chunks(size(filter.encoded_type()))) {
            assert_eq!(
                filter.encode_element(element).unwrap(),
                made,
                "{chunk}: {element:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 200);
}

/// The decoded bytes of a chunk of three elements of `data_type`.
fn three(codecs: &str, data_type: &str, encoded: &str) -> Vec<u8> {
    let chain = chain_of(codecs, data_type, 3).unwrap();
    decode(&chain, 3, &unhex(encoded)).unwrap()
}

#[test]
fn vectors_of_real_writers() {
    let scaled = r#"[{"name": "numcodecs.fixedscaleoffset", "configuration":
        {"offset": 10, "scale": 2, "dtype": "<i4", "astype": "|u1", "id": "x", "later": 1}}, "bytes"]"#;
    assert_eq!(
        three(scaled, r#""int32""#, "000204"),
        unhex("0a0000000b0000000c000000")
    );
    let bits = chain_of(r#"["numcodecs.packbits", "bytes"]"#, r#""bool""#, 10).unwrap();
    let decoded = decode(&bits, 10, &unhex("06b6c0")).unwrap();
    assert_eq!(decoded, [1, 0, 1, 1, 0, 1, 1, 0, 1, 1]);
    for wrong in ["05b6c0", "06b6", "06b6c000", ""] {
        assert!(decode(&bits, 10, &unhex(wrong)).is_err(), "{wrong}");
    }
    let labels = |dtype: &str| {
        format!(
            r#"[{{"name": "numcodecs.categorize", "configuration":
            {{"labels": ["ab", "c", "long"], "dtype": "{dtype}"}}}}, "bytes"]"#
        )
    };
    let text = r#"{"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}"#;
    assert_eq!(
        three(&labels("<U2"), text, "020100"),
        unhex("6300000000000000 6100000062000000 0000000000000000")
    );
    let bytes = r#"{"name": "null_terminated_bytes", "configuration": {"length_bytes": 2}}"#;
    assert_eq!(three(&labels("|S2"), bytes, "0103ff"), b"ablo\0\0");
}

/// A chunk of 2 x 3 `u1` is transposed to order F before the filter takes differences.
#[test]
fn a_transpose_comes_before_the_filter() {
    let codecs: Box<RawValue> = serde_json::from_str(
        r#"[{"name": "transpose", "configuration": {"order": [1, 0]}},
            {"name": "numcodecs.delta", "configuration": {"dtype": "|u1"}}, "bytes"]"#,
    )
    .unwrap();
    let data_type: Box<RawValue> = serde_json::from_str(r#""uint8""#).unwrap();
    let data_type = DataType::parse_v3(&data_type).unwrap();
    let chain = chain(&list(&codecs).unwrap(), &data_type, &[2, 3]).unwrap();
    let spec = ChunkSpec {
        shape: &[2, 3],
        dtype: &data_type,
        fill: &FillValue::new(vec![0], false),
    };
    let mut out = [0xa5; 6];
    chain
        .decode(&spec, &unhex("0103fe03fe03"), &mut out)
        .unwrap();
    assert_eq!(out, [1, 2, 3, 4, 5, 6]);
    assert!(chain.scratch_bytes(6) >= 12, "both sides of a step");
}

#[test]
fn byte_order_is_that_of_what_the_filter_made() {
    let codecs = r#"[{"name": "numcodecs.delta", "configuration": {"dtype": "<i4", "astype": ">i2"}},
        {"name": "bytes", "configuration": {"endian": "big"}}]"#;
    let decoded = three(codecs, r#""int32""#, "000a 0001 ffff");
    assert_eq!(decoded, unhex("0a000000 0b000000 0a000000"));
    let single =
        r#"[{"name": "numcodecs.astype", "configuration": {"encode_dtype": "|i1"}}, "bytes"]"#;
    assert_eq!(three(single, r#""int16""#, "0102ff"), unhex("01000200ffff"));
}

#[test]
fn filters_of_what_they_cannot_take_are_refused() {
    for (codec, data_type, message) in [
        (
            r#""numcodecs.delta", "configuration": {"dtype": "<i2"}"#,
            "int32",
            "dtype: found \"<i2\"",
        ),
        (
            r#""numcodecs.delta", "configuration": {}"#,
            "bool",
            "unsupported data type",
        ),
        (r#""numcodecs.delta""#, "complex64", "unsupported data type"),
        (
            r#""numcodecs.delta", "configuration": {"astype": "<f4"}"#,
            "int32",
            "astype: unsupported",
        ),
        (
            r#""numcodecs.fixedscaleoffset", "configuration": {"scale": 1}"#,
            "int32",
            "offset: missing",
        ),
        (
            r#""numcodecs.fixedscaleoffset", "configuration": {"scale": "1", "offset": 0}"#,
            "int32",
            "scale: found \"1\"",
        ),
        (
            r#""numcodecs.quantize", "configuration": {"digits": 2}"#,
            "int32",
            "int32 with quantize",
        ),
        (r#""numcodecs.quantize""#, "float32", "digits: missing"),
        (r#""numcodecs.astype""#, "float32", "encode_dtype: missing"),
        (r#""numcodecs.packbits""#, "int32", "int32 with packbits"),
        (
            r#""numcodecs.categorize", "configuration": {"labels": []}"#,
            "int32",
            "int32 with categorize",
        ),
        (
            r#""numcodecs.bitround", "configuration": {"keepbits": -1}"#,
            "float32",
            "keepbits: found -1",
        ),
        (
            r#""numcodecs.json2""#,
            "int32",
            "int32 with numcodecs.json2",
        ),
        (
            r#""numcodecs.nosuch""#,
            "int32",
            "[0]: unsupported codec `numcodecs.nosuch`",
        ),
        (
            r#""zarrs.squeeze""#,
            "int32",
            "[0]: unsupported codec `zarrs.squeeze`",
        ),
    ] {
        let codecs = format!(r#"[{{"name": {codec}}}, "bytes"]"#);
        let error = chain_of(&codecs, &format!("\"{data_type}\""), 3)
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{codec}: {error}");
    }
}

#[test]
fn shards_behind_filters_keep_their_fill_value() {
    let shards = r#"{"name": "sharding_indexed", "configuration": {"chunk_shape": [2],
        "codecs": ["bytes"], "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}"#;
    let scaled = r#"{"name": "numcodecs.fixedscaleoffset",
        "configuration": {"offset": 10, "scale": 2, "astype": "|u1"}}"#;
    let (chain, data_type) = chain_of(&format!("[{scaled}, {shards}]"), r#""int32""#, 4).unwrap();
    let fill = |value: i32| FillValue::new(value.to_le_bytes().to_vec(), true);
    let error = chain.check_fill(&fill(0)).unwrap_err().to_string();
    assert!(error.contains("which changes the fill value"), "{error}");
    chain.check_fill(&fill(11)).unwrap();
    let shard = [
        unhex("0204"),
        unhex("0000000000000000 0200000000000000 ffffffffffffffff ffffffffffffffff"),
    ]
    .concat();
    let spec = ChunkSpec {
        shape: &[4],
        dtype: &data_type,
        fill: &fill(11),
    };
    let mut out = [0xa5; 16];
    chain.decode(&spec, &shard, &mut out).unwrap();
    assert_eq!(
        out,
        [[11, 0, 0, 0], [12, 0, 0, 0], [11, 0, 0, 0], [11, 0, 0, 0]].concat()[..]
    );
    for mixing in [
        r#""numcodecs.delta""#,
        r#"{"name": "reshape", "configuration": {"shape": [4]}}"#,
    ] {
        let error = chain_of(&format!("[{mixing}, {shards}]"), r#""uint8""#, 4).unwrap_err();
        assert!(
            error.to_string().contains("before sharding_indexed"),
            "{error}"
        );
    }
}

#[test]
fn an_index_without_codecs_is_known_by_its_checksum() {
    let codecs = r#"[{"name": "sharding_indexed", "configuration":
        {"chunk_shape": [2], "codecs": ["bytes"]}}]"#;
    let chain = chain_of(codecs, r#""uint8""#, 4).unwrap();
    let words = "0000000000000000 0200000000000000 ffffffffffffffff ffffffffffffffff";
    let index = unhex(words);
    let bare = [&[7, 8][..], &index].concat();
    let checked = [&bare[..], &crc32c::crc32c(&index).to_le_bytes()].concat();
    for shard in [&bare, &checked] {
        assert_eq!(decode(&chain, 4, shard).unwrap(), [7, 8, 0, 0]);
        let mut damaged = shard.clone();
        damaged[9] = 1;
        assert!(decode(&chain, 4, &damaged).is_err(), "a chunk past the end");
        assert!(decode(&chain, 4, &shard[3..]).is_err(), "a shard cut off");
    }
}
