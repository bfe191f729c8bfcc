//! Writes the number that bits stand for so that reading it gives the same bits again.
//!
//! A number is written as the `f64` of its value. A reader that converts the decimal to `f64` first
//! and one that rounds the decimal directly both get the same bits.

use serde_json::Value;

use crate::dtype::FloatFormat;

/// The JSON value that reads as `bits`: a number, or one of the strings `"NaN"`, `"Infinity"`,
/// `"-Infinity"`. `None` if there is none, as for NaNs other than the default one.
pub(super) fn float_json(format: FloatFormat, bits: u64) -> Option<Value> {
    let specials = [
        (format.nan(), "NaN"),
        (format.infinity(false), "Infinity"),
        (format.infinity(true), "-Infinity"),
    ];
    if let Some((_, name)) = specials.iter().find(|(special, _)| *special == Some(bits)) {
        return Some((*name).into());
    }
    let number = Value::from(format.value(bits));
    (format.of_decimal(&number.to_string()) == Some(bits)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 15] = [
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e4m3b11fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
    ];

    /// Every bit pattern of the narrow formats comes back from its number, or has none.
    #[test]
    fn narrow_numbers_come_back() {
        for name in NAMES {
            let format = FloatFormat::of_name(name).unwrap();
            if format.bytes > 2 {
                continue;
            }
            let past = 1_u64 << (8 * format.bytes);
            let spelled = (0..past)
                .filter(|&bits| float_json(format, bits).is_some())
                .count();
            let nans = || 2 * ((1 << format.mantissa_bits) - 1) - 1;
            let expected = match name {
                // Patterns with unused high bits set have no number.
                "float6_e2m3fn" | "float6_e3m2fn" => 64,
                "float4_e2m1fn" => 16,
                // All but the NaN with a sign.
                "float8_e4m3fn" => past - 1,
                // All but the NaNs that are not the default one.
                _ if format.infinity(false).is_some() => past - nans(),
                _ => past,
            };
            assert_eq!(u64::try_from(spelled).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn numbers_are_spelled_as_f64() {
        for (name, bits, json) in [
            ("float64", 0x3fb9_9999_9999_999a, Some("0.1")),
            ("float64", 0x8000_0000_0000_0000, Some("-0.0")),
            ("float64", 1, Some("5e-324")),
            (
                "float64",
                0x7fef_ffff_ffff_ffff,
                Some("1.7976931348623157e+308"),
            ),
            ("float32", 0x3dcc_cccd, Some("0.10000000149011612")),
            ("float32", 0x7fc0_0000, Some("\"NaN\"")),
            ("float32", 0xff80_0000, Some("\"-Infinity\"")),
            ("float32", 0x7fc0_0001, None),
            ("float32", 0xffc0_0000, None),
            ("float16", 0x3e00, Some("1.5")),
            ("bfloat16", 0x3fc0, Some("1.5")),
            ("float8_e8m0fnu", 0, Some("5.877471754111438e-39")),
        ] {
            let format = FloatFormat::of_name(name).unwrap();
            let spelled = float_json(format, bits).map(|value| value.to_string());
            assert_eq!(spelled.as_deref(), json, "{name} {bits:x}");
        }
    }
}
