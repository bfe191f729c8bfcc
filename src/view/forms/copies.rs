//! Consolidated metadata in the groups above a document that was written or removed: the copies of the document are
//! updated to its current text. If the document itself has copies, these are updated from the store.
//!
//! Both can happen at the same time, if programs write several documents. After the mount has saved a document, it
//! reads the documents of the store and saves the document that has their copies, while it holds the lock of the
//! latter. For a saved document that has copies itself, it reads the documents of all nodes below the group. So the last
//! update reads every document that any program has saved before it, and its copies are those of the current documents.

use std::io::Read;

use crate::budget::Holding;
use crate::error::{Error, FormatError};
use crate::files::NameLock;
use crate::metadata::carry::differences;
use crate::metadata::consolidated::{copied_names, copy_of, with_added, with_copy, with_documents};
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::{ChangeNote, Commit, Key, Prefix, Replaces, StoreError};
use crate::translate::MAX_DOCUMENT_BYTES;
use crate::translate::copies::{HOLDERS, copied_name, has_mark, has_mark_in, holder_of};
use crate::view::View;
use crate::view::tree::Tree;

impl View {
    /// Prevents the mount itself from changing the copies in these documents until the result is dropped.
    pub(super) fn keep_copies(&self, holders: impl IntoIterator<Item = Prefix>) -> NameLock<'_> {
        self.copies.take(holders.into_iter().collect())
    }

    /// Updates the copies of the documents at `keys`, and the copies that these documents have of others. If that is
    /// not possible, the `note` of their change stays.
    pub(in crate::view) fn update_copies(&self, keys: &[Key], note: Option<ChangeNote>) {
        if !self.update_all_copies(keys)
            && let Some(note) = note
        {
            note.keep();
        }
    }

    /// Like [`View::update_copies`]. Returns whether all of them are up to date.
    pub(super) fn update_all_copies(&self, keys: &[Key]) -> bool {
        // All of them are tried.
        let failed = keys.iter().filter(|key| !self.update_copies_of(key));
        failed.count() == 0
    }

    fn update_copies_of(&self, key: &Key) -> bool {
        let Some(name) = DocumentName::of(key.name()) else {
            return true;
        };
        let mut is_updated = self.renew_copies(key);
        if name == DocumentName::ZMetadata {
            return is_updated;
        }
        for group in key.parent().with_ancestors() {
            if let Err(error) = self.update_copies_in(&group, name, std::slice::from_ref(key)) {
                log::warn!("{group}: the consolidated copy of {key} was not updated: {error}");
                is_updated = false;
            }
        }
        is_updated
    }

    /// Updates the copies of the documents below `from`, a directory that was renamed to `to`, in the groups above
    /// both. If that is not possible, the `note` of the rename stays.
    pub(in crate::view) fn move_copies(&self, from: &Key, to: &Key, note: Option<ChangeNote>) {
        if !self.move_all_copies(from, to)
            && let Some(note) = note
        {
            note.keep();
        }
    }

    /// Like [`View::move_copies`]. Returns whether all of them are up to date.
    pub(super) fn move_all_copies(&self, from: &Key, to: &Key) -> bool {
        let keys = match self.keys_before_and_after(from, to) {
            Ok(keys) => keys,
            Err(error) => {
                log::warn!("{to}: consolidated metadata was not updated: {error}");
                return false;
            }
        };
        let mut is_updated = true;
        let mut groups: Vec<_> = from.parent().with_ancestors().collect();
        groups.extend(to.parent().with_ancestors());
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            for name in HOLDERS {
                if let Err(error) = self.update_copies_in(&group, name, &keys) {
                    log::warn!("{group}: consolidated metadata was not updated: {error}");
                    is_updated = false;
                }
            }
        }
        is_updated
    }

    /// Updates the copies in the document at `key` from the store: of those nodes that it lists, and of those that were
    /// made since its writer has read it. Returns whether that was possible.
    pub(super) fn renew_copies(&self, key: &Key) -> bool {
        if !DocumentName::of(key.name()).is_some_and(|name| HOLDERS.contains(&name)) {
            return true;
        }
        let renewed = self.edit_copies(key, |text| {
            let new = self.tree.with_all_copies(key, &text)?;
            let changed = differences(&text, &new);
            let changed = changed.map_err(|error| Error::in_document(key, error))?;
            Ok((!changed.is_empty()).then_some(new))
        });
        if let Err(error) = &renewed {
            log::warn!("{key}: the consolidated copies in it are as they were written: {error}");
        }
        renewed.is_ok()
    }

    /// The keys of the documents below `to`, and the keys that they had while this directory was `from`.
    fn keys_before_and_after(&self, from: &Key, to: &Key) -> Result<Vec<Key>, Error> {
        let (from, to) = (from.to_prefix(), to.to_prefix());
        let found = self.tree.documents_below(&to)?;
        if let Some((_, error)) = found.refused.into_iter().next() {
            return Err(error.into());
        }
        let mut keys = found.keys;
        for at in 0..keys.len() {
            let before = keys.get(at).and_then(|key| to.strip(key.as_bytes()));
            keys.push(from.key(before.unwrap_or_default())?);
        }
        Ok(keys)
    }

    /// Updates the copies in `group` of the documents at `keys` from the store. These are only the documents of the
    /// version of `name`.
    fn update_copies_in(
        &self,
        group: &Prefix,
        name: DocumentName,
        keys: &[Key],
    ) -> Result<(), Error> {
        let tree = &self.tree;
        let (holder, format) = holder_of(name);
        let holder = group.key(holder.as_str().as_bytes())?;
        let copied = keys.iter();
        let copied = copied.filter_map(|key| Some((key, copied_name(group, key, format)?)));
        let copied: Vec<_> = copied.collect();
        if copied.is_empty() {
            return Ok(());
        }
        self.edit_copies(&holder, |mut text| {
            let mut is_changed = false;
            for (key, name) in &copied {
                let copy = tree.document_to_copy(key)?;
                let changed = with_copy(&text, format, (name, copy.as_deref()));
                let changed = changed.map_err(|error| Error::in_document(&holder, error))?;
                if let Some(changed) = changed {
                    (text, is_changed) = (changed, true);
                }
            }
            Ok(is_changed.then_some(text))
        })
    }

    /// Replaces the document at `holder`, if it has copies of others, by the result of `change`; `None` leaves it
    /// unchanged. If another program changes the document meanwhile, the new text is changed.
    ///
    /// # Errors
    /// [`Error`]; those of `change`.
    fn edit_copies(
        &self,
        holder: &Key,
        mut change: impl FnMut(Vec<u8>) -> Result<Option<Vec<u8>>, Error>,
    ) -> Result<(), Error> {
        const ATTEMPTS: usize = 8;
        let writer = self.tree.writer()?;
        let _copies = self.keep_copies([holder.to_prefix()]);
        for _ in 0..ATTEMPTS {
            let Some(stored) = writer.open_object(holder, false)? else {
                return Ok(());
            };
            let failed = |error: std::io::Error| StoreError::io(holder, &error);
            let size = stored.meta.version.size;
            if size > MAX_DOCUMENT_BYTES && !has_mark_in(&*stored.file).map_err(failed)? {
                return Ok(());
            }
            FormatError::check_limit("the size of the document", size, MAX_DOCUMENT_BYTES)
                .map_err(|error| Error::in_document(holder, error))?;
            let mut text = Vec::new();
            (&*stored.file).read_to_end(&mut text).map_err(failed)?;
            if !has_mark(&text) {
                return Ok(());
            }
            let Some(new) = change(text)? else {
                return Ok(());
            };
            let mut draft = writer.begin_like(holder, &stored)?;
            draft.fill(holder, &new)?;
            let replaces = Replaces::Version(stored.meta.version);
            if let Commit::Done(_) = writer.commit(holder, &mut draft, replaces)? {
                writer.sync_closed(holder)?;
                self.tree.hierarchy.forget(&holder.parent());
                return Ok(());
            }
        }
        Err(StoreError::changed(holder).into())
    }
}

