//! The command line as typed. The module `config` decides its meaning.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, CommandFactory, Parser, ValueHint};
use clap_complete::Shell;
use glob::Pattern;
use log::LevelFilter;

use super::help;
use super::help_groups;
use super::passthrough::Passthrough;
use super::size::size_bytes;
use super::verb::Verb;
use crate::fuse::Transport;
use crate::plain::Scope;
#[cfg(debug_assertions)]
use crate::store::testing::Injection;
use crate::store::{AllowedPrefix, Durability};
use crate::view::{AbsentChunks, Conflict, FileFormat, NarrowType, Shards, Target, ViewKind};

/// Mount a Zarr store of any version: its keys, with shards expanded, its decoded chunks, or its
/// whole arrays, as plain files
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag as typed")]
#[command(
    name = "zarr-mount",
    version,
    disable_version_flag = true,
    disable_help_flag = true,
    override_usage = help::USAGE,
    after_help = help::after_options(),
    args_override_self = true,
    max_term_width = 100,
    mut_args = help_groups::by_first()
)]
pub(crate) struct Args {
    /// A directory or zip file with a Zarr hierarchy or N5, an Icechunk repository, a set of references, or `demo:`
    /// for a small built-in one
    #[arg(value_name = "STORE", value_hint = ValueHint::AnyPath)]
    pub(crate) store: Option<OsString>,

