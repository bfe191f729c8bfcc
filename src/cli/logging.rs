//! The log: to a file when one is named, else to standard error when someone sees it.
//!
//! Every record is one line without control characters ([`Escaped`]): what it says of a store may
//! be the words of a stranger.

use std::fs::File;
use std::io::{self, Write};

use env_logger::{Builder, Target};
use log::LevelFilter;

use super::config::LogConfig;
use crate::escape::Escaped;

/// Who reads standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The terminal of a command in front.
    Terminal,
    /// Nobody: standard error of a daemon is `/dev/null`.
    Nobody,
}

/// Starts to log. Without a file and an audience nothing is logged, and nothing is spent on it.
/// Once a process, before its first thread.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn start(config: &LogConfig, audience: Audience) -> io::Result<()> {
    let mut builder = Builder::new();
    match (&config.file, audience) {
        (Some(path), _) => {
            let file = File::options().create(true).append(true).open(path)?;
            // One write a record, so that several daemons can share the file.
            builder.target(Target::Pipe(Box::new(file)));
        }
        (None, Audience::Terminal) => {
            builder.target(Target::Stderr);
        }
        (None, Audience::Nobody) => return Ok(()),
    }
    builder.format(|line, record| {
        writeln!(
            line,
            "[{} {:<5} {}] {}",
            line.timestamp_millis(),
            record.level(),
            record.target(),
            Escaped(record.args())
        )
    });
    builder.filter_level(config.level);
    // fuser tells every request at its debug level.
    let fuser_level = match config.level {
        LevelFilter::Trace => LevelFilter::Debug,
        level => level.min(LevelFilter::Warn),
    };
    builder.filter_module("fuser", fuser_level);
    builder.init();
    std::panic::set_hook(Box::new(|panic| log::error!("{panic}")));
    Ok(())
}
