//! The options of the views.

use std::collections::HashSet;

use super::store::{StoreArgument, ttl};
use super::values::cache_budget_bytes;
use super::{ArrayOptions, FileFormat, ViewKind, ViewOptions, WriteOptions};
use crate::cli::args::Args;
use crate::cli::error::CliError;
use crate::fresh::Freshness;
use crate::metadata::ZarrFormat;
use crate::store::split_step_off;
use crate::threads::cores;

pub(super) fn view_options(
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

/// The first option that only the arrays view has, if one was given.
pub(super) fn option_of_arrays(args: &Args) -> Option<&'static str> {
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
pub(super) fn views(args: &Args) -> Vec<ViewKind> {
    match option_of_arrays(args) {
        _ if !args.view.is_empty() => args.view.clone(),
        Some(_) => vec![ViewKind::Arrays],
        None => vec![ViewKind::Keys],
    }
}

/// The options of the arrays view.
pub(super) fn array_options(
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

/// The name of files that are made of the root: that of the store, or of the node or the file in it that the end of the
/// argument names, without `.zip`, `.ozx` and `.zarr`.
pub(super) fn root_name(store: &StoreArgument) -> String {
    let mut named = store.as_os_str();
    let mut path = None;
    while path.is_none()
        && let Some((outer, step)) = split_step_off(named)
    {
        let step = step.to_string_lossy();
        let (_, place) = step.split_once(':').unwrap_or_default();
        let place = match place.strip_prefix('@') {
            // A snapshot of an Icechunk repository.
            Some(snapshot) => snapshot.split_once('/').unwrap_or_default().1,
            None => place,
        };
        named = outer;
        path = (!place.trim_matches('/').is_empty()).then(|| place.to_owned());
    }
    let name = path.unwrap_or_else(|| named.to_string_lossy().into_owned());
    let name = name.trim_end_matches('/').rsplit('/').next();
    let name = name.unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_the_name_of_the_store_or_of_the_place_in_it() {
        for (typed, name) in [
            ("s3://bucket/a/b.zarr/", "b"),
            ("s3://bucket/a.zarr.zip", "a"),
            ("demo:", "demo"),
            ("a.zip|zip:", "a"),
            ("a.zip|zip:b/c.zarr", "c"),
            ("a.zip|zip:b.zip|zip:", "b"),
            ("a.zip|zip:b.zip|zip:c/d", "d"),
            ("/data/repo|icechunk:", "repo"),
            ("/data/repo|icechunk:@branch.dev", "repo"),
            ("/data/repo|icechunk:@branch.dev%2Fx/g/t", "t"),
            ("/data/repo|icechunk:g/u", "u"),
            ("/x/a.zip|zip:|icechunk:", "a"),
            ("/x/a.zip|zip:b/repo|icechunk:@tag.v1", "repo"),
            ("/", "array"),
        ] {
            let store = StoreArgument::Name(typed.into());
            assert_eq!(root_name(&store), name, "{typed}");
        }
    }
}
