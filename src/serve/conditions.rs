//! Whether a request wants an answer at all, by what the client knows already (RFC 9110, section 13).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::HeaderMap;
use hyper::header::{
    AsHeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};

use super::gzip;

/// The time after a change in which its date may not distinguish it from the next one, because a date has whole seconds,
/// and the clock of a store may differ from that of this machine (RFC 9110, section 8.8.2.2).
const UNSETTLED: Duration = Duration::from_secs(60);

/// The version of a file, as the headers have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Validators {
    /// The strong entity tag, with its quotes.
    pub(super) etag: HeaderValue,
    /// The time of the last change, in whole seconds, if it is one that a header can have.
    modified: Option<SystemTime>,
    /// The time of the last change as a header.
    pub(super) last_modified: Option<HeaderValue>,
}

/// The answer that the conditions of a request allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The answer that is asked for.
    Answer,
    /// 304: the client has this version.
    NotModified,
    /// 412: the client wants another version.
    Failed,
}

impl Validators {
    /// The validators of a file that was last changed at `modified`, if that is known, and was opened at `now`. `None` if
    /// no header can have `etag`. A file that was changed a moment before has no date.
    pub(super) fn new(
        etag: String,
        modified: Option<SystemTime>,
        now: SystemTime,
    ) -> Option<Validators> {
        let settled = now.checked_sub(UNSETTLED).unwrap_or(UNIX_EPOCH);
        let modified = modified.and_then(|modified| shown(modified, settled));
        let date = modified.map(httpdate::fmt_http_date);
        Some(Validators {
            etag: etag.try_into().ok()?,
            modified,
            last_modified: date.and_then(|date| date.try_into().ok()),
        })
    }

    /// The entity tag of another form of the same bytes, such as compressed ones.
    pub(super) fn etag_of(&self, form: &str) -> Vec<u8> {
        let etag = self.etag.as_bytes();
        let etag = etag.strip_suffix(b"\"").unwrap_or(etag);
        [etag, b"-", form.as_bytes(), b"\""].concat()
    }

    /// The verdict of the conditions in `headers` about this version, in the order of section 13.2.2.
    pub(super) fn judge(&self, headers: &HeaderMap) -> Verdict {
        if headers.contains_key(IF_MATCH) {
            if !self.is_in(headers, IF_MATCH, Comparison::Strong) {
                return Verdict::Failed;
            }
        } else if let Some(since) = date(headers, IF_UNMODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified > since)
        {
            return Verdict::Failed;
        }
        let is_known = if headers.contains_key(IF_NONE_MATCH) {
            self.is_in(headers, IF_NONE_MATCH, Comparison::Weak)
        } else {
            let since = date(headers, IF_MODIFIED_SINCE);
            let modified = self.modified.zip(since);
            modified.is_some_and(|(modified, since)| modified <= since)
        };
        if is_known {
            Verdict::NotModified
        } else {
            Verdict::Answer
        }
    }

    /// Whether a range of this version may be sent. A date does not distinguish two versions of one second, so that only
    /// the entity tag counts.
    pub(super) fn allows_range(&self, headers: &HeaderMap) -> bool {
        let mut conditions = headers.get_all(IF_RANGE).into_iter();
        conditions.all(|tag| tag == self.etag)
    }

