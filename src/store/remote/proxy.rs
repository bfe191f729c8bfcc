//! Proxies, which the HTTP client takes from the variables of the process.

use std::env;

use reqwest::Url;

/// The variables that name proxies. `NO_PROXY` names the hosts that are reached without a proxy.
const VARIABLES: [&str; 6] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// The hosts of the proxies that the variables name, in lower case.
pub(super) fn proxy_hosts() -> Vec<String> {
    let values = VARIABLES.iter().filter_map(|name| env::var(name).ok());
    values.filter_map(|value| host_of(&value)).collect()
}

/// The host of a proxy. The scheme may be left out.
fn host_of(proxy: &str) -> Option<String> {
    let proxy = proxy.trim();
    if proxy.is_empty() {
        return None;
    }
    let url = if proxy.contains("://") {
        Url::parse(proxy)
    } else {
        Url::parse(&format!("http://{proxy}"))
    };
    Some(url.ok()?.host_str()?.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_proxy_is_found() {
        for (proxy, expected) in [
            ("http://Proxy.example:3128", Some("proxy.example")),
            ("http://user:password@10.0.0.1:3128/", Some("10.0.0.1")),
            ("proxy.example:3128", Some("proxy.example")),
            ("socks5://proxy.example", Some("proxy.example")),
            ("", None),
            ("://", None),
        ] {
            assert_eq!(host_of(proxy).as_deref(), expected, "{proxy}");
        }
    }
}
