//! Whether a server answers requests for attributes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::path::Path;

/// How a server has answered `HEAD` so far.
#[derive(Debug, Default)]
pub(super) struct Methods {
    /// Whether it answered with an object, so that other answers are about their object alone.
    answers_head: AtomicBool,
    /// Whether it refused the method where it answered `GET`.
    refuses_head: AtomicBool,
    /// An object that `GET` was answered with.
    found: OnceLock<Path>,
}

impl Methods {
    pub(super) fn answers_head(&self) -> bool {
        self.answers_head.load(Ordering::Relaxed)
    }

    pub(super) fn refuses_head(&self) -> bool {
        self.refuses_head.load(Ordering::Relaxed)
    }

    /// Notes that `GET` was answered with the object at `path`.
    pub(super) fn note_found(&self, path: &Path) {
        self.found.get_or_init(|| path.clone());
    }

    /// An object that `GET` was answered with.
    pub(super) fn found(&self) -> Option<&Path> {
        self.found.get()
    }

    /// Notes an answer to `HEAD` with an object.
    pub(super) fn note_answer(&self) {
        self.answers_head.store(true, Ordering::Relaxed);
    }

    /// Notes that `HEAD` was refused for an object that `GET` was answered for. `true` the first time, and
    /// `false` where the server has answered `HEAD` before.
    pub(super) fn note_refusal(&self) -> bool {
        !self.answers_head() && !self.refuses_head.swap(true, Ordering::Relaxed)
    }
}
