//! New names of files and directories of a mount that is written to.

use std::sync::Arc;

use crate::error::Error;
use crate::files::NewKind;
use crate::store::{Caller, Prefix, Refusal, RenameMode};
use crate::view::changes::refused;
use crate::view::vnode::{CONTROL, Vnode};
use crate::view::{LookupResult, View, VnodeId};

impl NewKind {
    /// Checks that `caller` may make the file, where this is more than to make a file in its directory.
    fn check_maker(&self, caller: Caller) -> Result<(), Error> {
        match self {
            NewKind::Formed(form) => form
                .inner()
                .map_or(Ok(()), |inner| inner.check_maker(caller)),
            NewKind::Stored | NewKind::Scratch => Ok(()),
        }
    }
}

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
                let from = path
                    .to_key()
                    .ok_or_else(|| refused(&vnode, Refusal::Fixed))?;
                let to = self.directory_place(&new_parent, new_name)?;
                // The keys of a draft's node are not below one prefix.
                let in_draft = |path: &Prefix| -> Result<bool, Error> {
                    Ok(self.tree.resolve(*view, path)?.draft().is_some())
                };
                let concerns_draft = match &new_parent {
                    Vnode::Prefix { path: above, .. } => in_draft(above)? || in_draft(path)?,
                    _ => true,
                };
                if concerns_draft {
                    return Err(refused(&vnode, Refusal::OtherPlace));
                }
                if !names.is_of_directory() {
                    // It took the place of a file just now.
                    return Err(Error::Stale);
                }
                // A program that saves a file through another view would make the old directory again.
                let others = self.tree.writings.as_ref();
                self.tree.note_new_in(&to.parent());
                let note = self.note_rename(*view, &from, &to)?;
                let kept = others.map(|writings| writings.keep_others(writing, &from, &to));
                writing.rename(&from, &to, mode, || {
                    self.tree.hierarchy.forget_all();
                    for path in [&from, &to] {
                        self.tree.forget_removed_below(*view, path);
                    }
                    writing.move_forms(&to.to_prefix());
                })?;
                if let Some(writings) = &self.tree.writings {
                    writings.moved(writing, &from, &to);
                }
                self.tree.numbers.rename(*view, &from, &to);
                self.tree.rename_expected(*view, &from, &to);
                // Nobody waits for what follows.
                drop((kept, names));
                if !self.tree.shows_store(*view) {
                    self.move_copies(&from, &to, note);
                }
            }
            Vnode::Object { view, key: from } => {
                let place = self.place_of(&new_parent, new_name)?;
                let to = &place.key;
                self.tree.note_new_in(&to.parent());
                place.kind.check_maker(caller)?;
                let is_formed = self.is_formed(&vnode)?;
                let is_scratch = writing.is_scratch(from);
                match place.kind {
                    NewKind::Stored | NewKind::Scratch if is_scratch => {
                        writing.place(from, (to, place.kind), Some(mode))?;
                        self.tree.numbers.replace(&vnode, &place.vnode);
                    }
                    NewKind::Stored if !is_formed => {
                        writing.rename(from, to, mode, || {})?;
                        self.tree.numbers.rename(*view, from, to);
                    }
                    NewKind::Formed(_) if !is_formed => {
                        writing.place(from, (to, place.kind), Some(mode))?;
                        // A document has another vnode once it describes something.
                        let found = self.present(&new_parent, new_name);
                        let new = found.unwrap_or(place.vnode);
                        self.tree.numbers.replace(&vnode, &new);
                    }
                    _ => return Err(refused(&vnode, Refusal::OtherPlace)),
                }
            }
            // An encoded chunk has the same bytes as a chunk of another array, and as any file.
            Vnode::Chunk(from) => {
                let array = self.tree.array_of(from)?;
                let place = self.place_of(&new_parent, new_name)?;
                let is_placed = match &place.kind {
                    NewKind::Stored => true,
                    // An inner chunk of a shard is no object.
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
                writing.rename(&from, to, mode, || writing.reform(to, kind))?;
                self.tree.numbers.replace(&vnode, &place.vnode);
            }
            _ => return Err(refused(&vnode, Refusal::OtherPlace)),
        }
        Ok(())
    }

    /// The error for a file that cannot be moved to `place`, only copied there.
    fn refused_move(&self, place: &Vnode) -> Error {
        let is_filled_in = match place {
            Vnode::Chunk(chunk) => {
                let array = self.tree.array_of(chunk);
                array.is_ok_and(|array| array.absent_len.is_some())
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
