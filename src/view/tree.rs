//! The tree of nodes as views show them: the vnode at a path, and the numbers of vnodes.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::SystemTime;

use super::fingerprint::hash;
use super::notes::Notes;
use super::numbers::VnodeNumbers;
use super::options::{Shards, ViewKind, ViewOptions};
use crate::error::Error;
use crate::files::{Writing, Writings};
use crate::fresh::LastCheck;
use crate::hierarchy::Hierarchy;
use crate::load::{Loader, Sources};
use crate::metadata::DocumentName;
use crate::shards::ChunkObject;
use crate::store::{Key, ObjectMeta, Prefix, StatKind, Store, Version};
use crate::view::names::rename_locks::Renames;
use crate::view::nodes::cache::ShownNodeCache;
use crate::view::nodes::node::ShownArray;

/// The most warnings that are remembered, so that they are logged only once.
const KEPT_MESSAGES: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");

/// The nodes of the store as views show them.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) options: ViewOptions,
    pub(super) hierarchy: Arc<Hierarchy>,
    pub(super) loader: Arc<Loader>,
    /// The files that are written through the mount; `None` if it is read-only.
    pub(super) writings: Option<Writings>,
    /// The sources of stored objects of the keys view; `None` if they are those of the loader.
    stored_keys: Option<Sources>,
    pub(super) numbers: VnodeNumbers,
    /// Attributes of the root of the store when it was mounted.
    pub(super) root: ObjectMeta,
    pub(super) shown: Mutex<ShownNodeCache>,
    /// Arrays whose documents were removed through the mount, by their paths.
    ended: Notes<(ViewKind, Prefix), EndedArray>,
    /// The directories of nodes that could not be shown and whose documents were removed through the mount, with the
    /// times of removal.
    damaged: Notes<Prefix, SystemTime>,
    /// Documents that are shown although the store does not have them, and that programs removed. They are not shown
    /// until their node changes, because tar(1) removes a file before it makes it anew.
    unshown: Notes<(ViewKind, Prefix), HashSet<DocumentName>>,
    /// Documents of groups that the mount has stored in directories that programs made, without a program having
    /// written them. These versions are not shown, like any other document that no program has written there.
    pub(super) unasked: Notes<(ViewKind, Key), Version>,
    /// Directories that programs may expect to be groups in the store.
    pub(super) expected_groups: Notes<(ViewKind, Prefix)>,
    pub(super) renames: Renames,
    /// When the documents above files were last checked, in a store that is not local.
    pub(super) recent_checks: Notes<(ViewKind, Key), LastCheck>,
    /// Arrays whose files were not the stored objects when they were last shown, but decoded chunks, or inner chunks of
    /// shards.
    pub(super) translated: Notes<(ViewKind, Prefix)>,
    /// Hashes of the subjects of which a warning was logged.
    said: Notes<u64>,
    /// Arrays of which the store had only copies of their documents when it was mounted.
    only_copied: OnceLock<Vec<Prefix>>,
}

/// An array whose document was removed through the mount.
#[derive(Debug)]
pub(super) struct EndedArray {
    pub(super) array: Arc<ShownArray>,
    /// The document as it was stored.
    pub(super) document: Vec<u8>,
}

/// The most arrays without a document, and removed documents, that are remembered.
const MOST_ENDED: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// The most directories and files that are remembered because documents in them are not shown, because they may be groups, or
/// because of what was last found there: a program that copies a directory may make all directories in it before the first document.
const MOST_MADE: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

impl Tree {
    /// A tree that has shown nothing yet.
    pub(super) fn new(
        options: ViewOptions,
        hierarchy: Arc<Hierarchy>,
        loader: Arc<Loader>,
        root: ObjectMeta,
    ) -> Tree {
        Tree {
            options,
            hierarchy,
            loader,
            writings: None,
            stored_keys: None,
            numbers: VnodeNumbers::default(),
            root,
            shown: Mutex::default(),
            ended: Notes::new(MOST_ENDED),
            damaged: Notes::new(MOST_ENDED),
            unshown: Notes::new(MOST_MADE),
            unasked: Notes::new(MOST_MADE),
            expected_groups: Notes::new(MOST_MADE),
            renames: Renames::default(),
            recent_checks: Notes::new(MOST_MADE),
            translated: Notes::new(MOST_MADE),
            said: Notes::new(KEPT_MESSAGES),
            only_copied: OnceLock::new(),
        }
    }

