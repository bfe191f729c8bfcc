//! How far ahead of a reader in order chunks are loaded: as far as it has read in order, times a
//! factor. So the window opens late, doubles as the reader goes on (and grows fourfold where each
//! request to the store is dear), and costs one who stops no more than it has read.

use crate::load::tuning::{GROWTH_FAR, GROWTH_LOCAL};
use crate::load::{Loader, Prefetch};

/// The part of the cache that is filled ahead of one reader of a stored object.
pub(super) const KEYS_SHARE: u64 = 8;

/// What is loaded ahead of one reader.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// The number behind that of the last chunk that is loaded, or will be.
    pub(super) planned: u64,
    prefetch: Option<Prefetch>,
}

impl Window {
    /// Chunks of `chunk_bytes` that may be loaded ahead of a reader that has read `in_order` bytes
    /// in order: as many as fit a size that was chosen (`--readahead`).
    pub(super) fn chunks(loader: &Loader, in_order: u64, chunk_bytes: u64) -> u64 {
        let growth = if loader.is_local() {
            GROWTH_LOCAL
        } else {
            GROWTH_FAR
        };
        let window = in_order.saturating_mul(growth - 1).div_ceil(chunk_bytes);
        let most = loader.readahead().map(|most| most / chunk_bytes);
        most.map_or(window, |most| window.min(most))
    }

    /// Whether what was planned has not even begun: more would only wait.
    pub(super) fn is_full(&self) -> bool {
        let prefetch = self.prefetch.as_ref();
        prefetch.is_some_and(|prefetch| !prefetch.is_begun())
    }

    /// Plans what `prefetch` loads, up to the chunk before `planned`.
    pub(super) fn extend(&mut self, planned: u64, prefetch: Prefetch) {
        self.planned = planned;
        self.prefetch = Some(prefetch);
    }
}
