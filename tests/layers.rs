//! The layers of the crate, as the table in `src/lib.rs` draws them: a module imports from the rows above its own,
//! never from those below.
//!
//! Every path `crate::…` below `src` counts, in imports and in code, tests included; comments do
//! not, because a link in a document may point anywhere. For the crates that are used, and for
//! circles of imports, tests do not count.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

#[path = "layers/source.rs"]
mod source;

use source::{RustPath, SourceFile, crate_paths};

/// The rows, top of the table first: a row may import from those before it. Modules of one row
/// do not know each other.
const ROWS: [&[&str]; 22] = [
    &["counters", "escape", "mount_table", "notice"],
    &["store"],
    &["sync"],
    &["fresh"],
    &["budget", "buffers", "recent_lines", "threads"],
    &["grid", "dtype"],
    &["codec"],
    &["metadata"],
    &["error"],
    &["plain"],
    &["hierarchy"],
    &["load"],
    &["shards"],
    &["translate"],
    &["read"],
    &["files"],
    &["view"],
    &["verify"],
    &["export"],
    &["serve"],
    &["fuse"],
    &["cli"],
];

/// `FormatError` knows neither keys nor stores, so every row may use it. `error::Error` is for the rows below `error`.
const PURE_ERROR: [&str; 2] = ["error", "FormatError"];

/// The crates that this one depends on, and the modules that may know each. Documents
/// begin in `metadata`, FUSE is in `fuse` alone, `store` decodes zip files and encodes a demo, and
/// `codec` checks chunks that are JSON.
const OUTSIDE: [(&str, &str); 65] = [
    ("base64", "store codec metadata plain serve"),
    ("blosc_src", "codec"),
    ("bytes", "store serve"),
    ("bzip2", "codec"),
    ("clap", "cli"),
    ("clap_complete", "cli"),
    ("clap_mangen", "cli"),
    ("crc32c", "store codec"),
    ("crc32fast", "codec plain"),
    ("crs_definitions", "plain"),
    ("env_logger", "cli"),
    ("flate2", "store codec serve"),
    ("fuser", "fuse"),
    ("io_uring", "fuse"),
    ("polyfuse_kernel", "fuse"),
    ("zerocopy", "fuse"),
    ("glob", "view cli"),
    ("half", "codec"),
    ("indicatif", "cli"),
    ("libc", "buffers error store load verify fuse cli"),
    ("libdeflate_sys", "codec"),
    ("liblzma", "codec"),
    (
        "log",
        "store budget threads error hierarchy load shards files view serve fuse cli",
    ),
    (
        "lru",
        "store fresh error hierarchy load shards files view serve fuse",
    ),
    ("lz4_sys", "codec"),
    ("parking_lot", "store"),
    ("parquet", "store"),
    ("pco", "codec"),
    ("planus", "store"),
    ("rangemap", "files"),
    ("rawzip", "store"),
    ("rustix", "mount_table store threads export serve fuse cli"),
    ("saphyr_parser", "store"),
    ("sd_notify", "cli"),
    ("serde", "store metadata"),
    (
        "serde_json",
        "store codec metadata plain view verify serve cli",
    ),
    ("signal_hook", "fuse cli"),
    ("simd_adler32", "codec plain"),
    ("smallvec", "store budget grid codec plain load read view"),
    ("snap", "store"),
    ("snappy_src", "codec"),
    ("tempfile", "export"),
    (
        "thiserror",
        "store budget buffers error export serve fuse cli",
    ),
    ("twox_hash", "store codec export"),
    ("unicode_normalization", "plain"),
    ("unicode_width", "cli"),
    ("zstd_safe", "store codec"),
    ("shuttle", "sync"),
    ("async_trait", "store"),
    ("chrono", "store"),
    ("futures_util", "store"),
    ("http", "store"),
    ("object_store", "store"),
    ("percent_encoding", "store serve"),
    ("quick_xml", "store serve"),
    ("reqwest", "store"),
    ("rustls", "store serve"),
    ("tokio", "store serve"),
    ("http_body_util", "serve"),
    ("httpdate", "serve"),
    ("hyper", "serve"),
    ("hyper_util", "serve"),
    ("subtle", "serve"),
    ("tokio_rustls", "serve"),
    // `fuse` has a module of this name, and `serve` names a part of `rustls`.
    ("ring", "store fuse serve"),
];

