//! The bytes of a draft, which are in memory or in a file.
//!
//! ```text
//! the form encodes it, and the budget has room    in memory      the file has only the attributes
//! all other drafts                                in the file    it becomes the object, unless the form encodes it
//! ```
//!
//! Bytes that are written to a file take new pages of the page cache there, which costs more time than encoding the
//! bytes with a fast codec.

use std::fs::{File, FileTimes};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::SystemTime;

use super::form::Form;
use crate::budget::{Holding, Reservation};
use crate::buffers::Buffer;
use crate::error::Error;
use crate::load::to_usize;
use crate::shards::{InnerChunk, OpenInnerDraft};
use crate::store::{
    Commit, DirWriter, Draft, FileChange, Key, NewFile, Replaces, StoreError, StoredFile,
};
use crate::translate::DraftBytes;

/// The bytes of a draft, with the attributes of a file.
#[derive(Debug)]
pub(super) struct DraftFile {
    draft: Draft,
    /// The bytes; `None` if they are in the file of the draft, which always has the same length.
    memory: Option<DraftMemory>,
    /// Notes in the shard that this draft is open; `None` unless the file is an inner chunk.
    _inner: Option<OpenInnerDraft>,
}

/// The bytes of a draft in memory.
#[derive(Debug)]
struct DraftMemory {
    /// A buffer of the greatest length that the file may have. Behind the bytes of the draft, it may hold those of an
    /// earlier use.
    buffer: Buffer,
    /// The number of bytes of the draft.
    len: u64,
    _reservation: Reservation,
}

impl DraftFile {
    /// An empty draft of a file in this form, with the attributes of `draft`.
    pub(super) fn of_form(draft: Draft, form: Option<&dyn Form>) -> DraftFile {
        DraftFile {
            draft,
            memory: form.and_then(DraftMemory::of),
            _inner: None,
        }
    }

    /// An empty draft of the inner chunk that `form` shows.
    pub(super) fn of_inner(
        writer: &DirWriter,
        (form, inner): (&dyn Form, &InnerChunk),
        new: NewFile,
    ) -> Result<DraftFile, Error> {
        let memory = DraftMemory::of(form);
        Ok(DraftFile {
            draft: match memory {
                Some(_) => writer.begin_in_memory(inner.shard(), new)?,
                None => writer.begin_part(inner.shard(), new)?,
            },
            memory,
            _inner: Some(inner.begin_draft()),
        })
    }

    /// The file that has the attributes and the length of the draft.
    pub(super) fn file(&self) -> &Arc<File> {
        self.draft.file()
    }

    /// The bytes; `None` if they are in the file.
    pub(super) fn in_memory(&self) -> Option<&[u8]> {
        self.memory.as_ref().map(DraftMemory::bytes)
    }

    /// Makes `change`, and sets the times of the file as the system call does.
    pub(super) fn change(&mut self, change: &FileChange) -> io::Result<()> {
        let file = self.draft.file();
        let Some(memory) = &mut self.memory else {
            return change.apply(file);
        };
        let before = memory.len;
        let (changed, after) = (change.changed_bytes(before), change.len_after(before));
        memory
            .part(before.min(changed.start)..changed.start)?
            .fill(0);
        let bytes = memory.part(changed)?;
        // The new length may be over a limit of file sizes, so the file takes it first.
        if after == before {
            file.set_times(FileTimes::new().set_modified(SystemTime::now()))?;
        } else {
            file.set_len(after)?;
        }
        match change {
            FileChange::Write { data, .. } => bytes.copy_from_slice(data),
            FileChange::SetLen(_) | FileChange::Allocate { .. } => bytes.fill(0),
        }
        memory.len = after;
        Ok(())
    }