    /// Where to mount; created when missing. With --info and --verify, the path of a node in the store; with --cat,
    /// --export and --serve, a path in the mount
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) target: Option<OsString>,

    /// What to show, one or several: keys (as stored, shards expanded), chunks (decoded), arrays
    /// (each whole, as files of the formats of --files). An option of the arrays view alone, such as
    /// --files, stands for --view arrays [default: keys]
    #[arg(long, value_name = "VIEW", value_delimiter = ',', action = ArgAction::Set, num_args = 1,
          value_parser = one_of(&[("keys", ViewKind::Keys), ("chunks", ViewKind::Chunks),
                                  ("arrays", ViewKind::Arrays)]))]
    pub(crate) view: Vec<ViewKind>,

    /// Show every node in this Zarr version, whatever its own is: documents and chunk keys
    /// are translated [default: each in its own]. With --info: say what it cannot express
    #[arg(long = "as", value_name = "VERSION",
          value_parser = one_of(&[("v2", Target::V2), ("v3", Target::V3)]))]
    pub(crate) shown_as: Option<Target>,

    /// Shards: one file per inner chunk, or one per shard
    #[arg(long, value_name = "HOW", default_value = "expand",
          value_parser = one_of(&[("expand", Shards::Expand), ("keep", Shards::Keep)]))]
    pub(crate) shards: Shards,

    /// Chunks that the store lacks, in the chunks view: files of fill value, or no files
    #[arg(long, value_name = "HOW", default_value = "fill",
          value_parser = one_of(&[("fill", AbsentChunks::Fill), ("hide", AbsentChunks::Hide)]))]
    pub(crate) missing: AbsentChunks,

    #[arg(long, value_name = "FORMAT", value_delimiter = ',', value_parser = file_format(), help = files_help(),
          hide_possible_values = true, action = ArgAction::Set, num_args = 1)]
    pub(crate) files: Vec<FileFormat>,

    /// In the arrays view: show only arrays whose path matches, or whose name does for a pattern
    /// without a slash; may be given several times
    #[arg(long, value_name = "GLOB", value_parser = pattern, action = ArgAction::Append)]
    pub(crate) array: Vec<Pattern>,

    /// In the arrays view: beside the files of an array NAME, a file NAME.json with what they do not say [default: yes]
    #[arg(long, value_name = "WHETHER", value_parser = one_of(&[("yes", true), ("no", false)]))]
    pub(crate) sidecar: Option<bool>,

    /// In the arrays view: make this dimension the record dimension of NetCDF files
    #[arg(long, value_name = "DIMENSION")]
    pub(crate) unlimited: Option<String>,

    /// In the arrays view: read strings of any length, up to this size in all, for one file of a
    /// group (nc, nc4, nc5, h5, h5ad) [default: 1MiB; for h5ad a tenth of --cache-size]
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) strings: Option<u64>,

    /// In the arrays view: show integers of 32 and 64 bits in images (tif, ome.tif, nii, mrc) as numbers of this type,
    /// for programs that open no wide integers; a value that the type does not hold cannot be read
    #[arg(long, value_name = "TYPE", value_parser = narrow_type())]
    pub(crate) integers: Option<NarrowType>,

    /// Memory for decoded chunks, shard indices and buffers [default: a quarter of the memory
    /// that this process may use, at most 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) cache_size: Option<u64>,

    /// Refuse chunks larger than this when decoded
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, default_value = "1GiB")]
    pub(crate) max_chunk: u64,

    /// Most decoded bytes that are loaded before a reader asks for them; 0: none. auto is chosen by
    /// how the array is stored and read
    #[arg(long, value_name = "SIZE", value_parser = readahead, default_value = "auto")]
    pub(crate) readahead: ReadaheadLimit,

    /// Decode so many chunks at once, 1 to 1024 [default: as many as cores that this process may
    /// use, by its CPU affinity and the CPU quota of its control group]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,

    /// Give a request up after this time (1 to 86400). Raise it where the store itself is slow to
    /// answer, as tape or a busy Lustre: each request may then wait for so long
    #[arg(long, value_name = "SECONDS", value_parser = timeout, default_value = "30")]
    pub(crate) timeout: Duration,

    /// Check again after this time whether metadata changed [default: 1; for remote stores 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) ttl: Option<Duration>,

    /// The store never changes: check nothing again
    #[arg(long)]
    pub(crate) immutable: bool,

    /// Let programs write through the keys and chunks views: documents, and chunks, those within shards
    /// too; with --shards keep, whole shards, and through the keys view whatever the store has. Chunks and
    /// documents are replaced whole when they are closed
    #[arg(long)]
    pub(crate) rw: bool,

    /// With --rw: what has to survive a loss of power: never (files may be torn), atomic (each chunk
    /// is wholly old or wholly new), close (closed files are new) [default: atomic]
    #[arg(long, value_name = "WHAT",
          value_parser = one_of(&[("never", Durability::Never), ("atomic", Durability::Atomic),
                                  ("close", Durability::Close)]))]
    pub(crate) durability: Option<Durability>,

    /// With --rw: replace each object under the lock of this program, which writes the store meanwhile
    /// without the mount
    #[arg(long, value_name = "PROGRAM", value_parser = one_of(&[("tensorstore", Locks::Tensorstore)]))]
    pub(crate) lock: Option<Locks>,

    /// With --rw: keep journals, in which chunks wait for their shards, in this directory, which must exist
    /// outside STORE; give it again to the next mount, and to --recover
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) staging: Option<PathBuf>,

    /// With --rw: store decoded chunks of nothing but the fill value, too, which are erased otherwise
    #[arg(long)]
    pub(crate) write_empty_chunks: bool,

    /// With --rw: the outcome for a part of a decoded chunk that was read and written while another program changed the
    /// chunk in the store: refuse (close fails with ESTALE), merge (the other parts are taken from the new chunk)
    /// [default: refuse]
    #[arg(long, value_name = "HOW",
          value_parser = one_of(&[("refuse", Conflict::Refuse), ("merge", Conflict::Merge)]))]
    pub(crate) conflict: Option<Conflict>,

    /// With --rw: let codecs change the values of decoded chunks (quantize, bitround, ..); otherwise
    /// only values that they keep are saved
    #[arg(long)]
    pub(crate) lossy: bool,

    /// With --rw --view keys: decode each chunk before it is saved, and refuse what its array cannot read
    #[arg(long)]
    pub(crate) check: bool,

    /// Follow symbolic links that lead out of the store
    #[arg(long)]
    pub(crate) follow_symlinks: bool,

    /// Read what references and virtual chunks name below this path or URL, and not only what lies beside their own
    /// set; may be given several times
    #[arg(long, value_name = "PREFIX", action = ArgAction::Append, value_parser = AllowedPrefix::parse)]
    pub(crate) allow_refs: Vec<AllowedPrefix>,

    /// Let the kernel read plain files of the store itself: auto is with --immutable only; always
    /// suits stores whose writers replace files and never write into them
    #[arg(long, value_name = "WHEN", default_value = "auto",
          value_parser = one_of(&[("auto", Passthrough::Auto), ("always", Passthrough::Always),
                                  ("never", Passthrough::Never)]))]
    pub(crate) passthrough: Passthrough,

    /// How requests come from the kernel: through the device /dev/fuse, or through rings, which Linux 6.14 has if its
    /// administrator allows them; auto takes rings for local stores if it can, and the device otherwise
    #[arg(long, value_name = "HOW", default_value = "device",
          value_parser = one_of(&[("auto", Transport::Auto), ("device", Transport::Device),
                                  ("ring", Transport::Ring)]))]
    pub(crate) transport: Transport,

    /// Show every file as this user's
    #[arg(long, value_name = "UID", value_parser = user_id)]
    pub(crate) uid: Option<u32>,

    /// Show every file as this group's
    #[arg(long, value_name = "GID", value_parser = group_id)]
    pub(crate) gid: Option<u32>,

    /// Permission bits to take away from every file, in octal
    #[arg(long, value_name = "OCTAL", value_parser = permission_bits)]
    pub(crate) umask: Option<u32>,

    /// Mount options, as mount(8) and fstab pass them; the long options above by their names too
    #[arg(short = 'o', value_name = "OPTS", action = ArgAction::Append)]
    pub(crate) options: Vec<OsString>,

    /// Stay in front, with the log on standard error
    #[arg(short, long)]
    pub(crate) foreground: bool,

    /// How much to log [default: warn]
    #[arg(long, value_name = "LEVEL", value_parser = log_level())]
    pub(crate) log_level: Option<LevelFilter>,

    /// Append the log to this file; without it, a mount in the background logs to the system's log
    /// (/dev/log). The last lines are in MOUNTPOINT/.zarr-mount/log
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) log_file: Option<PathBuf>,

    /// Log more: -v info, -vv debug, -vvv trace
    #[arg(short, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Make the store slow, faulty or talkative, for tests; may be given several times
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "SPEC", hide = true, action = ArgAction::Append)]
    pub(crate) inject: Vec<Injection>,

    /// Unmount what zarr-mount mounted at MOUNTPOINT, and wait until its daemon has ended
    #[arg(long, value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) unmount: Option<PathBuf>,

    /// List the mounts of this user (for root: of all users): mountpoint, daemon, age and store
    #[arg(long)]
    pub(crate) list: bool,

    /// Show what the mount at MOUNTPOINT is doing: rates, memory, requests, errors; again and again on a terminal
    #[arg(long, value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) status: Option<PathBuf>,

    /// Save in STORE what an earlier mount with --rw left in journals, and remove its temporary files, without
    /// mounting
    #[arg(long)]
    pub(crate) recover: bool,

    /// Examine every document, every chunk and every checksum of STORE, of the nodes at and below PATH, or of the
    /// arrays that --array selects, without mounting. The exit status is 0 if all is sound, 1 for damage, 2 if
    /// something could not be examined
    #[arg(long)]
    pub(crate) verify: bool,

    /// Read every document and every chunk of STORE, or of the nodes at and below PATH, or of the arrays that --array
    /// selects, into the disk cache. Chunks that are in the cache already are not requested again
    #[cfg(feature = "remote")]
    #[arg(long, requires = "disk_cache")]
    pub(crate) warm: bool,

    /// Write the file PATH of a mount of STORE to standard output, without mounting. The options that say what a mount
    /// shows apply
    #[arg(long)]
    pub(crate) cat: bool,

    /// Write the files of a mount of STORE, or those below PATH, to this directory, without mounting. The options that
    /// say what a mount shows apply
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) export: Option<PathBuf>,

    /// With --export: go on with an export that was interrupted. Files of DIR that have the right length and time stay
    #[arg(long)]
    pub(crate) resume: bool,

    /// With --info, --verify, --warm, --export, --recover and --unmount: show no progress, and with --export and
    /// --recover no summary either. With --list: print only the mountpoints. With --serve: print nothing
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Describe the hierarchy of STORE as a tree, or one array in detail, at PATH, without mounting
    #[arg(long)]
    pub(crate) info: bool,

    /// With --info: add the stored sizes, their ratio to the decoded ones, and the number of absent chunks, which
    /// lists every chunk
    #[arg(long)]
    pub(crate) sizes: bool,

    /// With --info STORE PATH: where the element at these indices is stored, and its value; -1 is
    /// the last index
    #[arg(long, value_name = "I,J,K", conflicts_with = "sizes",
          allow_hyphen_values = true, value_parser = indices, action = ArgAction::Append)]
    pub(crate) at: Vec<Indices>,

    /// With --info STORE KEY: which chunk has this byte of the object at KEY, counted from 0
    #[arg(long, value_name = "BYTE", conflicts_with_all = ["at", "sizes", "files"])]
    pub(crate) offset: Option<u64>,

    /// With --info: print JSON for programs, with everything that is known of each node. With --verify: an object for
    /// each finding, and a summary. With --list and --status: what is known of mounts
    #[arg(long)]
    pub(crate) json: bool,

    /// The options of remote stores.
    #[cfg(feature = "remote")]
    #[command(flatten)]
    pub(crate) remote: super::remote_args::RemoteArgs,

    /// The options of a server.
    #[cfg(feature = "serve")]
    #[command(flatten)]
    pub(crate) serving: super::serve_args::ServeArgs,

    /// Print the man page, for `man -l -`
    #[arg(long, exclusive = true)]
    pub(crate) man: bool,

    /// Print a script that has the shell complete options and their values
    #[arg(long, value_name = "SHELL", exclusive = true,
          value_parser = one_of(&[("bash", Shell::Bash), ("zsh", Shell::Zsh), ("fish", Shell::Fish)]))]
    pub(crate) completions: Option<Shell>,

    /// Print the version; with -v also the features, the libraries of the codecs and the FUSE protocol
    #[arg(short = 'V', long)]
    pub(crate) version: bool,

    /// Print help
    #[arg(short, long, action = ArgAction::Help)]
    help: Option<bool>,
}

