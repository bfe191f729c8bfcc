//! Arrays that were removed.
//!
//! A reader that has an array open takes an absent chunk for fill values. When the array itself is removed, all of its
//! chunks are absent. So a chunk counts as absent only if the document of its array was seen after the chunk was found
//! to be absent. A name that could be a part of a removed array is stale for a while, and absent after that.
//!
//! In a mount with `--rw`, programs remove arrays, and write the chunks of the next array before its document. So names
//! are found and absent as in the store. However, an object at the name of a chunk that was shown decoded or from a
//! shard is stale until a program removes or makes the array's directory through this view.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::fresh::Freshness;
use crate::hierarchy::Node;
use crate::store::Prefix;
use crate::view::chunks::names::ChunkName;
use crate::view::nodes::cache::ShownNodeCache;
use crate::view::nodes::damaged::NameUse;
use crate::view::nodes::directory::NodeDirectory;
use crate::view::nodes::node::{FileForm, ShownArray, ShownNode, may_be_part_of_chunk_key};
use crate::view::options::ViewKind;
use crate::view::tree::Tree;

/// A name that could be a part of a removed array is stale for the time to live, but at least for this long, after the
/// removal was noticed.
const LEAST_STALE: Duration = Duration::from_secs(1);

impl Tree {
    /// The result of `look` for `name` in `array`. Absence counts only if the array's document has not changed.
    ///
    /// # Errors
    /// Those of [`Tree::check_array_of_name`]; those of `look`.
    pub(in crate::view) fn found_in_array<T>(
        &self,
        array: &ShownArray,
        name: &ChunkName,
        look: impl Fn() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        // Read by the old document, a shard of the array that replaced this one looks damaged.
        let is_doubted =
            |found: &Result<_, Error>| matches!(found, Ok(None) | Err(Error::Chunk { .. }));
        let mut found = look();
        if !is_doubted(&found) {
            return found;
        }
        self.in_one_directory(array, || {
            if self.loader.is_local() {
                found = look();
            }
            if is_doubted(&found) {
                self.check_array_of_name(array, name)?;
            }
            found
        })
    }

    /// Checks that the document of `array`, in which `found` is absent, has not changed. The check is left out in a
    /// view that does not depend on documents, which shows the keys of the store. It is left out, too, after a program
    /// has removed the document through the mount, so that the program finds the remains of the array.
    ///
    /// # Errors
    /// Those of [`Tree::check_current`]; [`crate::store::StoreError`] for a key that is too long.
    fn check_array_of_name(&self, array: &ShownArray, found: &ChunkName) -> Result<(), Error> {
        let has_ended = array.has_ended.load(Ordering::Relaxed);
        if !self.depends_on_documents(array.view) || has_ended {
            return Ok(());
        }
        match found {
            ChunkName::Chunk(indices) if array.grid().contains(indices) => {
                let key = array.chunked.stored_key(indices)?;
                self.check_current(array, &key, None)
            }
            ChunkName::Chunk(_) | ChunkName::Directory(_) => {
                self.check_current_after(array, Instant::now())
            }
            ChunkName::Other => Ok(()),
        }
    }

