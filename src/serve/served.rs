//! The state that all requests of a server share.

use std::sync::Arc;

use super::counters::HttpCounters;
use super::door::Door;
use super::found::Lookups;
use super::opened::OpenedFiles;
use super::path::RequestPath;
use super::pieces::PieceMemory;
use crate::error::{Error, ErrorLog};
use crate::view::View;

/// The shared state.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) view: Arc<View>,
    pub(super) door: Door,
    /// The name of the store, for people.
    pub(super) store: String,
    /// A random number, another one each time that the program runs. It is a part of each entity tag, because the next
    /// server may show another store, or the same versions as other bytes.
    pub(super) process: u64,
    /// The path in the view that clients see as the root.
    pub(super) root: Vec<u8>,
    pub(super) opened: OpenedFiles,
    pub(super) lookups: Lookups,
    pub(super) errors: ErrorLog,
    pub(super) memory: PieceMemory,
    pub(super) counters: Arc<HttpCounters>,
}

impl Served {
    /// Counts and logs an error that a client gets.
    pub(super) fn report(&self, error: &Error) {
        self.errors.report(error, self.view.requests());
    }

    /// The path in the view of what clients see at `path`.
    pub(super) fn names(&self, path: &RequestPath) -> Vec<u8> {
        [&self.root[..], b"/", &path.names].concat()
    }
}
