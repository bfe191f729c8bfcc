//! The log: written to a file if one is named, else to standard error in the foreground, and to the
//! log of the system in the background. Its last lines are kept for `.zarr-mount/log`.
//!
//! Every record is one line without control characters ([`Escaped`]), because it may contain text
//! from a store that is not trusted.

use std::fs::{File, FileType};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use env_logger::{Builder, Target};
use log::{Level, LevelFilter};

use super::config::LogConfig;
use super::daemon::StartupReport;
use super::error::CliError;
use super::syslog::Syslog;
use crate::escape::Escaped;
use crate::notice::TOLD;
use crate::recent_lines::RecentLines;

/// The target of this process's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardError {
    /// To the terminal of a mount in the foreground, whose lines have a time.
    Terminal,
    /// To the terminal of a command that ends by itself, whose warnings are printed like its errors.
    Command,
    /// To `/dev/null`, as in a daemon.
    Null,
}

/// Starts the log of a command that ends by itself.
pub(super) fn start_log_at_terminal(
    log: &LogConfig,
    recent: Arc<RecentLines>,
) -> Result<(), CliError> {
    start_log(
        log,
        StandardError::Command,
        recent,
        StartupReport::to_nobody(),
    )
}

pub(super) fn start_log(
    log: &LogConfig,
    stderr: StandardError,
    recent: Arc<RecentLines>,
    report: StartupReport,
) -> Result<(), CliError> {
    start(log, stderr, recent, report).map_err(|error| {
        let path = log.file.as_deref().unwrap_or("standard error".as_ref());
        CliError::Failed(format!("log file {}: {error}", path.display()))
    })
}

/// Starts the log, whose last lines go to `recent` too. Until the mount answers, `report` prints the lines for
/// the user ([`notice`](crate::notice)). Must be called once in a process, before its first thread.
///
/// # Errors
/// When the file cannot be opened, or is no file.
fn start(
    config: &LogConfig,
    stderr: StandardError,
    recent: Arc<RecentLines>,
    report: StartupReport,
) -> io::Result<()> {
    let mut syslog = None;
    let target = match (&config.file, stderr) {
        // Each record is one write, so that several daemons can share the file.
        (Some(path), _) => Target::Pipe(Box::new(open(path)?)),
        (None, StandardError::Terminal | StandardError::Command) => Target::Stderr,
        (None, StandardError::Null) => {
            syslog = Some(Syslog::of_system()?);
            Target::Pipe(Box::new(io::sink()))
        }
    };
    let is_command = config.file.is_none() && stderr == StandardError::Command;
    let told = Mutex::new(String::new());
    let mut builder = Builder::new();
    builder.target(target);
    builder.format(move |out, record| {
        let (level, module) = (record.level(), record.target());
        let text = Escaped(record.args()).to_string();
        let line = format!("[{} {level:<5} {module}] {text}", out.timestamp_millis());
        if module == TOLD {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if *told == text {
                // An object that is read again, such as a zip file, gives the same warning again.
                return Ok(());
            }
            report.warn(&text);
            told.clone_from(&text);
        }
        recent.push(&line);
        if is_command && level == Level::Warn {
            return writeln!(out, "zarr-mount: warning: {text}");
        }
        if let Some(syslog) = &syslog {
            syslog.send(level, &text);
        }
        writeln!(out, "{line}")
    });
    builder.filter_level(config.level);
    // fuser logs every request at level debug.
    let fuser_level = match config.level {
        LevelFilter::Trace => LevelFilter::Debug,
        level => level.min(LevelFilter::Warn),
    };
    builder.filter_module("fuser", fuser_level);
    builder.init();
    std::panic::set_hook(Box::new(|panic| log::error!("{panic}")));
    Ok(())
}

/// Opens the file at `path` to append to it. A FIFO is refused, because opening it waits for a
/// reader, and every write waits when that reader stops reading.
fn open(path: &Path) -> io::Result<File> {
    // The file is checked before it is opened, too: a socket, or a FIFO without a reader, cannot be opened.
    if let Ok(found) = path.metadata() {
        check_type(found.file_type())?;
    }
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options()
        .create(true)
        .append(true)
        .custom_flags(nonblock)
        // The log names keys, including those in directories that other users may not list.
        .mode(0o600)
        .open(path)?;
    check_type(file.metadata()?.file_type())?;
    // Writes to a slow terminal wait, so that no line is lost.
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
