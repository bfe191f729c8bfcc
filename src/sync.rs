//! Locks and threads: those of the standard library, or of the model checker that runs the same
//! code in many schedules (feature `model`, `schedules.rs` beside what is checked).

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

/// Gives back `guard` of `mutex` and waits to be notified, but not longer than `patience`; says
/// whether that is over.
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

/// The same without a clock. A short wait is over when others had a turn; a longer one may be, in
/// half of the schedules; and one for `Duration::MAX` never is. So a call that is missed, and that
/// only the end of a long wait would make up for, is found as a deadlock.
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

/// Starts a thread that nobody waits for.
///
/// # Errors
/// When the system has none left.
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
