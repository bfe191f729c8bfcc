//! The progress of long work, on standard error: a bar on a terminal, and now and then a line elsewhere.

use std::fmt::{self, Display};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{BinaryBytes, HumanDuration, ProgressDrawTarget, ProgressStyle};

use super::config::Talk;
use super::output;

/// The time between two updates of a bar.
const BAR: Duration = Duration::from_millis(250);
/// The time between two lines.
const LINES: Duration = Duration::from_secs(10);

/// The amount of work that is done and to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// The number of items that were found so far; `None` if they are not counted.
    pub(super) found: Option<u64>,
    /// The number of items that are done.
    pub(super) done: u64,
    /// Their bytes, or 0 if they are not counted.
    pub(super) bytes: u64,
    /// Whether all items were found.
    pub(super) is_found: bool,
}

/// Shows how far some work is, until it is dropped.
pub(super) struct ProgressBar {
    bar: indicatif::ProgressBar,
    /// The thread that shows the progress ends when this is dropped.
    _running: Sender<()>,
}

impl ProgressBar {
    /// Starts a thread that shows the progress that `work` returns, unless `talk` forbids it. `things` is the name of the
    /// items that are counted.
    pub(super) fn new(
        talk: Talk,
        things: &'static str,
        work: impl Fn() -> Work + Send + 'static,
    ) -> ProgressBar {
        let (running, ended) = channel();
        if talk == Talk::Quiet {
            return ProgressBar {
                bar: indicatif::ProgressBar::hidden(),
                _running: running,
            };
        }
        let bar = indicatif::ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let shown = bar.clone();
        let is_terminal = output::width_of_stderr().is_some();
        let update = move || {
            let begun = Instant::now();
            let every = if is_terminal { BAR } else { LINES };
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let progress = Progress {
                    work: work(),
                    things,
                    elapsed: begun.elapsed(),
                };
                if is_terminal {
                    progress.draw(&shown);
                } else {
                    output::print_error(&progress);
                }
            }
        };
        thread::spawn(update);
        ProgressBar {
            bar,
            _running: running,
        }
    }

    /// Calls `print` while the bar is hidden.
    pub(super) fn around<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    pub(super) fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// The text about the progress: the items that are done, the bytes, the rate, and, once all items were found, the time that
/// is left.
struct Progress {
    work: Work,
    things: &'static str,
    elapsed: Duration,
}

impl Progress {
    fn draw(&self, bar: &indicatif::ProgressBar) {
        let template = match self.work.found {
            Some(_) => "{bar:30} {wide_msg}",
            None => "{spinner} {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if let Some(found) = self.work.found {
            bar.set_length(found);
        }
        bar.set_position(self.work.done);
        bar.set_message(self.to_string());
        bar.tick();
    }
}

impl Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Work {
            found,
            done,
            bytes,
            is_found,
        } = self.work;
        let milliseconds = u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX);
        let milliseconds = milliseconds.max(1);
        let shown = BinaryBytes(bytes);
        let Some(found) = found else {
            write!(f, "{done} {}", self.things)?;
            // These bytes were not read, so that they have no rate.
            return if bytes > 0 {
                write!(f, ", {shown}")
            } else {
                Ok(())
            };
        };
        write!(f, "{done} of {found} {}", self.things)?;
        if bytes > 0 {
            let rate = BinaryBytes(bytes.saturating_mul(1000) / milliseconds);
            write!(f, ", {shown}, {rate}/s")?;
        }
        if is_found && done > 0 {
            let left = found.saturating_sub(done);
            let left = Duration::from_millis(milliseconds.saturating_mul(left) / done);
            write!(f, ", {} left", HumanDuration(left))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_cannot_be_counted_beforehand_has_no_rate_and_no_end() {
        let progress = |bytes| Progress {
            work: Work {
                found: None,
                done: 10,
                bytes,
                is_found: false,
            },
            things: "stored objects",
            elapsed: Duration::from_secs(5),
        };
        assert_eq!(progress(0).to_string(), "10 stored objects");
        let told = progress(5 << 20).to_string();
        assert_eq!(told, "10 stored objects, 5.00 MiB");
    }

    #[test]
    fn the_time_is_shown_once_everything_was_found() {
        let progress = |is_found| Progress {
            work: Work {
                found: Some(40),
                done: 10,
                bytes: 5 << 20,
                is_found,
            },
            things: "files",
            elapsed: Duration::from_secs(5),
        };
        let told = progress(false).to_string();
        assert_eq!(told, "10 of 40 files, 5.00 MiB, 1.00 MiB/s");
        let told = progress(true).to_string();
        assert_eq!(
            told,
            "10 of 40 files, 5.00 MiB, 1.00 MiB/s, 15 seconds left"
        );
    }
}
