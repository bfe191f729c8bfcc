//! Whether an array is still what its document says.
//!
//! Documents are remembered for a while (`--ttl`), but chunks are opened in their current version. If an array is
//! rewritten in between, its new chunks meet its old document: their bytes would be decoded in the wrong way, and
//! chunks with new names would pass for absent, which reads as fill values. So the document's version is checked after
//! a chunk was opened or found to be absent, and before the document's own text is shown. If the version has changed,
//! the caller gets [`Error::Stale`], the kernel repeats its request, and the repeated request finds the new document.
//!
//! In a local store, the document is examined each time. In a remote store, one request for the document covers all
//! chunks about which the store had answered before that request began. A chunk needs no request for its document if
//! the store dates the chunk before everything that the mount remembers. An answer about a chunk, perhaps to an earlier
//! mount, may be older than the first answer that gave the current version of the document. Such an answer may be about
//! an earlier array, so the store is asked for the chunk again.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::fresh::{Freshness, LastCheck, Moment};
use crate::hierarchy::ArrayNode;
use crate::store::{HeldDirectory, Key, ObjectMeta, Prefix, Recency, Version};
use crate::view::nodes::node::ShownArray;
use crate::view::tree::Tree;

/// Within one listing, an answer of a local store counts for this long.
const IN_A_ROW: Duration = Duration::from_millis(10);

impl Tree {
    /// The freshness that is required within one listing, or within a few requests that follow each other closely.
    /// Answers of a remote store count for `--ttl`.
    pub(in crate::view) fn freshness_in_a_row(&self) -> Freshness {
        match self.options.freshness {
            Freshness::Checked(ttl) if self.loader.is_local() => {
                Freshness::Checked(ttl.min(IN_A_ROW))
            }
            freshness => freshness,
        }
    }

    /// Calls `work`, for which answers of the store count only if they were requested after the document of `array` was
    /// there.
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

    /// Calls `work`, for which answers of a local store count only if they were requested from now on. Requests to
    /// other stores take too long to be sent for each document.
    pub(in crate::view) fn looking_now<T>(&self, work: impl FnOnce() -> T) -> T {
        if !self.loader.is_local() {
            return work();
        }
        Recency::scope(Some(Instant::now()), work)
    }

    /// Calls `work`, which looks for a chunk of `array` and then checks that its document has not changed. Both are
    /// looked up in the directory that has both of them when `work` begins, even if another directory takes its path
    /// meanwhile.
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

    /// Checks that the document of `array` has not changed, after the store has answered a request for `key`, an object
    /// of the array. `found` is what the store has at `key`.
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
            // The answer may be about an object of an earlier array.
            store.ask_again_for(std::slice::from_ref(key));
            return Err(Error::Stale);
        }
        let is_older = |meta| !Moment::known_to(store).may_precede(meta);
        if found.is_some_and(is_older) {
            return self.look_at_document(array);
        }
        self.check_current_after(array, answer.answered)
    }

    /// Like [`Tree::check_current`], after the store has answered a request for a chunk at `since`.
    ///
    /// # Errors
    /// Those of [`Tree::check_current`].
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
        array.document_checks.cover(since, |begun| {
            Recency::scope(Some(begun), || self.look_at_document(array))
        })
    }

    /// Whether the document of `array` may have changed since it was read. A document that was removed through the view
    /// is not examined: a program that moves an array object by object (`rsync --remove-source-files`) may begin with
    /// the document.
    fn may_change(&self, array: &ShownArray) -> bool {
        !self.options.freshness.is_immutable() && !array.has_ended.load(Ordering::Relaxed)
    }

    /// Checks that the document of `array` has not changed, by the answers of the store that still count.
    ///
    /// # Errors
    /// Those of [`Tree::check_current`].
    fn look_at_document(&self, array: &ShownArray) -> Result<(), Error> {
        let begun = LastCheck::now();
        let node = &array.node;
        let found = self.loader.sources().stat(&node.document.key)?;
        self.check_version(node, &array.path, found.map(|meta| meta.version))?;
        array.last_check.set(&begun);
        Ok(())
    }

    /// Like [`Tree::check_current`], for a document whose current version is known.
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
        self.hierarchy.forget_changed(&node.prefix);
        self.hierarchy.forget(&node.document.key.parent());
        self.hierarchy.forget(path);
    }
}
