//! Origins of pages (`--cors`).

use hyper::header::HeaderValue;
use hyper::http::uri::Authority;

/// The origin of pages: a scheme, a host, and a port unless it is the usual one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl Origin {
    /// Parses an origin as browsers send it.
    ///
    /// # Errors
    /// A sentence, where `text` is no origin.
    pub fn parse(text: &str) -> Result<Origin, String> {
        let problem =
            || "expected an origin such as https://example.org or http://localhost:3000".to_owned();
        let text = text.to_lowercase();
        let host = text
            .strip_prefix("https://")
            .or(text.strip_prefix("http://"));
        let authority = host.and_then(|host| host.parse::<Authority>().ok());
        if authority.is_none_or(|host| host.as_str().contains('@')) {
            return Err(problem());
        }
        HeaderValue::from_str(&text)
            .map(Origin)
            .map_err(|_| problem())
    }

    /// Whether the value of an `Origin` header is this origin.
    pub(super) fn is(&self, told: &HeaderValue) -> bool {
        self.0 == told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_browsers_send() {
        for (text, expected) in [
            ("https://example.org", Some("https://example.org")),
            ("HTTP://Localhost:3000", Some("http://localhost:3000")),
            ("http://[::1]:3000", Some("http://[::1]:3000")),
            ("https://example.org/", None),
            ("https://example.org/a", None),
            ("https://user@example.org", None),
            ("example.org", None),
            ("https://", None),
            ("null", None),
            ("*", None),
            ("", None),
        ] {
            let found = Origin::parse(text).ok();
            let found = found.as_ref().map(|found| found.0.to_str().unwrap());
            assert_eq!(found, expected, "{text}");
        }
    }
}
