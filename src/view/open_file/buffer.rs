//! The buffer that the bytes of a read are put into before they are sent.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use crate::buffers::{Buffer, Lender};
use crate::error::Error;
use crate::load::Cache;

/// Size of the buffer that each thread keeps for short reads.
const SHORT_BYTES: usize = 64 << 10;

thread_local! {
    static SHORT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A buffer for the bytes of one read. Its contents are arbitrary at first.
pub(in crate::view) enum ReadBuffer {
    /// The buffer that this thread keeps, and the length that is used.
    Short(Vec<u8>, usize),
    /// A scratch buffer, the one that was used last, whose pages are resident; or memory of the caller.
    Long(Buffer),
}

impl ReadBuffer {
    /// A buffer of `len` bytes, in memory of `lender` if that has as many.
    ///
    /// # Errors
    /// [`Error::Memory`] when the system has none.
    pub(in crate::view) fn new(
        cache: &Cache,
        len: usize,
        lender: Option<Lender>,
    ) -> Result<ReadBuffer, Error> {
        let lent = lender.and_then(|lend| Buffer::of_lent(lend()?, len));
        if let Some(buffer) = lent {
            return Ok(ReadBuffer::Long(buffer));
        }
        if len > SHORT_BYTES {
            return Ok(ReadBuffer::Long(cache.buffers().scratch(len)?));
        }
        let mut bytes = SHORT.take();
        if bytes.len() < len {
            bytes.resize(SHORT_BYTES, 0);
        }
        Ok(ReadBuffer::Short(bytes, len))
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        if let ReadBuffer::Short(bytes, _) = self {
            SHORT.set(std::mem::take(bytes));
        }
    }
}

impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            ReadBuffer::Short(bytes, len) => &bytes[..*len],
            ReadBuffer::Long(buffer) => buffer,
        }
    }
}

impl DerefMut for ReadBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            ReadBuffer::Short(bytes, len) => &mut bytes[..*len],
            ReadBuffer::Long(buffer) => buffer,
        }
    }
}
