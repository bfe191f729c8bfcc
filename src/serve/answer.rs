//! Responses, and the headers that all of them have.

use bytes::Bytes;
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderName, HeaderValue, REFERRER_POLICY, RETRY_AFTER, SERVER, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{HeaderMap, Method, Response, StatusCode};

use super::body::Body;
use super::error::{RETRY_SECONDS, status_of};
use super::pages;
use crate::error::Error;

pub(super) type Answer = Response<Body>;

/// The methods that are answered.
pub(super) const METHODS: &str = "GET, HEAD, OPTIONS, PROPFIND";

/// The policy for everything that is no page of the server: it runs nothing and loads nothing, whatever it is.
const SANDBOX: &str =
    "sandbox; default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The form of answer that the client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Liking {
    /// A page, for browsers.
    Page,
    /// Links, for programs that list directories of any web server. Such programs state no preference.
    Links,
    /// JSON.
    Json,
    /// Plain text.
    Text,
}

impl Liking {
    /// The first form that these headers of the client name. Their weights (`q`) are not examined.
    pub(super) fn of(headers: &HeaderMap) -> Liking {
        let lists = headers.get_all(ACCEPT).into_iter();
        let types = lists.filter_map(|list| list.to_str().ok());
        let types = types.flat_map(|list| list.split(','));
        let mut types = types.map(|named| named.split(';').next().unwrap_or_default().trim());
        let found = types.find_map(|named| match named {
            "text/html" | "application/xhtml+xml" => Some(Liking::Page),
            "application/json" => Some(Liking::Json),
            "text/plain" => Some(Liking::Text),
            _ => None,
        });
        found.unwrap_or(Liking::Links)
    }

    /// Whether the client is a browser, which shows a page to a person, and not a program without an `Accept` header.
    pub(super) fn is_browser(headers: &HeaderMap) -> bool {
        headers.contains_key(ACCEPT)
            && headers
                .get_all(ACCEPT)
                .into_iter()
                .any(|list| list.to_str().is_ok_and(|list| list.contains("text/html")))
    }
}

/// Room for the headers that most responses have, so that the map of headers does not grow while it is filled.
const N_HEADERS: usize = 20;

/// A response without headers.
pub(super) fn with(status: StatusCode, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    *answer.headers_mut() = HeaderMap::with_capacity(N_HEADERS);
    answer
}

/// `answer`, without its body if `method` is `HEAD`.
pub(super) fn without_body(mut answer: Answer, method: &Method) -> Answer {
    if method == Method::HEAD {
        *answer.body_mut() = Body::empty();
    }
    answer
}

/// Sets a header to a value that never changes.
pub(super) fn set_static(answer: &mut Answer, name: HeaderName, value: &'static str) {
    answer
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}

/// Sets a header. A value that no header can have is left out.
pub(super) fn set(answer: &mut Answer, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

/// A page of the server.
pub(super) fn page(status: StatusCode, page: String) -> Answer {
    let mut answer = with(status, Body::Whole(page.into()));
    set(&mut answer, CONTENT_TYPE, "text/html; charset=utf-8");
    set(&mut answer, CONTENT_SECURITY_POLICY, pages::POLICY);
    set(&mut answer, CACHE_CONTROL, "no-store");
    set(&mut answer, VARY, "Accept");
    answer
}

/// A response with an explanation: as a page for browsers, and as a line for other clients.
pub(super) fn explain(headers: &HeaderMap, status: StatusCode, text: &str) -> Answer {
    let mut answer = if Liking::is_browser(headers) {
        let title = status.canonical_reason().unwrap_or("Error");
        page(status, pages::error(status.as_u16(), title, text))
    } else {
        let mut answer = with(status, Body::Whole(Bytes::from(format!("{text}\n"))));
        set(&mut answer, CONTENT_TYPE, "text/plain; charset=utf-8");
        set(&mut answer, CACHE_CONTROL, "no-store");
        answer
    };
    match status {
        StatusCode::UNAUTHORIZED => {
            set(
                &mut answer,
                WWW_AUTHENTICATE,
                "Basic realm=\"zarr-mount\", charset=\"UTF-8\"",
            );
        }
        StatusCode::METHOD_NOT_ALLOWED => set(&mut answer, ALLOW, METHODS),
        StatusCode::SERVICE_UNAVAILABLE => {
            set(&mut answer, RETRY_AFTER, &RETRY_SECONDS.to_string());
        }
        _ => {}
    }
    answer
}

/// The response to a request that fails with `error`.
pub(super) fn failed(headers: &HeaderMap, error: &Error) -> Answer {
    explain(headers, status_of(error), &error.to_string())
}

/// Adds the headers that each response has. `is_for_other_site` says whether pages of another site may read it, and
/// `has_origins` whether there are such sites.
pub(super) fn finish(answer: &mut Answer, is_for_other_site: bool, has_origins: bool) {
    let is_page = answer.headers().contains_key(CONTENT_SECURITY_POLICY);
    if !is_page {
        set_static(answer, CONTENT_SECURITY_POLICY, SANDBOX);
        set_static(answer, CONTENT_DISPOSITION, "attachment");
    }
    set_static(answer, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set_static(answer, X_FRAME_OPTIONS, "DENY");
    set_static(answer, REFERRER_POLICY, "no-referrer");
    set_static(answer, SERVER, "zarr-mount");
    if has_origins {
        answer
            .headers_mut()
            .append(VARY, HeaderValue::from_static("Origin"));
    }
    let reach = HeaderName::from_static("cross-origin-resource-policy");
    let may = if is_for_other_site {
        "cross-origin"
    } else {
        "same-origin"
    };
    set_static(answer, reach, may);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_what_they_like() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (accept, expected) in [
            (browser, Liking::Page),
            ("*/*", Liking::Links),
            ("application/json", Liking::Json),
            ("application/json, text/html", Liking::Json),
            ("text/plain;charset=utf-8", Liking::Text),
            ("image/png", Liking::Links),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(Liking::of(&headers), expected, "{accept}");
            assert_eq!(
                Liking::is_browser(&headers),
                accept.contains("html"),
                "{accept}"
            );
        }
        assert_eq!(Liking::of(&HeaderMap::new()), Liking::Links);
    }
}
