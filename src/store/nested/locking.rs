//! Locks that a panic of another thread does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
