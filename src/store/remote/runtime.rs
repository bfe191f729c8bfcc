//! The thread on which requests to remote stores run. The rest of the program is synchronous: a caller passes a future
//! to the thread, and waits for its result.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc;
use std::task::Context;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::store::{CancelToken, Key, Recency, StoreError};

/// With at least this many cores, two threads serve the connections.
const CORES_FOR_TWO: usize = 4;

const STACK_BYTES: usize = 2 << 20;

/// Runs futures until it is dropped.
#[derive(Debug)]
pub(super) struct Runtime {
    handle: Handle,
    /// Dropping this ends the thread.
    _end: oneshot::Sender<()>,
}

impl Runtime {
    /// Starts the thread. The process must not fork after that.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the system refuses a thread or a descriptor.
    pub(super) fn start() -> Result<Runtime, StoreError> {
        let failed = |error: std::io::Error| StoreError::io("remote-io", &error);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut builder = if cores >= CORES_FOR_TWO {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(2).thread_stack_size(STACK_BYTES);
            builder
        } else {
            Builder::new_current_thread()
        };
        let builder = builder.thread_name("remote-io").enable_all();
        let runtime = builder.build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let serve = move || {
            // The sender sends nothing. This returns when it is dropped.
            let _ = runtime.block_on(ended);
            // Requests that are still under way are dropped.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("remote-io".to_owned());
        thread
            .stack_size(STACK_BYTES)
            .spawn(serve)
            .map_err(failed)?;
        Ok(Runtime { handle, _end: end })
    }

    /// Runs `future`, and waits for its result.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the runtime ended before, or the future panicked.
    pub(super) fn wait_for<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (_, result) = self.begin(future);
        result.recv().map_err(|_| ended())
    }

    /// Like [`Runtime::wait_for`], for requests about `key`, and perhaps others. They are dropped when the
    /// [`CancelToken`] is cancelled in whose scope this thread is.
    ///
    /// # Errors
    /// Those of [`Runtime::wait_for`]; [`StoreError::Io`] also when the requests were dropped.
    pub(super) fn wait_while_wanted<T: Send + 'static>(
        &self,
        key: &Key,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(token) = CancelToken::current() else {
            return self.wait_for(future);
        };
        if token.is_cancelled() {
            return Err(CancelToken::error(key));
        }
        let (task, result) = self.begin(future);
        let _registration = token.on_cancel(move || task.abort());
        result.recv().map_err(|_| {
            if token.is_cancelled() {
                CancelToken::error(key)
            } else {
                ended()
            }
        })
    }

    /// Begins `future`. Nothing is received when it is aborted, or panics.
    fn begin<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> (AbortHandle, mpsc::Receiver<T>) {
        let (send, receive) = mpsc::sync_channel(1);
        // Answers that count for the caller also count for its requests.
        let since = Recency::since();
        let task = self.handle.spawn(async move {
            let mut future = pin!(future);
            let poll =
                |context: &mut Context<'_>| Recency::scope(since, || future.as_mut().poll(context));
            // The receiver waits.
            let _ = send.send(poll_fn(poll).await);
        });
        (task.abort_handle(), receive)
    }

    /// Begins `future`, for whose result the caller does not wait.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(future);
    }
}

fn ended() -> StoreError {
    StoreError::problem("remote-io", "the requests to the remote store have ended")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_caller_waits_for_its_result_and_a_panic_is_an_error() {
        let runtime = Runtime::start().unwrap();
        assert_eq!(runtime.wait_for(async { 5 }).unwrap(), 5);
        assert!(runtime.wait_for(async { panic!("on purpose") }).is_err());
        let threads: Vec<_> = (0..50)
            .map(|n| {
                let handle = runtime.handle.clone();
                thread::spawn(move || handle.block_on(async move { n }))
            })
            .collect();
        let sum: i32 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(sum, 49 * 50 / 2);
    }

    #[test]
    fn a_request_counts_the_answers_that_its_caller_counts() {
        let runtime = Runtime::start().unwrap();
        let since = Some(std::time::Instant::now());
        let ask = || runtime.wait_for(async { Recency::since() }).unwrap();
        assert_eq!(Recency::scope(since, ask), since);
        assert_eq!(ask(), None);
    }

    #[test]
    fn requests_are_given_up_when_they_are_cancelled_and_no_others_are() {
        let runtime = Runtime::start().unwrap();
        let key = Key::parse(b"c/0").unwrap();
        let (wanted, unwanted) = (CancelToken::new(), CancelToken::new());
        let (begun, is_begun) = mpsc::channel();
        thread::scope(|scope| {
            let cancelled = scope.spawn(|| {
                let forever = async move {
                    begun.send(()).unwrap();
                    std::future::pending::<()>().await;
                };
                let token = Some(Arc::clone(&unwanted));
                CancelToken::scope(token, || runtime.wait_while_wanted(&key, forever))
            });
            is_begun.recv().unwrap();
            unwanted.cancel();
            let error = cancelled.join().unwrap().unwrap_err();
            assert!(error.to_string().contains("cancelled"), "{error}");
        });
        let ask =
            |token| CancelToken::scope(token, || runtime.wait_while_wanted(&key, async { 5 }).ok());
        assert_eq!(ask(Some(wanted)), Some(5));
        assert_eq!(ask(None), Some(5));
        assert_eq!(ask(Some(unwanted)), None, "it is not begun");
    }
}
