//! What a document had before it was written to, so that it can be told which members were changed.

use std::os::unix::fs::FileExt;

use super::Writing;
use crate::store::{Draft, StoreError};

/// What a document had when its draft began.
#[derive(Debug)]
pub(super) enum Base {
    /// There was none.
    Nothing,
    /// This text.
    Text(Draft),
    /// It could not be read.
    Unknown,
}

impl Base {
    /// The `text` that a document has.
    pub(super) fn of_text(writing: &Writing, name: &dyn std::fmt::Display, text: &[u8]) -> Base {
        let written = || -> Result<Draft, StoreError> {
            let draft = writing.writer.begin_apart(name)?;
            let written = draft.file().write_all_at(text, 0);
            written.map_err(|error| StoreError::io(name, &error))?;
            Ok(draft)
        };
        written().map_or(Base::Unknown, Base::Text)
    }
}
