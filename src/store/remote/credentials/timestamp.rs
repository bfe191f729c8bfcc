//! Points in time as clouds write them: RFC 3339, such as `2026-11-23T01:02:03Z`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: i64 = 86_400;

/// The point in time that `text` names; `None` when it is not of RFC 3339, or before 1970.
/// Fractions of a second are left out.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let (date, rest) = text.split_at_checked(10)?;
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (time, zone) = time.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_date = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of_month(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let of_day = hour * 3600 + minute * 60 + second;
    let seconds = days_since_1970(year, month, day) * SECONDS_A_DAY + of_day - offset(zone)?;
    Some(UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// Three numbers of these widths.
fn numbers(text: &str, separator: char, widths: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut next = |width: usize| {
        let part = parts.next()?;
        let is_number = part.len() == width && part.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| part.parse().ok())?
    };
    let [a, b, c] = widths;
    let found = [next(a)?, next(b)?, next(c)?];
    parts.next().is_none().then_some(found)
}

/// Seconds to the east of UTC, of a zone that may have a fraction of a second before it.
fn offset(zone: &str) -> Option<i64> {
    let zone = match zone.strip_prefix('.') {
        Some(rest) => {
            let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            (zone.len() < rest.len()).then_some(zone)?
        }
        None => zone,
    };
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str, most: i64| {
        let is_number = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        let number = is_number.then(|| text.parse::<i64>().ok())??;
        (number <= most).then_some(number)
    };
    Some(sign * (number(hours, 23)? * 3600 + number(minutes, 59)? * 60))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date, of a year from 1970 to 9999.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Leap days in all years before this one, of which 477 are before 1970.
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400 - 477;
    let months: i64 = (1..month).map(|month| days_of_month(year, month)).sum();
    (year - 1970) * 365 + leap_days + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_seconds_since_1970() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1972-03-01T00:00:00Z", 68_256_000),
            ("2000-02-29T12:00:00+00:00", 951_825_600),
            ("2019-05-29T00:21:43Z", 1_559_089_303),
            ("2026-11-23T01:12:02.123456Z", 1_795_396_322),
            ("2026-11-23t02:12:02.5+01:00", 1_795_396_322),
            ("2026-11-22 15:42:02-09:30", 1_795_396_322),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            let expected = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_point_in_time_is_refused() {
        for text in [
            "",
            "2026-11-23",
            "2026-11-23T01:12:02",
            "2026-11-23T01:12Z",
            "2026-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-11-23T24:00:00Z",
            "2026-11-23T01:12:02.Z",
            "2026-11-23T01:12:02+1:00",
            "2026-11-23T01:12:02+0100",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "+026-11-23T01:12:02Z",
            "2026-11-23T01:12:02Zx",
            "2026-1\u{e9}-23T01:12:02Z",
            "99999999999999999999",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
