//! The names by which clients may call the server.
//!
//! Another site can make its own name resolve to the address of this server. A page of that site would then have the same
//! origin as this server, and could read its answers (DNS rebinding). But the `Host` header still has the name of that
//! site. So the server answers only requests with a name that belongs to it.

use std::net::{IpAddr, SocketAddr};

use hyper::Request;
use hyper::header::HOST;
use hyper::http::uri::Authority;

/// The names of a server.
#[derive(Debug, Clone)]
pub struct Hosts {
    bound: IpAddr,
    /// In lower case.
    names: Vec<String>,
}

impl Hosts {
    /// The names of a server that is bound to `address`: this address, `localhost` if that leads to the address, `own` for
    /// other machines, and `further` names.
    pub fn new(address: SocketAddr, own: &str, further: &[String]) -> Hosts {
        let bound = address.ip();
        let mut names: Vec<String> = further.iter().map(|name| name.to_lowercase()).collect();
        if bound.is_loopback() || bound.is_unspecified() {
            names.push("localhost".to_owned());
        }
        if !bound.is_loopback() && !own.is_empty() {
            names.push(own.to_lowercase());
        }
        Hosts { bound, names }
    }

    /// Checks a name that a server is to have.
    ///
    /// # Errors
    /// A sentence, where `name` is no name or address of a machine. A port is none either.
    pub fn parse_name(name: &str) -> Result<String, String> {
        let host = name.parse::<Authority>().ok();
        match host {
            Some(host) if host.host() == name => Ok(name.to_owned()),
            _ => Err("expected a name without a port, such as data.example.org".to_owned()),
        }
    }

    /// Whether `request` is for this server, by its `Host` header and by its target, if that is a whole URL.
    pub(super) fn are_of<B>(&self, request: &Request<B>) -> bool {
        let mut headers = request.headers().get_all(HOST).into_iter();
        let (Some(host), None) = (headers.next(), headers.next()) else {
            return false;
        };
        let host = host.to_str().ok().and_then(|host| host.parse().ok());
        let host = host.is_some_and(|host| self.has(&host));
        host && request.uri().authority().is_none_or(|host| self.has(host))
    }

    /// The port is not looked at, because it may be forwarded, and does not identify a page.
    fn has(&self, authority: &Authority) -> bool {
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host().to_lowercase();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse();
        match address {
            // No page has an address in place of a name, unless it comes from there.
            Ok(_) if self.bound.is_unspecified() => true,
            Ok(address) => self.is_at(address) || self.names.contains(&host),
            Err(_) => self.names.contains(&host),
        }
    }

    fn is_at(&self, address: IpAddr) -> bool {
        address == self.bound || (self.bound.is_loopback() && address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_port_and_is_no_url() {
        for name in ["data.example.org", "node7", "10.0.0.1", "[::1]"] {
            assert_eq!(Hosts::parse_name(name), Ok(name.to_owned()));
        }
        for name in ["", "a:80", "[::1]:80", "http://a", "a/b", "u@a", "a b"] {
            assert!(Hosts::parse_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_server_answers_to_its_own_names_alone() {
        let cases: [(&str, &[&str], &[&str]); 4] = [
            (
                "127.0.0.1:8080",
                &[
                    "127.0.0.1:8080",
                    "localhost:8080",
                    "LOCALHOST",
                    "[::1]:9",
                    "127.0.0.2",
                ],
                &[
                    "evil.example",
                    "localhost.evil.example",
                    "node",
                    "10.0.0.1",
                    "",
                    "a b",
                    "evil@localhost",
                ],
            ),
            (
                "0.0.0.0:80",
                &["10.0.0.1", "localhost", "Node:80", "data.example"],
                &["evil.example", "node.evil.example"],
            ),
            (
                "10.0.0.1:80",
                &["10.0.0.1", "node", "data.example"],
                &["10.0.0.2", "localhost", "127.0.0.1"],
            ),
            ("[::1]:80", &["[::1]:80", "localhost"], &["[::2]", "node"]),
        ];
        for (bound, allowed, refused) in cases {
            let hosts = Hosts::new(bound.parse().unwrap(), "node", &["Data.example".to_owned()]);
            let is_of =
                |host: &str| hosts.are_of(&Request::get("/").header(HOST, host).body(()).unwrap());
            for host in allowed {
                assert!(is_of(host), "{bound} {host}");
            }
            for host in refused {
                assert!(!is_of(host), "{bound} {host}");
            }
        }
    }

    #[test]
    fn one_name_is_meant() {
        let hosts = Hosts::new("127.0.0.1:80".parse().unwrap(), "node", &[]);
        let request = |target: &str, names: &[&str]| {
            let request = Request::get(target);
            let request = names
                .iter()
                .fold(request, |request, name| request.header(HOST, *name));
            hosts.are_of(&request.body(()).unwrap())
        };
        assert!(request("http://localhost/a", &["localhost"]));
        assert!(!request("http://evil.example/a", &["localhost"]));
        assert!(!request("/a", &["localhost", "evil.example"]));
        assert!(!request("/a", &[]));
    }
}