    /// This tree, with the given sources of stored objects for the keys view.
    #[must_use]
    pub(super) fn with_stored_keys(self, stored_keys: Option<Sources>) -> Tree {
        Tree {
            stored_keys,
            ..self
        }
    }

    /// This tree for a mount with `--rw`. The open files have access to the tree.
    pub(super) fn with_writings(
        self,
        writings: impl FnOnce(&Weak<Tree>) -> Option<Writings>,
    ) -> Arc<Tree> {
        Arc::new_cyclic(|tree| Tree {
            writings: writings(tree),
            ..self
        })
    }

    /// Whether the mount is writable.
    pub(super) fn is_writable(&self) -> bool {
        self.writings.is_some()
    }

    /// Whether the chunks of `array` are written through the mount.
    pub(super) fn writes_chunks(&self, array: &ShownArray) -> bool {
        self.writing(array.view).is_some() && array.unwritable.is_none()
    }

    /// Writes the store's object at `key`, if it is a shard with inner chunks in the journal.
    ///
    /// # Errors
    /// [`Error`] when it cannot be written.
    pub(in crate::view) fn settle(&self, key: &Key) -> Result<(), Error> {
        let writings = self.writings.as_ref();
        writings.map_or(Ok(()), |writings| writings.staging().settle(key))
    }

    /// Like [`Tree::settle`], for all objects below `prefix`.
    ///
    /// # Errors
    /// The first error, after all objects were tried.
    pub(in crate::view) fn settle_below(&self, prefix: &Prefix) -> Result<(), Error> {
        let writings = self.writings.as_ref();
        writings.map_or(Ok(()), |writings| writings.staging().settle_below(prefix))
    }

    /// Whether the journal has inner chunks of shards below `prefix`, so that its directory may not exist yet.
    pub(super) fn has_staged_below(&self, prefix: &Prefix) -> bool {
        let writings = self.writings.as_ref();
        writings.is_some_and(|writings| writings.staging().has_chunks_below(prefix))
    }

    /// The object of the chunk `indices` of `array`, to be read or written; `None` if the mount is read-only.
    ///
    /// # Errors
    /// [`Error::Stale`] when no grid could have such a chunk.
    pub(in crate::view) fn chunk_object(
        &self,
        array: &ShownArray,
        indices: &[u64],
    ) -> Result<Option<ChunkObject>, Error> {
        let what = (&array.node, &array.chunked);
        let writings = self.writings.as_ref();
        let object = writings.map(|writings| ChunkObject::new(writings.staging(), what, indices));
        object.transpose()
    }

    /// The files that are written through `view`; `None` if nothing may be written through it.
    pub(super) fn writing(&self, view: ViewKind) -> Option<&Arc<Writing>> {
        let writings = self.writings.as_ref()?;
        match view {
            ViewKind::Keys => Some(writings.keys()),
            ViewKind::Chunks => Some(writings.chunks()),
            ViewKind::Arrays => None,
        }
    }

    /// Whether the files of `view` are the objects of the store, independent of nodes, in a mount with `--rw`.
    pub(super) fn shows_store(&self, view: ViewKind) -> bool {
        self.is_writable()
            && view == ViewKind::Keys
            && self.options.shards == Shards::Keep
            && self.options.shown_as.is_none()
    }

    /// The sources of the stored objects that `view` shows as they are stored.
    pub(super) fn sources_of(&self, view: ViewKind) -> &Sources {
        let stored = self.stored_keys.as_ref();
        match stored.filter(|_| view == ViewKind::Keys) {
            Some(sources) => sources,
            None => self.loader.sources(),
        }
    }

