//! The command: from flags to a checked configuration to a mount that answers.
//!
//! 1. `command_line`, `args`, `options` parse the command line as typed, `-o` included, and
//!    `mount_helper` that of a helper of mount(8).
//! 2. `config` decides what it means, with absolute paths.
//! 3. A module for each task does it: `mount`, `recover`, `info`, `verify`, `export`, `serve`, `list`, `status`. They open
//!    STORE in one way (`store`).
//!
//! `mount` lets `daemon` move to the background before anything is opened. Then come `logging`, the file system itself,
//! `mountpoint` and [`Session`](crate::fuse::session::Session). Any of them may fail, and the line that says so reaches
//! the user through the pipe of `daemon`.

mod addresses;
mod allocator;
mod answer;
mod appearance;
mod args;
mod at;
mod byte;
mod closed_output;
mod command_line;
pub mod config;
mod counted;
mod daemon;
#[cfg(feature = "remote")]
mod disk_cache_args;
mod draft;
mod ending;
mod environment;
mod error;
mod export;
mod format_step;
mod generated;
mod help;
mod help_groups;
mod info;
mod json_element;
mod json_list;
mod list;
mod logging;
mod memory_limit;
mod mount;
mod mount_helper;
mod mountpoint;
mod mounts;
mod options;
mod output;
mod passthrough;
mod progress_bar;
mod recover;
#[cfg(feature = "remote")]
mod remote_args;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_args;
mod service_manager;
mod size;
mod status;
mod store;
mod suggestion;
mod syslog;
mod verb;
mod verify;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use self::args::Args;
use self::config::CliTask;
use self::error::CliError;
use self::options::Unknown;
use self::output::Output;
use crate::fuse::session::outlive_long_files;

/// Runs the command with its arguments, the program's name first, and returns its status: 0 when it has done its task,
/// 1 when it could not, 2 when it was not understood. A helper of mount(8) returns 32 and 1 for the last two.
///
/// A process must call this once, before anything else: it may fork and close descriptors.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let command_line: Vec<_> = args.collect();
    outlive_long_files();
    let is_helper = mount_helper::is_meant(&command_line);
    let Err(error) = execute(&command_line, is_helper) else {
        return ExitCode::SUCCESS;
    };
    match &error {
        // Standard output may be closed, and then the text is lost.
        CliError::Print(text) => drop(text.print()),
        _ => output::print_error(&error),
    }
    if is_helper {
        error.status_of_helper()
    } else {
        error.status()
    }
}

fn execute(command_line: &[OsString], is_helper: bool) -> Result<(), CliError> {
    let parsed = if is_helper {
        mount_helper::parse(command_line)
    } else {
        Args::parse_from(command_line, Unknown::Refused)
    };
    let task = parsed
        .and_then(|(args, options)| {
            let verifies = args.verify;
            let task = CliTask::new(args, options);
            task.map_err(|error| if verifies { error.of_search() } else { error })
        })
        .map_err(|error| {
            if is_helper {
                error
            } else {
                suggestion::add(error, command_line)
            }
        })?;
    match task {
        CliTask::Print(text) => {
            let printed = Output::standard().print_all(&text);
            printed.map_err(CliError::failed)
        }
        CliTask::Mount(config) => mount::mount(&config),
        CliTask::Check(config) => mount::check(&config),
        CliTask::List(form) => list::list(form),
        CliTask::Status { mountpoint, json } => status::status(&mountpoint, json),
        CliTask::Unmount(mountpoint, how) => mountpoint::unmount_ours(&mountpoint, how),
        CliTask::Recover(store, writing, log, how) => recover::recover(&store, &writing, &log, how),
        CliTask::Info(config) => info::print(&config),
        CliTask::Verify(config, verify) => verify::verify(&config, &verify),
        CliTask::Cat(config) => export::cat(&config),
        CliTask::Export(config, export) => export::export(&config, &export),
        #[cfg(feature = "serve")]
        CliTask::Serve(config, serve) => serve::serve(&config, &serve),
    }
}
