//! Reads of objects whose versions are not known: the first answer has the attributes and the bytes.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;

use super::RemoteStore;
use super::body::Body;
use super::remembered::Known;
use super::request::Looked;
use super::shared::Shared;
use super::tag::Pinned;
use crate::store::{FetchBuffer, FetchRequest, Fetched, Key, ReceivedBytes, StoreError};

/// If the limit of a caller is this or less, the object is expected to be about as long as the limit.
const MOST_KNOWN_BYTES: u64 = 16 << 20;

/// The number of bytes that are reserved and requested first for an object whose length is not known. A longer object
/// takes further requests.
const UNKNOWN_BYTES: u64 = 256 << 10;

impl RemoteStore {
    /// Fetches the object at `key`.
    pub(super) fn fetch_object(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        let known = || self.fetch_known(key, most_bytes, buffer);
        let (kept, request) = match self.shared.look(key, known)? {
            Looked::Found(known) => return known,
            Looked::Ask(kept, request) => (kept, request),
        };
        let (shared, asked) = (Arc::clone(&self.shared), key.clone());
        let whole_bytes = whole_bytes(most_bytes);
        let answer = async move {
            let memory = shared.client.flow.reserve(&[whole_bytes]).await;
            (shared.fetch(&asked, whole_bytes, kept).await, memory)
        };
        let runtime = &self.shared.runtime;
        let (found, _memory) = runtime.wait_while_wanted(key, answer)?;
        self.shared.save(key);
        let Some((pinned, body)) = found? else {
            return Ok(None);
        };
        self.shared.keep_body(key, &pinned, body.as_ref());
        drop(request);
        self.take(key, pinned, body, most_bytes, buffer).map(Some)
    }

    /// Fetches the objects of `requests`, all at once as far as their answers fit in memory.
    pub(super) fn fetch_objects(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let keys: Vec<Key> = requests.iter().map(|request| request.key.clone()).collect();
        let mut all: Vec<Option<_>> = keys.iter().map(|_| None).collect();
        // All answers of a group are in memory at the same time.
        let group = self.shared.client.flow.answer_bytes() / UNKNOWN_BYTES;
        let group = usize::try_from(group).unwrap_or(usize::MAX).max(1);
        let most: Vec<u64> = requests.iter().map(|request| request.most_bytes).collect();
        let is_here = |at: usize, key: &Key| {
            let most_bytes = most.get(at).copied().unwrap_or(0);
            self.is_here(key, most_bytes)
        };
        self.shared.in_turn(&keys, is_here, |places, kept| {
            let mut unknown = Vec::new();
            for (&at, kept) in places.iter().zip(kept) {
                if let (Some(request), Some(answer)) = (requests.get_mut(at), all.get_mut(at)) {
                    *answer = self.fetch_known(request.key, request.most_bytes, request.buffer);
                    if answer.is_none() {
                        unknown.push((at, kept));
                    }
                }
            }
            for group in unknown.chunks(group) {
                self.fetch_group(group, requests, &mut all);
            }
        });
        all.into_iter()
            .map(|found| found.unwrap_or(Ok(None)))
            .collect()
    }

