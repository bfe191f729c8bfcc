//! Vectors of zeros whose allocation may fail: a plain `vec![0; len]` ends the process when the
//! system has no memory to give (`ulimit -v`).

#![expect(
    unsafe_code,
    reason = "the standard library has no fallible vec![0; len]"
)]

use std::alloc::{Layout, alloc_zeroed};
use std::ptr;

/// The system has no memory to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the system has no memory for {needed} bytes; raise its limit (ulimit -v) or lower --cache-size"
)]
pub struct NoMemory {
    /// The requested number of bytes.
    pub needed: usize,
}

/// `len` zeros, as `vec![0; len]`.
///
/// # Errors
/// [`NoMemory`].
pub fn zeroed(len: usize) -> Result<Vec<u8>, NoMemory> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let failed = NoMemory { needed: len };
    let layout = Layout::array::<u8>(len).map_err(|_| failed)?;
    // SAFETY: the layout is not of size zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(failed);
    }
    // SAFETY: the global allocator gave `len` bytes, all of them written, for this layout, which is
    // that of a box of so many bytes, and no other value owns them.
    let bytes = unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(start, len)) };
    Ok(bytes.into_vec())
}

/// An empty vector with room for `capacity` bytes.
///
/// # Errors
/// [`NoMemory`].
pub fn with_room(capacity: usize) -> Result<Vec<u8>, NoMemory> {
    let mut bytes = Vec::new();
    let reserved = bytes.try_reserve_exact(capacity);
    reserved.map_err(|_| NoMemory { needed: capacity })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_those_of_a_vector() {
        for len in [0, 1, 4096, 3 << 20] {
            let mut bytes = zeroed(len).unwrap();
            assert_eq!(bytes, vec![0; len]);
            bytes.push(1);
            assert_eq!(bytes.len(), len + 1);
        }
    }

    #[test]
    fn more_memory_than_any_machine_has_is_an_error() {
        for len in [usize::MAX, usize::MAX / 2, usize::MAX / 4] {
            assert_eq!(zeroed(len), Err(NoMemory { needed: len }));
            assert_eq!(with_room(len), Err(NoMemory { needed: len }));
        }
    }
}
