//! Writing to files, and committing what was written.

use std::ops::Range;

use libc::{EBADF, EFBIG, EIO, ESTALE};
use zarr_mount::files::{FileEvent, OpenState};
use zarr_mount::view::HandleAccess;

use super::{Draft, File, Handle, Manner, Model};
use crate::codecs::{FILL, LEN};

impl Model {
    /// Makes a draft, if bytes are not written to the object itself.
    fn begin(&mut self, number: usize) -> Result<(), i32> {
        let file = &self.files[number];
        if file.draft.is_some() || file.manner == Manner::InPlace {
            return Ok(());
        }
        let is_whole = file.manner == Manner::Whole;
        if file.name.is_none() {
            if !is_whole {
                // The file has no name, so that only its own handles read the written bytes.
                let bytes = self.base_bytes(file);
                self.files[number].begin(Draft::of(bytes));
            }
            return Ok(());
        }
        if is_whole
            && file
                .base
                .is_some_and(|base| self.objects[base.object].version != base.version)
        {
            return Err(ESTALE);
        }
        let draft = Draft {
            bytes: if is_whole {
                self.base_bytes(file)
            } else {
                vec![0; LEN]
            },
            written: (!is_whole).then_some([false; LEN]),
            began_empty: false,
            ..Draft::of(Vec::new())
        };
        self.files[number].begin(draft);
        Ok(())
    }

    /// Changes the bytes in `range` of the file.
    fn change(
        &mut self,
        (number, access): (usize, HandleAccess),
        range: Range<usize>,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), i32> {
        let file = &self.files[number];
        if file.is_lost() {
            return Err(ESTALE);
        }
        if file.manner == Manner::Chunk && range.end > LEN {
            return Err(EFBIG);
        }
        self.begin(number)?;
        let file = &mut self.files[number];
        let Some(draft) = &mut file.draft else {
            let base = file.base.expect("a file without a draft has an object");
            change(&mut self.objects[base.object].bytes);
            return Ok(());
        };
        change(&mut draft.bytes);
        if let Some(written) = &mut draft.written {
            draft.is_blind &= access != HandleAccess::ReadsAndWrites;
            written[range].fill(true);
        }
        file.on(FileEvent::Change);
        Ok(())
    }

    pub(crate) fn write(&mut self, handle: usize, offset: usize, text: &[u8]) -> Result<(), i32> {
        let had_written = self.handles[handle].has_written;
        let handle = self.writing(handle)?;
        let what = (handle.file, handle.access);
        let end = offset + text.len();
        let changed = self.change(what, offset..end, |bytes| {
            bytes.resize(bytes.len().max(end), 0);
            bytes[offset..end].copy_from_slice(text);
        });
        let file = &mut self.files[what.0];
        let is_rewritten = file.is_rewritten();
        let is_broken = file.state == OpenState::Broken;
        if let Some(draft) = &mut file.draft {
            if changed.is_err() && had_written {
                if !is_broken {
                    draft.refused = offset;
                }
                file.on(FileEvent::ChangeFails);
            } else if changed.is_ok() && is_rewritten {
                draft.anew[offset.min(LEN)..end.min(LEN)].fill(true);
            }
        }
        changed
    }

    /// Notes that the handle has written, and returns it.
    fn writing(&mut self, handle: usize) -> Result<&Handle, i32> {
        let handle = &mut self.handles[handle];
        if !handle.access.writes() {
            return Err(EBADF);
        }
        handle.has_written = true;
        Ok(handle)
    }

    /// Notes that a call, which should have written, has failed before it changed anything.
    pub(crate) fn tried_to_write(&mut self, handle: usize) {
        // Handles that only read have not written.
        let _ = self.writing(handle);
    }

    pub(crate) fn set_len(&mut self, handle: usize, len: usize) -> Result<(), i32> {
        let writing = self.writing(handle)?;
        let what = (writing.file, writing.access);
        let now = self.size(what.0);
        if now != len && len == 0 {
            // A writer that may have read the file may have computed the written bytes from it.
            return self.empty(handle, what.1 != HandleAccess::ReadsAndWrites);
        }
        if now != len {
            self.change(what, now.min(len)..now.max(len), |bytes| {
                bytes.resize(len, 0);
            })?;
        }
        let file = &mut self.files[what.0];
        if let Some(draft) = &mut file.draft {
            draft.anew[len.min(LEN)..].fill(false);
            if file.state == OpenState::Broken && len <= draft.refused {
                file.on(FileEvent::Repair);
            }
        }
        Ok(())
    }

