//! The errors of an export.

use std::io;
use std::path::PathBuf;

use crate::error::Error;

/// The reason why one file was not exported.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// Its bytes cannot be written.
    #[error("cannot be written: {0}")]
    Written(io::Error),
    /// It is a directory.
    #[error("this is a directory")]
    IsDirectory,
    /// It is the directory in which an export keeps incomplete files.
    #[error("an export that was interrupted has left this; nothing in it is complete")]
    Unfinished,
    /// No file on disk can have its name.
    #[error("no file on disk can have this name")]
    Name,
}

/// The reason why an export cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is nothing at the path.
    #[error("no such file or directory in this view")]
    Missing,
    /// The path cannot be examined.
    #[error(transparent)]
    Read(#[from] Error),
    /// The directory has entries, which may not be replaced.
    #[error(
        "{}: the directory is not empty; --resume goes on with an export that was interrupted",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// The export that was interrupted was one of other files.
    #[error(
        "{}: the export that was interrupted here was of another store, or had other options; repeat it with the same ones",
        .0.display()
    )]
    Another(PathBuf),
    /// Another export writes to the directory.
    #[error("{}: another export writes to this directory", .0.display())]
    Busy(PathBuf),
    /// The directory cannot be written to.
    #[error("{}: {error}", path.display())]
    Target {
        /// Its path.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl FileError {
    /// Whether no other file can be written either: the disk is full, or must not be written to.
    pub(super) fn ends_all(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let ends = [StorageFull, QuotaExceeded, ReadOnlyFilesystem];
        matches!(self, FileError::Written(error) if ends.contains(&error.kind()))
    }
}
