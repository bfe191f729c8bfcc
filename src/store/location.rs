//! The STORE argument, and its forms.
//!
//! It names a directory, which may be a node inside a hierarchy, a zip file, a set of references, one of these on a
//! server by its URL, or `demo:`. Everything else is refused here, so that the message can say what to do instead.
//!
//! Steps behind a `|` say where the store is within what is named before (`chain`). `STORE|icechunk:@branch.NAME` names
//! a snapshot of a repository; without such a step, the store is the branch `main`. `STORE|zip:PATH` names a directory
//! in a zip file, or, if another step follows, a zip file in it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::chain::{Step, spelled_with_steps, split_step};
#[cfg(feature = "icechunk")]
use super::icechunk::IcechunkAddress;
use super::references::{is_named_as_set, metadata_of_set};
#[cfg(feature = "remote")]
use super::remote::RemoteUrl;
use super::{DirStore, Key, Prefix, StoreError, Symlinks, ZipStore};

/// The built-in store, as it is typed.
const DEMO: &str = "demo:";

/// The name of the metadata of a set of references in Parquet.
pub(super) const METADATA: &[u8] = b".zmetadata";

/// A parsed STORE argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory. The path is as it was typed, so it may be relative to the current directory.
    Directory(PathBuf),
    /// A zip file, whatever it is called.
    Zip(PathBuf),
    /// A set of references: its file in JSON, or the metadata of one in Parquet.
    References(PathBuf),
    /// The built-in store.
    Demo,
    /// A store on a server, or a zip file.
    #[cfg(feature = "remote")]
    Remote(RemoteUrl),
    /// The entries at a path in the zip file at another location.
    InZip(Box<Location>, Prefix),
    /// A snapshot of the Icechunk repository at another location.
    #[cfg(feature = "icechunk")]
    Icechunk(Box<Location>, IcechunkAddress),
}

/// The path in `file:///path`; `None` for anything else.
///
/// # Errors
/// [`StoreError::Unsupported`] for a file of another host.
pub fn path_of_file_url(text: &OsStr) -> Result<Option<PathBuf>, StoreError> {
    let path = spelled_path_of_file_url(text)?.map(percent_decoded);
    Ok(path.map(|path| PathBuf::from(OsString::from_vec(path))))
}

/// Like [`path_of_file_url`], with the escapes (`%20`) of the URL.
///
/// # Errors
/// Those of [`path_of_file_url`].
pub(super) fn spelled_path_of_file_url(text: &OsStr) -> Result<Option<&[u8]>, StoreError> {
    let Some((scheme, rest)) = split_bytes(text.as_bytes()) else {
        return Ok(None);
    };
    if !scheme.eq_ignore_ascii_case(b"file") {
        return Ok(None);
    }
    let path = rest.strip_prefix(b"localhost").unwrap_or(rest);
    if !path.starts_with(b"/") {
        let shown = one_line(&text.to_string_lossy());
        let problem = "a file URL has no host: write file:///PATH";
        return Err(unsupported(format!("{shown}: {problem}")));
    }
    Ok(Some(path))
}

/// `text` with `%41` as `A`. Bytes that are no escape stay.
pub(super) fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let escape = after.first_chunk().filter(|_| first == b'%');
        // `from_str_radix` takes a sign, too.
        let escape = escape.filter(|digits: &&[u8; 2]| digits.iter().all(u8::is_ascii_hexdigit));
        let escape = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = escape.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(byte.unwrap_or(first));
        let skipped = if byte.is_some() { 2 } else { 0 };
        rest = after.get(skipped..).unwrap_or_default();
    }
    decoded
}

impl Location {
    /// Whether `argument` is no path: the name of the built-in store, or a URL.
    pub fn is_name(argument: &OsStr) -> bool {
        argument == DEMO || split_bytes(argument.as_bytes()).is_some()
    }

