//! Codecs of zarr-extensions.

#[cfg(feature = "pcodec")]
use super::filters::encode;
use super::filters::{chain_of, decode, unhex};
use super::*;
use crate::codec::{ArrayToArray, BytesToBytes};

fn f64s(values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn scale_and_cast_undo_the_example_of_the_specification() {
    let codecs = r#"[{"name": "scale_offset", "configuration": {"offset": -10, "scale": 0.1}},
        {"name": "cast_value", "configuration": {"data_type": "uint8", "rounding": "nearest-even",
          "scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}}}, "bytes"]"#;
    let (chain, data_type) = chain_of(codecs, r#""float64""#, 3).unwrap();
    let decoded = decode(&(chain.clone(), data_type), 3, &[0, 1, 255]).unwrap();
    let numbers: Vec<f64> = decoded
        .chunks(8)
        .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    assert!(numbers[0].is_nan());
    assert_eq!(
        f64s(&numbers[1..]),
        f64s(&[1.0 / 0.1 - 10.0, 255.0 / 0.1 - 10.0])
    );
    let nan = crate::dtype::FillValue::new(f64::NAN.to_le_bytes().to_vec(), true);
    assert_eq!(chain.encode_fill(&nan).unwrap().bytes(), [0]);
}

#[test]
fn scaled_integers_are_exact_or_refused() {
    let chain = |offset: i64, scale: i64| {
        let codecs = format!(
            r#"[{{"name": "scale_offset", "configuration": {{"offset": {offset}, "scale": {scale}}}}}, "bytes"]"#
        );
        chain_of(&codecs, r#""int8""#, 2)
    };
    assert_eq!(
        decode(&chain(5, 3).unwrap(), 2, &[6, 0xfd]).unwrap(),
        [7, 4]
    );
    assert!(decode(&chain(5, 3).unwrap(), 2, &[6, 7]).is_err(), "7 / 3");
    assert!(
        decode(&chain(100, 1).unwrap(), 2, &[27, 28]).is_err(),
        "128"
    );
    assert!(
        chain(0, 0)
            .unwrap_err()
            .to_string()
            .contains("scale: found 0")
    );
    assert!(chain(300, 1).is_err());
}

/// The encoded form of decoded `i16` numbers.
fn encoded(configuration: &str, to: &str, value: &str, data_type: &str) -> Option<Vec<u8>> {
    let codecs = format!(
        r#"[{{"name": "cast_value", "configuration": {{"data_type": "{to}"{configuration}}}}}, {LITTLE}]"#
    );
    let (chain, data_type) = chain_of(&codecs, data_type, 1).unwrap();
    let value: Box<RawValue> = serde_json::from_str(value).unwrap();
    let fill = crate::dtype::FillValue::parse_v3(&data_type, &value, ByteOrder::Little).unwrap();
    let ArrayToArray::Filter(filter) = &chain.array_to_array[0] else {
        panic!("{codecs}");
    };
    filter.encode_element(fill.bytes())
}

#[test]
fn casts_round_and_wrap_as_they_say() {
    let rounding = |name: &str| format!(r#", "rounding": "{name}""#);
    for (name, results) in [
        ("nearest-even", [2_i8, 2, -2, 1]),
        ("towards-zero", [1, 2, -1, 0]),
        ("towards-positive", [2, 3, -1, 1]),
        ("towards-negative", [1, 2, -2, 0]),
        ("nearest-away", [2, 3, -2, 1]),
    ] {
        for (value, result) in ["1.5", "2.5", "-1.5", "0.75"].into_iter().zip(results) {
            let found = encoded(&rounding(name), "int8", value, r#""float64""#);
            assert_eq!(found, Some(result.to_le_bytes().to_vec()), "{value} {name}");
        }
    }
    // 2049 lies between the float16 2048 and 2050.
    for (name, result) in [
        ("nearest-even", 0x6800_u16),
        ("towards-zero", 0x6800),
        ("towards-positive", 0x6801),
        ("towards-negative", 0x6800),
        ("nearest-away", 0x6801),
    ] {
        let found = encoded(&rounding(name), "float16", "2049", r#""int32""#);
        assert_eq!(found, Some(result.to_le_bytes().to_vec()), "{name}");
    }
}

#[test]
fn casts_end_where_the_type_does() {
    let range = |name: &str| format!(r#", "out_of_range": "{name}""#);
    for (configuration, to, value, from, result) in [
        ("", "int8", "128", r#""int16""#, None),
        (
            &range("clamp"),
            "int8",
            "128",
            r#""int16""#,
            Some(vec![0x7f]),
        ),
        (
            &range("wrap"),
            "int8",
            "128",
            r#""int16""#,
            Some(vec![0x80]),
        ),
        (
            &range("wrap"),
            "int8",
            "-129",
            r#""int16""#,
            Some(vec![0x7f]),
        ),
        (
            &range("wrap"),
            "uint8",
            "1e300",
            r#""float64""#,
            Some(vec![0]),
        ),
        (
            &range("clamp"),
            "uint8",
            "-1e300",
            r#""float64""#,
            Some(vec![0]),
        ),
        (
            &range("clamp"),
            "uint8",
            r#""Infinity""#,
            r#""float64""#,
            None,
        ),
        ("", "uint8", r#""NaN""#, r#""float64""#, None),
        ("", "float16", "1e6", r#""float64""#, None),
        (
            &range("clamp"),
            "float16",
            "1e6",
            r#""float64""#,
            Some(vec![0, 0x7c]),
        ),
        (
            &range("clamp"),
            "float4_e2m1fn",
            "-100",
            r#""int16""#,
            Some(vec![0x0f]),
        ),
        (
            "",
            "float16",
            r#""-Infinity""#,
            r#""float64""#,
            Some(vec![0, 0xfc]),
        ),
        (
            "",
            "float32",
            "-0.0",
            r#""float64""#,
            Some(vec![0, 0, 0, 0x80]),
        ),
        (
            "",
            "int64",
            "9007199254740993",
            r#""uint64""#,
            Some(9_007_199_254_740_993_u64.to_le_bytes().to_vec()),
        ),
    ] {
        assert_eq!(
            encoded(configuration, to, value, from),
            result,
            "{value} to {to}{configuration}"
        );
    }
}

#[test]
fn the_first_pair_of_a_scalar_counts() {
    let map = r#", "scalar_map": {"encode": [["NaN", 7], [2, 5], [-0.0, 6], ["Infinity", 8], [2, 1], [0, 3], ["-Infinity", 9], ["NaN", 1]]}"#;
    for (value, code) in [
        ("2.0", 5),
        ("0.0", 6),
        ("-0.0", 6),
        (r#""NaN""#, 7),
        (r#""0xffc00001""#, 7),
        (r#""Infinity""#, 8),
        (r#""-Infinity""#, 9),
        ("4.0", 4),
    ] {
        let found = encoded(map, "uint8", value, r#""float32""#);
        assert_eq!(found, Some(vec![code]), "{value}");
    }
}

#[test]
fn formats_without_negative_zero_or_zero_have_their_nearest_numbers() {
    let codes = |rounding: &str, to: &str, values: &[&str]| -> Vec<Option<u8>> {
        let rules = format!(r#", "rounding": "{rounding}", "out_of_range": "clamp""#);
        let code = |value: &&str| encoded(&rules, to, value, r#""float64""#).map(|bytes| bytes[0]);
        values.iter().map(code).collect()
    };
    for rounding in [
        "nearest-even",
        "towards-zero",
        "towards-positive",
        "towards-negative",
        "nearest-away",
    ] {
        let zeros = codes(rounding, "float8_e4m3fnuz", &["-0.0", "0.0"]);
        assert_eq!(zeros, [Some(0); 2], "{rounding}");
        // The least number is 2^-127, about 5.9e-39.
        let low = ["0.0", "-0.0", "-1.0", "-1e300", "1e-40", "4e-39", "5.8e-39"];
        let low = codes(rounding, "float8_e8m0fnu", &low);
        assert_eq!(low, [Some(0); 7], "{rounding}");
        let high = codes(rounding, "float8_e8m0fnu", &["1.0", "1e300"]);
        assert_eq!(high, [Some(127), Some(254)], "{rounding}");
    }
    let refused = ["0.0", "-1.0"].map(|value| encoded("", "float8_e8m0fnu", value, r#""float64""#));
    assert_eq!(refused, [None, None]);
}

#[test]
fn packed_bits_and_reshapes() {
    let bits = r#"[{"name": "packbits", "configuration": {"padding_encoding": "first_byte", "last_bit": 2}}]"#;
    let chain = chain_of(bits, r#""uint8""#, 3).unwrap();
    // 1, 2, 7: nine bits, the lowest first, and seven of padding.
    assert_eq!(decode(&chain, 3, &[7, 0b1101_0001, 1]).unwrap(), [1, 2, 7]);
    let error = chain_of(
        r#"[{"name": "packbits", "configuration": {"last_bit": 8}}]"#,
        r#""uint8""#,
        3,
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("bits 0 to 8 of numbers of 8 bits")
    );

    let reshape = |shape: &str| {
        parse(
            &format!(r#"[{{"name": "reshape", "configuration": {{"shape": {shape}}}}}, "bytes"]"#),
            r#""uint8""#,
        )
    };
    for (shape, encoded) in [
        ("[24]", &[24][..]),
        ("[-1]", &[24]),
        ("[[0, 1]]", &[24]),
        ("[[0], [1]]", &[4, 6]),
        ("[[0], 2, -1]", &[4, 2, 3]),
        ("[2, 2, [1]]", &[2, 2, 6]),
        ("[1, [0, 1], 1, []]", &[1, 24, 1, 1]),
    ] {
        let chain = reshape(shape).unwrap();
        let ArrayToArray::Reshape(codec) = &chain.array_to_array[0] else {
            panic!("{shape}");
        };
        assert_eq!(codec.encoded_shape[..], *encoded, "{shape}");
    }
    for shape in [
        "[23]",
        "[-1, -1]",
        "[[1], [0]]",
        "[[0], [0]]",
        "[[2]]",
        "[0]",
        "[5, -1]",
        "[[1], 4]",
        "[6, 4, -2]",
        "3",
    ] {
        let error = reshape(shape).unwrap_err().to_string();
        assert!(
            error.starts_with("[0].configuration.shape"),
            "{shape}: {error}"
        );
    }
}

/// Axes that a reshape has made are transposed.
#[test]
fn codecs_see_what_a_reshape_leaves() {
    let codecs = r#"[{"name": "reshape", "configuration": {"shape": [2, 3]}},
        {"name": "transpose", "configuration": {"order": [1, 0]}}, "bytes"]"#;
    let chain = chain_of(codecs, r#""uint8""#, 6).unwrap();
    assert_eq!(
        decode(&chain, 6, &[1, 4, 2, 5, 3, 6]).unwrap(),
        [1, 2, 3, 4, 5, 6]
    );
}

#[test]
fn codecs_of_bytes_are_configured() {
    let last = |codec: &str| {
        let chain = parse(&format!("[{LITTLE}, {codec}]"), r#""int32""#)?;
        Ok::<_, FormatError>(chain.bytes_to_bytes[0].clone())
    };
    for (codec, name) in [
        (r#""gzip""#, "gzip"),
        (r#""numcodecs.gzip""#, "gzip"),
        (r#""numcodecs.zlib""#, "zlib"),
        (r#""numcodecs.lz4""#, "lz4"),
        (
            r#""https://codec.zarrs.dev/bytes_to_bytes/fletcher32""#,
            "fletcher32",
        ),
        (
            r#"{"name": "numcodecs.jenkins_lookup3", "configuration": {"initval": 3}}"#,
            "jenkins_lookup3",
        ),
        (
            r#"{"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": [{"id": 3, "dist": 4}, {"id": 33}]}}"#,
            "lzma",
        ),
        (
            r#"{"name": "conditional", "configuration": {"codecs": ["gzip", "crc32c"]}}"#,
            "conditional",
        ),
    ] {
        assert_eq!(last(codec).unwrap().name(), name, "{codec}");
    }
    assert_eq!(
        last(r#""numcodecs.shuffle""#).unwrap(),
        BytesToBytes::Shuffle { element_size: 4 }
    );
    for (codec, message) in [
        (
            r#"{"name": "numcodecs.crc32", "configuration": {"location": "middle"}}"#,
            "location: found \"middle\"",
        ),
        (
            r#"{"name": "numcodecs.shuffle", "configuration": {"elementsize": -1}}"#,
            "elementsize: found -1",
        ),
        (
            r#"{"name": "numcodecs.lzma", "configuration": {"format": 4}}"#,
            "format: found 4",
        ),
        (
            r#"{"name": "numcodecs.lzma", "configuration": {"format": 3}}"#,
            "filters: missing",
        ),
        (
            r#"{"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": []}}"#,
            "filters: found []",
        ),
        (
            r#"{"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": [{"id": 99}]}}"#,
            "filters[0].id: found 99",
        ),
        (
            r#"{"name": "conditional", "configuration": {"codecs": ["packbits"]}}"#,
            "expected a codec from bytes to bytes",
        ),
        (
            r#"{"name": "conditional", "configuration": {"codecs": ["nosuch"]}}"#,
            "codecs[0]: unsupported codec `nosuch`",
        ),
        (
            r#"{"name": "conditional", "configuration": {"codecs": ["gzip"], "header_bits": 9}}"#,
            "header_bits: found 9",
        ),
        (r#""lz4""#, "unsupported codec `lz4`"),
    ] {
        let error = last(codec).unwrap_err().to_string();
        assert!(error.contains(message), "{codec}: {error}");
    }
    let nested = r#"{"name": "conditional", "configuration": {"codecs": ["#.repeat(40);
    let error = last(&format!("{nested}\"gzip\"{}", "]}}".repeat(40))).unwrap_err();
    let message = "codecs[0]: unsupported codec inside of `conditional`";
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn blocks_of_n5_have_the_codecs_of_the_specification() {
    let reversal = r#"{"name": "transpose", "configuration": {"order": [0]}}"#;
    let big = r#"{"name": "bytes", "configuration": {"endian": "big"}}"#;
    let chain = |codecs: &[&str], data_type: &str| {
        let codecs = codecs.join(", ");
        let codec =
            format!(r#"[{{"name": "n5_default", "configuration": {{"codecs": [{codecs}]}}}}]"#);
        chain_of(&codec, data_type, 3)
    };
    let block = unhex("0000 0001 00000002 0102 0304");
    let plain = chain(&[reversal, big], r#""uint16""#).unwrap();
    assert_eq!(decode(&plain, 3, &block).unwrap(), [2, 1, 4, 3, 0, 0]);
    let one_byte = chain(&[reversal, r#""bytes""#, r#""crc32c""#], r#""int8""#);
    assert!(one_byte.is_ok(), "{one_byte:?}");
    for (codecs, data_type, message) in [
        (
            &[big][..],
            r#""uint16""#,
            "a transpose that reverses all axes",
        ),
        (
            &[reversal],
            r#""uint8""#,
            "a transpose that reverses all axes",
        ),
        (&[reversal, LITTLE], r#""uint16""#, "big-endian bytes"),
        (&[reversal, reversal, big], r#""uint16""#, "found"),
        (
            &[reversal, big, r#""gzip""#, r#""crc32c""#],
            r#""uint16""#,
            "at most one codec",
        ),
        (
            &[reversal, big, r#""nosuch""#],
            r#""uint16""#,
            "unsupported codec `nosuch`",
        ),
        (
            &[reversal, big],
            r#""float16""#,
            "unsupported data type of N5 `float16`",
        ),
        (
            &[reversal, r#""bytes""#],
            r#""bool""#,
            "unsupported data type of N5 `bool`",
        ),
        (&[], r#""uint16""#, "found"),
    ] {
        let error = chain(codecs, data_type).unwrap_err().to_string();
        assert!(error.contains(message), "{codecs:?}: {error}");
    }
    let nested = r#"{"name": "n5_default", "configuration": {"codecs": ["#.repeat(40);
    let error = chain_of(&format!("[{nested}{}]", "]}}".repeat(40)), r#""uint8""#, 3).unwrap_err();
    assert!(error.to_string().contains("levels deep"), "{error}");
}

#[cfg(feature = "pcodec")]
#[test]
fn numbers_of_pcodec() {
    let file = unhex(
        "70636f210244060305180000020000f81b5102001d000000081003000040000200000000800000000080 1e670ebc0900",
    );
    let chain = chain_of(r#"["numcodecs.pcodec"]"#, r#""float32""#, 25).unwrap();
    let decoded = decode(&chain, 25, &file).unwrap();
    assert_eq!(decoded.len(), 100);
    let other = chain_of(r#"["numcodecs.pcodec"]"#, r#""int32""#, 25).unwrap();
    assert!(decode(&other, 25, &file).is_err(), "of another type");
    for length in [24, 26] {
        let chain = chain_of(r#"["numcodecs.pcodec"]"#, r#""float32""#, length).unwrap();
        assert!(decode(&chain, length, &file).is_err(), "{length} numbers");
    }
    for length in 0..file.len() {
        assert!(
            decode(&chain, 25, &file[..length]).is_err(),
            "cut at {length}"
        );
    }
    assert!(chain_of(r#"["numcodecs.pcodec"]"#, r#""complex64""#, 1).is_err());
}

/// Numbers of all types and settings come back; settings that numcodecs refuses are no error before a chunk is written.
#[cfg(feature = "pcodec")]
#[test]
fn pcodec_is_written_by_all_settings_of_numcodecs() {
    let chain = |configuration: &str, data_type: &str, length| {
        let codec =
            format!(r#"[{{"name": "numcodecs.pcodec", "configuration": {configuration}}}]"#);
        chain_of(&codec, &format!("{data_type:?}"), length).unwrap()
    };
    let bytes: Vec<u8> = (0..3000_u32)
        .flat_map(|i| (i * i % 977).to_le_bytes())
        .collect();
    for (data_type, length) in [
        ("uint16", 6000),
        ("int16", 6000),
        ("float16", 6000),
        ("uint32", 3000),
        ("int32", 3000),
        ("float32", 3000),
        ("uint64", 1500),
        ("int64", 1500),
        ("float64", 1500),
    ] {
        for configuration in [
            "{}",
            r#"{"level": 0, "mode_spec": "classic", "delta_spec": "none"}"#,
            r#"{"level": 12, "delta_encoding_order": 3, "equal_pages_up_to": 1000}"#,
            r#"{"delta_spec": "try_consecutive", "delta_encoding_order": 0, "paging_spec": "equal_pages_up_to"}"#,
            r#"{"delta_spec": "try_lookback", "delta_encoding_order": null, "equal_pages_up_to": 16777216}"#,
        ] {
            let chain = chain(configuration, data_type, length);
            let encoded = encode(&chain, length, &bytes).unwrap();
            let decoded = decode(&chain, length, &encoded).unwrap();
            assert_eq!(decoded, bytes, "{data_type} by {configuration}");
        }
    }
    for (configuration, member) in [
        (r#"{"level": 13}"#, "level"),
        (r#"{"mode_spec": "fast"}"#, "mode_spec"),
        (r#"{"delta_spec": "try_consecutive"}"#, "delta_spec"),
        (r#"{"delta_encoding_order": 8}"#, "delta_encoding_order"),
        (r#"{"paging_spec": "exact"}"#, "paging_spec"),
        (r#"{"equal_pages_up_to": 0}"#, "equal_pages_up_to"),
    ] {
        let error = chain(configuration, "int32", 3)
            .0
            .check_encodes()
            .unwrap_err();
        let expected = format!("pcodec, whose `{member}` is missing or wrong");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    let bytes_only = chain("{}", "uint8", 3).0.check_encodes().unwrap_err();
    assert!(
        bytes_only.to_string().contains("8-bit integers"),
        "{bytes_only}"
    );
}

#[cfg(not(feature = "pcodec"))]
#[test]
fn pcodec_is_refused_by_name() {
    assert!(!unhex("00").is_empty());
    let error = chain_of(r#"["numcodecs.pcodec"]"#, r#""float32""#, 25).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("unsupported codec `numcodecs.pcodec`"),
        "{error}"
    );
}
