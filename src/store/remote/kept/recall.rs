//! Brings what is kept into memory before requests, and keeps their answers after them. Callers wait for the disk on
//! their own threads, not on that of the requests.

use std::time::Instant;

use bytes::Bytes;

use super::answer::KeptAnswer;
use super::{Kept, KeptTimes};
use crate::store::remote::body::Body;
use crate::store::remote::documents::{ROOT_DOCUMENTS, is_document};
use crate::store::remote::failure::Failure;
use crate::store::remote::remembered::Known;
use crate::store::remote::shared::Shared;
use crate::store::remote::tag::Pinned;
use crate::store::{AnswerTimes, FetchBuffer, Key, ObjectMeta, ObjectStart, StoreError};

/// The path under which the answer to a request for a name that does not exist is kept. No object has an empty segment
/// in its path here.
pub(super) const NOTHING: &str = "//nothing";

/// Documents up to this length are kept in memory.
const MOST_DOCUMENT_BYTES: u64 = 1 << 20;

impl Shared {
    /// Brings what is kept of `key` into memory, unless the memory has an answer. If the answer is no longer trusted,
    /// but the bytes of its version are kept, returns that version: a request need only find out whether it is still
    /// there.
    pub(in crate::store::remote) fn recall(&self, key: &Key) -> Option<Pinned> {
        let kept = self.kept.as_ref()?;
        let known = self.remembered.get_with_page(key);
        let is_document = is_asked_for_anew(key);
        let is_latest = matches!(known, Some((_, None)));
        if is_latest && (!is_document || self.remembered.last_document(key).is_some()) {
            return None;
        }
        let path = self.client.path(key)?;
        let path = path.as_ref();
        let (pinned, is_trusted) = match known {
            Some((Known(found), None)) => (found?, true),
            Some((Known(found), Some(page))) => {
                (self.recall_later(kept, key, path, (page, found))?, true)
            }
            None => self.recall_answer(kept, key, path)?,
        };
        let size = pinned.meta.size();
        if is_document {
            if size <= MOST_DOCUMENT_BYTES && self.remembered.last_document(key).is_none() {
                let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
                if !bytes.is_empty() && kept.read(path, &pinned, 0, &mut bytes) {
                    self.remembered.keep_document(key, pinned, bytes.into());
                }
            }
            return None;
        }
        (!is_trusted && kept.has_opening(path, &pinned)).then_some(pinned)
    }

    /// Brings the kept answer about `key` into memory. Returns the version in the answer, and whether it is trusted.
    fn recall_answer(&self, kept: &Kept, key: &Key, path: &str) -> Option<(Pinned, bool)> {
        let (answer, times) = kept.answer(path)?;
        if self.trusts(kept, key, &answer, times) {
            return Some((self.put_kept(key, answer, times.told)?, true));
        }
        let KeptAnswer::Object(found) = answer else {
            return None;
        };
        if let Some(times) = times.exact {
            self.remembered.put_earlier(key, times, found.clone());
        }
        Some((found, false))
    }

    /// The version of `key`. It is `found` by a kept page of names, which was requested at `page`, unless the kept answer
    /// about `key` is later.
    fn recall_later(
        &self,
        kept: &Kept,
        key: &Key,
        path: &str,
        (page, found): (Instant, Option<Pinned>),
    ) -> Option<Pinned> {
        match kept.answer(path) {
            Some((answer, times))
                if times.told.asked > page && self.trusts(kept, key, &answer, times) =>
            {
                self.put_kept(key, answer, times.told)
            }
            _ => {
                self.remembered.note_latest(key);
                found
            }
        }
    }

    /// Whether a kept answer about `key` is trusted. What was denied may be sent to other credentials, so it is asked for
    /// again, if anything is.
    fn trusts(&self, kept: &Kept, key: &Key, answer: &KeptAnswer, times: KeptTimes) -> bool {
        if matches!(answer, KeptAnswer::Denied(_)) && !kept.is_offline {
            return false;
        }
        let is_version = matches!(answer, KeptAnswer::Object(_)) && !is_asked_for_anew(key);
        kept.trusts(self.remembered.trust(), key, times.exact, is_version)
    }

    /// Brings a kept answer into memory. Returns the version in it.
    fn put_kept(&self, key: &Key, answer: KeptAnswer, told: AnswerTimes) -> Option<Pinned> {
        let is_directory = answer == KeptAnswer::Directory;
        let found = match answer {
            KeptAnswer::Object(pinned) => Some(pinned),
            KeptAnswer::Absent | KeptAnswer::Directory | KeptAnswer::Denied(_) => None,
        };
        self.remembered.put_kept(key, told, found.clone());
        if is_directory {
            self.remembered.put_prefix(&key.to_prefix(), told.asked);
        }
        found
    }

