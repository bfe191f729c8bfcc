//! An open file, pinned to the version that it had when it was opened.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::io::Errno;

use super::own::FileVersions;
use super::refusal::refusal;
use super::stat::fstat;
use crate::store::{Key, Object, ObjectMeta, ReadRange, StoreError};

/// An open file.
#[derive(Debug)]
pub(super) struct DirObject {
    key: Key,
    file: Arc<File>,
    /// The parts of versions in the directory of the file.
    versions: FileVersions,
    meta: ObjectMeta,
}

impl DirObject {
    /// `meta` are the attributes to report for `file`, which was opened in this directory of the store.
    pub(super) fn new(
        key: Key,
        file: Arc<File>,
        versions: FileVersions,
        meta: ObjectMeta,
    ) -> DirObject {
        DirObject {
            key,
            file,
            versions,
            meta,
        }
    }

    fn failed(&self, error: &io::Error) -> StoreError {
        match Errno::from_io_error(error) {
            // The file was deleted on an NFS server.
            Some(Errno::STALE) => StoreError::changed(&self.key),
            Some(errno) => refusal(&self.key, errno),
            None => StoreError::io(&self.key, error),
        }
    }

    /// Fills `buf` without a check of the version.
    fn fill(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let checked = self.meta.check_range(&self.key, offset_bytes, buf.len());
        let read = checked.map(|()| self.file.read_exact_at(buf, offset_bytes));
        match read {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if error.kind() != ErrorKind::UnexpectedEof => {
                return Err(self.failed(&error));
            }
            // A file that ends before its known size was truncated, which `verify` notices.
            _ => self.verify()?,
        }
        let len = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        Err(self.meta.short(&self.key, offset_bytes, len))
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

    /// Unlinking does not change the version, so that a replaced file stays readable.
    fn verify(&self) -> Result<(), StoreError> {
        let stat = fstat(&self.file).map_err(|errno| self.failed(&errno.into()))?;
        if self.versions.meta(&stat).version == self.meta.version {
            return Ok(());
        }
        Err(StoreError::changed(&self.key))
    }

    fn as_file(&self) -> Option<&Arc<File>> {
        Some(&self.file)
    }
}
