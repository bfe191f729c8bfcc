//! The central directory, read from its end.
//!
//! The last bytes of an object are in memory, and hold all of a short directory. The rest of a
//! longer one is read in long windows, because each window is a request; most need only one.

use std::cell::RefCell;
use std::fmt;
use std::io;

use rawzip::{
    ErrorKind, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipLocator,
};

use super::file::ZipFile;
use super::index::{Index, IndexBuilder};
use super::names::Separator;
use crate::notice::TOLD;
use crate::store::StoreError;

/// The longest part of the directory of an object that is read at once.
const WINDOW_BYTES: u64 = 8 << 20;

/// The central directory.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) index: Index,
    /// Its offset in the zip file: all entries are before it.
    pub(super) offset: u64,
    /// The version of OME-Zarr in the comment of the zip file.
    pub(super) ome_version: Option<String>,
}

/// The length of the end of the directory, before the comment.
const END_BYTES: u64 = 22;
/// The longest comment.
const MOST_COMMENT_BYTES: u64 = 0xffff;

impl Directory {
    /// Reads the directory of `file`, which is called `shown`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file is damaged or too large, and those of reading it.
    pub(super) fn read(file: &ZipFile, shown: &str) -> Result<Directory, StoreError> {
        if file.tail().is_none() {
            return Directory::parse(file, &ZipLocator::new(), file.meta.size(), shown);
        }
        let reader = WindowedReader::new(file);
        let parsed = Directory::parse(&reader, &reader.locator(), file.meta.size(), shown);
        reader.end()?;
        parsed
    }

    fn parse(
        file: impl ReaderAt,
        locator: &ZipLocator,
        size: u64,
        shown: &str,
    ) -> Result<Directory, StoreError> {
        let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
        let zip = locator
            .locate_in_reader(file, &mut buffer, size)
            .map_err(|(_, error)| refusal(shown, "", &error))?;
        let mut count: u64 = 0;
        let mut collect = |separator| {
            let mut builder = IndexBuilder::new(separator);
            let mut records = zip.entries(&mut buffer);
            let unreadable = |error| refusal(shown, "central directory: ", &error);
            count = 0;
            while let Some(record) = records.next_entry().map_err(unreadable)? {
                let pushed = builder.push(&record);
                pushed.map_err(|problem| StoreError::damaged(shown, problem))?;
                count += 1;
            }
            Ok(builder)
        };
        let mut builder = collect(Separator::Slash)?;
        if builder.has_only_backslashes() {
            log::warn!(
                target: TOLD,
                "{shown}: its names have backslashes and no slash, and are read as if they had slashes"
            );
            builder = collect(Separator::Backslash)?;
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
        let offset = zip.directory_offset();
        let comment_offset = zip.eocd_offset().saturating_add(END_BYTES);
        let comment_len = size.saturating_sub(comment_offset).min(MOST_COMMENT_BYTES);
        let mut comment = vec![0; usize::try_from(comment_len).unwrap_or(0)];
        // The version is only shown to people, so an error of reading it is ignored.
        let read = zip.get_ref().read_exact_at(&mut comment, comment_offset);
        Ok(Directory {
            index,
            offset,
            ome_version: read.ok().and_then(|()| ome_version(&comment)),
        })
    }
}

/// The version of OME-Zarr in the comment of an image in one file, which is JSON up to a NUL (RFC 9 of OME-NGFF).
fn ome_version(comment: &[u8]) -> Option<String> {
    let json = comment.split(|&byte| byte == 0).next()?;
    let json: serde_json::Value = serde_json::from_slice(json).ok()?;
    let version = json.get("ome")?.get("version")?.as_str()?;
    let is_version = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    (version.len() <= 32 && version.chars().all(is_version)).then(|| version.to_owned())
}

/// Whether `file` begins like a zip file, or ends like one that other data was prepended to.
///
/// # Errors
/// Those of reading it.
pub(super) fn looks_like_zip(file: &ZipFile) -> io::Result<bool> {
    let size = file.meta.size();
    if size < 4 {
        return Ok(false);
    }
    match file.tail() {
        None => Ok(begins_like_zip(file)? || ends_like_zip(file)?),
        // Reading the start takes a request.
        Some(tail) => Ok(has_end(tail) || begins_like_zip(file)?),
    }
}

fn begins_like_zip(file: &ZipFile) -> io::Result<bool> {
    /// A local header, or the end of an empty zip file.
    const STARTS: [&[u8; 4]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
    let mut start = [0; 4];
    file.read_exact_at(&mut start, 0)?;
    Ok(STARTS.contains(&&start))
}

/// Whether the end of a central directory is in `tail`. The directory itself is not examined.
fn has_end(tail: &[u8]) -> bool {
    match ZipLocator::new().locate_in_slice(tail) {
        Ok(_) => true,
        Err((_, error)) => !matches!(error.kind(), ErrorKind::MissingEndOfCentralDirectory),
    }
}

fn ends_like_zip(file: &ZipFile) -> io::Result<bool> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    match ZipLocator::new().locate_in_reader(file, &mut buffer, file.meta.size()) {
        Ok(_) => Ok(true),
        Err((_, error)) => match error.into_kind() {
            ErrorKind::IO(error) if error.raw_os_error().is_some() => Err(error),
            _ => Ok(false),
        },
    }
}

/// Reads an object in windows.
struct WindowedReader<'f> {
    file: &'f ZipFile,
    /// The offset of the window, and its bytes.
    window: RefCell<(u64, Vec<u8>)>,
    /// The error of a failed read. The parser takes some failed reads for the end of the file.
    failure: RefCell<Option<StoreError>>,
}

