//! Google's decoder of Snappy, for one split. It allocates nothing.

#![expect(unsafe_code, reason = "Snappy has no safe interface")]

use snappy_src::{snappy_status_SNAPPY_OK, snappy_uncompress};

/// Decodes one split to all of `out`; `None` when it is not exactly that long.
pub(super) fn undo(split: &[u8], out: &mut [u8]) -> Option<()> {
    let mut written = out.len();
    // SAFETY: the lengths are those of the slices. The library compares the length at the beginning
    // of the split with `written`, which is the room, and checks everything behind it; it is made
    // for hostile bytes, and keeps no state.
    let status = unsafe {
        snappy_uncompress(
            split.as_ptr().cast(),
            split.len(),
            out.as_mut_ptr().cast(),
            &raw mut written,
        )
    };
    (status == snappy_status_SNAPPY_OK && written == out.len()).then_some(())
}
