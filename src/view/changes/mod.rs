//! Changes through a writable mount: from vnodes and names to the open files of [`crate::files`].
//!
//! | file | contents |
//! |---|---|
//! | this one | opening for writing, new files, removals, attributes, syncs |
//! | `rename` | renames and links: of open files, of vnode numbers, and of everything remembered about paths |
//! | `rename_locks` | locks that make a rename one step for every thread that resolves names meanwhile |
//! | `mapped_owners` | changes through a mount that shows other owners or modes than the store has |
//!
//! The effect of a rename on open files is in `files::names`, and the effect on numbers in `numbers::renamed`.

pub(in crate::view) mod mapped_owners;
pub(in crate::view) mod rename;
pub(in crate::view) mod rename_locks;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::forms::{FormedFile, Place};
use super::options::ViewKind;
use super::tree::Tree;
use super::vnode::{CONTROL, ChunkPlace, Vnode, VnodeAttributes, VnodeKind};
use super::{LookupResult, OpenedVnode, View, VnodeId};
use crate::dtype::FillValue;
use crate::error::Error;
use crate::files::{FileAttributes, HandleAccess, KeyHandle, ShownFile, Syncer, Writing};
use crate::metadata::Target;
use crate::store::{
    Detail, DirWriter, Key, NewAttributes, NewFile, Prefix, Refusal, StoreError, unless_absent,
};
use crate::view::chunks::names::ChunkName;
use crate::view::listing::segment::Segment;
use crate::view::listing::stored_chunks::StoredChunks;
use crate::view::nodes::node::ShownArray;
use crate::view::open_file::FileContent;
use rename_locks::{checked, close_again};

/// The attributes that a caller changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeChange {
    /// The new length, in bytes.
    pub size: Option<u64>,
    /// Mode, owner and times.
    pub attributes: NewAttributes,
}

impl Tree {
    /// The attributes of the file at `key` in a writable mount, if the file shows the bytes of its object.
    pub(super) fn written_attributes(
        &self,
        writing: &Writing,
        key: &Key,
    ) -> Result<Option<VnodeAttributes>, Error> {
        Ok(self.written_file(writing.shown(key, self.object_meta(key)?)?))
    }

    /// The attributes of a file that shows the bytes of its object; `None` where there is no such file.
    pub(super) fn written_file(&self, shown: ShownFile) -> Option<VnodeAttributes> {
        let meta = shown.meta?;
        let own = meta.version.fingerprint();
        let fingerprint = shown.fingerprint.unwrap_or(own);
        Some(self.writable(&meta, meta.size(), fingerprint))
    }

    /// The attributes of a listed object.
    pub(super) fn listed_object(
        &self,
        view: ViewKind,
        key: &Key,
        meta: &crate::store::ObjectMeta,
    ) -> Option<VnodeAttributes> {
        let Some(writing) = self.writing(view) else {
            return Some(self.object(meta));
        };
        self.written_file(writing.shown(key, Some(*meta)).ok()?)
    }

    /// The attributes of an open file.
    pub(super) fn of_handle(&self, (found, fingerprint): (FileAttributes, u64)) -> VnodeAttributes {
        match found {
            FileAttributes::Object(meta) => self.writable(&meta, meta.size(), fingerprint),
            FileAttributes::Shown(attributes) => VnodeAttributes::of_clean(attributes, fingerprint),
        }
    }
}

impl View {
    /// The written files of the view that shows `vnode`.
    pub(super) fn writing(&self, vnode: &Vnode) -> Result<&Arc<Writing>, Error> {
        if !self.is_writable() {
            return Err(refused(vnode, Refusal::ReadOnly));
        }
        let writing = vnode.view().and_then(|view| self.tree.writing(view));
        writing.ok_or_else(|| refused(vnode, Refusal::Fixed))
    }

    /// The vnode called `name` in `parent`.
    pub(super) fn present(&self, parent: &Vnode, name: &[u8]) -> Result<Vnode, Error> {
        let absent = || StoreError::absent(String::from_utf8_lossy(name));
        let found = self.find(parent, name)?.ok_or_else(absent)?;
        Ok(found.0)
    }

    /// As [`View::present`], after a check that the current documents say the same of the vnode as the remembered ones.
    pub(super) fn present_now(&self, parent: &Vnode, name: &[u8]) -> Result<Vnode, Error> {
        let vnode = self.present(parent, name)?;
        self.tree.check_meaning(&vnode)?;
        Ok(vnode)
    }

