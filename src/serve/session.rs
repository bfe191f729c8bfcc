//! How a browser gets in: a link that works once gives it a cookie.
//!
//! Neither the link nor the cookie has the token. So a link in the history of a browser is of no use when this server
//! has ended. Nor is a cookie, which other servers on the same host see, because cookies know no ports.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use hyper::HeaderMap;
use hyper::header::COOKIE;

use super::token::Token;

/// The beginning of the path of the link. The code of the link follows.
pub(super) const LINK: &str = "/.zarr-mount/open/";

/// The link, until it was used, and the session of the browser that has used it.
#[derive(Debug)]
pub(super) struct Sessions {
    /// The name of the cookie. It has the port, so that the servers of one host do not replace each other's.
    name: String,
    is_secure: bool,
    /// The code of the link; `None` after it was used.
    code: Mutex<Option<Token>>,
    session: OnceLock<Token>,
}

impl Sessions {
    /// Sessions of the server at `port`, whose connections are encrypted if it `is_secure`.
    pub(super) fn new(port: u16, is_secure: bool) -> io::Result<Sessions> {
        Ok(Sessions {
            name: format!("zarr-mount-{port}"),
            is_secure,
            code: Mutex::new(Some(Token::new()?)),
            session: OnceLock::new(),
        })
    }

    /// The path of the link, if it can still be used.
    pub(super) fn link(&self) -> Option<String> {
        let code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        code.as_ref().map(|code| format!("{LINK}{}", code.reveal()))
    }

    /// Uses the link with this code, and returns the cookie for the browser. `None` if the code is wrong or was used.
    pub(super) fn open(&self, code: &str) -> Option<String> {
        let mut known = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        if !known
            .as_ref()
            .is_some_and(|known| known.is(code.as_bytes()))
        {
            return None;
        }
        let session = Token::new().ok()?;
        let secure = if self.is_secure { "; Secure" } else { "" };
        let cookie = format!(
            "{}={}; HttpOnly; SameSite=Strict; Path=/{secure}",
            self.name,
            session.reveal()
        );
        self.session.set(session).ok()?;
        *known = None;
        Some(cookie)
    }

    /// Whether the client has the cookie.
    pub(super) fn is_open(&self, headers: &HeaderMap) -> bool {
        let Some(session) = self.session.get() else {
            return false;
        };
        let lists = headers.get_all(COOKIE).into_iter();
        let cookies = lists.flat_map(|list| list.as_bytes().split(|&byte| byte == b';'));
        let mut values = cookies.filter_map(|cookie| {
            let value = cookie.trim_ascii().strip_prefix(self.name.as_bytes())?;
            value.strip_prefix(b"=")
        });
        values.any(|value| session.is(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_works_once() {
        let sessions = Sessions::new(8080, false).unwrap();
        let link = sessions.link().unwrap();
        let code = link.strip_prefix(LINK).unwrap();
        assert_eq!(sessions.open("x"), None);
        assert_eq!(sessions.open(""), None);
        let cookie = sessions.open(code).unwrap();
        assert!(
            cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"),
            "{cookie}"
        );
        assert!(!cookie.contains(code));
        assert_eq!((sessions.open(code), sessions.link()), (None, None));

        let is_open = |cookies: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, cookies.parse().unwrap());
            sessions.is_open(&headers)
        };
        let (value, _) = cookie.split_once(';').unwrap();
        assert!(is_open(value) && is_open(&format!("a=b; {value}")));
        assert!(!is_open("zarr-mount-8080=") && !is_open("zarr-mount-8080"));
        assert!(!is_open(&value.replace("8080", "8081")) && !is_open(&format!("{value}x")));
        assert!(!sessions.is_open(&HeaderMap::new()));
    }

    #[test]
    fn a_cookie_of_a_secure_server_is_sent_to_no_other() {
        let sessions = Sessions::new(443, true).unwrap();
        let link = sessions.link().unwrap();
        let cookie = sessions.open(link.strip_prefix(LINK).unwrap()).unwrap();
        assert!(cookie.ends_with("; Secure"), "{cookie}");
    }
}
