//! The options of the disk cache.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use super::error::CliError;
use super::size::size_bytes;
use crate::store::{DEFAULT_DISK_CACHE_BYTES, DiskCacheOptions};

/// The disk cache, as typed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Remote stores")]
pub(super) struct DiskCacheArgs {
    /// Keep what is read from servers in this directory, which any number of mounts of one user share
    #[arg(long, value_name = "DIR")]
    disk_cache: Option<PathBuf>,

    /// The most bytes of the disk cache, which also leaves 5 % of its disk free [default: 10GiB]
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, requires = "disk_cache")]
    disk_cache_size: Option<u64>,

    /// Send no request: read what is in the disk cache, however old it is
    #[arg(long, requires = "disk_cache")]
    offline: bool,
}

impl DiskCacheArgs {
    /// Whether no request is to be sent.
    pub(super) fn is_offline(&self) -> bool {
        self.offline
    }

    /// The checked options, for a store that never changes if `is_immutable`; `None` without `--disk-cache`.
    pub(super) fn options(
        &self,
        is_immutable: bool,
        absolute: impl Fn(&PathBuf) -> Result<PathBuf, CliError>,
    ) -> Result<Option<DiskCacheOptions>, CliError> {
        let Some(directory) = &self.disk_cache else {
            return Ok(None);
        };
        Ok(Some(DiskCacheOptions {
            directory: absolute(directory)?,
            most_bytes: self.disk_cache_size.unwrap_or(DEFAULT_DISK_CACHE_BYTES),
            is_offline: self.offline,
            is_immutable,
            begun: Instant::now(),
        }))
    }
}
