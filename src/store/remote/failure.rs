//! The reasons why a request failed, and whether another attempt may help.

use std::error::Error as _;
use std::fmt::{self, Write as _};
use std::time::Duration;

use http::StatusCode;
use object_store::client::{HttpError, HttpErrorKind};

use super::addresses::PRIVATE_ADDRESS;
use super::exchange::AnswerFacts;
use super::tag::Pinned;
use crate::store::StoreError;

/// Codes of answers about buckets and containers.
const NO_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];

/// Codes of answers to requests whose credentials were valid before.
const EXPIRED: [&str; 3] = ["ExpiredToken", "RequestExpired", "TokenRefreshRequired"];

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is no such object.
    Absent,
    /// There is no object, but others lie below its key.
    Directory,
    /// The object does not have the version that was requested.
    Changed,
    /// The object still has the version that the caller has already.
    Unchanged,
    /// The server denies access.
    Denied(String),
    /// A redirect is not followed. This says nothing of the object.
    Refused(String),
    /// The credentials are not accepted; new ones may be.
    Unauthorized(String),
    /// The server answers a request for a range with the whole object.
    NotPartial,
    /// The range is beyond the end of the object.
    BeyondEnd,
    /// The answer cannot be used, and another attempt would get the same.
    Unusable(String),
    /// Another attempt may succeed.
    Transient(Transient),
}

/// A failure that may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transient {
    pub(super) problem: String,
    /// Whether the server asks for fewer requests.
    pub(super) is_throttle: bool,
    /// Whether no connection could be made.
    pub(super) is_unreachable: bool,
    /// How long the server asks to wait.
    pub(super) wait: Option<Duration>,
}

impl Failure {
    /// A failure that another attempt may repair.
    pub(super) fn transient(problem: impl Into<String>) -> Failure {
        Failure::Transient(Transient {
            problem: problem.into(),
            is_throttle: false,
            is_unreachable: false,
            wait: None,
        })
    }

    /// A failure that another attempt would not repair.
    pub(super) fn unusable(problem: impl Into<String>) -> Failure {
        Failure::Unusable(problem.into())
    }

    /// The failure that corresponds to `error` of the client library and the head of the answer. No message of the
    /// library is passed on whole, because it may have signed URLs.
    pub(super) fn new(error: &object_store::Error, facts: &AnswerFacts) -> Failure {
        use object_store::Error;
        if let Some(refused) = &facts.refused {
            return Failure::Refused(refused.clone());
        }
        if facts.is_directory {
            return Failure::Directory;
        }
        if let Some(problem) = &facts.problem {
            return Failure::Unusable(problem.clone());
        }
        let text = chain(error);
        if NO_BUCKET.iter().any(|code| text.contains(code)) {
            return Failure::unusable("there is no such bucket or container");
        }
        match error {
            // The client library takes a refused method for absence, too.
            Error::NotFound { .. } if facts.status != Some(StatusCode::METHOD_NOT_ALLOWED) => {
                return Failure::Absent;
            }
            Error::InvalidPath { .. } => {
                return Failure::unusable("the server sent a name that cannot be read");
            }
            Error::Precondition { .. } => return Failure::Changed,
            Error::NotModified { .. } => return Failure::Unchanged,
            _ => {}
        }
        if text.contains(PRIVATE_ADDRESS) {
            let reason = "the name of the host, or of one that a redirect leads to, stands for a private address";
            return Failure::Refused(reason.to_owned());
        }
        match facts.status {
            None => Failure::without_answer(error, facts, &text),
            Some(status) if status.is_success() => Failure::of_success(status, &text),
            Some(status) => Failure::of_status(status, facts, &text),
        }
    }

    fn without_answer(error: &object_store::Error, facts: &AnswerFacts, text: &str) -> Failure {
        let http = source_of::<HttpError>(error);
        // The messages around this one have the URL, which may have any words.
        let of_connection = http.map_or_else(String::new, |http| chain(http));
        if of_connection.contains("InvalidContentType") {
            return Failure::unusable(
                "TLS: the server does not speak it; is it http:// in place of https://?",
            );
        }
        if of_connection.contains("certificate") || of_connection.contains("HandshakeFailure") {
            let reason = innermost(error);
            return Failure::Unusable(format!(
                "TLS: {reason}; give --ca-file if you trust who signed the certificate"
            ));
        }
        let kind = http.map(HttpError::kind);
        // A request is not sent before there are credentials for it.
        if !facts.is_unanswered && (text.contains("redential") || text.contains("token")) {
            let problem = format!("no credentials could be got: {}", innermost(error));
            return match kind {
                Some(kind) if may_pass(kind) => Failure::Transient(Transient {
                    problem,
                    is_throttle: false,
                    is_unreachable: kind == HttpErrorKind::Connect,
                    wait: None,
                }),
                _ => Failure::Unauthorized(problem),
            };
        }
        if kind == Some(HttpErrorKind::Connect) {
            return Failure::Transient(Transient {
                problem: format!("cannot connect: {}", innermost(error)),
                is_throttle: false,
                is_unreachable: true,
                wait: None,
            });
        }
        Failure::transient(match kind {
            Some(HttpErrorKind::Timeout) => "the server does not answer".to_owned(),
            _ => format!("the connection failed: {}", innermost(error)),
        })
    }

