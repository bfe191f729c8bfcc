//! The STORE argument: what it may name, and how that is opened.
//!
//! It names a directory, which may be a node inside a hierarchy, a zip file, or `demo:`. Everything
//! else is refused here, so that the message can say what to do instead.
//!
//! A zip file often contains one directory with its own name. Where its root holds no Zarr metadata
//! and exactly one directory in the root does, that directory is the root of the store.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    Cursor, Detail, DirStore, EntryKind, Prefix, Sharing, Store, StoreError, Symlinks, ZipStore,
    demo,
};

/// The built-in store, as it is typed.
const DEMO: &str = "demo:";

/// A hierarchy of any Zarr version has one of these keys at its root.
const ROOT_KEYS: [&[u8]; 6] = [
    b"zarr.json",
    b".zgroup",
    b".zarray",
    b".zmetadata",
    b"meta",
    b"__zmeta__",
];

/// A parsed STORE argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory. The path is as it was typed, so it may be relative to the current directory.
    Directory(PathBuf),
    /// A zip file, whatever it is called.
    Zip(PathBuf),
    /// The built-in store.
    Demo,
}

impl Location {
    /// Parses `argument`, and looks whether there is a directory or a zip file.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::Denied`] when the path cannot be examined,
    /// [`StoreError::Unsupported`] for what this build cannot open: URLs, other files.
    pub fn parse(argument: &OsStr) -> Result<Location, StoreError> {
        let text = argument.to_string_lossy();
        if text == DEMO {
            return Ok(Location::Demo);
        }
        if text.is_empty() {
            return Err(unsupported(
                "STORE is empty; name a directory, a zip file, or the built-in store `demo:`",
            ));
        }
        if let Some((scheme, rest)) = split_url(&text) {
            return Err(refuse_url(&text, scheme, rest));
        }
        let path = PathBuf::from(argument);
        let metadata = path
            .metadata()
            .map_err(|error| refuse_path(&path, &error))?;
        if metadata.is_dir() {
            Ok(Location::Directory(path))
        } else if metadata.is_file() && ZipStore::is_zip(&path)? {
            Ok(Location::Zip(path))
        } else {
            Err(refuse_file(&path))
        }
    }
}

/// Opens the store at `location` for this user alone. `symlinks` applies to directories only.
///
/// # Errors
/// As [`DirStore::open`] and [`ZipStore::open`].
pub fn open_store(location: &Location, symlinks: Symlinks) -> Result<Arc<dyn Store>, StoreError> {
    open_store_for(location, symlinks, Sharing::Nobody)
}

/// As [`open_store`]; `sharing` says which users the reported modes are for.
///
/// # Errors
/// As [`open_store`].
pub fn open_store_for(
    location: &Location,
    symlinks: Symlinks,
    sharing: Sharing,
) -> Result<Arc<dyn Store>, StoreError> {
    match location {
        Location::Directory(path) => Ok(Arc::new(DirStore::shared(path, symlinks, sharing)?)),
        Location::Zip(path) => Ok(Arc::new(open_zip(path, sharing)?)),
        Location::Demo => Ok(Arc::new(demo::demo_store())),
    }
}

fn open_zip(path: &Path, sharing: Sharing) -> Result<ZipStore, StoreError> {
    let store = ZipStore::shared(path, sharing)?;
    let root = find_hierarchy(&store)?.unwrap_or_else(Prefix::root);
    if !root.is_root() {
        let shown = one_line(&path.to_string_lossy());
        log::info!("{shown}: the hierarchy is in its directory {root}");
    }
    Ok(store.below(root))
}

/// The prefix of the hierarchy in a zip file: the root, also where several directories in it hold
/// one; or the only directory that does. `None` where there is no hierarchy.
pub(super) fn find_hierarchy(store: &dyn Store) -> Result<Option<Prefix>, StoreError> {
    let root = Prefix::root();
    if holds_hierarchy(store, &root)? {
        return Ok(Some(root));
    }
    let mut found = None;
    let mut listing = store.list(&root, Cursor::START, Detail::Names)?;
    while let Some(listing) = &mut listing
        && let Some(entry) = listing.next_entry()?
    {
        if entry.kind != EntryKind::Prefix {
            continue;
        }
        let prefix = root.key(&entry.name)?.to_prefix();
        if holds_hierarchy(store, &prefix)? && found.replace(prefix).is_some() {
            return Ok(Some(root));
        }
    }
    Ok(found)
}

fn holds_hierarchy(store: &dyn Store, prefix: &Prefix) -> Result<bool, StoreError> {
    for name in ROOT_KEYS {
        if store.stat(&prefix.key(name)?)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl fmt::Display for Location {
    /// The text for the mount table: one line, in which bytes that are not UTF-8 are replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(path) | Location::Zip(path) => {
                f.write_str(&one_line(&path.to_string_lossy()))
            }
            Location::Demo => f.write_str(DEMO),
        }
    }
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Scheme and rest of `scheme://rest`; `None` for a path with a `/` before the `://`.
fn split_url(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    (!scheme.is_empty() && !scheme.contains('/')).then_some((scheme, rest))
}

fn unsupported(message: impl Into<String>) -> StoreError {
    StoreError::Unsupported(message.into())
}

fn refuse_url(text: &str, scheme: &str, rest: &str) -> StoreError {
    let shown = one_line(text);
    if scheme.eq_ignore_ascii_case("file") {
        let path = one_line(rest);
        return unsupported(format!("{shown}: leave `file://` out: `{path}`"));
    }
    unsupported(format!(
        "{shown}: URLs come with a later version; copy the store to a directory, or mount what \
         holds it (`rclone mount`, `mount-s3`, `sshfs`) and name the directory there"
    ))
}

fn refuse_path(path: &Path, error: &std::io::Error) -> StoreError {
    let key = one_line(&path.to_string_lossy());
    match error.kind() {
        std::io::ErrorKind::NotFound => StoreError::Io {
            key,
            message: "no such file or directory".to_owned(),
            errno: error.raw_os_error(),
        },
        std::io::ErrorKind::PermissionDenied => StoreError::Denied {
            key,
            reason: "no permission".to_owned(),
        },
        _ => StoreError::io(key, error),
    }
}

fn refuse_file(path: &Path) -> StoreError {
    let shown = one_line(&path.to_string_lossy());
    unsupported(format!(
        "{shown}: neither a directory nor a zip file; name the directory that holds the metadata \
         documents (`zarr.json`, `.zgroup`, `.zarray`)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("s3://bucket/a.zarr", "URLs come with a later version"),
            (
                "https://example.org/a.zarr",
                "URLs come with a later version",
            ),
            ("zip::https://example.org/a.zip", "URLs come with a later"),
            ("file:///data/a.zarr", "leave `file://` out: `/data/a.zarr`"),
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
    fn the_table_of_mounts_keeps_its_lines() {
        let location = Location::Directory(PathBuf::from("/data/a\nb c.zarr"));
        assert_eq!(location.to_string(), "/data/a\u{fffd}b c.zarr");
    }
}
