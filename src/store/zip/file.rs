//! The zip file itself: where it is, which version of it is there, and its bytes.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rawzip::{ErrorKind, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipLocator};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use rustix::io::{Errno, pread, retry_on_intr};

use crate::store::dir::attributes::{kind_of, object_meta};
use crate::store::dir::rights::restrict_entry_by_list;
use crate::store::{ObjectMeta, Sharing, StatKind, StoreError};

/// The zip file, by its name in an open directory: neither a mount over the path nor a change of
/// the current directory makes it another file.
#[derive(Debug)]
pub(super) struct ZipPath {
    directory: OwnedFd,
    name: OsString,
    /// The path, for messages.
    pub(super) shown: String,
    sharing: Sharing,
}

/// One version of the zip file, held open.
#[derive(Debug)]
pub(super) struct ZipFile {
    fd: OwnedFd,
    /// Attributes of this version.
    pub(super) meta: ObjectMeta,
}

impl ZipPath {
    pub(super) fn new(path: &Path, sharing: Sharing) -> Result<ZipPath, StoreError> {
        let shown = path.display().to_string();
        let Some(name) = path.file_name() else {
            return Err(StoreError::Unsupported(format!("{shown}: not a file name")));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = retry_on_intr(|| openat(CWD, parent, flags, Mode::empty()))
            .map_err(|errno| refusal(&shown, errno))?;
        Ok(ZipPath {
            directory,
            name: name.to_owned(),
            shown,
            sharing,
        })
    }

    /// Attributes of the current version.
    pub(super) fn stat(&self) -> Result<ObjectMeta, StoreError> {
        let stat = statat(&self.directory, &self.name, AtFlags::empty())
            .map_err(|errno| refusal(&self.shown, errno))?;
        self.regular(&stat)
    }

    /// Opens the current version.
    pub(super) fn open(&self) -> Result<ZipFile, StoreError> {
        // O_NONBLOCK: opening must not wait for a FIFO that replaced the file.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let refused = |errno| refusal(&self.shown, errno);
        let open = || openat(&self.directory, &self.name, flags, Mode::empty());
        let fd = retry_on_intr(open).map_err(refused)?;
        let stat = fstat(&fd).map_err(refused)?;
        let meta = self.regular(&stat)?;
        Ok(ZipFile { fd, meta })
    }

    fn regular(&self, stat: &rustix::fs::Stat) -> Result<ObjectMeta, StoreError> {
        match kind_of(stat) {
            Ok(StatKind::Object) => {
                let meta = object_meta(stat);
                Ok(match self.sharing {
                    Sharing::Nobody => meta,
                    Sharing::Others => {
                        restrict_entry_by_list(self.directory.as_fd(), self.name.as_bytes(), meta)
                    }
                })
            }
            Ok(StatKind::Prefix) => Err(StoreError::not_an_object(&self.shown, "a directory")),
            Err(found) => Err(StoreError::not_an_object(&self.shown, found)),
        }
    }
}

impl ZipFile {
    /// Whether the open file still has the version that was opened. Unlinking does not change that,
    /// so that a replaced file stays readable.
    pub(super) fn is_unchanged(&self) -> io::Result<bool> {
        match fstat(&self.fd) {
            Ok(stat) => Ok(object_meta(&stat).version == self.meta.version),
            // NFS: the file was deleted on the server.
            Err(Errno::STALE) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for ZipFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl ReaderAt for ZipFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // Offsets come from the file, and may be larger than the system allows.
        if offset >= self.meta.size() {
            return Ok(0);
        }
        Ok(retry_on_intr(|| pread(&self.fd, &mut *buf, offset))?)
    }
}

/// The error for `errno` of the zip file as a whole.
fn refusal(shown: &str, errno: Errno) -> StoreError {
    match errno {
        Errno::ACCESS | Errno::PERM => StoreError::Denied {
            key: shown.to_owned(),
            reason: "no permission".to_owned(),
        },
        // Not absence of a key, which would mean the fill value.
        Errno::NOENT | Errno::NOTDIR => StoreError::problem(shown, "the zip file is gone"),
        other => StoreError::io(shown, &other.into()),
    }
}

/// Whether `file` begins like a zip file, or ends like one that other data was prepended to.
pub(super) fn looks_like_zip(file: ZipFile) -> io::Result<bool> {
    /// A local header, or the end of an empty file.
    const STARTS: [&[u8; 4]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
    let mut start = [0; 4];
    let size = file.meta.size();
    if size < 4 {
        return Ok(false);
    }
    file.read_exact_at(&mut start, 0)?;
    if STARTS.contains(&&start) {
        return Ok(true);
    }
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    match ZipLocator::new().locate_in_reader(file, &mut buffer, size) {
        Ok(_) => Ok(true),
        Err((_, error)) => match error.into_kind() {
            ErrorKind::IO(error) if error.raw_os_error().is_some() => Err(error),
            _ => Ok(false),
        },
    }
}
