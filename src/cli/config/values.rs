//! Values that the parts of a configuration have in common.

use std::path::{Path, PathBuf};

use log::LevelFilter;

use super::{LogConfig, Talk};
use crate::cli::addresses;
use crate::cli::args::Args;
use crate::cli::error::CliError;
use crate::cli::memory_limit::default_cache_bytes;

pub(super) fn talk(args: &Args) -> Talk {
    if args.quiet { Talk::Quiet } else { Talk::Usual }
}

/// The memory budget of a mount.
pub(super) fn cache_budget_bytes(args: &Args) -> u64 {
    addresses::cache_bytes(args.cache_size.unwrap_or_else(default_cache_bytes))
}

pub(super) fn log_config(args: &Args) -> Result<LogConfig, CliError> {
    let level = args.log_level.unwrap_or(match args.verbose {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        2 => LevelFilter::Debug,
        _ => LevelFilter::Trace,
    });
    let file = args.log_file.as_deref().map(absolute).transpose()?;
    Ok(LogConfig { level, file })
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path)
        .map_err(|error| CliError::Failed(format!("{:?}: {error}", path.display())))
}
