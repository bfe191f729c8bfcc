//! Writing, and changes of names and attributes. The view makes the changes, and this module keeps the kernel's
//! knowledge of inodes in step with them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use fuser::{Errno, FileHandle, FopenFlags, RenameFlags, TimeOrNow, WriteFlags};

use super::Core;
use super::attr::{NAME_BYTES, Reported};
use super::callers::AwaitedReply;
use super::opened::OpenedFile;
use super::reply::{Created, Opened, Reply};
use crate::store::{Allocation, FileChange};
use crate::view::{
    AttributeChange, Caller, HandleAccess, LookupResult, NewFile, NewTime, OpenFile, OpenedVnode,
    RenameMode, VnodeKind,
};

impl Core {
    /// Whether the kernel leaves `O_TRUNC` to the open.
    pub(super) fn truncates(&self) -> bool {
        self.truncates.load(Ordering::Relaxed)
    }

    pub(super) fn open_for_writing(
        self: &Arc<Self>,
        ino: u64,
        access: HandleAccess,
        (is_cut, thread): (bool, u32),
        reply: AwaitedReply<Reply<Opened>>,
    ) {
        self.view.requests().opens.add(1);
        let opened = self.vnode(ino).and_then(|vnode| {
            let opened = self.view.open_for(vnode, access, thread);
            let opened = opened.map_err(|error| self.errno_of_change(&error));
            opened.and_then(|opened| opened.ok_or(Errno::ENOENT))
        });
        match Core::looked_up_again(opened) {
            Ok(opened) => self.reply_opened(ino, opened, is_cut, reply),
            Err(errno) => reply.refuse(errno),
        }
    }

