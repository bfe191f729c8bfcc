//! Limits how many requests are in flight at once. The number adapts to the server, and the bytes
//! of the answers stay within a part of the memory budget.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests in flight at the start.
const FIRST_REQUESTS: usize = 64;

/// The least number of requests in flight, however often the server asks for fewer.
const LEAST_REQUESTS: usize = 2;

/// Answered requests for which one more may be in flight.
const ANSWERS_PER_REQUEST: usize = 1;

/// The least memory of answers in flight.
const LEAST_BYTES: u64 = 8 << 20;

/// The memory budget is divided by this for the answers in flight.
const BUDGET_PART: u64 = 4;

/// Bytes of one permit of memory, because a semaphore counts in 32 bits.
const UNIT_BYTES: u64 = 4 << 10;

/// Limits the requests in flight and the memory of their answers.
#[derive(Debug)]
pub(super) struct Flow {
    requests: Arc<Semaphore>,
    limit: Mutex<Limit>,
    most: usize,
    memory: Arc<Semaphore>,
    memory_units: u32,
    in_flight: AtomicUsize,
    bytes_in_flight: AtomicU64,
}

#[derive(Debug)]
struct Limit {
    now: usize,
    /// The permits that are not passed on when they are released.
    excess: usize,
    /// Requests that were answered since the limit last changed.
    answers: usize,
}

/// Counts a request in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    flow: Arc<Flow>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Counts the bytes of an answer.
#[derive(Debug)]
pub(super) struct AnswerMemory {
    flow: Arc<Flow>,
    bytes: u64,
    _permit: OwnedSemaphorePermit,
}

impl Flow {
    /// At most `most` requests, and a part of `budget_bytes` for their answers.
    pub(super) fn new(most: usize, budget_bytes: u64) -> Arc<Flow> {
        let most = most.max(LEAST_REQUESTS);
        let now = FIRST_REQUESTS.min(most);
        let memory = (budget_bytes / BUDGET_PART).max(LEAST_BYTES) / UNIT_BYTES;
        let memory_units = u32::try_from(memory).unwrap_or(u32::MAX).min(1 << 28);
        Arc::new(Flow {
            requests: Arc::new(Semaphore::new(now)),
            limit: Mutex::new(Limit {
                now,
                excess: 0,
                answers: 0,
            }),
            most,
            memory: Arc::new(Semaphore::new(memory_units as usize)),
            memory_units,
            in_flight: AtomicUsize::new(0),
            bytes_in_flight: AtomicU64::new(0),
        })
    }

    /// Waits until one more request may be sent.
    pub(super) async fn enter(self: &Arc<Self>) -> InFlight {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.requests).acquire_owned().await.ok();
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight {
            flow: Arc::clone(self),
            permit,
        }
    }

    /// Waits for memory for an answer of `bytes`. An answer that is longer than all the memory
    /// takes all of it.
    pub(super) async fn reserve(self: &Arc<Self>, bytes: u64) -> Option<AnswerMemory> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let units = units.clamp(1, self.memory_units);
        let memory = Arc::clone(&self.memory);
        let permit = memory.acquire_many_owned(units).await.ok()?;
        self.bytes_in_flight.fetch_add(bytes, Ordering::Relaxed);
        Some(AnswerMemory {
            flow: Arc::clone(self),
            bytes,
            _permit: permit,
        })
    }

    /// The memory of all answers.
    pub(super) fn answer_bytes(&self) -> u64 {
        u64::from(self.memory_units) * UNIT_BYTES
    }

    /// Notes an answer without an error. While all permits are used, one more request is allowed
    /// after some answers.
    pub(super) fn succeeded(&self) {
        let is_full = self.requests.available_permits() == 0;
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_full || limit.now >= self.most || limit.excess > 0 {
            return;
        }
        limit.answers += 1;
        if limit.answers >= ANSWERS_PER_REQUEST {
            limit.answers = 0;
            limit.now += 1;
            self.requests.add_permits(1);
        }
    }

    /// Notes that the server asks for fewer requests. From now on, half as many are allowed.
    pub(super) fn throttled(&self) {
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        if limit.excess > 0 {
            // These are the answers to the other requests that were in flight at the last
            // reduction.
            return;
        }
        let now = (limit.now / 2).max(LEAST_REQUESTS).min(limit.now);
        let forgotten = self.requests.forget_permits(limit.now - now);
        limit.excess = limit.now - now - forgotten;
        limit.now = now;
        limit.answers = 0;
    }

    /// The number of requests that may be in flight.
    pub(super) fn limit(&self) -> usize {
        let limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        limit.now
    }

    /// Requests and bytes of answers in flight.
    pub(super) fn in_flight(&self) -> (usize, u64) {
        let requests = self.in_flight.load(Ordering::Relaxed);
        (requests, self.bytes_in_flight.load(Ordering::Relaxed))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.flow.in_flight.fetch_sub(1, Ordering::Relaxed);
        let limit = &self.flow.limit;
        let mut limit = limit.lock().unwrap_or_else(PoisonError::into_inner);
        if limit.excess > 0
            && let Some(permit) = self.permit.take()
        {
            limit.excess -= 1;
            permit.forget();
        }
    }
}

impl Drop for AnswerMemory {
    fn drop(&mut self) {
        let in_flight = &self.flow.bytes_in_flight;
        in_flight.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.build().unwrap()
    }

    #[test]
    fn the_limit_grows_while_it_is_used_and_is_halved_when_the_server_asks() {
        let flow = Flow::new(256, 1 << 30);
        runtime().block_on(async {
            let mut requests = Vec::new();
            for _ in 0..FIRST_REQUESTS {
                requests.push(flow.enter().await);
            }
            for _ in 0..ANSWERS_PER_REQUEST {
                flow.succeeded();
            }
            assert_eq!(flow.limit(), FIRST_REQUESTS + 1);
            requests.push(flow.enter().await);
            flow.throttled();
            flow.throttled();
            assert_eq!(
                flow.limit(),
                FIRST_REQUESTS.div_ceil(2),
                "once for all of them"
            );
            drop(requests);
            assert_eq!(flow.requests.available_permits(), flow.limit());
            for _ in 0..20 {
                flow.throttled();
            }
            assert_eq!(flow.limit(), LEAST_REQUESTS);
            assert_eq!(flow.requests.available_permits(), LEAST_REQUESTS);
            assert_eq!(flow.in_flight(), (0, 0));
        });
    }

    #[test]
    fn an_idle_server_gets_no_more_requests() {
        let flow = Flow::new(256, 1 << 30);
        for _ in 0..1000 {
            flow.succeeded();
        }
        assert_eq!(flow.limit(), FIRST_REQUESTS);
    }

    #[test]
    fn an_answer_longer_than_the_memory_takes_all_of_it() {
        let flow = Flow::new(4, 0);
        runtime().block_on(async {
            let memory = flow.reserve(1 << 40).await.unwrap();
            assert_eq!(flow.memory.available_permits(), 0);
            drop(memory);
            let _small = flow.reserve(1).await.unwrap();
            assert_eq!(
                flow.memory.available_permits(),
                flow.memory_units as usize - 1
            );
        });
    }
}
