//! An object and all its bytes, in one request where the store can.

use std::sync::Arc;

use super::{Object, StoreError};

/// What [`Store::fetch`](super::Store::fetch) found.
#[derive(Debug)]
pub struct Fetched {
    /// The version that is there.
    pub object: Arc<dyn Object>,
    /// Whether all its bytes are in the room that was given. When not, they can be read from
    /// `object`, and the room holds nothing of use.
    pub is_read: bool,
}

/// Where the bytes of a fetched object go: the caller's own memory, which can be had once the length
/// is known.
pub trait Room {
    /// Memory for exactly `len` bytes, to be filled; `None` when there is none, and the object is
    /// not to be read. Asked once for each try: what was given before is of no use then.
    fn of_len(&mut self, len: u64) -> Option<&mut [u8]>;
}

impl Room for Vec<u8> {
    fn of_len(&mut self, len: u64) -> Option<&mut [u8]> {
        let len = usize::try_from(len).ok()?;
        self.clear();
        self.try_reserve_exact(len).ok()?;
        self.resize(len, 0);
        Some(self)
    }
}

impl Fetched {
    /// Reads all of `object` into `room`, if it has at most `most_bytes` and there is room.
    ///
    /// # Errors
    /// As [`Object::read_at`].
    pub fn of_object(
        object: Arc<dyn Object>,
        most_bytes: u64,
        room: &mut dyn Room,
    ) -> Result<Fetched, StoreError> {
        let size = object.meta().size();
        let buf = if size <= most_bytes {
            room.of_len(size)
        } else {
            None
        };
        let is_read = buf.is_some();
        if let Some(buf) = buf {
            object.read_at(0, buf)?;
        }
        Ok(Fetched { object, is_read })
    }
}
