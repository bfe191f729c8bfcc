//! The URL of a remote store.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::credentials::secret_check::check_not_secret;
use crate::store::StoreError;

/// The kinds of remote stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Amazon S3, and others that speak its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// A web server.
    Http,
}

/// The URL of a remote store, without user, password and query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    /// The protocol of the server.
    pub service: Service,
    /// The scheme, in lower case.
    pub scheme: String,
    /// The bucket or container, or the host of a web server with its port.
    pub authority: String,
    /// The account, if the URL has one (`abfss://CONTAINER@ACCOUNT.dfs.core.windows.net`).
    pub account: Option<String>,
    /// The domain after the account, if it is not that of Azure's public cloud.
    pub domain: Option<String>,
    /// The path below the bucket or the host, without slashes at either end. The path of a web server
    /// is percent-encoded, and that of a bucket is not.
    pub path: String,
}

/// The domain of Azure's public cloud, as messages have it.
const AZURE_DOMAIN: &str = "dfs.core.windows.net";

/// Other texts after an account that mean Azure's public cloud.
const AZURE_DOMAINS: [&str; 2] = ["blob.core.windows.net", ""];

/// Schemes that are known, but cannot be opened.
const OTHERS: [(&str, &str); 6] = [
    ("ftp", "only HTTP and HTTPS are read from web servers"),
    (
        "hdfs",
        "mount it with its own FUSE daemon, and name the directory",
    ),
    ("sftp", "mount it with sshfs, and name the directory"),
    ("ssh", "mount it with sshfs, and name the directory"),
    (
        "reference",
        "for a set of references, name its own path or URL",
    ),
    ("icechunk", "give the URL of the repository"),
];

impl RemoteUrl {
    /// Parses `text`; `None` if it is not a URL.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] for a scheme that is not known, and for a URL without a bucket or
    /// host, with a user, a password or a parameter that is a secret, or with a segment that is empty,
    /// `.` or `..`. The URL of a web server must not have a query or a fragment at all. The message has
    /// no secret.
    pub fn parse(text: &str) -> Result<Option<RemoteUrl>, StoreError> {
        let Some((scheme, rest)) = split_scheme(text) else {
            return Ok(None);
        };
        check_not_secret("STORE", text).map_err(|error| refused(error.to_string()))?;
        let scheme = scheme.to_ascii_lowercase();
        let service = match &*scheme {
            "s3" | "s3a" => Service::S3,
            "gs" | "gcs" => Service::Gcs,
            "az" | "azure" | "abfs" | "abfss" => Service::Azure,
            "http" | "https" => Service::Http,
            other => return Err(unknown(other)),
        };
        check_plain(&scheme, rest, service)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (authority, host) = match authority.rsplit_once('@') {
            Some((container, host)) if service == Service::Azure => (container, Some(host)),
            _ => (authority, None),
        };
        let host = host.map(|host| host.split_once('.').unwrap_or((host, "")));
        let domain = host.map(|(_, domain)| domain.to_ascii_lowercase());
        let is_public = |domain: &str| domain == AZURE_DOMAIN || AZURE_DOMAINS.contains(&domain);
        let path = path.trim_matches('/');
        let url = RemoteUrl {
            service,
            authority: authority.to_owned(),
            account: host.map(|(account, _)| account.to_owned()),
            domain: domain.filter(|domain| !is_public(domain)),
            path: path.to_owned(),
            scheme,
        };
        if url.authority.is_empty() {
            let missing = match service {
                Service::Http => "host",
                Service::Azure => "container",
                Service::S3 | Service::Gcs => "bucket",
            };
            return Err(refused(format!("{url}: the URL names no {missing}")));
        }
        let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
        if !path.is_empty() && !path.split('/').all(is_segment) {
            let problem = "the path has an empty, `.` or `..` segment";
            return Err(refused(format!("{url}: {problem}")));
        }
        Ok(Some(url))
    }
}

impl RemoteUrl {
    /// The path on a web server, decoded; `None` for a bucket, or if it is not UTF-8.
    pub(in crate::store) fn path_on_web(&self) -> Option<String> {
        let path = percent_decode_str(&self.path).decode_utf8().ok()?;
        (self.service == Service::Http).then(|| path.into_owned())
    }

