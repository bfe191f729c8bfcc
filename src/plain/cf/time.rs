//! The units of dates and durations in CF.

use crate::dtype::TimeFormat;

/// The day from which NumPy counts dates.
const EPOCH: &str = "1970-01-01";

/// Units: the symbol in `NumPy`, the name that readers of CF understand, and the length in
/// nanoseconds.
const UNITS: [(&str, &str, u64); 7] = [
    ("ns", "nanoseconds", 1),
    ("us", "microseconds", 1_000),
    ("ms", "milliseconds", 1_000_000),
    ("s", "seconds", 1_000_000_000),
    ("m", "minutes", 60_000_000_000),
    ("h", "hours", 3_600_000_000_000),
    ("D", "days", 86_400_000_000_000),
];

/// The attribute `units` for times of `format`: `hours since 1970-01-01` for dates, `hours` for
/// durations. `None` if no unit of CF is exactly as long as one count (years, weeks, 25 seconds).
pub(in crate::plain) fn units(format: &TimeFormat) -> Option<String> {
    let (_, _, nanoseconds) = UNITS.iter().find(|(unit, ..)| *unit == format.unit)?;
    let count = nanoseconds.checked_mul(u64::from(format.scale))?;
    let (_, word, _) = UNITS.iter().find(|(.., length)| *length == count)?;
    Some(if format.is_duration {
        (*word).to_owned()
    } else {
        format!("{word} since {EPOCH}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_a_word_or_none() {
        for (unit, scale, expected) in [
            ("ns", 1, Some("nanoseconds since 1970-01-01")),
            ("D", 1, Some("days since 1970-01-01")),
            ("s", 60, Some("minutes since 1970-01-01")),
            ("h", 24, Some("days since 1970-01-01")),
            ("us", 1000, Some("milliseconds since 1970-01-01")),
            ("s", 25, None),
            ("W", 1, None),
            ("M", 1, None),
            ("Y", 1, None),
            ("ps", 1000, None),
            ("generic", 1, None),
        ] {
            let mut format = TimeFormat {
                is_duration: false,
                unit: unit.to_owned(),
                scale,
            };
            assert_eq!(units(&format).as_deref(), expected, "{scale} {unit}");
            format.is_duration = true;
            let word = expected.and_then(|units| units.split(' ').next());
            assert_eq!(units(&format).as_deref(), word);
        }
    }
}
