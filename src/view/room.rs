//! Where bytes of a read are put before they are sent.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use crate::buffers::Buffer;
use crate::error::Error;
use crate::load::Cache;

/// What a thread keeps for short reads.
const SHORT_BYTES: usize = 64 << 10;

thread_local! {
    static SHORT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Room for the bytes of one read; it holds anything at first.
pub(super) enum Room {
    /// Memory that this thread keeps, and how much of it.
    Short(Vec<u8>, usize),
    /// Memory that was used just before, by whatever thread: it is at hand.
    Long(Buffer),
}

impl Room {
    /// Room for `len` bytes.
    ///
    /// # Errors
    /// [`Error::Memory`] when the system has none.
    pub(super) fn new(cache: &Cache, len: usize) -> Result<Room, Error> {
        if len > SHORT_BYTES {
            return Ok(Room::Long(cache.buffers().scratch(len)?));
        }
        let mut bytes = SHORT.take();
        if bytes.len() < len {
            bytes.resize(SHORT_BYTES, 0);
        }
        Ok(Room::Short(bytes, len))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Room::Short(bytes, _) = self {
            SHORT.set(std::mem::take(bytes));
        }
    }
}

impl Deref for Room {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Room::Short(bytes, len) => &bytes[..*len],
            Room::Long(buffer) => buffer,
        }
    }
}

impl DerefMut for Room {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Room::Short(bytes, len) => &mut bytes[..*len],
            Room::Long(buffer) => buffer,
        }
    }
}
