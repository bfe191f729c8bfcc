//! Limits how many requests are in flight at once. The number follows the link and the server ([`Window`]), and the
//! bytes of the answers stay within a part of the memory budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::window::{Answer, Window};

/// The least memory of answers in flight.
const LEAST_BYTES: u64 = 8 << 20;

/// The memory budget is divided by this for the answers in flight.
const BUDGET_PART: u64 = 4;

/// When no request was answered for this time, those in flight may hang, and must not keep all others waiting.
const SILENCE: Duration = Duration::from_secs(1);

/// After the server has asked for fewer requests, silence is no reason to send more for this time.
const THROTTLED: Duration = Duration::from_secs(30);

/// The longest buffer into which a connection receives: the limit of `hyper`.
const MOST_BUFFER_BYTES: u64 = (8 << 10) + 4096 * 100;

/// Bytes of one permit of memory, because a semaphore counts in 32 bits.
const UNIT_BYTES: u64 = 4 << 10;

/// Limits the requests in flight and the memory of their answers.
#[derive(Debug)]
pub(super) struct Flow {
    requests: Arc<Semaphore>,
    limit: Mutex<Limit>,
    memory: Arc<Semaphore>,
    memory_units: u32,
    in_flight: AtomicUsize,
    bytes_in_flight: AtomicU64,
}

#[derive(Debug)]
struct Limit {
    window: Window,
    /// The time from which on silence is counted.
    quiet_since: Instant,
    /// The number of permits that are not passed on when they are released.
    excess: usize,
}

