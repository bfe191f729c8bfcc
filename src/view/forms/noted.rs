//! Notes of changes to documents that consolidated metadata has copies of. The copies are changed after the document.
//! If a daemon is killed in between, its note remains, and the next daemon changes the copies by it.

use crate::error::Error;
use crate::metadata::DocumentName;
use crate::store::{ChangeNote, DirWriter, DocumentChange, Key, Prefix, StoreError};
use crate::translate::Encoded;
use crate::translate::copies::{HOLDERS, has_mark, has_mark_in};
use crate::view::{View, ViewKind};

impl View {
    /// Notes that documents at `path` are about to be written or removed; `None` if no consolidated metadata has
    /// copies of them. `written` has the new texts of the documents.
    ///
    /// # Errors
    /// [`Error`] when the note cannot be made.
    pub(in crate::view) fn note_change(
        &self,
        path: &Prefix,
        written: &[&[u8]],
    ) -> Result<Option<ChangeNote>, Error> {
        if !written.iter().any(|text| has_mark(text)) && !self.has_copies_above(path)? {
            return Ok(None);
        }
        let change = DocumentChange::At(path.clone());
        Ok(Some(self.tree.writer()?.note_change(&change)?))
    }

    /// Like [`View::note_change`], for the removal of the object at `key`, which may not be a document.
    pub(in crate::view) fn note_removal(&self, key: &Key) -> Result<Option<ChangeNote>, Error> {
        if DocumentName::of(key.name()).is_none() {
            return Ok(None);
        }
        self.note_change(&key.parent(), &[])
    }

    /// Like [`View::note_change`], for the documents at `path` that are about to be saved with the bytes `encoded`.
    pub(super) fn note_commit(
        &self,
        path: &Prefix,
        encoded: &Encoded,
    ) -> Result<Option<ChangeNote>, Error> {
        match encoded {
            Encoded::Unchanged => Ok(None),
            Encoded::Objects(changes) => {
                let written = changes.iter().filter_map(|change| change.bytes.as_deref());
                self.note_change(path, &written.collect::<Vec<_>>())
            }
            other => self.note_change(path, &[other.bytes(b"").unwrap_or_default()]),
        }
    }

    /// Notes that the directory `from` is about to be renamed to `to` through `view`; `None` if no consolidated
    /// metadata has copies of documents in it.
    ///
    /// # Errors
    /// [`Error`] when the note cannot be made.
    pub(in crate::view) fn note_rename(
        &self,
        view: ViewKind,
        from: &Key,
        to: &Key,
    ) -> Result<Option<ChangeNote>, Error> {
        if self.tree.shows_store(view) {
            return Ok(None);
        }
        if !self.has_copies_above(&from.parent())? && !self.has_copies_above(&to.parent())? {
            return Ok(None);
        }
        let (from, to) = (from.clone(), to.clone());
        let change = DocumentChange::Renamed { from, to };
        Ok(Some(self.tree.writer()?.note_change(&change)?))
    }

    /// Whether the node at `path`, or a group above it, has copies of documents.
    fn has_copies_above(&self, path: &Prefix) -> Result<bool, Error> {
        let writer = self.tree.writer()?;
        for group in path.with_ancestors() {
            for holder in HOLDERS {
                let key = group.key(holder.as_str().as_bytes())?;
                // A document that cannot be read may have copies. The reason is logged when they are updated.
                if has_copies(writer, &key).unwrap_or(true) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Brings those copies up to date that an earlier daemon left behind because it was killed. Returns the number of
    /// changes whose copies are up to date now, and the number of those where that was not possible.
    pub(in crate::view) fn recover_copies(&self) -> Result<(usize, usize), Error> {
        let (mut updated, mut left) = (0, 0);
        for (note, change) in self.tree.writer()?.left_notes()? {
            let is_updated = match &change {
                DocumentChange::At(path) => self.recover_copies_of(path),
                DocumentChange::Renamed { from, to } => self.recover_moved_copies(from, to),
            };
            if is_updated? {
                updated += 1;
            } else {
                left += 1;
                note.keep();
            }
        }
        Ok((updated, left))
    }

    fn recover_copies_of(&self, path: &Prefix) -> Result<bool, Error> {
        let keys = DocumentName::ALL.map(|name| path.key(name.as_str().as_bytes()));
        let keys = keys.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(self.update_all_copies(&keys))
    }

    fn recover_moved_copies(&self, from: &Key, to: &Key) -> Result<bool, Error> {
        let mut is_updated = self.move_all_copies(from, to);
        // The directory may have had other names before the last one.
        let above = from.parent();
        for group in above.with_ancestors().chain(to.parent().with_ancestors()) {
            for holder in HOLDERS {
                is_updated &= self.renew_copies(&group.key(holder.as_str().as_bytes())?);
            }
        }
        Ok(is_updated)
    }
}

/// Whether the document at `key` has copies of others.
fn has_copies(writer: &DirWriter, key: &Key) -> Result<bool, StoreError> {
    let Some(stored) = writer.open_object(key, false)? else {
        return Ok(false);
    };
    has_mark_in(&*stored.file).map_err(|error| StoreError::io(key, &error))
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
pub(super) mod tests;
