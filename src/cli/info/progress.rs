//! Progress of long work, for whoever watches.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_millis(500);

/// A line on standard error that is written over, when someone is there to see it.
pub(super) struct Progress {
    shown: Option<Instant>,
    wanted: bool,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            shown: None,
            wanted: io::stderr().is_terminal(),
        }
    }

    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.wanted && self.shown.is_none_or(|last| last.elapsed() > PROGRESS) {
            let mut stderr = io::stderr().lock();
            // Progress that cannot be shown is not worth an error.
            let _ = write!(stderr, "\r\x1b[K{}", text());
            self.shown = Some(Instant::now());
        }
    }

    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
