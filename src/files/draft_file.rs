//! The place of the bytes of a draft: memory, as far as the budget has room, otherwise a file.
//!
//! ```text
//! encoded by its form, and room    memory         the file has the attributes
//! all others                       the file       it becomes the object, unless that is encoded
//! ```
//!
//! Each byte that is kept in a file takes a fresh page there, which costs more than encoding it with a fast codec.

use std::fs::{File, FileTimes};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::SystemTime;

use super::draft_memory::DraftMemory;
use super::form::Form;
use crate::error::Error;
use crate::shards::{InnerChunk, OpenInnerDraft};
use crate::store::{
    Commit, DirWriter, Draft, FileChange, Key, NewFile, Replaces, StoreError, StoredFile,
};

/// The bytes of a draft, with the attributes of a file.
#[derive(Debug)]
pub(super) struct DraftFile {
    draft: Draft,
    /// The bytes; `None` if they are in the file of the draft, which always has the same length.
    memory: Option<DraftMemory>,
    /// Notes in the shard that this draft is open; `None` unless the file is an inner chunk.
    _inner: Option<OpenInnerDraft>,
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

    /// The file with the attributes, and the length.
    pub(super) fn file(&self) -> &Arc<File> {
        self.draft.file()
    }

    /// The bytes; `None` if they are in the file.
    pub(super) fn in_memory(&self) -> Option<&[u8]> {
        self.memory.as_ref().map(DraftMemory::bytes)
    }

    /// Makes `change`, and sets the times of the file as the system call does.
    pub(super) fn change(&mut self, change: &FileChange) -> io::Result<()> {
        let Some(memory) = &mut self.memory else {
            return change.apply(self.draft.file());
        };
        let before = memory.bytes().len();
        memory.change(change)?;
        let (file, len) = (self.draft.file(), memory.bytes().len());
        if len == before {
            return file.set_times(FileTimes::new().set_modified(SystemTime::now()));
        }
        let noted = file.set_len(len as u64);
        if noted.is_err() {
            // The file may be over a limit of file sizes. It has kept its length, and so must the memory.
            memory.set_len(before as u64)?;
        }
        noted
    }

    /// Puts bytes into the draft that no program has written, at `offset`, which is within its length.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match &mut self.memory {
            Some(memory) => memory.write(offset, bytes),
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

    /// A draft with `bytes`, with the mode and the owner of this file, and with its times if it `has_times`. It is
    /// always another file: a commit that fails may already have put this one into the store.
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