    /// Makes a file and opens it. If the file exists by now, it is opened, unless the caller requires a new one.
    pub(super) fn create_file(
        &self,
        (parent, name): (u64, &OsStr),
        new: NewFile,
        (flags, thread): (i32, u32),
        reply: Reply<Created>,
    ) {
        let made = match self.make(parent, name, new, thread) {
            Err(Errno::EEXIST) if flags & libc::O_EXCL == 0 => {
                let opened = self.open_existing(parent, name, thread);
                opened.map(|(found, opened)| (found, opened, flags & libc::O_TRUNC != 0))
            }
            made => made.map(|(found, opened)| (found, opened, false)),
        };
        let (found, opened, is_cut) = match made {
            Ok(made) => made,
            Err(errno) => return reply.error(errno),
        };
        let OpenedVnode { attributes, file } = opened;
        let ino = self
            .versions
            .number_to_report(found.id, attributes.fingerprint);
        let lock = self.lock_inode(ino);
        let flags = match self.settle_and_cut(ino, attributes, &file, is_cut) {
            Ok(flags) => flags,
            Err(errno) => {
                file.close();
                drop(lock);
                // The kernel does not count an error as a lookup.
                self.forget_inode(ino, 1);
                return reply.error(errno);
            }
        };
        let reported = self.reported(ino, &attributes);
        let handle = self.files.insert(OpenedFile::new(ino, file, attributes));
        drop(lock);
        reply.created(&reported, handle, flags & FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn make(
        &self,
        parent: u64,
        name: &OsStr,
        new: NewFile,
        thread: u32,
    ) -> Result<(LookupResult, OpenedVnode), Errno> {
        check_name(name)?;
        let directory = self.vnode(parent)?;
        let made = self.view.create(directory, name.as_bytes(), new, thread);
        self.of_directory(parent, made.map_err(|error| self.errno_of_change(&error)))
    }

    fn open_existing(
        &self,
        parent: u64,
        name: &OsStr,
        thread: u32,
    ) -> Result<(LookupResult, OpenedVnode), Errno> {
        let parent = self.vnode(parent)?;
        let found = self.present(self.view.lookup(parent, name.as_bytes()))?;
        let access = HandleAccess::ReadsAndWrites;
        let opened = self.view.open_for(found.id, access, thread);
        let opened = opened.map_err(|error| self.errno_of_change(&error));
        match opened.and_then(|opened| opened.ok_or(Errno::ENOENT)) {
            Ok(opened) => Ok((found, opened)),
            Err(errno) => {
                self.view.forget(found.id, 1);
                Err(errno)
            }
        }
    }

    /// Makes an empty file.
    pub(super) fn make_file(
        &self,
        parent: u64,
        name: &OsStr,
        new: NewFile,
    ) -> Result<Reported, Errno> {
        let (found, opened) = self.make(parent, name, new, 0)?;
        // No byte is written to it, so it is committed when it is released.
        opened.file.close();
        Ok(self.reported_entry(found))
    }

    pub(super) fn make_directory(
        &self,
        parent: u64,
        name: &OsStr,
        new: NewFile,
    ) -> Result<Reported, Errno> {
        check_name(name)?;
        let directory = self.vnode(parent)?;
        let made = self.view.make_directory(directory, name.as_bytes(), new);
        let made = made.map_err(|error| self.errno_of_change(&error));
        Ok(self.reported_entry(self.of_directory(parent, made)?))
    }

    pub(super) fn link(
        &self,
        ino: u64,
        (parent, name): (u64, &OsStr),
        caller: Caller,
    ) -> Result<Reported, Errno> {
        check_name(name)?;
        let (vnode, directory) = (self.vnode(ino)?, self.vnode(parent)?);
        let linked = self.view.link(vnode, directory, name.as_bytes(), caller);
        let linked = linked.map_err(|error| self.errno_of_change(&error));
        Ok(self.reported_entry(self.of_directory(parent, linked)?))
    }

    pub(super) fn remove(&self, parent: u64, name: &OsStr, kind: VnodeKind) -> Result<(), Errno> {
        let directory = self.vnode(parent)?;
        let removed = self.view.remove(directory, name.as_bytes(), kind);
        self.of_directory(
            parent,
            removed.map_err(|error| self.errno_of_change(&error)),
        )
    }

    pub(super) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
        caller: Caller,
    ) -> Result<(), Errno> {
        check_name(new_name)?;
        let mode = if flags == RenameFlags::RENAME_NOREPLACE {
            RenameMode::Keep
        } else if flags.is_empty() {
            RenameMode::Replace
        } else {
            return Err(Errno::EINVAL);
        };
        let from = (self.vnode(parent)?, name.as_bytes());
        let to = (self.vnode(new_parent)?, new_name.as_bytes());
        let renamed = self.view.rename(from, to, mode, caller);
        let renamed = renamed.map_err(|error| self.errno_of_change(&error));
        self.of_directory(new_parent, self.of_directory(parent, renamed))
    }

    pub(super) fn set_attributes(
        &self,
        ino: u64,
        handle: Option<FileHandle>,
        change: &AttributeChange,
    ) -> Result<Reported, Errno> {
        let opened = handle.and_then(|handle| self.files.get(handle));
        let opened = opened.filter(|opened| opened.ino == ino);
        let changed = match &opened {
            Some(opened) => opened.file.change_attributes(change),
            None => self.view.change_attributes(self.vnode(ino)?, change),
        };
        changed.map_err(|error| self.errno_of_change(&error))?;
        if let Some(opened) = &opened {
            self.note_change(ino, &opened.file);
        } else if let Ok(Some(now)) = self.view.attributes(self.vnode(ino)?) {
            // Other programs may have it open, and request its attributes when it no longer has a name.
            self.versions.changed(ino, now);
        }
        self.stat(ino, handle)
    }

    /// write(2), or pages of mapped memory (`FUSE_WRITE_CACHE`), which the kernel writes through any handle.
    pub(super) fn write_file(
        &self,
        (ino, handle): (u64, FileHandle),
        (offset, data): (u64, &[u8]),
        flags: WriteFlags,
    ) -> Result<u32, Errno> {
        let opened = self.opened(ino, handle)?;
        let file = opened.file.written().ok_or(Errno::EBADF)?;
        let written = if flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
            file.write_mapped(offset, data)
        } else {
            file.change(&FileChange::Write { offset, data })
        };
        written.map_err(|error| {
            self.note_saved(ino, &opened.file);
            self.errno_of_change(&error)
        })?;
        let counters = self.view.requests();
        counters.writes.add(1);
        counters.bytes_written.add(data.len() as u64);
        self.note_change(ino, &opened.file);
        u32::try_from(data.len()).map_err(|_| Errno::EINVAL)
    }

