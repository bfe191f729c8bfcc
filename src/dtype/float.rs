//! Floating point formats, and the conversion of fill values to their bits.
//!
//! `float32` and `float64` are parsed directly from the decimal text. Narrower formats are rounded
//! half to even from the nearest `f64`.
//!
//! ```text
//! float16     s eeeee mmmmmmmmmm        bias 15     1.5 = 0 01111 1000000000 = 3e00
//! bfloat16    s eeeeeeee mmmmmmm        bias 127    1.5 = 3fc0
//! float4      0000 s ee m               bias 1      1.5 = 3
//! ```
//!
//! Sources: Zarr v3 core, section "Fill value list"; the `float8_*`, `float6_*`, `float4_*` and
//! `bfloat16` registrations in zarr-extensions.

mod arithmetic;
mod value;

/// The special values of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Specials {
    /// The largest exponent holds infinities and NaNs.
    Ieee,
    /// The bits of minus zero are the only NaN; there is no infinity.
    UnsignedZero,
    /// Finite numbers only.
    Finite,
    /// Finite numbers, and a NaN of either sign whose other bits are all ones.
    FiniteNan,
    /// All bits are exponent: there is no sign and no zero, and all ones is NaN.
    ExponentOnly,
}

/// A floating point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FloatFormat {
    /// Bytes of one number.
    pub(crate) bytes: usize,
    exponent_bits: u32,
    /// Bits of the mantissa that are stored.
    pub(crate) mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

pub(crate) const FLOAT16: FloatFormat = FloatFormat::new(2, 5, 10, 15, Specials::Ieee);
pub(crate) const FLOAT32: FloatFormat = FloatFormat::new(4, 8, 23, 127, Specials::Ieee);
pub(crate) const FLOAT64: FloatFormat = FloatFormat::new(8, 11, 52, 1023, Specials::Ieee);

/// The formats by the names of their v3 data types.
const FORMATS: [(&str, FloatFormat); 15] = {
    use Specials::{ExponentOnly, Finite, FiniteNan, Ieee, UnsignedZero};
    [
        ("float16", FLOAT16),
        ("float32", FLOAT32),
        ("float64", FLOAT64),
        ("bfloat16", FloatFormat::new(2, 8, 7, 127, Ieee)),
        ("float8_e3m4", FloatFormat::new(1, 3, 4, 3, Ieee)),
        ("float8_e4m3", FloatFormat::new(1, 4, 3, 7, Ieee)),
        ("float8_e5m2", FloatFormat::new(1, 5, 2, 15, Ieee)),
        // Not registered; ml_dtypes and tensorstore have it.
        ("float8_e4m3fn", FloatFormat::new(1, 4, 3, 7, FiniteNan)),
        (
            "float8_e4m3fnuz",
            FloatFormat::new(1, 4, 3, 8, UnsignedZero),
        ),
        (
            "float8_e4m3b11fnuz",
            FloatFormat::new(1, 4, 3, 11, UnsignedZero),
        ),
        (
            "float8_e5m2fnuz",
            FloatFormat::new(1, 5, 2, 16, UnsignedZero),
        ),
        (
            "float8_e8m0fnu",
            FloatFormat::new(1, 8, 0, 127, ExponentOnly),
        ),
        ("float6_e2m3fn", FloatFormat::new(1, 2, 3, 1, Finite)),
        ("float6_e3m2fn", FloatFormat::new(1, 3, 2, 3, Finite)),
        ("float4_e2m1fn", FloatFormat::new(1, 2, 1, 1, Finite)),
    ]
};

impl FloatFormat {
    const fn new(
        bytes: usize,
        exponent_bits: u32,
        mantissa_bits: u32,
        bias: i32,
        specials: Specials,
    ) -> FloatFormat {
        FloatFormat {
            bytes,
            exponent_bits,
            mantissa_bits,
            bias,
            specials,
        }
    }

    /// The format of a v3 data type.
    pub(crate) fn of_name(name: &str) -> Option<FloatFormat> {
        let found = FORMATS.iter().find(|(known, _)| *known == name);
        found.map(|&(_, format)| format)
    }

