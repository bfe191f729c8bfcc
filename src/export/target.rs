//! The directory that an export writes to. A file is written in a directory of its own within it, and gets its name
//! when it is whole.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use tempfile::NamedTempFile;

use super::ExportError;

/// The name of the directory of files that are not whole yet.
const UNFINISHED: &str = ".zarr-mount-export";

/// Whether the file at `path` of an export has the place of unfinished files, as in a store that is itself an export which
/// was interrupted.
pub(super) fn is_unfinished(path: &[u8]) -> bool {
    path == UNFINISHED.as_bytes()
}

/// A directory that is written to.
#[derive(Debug)]
pub(super) struct Target {
    root: PathBuf,
    unfinished: PathBuf,
    /// The directory of unfinished files, which is locked while it is open.
    _lock: File,
}

/// A file that has no name yet. Without [`UnfinishedFile::finish`] it is removed.
#[derive(Debug)]
pub(super) struct UnfinishedFile(NamedTempFile);

impl Target {
    /// Prepares `root`, which is created if it is missing. It must be empty, unless `resume` says that an earlier export
    /// was interrupted: what that one left unfinished is removed.
    pub(super) fn prepare(root: &Path, resume: bool) -> Result<Target, ExportError> {
        let failed = |error| ExportError::Target {
            path: root.to_owned(),
            error,
        };
        fs::create_dir_all(root).map_err(failed)?;
        if !resume && fs::read_dir(root).map_err(failed)?.next().is_some() {
            return Err(ExportError::NotEmpty(root.to_owned()));
        }
        let unfinished = root.join(UNFINISHED);
        let failed = |error| ExportError::Target {
            path: unfinished.clone(),
            error,
        };
        create_directory(&unfinished).map_err(failed)?;
        let lock = File::open(&unfinished).map_err(failed)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(ExportError::Busy(root.to_owned()));
        }
        for left in fs::read_dir(&unfinished).map_err(failed)? {
            let left = left.map_err(failed)?.path();
            fs::remove_file(left).map_err(failed)?;
        }
        Ok(Target {
            root: root.to_owned(),
            unfinished,
            _lock: lock,
        })
    }

    /// Where the file or directory at `path` of the export is.
    pub(super) fn place(&self, path: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(path))
    }

    /// Whether an earlier export has written the file at `path`, of this length and time.
    pub(super) fn has(&self, path: &[u8], len: u64, mtime: SystemTime) -> bool {
        let found = fs::symlink_metadata(self.place(path));
        found.is_ok_and(|found| {
            found.is_file() && found.len() == len && found.modified().is_ok_and(|at| at == mtime)
        })
    }

    /// Makes the directory at `path`, if it is missing.
    pub(super) fn make_directory(&self, path: &[u8]) -> io::Result<()> {
        create_directory(&self.place(path))
    }

    /// Begins a file of `len` bytes, all of which are zero.
    pub(super) fn begin(&self, len: u64) -> io::Result<UnfinishedFile> {
        // The umask takes bits away, as from files of other programs.
        let file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&self.unfinished)?;
        file.as_file().set_len(len)?;
        Ok(UnfinishedFile(file))
    }

    /// Ends the export.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        fs::remove_dir(&self.unfinished).map_err(|error| ExportError::Target {
            path: self.unfinished,
            error,
        })
    }
}

impl UnfinishedFile {
    /// A writer of bytes at an offset. Zeros are not written, so that they take no room on disk.
    pub(super) fn writer(&self) -> io::Result<impl Fn(u64, &[u8]) -> io::Result<u64> + use<>> {
        let file = self.0.as_file().try_clone()?;
        Ok(move |offset, bytes: &[u8]| {
            if bytes.iter().any(|&byte| byte != 0) {
                file.write_all_at(bytes, offset)?;
            }
            Ok(bytes.len() as u64)
        })
    }

    /// Gives the file its time, and the name `place`.
    pub(super) fn finish(self, place: &Path, mtime: SystemTime) -> io::Result<()> {
        let times = FileTimes::new().set_modified(mtime);
        self.0.as_file().set_times(times)?;
        self.0.persist(place).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Makes a directory that may be there already, though not as a link to another one.
fn create_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(path)?.is_dir() {
                return Ok(());
            }
            Err(error)
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_missing() {
        let root = tempfile::tempdir().unwrap();
        let target = Target::prepare(root.path(), false).unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        for (finishes, name) in [(true, "whole"), (false, "missing")] {
            let file = target.begin(6).unwrap();
            let write = file.writer().unwrap();
            assert_eq!(write(3, b"abc").unwrap(), 3);
            assert_eq!(write(0, &[0; 3]).unwrap(), 3);
            if finishes {
                file.finish(&target.place(name.as_bytes()), time).unwrap();
            }
        }
        assert!(target.has(b"whole", 6, time));
        assert!(!target.has(b"whole", 7, time) && !target.has(b"whole", 6, SystemTime::now()));
        target.finish().unwrap();
        let names = fs::read_dir(root.path()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["whole"]);
        let whole = fs::read(root.path().join("whole")).unwrap();
        assert_eq!(whole, b"\0\0\0abc");
    }

    #[test]
    fn an_interrupted_export_is_resumed_and_no_other_one_disturbed() {
        let root = tempfile::tempdir().unwrap();
        let first = Target::prepare(root.path(), false).unwrap();
        let left = first.begin(3).unwrap().0.keep().unwrap();
        let again = |resume| Target::prepare(root.path(), resume);
        assert!(matches!(again(false), Err(ExportError::NotEmpty(_))));
        assert!(matches!(again(true), Err(ExportError::Busy(_))));
        drop(first);
        let resumed = again(true).unwrap();
        assert!(!left.1.exists());
        fs::create_dir(root.path().join(UNFINISHED).join("other")).unwrap();
        let unfinished = resumed.finish().unwrap_err().to_string();
        let refused = again(true).unwrap_err().to_string();
        for error in [unfinished, refused] {
            assert!(error.contains(UNFINISHED), "{error}");
        }
        fs::remove_dir(root.path().join(UNFINISHED).join("other")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("/", root.path().join("link")).unwrap();
        let resumed = again(true).unwrap();
        assert!(resumed.make_directory(b"file").is_err());
        assert!(resumed.make_directory(b"link").is_err());
    }
}
