//! A range of bytes of a stored object, or of a shard body in the cache.

use super::block::{Block, ENTRY_OVERHEAD_BYTES};
use super::size::to_usize;
use crate::budget::{Holding, Reservation};
use crate::buffers::zeroed;
use crate::error::{Error, FormatError};
use crate::store::{DirWriter, Key, Object, ReadRange, ReceivedBytes, StoreError, StoredFile};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Bytes `offset..offset + len` of an object in one version, or of a block.
#[derive(Debug, Clone)]
pub struct Slice {
    source: SliceSource,
    offset: u64,
    len: u64,
    /// The depth at which holders of this slice reserve memory.
    holding: Holding,
}

#[derive(Debug, Clone)]
enum SliceSource {
    Object {
        object: Arc<dyn Object>,
        name: Arc<str>,
    },
    /// Bytes of the object that were received from the store.
    Received {
        object: Arc<dyn Object>,
        name: Arc<str>,
        bytes: Arc<Received>,
    },
    Body {
        block: Arc<Block>,
        name: Arc<str>,
    },
}

/// Bytes that were received from a store, in the memory into which they were received.
#[derive(Debug)]
pub(super) struct Received {
    bytes: ReceivedBytes,
    _memory: Arc<ReceivedMemory>,
}

/// The memory of bytes that were received, of one object or of several that were requested together.
#[derive(Debug)]
struct ReceivedMemory {
    _reservation: Reservation,
    _held: Option<Held>,
}