/// Counts a request in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    flow: Arc<Flow>,
    permit: Option<OwnedSemaphorePermit>,
    begun: Instant,
    round: u64,
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
        let window = Window::new(most);
        let memory = (budget_bytes / BUDGET_PART).max(LEAST_BYTES) / UNIT_BYTES;
        let memory_units = u32::try_from(memory).unwrap_or(u32::MAX).min(1 << 28);
        Arc::new(Flow {
            requests: Arc::new(Semaphore::new(window.limit())),
            limit: Mutex::new(Limit {
                window,
                quiet_since: Instant::now(),
                excess: 0,
            }),
            memory: Arc::new(Semaphore::new(memory_units as usize)),
            memory_units,
            in_flight: AtomicUsize::new(0),
            bytes_in_flight: AtomicU64::new(0),
        })
    }

    /// Waits until one more request may be sent.
    pub(super) async fn enter(self: &Arc<Self>) -> InFlight {
        let permit = loop {
            let permit = Arc::clone(&self.requests).acquire_owned();
            match timeout(SILENCE, permit).await {
                // The semaphore is never closed.
                Ok(permit) => break permit.ok(),
                Err(_) => self.grow_in_silence(),
            }
        };
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight {
            flow: Arc::clone(self),
            permit,
            begun: Instant::now(),
            round: self.limit.lock().window.round(),
        }
    }

    /// Waits for memory for answers of these lengths, and for the buffers of their connections. What is longer than all
    /// the memory takes all of it.
    pub(super) async fn reserve(self: &Arc<Self>, answers: &[u64]) -> Option<AnswerMemory> {
        let total = |bytes: u64, more: u64| bytes.saturating_add(more);
        let bytes = answers.iter().copied().fold(0, total);
        let buffers = answers.iter().copied().map(buffer_bytes);
        let memory_bytes = buffers.fold(bytes, total);
        let units = u32::try_from(memory_bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
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

    /// Notes the answer to `request`, which had no error and `bytes`.
    pub(super) fn answered(&self, request: &InFlight, bytes: u64) {
        let answer = Answer {
            round: request.round,
            time: request.begun.elapsed(),
            bytes,
            is_full: self.requests.available_permits() == 0,
        };
        self.change(|limit| {
            limit.quiet_since = Instant::now();
            limit.window.answered(answer);
        });
    }

    /// Notes that the server asks for fewer requests. From now on, half as many are allowed.
    pub(super) fn throttled(&self) {
        self.change(|limit| {
            if limit.excess > 0 {
                // These are the answers to the other requests that were in flight at the last
                // reduction.
                return;
            }
            limit.quiet_since = Instant::now() + THROTTLED;
            limit.window.throttled();
        });
    }

    /// Allows more requests if none was answered for a while.
    fn grow_in_silence(&self) {
        self.change(|limit| {
            let now = Instant::now();
            if now.saturating_duration_since(limit.quiet_since) >= SILENCE {
                limit.quiet_since = now;
                limit.window.hangs();
            }
        });
    }

    /// Changes the window, and the number of permits with it.
    fn change(&self, change: impl FnOnce(&mut Limit)) {
        let mut limit = self.limit.lock();
        let before = limit.window.limit();
        change(&mut limit);
        let now = limit.window.limit();
        if now < before {
            limit.excess += before - now - self.requests.forget_permits(before - now);
        } else {
            let kept = limit.excess.min(now - before);
            limit.excess -= kept;
            self.requests.add_permits(now - before - kept);
        }
    }

    /// The number of requests that may be in flight.
    pub(super) fn limit(&self) -> usize {
        self.limit.lock().window.limit()
    }

    /// Requests and bytes of answers in flight.
    pub(super) fn in_flight(&self) -> (usize, u64) {
        let requests = self.in_flight.load(Ordering::Relaxed);
        (requests, self.bytes_in_flight.load(Ordering::Relaxed))
    }
}

/// The buffer of a connection that receives answers of `bytes`. `hyper` doubles the buffer each time that the server fills
/// it, and keeps one more step than the answer needed.
fn buffer_bytes(bytes: u64) -> u64 {
    bytes.saturating_mul(2).min(MOST_BUFFER_BYTES)
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.flow.in_flight.fetch_sub(1, Ordering::Relaxed);
        let mut limit = self.flow.limit.lock();
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
        builder.enable_time().build().unwrap()
    }

    /// Enters as many requests as may be in flight.
    async fn fill(flow: &Arc<Flow>) -> Vec<InFlight> {
        let mut requests = Vec::new();
        for _ in 0..flow.limit() {
            requests.push(flow.enter().await);
        }
        requests
    }

    #[test]
    fn requests_that_hang_do_not_keep_others_waiting() {
        let flow = Flow::new(256, 1 << 30);
        runtime().block_on(async {
            let first = flow.limit();
            let requests = fill(&flow).await;
            flow.grow_in_silence();
            assert_eq!(flow.limit(), first, "the silence is short");
            let earlier = Instant::now().checked_sub(SILENCE).unwrap();
            flow.limit.lock().quiet_since = earlier;
            flow.grow_in_silence();
            flow.grow_in_silence();
            assert_eq!(flow.limit(), 2 * first, "once in each silence");
            assert_eq!(flow.requests.available_permits(), first);
            flow.throttled();
            flow.grow_in_silence();
            assert_eq!(flow.limit(), first, "the server has asked for fewer");
            drop(requests);
        });
    }

    #[test]
    fn permits_follow_the_window() {
        let flow = Flow::new(256, 1 << 30);
        runtime().block_on(async {
            let first = flow.limit();
            let mut requests = fill(&flow).await;
            flow.throttled();
            flow.throttled();
            let reduced = first / 2;
            assert_eq!(flow.limit(), reduced, "once for all of them");
            // These answers belong to requests from before.
            for request in requests.drain(..) {
                flow.answered(&request, 1 << 20);
            }
            assert_eq!(flow.limit(), reduced);
            assert_eq!(flow.requests.available_permits(), reduced);
            for _ in 0..reduced {
                requests.push(flow.enter().await);
            }
            for request in &requests {
                flow.answered(request, 1 << 20);
            }
            let grown = flow.limit();
            assert!(grown > reduced, "all were in use");
            assert_eq!(flow.requests.available_permits(), grown - reduced);
            drop(requests);
            assert_eq!(flow.requests.available_permits(), grown);
            assert_eq!(flow.in_flight(), (0, 0));
        });
    }

    #[test]
    fn permits_that_are_taken_back_are_given_again_when_the_window_grows() {
        let flow = Flow::new(256, 1 << 30);
        runtime().block_on(async {
            let first = flow.limit();
            let requests = fill(&flow).await;
            flow.throttled();
            flow.change(|limit| limit.window = Window::new(256));
            assert_eq!(flow.limit(), first);
            assert_eq!(flow.requests.available_permits(), 0, "all are in use");
            drop(requests);
            assert_eq!(flow.requests.available_permits(), first);
        });
    }

    #[test]
    fn short_answers_also_reserve_the_buffers_of_their_connections() {
        let flow = Flow::new(256, 64 << 20);
        runtime().block_on(async {
            let all = flow.memory.available_permits() as u64 * UNIT_BYTES;
            let short = flow.reserve(&[64 << 10]).await.unwrap();
            let rest = flow.memory.available_permits() as u64 * UNIT_BYTES;
            assert_eq!(all - rest, 3 * (64 << 10));
            assert_eq!(
                flow.in_flight().1,
                64 << 10,
                "the answer alone is in flight"
            );
            drop(short);
            let long = flow.reserve(&[8 << 20]).await.unwrap();
            let rest = flow.memory.available_permits() as u64 * UNIT_BYTES;
            assert_eq!(all - rest, (8 << 20) + MOST_BUFFER_BYTES);
            drop(long);
        });
    }

    #[test]
    fn an_answer_longer_than_the_memory_takes_all_of_it() {
        let flow = Flow::new(4, 0);
        runtime().block_on(async {
            let memory = flow.reserve(&[1 << 40]).await.unwrap();
            assert_eq!(flow.memory.available_permits(), 0);
            drop(memory);
            let _small = flow.reserve(&[1]).await.unwrap();
            assert_eq!(
                flow.memory.available_permits(),
                flow.memory_units as usize - 1
            );
        });
    }
}
