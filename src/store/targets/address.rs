//! Addresses: a path of this machine, or the URL of an object on a server.
//!
//! ```text
//! text                          site             path
//! /data/a.nc                    this machine     data/a.nc
//! file:///data/a%20b.nc         this machine     data/a b.nc
//! https://Host:443/d/a%20b.nc   https://host     d/a b.nc
//! s3://bucket/d/a.nc            s3://bucket      d/a.nc
//! ../a.nc, in s3://bucket/d/e   s3://bucket      d/a.nc
//! ```
//!
//! Whether an address lies below a prefix is decided by their sites and paths, and not by the text of
//! the URL, which may be spelled in several ways.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[cfg(feature = "remote")]
use crate::store::remote::{RemoteUrl, Service};
use crate::store::{Prefix, StoreError, path_of_file_url, spelled_path_of_file_url};

/// A machine or bucket, and a path there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Address {
    site: Site,
    /// Segments that are separated by slashes, none of which is empty, `.` or `..`; no bytes for the
    /// root. URLs of web servers are decoded.
    path: Vec<u8>,
}

/// The file system or server that a path belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Site {
    ThisMachine,
    #[cfg(feature = "remote")]
    Server(ServerSite),
}

/// A bucket, or a web server.
#[cfg(feature = "remote")]
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerSite {
    service: Service,
    /// One spelling for each service, except that web servers have two.
    scheme: &'static str,
    authority: String,
    account: Option<String>,
    domain: Option<String>,
}

impl Address {
    /// The address of an absolute path of this machine.
    pub(in crate::store) fn of_path(path: &std::path::Path) -> Result<Address, StoreError> {
        let path = normal(path.as_os_str().as_bytes())?;
        let site = Site::ThisMachine;
        Ok(Address { site, path })
    }

    /// An address below which nothing lies.
    pub(in crate::store) fn nowhere() -> Address {
        Address {
            site: Site::ThisMachine,
            // No path of this machine begins like this.
            path: b"proc/self/fd/-1".to_vec(),
        }
    }

    /// The address of `url`.
    #[cfg(feature = "remote")]
    pub(in crate::store) fn of_url(url: &RemoteUrl) -> Result<Address, StoreError> {
        let (service, authority) = (url.service, url.authority.clone());
        let mut path = url.path.clone().into_bytes();
        let (scheme, authority) = match service {
            Service::S3 => ("s3", authority),
            Service::Gcs => ("gs", authority),
            Service::Azure => ("az", authority),
            Service::Http => {
                let decoded = url.path_on_web();
                let decoded = decoded.ok_or_else(|| unusable(url, "the path is not UTF-8"))?;
                path = decoded.into_bytes();
                let (scheme, port) = if url.scheme == "https" {
                    ("https", ":443")
                } else {
                    ("http", ":80")
                };
                let lower = authority.to_ascii_lowercase();
                let host = lower.strip_suffix(port).unwrap_or(&lower);
                (scheme, host.to_owned())
            }
        };
        // An escape may stand for a slash or a dot.
        let is_segment = |segment: &[u8]| !matches!(segment, b"" | b"." | b"..");
        if !path.is_empty() && !path.split(|&byte| byte == b'/').all(is_segment) {
            return Err(unusable(url, "the path has an empty, `.` or `..` segment"));
        }
        let (account, domain) = (url.account.clone(), url.domain.clone());
        Ok(Address {
            site: Site::Server(ServerSite {
                service,
                scheme,
                authority,
                account,
                domain,
            }),
            path,
        })
    }

    /// Parses `text`. A path that is not absolute is one from the directory `base`, and an absolute
    /// path is one of the site of `base`.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] for a scheme that cannot be opened, and for URLs with a query or
    /// a password.
    pub(in crate::store) fn parse(text: &str, base: &Address) -> Result<Address, StoreError> {
        if let Some(path) = path_of_file_url(OsStr::new(text))? {
            return Address::of_path(&path);
        }
        #[cfg(feature = "remote")]
        if let Some(url) = RemoteUrl::parse(text)? {
            return Address::of_url(&url);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let problem = if cfg!(feature = "remote") {
                "chains of URLs are not read"
            } else {
                "this program was built without remote stores (the feature `remote`)"
            };
            return Err(unusable(scheme, problem));
        }
        let path = if text.starts_with('/') {
            normal(text.as_bytes())?
        } else {
            normal(&[&base.path, b"/".as_slice(), text.as_bytes()].concat())?
        };
        let site = base.site.clone();
        Ok(Address { site, path })
    }

