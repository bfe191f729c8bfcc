//! Memory for compressed bytes that were received from a server and are not inflated yet.

use parking_lot::{Condvar, Mutex};

/// The memory of all compressed bytes of a zip file.
const MOST_BYTES: usize = 16 << 20;

/// Counts the memory of compressed bytes. A caller that holds memory waits only for the server before
/// it releases that memory, so that callers cannot wait for each other in a circle.
#[derive(Debug, Default)]
pub(super) struct InflateMemory {
    taken: Mutex<usize>,
    released: Condvar,
}

/// A part of the memory, until it is dropped.
#[derive(Debug)]
pub(super) struct InflateBytes<'m> {
    memory: &'m InflateMemory,
    bytes: usize,
}

impl InflateMemory {
    /// Waits for `bytes` of memory, or for all of the memory if `bytes` is more than that.
    pub(super) fn take(&self, bytes: usize) -> InflateBytes<'_> {
        let bytes = bytes.min(MOST_BYTES);
        let is_full = |taken: &mut usize| *taken + bytes > MOST_BYTES;
        let mut taken = self.taken.lock();
        self.released.wait_while(&mut taken, is_full);
        *taken += bytes;
        let memory = self;
        InflateBytes { memory, bytes }
    }
}

impl Drop for InflateBytes<'_> {
    fn drop(&mut self) {
        *self.memory.taken.lock() -= self.bytes;
        self.memory.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let (memory, taken) = (InflateMemory::default(), AtomicUsize::new(0));
        let begin = Barrier::new(8);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (memory, taken, begin) = (&memory, &taken, &begin);
                scope.spawn(move || {
                    begin.wait();
                    for _ in 0..100 {
                        let bytes = (number + 1) * (MOST_BYTES / 8 + 1);
                        let part = memory.take(bytes);
                        let before = taken.fetch_add(part.bytes, Ordering::Relaxed);
                        assert!(before + part.bytes <= MOST_BYTES);
                        taken.fetch_sub(part.bytes, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(*memory.taken.lock(), 0);
    }
}
