//! Locks and threads. They are those of the standard library, or with the feature `model` those of
//! a model checker that runs the same code in many schedules. Each `schedules.rs` checks its parent
//! module.

use std::time::Duration;

#[cfg(not(feature = "model"))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic, mpsc};
#[cfg(not(feature = "model"))]
pub(crate) use std::thread_local;

#[cfg(feature = "model")]
pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, Weak, atomic, mpsc};
#[cfg(feature = "model")]
pub(crate) use shuttle::thread_local;
#[cfg(feature = "model")]
pub(crate) use std::sync::PoisonError;

/// Unlocks `mutex` and waits for a notification, but not longer than `patience`. Returns the lock
/// again, and whether the wait timed out.
#[cfg(not(feature = "model"))]
pub(crate) fn wait_timeout<'s, T>(
    condition: &Condvar,
    _mutex: &'s Mutex<T>,
    guard: MutexGuard<'s, T>,
    patience: Duration,
) -> (MutexGuard<'s, T>, bool) {
    let (guard, timeout) = condition
        .wait_timeout(guard, patience)
        .unwrap_or_else(PoisonError::into_inner);
    (guard, timeout.timed_out())
}

/// As the other `wait_timeout`, but without a clock. A short wait always times out, after other threads had a turn. A
/// longer wait times out in half of the schedules, and one for `Duration::MAX` never does. So a missed notification
/// that only a timeout would make up for is found as a deadlock.
#[cfg(feature = "model")]
pub(crate) fn wait_timeout<'s, T>(
    condition: &Condvar,
    mutex: &'s Mutex<T>,
    guard: MutexGuard<'s, T>,
    patience: Duration,
) -> (MutexGuard<'s, T>, bool) {
    use shuttle::rand::Rng;
    let is_short = patience < Duration::from_secs(1);
    let is_late = is_short || patience < Duration::MAX && shuttle::rand::thread_rng().r#gen();
    let guard = if is_late {
        drop(guard);
        shuttle::thread::yield_now();
        mutex.lock()
    } else {
        condition.wait(guard)
    };
    (guard.unwrap_or_else(PoisonError::into_inner), is_late)
}

/// Sleeps; under the model checker, other threads have a turn.
pub(crate) fn sleep(duration: Duration) {
    #[cfg(not(feature = "model"))]
    std::thread::sleep(duration);
    #[cfg(feature = "model")]
    shuttle::thread::sleep(duration);
}

/// Starts a detached thread.
///
/// # Errors
/// When the system cannot start another thread.
pub(crate) fn spawn_named(
    name: String,
    stack_bytes: usize,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    #[cfg(not(feature = "model"))]
    let builder = std::thread::Builder::new()
        .name(name)
        .stack_size(stack_bytes);
    #[cfg(feature = "model")]
    let builder = shuttle::thread::Builder::new()
        .name(name)
        .stack_size(stack_bytes);
    builder.spawn(body).map(drop)
}

#[cfg(test)]
#[cfg(feature = "model")]
pub(crate) mod schedules;
