//! The configuration that a command line means: checked, with absolute paths and defaults filled
//! in.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use log::LevelFilter;

use super::addresses;
use super::args::{Args, Indices, Locks};
use super::error::CliError;
use super::format_step;
use super::generated;
use super::list::ListForm;
use super::memory_limit::default_cache_bytes;
use super::options::{MountOptions, WriteOption};
pub use super::passthrough::Passthrough;
use super::version;
use crate::escape::Text;
use crate::fresh::Freshness;
use crate::fuse::Transport;
use crate::fuse::session::{MountAccess, SessionOptions};
use crate::metadata::ZarrFormat;
use crate::mount_table::{Device, MountEntry, MountTable};
#[cfg(feature = "serve")]
use crate::serve::Origin;
#[cfg(feature = "remote")]
use crate::store::RemoteOptions;
#[cfg(debug_assertions)]
use crate::store::testing::Injection;
use crate::store::{
    Location, OpenOptions, Sharing, Symlinks, WriterOptions, path_of_file_url, spelled_with_steps,
    split_step_off,
};
use crate::threads::cores;
use crate::verify::Purpose;
pub use crate::view::{
    AbsentChunks, ArrayOptions, FileFormat, Shards, Target, ViewKind, ViewOptions, WriteOptions,
};

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

/// Whether a command tells how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    /// It does.
    Usual,
    /// It tells errors alone (`--quiet`).
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
    /// The files or objects that are read at once.
    pub n_at_once: usize,
    /// The log, which goes to standard error unless a file is named.
    pub log: LogConfig,
    /// Test layers that wrap the store, from `--inject`.
    #[cfg(debug_assertions)]
    pub injections: Vec<Injection>,
}

/// What `--verify` or `--warm` does, and how it reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyConfig {
    /// What chunks are decoded for.
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
    /// Whether an earlier export was interrupted.
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
    /// The way in which written data is stored; `None` where programs may not write.
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
    /// The one format of which documents are looked at, if it is named.
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
    /// The memory budget that a mount would have: arrays that need more are pointed out.
    pub cache_budget_bytes: u64,
    /// The time that a request to the store may take.
    pub timeout: Duration,
    /// The log, which goes to standard error unless a file is named.
    pub log: LogConfig,
    /// Test layers that wrap the store, from `--inject`.
    #[cfg(debug_assertions)]
    pub injections: Vec<Injection>,
}

/// The STORE argument, independent of the working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreArgument {
    /// A path in the file system: absolute, free of links, present.
    Path(PathBuf),
    /// A name that is not a path ([`Location::is_name`]), as the user typed it.
    Name(OsString),
}

/// The content and the target of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The least level that is logged.
    pub level: LevelFilter,
    /// The file to append to, absolute.
    pub file: Option<PathBuf>,
}

/// How long metadata is trusted, unless `--ttl` says it.
const LOCAL_TTL: Duration = Duration::from_secs(1);

/// The same for remote stores, where each check is a request.
const REMOTE_TTL: Duration = Duration::from_secs(60);

/// The files or objects of a remote store that are read at once: each waits for the server most of the time.
const REMOTE_AT_ONCE: usize = 32;

/// The same for `--warm`, which wants the whole link.
const WARM_AT_ONCE: usize = 128;

