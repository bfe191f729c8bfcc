//! One version of the zip file: its central directory, and entries opened by it.

use std::io;
use std::time::{Duration, SystemTime};

use lru::LruCache;
use parking_lot::Mutex;
use rawzip::{CompressionMethod, ReaderAt};

use super::directory::Directory;
use super::extent::{Coding, Extent};
use super::file::{ZipFile, ZipPath, read_error};
use super::index::{Index, IndexEntry};
use super::local_header::{FIXED_BYTES, LocalHeader};
use super::memory::InflateMemory;
use super::names;
use crate::store::{Key, ObjectMeta, StoreError, Times, Version};

/// Most bytes that a deflated entry may have when it is inflated.
const MAX_INFLATED_BYTES: u64 = 1 << 30;

/// The most bytes that one byte of a deflate stream expands to.
const MAX_DEFLATE_RATIO: u64 = 1032;

/// The most entries whose start, the offset of their bytes, is remembered.
const MOST_STARTS: usize = 1 << 14;

/// The attributes `file` of a zip file, as those of a directory.
pub(super) fn prefix_meta(file: &ObjectMeta) -> ObjectMeta {
    let readable = file.mode & 0o444;
    ObjectMeta {
        version: Version {
            size: 0,
            mtime: file.version.mtime,
            inode: 0,
            tag: file.version.fingerprint(),
        },
        // A class that may read the file may search its prefixes.
        mode: readable | (readable >> 2),
        ..*file
    }
}

/// The zip file of one version, and its index.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) file: ZipFile,
    pub(super) index: Index,
    /// The version of OME-Zarr, if the file says that it is an image of it.
    pub(super) ome_version: Option<String>,
    /// The offset of the central directory.
    directory_offset: u64,
    /// The offsets of the bytes of entries, by the numbers of the entries, from their local headers. Reading a header
    /// is a request if the zip file is an object.
    starts: Mutex<LruCache<usize, u64>>,
    pub(super) inflating: InflateMemory,
}

impl Archive {
    /// Reads the central directory.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file is damaged or too large, and those of reading it.
    pub(super) fn read(place: &ZipPath, file: ZipFile) -> Result<Archive, StoreError> {
        let Directory {
            index,
            offset,
            ome_version,
        } = Directory::read(&file, &place.shown)?;
        Ok(Archive {
            file,
            index,
            ome_version,
            directory_offset: offset,
            starts: Mutex::new(LruCache::unbounded()),
            inflating: InflateMemory::default(),
        })
    }

    /// Attributes of the zip file, as those of a directory.
    pub(super) fn prefix_meta(&self) -> ObjectMeta {
        prefix_meta(&self.file.meta)
    }

    /// Attributes of entry number `at`. Its change time is that of the zip file, so that entries of
    /// a file that is too young to be trusted are not trusted either.
    pub(super) fn meta(&self, at: usize) -> Option<ObjectMeta> {
        let entry = self.index.entry(at)?;
        let file = self.file.meta;
        let mtime = SystemTime::UNIX_EPOCH + Duration::from_secs(entry.seconds.into());
        Some(ObjectMeta {
            version: Version {
                size: entry.size,
                mtime: file.version.mtime,
                inode: u64::try_from(at).ok()?,
                tag: file.version.fingerprint(),
            },
            times: Times {
                atime: mtime,
                mtime,
                ctime: file.times.ctime,
            },
            mode: file.mode & 0o666,
            ..file
        })
    }

    /// Checks that the file still is of this version.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it is not.
    pub(super) fn check_version(&self, key: &Key) -> Result<(), StoreError> {
        checked(key, self.file.is_unchanged())
    }

    /// Checks that the bytes that were read just now are of this version.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it is not.
    pub(super) fn check_read(&self, key: &Key) -> Result<(), StoreError> {
        checked(key, self.file.is_as_read())
    }

