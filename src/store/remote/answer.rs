//! Answers to requests for bytes. If an answer is late, the request is sent a second time.

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use object_store::path::Path;
use object_store::{GetOptions, GetResult, ObjectStore};
use tokio::time::timeout;

use super::body::{Body, Gathered};
use super::client::RemoteClient;
use super::exchange::{Exchange, RequestKind};
use super::failure::Failure;
use super::tag::Pinned;

/// An answer is late only if its first byte takes longer than this.
const LEAST_HEDGE: Duration = Duration::from_secs(1);

/// An answer is late only if its first byte takes this many times the 95th percentile of earlier answers.
const HEDGE_FACTOR: u32 = 4;

/// At most one in this many requests is sent a second time.
const HEDGE_PART: u64 = 20;

/// Until this many requests were sent, no answer counts as late, because too few latencies are known.
const HEDGE_ANSWERS: u64 = 20;

/// An answer whose body was not read yet.
pub(super) struct AnswerHead {
    pub(super) found: Pinned,
    result: GetResult,
    exchange: Exchange,
}

impl RemoteClient {
    /// Sends a request for bytes, and checks the head of its answer. If the answer is late, the request is sent a
    /// second time on another connection. Then the answer that comes first counts, unless it is a transient failure.
    pub(super) async fn head_of_get(
        &self,
        path: &Path,
        options: GetOptions,
        exchange: &Exchange,
    ) -> Result<AnswerHead, Failure> {
        let send = |exchange: &Exchange| {
            let mut options = options.clone();
            options.extensions.insert(exchange.clone());
            let exchange = exchange.clone();
            Box::pin(async move {
                let result = self.store.get_opts(path, options).await;
                let facts = exchange.facts();
                (result.map_err(|error| Failure::new(&error, &facts)), facts)
            })
        };
        let is_part = options.range.is_some();
        let begun = Instant::now();
        let mut first = send(exchange);
        let (result, facts) = match self.late_after() {
            None => first.await,
            Some(late) => {
                if let Ok(answered) = timeout(late, &mut first).await {
                    answered
                } else {
                    self.statistics.hedges.add(1);
                    self.statistics.count(RequestKind::Get);
                    let second = send(&Exchange::default());
                    match select(first, second).await {
                        Either::Left(((Err(Failure::Transient(_)), _), other))
                        | Either::Right(((Err(Failure::Transient(_)), _), other)) => other.await,
                        Either::Left((answered, _)) | Either::Right((answered, _)) => answered,
                    }
                }
            }
        };
        self.statistics.latencies.add(begun.elapsed());
        let result = result?;
        facts.check(is_part)?;
        self.methods.note_found(path);
        let found = self.pinned(&result.meta, facts.date);
        Ok(AnswerHead {
            found,
            result,
            exchange: exchange.clone(),
        })
    }

    /// The time after which an answer is late; `None` if too few latencies are known, or if too many requests were
    /// sent twice.
    fn late_after(&self) -> Option<Duration> {
        let statistics = &self.statistics;
        let requests = statistics.requests();
        let may = requests >= HEDGE_ANSWERS
            && statistics.hedges.get().saturating_mul(HEDGE_PART) < requests;
        let usual = statistics.latencies.percentile(95).filter(|_| may)?;
        Some(usual.saturating_mul(HEDGE_FACTOR).max(LEAST_HEDGE))
    }

    /// Reads the body of an answer, which must have the bytes `range` and no others.
    pub(super) async fn body(&self, head: AnswerHead, range: Range<u64>) -> Result<Body, Failure> {
        let wanted = range.clone();
        self.cut(head, range, &wanted).await
    }

    /// Like [`RemoteClient::body`], but returns the bytes `wanted` alone.
    pub(super) async fn cut(
        &self,
        head: AnswerHead,
        range: Range<u64>,
        wanted: &Range<u64>,
    ) -> Result<Body, Failure> {
        let result = head.result;
        let len = range.end - range.start;
        if result.range != range {
            return Err(Failure::unusable(
                "the server sent another range than requested",
            ));
        }
        let mut stream = result.into_stream();
        let mut body = Gathered::of_len(wanted.end.saturating_sub(wanted.start));
        let mut received = 0_u64;
        while let Some(part) = stream.next().await {
            let part = part.map_err(|_| Failure::transient("the answer ended early"))?;
            let at = range.start.saturating_add(received);
            received = received.saturating_add(part.len() as u64);
            self.statistics.received_bytes.add(part.len() as u64);
            if received > len {
                let problem = format!("the server sent more than the {len} requested bytes");
                return Err(Failure::Unusable(problem));
            }
            if let Some(part) = part_in(wanted, at, part) {
                body.push(part);
            }
        }
        if received < len {
            let problem = format!("the answer ended after {received} of {len} bytes");
            return Err(Failure::transient(problem));
        }
        head.exchange.noted().received_bytes += received;
        Ok(body.into_body())
    }
}

/// Those bytes of `part`, which begins at `at` in the object, that are in `wanted`.
fn part_in(wanted: &Range<u64>, at: u64, part: Bytes) -> Option<Bytes> {
    let end = at.saturating_add(part.len() as u64);
    if wanted.start <= at && end <= wanted.end {
        return Some(part);
    }
    let (from, to) = (wanted.start.max(at), wanted.end.min(end));
    let inside = |n: u64| usize::try_from(n - at).unwrap_or(usize::MAX);
    (from < to).then(|| part.slice(inside(from)..inside(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wanted_bytes_of_a_whole_object_are_kept() {
        let part = Bytes::from_static(b"0123456789");
        for (wanted, expected) in [
            (0..5, None),
            (5..12, Some("01")),
            (12..15, Some("234")),
            (18..30, Some("89")),
            (0..30, Some("0123456789")),
            (20..30, None),
            (15..15, None),
        ] {
            let found = part_in(&wanted, 10, part.clone());
            assert_eq!(found, expected.map(Bytes::from), "{wanted:?}");
        }
    }
}