impl CliTask {
    /// Checks the arguments, and decides which task they mean.
    ///
    /// # Errors
    /// When an argument is missing or wrong, or STORE does not exist.
    pub(crate) fn new(mut args: Args, options: MountOptions) -> Result<Self, CliError> {
        if let Some(text) = about_itself(&args)? {
            return Ok(CliTask::Print(text));
        }
        if let Some(mountpoint) = &args.unmount {
            return Ok(CliTask::Unmount(absolute(mountpoint)?, talk(&args)));
        }
        if args.list {
            return Ok(CliTask::List(list_form(&args)));
        }
        if let Some(mountpoint) = &args.status {
            return Ok(CliTask::Status {
                mountpoint: absolute(mountpoint)?,
                json: args.json,
            });
        }
        let Some(store) = &args.store else {
            return Err(store_missing(&args));
        };
        (args.view, args.immutable) = (views(&args), is_immutable(&args));
        let log = log_config(&args)?;
        let others_look = options.access == MountAccess::Everyone;
        let (store, read_as) = format_step::split(store);
        let store = StoreArgument::resolve(&store)?;
        if args.recover {
            let writing = writer_options(&args, &store)?;
            return Ok(CliTask::Recover(store, writing, log, talk(&args)));
        }
        let open = open_options(&args, read_as, others_look);
        #[cfg(feature = "remote")]
        let open = OpenOptions {
            remote: remote_options(&args, &store)?,
            ..open
        };
        if args.info {
            let arrays = array_options(&args, &store, others_look)?;
            let cache_budget_bytes = cache_budget_bytes(&args);
            let talk = talk(&args);
            return Ok(CliTask::Info(Box::new(InfoConfig {
                arrays: (!args.files.is_empty()).then_some(arrays),
                store,
                read_as,
                open,
                path: args.target,
                at: element(args.at)?,
                offset: args.offset,
                shown_as: args.shown_as,
                sizes: args.sizes,
                json: args.json,
                talk,
                cache_budget_bytes,
                timeout: args.timeout,
                log,
                #[cfg(debug_assertions)]
                injections: args.inject,
            })));
        }
        if args.verify || args.warms() || args.cat || args.serves() || args.export.is_some() {
            return shown_task(args, store, open, read_as);
        }
        let Some(target) = &args.target else {
            return Err(CliError::Usage(format!(
                "MOUNTPOINT missing: where is {} to be mounted",
                Path::new(store.as_os_str()).display()
            )));
        };
        let arrays = array_options(&args, &store, others_look)?;
        let view = view_options(&args, &store, read_as, arrays);
        let writing = writing(&args, &options, &store, read_as)?;
        let task = if options.is_fake {
            CliTask::Check
        } else {
            CliTask::Mount
        };
        Ok(task(Box::new(MountConfig {
            open,
            mountpoint: absolute(Path::new(target))?,
            nonempty: options.nonempty,
            foreground: args.foreground,
            hint: options.hint.filter(|_| !args.rw),
            xattr: options.xattr,
            passthrough: args.passthrough,
            transport: args.transport,
            session: SessionOptions {
                is_writable: writing.is_some(),
                ..session_options(&store, options, view.decode_threads)
            },
            writing,
            view,
            store,
            log,
            #[cfg(debug_assertions)]
            injections: args.inject,
        })))
    }
}

/// The error that STORE is missing, with the other argument that the command needs.
fn store_missing(args: &Args) -> CliError {
    let has_path =
        args.info || args.verify || args.warms() || args.serves() || args.export.is_some();
    let and_other = match (args.cat, has_path) {
        (true, _) => " and PATH",
        (_, true) => "",
        _ => " and MOUNTPOINT",
    };
    CliError::Usage(format!("STORE{and_other} missing"))
}

fn list_form(args: &Args) -> ListForm {
    match (args.json, args.quiet) {
        (true, _) => ListForm::Json,
        (_, true) => ListForm::Mountpoints,
        _ => ListForm::Table,
    }
}

fn talk(args: &Args) -> Talk {
    if args.quiet { Talk::Quiet } else { Talk::Usual }
}

/// Whether nothing in the store changes: what is not asked for does not.
#[cfg(feature = "remote")]
fn is_immutable(args: &Args) -> bool {
    args.immutable || args.remote.is_offline()
}

#[cfg(not(feature = "remote"))]
fn is_immutable(args: &Args) -> bool {
    args.immutable
}

