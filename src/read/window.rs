//! The readahead window, which is how far ahead of a sequential reader chunks are loaded. It is
//! proportional to the bytes that the reader has read in order. So the window opens late, and
//! doubles as the reader goes on (it quadruples in a store that is slow to answer). A reader that
//! stops wastes no more than a small multiple of the bytes that it has read.

use crate::load::tuning::{FIRST_WINDOW_BYTES, FIRST_WINDOW_CHUNKS, GROWTH_FAR, GROWTH_LOCAL};
use crate::load::{Loader, Prefetch};

/// The share of one reader of a stored object in the cache is the cache divided by this.
pub(super) const KEYS_SHARE: u64 = 8;

/// The chunks that are prefetched for one reader.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// One past the number of the last chunk that is planned to be loaded.
    pub(super) planned: u64,
    prefetch: Option<Prefetch>,
}

impl Window {
    /// The number of chunks of `chunk_bytes` that may be prefetched for a reader that has read
    /// `in_order` bytes in order. Together they have no more bytes than `--readahead` allows.
    pub(super) fn chunks(loader: &Loader, in_order: u64, chunk_bytes: u64) -> u64 {
        let growth = if loader.is_local() {
            GROWTH_LOCAL
        } else {
            GROWTH_FAR
        };
        let mut window = in_order.saturating_mul(growth - 1).div_ceil(chunk_bytes);
        if !loader.is_local() {
            window = window.max(FIRST_WINDOW_CHUNKS.min(FIRST_WINDOW_BYTES / chunk_bytes));
        }
        let most = loader.readahead().map(|most| most / chunk_bytes);
        most.map_or(window, |most| window.min(most))
    }

    /// Whether planned loads have not begun yet, so that further ones would only wait.
    pub(super) fn is_full(&self) -> bool {
        let prefetch = self.prefetch.as_ref();
        prefetch.is_some_and(|prefetch| !prefetch.is_begun())
    }

    /// Adds the loads of `prefetch` to the window, whose last chunk is the one before `planned`.
    pub(super) fn extend(&mut self, planned: u64, prefetch: Prefetch) {
        self.planned = planned;
        self.prefetch = Some(prefetch);
    }
}