    /// Keeps what the server has said about `key`, and the bytes of a document.
    pub(in crate::store::remote) fn save(&self, key: &Key) {
        let Some(kept) = &self.kept else {
            return;
        };
        let Some(path) = self.client.path(key) else {
            return;
        };
        let path = path.as_ref();
        if let Some((times, found)) = self.remembered.take_unsaved(key) {
            let has_names = || self.remembered.has_prefix(&key.to_prefix()) == Some(true);
            let answer = match found {
                Some(pinned) => KeptAnswer::Object(pinned),
                None if self.client.is_web() && has_names() => KeptAnswer::Directory,
                None if self.remembered.is_denied(key) => KeptAnswer::Denied(String::new()),
                None => KeptAnswer::Absent,
            };
            kept.keep_answer(path, times, &answer);
        }
        if is_asked_for_anew(key)
            && let Some((pinned, bytes)) = self.remembered.last_document(key)
            && !kept.has_whole(path, &pinned)
        {
            kept.keep(path, &pinned, 0, &[bytes]);
        }
    }

    /// [`Shared::recall`] of each of `keys`.
    pub(in crate::store::remote) fn recall_all(&self, keys: &[Key]) {
        for key in keys {
            self.recall(key);
        }
    }

    /// [`Shared::save`] of each of `keys`.
    pub(in crate::store::remote) fn save_all(&self, keys: &[Key]) {
        for key in keys {
            self.save(key);
        }
    }

    /// Notes that bytes were not kept, and are requested.
    pub(in crate::store::remote) fn note_miss(&self) {
        if let Some(kept) = &self.kept {
            kept.note_miss();
        }
    }

    /// Whether all bytes of this version are kept, so that it need not be requested.
    pub(in crate::store::remote) fn is_kept_whole(&self, key: &Key, pinned: &Pinned) -> bool {
        let Some(kept) = &self.kept else {
            return false;
        };
        let path = self.client.path(key);
        path.is_some_and(|path| kept.has_whole(path.as_ref(), pinned))
    }

    /// Keeps the body of an answer that has all of an object. Documents are kept by [`Shared::save`].
    pub(in crate::store::remote) fn keep_body(
        &self,
        key: &Key,
        pinned: &Pinned,
        body: Option<&Body>,
    ) {
        if let (Some(body), false) = (body, is_asked_for_anew(key)) {
            self.keep_range(key, pinned, 0, body);
        }
    }

    /// Keeps bytes of an object, which begin at `start`.
    pub(in crate::store::remote) fn keep_range(
        &self,
        key: &Key,
        pinned: &Pinned,
        start: u64,
        parts: &[Bytes],
    ) {
        if let Some(kept) = &self.kept
            && let Some(path) = self.client.path(key)
        {
            kept.keep(path.as_ref(), pinned, start, parts);
        }
    }

    /// Fills `buf` with kept bytes. `false` if they are not kept.
    pub(in crate::store::remote) fn read_kept(
        &self,
        key: &Key,
        pinned: &Pinned,
        offset: u64,
        buf: &mut [u8],
    ) -> bool {
        let Some(kept) = &self.kept else {
            return false;
        };
        let path = self.client.path(key);
        path.is_some_and(|path| kept.read(path.as_ref(), pinned, offset, buf))
    }

    /// The kept first bytes of an object whose version is known.
    pub(in crate::store::remote) fn kept_start(
        &self,
        key: &Key,
        most_bytes: u64,
    ) -> Option<(ObjectMeta, Bytes)> {
        self.recall(key);
        let pinned = self.remembered.get(key)?.0?;
        let len = usize::try_from(most_bytes.min(pinned.meta.size())).ok()?;
        let mut start = Vec::new();
        let buf = start.of_len(len as u64)?;
        let is_read = self.read_kept(key, &pinned, 0, buf);
        is_read.then(|| (pinned.meta, start.into()))
    }

    /// Keeps the first bytes of an object.
    pub(in crate::store::remote) fn keep_start(
        &self,
        key: &Key,
        start: &Result<ObjectStart, StoreError>,
    ) {
        if self.kept.is_some()
            && let Ok(Some((meta, bytes))) = start
            && let Some(Known(Some(pinned))) = self.remembered.get(key)
            // Another thread may have got a later version since.
            && pinned.meta.version == meta.version
        {
            self.keep_range(key, &pinned, 0, std::slice::from_ref(bytes));
        }
    }

    /// The kept answer to a request for a name that does not exist, if it is trusted.
    pub(in crate::store::remote) fn kept_nothing(&self) -> Option<Result<(), Failure>> {
        let kept = self.kept.as_ref()?;
        let (answer, times) = kept.answer(NOTHING)?;
        let key = Key::parse(b"nothing").ok()?;
        if !kept.trusts(self.remembered.trust(), &key, times.exact, false) {
            return None;
        }
        match answer {
            KeptAnswer::Absent => Some(Err(Failure::Absent)),
            KeptAnswer::Denied(reason) => Some(Err(Failure::Denied(reason))),
            KeptAnswer::Object(_) | KeptAnswer::Directory => None,
        }
    }

