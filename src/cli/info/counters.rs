//! The progress of a report.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cli::progress_bar::Work;

/// Counts the nodes and bytes of the report so far, for the thread that shows its progress.
#[derive(Debug, Default)]
pub(super) struct InfoCounters {
    nodes: AtomicU64,
    /// The stored objects, which are listed with `--sizes` alone.
    objects: AtomicU64,
    bytes: AtomicU64,
}

impl InfoCounters {
    pub(super) fn add_node(&self) {
        self.nodes.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_object(&self, bytes: u64) {
        self.objects.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn n_nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// The stored objects and their bytes if their `sizes` are wanted, and otherwise the nodes.
    pub(super) fn work(&self, sizes: bool) -> Work {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Work {
            found: None,
            done: of(if sizes { &self.objects } else { &self.nodes }),
            bytes: of(&self.bytes),
            is_found: false,
        }
    }
}
