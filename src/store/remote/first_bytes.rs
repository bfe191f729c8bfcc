//! Bytes of opened objects that were read when the objects were opened, such as the index of a
//! shard.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::store::ReadRange;

/// The most memory of all first bytes. Beyond this they are not kept, and are read again when they
/// are needed.
const MOST_BYTES: u64 = 8 << 20;

/// The memory of the first bytes of all objects of a store.
#[derive(Debug, Default)]
pub(super) struct FirstMemory(AtomicU64);

/// The bytes of one object that were read when it was opened, or nothing.
#[derive(Debug, Default)]
pub(super) struct FirstBytes(Mutex<Option<Kept>>);

/// Bytes that count as memory until this is dropped.
#[derive(Debug)]
struct Kept {
    bytes: Bytes,
    /// Where they begin in the object.
    start: u64,
    /// Once the bytes up to here were read, the others are not needed any more; `None` where the
    /// bytes are all of the object.
    end: Option<u64>,
    memory: Arc<FirstMemory>,
}

impl FirstMemory {
    /// Whether `len` more bytes would be kept.
    pub(super) fn has_room(&self, len: u64) -> bool {
        self.0.load(Ordering::Relaxed).saturating_add(len) <= MOST_BYTES
    }
}

impl FirstBytes {
    /// Keeps `bytes`, which begin at `start` of an object of `size`, if there is memory, until those
    /// before `end` were read.
    pub(super) fn new(
        bytes: Bytes,
        start: u64,
        (end, size): (u64, u64),
        memory: &Arc<FirstMemory>,
    ) -> FirstBytes {
        let len = bytes.len() as u64;
        let before = memory.0.fetch_add(len, Ordering::Relaxed);
        let kept = Kept {
            bytes,
            start,
            end: (len < size).then_some(end.min(start.saturating_add(len))),
            memory: Arc::clone(memory),
        };
        let fits = before.saturating_add(len) <= MOST_BYTES;
        // What does not fit is given back by dropping it.
        FirstBytes(Mutex::new(fits.then_some(kept)))
    }

    /// Fills the buffers of all `ranges`, if their bytes are here.
    pub(super) fn read(&self, ranges: &mut [ReadRange<'_>]) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = kept.as_ref() else {
            return false;
        };
        let has_all = ranges
            .iter()
            .all(|range| first.part(range.offset_bytes, range.buf.len()).is_some());
        if !has_all {
            return false;
        }
        let mut read_to = 0;
        for range in ranges {
            let len = range.buf.len();
            if let Some(part) = first.part(range.offset_bytes, len) {
                range.buf.copy_from_slice(part);
                read_to = read_to.max(range.offset_bytes.saturating_add(len as u64));
            }
        }
        if first.end.is_some_and(|end| read_to >= end) {
            *kept = None;
        }
        true
    }
}

impl Kept {
    fn part(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..at.checked_add(len)?)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let len = self.bytes.len() as u64;
        self.memory.0.fetch_sub(len, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(first: &FirstBytes, offset_bytes: u64) -> Option<[u8; 3]> {
        let mut buf = [0; 3];
        let range = ReadRange {
            offset_bytes,
            buf: &mut buf,
        };
        first.read(&mut [range]).then_some(buf)
    }

    #[test]
    fn an_index_is_read_once_and_a_small_object_often() {
        let memory = Arc::default();
        let bytes = Bytes::from_static(b"wxyz");
        let first = FirstBytes::new(bytes.clone(), 6, (10, 10), &memory);
        assert_eq!(read(&first, 5), None, "before them");
        assert_eq!(read(&first, 8), None, "beyond the end");
        assert_eq!(read(&first, 6), Some(*b"wxy"), "a piece of the index");
        assert_eq!(read(&first, 7), Some(*b"xyz"));
        assert_eq!(read(&first, 7), None, "given up");
        assert_eq!(memory.0.load(Ordering::Relaxed), 0);
        let at_start = FirstBytes::new(bytes.clone(), 0, (3, 10), &memory);
        assert_eq!(read(&at_start, 0), Some(*b"wxy"));
        assert_eq!(read(&at_start, 0), None, "given up after the index");
        let whole = FirstBytes::new(bytes, 0, (4, 4), &memory);
        assert_eq!(read(&whole, 1), Some(*b"xyz"));
        assert_eq!(read(&whole, 1), Some(*b"xyz"));
        assert_eq!(memory.0.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn several_ranges_are_read_together_or_not_at_all() {
        let first = FirstBytes::new(Bytes::from_static(b"wxyz"), 6, (10, 10), &Arc::default());
        let (mut a, mut b) = ([0; 2], [0; 2]);
        let mut ranges = [(6, &mut a), (9, &mut b)].map(|(offset_bytes, buf)| ReadRange {
            offset_bytes,
            buf: buf.as_mut_slice(),
        });
        assert!(!first.read(&mut ranges), "one is beyond the end");
        let [_, second] = &mut ranges;
        second.offset_bytes = 8;
        assert!(first.read(&mut ranges));
        assert_eq!((&a, &b), (b"wx", b"yz"));
    }

    #[test]
    fn memory_is_bounded() {
        let memory = Arc::<FirstMemory>::default();
        let part = Bytes::from(vec![0; 1 << 20]);
        let kept: Vec<_> = (0..20)
            .map(|_| FirstBytes::new(part.clone(), 0, (1, 1 << 30), &memory))
            .collect();
        assert_eq!(memory.0.load(Ordering::Relaxed), MOST_BYTES);
        assert!(!memory.has_room(1));
        drop(kept);
        assert!(memory.has_room(MOST_BYTES) && !memory.has_room(MOST_BYTES + 1));
    }
}
