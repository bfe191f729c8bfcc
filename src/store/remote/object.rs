//! One version of an object of a remote store.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::failure::Failure;
use super::first_bytes::FirstBytes;
use super::ranges::{parts, requests};
use super::shared::Shared;
use super::tag::Pinned;
use crate::store::received::copied;
use crate::store::{Key, Object, ObjectMeta, ReadRange, ReceivedBytes, StoreError};

/// One version of an object. Each request for its bytes demands this version.
#[derive(Debug)]
pub(super) struct RemoteObject {
    shared: Arc<Shared>,
    key: Key,
    pinned: Pinned,
    first: FirstBytes,
}

impl RemoteObject {
    pub(super) fn new(shared: Arc<Shared>, key: Key, pinned: Pinned) -> RemoteObject {
        RemoteObject {
            shared,
            key,
            pinned,
            first: FirstBytes::default(),
        }
    }

    /// The same object, of which bytes were read when it was opened.
    pub(super) fn with_first(self, first: FirstBytes) -> RemoteObject {
        RemoteObject { first, ..self }
    }

    /// Fails if no attribute distinguishes this version from a later one, so that several requests
    /// could get parts of two versions. One request for the whole object gets one version.
    fn check_identified(&self, requests: &[Range<u64>]) -> Result<(), StoreError> {
        let is_safe = self.pinned.is_identified() || self.shared.is_immutable;
        let is_whole = matches!(requests, [all] if *all == (0..self.pinned.meta.size()));
        if is_safe || is_whole {
            return Ok(());
        }
        Err(StoreError::problem(
            &self.key,
            "the server sends neither an ETag nor a time of modification, so that a change would \
             not be noticed; give --immutable if the store never changes",
        ))
    }

    /// The requests that read all of `wanted`.
    ///
    /// # Errors
    /// Those of [`RemoteObject::check_identified`].
    fn requests(&self, wanted: &[Range<u64>]) -> Result<Vec<Range<u64>>, StoreError> {
        let requests = requests(wanted);
        if !requests.is_empty() {
            self.check_identified(&requests)?;
        }
        Ok(requests)
    }

