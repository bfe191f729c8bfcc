//! Every spelling of a fill value, one line each.

use serde_json::value::RawValue;

use super::*;

fn raw_value(text: &str) -> Box<RawValue> {
    serde_json::from_str(text).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn v2(dtype: &str, value: &str) -> Result<String, String> {
    DataType::parse_v2(&raw_value(dtype))
        .and_then(|(dtype, _)| FillValue::parse(&dtype, Some(&raw_value(value)), Dialect::V2))
        .map(|fill| hex(fill.bytes()))
        .map_err(|error| error.to_string())
}

fn v3(dtype: &str, value: &str, order: ByteOrder) -> Result<String, String> {
    DataType::parse_v3(&raw_value(dtype))
        .and_then(|dtype| FillValue::parse_v3(&dtype, &raw_value(value), order))
        .map(|fill| hex(fill.bytes()))
        .map_err(|error| error.to_string())
}

#[test]
fn v2_spellings() {
    for (dtype, value, bytes) in [
        (r#""|b1""#, "true", "01"),
        (r#""|b1""#, "0", "00"),
        (r#"">i4""#, "-2", "feffffff"),
        (r#""<i2""#, "5.0", "0500"),
        (r#""<i2""#, r#""5""#, "0500"),
        (r#""<i2""#, "[-7]", "f9ff"),
        (r#""|u1""#, "-1", "ff"),
        (r#""|u1""#, "256", "00"),
        (r#"">u2""#, "-9999", "f1d8"),
        (r#""<u4""#, "[-1]", "ffffffff"),
        (r#""<u8""#, r#""-1""#, "ffffffffffffffff"),
        (r#""<u8""#, "18446744073709551615", "ffffffffffffffff"),
        (r#""<i8""#, "-9223372036854775808", "0000000000000080"),
        (r#""<i8""#, "-9.223372036854776e+18", "0000000000000080"),
        (
            r#""<i8""#,
            r#""-9.223372036854776e+18""#,
            "0000000000000080",
        ),
        (r#""<i8""#, "1e18", "000064a7b3b6e00d"),
        (r#""<u8""#, "9.223372036854776e+18", "0000000000000080"),
        (r#""<M8[s]""#, "-9.223372036854776e+18", "0000000000000080"),
        (r#""<f4""#, r#""NaN""#, "0000c07f"),
        (r#"">f8""#, r#""-Infinity""#, "000000000000f0ff"),
        (r#""<f8""#, "-0.0", "0000000000000080"),
        (r#""<f8""#, "-0", "0000000000000000"),
        (r#""<f4""#, "[-0]", "00000000"),
        (r#""<c8""#, "[-0, -0.0]", "0000000000000080"),
        (r#""<f8""#, r#""0.5""#, "000000000000e03f"),
        (r#""<f2""#, "\"\u{7f}\"", "007e"),
        (r#""<f4""#, "\"\u{7f}------\"", "000080ff"),
        (r#""<c8""#, r#"[1, "NaN"]"#, "0000803f0000c07f"),
        (r#""<c8""#, "1", "0000803f00000000"),
        (r#""<M8[s]""#, r#""NaT""#, "0000000000000080"),
        (r#""<m8[s]""#, "1", "0100000000000000"),
        (r#""|S3""#, r#""YWI=""#, "616200"),
        (r#""|S3""#, r#""a""#, "610000"),
        (r#""|S3""#, "0", "000000"),
        (r#""|S3""#, r#""""#, "000000"),
        (r#""<U2""#, r#""z""#, "7a00000000000000"),
        (r#"">U2""#, r#""\ud83d\ude00""#, "00f6010000000000"),
        (r#""<U1""#, "0", "00000000"),
        (r#""|V2""#, r#""AAE=""#, "0001"),
        (r#""|V2""#, "0", "0000"),
        (r#"[["a","<i2"],["b",">i2"]]"#, r#""AQAAAg==""#, "01000002"),
        (r#"[["a","<i2"]]"#, "0", "0000"),
    ] {
        assert_eq!(v2(dtype, value).as_deref(), Ok(bytes), "{dtype} {value}");
    }
}

#[test]
fn v2_null_is_undefined() {
    let not_a_time = i64::MIN.to_le_bytes();
    let cases: [(&str, &[u8]); 6] = [
        (r#""<i4""#, &[0; 4]),
        (r#""<M8[s]""#, &not_a_time),
        (r#"">M8[D]""#, &not_a_time),
        (r#""<m8[ns]""#, &not_a_time),
        (r#""|S3""#, &[0; 3]),
        (r#"[["at", "<M8[s]"]]"#, &[0; 8]),
    ];
    for (data_type, bytes) in cases {
        for value in [None, Some(raw_value("null"))] {
            let (dtype, _) = DataType::parse_v2(&raw_value(data_type)).unwrap();
            let fill = FillValue::parse(&dtype, value.as_deref(), Dialect::V2).unwrap();
            assert!(!fill.is_defined(), "{data_type}");
            assert_eq!(fill.bytes(), bytes, "{data_type}");
        }
    }
}

#[test]
fn fill_values_that_libraries_read_in_two_ways_are_disputed() {
    let undisputed = |data_type: &DataType, value: &str, dialect| {
        FillValue::parse(data_type, Some(&raw_value(value)), dialect)
            .unwrap()
            .is_undisputed()
    };
    for (dtype, value, expected) in [
        (r#""|b1""#, "0", true),
        (r#""<i4""#, r#""5""#, true),
        (r#""<f4""#, r#""NaN""#, true),
        (r#""<c8""#, r#"[1, "NaN"]"#, true),
        (r#""<c8""#, "0", false),
        (r#""<M8[s]""#, "0", true),
        (r#""<M8[s]""#, r#""NaT""#, true),
        (r#""<M8[s]""#, r#""7""#, false),
        (r#""|S3""#, r#""YWI=""#, true),
        (r#""|S3""#, r#""""#, true),
        (r#""|S3""#, "0", false),
        (r#""|S3""#, r#""ab""#, false),
        (r#""<U2""#, r#""z""#, true),
        (r#""<U2""#, "0", false),
        (r#""|V2""#, r#""AAE=""#, true),
        (r#""|V2""#, "0", false),
        (r#"[["a","<i2"]]"#, r#""AQA=""#, true),
        (r#"[["a","<i2"]]"#, "0", false),
        (r#""<i4""#, "null", false),
    ] {
        let (data_type, _) = DataType::parse_v2(&raw_value(dtype)).unwrap();
        let found = undisputed(&data_type, value, Dialect::V2);
        assert_eq!(found, expected, "{dtype} {value}");
    }
    for (codec, value, expected) in [
        ("vlen-utf8", r#""a""#, true),
        ("vlen-utf8", r#""""#, true),
        ("vlen-utf8", "0", false),
        ("vlen-bytes", r#""YWI=""#, false),
        ("vlen-bytes", "0", false),
        ("json2", "0", false),
    ] {
        let found = undisputed(&DataType::objects(codec), value, Dialect::V2);
        assert_eq!(found, expected, "{codec} {value}");
    }
    let (bytes, _) = DataType::parse_v2(&raw_value(r#""|S3""#)).unwrap();
    assert!(
        undisputed(&bytes, r#""ab""#, Dialect::V1),
        "v1 has no base64"
    );
}

#[test]
fn v2_refusals() {
    for (dtype, value, message) in [
        (
            r#""|i1""#,
            "128",
            "found 128, expected a signed whole number of 8 bits",
        ),
        (
            r#""|u1""#,
            "18446744073709551616",
            "found 18446744073709551616, expected an unsigned",
        ),
        (r#""|u1""#, "-0.5", "found -0.5"),
        (
            r#""<i8""#,
            "9.223372036854776e18",
            "found 9.223372036854776e18, expected a signed",
        ),
        (r#""|u1""#, "1e18", "found 1e18"),
        (
            r#""<u8""#,
            "1.8446744073709552e19",
            "found 1.8446744073709552e19, expected an unsigned",
        ),
        (r#""<i4""#, "1.5", "found 1.5"),
        (r#""<i4""#, r#""NaN""#, "found \"NaN\""),
        (r#""<i4""#, "\"\u{7f}\"", "found NaN"),
        (r#""<i4""#, "{\"x\": 1}", "found {\"x\": 1}"),
        (r#""|b1""#, "2", "true or false"),
        (r#""<f4""#, r#""0x7fc00000""#, "found \"0x7fc00000\""),
        (r#""<f4""#, "[1, 2]", "found [1, 2]"),
        (r#""<f4""#, "[[1]]", "found [1]"),
        (r#""<c8""#, "[1]", "a pair"),
        (r#""|S2""#, r#""YWJj""#, "at most 2 bytes"),
        (r#""<U1""#, r#""ab""#, "at most 1 characters"),
        (r#""|V4""#, r#""AAE=""#, "exactly 4 bytes"),
        (r#""|V1""#, r#""x""#, "exactly 1 bytes"),
        (r#""|O""#, "0", "unsupported data type `|O`"),
    ] {
        let error = v2(dtype, value).unwrap_err();
        assert!(error.contains(message), "{dtype} {value}: {error}");
    }
}

#[test]
fn v3_spellings() {
    let utf32 = r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":8}}"#;
    let bytes3 = r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":3}}"#;
    let raw2 = r#"{"name":"raw_bytes","configuration":{"length_bytes":2}}"#;
    let time = r#"{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}"#;
    for (dtype, value, bytes) in [
        (r#""bool""#, "true", "01"),
        (r#""int4""#, "-8", "f8"),
        (r#""uint64""#, "18446744073709551615", "ffffffffffffffff"),
        (r#""int64""#, "-9.223372036854776e+18", "0000000000000080"),
        (r#""int32""#, r#""-5""#, "fbffffff"),
        (
            r#""uint64""#,
            r#""18446744073709551615""#,
            "ffffffffffffffff",
        ),
        (r#""float32""#, r#""NaN""#, "0000c07f"),
        (r#""float32""#, r#""0x7fc00001""#, "0100c07f"),
        (r#""float32""#, r#""+Infinity""#, "0000807f"),
        (r#""float32""#, r#""-inf""#, "000080ff"),
        (r#""float16""#, r#""0b0111111000000001""#, "017e"),
        (r#""float64""#, "1e400", "000000000000f07f"),
        (r#""bfloat16""#, "1.5", "c03f"),
        (r#""float8_e4m3""#, r#""NaN""#, "7c"),
        (r#""float8_e4m3fn""#, r#""NaN""#, "7f"),
        (r#""complex_float4_e2m1fn""#, "[-0.5, 6]", "0907"),
        (r#""float8_e5m2""#, r#""0x7d""#, "7d"),
        (
            r#""complex64""#,
            r#"["0x7fc00000", -1]"#,
            "0000c07f000080bf",
        ),
        (r#""complex_float16""#, "[1, 0]", "003c0000"),
        (r#""r16""#, "[1, 255]", "01ff"),
        (time, r#""NaT""#, "0000000000000080"),
        (time, "-9223372036854775808", "0000000000000080"),
        (utf32, r#""z""#, "7a00000000000000"),
        (bytes3, r#""YWI=""#, "616200"),
        (raw2, r#""AAE=""#, "0001"),
    ] {
        let found = v3(dtype, value, ByteOrder::Big);
        assert_eq!(found.as_deref(), Ok(bytes), "{dtype} {value}");
    }
}

#[test]
fn v3_records_follow_the_stored_order() {
    let pairs = r#"{"name":"structured","configuration":{"fields":[["a","int16"],["b","uint8"]]}}"#;
    let nested = r#"{"name":"struct","configuration":{"fields":[{"name":"p","data_type":{"name":"struct","configuration":{"fields":[{"name":"x","data_type":"int16"},{"name":"s","data_type":{"name":"null_terminated_bytes","configuration":{"length_bytes":2}}}]}}},{"name":"q","data_type":"complex_float16"}]}}"#;
    for (dtype, value, little, big) in [
        (pairs, r#""AQIH""#, "010207", "020107"),
        (pairs, r#"{"b": 7, "a": 513}"#, "010207", "020107"),
        (pairs, r#"{"a": 1, "b": 7, "a": 513}"#, "010207", "020107"),
        (
            nested,
            r#"{"p": {"x": 1, "s": "YQ=="}, "q": [1, 0]}"#,
            "01006100003c0000",
            "000161003c000000",
        ),
    ] {
        assert_eq!(
            v3(dtype, value, ByteOrder::Little).as_deref(),
            Ok(little),
            "{value}"
        );
        assert_eq!(
            v3(dtype, value, ByteOrder::Big).as_deref(),
            Ok(big),
            "{value}"
        );
    }
}

#[test]
fn v3_refusals() {
    let record =
        r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"}]}}"#;
    let huge = r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":{"name":"null_terminated_bytes","configuration":{"length_bytes":99999999999}}}]}}"#;
    for (dtype, value, message) in [
        (r#""r16""#, "null", "found null"),
        (r#""uint8""#, "-1", "found -1"),
        (r#""int32""#, r#""x""#, "found \"x\""),
        (r#""int8""#, r#""128""#, "found \"128\""),
        (r#""uint8""#, r#""-1""#, "found \"-1\""),
        (r#""int2""#, "2", "found 2"),
        (
            r#""int64""#,
            "9.223372036854776e18",
            "found 9.223372036854776e18",
        ),
        (r#""float32""#, r#""1.5""#, "found \"1.5\""),
        (r#""float32""#, r#""0x7fc0""#, "found"),
        (r#""float32""#, r#""0x+fc00001""#, "found"),
        (r#""float4_e2m1fn""#, r#""NaN""#, "found \"NaN\""),
        (r#""complex64""#, "0", "a pair"),
        (r#""r16""#, "[1]", "exactly 2 bytes"),
        (r#""r8""#, "[256]", "exactly 1 bytes"),
        (record, "{}", "a: missing"),
        (record, r#"{"a":300}"#, "a: found 300"),
        (
            record,
            r#"{"a":3,"b":1}"#,
            "b: the data type has no such field",
        ),
        (huge, r#"{"a":""}"#, "the size of a structured element"),
    ] {
        let error = v3(dtype, value, ByteOrder::Little).unwrap_err();
        assert!(error.contains(message), "{dtype} {value}: {error}");
    }
}