#[test]
fn modules_import_from_the_rows_above_only() {
    let mut wrong = Vec::new();
    for source in SourceFile::all() {
        let module = source.top();
        // The crate's own roots see everything.
        if ["lib", "main"].contains(&module.as_str()) {
            continue;
        }
        for path in source.crate_paths() {
            if !is_allowed(&module, &path) {
                wrong.push(format!(
                    "{}: crate::{}",
                    source.file.display(),
                    path.join("::")
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "against the layers:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn outside_crates_stay_in_their_layers() {
    let known: BTreeSet<&str> = OUTSIDE.iter().map(|(name, _)| *name).collect();
    let package = include_str!("../Cargo.toml");
    let (_, dependencies) = package.split_once("\n[dependencies]\n").unwrap();
    let dependencies = dependencies
        .lines()
        .take_while(|line| !line.starts_with('['));
    let names = dependencies.filter_map(|line| line.split_once(" = "));
    let names: BTreeSet<String> = names.map(|(name, _)| name.replace('-', "_")).collect();
    assert_eq!(
        names.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        known
    );

    let mut wrong = Vec::new();
    for source in SourceFile::all_without_tests() {
        let used = source.outside_names();
        for (name, modules) in OUTSIDE {
            if used.contains(name) && !modules.split(' ').any(|module| module == source.top()) {
                wrong.push(format!("{}: {name}", source.file.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "against the layers:\n{}",
        wrong.join("\n")
    );
}

/// A path that ends in what a `mod.rs` defines or hands out leads to that file, and a `mod.rs` may
/// name the files below it by their names alone.
#[test]
fn no_file_imports_itself_by_way_of_others() {
    let sources = SourceFile::all_without_tests();
    let modules: BTreeSet<RustPath> = sources.iter().map(SourceFile::module).collect();
    let imports = |source: &SourceFile| {
        let mut imports = source.modules_in(&modules);
        imports.retain(|target| target.first() == Some(&source.top()));
        (source.module(), imports)
    };
    let imports: BTreeMap<RustPath, BTreeSet<RustPath>> = sources.iter().map(imports).collect();
    let mut wrong = Vec::new();
    for (module, direct) in &imports {
        let comes_back = |target: &&RustPath| reached(target, &imports).contains(module);
        for target in direct.iter().filter(comes_back) {
            wrong.push(format!(
                "{} imports {}",
                module.join("::"),
                target.join("::")
            ));
        }
    }
    assert!(wrong.is_empty(), "in a circle:\n{}", wrong.join("\n"));
}

/// `from`, and the modules that it imports, directly or by way of others.
fn reached<'m>(
    from: &'m RustPath,
    imports: &'m BTreeMap<RustPath, BTreeSet<RustPath>>,
) -> BTreeSet<&'m RustPath> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(imports.get(module).into_iter().flatten());
        }
    }
    reached
}

#[test]
fn the_table_has_every_module() {
    let modules: BTreeSet<String> = SourceFile::all().iter().map(SourceFile::top).collect();
    let drawn: BTreeSet<String> = ROWS.concat().iter().map(ToString::to_string).collect();
    let roots = ["lib", "main"].map(str::to_owned).into();
    assert_eq!(&modules - &roots, drawn);

    let map = fs::read_to_string(source::directory().join("lib.rs")).unwrap();
    let table = map.lines().filter(|line| line.starts_with("//! | [`"));
    let rows: Vec<Vec<&str>> = table
        .map(|line| {
            let names = line.split('|').nth(1).unwrap_or_default();
            names.split('`').skip(1).step_by(2).collect()
        })
        .collect();
    assert_eq!(rows, ROWS.map(<[_]>::to_vec), "the table in src/lib.rs");
}

#[test]
fn imports_are_read_in_every_spelling() {
    let text = "
        use crate::store::{Key, dir::{A, B}}; // crate::cli
        use crate::{
            dtype::ByteOrder,
            grid::{self, Dims},
        };
        /// [`x`](crate::fuse::X)
        fn f() -> crate::budget::Reservation { crate::grid::rank_of(\"crate::view\") }
    ";
    let paths: Vec<String> = crate_paths(text).iter().map(|p| p.join("::")).collect();
    assert_eq!(
        paths,
        [
            "store::Key",
            "store::dir::A",
            "store::dir::B",
            "dtype::ByteOrder",
            "grid::self",
            "grid::Dims",
            "budget::Reservation",
            "grid::rank_of",
            "view",
        ]
    );
    assert!(is_allowed("codec", &["error".into(), "FormatError".into()]));
    assert!(!is_allowed("codec", &["error".into(), "Error".into()]));
    assert!(!is_allowed("grid", &["dtype".into(), "DataType".into()]));
    assert!(is_allowed("view", &["load".into(), "Cache".into()]));
    assert!(!is_allowed("load", &["view".into(), "View".into()]));
}

#[test]
fn names_are_those_of_modules_or_of_crates() {
    let modules = ["store", "store::zip", "store::zip::bytes", "grid"];
    let path = |text: &str| text.split("::").map(str::to_owned).collect();
    let modules = modules.map(path).into();
    let source = SourceFile {
        file: "store/zip/mod.rs".into(),
        text: "
            mod bytes;
            use super::{Key, zip::bytes::{a, b}};
            use crate::grid::Dims;
            fn f() -> bytes::A { libc::g(Vec::<u8>::new(), ::base64::encode()) }
        "
        .into(),
    };
    let found: Vec<String> = source
        .modules_in(&modules)
        .iter()
        .map(|p| p.join("::"))
        .collect();
    assert_eq!(found, ["grid", "store", "store::zip::bytes"]);
    let names = ["Vec", "base64", "libc"].map(str::to_owned);
    assert_eq!(source.outside_names(), names.into());
}

fn is_allowed(module: &str, path: &[String]) -> bool {
    let Some(target) = path.first() else {
        return true;
    };
    target == module || row_of(target) < row_of(module) || path == PURE_ERROR
}

fn row_of(module: &str) -> usize {
    let row = ROWS.iter().position(|row| row.contains(&module));
    row.unwrap_or_else(|| panic!("{module} is in no row"))
}
