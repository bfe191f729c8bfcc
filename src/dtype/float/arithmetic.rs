//! Arithmetic of a format: the number nearest to a value, and the numbers next to it.

use super::{FloatFormat, Specials};

impl FloatFormat {
    /// The number of significant bits of a number, which are the low ones.
    pub(crate) fn bit_count(self) -> u32 {
        let sign = u32::from(self.specials != Specials::ExponentOnly);
        sign + self.exponent_bits + self.mantissa_bits
    }

    /// Bits of the least or the greatest finite number.
    pub(crate) fn end(self, is_least: bool) -> u64 {
        match (self.specials, is_least) {
            (Specials::ExponentOnly, true) => 0,
            (_, true) => self.sign_bit() | self.largest(),
            (_, false) => self.largest(),
        }
    }

    /// The number of this format that is next to `value`, also of this format: above or below it.
    pub(crate) fn next(self, value: f64, above: bool) -> Option<f64> {
        if self.bytes == 8 {
            return Some(if above {
                value.next_up()
            } else {
                value.next_down()
            });
        }
        let bits = self.of_value(value)?;
        let is_negative = bits & self.sign_bit() != 0;
        let magnitude = bits & !self.sign_bit();
        let next = match (magnitude, is_negative == above) {
            (0, true) if self.specials == Specials::ExponentOnly => return None,
            // The next number of zero, towards the other sign, is the smallest one of that sign.
            (0, _) if is_negative == above => 1 | self.sign(!above),
            (0, _) => bits + 1,
            // The sign alone is not a number.
            (1, true) if self.specials == Specials::UnsignedZero => 0,
            (_, true) => bits - 1,
            (_, false) if magnitude < self.largest() => bits + 1,
            (_, false) => self.infinity(!above)?,
        };
        Some(self.value(next))
    }

    /// Bits of the number of this format nearest to `value`, half to even; `None` when the format
    /// has none. A number that is too large becomes infinite where the format has infinities.
    pub(crate) fn of_value(self, value: f64) -> Option<u64> {
        match self.bytes {
            8 => Some(value.to_bits()),
            #[expect(clippy::cast_possible_truncation, reason = "rounds half to even")]
            4 => Some(u64::from((value as f32).to_bits())),
            _ if value.is_nan() && self.specials == Specials::Ieee => self
                .nan()
                .map(|bits| self.sign(value.is_sign_negative()) | bits),
            _ => self.round(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FLOAT16, FLOAT32, FORMATS};
    use super::*;

    /// The formats of at most two bytes, whose numbers can all be tried.
    fn narrow() -> impl Iterator<Item = (&'static str, FloatFormat)> {
        FORMATS.into_iter().filter(|(_, format)| format.bytes <= 2)
    }

    /// All codes of a format.
    fn codes(format: FloatFormat) -> std::ops::Range<u64> {
        let bits = 1 + format.exponent_bits + format.mantissa_bits;
        0..if format.sign_bit() == 0 {
            1 << 8
        } else {
            1 << bits
        }
    }

    #[test]
    fn numbers_are_next_to_each_other_in_their_order() {
        for (name, format) in narrow() {
            let values = codes(format).map(|code| format.value(code));
            let mut values: Vec<_> = values.filter(|value| value.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            // Zero may have two signs.
            values.dedup();
            for pair in values.windows(2) {
                assert_eq!(format.next(pair[0], true), Some(pair[1]), "{name}");
                assert_eq!(format.next(pair[1], false), Some(pair[0]), "{name}");
            }
        }
    }

    #[test]
    fn every_number_of_a_format_comes_back() {
        for (name, format) in narrow() {
            for code in codes(format) {
                let value = format.value(code);
                let back = format.of_value(value).unwrap();
                if value.is_nan() {
                    assert!(format.value(back).is_nan(), "{name} {code:#x}");
                } else {
                    assert_eq!(back, code, "{name} {value}");
                }
            }
        }
        for (value, next) in [
            (0.0, 2_f64.powi(-24)),
            (-0.0, 2_f64.powi(-24)),
            (65504.0, f64::INFINITY),
        ] {
            assert_eq!(FLOAT16.next(value, true), Some(next));
            assert_eq!(FLOAT16.next(-value, false), Some(-next));
        }
        assert_eq!(FLOAT16.next(1.0, false), Some(1.0 - 2_f64.powi(-11)));
        assert_eq!(FLOAT16.value(0x3e00).to_bits(), 1.5_f64.to_bits());
        assert_eq!(FLOAT32.of_value(0.1), Some(0x3dcc_cccd));
    }
}
