//! Names that go: of files, of empty directories, and of chunks that are shown without an object.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::dtype::FillValue;
use crate::error::Error;
use crate::files::Writing;
use crate::metadata::Target;
use crate::store::{Detail, DirWriter, Key, Refusal, StoreError, unless_absent};
use crate::view::changes::refused;
use crate::view::chunks::names::ChunkName;
use crate::view::forms::FormedFile;
use crate::view::listing::segment::Segment;
use crate::view::listing::stored_chunks::StoredChunks;
use crate::view::nodes::node::ShownArray;
use crate::view::options::ViewKind;
use crate::view::vnode::{CONTROL, ChunkPlace, Vnode, VnodeKind};
use crate::view::{View, VnodeId};

impl View {
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
                let is_kept = array.shows_absent && array.grid().contains(&place.indices);
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
                let is_empty = match &ended {
                    Some(ended) => self.is_without_inner_chunks(ended, &[])?,
                    None => false,
                };
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
                            || array.is_some_and(|array| {
                                array.leaves_over(below, is_directory, is_empty)
                            })
                    })
                })?;
                self.update_copies(&unshown, note);
                self.tree.hierarchy.forget(path);
                self.tree.forget_ended(path);
                let place = (view, path.clone());
                self.tree.expected_groups.forget(&place);
                self.tree.translated.forget(&place);
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

    /// The fill value of the shown document, if it differs from that of the store because of missing values. A program that
    /// removes a chunk expects the elements of the chunk to be this fill value. `None` if the chunk may be absent.
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
        let len = match vnode {
            Vnode::Chunk(place) => array.decoded_len(&place.indices),
            _ => None,
        };
        let (form, len) = form.zip(len).ok_or_else(fixed)?;
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
        let is_empty = self.is_without_inner_chunks(&array, &place.indices)?;
        let remove = |writer: &DirWriter| {
            let is_gone = array.is_gone(writer);
            let goes = |below: &Key, is_directory: bool| {
                is_directory || is_gone && array.leaves_over(below, false, is_empty)
            };
            match writer.remove_prefix_with(&key, &goes) {
                // The view may show a directory that the store does not have.
                removed if array.shows_absent => unless_absent(removed),
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

    /// Whether `array`, which was removed, has shards, and those below the directory `first` show no inner chunk. They may
    /// have some outside of the grid.
    fn is_without_inner_chunks(
        self: &Arc<Self>,
        array: &Arc<ShownArray>,
        first: &[u64],
    ) -> Result<bool, Error> {
        let may_be = array.has_inner_chunks() && array.has_ended.load(Ordering::Relaxed);
        Ok(may_be && self.is_without_chunks(array, &array.place(first.into()))?)
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
        Ok(array.shows_absent && !array.grid().contains(&indices))
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
}
