//! Changes of names: removing, renaming, linking, making directories.

use std::sync::Arc;

use super::target::Target;
use super::{Form, HandleAccess, KeyFile, NewKind, Writing, is_below, is_replaced_whole};
use crate::error::Error;
use crate::load::to_usize;
use crate::store::{
    DirWriter, Durability, FileChange, Key, NewAttributes, NewFile, Prefix, Refusal, RenameMode,
    Replaces, StoreError,
};

impl Writing {
    /// Removes the file at `key`. Open handles keep their bytes. If the file is shown even without an object
    /// (`is_kept`), its object may be absent.
    pub(crate) fn erase(&self, key: &Key, is_kept: bool) -> Result<(), Error> {
        self.erase_by((key, &[]), is_kept, |writer| Ok(writer.unlink(key)?))
    }

    /// Like [`Writing::erase`], where `erase` removes the stored objects of the file. No file at the `other` paths is
    /// saved meanwhile.
    pub(crate) fn erase_by(
        &self,
        (key, other): (&Key, &[Prefix]),
        is_kept: bool,
        erase: impl FnOnce(&DirWriter) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _names = self.take_names(&[key], other);
        self.check_goes_on()?;
        let open = self.lock_open().get(key).cloned();
        // A draft makes the name exist, even if the store has no object, or no longer.
        let may_lack = is_kept || open.as_ref().is_some_and(|file| file.has_draft());
        let is_scratch = open.as_ref().is_some_and(|file| file.is_scratch());
        if let Some(file) = &open {
            file.lock().keep(self);
        }
        if !is_scratch {
            match erase(&self.writer) {
                Err(Error::Store(error)) if may_lack && error.is_absent() => {}
                erased => erased?,
            }
        }
        if let Some(file) = open {
            self.unlink_file(key, &file);
        }
        if is_kept {
            // The kernel may have pages of the erased file.
            self.remember(key, None, self.new_fingerprint());
        } else {
            self.lock_own().pop(key);
        }
        Ok(())
    }

    /// Fills the file at `key`, which its `form` shows as `len` bytes, by `fill`, which writes the bytes from an offset
    /// on. Other handles of the file see this like any write.
    pub(crate) fn fill(
        self: &Arc<Self>,
        (key, form): (&Key, &Arc<dyn Form>),
        len: u64,
        fill: &dyn Fn(u64, &mut [u8]),
    ) -> Result<(), Error> {
        const STEP: u64 = 64 << 10;
        let handle = self.open((key, Some(form)), HandleAccess::Writes, 0)?;
        let handle = handle.ok_or(Error::Stale)?;
        let mut part = vec![0; to_usize(len.min(STEP))?];
        let mut write = || {
            let mut offset = 0;
            while offset < len {
                let n = to_usize((len - offset).min(STEP))?;
                let part = part.get_mut(..n).unwrap_or_default();
                fill(offset, part);
                handle.change(&FileChange::Write { offset, data: part })?;
                offset += n as u64;
            }
            handle.flush(None)
        };
        let written = write();
        // The kernel did not write these bytes, and may have pages of the earlier ones.
        handle.file().lock().has_wrong_pages = true;
        handle.close();
        written
    }

    /// Removes the name of an open file.
    fn unlink_file(&self, key: &Key, file: &Arc<KeyFile>) {
        self.unregister(key, file);
        file.lose_name(self);
    }

    /// Saves the drafts below `directory`, which is about to be renamed. Saving may take long, and other callers wait
    /// for the rename, so it comes before the rename.
    pub(super) fn prepare_rename(&self, directory: &Key) -> Result<(), Error> {
        let _names = self.take_names(&[directory], &[]);
        self.save_before_rename(directory).map(drop)
    }

    /// Saves the open files whose names change when `from` is renamed, and returns them.
    fn save_before_rename(&self, from: &Key) -> Result<Vec<(Key, Arc<KeyFile>)>, Error> {
        let prefix = from.to_prefix();
        let moved = self.open_where(|key| key == from || is_below(key, &prefix));
        for (key, file) in &moved {
            // A file below the directory that a program writes anew moves along, and that program commits it.
            if key == from || !file.lock().phase.is_rewritten() {
                self.commit_of(file)?;
            }
        }
        self.staging.settle_below(&prefix)?;
        Ok(moved)
    }

