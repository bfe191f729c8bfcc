//! Prefetches the next pages of a stored object for a sequential reader.

use super::sequence::{Sequence, Step};
use super::window::Window;
use crate::load::{Loader, Pages};
use crate::sync::{Arc, Mutex, PoisonError};

/// The reads of one handle of one object.
#[derive(Debug, Default)]
pub struct KeyReadahead(Mutex<KeyReadaheadState>);

#[derive(Debug, Default)]
struct KeyReadaheadState {
    sequence: Sequence,
    window: Window,
}

impl KeyReadahead {
    /// Notes a read of `len` bytes at `from` of `pages`, and prefetches if the reader is
    /// sequential. This is called once for each read.
    pub fn advance(&self, loader: &Arc<Loader>, pages: &Arc<Pages>, from: u64, len: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.sequence.step(from, len) == Step::First {
            state.window = Window::default();
        }
        let Some(in_order) = state.sequence.in_order(loader.is_local()) else {
            return;
        };
        if state.window.is_full() {
            return;
        }
        let unread = state.sequence.next().div_ceil(pages.page_bytes());
        let window = Window::chunks(loader, in_order, pages.page_bytes());
        // The window is as long as for a reader of chunks, but no larger than a fraction of the
        // cache.
        let most = loader.cache().budget().limit() / super::window::KEYS_SHARE;
        let window = window.min(most / pages.page_bytes());
        let begin = state.window.planned.max(unread);
        let end = unread.saturating_add(window).min(pages.count());
        if begin < end {
            let prefetch = loader.prefetch_pages(pages, begin..end);
            state.window.extend(end, prefetch);
        }
    }
}