    /// The facts in the central directory about the bytes of `entry`. Checks everything that can be checked without
    /// reading.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the entry is made in a way that is not supported.
    pub(super) fn extent(&self, entry: &IndexEntry, key: &Key) -> Result<Extent, StoreError> {
        let coding = coding(entry).map_err(|problem| StoreError::damaged(key, problem))?;
        let IndexEntry { size, stored, .. } = *entry;
        let problem = match coding {
            Coding::Stored if stored != size => {
                Some(format!("{stored} bytes stored, {size} expected"))
            }
            Coding::Deflated if size > MAX_INFLATED_BYTES => Some(format!(
                "{size} bytes when inflated, at most {MAX_INFLATED_BYTES} are supported"
            )),
            Coding::Deflated if size > stored.saturating_mul(MAX_DEFLATE_RATIO) => Some(format!(
                "{stored} bytes cannot be inflated to the {size} expected"
            )),
            Coding::Stored | Coding::Deflated => None,
        };
        if let Some(problem) = problem {
            return Err(StoreError::damaged(key, problem));
        }
        let header_len = FIXED_BYTES + self.index.name(entry).len();
        let left = self.directory_offset.checked_sub(entry.header_offset);
        let Some(left) = left.filter(|&left| left >= FIXED_BYTES as u64 && left >= stored) else {
            let problem = "local header: it and the entry are not before the central directory";
            return Err(StoreError::damaged(key, problem));
        };
        Ok(Extent {
            header_offset: entry.header_offset,
            // A name that was encoded is shorter in the file.
            header_len: header_len.min(usize::try_from(left).unwrap_or(header_len)),
            stored,
            coding,
            crc: entry.crc,
        })
    }

    /// The offset of the bytes of entry number `at`, if its local header is known.
    pub(super) fn known_start(&self, at: usize) -> Option<u64> {
        self.starts.lock().get(&at).copied()
    }

    /// Reads the local header of entry number `at`. Returns the offset of its bytes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is not the header of this entry, and those of reading.
    pub(super) fn read_start(
        &self,
        at: usize,
        extent: &Extent,
        key: &Key,
    ) -> Result<u64, StoreError> {
        let mut header = vec![0; extent.header_len];
        let read = self.file.read_exact_at(&mut header, extent.header_offset);
        read.map_err(|error| read_error(key, &error))?;
        self.start(at, extent, key, &header)
    }

    /// The offset of the bytes of entry number `at`, after its local header, with which `header`
    /// begins. Checks that this is the entry's header: a wrong offset must not lead to the bytes of
    /// another.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is not.
    pub(super) fn start(
        &self,
        at: usize,
        extent: &Extent,
        key: &Key,
        header: &[u8],
    ) -> Result<u64, StoreError> {
        let damaged =
            |problem: String| StoreError::damaged(key, format!("local header: {problem}"));
        let header = LocalHeader::parse(header).map_err(damaged)?;
        let entry = self.index.entry(at);
        let name = entry
            .map(|entry| self.index.name(entry))
            .unwrap_or_default();
        let local = header.name.map(|name| {
            let slashed = self.index.separator().slashed(name);
            names::to_key(&slashed).into_owned()
        });
        // The rest of the key are the `~` that were appended to make it unique.
        let rest = local.and_then(|local| name.strip_prefix(&*local));
        let same_name = rest.is_some_and(|rest| rest.iter().all(|&byte| byte == b'~'));
        if !same_name || entry.is_none_or(|entry| entry.method != header.method) {
            let problem = "the local header is that of another entry";
            return Err(StoreError::damaged(key, problem));
        }
        let start = extent.header_offset.saturating_add(header.len);
        let end = start.saturating_add(extent.stored);
        if end > self.directory_offset {
            let problem = format!("bytes {start}..{end} are not before the central directory");
            return Err(StoreError::damaged(key, problem));
        }
        if self.file.object().is_some() {
            let mut starts = self.starts.lock();
            if starts.len() >= MOST_STARTS {
                starts.pop_lru();
            }
            starts.put(at, start);
        }
        Ok(start)
    }

    /// The offset of the central directory, which is the end of all entries.
    pub(super) fn end_of_entries(&self) -> u64 {
        self.directory_offset
    }
}

fn checked(key: &Key, is_same: io::Result<bool>) -> Result<(), StoreError> {
    match is_same {
        Ok(true) => Ok(()),
        Ok(false) => Err(StoreError::changed(key)),
        Err(error) => Err(read_error(key, &error)),
    }
}

/// The coding of the bytes of `entry`, or the reason why it is not supported.
fn coding(entry: &IndexEntry) -> Result<Coding, String> {
    const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
    const PATCHED: u16 = 1 << 5;
    if entry.flags & ENCRYPTED != 0 {
        return Err("encrypted entries are not supported".to_owned());
    }
    if entry.flags & PATCHED != 0 {
        return Err("compressed patched data is not supported".to_owned());
    }
    match CompressionMethod::new(entry.method) {
        CompressionMethod::STORE => Ok(Coding::Stored),
        CompressionMethod::DEFLATE => Ok(Coding::Deflated),
        other => Err(format!(
            "compression method {other} is not supported; methods 0 (stored) and 8 (deflate) are"
        )),
    }
}
