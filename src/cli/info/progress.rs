//! The progress of long work, on a terminal.

use std::time::{Duration, Instant};

use super::super::output;

/// Least time between two updates.
const PROGRESS: Duration = Duration::from_millis(500);

/// A line on standard error that each update overwrites. Nothing is shown where standard error is
/// no terminal.
pub(super) struct ProgressLine {
    last_update: Option<Instant>,
    is_enabled: bool,
}

impl ProgressLine {
    pub(super) fn new() -> ProgressLine {
        ProgressLine {
            last_update: None,
            is_enabled: output::is_terminal_on_stderr(),
        }
    }

    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.is_enabled
            && self
                .last_update
                .is_none_or(|last| last.elapsed() > PROGRESS)
        {
            output::overwrite_line(&text());
            self.last_update = Some(Instant::now());
        }
    }

    pub(super) fn clear(&mut self) {
        if self.last_update.take().is_some() {
            output::overwrite_line("");
        }
    }
}
