//! Whether an array is still what its document says.
//!
//! Documents are remembered for a while (`--ttl`), but chunks are opened as they are now. If an
//! array is rewritten in between, its new chunks meet its old document: their bytes would be
//! decoded in the wrong way, and chunks with new names would pass for absent, which reads as fill
//! values. So the document's version is checked after a chunk was opened or found to be absent, and
//! before the document's own text is shown. When it is another version, the caller gets
//! [`Error::Stale`], the kernel repeats its request, and that finds the new document.
//!
//! A directory is asked each time. A remote store is asked for the document once for all chunks of which it had
//! told before that. It need not be asked for a chunk that a bucket dates before all that is remembered. And what was
//! told of a chunk before the array was shown by this document may be of another array, so the store is asked anew.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::fresh::{Freshness, LastCheck, Moment};
use crate::hierarchy::ArrayNode;
use crate::store::{HeldDirectory, Key, ObjectMeta, Prefix, Recency, Version};
use crate::view::nodes::node::ShownArray;
use crate::view::tree::Tree;

/// In the course of one listing, nothing is asked for again for this long.
const IN_A_ROW: Duration = Duration::from_millis(10);

impl Tree {
    /// The freshness of what is asked for in the course of one listing, or of a few requests that
    /// follow each other closely. A remote store is asked again after `--ttl` only.
    pub(in crate::view) fn freshness_in_a_row(&self) -> Freshness {
        match self.options.freshness {
            Freshness::Checked(ttl) if self.loader.is_local() => {
                Freshness::Checked(ttl.min(IN_A_ROW))
            }
            freshness => freshness,
        }
    }

    /// Calls `work`, in which no answer of the store counts that was asked for before `array` was shown by its document.
    pub(in crate::view) fn asking_anew<T>(
        &self,
        array: &ShownArray,
        work: impl FnOnce() -> T,
    ) -> T {
        if self.store().told_at(&array.node.document.key).is_none() {
            return work();
        }
        Recency::scope(Recency::since().max(Some(array.shown_since)), work)
    }

    /// Calls `work`, which looks for a chunk of `array` and then checks that its document has not changed, in the directory
    /// that has both of them at first.
    pub(in crate::view) fn in_one_directory<T>(
        &self,
        array: &ShownArray,
        work: impl FnOnce() -> T,
    ) -> T {
        if self.options.freshness.is_immutable() {
            return work();
        }
        HeldDirectory::scope(&array.enclosing, work)
    }

    /// Checks that the document of `array` has not changed, after the store told what is at `key`, an object of the
    /// array: `found`, or nothing.
    ///
    /// # Errors
    /// [`Error::Stale`] when it has changed, and errors of examining it.
    pub(in crate::view) fn check_current(
        &self,
        array: &ShownArray,
        key: &Key,
        found: Option<&ObjectMeta>,
    ) -> Result<(), Error> {
        let store = self.store();
        if !self.may_change(array) {
            return Ok(());
        }
        let Some(answer) = store.told_at(key) else {
            return self.look_at_document(array);
        };
        if answer.asked < array.shown_since {
            // It may be of another array, which was here before.
            store.ask_again_for(std::slice::from_ref(key));
            return Err(Error::Stale);
        }
        let is_older = |meta| !Moment::known_to(store).may_precede(meta);
        if found.is_some_and(is_older) {
            return self.look_at_document(array);
        }
        self.check_current_after(array, answer.answered)
    }

    /// As [`Tree::check_current`], after the store told something at `since`.
    ///
    /// # Errors
    /// As [`Tree::check_current`].
    pub(in crate::view) fn check_current_after(
        &self,
        array: &ShownArray,
        since: Instant,
    ) -> Result<(), Error> {
        if !self.may_change(array) {
            return Ok(());
        }
        if self.loader.is_local() {
            return self.look_at_document(array);
        }
        array.document_looks.cover(since, |begun| {
            Recency::scope(Some(begun), || self.look_at_document(array))
        })
    }

    /// Whether the document of `array` may be another one than the one that was read. One that was removed through the
    /// view is not looked at: a program that moves an array object by object (`rsync --remove-source-files`) may begin
    /// with the document.
    fn may_change(&self, array: &ShownArray) -> bool {
        !self.options.freshness.is_immutable() && !array.has_ended.load(Ordering::Relaxed)
    }

    /// Checks that the document of `array` has not changed, as far as the store remembers.
    ///
    /// # Errors
    /// As [`Tree::check_current`].
    fn look_at_document(&self, array: &ShownArray) -> Result<(), Error> {
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
    pub(in crate::view) fn check_version(
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
    pub(in crate::view) fn forget_array(&self, node: &ArrayNode, path: &Prefix) {
        self.hierarchy.forget(&node.prefix);
        self.hierarchy.forget(&node.document.key.parent());
        self.hierarchy.forget(path);
    }
}