    /// Puts bytes that no program has written into the draft, at `offset`. They must lie within its length.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match &mut self.memory {
            Some(memory) => {
                let part = offset..offset.saturating_add(bytes.len() as u64);
                memory.part(part)?.copy_from_slice(bytes);
                Ok(())
            }
            None => self.draft.file().write_all_at(bytes, offset),
        }
    }

    /// Fills the beginning of `buf` from `offset`, and returns the number of bytes, which is less than the length of
    /// `buf` only at the end; `None` if the bytes are in the file.
    pub(super) fn read_in_memory(&self, offset: u64, buf: &mut [u8]) -> Option<usize> {
        let bytes = self.in_memory()?;
        let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
        let rest = rest.unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf.get_mut(..len)?.copy_from_slice(rest.get(..len)?);
        Some(len)
    }

    /// Fills `buf` from `offset`.
    pub(super) fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_in_memory(offset, buf) {
            Some(len) if len < buf.len() => Err(io::ErrorKind::UnexpectedEof.into()),
            Some(_) => Ok(()),
            None => self.draft.file().read_exact_at(buf, offset),
        }
    }

    /// The time of the last write, and the mode and the owner of the file.
    pub(super) fn last_write(&self) -> io::Result<(SystemTime, NewFile)> {
        let found = self.draft.file().metadata()?;
        let maker = NewFile {
            mode: found.mode() & 0o7777,
            umask: 0,
            uid: found.uid(),
            gid: found.gid(),
        };
        Ok((found.modified()?, maker))
    }

    /// Makes the file of the draft the object at `key`, with its bytes, and with its times if it `has_times`.
    pub(super) fn commit(
        &mut self,
        writer: &DirWriter,
        (key, has_times): (&Key, bool),
        replaces: Replaces,
    ) -> Result<Commit, StoreError> {
        if has_times {
            self.draft.keep_times();
        }
        if let Some(memory) = &self.memory {
            let written = write_keeping_times(self.draft.file(), memory.bytes());
            written.map_err(|error| StoreError::io(key, &error))?;
            self.memory = None;
        }
        writer.commit(key, &mut self.draft, replaces)
    }

    /// A draft with `bytes`, with the mode and the owner of this file, and with its times if it `has_times`. Each
    /// call makes another file, because a commit that fails may already have put its file into the store.
    pub(super) fn encoded(
        &self,
        writer: &DirWriter,
        (key, bytes): (&Key, &[u8]),
        has_times: bool,
    ) -> Result<Draft, StoreError> {
        let file = self.draft.file();
        let written = StoredFile {
            file: Arc::clone(file),
            meta: writer.meta_of(key, file)?,
            offset: 0,
            whole: None,
            is_writable: true,
        };
        let mut new = writer.begin_like(key, &written)?;
        let filled = || {
            new.file().write_all_at(bytes, 0)?;
            if has_times {
                new.file().set_times(times_of(file)?)?;
            }
            Ok(())
        };
        filled().map_err(|error: io::Error| StoreError::io(key, &error))?;
        if has_times {
            new.keep_times();
        }
        Ok(new)
    }
}

impl DraftMemory {
    /// Memory for the bytes that `form` shows; `None` if they belong in a file. A file never becomes a part of an
    /// object, so the bytes of a part may always be in memory.
    fn of(form: &dyn Form) -> Option<DraftMemory> {
        let rules = form.rules();
        let is_encoded = rules.draft == DraftBytes::Encoded || form.inner().is_some();
        let len = rules.len.filter(|_| is_encoded)?;
        let cache = form.cache();
        let holding = Holding::NOTHING.to_hold("what is written");
        let reservation = cache.reserve_kept_if_spare(Buffer::scratch_capacity_of(len), holding)?;
        Some(DraftMemory {
            buffer: cache.buffers().scratch(to_usize(len).ok()?).ok()?,
            len: 0,
            _reservation: reservation,
        })
    }

    /// The bytes of the draft.
    fn bytes(&self) -> &[u8] {
        let len = usize::try_from(self.len).ok();
        len.and_then(|len| self.buffer.get(..len))
            .unwrap_or_default()
    }

    /// A range of the buffer, to write to.
    fn part(&mut self, range: Range<u64>) -> io::Result<&mut [u8]> {
        let start = usize::try_from(range.start).ok();
        let range = start.zip(usize::try_from(range.end).ok());
        let part = range.and_then(|(start, end)| self.buffer.get_mut(start..end));
        part.ok_or_else(|| io::ErrorKind::FileTooLarge.into())
    }
}

impl From<Draft> for DraftFile {
    fn from(draft: Draft) -> DraftFile {
        DraftFile::of_form(draft, None)
    }
}

