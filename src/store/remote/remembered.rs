//! Answers of the server that are remembered for a while: versions of objects, absence and
//! prefixes. Also the bytes of short documents.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;

use super::absences::Absences;
use super::documents::is_document;
use super::tag::Pinned;
use super::trust::Trust;
use crate::store::{AnswerTimes, Key, Prefix};

/// The most keys that are remembered, about 200 bytes each.
const MOST_KEYS: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("65536 is not 0");

/// The most prefixes that are remembered.
const MOST_PREFIXES: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// The most bytes of documents that are kept.
const MOST_DOCUMENT_BYTES: usize = 4 << 20;

/// The answer about one key: the version of the object, or `None` if no object is there.
#[derive(Debug)]
pub(super) struct Known(pub(super) Option<Pinned>);

/// Remembered answers about keys.
#[derive(Debug)]
pub(super) struct Remembered {
    trust: Arc<Trust>,
    keys: Mutex<LruCache<Key, Told>>,
    /// Whether keys begin with a prefix.
    prefixes: Mutex<LruCache<Prefix, (Instant, bool)>>,
    documents: Mutex<KeptDocuments>,
    pub(super) absences: Absences,
    /// Documents that count as absent because the server denies them.
    denied: Mutex<LruCache<Key, ()>>,
}

/// An answer about one key.
#[derive(Debug)]
struct Told {
    answer: AnswerTimes,
    found: Option<Pinned>,
    /// Whether the answer is kept on disk.
    is_saved: bool,
    /// Whether the answer only shows since when a version is known, and is not trusted.
    is_earlier: bool,
    /// Whether the answer comes from a kept page of names, and the disk may have a later one.
    is_listed: bool,
}

/// Documents that were read, because they are read again and again. After the time to live, the
/// server is asked only whether they have changed.
#[derive(Debug)]
struct KeptDocuments {
    by_key: LruCache<Key, (Pinned, Bytes)>,
    bytes: usize,
}

impl Remembered {
    /// An empty memory. If there is a cache on disk, answers may be older than the memory.
    pub(super) fn new(time_to_live: Option<Duration>, has_older: bool) -> Remembered {
        Remembered::trusting(Trust::new(time_to_live, has_older))
    }

    fn trusting(trust: Trust) -> Remembered {
        let trust = Arc::new(trust);
        Remembered {
            absences: Absences::new(Arc::clone(&trust)),
            trust,
            keys: Mutex::new(LruCache::new(MOST_KEYS)),
            prefixes: Mutex::new(LruCache::new(MOST_PREFIXES)),
            denied: Mutex::new(LruCache::new(MOST_PREFIXES)),
            documents: Mutex::new(KeptDocuments {
                by_key: LruCache::unbounded(),
                bytes: 0,
            }),
        }
    }

    /// An empty memory with the same time to live.
    pub(super) fn emptied(&self) -> Remembered {
        Remembered::trusting(self.trust.anew())
    }

    /// For how long answers are trusted.
    pub(super) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The answer about `key`, if it is younger than the time to live.
    pub(super) fn get(&self, key: &Key) -> Option<Known> {
        Some(self.get_with_page(key)?.0)
    }

    /// Like [`Remembered::get`]. If the answer comes from a kept page of names, and the disk may have a later one, also
    /// returns when the page was requested.
    pub(super) fn get_with_page(&self, key: &Key) -> Option<(Known, Option<Instant>)> {
        if let Some(told) = self.keys.lock().get(key)
            && self.counts(told)
        {
            let page = told.is_listed.then_some(told.answer.asked);
            return Some((Known(told.found.clone()), page));
        }
        let (answer, is_kept) = self.absences.told(key)?;
        Some((Known(None), is_kept.then_some(answer.asked)))
    }

    /// The times of the answer about `key`; those of an answer at this moment, if none is
    /// remembered.
    pub(super) fn told_at(&self, key: &Key) -> AnswerTimes {
        if let Some(told) = self.keys.lock().get(key)
            && self.counts(told)
        {
            return told.answer;
        }
        self.absences
            .told_at(key)
            .unwrap_or_else(AnswerTimes::of_now)
    }

    /// Whether keys begin with `prefix`; `None` if that is not known.
    pub(super) fn has_prefix(&self, prefix: &Prefix) -> Option<bool> {
        let mut prefixes = self.prefixes.lock();
        let (checked, has) = *prefixes.get(prefix)?;
        self.trust.covers(checked).then_some(has)
    }

