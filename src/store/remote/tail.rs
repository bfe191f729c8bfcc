//! The last bytes of opened objects, which were read when the objects were opened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// The most memory of all tails. Beyond this they are not kept, and are read again when they are
/// needed.
const MOST_BYTES: u64 = 8 << 20;

/// The memory of all tails of a store.
#[derive(Debug, Default)]
pub(super) struct TailMemory(AtomicU64);

/// The last bytes of one object, or nothing.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Mutex<Option<Kept>>,
    size: u64,
}

/// Bytes that count as memory until this is dropped.
#[derive(Debug)]
struct Kept {
    bytes: Bytes,
    memory: Arc<TailMemory>,
}

impl Tail {
    /// Of an object of which no bytes were read.
    pub(super) fn none() -> Tail {
        Tail {
            kept: Mutex::new(None),
            size: 0,
        }
    }

    /// Keeps the last `bytes` of an object of `size`, if there is memory.
    pub(super) fn new(bytes: Bytes, size: u64, memory: &Arc<TailMemory>) -> Tail {
        let kept = Kept {
            memory: Arc::clone(memory),
            bytes,
        };
        let len = kept.bytes.len() as u64;
        let before = memory.0.fetch_add(len, Ordering::Relaxed);
        let fits = before.saturating_add(len) <= MOST_BYTES;
        Tail {
            // What does not fit is given back by dropping it.
            kept: Mutex::new(fits.then_some(kept)),
            size,
        }
    }

    /// Fills `buf` from `offset_bytes` of the object, if its bytes are here. They are read once, as
    /// the index of a shard is, and given up then, unless they are all of the object.
    pub(super) fn read(&self, offset_bytes: u64, buf: &mut [u8]) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tail) = kept.as_ref() else {
            return false;
        };
        let start = self.size.saturating_sub(tail.bytes.len() as u64);
        let at = offset_bytes
            .checked_sub(start)
            .and_then(|at| usize::try_from(at).ok());
        let end = at.and_then(|at| at.checked_add(buf.len()));
        let Some(bytes) = at.zip(end).and_then(|(at, end)| tail.bytes.get(at..end)) else {
            return false;
        };
        buf.copy_from_slice(bytes);
        if start > 0 {
            *kept = None;
        }
        true
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

    #[test]
    fn the_index_at_the_end_is_read_once_and_a_small_object_often() {
        let memory = Arc::default();
        let tail = Tail::new(Bytes::from_static(b"wxyz"), 10, &memory);
        let mut buf = [0; 3];
        assert!(!tail.read(5, &mut buf), "before the tail");
        assert!(!tail.read(8, &mut buf), "beyond the end");
        assert!(tail.read(7, &mut buf) && &buf == b"xyz");
        assert!(!tail.read(7, &mut buf), "given up");
        assert_eq!(memory.0.load(Ordering::Relaxed), 0);
        let whole = Tail::new(Bytes::from_static(b"wxyz"), 4, &memory);
        assert!(whole.read(0, &mut buf) && whole.read(0, &mut buf));
        assert_eq!(memory.0.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn memory_is_bounded() {
        let memory = Arc::default();
        let part = Bytes::from(vec![0; 1 << 20]);
        let tails: Vec<_> = (0..20)
            .map(|_| Tail::new(part.clone(), 1 << 30, &memory))
            .collect();
        assert_eq!(memory.0.load(Ordering::Relaxed), MOST_BYTES);
        drop(tails);
        assert_eq!(memory.0.load(Ordering::Relaxed), 0);
    }
}
