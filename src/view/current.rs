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

use super::shown_node::ShownArray;
use super::tree::Tree;
use crate::error::{Error, ErrorKind};
use crate::fresh::{Freshness, LastCheck};
use crate::hierarchy::ArrayNode;
use crate::store::{Prefix, Version};

/// For this long after a check, chunks of the array are opened without another check:
/// a reader may open ten thousand a second. A reader that opens the new document through the mount
/// makes the array be looked up again at once, so only a reader that opens chunks and no document
/// can see old metadata for this long.
const TRUSTED: Duration = Duration::from_millis(10);

impl Tree {
    /// The freshness of what is asked for in the course of one listing, or of a few requests that
    /// follow each other closely. A remote store is asked again after `--ttl` only.
    pub(super) fn freshness_in_a_row(&self) -> Freshness {
        match self.options.freshness {
            Freshness::Checked(ttl) if self.loader.is_local() => {
                Freshness::Checked(ttl.min(TRUSTED))
            }
            freshness => freshness,
        }
    }

    /// Checks that the document of `array` has not changed, unless that was checked a moment ago.
    ///
    /// # Errors
    /// [`Error::Stale`] when it has changed, and errors of examining it.
    pub(super) fn check_current(&self, array: &ShownArray) -> Result<(), Error> {
        if !self.may_change(array) || array.last_check.is_within(TRUSTED) {
            return Ok(());
        }
        self.look_at_document(array)
    }

    /// Whether the document of `array` may be another one than the one that was read. One that was removed through the
    /// mount is not looked at.
    pub(super) fn may_change(&self, array: &ShownArray) -> bool {
        !self.options.freshness.is_immutable() && !array.has_ended.load(Ordering::Relaxed)
    }

    /// As [`Tree::check_current`], whenever that was checked.
    ///
    /// # Errors
    /// As [`Tree::check_current`].
    pub(super) fn look_at_document(&self, array: &ShownArray) -> Result<(), Error> {
        let begun = LastCheck::now();
        let node = &array.node;
        let found = self.loader.sources().stat(&node.document.key)?;
        self.check_version(node, &array.path, found.map(|meta| meta.version))?;
        array.last_check.set(&begun);
        Ok(())
    }

    /// As [`Tree::check_current`], for a document whose current version is known.
    ///
    /// # Errors
    /// [`Error::Stale`] when the document has changed.
    pub(super) fn check_version(
        &self,
        node: &ArrayNode,
        path: &Prefix,
        now: Option<Version>,
    ) -> Result<(), Error> {
        let is_same = now == Some(node.document.meta.version);
        if is_same || self.options.freshness.is_immutable() {
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

/// The result of `look`, which is tried again while somebody replaces what it looks at.
pub(in crate::view) fn until_current<T>(look: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    const ATTEMPTS: usize = 16;
    for _ in 1..ATTEMPTS {
        match look() {
            Err(error) if error.kind() == ErrorKind::Stale => {}
            found => return found,
        }
    }
    look()
}
