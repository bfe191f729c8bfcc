//! Chunks are encoded as the documents of every version say: to the bytes that numcodecs makes,
//! without unseen losses, and not at all where a document does not say enough.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use serde_json::{Value, json};
use zarr_mount::codec::{ChunkSpec, Losses};
use zarr_mount::error::FormatError;
use zarr_mount::metadata::draft::{self, Generation};
use zarr_mount::metadata::{ArrayMetadata, NodeMetadata, pre_v1, v1, v2, v3};

/// An array of one chunk of v3.
fn in_v3(data_type: &Value, shape: &[u64], codecs: &Value) -> ArrayMetadata {
    let fill_value = match data_type.as_str() {
        Some("string") | None => json!(""),
        Some("bool") => json!(false),
        _ => json!(0),
    };
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": fill_value, "codecs": codecs,
    });
    match v3::parse(document.to_string().as_bytes()).unwrap() {
        NodeMetadata::Array(array) => *array,
        NodeMetadata::Group => panic!("a group"),
    }
}

/// An array of one chunk of v2.
fn in_v2(dtype: &str, shape: &[u64], filters: &Value, compressor: &Value) -> ArrayMetadata {
    let document = json!({
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "fill_value": null,
        "order": "C", "filters": filters, "compressor": compressor,
    });
    v2::parse_array(document.to_string().as_bytes()).unwrap()
}

/// An array of one chunk of v1.
fn in_v1(dtype: &str, shape: &[u64], compression: &Value, options: &Value) -> ArrayMetadata {
    let mut document = json!({
        "zarr_format": 1, "shape": shape, "chunks": shape, "dtype": dtype, "fill_value": 0,
        "order": "C", "compression": compression,
    });
    if !options.is_null() {
        document["compression_opts"] = options.clone();
    }
    v1::parse_array(document.to_string().as_bytes()).unwrap()
}

fn spec<'a>(array: &'a ArrayMetadata, shape: &'a [u64]) -> ChunkSpec<'a> {
    let decoding = array.decoding.as_ref().unwrap();
    ChunkSpec {
        shape,
        dtype: &decoding.data_type,
        fill: &decoding.fill_value,
    }
}

fn encode(array: &ArrayMetadata, decoded: &[u8], losses: Losses) -> Result<Vec<u8>, FormatError> {
    let codecs = &array.decoding.as_ref().unwrap().codecs;
    codecs.encode(&spec(array, &array.chunks.longest()), decoded, losses)
}

fn decode(array: &ArrayMetadata, encoded: &[u8], length: usize) -> Vec<u8> {
    let codecs = &array.decoding.as_ref().unwrap().codecs;
    let mut out = vec![0xee; length];
    codecs
        .decode(&spec(array, &array.chunks.longest()), encoded, &mut out)
        .unwrap();
    out
}