    /// Makes the file empty, as `O_TRUNC` does.
    pub(crate) fn clear(&mut self, handle: usize) -> Result<(), i32> {
        self.empty(handle, true)
    }

    fn empty(&mut self, handle: usize, is_blind: bool) -> Result<(), i32> {
        let handle = &self.handles[handle];
        if !handle.access.writes() {
            return Err(EBADF);
        }
        let (number, file) = (handle.number, handle.file);
        self.change((file, HandleAccess::Writes), 0..0, Vec::clear)?;
        let file = &mut self.files[file];
        if let Some(draft) = &mut file.draft {
            draft.written = None;
            draft.anew = [false; LEN];
            draft.began_empty |= is_blind;
            draft.left_to.clear();
            draft.rewriters.insert(number);
            file.on(FileEvent::Repair);
        }
        Ok(())
    }

    pub(super) fn commit(&mut self, number: usize) -> Result<(), i32> {
        let file = &mut self.files[number];
        if file.is_lost() {
            return Err(ESTALE);
        }
        let (Some(name), Some(draft)) = (file.name, &file.draft) else {
            return Ok(());
        };
        if file.state == OpenState::Broken {
            return Err(EFBIG);
        }
        let is_chunk = file.manner == Manner::Chunk;
        let is_whole = !is_chunk || draft.bytes.len() == LEN;
        file.on(FileEvent::Try);
        if !is_whole {
            file.on(FileEvent::Fail);
            return Err(EIO);
        }
        let Some(draft) = &self.files[number].draft else {
            return Ok(());
        };
        let merges = draft.began_empty || (draft.written.is_some() && draft.is_blind);
        let base = self.files[number].base;
        if self.base_of(name) != base {
            let is_same = self.has_same_base(name, base);
            let now = self.base_of(name);
            let file = &mut self.files[number];
            if !(merges || is_same) {
                file.on(FileEvent::Conflict);
                file.name = None;
                return Err(ESTALE);
            }
            file.base = now;
        }
        let file = &self.files[number];
        let bytes = file
            .draft
            .as_ref()
            .map(|draft| self.with_base(file, draft))
            .unwrap_or_default();
        self.put(name, bytes);
        let base = self.base_of(name);
        let file = &mut self.files[number];
        file.on(FileEvent::Saved);
        file.base = base;
        Ok(())
    }

    /// The store gets an object under this name.
    pub(super) fn put(&mut self, name: usize, bytes: Vec<u8>) {
        let is_absent = self.manners[name] == Manner::Chunk && bytes == [FILL; LEN];
        let object = self.new_object(bytes);
        self.store[name] = (!is_absent).then_some(object);
    }

    /// Commits the draft, or leaves it to the handles that write the file anew. Returns whether it was committed.
    pub(super) fn flush_file(&mut self, file: usize, writer: usize) -> Result<bool, i32> {
        if let Some(draft) = &mut self.files[file].draft {
            draft.rewriters.remove(&writer);
        }
        let is_rewritten = self.files[file].is_rewritten();
        if let Some(draft) = self.files[file].draft.as_mut().filter(|_| is_rewritten) {
            draft.left_to.clone_from(&draft.rewriters);
            return Ok(false);
        }
        self.commit(file).map(|()| true)
    }

    pub(crate) fn flush(&mut self, handle: usize, is_by_child: bool) -> Result<(), i32> {
        let handle = &mut self.handles[handle];
        let (number, file) = (handle.number, handle.file);
        let is_left_to =
            |draft: &Draft| draft.left_to.contains(&number) && draft.rewriters.contains(&number);
        let is_left = self.files[file].draft.as_ref().is_some_and(is_left_to);
        if !std::mem::take(&mut handle.has_written) && !is_left {
            return Ok(());
        }
        let is_own = |draft: &Draft| draft.rewriters.contains(&number);
        let is_rewritten = self.files[file].is_rewritten();
        let is_rewriter = is_rewritten && self.files[file].draft.as_ref().is_some_and(is_own);
        let flushed = self.flush_file(file, number);
        if flushed != Ok(true) {
            self.handles
                .iter_mut()
                .filter(|other| other.number == number)
                .for_each(|own| own.has_written = true);
        }
        if flushed == Err(EIO) && is_by_child {
            self.files[file].on(FileEvent::Continue);
            if let Some(draft) = self.files[file].draft.as_mut().filter(|_| is_rewriter) {
                draft.rewriters.insert(number);
            }
            return Ok(());
        }
        flushed.map(|_| ())
    }