    /// Renames a file or a directory. `follow` does the steps that must precede the first commit under the new name.
    pub(crate) fn rename(
        &self,
        from: &Key,
        to: &Key,
        mode: RenameMode,
        follow: impl FnOnce(),
    ) -> Result<(), Error> {
        let _names = self.take_names(&[from, to], &[]);
        self.check_goes_on()?;
        if from == to {
            return Ok(());
        }
        let moved = self.save_before_rename(from)?;
        let replaced = self.lock_open().get(to).cloned();
        let is_new = replaced.as_ref().is_some_and(|file| file.is_new());
        if is_new && mode == RenameMode::Keep {
            return Err(StoreError::refused(to, Refusal::Exists).into());
        }
        if self.has_made_below(&to.to_prefix()) {
            return Err(StoreError::refused(to, Refusal::NotEmpty).into());
        }
        self.sync_before_name(from, to)?;
        self.writer.rename(from, to, mode)?;
        if let Some(file) = replaced {
            self.unlink_file(to, &file);
        }
        for (key, file) in moved {
            if let Some(target) = key.moved(from, to) {
                self.move_entry(&key, &target, &file);
            }
        }
        let mut own = self.lock_own();
        own.pop(to);
        if let Some(version) = own.pop(from) {
            own.put(to.clone(), version);
        }
        drop(own);
        follow();
        Ok(())
    }

    /// Gives the file at `from`, which shows its stored bytes, the name `to`, where it becomes a file of `kind`. A
    /// `mode` of `None` links: the file keeps its old name, too.
    pub(crate) fn place(
        self: &Arc<Self>,
        from: &Key,
        (to, kind): (&Key, NewKind),
        mode: Option<RenameMode>,
    ) -> Result<(), Error> {
        let source = self.open((from, None), HandleAccess::Reads, 0)?;
        let source = source.ok_or_else(|| KeyFile::lost(from))?;
        let placed = self.place_file(source.file(), from, (to, kind), mode);
        source.close();
        placed
    }

    fn place_file(
        &self,
        file: &Arc<KeyFile>,
        from: &Key,
        (to, kind): (&Key, NewKind),
        mode: Option<RenameMode>,
    ) -> Result<(), Error> {
        let _names = self.take_names(&[from, to], &[]);
        self.check_goes_on()?;
        let [source, other] = [from, to].map(|key| self.lock_open().get(key).cloned());
        if !source.is_some_and(|source| Arc::ptr_eq(&source, file)) {
            // The file was renamed, removed or replaced since it was opened.
            return Err(KeyFile::lost(from));
        }
        let is_kept = mode != Some(RenameMode::Replace);
        if is_kept && other.as_ref().is_some_and(|file| file.is_new()) {
            return Err(StoreError::refused(to, Refusal::Exists).into());
        }
        let is_scratch = matches!(kind, NewKind::Scratch);
        let form = kind.form().cloned();
        if is_scratch {
            if !file.is_scratch() || mode.is_none() {
                return Err(StoreError::refused(to, Refusal::OtherPlace).into());
            }
            if let Some(other) = other {
                self.unlink_file(to, &other);
            }
            self.move_entry(from, to, file);
            return Ok(());
        }
        if let Some(other) = &other {
            other.lock().keep(self);
        }
        let replaces = if is_kept {
            Replaces::Nothing
        } else {
            Replaces::Anything
        };
        // A file that keeps its name is copied, and a file of the store exists until the new object does.
        let is_moved = file.is_scratch() && mode.is_some();
        let placed = if is_moved {
            Arc::clone(file)
        } else {
            self.commit_of(file)?;
            Arc::new(file.copied(self)?)
        };
        match placed.place(self, (to, form), replaces) {
            Err(Error::Store(StoreError::Changed { .. })) if is_kept => {
                return Err(StoreError::refused(to, Refusal::Exists).into());
            }
            placed => placed?,
        }
        // A failure is returned after the names are as they are in the store.
        let synced = placed.lock().sync_closed(self);
        if let Some(other) = other {
            self.unlink_file(to, &other);
        }
        if let Some((key, meta, fingerprint)) = placed.to_remember(self) {
            self.remember(&key, meta.as_ref(), fingerprint);
        }
        if is_moved {
            let mut open = self.lock_open();
            open.remove(from);
            open.insert(to.clone(), placed);
        } else if mode.is_some() {
            self.writer.unlink(from)?;
            self.unlink_file(from, file);
            self.lock_own().pop(from);
        }
        synced
    }

    /// Gives the open files below `from`, a directory that was renamed to `to` through another view, the keys and the
    /// forms that they have there. The caller holds the locks of the names.
    pub(super) fn follow(&self, from: &Key, to: &Key) {
        for (key, file) in self.open_where(|key| is_below(key, &from.to_prefix())) {
            if let Some(target) = key.moved(from, to) {
                self.move_entry(&key, &target, &file);
                file.move_form(&target);
            }
        }
    }

