//! Standard output and standard error of the command.
//!
//! No other file opens the two (`clippy.toml` forbids it), and this one writes nothing but [`Text`]
//! and [`Escaped`] values, so that a terminal obeys no name out of a store.

use std::fmt::Display;
use std::io::{self, IsTerminal, StdoutLock, Write};

use crate::escape::{Escaped, Text};

/// Standard output.
#[derive(Debug)]
pub(super) struct Output(StdoutLock<'static>);

impl Output {
    #[expect(clippy::disallowed_methods, reason = "what is written here is escaped")]
    pub(super) fn standard() -> Output {
        Output(io::stdout().lock())
    }

    /// Writes `text`.
    ///
    /// # Errors
    /// When standard output takes no more.
    pub(super) fn print(&mut self, text: &Text) -> io::Result<()> {
        self.0.write_all(text.as_bytes())
    }
}

/// Standard error.
#[expect(clippy::disallowed_methods, reason = "what is written here is escaped")]
fn standard_error() -> io::Stderr {
    io::stderr()
}

/// Writes `error`, for which the command failed, to standard error in one line.
pub(super) fn print_error(error: &dyn Display) {
    let line = Text::new().line(format_args!("zarr-mount: {error}"));
    // Standard error may be closed, and then the message is lost.
    standard_error().write_all(line.as_bytes()).ok();
}

/// Whether standard error is a terminal, on which a line can be overwritten.
pub(super) fn is_terminal_on_stderr() -> bool {
    standard_error().is_terminal()
}

/// Overwrites the last line on standard error with `line`.
pub(super) fn overwrite_line(line: &str) {
    // Progress that cannot be shown is not worth an error.
    let _ = write!(standard_error().lock(), "\r\x1b[K{}", Escaped(line));
}