    /// The failure of an answer whose status is a success, but whose other headers or body are wrong.
    fn of_success(status: StatusCode, text: &str) -> Failure {
        if text.contains("non-partial") || text.contains("NotSupported") {
            return Failure::NotPartial;
        }
        if text.contains("Requested") && text.contains("got") {
            return Failure::unusable("the server sent another range than requested");
        }
        if text.contains("CONTENT_RANGE") || text.contains("Content-Range") {
            // Some servers invent a range of an empty object, as `bytes 0--1/0`.
            if text.contains("/0\"") {
                return Failure::BeyondEnd;
            }
            return Failure::unusable("the answer does not say which bytes of the object it has");
        }
        if text.contains("Header missing") {
            let header = ["ETag", "Last-Modified", "Content-Length"]
                .into_iter()
                .find(|header| text.contains(header))
                .unwrap_or("A");
            return Failure::Unusable(format!("the answer has no header {header}"));
        }
        if status == StatusCode::OK || status == StatusCode::PARTIAL_CONTENT {
            return Failure::transient("the answer ended early");
        }
        Failure::Unusable(format!("the server answered {status}"))
    }

    fn of_status(status: StatusCode, facts: &AnswerFacts, text: &str) -> Failure {
        if EXPIRED.iter().any(|code| text.contains(code)) {
            return Failure::Unauthorized("the credentials have expired".to_owned());
        }
        if status == StatusCode::UNAUTHORIZED {
            return Failure::Unauthorized(format!("the server answered {status}"));
        }
        if text.contains("RequestTimeTooSkewed") {
            return Failure::unusable(
                "the clock of this machine differs too much from the server's",
            );
        }
        // For an answer whose body cannot be read, the client library has no `NotFound`.
        if matches!(status, StatusCode::GONE | StatusCode::NOT_FOUND) {
            return Failure::Absent;
        }
        if status == StatusCode::FORBIDDEN {
            return Failure::Denied(format!("the server answered {status}"));
        }
        if status == StatusCode::RANGE_NOT_SATISFIABLE {
            return Failure::BeyondEnd;
        }
        if status.is_redirection() || facts.region.is_some() && status.is_client_error() {
            let place = facts.region.as_ref();
            return Failure::Unusable(place.map_or_else(
                || format!("the server answered {status} and names no other place"),
                |region| format!("the bucket is in region {region}: give --region {region}"),
            ));
        }
        if is_passing(status) {
            return Failure::Transient(Transient {
                problem: format!("the server answered {status}"),
                is_throttle: matches!(
                    status,
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
                ),
                is_unreachable: false,
                wait: facts.retry_after,
            });
        }
        Failure::Unusable(format!("the server answered {status}"))
    }

    /// The error that callers get for a request of `key`. `was_open` says whether its object had been opened before.
    pub(super) fn into_error(self, key: impl fmt::Display, was_open: bool) -> StoreError {
        match self {
            Failure::Absent | Failure::Directory | Failure::Changed if was_open => {
                StoreError::changed(key)
            }
            Failure::Absent | Failure::Directory => {
                StoreError::problem(key, "there is no such object")
            }
            Failure::Changed => StoreError::changed(key),
            Failure::Denied(reason) | Failure::Unauthorized(reason) | Failure::Refused(reason) => {
                StoreError::denied(key, reason)
            }
            Failure::Unchanged => StoreError::problem(
                key,
                "the server answered 304 to a request without a condition",
            ),
            Failure::NotPartial => {
                StoreError::problem(key, "the server cannot send parts of objects")
            }
            Failure::BeyondEnd => StoreError::problem(key, "the object is shorter than it was"),
            Failure::Unusable(problem) => StoreError::problem(key, problem),
            // All attempts that the deadline allows were made.
            Failure::Transient(transient) => StoreError::Io {
                key: key.to_string(),
                message: transient.problem,
                errno: Some(libc::ETIMEDOUT),
            },
        }
    }
}

impl AnswerFacts {
    /// Whether the answer may have a reason that only its body gives.
    pub(super) fn needs_reason(&self) -> bool {
        let may = matches!(
            self.status,
            Some(StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN)
        );
        may && self.region.is_none() && self.refused.is_none()
    }

