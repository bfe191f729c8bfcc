//! Reads of objects. An answer is used only if it is exactly what was requested.

use std::ops::Range;
use std::sync::atomic::Ordering;

use object_store::{GetOptions, GetRange};

use super::answer::AnswerHead;
use super::body::Body;
use super::client::RemoteClient;
use super::exchange::RequestKind;
use super::failure::Failure;
use super::tag::Pinned;
use crate::notice::TOLD;
use crate::store::Key;

impl RemoteClient {
    /// Reads all of the object at `key`, if it has at most `most_bytes`. Of a longer object, only the attributes are
    /// returned. The caller has reserved memory for the answer.
    pub(super) async fn get_whole(
        &self,
        key: &Key,
        most_bytes: u64,
    ) -> Result<(Pinned, Option<Body>), Failure> {
        self.get_whole_with(key, GetOptions::new(), most_bytes)
            .await
    }

    /// Like [`RemoteClient::get_whole`], by a request with `options`.
    async fn get_whole_with(
        &self,
        key: &Key,
        options: GetOptions,
        most_bytes: u64,
    ) -> Result<(Pinned, Option<Body>), Failure> {
        let read = |head| async move { self.whole_of(head?, most_bytes).await };
        self.get(key, &options, read).await
    }

    /// Sends a request with `options`, and passes the head of its answer to `read`. If either fails, both are repeated
    /// as [`RemoteClient::attempts`] says.
    async fn get<T, F>(
        &self,
        key: &Key,
        options: &GetOptions,
        read: impl Fn(Result<AnswerHead, Failure>) -> F + Sync,
    ) -> Result<T, Failure>
    where
        T: Send,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let path = self.path(key).ok_or(Failure::Absent)?;
        let (path, read) = (&path, &read);
        self.attempts(RequestKind::Get, |exchange| async move {
            let head = self.head_of_get(path, options.clone(), &exchange).await;
            read(head).await
        })
        .await
    }

    /// Like [`RemoteClient::get_whole`], but `None` if the object still has the version `last`.
    pub(super) async fn get_changed(
        &self,
        key: &Key,
        last: &Pinned,
        most_bytes: u64,
    ) -> Result<Option<(Pinned, Option<Body>)>, Failure> {
        let Some(tag) = &last.tag else {
            return self.get_whole(key, most_bytes).await.map(Some);
        };
        let mut options = GetOptions::new();
        options.if_none_match = Some(tag.clone());
        self.get(key, &options, |head| async move {
            match head {
                Err(Failure::Unchanged) => Ok(None),
                head => self.whole_of(head?, most_bytes).await.map(Some),
            }
        })
        .await
    }

    /// Reads all of the object whose answer begins with `head`, if it has at most `most_bytes`.
    async fn whole_of(
        &self,
        head: AnswerHead,
        most_bytes: u64,
    ) -> Result<(Pinned, Option<Body>), Failure> {
        let found = head.found.clone();
        let len = found.meta.size();
        if len > most_bytes {
            return Ok((found, None));
        }
        let body = self.body(head, 0..len).await?;
        Ok((found, Some(body)))
    }

    /// Reads `range` of the object at `key`, as far as it is in the object. Returns the version, the offset at which
    /// the bytes begin, and the bytes. Fails with [`Failure::Unchanged`] if the object has the version `unless`.
    pub(super) async fn get_first(
        &self,
        key: &Key,
        range: GetRange,
        unless: Option<&Pinned>,
    ) -> Result<(Pinned, u64, Body), Failure> {
        let mut options = GetOptions::new();
        options.range = Some(range.clone());
        options.if_none_match = unless.and_then(|pinned| pinned.tag.clone());
        let range = &range;
        self.get(key, &options, |head| async move {
            let head = head?;
            let found = head.found.clone();
            let bytes = range.as_range(found.meta.size());
            let bytes = bytes.map_err(|_| Failure::BeyondEnd)?;
            let start = bytes.start;
            let body = self.body(head, bytes).await?;
            Ok((found, start, body))
        })
        .await
    }

    /// Reads `range` of the version `pinned` of the object at `key`.
    pub(super) async fn get_range(
        &self,
        key: &Key,
        pinned: &Pinned,
        range: Range<u64>,
    ) -> Result<Body, Failure> {
        // If the object is too long to be read whole for a part, the server may still send the part.
        let may_cut = pinned.meta.size() <= self.most_whole_bytes;
        if may_cut && self.sends_whole() {
            return self.cut_from_whole(key, pinned, range).await;
        }
        let mut options = conditions(pinned);
        let is_whole = range == (0..pinned.meta.size());
        if !is_whole {
            options.range = Some(GetRange::Bounded(range.clone()));
        }
        let wanted = &range;
        let read = self.get(key, &options, |head| async move {
            let head = head?;
            // Servers may ignore the condition on the version.
            head.found.check_is(pinned, is_whole)?;
            self.body(head, wanted.clone()).await
        });
        match read.await {
            Err(Failure::NotPartial) if may_cut => {
                self.note_no_parts();
                self.cut_from_whole(key, pinned, range).await
            }
            read => read,
        }
    }

    /// Like [`RemoteClient::get_whole`], for a web server. The request is for a part, so that a server that cannot send
    /// parts is noticed ([`RemoteClient::says_no_parts`]).
    pub(super) async fn get_whole_as_part(
        &self,
        key: &Key,
        most_bytes: u64,
    ) -> Result<(Pinned, Option<Body>), Failure> {
        let mut options = GetOptions::new();
        options.range = Some(GetRange::Bounded(0..most_bytes));
        match self.get_whole_with(key, options, most_bytes).await {
            Err(Failure::NotPartial) => {
                let found = self.get_whole(key, most_bytes).await?;
                self.seen.lacks_parts.store(true, Ordering::Relaxed);
                Ok(found)
            }
            // Servers refuse a request for a part of an empty object, or answer it in different ways.
            Err(Failure::BeyondEnd | Failure::Unusable(_)) => self.get_whole(key, most_bytes).await,
            found => found,
        }
    }

    /// Whether the server sends whole objects for ranges.
    pub(super) fn sends_whole(&self) -> bool {
        self.seen.sends_whole.load(Ordering::Relaxed)
    }

    /// Logs that the server sends no parts of objects, if that was noticed.
    pub(super) fn says_no_parts(&self) {
        if self.seen.lacks_parts.load(Ordering::Relaxed) {
            self.note_no_parts();
        }
    }

    /// Logs once that the server sends no parts of objects.
    fn note_no_parts(&self) {
        if !self.seen.sends_whole.swap(true, Ordering::Relaxed) {
            log::warn!(
                target: TOLD,
                "the server sends whole objects where a part is asked for; they are read whole, \
                 which is slow for shards"
            );
        }
    }

    /// Reads all of the object at `key`, and returns its bytes in `range`. No others are held in memory.
    async fn cut_from_whole(
        &self,
        key: &Key,
        pinned: &Pinned,
        range: Range<u64>,
    ) -> Result<Body, Failure> {
        let len = pinned.meta.size();
        let options = conditions(pinned);
        let range = &range;
        self.get(key, &options, |head| async move {
            let head = head?;
            head.found.check_is(pinned, true)?;
            self.cut(head, 0..len, range).await
        })
        .await
    }
}

/// The options of a request that is to succeed only for the version `pinned`.
fn conditions(pinned: &Pinned) -> GetOptions {
    let mut options = GetOptions::new();
    match &pinned.tag {
        Some(tag) => options.if_match = Some(tag.clone()),
        None if pinned.is_identified() => {
            options.if_unmodified_since = Some(pinned.meta.version.mtime.into());
        }
        None => {}
    }
    options
}
