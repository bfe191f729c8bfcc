//! Entries that are open.
//!
//! A *stored* entry is a range of the zip file. Its checksum is compared when it is read whole,
//! as chunks and documents are; a range of it cannot be checked.
//!
//! A *deflated* entry is inflated into the reader's buffer when it is read whole, and takes no
//! memory of its own. A range of it is inflated from the start, or from the end of the previous
//! range, so that reading in order costs one pass. Before the first range is returned, one more
//! pass compares the checksum.
//!
//! Where the zip file is an object, each read is a request. Then the local header is read together
//! with the first bytes ([`EntryRead`]), and deflated entries are read in long parts.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use flate2::Crc;
use parking_lot::Mutex;
use rawzip::ReaderAt;

use super::archive::Archive;
use super::entry_read::EntryRead;
use super::extent::{Coding, Extent};
use super::file::read_error;
use super::inflate::{EntryInflater, check_crc};
use crate::store::{Key, Object, ObjectMeta, ReadRange, StoreError};

/// The longest part of a deflated entry that is read at once, if the zip file is an object and the
/// entry is read whole.
const MOST_INPUT_BYTES: u64 = 8 << 20;

/// The longest part that is read at once when ranges of the entry are read. Its memory is held until the last range is
/// read.
const RANGE_INPUT_BYTES: u64 = 256 << 10;

/// An entry of one version of the zip file.
pub(super) struct ZipObject {
    archive: Arc<Archive>,
    /// The number of the entry.
    at: usize,
    key: Key,
    meta: ObjectMeta,
    extent: Extent,
    /// The offset of its bytes, once its local header was read.
    start: OnceLock<u64>,
    /// A panic leaves this valid: an inflater is taken out, and put back only after it succeeded.
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
    /// Opens entry number `at` of `archive`, known as `key`. Reads its local header, which says
    /// where its bytes are, unless that takes a request.
    ///
    /// # Errors
    /// [`StoreError::Changed`], [`StoreError::Damaged`] when the entry is damaged or made in a way
    /// that is not supported.
    pub(super) fn open(
        archive: &Arc<Archive>,
        at: usize,
        key: &Key,
    ) -> Result<Option<ZipObject>, StoreError> {
        let (Some(entry), Some(meta)) = (archive.index.entry(at), archive.meta(at)) else {
            return Ok(None);
        };
        let found = archive.extent(entry, key).and_then(|extent| {
            let start = match archive.file.object() {
                Some(_) => archive.known_start(at),
                None => Some(archive.read_start(at, &extent, key)?),
            };
            Ok((extent, start))
        });
        match found {
            Ok((extent, start)) => Ok(Some(ZipObject {
                archive: Arc::clone(archive),
                at,
                key: key.clone(),
                meta,
                extent,
                start: start.map_or_else(OnceLock::new, OnceLock::from),
                progress: Mutex::default(),
            })),
            Err(error) => {
                // A file that is being written looks damaged.
                archive.check_version(key)?;
                Err(error)
            }
        }
    }

    /// The place and coding of the bytes in the zip file.
    pub(super) fn extent(&self) -> &Extent {
        &self.extent
    }

    /// A read of the bytes as they are stored, to which parts are added.
    pub(super) fn encoded_read<'b>(&self) -> EntryRead<'b> {
        match self.start.get() {
            Some(start) => EntryRead::new(self.extent, *start),
            None => EntryRead::with_header(self.extent),
        }
    }

    /// Ends `read`, after all its ranges were read.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the local header is wrong; and those of reading, because some
    /// bytes may have to be read again.
    pub(super) fn end_read(&self, read: EntryRead<'_>) -> Result<(), StoreError> {
        let Some(header) = read.header() else {
            return Ok(());
        };
        let (archive, key) = (&self.archive, &self.key);
        let start = archive.start(self.at, &self.extent, key, header)?;
        // Another thread may have set the same value.
        let _ = self.start.set(start);
        match read.moved_to(start) {
            Some(again) => self.read_together(again),
            None => Ok(()),
        }
    }

    fn read_together(&self, mut read: EntryRead<'_>) -> Result<(), StoreError> {
        let mut ranges: Vec<_> = read.ranges(self.archive.end_of_entries()).collect();
        let filled = self.archive.file.read_ranges(&mut ranges);
        filled.map_err(|error| self.error(&error))?;
        drop(ranges);
        self.end_read(read)
    }

    /// Reads parts of the bytes as they are stored, each from its offset in the entry.
    fn read_encoded<'b>(
        &self,
        parts: impl Iterator<Item = (u64, &'b mut [u8])>,
    ) -> Result<(), StoreError> {
        let file = &self.archive.file;
        if let (None, Some(start)) = (file.object(), self.start.get()) {
            let mut parts = parts;
            let filled = parts.try_for_each(|(offset, buf)| {
                file.read_exact_at(buf, start.saturating_add(offset))
            });
            return filled.map_err(|error| self.error(&error));
        }
        let mut read = self.encoded_read();
        for (offset, buf) in parts {
            read.add(offset, buf, self.archive.end_of_entries());
        }
        self.read_together(read)
    }

