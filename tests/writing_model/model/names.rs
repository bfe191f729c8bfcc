//! Names that go from file to file, or away.

use libc::{EEXIST, EINVAL, EIO, ENOENT};
use zarr_mount::files::FileEvent;
use zarr_mount::store::RenameMode;
use zarr_mount::view::HandleAccess;

use super::{Manner, Model};
use crate::codecs::LEN;
use crate::operations::Placing;

impl Model {
    /// As truncate(2).
    pub(crate) fn truncate(&mut self, name: usize, len: usize) -> Result<(), i32> {
        if self.shown(name).is_none() {
            return Err(ENOENT);
        }
        let handle = self.open(name, HandleAccess::Writes);
        let mut cut = self.set_len(handle, len);
        let file = self.handles[handle].file;
        if cut.is_ok() {
            if self.n_writers(file) > 1 && self.files[file].manner == Manner::Chunk {
                self.handles[handle].has_written = false;
            } else {
                cut = self.flush(handle, false);
                if cut == Err(EIO) {
                    self.files[file].on(FileEvent::Drop);
                    cut = Err(EINVAL);
                }
            }
        }
        self.release(handle);
        cut
    }

    /// Takes its name away from the file that is open.
    pub(super) fn detach(&mut self, name: usize) {
        if let Some(open) = self.open[name].take() {
            let was_current = self.is_current(&self.files[open]);
            let file = &mut self.files[open];
            (file.name, file.was_current) = (None, was_current);
        }
    }

    pub(crate) fn unlink(&mut self, name: usize) -> Result<(), i32> {
        if self.shown(name).is_none() {
            return Err(ENOENT);
        }
        self.detach(name);
        self.store[name] = None;
        Ok(())
    }

    /// Whether the file under this name was made and is not in the store yet.
    fn is_new(&self, name: usize) -> bool {
        let open = self.open[name].map(|file| &self.files[file]);
        open.is_some_and(|file| file.name.is_some() && file.draft.is_some() && file.base.is_none())
    }

    /// A file with these bytes, which was written beside, gets the name.
    pub(crate) fn place(
        &mut self,
        name: usize,
        text: Vec<u8>,
        placing: Placing,
    ) -> Result<(), i32> {
        let is_kept = placing != Placing::Rename(RenameMode::Replace);
        if is_kept && (self.is_new(name) || self.store[name].is_some()) {
            return Err(EEXIST);
        }
        if self.manners[name] == Manner::Chunk && text.len() != LEN {
            return Err(EINVAL);
        }
        // A link leaves alone what is open, and was found to have no object.
        if self.manners[name] == Manner::Chunk || placing != Placing::Link {
            self.detach(name);
        }
        self.put(name, text);
        Ok(())
    }

    /// The file `from` gets the name `to`. Decoded chunks cannot be moved.
    pub(crate) fn move_file(
        &mut self,
        from: usize,
        to: usize,
        placing: Placing,
    ) -> Result<(), i32> {
        if self.shown(from).is_none() {
            return Err(ENOENT);
        }
        if let Some(file) = self.open[from] {
            self.commit(file)?;
        }
        let is_kept = placing != Placing::Rename(RenameMode::Replace);
        if is_kept && (self.is_new(to) || self.store[to].is_some()) {
            return Err(EEXIST);
        }
        let Some(object) = self.store[from] else {
            return Err(ENOENT);
        };
        self.store[to] = Some(object);
        if placing != Placing::Link {
            self.detach(to);
            self.store[from] = None;
            self.open[to] = self.open[from].take();
            if let Some(file) = self.open[to] {
                self.files[file].name = Some(to);
            }
        }
        Ok(())
    }

    /// Whether two names are those of one object.
    pub(crate) fn is_same_object(&self, one: usize, other: usize) -> bool {
        self.store[one].is_some() && self.store[one] == self.store[other]
    }
}