    /// Parses `argument`, and looks whether there is a directory or a zip file.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::Denied`] when the path cannot be examined,
    /// [`StoreError::Unsupported`] for what this build cannot open: URLs, other files.
    pub fn parse(argument: &OsStr) -> Result<Location, StoreError> {
        let argument = &*spelled_with_steps(argument)?;
        match split_step(argument) {
            Some((store, Step::Icechunk(address))) => {
                return Location::parse_snapshot(store, address);
            }
            Some((store, Step::Zip(path))) => {
                let zip = Location::parse(store)?;
                return Ok(Location::InZip(Box::new(zip), Prefix::parse(path)?));
            }
            None => {}
        }
        let text = argument.to_string_lossy();
        if text == DEMO {
            return Ok(Location::Demo);
        }
        if text.is_empty() {
            return Err(unsupported(
                "STORE is empty; name a directory, a zip file, or the built-in store `demo:`",
            ));
        }
        let local = path_of_file_url(argument)?;
        if local.is_none()
            && let Some(remote) = Location::parse_url(&text)?
        {
            return Ok(remote);
        }
        let path = local.unwrap_or_else(|| PathBuf::from(argument));
        let metadata = path
            .metadata()
            .map_err(|error| refuse_path(&path, &error))?;
        if metadata.is_dir() {
            Ok(Location::Directory(path))
        } else if metadata.is_file() && ZipStore::is_zip(&path)? {
            Ok(Location::Zip(path))
        } else if metadata.is_file() && is_set(&path)? {
            Ok(Location::References(path))
        } else {
            Err(refuse_file(&path))
        }
    }

    #[cfg(feature = "icechunk")]
    fn parse_snapshot(store: &OsStr, address: &[u8]) -> Result<Location, StoreError> {
        let store = Location::parse(store)?;
        if matches!(store, Location::Icechunk(..)) {
            let problem = "a snapshot of Icechunk holds no repositories: write |icechunk: once";
            return Err(unsupported(problem));
        }
        let address = std::str::from_utf8(address);
        let address = address.map_err(|_| unsupported("names in Icechunk are UTF-8"))?;
        let address = IcechunkAddress::parse(address)?;
        Ok(Location::Icechunk(Box::new(store), address))
    }

    #[cfg(not(feature = "icechunk"))]
    fn parse_snapshot(_: &OsStr, _: &[u8]) -> Result<Location, StoreError> {
        Err(unsupported(
            "this program was built without Icechunk repositories (the feature `icechunk`)",
        ))
    }

    #[cfg(feature = "remote")]
    fn parse_url(text: &str) -> Result<Option<Location>, StoreError> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        let chain = scheme.filter(|scheme| !scheme.contains('/'));
        if let Some((first, _)) = chain.and_then(|scheme| scheme.split_once("::")) {
            return Err(unsupported(format!(
                "{}: of the chains of URLs, only zip:: is read",
                one_line(first)
            )));
        }
        Ok(RemoteUrl::parse(text)?.map(Location::Remote))
    }

    #[cfg(not(feature = "remote"))]
    fn parse_url(text: &str) -> Result<Option<Location>, StoreError> {
        let is_url = split_bytes(text.as_bytes()).is_some();
        if is_url {
            return Err(unsupported(
                "this program was built without remote stores (the feature `remote`)",
            ));
        }
        Ok(None)
    }
}

/// The directory of the set of references in Parquet whose metadata are in the file at `path`, and their key in it;
/// `None` if the file has another name.
pub(super) fn metadata_at(path: &Path) -> Option<(&Path, Result<Key, StoreError>)> {
    let name = path.file_name()?.as_bytes();
    (name == METADATA).then_some((path.parent()?, Key::parse(name)))
}

/// Whether the file at `path` is named as a set of references is, or has the metadata of one.
fn is_set(path: &Path) -> Result<bool, StoreError> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    if let Some((directory, _)) = metadata_at(path) {
        let store = DirStore::open(&absolute(directory)?, Symlinks::Inside)?;
        return Ok(metadata_of_set(&store, &Prefix::root())?.is_some());
    }
    Ok(is_named_as_set(name))
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| StoreError::io(path.display(), &error))
}

impl fmt::Display for Location {
    /// The text for the mount table: one line, in which bytes that are not UTF-8 are replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(path) | Location::Zip(path) | Location::References(path) => {
                f.write_str(&one_line(&path.to_string_lossy()))
            }
            Location::Demo => f.write_str(DEMO),
            #[cfg(feature = "remote")]
            Location::Remote(url) => f.write_str(&one_line(&url.to_string())),
            Location::InZip(zip, path) => {
                let path = String::from_utf8_lossy(path.as_bytes());
                write!(f, "{zip}|zip:{}", one_line(&path))
            }
            #[cfg(feature = "icechunk")]
            Location::Icechunk(location, address) => {
                let address = one_line(&address.to_string());
                write!(f, "{location}|icechunk:{address}")
            }
        }
    }
}

