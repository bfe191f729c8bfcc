//! Files that are being closed, and the requests that wait until they are closed.
//!
//! close(2) is two requests. The kernel waits for the reply to the first one, FLUSH, and for none to the second one,
//! RELEASE. So the program that closed the file may send further requests before the daemon has got the RELEASE, and
//! the file would still count as open. For example, a truncation by name would become a draft, although it is refused
//! for a closed file. Through the device this is rare, because all requests are in one queue. Rings have a queue for
//! each processor, and several threads. So a request through a ring that names a file waits for the RELEASE of each
//! handle that was flushed: in the thread of a direct ring, or in the job of a request that came through the deferring
//! ring.
//!
//! A FLUSH is not always the last one: a handle that programs share is flushed by each of them. Such a handle is waited
//! for once, for [`PATIENCE`].

use std::collections::BTreeSet;
use std::time::Duration;

use fuser::FileHandle;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, wait_timeout};

/// How long a request waits for a RELEASE. The kernel sends it right after the FLUSH.
const PATIENCE: Duration = Duration::from_millis(20);

/// The handles that were flushed and not released.
#[derive(Debug, Default)]
pub(super) struct Closing {
    flushed: Mutex<BTreeSet<u64>>,
    released: Condvar,
    /// Whether there may be such a handle.
    is_waited_for: AtomicBool,
}

impl Closing {
    /// Notes that the reply to a FLUSH is about to be sent.
    pub(super) fn note_flushed(&self, handle: FileHandle) {
        self.lock().insert(handle.0);
        self.is_waited_for.store(true, Ordering::Release);
    }

    /// Notes that a file was closed.
    pub(super) fn note_released(&self, handle: FileHandle) {
        if !self.is_waited_for.load(Ordering::Acquire) {
            return;
        }
        let mut flushed = self.lock();
        if flushed.remove(&handle.0) && flushed.is_empty() {
            self.is_waited_for.store(false, Ordering::Release);
            drop(flushed);
            self.released.notify_all();
        }
    }

    /// Waits until all flushed handles are released, or are taken for handles that programs share.
    pub(super) fn wait(&self) {
        if !self.is_waited_for.load(Ordering::Acquire) {
            return;
        }
        let mut flushed = self.lock();
        while !flushed.is_empty() {
            let (again, is_late) = wait_timeout(&self.released, &self.flushed, flushed, PATIENCE);
            flushed = again;
            if is_late {
                flushed.clear();
                self.is_waited_for.store(false, Ordering::Release);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.flushed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_request_waits_for_the_release_of_a_flushed_handle() {
        let closing = Closing::default();
        closing.wait();
        closing.note_flushed(FileHandle(3));
        closing.note_flushed(FileHandle(4));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                closing.wait();
                closing.lock().is_empty()
            });
            closing.note_released(FileHandle(4));
            closing.note_released(FileHandle(3));
            assert!(waiting.join().unwrap());
        });
        // A handle that is shared is not released.
        closing.note_flushed(FileHandle(5));
        closing.wait();
        assert!(closing.lock().is_empty());
        closing.note_released(FileHandle(5));
    }
}

#[cfg(all(test, feature = "model"))]
mod schedules {
    use shuttle::thread;

    use super::*;
    use crate::sync::Arc;
    use crate::sync::schedules::check;

    #[test]
    fn no_request_waits_for_ever() {
        check(|| {
            let closing = Arc::new(Closing::default());
            for handle in [1, 2] {
                closing.note_flushed(FileHandle(handle));
            }
            let releases = [1, 2].map(|handle| {
                let closing = Arc::clone(&closing);
                thread::spawn(move || closing.note_released(FileHandle(handle)))
            });
            let waits = [(); 2].map(|()| {
                let closing = Arc::clone(&closing);
                thread::spawn(move || closing.wait())
            });
            for thread in releases.into_iter().chain(waits) {
                thread.join().unwrap();
            }
            assert!(closing.lock().is_empty());
        });
    }
}
