//! Chunks of arrays without shards that could not be saved before the mount ended. They go to a journal of
//! their own, as the one part of their object, and the next mount saves them.

use super::Staging;
use super::inner::content_of_slice;
use super::recovery::{Place, Recovered};
use crate::error::Error;
use crate::load::Slice;
use crate::store::{
    Commit, Durability, Journal, JournalRecord, Key, LeftJournal, ObjectMeta, PartContent,
    Replaces, StoreError, StoredFile, copy_range,
};

/// The number of the only part of an object.
const WHOLE: u64 = 0;

impl Staging {
    /// Writes to a journal the change that the object at `key` was to get: `bytes`, or its removal, replacing
    /// `stored`. Returns `false` if the object is not a chunk of an array without shards. `check` fails if the bytes
    /// do not belong to the array that is there now.
    ///
    /// # Errors
    /// Those of `check`; [`Error`] when the journal cannot be written.
    pub(crate) fn keep_for_later(
        &self,
        key: &Key,
        bytes: Option<&[u8]>,
        stored: Option<&StoredFile>,
        check: impl FnOnce() -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let Some(Place::Whole(node)) = self.place_of(key)? else {
            return Ok(false);
        };
        let before = self.content_of_object(key, stored)?;
        let document = self.text_of(&node)?;
        // Another program may have made the array anew since the bytes were encoded, and before its document was read.
        check()?;
        let mut journal = self.writer.begin_journal(key, &document)?;
        let written = journal.append(WHOLE, bytes, before);
        if let Err(error) = written {
            journal.remove();
            return Err(error.into());
        }
        if self.writer.durability() != Durability::Never {
            journal.sync()?;
            self.writer.sync_journals()?;
        }
        Ok(true)
    }

    /// Saves the chunk at `key`, which is in `journals`, unless another program has changed it since. A new object gets
    /// the owner and the mode of `document`.
    pub(super) fn recover_whole(
        &self,
        key: &Key,
        document: (&Key, &ObjectMeta),
        journals: Vec<LeftJournal>,
    ) -> Result<Recovered, Error> {
        let recovered = self.try_to_recover_whole(key, document, &journals);
        let journals = journals.into_iter().map(|left| left.journal);
        if recovered.is_err() {
            self.writer.keep_waiting(key, journals);
        } else {
            journals.for_each(|journal| journal.remove());
        }
        recovered
    }

    fn try_to_recover_whole(
        &self,
        key: &Key,
        document: (&Key, &ObjectMeta),
        journals: &[LeftJournal],
    ) -> Result<Recovered, Error> {
        let is_part = |record: &JournalRecord| record.slot != WHOLE;
        if journals.iter().any(|left| left.records.iter().any(is_part)) {
            log::error!("{key}: its journal has inner chunks, but its array has none");
        }
        let records = journals.iter().flat_map(|left| {
            let records = left.records.iter().filter(|record| record.slot == WHOLE);
            records.map(|record| (&left.journal, *record))
        });
        let records: Vec<_> = records.collect();
        let mut found = Recovered::default();
        if let Some((journal, last)) = records.last() {
            let stored = self.writer.open_object(key, false)?;
            let now = self.content_of_object(key, stored.as_ref())?;
            let mut known = records
                .iter()
                .flat_map(|(_, record)| [record.before, record.new]);
            let is_saved = now == last.new
                || known.any(|content| content == now)
                    && self.save_whole(key, (journal, last), stored.as_ref(), document)?;
            if is_saved {
                found.packed = 1;
            } else {
                log::error!(
                    "{key}: another program has changed the chunk, which an earlier mount had not saved yet; \
                     its change stays"
                );
                found.changed = 1;
            }
        }
        Ok(found)
    }

    /// Makes the change of `record` to the object at `key`, replacing `stored`; `false` when another program has
    /// changed it.
    fn save_whole(
        &self,
        key: &Key,
        (journal, record): (&Journal, &JournalRecord),
        stored: Option<&StoredFile>,
        document: (&Key, &ObjectMeta),
    ) -> Result<bool, Error> {
        let writer = &self.writer;
        let PartContent::Bytes { len, .. } = record.new else {
            return Ok(match stored {
                Some(stored) => writer.erase_version(key, stored.meta.version)?,
                None => true,
            });
        };
        let mut draft = if let Some(stored) = stored {
            writer.begin_like(key, stored)?
        } else {
            writer.make_parents(key)?;
            writer.begin(key, writer.new_like(document, key)?)?
        };
        let copied = copy_range(
            (journal.file().open()?, record.offset),
            (draft.file(), 0),
            len,
        );
        copied.map_err(|error| StoreError::io(key, &error))?;
        let replaces = stored.map_or(Replaces::Nothing, |stored| {
            Replaces::Version(stored.meta.version)
        });
        let committed = writer.commit(key, &mut draft, replaces)?;
        writer.sync_closed(key)?;
        Ok(matches!(committed, Commit::Done(_)))
    }

    /// The content of the object at `key`, which was opened as `stored`, or is absent.
    fn content_of_object(
        &self,
        key: &Key,
        stored: Option<&StoredFile>,
    ) -> Result<PartContent, Error> {
        let Some(stored) = stored else {
            return Ok(PartContent::Nothing);
        };
        let object = self.writer.object_of(key, &stored.file)?;
        content_of_slice(&Slice::of_object(object, key.to_string().into()))
    }
}
