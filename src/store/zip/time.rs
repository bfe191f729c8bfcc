//! Times of entries.

use rawzip::time::ZipDateTimeKind;

/// Seconds from 1970 to `time`. Entries without a time zone, as MS-DOS had them, are taken for
/// UTC: a mount must not look different in another zone.
pub(super) fn seconds_since_1970(time: &ZipDateTimeKind) -> u32 {
    let (year, month) = (i64::from(time.year()), i64::from(time.month()));
    // Years are counted from March: the leap day is their last day, and months have 30.6 days.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let day_of_year = (153 * month + 2) / 5 + i64::from(time.day()) - 1;
    let days = 365 * year + leap_days + day_of_year - DAYS_TO_1970;
    let (hour, minute) = (i64::from(time.hour()), i64::from(time.minute()));
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + i64::from(time.second());
    u32::try_from(seconds.max(0)).unwrap_or(u32::MAX)
}

/// Days from 1 March of year 0 to 1 January 1970.
const DAYS_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use rawzip::time::UtcDateTime;

    use super::*;

    #[test]
    fn dates_are_counted() {
        for seconds in [
            0,
            951_782_399, // 2000-02-28T23:59:59
            951_782_400, // 2000-02-29
            951_868_800, // 2000-03-01
            1_767_225_600,
            u32::MAX,
        ] {
            let time = ZipDateTimeKind::Utc(UtcDateTime::from_unix(i64::from(seconds)));
            assert_eq!(seconds_since_1970(&time), seconds);
        }
        let before = ZipDateTimeKind::Utc(UtcDateTime::from_unix(-1));
        assert_eq!(seconds_since_1970(&before), 0);
    }
}
