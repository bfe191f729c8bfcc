//! The layers of the house, as the table in `src/lib.rs` draws them: a module imports from the
//! rows above its own, never from those below.
//!
//! Every path `crate::…` below `src` counts, in imports and in code, tests included; comments do
//! not, because a link in a document may point anywhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rows, top of the table first: a row may import from those before it. Modules of one row
/// do not know each other.
const ROWS: [&[&str]; 15] = [
    &["escape"],
    &["store"],
    &["sync"],
    &["budget", "buffers", "counters", "threads"],
    &["grid", "dtype"],
    &["codec"],
    &["metadata"],
    &["error"],
    &["plain"],
    &["hierarchy"],
    &["load"],
    &["read"],
    &["view"],
    &["fuse"],
    &["cli"],
];

/// What is wrong in bytes is pure, and every row may say it; `error::Error` is for the rows below
/// `error`.
const PURE_ERROR: [&str; 2] = ["error", "FormatError"];

/// Crates that a row must not know, as the table says: JSON ends in `metadata` (`view` writes
/// statistics with it), FUSE begins in `fuse`, and what is pure does no I/O.
const OUTSIDE: [(&str, &[&str]); 2] = [("fuser", &["fuse"]), ("rustix", &["store", "fuse", "cli"])];

#[test]
fn modules_import_from_the_rows_above_only() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let module = module_of(&file);
        // The crate's own roots see everything.
        if ["lib", "main"].contains(&module.as_str()) {
            continue;
        }
        for path in crate_paths(&text) {
            if !is_allowed(&module, &path) {
                wrong.push(format!("{}: crate::{}", file.display(), path.join("::")));
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
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let module = module_of(&file);
        for (name, knowing) in OUTSIDE {
            let known = paths_of(&text, name).next().is_some();
            if known && !knowing.contains(&module.as_str()) {
                wrong.push(format!("{}: {name}", file.display()));
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
fn the_table_has_every_module() {
    let modules: BTreeSet<String> = sources().iter().map(|(file, _)| module_of(file)).collect();
    let drawn: BTreeSet<String> = ROWS.concat().iter().map(ToString::to_string).collect();
    let roots = ["lib", "main"].map(str::to_owned).into();
    assert_eq!(&modules - &roots, drawn);

    let map = fs::read_to_string(source_directory().join("lib.rs")).unwrap();
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

fn source_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file below `src`, by its path from there, and its text.
fn sources() -> Vec<(PathBuf, String)> {
    let root = source_directory();
    let mut found = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// The top module that a file belongs to: `store` for `store.rs` and for `store/dir/mod.rs`.
fn module_of(file: &Path) -> String {
    let first = file.components().next().unwrap().as_os_str();
    Path::new(first)
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

/// The paths below `crate::` in `text`, lists taken apart.
fn crate_paths(text: &str) -> Vec<Vec<String>> {
    paths_of(text, "crate").flatten().collect()
}

/// The paths that begin with `root`, each mention with all paths of its list.
fn paths_of(text: &str, root: &str) -> impl Iterator<Item = Vec<Vec<String>>> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .collect();
    let code = code.join("\n");
    let start = format!("{root}::");
    let ends: Vec<usize> = code
        .match_indices(&start)
        .filter(|(at, _)| !code[..*at].ends_with(is_word))
        .map(|(at, _)| at + start.len())
        .collect();
    ends.into_iter().map(move |end| {
        let mut paths = Vec::new();
        take_tree(&code[end..], &[], &mut paths);
        paths
    })
}

/// Reads what may follow `::` off `text`, adds the paths to `paths`, and returns the rest.
fn take_tree<'t>(text: &'t str, before: &[String], paths: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = take_tree(rest, before, paths).trim_start();
            rest = match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => more,
                Some(more) => return more.trim_start().trim_start_matches('}'),
                None => return rest.strip_prefix('}').unwrap_or(rest),
            };
        }
    }
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let mut path = before.to_vec();
    path.push(name.to_owned());
    if let Some(deeper) = rest.strip_prefix("::") {
        return take_tree(deeper, &path, paths);
    }
    paths.push(path);
    // `as` and the name after it.
    let stop = rest.find([',', '}', ';', '\n']).unwrap_or(rest.len());
    &rest[stop..]
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