    /// Like [`Address::parse`], but `%20` in the URL of a file stays as it is, as fsspec reads it in sets of references.
    ///
    /// # Errors
    /// Those of [`Address::parse`].
    pub(in crate::store) fn parse_as_fsspec(
        text: &str,
        base: &Address,
    ) -> Result<Address, StoreError> {
        match spelled_path_of_file_url(OsStr::new(text))? {
            Some(path) => Address::of_path(Path::new(OsStr::from_bytes(path))),
            None => Address::parse(text, base),
        }
    }

    /// The path of this address below `prefix`, which is empty where both are the same; `None` if
    /// this lies elsewhere.
    pub(in crate::store) fn below(&self, prefix: &Address) -> Option<&[u8]> {
        if self.site != prefix.site {
            return None;
        }
        if prefix.path.is_empty() {
            return Some(&self.path);
        }
        let rest = self.path.strip_prefix(prefix.path.as_slice())?;
        if rest.is_empty() {
            return Some(rest);
        }
        rest.strip_prefix(b"/")
    }

    /// The address of `path` below this one.
    pub(in crate::store) fn joined(&self, path: &Prefix) -> Address {
        let below = [self.path.as_slice(), path.as_bytes()];
        let below: Vec<_> = below.into_iter().filter(|part| !part.is_empty()).collect();
        Address {
            site: self.site.clone(),
            path: below.join(b"/".as_slice()),
        }
    }

    /// The address of the directory or prefix that contains this one; the root contains itself.
    pub(in crate::store) fn parent(&self) -> Address {
        let end = self.path.iter().rposition(|&byte| byte == b'/');
        let path = self.path.get(..end.unwrap_or(0)).unwrap_or_default();
        Address {
            site: self.site.clone(),
            path: path.to_vec(),
        }
    }

    /// The root of the same machine, server or bucket.
    pub(super) fn root(&self) -> Address {
        Address {
            site: self.site.clone(),
            path: Vec::new(),
        }
    }

    /// The path below the root.
    pub(super) fn path(&self) -> Prefix {
        // All segments were checked.
        Prefix::parse(&self.path).unwrap_or_else(|_| Prefix::root())
    }

    /// The path as a path of this machine; `None` for an address on a server.
    pub(super) fn local_path(&self) -> Option<PathBuf> {
        let path = [b"/", self.path.as_slice()].concat();
        (self.site == Site::ThisMachine).then(|| PathBuf::from(std::ffi::OsString::from_vec(path)))
    }

    /// The URL of the server or bucket; `None` for this machine.
    #[cfg(feature = "remote")]
    pub(super) fn server_url(&self) -> Option<RemoteUrl> {
        let Site::Server(site) = &self.site else {
            return None;
        };
        Some(RemoteUrl {
            service: site.service,
            scheme: site.scheme.to_owned(),
            authority: site.authority.clone(),
            account: site.account.clone(),
            domain: site.domain.clone(),
            path: String::new(),
        })
    }

    /// The address of the literal `host` of a web server, without its port; `None` elsewhere, and for a name.
    #[cfg(feature = "remote")]
    pub(super) fn literal_host(&self) -> Option<std::net::IpAddr> {
        let url = self.server_url()?;
        let host = match url.authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next()?,
            None => url.authority.split(':').next()?,
        };
        (url.service == Service::Http).then(|| host.parse().ok())?
    }

    /// Whether this is read without encryption though `set` is read with it.
    #[cfg(feature = "remote")]
    pub(super) fn is_less_secret_than(&self, set: &Address) -> bool {
        let scheme = |address: &Address| match &address.site {
            Site::ThisMachine => None,
            Site::Server(site) => Some(site.scheme),
        };
        (scheme(set), scheme(self)) == (Some("https"), Some("http"))
    }
}