    /// The name of the v3 data type.
    pub(crate) fn name(self) -> &'static str {
        let found = FORMATS.iter().find(|(_, format)| *format == self);
        found.map_or("", |(name, _)| name)
    }

    /// The bit of the sign; 0 in a format without one.
    fn sign_bit(self) -> u64 {
        match self.specials {
            Specials::ExponentOnly => 0,
            _ => 1 << (self.exponent_bits + self.mantissa_bits),
        }
    }

    /// The sign bit of a negative number; 0 for others.
    fn sign(self, is_negative: bool) -> u64 {
        if is_negative { self.sign_bit() } else { 0 }
    }

    /// All bits of the exponent.
    fn exponent_mask(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// All bits but the sign.
    fn magnitude_mask(self) -> u64 {
        self.exponent_mask() | ((1 << self.mantissa_bits) - 1)
    }

    /// Bits of the largest finite number, without the sign.
    fn largest(self) -> u64 {
        match self.specials {
            Specials::Ieee | Specials::ExponentOnly => self.exponent_mask() - 1,
            Specials::UnsignedZero | Specials::Finite => self.magnitude_mask(),
            Specials::FiniteNan => self.magnitude_mask() - 1,
        }
    }

    /// Bits of the default NaN.
    pub(crate) fn nan(self) -> Option<u64> {
        match self.specials {
            Specials::Ieee => Some(self.exponent_mask() | (1 << (self.mantissa_bits - 1))),
            Specials::UnsignedZero => Some(self.sign_bit()),
            Specials::ExponentOnly => Some(self.exponent_mask()),
            Specials::FiniteNan => Some(self.magnitude_mask()),
            Specials::Finite => None,
        }
    }

    /// Bits of an infinity.
    pub(crate) fn infinity(self, negative: bool) -> Option<u64> {
        (self.specials == Specials::Ieee).then(|| self.exponent_mask() | self.sign(negative))
    }

    /// Bits of the number nearest to the decimal `text`; `None` when it is no number or the format
    /// cannot hold it. A number that is too large becomes infinite where the format has infinities.
    pub(crate) fn of_decimal(self, text: &str) -> Option<u64> {
        // `parse` also accepts "inf" and "nan", for which the caller has its own spellings.
        if !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match self.bytes {
            8 => text.parse().ok().map(f64::to_bits),
            4 => text
                .parse()
                .ok()
                .map(|value: f32| u64::from(value.to_bits())),
            _ => text.parse().ok().and_then(|value| self.round(value)),
        }
    }

    /// Whether all readers take the decimal `text` for the same finite number: those that round it to this format, and
    /// those that round it to an `f64` first. The whole number `-0` is zero for some, and negative zero for others.
    pub(crate) fn is_read_alike(self, text: &str) -> bool {
        if text == "-0" {
            return false;
        }
        let Some(bits) = self.of_decimal(text) else {
            return false;
        };
        let value: Option<f64> = text.parse().ok();
        self.value(bits).is_finite() && value.and_then(|value| self.of_value(value)) == Some(bits)
    }

    /// Bits of the number of this format nearest to `value`, half to even.
    fn round(self, value: f64) -> Option<u64> {
        let sign = self.sign(value.is_sign_negative());
        if value.is_nan() {
            return self.nan();
        }
        if value.is_infinite() {
            return self.infinity(value.is_sign_negative());
        }
        if value == 0.0 {
            return match self.specials {
                Specials::ExponentOnly => None,
                Specials::UnsignedZero => Some(0),
                Specials::Ieee | Specials::Finite | Specials::FiniteNan => Some(sign),
            };
        }
        if self.specials == Specials::ExponentOnly && value < 0.0 {
            return None;
        }
        let magnitude = self.round_magnitude(value);
        if magnitude > self.largest() {
            return self.infinity(value.is_sign_negative());
        }
        match self.specials {
            Specials::UnsignedZero if magnitude == 0 => Some(0),
            _ => Some(sign | magnitude),
        }
    }

    /// Exponent and mantissa bits of |value|, rounded; they may exceed [`largest`](Self::largest).
    fn round_magnitude(self, value: f64) -> u64 {
        // |value| = mantissa * 2^power, and its leading bit is worth 2^exponent.
        let bits = value.to_bits() & !(1 << 63);
        let (mantissa, power) = match i32::try_from(bits >> 52).unwrap_or(i32::MAX) {
            0 => (bits, -1074),
            biased => ((bits & ((1 << 52) - 1)) | (1 << 52), biased - 1075),
        };
        let exponent = power + i32::try_from(mantissa.ilog2()).unwrap_or(0);
        // Code 0 holds subnormal numbers, except in a format that is all exponent.
        let least = match self.specials {
            Specials::ExponentOnly => -self.bias,
            _ => 1 - self.bias,
        };
        let stored = exponent.max(least);
        let mantissa_bits = i32::try_from(self.mantissa_bits).unwrap_or(0);
        let shift = u32::try_from(stored - mantissa_bits - power).unwrap_or(0);
        let units = shift_half_even(mantissa, shift);
        if exponent < least {
            // Code 0 is the least number of a format without zero.
            let least = u64::from(self.specials == Specials::ExponentOnly);
            return units.saturating_sub(least);
        }
        // A carry out of the mantissa increments the exponent, as it should.
        let code = u64::try_from(stored + self.bias).unwrap_or(0);
        (code << self.mantissa_bits) + units - (1 << self.mantissa_bits)
    }
}

