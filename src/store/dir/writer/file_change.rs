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
        /// The offset of the data.
        offset: u64,
        /// The new bytes.
        data: &'d [u8],
    },
    /// ftruncate(2) to this many bytes.
    SetLen(u64),
    /// fallocate(2)
    Allocate {
        /// The offset of the space.
        offset: u64,
        /// The length of the space in bytes.
        len: u64,
        /// The kind of the call.
        allocation: Allocation,
    },
}

/// The kinds of fallocate(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// Reserves the space. A part beyond the end of the file becomes part of the file, as zeros.
    Extend,
    /// Makes the bytes of the space 0, and keeps the length of the file.
    Hole,
}

impl FileChange<'_> {
    /// The bytes of a file of `len` bytes that the change overwrites, adds or cuts off.
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

    /// The length of a file of `len` bytes after the change.
    pub fn len_after(&self, len: u64) -> u64 {
        match *self {
            FileChange::Write { data: [], .. } => len,
            FileChange::SetLen(new) => new,
            FileChange::Write { .. } | FileChange::Allocate { .. } => {
                len.max(self.changed_bytes(len).end)
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
