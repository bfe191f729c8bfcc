//! Buffers that a thread keeps from one read of a part to the next.
//!
//! What they hold from before is never shown: it is written over completely, or not used.

use std::cell::RefCell;

/// What a thread keeps of each buffer.
const KEPT_BYTES: usize = 512 << 10;

thread_local! {
    static SCRATCH: RefCell<Scratch> = const {
        RefCell::new(Scratch { encoded: Vec::new(), decoded: Vec::new() })
    };
}

/// Buffers for a part.
#[derive(Default)]
pub(super) struct Scratch {
    /// Bytes as stored.
    pub(super) encoded: Vec<u8>,
    /// Bytes of the chunk.
    pub(super) decoded: Vec<u8>,
}

impl Scratch {
    /// Calls `work` with the buffers of this thread.
    pub(super) fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
        // Taken: should `work` come here again, it finds others.
        let mut scratch = SCRATCH.take();
        let done = work(&mut scratch);
        for buffer in [&mut scratch.encoded, &mut scratch.decoded] {
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
        SCRATCH.set(scratch);
        done
    }
}

/// The first `len` bytes of `buffer`, made longer where it is shorter. They hold anything.
pub(super) fn room(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}
