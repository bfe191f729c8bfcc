//! The thread on which requests to remote stores are under way. The rest of the program is
//! synchronous: a caller hands a future over, and waits for its result.

use std::future::Future;
use std::sync::mpsc;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::store::StoreError;

/// From so many cores on, two threads serve the connections.
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
            // The sender sends nothing: this returns when it is dropped.
            let _ = runtime.block_on(ended);
            // Requests that are still under way are given up.
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
        let (send, receive) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // The receiver waits.
            let _ = send.send(future.await);
        });
        let ended = "the requests to the remote store have ended";
        receive
            .recv()
            .map_err(|_| StoreError::problem("remote-io", ended))
    }

    /// Begins `future`, whose result nobody waits for here.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(future);
    }
}

#[cfg(test)]
mod tests {
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
}
