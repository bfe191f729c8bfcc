//! A written fill value reads as the same bits.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;
use crate::dtype::ByteOrder;

fn raw(text: &str) -> Box<RawValue> {
    serde_json::from_str(text).unwrap()
}

fn fill(data_type: &DataType, bytes: &[u8]) -> FillValue {
    FillValue::of_type(data_type, bytes.to_vec())
}

/// The type, and both spellings of the fill value `bytes`.
fn spelled(dtype: &str, bytes: &[u8]) -> (String, String) {
    let (data_type, _) = DataType::parse_v2(&raw(dtype)).unwrap();
    let fill = fill(&data_type, bytes);
    let show = |spelled: Result<String, FormatError>| spelled.unwrap_or_else(|e| e.to_string());
    (
        show(fill.spell_v2(&data_type)),
        show(fill.spell_v3(&data_type)),
    )
}

#[test]
fn every_kind_has_its_spelling() {
    for (dtype, bytes, v2, v3) in [
        (r#""|b1""#, &[1][..], "true", "true"),
        (r#"">i4""#, &[0xfe, 0xff, 0xff, 0xff], "-2", "-2"),
        (
            r#""<u8""#,
            &[0xff; 8],
            "18446744073709551615",
            "18446744073709551615",
        ),
        (r#""<f8""#, &[0, 0, 0, 0, 0, 0, 0, 0x80], "-0.0", "-0.0"),
        (r#""<f4""#, &[0, 0, 0xc0, 0x7f], r#""NaN""#, r#""NaN""#),
        (
            r#""<f4""#,
            &[1, 0, 0xc0, 0x7f],
            "fill_value: found a NaN of the bits 0x7fc00001, which v2 cannot say; its one NaN is 0x7fc00000",
            r#""0x7fc00001""#,
        ),
        (r#""<f2""#, &[0, 0xfc], r#""-Infinity""#, r#""-Infinity""#),
        (
            r#""<c8""#,
            &[0, 0, 0x80, 0x7f, 0, 0, 0, 0x80],
            r#"["Infinity",-0.0]"#,
            r#"["Infinity",-0.0]"#,
        ),
        (
            r#"">M8[s]""#,
            &[0, 0, 0, 0, 0, 0, 0, 0x80],
            "-9223372036854775808",
            "-9223372036854775808",
        ),
        (r#""|S3""#, b"ab\0", r#""YWIA""#, r#""YWI=""#),
        (r#""|V3""#, b"ab\0", r#""YWIA""#, r#""YWIA""#),
        (r#""<U2""#, &[0x7a, 0, 0, 0, 0, 0, 0, 0], r#""z""#, r#""z""#),
        (
            r#""<U1""#,
            &[0, 0xd8, 0, 0],
            "fill_value: found the bytes [0, 216, 0, 0], expected characters",
            "fill_value: found the bytes [0, 216, 0, 0], expected characters",
        ),
        (
            r#"[["a","<i2"],["b","|u1"]]"#,
            &[1, 0, 2],
            r#""AQAC""#,
            r#""AQAC""#,
        ),
        (
            r#"[["a",">i2"],["","|V1"],["r",[["x",">f2"]]]]"#,
            &[0, 1, 9, 0x7e, 1],
            r#""AAEJfgE=""#,
            r#"{"__pad0":"CQ==","a":1,"r":{"x":"0x7e01"}}"#,
        ),
    ] {
        let expected = (v2.to_owned(), v3.to_owned());
        assert_eq!(spelled(dtype, bytes), expected, "{dtype}");
    }
}

#[test]
fn variable_elements_are_spelled_by_kind() {
    for (codec, bytes, expected) in [
        ("vlen-utf8", &b"\xc3\xa9\"\0"[..], r#""é\"\u0000""#),
        ("vlen-utf8", b"", r#""""#),
        ("vlen-bytes", b"ab", r#""YWI=""#),
        ("vlen-bytes", b"", r#""""#),
    ] {
        let data_type = DataType::objects(codec);
        let fill = fill(&data_type, bytes);
        assert_eq!(fill.spell_v2(&data_type).unwrap(), expected);
        assert_eq!(fill.spell_v3(&data_type).unwrap(), expected);
        let again = FillValue::parse(&data_type, Some(&raw(expected)), Dialect::V2).unwrap();
        assert_eq!(again.bytes(), fill.bytes());
    }
}

#[test]
fn undefined_is_null_in_v2_and_zero_in_v3() {
    for (dtype, v3) in [
        (r#""|b1""#, "false"),
        (r#""<i4""#, "0"),
        (r#""<f8""#, "0.0"),
        (r#""<c8""#, "[0.0,0.0]"),
        (r#""<M8[s]""#, "-9223372036854775808"),
        (r#""<m8[s]""#, "-9223372036854775808"),
        (r#""|S3""#, r#""""#),
        (r#""<U3""#, r#""""#),
        (r#""|V1""#, r#""AA==""#),
        (r#"[["a",">i2"],["b","|u1"]]"#, r#"{"a":0,"b":0}"#),
    ] {
        let (data_type, _) = DataType::parse_v2(&raw(dtype)).unwrap();
        let fill = FillValue::undefined(&data_type);
        assert_eq!(fill.spell_v2(&data_type).unwrap(), "null");
        assert_eq!(fill.spell_v3(&data_type).unwrap(), v3, "{dtype}");
    }
    let strings = DataType::objects("vlen-utf8");
    let fill = FillValue::undefined(&strings);
    assert_eq!(fill.spell_v3(&strings).unwrap(), r#""""#);
}

#[test]
fn huge_elements_are_not_spelled_byte_by_byte() {
    let (data_type, _) = DataType::parse_v2(&raw(r#""|V99999999999""#)).unwrap();
    let fill = fill(&data_type, b"a");
    let error = fill.spell_v2(&data_type).unwrap_err().to_string();
    assert!(error.contains("99999999999"), "{error}");
    let (padded, _) = DataType::parse_v2(&raw(r#""|S99999999999""#)).unwrap();
    let fill = self::fill(&padded, b"a");
    assert_eq!(fill.spell_v2(&padded).unwrap(), r#""YQ==""#);
}

const V2_TYPES: [&str; 16] = [
    r#""|b1""#,
    r#""|i1""#,
    r#""<i8""#,
    r#"">u2""#,
    r#""<u8""#,
    r#""<f2""#,
    r#""<f4""#,
    r#"">f8""#,
    r#""<c8""#,
    r#""<c16""#,
    r#""<M8[ns]""#,
    r#""|S5""#,
    r#""|V3""#,
    r#""<U2""#,
    r#"[["a","<i2"],["b","<f4"],["c","|S2"]]"#,
    r#"[["a",">i2"],["r",[["x",">f4"],["y","|V2"]]],["u",">U1"]]"#,
];

const V3_TYPES: [&str; 12] = [
    r#""bfloat16""#,
    r#""float8_e3m4""#,
    r#""float8_e4m3""#,
    r#""float8_e4m3fn""#,
    r#""float8_e4m3fnuz""#,
    r#""float8_e8m0fnu""#,
    r#""float6_e3m2fn""#,
    r#""float4_e2m1fn""#,
    r#""int8""#,
    r#""uint4""#,
    r#""complex_float16""#,
    r#""float16""#,
];

proptest! {
    /// Any bits of a type that both versions have.
    #[test]
    fn bits_survive_or_are_refused(which in 0..V2_TYPES.len(), bytes in prop::collection::vec(any::<u8>(), 16)) {
        let (data_type, _) = DataType::parse_v2(&raw(V2_TYPES[which])).unwrap();
        let size = usize::try_from(data_type.item_size).unwrap();
        let mut bytes = bytes[..size].to_vec();
        if data_type.element == Element::Bool {
            bytes[0] &= 1;
        }
        let fill = fill(&data_type, &bytes);
        if let Ok(spelled) = fill.spell_v2(&data_type) {
            let again = FillValue::parse(&data_type, Some(&raw(&spelled)), Dialect::V2).unwrap();
            prop_assert_eq!(&again, &fill, "v2 {}", spelled);
        }
        if let Ok(spelled) = fill.spell_v3(&data_type) {
            let order = data_type.element.field_orders().first().copied().unwrap_or(ByteOrder::Little);
            let written = DataType::parse_v3(&raw(&data_type.spell_v3().unwrap())).unwrap();
            let again = FillValue::parse_v3(&written, &raw(&spelled), order).unwrap();
            prop_assert_eq!(&again, &fill, "v3 {}", spelled);
        }
    }

    /// Any bits of a type that only v3 has.
    #[test]
    fn bits_of_v3_types_survive(which in 0..V3_TYPES.len(), bytes in any::<[u8; 4]>()) {
        let data_type = DataType::parse_v3(&raw(V3_TYPES[which])).unwrap();
        let size = usize::try_from(data_type.item_size).unwrap();
        let mut bytes = bytes[..size].to_vec();
        if V3_TYPES[which].contains("uint4") {
            bytes[0] &= 0x0f;
        }
        let fill = fill(&data_type, &bytes);
        let spelled = fill.spell_v3(&data_type).unwrap();
        let again = FillValue::parse_v3(&data_type, &raw(&spelled), ByteOrder::Little).unwrap();
        prop_assert_eq!(again, fill, "{}", spelled);
    }
}
