//! One version of the zip file: its central directory, and entries opened by it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rawzip::{
    CompressionMethod, ErrorKind, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ZipArchive, ZipEntry,
    ZipLocator,
};

use super::extent::{Coding, Extent};
use super::file::{ZipFile, ZipPath};
use super::index::{Index, IndexBuilder, IndexEntry};
use super::names;
use crate::store::{Key, ObjectMeta, StoreError, Times, Version};

/// Most bytes that a deflated entry may have when it is inflated.
const MAX_INFLATED_BYTES: u64 = 1 << 30;

/// A byte of a deflate stream expands to at most so many bytes.
const MAX_DEFLATE_RATIO: u64 = 1032;

/// What messages about a local header begin with.
const LOCAL_HEADER: &str = "local header: ";

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

/// The zip file of one version, and what is in it.
#[derive(Debug)]
pub(super) struct Archive {
    zip: ZipArchive<Arc<ZipFile>>,
    pub(super) index: Index,
}

impl Archive {
    /// Reads the central directory.
    ///
    /// # Errors
    /// [`StoreError::Io`]: with a number of the system when it failed, without when the file is
    /// damaged or too large.
    pub(super) fn read(place: &ZipPath, file: ZipFile) -> Result<Archive, StoreError> {
        let shown = &place.shown;
        let size = file.meta.size();
        let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
        let zip = ZipLocator::new()
            .locate_in_reader(Arc::new(file), &mut buffer, size)
            .map_err(|(_, error)| refusal(shown, "", &error))?;
        let mut builder = IndexBuilder::default();
        let mut count: u64 = 0;
        let mut records = zip.entries(&mut buffer);
        let unreadable = |error| refusal(shown, "central directory: ", &error);
        while let Some(record) = records.next_entry().map_err(unreadable)? {
            let pushed = builder.push(&record);
            pushed.map_err(|problem| StoreError::damaged(shown, problem))?;
            count += 1;
        }
        // Files without zip64 count modulo 65536.
        let expected = zip.entries_hint();
        if count & 0xffff != expected & 0xffff {
            let problem = format!("{count} entries in the central directory, {expected} expected");
            return Err(StoreError::damaged(shown, problem));
        }
        let (index, renamed) = builder
            .finish()
            .map_err(|problem| StoreError::damaged(shown, problem))?;
        if let Some(sentence) = renamed {
            log::warn!("{shown}: {sentence}");
        }
        Ok(Archive { zip, index })
    }

    pub(super) fn file(&self) -> &ZipFile {
        self.zip.get_ref()
    }

    /// Attributes of the zip file, as those of a directory.
    pub(super) fn prefix_meta(&self) -> ObjectMeta {
        prefix_meta(&self.file().meta)
    }

    /// Attributes of entry number `at`. Its change time is that of the zip file, so that entries of
    /// a file that is too young to be trusted are not trusted either.
    pub(super) fn meta(&self, at: usize) -> Option<ObjectMeta> {
        let entry = self.index.entry(at)?;
        let file = self.file().meta;
        let mtime = SystemTime::UNIX_EPOCH + Duration::from_secs(entry.seconds.into());
        Some(ObjectMeta {
            version: Version {
                size: entry.wayfinder.uncompressed_size_hint(),
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

    /// Whether the file still is of this version.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it is not.
    pub(super) fn check_version(&self, key: &Key) -> Result<(), StoreError> {
        match self.file().is_unchanged() {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::changed(key)),
            Err(error) => Err(StoreError::io(key, &error)),
        }
    }

    /// Where the bytes of `entry` are. Checks all that can be checked without reading them.
    pub(super) fn extent(&self, entry: &IndexEntry, key: &Key) -> Result<Extent, StoreError> {
        let coding = coding(entry).map_err(|problem| StoreError::damaged(key, problem))?;
        let size = entry.wayfinder.uncompressed_size_hint();
        let stored = entry.wayfinder.compressed_size_hint();
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
        let found = self
            .zip
            .get_entry(entry.wayfinder)
            .map_err(|error| refusal(key, LOCAL_HEADER, &error))?;
        self.check_local_header(entry, key, &found)?;
        let (start, end) = found.compressed_data_range();
        if end > self.zip.directory_offset() {
            let problem = format!("bytes {start}..{end} are not before the central directory");
            return Err(StoreError::damaged(key, problem));
        }
        Ok(Extent {
            bytes: start..end,
            coding,
            crc: found.reader().claim_verifier().crc,
        })
    }

    /// Checks that the local header is one of this entry: a wrong offset must not lead to the bytes
    /// of another.
    fn check_local_header(
        &self,
        entry: &IndexEntry,
        key: &Key,
        found: &ZipEntry<'_, Arc<ZipFile>>,
    ) -> Result<(), StoreError> {
        let name = self.index.name(entry);
        let mut buffer = vec![0; name.len() + 256];
        let mut header = found.local_header(&mut buffer);
        let mut larger;
        if let Err(error) = &header
            && let ErrorKind::BufferTooSmall { required } = *error.kind()
        {
            larger = vec![0; required];
            header = found.local_header(&mut larger);
        }
        let header = header.map_err(|error| refusal(key, LOCAL_HEADER, &error))?;
        let method = header.compression_method().as_u16();
        let local = names::to_key(header.file_path().as_bytes());
        // The remainder are the `~` that were appended to make the key unique.
        let rest = name.strip_prefix(&*local);
        let same_name = rest.is_some_and(|rest| rest.iter().all(|&byte| byte == b'~'));
        if same_name && method == entry.method {
            return Ok(());
        }
        Err(StoreError::damaged(
            key,
            "the local header is that of another entry",
        ))
    }
}

/// How the bytes of `entry` are encoded, or why they are not supported.
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

/// The error for one of the parser, which may be one of the system, with the part of the file that
/// it is about.
fn refusal(key: impl fmt::Display, part: &str, error: &rawzip::Error) -> StoreError {
    let mut errno = None;
    let message = match error.kind() {
        ErrorKind::IO(error) if error.raw_os_error().is_some() => {
            errno = error.raw_os_error();
            error.to_string()
        }
        ErrorKind::MissingEndOfCentralDirectory => {
            "no end of a central directory; the zip file is cut short, or still being written"
                .to_owned()
        }
        _ => error.to_string(),
    };
    let message = format!("{part}{message}");
    if errno.is_none() {
        return StoreError::damaged(key, message);
    }
    StoreError::Io {
        key: key.to_string(),
        message,
        errno,
    }
}
