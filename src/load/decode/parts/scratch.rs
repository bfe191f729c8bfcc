//! Buffers that a thread keeps from one partial decode to the next.
//!
//! Bytes of an earlier decode never reach a reader: each buffer is completely overwritten before it
//! is used.

use std::cell::RefCell;

/// The longest buffer that a thread keeps.
const KEPT_BYTES: usize = 512 << 10;

thread_local! {
    static SCRATCH: RefCell<Scratch> = const {
        RefCell::new(Scratch { encoded: Vec::new(), decoded: Vec::new() })
    };
}

/// Buffers for one partial decode.
#[derive(Default)]
pub(super) struct Scratch {
    /// Bytes as they are stored.
    pub(super) encoded: Vec<u8>,
    /// Bytes of the decoded chunk.
    pub(super) decoded: Vec<u8>,
}

impl Scratch {
    /// Calls `work` with the buffers of this thread.
    pub(super) fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
        // The buffers are taken out, so that a nested call gets new ones.
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

/// The first `len` bytes of `buffer`, which grows where it is shorter. Bytes that it has already stay as they are.
pub(super) fn room(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}