    /// Checks that no array was at the absent `path`, or below it, a moment ago.
    ///
    /// # Errors
    /// [`Error::Stale`] when an array was there; errors of looking for it.
    pub(in crate::view) fn check_no_array_before(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<(), Error> {
        let mut was_array = false;
        for gone in self.shown_from(view, path) {
            self.hierarchy.look_again(&gone.path)?;
            // The node is looked up, not its directory: documents of the v3 draft are below another prefix, and an
            // array of the draft has no directory before it has chunks.
            let node = self.hierarchy.node(&gone.path)?;
            if !matches!(node, Node::Array(_) | Node::Broken(_)) && self.is_gone_lately(&gone) {
                self.forget_array(&gone.node, &gone.path);
                was_array = true;
            }
        }
        if was_array {
            return Err(Error::Stale);
        }
        Ok(())
    }

    /// Whether an array was shown at one of `paths`, and is gone.
    ///
    /// # Errors
    /// Those of looking for it.
    pub(in crate::view) fn has_lost_array(
        &self,
        view: ViewKind,
        paths: &[Prefix],
    ) -> Result<bool, Error> {
        for path in paths {
            let was_shown = self.translated.has(&(view, path.clone()))
                || self.shown_before(view, path).is_some();
            if was_shown && !matches!(self.hierarchy.node(path)?, Node::Array(_) | Node::Broken(_))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether `name`, the first segment of `below`, was part of a chunk's key before the array in `folder` was
    /// removed: another program may be about to write another document, and readers may have the array open.
    ///
    /// # Errors
    /// Those of looking for a node of this name.
    pub(in crate::view) fn was_chunk(
        &self,
        folder: &NodeDirectory,
        (below, name): (&[u8], &[u8]),
        name_use: NameUse,
    ) -> Result<bool, Error> {
        let (view, path) = (folder.resolved.view, &folder.resolved.path);
        if matches!(folder.resolved.node, Node::Array(_) | Node::Broken(_)) {
            return Ok(false);
        }
        let mut segments = below.split(|&byte| byte == b'/');
        let mut was_translated =
            || self.translated.has(&(view, path.clone())) && segments.all(may_be_part_of_chunk_key);
        if self.is_writable() {
            return Ok(name_use == NameUse::Read && was_translated());
        }
        // A reader that has the array open would at any time take a stored object for the decoded chunk that the view
        // showed. A group that took the place of the array has other names, which are looked for.
        let is_looked_for = view == ViewKind::Chunks
            && name_use == NameUse::Absent
            && !matches!(folder.resolved.node, Node::Implicit);
        if !is_looked_for && was_translated() {
            return Ok(true);
        }
        let Some(gone) = self.gone_lately(view, path) else {
            return Ok(false);
        };
        // A chunk that the view showed as it is stored is the same chunk still.
        if gone.form == FileForm::Stored && name_use != NameUse::Absent
            || gone.shown.in_array(name) == ChunkName::Other
        {
            return Ok(false);
        }
        // A group that took the place of the array may have children called `0` and `1`.
        let child = path.key(name)?.to_prefix();
        Ok(matches!(folder.resolved.node, Node::Implicit)
            || matches!(self.hierarchy.node(&child)?, Node::Implicit))
    }

    /// The array that was shown at `path` and is gone, for a while after the mount noticed that.
    fn gone_lately(&self, view: ViewKind, path: &Prefix) -> Option<Arc<ShownArray>> {
        let gone = self.shown_before(view, path)?;
        self.is_gone_lately(&gone).then_some(gone)
    }

    /// Whether `gone`, whose document is absent, was noticed to be gone only a moment ago.
    fn is_gone_lately(&self, gone: &ShownArray) -> bool {
        let Freshness::Checked(time_to_live) = self.options.freshness else {
            return false;
        };
        let noticed = gone.gone_since.get_or_init(Instant::now);
        noticed.elapsed() < time_to_live.max(LEAST_STALE)
    }

    /// The array that was last shown at `path`, in a mount that is read-only.
    fn shown_before(&self, view: ViewKind, path: &Prefix) -> Option<Arc<ShownArray>> {
        let mut shown = self.shown_read_only()?;
        match shown.get(&(view, path.clone())) {
            Some(ShownNode::Array(array)) => Some(Arc::clone(array)),
            _ => None,
        }
    }

    /// The arrays that were last shown at `path` and below it, in a mount that is read-only.
    fn shown_from(&self, view: ViewKind, path: &Prefix) -> Vec<Arc<ShownArray>> {
        let shown = self.shown_read_only();
        shown.map_or_else(Vec::new, |shown| shown.arrays_from(view, path))
    }

    fn shown_read_only(&self) -> Option<MutexGuard<'_, ShownNodeCache>> {
        let lock = || self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.is_writable()).then(lock)
    }
}