    pub(crate) fn sync(&mut self, handle: usize) -> Result<(), i32> {
        let handle = &self.handles[handle];
        let is_left = |draft: &Draft| {
            let is_own = handle.has_written || draft.rewriters.contains(&handle.number);
            !is_own
        };
        let (number, file) = (handle.number, handle.file);
        let is_rewritten = self.files[file].is_rewritten() && !self.files[file].is_whole();
        let is_left = is_rewritten && self.files[file].draft.as_ref().is_some_and(is_left);
        let synced = if is_left { Ok(()) } else { self.commit(file) };
        if synced.is_ok() {
            self.handles
                .iter_mut()
                .filter(|other| other.number == number)
                .for_each(|own| own.has_written = false);
        }
        synced
    }

    /// Commits all files that were written, except those that are being written anew and are not whole yet. Returns
    /// the errors.
    pub(crate) fn sync_all(&mut self) -> Vec<i32> {
        let is_wanted = |file: &File| !file.is_rewritten() || file.is_whole();
        self.commit_where(is_wanted)
    }

    /// Commits all files that were written, because the mount ends.
    pub(crate) fn finish(&mut self) {
        self.commit_where(|_| true);
    }

    fn commit_where(&mut self, wanted: impl Fn(&File) -> bool) -> Vec<i32> {
        let is_wanted = |number: &usize| {
            let file = &self.files[*number];
            file.draft.is_some() && wanted(file)
        };
        let wanted: Vec<usize> = (0..self.files.len()).filter(is_wanted).collect();
        wanted
            .into_iter()
            .filter_map(|file| self.commit(file).err())
            .collect()
    }

    pub(crate) fn close(&mut self, place: usize) -> Result<(), i32> {
        let flushed = self.flush(place, false);
        self.release(place);
        flushed
    }

    pub(super) fn release(&mut self, place: usize) {
        let handle = self.handles.remove(place);
        let is_last = self.files[handle.file].n_handles == 1;
        self.released(&handle, is_last);
        let file = &mut self.files[handle.file];
        file.n_handles -= 1;
        if is_last
            && let Some(name) = file.name
            && self.open[name] == Some(handle.file)
        {
            self.open[name] = None;
        }
    }

    fn released(&mut self, handle: &Handle, is_last: bool) {
        let writes = |other: &Handle| other.file == handle.file && other.access.writes();
        let has_writers = self.handles.iter().any(writes);
        let file = &mut self.files[handle.file];
        // Programs that have opened a file without a name read what was written to it.
        let is_end = is_last || (!has_writers && file.name.is_some());
        let Some(draft) = &mut file.draft else {
            return;
        };
        let was_rewriter = draft.rewriters.remove(&handle.number);
        if is_end {
            draft.rewriters.clear();
        }
        if !(is_end || handle.has_written || was_rewriter) {
            return;
        }
        let was_told = file.state == OpenState::Failed;
        let is_saved = !was_told && self.flush_file(handle.file, handle.number).is_ok();
        let file = &mut self.files[handle.file];
        let has_changes = file.draft.is_some();
        if is_end && !is_saved && has_changes && (is_last || file.name.is_some()) {
            file.on(FileEvent::Drop);
        }
    }

    pub(crate) fn touch(&mut self, handle: usize) {
        let file = &mut self.files[self.handles[handle].file];
        // An inner chunk has no times of its own.
        if file.draft.is_some() || self.is_sharded {
            return;
        }
        if let Some(base) = &mut file.base {
            let object = &mut self.objects[base.object];
            object.version += 1;
            base.version = object.version;
        }
    }
}