    /// fallocate(2): longer files, and holes.
    pub(super) fn allocate(
        &self,
        ino: u64,
        handle: FileHandle,
        (offset, len): (u64, u64),
        mode: i32,
    ) -> Result<(), Errno> {
        const HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let allocation = match mode {
            0 => Allocation::Extend,
            HOLE => Allocation::Hole,
            _ => return Err(Errno::EOPNOTSUPP),
        };
        let opened = self.opened(ino, handle)?;
        let file = opened.file.written().ok_or(Errno::EBADF)?;
        let changed = file.change(&FileChange::Allocate {
            offset,
            len,
            allocation,
        });
        changed.map_err(|error| self.errno_of_change(&error))?;
        self.note_change(ino, &opened.file);
        Ok(())
    }

    pub(super) fn flush(&self, ino: u64, handle: FileHandle, thread: u32) -> Result<(), Errno> {
        let opened = self.opened(ino, handle)?;
        let Some(file) = opened.file.written() else {
            return Ok(());
        };
        let flushed = file.flush(Some(thread));
        self.note_saved(ino, &opened.file);
        flushed.map_err(|error| self.errno_of_change(&error))
    }

    pub(super) fn sync(&self, ino: u64, handle: FileHandle, thread: u32) -> Result<(), Errno> {
        let opened = self.opened(ino, handle)?;
        let synced = opened.file.sync(thread);
        self.note_saved(ino, &opened.file);
        synced.map_err(|error| self.errno_of_change(&error))
    }

    pub(super) fn sync_directory(&self, ino: u64) -> Result<(), Errno> {
        let synced = self.view.sync_directory(self.vnode(ino)?);
        synced.map_err(|error| self.errno_of_change(&error))
    }

    fn opened(&self, ino: u64, handle: FileHandle) -> Result<Arc<OpenedFile>, Errno> {
        let opened = self.files.get(handle);
        opened
            .filter(|opened| opened.ino == ino)
            .ok_or(Errno::EBADF)
    }

    /// Notes the attributes of a file after a commit, if they or its bytes may differ from those that were written.
    /// stat(2) gets them until the kernel releases the handle, which it does a moment after close(2) has returned.
    fn note_saved(&self, ino: u64, file: &OpenFile) {
        if file.shows_other_bytes() {
            self.note_change(ino, file);
            // The kernel may have got other attributes after the last write, with ftruncate(2).
            self.drop_all(ino);
        }
    }

    /// Notes the attributes of a file after a change. For an open file without a name, the kernel requests them by its
    /// inode number alone. After a write, the kernel updates only size and times, although a program that is written to
    /// loses its set-user-ID bit.
    pub(super) fn note_change(&self, ino: u64, file: &OpenFile) {
        if let Ok(Some(now)) = file.written_now()
            && self.versions.changed(ino, now)
        {
            self.drop_attributes(ino);
        }
    }
}

fn check_name(name: &OsStr) -> Result<(), Errno> {
    if name.len() > NAME_BYTES {
        return Err(Errno::ENAMETOOLONG);
    }
    Ok(())
}

/// A time as the store sets it.
pub(super) fn time_to_set(time: TimeOrNow) -> NewTime {
    let TimeOrNow::SpecificTime(time) = time else {
        return NewTime::Now;
    };
    let whole = |seconds| i64::try_from(seconds).unwrap_or(i64::MAX);
    let (seconds, nanoseconds) = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (whole(since.as_secs()), since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            match before.subsec_nanos() {
                0 => (-whole(before.as_secs()), 0),
                rest => (-whole(before.as_secs()) - 1, 1_000_000_000 - rest),
            }
        }
    };
    NewTime::At {
        seconds,
        nanoseconds,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_before_1970_count_nanoseconds_forward() {
        let half = Duration::from_millis(500);
        for (time, seconds, nanoseconds) in [
            (UNIX_EPOCH + half, 0, 500_000_000),
            (UNIX_EPOCH - half, -1, 500_000_000),
            (UNIX_EPOCH - 2 * half, -1, 0),
        ] {
            let expected = NewTime::At {
                seconds,
                nanoseconds,
            };
            assert_eq!(time_to_set(TimeOrNow::SpecificTime(time)), expected);
        }
        assert_eq!(time_to_set(TimeOrNow::Now), NewTime::Now);
    }
}