    /// Remembers the answer about `key` to a request that was sent at `checked`.
    pub(super) fn put(&self, key: &Key, checked: Instant, found: Option<Pinned>) {
        if found.is_some() {
            self.put_prefix(&key.parent(), checked);
            self.absences.remove(key);
        } else if !is_document(key.name()) {
            self.absences.add(key);
        }
        let mut answer = AnswerTimes {
            asked: checked,
            answered: Instant::now(),
        };
        let mut keys = self.keys.lock();
        if let Some(Told {
            answer: before,
            found: Some(old),
            ..
        }) = keys.peek(key)
            && let Some(new) = &found
            && new.is_same(old)
            && new.is_identified()
        {
            // This version has been at the key since the earlier answer.
            answer.answered = before.answered;
        }
        let told = Told {
            answer,
            found,
            is_saved: false,
            is_earlier: false,
            is_listed: false,
        };
        keys.put(key.clone(), told);
    }

    /// Remembers that `found` was the version at `key` at these times. The answer is not trusted. But if the next answer has
    /// the same version, this version was there in between, too.
    pub(super) fn put_earlier(&self, key: &Key, answer: AnswerTimes, found: Pinned) {
        let mut keys = self.keys.lock();
        let is_later = |told: &Told| told.answer.asked >= answer.asked;
        if !keys.peek(key).is_some_and(is_later) {
            let told = Told {
                answer,
                found: Some(found),
                is_saved: true,
                is_earlier: true,
                is_listed: false,
            };
            keys.put(key.clone(), told);
        }
    }

    /// Whether an answer is trusted.
    fn counts(&self, told: &Told) -> bool {
        !told.is_earlier && self.trust.covers(told.answer.asked)
    }

    /// Remembers an answer that is kept on disk, to a request of another process.
    pub(super) fn put_kept(&self, key: &Key, answer: AnswerTimes, found: Option<Pinned>) {
        if found.is_some() {
            self.put_prefix(&key.parent(), answer.asked);
            self.absences.remove(key);
        }
        self.note_saved(key, answer, found);
    }

    /// Remembers the version of `key` in a kept page of names that was requested at `asked`, unless a later answer is
    /// remembered. It is not saved: the disk may have a later answer.
    pub(super) fn put_listed(&self, key: &Key, asked: Instant, found: Pinned) {
        let mut keys = self.keys.lock();
        let is_later = |told: &Told| self.counts(told) && told.answer.asked >= asked;
        if keys.peek(key).is_some_and(is_later) {
            return;
        }
        let answered = Instant::now();
        let told = Told {
            answer: AnswerTimes { asked, answered },
            found: Some(found),
            is_saved: true,
            is_earlier: false,
            is_listed: true,
        };
        keys.put(key.clone(), told);
        drop(keys);
        self.put_prefix(&key.parent(), asked);
        self.absences.remove(key);
    }

    /// Notes that the disk has no later answer about `key` than a kept page of names.
    pub(super) fn note_latest(&self, key: &Key) {
        if let Some(told) = self.keys.lock().peek_mut(key)
            && !told.is_earlier
        {
            told.is_listed = false;
            return;
        }
        if let Some(answer) = self.absences.told_at(key) {
            self.note_saved(key, answer, None);
        }
    }

    /// The answer about `key` and its times, if it is not kept on disk. From now on it is.
    pub(super) fn take_unsaved(&self, key: &Key) -> Option<(AnswerTimes, Option<Pinned>)> {
        if let Some(told) = self.keys.lock().peek_mut(key) {
            if std::mem::replace(&mut told.is_saved, true) || !self.trust.covers(told.answer.asked)
            {
                return None;
            }
            return Some((told.answer, told.found.clone()));
        }
        let (answer, is_kept) = self.absences.told(key)?;
        if is_kept {
            return None;
        }
        self.note_saved(key, answer, None);
        Some((answer, None))
    }

    fn note_saved(&self, key: &Key, answer: AnswerTimes, found: Option<Pinned>) {
        let told = Told {
            answer,
            found,
            is_saved: true,
            is_earlier: false,
            is_listed: false,
        };
        self.keys.lock().put(key.clone(), told);
    }

