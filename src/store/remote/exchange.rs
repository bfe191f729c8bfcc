//! The facts about one request and its answer that the client library does not pass on.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, DATE, HeaderMap, HeaderName, RETRY_AFTER};
use parking_lot::{Mutex, MutexGuard};

/// The kinds of requests, which are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestKind {
    Get,
    Head,
    List,
}

/// The longest wait that a server may ask for before the next attempt.
const MOST_RETRY_AFTER: Duration = Duration::from_secs(5);

/// One request, and the facts about its answer. It travels with the request through the client library, which passes it
/// to [`Connection`](super::connection::Connection).
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange(Arc<Mutex<AnswerFacts>>);

tokio::task_local! {
    /// The exchange of the `PROPFIND` that this task sends: the client library passes nothing on with it.
    pub(super) static LISTING: Exchange;
}

/// The facts in the head of an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct AnswerFacts {
    /// `None` when no answer arrived.
    pub(super) status: Option<StatusCode>,
    /// Whether the request was sent, or a connection for it was asked for, and no answer arrived.
    pub(super) is_unanswered: bool,
    /// The coding of the body, if there is one: the bytes of the body are not those of the object.
    pub(super) coding: Option<String>,
    /// When the server answered, by its own clock.
    pub(super) date: Option<SystemTime>,
    /// How long the server asks to wait.
    pub(super) retry_after: Option<Duration>,
    /// The region of the bucket, if the server gives it.
    pub(super) region: Option<String>,
    /// The reason why a redirect was not followed.
    pub(super) refused: Option<String>,
    /// Whether the server redirects to the same path with a slash, as web servers do for
    /// directories.
    pub(super) is_directory: bool,
    /// Whether a page of names was requested.
    pub(super) is_page: bool,
    /// The problem of that page.
    pub(super) problem: Option<String>,
    /// How many names were removed from the page.
    pub(super) left_out: usize,
    /// The bytes of the body that have come.
    pub(super) received_bytes: u64,
}

impl Exchange {
    /// A request for a page of names.
    pub(super) fn of_page() -> Exchange {
        let exchange = Exchange::default();
        exchange.0.lock().is_page = true;
        exchange
    }

    /// The facts about the answer, to be noted or looked at.
    pub(super) fn noted(&self) -> MutexGuard<'_, AnswerFacts> {
        self.0.lock()
    }

    /// The facts about the answer so far.
    pub(super) fn facts(&self) -> AnswerFacts {
        self.0.lock().clone()
    }

    /// Notes that no answer arrived. If the request followed a redirect, the answer that led there counts no more.
    pub(super) fn failed(&self) {
        let mut facts = self.0.lock();
        facts.is_unanswered = true;
        facts.status = None;
    }

    /// Notes the head of the answer.
    pub(super) fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        let mut facts = self.0.lock();
        facts.status = Some(status);
        facts.coding = coding(headers);
        facts.date = text(headers, &DATE).and_then(|date| time(&date));
        facts.retry_after = retry_after(headers);
        facts.region = text(headers, &HeaderName::from_static("x-amz-bucket-region"));
    }
}

/// The coding of the body, unless it has none. `aws-chunked` remains from uploads.
fn coding(headers: &HeaderMap) -> Option<String> {
    let stored = HeaderName::from_static("x-goog-stored-content-encoding");
    [CONTENT_ENCODING, stored].iter().find_map(|name| {
        let coding = text(headers, name)?.to_ascii_lowercase();
        let is_none = coding
            .split(',')
            .all(|part| matches!(part.trim(), "" | "identity" | "aws-chunked"));
        (!is_none).then_some(coding)
    })
}

/// The point in time in a header such as `Date: Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7). Obsolete
/// forms are not read.
fn time(text: &str) -> Option<SystemTime> {
    let date = DateTime::parse_from_rfc2822(text.trim()).ok()?;
    let seconds = u64::try_from(date.timestamp()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = text(headers, &RETRY_AFTER)?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MOST_RETRY_AFTER))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(headers: &[(&'static str, &'static str)]) -> AnswerFacts {
        let exchange = Exchange::default();
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        exchange.answered(StatusCode::OK, &headers);
        exchange.facts()
    }

    #[test]
    fn codings_that_change_bytes_are_found() {
        for (name, value, expected) in [
            ("content-encoding", "gzip", Some("gzip")),
            ("content-encoding", "identity", None),
            ("content-encoding", "aws-chunked", None),
            (
                "content-encoding",
                "aws-chunked,gzip",
                Some("aws-chunked,gzip"),
            ),
            ("x-goog-stored-content-encoding", "gzip", Some("gzip")),
            ("x-goog-stored-content-encoding", "identity", None),
        ] {
            assert_eq!(
                facts(&[(name, value)]).coding.as_deref(),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn the_date_of_an_answer_is_read() {
        let date = |value| facts(&[("date", value)]).date;
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(expected));
        for other in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
        ] {
            assert_eq!(date(other), None, "{other}");
        }
    }

    #[test]
    fn the_server_may_ask_for_a_short_wait() {
        let wait = |value| facts(&[("retry-after", value)]).retry_after;
        assert_eq!(wait("2"), Some(Duration::from_secs(2)));
        assert_eq!(wait("86400"), Some(MOST_RETRY_AFTER));
        assert_eq!(wait("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    }
}
