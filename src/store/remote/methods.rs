//! Whether a server answers requests for attributes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::path::Path;

/// How a server has answered `HEAD` so far.
#[derive(Debug, Default)]
pub(super) struct Methods {
    /// Whether it has answered with an object, so that other answers are about their object alone.
    answers_head: AtomicBool,
    /// Whether it has refused `HEAD` for an object that it sent for `GET`.
    refuses_head: AtomicBool,
    /// An object that was sent for `GET`.
    found: OnceLock<Path>,
}

impl Methods {
    pub(super) fn answers_head(&self) -> bool {
        self.answers_head.load(Ordering::Relaxed)
    }

    pub(super) fn refuses_head(&self) -> bool {
        self.refuses_head.load(Ordering::Relaxed)
    }

    /// Notes that the object at `path` was sent for `GET`.
    pub(super) fn note_found(&self, path: &Path) {
        self.found.get_or_init(|| path.clone());
    }

    /// An object that was sent for `GET`.
    pub(super) fn found(&self) -> Option<&Path> {
        self.found.get()
    }

    /// Notes that `HEAD` was answered with an object.
    pub(super) fn note_answer(&self) {
        self.answers_head.store(true, Ordering::Relaxed);
    }

    /// Notes that `HEAD` was refused for an object that was sent for `GET`. Returns `true` the first time, and `false`
    /// if the server has answered `HEAD` before.
    pub(super) fn note_refusal(&self) -> bool {
        !self.answers_head() && !self.refuses_head.swap(true, Ordering::Relaxed)
    }
}
