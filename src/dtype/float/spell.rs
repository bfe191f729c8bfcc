//! Writes the number that bits stand for so that reading it gives the same bits again.
//!
//! A number is written as the `f64` of its value. A reader that converts the decimal to `f64` first
//! and one that rounds the decimal directly both get the same bits.

use serde_json::Value;

use super::super::spell_fill::unsigned;
use super::{FloatFormat, Specials};

impl FloatFormat {
    /// The bits of the little-endian number that `bytes` begins with.
    pub(crate) fn bits(self, bytes: &[u8]) -> u64 {
        unsigned(bytes.get(..self.bytes).unwrap_or(bytes))
    }

    /// The JSON value that reads as `bits`: a number, or one of the strings `"NaN"`, `"Infinity"`,
    /// `"-Infinity"`. `None` where there is none, as for NaNs other than the default one.
    pub(crate) fn json_of(self, bits: u64) -> Option<Value> {
        let specials = [
            (self.nan(), "NaN"),
            (self.infinity(false), "Infinity"),
            (self.infinity(true), "-Infinity"),
        ];
        if let Some((_, name)) = specials.iter().find(|(special, _)| *special == Some(bits)) {
            return Some((*name).into());
        }
        let number = Value::from(self.value(bits));
        (self.of_decimal(&number.to_string()) == Some(bits)).then_some(number)
    }

    /// The bits in hexadecimal, most significant first: `0x7fc00001`.
    pub(crate) fn hex_of(self, bits: u64) -> String {
        format!("0x{bits:0width$x}", width = 2 * self.bytes)
    }

    /// The exact value of `bits`.
    pub(crate) fn value(self, bits: u64) -> f64 {
        match self.bytes {
            8 => return f64::from_bits(bits),
            4 => return f32::from_bits(u32::try_from(bits).unwrap_or(u32::MAX)).into(),
            _ => {}
        }
        if self.nan() == Some(bits) {
            return f64::NAN;
        }
        let is_negative = bits & self.sign_bit() != 0;
        let sign = if is_negative { -1.0 } else { 1.0 };
        let exponent = bits & self.exponent_mask();
        let mantissa = bits & ((1 << self.mantissa_bits) - 1);
        if self.specials == Specials::Ieee && exponent == self.exponent_mask() {
            let special = if mantissa == 0 {
                f64::INFINITY
            } else {
                f64::NAN
            };
            return special.copysign(sign);
        }
        let exponent = i32::try_from(exponent >> self.mantissa_bits).unwrap_or(0);
        // Exponent 0 holds subnormal numbers, except in a format that is all exponent.
        let (mantissa, exponent) = match (self.specials, exponent) {
            (Specials::ExponentOnly, _) => (1, exponent),
            (_, 0) => (mantissa, 1),
            _ => (mantissa | (1 << self.mantissa_bits), exponent),
        };
        let mantissa = f64::from(u32::try_from(mantissa).unwrap_or(u32::MAX));
        let power = exponent - self.bias - i32::try_from(self.mantissa_bits).unwrap_or(0);
        sign * mantissa * power_of_two(power)
    }
}

/// Two to the power of `exponent`, which must be one that an `f64` can have.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::try_from(1023 + exponent).unwrap_or(0) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 14] = [
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e4m3b11fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
    ];

    #[test]
    fn every_format_has_its_name_back() {
        for name in NAMES {
            assert_eq!(FloatFormat::of_name(name).unwrap().name(), name);
        }
    }

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
                .filter(|&bits| format.json_of(bits).is_some())
                .count();
            let nans = |format: FloatFormat| 2 * ((1 << format.mantissa_bits) - 1) - 1;
            let expected = match format.specials {
                // All but the NaNs that are not the default one.
                Specials::Ieee => past - nans(format),
                // Patterns with unused high bits set have no number.
                Specials::Finite => 2 * format.sign_bit(),
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
            let spelled = format.json_of(bits).map(|value| value.to_string());
            assert_eq!(spelled.as_deref(), json, "{name} {bits:x}");
        }
        assert_eq!(super::super::FLOAT16.hex_of(1), "0x0001");
        assert_eq!(
            super::super::FLOAT32.bits(&[1, 0, 0xc0, 0x7f, 9]),
            0x7fc0_0001
        );
    }
}
