//! What STORE may be: a directory, or the built-in `demo:`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use super::{DirStore, Store, StoreError, Symlinks, demo};

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory of the file system.
    Directory(PathBuf),
    /// The built-in store.
    Demo,
}

impl Location {
    /// What `typed` means.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] for what is no store, or not one that this version opens.
    pub fn parse(typed: &OsStr) -> Result<Location, StoreError> {
        if typed == "demo:" {
            return Ok(Location::Demo);
        }
        let shown = typed.display();
        let refuse = |problem: &str| Err(StoreError::Unsupported(format!("{shown}: {problem}")));
        if typed.to_string_lossy().contains("://") {
            return refuse("URLs cannot be mounted yet; mount a local copy");
        }
        let path = PathBuf::from(typed);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Location::Directory(path)),
            Ok(_) if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("zip")) => {
                refuse("zip files cannot be mounted yet; unpack it and mount the directory")
            }
            Ok(_) => refuse("not a directory; STORE is the directory that holds the hierarchy"),
            Err(error) => refuse(&error.to_string()),
        }
    }
}

/// Opens the store at `location`.
///
/// # Errors
/// As [`DirStore::open`].
pub fn open_store(location: &Location, symlinks: Symlinks) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match location {
        Location::Directory(path) => Arc::new(DirStore::open(path, symlinks)?),
        Location::Demo => Arc::new(demo::store()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_mounted_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let zip = directory.path().join("a.ZIP");
        std::fs::write(&zip, b"PK").unwrap();
        let cases: [(&OsStr, &str); 4] = [
            ("https://host/a.zarr".as_ref(), "URLs"),
            (zip.as_os_str(), "zip files"),
            ("/dev/null".as_ref(), "not a directory"),
            ("no/such/store".as_ref(), "No such file"),
        ];
        for (typed, part) in cases {
            let message = Location::parse(typed).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(Location::parse("demo:".as_ref()).unwrap(), Location::Demo);
    }
}