/// Why chunks of the array cannot be encoded.
fn refusal(array: &ArrayMetadata) -> String {
    let codecs = &array.decoding.as_ref().unwrap().codecs;
    codecs.check_encodes().unwrap_err().to_string()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|digit| *digit != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn of<const N: usize, T>(numbers: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8>
where
    T: Copy,
{
    numbers.iter().flat_map(|number| bytes(*number)).collect()
}

fn text(words: &[&str], length: usize) -> Vec<u8> {
    let word = |word: &&str| {
        let characters = word.chars().map(u32::from);
        let padded = characters.chain(std::iter::repeat(0)).take(length);
        padded.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
    };
    words.iter().flat_map(word).collect()
}

/// The filters of numcodecs 0.16.6: the dtype, the filter, elements, their encoded bytes, and
/// whether decoding gives the same elements.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn filters_encode_to_the_bytes_of_numcodecs() {
    let i2 = |numbers: &[i16]| of(numbers, i16::to_le_bytes);
    let i4 = |numbers: &[i32]| of(numbers, i32::to_le_bytes);
    let f4 = |numbers: &[f32]| of(numbers, f32::to_le_bytes);
    let f8 = |numbers: &[f64]| of(numbers, f64::to_le_bytes);
    let bits = [
        0x3dcc_cccd,
        0xc049_0fdb,
        0x7fc0_0001,
        0x7fff_ffff,
        0x7f80_0001,
    ];
    let tenths: Vec<f64> = (0..10).map(|i| 1000.0 + f64::from(i) / 9.0).collect();
    for (dtype, filter, decoded, encoded, exact) in [
        (
            "<i2",
            json!({"id": "delta", "dtype": "<i2", "astype": "|i1"}),
            i2(&[100, 102, 90, -3]),
            "6402f4a3",
            true,
        ),
        (
            "|u1",
            json!({"id": "delta", "dtype": "|u1"}),
            vec![3, 1, 255, 0],
            "03fefe01",
            true,
        ),
        (
            "<f4",
            json!({"id": "delta", "dtype": "<f4"}),
            f4(&[0.1, 0.3, -5.0, f32::INFINITY, 1.0]),
            "cdcccc3dcecc4c3e9a99a9c00000807f000080ff",
            false,
        ),
        (
            "<f8",
            json!({"id": "delta", "dtype": "<f8", "astype": "<i2"}),
            f8(&[1.5, 3.9, -5.0]),
            "01000200f8ff",
            false,
        ),
        (
            "<i4",
            json!({"id": "fixedscaleoffset", "offset": 10, "scale": 2, "dtype": "<i4", "astype": "|u1"}),
            i4(&[10, 11, 12, 100]),
            "000204b4",
            true,
        ),
        (
            "<f8",
            json!({"id": "fixedscaleoffset", "offset": 1000.0, "scale": 10, "dtype": "<f8", "astype": "|u1"}),
            f8(&tenths),
            "0001020304060708090a",
            false,
        ),
        (
            "<f4",
            json!({"id": "fixedscaleoffset", "offset": 0.1, "scale": 7.5, "dtype": "<f4", "astype": "<f4"}),
            f4(&[1.0, 2.5, -3.0]),
            "0000e040000090410000b8c1",
            false,
        ),
        (
            "<f4",
            json!({"id": "quantize", "digits": 2, "dtype": "<f4"}),
            f4(&[0.111, 1.26, -std::f32::consts::PI, f32::NAN]),
            "0000e03d0000a13f000049c00000c07f",
            false,
        ),
        (
            "<f8",
            json!({"id": "quantize", "digits": 1, "dtype": "<f8", "astype": "<f2"}),
            f8(&[0.111, 1.26, -std::f64::consts::PI]),
            "0030003d40c2",
            false,
        ),
        (
            "<f4",
            json!({"id": "bitround", "keepbits": 3}),
            of(&bits, u32::to_le_bytes),
            "0000d03d000050c00000c07f000000800000807f",
            false,
        ),
        (
            "<f4",
            json!({"id": "astype", "encode_dtype": "|i1", "decode_dtype": "<f4"}),
            f4(&[1.9, -1.9, 100.0]),
            "01ff64",
            false,
        ),
        (
            "<f8",
            json!({"id": "astype", "encode_dtype": "<f2", "decode_dtype": "<f8"}),
            f8(&[1.9, 1e-8, 65519.0, 1e9]),
            "9a3f0000ff7b007c",
            false,
        ),
        (
            "|b1",
            json!({"id": "packbits"}),
            vec![1, 0, 1, 1, 0, 0, 0, 0, 1],
            "07b080",
            true,
        ),
        (
            "<U6",
            json!({"id": "categorize", "labels": ["female", "male"], "dtype": "<U6", "astype": "|u1"}),
            text(&["male", "female", "x", ""], 6),
            "02010000",
            false,
        ),
        (
            "<i4",
            json!({"id": "shuffle", "elementsize": 4}),
            i4(&[10, 11, 12, 13]),
            "0a0b0c0d000000000000000000000000",
            true,
        ),
    ] {
        let item_size = match dtype {
            "<U6" => 24,
            _ => usize::from(dtype.as_bytes()[2] - b'0'),
        };
        let count = (decoded.len() / item_size) as u64;
        let array = in_v2(dtype, &[count], &json!([filter]), &json!(null));
        let stored = encode(&array, &decoded, Losses::Allowed).unwrap();
        assert_eq!(stored, bytes_of(encoded), "{filter}");
        let refused = encode(&array, &decoded, Losses::Refused);
        assert_eq!(refused.is_ok(), exact, "{filter}: {refused:?}");
        // Elements that were rounded once are not changed by a second encoding.
        let rounded = decode(&array, &stored, decoded.len());
        if !filter["id"].as_str().unwrap().starts_with("delta") {
            let again = encode(&array, &rounded, Losses::Refused);
            assert_eq!(again, Ok(stored), "{filter}");
        }
    }
}

#[test]
fn losses_are_named_with_their_place() {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "big"}});
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let rounded = json!({"name": "bitround", "configuration": {"keepbits": 2}});
    let cast = json!({"name": "cast_value", "configuration": {
        "data_type": "float32", "rounding": "nearest-even"}});
    let array = in_v3(
        &json!("float64"),
        &[2, 3],
        &json!([transpose, rounded, cast, bytes, "zstd"]),
    );
    let good = of(&[1.0, 1.5, -0.0, 2.0, f64::INFINITY, 3.5], f64::to_le_bytes);
    let encoded = encode(&array, &good, Losses::Refused).unwrap();
    assert_eq!(decode(&array, &encoded, good.len()), good);
    let mut bad = good.clone();
    bad[4 * 8..5 * 8].copy_from_slice(&0.1_f64.to_le_bytes());
    let error = encode(&array, &bad, Losses::Refused)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "codecs: the element at [1, 1] of the chunk would be stored as another value (bitround, cast_value)"
    );
    let stored = encode(&array, &bad, Losses::Allowed).unwrap();
    let shown = decode(&array, &stored, bad.len());
    assert_eq!(shown[4 * 8..5 * 8], 0.09375_f64.to_le_bytes());

    let cast = json!({"name": "cast_value", "configuration": {"data_type": "int8"}});
    let array = in_v3(&json!("int16"), &[3], &json!([cast, "bytes"]));
    let large = of(&[1_i16, 300, 2], i16::to_le_bytes);
    for losses in [Losses::Refused, Losses::Allowed] {
        let error = encode(&array, &large, losses).unwrap_err().to_string();
        assert_eq!(
            error,
            "cast_value: 300, number 1 of the chunk, has no encoded value"
        );
    }
    let bits = json!({"name": "packbits", "configuration": {"padding_encoding": "first_byte"}});
    let array = in_v3(&json!("bool"), &[10], &json!([bits]));
    let bools = [1, 0, 1, 1, 0, 0, 0, 0, 1, 1];
    let encoded = encode(&array, &bools, Losses::Refused).unwrap();
    assert_eq!(encoded, [6, 0b0000_1101, 0b11]);
    let error = encode(&array, &[2; 10], Losses::Refused)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("packbits: the element at [0]"), "{error}");
    for length in [0, 9, 11] {
        assert!(encode(&array, &vec![1; length], Losses::Allowed).is_err());
    }
}

