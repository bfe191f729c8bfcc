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

/// The bytes that a read gives.
#[derive(Debug)]
pub enum ReadBytes<'a> {
    /// Bytes in memory that this does not own. They are there while the callback runs.
    Shared(&'a [u8]),
    /// The first bytes of a buffer, as many as the number says. The callback may keep them.
    Own(Buffer, usize),
}

impl ReadBytes<'_> {
    /// The same bytes in memory that the caller keeps: in their own buffer if it is little longer than they are,
    /// otherwise in a copy.
    pub fn keep(self) -> ReadBytes<'static> {
        match self {
            ReadBytes::Own(buffer, len) if buffer.capacity() <= len + len / 8 => {
                ReadBytes::Own(buffer, len)
            }
            bytes => {
                let len = bytes.len();
                ReadBytes::Own(Buffer::from(bytes.to_vec()), len)
            }
        }
    }
}

impl Deref for ReadBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            ReadBytes::Shared(bytes) => bytes,
            ReadBytes::Own(buffer, len) => buffer.get(..*len).unwrap_or_default(),
        }
    }
}

impl<'a> From<&'a [u8]> for ReadBytes<'a> {
    fn from(bytes: &'a [u8]) -> ReadBytes<'a> {
        ReadBytes::Shared(bytes)
    }
}

/// A buffer for the bytes of one read. Its contents are arbitrary at first.
pub(in crate::view) enum ReadBuffer {
    /// The buffer that this thread keeps, and the length that is used.
    Short(Vec<u8>, usize),
    /// The scratch buffer that was used last, whose pages are resident, or memory of the caller.
    Long(Buffer),
}

impl ReadBuffer {
    /// Gives the first `len` bytes to `reply`. A short buffer stays with this thread.
    pub(in crate::view) fn give(
        mut self,
        len: usize,
        reply: impl FnOnce(Result<ReadBytes<'_>, Error>),
    ) {
        if let ReadBuffer::Long(buffer) = &mut self {
            let buffer = std::mem::replace(buffer, Buffer::from(Vec::new()));
            return reply(Ok(ReadBytes::Own(buffer, len)));
        }
        reply(Ok(self.get(..len).unwrap_or_default().into()));
    }

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
