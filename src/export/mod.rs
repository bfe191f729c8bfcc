//! Writes the files of a view to disk or to another program, without a mount.
//!
//! * `pieces`: the bytes of a file, some pieces of it at once;
//! * `target`: the directory that is written to, where each file is whole or missing;
//! * `tree`: all files below a path, side by side;
//! * `error`: what can go wrong with one file, and with all of them.

mod error;
mod pieces;
mod target;
mod tree;

use std::io;

pub use error::{ExportError, FileError};
pub use tree::{Counters, Export};

use crate::error::Error;
use crate::view::{HeldVnode, VnodeKind};

/// Passes the bytes of `file` to `write`, in their order.
///
/// # Errors
/// [`FileError`] when the file is a directory or gone, cannot be read, or `write` fails.
pub fn write_to(
    file: &HeldVnode,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), FileError> {
    if file.kind() == VnodeKind::Directory {
        return Err(FileError::IsDirectory);
    }
    let opened = file.open()?.ok_or(Error::Stale)?;
    let copy = |_, bytes: &[u8]| bytes.to_vec();
    pieces::for_each(&opened.file, copy, |bytes| {
        write(&bytes).map_err(FileError::Written)
    })
}