/// How STORE is opened, but for what remote stores need.
fn open_options(args: &Args, read_as: Option<ZarrFormat>, others_look: bool) -> OpenOptions {
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
fn remote_options(args: &Args, store: &StoreArgument) -> Result<RemoteOptions, CliError> {
    let remote = args.remote.clone();
    Ok(RemoteOptions {
        timeout: args.timeout,
        budget_bytes: cache_budget_bytes(args),
        most_whole_bytes: args.max_chunk,
        time_to_live: (!args.immutable && !args.info).then(|| ttl(args, store)),
        ..remote.options(args.immutable, |path: &PathBuf| absolute(path))?
    })
}

/// The task of `--verify`, `--cat`, `--export` or `--serve`.
fn shown_task(
    args: Args,
    store: StoreArgument,
    open: OpenOptions,
    read_as: Option<ZarrFormat>,
) -> Result<CliTask, CliError> {
    if args.warms() && !store.is_remote() {
        let problem = "--warm: only stores on servers are kept in the disk cache";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let log = log_config(&args)?;
    let talk = talk(&args);
    let arrays = array_options(&args, &store, false)?;
    let view = view_options(&args, &store, read_as, arrays);
    if args.cat && args.target.is_none() {
        let problem = "PATH missing: --cat prints one file of what a mount would show";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let directory = args.export.as_deref().map(absolute).transpose()?;
    #[cfg(feature = "serve")]
    let serve = serve_config(&args)?;
    let shown = Box::new(ShownConfig {
        n_at_once: if args.warms() {
            WARM_AT_ONCE
        } else if store.is_remote() {
            REMOTE_AT_ONCE
        } else {
            view.decode_threads.saturating_mul(2)
        },
        store,
        open,
        view,
        path: args.target.unwrap_or_default(),
        log,
        #[cfg(debug_assertions)]
        injections: args.inject,
    });
    #[cfg(feature = "serve")]
    if let Some(serve) = serve {
        return Ok(CliTask::Serve(shown, serve));
    }
    Ok(match directory {
        Some(directory) => {
            let resume = args.resume;
            CliTask::Export(
                shown,
                ExportConfig {
                    directory,
                    resume,
                    talk,
                },
            )
        }
        None if args.cat => CliTask::Cat(shown),
        None => {
            let purpose = if args.verify {
                Purpose::Verify
            } else {
                Purpose::Warm
            };
            let json = args.json;
            CliTask::Verify(
                shown,
                VerifyConfig {
                    purpose,
                    json,
                    talk,
                },
            )
        }
    })
}

/// How a store is served, if it is.
#[cfg(feature = "serve")]
fn serve_config(args: &Args) -> Result<Option<ServeConfig>, CliError> {
    let serving = args.serving.clone();
    let Some(address) = serving.serve else {
        return Ok(None);
    };
    Ok(Some(ServeConfig {
        address,
        token_file: serving.token_file.as_deref().map(absolute).transpose()?,
        hosts: serving.host,
        origins: serving.cors,
        tls: match (&serving.tls_cert, &serving.tls_key) {
            (Some(certificate), Some(key)) => Some((absolute(certificate)?, absolute(key)?)),
            _ => None,
        },
        is_insecure: serving.insecure,
        talk: talk(args),
    }))
}

impl StoreArgument {
    /// The path of a store in the file system.
    pub fn path(&self) -> Option<&Path> {
        match self {
            StoreArgument::Path(path) => Some(path),
            StoreArgument::Name(_) => None,
        }
    }

    /// As typed, or the absolute path.
    pub fn as_os_str(&self) -> &OsStr {
        match self {
            StoreArgument::Path(path) => path.as_os_str(),
            StoreArgument::Name(name) => name,
        }
    }

    /// Whether this is a URL of a web server, not all of which can list names.
    pub(super) fn is_web(&self) -> bool {
        let name = self.as_os_str().as_bytes();
        self.path().is_none() && (name.starts_with(b"http://") || name.starts_with(b"https://"))
    }

    /// Whether this is a URL of a server.
    fn is_remote(&self) -> bool {
        let name = self.as_os_str().as_bytes();
        self.path().is_none() && name.windows(3).any(|part| part == b"://")
    }

    fn resolve(typed: &OsStr) -> Result<Self, CliError> {
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

fn view_options(
    args: &Args,
    store: &StoreArgument,
    read_as: Option<ZarrFormat>,
    arrays: ArrayOptions,
) -> ViewOptions {
    let mut views = args.view.clone();
    let mut seen = HashSet::new();
    views.retain(|view| seen.insert(*view));
    ViewOptions {
        views,
        read_as,
        shown_as: args.shown_as,
        shards: args.shards,
        missing: args.missing,
        arrays,
        uid: args.uid,
        gid: args.gid,
        umask: args.umask,
        freshness: if args.immutable {
            Freshness::Immutable
        } else {
            Freshness::Checked(ttl(args, store))
        },
        cache_budget_bytes: cache_budget_bytes(args),
        max_chunk_bytes: args.max_chunk,
        readahead: args.readahead.0,
        decode_threads: args.threads.unwrap_or_else(cores),
        timeout: args.timeout,
        logs_omissions: true,
        writes: WriteOptions {
            empty_chunks: args.write_empty_chunks,
            is_lossy: args.lossy,
            checks: args.check,
            conflict: args.conflict.unwrap_or_default(),
        },
    }
}

/// The answer to a question about the program itself, if the command asks only that.
fn about_itself(args: &Args) -> Result<Option<Text>, CliError> {
    if args.version {
        return Ok(Some(version::version(args.verbose > 0)));
    }
    if args.man {
        return generated::man_page().map(Some);
    }
    Ok(args.completions.map(generated::completions))
}

/// The indices of the element that `--at` asks for.
fn element(mut given: Vec<Indices>) -> Result<Option<Vec<i128>>, CliError> {
    if given.len() > 1 {
        let problem =
            "--at is given more than once; it takes all indices of one element, as --at 3,20,40";
        return Err(CliError::Usage(problem.to_owned()));
    }
    Ok(given.pop().map(|indices| indices.0))
}

/// The way in which written data is stored; `None` where programs may not write.
fn writing(
    args: &Args,
    options: &MountOptions,
    store: &StoreArgument,
    read_as: Option<ZarrFormat>,
) -> Result<Option<WriterOptions>, CliError> {
    let is_asked = args.rw || options.writing.is_some();
    let of_writing = [
        ("--durability", args.durability.is_some()),
        ("--lock", args.lock.is_some()),
        ("--staging", args.staging.is_some()),
        ("--write-empty-chunks", args.write_empty_chunks),
        ("--conflict", args.conflict.is_some()),
        ("--lossy", args.lossy),
        ("--check", args.check),
    ];
    if let Some((name, _)) = of_writing.iter().find(|(_, given)| *given && !is_asked) {
        return Err(CliError::Usage(format!("{name} is for --rw")));
    }
    if !is_asked || options.writing == Some(WriteOption::ReadOnly) {
        return Ok(None);
    }
    let refused = |problem: &str| Err(CliError::Usage(format!("--rw: {problem}")));
    if args.immutable {
        return refused("a store that is written to is not --immutable");
    }
    if read_as.is_some() {
        return refused("a store whose format is named behind a | is only read");
    }
    if !store.path().is_some_and(Path::is_dir) {
        return refused("only a directory can be written to");
    }
    if store.path().is_some_and(is_shown_by_a_mount) {
        return refused("STORE is in a mount of zarr-mount; give the store that this mount shows");
    }
    if args.view == [ViewKind::Arrays] {
        return refused(
            "the arrays view is only read; add a view that is written: --view arrays,chunks",
        );
    }
    let view_of = |name: &str| match name {
        "--check" => ViewKind::Keys,
        _ => ViewKind::Chunks,
    };
    let mut given = of_writing.iter().skip(3).filter(|(_, given)| *given);
    if let Some((name, _)) = given.find(|(name, _)| !args.view.contains(&view_of(name))) {
        let view = view_of(name).name();
        let problem = format!("{name} is for --rw with --view {view}");
        return Err(CliError::Usage(problem));
    }
    writer_options(args, store).map(Some)
}

/// Whether a mount of this program shows the directory. Such a mount hides the directory that a writer keeps its
/// temporary files in, so that nothing can be replaced.
fn is_shown_by_a_mount(directory: &Path) -> bool {
    let table = MountTable::read().unwrap_or_default();
    fs::metadata(directory).is_ok_and(|found| {
        let mut mounts = table.of_device(Device::of(found.dev()));
        mounts.any(MountEntry::is_ours)
    })
}

/// How a store is changed.
fn writer_options(args: &Args, store: &StoreArgument) -> Result<WriterOptions, CliError> {
    let staging = args.staging.as_deref().map(absolute).transpose()?;
    let (real, store) = (staging.as_deref(), store.path());
    let real = real.and_then(|path| fs::canonicalize(path).ok());
    let store = store.and_then(|path| fs::canonicalize(path).ok());
    if real
        .zip(store)
        .is_some_and(|(real, store)| real.starts_with(store))
    {
        let problem =
            "--staging: this directory is in STORE; leave the option out to keep journals in STORE";
        return Err(CliError::Usage(problem.to_owned()));
    }
    Ok(WriterOptions {
        durability: args.durability.unwrap_or_default(),
        staging,
        locks_keys: args.lock == Some(Locks::Tensorstore),
    })
}

/// How long metadata is trusted.
fn ttl(args: &Args, store: &StoreArgument) -> Duration {
    let default = if store.is_remote() {
        REMOTE_TTL
    } else {
        LOCAL_TTL
    };
    args.ttl.unwrap_or(default)
}

/// The memory budget of a mount.
fn cache_budget_bytes(args: &Args) -> u64 {
    addresses::cache_bytes(args.cache_size.unwrap_or_else(default_cache_bytes))
}

/// The first option that only the arrays view has, if one was given.
fn option_of_arrays(args: &Args) -> Option<&'static str> {
    let given = [
        ("--files", !args.files.is_empty()),
        ("--array", !args.array.is_empty()),
        ("--sidecar", args.sidecar.is_some()),
        ("--unlimited", args.unlimited.is_some()),
        ("--strings", args.strings.is_some()),
        ("--integers", args.integers.is_some()),
    ];
    let found = given.into_iter().find(|(_, is_given)| *is_given);
    found.map(|(option, _)| option)
}

/// The views that were requested.
fn views(args: &Args) -> Vec<ViewKind> {
    match option_of_arrays(args) {
        _ if !args.view.is_empty() => args.view.clone(),
        Some(_) => vec![ViewKind::Arrays],
        None => vec![ViewKind::Keys],
    }
}

/// The options of the arrays view.
fn array_options(
    args: &Args,
    store: &StoreArgument,
    others_look: bool,
) -> Result<ArrayOptions, CliError> {
    if let Some(option) = option_of_arrays(args)
        && !args.view.contains(&ViewKind::Arrays)
        && !args.info
    {
        let problem = format!("{option} is for the arrays view: add arrays to --view");
        return Err(CliError::Usage(problem));
    }
    let asked = |format: FileFormat| args.files.contains(&format);
    let netcdf = [FileFormat::Nc, FileFormat::Nc4, FileFormat::Nc5];
    let netcdf: Vec<_> = netcdf.into_iter().filter(|&format| asked(format)).collect();
    if netcdf.len() > 1 {
        let names: Vec<_> = netcdf.iter().map(|format| format.name()).collect();
        let names = names.join(",");
        let problem = format!("--files {names}: all are called NAME.nc; ask for one of them");
        return Err(CliError::Usage(problem));
    }
    let points_to_raw = args.files.iter().any(|format| format.points_to_raw());
    let mut files: Vec<FileFormat> = FileFormat::ALL
        .into_iter()
        .filter(|&format| asked(format) || format == FileFormat::Raw && points_to_raw)
        .collect();
    if files.is_empty() {
        files = ArrayOptions::default().files;
    }
    if args.integers.is_some() && !files.iter().any(|format| format.takes_narrowed()) {
        let problem = "--integers is for images: add tif, ome.tif, nii or mrc to --files";
        return Err(CliError::Usage(problem.to_owned()));
    }
    if args.unlimited.is_some() && !files.iter().any(|format| format.has_records()) {
        let problem = "--unlimited is for NetCDF files: add nc or nc5 to --files";
        return Err(CliError::Usage(problem.to_owned()));
    }
    Ok(ArrayOptions {
        files,
        only: args.array.clone(),
        sidecars: args.sidecar.unwrap_or(true),
        unlimited: args.unlimited.clone(),
        strings: args.strings,
        integers: args.integers,
        root_name: root_name(store),
        others_look,
    })
}

/// The name of files that are made of the root: that of the store, without `.zarr`.
fn root_name(store: &StoreArgument) -> String {
    let name = store.as_os_str().to_string_lossy();
    let name = name.trim_end_matches('/').rsplit('/').next();
    let name = name.unwrap_or_default();
    let name = match name.split_once("|zip:") {
        Some((zip, "")) => zip,
        Some((_, path)) => path,
        None => name,
    };
    let name = name.trim_end_matches(':');
    let name = [".zip", ".ozx"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    let name = name.strip_suffix(".zarr").unwrap_or(name);
    if name.is_empty() {
        return ArrayOptions::default().root_name;
    }
    name.to_owned()
}

fn session_options(
    store: &StoreArgument,
    options: MountOptions,
    decode_threads: usize,
) -> SessionOptions {
    SessionOptions {
        is_writable: false,
        fsname: options
            .fsname
            .unwrap_or_else(|| store.as_os_str().to_owned()),
        access: options.access,
        execution: options.execution,
        // These outnumber the decoders: a thread that waits for a disk must not block requests that
        // need none.
        n_threads: addresses::reader_threads(decode_threads.max(4) * 2),
    }
}

fn log_config(args: &Args) -> Result<LogConfig, CliError> {
    let level = args.log_level.unwrap_or(match args.verbose {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        2 => LevelFilter::Debug,
        _ => LevelFilter::Trace,
    });
    let file = args.log_file.as_deref().map(absolute).transpose()?;
    Ok(LogConfig { level, file })
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path)
        .map_err(|error| CliError::Failed(format!("{:?}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::super::options::Unknown;
    use super::*;

    fn task(words: &[&str]) -> Result<CliTask, CliError> {
        let words = ["zarr-mount"].iter().chain(words).map(OsString::from);
        let words: Vec<_> = words.collect();
        let (args, options) = Args::parse_from(&words, Unknown::Refused)?;
        CliTask::new(args, options)
    }

    fn mount(words: &[&str]) -> MountConfig {
        match task(words).unwrap() {
            CliTask::Mount(config) => *config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mount_with_its_defaults() {
        let config = mount(&["demo:", "m"]);
        assert_eq!(config.store, StoreArgument::Name("demo:".into()));
        assert!(config.mountpoint.is_absolute());
        assert_eq!(config.session.fsname, "demo:");
        assert!(config.session.n_threads >= 1);
        assert_eq!(config.view.decode_threads, cores());
        assert_eq!(config.view.views, [ViewKind::Keys]);
        assert!(config.view.cache_budget_bytes > 0);
        assert_eq!(config.log.level, LevelFilter::Warn);
    }

    #[test]
    fn paths_are_resolved_now() {
        let config = mount(&["src", "m", "-o", "fsname=x", "--log-file", "l"]);
        let source = std::env::current_dir().unwrap().join("src");
        assert_eq!(config.store.path(), Some(&*source.canonicalize().unwrap()));
        assert_eq!(config.session.fsname, "x");
        assert!(config.log.file.unwrap().is_absolute());
    }

    #[test]
    fn a_view_named_twice_is_one() {
        let config = mount(&["demo:", "m", "--view", "chunks,keys,chunks", "-vv"]);
        assert_eq!(config.view.views, [ViewKind::Chunks, ViewKind::Keys]);
        assert_eq!(config.log.level, LevelFilter::Debug);
    }

    #[test]
    fn threads_that_answer_are_more_than_those_that_decode() {
        let most = |n| addresses::reader_threads(n);
        for (words, decode, answer) in [("1", 1, 8), ("4", 4, 8), ("64", 64, 128)] {
            let config = mount(&["demo:", "m", "--threads", words]);
            assert_eq!(config.view.decode_threads, decode);
            assert_eq!(config.session.n_threads, most(answer));
        }
    }

    #[test]
    fn missing_arguments_are_named() {
        let cases: [(&[&str], &str); 4] = [
            (&[], "STORE and MOUNTPOINT missing"),
            (&["demo:"], "MOUNTPOINT missing"),
            (&["--info"], "STORE missing"),
            (
                &["/no/such/store", "m"],
                "STORE /no/such/store: No such file",
            ),
        ];
        for (words, part) in cases {
            let message = task(words).unwrap_err().to_string();
            assert!(message.starts_with(part), "{message}");
        }
    }

    #[test]
    fn the_other_tasks() {
        assert!(
            matches!(task(&["--unmount", "m"]), Ok(CliTask::Unmount(path, Talk::Usual)) if path.is_absolute())
        );
        let info = task(&["--info", "https://host/a.zarr", "b", "--json"]);
        let Ok(CliTask::Info(info)) = info else {
            panic!("{info:?}");
        };
        assert_eq!(
            info.store,
            StoreArgument::Name("https://host/a.zarr".into())
        );
        assert_eq!(info.path.unwrap(), "b");
        assert!(info.json && !info.sizes);
    }

    #[test]
    fn the_format_of_a_store_is_named() {
        for (typed, read_as) in [
            ("demo:", None),
            ("demo:|zarr3:", Some(ZarrFormat::V3)),
            ("demo:|n5:", Some(ZarrFormat::N5)),
        ] {
            let config = mount(&[typed, "m"]);
            assert_eq!(config.store, StoreArgument::Name("demo:".into()));
            assert_eq!(config.view.read_as, read_as);
        }
        let refused = task(&["src|zarr2:", "m", "--rw"]).unwrap_err().to_string();
        assert!(refused.contains("is only read"), "{refused}");
    }

    #[test]
    fn one_element_is_asked_for() {
        let at = |words: &[&str]| match task(&[&["--info", "demo:", "a"], words].concat()) {
            Ok(CliTask::Info(info)) => Ok(info.at),
            other => Err(format!("{other:?}")),
        };
        assert_eq!(at(&[]), Ok(None));
        assert_eq!(at(&["--at", "1,-2"]), Ok(Some(vec![1, -2])));
        let refused = at(&["--at", "1", "--at", "2"]).unwrap_err();
        assert!(
            refused.contains("--at is given more than once"),
            "{refused}"
        );
    }
}