/// `path` without empty and `.` segments, and with `..` resolved.
fn normal(path: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&byte| byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                if segments.pop().is_none() {
                    let path = String::from_utf8_lossy(path);
                    return Err(unusable(path, "the path leads above the root"));
                }
            }
            segment => segments.push(segment),
        }
    }
    Ok(segments.join(&b'/'))
}

fn unusable(address: impl fmt::Display, problem: &str) -> StoreError {
    StoreError::Unsupported(format!("{address}: {problem}"))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "remote")]
        if let Some(url) = self.server_url() {
            write!(f, "{url}")?;
        }
        write!(f, "/{}", String::from_utf8_lossy(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(path: &str) -> Address {
        Address::of_path(Path::new(path)).unwrap()
    }

    #[test]
    fn paths_are_those_of_the_set_or_absolute() {
        let base = local("/data/sets");
        for (text, expected) in [
            ("a.nc", "/data/sets/a.nc"),
            ("./b//a.nc", "/data/sets/b/a.nc"),
            ("../a.nc", "/data/a.nc"),
            ("/x/../y/a.nc", "/y/a.nc"),
            ("file:///y/a%20b.nc", "/y/a b.nc"),
        ] {
            let found = Address::parse(text, &base).unwrap();
            assert_eq!(found.to_string(), expected, "{text}");
        }
        let literal = Address::parse_as_fsspec("file:///y/a%20b.nc", &base).unwrap();
        assert_eq!(literal, local("/y/a%20b.nc"));
        for text in ["../../../a", "file://host/a", "ftp://h/a", "zip://a::/b"] {
            assert!(Address::parse(text, &base).is_err(), "{text}");
        }
    }

    #[test]
    fn whole_segments_lie_below_a_prefix() {
        let prefix = local("/data/a");
        for (path, expected) in [
            ("/data/a/b/c", Some(b"b/c".as_slice())),
            ("/data/a", Some(b"")),
            ("/data/ab", None),
            ("/data", None),
        ] {
            assert_eq!(local(path).below(&prefix), expected, "{path}");
        }
        assert_eq!(local("/a/b").below(&local("/")), Some(b"a/b".as_slice()));
        for (base, path, expected) in [("/", "a/b", "/a/b"), ("/a", "", "/a"), ("/a", "b", "/a/b")]
        {
            let path = Prefix::parse(path.as_bytes()).unwrap();
            assert_eq!(local(base).joined(&path), local(expected));
        }
    }

    #[cfg(feature = "remote")]
    #[test]
    fn spellings_of_a_url_are_one_address() {
        let base = Address::parse("https://Host:443/d/e", &local("/")).unwrap();
        for (text, expected) in [
            ("https://host/d/e/a%20b", Some(b"a b".as_slice())),
            ("HTTPS://HOST/d/e/%61", Some(b"a")),
            ("c", Some(b"c")),
            ("../c", None),
            ("http://host/d/e/a", None),
            ("https://host:81/d/e/a", None),
            ("https://host.example/d/e/a", None),
        ] {
            let address = Address::parse(text, &base).unwrap();
            assert_eq!(address.below(&base), expected, "{text}");
        }
        for text in [
            "https://host/d/e/%2e%2e/x",
            "https://host/d/e/..%2fx",
            "https://host/d/e/a?sig=x",
            "https://me:word@host/d",
            "s3://b/d/../x",
            "simplecache::s3://b/d",
        ] {
            assert!(Address::parse(text, &base).is_err(), "{text}");
        }
        assert!(
            Address::parse("http://host/a", &base)
                .unwrap()
                .is_less_secret_than(&base)
        );
        let s3a = Address::parse("s3a://b/d", &base).unwrap();
        assert_eq!(s3a, Address::parse("s3://b/d/", &base).unwrap());
    }
}
