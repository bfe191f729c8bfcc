//! One version of an object of a remote store.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::client::Body;
use super::failure::Failure;
use super::first_bytes::FirstBytes;
use super::ranges::requests;
use super::shared::Shared;
use super::tag::Pinned;
use crate::store::{Key, Object, ObjectMeta, ReadRange, StoreError};

/// One version of an object. Each request for its bytes asks for this version alone.
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

    /// Fails where nothing tells this version from a later one, so that several requests could get
    /// parts of two versions. One request for all of the object gets one version.
    fn check_identified(&self, requests: &[Range<u64>]) -> Result<(), StoreError> {
        let is_safe = self.pinned.is_identified() || self.shared.is_immutable;
        let is_whole = matches!(requests, [all] if *all == (0..self.pinned.meta.size()));
        if is_safe || is_whole {
            return Ok(());
        }
        Err(StoreError::problem(
            &self.key,
            "the server tells neither an ETag nor a time of modification, so that a change would \
             not be noticed; give --immutable if the store never changes",
        ))
    }

    /// Sends `requests` side by side, and copies what their answers have of the `wanted` ranges.
    fn read_wave(
        &self,
        requests: &[Range<u64>],
        wanted: &[Range<u64>],
        ranges: &mut [ReadRange<'_>],
    ) -> Result<(), StoreError> {
        let (shared, key) = (Arc::clone(&self.shared), self.key.clone());
        let (pinned, asked) = (self.pinned.clone(), requests.to_vec());
        let answers = async move {
            let client = &shared.client;
            let memory = client.flow.reserve(bytes_of(&asked)).await;
            let each = asked
                .into_iter()
                .map(|range| client.get_range(&key, &pinned, range));
            (try_join_all(each).await, memory)
        };
        let runtime = &self.shared.runtime;
        let (bodies, _memory) = runtime.wait_while_wanted(&self.key, answers)?;
        let bodies = bodies.map_err(|failure| self.error(failure))?;
        for (range, wanted) in ranges.iter_mut().zip(wanted) {
            copy(requests, &bodies, wanted, range.buf);
        }
        Ok(())
    }

    /// The error for a failed request. What was remembered of the object is forgotten when it has
    /// changed.
    fn error(&self, failure: Failure) -> StoreError {
        if matches!(
            failure,
            Failure::Changed | Failure::Absent | Failure::BeyondEnd
        ) {
            self.shared.remembered.forget(&self.key);
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
        if self.first.read(ranges) {
            return Ok(());
        }
        let wanted: Vec<Range<u64>> = ranges
            .iter()
            .map(|range| range.offset_bytes..range.offset_bytes + range.buf.len() as u64)
            .collect();
        let requests = requests(&wanted);
        if requests.is_empty() {
            return Ok(());
        }
        self.check_identified(&requests)?;
        let most_bytes = self.shared.client.flow.answer_bytes();
        for requests in waves(&requests, most_bytes) {
            self.read_wave(requests, &wanted, ranges)?;
        }
        Ok(())
    }

    fn verify(&self) -> Result<(), StoreError> {
        let found = self.shared.stat_object(&self.key)?;
        if found.is_some_and(|found| found.is_same(&self.pinned)) {
            return Ok(());
        }
        Err(StoreError::changed(&self.key))
    }

    fn doubt(&self) {
        self.shared.remembered.forget(&self.key);
    }
}

fn bytes_of(requests: &[Range<u64>]) -> u64 {
    requests
        .iter()
        .map(|request| request.end - request.start)
        .sum()
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

/// Copies what the `bodies` of the answers to `requests` have of the bytes `wanted` of the object.
fn copy(requests: &[Range<u64>], bodies: &[Body], wanted: &Range<u64>, buf: &mut [u8]) {
    let first = requests.partition_point(|request| request.end <= wanted.start);
    let overlapping = requests.iter().zip(bodies).skip(first);
    for (request, body) in overlapping.take_while(|(request, _)| request.start < wanted.end) {
        let mut at = request.start;
        for part in body {
            copy_part(part, at, wanted, buf);
            at += part.len() as u64;
        }
    }
}

/// Copies what `part`, which begins at `at` in the object, has of `wanted`.
fn copy_part(part: &Bytes, at: u64, wanted: &Range<u64>, buf: &mut [u8]) {
    let (from, to) = (wanted.start.max(at), wanted.end.min(at + part.len() as u64));
    if from >= to {
        return;
    }
    let index = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let source = part.get(index(from - at)..index(to - at));
    let target = buf.get_mut(index(from - wanted.start)..index(to - wanted.start));
    if let (Some(source), Some(target)) = (source, target) {
        target.copy_from_slice(source);
    }
}
