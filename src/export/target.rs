//! The directory that an export writes to. A file is written in a directory of its own within it, and gets its name
//! when it is whole and on disk.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock, syncfs};
use tempfile::{NamedTempFile, TempPath};
use twox_hash::XxHash3_128;

use super::ExportError;

/// The name of the directory of files that are not whole yet.
const UNFINISHED: &str = ".zarr-mount-export";

/// The name of the file in the directory of unfinished files that says what is exported.
const SUBJECT: &str = "subject";

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
    lock: File,
}

/// A file that is being written. Without [`UnfinishedFile::finish`] it is removed.
#[derive(Debug)]
pub(super) struct UnfinishedFile(NamedTempFile);

/// A file that is whole, and has no name yet. Without [`Target::name_all`] it is removed.
#[derive(Debug)]
pub(super) struct FinishedFile {
    /// Its path below the directory.
    path: Vec<u8>,
    file: TempPath,
}

impl Target {
    /// Prepares `root`, which is created if it is missing. It must be empty, unless `resume` says that an earlier export
    /// was interrupted: what that one left unfinished is removed. Its `subject` must be the same: files of another store or
    /// view may have the same names, lengths and times.
    pub(super) fn prepare(
        root: &Path,
        resume: bool,
        subject: &[u8],
    ) -> Result<Target, ExportError> {
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
        // A hash, because the URL of a store may have secrets.
        let subject = format!("{:032x}\n", XxHash3_128::oneshot(subject)).into_bytes();
        let said = unfinished.join(SUBJECT);
        match fs::read(&said) {
            Ok(before) if before == subject => {}
            Ok(_) => return Err(ExportError::Another(root.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_whole(&unfinished, &said, &subject).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        for left in fs::read_dir(&unfinished).map_err(failed)? {
            let left = left.map_err(failed)?.path();
            if left != said {
                fs::remove_file(left).map_err(failed)?;
            }
        }
        Ok(Target {
            root: root.to_owned(),
            unfinished,
            lock,
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

    /// Gives the `files` their names, and passes the path of each one to `done`.
    ///
    /// The bytes of all of them are on disk before. A file system may write a name, a length and a time long before the
    /// bytes, and would have a file of zeros after a loss of power, which [`Target::has`] takes for one that was written.
    pub(super) fn name_all(
        &self,
        files: Vec<FinishedFile>,
        mut done: impl FnMut(&[u8], io::Result<()>),
    ) {
        if files.is_empty() {
            return;
        }
        let synced = syncfs(&self.lock);
        for FinishedFile { path, file } in files {
            let named = synced.map_err(io::Error::from).and_then(|()| {
                let place = self.place(&path);
                file.persist(place).map_err(|error| error.error)
            });
            done(&path, named);
        }
    }

    /// Ends the export.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        let removed = fs::remove_file(self.unfinished.join(SUBJECT));
        let removed = removed.and_then(|()| fs::remove_dir(&self.unfinished));
        removed.map_err(|error| ExportError::Target {
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

    /// Gives the file its time, and closes it. It is to be at `path` of the export.
    pub(super) fn finish(self, path: Vec<u8>, mtime: SystemTime) -> io::Result<FinishedFile> {
        let times = FileTimes::new().set_modified(mtime);
        self.0.as_file().set_times(times)?;
        let file = self.0.into_temp_path();
        Ok(FinishedFile { path, file })
    }
}

/// Writes a file in `directory`, which is whole or missing.
fn write_whole(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
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
        let target = Target::prepare(root.path(), false, b"it").unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        for (finishes, name) in [(true, "whole"), (false, "missing")] {
            let file = target.begin(6).unwrap();
            let write = file.writer().unwrap();
            assert_eq!(write(3, b"abc").unwrap(), 3);
            assert_eq!(write(0, &[0; 3]).unwrap(), 3);
            if finishes {
                let file = file.finish(name.into(), time).unwrap();
                assert!(!target.has(name.as_bytes(), 6, time));
                target.name_all(vec![file], |path, named| {
                    assert_eq!(path, name.as_bytes());
                    named.unwrap();
                });
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
        let first = Target::prepare(root.path(), false, b"it").unwrap();
        let left = first.begin(3).unwrap().0.keep().unwrap();
        let again = |resume| Target::prepare(root.path(), resume, b"it");
        assert!(matches!(again(false), Err(ExportError::NotEmpty(_))));
        assert!(matches!(again(true), Err(ExportError::Busy(_))));
        drop(first);
        let other = Target::prepare(root.path(), true, b"other");
        assert!(matches!(other, Err(ExportError::Another(_))));
        assert!(left.1.exists());
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
