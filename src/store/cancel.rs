//! Cancels requests when no caller waits for their answers any more.
//!
//! A caller makes its requests in the scope of a [`CancelToken`]. A store that is slow to answer
//! gives up those that read bytes, and those for the attributes of objects, once the token is
//! cancelled, and returns an error. Other stores take no notice.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::StoreError;

thread_local! {
    /// The token in whose scope this thread is.
    static CURRENT: RefCell<Option<Arc<CancelToken>>> = const { RefCell::new(None) };
}

/// Why a request failed, in words.
const CANCELLED: &str = "the request was cancelled, because the file was closed";

type Callback = Box<dyn FnOnce() + Send>;

/// Tells whether the answers to some requests are still wanted.
pub struct CancelToken {
    number: u64,
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    is_cancelled: bool,
    /// The functions that are called when the token is cancelled, by numbers.
    callbacks: HashMap<u64, Callback>,
    next: u64,
}

/// A callback of a token. Dropping this removes it.
#[derive(Debug)]
#[must_use]
pub struct Registration<'t> {
    token: &'t CancelToken,
    number: u64,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Arc<CancelToken> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(CancelToken {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::default(),
        })
    }

    /// A number that no other token of this process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Cancels the requests in the scope of this token, for good.
    pub fn cancel(&self) {
        let mut state = self.state.lock();
        state.is_cancelled = true;
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        for callback in callbacks.into_values() {
            callback();
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.state.lock().is_cancelled
    }

    /// Calls `work` in the scope of `token`; without one, nothing cancels its requests.
    pub fn scope<T>(token: Option<Arc<CancelToken>>, work: impl FnOnce() -> T) -> T {
        /// Restores the scope before, even after a panic.
        struct Restore(Option<Arc<CancelToken>>);

        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.with(|current| current.replace(self.0.take()));
            }
        }

        let _restore = Restore(CURRENT.with(|current| current.replace(token)));
        work()
    }

    /// The token in whose scope this thread is.
    pub fn current() -> Option<Arc<CancelToken>> {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// Calls `callback` when the token is cancelled, or at once if it is.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) -> Registration<'_> {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        if state.is_cancelled {
            drop(state);
            callback();
        } else {
            state.callbacks.insert(number, Box::new(callback));
        }
        let token = self;
        Registration { token, number }
    }

    /// The error of a request for `key` that was cancelled.
    pub fn error(key: impl fmt::Display) -> StoreError {
        StoreError::problem(key, CANCELLED)
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let callback = self.token.state.lock().callbacks.remove(&self.number);
        // It may hold anything, so it is not dropped under the lock.
        drop(callback);
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelToken({})", self.number)
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;

    #[test]
    fn callbacks_are_called_once_unless_they_were_removed() {
        let (token, calls) = (CancelToken::new(), Arc::new(AtomicU64::new(0)));
        let add = |n| {
            let calls = Arc::clone(&calls);
            move || {
                calls.fetch_add(n, Ordering::Relaxed);
            }
        };
        drop(token.on_cancel(add(1)));
        let kept = token.on_cancel(add(10));
        token.cancel();
        assert_eq!(calls.load(Ordering::Relaxed), 10);
        let late = token.on_cancel(add(100));
        assert_eq!(calls.load(Ordering::Relaxed), 110);
        token.cancel();
        drop((kept, late));
        assert_eq!(calls.load(Ordering::Relaxed), 110);
        assert!(token.is_cancelled() && token.state.lock().callbacks.is_empty());
    }

    #[test]
    fn a_scope_ends_with_the_call_even_after_a_panic() {
        let current = || CancelToken::current().map(|token| token.number());
        let (outer, inner) = (CancelToken::new(), CancelToken::new());
        CancelToken::scope(Some(Arc::clone(&outer)), || {
            let work = || CancelToken::scope(Some(inner), || panic!("on purpose"));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
            assert_eq!(current(), Some(outer.number()));
            CancelToken::scope(None, || assert_eq!(current(), None));
        });
        assert_eq!(current(), None);
    }
}