    /// Gives the open files below `prefix`, to which a directory was renamed, the forms that they have
    /// there.
    pub(crate) fn move_forms(&self, prefix: &Prefix) {
        for (key, file) in self.open_where(|key| is_below(key, prefix)) {
            file.move_form(&key);
        }
    }

    /// Gives the open file at `key`, if there is one, the form of `kind`.
    pub(crate) fn reform(&self, key: &Key, kind: &NewKind) {
        let file = self.lock_open().get(key).cloned();
        if let Some(file) = file {
            file.lock().form = kind.form().cloned();
        }
    }

    fn move_entry(&self, from: &Key, to: &Key, file: &Arc<KeyFile>) {
        let mut open = self.lock_open();
        open.remove(from);
        open.insert(to.clone(), Arc::clone(file));
        drop(open);
        file.rename(to);
        if !is_replaced_whole(to) {
            // Another program may have written to the file since it was renamed, under its earlier name.
            self.writer.wrote_in_place(to);
        }
    }

    /// Makes the bytes of a file survive a loss of power before it gets the name of a document or a chunk, so that the
    /// document or chunk is never empty or torn.
    fn sync_before_name(&self, from: &Key, to: &Key) -> Result<(), StoreError> {
        let is_needed = is_replaced_whole(to) && !is_replaced_whole(from);
        if !is_needed || self.writer.durability() == Durability::Never {
            return Ok(());
        }
        // A path that cannot be opened is a directory, or the rename refuses it.
        if let Ok(Some(stored)) = self.writer.open_object(from, false) {
            self.writer.sync(from, &stored.file)?;
        }
        Ok(())
    }

    /// Gives the file at `from` the second name `to`.
    pub(crate) fn link(&self, from: &Key, to: &Key) -> Result<(), Error> {
        let _names = self.take_names(&[from, to], &[]);
        self.check_goes_on()?;
        let [source, target] = [from, to].map(|key| self.lock_open().get(key).cloned());
        if let Some(file) = source {
            self.commit_of(&file)?;
        }
        if target.is_some_and(|file| file.is_new()) {
            return Err(StoreError::refused(to, Refusal::Exists).into());
        }
        self.sync_before_name(from, to)?;
        Ok(self.writer.link(from, to)?)
    }

    /// Makes a directory.
    pub(crate) fn make_prefix(&self, key: &Key, new: NewFile) -> Result<(), Error> {
        let _name = self.share_name(key);
        self.check_goes_on()?;
        // A directory that is shown at another path may be the first one there.
        self.writer.make_parents(key)?;
        Ok(self.writer.make_prefix(key, new)?)
    }

    /// Removes the shown directory `key`, by `remove`, unless files were made in it that are not in the store. The
    /// store has it at `key`, and at the `other` paths.
    pub(crate) fn remove_prefix(
        &self,
        (key, other): (&Key, &[Prefix]),
        remove: impl FnOnce(&DirWriter) -> Result<(), StoreError>,
    ) -> Result<(), Error> {
        let _names = self.take_names(&[key], other);
        self.check_goes_on()?;
        if self.has_made_below(&key.to_prefix()) {
            return Err(StoreError::refused(key, Refusal::NotEmpty).into());
        }
        Ok(remove(&self.writer)?)
    }

    /// Sets attributes of the file with this form, or of the directory, at `path`. `fingerprint` is that of an object
    /// which this mount has not written. A file that is shown without an object (`is_kept`) has none to set.
    pub(crate) fn set_attributes(
        &self,
        (path, form): (&Prefix, Option<&dyn Form>),
        new: &NewAttributes,
        (fingerprint, is_kept): (u64, bool),
    ) -> Result<(), Error> {
        let _name = self.names.share(vec![path.clone()]);
        self.check_goes_on()?;
        let key = path.to_key();
        let Some(key) = key.filter(|key| !self.writer.is_directory(key)) else {
            return Ok(self.writer.set_attributes(path, new)?);
        };
        if let Some(file) = self.lock_open().get(&key).cloned() {
            return file.lock().set_attributes(self, new);
        }
        // The version contains the time of modification, and the bytes stay the same.
        let target = Target::of(&self.writer, &key, form);
        let Some(before) = target.now()? else {
            if is_kept {
                self.counters.without_effect.add(1);
                return Ok(());
            }
            return Err(StoreError::absent(&key).into());
        };
        target.set_attributes(new, before.uid)?;
        if let Some(after) = target.now()? {
            let own = self.own_fingerprint(&key, Some(before.version));
            let fingerprint = own.unwrap_or(fingerprint);
            self.remember(&key, Some(&after), fingerprint);
        }
        Ok(())
    }
}
