//! An entry, opened.
//!
//! A *stored* entry is a range of the zip file. Its checksum is compared when it is read whole,
//! as chunks and documents are; a range of it cannot be checked.
//!
//! A *deflated* entry is inflated into the reader's buffer when it is read whole, and takes no
//! memory of its own. A range of it is inflated from the start, or from the end of the range read
//! before: reading in order costs one pass. Before the first range is returned, one more pass
//! compares the checksum.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flate2::Crc;
use rawzip::ReaderAt;

use super::archive::Archive;
use super::extent::{Coding, Extent};
use super::inflate::{EntryInflater, check_crc};
use crate::store::{Key, Object, ObjectMeta, ReadRange, StoreError};

/// An entry of one version of the zip file.
pub(super) struct ZipObject {
    archive: Arc<Archive>,
    key: Key,
    meta: ObjectMeta,
    extent: Extent,
    progress: Mutex<InflateProgress>,
}

/// The state of a deflated entry that is read in ranges.
#[derive(Default)]
struct InflateProgress {
    verified: bool,
    /// The inflater at the end of the last range; boxed, because most entries are read whole.
    at: Option<Box<EntryInflater>>,
}

impl ZipObject {
    /// Opens entry number `at` of `archive`, known as `key`: reads its local header, which says where its bytes
    /// are.
    ///
    /// # Errors
    /// [`StoreError::Changed`], [`StoreError::Io`] when the entry is damaged or made in a way
    /// that is not supported.
    pub(super) fn open(
        archive: &Arc<Archive>,
        at: usize,
        key: &Key,
    ) -> Result<Option<ZipObject>, StoreError> {
        let (Some(entry), Some(meta)) = (archive.index.entry(at), archive.meta(at)) else {
            return Ok(None);
        };
        match archive.extent(entry, key) {
            Ok(extent) => Ok(Some(ZipObject {
                archive: Arc::clone(archive),
                key: key.clone(),
                meta,
                extent,
                progress: Mutex::default(),
            })),
            Err(error) => {
                // A file that is being written looks damaged.
                archive.check_version(key)?;
                Err(error)
            }
        }
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let file = self.archive.file();
        let whole = offset == 0 && u64::try_from(buf.len()) == Ok(self.meta.size());
        match self.extent.coding {
            _ if buf.is_empty() => Ok(()),
            Coding::Stored => {
                file.read_exact_at(buf, self.extent.bytes.start.saturating_add(offset))?;
                if !whole {
                    return Ok(());
                }
                let mut crc = Crc::new();
                crc.update(buf);
                check_crc(&crc, self.extent.crc)
            }
            Coding::Deflated if whole => {
                let mut inflater = self.start();
                inflater.fill(file, buf)?;
                inflater.finish(file, self.extent.crc)?;
                self.lock().verified = true;
                Ok(())
            }
            Coding::Deflated => self.read_range(offset, buf),
        }
    }

    fn read_range(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let file = self.archive.file();
        let mut progress = self.lock();
        if !progress.verified {
            let mut inflater = self.start();
            inflater.skip(file, self.meta.size())?;
            inflater.finish(file, self.extent.crc)?;
            progress.verified = true;
        }
        let before = progress.at.take().filter(|at| at.produced() <= offset);
        let mut inflater = before.unwrap_or_else(|| Box::new(self.start()));
        inflater.skip(file, offset - inflater.produced())?;
        inflater.fill(file, buf)?;
        if inflater.produced() < self.meta.size() {
            progress.at = Some(inflater);
        }
        Ok(())
    }

    /// Fills the buffer of `range` without a check of the version.
    fn fill(&self, range: &mut ReadRange<'_>) -> Result<(), StoreError> {
        let offset = range.offset_bytes;
        self.meta.check_range(&self.key, offset, range.buf.len())?;
        let read = self.read(offset, range.buf);
        read.map_err(|error| StoreError::io(&self.key, &error))
    }

    fn start(&self) -> EntryInflater {
        EntryInflater::new(self.extent.bytes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, InflateProgress> {
        // A panic leaves it valid: an inflater is taken out, and put back only after it succeeded.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Object for ZipObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.read_ranges(&mut [ReadRange { offset_bytes, buf }])
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        let filled = ranges.iter_mut().try_for_each(|range| self.fill(range));
        // The version is checked first, because bytes of another version look damaged.
        self.verify()?;
        filled
    }

    fn verify(&self) -> Result<(), StoreError> {
        self.archive.check_version(&self.key)
    }

    fn is_sequential(&self) -> bool {
        self.extent.coding == Coding::Deflated
    }
}

impl fmt::Debug for ZipObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZipObject")
            .field("key", &self.key)
            .field("extent", &self.extent)
            .finish_non_exhaustive()
    }
}
