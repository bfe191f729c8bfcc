//! The files below `src`, and the paths that their code names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A path of Rust, name by name.
pub(crate) type RustPath = Vec<String>;

/// A file below `src`.
pub(crate) struct SourceFile {
    /// Its path from there.
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

impl SourceFile {
    /// All of them.
    pub(crate) fn all() -> Vec<SourceFile> {
        let root = directory();
        let mut found = Vec::new();
        let mut directories = vec![root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path).unwrap();
                    let file = path.strip_prefix(&root).unwrap().to_owned();
                    found.push(SourceFile { file, text });
                }
            }
        }
        found.sort_by(|one, other| one.file.cmp(&other.file));
        found
    }

    /// Those that are not for tests, without their modules of tests.
    pub(crate) fn all_without_tests() -> Vec<SourceFile> {
        let mut all = SourceFile::all();
        let for_tests = ["tests", "testing", "schedules", "power_loss"].map(str::to_owned);
        all.retain(|source| source.module().iter().all(|name| !for_tests.contains(name)));
        for source in &mut all {
            source.text.truncate(end_of_code(&source.text));
        }
        all
    }

    /// The path of its module: `store::dir` for `store/dir.rs` and for `store/dir/mod.rs`.
    pub(crate) fn module(&self) -> RustPath {
        let names = self.file.with_extension("");
        let names = names.iter().map(|name| name.to_str().unwrap().to_owned());
        names.filter(|name| name != "mod").collect()
    }

    /// The top module that it belongs to.
    pub(crate) fn top(&self) -> String {
        self.module().swap_remove(0)
    }

    /// The paths below `crate::` in its text.
    pub(crate) fn crate_paths(&self) -> Vec<RustPath> {
        crate_paths(&self.text)
    }

    /// The first names of its paths that are not modules of this crate: names of crates, and of
    /// types.
    pub(crate) fn outside_names(&self) -> BTreeSet<String> {
        let paths = paths(&self.text);
        let is_inside = |path: &RustPath| ["crate", "self", "super"].contains(&path[0].as_str());
        let (inside, outside): (Vec<_>, Vec<_>) = paths.into_iter().partition(is_inside);
        let names = outside.into_iter().map(|mut path| path.swap_remove(0));
        let is_module = |name: &String| {
            let declared = self.text.contains(&format!("mod {name};"));
            declared || inside.iter().any(|path| path.last() == Some(name))
        };
        names.filter(|name| !is_module(name)).collect()
    }

    /// The modules of `modules` that it imports from or names.
    pub(crate) fn modules_in(&self, modules: &BTreeSet<RustPath>) -> BTreeSet<RustPath> {
        let own = self.module();
        let target = |path: RustPath| {
            let mut full = match path[0].as_str() {
                "crate" => Vec::new(),
                "self" => own.clone(),
                "super" => own[..own.len() - 1].to_vec(),
                _ => return None,
            };
            for name in path.into_iter().skip(1) {
                match name.as_str() {
                    "super" => drop(full.pop()),
                    _ => full.push(name),
                }
            }
            while !full.is_empty() && !modules.contains(&full) {
                full.pop();
            }
            Some(full).filter(|full| *full != own)
        };
        paths(&self.text).into_iter().filter_map(target).collect()
    }
}

/// The directory of the files.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Where the module of tests at the end of `text` begins.
fn end_of_code(text: &str) -> usize {
    let has_tests = |at: &usize| {
        let mut lines = text[*at..].lines();
        let is_for_tests = lines.next().is_some_and(|cfg| cfg.contains("test"));
        let mut lines = lines.skip_while(|line| line.starts_with("#["));
        let next = lines.next().unwrap_or_default();
        is_for_tests && next.contains("mod ") && next.ends_with('{')
    };
    let mut attributes = text.match_indices("\n#[cfg(").map(|(at, _)| at + 1);
    attributes.find(has_tests).unwrap_or(text.len())
}

/// The paths below `crate::` in `text`.
pub(crate) fn crate_paths(text: &str) -> Vec<RustPath> {
    let mut paths = paths(text);
    paths.retain(|path| path[0] == "crate");
    paths.into_iter().map(|path| path[1..].to_vec()).collect()
}

/// The paths of two names or more in `text`, lists taken apart. Comments do not count.
fn paths(text: &str) -> Vec<RustPath> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .collect();
    let code = code.join("\n");
    let mut paths = Vec::new();
    let mut end_of_list = 0;
    for (end, _) in code.match_indices("::") {
        let before = code[..end].trim_end_matches(is_word);
        let goes_on = before
            .strip_suffix("::")
            .is_some_and(|before| before.ends_with(|c| is_word(c) || c == '>'));
        let start = before.len();
        if start == end || goes_on || start < end_of_list {
            continue;
        }
        let rest = take_tree(&code[start..], &[], &mut paths);
        let taken = &code[start..code.len() - rest.len()];
        if taken.contains("::{") {
            end_of_list = start + taken.len();
        }
    }
    paths
}

/// Reads what may follow `::` off `text`, adds the paths to `paths`, and returns the rest.
fn take_tree<'t>(text: &'t str, before: &[String], paths: &mut Vec<RustPath>) -> &'t str {
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
