//! Opening objects. The answer that has the attributes of an object also brings the bytes that are
//! read first.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use object_store::GetRange;

use super::body::{Body, joined};
use super::failure::Failure;
use super::first_bytes::FirstBytes;
use super::object::RemoteObject;
use super::remembered::Known;
use super::request::{Looked, Request};
use super::shared::Shared;
use super::tag::Pinned;
use crate::store::{FirstRead, Key, Object, ObjectStart, OpenedPart, ReceivedBytes, StoreError};

/// An open reads at least this many bytes of an object, which costs no more than reading none. The index of a shard of
/// 2,000 chunks is as long.
const LEAST_BYTES: u64 = 32 << 10;

/// An open reads no more bytes than this.
const MOST_BYTES: u64 = 1 << 20;

/// A longer part of an object is not read when the object is opened: one request more makes no difference for so many
/// bytes.
const MOST_PART_BYTES: u64 = 8 << 20;

/// The bytes that are read when it is not known what the reader needs.
pub(super) const ANY_READ: FirstRead = FirstRead::End(LEAST_BYTES);

impl Shared {
    /// Opens the object at `key`, and reads the bytes `first`.
    pub(super) fn open(
        self: &Arc<Self>,
        key: &Key,
        first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let known = || match self.remembered.get(key)?.0 {
            None => Some(None),
            Some(pinned)
                if !self.takes_whole(&pinned, first) || self.is_kept_whole(key, &pinned) =>
            {
                Some(Some((pinned, FirstBytes::default())))
            }
            Some(_) => None,
        };
        let (opened, _request) = match self.look(key, known)? {
            Looked::Found(None) => return Ok(None),
            Looked::Found(opened) => (opened, Request::default()),
            Looked::Ask(kept, request) => {
                let (shared, asked) = (Arc::clone(self), key.clone());
                let opened = if let Some(Known(Some(pinned))) = self.remembered.get(key) {
                    let open = async move { Some(shared.open_known(&asked, pinned).await) };
                    self.runtime.wait_while_wanted(key, open)?
                } else {
                    let open = async move { shared.open_unknown(&asked, first, kept).await };
                    self.runtime.wait_for(open)??
                };
                (opened, request)
            }
        };
        self.save(key);
        if let Some((pinned, first)) = &opened
            && let Some((start, bytes)) = first.peek()
        {
            self.keep_range(key, pinned, start, &[bytes]);
        }
        Ok(opened.map(|(pinned, first)| {
            let object = RemoteObject::new(Arc::clone(self), key.clone(), pinned);
            Arc::new(object.with_first(first)) as Arc<dyn Object>
        }))
    }

    /// Whether an object of a known version is so short that all of it is read at once by a reader
    /// that needs several parts of it.
    fn takes_whole(&self, pinned: &Pinned, first: FirstRead) -> bool {
        let (FirstRead::Start(len) | FirstRead::End(len)) = first;
        let size = pinned.meta.size();
        let is_part = 0 < len && len < size;
        is_part && first != ANY_READ && size <= MOST_BYTES && self.first_memory.has_room(size)
    }

    /// Reads a whole object. If that fails, the bytes are requested again when they are needed.
    async fn open_known(&self, key: &Key, pinned: Pinned) -> (Pinned, FirstBytes) {
        let size = pinned.meta.size();
        let _memory = self.client.flow.reserve(&[size]).await;
        let read = self.client.get_range(key, &pinned, 0..size).await;
        let first = read.map_or_else(
            |_| FirstBytes::default(),
            |body| {
                let bytes = joined(&body);
                FirstBytes::new(bytes, 0, (size, size), &self.first_memory)
            },
        );
        (pinned, first)
    }

    /// Opens the object at `key`. Its first bytes are not read if it still has the version `kept`.
    async fn open_unknown(
        &self,
        key: &Key,
        first: FirstRead,
        kept: Option<Pinned>,
    ) -> Result<Option<(Pinned, FirstBytes)>, StoreError> {
        if self.is_listed_absent(key).await {
            return Ok(None);
        }
        let (FirstRead::Start(len) | FirstRead::End(len)) = first;
        let most = if len <= MOST_BYTES { len } else { 0 };
        let most = most.max(LEAST_BYTES);
        let range = match first {
            FirstRead::Start(_) => GetRange::Bounded(0..most),
            FirstRead::End(_) if self.lacks_suffixes.load(Ordering::Relaxed) => {
                return self.examine(key).await;
            }
            FirstRead::End(_) => GetRange::Suffix(most),
        };
        let memory = self.client.flow.reserve(&[most]).await;
        let begun = Instant::now();
        let read = self.client.get_first(key, range, kept.as_ref()).await;
        if let (Err(Failure::Unchanged), Some(kept)) = (&read, kept) {
            self.remembered.put(key, begun, Some(kept.clone()));
            return Ok(Some((kept, FirstBytes::default())));
        }
        // An empty object has no first bytes, and some servers do not send the last bytes of an object.
        let lacks = matches!(read, Err(Failure::NotPartial | Failure::Unusable(_)));
        if lacks || read == Err(Failure::BeyondEnd) {
            drop(memory);
            if lacks && matches!(first, FirstRead::End(_)) {
                self.lacks_suffixes.store(true, Ordering::Relaxed);
            }
            return self.examine(key).await;
        }
        let found = self.found(key, read)?;
        let pinned = found.as_ref().map(|(pinned, ..)| pinned.clone());
        self.remembered.put(key, begun, pinned);
        Ok(found.map(|(pinned, start, body)| {
            let size = pinned.meta.size();
            let end = match first {
                FirstRead::Start(len) => len,
                FirstRead::End(_) => size,
            };
            let bytes = joined(&body);
            let first = FirstBytes::new(bytes, start, (end, size), &self.first_memory);
            (pinned, first)
        }))
    }

