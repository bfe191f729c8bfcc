//! Points in time as clouds write them: RFC 3339, such as `2026-11-23T01:02:03Z`.

use std::time::SystemTime;

use chrono::DateTime;

/// The point in time that `text` names; `None` when it is not of RFC 3339.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    DateTime::parse_from_rfc3339(text)
        .ok()
        .map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn points_in_time_are_seconds_since_1970() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("1972-03-01T00:00:00Z", 68_256_000.0),
            ("2000-02-29T12:00:00+00:00", 951_825_600.0),
            ("2019-05-29T00:21:43Z", 1_559_089_303.0),
            ("2026-11-23T01:12:02.5Z", 1_795_396_322.5),
            ("2026-11-23t02:12:02+01:00", 1_795_396_322.0),
            ("2026-11-22 15:42:02-09:30", 1_795_396_322.0),
            ("2100-03-01T00:00:00Z", 4_107_542_400.0),
            ("9999-12-31T23:59:59Z", 253_402_300_799.0),
        ] {
            let expected = UNIX_EPOCH + Duration::from_secs_f64(seconds);
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
            "+026-11-23T01:12:02Z",
            "2026-11-23T01:12:02Zx",
            "2026-1\u{e9}-23T01:12:02Z",
            "99999999999999999999",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