    /// Notes that the document of an array was removed through the mount.
    pub(super) fn end(&self, array: EndedArray) {
        array.array.has_ended.store(true, Ordering::Relaxed);
        let place = (array.array.view, array.array.path.clone());
        self.ended.put(place, array);
    }

    /// The array whose document was at `key` in `view`, with that document.
    pub(super) fn ended_with(
        &self,
        view: ViewKind,
        key: &Key,
    ) -> Option<(Arc<ShownArray>, Vec<u8>)> {
        let ended = self.ended.lock();
        let mut all = ended.iter().map(|(_, ended)| ended);
        let found =
            all.find(|ended| ended.array.view == view && ended.array.node.document.key == *key)?;
        Some((Arc::clone(&found.array), found.document.clone()))
    }

    /// The array at `path` in `view` whose document was removed.
    pub(super) fn ended(&self, view: ViewKind, path: &Prefix) -> Option<Arc<ShownArray>> {
        let ended = self.ended.lock();
        let found = ended.peek(&(view, path.clone()));
        found.map(|ended| Arc::clone(&ended.array))
    }

    /// Forgets the removed arrays at `path`, because a new node may be there.
    pub(super) fn forget_ended(&self, path: &Prefix) {
        for &view in &self.options.views {
            self.ended.forget(&(view, path.clone()));
        }
        self.damaged.forget(path);
    }

    /// Notes that the document of the node at `path`, which could not be shown, was just removed.
    ///
    /// # Errors
    /// Those of examining its directory.
    pub(super) fn note_damaged(&self, path: &Prefix) -> Result<(), Error> {
        let key = path.to_key();
        let directory = key.map_or(Ok(None), |key| self.stat(&key))?;
        if let Some(directory) = directory {
            // The time is by the clock of the file system, which dates the files that programs write there later.
            self.damaged.put(path.clone(), directory.meta.changed());
        }
        Ok(())
    }

    /// When the document of the node at `path`, which could not be shown, was removed; `None` if a program has made a
    /// file or directory there since.
    pub(super) fn damaged_until(&self, path: &Prefix) -> Option<SystemTime> {
        self.damaged.lock().peek(path).copied()
    }

    /// Notes that a program makes a file or directory in the directory at `path`, which then has more than the remains
    /// of a damaged node.
    pub(super) fn note_new_in(&self, path: &Prefix) {
        let mut damaged = self.damaged.lock();
        if !damaged.is_empty() {
            for above in path.with_ancestors() {
                damaged.pop(&above);
            }
        }
    }

    /// Forgets the removed arrays and documents at and below `path`, because a program has moved another file or
    /// directory there through `view`.
    pub(super) fn forget_removed_below(&self, view: ViewKind, path: &Key) {
        let is_below = |found: &Prefix| found.moved(path, path).is_some();
        (self.translated).forget_where(|(of, found)| *of == view && is_below(found));
        self.ended.forget_where(|(_, found)| is_below(found));
        self.damaged.forget_where(is_below);
        self.unshown.forget_where(|(_, found)| is_below(found));
    }

    /// Hides a document that the mount shows although no program has written it: a program has removed it, or has just
    /// made its directory.
    pub(super) fn unshow(&self, view: ViewKind, path: &Prefix, name: DocumentName) {
        let mut unshown = self.unshown.lock();
        let names = unshown.get_or_insert_mut((view, path.clone()), HashSet::new);
        names.insert(name);
    }

    /// Whether [`Tree::unshow`] hides this document.
    pub(super) fn is_unshown(&self, view: ViewKind, path: &Prefix, name: DocumentName) -> bool {
        if !self.is_writable() {
            return false;
        }
        let unshown = self.unshown.lock();
        let names = unshown.peek(&(view, path.clone()));
        names.is_some_and(|names| names.contains(&name))
    }

    /// Shows a document of the node at `path` again.
    pub(super) fn show_again(&self, path: &Prefix, name: DocumentName) {
        let mut unshown = self.unshown.lock();
        for &view in &self.options.views {
            if let Some(names) = unshown.peek_mut(&(view, path.clone())) {
                names.remove(&name);
            }
        }
    }