impl Args {
    /// Whether a store is read into the disk cache.
    #[cfg(feature = "remote")]
    pub(crate) fn warms(&self) -> bool {
        self.warm
    }

    /// Whether a store is read into the disk cache.
    #[cfg(not(feature = "remote"))]
    #[expect(clippy::unused_self, reason = "this build has no such option")]
    pub(crate) fn warms(&self) -> bool {
        false
    }

    /// Whether a store is served over HTTP.
    #[cfg(feature = "serve")]
    pub(crate) fn serves(&self) -> bool {
        self.serving.serve.is_some()
    }

    /// Whether a store is served over HTTP.
    #[cfg(not(feature = "serve"))]
    #[expect(clippy::unused_self, reason = "this build has no such option")]
    pub(crate) fn serves(&self) -> bool {
        false
    }
}

/// The program whose locks the mount takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    Tensorstore,
}

/// Parses one of a few words into the value that it stands for.
fn one_of<T: Copy + Send + Sync + 'static>(
    known: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let words = known.iter().map(|(word, _)| *word);
    PossibleValuesParser::new(words).try_map(|typed| {
        let found = known.iter().find(|(word, _)| *word == typed);
        found.map(|(_, value)| *value).ok_or("unknown")
    })
}

fn log_level() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(["error", "warn", "info", "debug", "trace"])
        .map(|name| name.parse().unwrap_or(LevelFilter::Warn))
}

