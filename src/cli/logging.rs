//! The log: to a file when one is named, else to standard error when someone sees it.
//!
//! Every record is one line without control characters ([`Escaped`]): what it says of a store may
//! be the words of a stranger.

use std::fs::{File, FileType};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

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
/// When the file cannot be opened, or is no file.
pub(crate) fn start(config: &LogConfig, audience: Audience) -> io::Result<()> {
    let mut builder = Builder::new();
    match (&config.file, audience) {
        (Some(path), _) => {
            let file = open(path)?;
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

/// Opens the file at `path` to append to it. A FIFO is refused, because opening it waits for a reader,
/// and so does every line when that one stops reading.
fn open(path: &Path) -> io::Result<File> {
    // A socket or a FIFO that nobody reads cannot even be opened without waiting.
    if let Ok(found) = path.metadata() {
        check_type(found.file_type())?;
    }
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options()
        .create(true)
        .append(true)
        .custom_flags(nonblock)
        // It names keys, also those in directories that other users may not list.
        .mode(0o600)
        .open(path)?;
    check_type(file.metadata()?.file_type())?;
    // Lines for a terminal that is slow are to wait, not to be lost.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok(file)
}

fn check_type(found: FileType) -> io::Result<()> {
    let what = if found.is_fifo() {
        "a FIFO"
    } else if found.is_socket() {
        "a socket"
    } else if found.is_block_device() {
        "a block device"
    } else {
        return Ok(());
    };
    Err(io::Error::other(format!(
        "it is {what}, which could hold up the mount; name a regular file, or use -f, whose log goes to \
         standard error"
    )))
}