    fn is_in(&self, headers: &HeaderMap, name: impl AsHeaderName, comparison: Comparison) -> bool {
        let lists = headers.get_all(name).into_iter();
        // None of our tags has a comma in it.
        let tags = lists.flat_map(|list| list.as_bytes().split(|&byte| byte == b','));
        tags.map(<[u8]>::trim_ascii).any(|tag| {
            let tag = match comparison {
                Comparison::Strong => tag,
                Comparison::Weak => tag.strip_prefix(b"W/").unwrap_or(tag),
            };
            // A client that has the compressed bytes of this version has this version.
            tag == b"*" || tag == self.etag.as_bytes() || tag == self.etag_of(gzip::FORM)
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Comparison {
    Strong,
    Weak,
}

fn date(headers: &HeaderMap, name: impl AsHeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

/// `time` in whole seconds, if a header can have it: a date has a year of four digits, and must not be after `now`.
pub(super) fn shown(time: SystemTime, now: SystemTime) -> Option<SystemTime> {
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    (time <= now).then_some(time)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn version() -> Validators {
        // 1000 seconds and some milliseconds, of which a header shows nothing.
        let modified = at(1000) + Duration::from_millis(7);
        Validators::new("\"a-1\"".to_owned(), Some(modified), at(2000)).unwrap()
    }

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        let lines = lines.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (name.clone(), value)
        });
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn verdicts() {
        use Verdict::{Answer, Failed, NotModified};
        let now = httpdate::fmt_http_date(at(1000));
        let before = httpdate::fmt_http_date(at(999));
        let cases: Vec<(Vec<(HeaderName, &str)>, Verdict)> = vec![
            (vec![], Answer),
            (vec![(IF_NONE_MATCH, "\"a-1\"")], NotModified),
            (vec![(IF_NONE_MATCH, "W/\"a-1\"")], NotModified),
            (vec![(IF_NONE_MATCH, "\"a-1-gzip\"")], NotModified),
            (vec![(IF_NONE_MATCH, "*")], NotModified),
            (vec![(IF_NONE_MATCH, "\"b\", \"a-1\"")], NotModified),
            (
                vec![(IF_NONE_MATCH, "\"b\""), (IF_NONE_MATCH, "\"a-1\"")],
                NotModified,
            ),
            (vec![(IF_NONE_MATCH, "\"b\"")], Answer),
            (vec![(IF_NONE_MATCH, "a-1")], Answer),
            (vec![(IF_MATCH, "\"a-1\"")], Answer),
            (vec![(IF_MATCH, "*")], Answer),
            (vec![(IF_MATCH, "W/\"a-1\"")], Failed),
            (vec![(IF_MATCH, "\"b\"")], Failed),
            (vec![(IF_MATCH, "")], Failed),
            (
                vec![(IF_MATCH, "\"a-1\""), (IF_NONE_MATCH, "\"a-1\"")],
                NotModified,
            ),
            (vec![(IF_MODIFIED_SINCE, &now)], NotModified),
            (vec![(IF_MODIFIED_SINCE, &before)], Answer),
            (vec![(IF_MODIFIED_SINCE, "yesterday")], Answer),
            // A tag distinguishes more versions than a date.
            (
                vec![(IF_MODIFIED_SINCE, &now), (IF_NONE_MATCH, "\"b\"")],
                Answer,
            ),
            (vec![(IF_UNMODIFIED_SINCE, &now)], Answer),
            (vec![(IF_UNMODIFIED_SINCE, &before)], Failed),
            (
                vec![(IF_UNMODIFIED_SINCE, &before), (IF_MATCH, "\"a-1\"")],
                Answer,
            ),
        ];
        for (lines, expected) in cases {
            assert_eq!(version().judge(&headers(&lines)), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_file_that_was_changed_a_moment_ago_has_no_date() {
        let date = httpdate::fmt_http_date(at(1000));
        let asked = headers(&[(IF_MODIFIED_SINCE, &date)]);
        for (now, has_date) in [(1000, false), (1059, false), (1061, true)] {
            let modified = at(1000) + Duration::from_millis(7);
            let version = Validators::new("\"a-1\"".to_owned(), Some(modified), at(now)).unwrap();
            assert_eq!(version.last_modified.is_some(), has_date, "{now}");
            let is_known = version.judge(&asked) == Verdict::NotModified;
            assert_eq!(is_known, has_date, "{now}");
        }
    }

    #[test]
    fn a_range_of_another_version_is_not_sent() {
        let now = httpdate::fmt_http_date(at(1000));
        for (value, allows) in [
            ("\"a-1\"", true),
            ("W/\"a-1\"", false),
            ("\"b\"", false),
            (&now, false),
        ] {
            let headers = headers(&[(IF_RANGE, value)]);
            assert_eq!(version().allows_range(&headers), allows, "{value}");
        }
        assert!(version().allows_range(&HeaderMap::new()));
        assert_eq!(version().etag_of("gzip"), b"\"a-1-gzip\"");
    }

    #[test]
    fn no_time_of_a_store_is_too_much_for_a_header() {
        let now = at(2_000_000_000);
        let far = UNIX_EPOCH.checked_add(Duration::from_secs(400_000_000_000));
        for (time, expected) in [
            (Some(UNIX_EPOCH - Duration::from_secs(1)), None),
            (far, None),
            (Some(at(2_000_000_001)), None),
            (Some(at(5) + Duration::from_nanos(1)), Some(at(5))),
        ] {
            assert_eq!(time.and_then(|time| shown(time, now)), expected);
        }
    }
}
