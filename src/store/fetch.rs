//! Opening an object and reading all of it, in one request where the store supports that.

use std::sync::Arc;

use bytes::Bytes;

use super::{Key, Object, ObjectMeta, ReceivedBytes, StoreError};

/// The bytes of an object that are read first once it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstRead {
    /// So many bytes at the start.
    Start(u64),
    /// So many bytes at the end.
    End(u64),
}

/// The result of [`Store::fetch`](super::Store::fetch).
#[derive(Debug)]
pub struct Fetched {
    /// The current version.
    pub object: Arc<dyn Object>,
    /// Whether all its bytes were read into the buffer. If not, they can be read from `object`, and
    /// the contents of the buffer are unspecified.
    pub is_read: bool,
}

/// The result of [`Store::open_part`](super::Store::open_part).
#[derive(Debug)]
pub struct OpenedPart {
    /// The current version.
    pub object: Arc<dyn Object>,
    /// The bytes of the part, as many as the object has, if they were received when it was opened.
    pub bytes: Option<ReceivedBytes>,
}

/// The attributes of an object, and its first bytes; `None` if nothing is there.
pub type ObjectStart = Option<(ObjectMeta, Bytes)>;

/// The first bytes of `object`, up to `most_bytes`.
///
/// # Errors
/// Those of [`Object::read_at`].
pub(super) fn start_of(
    object: Option<Arc<dyn Object>>,
    most_bytes: u64,
) -> Result<ObjectStart, StoreError> {
    let Some(object) = object else {
        return Ok(None);
    };
    let meta = *object.meta();
    let len = usize::try_from(meta.size().min(most_bytes)).unwrap_or(0);
    let mut start = vec![0; len];
    if len > 0 {
        object.read_at(0, &mut start)?;
    }
    Ok(Some((meta, start.into())))
}

/// The destination of a fetch: memory of the caller, which is allocated once the length is known.
pub trait FetchBuffer {
    /// A buffer of exactly `len` bytes to fill; `None` when there is no memory for it, so that the
    /// object is not read. Called once for each attempt, which discards the buffer of the one
    /// before.
    fn of_len(&mut self, len: u64) -> Option<&mut [u8]>;

    /// Takes all bytes of the object, which a store has received in memory of its own. `false` when
    /// the caller has no memory for them.
    fn receive(&mut self, bytes: ReceivedBytes) -> bool {
        let buf = self.of_len(bytes.len());
        buf.is_some_and(|buf| bytes.read(0, buf))
    }
}

/// One of the requests of a [`Store::fetch_many`](super::Store::fetch_many).
pub struct FetchRequest<'r> {
    /// The object to open.
    pub key: &'r Key,
    /// It is read if it has at most so many bytes.
    pub most_bytes: u64,
    /// Receives its bytes.
    pub buffer: &'r mut (dyn FetchBuffer + Send),
}

impl FetchBuffer for Vec<u8> {
    fn of_len(&mut self, len: u64) -> Option<&mut [u8]> {
        let len = usize::try_from(len).ok()?;
        self.clear();
        self.try_reserve_exact(len).ok()?;
        self.resize(len, 0);
        Some(self)
    }
}

impl Fetched {
    /// Reads all of `object` into `buffer`, if it has at most `most_bytes` and there is memory for
    /// it.
    ///
    /// # Errors
    /// Those of [`Object::read_at`].
    pub fn of_object(
        object: Arc<dyn Object>,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Fetched, StoreError> {
        let size = object.meta().size();
        let buf = if size <= most_bytes {
            buffer.of_len(size)
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