/// The help of `--files`, with the names of all formats.
fn files_help() -> String {
    let (groups, of_arrays): (Vec<_>, Vec<_>) =
        (FileFormat::ALL.into_iter()).partition(|format| !format.has(Scope::Array));
    let (headers, others): (Vec<_>, Vec<_>) =
        (of_arrays.into_iter()).partition(|format| format.points_to_raw());
    let [others, headers, groups] = [others, headers, groups].map(|formats| {
        let names = formats.into_iter().map(FileFormat::name);
        names.collect::<Vec<_>>().join(", ")
    });
    format!(
        "In the arrays view: the formats of files, one or several: {others}, headers beside raw ({headers}), \
         whole groups ({groups}) [default: npy]. With --info: say which of them fit each array, and why others do not"
    )
}

fn file_format() -> impl TypedValueParser<Value = FileFormat> {
    let names = FileFormat::ALL
        .iter()
        .map(|format| PossibleValue::new(format.name()).aliases(format.aliases()));
    PossibleValuesParser::new(names)
        .try_map(|name| FileFormat::of_name(&name).ok_or("not a format"))
}

fn narrow_type() -> impl TypedValueParser<Value = NarrowType> {
    PossibleValuesParser::new(NarrowType::ALL.map(NarrowType::name)).try_map(|name| {
        let mut all = NarrowType::ALL.into_iter();
        all.find(|known| known.name() == name).ok_or("not a type")
    })
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.to_string())
}

