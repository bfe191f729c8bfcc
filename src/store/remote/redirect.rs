//! The redirects of web servers that are followed.

use std::net::IpAddr;

use http::header::HeaderValue;
use percent_encoding::percent_decode_str;
use reqwest::Url;

use super::addresses::is_public;

/// One request follows at most this many redirects.
const MOST_REDIRECTS: usize = 5;

/// A redirect that may be followed.
pub(super) struct Step {
    pub(super) target: Url,
    /// Whether the target has the same path with a slash.
    pub(super) adds_slash: bool,
}

impl Step {
    /// The step from `from` to `location`, or the reason why it may not be followed.
    pub(super) fn new(
        from: &http::Uri,
        location: &HeaderValue,
        hop: usize,
    ) -> Result<Step, String> {
        if hop >= MOST_REDIRECTS {
            return Err(format!("more than {MOST_REDIRECTS} redirects"));
        }
        let unreadable = || "a redirect to an address that cannot be read".to_owned();
        let base = Url::parse(&from.to_string()).map_err(|_| unreadable())?;
        // Some servers send names without encoding, and `join` encodes them.
        let location = std::str::from_utf8(location.as_bytes()).map_err(|_| unreadable())?;
        let target = base.join(location).map_err(|_| unreadable())?;
        let shown = target.host_str().unwrap_or_default();
        let is_safe = matches!(
            (base.scheme(), target.scheme()),
            ("http" | "https", "https") | ("http", "http")
        );
        if !is_safe {
            let scheme = target.scheme();
            return Err(format!("a redirect to {scheme}://{shown} is not followed"));
        }
        let is_own = base.origin() == target.origin();
        let address = target
            .host_str()
            .map(|host| host.trim_matches(['[', ']']))
            .and_then(|host| host.parse::<IpAddr>().ok());
        if !is_own && address.is_some_and(|address| !is_public(address)) {
            return Err(format!(
                "a redirect to the private address {shown} is not followed"
            ));
        }
        // Servers spell a path differently from the request, such as `%c3` for `%C3`.
        let shorter = target.path().strip_suffix('/');
        let adds_slash = shorter
            .is_some_and(|path| percent_decode_str(path).eq(percent_decode_str(base.path())));
        Ok(Step { target, adds_slash })
    }

    /// Refuses to request the proxy itself: its address may be private.
    pub(super) fn leading_to_no_proxy(self, proxies: &[String]) -> Result<Step, String> {
        let host = self.target.host_str().unwrap_or_default();
        let is_proxy = proxies.iter().any(|proxy| host.eq_ignore_ascii_case(proxy));
        if is_proxy {
            return Err(format!("a redirect to the proxy {host} is not followed"));
        }
        Ok(self)
    }
}

pub(super) fn is_same_origin(origin: &http::Uri, target: &Url) -> bool {
    let origin = Url::parse(&origin.to_string());
    origin.is_ok_and(|origin| origin.origin() == target.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_with_the_origin_or_go_to_public_addresses() {
        let step = |from: &str, to: &str| {
            let location = HeaderValue::from_str(to).unwrap();
            let step = Step::new(&from.parse().unwrap(), &location, 0);
            step.map(|step| step.target.to_string())
        };
        for (from, to, expected) in [
            ("http://h/a", "/b", Some("http://h/b")),
            ("http://h/a", "https://h/a", Some("https://h/a")),
            ("https://h/a", "http://h/a", None),
            (
                "https://h/a",
                "https://93.184.216.34/a",
                Some("https://93.184.216.34/a"),
            ),
            ("https://h/a", "https://169.254.169.254/a", None),
            ("https://h/a", "https://[::1]/a", None),
            ("https://h/a", "https://[::ffff:10.0.0.1]/a", None),
            // Addresses that a gateway or a tunnel leads to 10.0.0.1 and to 1.1.1.1.
            ("https://h/a", "https://[64:ff9b::a00:1]/a", None),
            ("https://h/a", "https://[2002:a00:1::]/a", None),
            (
                "https://h/a",
                "https://[64:ff9b::101:101]/a",
                Some("https://[64:ff9b::101:101]/a"),
            ),
            ("https://h/a", "https://198.19.0.1/a", None),
            (
                "http://127.0.0.1:1/a",
                "http://127.0.0.1:1/b",
                Some("http://127.0.0.1:1/b"),
            ),
            ("http://127.0.0.1:1/a", "http://127.0.0.1:2/b", None),
            ("https://h/a", "file:///etc/passwd", None),
        ] {
            assert_eq!(step(from, to).ok().as_deref(), expected, "{from} to {to}");
        }
        for (to, adds_slash) in [
            ("/a/", false),
            ("/%C3%BC%20b/", true),
            ("/%c3%bc%20b/", true),
            ("/%c3%bc b/", true),
            ("/ü b/", true),
            ("/%c3%bc b", false),
            ("/%c3%bc%2fb/", false),
        ] {
            let location = HeaderValue::from_bytes(to.as_bytes()).unwrap();
            let from = "http://h/%C3%BC%20b".parse().unwrap();
            let step = Step::new(&from, &location, 0).unwrap();
            assert_eq!(step.adds_slash, adds_slash, "{to}");
        }
        let location = HeaderValue::from_static("/b");
        let from = "http://h/a".parse().unwrap();
        assert!(Step::new(&from, &location, MOST_REDIRECTS).is_err());
    }
}
