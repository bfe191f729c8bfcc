//! An open file, pinned to the version that it had when it was opened.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::{Errno, pread};

use super::attributes::object_meta_in;
use super::root::refusal;
use crate::store::{Key, Object, ObjectMeta, ReadRange, StoreError};

/// An open file.
#[derive(Debug)]
pub(super) struct DirObject {
    key: Key,
    fd: OwnedFd,
    /// The generation of the directory that it was opened in.
    generation: u32,
    meta: ObjectMeta,
}

impl DirObject {
    /// `meta` is what is told of `fd`, opened in a directory of `generation`.
    pub(super) fn new(key: Key, fd: OwnedFd, generation: u32, meta: ObjectMeta) -> DirObject {
        DirObject {
            key,
            fd,
            generation,
            meta,
        }
    }

    fn changed(&self) -> StoreError {
        StoreError::Changed {
            key: self.key.to_string(),
        }
    }

    fn failed(&self, errno: Errno) -> StoreError {
        match errno {
            // NFS: the file was deleted on the server.
            Errno::STALE => self.changed(),
            other => refusal(&self.key, other),
        }
    }

    fn short(&self, offset_bytes: u64, buf: &[u8]) -> StoreError {
        StoreError::Short {
            key: self.key.to_string(),
            offset: offset_bytes,
            len: u64::try_from(buf.len()).unwrap_or(u64::MAX),
            size: self.meta.size(),
        }
    }

    /// Fills `buf`, of whichever version the file is by now.
    fn fill(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let end = u64::try_from(buf.len())
            .ok()
            .and_then(|len| offset_bytes.checked_add(len));
        if end.is_none_or(|end| end > self.meta.size()) {
            self.verify()?;
            return Err(self.short(offset_bytes, buf));
        }
        let mut position = offset_bytes;
        let mut rest = &mut *buf;
        while !rest.is_empty() {
            match pread(&self.fd, &mut *rest, position) {
                // The file ends before its size: only truncation explains it.
                Ok(0) => {
                    self.verify()?;
                    return Err(self.short(offset_bytes, buf));
                }
                Ok(count) => {
                    position = position.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                    rest = rest.get_mut(count..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.failed(errno)),
            }
        }
        Ok(())
    }
}

impl Object for DirObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.read_ranges(&mut [ReadRange { offset_bytes, buf }])
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        for range in ranges {
            self.fill(range.offset_bytes, range.buf)?;
        }
        self.verify()
    }

    /// Unlinking changes nothing that a version is, so that a replaced file goes on.
    fn verify(&self) -> Result<(), StoreError> {
        let stat = fstat(&self.fd).map_err(|errno| self.failed(errno))?;
        if object_meta_in(self.generation, &stat).version == self.meta.version {
            Ok(())
        } else {
            Err(self.changed())
        }
    }

    fn as_file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
}
