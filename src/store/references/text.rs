//! The bytes of a set in JSON, one after the other: read in parts, decompressed where they are
//! compressed, and counted.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;
use std::sync::Arc;

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::not_numbers::Masked;
use crate::store::{Object, StoreError};

/// Bytes that are read at once; of an object on a server, in one request.
const PART_BYTES: usize = 4 << 20;

/// The first bytes of a frame of zstd.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The longest window of zstd, as a power of 2.
const MOST_WINDOW_LOG: u32 = 25;

/// The longest text. A longer one could only come from a few compressed bytes.
const MOST_TEXT_BYTES: u64 = 1 << 35;

/// Counts the bytes of a text, and fails where one member is too long. It also keeps the error of the object, of which
/// the parser returns only the message.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Rc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    read: Cell<u64>,
    /// The number of bytes that were read when the current member began.
    begun: Cell<u64>,
    /// The first error of the object.
    failure: RefCell<Option<StoreError>>,
}

impl Progress {
    /// Notes that a member begins.
    pub(super) fn begin_member(&self) {
        self.0.begun.set(self.0.read.get());
    }

    /// The error that ended the reading of the object, if there was one.
    ///
    /// # Errors
    /// The error itself.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.0.failure.borrow().clone().map_or(Ok(()), Err)
    }
}

/// The text in `object`, of which no member is longer than `most_bytes`.
pub(super) fn text_of(
    object: &Arc<dyn Object>,
    most_bytes: u64,
    progress: &Progress,
) -> io::Result<impl BufRead + use<>> {
    let parts = ObjectParts {
        object: Arc::clone(object),
        offset: 0,
        progress: progress.clone(),
    };
    let mut parts = BufReader::with_capacity(PART_BYTES, parts);
    let is_compressed = parts.fill_buf()?.starts_with(&ZSTD_MAGIC);
    let plain: Box<dyn Read> = if is_compressed {
        Box::new(Decompressed::new(parts)?)
    } else {
        Box::new(parts)
    };
    let counted = Counted {
        plain: Masked::new(plain),
        most_bytes,
        progress: progress.clone(),
    };
    Ok(BufReader::with_capacity(64 << 10, counted))
}

/// Bytes of an object in order.
struct ObjectParts {
    object: Arc<dyn Object>,
    offset: u64,
    progress: Progress,
}

impl Read for ObjectParts {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.object.meta().size().saturating_sub(self.offset);
        let len = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let part = buf.get_mut(..len).unwrap_or_default();
        if !part.is_empty()
            && let Err(error) = self.object.read_at(self.offset, part)
        {
            let mut first = self.progress.0.failure.borrow_mut();
            first.get_or_insert_with(|| error.clone());
            return Err(io::Error::other(error));
        }
        self.offset += len as u64;
        Ok(len)
    }
}

/// The decompressed bytes of frames of zstd.
pub(super) struct Decompressed<R> {
    encoded: R,
    context: DCtx<'static>,
    is_between_frames: bool,
}

impl<R: BufRead> Decompressed<R> {
    pub(super) fn new(encoded: R) -> io::Result<Decompressed<R>> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        let limited = context.set_parameter(DParameter::WindowLogMax(MOST_WINDOW_LOG));
        limited.map_err(zstd_error)?;
        Ok(Decompressed {
            encoded,
            context,
            is_between_frames: false,
        })
    }
}

fn zstd_error(code: usize) -> io::Error {
    io::Error::other(format!("zstd: {}", zstd_safe::get_error_name(code)))
}

impl<R: BufRead> Read for Decompressed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            let encoded = self.encoded.fill_buf()?;
            let is_end = encoded.is_empty();
            let mut source = InBuffer::around(encoded);
            let mut target = OutBuffer::around(&mut *buf);
            if is_end && self.is_between_frames {
                return Ok(0);
            }
            let hint = self.context.decompress_stream(&mut target, &mut source);
            self.is_between_frames = hint.map_err(zstd_error)? == 0;
            let (taken, made) = (source.pos(), target.pos());
            self.encoded.consume(taken);
            if made > 0 {
                return Ok(made);
            }
            if is_end {
                let problem = "the compressed bytes end too early";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
            }
        }
    }
}

struct Counted {
    plain: Masked<Box<dyn Read>>,
    most_bytes: u64,
    progress: Progress,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.plain.read(buf)?;
        let Counts { read, begun, .. } = &*self.progress.0;
        read.set(read.get().saturating_add(n as u64));
        let of_member = read.get().saturating_sub(begun.get());
        if of_member > self.most_bytes || read.get() > MOST_TEXT_BYTES {
            let problem = "a member is too long for the memory budget (--cache-size)";
            return Err(io::Error::other(problem));
        }
        Ok(n)
    }
}
