//! Whether an array is still what its document says.
//!
//! Documents are remembered for a while (`--ttl`), chunks are opened as they are now. An array that is
//! rewritten in between has new chunks under an old document: their bytes would be decoded in another
//! way than they were encoded, and those with new names would be absent, which reads as fill values. So
//! the document is looked at after a chunk was opened, or found to be absent, and before its own text
//! is shown: where it is another one by then, the caller gets [`Error::Stale`], and the next look finds
//! the new one. The kernel looks again by itself.

use std::sync::atomic::Ordering;

use super::View;
use super::shown_node::ShownArray;
use crate::error::Error;
use crate::hierarchy::ArrayNode;
use crate::store::{Prefix, Version};

/// Milliseconds for which the document of an array is not looked at again for its chunks, of which a reader
/// may open ten thousand a second. A reader that opens the new document through the mount within that
/// time has the array looked for again: only one that opens chunks and no document can be late by so much.
const TRUSTED_MS: u64 = 10;

impl View {
    /// Checks that the document of `array` is the one that it was made of, unless that was just done.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is another one, and those of looking at it.
    pub(super) fn check_current(&self, array: &ShownArray) -> Result<(), Error> {
        // The first millisecond is 1: 0 is an array that was never checked.
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

    /// As [`View::check_current`], where the version of the document is known.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is another one.
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

    /// Has the array `node`, shown at `path`, looked for again.
    pub(super) fn forget_array(&self, node: &ArrayNode, path: &Prefix) {
        self.hierarchy.forget(&node.prefix);
        self.hierarchy.forget(&node.document.key.parent());
        self.hierarchy.forget(path);
    }
}
