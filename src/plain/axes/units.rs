//! Units of length and time, by the words of UDUNITS, which OME-NGFF and CF use.

/// A unit: `factor * 10^exponent` metres or seconds. The power of ten is separate, so that a
/// conversion to a larger power divides by an exact number and rounds once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::plain) struct Unit {
    factor: f64,
    exponent: i32,
}

/// The prefixes: word, symbol and power of ten.
const PREFIXES: [(&str, &str, i32); 20] = [
    ("yotta", "Y", 24),
    ("zetta", "Z", 21),
    ("exa", "E", 18),
    ("peta", "P", 15),
    ("tera", "T", 12),
    ("giga", "G", 9),
    ("mega", "M", 6),
    ("kilo", "k", 3),
    ("hecto", "h", 2),
    ("deca", "da", 1),
    ("deci", "d", -1),
    ("centi", "c", -2),
    ("milli", "m", -3),
    ("micro", "u", -6),
    ("nano", "n", -9),
    ("pico", "p", -12),
    ("femto", "f", -15),
    ("atto", "a", -18),
    ("zepto", "z", -21),
    ("yocto", "y", -24),
];

impl Unit {
    /// The unit of `10^exponent` metres or seconds.
    pub(in crate::plain) const fn power(exponent: i32) -> Unit {
        Unit {
            factor: 1.0,
            exponent,
        }
    }

    const fn new(factor: f64, exponent: i32) -> Unit {
        Unit { factor, exponent }
    }

    /// The unit of length called `word`.
    pub(in crate::plain) fn length(word: &str) -> Option<Unit> {
        Some(match word {
            "m" => Unit::power(0),
            "micron" | "microns" => Unit::power(-6),
            "angstrom" | "angstroms" | "Angstrom" | "Ångström" | "ångström" | "Å" | "\u{212b}" => {
                Unit::power(-10)
            }
            "inch" | "inches" | "in" => Unit::new(254.0, -4),
            "foot" | "feet" | "ft" => Unit::new(3048.0, -4),
            "yard" | "yards" | "yd" => Unit::new(9144.0, -4),
            "mile" | "miles" | "mi" => Unit::new(1_609_344.0, -3),
            "parsec" | "parsecs" | "pc" => Unit::new(3.085_677_581_491_367_3, 16),
            _ => Unit::power(prefixed(word, &["meter", "metre"], "m")?),
        })
    }

    /// The unit of time called `word`.
    pub(in crate::plain) fn time(word: &str) -> Option<Unit> {
        Some(match word {
            "s" | "sec" | "secs" => Unit::power(0),
            "msec" | "msecs" => Unit::power(-3),
            "minute" | "minutes" | "min" | "mins" => Unit::new(60.0, 0),
            "hour" | "hours" | "h" | "hr" | "hrs" => Unit::new(3600.0, 0),
            "day" | "days" | "d" => Unit::new(86400.0, 0),
            _ => Unit::power(prefixed(word, &["second"], "s")?),
        })
    }

    /// Converts `value` from this unit to `to`; `None` if the result is not finite.
    pub(in crate::plain) fn convert(self, value: f64, to: Unit) -> Option<f64> {
        let value = if self.factor.to_bits() == to.factor.to_bits() {
            value
        } else {
            value * self.factor / to.factor
        };
        let power = 10_f64.powi((self.exponent - to.exponent).abs());
        let value = if self.exponent < to.exponent {
            value / power
        } else {
            value * power
        };
        value.is_finite().then_some(value)
    }

    /// The symbol of the prefix if the unit is a metre or a second with a prefix; empty without
    /// one.
    pub(in crate::plain) fn prefix(self) -> Option<&'static str> {
        let is_it = |(_, _, power): &&(_, _, i32)| Unit::power(*power) == self;
        let prefix = PREFIXES.iter().find(is_it).map(|(_, symbol, _)| *symbol);
        prefix.or((self == Unit::power(0)).then_some(""))
    }

    /// The greatest power of ten that is not above the unit.
    pub(in crate::plain) fn magnitude(self) -> i32 {
        #[expect(clippy::cast_possible_truncation, reason = "of a small factor")]
        let digits = self.factor.log10().floor() as i32;
        self.exponent + digits
    }
}

/// The power of ten of a base unit with a prefix: both are spelled as words, or both as symbols.
fn prefixed(word: &str, bases: &[&str], symbol: &str) -> Option<i32> {
    for base in bases {
        let singular = word.strip_suffix('s').unwrap_or(word);
        for word in [word, singular] {
            if let Some(prefix) = word.strip_suffix(base) {
                return match prefix {
                    "" => Some(0),
                    _ => power(|(name, _, _)| *name == prefix),
                };
            }
        }
    }
    let prefix = word.strip_suffix(symbol)?;
    if ["µ", "μ"].contains(&prefix) {
        return Some(-6);
    }
    power(|(_, symbol, _)| *symbol == prefix)
}

fn power(is_it: impl Fn(&(&str, &str, i32)) -> bool) -> Option<i32> {
    let prefix = PREFIXES.iter().find(|prefix| is_it(prefix));
    prefix.map(|(_, _, power)| *power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_symbols_and_plurals() {
        let lengths = [
            ("meter", 0),
            ("metres", 0),
            ("micrometer", -6),
            ("um", -6),
            ("µm", -6),
            ("μm", -6),
            ("nanometers", -9),
            ("angstrom", -10),
            ("yoctometer", -24),
            ("kilometer", 3),
            ("dam", 1),
        ];
        for (word, power) in lengths {
            assert_eq!(Unit::length(word), Some(Unit::power(power)), "{word}");
        }
        assert_eq!(Unit::time("millisecond"), Some(Unit::power(-3)));
        assert_eq!(Unit::time("ms"), Some(Unit::power(-3)));
        assert_eq!(Unit::time("seconds"), Some(Unit::power(0)));
        for word in ["", "s", "second", "pixel", "degrees_north", "metersm", "xm"] {
            assert_eq!(Unit::length(word), None, "{word}");
        }
        for word in ["", "m", "month", "year"] {
            assert_eq!(Unit::time(word), None, "{word}");
        }
    }

    #[test]
    fn conversions_round_once() {
        let [nm, um, mm] = [-9, -6, -3].map(Unit::power);
        assert_eq!(nm.convert(360.0, um), Some(0.36));
        assert_eq!(um.convert(0.325, Unit::power(-10)), Some(3250.0));
        let inch = Unit::length("inch").unwrap();
        assert_eq!(inch.convert(1.0, mm), Some(25.4));
        let hour = Unit::time("hour").unwrap();
        assert_eq!(hour.convert(0.5, Unit::power(0)), Some(1800.0));
        let light = Unit::length("Ym").unwrap();
        assert_eq!(light.convert(1e300, Unit::power(-24)), None);
        assert_eq!(inch.magnitude(), -2);
    }
}