    /// The URL of the directory that has the object at this URL, and the name of the object in it. For a bucket or a host,
    /// this URL itself and no name.
    pub(in crate::store) fn parent_and_name(&self) -> (RemoteUrl, Vec<u8>) {
        let (parent, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let name = match self.service {
            Service::Http => percent_decode_str(name).collect(),
            Service::S3 | Service::Gcs | Service::Azure => name.as_bytes().to_vec(),
        };
        let path = parent.to_owned();
        let parent = RemoteUrl {
            path,
            ..self.clone()
        };
        (parent, name)
    }

    /// The last segment of the path, as it is; `None` for a bucket or a host.
    pub(super) fn name(&self) -> Option<&str> {
        self.path.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

/// Scheme and rest of `scheme://rest`.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (!scheme.is_empty() && scheme.chars().all(is_letter)).then_some((scheme, rest))
}

/// Refuses parts of a URL that would silently be ignored.
fn check_plain(scheme: &str, rest: &str, service: Service) -> Result<(), StoreError> {
    if service == Service::Http
        && let Some(at) = rest.find(['?', '#'])
    {
        let shown = &rest[..at];
        return Err(refused(format!(
            "{scheme}://{shown}: a query or a fragment in a URL is not taken, because it often is a \
             secret; put the secret into a file, and give --header 'Authorization: @FILE'"
        )));
    }
    Ok(())
}

fn unknown(scheme: &str) -> StoreError {
    let known = "known are s3, gs, az, abfss, https, http and file";
    let hint = OTHERS.iter().find(|(name, _)| *name == scheme);
    let hint = hint.map_or(known, |(_, hint)| hint);
    refused(format!("{scheme}://: this scheme cannot be opened; {hint}"))
}

fn refused(message: String) -> StoreError {
    StoreError::Unsupported(message)
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)?;
        if let Some(account) = &self.account {
            let domain = self.domain.as_deref().unwrap_or(AZURE_DOMAIN);
            write!(f, "@{account}.{domain}")?;
        }
        if !self.path.is_empty() {
            write!(f, "/{}", self.path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> RemoteUrl {
        RemoteUrl::parse(text).unwrap().unwrap()
    }

    #[test]
    fn buckets_containers_and_hosts_are_named() {
        for (text, service, authority, path) in [
            ("s3://b/a/z.zarr/", Service::S3, "b", "a/z.zarr"),
            ("S3://b", Service::S3, "b", ""),
            ("gs://b/x y", Service::Gcs, "b", "x y"),
            ("gcs://b/p?q", Service::Gcs, "b", "p?q"),
            ("az://c/p", Service::Azure, "c", "p"),
            ("https://h:81/p%20q/", Service::Http, "h:81", "p%20q"),
        ] {
            let url = parse(text);
            let found = (url.service, &*url.authority, &*url.path);
            assert_eq!(found, (service, authority, path), "{text}");
        }
        let url = parse("abfss://c@acc.dfs.core.windows.net/p");
        assert_eq!(
            (&*url.authority, url.account.as_deref()),
            ("c", Some("acc"))
        );
        assert_eq!(url.to_string(), "abfss://c@acc.dfs.core.windows.net/p");
        assert_eq!(url.name(), Some("p"));
        for text in ["abfss://c@acc.Blob.core.windows.net/p", "abfss://c@acc/p"] {
            assert_eq!(parse(text), url, "{text}");
        }
        let other = parse("abfss://c@acc.dfs.core.usgovcloudapi.net/p");
        assert_eq!(other.domain.as_deref(), Some("dfs.core.usgovcloudapi.net"));
        let shown = "abfss://c@acc.dfs.core.usgovcloudapi.net/p";
        assert_eq!(other.to_string(), shown);
        assert_eq!(parse("https://h/a%20b/c%20d.zip").name(), Some("c%20d.zip"));
        assert_eq!(parse("s3://b/").name(), None);
        assert_eq!(RemoteUrl::parse("/data/a.zarr").unwrap(), None);
        assert_eq!(RemoteUrl::parse("./x/s3://b").unwrap(), None);
    }

    #[test]
    fn refusals_name_the_problem_without_secrets() {
        for (text, expected) in [
            ("https://me:hunter2@h/p", "a user or a password"),
            ("s3://AKIA:hunter2@b/p", "AWS_ACCESS_KEY_ID"),
            ("https://h/p?sig=hunter2", "a query"),
            ("ftp://h/p", "ftp://: this scheme cannot be opened"),
            ("s3:///p", "the URL names no bucket"),
            ("https://", "the URL names no host"),
            ("s3://b/a//c", "an empty, `.` or `..` segment"),
            ("s3://b/../c", "an empty, `.` or `..` segment"),
        ] {
            let message = RemoteUrl::parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
