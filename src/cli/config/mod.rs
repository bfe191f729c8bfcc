//! The configuration that a command line means: checked, with absolute paths and defaults filled in.
//!
//! `task` decides which task is meant. `store`, `view`, `writing` and `shown` make the parts of its configuration, and
//! `values` makes what these parts have in common. `apart` compares directories.

mod apart;
mod shown;
mod store;
mod task;
mod values;
mod view;
mod writing;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use log::LevelFilter;

use super::list::ListForm;
pub use super::passthrough::Passthrough;
use crate::escape::Text;
use crate::fuse::Transport;
use crate::fuse::session::SessionOptions;
use crate::metadata::ZarrFormat;
#[cfg(feature = "serve")]
use crate::serve::Origin;
#[cfg(debug_assertions)]
use crate::store::testing::Injection;
use crate::store::{OpenOptions, WriterOptions};
use crate::verify::Purpose;
pub use crate::view::{
    AbsentChunks, ArrayOptions, FileFormat, Shards, Target, ViewKind, ViewOptions, WriteOptions,
};
pub use store::StoreArgument;

/// The task of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CliTask {
    /// `zarr-mount STORE MOUNTPOINT`
    Mount(Box<MountConfig>),
    /// `mount -f`: check all that a mount needs, and mount nothing.
    Check(Box<MountConfig>),
    /// `zarr-mount --unmount MOUNTPOINT`
    Unmount(PathBuf, Talk),
    /// `zarr-mount --list`
    List(ListForm),
    /// `zarr-mount --status MOUNTPOINT`
    Status {
        /// Absolute.
        mountpoint: PathBuf,
        /// Whether to print JSON.
        json: bool,
    },
    /// `zarr-mount --recover STORE`
    Recover(StoreArgument, WriterOptions, LogConfig, Talk),
    /// A text that the program has about itself: `--man`, `--completions SHELL`, `--version`
    Print(Text),
    /// `zarr-mount --info STORE [PATH]`
    Info(Box<InfoConfig>),
    /// `zarr-mount --verify STORE [PATH]`, or `--warm STORE [PATH]`
    Verify(Box<ShownConfig>, VerifyConfig),
    /// `zarr-mount --cat STORE PATH`
    Cat(Box<ShownConfig>),
    /// `zarr-mount --export DIR STORE [PATH]`
    Export(Box<ShownConfig>, ExportConfig),
    /// `zarr-mount --serve ADDRESS STORE [PATH]`
    #[cfg(feature = "serve")]
    Serve(Box<ShownConfig>, ServeConfig),
}

/// Whether a command shows its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    /// It does.
    Usual,
    /// It prints only errors (`--quiet`).
    Quiet,
}

/// A store that is read without a mount, and a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownConfig {
    /// The store.
    pub store: StoreArgument,
    /// How to open it.
    pub open: OpenOptions,
    /// The options of its views.
    pub view: ViewOptions,
    /// The path in the mount, as typed, or for `--verify` that of a node; empty for the root.
    pub path: OsString,
    /// The number of files or objects that are read at the same time.
    pub n_at_once: usize,
    /// The log, which goes to standard error unless a file is named.
    pub log: LogConfig,
    /// Test layers that wrap the store, from `--inject`.
    #[cfg(debug_assertions)]
    pub injections: Vec<Injection>,
}

/// The work of `--verify` or `--warm`, and the form of its report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyConfig {
    /// Whether the store is verified, or read into the disk cache.
    pub purpose: Purpose,
    /// Whether to print JSON.
    pub json: bool,
    /// Whether to show progress.
    pub talk: Talk,
}

/// How `--export` writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportConfig {
    /// The directory that gets the files, absolute.
    pub directory: PathBuf,
    /// Whether to go on with an earlier export that was interrupted.
    pub resume: bool,
    /// Whether to show progress and a summary.
    pub talk: Talk,
}

/// How `--serve` serves.
#[cfg(feature = "serve")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// The address and the port, as typed.
    pub address: String,
    /// The file with the token, absolute; `None` for a random one.
    pub token_file: Option<PathBuf>,
    /// Further names of the server.
    pub hosts: Vec<String>,
    /// The origins of other sites whose pages may read what is served.
    pub origins: Vec<Origin>,
    /// The files of the certificate and of its key, absolute; `None` for connections that are not encrypted.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether other machines may be served without encryption.
    pub is_insecure: bool,
    /// Whether to print the address and the token.
    pub talk: Talk,
}

/// The configuration of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountConfig {
    /// The store that is mounted.
    pub store: StoreArgument,
    /// How to open it.
    pub open: OpenOptions,
    /// The options of its views.
    pub view: ViewOptions,
    /// The way in which written data is stored; `None` if programs may not write.
    pub writing: Option<WriterOptions>,
    /// A warning for the user about options that have another effect than they seem to have.
    pub hint: Option<&'static str>,
    /// Whether extended attributes are answered.
    pub xattr: bool,
    /// Whether the kernel reads plain files of the store by itself.
    pub passthrough: Passthrough,
    /// How requests come from the kernel.
    pub transport: Transport,
    /// The mountpoint; absolute, not examined yet.
    pub mountpoint: PathBuf,
    /// Whether a directory with entries may be mounted over.
    pub nonempty: bool,
    /// How to mount.
    pub session: SessionOptions,
    /// Whether to stay in the foreground.
    pub foreground: bool,
    /// The content and the target of the log.
    pub log: LogConfig,
    /// Test layers that wrap the store, from `--inject`.
    #[cfg(debug_assertions)]
    pub injections: Vec<Injection>,
}

/// The configuration of `--info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfoConfig {
    /// The store to describe.
    pub store: StoreArgument,
    /// The only format whose documents are looked at; `None` for all formats.
    pub read_as: Option<ZarrFormat>,
    /// How to open it.
    pub open: OpenOptions,
    /// The node to describe, as typed; `None` is the root.
    pub path: Option<OsString>,
    /// The indices of an element to locate, instead of describing nodes.
    pub at: Option<Vec<i128>>,
    /// The byte of the object at `path` whose chunk is looked for, instead of describing nodes.
    pub offset: Option<u64>,
    /// The Zarr version that arrays are checked against.
    pub shown_as: Option<Target>,
    /// The file formats that arrays are checked against.
    pub arrays: Option<ArrayOptions>,
    /// Whether to add up stored sizes.
    pub sizes: bool,
    /// Whether to print JSON.
    pub json: bool,
    /// Whether to show progress.
    pub talk: Talk,
    /// The memory budget, which a mount would have, too: arrays that need more are pointed out.
    pub cache_budget_bytes: u64,
    /// The most bytes of a decoded chunk.
    pub max_chunk_bytes: u64,
    /// The time that a request to the store may take.
    pub timeout: Duration,
    /// The log, which goes to standard error unless a file is named.
    pub log: LogConfig,
    /// Test layers that wrap the store, from `--inject`.
    #[cfg(debug_assertions)]
    pub injections: Vec<Injection>,
}

/// The content and the target of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The least level that is logged.
    pub level: LevelFilter,
    /// The file to append to, absolute.
    pub file: Option<PathBuf>,
}
