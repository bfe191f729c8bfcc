//! Counters of what the server did, which `/metrics` shows.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::Counter;

/// Counters of a server.
#[derive(Debug, Default)]
pub(super) struct HttpCounters {
    /// Responses by the first digit of their status, from 1 on.
    pub(super) responses: [Counter; 5],
    /// The bytes of files that were sent, before TLS.
    pub(super) sent_bytes: Counter,
    /// Connections that were closed at once, because there were too many.
    pub(super) refused: Counter,
    open: AtomicU64,
}

/// A connection, which is counted as open until this is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(std::sync::Arc<HttpCounters>);

impl HttpCounters {
    pub(super) fn open(counters: &std::sync::Arc<HttpCounters>) -> OpenConnection {
        counters.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(std::sync::Arc::clone(counters))
    }

    /// The connections that are open.
    pub(super) fn n_open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Counts a response with this status.
    pub(super) fn add(&self, status: hyper::StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.responses.get(class) {
            counter.add(1);
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
