//! Renames and links. The store is changed first; then the open files, the numbers of vnodes and everything remembered
//! about paths follow.

use std::sync::Arc;

use crate::error::Error;
use crate::files::{NewKind, Writing};
use crate::store::{Caller, Key, Prefix, Refusal, RenameMode};
use crate::view::changes::refused;
use crate::view::forms::Place;
use crate::view::names::rename_locks::RenamedNames;
use crate::view::options::ViewKind;
use crate::view::vnode::{CONTROL, ChunkPlace, Vnode};
use crate::view::{LookupResult, View, VnodeId};

impl View {
    /// Renames a file or a directory for `caller`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn rename(
        self: &Arc<Self>,
        (parent, name): (VnodeId, &[u8]),
        (new_parent, new_name): (VnodeId, &[u8]),
        mode: RenameMode,
        caller: Caller,
    ) -> Result<(), Error> {
        let names = self.begin_rename((parent, name), (new_parent, new_name))?;
        let (parent, new_parent) = (self.vnode(parent)?, self.vnode(new_parent)?);
        let writing = self.writing(&parent)?;
        if name == CONTROL || new_name == CONTROL {
            return Err(refused(&Vnode::Control, Refusal::Fixed));
        }
        if parent.view() != new_parent.view() {
            let place = self.place_of(&new_parent, new_name);
            return Err(place.map_or_else(
                |_| refused(&new_parent, Refusal::OtherPlace),
                |place| self.refused_move(&place.vnode),
            ));
        }
        let vnode = self.present_now(&parent, name)?;
        match &vnode {
            Vnode::Prefix { view, path } => {
                let to = self.directory_place(&new_parent, new_name)?;
                let concerns_draft = match &new_parent {
                    Vnode::Prefix { path: above, .. } => {
                        self.is_in_draft(*view, above)? || self.is_in_draft(*view, path)?
                    }
                    _ => true,
                };
                if concerns_draft {
                    return Err(refused(&vnode, Refusal::OtherPlace));
                }
                if !names.is_of_directory() {
                    // Another thread has just put it in the place of a file.
                    return Err(Error::Stale);
                }
                self.rename_directory(writing, (&vnode, *view, path), &to, mode, names)
            }
            Vnode::Object { view, key: from } => {
                let place = self.place_of(&new_parent, new_name)?;
                self.tree.note_new_in(&place.key.parent());
                place.kind.check_maker(caller)?;
                self.rename_object(writing, (&vnode, *view, from), place, mode, || {
                    self.present(&new_parent, new_name).ok()
                })
            }
            Vnode::Chunk(from) => {
                let place = self.place_of(&new_parent, new_name)?;
                self.rename_chunk(writing, (&vnode, from), place, mode)
            }
            _ => Err(refused(&vnode, Refusal::OtherPlace)),
        }
    }

    /// Whether `path` is in a hierarchy of a draft, where the keys of a node are not below one prefix.
    fn is_in_draft(&self, view: ViewKind, path: &Prefix) -> Result<bool, Error> {
        Ok(self.tree.resolve(view, path)?.draft().is_some())
    }

    /// Renames the directory `path`: in the store, then the open files below it in all views, and everything that the
    /// view remembers about paths. The store comes first, so that a rename that fails has changed nothing.
    fn rename_directory(
        self: &Arc<Self>,
        writing: &Arc<Writing>,
        (vnode, view, path): (&Vnode, ViewKind, &Prefix),
        to: &Key,
        mode: RenameMode,
        names: RenamedNames<'_>,
    ) -> Result<(), Error> {
        let tree = &self.tree;
        let from = path
            .to_key()
            .ok_or_else(|| refused(vnode, Refusal::Fixed))?;
        // A program that saves a file through another view would otherwise make the old directory again.
        let others = tree.writings.as_ref();
        tree.note_new_in(&to.parent());
        let note = self.note_rename(view, &from, to)?;
        let kept = others.map(|writings| writings.keep_others(writing, &from, to));
        writing.rename(&from, to, mode, || {
            tree.hierarchy.forget_all();
            for path in [&from, to] {
                tree.forget_removed_below(view, path);
            }
            writing.move_forms(&to.to_prefix());
        })?;
        if let Some(writings) = others {
            writings.moved(writing, &from, to);
        }
        tree.numbers.rename(view, &from, to);
        tree.rename_expected(view, &from, to);
        // No caller waits for the rest.
        drop((kept, names));
        if !tree.shows_store(view) {
            self.move_copies(&from, to, note);
        }
        Ok(())
    }

    /// Renames the file of the object `from`. The closure `now` finds the place of that file again afterwards, because
    /// a document has another vnode as soon as it describes a node.
    fn rename_object(
        self: &Arc<Self>,
        writing: &Arc<Writing>,
        (vnode, view, from): (&Vnode, ViewKind, &Key),
        place: Place,
        mode: RenameMode,
        now: impl FnOnce() -> Option<Vnode>,
    ) -> Result<(), Error> {
        let is_formed = self.is_formed(vnode)?;
        let is_scratch = writing.is_scratch(from);
        let to = &place.key;
        match place.kind {
            NewKind::Stored | NewKind::Scratch if is_scratch => {
                writing.place(from, (to, place.kind), Some(mode))?;
                self.tree.numbers.replace(vnode, &place.vnode);
            }
            NewKind::Stored if !is_formed => {
                writing.rename(from, to, mode, || {})?;
                self.tree.numbers.rename(view, from, to);
            }
            NewKind::Formed(_) if !is_formed => {
                writing.place(from, (to, place.kind), Some(mode))?;
                self.tree
                    .numbers
                    .replace(vnode, &now().unwrap_or(place.vnode));
            }
            _ => return Err(refused(vnode, Refusal::OtherPlace)),
        }
        Ok(())
    }

    /// Renames the encoded chunk `from` to a name where the same bytes are a chunk of another array, or an ordinary
    /// file.
    fn rename_chunk(
        self: &Arc<Self>,
        writing: &Arc<Writing>,
        (vnode, from): (&Vnode, &ChunkPlace),
        place: Place,
        mode: RenameMode,
    ) -> Result<(), Error> {
        let array = self.tree.array_of(from)?;
        let is_placed = match &place.kind {
            NewKind::Stored => true,
            // An inner chunk of a shard is not an object.
            NewKind::Formed(form) => {
                matches!(place.vnode, Vnode::Chunk(_)) && form.inner().is_none()
            }
            NewKind::Scratch => false,
        };
        if !is_placed || !array.has_encoded_objects() {
            return Err(self.refused_move(&place.vnode));
        }
        let from = array.chunked.stored_key(&from.indices)?;
        let (to, kind) = (&place.key, place.kind);
        writing.rename(&from, to, mode, || writing.reform(to, &kind))?;
        self.tree.numbers.replace(vnode, &place.vnode);
        Ok(())
    }

    /// The error for a file that cannot be moved to `place`, only copied there.
    fn refused_move(&self, place: &Vnode) -> Error {
        let is_filled_in = match place {
            Vnode::Chunk(chunk) => {
                let array = self.tree.array_of(chunk);
                array.is_ok_and(|array| array.shows_absent)
            }
            _ => false,
        };
        let refusal = if is_filled_in {
            Refusal::OtherChunk
        } else {
            Refusal::OtherPlace
        };
        refused(place, refusal)
    }

    /// Gives the file `id` a second name, for `caller`.
    ///
    /// # Errors
    /// [`Error`]; [`Refusal::Exists`] when something has the name.
    pub fn link(
        self: &Arc<Self>,
        id: VnodeId,
        parent: VnodeId,
        name: &[u8],
        caller: Caller,
    ) -> Result<LookupResult, Error> {
        let _names = self.keep_names(&[(parent, name)])?;
        let vnode = self.vnode(id)?;
        let writing = self.writing(&vnode)?;
        let Vnode::Object { view, key } = &vnode else {
            return Err(refused(&vnode, Refusal::Fixed));
        };
        self.tree.check_plain(*view, key)?;
        let is_formed = self.is_formed(&vnode)?;
        let new_parent = self.vnode(parent)?;
        if new_parent.view() != Some(*view) {
            return Err(refused(&vnode, Refusal::Fixed));
        }
        let place = self.place_of(&new_parent, name)?;
        place.kind.check_maker(caller)?;
        match place.kind {
            NewKind::Stored if !is_formed && !writing.is_scratch(key) => {
                writing.link(key, &place.key)?;
            }
            NewKind::Formed(_) if !is_formed => {
                writing.place(key, (&place.key, place.kind), None)?;
            }
            _ => return Err(refused(&vnode, Refusal::Fixed)),
        }
        self.lookup(parent, name)?.ok_or(Error::Stale)
    }
}
