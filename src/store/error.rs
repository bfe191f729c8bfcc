//! The errors of stores, which name a key.

use std::fmt;

use crate::escape::Escaped;

/// Why bytes could not be read. Names the key; the layers above add the array and the chunk.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Not a key: absolute, empty, or with an empty, `.` or `..` segment.
    #[error("{0:?} is not a valid key")]
    InvalidKey(String),
    /// The store denies access, or a symbolic link leaves the store.
    #[error("{}: access denied: {}", Escaped(.key), Escaped(.reason))]
    Denied {
        /// The requested key.
        key: String,
        /// Why access is denied.
        reason: String,
    },
    /// Not a sequence of bytes: a FIFO, a socket, a device, or a prefix.
    #[error("{}: {found}, expected an object", Escaped(.key))]
    NotAnObject {
        /// The requested key.
        key: String,
        /// The kind that was found instead.
        found: &'static str,
    },
    /// The version that was opened is no longer there.
    #[error("{}: changed while it was read", Escaped(.key))]
    Changed {
        /// The requested key.
        key: String,
    },
    /// The object ends before the range does.
    #[error(
        "{}: {len} bytes at {offset} asked for, the object has {size}",
        Escaped(.key)
    )]
    Short {
        /// The requested key.
        key: String,
        /// The first requested byte.
        offset: u64,
        /// The number of requested bytes.
        len: u64,
        /// Bytes that the object has.
        size: u64,
    },
    /// A symbolic link leads back to a prefix that contains it.
    #[error("{}: symbolic links form a loop", Escaped(.key))]
    Loop {
        /// The requested key.
        key: String,
    },
    /// The system failed.
    #[error("{}: {}", Escaped(.key), Escaped(.message))]
    Io {
        /// The requested key.
        key: String,
        /// The message of the system.
        message: String,
        /// The errno, where there is one.
        errno: Option<i32>,
    },
    /// A change that must not be made.
    #[error("{}: {refusal}", Escaped(.key))]
    Refused {
        /// The key of the change.
        key: String,
        /// Why it must not be made.
        refusal: Refusal,
    },
    /// The bytes that hold the object, such as a zip file, are damaged.
    #[error("{}: {}", Escaped(.key), Escaped(.problem))]
    Damaged {
        /// The requested key.
        key: String,
        /// The problem.
        problem: String,
    },
    /// The store cannot list the names below a prefix.
    #[error("{}: its names cannot be listed: {}", Escaped(.key), Escaped(.reason))]
    Unlisted {
        /// The requested prefix.
        key: String,
        /// Why it cannot be listed.
        reason: String,
    },
    /// STORE names something that this build cannot open.
    #[error("{}", Escaped(.0))]
    Unsupported(String),
}

/// Why a change must not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing can be written, because the mount is read-only or ends.
    #[error("nothing is written any more, or ever")]
    ReadOnly,
    /// The file is made by this program, or the directory is.
    #[error("this name cannot be changed")]
    Fixed,
    /// The caller may not write to the object.
    #[error("no permission to write")]
    Denied,
    /// The handle was not opened for writing.
    #[error("not open for writing")]
    NotOpen,
    /// Something has the name.
    #[error("it exists")]
    Exists,
    /// A directory has names in it.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The file has changed.
    #[error("it is not what it was")]
    Gone,
    /// The file would be longer than it may be.
    #[error("the file has a fixed length")]
    TooLong,
    /// The file is shorter than it has to be.
    #[error("it does not have all its bytes, and is not saved")]
    Incomplete,
    /// Files of the mount alone, and files that show something else than their objects, are copied
    /// to other places, not moved there.
    #[error("it can only be copied to this place")]
    OtherPlace,
    /// Like [`Refusal::OtherPlace`], if `mv` would first remove the chunk with the new name, and then still find it
    /// there, because absent chunks are shown as files.
    #[error("a chunk is not moved to the place of another one; copy it there")]
    OtherChunk,
    /// No chunk of the array has this name.
    #[error("the array has no chunk of this name")]
    OutsideGrid,
}