    /// Opens the object at `key`. Where nothing is known of it, the request that opens it brings the bytes `part`.
    pub(super) fn open_part(
        self: &Arc<Self>,
        key: &Key,
        part: &Range<u64>,
    ) -> Result<Option<OpenedPart>, StoreError> {
        let object = |pinned| Arc::new(RemoteObject::new(Arc::clone(self), key.clone(), pinned));
        let known = || Some(self.remembered.get(key)?.0);
        let (kept, _request) = match self.look(key, known)? {
            Looked::Ask(kept, request) => (kept, request),
            Looked::Found(known) => {
                return Ok(known.map(|pinned| OpenedPart {
                    object: object(pinned),
                    bytes: None,
                }));
            }
        };
        let (shared, asked, wanted) = (Arc::clone(self), key.clone(), part.clone());
        let answer = async move {
            let len = wanted.end.saturating_sub(wanted.start);
            let memory = shared
                .client
                .flow
                .reserve(&[len.min(MOST_PART_BYTES)])
                .await;
            (shared.request_part(&asked, wanted, kept).await, memory)
        };
        let (found, _memory) = self.runtime.wait_while_wanted(key, answer)?;
        self.save(key);
        if let Ok(Some((pinned, Some(body)))) = &found {
            self.keep_range(key, pinned, part.start, body);
        }
        Ok(found?.map(|(pinned, body)| OpenedPart {
            object: object(pinned),
            bytes: body.map(|body| {
                let mut bytes = ReceivedBytes::default();
                bytes.push_all(part.start, body);
                bytes
            }),
        }))
    }

    async fn request_part(
        &self,
        key: &Key,
        part: Range<u64>,
        kept: Option<Pinned>,
    ) -> Result<Option<(Pinned, Option<Body>)>, StoreError> {
        let len = part.end.saturating_sub(part.start);
        if (1..=MOST_PART_BYTES).contains(&len) && !self.is_listed_absent(key).await {
            let begun = Instant::now();
            let range = GetRange::Bounded(part);
            let read = self.client.get_first(key, range, kept.as_ref()).await;
            if let (Err(Failure::Unchanged), Some(kept)) = (&read, kept) {
                self.remembered.put(key, begun, Some(kept.clone()));
                return Ok(Some((kept, None)));
            }
            let is_unread = matches!(
                read,
                Err(Failure::NotPartial | Failure::Unusable(_) | Failure::BeyondEnd)
            );
            if !is_unread {
                let found = self.found(key, read)?;
                let pinned = found.as_ref().map(|(pinned, ..)| pinned.clone());
                self.remembered.put(key, begun, pinned);
                return Ok(found.map(|(pinned, _, body)| (pinned, Some(body))));
            }
        }
        Ok(self.head(key).await?.map(|pinned| (pinned, None)))
    }

    /// The attributes of the object at `key`, and its first bytes, up to `most_bytes`.
    pub(super) async fn start_of(
        &self,
        key: &Key,
        most_bytes: u64,
    ) -> Result<ObjectStart, StoreError> {
        let start = FirstRead::Start(most_bytes);
        let opened = match self.remembered.get(key) {
            Some(known) => known.0.map(|pinned| (pinned, FirstBytes::default())),
            None => self.open_unknown(key, start, None).await?,
        };
        let Some((pinned, first)) = opened else {
            return Ok(None);
        };
        let wanted = 0..most_bytes.min(pinned.meta.size());
        if wanted.is_empty() {
            return Ok(Some((pinned.meta, Bytes::new())));
        }
        let read = first.read(std::slice::from_ref(&wanted));
        if let Some(bytes) = read.and_then(|mut parts| parts.pop()) {
            return Ok(Some((pinned.meta, bytes)));
        }
        let _memory = self.client.flow.reserve(&[wanted.end]).await;
        match self.client.get_range(key, &pinned, wanted).await {
            Ok(body) => Ok(Some((pinned.meta, joined(&body)))),
            Err(failure) => {
                self.forget(key);
                Err(failure.into_error(key, true))
            }
        }
    }

    /// Opens an object without reading anything.
    async fn examine(&self, key: &Key) -> Result<Option<(Pinned, FirstBytes)>, StoreError> {
        let found = self.head(key).await?;
        Ok(found.map(|found| (found, FirstBytes::default())))
    }
}
