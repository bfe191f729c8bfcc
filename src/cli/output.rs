//! Standard output and standard error of the command.
//!
//! No other file opens the two (`clippy.toml` forbids it), and this one writes nothing but
//! [`Text`] and [`Escaped`] values, so that no name out of a store is obeyed by a terminal.

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

/// Says on standard error, in one line, why the command failed.
pub(super) fn complain(error: &dyn Display) {
    let line = Text::new().line(format_args!("zarr-mount: {error}"));
    // Standard error may be closed, and then there is nobody to tell.
    standard_error().write_all(line.as_bytes()).ok();
}

/// Whether someone sees what is written over on standard error.
pub(super) fn is_watched() -> bool {
    standard_error().is_terminal()
}

/// Writes `line` over the last line on standard error.
pub(super) fn write_over(line: &str) {
    // Progress that cannot be shown is not worth an error.
    let _ = write!(standard_error().lock(), "\r\x1b[K{}", Escaped(line));
}
