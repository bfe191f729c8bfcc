//! Decides which clients get answers, and which pages of other sites may read them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderValue, ORIGIN};
use hyper::{HeaderMap, Request};

use super::host::Hosts;
use super::origin::Origin;
use super::session::Sessions;
use super::token::Token;

/// The rules for clients.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) hosts: Hosts,
    pub(super) token: Token,
    pub(super) sessions: Sessions,
    /// The origins of other sites whose pages may read the answers.
    pub(super) origins: Vec<Origin>,
}

impl Door {
    /// Whether `request` is for this server.
    pub(super) fn is_here<B>(&self, request: &Request<B>) -> bool {
        self.hosts.are_of(request)
    }

    /// Whether the client knows the token, or has the cookie.
    pub(super) fn is_open_to(&self, headers: &HeaderMap) -> bool {
        let mut told = headers.get_all(AUTHORIZATION).into_iter();
        told.any(|told| self.is_authorized(told)) || self.sessions.is_open(headers)
    }

    /// The origin of `headers`, if pages from there may read answers.
    pub(super) fn origin<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let is_named = self.origins.iter().any(|named| named.is(origin));
        is_named.then_some(origin)
    }

    /// Whether the value of an `Authorization` header has the token: as it is, or as the password of any user.
    fn is_authorized(&self, told: &HeaderValue) -> bool {
        let told = told.as_bytes();
        let space = told.iter().position(|&byte| byte == b' ');
        let Some((scheme, secret)) = space.and_then(|at| told.split_at_checked(at)) else {
            return false;
        };
        let secret = secret.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"Bearer") {
            return self.token.is(secret);
        }
        if !scheme.eq_ignore_ascii_case(b"Basic") {
            return false;
        }
        let Ok(secret) = STANDARD.decode(secret) else {
            return false;
        };
        let mut parts = secret.splitn(2, |&byte| byte == b':');
        parts.nth(1).is_some_and(|password| self.token.is(password))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Door {
        Door {
            hosts: Hosts::new("127.0.0.1:80".parse().unwrap(), "", &[]),
            token: Token::new().unwrap(),
            sessions: Sessions::new(80, false).unwrap(),
            origins: vec![Origin::parse("https://view.example").unwrap()],
        }
    }

    #[test]
    fn the_token_opens_in_its_three_forms() {
        let door = door();
        let token = door.token.reveal();
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let opens = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            door.is_open_to(&headers)
        };
        for value in [
            format!("Bearer {token}"),
            format!("bearer  {token}"),
            basic(&format!("anybody:{token}")),
            basic(&format!(":{token}")),
        ] {
            assert!(opens(&value), "{value}");
        }
        for value in [
            String::new(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            token.to_owned(),
            format!("Bearer {token}x"),
            format!("Digest {token}"),
            format!("Basic {token}"),
            basic(token),
            basic(&format!("{token}:")),
            basic("anybody:"),
        ] {
            assert!(!opens(&value), "{value}");
        }
        assert!(!door.is_open_to(&HeaderMap::new()));
    }

    #[test]
    fn only_named_origins_may_read() {
        let door = door();
        for (origin, may) in [
            ("https://view.example", true),
            ("https://view.example:444", false),
            ("http://view.example", false),
            ("https://view.example.evil.example", false),
            ("null", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            assert_eq!(door.origin(&headers).is_some(), may, "{origin}");
        }
    }
}
