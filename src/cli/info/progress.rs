//! Progress of long work, for whoever watches.

use std::time::{Duration, Instant};

use super::super::output;

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
            wanted: output::is_watched(),
        }
    }

    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.wanted && self.shown.is_none_or(|last| last.elapsed() > PROGRESS) {
            output::write_over(&text());
            self.shown = Some(Instant::now());
        }
    }

    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            output::write_over("");
        }
    }
}
