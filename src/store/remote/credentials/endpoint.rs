//! The URL of a server that is given in place of the cloud's own.

use std::fmt;
use std::net::IpAddr;

use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::secret_check::check_not_secret;

/// The URL of a server: `http` or `https`, a host, perhaps a port and a path, and nothing else. It
/// does not end in a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    scheme: &'static str,
    host: String,
    path: String,
}

impl Endpoint {
    /// Parses `url`, which `option` gave.
    ///
    /// # Errors
    /// [`CredentialError::Setting`] for anything else than a URL of a server.
    pub(crate) fn parse(option: &str, url: &str) -> Result<Endpoint, CredentialError> {
        check_not_secret(option, url)?;
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => "http",
            "https" => "https",
            _ => {
                let problem = "expected a URL that begins with http:// or https://";
                return Err(CredentialError::setting(option, problem));
            }
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let is_path = |c: char| c.is_ascii_graphic() && !"?#\\".contains(c);
        if host.is_empty() || !host.chars().all(is_host) || !path.chars().all(is_path) {
            let problem = "expected http:// or https://, a host, and perhaps a port and a path";
            return Err(CredentialError::setting(option, problem));
        }
        Ok(Endpoint {
            scheme,
            host: host.to_owned(),
            path: path.trim_matches('/').to_owned(),
        })
    }

    /// The endpoint that the option says, or else the first of `variables` that has a value.
    ///
    /// # Errors
    /// Those of [`Endpoint::parse`].
    pub(crate) fn given(
        option: Option<&str>,
        env: &Environment,
        variables: &[&str],
    ) -> Result<Option<Endpoint>, CredentialError> {
        if let Some(url) = option {
            return Endpoint::parse("--endpoint", url).map(Some);
        }
        let found = env.first(variables);
        found
            .map(|(name, url)| Endpoint::parse(name, &url))
            .transpose()
    }

    /// Whether the connection is not encrypted.
    pub(crate) fn is_http(&self) -> bool {
        self.scheme == "http"
    }

    /// Whether others can read requests: the connection is not encrypted, and leaves this machine.
    pub(crate) fn is_overheard(&self) -> bool {
        self.is_http() && !self.is_loopback()
    }

    /// Refuses to send `what`, which is as good as a password, where others can read it.
    ///
    /// # Errors
    /// [`CredentialError::Setting`].
    pub(crate) fn check_private(&self, what: &str) -> Result<(), CredentialError> {
        if !self.is_overheard() {
            return Ok(());
        }
        let problem = format!(
            "{what} would be sent without encryption, so that others could read and use it; give \
             an https:// URL, or --anonymous"
        );
        Err(CredentialError::setting(self.to_string(), problem))
    }

    /// The same server, with the bucket as the first part of its host name, unless the name already begins with it.
    pub(crate) fn with_bucket(&self, bucket: &str) -> Endpoint {
        let mut endpoint = self.clone();
        let has_bucket = self.host.strip_prefix(bucket);
        if !has_bucket.is_some_and(|rest| rest.starts_with('.')) {
            endpoint.host = format!("{bucket}.{}", self.host);
        }
        endpoint
    }

    /// The same URL with `segment` as its last part.
    pub(crate) fn with_segment(&self, segment: &str) -> Endpoint {
        let mut endpoint = self.clone();
        endpoint.path = match self.path.as_str() {
            "" => segment.to_owned(),
            path => format!("{path}/{segment}"),
        };
        endpoint
    }

    /// Whether the server has a path, or is only a host.
    pub(crate) fn has_path(&self) -> bool {
        !self.path.is_empty()
    }

    /// Whether the server is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        match self.address() {
            Some(address) => address.is_loopback(),
            None => self.name() == "localhost",
        }
    }

    /// The address, where the URL has one in place of a name.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let name = self.name();
        let name = name.strip_prefix('[').unwrap_or(name);
        name.strip_suffix(']').unwrap_or(name).parse().ok()
    }

    /// The host without its port.
    fn name(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => &self.host,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if !self.path.is_empty() {
            write!(f, "/{}", self.path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::remote::credentials::environment::testing::environment;

    fn parse(url: &str) -> Endpoint {
        Endpoint::parse("--endpoint", url).unwrap()
    }

    #[test]
    fn servers_are_taken_and_all_else_is_refused() {
        for (url, shown) in [
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000"),
            ("HTTPS://h.example/a/b/", "https://h.example/a/b"),
            ("http://[::1]:80", "http://[::1]:80"),
        ] {
            assert_eq!(parse(url).to_string(), shown);
        }
        for url in [
            "h:9000",
            "ftp://h",
            "http://",
            "http:///p",
            "http://u:hunter2@h",
            "http://h?a=hunter2",
            "http://h#hunter2",
            "http://h/a?b",
            "http://h o/",
            "http://h\\x",
            "",
        ] {
            let message = Endpoint::parse("--endpoint", url).unwrap_err().to_string();
            assert!(message.starts_with("--endpoint: "), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn the_option_goes_before_variables() {
        let env = environment(&[("B", "http://b"), ("C", "http://c")]);
        let given = |option| {
            Endpoint::given(option, &env, &["A", "B", "C"])
                .unwrap()
                .unwrap()
        };
        assert_eq!(given(Some("http://o")).to_string(), "http://o");
        assert_eq!(given(None).to_string(), "http://b");
        assert_eq!(Endpoint::given(None, &env, &["A"]).unwrap(), None);
    }

    #[test]
    fn what_others_can_read_is_told() {
        for (url, is_overheard) in [
            ("http://h", true),
            ("http://10.0.0.1:80", true),
            ("http://localhost.example", true),
            ("https://h", false),
            ("http://localhost:4443", false),
            ("http://127.0.0.2", false),
            ("http://[::1]:1", false),
        ] {
            assert_eq!(parse(url).is_overheard(), is_overheard, "{url}");
            assert_eq!(parse(url).check_private("a token").is_err(), is_overheard);
        }
    }

    #[test]
    fn buckets_come_into_the_name_or_the_path_once() {
        let endpoint = parse("https://s3.example:81");
        let with_bucket = endpoint.with_bucket("b");
        assert_eq!(with_bucket.to_string(), "https://b.s3.example:81");
        assert_eq!(with_bucket.with_bucket("b"), with_bucket);
        let segments = endpoint.with_segment("x").with_segment("y");
        assert_eq!(segments.to_string(), "https://s3.example:81/x/y");
        assert!(segments.has_path() && !endpoint.has_path());
    }
}