/// Bytes that count as held until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl Held {
    /// Adds `bytes` to `all`, unless these would be more than `most`.
    pub(super) fn within(all: &Arc<AtomicU64>, bytes: u64, most: u64) -> Option<Held> {
        let held = Held {
            all: Arc::clone(all),
            bytes,
        };
        let before = all.fetch_add(bytes, Ordering::Relaxed);
        (before.saturating_add(bytes) <= most).then_some(held)
    }

    fn shrink_to(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.all.fetch_sub(less, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Received {
    /// `bytes`, for which `reservation` was made.
    pub(super) fn new(bytes: ReceivedBytes, reservation: Reservation) -> Arc<Received> {
        let memory = ReceivedMemory::new(&[bytes.len()], reservation, None);
        Arc::new(Received {
            bytes,
            _memory: memory,
        })
    }

    /// Like [`Received::new`], for a whole chunk.
    pub(super) fn of_whole(
        bytes: ReceivedBytes,
        reservation: Reservation,
        held: Held,
    ) -> Arc<Received> {
        let memory = ReceivedMemory::new(&[bytes.len()], reservation, Some(held));
        Arc::new(Received {
            bytes,
            _memory: memory,
        })
    }

    /// Like [`Received::of_whole`], for several chunks, whose memory is held until the last of them is dropped.
    pub(super) fn of_several(
        chunks: Vec<ReceivedBytes>,
        reservation: Reservation,
        held: Held,
    ) -> Vec<Arc<Received>> {
        let lens: Vec<u64> = chunks.iter().map(ReceivedBytes::len).collect();
        let memory = ReceivedMemory::new(&lens, reservation, Some(held));
        let each = chunks.into_iter().map(|bytes| Received {
            bytes,
            _memory: Arc::clone(&memory),
        });
        each.map(Arc::new).collect()
    }
}

impl ReceivedMemory {
    /// The part of `reservation` and `held` that bytes of these lengths need.
    fn new(
        lens: &[u64],
        mut reservation: Reservation,
        mut held: Option<Held>,
    ) -> Arc<ReceivedMemory> {
        let bytes: u64 = lens.iter().sum();
        reservation.shrink_to(bytes + ENTRY_OVERHEAD_BYTES * lens.len() as u64);
        if let Some(held) = &mut held {
            held.shrink_to(bytes);
        }
        Arc::new(ReceivedMemory {
            _reservation: reservation,
            _held: held,
        })
    }
}

impl Slice {
    /// All of `object`, called `name` in messages.
    pub fn of_object(object: Arc<dyn Object>, name: Arc<str>) -> Slice {
        let len = object.meta().size();
        Slice {
            source: SliceSource::Object { object, name },
            offset: 0,
            len,
            holding: Holding::NOTHING,
        }
    }

    /// All of the object at `key` in the version that was opened as `stored`. A read fails if the object has changed
    /// since.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it has changed.
    pub fn of_stored(
        writer: &DirWriter,
        key: &Key,
        stored: &StoredFile,
    ) -> Result<Slice, StoreError> {
        let object = writer.object_of(key, &stored.file)?;
        if object.meta().version != stored.meta.version {
            return Err(StoreError::changed(key));
        }
        Ok(Slice::of_object(object, key.to_string().into()))
    }

    /// All of `block`, which was made from the bytes of this slice.
    pub(super) fn replaced_by(&self, block: Arc<Block>) -> Slice {
        let len = block.len() as u64;
        let name = Arc::clone(self.name());
        Slice {
            source: SliceSource::Body { block, name },
            offset: 0,
            len,
            holding: self.holding.and_one(),
        }
    }

    /// The same range of the same object, whose bytes were received.
    pub(super) fn received(self, bytes: Arc<Received>) -> Slice {
        match self.source {
            SliceSource::Object { object, name } => Slice {
                source: SliceSource::Received {
                    object,
                    name,
                    bytes,
                },
                holding: self.holding.and_one(),
                ..self
            },
            _ => self,
        }
    }

    /// `len` bytes at `offset` within this slice; `None` when they pass its end.
    pub fn part(&self, offset: u64, len: u64) -> Option<Slice> {
        Some(Slice {
            source: self.source.clone(),
            offset: self.offset_of(offset, len)?,
            len,
            holding: self.holding,
        })
    }

    /// The offset in the underlying object or block of `len` bytes at `offset` within this slice;
    /// `None` when they pass the end of the slice.
    fn offset_of(&self, offset: u64, len: u64) -> Option<u64> {
        (offset.checked_add(len)? <= self.len).then_some(())?;
        self.offset.checked_add(offset)
    }

    /// The offset of the slice in the underlying object or block.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The length of the slice in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the slice has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The object of which this is a range; `None` if the bytes are in memory.
    pub(super) fn object(&self) -> Option<&Arc<dyn Object>> {
        match &self.source {
            SliceSource::Object { object, .. } => Some(object),
            SliceSource::Received { .. } | SliceSource::Body { .. } => None,
        }
    }

    /// Whether the bytes were received, so that reading them is copying them.
    pub(super) fn is_received(&self) -> bool {
        matches!(self.source, SliceSource::Received { .. })
    }

    /// The object, if the slice is all of one.
    pub fn whole_object(&self) -> Option<&Arc<dyn Object>> {
        match &self.source {
            SliceSource::Object { object, .. }
                if self.offset == 0 && self.len == object.meta().size() =>
            {
                Some(object)
            }
            _ => None,
        }
    }

    /// Whether reading a range costs as much as reading all bytes before it too.
    pub(super) fn is_sequential(&self) -> bool {
        match &self.source {
            SliceSource::Object { object, .. } => object.is_sequential(),
            SliceSource::Received { .. } | SliceSource::Body { .. } => false,
        }
    }

    /// The bytes, if they are in memory already, one after the other.
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.source {
            SliceSource::Object { .. } | SliceSource::Received { .. } => None,
            SliceSource::Body { block, .. } => range_of(block, self.offset, self.len),
        }
    }

    /// Fills `buf` from `offset` within the slice.
    ///
    /// # Errors
    /// [`Error::Store`] when the bytes are gone or cannot be read.
    pub fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), Error> {
        self.read_ranges(&mut [ReadRange { offset_bytes, buf }])
    }

    /// Fills several buffers, each from its offset within the slice. This is one request where the
    /// store supports that.
    ///
    /// # Errors
    /// Those of [`Slice::read_at`].
    pub(super) fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), Error> {
        for range in &mut *ranges {
            let len = range.buf.len() as u64;
            let Some(offset) = self.offset_of(range.offset_bytes, len) else {
                return Err(Error::Store(StoreError::Short {
                    key: self.name().to_string(),
                    offset: range.offset_bytes,
                    len,
                    size: self.len,
                }));
            };
            range.offset_bytes = offset;
            let is_copied = match &self.source {
                SliceSource::Object { .. } => true,
                SliceSource::Received { bytes, .. } => bytes.bytes.read(offset, range.buf),
                SliceSource::Body { block, .. } => range_of(block, offset, len)
                    .map(|bytes| range.buf.copy_from_slice(bytes))
                    .is_some(),
            };
            if !is_copied {
                let name = self.name();
                let problem = format!("{name}: {len} bytes at {offset} are not in memory");
                return Err(Error::internal(problem));
            }
        }
        match &self.source {
            SliceSource::Object { object, .. } => Ok(object.read_ranges(ranges)?),
            SliceSource::Received { .. } | SliceSource::Body { .. } => Ok(()),
        }
    }

    /// Copies all bytes of the slice. The caller must have checked the length and reserved the
    /// memory.
    ///
    /// # Errors
    /// Those of [`Slice::read_at`].
    pub fn read_all(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = zeroed(to_usize(self.len)?)?;
        self.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// The memory of the budget that a holder of this slice holds.
    pub(super) fn holding(&self) -> Holding {
        self.holding
    }

    /// `error` with the name and the range of this slice. Also notes in the store that the bytes
    /// are wrong.
    pub fn error(&self, error: FormatError) -> Error {
        if let SliceSource::Object { object, .. } | SliceSource::Received { object, .. } =
            &self.source
        {
            object.doubt();
        }
        Error::Chunk {
            key: self.name().to_string(),
            start: self.offset,
            end: self.offset.saturating_add(self.len),
            error,
            place: None,
        }
    }

    /// The name of the object, for messages.
    pub fn name(&self) -> &Arc<str> {
        match &self.source {
            SliceSource::Object { name, .. }
            | SliceSource::Received { name, .. }
            | SliceSource::Body { name, .. } => name,
        }
    }
}

/// `len` bytes at `offset`.
fn range_of(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let bytes = bytes.get(usize::try_from(offset).ok()?..)?;
    bytes.get(..usize::try_from(len).ok()?)
}