pub(super) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Scheme and rest of `scheme://rest`; `None` for a path with a `/` before the `://`.
fn split_bytes(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.windows(3).position(|part| part == b"://")?;
    let (scheme, rest) = text.split_at(at);
    let is_scheme = !scheme.is_empty() && !scheme.contains(&b'/');
    is_scheme.then_some((scheme, rest.get(3..)?))
}

pub(super) fn unsupported(message: impl Into<String>) -> StoreError {
    StoreError::Unsupported(message.into())
}

fn refuse_path(path: &Path, error: &std::io::Error) -> StoreError {
    let key = one_line(&path.to_string_lossy());
    match error.kind() {
        std::io::ErrorKind::NotFound => StoreError::Io {
            key,
            message: "no such file or directory".to_owned(),
            errno: error.raw_os_error(),
        },
        std::io::ErrorKind::PermissionDenied => StoreError::denied(key, "no permission"),
        _ => StoreError::io(key, error),
    }
}

fn refuse_file(path: &Path) -> StoreError {
    let shown = one_line(&path.to_string_lossy());
    unsupported(format!(
        "{shown}: neither a directory nor a zip file, nor called *.json as a set of references; name the \
         directory that holds the metadata documents (`zarr.json`, `.zgroup`, `.zarray`)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::open_store;

    fn message(argument: &str) -> String {
        Location::parse(OsStr::new(argument))
            .expect_err(argument)
            .to_string()
    }

    #[test]
    fn the_demo_and_directories_are_stores() {
        assert_eq!(Location::parse("demo:".as_ref()).unwrap(), Location::Demo);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let location = Location::parse(path.as_os_str()).unwrap();
        assert_eq!(location, Location::Directory(path.to_owned()));
        assert_eq!(location.to_string(), path.display().to_string());
        open_store(&location, Symlinks::Inside).unwrap();
    }

    #[test]
    fn escapes_have_two_digits() {
        for (text, decoded) in [
            ("%41%2fb", "A/b"),
            ("%+b", "%+b"),
            ("%-0", "%-0"),
            ("%4", "%4"),
            ("%%41", "%A"),
        ] {
            assert_eq!(percent_decoded(text.as_bytes()), decoded.as_bytes());
        }
    }

    #[test]
    fn names_are_distinguished_from_paths() {
        for name in ["demo:", "s3://b/a", "zip::https://example.org/a.zip"] {
            assert!(Location::is_name(name.as_ref()), "{name}");
        }
        for path in ["demo", "demo:a", "./https://a", "a/s3://b", "/data/a:b"] {
            assert!(!Location::is_name(path.as_ref()), "{path}");
        }
    }

    #[test]
    fn a_zip_suffix_does_not_spoil_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.zarr.zip");
        std::fs::create_dir(&path).unwrap();
        assert!(Location::parse(path.as_os_str()).is_ok());
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, b"PK").unwrap();
            path.to_str().unwrap().to_owned()
        };
        for (argument, expected) in [
            ("", "STORE is empty"),
            ("ftp://example.org/a.zarr", "ftp://: this scheme"),
            ("simplecache::https://example.org/a.zip", "chains of URLs"),
            ("file:///no/a.zarr", "/no/a.zarr: no such file or directory"),
            ("file://host/a.zarr", "a file URL has no host"),
            ("/nowhere/a::b", "/nowhere/a::b: no such file"),
            (&file("a.zarr.ZIP"), "neither a directory nor a zip file"),
            (&file("zarr.json"), "name the directory that holds"),
            (
                "/nowhere/a.zarr",
                "/nowhere/a.zarr: no such file or directory",
            ),
            ("./https://a", "no such file or directory"),
        ] {
            let message = message(argument);
            assert!(message.contains(expected), "{argument}: {message}");
        }
    }

    #[test]
    fn file_urls_are_decoded() {
        for (url, expected) in [
            ("file:///data/a%20b.zarr", Some("/data/a b.zarr")),
            ("FILE://localhost/a%2", Some("/a%2")),
            ("/data/a.zarr", None),
            ("s3://b/a", None),
        ] {
            let path = path_of_file_url(OsStr::new(url)).unwrap();
            assert_eq!(path.as_deref(), expected.map(Path::new), "{url}");
        }
    }

    #[test]
    fn the_table_of_mounts_keeps_its_lines() {
        let location = Location::Directory(PathBuf::from("/data/a\nb c.zarr"));
        assert_eq!(location.to_string(), "/data/a\u{fffd}b c.zarr");
    }
}