impl Tree {
    /// The consolidated document `text` of the group of `key`, with copies of the stored documents.
    pub(super) fn with_stored_copies(&self, key: &Key, text: &[u8]) -> Result<Vec<u8>, Error> {
        let Some(name) = DocumentName::of(key.name()) else {
            return Ok(text.to_vec());
        };
        let group = key.parent();
        let format = match name {
            DocumentName::ZMetadata => ZarrFormat::V2,
            DocumentName::ZarrJson => ZarrFormat::V3,
            _ => return Ok(text.to_vec()),
        };
        let read = |name: &str| -> Result<Option<Vec<u8>>, ReadError> {
            let Ok(key) = group.key(name.as_bytes()) else {
                return Ok(None);
            };
            self.document_to_copy(&key).map_err(ReadError::Other)
        };
        match with_documents(text, format, read) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Ok(text.to_vec()),
            Err(ReadError::Format(error)) => Err(Error::unacceptable(key, error)),
            Err(ReadError::Other(error)) => Err(error),
        }
    }

    /// Like [`Tree::with_stored_copies`], with copies for all nodes below the group.
    fn with_all_copies(&self, key: &Key, text: &[u8]) -> Result<Vec<u8>, Error> {
        let text = self.with_stored_copies(key, text)?;
        let format = match DocumentName::of(key.name()) {
            Some(DocumentName::ZMetadata) => ZarrFormat::V2,
            _ => ZarrFormat::V3,
        };
        let added = self.missing_copies(&key.parent(), format, &text)?;
        with_added(&text, format, &added).map_err(|error| Error::in_document(key, error))
    }

    /// The documents below `group` of which the consolidated document `text` has no copies, and their names in it.
    fn missing_copies(
        &self,
        group: &Prefix,
        format: ZarrFormat,
        text: &[u8],
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let listed = copied_names(text, format);
        let listed = listed.map_err(|error| Error::in_document(group, error))?;
        let Some(listed) = listed else {
            return Ok(Vec::new());
        };
        let (mut added, mut n_bytes) = (Vec::new(), text.len() as u64);
        let found = self.documents_below(group)?;
        for (directory, error) in &found.refused {
            log::warn!(
                "{directory}: no consolidated metadata gets copies of the documents in it: {error}"
            );
        }
        for key in found.keys {
            let name = copied_name(group, &key, format).filter(|name| !listed.contains(name));
            let Some((name, copy)) = name.zip(self.document_to_copy(&key)?) else {
                continue;
            };
            n_bytes = n_bytes.saturating_add(copy.len() as u64);
            FormatError::check_limit("the size of the document", n_bytes, MAX_DOCUMENT_BYTES)
                .map_err(|error| Error::in_document(group, error))?;
            added.push((name, copy));
        }
        Ok(added)
    }

    /// The document at `key`; `None` if there is none, or it is not a JSON object, which would make a document with a
    /// copy of it invalid.
    fn document_to_copy(&self, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        let Some(own) = self.hierarchy.read(key, Holding::SOURCE)? else {
            return Ok(None);
        };
        match copy_of(&own.bytes) {
            Ok(copy) => Ok(Some(copy.to_vec())),
            Err(error) => {
                log::warn!("{key}: no consolidated metadata gets a copy of it: {error}");
                Ok(None)
            }
        }
    }
}

/// The reason why copies could not be made.
enum ReadError {
    Format(FormatError),
    Other(Error),
}

impl From<FormatError> for ReadError {
    fn from(error: FormatError) -> Self {
        ReadError::Format(error)
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests;