    /// Whether the file `vnode` shows something other than the bytes of its object.
    pub(super) fn is_formed(self: &Arc<Self>, vnode: &Vnode) -> Result<bool, Error> {
        let file = self.form_of(vnode)?;
        Ok(file.is_some_and(|file| file.form.is_some()))
    }

    /// Opens the file `id` with `access` for the process that calls from this thread. `None` when the file no longer
    /// exists.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open_for(
        self: &Arc<Self>,
        id: VnodeId,
        access: HandleAccess,
        thread: u32,
    ) -> Result<Option<OpenedVnode>, Error> {
        let open = || {
            let vnode = self.vnode(id)?;
            if matches!(vnode, Vnode::Gone(_)) {
                return Ok(None);
            }
            let writing = self.writing(&vnode)?;
            let Some(file) = self.form_of(&vnode)? else {
                return Err(refused(&vnode, Refusal::Fixed));
            };
            let opened = self.open_written((writing, &file), access, thread)?;
            checked(opened, self.tree.check_meaning_to_write(&vnode, access))
        };
        self.between_renames(open, close_again)
    }

    /// Opens the file of this key and form. `None` when it does not exist.
    pub(super) fn open_written(
        self: &Arc<Self>,
        (writing, FormedFile { key, form }): (&Arc<Writing>, &FormedFile),
        access: HandleAccess,
        thread: u32,
    ) -> Result<Option<OpenedVnode>, Error> {
        let handle = writing.open((key, form.as_ref()), access, thread)?;
        let opened = handle.map(|handle| self.opened_handle(handle));
        opened.transpose()
    }

    fn opened_handle(self: &Arc<Self>, handle: KeyHandle) -> Result<OpenedVnode, Error> {
        let shown = handle.shown_at_open();
        let shown = shown.inspect_err(|_| handle.close())?;
        let attributes = self.tree.of_handle(shown);
        Ok(self.opened(attributes, FileContent::Written(handle)))
    }

    /// Makes an empty file, and opens it.
    ///
    /// # Errors
    /// [`Error`]; [`Refusal::Exists`] when the name is taken.
    pub fn create(
        self: &Arc<Self>,
        parent: VnodeId,
        name: &[u8],
        new: NewFile,
        thread: u32,
    ) -> Result<(LookupResult, OpenedVnode), Error> {
        let _names = self.keep_names(&[(parent, name)])?;
        let parent = self.vnode(parent)?;
        let writing = self.writing(&parent)?;
        let Place { vnode, key, kind } = self.place_of(&parent, name)?;
        self.tree.note_new_in(&key.parent());
        let new = self.tree.options.makeable(new);
        let is_shown_apart = match &vnode {
            Vnode::Chunk(place) => !self.tree.array_of(place)?.is_at_stored_path(),
            _ => false,
        };
        let mut opened = self.opened_handle(writing.create((&key, kind), new, thread)?)?;
        if is_shown_apart {
            // The kernel checks other users against this mode from now on.
            let shown = self.attributes_of(&vnode).ok().flatten();
            let own = opened.attributes.mode & 0o700;
            opened.attributes.mode = shown.map_or(own, |shown| shown.mode);
        }
        if let Some(view) = vnode.view() {
            self.tree.note_asked(view, &key);
        }
        let id = self.tree.numbers.refer(&vnode);
        let attributes = opened.attributes;
        Ok((LookupResult { id, attributes }, opened))
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// [`Error`]; [`Refusal::Exists`] when the name is taken.
    pub fn make_directory(
        &self,
        parent: VnodeId,
        name: &[u8],
        new: NewFile,
    ) -> Result<LookupResult, Error> {
        let _names = self.keep_names(&[(parent, name)])?;
        let vnode = self.vnode(parent)?;
        let writing = self.writing(&vnode)?;
        let key = self.directory_place(&vnode, name)?;
        self.tree.note_new_in(&key.parent());
        writing.make_prefix(&key, self.tree.options.makeable(new))?;
        self.tree.hierarchy.forget(&key.to_prefix());
        if let Vnode::Prefix { view, path } = &vnode {
            let path = path.key(name)?.to_prefix();
            self.tree.translated.forget_at(*view, &path);
            self.expect_group(*view, &path);
            if self.tree.options.shown_as.is_some() {
                self.tree.unshow_all(*view, &path);
            }
        }
        self.lookup(parent, name)?.ok_or(Error::Stale)
    }

    /// Removes a file, or an empty directory if `kind` is that of a directory.
    ///
    /// # Errors
    /// [`Error`].
    pub fn remove(
        self: &Arc<Self>,
        parent: VnodeId,
        name: &[u8],
        kind: VnodeKind,
    ) -> Result<(), Error> {
        let _names = self.keep_names(&[(parent, name)])?;
        let parent = self.vnode(parent)?;
        let writing = self.writing(&parent)?;
        if name == CONTROL {
            return Err(refused(&Vnode::Control, Refusal::Fixed));
        }
        let vnode = match self.present(&parent, name) {
            Err(Error::Store(error))
                if error.is_absent()
                    && kind == VnodeKind::File
                    && self.was_fill_value(&parent, name)? =>
            {
                return Ok(());
            }
            found => found?,
        };
        self.tree.check_meaning(&vnode)?;
        match (&vnode, kind) {
            (Vnode::Object { view, key } | Vnode::Document { view, key }, VnodeKind::File) => {
                self.remove_object(writing, *view, key)?;
            }
            (Vnode::Written { view, path, name }, VnodeKind::File) => {
                self.remove_translated(writing, (*view, path), *name)?;
            }
            (Vnode::ErrorNote { .. } | Vnode::Unsupported { .. }, VnodeKind::File) => {
                self.remove_damaged(writing, &vnode)?;
            }
            (Vnode::Chunk(place), VnodeKind::File) => {
                let array = self.tree.array_of(place)?;
                let key = array.file_key(&place.indices)?;
                let is_kept = array.absent_len.is_some() && array.grid().contains(&place.indices);
                if is_kept && let Some(fill) = self.fill_of_erased(&array)? {
                    return self.fill_chunk(writing, (&array, &vnode), &fill);
                }
                let object = self.tree.chunk_object(&array, &place.indices)?;
                let object = object.filter(|_| array.can_lose_chunks());
                let object = object.ok_or_else(|| refused(&vnode, Refusal::Fixed))?;
                writing.erase_by((&key, &[]), is_kept, |_| object.erase())?;
            }
            (Vnode::Prefix { view, path }, VnodeKind::Directory)
                if let Some(draft) = self.tree.resolve(*view, path)?.draft() =>
            {
                self.remove_draft_node(writing, (*view, path), draft)?;
            }
            (&Vnode::Prefix { view, ref path }, VnodeKind::Directory) => {
                let key = path
                    .to_key()
                    .ok_or_else(|| refused(&vnode, Refusal::Fixed))?;
                self.tree.settle_below(path)?;
                let ended = self.tree.ended(view, path);
                let unshown = self.unshown_documents(view, path)?;
                let note = if unshown.is_empty() {
                    None
                } else {
                    self.note_change(path, &[])?
                };
                writing.remove_prefix((&key, &[]), |writer| {
                    let gone = ended.filter(|ended| ended.is_gone(writer));
                    writer.remove_prefix_with(&key, &|below, is_directory| {
                        let array = gone.as_ref();
                        unshown.contains(below)
                            || self.tree.is_left_of_damaged(path, below).unwrap_or(false)
                            || array.is_some_and(|array| array.leaves_over(below, is_directory))
                    })
                })?;
                self.update_copies(&unshown, note);
                self.tree.hierarchy.forget(path);
                self.tree.forget_ended(path);
                self.tree.forget_expected(view, path);
                self.tree.translated.forget_at(view, path);
            }
            (Vnode::ChunkDirectory(place), VnodeKind::Directory) => {
                self.remove_chunk_directory(writing, place)?;
            }
            _ => return Err(refused(&vnode, Refusal::Fixed)),
        }
        self.tree.numbers.remove(&vnode);
        Ok(())
    }

    /// Removes the object at `key`. If it is the document of an array, no chunk of that array is saved meanwhile, and
    /// the view remembers the array, because chunks of it may remain.
    fn remove_object(
        self: &Arc<Self>,
        writing: &Arc<Writing>,
        view: ViewKind,
        key: &Key,
    ) -> Result<(), Error> {
        let shows_store = self.tree.shows_store(view);
        let ending = if shows_store {
            None
        } else {
            self.ending(view, key)?
        };
        let chunks = ending
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), |ended| ended.array.paths())?;
        let note = if shows_store {
            None
        } else {
            self.note_removal(key)?
        };
        let erase = |writer: &DirWriter| Ok(writer.unlink(key)?);
        writing.erase_by((key, &chunks), false, erase)?;
        self.tree.hierarchy.forget(&key.parent());
        if let Some(ended) = ending {
            self.tree.hierarchy.forget(&ended.array.path);
            self.tree.end(ended);
        }
        if !shows_store {
            self.update_copies(std::slice::from_ref(key), note);
        }
        Ok(())
    }

    /// The fill value that the program which removes a chunk expects, where it differs from the fill value of the
    /// store: the shown document has another one when missing values need it. `None` where the chunk may be absent.
    fn fill_of_erased(&self, array: &ShownArray) -> Result<Option<FillValue>, Error> {
        let is_written_in_v2 = array.foreign == Some(Target::V2);
        if !is_written_in_v2 || array.has_ended.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let shown = self.tree.missing_in_v2(array)?.fill_value;
        let stored = array.chunked.layout().fill_value();
        Ok((shown.bytes() != stored.bytes()).then_some(shown))
    }

    /// Fills the chunk `vnode` of `array` with `fill`.
    fn fill_chunk(
        self: &Arc<Self>,
        writing: &Arc<Writing>,
        (array, vnode): (&ShownArray, &Vnode),
        fill: &FillValue,
    ) -> Result<(), Error> {
        let fixed = || refused(vnode, Refusal::Fixed);
        let FormedFile { key, form } = self.form_of(vnode)?.ok_or_else(fixed)?;
        // Elements of any length would be filled in the form of their codec.
        let (form, len) = form.zip(array.decoded_len()).ok_or_else(fixed)?;
        writing.fill((&key, &form), len, &|offset, part| fill.fill(offset, part))
    }

    /// Removes the directory `place`, which shows no chunks.
    fn remove_chunk_directory(
        self: &Arc<Self>,
        writing: &Writing,
        place: &ChunkPlace,
    ) -> Result<(), Error> {
        let array = self.tree.array_of(place)?;
        // The directory may be outside of the grid, because the array has become smaller.
        let stored = array.stored_directory(&place.indices)?;
        let fixed = || refused(Vnode::ChunkDirectory(place.clone()), Refusal::Fixed);
        let key = stored.to_key().ok_or_else(fixed)?;
        self.tree.settle_below(&stored)?;
        if array.shares_stored_directories(&place.indices) {
            // The directory of the store also serves other directories, which may not be empty.
            if self.is_without_chunks(&array, place)? {
                return Ok(());
            }
            return Err(StoreError::refused(&key, Refusal::NotEmpty).into());
        }
        // Chunks outside of the grid are not listed, so their directories look empty and go, too.
        let remove = |writer: &DirWriter| {
            let is_gone = array.is_gone(writer);
            let goes = |below: &Key, is_directory: bool| {
                is_directory || is_gone && array.leaves_over(below, false)
            };
            match writer.remove_prefix_with(&key, &goes) {
                // The view may show a directory that the store does not have.
                removed if array.absent_len.is_some() => unless_absent(removed),
                removed => removed,
            }
        };
        match writing.remove_prefix((&key, &[]), remove) {
            // The shards below it also serve other directories.
            Err(_)
                if array.has_inner_chunks()
                    && array.has_directory(&place.indices)
                    && self.is_without_chunks(&array, place)? =>
            {
                Ok(())
            }
            removed => removed,
        }
    }

    /// Whether `name` in `parent` would be a chunk outside of the grid of an array that shows absent chunks as fill
    /// value. When such an array becomes smaller, the kernel may still know the chunk; the removal of that chunk has to
    /// succeed.
    fn was_fill_value(&self, parent: &Vnode, name: &[u8]) -> Result<bool, Error> {
        let (array, name) = match parent {
            Vnode::Prefix { view, path } => match self.tree.shown(*view, path)?.into_array() {
                Some(array) => {
                    let name = array.shown.in_array(name);
                    (array, name)
                }
                None => return Ok(false),
            },
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                let name = array.shown.in_directory(&place.indices, name);
                (array, name)
            }
            _ => return Ok(false),
        };
        let ChunkName::Chunk(indices) = name else {
            return Ok(false);
        };
        Ok(array.absent_len.is_some() && !array.grid().contains(&indices))
    }

    /// Changes attributes of `id` without an open handle.
    ///
    /// # Errors
    /// [`Error`].
    pub fn change_attributes(
        self: &Arc<Self>,
        id: VnodeId,
        change: &AttributeChange,
    ) -> Result<(), Error> {
        let vnode = self.vnode(id)?;
        if let (Vnode::Plain(_), None) = (&vnode, change.size)
            && self.is_writable()
        {
            // The programs cp -p and rsync -a must not fail.
            self.note_without_effect();
            return Ok(());
        }
        let writing = self.writing(&vnode)?;
        let new = &change.attributes;
        let path = match &vnode {
            // A document in another version has no object of its own.
            Vnode::Written { .. } if change.size.is_none() => {
                self.note_without_effect();
                return Ok(());
            }
            Vnode::Prefix { path, .. } => path.clone(),
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                array.stored_directory(&place.indices)?
            }
            _ => {
                let Some(FormedFile { key, form }) = self.form_of(&vnode)? else {
                    // An inner chunk has no object of its own.
                    let is_chunk = matches!(vnode, Vnode::Chunk(_));
                    return match change.size {
                        None if is_chunk => {
                            self.note_without_effect();
                            Ok(())
                        }
                        _ => Err(refused(&vnode, Refusal::Fixed)),
                    };
                };
                let is_inner = form.as_ref().is_some_and(|form| form.inner().is_some());
                if let Some(size) = change.size {
                    let access = HandleAccess::Writes;
                    let handle = writing.open((&key, form.as_ref()), access, 0)?;
                    let handle = handle.ok_or(Error::Stale)?;
                    let checked = self.tree.check_meaning_to_write(&vnode, access);
                    let changed = checked.and_then(|()| handle.cut(size));
                    handle.close();
                    changed?;
                }
                if is_inner {
                    // Its object is the shard.
                    if *new != NewAttributes::default() {
                        self.note_without_effect();
                    }
                    return Ok(());
                }
                key.to_prefix()
            }
        };
        if *new != NewAttributes::default() {
            let shown = self.attributes_of(&vnode)?;
            let options = &self.tree.options;
            let new = options.settable(new, &vnode, || shown.ok_or(Error::Stale))?;
            let fingerprint = shown.map_or(0, |shown| shown.fingerprint);
            let is_kept = matches!(vnode, Vnode::Chunk(_) | Vnode::ChunkDirectory(_));
            writing.set_attributes(&path, &new, (fingerprint, is_kept))?;
        }
        Ok(())
    }

    /// Whether no chunk is shown in the directory `place`, and no program has made one there. The directories in it are
    /// shown wherever something is stored, and may have no chunks either.
    fn is_without_chunks(
        self: &Arc<Self>,
        array: &Arc<ShownArray>,
        place: &ChunkPlace,
    ) -> Result<bool, Error> {
        let vnode = Vnode::ChunkDirectory(place.clone());
        if !self.made_in(&vnode)?.is_empty() {
            return Ok(false);
        }
        let mut shown = StoredChunks::new(Arc::clone(array), place.indices.clone())?;
        while let Some((_, vnode, _)) = shown.next(self, Detail::Names)? {
            let is_empty = match vnode {
                Vnode::ChunkDirectory(below) => self.is_without_chunks(array, &below)?,
                _ => false,
            };
            if !is_empty {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn note_without_effect(&self) {
        if let Some(writings) = &self.tree.writings {
            writings.counters().without_effect.add(1);
        }
    }

    /// Commits all files in the directory `id` that no program is writing anew, and makes its names survive a power
    /// loss.
    ///
    /// # Errors
    /// [`Error`].
    pub fn sync_directory(&self, id: VnodeId) -> Result<(), Error> {
        const ATTEMPTS: usize = 16;
        for _ in 0..ATTEMPTS {
            let vnode = self.vnode(id)?;
            self.sync_directory_at(vnode.clone())?;
            // If it was renamed meanwhile, its names are elsewhere.
            if self.vnode(id)? == vnode {
                return Ok(());
            }
        }
        // Other threads rename it again and again.
        Err(Error::Stale)
    }

    fn sync_directory_at(&self, vnode: Vnode) -> Result<(), Error> {
        let Some(writings) = &self.tree.writings else {
            return Ok(());
        };
        if vnode == Vnode::Views {
            return writings.sync_all(Syncer::Directory);
        }
        let Ok(writing) = self.writing(&vnode) else {
            return Ok(());
        };
        let (path, stored): (Prefix, Prefix) = match vnode {
            Vnode::Prefix { view, path } => {
                // The documents and the chunks of a draft are in different directories.
                let resolved = self.tree.resolve(view, &path);
                let is_draft = resolved.map_or(true, |resolved| resolved.draft().is_some());
                let stored = if is_draft {
                    Prefix::root()
                } else {
                    path.clone()
                };
                (path, stored)
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(&place)?;
                let stored = array.stored_directory(&place.indices)?;
                (stored.clone(), stored)
            }
            _ => return Ok(()),
        };
        writing.sync_below(&path, &stored)
    }

    /// Commits the remaining changes, and ends all writing. The mount calls it at its end.
    pub fn finish_writing(&self) {
        if let Some(writings) = &self.tree.writings {
            writings.finish();
        }
    }

    /// Whether the mount is writable.
    pub fn is_writable(&self) -> bool {
        self.tree.is_writable()
    }
}

/// The error for a change that must not be made of the file or directory `name`.
pub(super) fn refused(name: impl std::fmt::Display, refusal: Refusal) -> Error {
    StoreError::refused(name, refusal).into()
}