    /// The groups of `requests` that are sent one after the other, so that their answers fit in
    /// memory.
    fn waves<'r>(&self, requests: &'r [Range<u64>]) -> Vec<&'r [Range<u64>]> {
        waves(requests, self.shared.client.flow.answer_bytes())
    }

    /// Sends `requests` side by side, and adds their answers to `received`.
    fn receive_wave(
        &self,
        requests: &[Range<u64>],
        received: &mut ReceivedBytes,
    ) -> Result<(), StoreError> {
        let (shared, key) = (Arc::clone(&self.shared), self.key.clone());
        let (pinned, requests) = (self.pinned.clone(), requests.to_vec());
        let answers = async move {
            let client = &shared.client;
            let memory = client.flow.reserve(&lengths(&requests)).await;
            let each = requests.into_iter().map(async |range| {
                let start = range.start;
                Ok((start, client.get_range(&key, &pinned, range).await?))
            });
            (try_join_all(each).await, memory)
        };
        let runtime = &self.shared.runtime;
        let (bodies, _memory) = runtime.wait_while_wanted(&self.key, answers)?;
        for (start, body) in bodies.map_err(|failure| self.error(failure))? {
            received.push_all(start, body);
        }
        Ok(())
    }

    /// Fills the buffers of those of `ranges` that are kept on disk. Returns the others, in the parts in which they are
    /// kept. Looks only for the parts `among`, if there are such.
    fn read_kept(
        &self,
        ranges: &mut [ReadRange<'_>],
        among: Option<&[Range<u64>]>,
    ) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        for range in ranges {
            let mut rest = &mut *range.buf;
            let end = range.offset_bytes.saturating_add(rest.len() as u64);
            for part in parts(range.offset_bytes..end) {
                let len = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
                let (buf, others) = rest.split_at_mut(len.min(rest.len()));
                rest = others;
                let is_meant = among.is_none_or(|among| among.contains(&part));
                if is_meant
                    && !self
                        .shared
                        .read_kept(&self.key, &self.pinned, part.start, buf)
                {
                    missing.push(part);
                }
            }
        }
        missing
    }

    /// Requests the parts `missing` of `ranges`.
    fn request_missing(
        &self,
        ranges: &mut [ReadRange<'_>],
        missing: &[Range<u64>],
    ) -> Result<(), StoreError> {
        for _ in missing {
            self.shared.note_miss();
        }
        for wave in self.waves(&self.requests(missing)?) {
            let mut received = ReceivedBytes::default();
            self.receive_wave(wave, &mut received)?;
            for range in &mut *ranges {
                received.copy(range.offset_bytes, range.buf);
            }
            // Each missing range is inside one of the requests of a wave, or is cut in the same parts.
            self.keep(missing, &received);
        }
        Ok(())
    }

    /// Requests those of the parts `missing` that no other caller is requesting, and waits for the others.
    fn receive_missing(
        &self,
        ranges: &mut [ReadRange<'_>],
        mut missing: Vec<Range<u64>>,
    ) -> Result<(), StoreError> {
        // Several buffers may lack the same part, which can be claimed once.
        missing.sort_unstable_by_key(|part| (part.start, part.end));
        missing.dedup();
        let (request, others) = self.shared.begin_ranges(&self.key, &self.pinned, &missing);
        let ours: Vec<_> = missing
            .into_iter()
            .filter(|part| !others.contains(part))
            .collect();
        if !ours.is_empty() {
            // They may have been kept since.
            let ours = self.read_kept(ranges, Some(&ours));
            self.request_missing(ranges, &ours)?;
        }
        drop(request);
        if others.is_empty() {
            return Ok(());
        }
        let has_waited = self
            .shared
            .wait_for_ranges(&self.key, &self.pinned, &others)?;
        let rest = self.read_kept(ranges, Some(&others));
        if has_waited {
            for part in &others {
                self.shared.note_range(!rest.contains(part));
            }
        }
        let (_request, _) = self.shared.begin_ranges(&self.key, &self.pinned, &rest);
        self.request_missing(ranges, &rest)
    }

    /// Keeps those of `wanted` on disk that were received.
    fn keep(&self, wanted: &[Range<u64>], received: &ReceivedBytes) {
        if self.shared.kept.is_none() {
            return;
        }
        for range in wanted {
            if let Some(parts) = received.parts_of(range) {
                self.shared
                    .keep_range(&self.key, &self.pinned, range.start, &parts);
            }
        }
    }

    /// The error for a failed request. If the object has changed, the remembered answers about it
    /// are forgotten.
    fn error(&self, failure: Failure) -> StoreError {
        if matches!(
            failure,
            Failure::Changed | Failure::Absent | Failure::BeyondEnd
        ) {
            self.shared.forget(&self.key);
        }
        if failure == Failure::BeyondEnd {
            return StoreError::changed(&self.key);
        }
        failure.into_error(&self.key, true)
    }
}

impl Object for RemoteObject {
    fn meta(&self) -> &ObjectMeta {
        &self.pinned.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.read_ranges(&mut [ReadRange { offset_bytes, buf }])
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        for range in ranges.iter() {
            let meta = &self.pinned.meta;
            meta.check_range(&self.key, range.offset_bytes, range.buf.len())?;
        }
        let range_of = |range: &ReadRange<'_>| {
            range.offset_bytes..range.offset_bytes.saturating_add(range.buf.len() as u64)
        };
        let wanted: Vec<Range<u64>> = ranges.iter().map(range_of).collect();
        if let Some(parts) = self.first.read(&wanted) {
            for (range, part) in ranges.iter_mut().zip(parts) {
                range.buf.copy_from_slice(&part);
            }
            return Ok(());
        }
        let missing = self.read_kept(ranges, None);
        if missing.is_empty() {
            self.shared.client.statistics.note_disk_read();
        }
        if self.shared.kept.is_some() && !missing.is_empty() {
            self.receive_missing(ranges, missing)?;
        } else {
            self.request_missing(ranges, &missing)?;
        }
        self.shared.save(&self.key);
        Ok(())
    }

    fn is_at_hand(&self, ranges: &[Range<u64>]) -> bool {
        let (Some(kept), Some(path)) = (&self.shared.kept, self.shared.client.path(&self.key))
        else {
            return false;
        };
        let mut all = ranges.iter().flat_map(|range| parts(range.clone()));
        all.all(|part| kept.has(path.as_ref(), &self.pinned, part))
    }

    fn receive(&self, ranges: &[Range<u64>]) -> Result<ReceivedBytes, StoreError> {
        for range in ranges {
            let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
            self.pinned.meta.check_range(&self.key, range.start, len)?;
        }
        let mut received = ReceivedBytes::default();
        if let Some(parts) = self.first.read(ranges) {
            for (range, part) in ranges.iter().zip(parts) {
                received.push(range.start, part);
            }
            // They would keep all of the first bytes in memory.
            received.compact();
        } else if self.shared.kept.is_some() {
            // Each range has memory of its own, into which kept bytes are read.
            return copied(self, ranges);
        } else {
            let requests = self.requests(ranges)?;
            // The caller has memory only for the ranges, and not for the gaps that are read with
            // them.
            if bytes_of(&requests) > bytes_of(ranges) {
                return copied(self, ranges);
            }
            for wave in self.waves(&requests) {
                self.receive_wave(wave, &mut received)?;
            }
        }
        Ok(received)
    }

    fn verify(&self) -> Result<(), StoreError> {
        let found = self.shared.stat_object(&self.key)?;
        if found.is_some_and(|found| found.is_same(&self.pinned)) {
            return Ok(());
        }
        Err(StoreError::changed(&self.key))
    }

    fn doubt(&self) {
        self.shared.forget(&self.key);
    }
}

fn bytes_of(requests: &[Range<u64>]) -> u64 {
    lengths(requests).iter().sum()
}

fn lengths(requests: &[Range<u64>]) -> Vec<u64> {
    let length = |request: &Range<u64>| request.end - request.start;
    requests.iter().map(length).collect()
}

/// Divides `requests` into groups of at most `most_bytes`, or of one request.
fn waves(requests: &[Range<u64>], most_bytes: u64) -> Vec<&[Range<u64>]> {
    let mut waves = Vec::new();
    let mut rest = requests;
    while !rest.is_empty() {
        let mut bytes = 0_u64;
        let fits = rest.iter().take_while(|request| {
            bytes = bytes.saturating_add(request.end - request.start);
            bytes <= most_bytes
        });
        let (wave, left) = rest.split_at(fits.count().max(1));
        waves.push(wave);
        rest = left;
    }
    waves
}