/// The value of `--readahead`: most bytes to load ahead of a reader; `None` for `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadaheadLimit(pub(crate) Option<u64>);

fn readahead(text: &str) -> Result<ReadaheadLimit, String> {
    if text == "auto" {
        return Ok(ReadaheadLimit(None));
    }
    let bytes = size_bytes(text).map_err(|problem| format!("{problem}; or auto"))?;
    Ok(ReadaheadLimit(Some(bytes)))
}

/// The value of `--at`: the indices of an element. Negative ones count from the end of the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Indices(pub(crate) Vec<i128>);

/// `3,20,40` or `-1,0,0`; empty for an array without dimensions.
fn indices(text: &str) -> Result<Indices, String> {
    let text = text.trim_matches(|c: char| c == '[' || c == ']' || c == ' ');
    if text.is_empty() {
        return Ok(Indices(Vec::new()));
    }
    text.split(',')
        .map(|index| index.trim().parse())
        .collect::<Result<_, _>>()
        .map(Indices)
        .map_err(|_| "expected one index for each dimension, such as 3,20,40".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok();
    let time = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
    time.ok_or_else(|| "expected seconds, such as 0.5 or 60".to_owned())
}

/// The time that a request may take: whole seconds, as messages name them.
fn timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|n| (1..=86_400).contains(n));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "expected whole seconds, 1 to 86400".to_owned())
}

fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=1024).contains(n));
    number.ok_or_else(|| "expected a number of threads, 1 to 1024".to_owned())
}

fn permission_bits(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(bits) if bits <= 0o777 => Ok(bits),
        _ => Err("expected up to three octal digits, such as 022".to_owned()),
    }
}

fn user_id(text: &str) -> Result<u32, String> {
    let number = text.parse();
    number.map_err(|_| "expected the number of a user, as `id -u NAME` prints it".to_owned())
}

fn group_id(text: &str) -> Result<u32, String> {
    let number = text.parse();
    number
        .map_err(|_| "expected the number of a group, as `getent group NAME` prints it".to_owned())
}

/// Long options of a mount that cannot be given by `-o`: mount(8) passes `rw` for every mount, so that `-o writable`
/// stands for `--rw`; the other is for tests.
const NO_MOUNT_OPTIONS: [&str; 2] = ["rw", "inject"];

/// Whether `-o` takes the long option of `argument`.
fn is_mount_option(argument: &Arg) -> bool {
    let is_left_out = |long| NO_MOUNT_OPTIONS.contains(&long);
    Verb::Mount.takes(argument.get_id().as_str()) && !argument.get_long().is_none_or(is_left_out)
}

/// The long option that `-o name` or `-o name=value` stands for, if it is one of ours.
pub(super) fn by_mount_option(name: &OsStr) -> Option<String> {
    let name = name.to_str()?.replace('_', "-");
    let command = Args::command();
    let mut known = command.get_arguments();
    let is_known = known.any(|known| known.get_long() == Some(&*name) && is_mount_option(known));
    is_known.then_some(name)
}

/// The spelling of a long option in `-o`, if `-o` takes it: its name, and `=` where it has a value.
pub(super) fn mount_option_of(argument: &Arg) -> Option<String> {
    let long = argument.get_long()?;
    let equals = if argument.get_action().takes_values() {
        "="
    } else {
        ""
    };
    is_mount_option(argument).then(|| format!("{long}{equals}"))
}

#[cfg(test)]
mod tests;
