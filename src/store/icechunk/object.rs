//! Documents and chunks of a snapshot as objects.

use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::files::{RepositoryFiles, check_rights};
use crate::store::{
    Access, FirstRead, Key, Object, ObjectMeta, ReadRange, ReceivedBytes, StoreError,
};

/// A document or a chunk whose bytes are in memory.
#[derive(Debug)]
pub(super) struct HeldObject {
    pub(super) key: Key,
    pub(super) bytes: Bytes,
    pub(super) meta: ObjectMeta,
}

/// A chunk that is a range of a file of the repository. The file is opened when it is read for the first time, because
/// opening it is a request in many stores.
#[derive(Debug)]
pub(super) struct NativeChunk {
    pub(super) key: Key,
    pub(super) meta: ObjectMeta,
    pub(super) files: Arc<RepositoryFiles>,
    /// The key of the file.
    pub(super) file: Key,
    /// The offset of the chunk in the file.
    pub(super) offset: u64,
    /// The access that all of the repository is shown with, if other users can reach the mount.
    pub(super) shown: Option<Access>,
    pub(super) opened: OnceLock<Arc<dyn Object>>,
}

impl Object for HeldObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.meta.check_range(&self.key, offset_bytes, buf.len())?;
        let start = usize::try_from(offset_bytes).unwrap_or(usize::MAX);
        let found = self
            .bytes
            .get(start..)
            .and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(found.unwrap_or_default());
        Ok(())
    }

    fn receive(&self, ranges: &[Range<u64>]) -> Result<ReceivedBytes, StoreError> {
        let mut received = ReceivedBytes::default();
        for range in ranges {
            let [start, end] = [range.start, range.end]
                .map(|offset| usize::try_from(offset).unwrap_or(usize::MAX));
            let len = end.saturating_sub(start);
            self.meta.check_range(&self.key, range.start, len)?;
            received.push(range.start, self.bytes.slice(start..end));
        }
        Ok(received)
    }

    fn verify(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl NativeChunk {
    fn file(&self) -> Result<&Arc<dyn Object>, StoreError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let end = self.offset.saturating_add(self.meta.size());
        // Chunks have files of their own in most repositories.
        let first = FirstRead::Start(if self.offset == 0 { end } else { 0 });
        let opened = self.files.store.open_reading(&self.file, first)?;
        let missing = || {
            let problem = format!("its file {} is missing", self.file);
            StoreError::damaged(&self.key, problem)
        };
        let opened = opened.ok_or_else(missing)?;
        check_rights(&self.file, &*opened, self.shown)?;
        let size = opened.meta().size();
        if size < end {
            let problem = format!(
                "it ends at byte {end} of {}, which has {size} bytes",
                self.file
            );
            return Err(StoreError::damaged(&self.key, problem));
        }
        Ok(self.opened.get_or_init(|| opened))
    }

    fn check(&self, offset: u64, len: usize) -> Result<(), StoreError> {
        self.meta.check_range(&self.key, offset, len)
    }
}

impl Object for NativeChunk {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.check(offset_bytes, buf.len())?;
        // The sum is at most the length of the file.
        self.file()?.read_at(self.offset + offset_bytes, buf)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        let mut moved = Vec::with_capacity(ranges.len());
        for range in ranges {
            self.check(range.offset_bytes, range.buf.len())?;
            moved.push(ReadRange {
                offset_bytes: self.offset + range.offset_bytes,
                buf: &mut *range.buf,
            });
        }
        self.file()?.read_ranges(&mut moved)
    }

    fn receive(&self, ranges: &[Range<u64>]) -> Result<ReceivedBytes, StoreError> {
        for range in ranges {
            let len = range.end.saturating_sub(range.start);
            self.check(range.start, usize::try_from(len).unwrap_or(usize::MAX))?;
        }
        let moved = ranges.iter();
        let moved: Vec<_> = moved
            .map(|range| self.offset + range.start..self.offset + range.end)
            .collect();
        Ok(self.file()?.receive(&moved)?.moved_back(self.offset))
    }

    fn verify(&self) -> Result<(), StoreError> {
        match self.opened.get() {
            Some(opened) => opened.verify(),
            None => Ok(()),
        }
    }

    fn doubt(&self) {
        if let Some(opened) = self.opened.get() {
            opened.doubt();
        }
    }

    fn as_file(&self) -> Option<&Arc<File>> {
        let file = self.opened.get()?;
        let is_whole = self.offset == 0 && file.meta().size() == self.meta.size();
        is_whole.then(|| file.as_file())?
    }
}