#[test]
fn texts_of_a_fixed_length_become_items() {
    let data_type = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}});
    let array = in_v3(&data_type, &[4], &json!(["vlen-utf8"]));
    let words = text(&["a", "bcd", "", "é𝄞"], 3);
    let encoded = encode(&array, &words, Losses::Refused).unwrap();
    let expected = b"\x04\0\0\0\x01\0\0\0a\x03\0\0\0bcd\0\0\0\0\x06\0\0\0\xc3\xa9\xf0\x9d\x84\x9e";
    assert_eq!(encoded, expected);
    assert_eq!(decode(&array, &encoded, words.len()), words);
    let mut surrogate = words.clone();
    surrogate[..4].copy_from_slice(&0xd800_u32.to_le_bytes());
    let error = encode(&array, &surrogate, Losses::Allowed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "vlen-utf8: element 0 of the chunk is no text"
    );
}

#[test]
fn elements_that_differ_in_length_are_checked() {
    let string = |codecs: &Value, shape: &[u64]| in_v3(&json!("string"), shape, codecs);
    let encode = |array: &ArrayMetadata, bytes: &[u8]| {
        let codecs = &array.decoding.as_ref().unwrap().codecs;
        let encoded = codecs.encode_variable(&spec(array, &array.chunks.longest()), bytes)?;
        let decoded =
            codecs.decode_variable(&spec(array, &array.chunks.longest()), &encoded, 1 << 20);
        assert_eq!(decoded.unwrap(), bytes);
        Ok::<_, FormatError>(encoded)
    };
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let moved = string(&json!([transpose, "vlen-utf8", "crc32c"]), &[2, 2]);
    let items = b"\x04\0\0\0\x01\0\0\0a\x02\0\0\0bc\0\0\0\0\x01\0\0\0d";
    let encoded = encode(&moved, items).unwrap();
    assert_eq!(
        encoded[..items.len()],
        *b"\x04\0\0\0\x01\0\0\0a\0\0\0\0\x02\0\0\0bc\x01\0\0\0d"
    );
    for wrong in [
        &items[..items.len() - 1],
        &[items, &b"!"[..]].concat(),
        b"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"",
    ] {
        assert!(encode(&moved, wrong).is_err(), "{wrong:?}");
    }
    let category = json!({"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": "<i2"});
    let array = in_v2("|O", &[2], &json!([category]), &json!({"id": "zlib"}));
    encode(&array, b"\x01\0\0\0").unwrap();
    assert!(encode(&array, b"\x01\0\0").is_err());
    let json2 = json!({"name": "numcodecs.json2"});
    let array = string(&json!([json2]), &[2, 1]);
    encode(&array, br#"[["a"],["b"],"|O",[2,1]]"#).unwrap();
    encode(&array, br#"[[NaN],["NaN \"-"],"|O",[2,1]]"#).unwrap();
    encode(&array, br#"[[-Infinity],[{"a":[]}],"|O",[2,1]]"#).unwrap();
    for wrong in [
        &br#"[["a"],"|O",[2,1]]"#[..],
        br#"[["a"],["b"],"|O",[2,2]]"#,
        br#"["a","b"]"#,
        b"[",
        br#"[["a"],["b"],"|O",[2,1]] x"#,
    ] {
        assert!(encode(&array, wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn lists_of_messagepack_say_their_shape() {
    let array = in_v3(
        &json!("string"),
        &[2],
        &json!([{"name": "numcodecs.msgpack2"}]),
    );
    let codecs = &array.decoding.as_ref().unwrap().codecs;
    let list = b"\x94\xa1a\xa2bc\xa2|O\x91\x02";
    assert_eq!(
        codecs
            .encode_variable(&spec(&array, &array.chunks.longest()), list)
            .unwrap(),
        list
    );
    for wrong in [
        &b"\x93\xa1a\xa2|O\x91\x01"[..],
        b"\x94\xa1a\xa2bc\xa2|O\x91\x03",
        b"",
    ] {
        assert!(
            codecs
                .encode_variable(&spec(&array, &array.chunks.longest()), wrong)
                .is_err()
        );
    }
}

/// Defaults are those of numcodecs; v3 itself has few.
#[test]
fn parameters_may_be_absent() {
    let numbers = of(&(0..500).collect::<Vec<i32>>(), i32::to_le_bytes);
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    for (id, full) in [
        ("zlib", json!({"level": 1})),
        ("gzip", json!({"level": 1})),
        ("zlib", json!({"level": 1, "unknown": 3})),
        ("lz4", json!({"acceleration": 1})),
        ("bz2", json!({"level": 1})),
        (
            "lzma",
            json!({"format": 1, "check": -1, "preset": null, "filters": null}),
        ),
        ("lzma", json!({"check": 4, "preset": 6})),
        ("zstd", json!({"level": 0, "checksum": false})),
        ("zstd", json!({"level": 3})),
        (
            "blosc",
            json!({"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        ),
        ("blosc", json!({"shuffle": -1})),
    ] {
        let of_v2 = |members: &Value| {
            let mut config = members.clone();
            config["id"] = json!(id);
            let array = in_v2("<i4", &[500], &json!(null), &config);
            encode(&array, &numbers, Losses::Refused).unwrap()
        };
        assert_eq!(of_v2(&json!({})), of_v2(&full), "{id} of v2");
        let of_v3 = |members: &Value| {
            let codec = json!({"name": format!("numcodecs.{id}"), "configuration": members});
            let array = in_v3(&json!("int32"), &[500], &json!([little, codec]));
            encode(&array, &numbers, Losses::Refused).unwrap()
        };
        if full != json!({"shuffle": -1}) {
            assert_eq!(of_v3(&json!({})), of_v3(&full), "{id} of v3");
        }
    }
    for (compression, full) in [
        (
            "blosc",
            json!({"cname": "blosclz", "clevel": 5, "shuffle": 1}),
        ),
        (
            "lzma",
            json!({"format": 1, "check": 0, "preset": 1, "filters": null}),
        ),
        ("zlib", json!(1)),
        ("gzip", json!(1)),
        ("bz2", json!(1)),
    ] {
        let of_v1 = |options: &Value| {
            let array = in_v1("<i4", &[500], &json!(compression), options);
            encode(&array, &numbers, Losses::Refused).unwrap()
        };
        assert_eq!(of_v1(&json!(null)), of_v1(&full), "{compression} of v1");
    }
    // The typesize is that of an element where the document leaves it out.
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "zstd", "clevel": 1, "shuffle": "noshuffle"}});
    let array = in_v3(&json!("int32"), &[500], &json!([little, blosc]));
    assert_eq!(encode(&array, &numbers, Losses::Refused).unwrap()[3], 4);
}

/// The parameters in documents of every older version reach the codec: the same codec encodes to the same bytes in
/// each version.
#[test]
fn older_documents_say_the_same() {
    let numbers = of(&(0..600).collect::<Vec<i32>>(), i32::to_le_bytes);
    let stored = |array: &ArrayMetadata| {
        let encoded = encode(array, &numbers, Losses::Refused).unwrap();
        assert_eq!(decode(array, &encoded, numbers.len()), numbers);
        encoded
    };
    let shape = [20, 30];
    let of_v2 = |compressor: Value| stored(&in_v2("<i4", &shape, &json!(null), &compressor));
    let of_draft = |generation: Generation, member: &str, codecs: Value| {
        let mut document = json!({
            "attributes": {}, "shape": shape, "fill_value": 0, "extensions": [],
            "chunk_grid": {"type": "regular", "chunk_shape": shape, "separator": "/"},
            "chunk_memory_layout": "C",
            "data_type": if member == "codecs" { "int32" } else { "<i4" },
        });
        document[member] = codecs;
        stored(&draft::parse_array(document.to_string().as_bytes(), generation).unwrap())
    };
    let uri = "https://purl.org/zarr/spec/codec/gzip/1.0";
    let gzip = of_v2(json!({"id": "gzip", "level": 7}));
    assert_ne!(gzip, of_v2(json!({"id": "gzip", "level": 0})));
    let level = json!({"level": 7});
    let compressor = json!({"codec": uri, "configuration": level});
    assert_eq!(
        of_draft(Generation::Protocol, "compressor", compressor),
        gzip
    );
    let codecs = json!([{"type": uri, "configuration": level}]);
    assert_eq!(of_draft(Generation::Core, "codecs", codecs), gzip);
    let options = json!({"cname": "zstd", "clevel": 7, "shuffle": 2});
    let blosc = of_v2(json!({"id": "blosc", "cname": "zstd", "clevel": 7, "shuffle": 2}));
    assert_eq!(blosc[3], 4, "the size of an element");
    assert_eq!(
        stored(&in_v1("<i4", &shape, &json!("blosc"), &options)),
        blosc
    );
    let document = json!({"shape": shape, "chunks": shape, "dtype": "<i4", "fill_value": 0,
        "cname": "zstd", "clevel": 7, "shuffle": 2});
    let array = pre_v1::parse_array(document.to_string().as_bytes()).unwrap();
    assert_eq!(stored(&array), blosc);
    let bz2 = of_v2(json!({"id": "bz2", "level": 9}));
    assert_eq!(stored(&in_v1("<i4", &shape, &json!("bz2"), &json!(9))), bz2);
}

/// An array that cannot be encoded by its document can still be read.
#[test]
fn refusals_are_by_name() {
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let shard = json!({"name": "sharding_indexed", "configuration": {"chunk_shape": [2],
        "codecs": [little, "gzip"], "index_codecs": [little, "crc32c"]}});
    let lzma = |filters: Value| json!({"name": "numcodecs.lzma", "configuration": {"format": 1, "filters": filters}});
    for (codecs, name) in [
        (json!([shard]), "gzip, whose `level`"),
        (
            json!([little, "gzip"]),
            "gzip, whose `level` is missing or wrong",
        ),
        (
            json!([little, {"name": "gzip", "configuration": {"level": 10}}]),
            "gzip, whose `level`",
        ),
        (
            json!([little, {"name": "gzip", "configuration": {"level": "1"}}]),
            "gzip, whose `level`",
        ),
        (
            json!([little, {"name": "zstd", "configuration": {"level": 23}}]),
            "zstd, whose `level`",
        ),
        (
            json!([little, {"name": "zstd", "configuration": {"level": 1, "checksum": 1}}]),
            "zstd, whose `checksum`",
        ),
        (json!([little, "blosc"]), "blosc, whose `cname`"),
        (
            json!([little, "zstd", {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5}}]),
            "blosc, whose `shuffle`",
        ),
        (
            json!([little, {"name": "numcodecs.blosc", "configuration": {"cname": "lz5"}}]),
            "blosc, whose `cname`",
        ),
        (
            json!([little, {"name": "numcodecs.blosc", "configuration": {"blocksize": -1}}]),
            "blosc, whose `blocksize`",
        ),
        (
            json!([little, {"name": "numcodecs.lz4", "configuration": {"acceleration": 0.5}}]),
            "lz4, whose `acceleration`",
        ),
        (
            json!([little, {"name": "numcodecs.bz2", "configuration": {"level": 0}}]),
            "bz2, whose `level`",
        ),
        (
            json!([little, {"name": "numcodecs.lzma", "configuration": {"preset": 10}}]),
            "lzma, whose `preset`",
        ),
        (
            json!([little, {"name": "numcodecs.lzma", "configuration": {"check": 2}}]),
            "lzma, whose `check`",
        ),
        (
            json!([little, {"name": "numcodecs.lzma", "configuration": {"format": 2, "check": 4}}]),
            "lzma, whose `check`",
        ),
        (
            json!([little, lzma(json!([{"id": 0x21, "mode": "fast"}]))]),
            "lzma, whose `filters`",
        ),
        (
            json!([little, lzma(json!([{"id": 3}]))]),
            "lzma with such filters",
        ),
        (
            json!([little, {"name": "conditional", "configuration": {"codecs": ["crc32c"]}}]),
            "conditional",
        ),
        #[cfg(feature = "pcodec")]
        (
            json!([{"name": "numcodecs.pcodec", "configuration": {"level": 13}}]),
            "numcodecs.pcodec, whose `level`",
        ),
    ] {
        let array = in_v3(&json!("int32"), &[4], &codecs);
        let found = refusal(&array);
        let expected = format!("unsupported codec for writing `{name}");
        assert!(found.contains(&expected), "{codecs}: {found}");
        assert!(encode(&array, &[0; 16], Losses::Allowed).is_err());
    }
    for id in ["numcodecs.json", "numcodecs.msgpack"] {
        let array = in_v3(&json!("string"), &[2], &json!([{"name": id}]));
        assert!(refusal(&array).contains(&format!("`{id}`")));
        let codecs = &array.decoding.as_ref().unwrap().codecs;
        assert!(
            codecs
                .encode_variable(&spec(&array, &array.chunks.longest()), b"[]")
                .is_err()
        );
    }
}
