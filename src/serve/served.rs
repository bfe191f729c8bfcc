//! What all requests of a server share.

use std::sync::Arc;

use super::counters::HttpCounters;
use super::door::Door;
use super::opened::OpenedFiles;
use super::pieces::PieceMemory;
use crate::view::View;

/// All that requests share.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) view: Arc<View>,
    pub(super) door: Door,
    /// The name of the store, for people.
    pub(super) store: String,
    /// A part of each entity tag: another one for another store, or other options.
    pub(super) identity: u64,
    /// A random number, another one each time that the program runs.
    pub(super) process: u64,
    /// The path in the view that clients see as the root.
    pub(super) root: Vec<u8>,
    pub(super) opened: OpenedFiles,
    pub(super) memory: PieceMemory,
    pub(super) counters: Arc<HttpCounters>,
}
