//! The zip file itself: its place, its current version, and its bytes.
//!
//! It is a file, whose bytes are read by its descriptor, or an object of a store that has no files,
//! such as one on a server. Each read of an object is a request, which the store answers with bytes
//! of the opened version or with an error.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rawzip::ReaderAt;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat};
use rustix::io::{Errno, pread, retry_on_intr};

use crate::store::dir::attributes::{kind_of, object_meta};
use crate::store::dir::rights::restrict_entry_by_list;
use crate::store::dir::stat::{FileStat, fstat, statat};
use crate::store::{
    Key, Object, ObjectMeta, ReadRange, Sharing, StatKind, Store, StoreError, Version,
};

/// The number of last bytes that are read when an object is opened: the end of the central
/// directory, in front of a comment of any length.
pub(in crate::store) const TAIL_BYTES: u64 = 22 + 0xffff;

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
    /// A key of a store, which resolves it safely.
    Store { store: Arc<dyn Store>, key: Key },
}

/// One version of the zip file, held open.
#[derive(Debug)]
pub(super) struct ZipFile {
    source: ZipSource,
    /// Attributes of this version.
    pub(super) meta: ObjectMeta,
}

#[derive(Debug)]
enum ZipSource {
    /// An open file, and its version as the descriptor has it. A store may report another one.
    Descriptor { fd: OwnedFd, opened: Version },
    /// An object, and its last bytes.
    Object {
        object: Arc<dyn Object>,
        tail: Vec<u8>,
    },
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

    /// The zip file at `key` of `store`.
    pub(super) fn within(store: &Arc<dyn Store>, key: &Key) -> ZipPath {
        ZipPath {
            place: ZipPlace::Store {
                store: Arc::clone(store),
                key: key.clone(),
            },
            shown: key.to_string(),
        }
    }

    /// The same zip file, called `shown` in messages.
    pub(super) fn shown_as(self, shown: String) -> ZipPath {
        ZipPath { shown, ..self }
    }

