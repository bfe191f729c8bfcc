//! Standard output and standard error of the command.
//!
//! No other file opens the two (`clippy.toml` forbids it), and this one writes nothing but [`Text`]
//! and [`Escaped`] values to a terminal, so that the terminal obeys no name out of a store.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::termios::tcgetwinsize;

use super::closed_output;
use crate::escape::{Colours, Escaped, Text};

/// The width of a terminal that does not report its own, in columns.
const USUAL_WIDTH: usize = 80;

/// The kind of place that is written to: a terminal, or a file or a pipe, whose lines have any
/// length and no colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    /// The columns of the terminal; `None` if lines may have any length.
    pub(super) width: Option<usize>,
    pub(super) colours: Colours,
}

impl Page {
    fn of(out: &(impl AsFd + IsTerminal)) -> Page {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        if !out.is_terminal() {
            return Page::UNLIMITED;
        }
        let told = tcgetwinsize(out).map_or(0, |size| usize::from(size.ws_col));
        Page {
            width: Some(if told > 0 { told } else { USUAL_WIDTH }),
            colours: colours(&variable("NO_COLOR"), &variable("TERM")),
        }
    }

    /// A file or a pipe.
    const UNLIMITED: Page = Page {
        width: None,
        colours: Colours::Hidden,
    };
}

/// Whether a terminal shows colours where these are the values of the variables `NO_COLOR`
/// (<https://no-color.org>) and `TERM`, empty where they are not set.
fn colours(no_color: &OsStr, term: &OsStr) -> Colours {
    if no_color.is_empty() && !term.is_empty() && term != "dumb" {
        Colours::Shown
    } else {
        Colours::Hidden
    }
}

/// Standard output.
#[derive(Debug)]
pub(super) struct Output(StdoutLock<'static>);

impl Output {
    #[expect(clippy::disallowed_methods, reason = "what is written here is escaped")]
    pub(super) fn standard() -> Output {
        Output(io::stdout().lock())
    }

    /// The width and the colours of standard output.
    pub(super) fn page(&self) -> Page {
        Page::of(&self.0)
    }

    /// Writes `text`.
    ///
    /// # Errors
    /// When standard output takes no more.
    pub(super) fn print(&mut self, text: &Text) -> io::Result<()> {
        check_open()?;
        self.0.write_all(text.as_bytes())
    }

    /// Writes `text`, all that the command has to say. A reader that has gone, as in `zarr-mount --man | head`, is no error.
    ///
    /// # Errors
    /// When standard output takes no more.
    pub(super) fn print_all(&mut self, text: &Text) -> io::Result<()> {
        match self.print(text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            printed => printed,
        }
    }

    /// Writes `text` in the place of the last `lines` lines on the terminal.
    ///
    /// # Errors
    /// When standard output takes no more.
    pub(super) fn print_over(&mut self, lines: usize, text: &Text) -> io::Result<()> {
        if lines > 0 {
            write!(self.0, "\x1b[{lines}A\x1b[J")?;
        }
        self.print(text)?;
        self.0.flush()
    }

    /// Writes the bytes of a file as they are; some of them may wait for [`Output::flush`]. To a terminal,
    /// it writes their lines escaped.
    ///
    /// # Errors
    /// When standard output takes no more.
    pub(super) fn pass_on(&mut self, bytes: &[u8]) -> io::Result<()> {
        check_open()?;
        if !self.0.is_terminal() {
            return self.0.write_all(bytes);
        }
        for line in String::from_utf8_lossy(bytes).split_inclusive('\n') {
            let ending = line.strip_suffix('\n');
            write!(self.0, "{}", Escaped(ending.unwrap_or(line)))?;
            if ending.is_some() {
                self.0.write_all(b"\n")?;
            }
        }
        self.0.flush()
    }

    /// Writes the bytes that wait.
    ///
    /// # Errors
    /// When standard output takes no more, or is closed.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        check_open()?;
        self.0.flush()
    }
}

/// Fails if standard output was closed when the program was started. The standard library writes to it without an error.
fn check_open() -> io::Result<()> {
    if closed_output::is_closed() {
        return Err(Errno::BADF.into());
    }
    Ok(())
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

/// Writes warnings to standard error, one line each.
pub(super) fn print_warnings(warnings: impl IntoIterator<Item = String>) {
    for warning in warnings {
        print_error(&format_args!("warning: {warning}"));
    }
}

/// The columns of standard error, if it is a terminal, on which a progress bar can be drawn.
pub(super) fn width_of_stderr() -> Option<usize> {
    Page::of(&standard_error()).width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_shown_unless_a_variable_forbids_them() {
        for (no_color, term, expected) in [
            ("", "xterm-256color", Colours::Shown),
            ("1", "xterm-256color", Colours::Hidden),
            ("", "dumb", Colours::Hidden),
            ("", "", Colours::Hidden),
        ] {
            let found = colours(no_color.as_ref(), term.as_ref());
            assert_eq!(found, expected, "{no_color} {term}");
        }
    }
}
