//! The progress of long work, on a terminal.

use std::time::{Duration, Instant};

use super::super::output;
use super::fit::shortened;

/// Least time between two updates.
const PROGRESS: Duration = Duration::from_millis(500);

/// A line on standard error that each update overwrites. Nothing is shown where standard error is
/// no terminal.
pub(super) struct ProgressLine {
    last_update: Instant,
    /// The columns of the terminal.
    width: Option<usize>,
    is_shown: bool,
}

impl ProgressLine {
    pub(super) fn new() -> ProgressLine {
        ProgressLine {
            // Work that ends soon shows none.
            last_update: Instant::now(),
            width: output::width_of_stderr(),
            is_shown: false,
        }
    }

    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        if let Some(width) = self.width
            && self.last_update.elapsed() > PROGRESS
        {
            // A longer line would leave its beginning behind.
            output::overwrite_line(&shortened(&text(), width.saturating_sub(1)));
            self.last_update = Instant::now();
            self.is_shown = true;
        }
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            output::overwrite_line("");
        }
    }
}