    /// The store that the zip file is an object of, if it is one.
    pub(super) fn store(&self) -> Option<&Arc<dyn Store>> {
        match &self.place {
            ZipPlace::Directory { .. } => None,
            ZipPlace::Store { store, .. } => Some(store),
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
            ZipPlace::Store { store, key } => {
                let found = store.stat_object(key)?;
                found.ok_or_else(|| refusal(&self.shown, Errno::NOENT))
            }
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
                let Some(file) = object.as_file() else {
                    return ZipFile::of_object(object);
                };
                let fd = file.as_fd().try_clone_to_owned();
                let fd = fd.map_err(|error| StoreError::io(key, &error))?;
                ZipFile::new(fd, *object.meta()).map_err(refused)
            }
        }
    }

    fn regular(&self, stat: &FileStat) -> Result<ObjectMeta, StoreError> {
        match kind_of(stat) {
            Ok(StatKind::Object) => {
                let meta = object_meta(stat);
                Ok(match &self.place {
                    ZipPlace::Directory {
                        directory,
                        name,
                        sharing: Sharing::Others,
                    } => restrict_entry_by_list(directory.as_fd(), name.as_bytes(), meta),
                    // A store has restricted the mode already.
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
        let source = ZipSource::Descriptor { fd, opened };
        Ok(ZipFile { source, meta })
    }

    /// `object` as a zip file. Reads its last bytes, which a store on a server has read already
    /// when it opened the object.
    ///
    /// # Errors
    /// Those of [`Object::read_at`].
    pub(super) fn of_object(object: Arc<dyn Object>) -> Result<ZipFile, StoreError> {
        let meta = *object.meta();
        let len = meta.size().min(TAIL_BYTES);
        let mut tail = vec![0; usize::try_from(len).unwrap_or(0)];
        if !tail.is_empty() {
            object.read_at(meta.size() - len, &mut tail)?;
        }
        let source = ZipSource::Object { object, tail };
        Ok(ZipFile { source, meta })
    }

    /// The object, if the zip file is one.
    pub(super) fn object(&self) -> Option<&Arc<dyn Object>> {
        match &self.source {
            ZipSource::Descriptor { .. } => None,
            ZipSource::Object { object, .. } => Some(object),
        }
    }

    /// The descriptor, if this is a file.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            ZipSource::Descriptor { fd, .. } => Some(fd.as_fd()),
            ZipSource::Object { .. } => None,
        }
    }

    /// The last bytes, if the zip file is an object.
    pub(super) fn tail(&self) -> Option<&[u8]> {
        match &self.source {
            ZipSource::Descriptor { .. } => None,
            ZipSource::Object { tail, .. } => Some(tail),
        }
    }

    /// The offset of the last bytes, which are in memory.
    pub(super) fn tail_start(&self) -> u64 {
        let len = self.tail().unwrap_or_default().len() as u64;
        self.meta.size().saturating_sub(len)
    }

    /// Whether the version is still the one that was opened. Unlinking a file does not change that,
    /// so that a replaced file stays readable.
    pub(super) fn is_unchanged(&self) -> io::Result<bool> {
        let ZipSource::Object { object, .. } = &self.source else {
            return self.is_as_read();
        };
        match object.verify() {
            Ok(()) => Ok(true),
            Err(StoreError::Changed { .. }) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Whether bytes that were read just now are of the version that was opened. An object has
    /// checked that itself.
    pub(super) fn is_as_read(&self) -> io::Result<bool> {
        let ZipSource::Descriptor { fd, opened } = &self.source else {
            return Ok(true);
        };
        match fstat(fd) {
            Ok(stat) => Ok(object_meta(&stat).version == *opened),
            // The file was deleted on an NFS server.
            Err(Errno::STALE) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Reads `ranges`; those of an object together.
    ///
    /// # Errors
    /// Those of [`Object::read_ranges`].
    pub(super) fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> io::Result<()> {
        let tail_start = self.tail_start();
        match &self.source {
            ZipSource::Object { object, .. }
                if ranges.iter().any(|range| range.offset_bytes < tail_start) =>
            {
                object.read_ranges(ranges).map_err(io::Error::other)
            }
            _ => ranges
                .iter_mut()
                .try_for_each(|range| self.read_exact_at(range.buf, range.offset_bytes)),
        }
    }
}

impl ReaderAt for ZipFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // Offsets come from the file, and may be larger than the system allows.
        let Some(left) = self.meta.size().checked_sub(offset) else {
            return Ok(0);
        };
        match &self.source {
            ZipSource::Descriptor { fd, .. } if left > 0 => {
                Ok(retry_on_intr(|| pread(fd, &mut *buf, offset))?)
            }
            ZipSource::Descriptor { .. } => Ok(0),
            ZipSource::Object { object, tail } => {
                let len = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let buf = buf.get_mut(..len).unwrap_or_default();
                let at = offset.checked_sub(self.tail_start());
                let kept = at.and_then(|at| tail.get(usize::try_from(at).ok()?..)?.get(..len));
                match kept {
                    Some(kept) => buf.copy_from_slice(kept),
                    None => object.read_at(offset, buf).map_err(io::Error::other)?,
                }
                Ok(len)
            }
        }
    }
}

/// The error for a failed read of the bytes of `key`. An error of a store is passed on, and wrong bytes are damage.
pub(super) fn read_error(key: &Key, error: &io::Error) -> StoreError {
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(StoreError::Changed { .. }) => StoreError::changed(key),
        Some(error) => error.clone(),
        None if error.kind() == io::ErrorKind::InvalidData => {
            StoreError::damaged(key, error.to_string())
        }
        None => StoreError::io(key, error),
    }
}

/// The error for `errno` of the zip file as a whole.
fn refusal(shown: &str, errno: Errno) -> StoreError {
    match errno {
        Errno::ACCESS | Errno::PERM => StoreError::denied(shown, "no permission"),
        // This must not be the absence of a key, which would mean the fill value.
        Errno::NOENT | Errno::NOTDIR => StoreError::problem(shown, "the zip file is gone"),
        other => StoreError::io(shown, &other.into()),
    }
}