    /// Notes that the directory at `path` was made. As in any new directory, there is no document in it until a program
    /// writes one: programs that copy directories fail if they find one.
    pub(super) fn unshow_all(&self, view: ViewKind, path: &Prefix) {
        for name in DocumentName::ALL {
            self.unshow(view, path, name);
        }
    }

    /// Whether the store has a document at `key` that no program has written, and that is not shown.
    pub(super) fn is_unasked(&self, view: ViewKind, key: &Key) -> Result<bool, Error> {
        if !self.is_writable() {
            return Ok(false);
        }
        let noted = self.unasked.lock().peek(&(view, key.clone())).copied();
        let Some(noted) = noted else {
            return Ok(false);
        };
        let now = self.writer()?.stat(key)?;
        Ok(now.is_some_and(|now| now.version == noted))
    }

    /// Notes that the directory `from` was renamed to `to`.
    pub(super) fn rename_expected(&self, view: ViewKind, from: &Key, to: &Key) {
        let mut expected = self.expected_groups.lock();
        let here = expected.iter().filter(|((of, _), ())| *of == view);
        let moved = here.filter_map(|((_, path), ())| Some((path.clone(), path.moved(from, to)?)));
        for (before, after) in moved.collect::<Vec<_>>() {
            expected.pop(&(view, before));
            expected.put((view, after), ());
        }
    }

    /// The attributes of the object at `key`; `None` when it does not exist.
    pub(in crate::view) fn object_meta(&self, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        let stat = self.stat(key)?;
        let object = stat.filter(|stat| stat.kind == StatKind::Object);
        Ok(object.map(|stat| stat.meta))
    }

    /// The paths of arrays of which the store has only copies of their documents, in the consolidated metadata of the
    /// root, which is read once.
    pub(super) fn only_copied(&self) -> &[Prefix] {
        self.only_copied.get_or_init(|| {
            let found = self.hierarchy.only_copied(&Prefix::root());
            found.unwrap_or_else(|error| {
                log::debug!("consolidated metadata is not compared with the documents: {error}");
                Vec::new()
            })
        })
    }

    /// Whether `path`, which has no document, is one of [`Tree::only_copied`] or below one.
    pub(super) fn is_only_copied(&self, path: &Prefix) -> bool {
        let copied = self.only_copied();
        !copied.is_empty() && path.with_ancestors().any(|above| copied.contains(&above))
    }

    /// The store.
    pub(super) fn store(&self) -> &dyn Store {
        &**self.loader.sources().store()
    }

    /// The state that the store shows now, as the text of a file; `None` if its states have no names.
    pub(super) fn snapshot_text(&self) -> Option<Vec<u8>> {
        let snapshot = self.store().snapshot()?;
        Some(format!("{snapshot}\n").into_bytes())
    }

    /// Logs a warning, unless one about the same `subject` was logged before.
    pub(in crate::view) fn warn_once<T: std::hash::Hash>(
        &self,
        subject: &T,
        message: impl FnOnce() -> String,
    ) {
        if self.said.put(hash(subject), ()).is_none() {
            log::warn!("{}", message());
        }
    }

    /// Notes that an earlier writer has left changes in a journal at `prefix`, which is below the root of the store:
    /// that writer had mounted the directory as a store of its own.
    pub(in crate::view) fn note_left(&self, prefix: &Prefix) {
        if prefix.is_root() || !self.is_writable() {
            return;
        }
        self.warn_once(&(prefix, "left"), || {
            format!(
                "{prefix}: a mount of this directory alone has left unsaved changes in its .zarr-mount; zarr-mount \
                 --recover of this directory saves them"
            )
        });
    }

    /// Like [`Tree::warn_once`], for elements that a file leaves out. A caller that reports the outcomes of all files
    /// needs no warnings in the log.
    pub(in crate::view) fn warn_of_omission<T: std::hash::Hash>(
        &self,
        subject: &T,
        message: impl FnOnce() -> String,
    ) {
        if self.options.logs_omissions {
            self.warn_once(subject, message);
        }
    }
}