impl<'f> WindowedReader<'f> {
    fn new(file: &'f ZipFile) -> WindowedReader<'f> {
        WindowedReader {
            file,
            window: RefCell::default(),
            failure: RefCell::default(),
        }
    }

    /// A search for the end of the directory in the bytes that are in memory.
    fn locator(&self) -> ZipLocator {
        let in_memory = self.file.meta.size() - self.file.tail_start();
        ZipLocator::new().max_search_space(in_memory)
    }

    /// Ends reading.
    ///
    /// # Errors
    /// The error of the first read that failed.
    fn end(self) -> Result<(), StoreError> {
        self.failure.into_inner().map_or(Ok(()), Err)
    }

    fn fetch(&self, range: std::ops::Range<u64>) -> io::Result<Vec<u8>> {
        let len = usize::try_from(range.end - range.start).unwrap_or(0);
        let mut bytes = vec![0; len];
        let read = self.file.read_exact_at(&mut bytes, range.start);
        if let Err(error) = &read {
            let failure = error.get_ref().and_then(|error| error.downcast_ref());
            let mut first = self.failure.borrow_mut();
            *first = first.take().or_else(|| failure.cloned());
        }
        read.map(|()| bytes)
    }
}

impl ReaderAt for WindowedReader<'_> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let tail_start = self.file.tail_start();
        if offset >= tail_start {
            return self.file.read_at(buf, offset);
        }
        let mut window = self.window.borrow_mut();
        let is_inside = (window.0..window.0 + window.1.len() as u64).contains(&offset);
        if !is_inside {
            let end = tail_start.min(offset.saturating_add(WINDOW_BYTES));
            // The memory of the previous window is released first.
            *window = (0, Vec::new());
            *window = (offset, self.fetch(offset..end)?);
        }
        let at = usize::try_from(offset - window.0).unwrap_or(usize::MAX);
        let found = window.1.get(at..).unwrap_or_default();
        let len = found.len().min(buf.len());
        let (Some(found), Some(buf)) = (found.get(..len), buf.get_mut(..len)) else {
            return Ok(0);
        };
        buf.copy_from_slice(found);
        Ok(len)
    }
}

/// The error for `error` of the parser, which may be one of the system. `part` is the part of the
/// file that it is about.
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
