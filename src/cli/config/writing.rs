//! How a store is written to.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::apart::is_in;
use super::values::absolute;
use super::{StoreArgument, ViewKind};
use crate::cli::args::{Args, Locks};
use crate::cli::error::CliError;
use crate::cli::options::{MountOptions, WriteOption};
use crate::metadata::ZarrFormat;
use crate::mount_table::{Device, MountEntry, MountTable};
use crate::store::WriterOptions;

/// The way in which written data is stored; `None` if programs may not write.
pub(super) fn writing(
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

/// Whether a mount of this program shows the directory. A store in such a mount cannot be written, because the mount hides
/// the directory for temporary files, which a writer needs to replace objects.
pub(super) fn is_shown_by_a_mount(directory: &Path) -> bool {
    let table = MountTable::read().unwrap_or_default();
    fs::metadata(directory).is_ok_and(|found| {
        let mut mounts = table.of_device(Device::of(found.dev()));
        mounts.any(MountEntry::is_ours)
    })
}

/// How a store is changed.
pub(super) fn writer_options(
    args: &Args,
    store: &StoreArgument,
) -> Result<WriterOptions, CliError> {
    let staging = args.staging.as_deref().map(absolute).transpose()?;
    if let (Some(staging), Some(store)) = (&staging, store.path())
        && is_in(staging, store)
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
