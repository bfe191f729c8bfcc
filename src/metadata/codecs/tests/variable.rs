//! Chunks of strings, of bytes and of objects.

use proptest::prelude::*;

use super::filters::unhex;
use super::*;
use crate::codec::ChunkSpec;
use crate::dtype::FillValue;
use crate::grid::{indices_of, product, rank_of};

const MOST: u64 = 1 << 20;

fn of(codecs: &str, data_type: &DataType, shape: &[u64]) -> Result<CodecChain, FormatError> {
    let codecs: Box<RawValue> = serde_json::from_str(codecs).unwrap();
    chain(&list(&codecs)?, data_type, shape)
}

fn text() -> DataType {
    let raw: Box<RawValue> = serde_json::from_str(r#""string""#).unwrap();
    DataType::parse_v3(&raw).unwrap()
}

fn decode(
    chain: &CodecChain,
    data_type: &DataType,
    shape: &[u64],
    encoded: &[u8],
    limit: u64,
) -> Result<Vec<u8>, FormatError> {
    let fill = FillValue::new(b"fill".to_vec(), true);
    let spec = ChunkSpec {
        shape,
        dtype: data_type,
        fill: &fill,
    };
    chain.decode_variable(&spec, encoded, limit)
}

fn items(items: &[&[u8]]) -> Vec<u8> {
    let mut bytes = u32::try_from(items.len()).unwrap().to_le_bytes().to_vec();
    for item in items {
        bytes.extend(u32::try_from(item.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(item);
    }
    bytes
}

#[test]
fn framing_is_checked() {
    let chain = of(r#"["vlen-utf8"]"#, &text(), &[3]).unwrap();
    let bytes = unhex("030000000100000061040000006263c3a900000000");
    assert_eq!(decode(&chain, &text(), &[3], &bytes, MOST).unwrap(), bytes);
    assert!(
        decode(&chain, &text(), &[3], &bytes, 20).is_err(),
        "more than allowed"
    );
    assert!(
        decode(&chain, &text(), &[2], &bytes, MOST).is_err(),
        "another count"
    );
    for length in 0..bytes.len() {
        assert!(
            decode(&chain, &text(), &[3], &bytes[..length], MOST).is_err(),
            "cut at {length}"
        );
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(decode(&chain, &text(), &[3], &longer, MOST).is_err());
    let huge = unhex("03000000 ffffffff 61");
    assert!(decode(&chain, &text(), &[3], &huge, MOST).is_err());
    let mut wrong = bytes.clone();
    wrong[15] = 0xff;
    assert!(
        decode(&chain, &text(), &[3], &wrong, MOST).is_err(),
        "no UTF-8"
    );
    let any = of(r#"["vlen-bytes"]"#, &text(), &[3]).unwrap();
    assert_eq!(decode(&any, &text(), &[3], &wrong, MOST).unwrap(), wrong);
    // The chunk claims a huge number of items that it does not have.
    let many = of(r#"["vlen-utf8"]"#, &text(), &[u64::from(u32::MAX)]).unwrap();
    let count = unhex("ffffffff");
    assert!(decode(&many, &text(), &[u64::from(u32::MAX)], &count, MOST).is_err());
}

#[test]
fn objects_of_numcodecs_are_kept() {
    for (codec, id, bytes) in [
        (
            r#"{"name": "numcodecs.vlen-array", "configuration": {"dtype": "<i4"}}"#,
            "vlen-array",
            "020000000800000001000000020000000400000003000000",
        ),
        (
            r#""numcodecs.msgpack2""#,
            "msgpack2",
            "95a16101c0a27c4f9103",
        ),
        (r#""numcodecs.json2""#, "json2", "5b226122"),
        (
            r#"{"name": "numcodecs.categorize", "configuration": {"labels": ["a"], "astype": "<u2"}}"#,
            "categorize",
            "01000000",
        ),
    ] {
        let data_type = DataType::objects(id);
        let chain = of(&format!("[{codec}, \"crc32c\"]"), &data_type, &[2]).unwrap();
        let bytes = unhex(bytes);
        let encoded = [&bytes[..], &crc32c::crc32c(&bytes).to_le_bytes()].concat();
        assert_eq!(
            decode(&chain, &data_type, &[2], &encoded, MOST).unwrap(),
            bytes,
            "{codec}"
        );
    }
    let arrays = DataType::objects("vlen-array");
    let codec = r#"[{"name": "numcodecs.vlen-array", "configuration": {"dtype": "<i4"}}]"#;
    let chain = of(codec, &arrays, &[1]).unwrap();
    assert!(
        decode(&chain, &arrays, &[1], &items(&[b"abc"]), MOST).is_err(),
        "no whole number"
    );
    let categories = of(
        r#"["numcodecs.categorize"]"#,
        &DataType::objects("categorize"),
        &[2],
    )
    .unwrap();
    assert!(decode(&categories, &arrays, &[2], &[1, 2, 3], MOST).is_err());
}

#[test]
fn order_f_is_undone() {
    let transpose = r#"{"name": "transpose", "configuration": {"order": [1, 0]}}"#;
    let stored = items(&[b"a", b"dd", b"bbb", b"", b"c", b"ffff"]);
    let decoded = items(&[b"a", b"bbb", b"c", b"dd", b"", b"ffff"]);
    let chain = of(
        &format!(r#"[{transpose}, "vlen-bytes", "crc32c"]"#),
        &text(),
        &[2, 3],
    )
    .unwrap();
    let encoded = [&stored[..], &crc32c::crc32c(&stored).to_le_bytes()].concat();
    assert_eq!(
        decode(&chain, &text(), &[2, 3], &encoded, MOST).unwrap(),
        decoded
    );
    let objects = DataType::objects("categorize");
    let categories = of(
        &format!(r#"[{transpose}, "numcodecs.categorize"]"#),
        &objects,
        &[2, 3],
    )
    .unwrap();
    let found = decode(&categories, &objects, &[2, 3], &[1, 4, 2, 5, 3, 6], MOST).unwrap();
    assert_eq!(found, [1, 2, 3, 4, 5, 6]);
}

/// The shard has two of its four inner chunks.
#[test]
fn shards_are_put_together() {
    let codecs = r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 2],
        "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, "vlen-utf8"],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]"#;
    let chain = of(codecs, &text(), &[2, 4]).unwrap();
    let (first, second) = (items(&[b"a", b"bb"]), items(&[b"", b"ccc"]));
    let (n, m) = (first.len() as u64, second.len() as u64);
    let words = [0, n, u64::MAX, u64::MAX, u64::MAX, u64::MAX, n, m];
    let index: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    let shard = [first, second, index].concat();
    let whole = items(&[b"a", b"bb", b"fill", b"fill", b"fill", b"fill", b"", b"ccc"]);
    assert_eq!(
        decode(&chain, &text(), &[2, 4], &shard, MOST).unwrap(),
        whole
    );
    let exact = whole.len() as u64;
    assert!(decode(&chain, &text(), &[2, 4], &shard, exact).is_ok());
    assert!(decode(&chain, &text(), &[2, 4], &shard, exact - 1).is_err());
    for length in 0..shard.len() {
        assert!(decode(&chain, &text(), &[2, 4], &shard[..length], MOST).is_err());
    }
    let kept = r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 2],
        "codecs": ["numcodecs.json2"]}}]"#;
    let error = of(kept, &DataType::objects("json2"), &[2, 4]).unwrap_err();
    assert!(
        error.to_string().contains("numcodecs.json2 inside shards"),
        "{error}"
    );
    // An index whose chunks are all absent must not make the decoder allocate memory for them.
    let huge = codecs.replace("[1, 2]", "[1, 4294967296]");
    let shape = [2, 1 << 32];
    let chain = of(&huge, &text(), &shape).unwrap();
    let empty = [0xff; 32];
    assert!(decode(&chain, &text(), &shape, &empty, MOST).is_err());
}

#[test]
fn elements_of_a_fixed_size_may_be_items() {
    let decode = |codec: &str, dtype: &str, items: &[u8]| {
        let raw: Box<RawValue> = serde_json::from_str(dtype).unwrap();
        let (data_type, _) = DataType::parse_v2(&raw).unwrap();
        let chain = of(&format!("[\"{codec}\"]"), &data_type, &[2])?;
        let spec = ChunkSpec {
            shape: &[2],
            dtype: &data_type,
            fill: &FillValue::undefined(&data_type),
        };
        let mut out = vec![0xee; usize::try_from(spec.decoded_len().unwrap()).unwrap()];
        chain.decode(&spec, items, &mut out).map(|()| out)
    };
    let two = items(&["é".as_bytes(), b"xyz"]);
    assert_eq!(
        decode("vlen-bytes", "\"|S3\"", &two).unwrap(),
        b"\xc3\xa9\0xyz"
    );
    assert_eq!(
        decode("vlen-bytes", "\"|V4\"", &two).unwrap(),
        b"\xc3\xa9\0\0xyz\0"
    );
    assert_eq!(
        decode("vlen-utf8", "\">U3\"", &two).unwrap(),
        unhex("e90000000000000000000000 780000007900000 07a000000")
    );
    assert!(decode("vlen-bytes", "\"|S2\"", &two).is_err(), "too long");
    assert!(decode("vlen-utf8", "\"<U2\"", &two).is_err(), "too long");
    assert!(decode("vlen-bytes", "\"<U3\"", &two).is_err());
    assert!(decode("vlen-utf8", "\"<i4\"", &two).is_err());
    assert!(
        decode("vlen-bytes", "\"|S3\"", &items(&[b"x"])).is_err(),
        "one item for two"
    );
}

#[test]
fn what_varies_in_length_needs_a_codec_for_it() {
    for codecs in [
        r#"["bytes"]"#,
        r#"["gzip"]"#,
        r#"["packbits"]"#,
        r#"["numcodecs.delta", "vlen-utf8"]"#,
    ] {
        assert!(of(codecs, &text(), &[2]).is_err(), "{codecs}");
    }
}

proptest! {
    #[test]
    fn any_transposed_strings_come_back(
        lengths in proptest::collection::vec(1_u64..4, 0..4),
        order in any::<prop::sample::Index>(),
        words in proptest::collection::vec(".{0,5}", 27),
    ) {
        let rank = lengths.len();
        let mut axes: Vec<u64> = (0..rank as u64).collect();
        let turn = if rank == 0 { 0 } else { order.index(rank) };
        axes.rotate_left(turn);
        let count = product(&lengths).unwrap();
        let encoded_shape: Vec<u64> = axes.iter().map(|&axis| lengths[usize::try_from(axis).unwrap()]).collect();
        let word = |rank: u64| words[usize::try_from(rank).unwrap()].as_bytes();
        let decoded: Vec<&[u8]> = (0..count).map(word).collect();
        let encoded: Vec<&[u8]> = (0..count)
            .map(|rank| {
                let place = indices_of(rank, &encoded_shape).unwrap();
                let mut indices = vec![0; lengths.len()];
                for (&axis, &index) in axes.iter().zip(&place) {
                    indices[usize::try_from(axis).unwrap()] = index;
                }
                word(rank_of(&indices, &lengths).unwrap())
            })
            .collect();
        let codecs = format!(r#"[{{"name": "transpose", "configuration": {{"order": {axes:?}}}}}, "vlen-utf8"]"#);
        let chain = of(&codecs, &text(), &lengths).unwrap();
        let found = decode(&chain, &text(), &lengths, &items(&encoded), MOST).unwrap();
        prop_assert_eq!(found, items(&decoded));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let transpose = r#"{"name": "transpose", "configuration": {"order": [1, 0]}}"#;
        for codec in ["vlen-utf8", "vlen-bytes"] {
            let chain = of(&format!("[{transpose}, \"{codec}\"]"), &text(), &[2, 2]).unwrap();
            if let Ok(found) = decode(&chain, &text(), &[2, 2], &bytes, MOST) {
                prop_assert_eq!(found.len(), bytes.len());
            }
        }
    }
}
