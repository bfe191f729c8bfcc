//! Whether an array is still what its document says.
//!
//! Documents are remembered for a while (`--ttl`), but chunks are opened as they are now. If an
//! array is rewritten in between, its new chunks meet its old document: their bytes would be
//! decoded in the wrong way, and chunks with new names would pass for absent, which reads as fill
//! values. So the document's version is checked after a chunk was opened or found to be absent, and
//! before the document's own text is shown. When it is another version, the caller gets
//! [`Error::Stale`], the kernel repeats its request, and that finds the new document.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::View;
use super::shown_node::ShownArray;
use crate::error::Error;
use crate::hierarchy::ArrayNode;
use crate::store::{Prefix, Version};

/// For this many milliseconds after a check, chunks of the array are opened without another check:
/// a reader may open ten thousand a second. A reader that opens the new document through the mount
/// makes the array be looked up again at once, so only a reader that opens chunks and no document
/// can see old metadata for this long.
const TRUSTED_MS: u64 = 10;

impl View {
    /// How long what the store said is trusted in the course of one listing, or of a few requests
    /// that follow each other closely. A remote store is asked again after `--ttl` only.
    pub(super) fn trusted_for(&self) -> Duration {
        if self.options.immutable {
            Duration::MAX
        } else if self.loader.is_local() {
            self.options.ttl.min(Duration::from_millis(TRUSTED_MS))
        } else {
            self.options.ttl
        }
    }

    /// Checks that the document of `array` has not changed, unless that was checked a moment ago.
    ///
    /// # Errors
    /// [`Error::Stale`] when it has changed, and errors of examining it.
    pub(super) fn check_current(&self, array: &ShownArray) -> Result<(), Error> {
        // Counts from 1: 0 stands for an array that was never checked.
        let now = 1 + u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        let checked = array.checked_ms.load(Ordering::Relaxed);
        let is_trusted = checked != 0 && now.saturating_sub(checked) < TRUSTED_MS;
        if self.options.immutable || is_trusted {
            return Ok(());
        }
        let node = &array.node;
        let found = self.loader.sources().stat(&node.document.key)?;
        self.check_version(node, &array.path, found.map(|meta| meta.version))?;
        array.checked_ms.store(now, Ordering::Relaxed);
        Ok(())
    }

    /// As [`View::check_current`], for a document whose current version is known.
    ///
    /// # Errors
    /// [`Error::Stale`] when the document has changed.
    pub(super) fn check_version(
        &self,
        node: &ArrayNode,
        path: &Prefix,
        now: Option<Version>,
    ) -> Result<(), Error> {
        if now == Some(node.document.meta.version) {
            return Ok(());
        }
        self.forget_array(node, path);
        Err(Error::Stale)
    }

    /// Forgets the array `node`, shown at `path`, so that it is looked up again.
    pub(super) fn forget_array(&self, node: &ArrayNode, path: &Prefix) {
        self.hierarchy.forget(&node.prefix);
        self.hierarchy.forget(&node.document.key.parent());
        self.hierarchy.forget(path);
    }
}