impl StoreError {
    /// A change at `key` that must not be made.
    pub(crate) fn refused(key: impl fmt::Display, refusal: Refusal) -> Self {
        let key = key.to_string();
        StoreError::Refused { key, refusal }
    }

    /// Nothing is at `key`.
    pub(crate) fn absent(key: impl fmt::Display) -> Self {
        StoreError::io(key, &rustix::io::Errno::NOENT.into())
    }

    /// Whether a change failed because nothing is there.
    pub(crate) fn is_absent(&self) -> bool {
        self.has_errno(rustix::io::Errno::NOENT)
    }

    /// Whether a directory was not removed because names are in it.
    pub(crate) fn is_not_empty(&self) -> bool {
        self.has_errno(rustix::io::Errno::NOTEMPTY)
    }

    /// Whether a change failed because something is there.
    pub(crate) fn is_taken(&self) -> bool {
        self.has_errno(rustix::io::Errno::EXIST)
    }

    /// Whether the rights of this process do not suffice.
    pub(crate) fn is_of_rights(&self) -> bool {
        use rustix::io::Errno;
        matches!(self, StoreError::Denied { .. })
            || self.has_errno(Errno::ACCESS)
            || self.has_errno(Errno::PERM)
    }

    /// Whether the medium could not be read, or the server gave no usable answer, so that the object may exist.
    pub(crate) fn is_of_medium(&self) -> bool {
        use rustix::io::Errno;
        matches!(self, StoreError::Io { errno: None, .. })
            || self.has_errno(Errno::IO)
            || self.has_errno(Errno::TIMEDOUT)
    }

    fn has_errno(&self, wanted: rustix::io::Errno) -> bool {
        let StoreError::Io { errno, .. } = self else {
            return false;
        };
        *errno == Some(wanted.raw_os_error())
    }

    /// An I/O error at `key`.
    pub fn io(key: impl fmt::Display, error: &std::io::Error) -> Self {
        StoreError::Io {
            key: key.to_string(),
            message: error.to_string(),
            errno: error.raw_os_error(),
        }
    }

    /// An error at `key` that has no errno.
    pub(crate) fn problem(key: impl fmt::Display, message: impl Into<String>) -> Self {
        StoreError::Io {
            key: key.to_string(),
            message: message.into(),
            errno: None,
        }
    }

    /// The error that the object or file with `key` is damaged.
    pub(crate) fn damaged(key: impl fmt::Display, problem: impl Into<String>) -> Self {
        StoreError::Damaged {
            key: key.to_string(),
            problem: problem.into(),
        }
    }

    /// `key` is not read or changed, for a reason that the user can do something about.
    pub(crate) fn denied(key: impl fmt::Display, reason: impl Into<String>) -> Self {
        StoreError::Denied {
            key: key.to_string(),
            reason: reason.into(),
        }
    }

    /// The version at `key` is gone.
    pub(crate) fn changed(key: impl fmt::Display) -> Self {
        let key = key.to_string();
        StoreError::Changed { key }
    }

    /// `key` names `found` where an object was expected.
    pub(crate) fn not_an_object(key: impl fmt::Display, found: &'static str) -> Self {
        let key = key.to_string();
        StoreError::NotAnObject { key, found }
    }

    /// The key that the error is about; the message where it names no key.
    pub fn subject(&self) -> &str {
        match self {
            StoreError::Denied { key, .. }
            | StoreError::NotAnObject { key, .. }
            | StoreError::Changed { key }
            | StoreError::Short { key, .. }
            | StoreError::Loop { key }
            | StoreError::Io { key, .. }
            | StoreError::Refused { key, .. }
            | StoreError::Damaged { key, .. }
            | StoreError::Unlisted { key, .. }
            | StoreError::InvalidKey(key)
            | StoreError::Unsupported(key) => key,
        }
    }
}

/// The result of a change of names, which does no harm if the file is absent.
pub(crate) fn unless_absent(changed: Result<(), StoreError>) -> Result<(), StoreError> {
    match changed {
        Err(error) if error.is_absent() => Ok(()),
        changed => changed,
    }
}