    /// Notes that the document at `key` counts as absent because the server denies it.
    pub(super) fn note_denied(&self, key: &Key) {
        self.denied.lock().put(key.clone(), ());
    }

    /// Whether the server has denied the document at `key`.
    pub(super) fn is_denied(&self, key: &Key) -> bool {
        self.denied.lock().contains(key)
    }

    /// Remembers that there is an object below `prefix`.
    pub(super) fn put_prefix(&self, prefix: &Prefix, checked: Instant) {
        let mut prefixes = self.prefixes.lock();
        for prefix in prefix.with_ancestors() {
            prefixes.put(prefix, (checked, true));
        }
    }

    /// Remembers that no key began with `prefix` when a request was sent at `checked`.
    pub(super) fn put_no_prefix(&self, prefix: &Prefix, checked: Instant) {
        let mut prefixes = self.prefixes.lock();
        // A key below the prefix was found after that request.
        let found_since = |&(at, has): &(Instant, bool)| has && at >= checked;
        if !prefixes.peek(prefix).is_some_and(found_since) {
            prefixes.put(prefix.clone(), (checked, false));
        }
    }

    /// Forgets the version at `key`, which is no longer there.
    pub(super) fn forget(&self, key: &Key) {
        self.keys.lock().pop(key);
        // A listing that was requested before the object was there may have arrived since.
        self.absences.doubt(key);
        self.documents.lock().forget(key);
    }

    /// Forgets the answer about `key`, so that the server is asked again. The bytes of a document
    /// are kept, because it may not have changed.
    pub(super) fn doubt(&self, key: &Key) {
        self.keys.lock().pop(key);
        self.absences.doubt(key);
    }

    /// Keeps the bytes of a document.
    pub(super) fn keep_document(&self, key: &Key, found: Pinned, bytes: Bytes) {
        self.documents.lock().put(key, found, bytes);
    }

    /// Drops the bytes of the document at `key`.
    pub(super) fn forget_document(&self, key: &Key) {
        self.documents.lock().forget(key);
    }

    /// The document at `key`, if its version is the remembered one.
    pub(super) fn document(&self, key: &Key) -> Option<(Pinned, Bytes)> {
        let (found, bytes) = self.last_document(key)?;
        let is_current = self.get(key)?.0.is_some_and(|known| known.is_same(&found));
        is_current.then_some((found, bytes))
    }

    /// The document that was last read at `key`, which may have changed since.
    pub(super) fn last_document(&self, key: &Key) -> Option<(Pinned, Bytes)> {
        self.documents.lock().by_key.get(key).cloned()
    }
}

impl KeptDocuments {
    fn forget(&mut self, key: &Key) {
        if let Some((_, bytes)) = self.by_key.pop(key) {
            self.bytes -= bytes.len();
        }
    }

    fn put(&mut self, key: &Key, found: Pinned, bytes: Bytes) {
        self.forget(key);
        self.bytes += bytes.len();
        self.by_key.put(key.clone(), (found, bytes));
        while self.bytes > MOST_DOCUMENT_BYTES
            && let Some((_, (_, bytes))) = self.by_key.pop_lru()
        {
            self.bytes -= bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use object_store::ObjectMeta as ServerMeta;

    use super::super::absences::ListedNames;
    use super::super::tag::LastModified;
    use super::*;

    #[test]
    fn an_object_that_was_replaced_is_not_absent() {
        let remembered = Remembered::new(None, false);
        let (asked, key) = (Instant::now(), Key::parse(b"c/9").unwrap());
        let described = ServerMeta {
            location: "c/9".into(),
            last_modified: std::time::SystemTime::UNIX_EPOCH.into(),
            size: 5,
            e_tag: Some("1".to_owned()),
            version: None,
        };
        let found = Pinned::new(&described, None, LastModified::OfUpload);
        let listed = ListedNames {
            checked: asked,
            answered: asked,
            after: Vec::new(),
            last: None,
            names: HashSet::new(),
            is_kept: false,
        };
        remembered.put(&key, Instant::now(), Some(found));
        // The listing was requested before the object was there, and arrives later.
        remembered.absences.put_all(&key.parent(), listed);
        assert!(remembered.get(&key).is_some_and(|known| known.0.is_some()));
        remembered.forget(&key);
        assert!(remembered.get(&key).is_none());
    }
}
