//! Changes of the bytes of a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};

/// A change of the bytes of a file.
#[derive(Debug, Clone, Copy)]
pub enum FileChange<'d> {
    /// pwrite(2)
    Write {
        /// Where the data begin.
        offset: u64,
        /// The new bytes.
        data: &'d [u8],
    },
    /// ftruncate(2) to so many bytes.
    SetLen(u64),
    /// fallocate(2)
    Allocate {
        /// Where the space begins.
        offset: u64,
        /// So many bytes.
        len: u64,
        /// The kind of the call.
        allocation: Allocation,
    },
}

/// The kinds of fallocate(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// Reserves it. What is beyond the end of the file becomes part of it, with the value 0.
    Extend,
    /// Makes its bytes 0, and leaves the file as long as it is.
    Hole,
}

impl FileChange<'_> {
    /// The bytes of a file of `len` bytes that the change gives other values, that it adds, or that it cuts
    /// off.
    pub fn changed_bytes(&self, len: u64) -> Range<u64> {
        match *self {
            FileChange::Write { offset, data } => offset..offset.saturating_add(data.len() as u64),
            FileChange::SetLen(new) => len.min(new)..len.max(new),
            FileChange::Allocate {
                offset,
                len: space,
                allocation,
            } => {
                let end = offset.saturating_add(space);
                match allocation {
                    Allocation::Extend => len..end.max(len),
                    Allocation::Hole => offset.min(len)..end.min(len),
                }
            }
        }
    }

    /// Makes the change in a file.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn apply(&self, file: &File) -> io::Result<()> {
        match *self {
            FileChange::Write { offset, data } => file.write_all_at(data, offset),
            FileChange::SetLen(len) => file.set_len(len),
            FileChange::Allocate {
                offset,
                len,
                allocation,
            } => {
                let flags = match allocation {
                    Allocation::Extend => FallocateFlags::empty(),
                    Allocation::Hole => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                };
                Ok(fallocate(file, flags, offset, len)?)
            }
        }
    }
}