    fn is_whole(&self, offset: u64, buf: &[u8]) -> bool {
        offset == 0 && u64::try_from(buf.len()) == Ok(self.meta.size())
    }

    /// Compares the checksum of all bytes of a stored entry.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it differs.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let mut crc = Crc::new();
        crc.update(bytes);
        check_crc(&crc, self.extent.crc).map_err(|error| self.error(&error))
    }

    fn read_stored(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        let parts = ranges.iter_mut().filter(|range| !range.buf.is_empty());
        self.read_encoded(parts.map(|range| (range.offset_bytes, &mut *range.buf)))?;
        let mut wholes = ranges
            .iter()
            .filter(|range| !range.buf.is_empty() && self.is_whole(range.offset_bytes, range.buf));
        wholes.try_for_each(|range| self.check(range.buf))
    }

    fn read_deflated(&self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        if buf.is_empty() {
            return Ok(());
        }
        if !self.is_whole(offset, buf) {
            return self.read_range(offset, buf);
        }
        let len = self.extent.stored.min(MOST_INPUT_BYTES);
        let is_object = self.archive.file.object().is_some();
        let _memory = is_object.then(|| {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            self.archive.inflating.take(len)
        });
        let inflater = self.inflater(len)?;
        self.inflate_all(inflater, buf)
    }

    /// Inflates all of a deflated entry from its encoded bytes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when they are damaged.
    pub(super) fn inflate(&self, encoded: Vec<u8>, buf: &mut [u8]) -> Result<(), StoreError> {
        self.inflate_all(EntryInflater::with_input(encoded, 0..0), buf)
    }

    fn inflate_all(&self, mut inflater: EntryInflater, buf: &mut [u8]) -> Result<(), StoreError> {
        let file = &self.archive.file;
        let filled = inflater.fill(file, buf);
        let filled = filled.and_then(|()| inflater.finish(file, self.extent.crc));
        filled.map_err(|error| self.error(&error))?;
        self.progress.lock().verified = true;
        Ok(())
    }

    fn read_range(&self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let file = &self.archive.file;
        let mut progress = self.progress.lock();
        if !progress.verified {
            let mut inflater = self.inflater(RANGE_INPUT_BYTES)?;
            let skipped = inflater.skip(file, self.meta.size());
            let skipped = skipped.and_then(|()| inflater.finish(file, self.extent.crc));
            skipped.map_err(|error| self.error(&error))?;
            progress.verified = true;
        }
        let before = progress.at.take().filter(|at| at.produced() <= offset);
        let mut inflater = match before {
            Some(before) => before,
            None => Box::new(self.inflater(RANGE_INPUT_BYTES)?),
        };
        let filled = inflater.skip(file, offset - inflater.produced());
        let filled = filled.and_then(|()| inflater.fill(file, buf));
        filled.map_err(|error| self.error(&error))?;
        if inflater.produced() < self.meta.size() {
            progress.at = Some(inflater);
        }
        Ok(())
    }

    /// An inflater at the start of the entry. If the zip file is an object, up to `most_bytes` are read now.
    fn inflater(&self, most_bytes: u64) -> Result<EntryInflater, StoreError> {
        let stored = self.extent.stored;
        let after = |start: u64, len: u64| {
            let end = start.saturating_add(stored);
            start.saturating_add(len)..end
        };
        if let (None, Some(start)) = (self.archive.file.object(), self.start.get()) {
            return Ok(EntryInflater::new(after(*start, 0)));
        }
        let len = stored.min(most_bytes);
        let mut input = vec![0; usize::try_from(len).unwrap_or(0)];
        self.read_encoded(std::iter::once((0, input.as_mut_slice())))?;
        let start = self.start.get().copied().unwrap_or_default();
        Ok(EntryInflater::with_input(input, after(start, len)))
    }

    /// The error for a failed read of the zip file.
    pub(super) fn error(&self, error: &io::Error) -> StoreError {
        read_error(&self.key, error)
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
        for range in ranges.iter() {
            let (offset, len) = (range.offset_bytes, range.buf.len());
            self.meta.check_range(&self.key, offset, len)?;
        }
        let filled = match self.extent.coding {
            Coding::Stored => self.read_stored(ranges),
            Coding::Deflated => ranges
                .iter_mut()
                .try_for_each(|range| self.read_deflated(range.offset_bytes, range.buf)),
        };
        // The version is checked first, because bytes of another version look damaged.
        self.archive.check_read(&self.key)?;
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