    /// Keeps the answer to a request for a name that does not exist, which was sent after `asked`.
    pub(in crate::store::remote) fn keep_nothing(
        &self,
        asked: Instant,
        answer: &Result<(), Failure>,
    ) {
        let answer = match answer {
            Err(Failure::Absent | Failure::Directory) => KeptAnswer::Absent,
            Err(Failure::Denied(reason)) => KeptAnswer::Denied(reason.clone()),
            _ => return,
        };
        if let Some(kept) = &self.kept {
            let answered = Instant::now();
            let times = AnswerTimes { asked, answered };
            kept.keep_answer(NOTHING, times, &answer);
        }
    }

    /// Notes that what is remembered of `key` may be wrong.
    pub(in crate::store::remote) fn forget(&self, key: &Key) {
        self.remembered.forget(key);
        self.doubt_kept(key);
    }

    /// Notes that what is kept of `key` may be wrong.
    pub(in crate::store::remote) fn doubt_kept(&self, key: &Key) {
        let Some(kept) = self.kept.as_ref().filter(|kept| !kept.is_offline) else {
            return;
        };
        kept.doubt(key);
        // The versions of documents make requests short.
        if !is_asked_for_anew(key)
            && let Some(path) = self.client.path(key)
        {
            kept.forget_answer(path.as_ref());
        }
    }
}

/// Whether each mount asks for this object before it uses it.
pub(super) fn is_asked_for_anew(key: &Key) -> bool {
    is_document(key.name()) || ROOT_DOCUMENTS.contains(&key.as_bytes())
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, SystemTime};

    use object_store::ObjectMeta as ServerMeta;
    use tempfile::tempdir;

    use super::*;
    use crate::store::Store;
    use crate::store::remote::tag::LastModified;
    use crate::store::remote::{DiskCacheOptions, RemoteOptions, RemoteStore, RemoteUrl};

    /// A store that never changes, with this cache. No server listens at its URL.
    pub(in super::super) fn store(cache: &Path, is_offline: bool) -> RemoteStore {
        let options = RemoteOptions {
            anonymous: true,
            region: Some("us-east-1".to_owned()),
            endpoint: Some("http://127.0.0.1:1".to_owned()),
            time_to_live: None,
            disk_cache: Some(DiskCacheOptions {
                directory: cache.to_path_buf(),
                most_bytes: 1 << 30,
                is_offline,
                is_immutable: !is_offline,
                begun: Instant::now(),
            }),
            ..RemoteOptions::default()
        };
        let url = RemoteUrl::parse("s3://bucket/z").unwrap().unwrap();
        RemoteStore::open(url, &options).unwrap()
    }

    pub(in super::super) fn key(text: &str) -> Key {
        Key::parse(text.as_bytes()).unwrap()
    }

    /// The attributes that the server gives of an object of 5 bytes.
    pub(in super::super) fn described(path: &str, tag: &str) -> ServerMeta {
        ServerMeta {
            location: path.into(),
            last_modified: (SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).into(),
            size: 5,
            e_tag: Some(tag.to_owned()),
            version: None,
        }
    }

    pub(in super::super) fn pinned(tag: &str) -> Pinned {
        Pinned::new(&described("", tag), None, LastModified::OfUpload)
    }

    #[test]
    fn first_bytes_are_kept_under_their_own_version_alone() {
        let cache = tempdir().unwrap();
        let store = store(cache.path(), false);
        let (shared, key) = (&store.shared, key("c/0"));
        let (old, new) = (pinned("1"), pinned("2"));
        shared
            .remembered
            .put(&key, Instant::now(), Some(new.clone()));
        for (start, is_kept) in [(&old, false), (&new, true)] {
            let start = Ok(Some((start.meta, Bytes::from_static(b"12345"))));
            shared.keep_start(&key, &start);
            assert_eq!(shared.read_kept(&key, &new, 0, &mut [0; 5]), is_kept);
        }
    }

    #[test]
    fn a_denied_document_is_asked_for_again_and_absent_offline() {
        let cache = tempdir().unwrap();
        let begun = store(cache.path(), false);
        let shared = &begun.shared;
        shared.hides_absence.store(true, Ordering::Relaxed);
        for (name, failure) in [
            ("denied/zarr.json", Failure::Denied(String::new())),
            ("absent/zarr.json", Failure::Absent),
        ] {
            let key = key(name);
            assert_eq!(shared.found::<()>(&key, Err(failure)).unwrap(), None);
            shared.remembered.put(&key, Instant::now(), None);
            shared.save(&key);
        }
        for (name, is_offline, is_known) in [
            ("denied/zarr.json", false, false),
            ("denied/zarr.json", true, true),
            ("absent/zarr.json", false, true),
            ("absent/zarr.json", true, true),
        ] {
            let found = store(cache.path(), is_offline).known_object(&key(name));
            assert_eq!(found, is_known.then_some(None), "{name} {is_offline}");
        }
    }
}
