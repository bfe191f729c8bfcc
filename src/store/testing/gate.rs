//! A gate at which calls wait until a test opens it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::store::CancelToken;

/// How often waiting threads check whether the file is gone.
const LOOK: Duration = Duration::from_millis(5);

/// Shut until it is opened, or while a file exists.
#[derive(Debug, Default)]
pub struct Gate {
    file: Option<PathBuf>,
    is_open: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    /// Shut while there is something at `file`.
    pub fn while_exists(file: PathBuf) -> Gate {
        Gate {
            file: Some(file),
            ..Gate::default()
        }
    }

    /// Opens the gate for good.
    pub fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// How many threads wait at the moment.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Waits until the gate is open; `false` when the call was cancelled before.
    pub(super) fn pass(&self) -> bool {
        let token = CancelToken::current();
        let is_cancelled = || token.as_ref().is_some_and(|token| token.is_cancelled());
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let mut is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_shut = || self.file.as_ref().is_none_or(|file| file.exists());
        while !*is_open && is_shut() && !is_cancelled() {
            let woken = self.opened.wait_timeout(is_open, LOOK);
            is_open = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(is_open);
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        !is_cancelled()
    }
}