fn write_keeping_times(file: &File, bytes: &[u8]) -> io::Result<()> {
    let times = times_of(file)?;
    file.write_all_at(bytes, 0)?;
    file.set_times(times)
}

/// The times of a file, to set them.
fn times_of(file: &File) -> io::Result<FileTimes> {
    let from = file.metadata()?;
    let times = FileTimes::new().set_accessed(from.accessed()?);
    Ok(times.set_modified(from.modified()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::budget::Budget;
    use crate::store::{Allocation, DirStore, Store, Symlinks, WriterOptions};

    const MOST: usize = 300;

    /// The writer of an empty store.
    fn writer() -> (TempDir, DirWriter) {
        let folder = tempfile::tempdir().unwrap();
        let store = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
        let writer = store.writer(&WriterOptions::default()).unwrap().unwrap();
        (folder, writer)
    }

    /// A draft in memory, whose buffer has the bytes of an earlier use.
    fn in_memory(writer: &DirWriter) -> DraftFile {
        let budget = Budget::new(1 << 20);
        let reservation = budget.reserve_kept_if_spare(MOST as u64, Holding::NOTHING);
        let memory = DraftMemory {
            buffer: Buffer::from(vec![0xaa; MOST]),
            len: 0,
            _reservation: reservation.unwrap(),
        };
        DraftFile {
            memory: Some(memory),
            ..in_file(writer)
        }
    }

    fn in_file(writer: &DirWriter) -> DraftFile {
        writer.begin_apart(&"a draft").unwrap().into()
    }

    fn place() -> impl Strategy<Value = (u64, u64)> {
        (0..MOST as u64).prop_flat_map(|start| (Just(start), 0..=MOST as u64 - start))
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write((u64, u64), u8),
        SetLen(u64),
        Allocate((u64, u64), Allocation),
    }

    fn step() -> impl Strategy<Value = Step> {
        let allocation = prop_oneof![Just(Allocation::Extend), Just(Allocation::Hole)];
        prop_oneof![
            (place(), any::<u8>()).prop_map(|(place, value)| Step::Write(place, value)),
            (0..=MOST as u64).prop_map(Step::SetLen),
            (place(), allocation).prop_map(|(place, what)| Step::Allocate(place, what)),
        ]
    }

    proptest! {
        #[test]
        fn memory_changes_as_a_file_does(steps in prop::collection::vec(step(), 1..20)) {
            let (_folder, writer) = writer();
            let (mut memory, mut file) = (in_memory(&writer), in_file(&writer));
            for step in steps {
                let data;
                let change = match step {
                    Step::Write((offset, len), value) => {
                        data = vec![value; usize::try_from(len)?];
                        FileChange::Write { offset, data: &data }
                    }
                    Step::SetLen(len) => FileChange::SetLen(len),
                    // The system call refuses a length of 0.
                    Step::Allocate((_, 0), _) => continue,
                    Step::Allocate((offset, len), allocation) => {
                        FileChange::Allocate { offset, len, allocation }
                    }
                };
                file.change(&change)?;
                memory.change(&change)?;
                let len = file.file().metadata()?.len();
                let mut expected = vec![0; usize::try_from(len)?];
                file.read_exact_at(&mut expected, 0)?;
                prop_assert_eq!(memory.in_memory(), Some(&expected[..]), "{:?}", change);
                prop_assert_eq!(memory.file().metadata()?.len(), len, "{:?}", change);
            }
        }
    }

    #[test]
    fn changes_that_do_not_fit_are_refused() {
        let (_folder, writer) = writer();
        let mut memory = in_memory(&writer);
        let data = &[1; 10];
        let first = FileChange::Write { offset: 5, data };
        memory.change(&first).unwrap();
        let refused = [
            FileChange::Write {
                offset: MOST as u64 - 9,
                data,
            },
            FileChange::Write {
                offset: u64::MAX,
                data,
            },
            FileChange::SetLen(MOST as u64 + 1),
        ];
        for change in refused {
            let error = memory.change(&change).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{change:?}");
            let kept = [[0; 5].as_slice(), data].concat();
            assert_eq!(memory.in_memory(), Some(&kept[..]), "{change:?}");
            assert_eq!(memory.file().metadata().unwrap().len(), 15, "{change:?}");
        }
    }
}
