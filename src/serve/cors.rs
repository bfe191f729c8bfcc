//! Answers for pages of other sites (`--cors`), which browsers let read them only if the server says so.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    HeaderName, HeaderValue,
};
use hyper::{Method, Request, StatusCode};

use super::answer::{self, Answer};
use super::body::Body;

/// The headers that a page may send. The token is one of them, since no cookie is sent from other sites.
const HEADERS: &str = "Authorization, Range, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range";
/// The headers that a page may read.
const EXPOSED: &str = "Accept-Ranges, Content-Encoding, Content-Length, Content-Range, ETag, Last-Modified, Retry-After";

/// Lets pages of `origin` read `answer`.
pub(super) fn allow(answer: &mut Answer, origin: &HeaderValue) {
    answer
        .headers_mut()
        .insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    answer::set(answer, ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}

/// Whether a browser asks what pages may do, in a request without the token.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to such a request, for pages of an origin that may read.
pub(super) fn preflight<B>(request: &Request<B>) -> Answer {
    let mut answer = answer::with(StatusCode::NO_CONTENT, Body::empty());
    answer::set(&mut answer, ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD");
    answer::set(&mut answer, ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    answer::set(&mut answer, ACCESS_CONTROL_MAX_AGE, "600");
    // A browser asks this before a public page may reach a server in a private network.
    if request
        .headers()
        .contains_key("access-control-request-private-network")
    {
        let name = HeaderName::from_static("access-control-allow-private-network");
        answer::set(&mut answer, name, "true");
    }
    answer
}
