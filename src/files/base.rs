//! The text that a document had before it was written to, which shows the members that were
//! changed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::Writing;
use super::draft_file::DraftFile;
use crate::store::{Draft, StoreError, copy_range};

/// The text that a document had when its draft began.
#[derive(Debug)]
pub(super) enum Base {
    /// There was no document.
    Nothing,
    /// The document had this text.
    Text(Draft),
    /// The document could not be read.
    Unknown,
}

impl Base {
    /// The text; `None` if it is not known.
    pub(super) fn text(&self) -> io::Result<Option<Vec<u8>>> {
        match self {
            Base::Nothing => Ok(Some(b"{}".to_vec())),
            Base::Text(draft) => {
                let mut text = Vec::new();
                let mut file: &File = draft.file();
                file.seek(SeekFrom::Start(0))?;
                file.read_to_end(&mut text)?;
                Ok(Some(text))
            }
            Base::Unknown => Ok(None),
        }
    }

    /// The text that was written to a document.
    pub(super) fn of_draft(
        writing: &Writing,
        name: &dyn std::fmt::Display,
        written: &DraftFile,
    ) -> Base {
        if let Some(text) = written.in_memory() {
            return Base::of_text(writing, name, text);
        }
        let copied = || -> io::Result<Base> {
            let draft = writing.writer.begin_apart(name).map_err(io::Error::other)?;
            let len = written.file().metadata()?.len();
            copy_range((written.file(), 0), (draft.file(), 0), len)?;
            Ok(Base::Text(draft))
        };
        copied().unwrap_or(Base::Unknown)
    }

    /// The `text` that a document has.
    pub(super) fn of_text(writing: &Writing, name: &dyn std::fmt::Display, text: &[u8]) -> Base {
        let written = || -> Result<Draft, StoreError> {
            let draft = writing.writer.begin_apart(name)?;
            draft.fill(name, text)?;
            Ok(draft)
        };
        written().map_or(Base::Unknown, Base::Text)
    }
}
