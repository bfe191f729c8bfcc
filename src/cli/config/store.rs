//! STORE, and how it is opened.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(feature = "remote")]
use super::values::absolute;
use super::values::cache_budget_bytes;
use crate::cli::args::Args;
use crate::cli::error::CliError;
use crate::metadata::ZarrFormat;
#[cfg(feature = "remote")]
use crate::store::RemoteOptions;
use crate::store::{
    Location, OpenOptions, Sharing, Symlinks, path_of_file_url, spelled_with_steps, split_step_off,
};

/// The STORE argument, independent of the working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreArgument {
    /// A path in the file system: absolute, free of links, present.
    Path(PathBuf),
    /// A name that is not a path ([`Location::is_name`]), as the user typed it.
    Name(OsString),
}

/// How long metadata of a local store is trusted, unless `--ttl` says it.
const LOCAL_TTL: Duration = Duration::from_secs(1);

/// How long metadata of a remote store is trusted. There, each check is a request.
const REMOTE_TTL: Duration = Duration::from_secs(60);

/// Whether the store counts as one in which nothing changes. Offline, no change can be seen.
#[cfg(feature = "remote")]
pub(super) fn is_immutable(args: &Args) -> bool {
    args.immutable || args.remote.is_offline()
}

#[cfg(not(feature = "remote"))]
pub(super) fn is_immutable(args: &Args) -> bool {
    args.immutable
}

/// How STORE is opened, but for what remote stores need.
pub(super) fn open_options(
    args: &Args,
    read_as: Option<ZarrFormat>,
    others_look: bool,
) -> OpenOptions {
    OpenOptions {
        symlinks: if args.follow_symlinks {
            Symlinks::Follow
        } else {
            Symlinks::Inside
        },
        sharing: if others_look {
            Sharing::Others
        } else {
            Sharing::Nobody
        },
        allowed_references: args.allow_refs.clone(),
        by_keys: read_as.is_some(),
        memory_bytes: Some(cache_budget_bytes(args)),
        #[cfg(feature = "remote")]
        remote: RemoteOptions::default(),
    }
}

/// How remote stores are reached.
#[cfg(feature = "remote")]
pub(super) fn remote_options(
    args: &Args,
    store: &StoreArgument,
) -> Result<RemoteOptions, CliError> {
    let remote = args.remote.clone();
    Ok(RemoteOptions {
        timeout: args.timeout,
        budget_bytes: cache_budget_bytes(args),
        most_whole_bytes: args.max_chunk,
        time_to_live: (!args.immutable && !args.info).then(|| ttl(args, store)),
        ..remote.options(args.immutable, |path: &PathBuf| absolute(path))?
    })
}

impl StoreArgument {
    /// The path of a store in the file system.
    pub fn path(&self) -> Option<&Path> {
        match self {
            StoreArgument::Path(path) => Some(path),
            StoreArgument::Name(_) => None,
        }
    }

    /// The path in the file system that the store is read from: of a directory, or of a file with a store in it.
    pub fn local_path(&self) -> Option<&Path> {
        let mut name = match self {
            StoreArgument::Path(path) => return Some(path),
            StoreArgument::Name(name) => name.as_os_str(),
        };
        let mut is_path = false;
        while let Some((store, _)) = split_step_off(name) {
            (name, is_path) = (store, true);
        }
        (is_path && !Location::is_name(name)).then(|| Path::new(name))
    }

    /// The name as typed, or the absolute path.
    pub fn as_os_str(&self) -> &OsStr {
        match self {
            StoreArgument::Path(path) => path.as_os_str(),
            StoreArgument::Name(name) => name,
        }
    }

    /// Whether this is a URL of a web server. Some web servers cannot list names.
    pub(in crate::cli) fn is_web(&self) -> bool {
        let name = self.as_os_str().as_bytes();
        self.path().is_none() && (name.starts_with(b"http://") || name.starts_with(b"https://"))
    }

    /// Whether this is a URL of a server.
    pub(in crate::cli) fn is_remote(&self) -> bool {
        let name = self.as_os_str().as_bytes();
        self.path().is_none() && name.windows(3).any(|part| part == b"://")
    }

    pub(super) fn resolve(typed: &OsStr) -> Result<Self, CliError> {
        let typed = &*spelled_with_steps(typed).map_err(CliError::failed)?;
        if let Some((store, step)) = split_step_off(typed) {
            let mut name = StoreArgument::resolve(store)?.as_os_str().to_owned();
            name.push(step);
            return Ok(StoreArgument::Name(name));
        }
        let path = path_of_file_url(typed).map_err(CliError::failed)?;
        let typed = path.as_ref().map_or(typed, |path| path.as_os_str());
        if Location::is_name(typed) {
            return Ok(StoreArgument::Name(typed.to_owned()));
        }
        match std::fs::canonicalize(typed) {
            Ok(path) => Ok(StoreArgument::Path(path)),
            Err(error) => Err(CliError::Failed(format!(
                "STORE {}: {error}",
                Path::new(typed).display()
            ))),
        }
    }
}

/// How long metadata is trusted.
pub(super) fn ttl(args: &Args, store: &StoreArgument) -> Duration {
    let default = if store.is_remote() {
        REMOTE_TTL
    } else {
        LOCAL_TTL
    };
    args.ttl.unwrap_or(default)
}
