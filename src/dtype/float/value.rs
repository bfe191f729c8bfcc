//! The number that bits stand for.

use super::super::element_bytes::unsigned;
use super::{FloatFormat, Specials};

impl FloatFormat {
    /// The bits of the little-endian number that `bytes` begins with.
    pub(crate) fn bits(self, bytes: &[u8]) -> u64 {
        unsigned(bytes.get(..self.bytes).unwrap_or(bytes))
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
        let is_nan = match self.specials {
            Specials::FiniteNan => bits & self.magnitude_mask() == self.magnitude_mask(),
            _ => self.nan() == Some(bits),
        };
        if is_nan {
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
    use super::super::{FLOAT16, FLOAT32};

    #[test]
    fn bits_are_read_and_shown() {
        assert_eq!(FLOAT16.hex_of(1), "0x0001");
        assert_eq!(FLOAT32.bits(&[1, 0, 0xc0, 0x7f, 9]), 0x7fc0_0001);
    }
}
