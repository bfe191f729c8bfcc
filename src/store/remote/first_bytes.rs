//! Bytes of opened objects that were read when the objects were opened, such as the index of a
//! shard.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

/// The most memory of all first bytes. First bytes beyond this are not kept, and are read again when they are needed.
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
    /// The offset of the bytes in the object.
    start: u64,
    /// After the bytes up to here were read, the others are no longer needed; `None` if the bytes are the whole object.
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
    /// Keeps `bytes`, which begin at `start` of an object of `size`, if there is memory, until the bytes before `end`
    /// were read.
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
        // Bytes that do not fit release their memory when they are dropped here.
        FirstBytes(Mutex::new(fits.then_some(kept)))
    }

    /// The bytes that are kept, and where they begin in the object.
    pub(super) fn peek(&self) -> Option<(u64, Bytes)> {
        let kept = self.0.lock();
        kept.as_ref().map(|kept| (kept.start, kept.bytes.clone()))
    }

    /// The bytes of each of `ranges`, if all of them are kept.
    pub(super) fn read(&self, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        let mut kept = self.0.lock();
        let first = kept.as_ref()?;
        let parts: Option<Vec<_>> = ranges.iter().map(|range| first.part(range)).collect();
        let read_to = ranges.iter().map(|range| range.end).max();
        if parts.is_some() && first.end.is_some_and(|end| read_to >= Some(end)) {
            *kept = None;
        }
        parts
    }
}

impl Kept {
    fn part(&self, range: &Range<u64>) -> Option<Bytes> {
        let index = |offset: u64| usize::try_from(offset.checked_sub(self.start)?).ok();
        let part = index(range.start)?..index(range.end)?;
        self.bytes.get(part.clone())?;
        Some(self.bytes.slice(part))
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

    fn read(first: &FirstBytes, start: u64) -> Option<Vec<u8>> {
        let wanted = start..start + 3;
        let parts = first.read(&[wanted])?;
        Some(parts.concat())
    }

    #[test]
    fn an_index_is_read_once_and_a_small_object_often() {
        let memory = Arc::default();
        let bytes = Bytes::from_static(b"wxyz");
        let first = FirstBytes::new(bytes.clone(), 6, (10, 10), &memory);
        assert_eq!(read(&first, 5), None, "before them");
        assert_eq!(read(&first, 8), None, "beyond the end");
        assert_eq!(
            read(&first, 6),
            Some(b"wxy".to_vec()),
            "a piece of the index"
        );
        assert_eq!(read(&first, 7), Some(b"xyz".to_vec()));
        assert_eq!(read(&first, 7), None, "given up");
        assert_eq!(memory.0.load(Ordering::Relaxed), 0);
        let at_start = FirstBytes::new(bytes.clone(), 0, (3, 10), &memory);
        assert_eq!(read(&at_start, 0), Some(b"wxy".to_vec()));
        assert_eq!(read(&at_start, 0), None, "given up after the index");
        let whole = FirstBytes::new(bytes, 0, (4, 4), &memory);
        assert_eq!(read(&whole, 1), Some(b"xyz".to_vec()));
        assert_eq!(read(&whole, 1), Some(b"xyz".to_vec()));
        assert_eq!(memory.0.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn several_ranges_are_read_together_or_not_at_all() {
        let first = FirstBytes::new(Bytes::from_static(b"wxyz"), 6, (10, 10), &Arc::default());
        assert!(
            first.read(&[6..8, 9..11]).is_none(),
            "one is beyond the end"
        );
        let parts = first.read(&[8..10, 6..8]).unwrap();
        assert_eq!(parts, ["yz", "wx"]);
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