    /// The result of a fetch that needs no request for the whole object, because the result is known, or because the
    /// object is read in parts or from the disk. `None` for all other fetches.
    fn fetch_known(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Option<Result<Option<Fetched>, StoreError>> {
        if let Some((pinned, bytes)) = self.shared.remembered.document(key) {
            return Some(Ok(Some(self.fetched(key, pinned, vec![bytes], buffer))));
        }
        if !self.is_here(key, most_bytes) {
            return None;
        }
        let Known(found) = self.shared.remembered.get(key)?;
        let object = found.map(|pinned| self.object(key, pinned));
        let fetch = |object| Fetched::of_object(object, most_bytes, buffer);
        Some(object.map(fetch).transpose())
    }

    /// Whether a fetch needs no request, or only requests for parts of the object.
    fn is_here(&self, key: &Key, most_bytes: u64) -> bool {
        let is_read = |pinned: Pinned| {
            pinned.meta.size() > whole_bytes(most_bytes)
                || self.shared.is_kept_whole(key, &pinned)
                || self.shared.remembered.document(key).is_some()
        };
        let known = self.shared.remembered.get(key);
        known.is_some_and(|known| known.0.is_none_or(is_read))
    }

    /// Fetches those of `requests` whose places are in `group`, all at once, and puts the results into `all`. Beside
    /// each place is the version whose bytes are kept on disk.
    fn fetch_group(
        &self,
        group: &[(usize, Option<Pinned>)],
        requests: &mut [FetchRequest<'_>],
        all: &mut [Option<Result<Option<Fetched>, StoreError>>],
    ) {
        let asked: Vec<_> = group
            .iter()
            .filter_map(|(at, kept)| Some((requests.get(*at)?, kept.clone())))
            .map(|(request, kept)| {
                let most_bytes = request.most_bytes.min(UNKNOWN_BYTES);
                (request.key.clone(), most_bytes, kept)
            })
            .collect();
        let Some((first, _, _)) = asked.first().cloned() else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let found = self.shared.runtime.wait_while_wanted(&first, async move {
            let most: Vec<u64> = asked.iter().map(|(_, most_bytes, _)| *most_bytes).collect();
            let memory = shared.client.flow.reserve(&most).await;
            let each = asked
                .iter()
                .map(|(key, most_bytes, kept)| shared.fetch(key, *most_bytes, kept.clone()));
            (join_all(each).await, memory)
        });
        let (found, _memory) = match found {
            Ok((found, memory)) => (found, memory),
            Err(error) => (vec![Err(error); group.len()], None),
        };
        for (&(at, _), found) in group.iter().zip(found) {
            if let (Some(request), Some(answer)) = (requests.get_mut(at), all.get_mut(at)) {
                self.shared.save(request.key);
                if let Ok(Some((pinned, body))) = &found {
                    self.shared.keep_body(request.key, pinned, body.as_ref());
                }
                *answer = Some(found.and_then(|found| {
                    let taken = found.map(|(pinned, body)| {
                        let FetchRequest {
                            key,
                            most_bytes,
                            buffer,
                        } = request;
                        self.take(key, pinned, body, *most_bytes, *buffer)
                    });
                    taken.transpose()
                }));
            }
        }
    }

    /// Passes the bytes of an answer to the caller. If the answer has none, the object is read now, in parts or from
    /// the disk.
    fn take(
        &self,
        key: &Key,
        pinned: Pinned,
        body: Option<Body>,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Fetched, StoreError> {
        match body {
            Some(body) => Ok(self.fetched(key, pinned, body, buffer)),
            None => Fetched::of_object(self.object(key, pinned), most_bytes, buffer),
        }
    }

    /// Passes `parts`, which are all bytes of the version `pinned`, to the caller.
    fn fetched(
        &self,
        key: &Key,
        pinned: Pinned,
        parts: Body,
        buffer: &mut dyn FetchBuffer,
    ) -> Fetched {
        let mut bytes = ReceivedBytes::default();
        bytes.push_all(0, parts);
        Fetched {
            is_read: buffer.receive(bytes),
            object: self.object(key, pinned),
        }
    }
}

impl Shared {
    /// Reads an object of at most `most_bytes`. Of a longer object, or one that still has the version `kept`, only the
    /// attributes are returned. The caller has reserved memory for the bytes.
    async fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        kept: Option<Pinned>,
    ) -> Result<Option<(Pinned, Option<Body>)>, StoreError> {
        if let Some(document) = self.remembered.last_document(key) {
            let found = self.document_again(key, document, most_bytes).await?;
            return Ok(found.map(|(pinned, bytes)| (pinned, bytes.map(|bytes| vec![bytes]))));
        }
        if self.is_listed_absent(key).await {
            return Ok(None);
        }
        let begun = Instant::now();
        let read = match kept {
            Some(kept) => {
                let changed = self.client.get_changed(key, &kept, most_bytes).await;
                changed.map(|changed| changed.unwrap_or((kept, None)))
            }
            None => self.client.get_whole(key, most_bytes).await,
        };
        let found = self.found(key, read)?;
        let pinned = found.as_ref().map(|(pinned, _)| pinned.clone());
        self.remembered.put(key, begun, pinned);
        if let Some((pinned, Some(body))) = &found {
            self.keep_document(key, pinned, body);
        }
        Ok(found)
    }
}

/// The most bytes of an object that are requested at once for a caller that takes at most `most_bytes`. A very large
/// limit says nothing about the length of the object.
fn whole_bytes(most_bytes: u64) -> u64 {
    if most_bytes > MOST_KNOWN_BYTES {
        UNKNOWN_BYTES
    } else {
        most_bytes
    }
}
