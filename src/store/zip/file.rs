//! The zip file itself: where it is, which version of it is there, and its bytes.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rawzip::{ErrorKind, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipLocator};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use rustix::io::{Errno, pread, retry_on_intr};

use crate::store::dir::attributes::{kind_of, object_meta};
use crate::store::dir::rights::restrict_entry_by_list;
use crate::store::{Key, ObjectMeta, Sharing, StatKind, Store, StoreError, Version};

/// The zip file, by a name that stays valid.
#[derive(Debug)]
pub(super) struct ZipPath {
    place: ZipPlace,
    /// The path, for messages.
    pub(super) shown: String,
}

#[derive(Debug)]
enum ZipPlace {
    /// A name in an open directory: neither a mount over the path nor a change of the current
    /// directory makes it another file.
    Directory {
        directory: OwnedFd,
        name: OsString,
        sharing: Sharing,
    },
    /// A key of a store of files, which finds it safely.
    Store { store: Arc<dyn Store>, key: Key },
}

/// One version of the zip file, held open.
#[derive(Debug)]
pub(super) struct ZipFile {
    fd: OwnedFd,
    /// Attributes of this version.
    pub(super) meta: ObjectMeta,
    /// The version as the descriptor has it. A store may report another one.
    opened: Version,
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
        let place = ZipPlace::Directory {
            directory,
            name: name.to_owned(),
            sharing,
        };
        Ok(ZipPath { place, shown })
    }

    /// The zip file at `key` of `store`, whose objects must be files.
    pub(super) fn within(store: &Arc<dyn Store>, key: &Key) -> ZipPath {
        ZipPath {
            place: ZipPlace::Store {
                store: Arc::clone(store),
                key: key.clone(),
            },
            shown: key.to_string(),
        }
    }

    /// Attributes of the current version.
    pub(super) fn stat(&self) -> Result<ObjectMeta, StoreError> {
        match &self.place {
            ZipPlace::Directory {
                directory, name, ..
            } => {
                let stat = statat(directory, name, AtFlags::empty())
                    .map_err(|errno| refusal(&self.shown, errno))?;
                self.regular(&stat)
            }
            ZipPlace::Store { store, key } => match store.stat(key)? {
                Some(stat) => stat
                    .object_meta()
                    .ok_or_else(|| StoreError::not_an_object(key, "a directory")),
                None => Err(refusal(&self.shown, Errno::NOENT)),
            },
        }
    }

    /// Opens the current version.
    pub(super) fn open(&self) -> Result<ZipFile, StoreError> {
        let refused = |errno| refusal(&self.shown, errno);
        match &self.place {
            ZipPlace::Directory {
                directory, name, ..
            } => {
                // O_NONBLOCK: opening must not wait for a FIFO that replaced the file.
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let open = || openat(directory, name, flags, Mode::empty());
                let fd = retry_on_intr(open).map_err(refused)?;
                let stat = fstat(&fd).map_err(refused)?;
                ZipFile::new(fd, self.regular(&stat)?).map_err(refused)
            }
            ZipPlace::Store { store, key } => {
                let object = store.open(key)?.ok_or_else(|| refused(Errno::NOENT))?;
                let file = object.as_file().map(|file| file.try_clone_to_owned());
                let file = file.ok_or_else(|| StoreError::not_an_object(key, "not a file"))?;
                let fd = file.map_err(|error| StoreError::io(key, &error))?;
                ZipFile::new(fd, *object.meta()).map_err(refused)
            }
        }
    }

    fn regular(&self, stat: &rustix::fs::Stat) -> Result<ObjectMeta, StoreError> {
        match kind_of(stat) {
            Ok(StatKind::Object) => {
                let meta = object_meta(stat);
                Ok(match &self.place {
                    ZipPlace::Directory {
                        directory,
                        name,
                        sharing: Sharing::Others,
                    } => restrict_entry_by_list(directory.as_fd(), name.as_bytes(), meta),
                    // A store has restricted it already.
                    ZipPlace::Directory { .. } | ZipPlace::Store { .. } => meta,
                })
            }
            Ok(StatKind::Prefix) => Err(StoreError::not_an_object(&self.shown, "a directory")),
            Err(found) => Err(StoreError::not_an_object(&self.shown, found)),
        }
    }
}

impl ZipFile {
    fn new(fd: OwnedFd, meta: ObjectMeta) -> Result<ZipFile, Errno> {
        let opened = object_meta(&fstat(&fd)?).version;
        Ok(ZipFile { fd, meta, opened })
    }

    /// Whether the open file still has the version that was opened. Unlinking does not change that,
    /// so that a replaced file stays readable.
    pub(super) fn is_unchanged(&self) -> io::Result<bool> {
        match fstat(&self.fd) {
            Ok(stat) => Ok(object_meta(&stat).version == self.opened),
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