/// `value / 2^shift`, rounded half to even.
fn shift_half_even(value: u64, shift: u32) -> u64 {
    let Some(whole) = value.checked_shr(shift) else {
        return 0;
    };
    // Compares twice the remainder with the divisor, in 128 bits so that neither overflows.
    let (rest, one) = (2 * u128::from(value - (whole << shift)), 1_u128 << shift);
    whole + u64::from(rest > one || (rest == one && whole % 2 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_its_name_back() {
        for (name, format) in FORMATS {
            assert_eq!(FloatFormat::of_name(name), Some(format));
            assert_eq!(format.name(), name);
        }
    }

    #[test]
    fn decimals_round_half_to_even() {
        for (name, text, bits) in [
            ("float64", "0.1", Some(0x3fb9_9999_9999_999a)),
            ("float64", "-0.0", Some(0x8000_0000_0000_0000)),
            ("float32", "0.1", Some(0x3dcc_cccd)),
            // Just above the middle of two f32: by way of f64 it would round down.
            ("float32", "1.00000005960464477540", Some(0x3f80_0001)),
            ("float32", "1e39", Some(0x7f80_0000)),
            ("float16", "1", Some(0x3c00)),
            ("float16", "-1.5", Some(0xbe00)),
            ("float16", "65504", Some(0x7bff)),
            ("float16", "65519", Some(0x7bff)),
            ("float16", "65520", Some(0x7c00)),
            ("float16", "6e-8", Some(0x0001)),
            ("float16", "2.9e-8", Some(0x0000)),
            ("float16", "2049", Some(0x6800)),
            ("float16", "2051", Some(0x6802)),
            ("float16", "0.000060975552", Some(0x03ff)),
            ("float16", "5e-324", Some(0)),
            ("bfloat16", "1", Some(0x3f80)),
            ("bfloat16", "3.14159", Some(0x4049)),
            ("bfloat16", "1.00390625", Some(0x3f80)),
            ("bfloat16", "1.01171875", Some(0x3f82)),
            ("float8_e4m3", "1", Some(0x38)),
            ("float8_e4m3", "240", Some(0x77)),
            ("float8_e4m3", "1000", Some(0x78)),
            ("float8_e5m2", "57344", Some(0x7b)),
            ("float8_e3m4", "15.5", Some(0x6f)),
            ("float8_e4m3fn", "448", Some(0x7e)),
            ("float8_e4m3fn", "-0.0", Some(0x80)),
            ("float8_e4m3fn", "1000", None),
            ("float8_e4m3fnuz", "240", Some(0x7f)),
            ("float8_e4m3fnuz", "-0.0", Some(0)),
            ("float8_e4m3fnuz", "1000", None),
            ("float8_e8m0fnu", "1", Some(127)),
            ("float8_e8m0fnu", "0.25", Some(125)),
            ("float8_e8m0fnu", "0", None),
            ("float8_e8m0fnu", "-1", None),
            ("float6_e2m3fn", "7.5", Some(0x1f)),
            ("float6_e2m3fn", "-1", Some(0x28)),
            ("float6_e3m2fn", "28", Some(0x1f)),
            ("float6_e3m2fn", "0.0625", Some(0x01)),
            ("float4_e2m1fn", "6", Some(7)),
            ("float4_e2m1fn", "-0.5", Some(9)),
            ("float4_e2m1fn", "8", None),
            ("float64", "inf", None),
        ] {
            let format = FloatFormat::of_name(name).unwrap();
            assert_eq!(format.of_decimal(text), bits, "{name} {text}");
        }
    }

    #[test]
    fn special_values_have_their_registered_bits() {
        for (name, nan, infinity) in [
            ("float16", Some(0x7e00), Some(0x7c00)),
            ("float32", Some(0x7fc0_0000), Some(0x7f80_0000)),
            (
                "float64",
                Some(0x7ff8_0000_0000_0000),
                Some(0x7ff0_0000_0000_0000),
            ),
            ("bfloat16", Some(0x7fc0), Some(0x7f80)),
            ("float8_e3m4", Some(0x78), Some(0x70)),
            ("float8_e4m3", Some(0x7c), Some(0x78)),
            ("float8_e5m2", Some(0x7e), Some(0x7c)),
            ("float8_e4m3fn", Some(0x7f), None),
            ("float8_e4m3b11fnuz", Some(0x80), None),
            ("float8_e8m0fnu", Some(0xff), None),
            ("float4_e2m1fn", None, None),
        ] {
            let format = FloatFormat::of_name(name).unwrap();
            assert_eq!(
                (format.nan(), format.infinity(false)),
                (nan, infinity),
                "{name}"
            );
        }
        assert_eq!(FLOAT16.infinity(true), Some(0xfc00));
    }
}
