//! Whether an array is still what its document says.
//!
//! Documents are remembered for a while (`--ttl`), chunks are opened as they are now. An array that is
//! rewritten in between has new chunks under an old document: their bytes would be decoded in another
//! way than they were encoded, and those with new names would be absent, which reads as fill values. So
//! the document is looked at after a chunk was opened, or found to be absent, and before its own text
//! is shown: where it is another one by then, the caller gets [`Error::Stale`], and the next look finds
//! the new one. The kernel looks again by itself.

use super::View;
use crate::error::Error;
use crate::hierarchy::ArrayNode;
use crate::store::{Prefix, Version};

impl View {
    /// Checks that the document of the array `node`, shown at `path`, is the one that it was made of.
    ///
    /// # Errors
    /// [`Error::Stale`] when it is another one, and those of looking at it.
    pub(super) fn check_current(&self, node: &ArrayNode, path: &Prefix) -> Result<(), Error> {
        if self.options.immutable {
            return Ok(());
        }
        let now = self.shared.sources.stat(&node.document.key)?;
        self.check_version(node, path, now.map(|meta| meta.version))
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

/// The answer of `look`, which is asked again when an array turns out to be another one.
///
/// # Errors
/// Those of `look`.
pub(super) fn look_twice<T>(look: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    match look() {
        Err(Error::Stale) => look(),
        found => found,
    }
}