    /// Refuses an answer that is not an object, or that is a part of it unless `may_be_part`, or whose bytes are not
    /// those of the object.
    ///
    /// # Errors
    /// [`Failure::Unusable`].
    pub(super) fn check(&self, may_be_part: bool) -> Result<(), Failure> {
        if self.status == Some(StatusCode::PARTIAL_CONTENT) && !may_be_part {
            // The client library would take the part for the whole object.
            return Err(Failure::unusable(
                "the server sent a part of the object, and no part was requested",
            ));
        }
        let is_object = |status| matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT);
        if let Some(status) = self.status.filter(|&status| !is_object(status)) {
            return Err(Failure::Unusable(format!("the server answered {status}")));
        }
        match &self.coding {
            None => Ok(()),
            Some(coding) => Err(Failure::Unusable(format!(
                "the server sends the bytes in the coding {coding:?}, not as they are stored"
            ))),
        }
    }
}

impl Pinned {
    /// Checks that this version, which an answer has, is the version `asked` for. If the answer is the whole object,
    /// its length is that of the body, which may be wrong.
    ///
    /// # Errors
    /// [`Failure::Changed`] for another version, and [`Failure::Unusable`] if the server gives the same version, but
    /// sends a body of another length.
    pub(super) fn check_is(&self, asked: &Pinned, is_whole: bool) -> Result<(), Failure> {
        if self.is_same(asked) {
            return Ok(());
        }
        let is_same_tag = self.tag.is_some() && self.tag == asked.tag;
        let (found, expected) = (self.meta.size(), asked.meta.size());
        // Bytes that were uploaded once more have the same tag, and a later time.
        if is_whole && is_same_tag && found != expected {
            return Err(Failure::Unusable(format!(
                "the server sends {found} bytes of an object of {expected} bytes"
            )));
        }
        Err(Failure::Changed)
    }
}

/// Whether a request that a server has answered so may succeed the next time. One that the server does not implement
/// fails again.
pub(super) fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
    ) || status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

/// Whether a request for credentials that failed in this way may succeed the next time.
fn may_pass(kind: HttpErrorKind) -> bool {
    use HttpErrorKind::{Connect, Interrupted, Request, Timeout};
    matches!(kind, Connect | Request | Timeout | Interrupted)
}

/// The messages of `error` and of its sources, to distinguish them.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        // Writing to a string does not fail.
        let _ = write!(text, " {error}");
        source = error.source();
    }
    text
}

/// The message of the innermost source, which has no URL, in one line.
fn innermost(error: &object_store::Error) -> String {
    let mut message = None;
    let mut source = error.source();
    while let Some(error) = source {
        message = Some(error.to_string());
        source = error.source();
    }
    let message = message.unwrap_or_else(|| "an unknown reason".to_owned());
    if message.contains("://") {
        return "an unknown reason".to_owned();
    }
    message.lines().next().unwrap_or_default().to_owned()
}

fn source_of<T: std::error::Error + 'static>(error: &object_store::Error) -> Option<&T> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        source = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// The error of a request to a URL with words that messages have, too.
    #[derive(Debug, thiserror::Error)]
    #[error("Error performing GET https://h/credentials/token/certificate - {source}")]
    struct Performing {
        source: HttpError,
    }

    fn failed(kind: HttpErrorKind, problem: &'static str) -> object_store::Error {
        let source = HttpError::new(kind, io::Error::other(problem));
        object_store::Error::Generic {
            store: "HTTP",
            source: Box::new(Performing { source }),
        }
    }

    #[test]
    fn words_of_the_url_do_not_decide() {
        let unanswered = AnswerFacts {
            is_unanswered: true,
            ..AnswerFacts::default()
        };
        let reset = failed(HttpErrorKind::Interrupted, "connection reset");
        let failure = Failure::new(&reset, &unanswered);
        assert!(matches!(failure, Failure::Transient(_)), "{failure:?}");
        // The request for credentials fails before that for the object is sent.
        let failure = Failure::new(&reset, &AnswerFacts::default());
        assert!(
            matches!(&failure, Failure::Transient(transient) if transient.problem.contains("credentials")),
            "{failure:?}"
        );
        let wrong = failed(HttpErrorKind::Decode, "expected value");
        let failure = Failure::new(&wrong, &AnswerFacts::default());
        assert!(matches!(failure, Failure::Unauthorized(_)), "{failure:?}");
        let wrong = failed(HttpErrorKind::Connect, "invalid peer certificate");
        for facts in [unanswered, AnswerFacts::default()] {
            let failure = Failure::new(&wrong, &facts);
            assert!(
                matches!(&failure, Failure::Unusable(problem) if problem.contains("--ca-file")),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn a_part_is_no_object() {
        let of = |status| AnswerFacts {
            status: Some(status),
            ..AnswerFacts::default()
        };
        assert_eq!(of(StatusCode::OK).check(false), Ok(()));
        assert_eq!(of(StatusCode::PARTIAL_CONTENT).check(true), Ok(()));
        assert!(of(StatusCode::PARTIAL_CONTENT).check(false).is_err());
        assert!(of(StatusCode::NO_CONTENT).check(true).is_err());
    }
}
