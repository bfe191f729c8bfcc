//! The documentation says what the program does: its options, what it supports, what it prints.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "docs/codecs.rs"]
mod codecs;
#[path = "docs/complete.rs"]
mod complete;
#[path = "docs/documents.rs"]
mod documents;
#[path = "docs/environment.rs"]
mod environment;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/plain.rs"]
mod plain;
#[path = "docs/plain_files.rs"]
mod plain_files;
#[path = "docs/registry.rs"]
mod registry;
#[path = "docs/support.rs"]
mod support;
#[path = "docs/types.rs"]
mod types;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// The README and all pages of the book, one after the other.
fn documentation() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let pages = fs::read_dir(root.join("docs/src")).unwrap();
        let mut pages: Vec<_> = pages.map(|page| page.unwrap().path()).collect();
        pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
        pages.sort();
        pages.push(root.join("README.md"));
        let texts = pages.iter().map(|page| fs::read_to_string(page).unwrap());
        format!("\n{}", texts.collect::<Vec<_>>().join("\n"))
    })
}

/// The cells of each row of the table below a heading, by the names of its columns.
fn table(heading: &str) -> Vec<BTreeMap<String, String>> {
    let mut rows = all_rows(heading);
    let columns = rows.remove(0);
    let rows = rows.into_iter().map(|row| {
        assert_eq!(row.len(), columns.len(), "{heading}: {row:?}");
        columns.iter().cloned().zip(row).collect()
    });
    rows.collect()
}

/// The cells of each row of the tables below a heading, up to the next heading.
fn rows(heading: &str) -> Vec<Vec<String>> {
    all_rows(heading).split_off(1)
}

/// The same with the names of the columns.
fn all_rows(heading: &str) -> Vec<Vec<String>> {
    let text = documentation();
    let found = ["#", "##", "###"].map(|level| format!("\n{level} {heading}\n"));
    let found = found
        .iter()
        .find_map(|line| text.find(line).map(|at| at + line.len()));
    let section = &text[found.expect(heading)..];
    let section = &section[..section.find("\n#").unwrap_or(section.len())];
    let rows: Vec<Vec<String>> = section
        .lines()
        .filter(|line| line.starts_with('|') && !line.starts_with("|---"))
        .map(|line| {
            // `\|` is a bar within a cell.
            let line = line.replace("\\|", "\0");
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().replace('\0', "|")).collect()
        })
        .collect();
    assert!(rows.len() > 1, "{heading}: no table");
    rows
}

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Checks that a table of `page` has the names that the program has, and no others.
fn check_names(page: &str, documented: &BTreeSet<String>, program: &BTreeSet<String>) {
    let missing: Vec<_> = program.difference(documented).collect();
    let unknown: Vec<_> = documented.difference(program).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "{page} has no row for {missing:?}, and rows for {unknown:?}, which the program does not have"
    );
}

fn output(arguments: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_zarr-mount");
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The options that begin a text such as `-f, --foreground` or `--view <VIEW>`.
fn options(text: &str) -> impl Iterator<Item = String> {
    let names = text.split([' ', ',']).filter(|word| word.starts_with('-'));
    names
        .map(|name| name.trim_end_matches('.').to_owned())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Those of `--help`.
fn options_of_the_help() -> BTreeSet<String> {
    let help = output(&["--help"]);
    let (_, list) = help.split_once("\nArguments:\n").unwrap();
    let (list, _) = list.split_once("\nExamples:\n").unwrap();
    list.lines()
        // Names are indented by 2 or 6, the lines of explanations by more.
        .filter(|line| line.find(|c| c != ' ').is_some_and(|indent| indent <= 6))
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'))
        // The explanation begins after two spaces.
        .flat_map(|line| options(line.split("  ").next().unwrap_or_default()))
        .collect()
}

#[test]
fn options_are_those_of_the_help() {
    let in_help = options_of_the_help();
    let documented: BTreeSet<String> = rows("Options")
        .iter()
        .flat_map(|row| quoted(&row[0]))
        .flat_map(|text| options(&text).collect::<Vec<_>>())
        .collect();
    check_names("docs/src/options.md, \"Options\",", &documented, &in_help);
    assert!(in_help.contains("--cache-size") && in_help.contains("-o"));
}

#[test]
fn the_synopsis_is_that_of_the_help() {
    let help = output(&["--help"]);
    let (_, usage) = help.split_once("Usage: ").unwrap();
    let (usage, _) = usage.split_once("\n\n").unwrap();
    let lines: Vec<_> = usage.lines().map(str::trim).collect();
    let synopsis = format!("# Options\n\n```text\n{}\n```\n", lines.join("\n"));
    assert!(
        documentation().contains(&synopsis),
        "docs/src/options.md does not begin with the synopsis of the help:\n{synopsis}"
    );
}

#[test]
fn mount_options_are_those_of_the_help() {
    let help = output(&["--help"]);
    let (_, list) = help.split_once("\nThe mount options (-o)").unwrap();
    let in_help: BTreeSet<String> = list
        .lines()
        .skip(1)
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .flat_map(|line| line.split("  ").next().unwrap_or_default().split(", "))
        .map(str::to_owned)
        .collect();
    let rows = rows("Mount options");
    let documented: BTreeSet<String> = rows.iter().flat_map(|row| quoted(&row[0])).collect();
    check_names(
        "docs/src/options.md, \"Mount options\",",
        &documented,
        &in_help,
    );
}

#[test]
fn defaults_are_those_of_the_help() {
    let help = output(&["--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in rows("Options") {
        for default in quoted(&row[1]) {
            // 0 is the only default that the help does not spell.
            let spelled = help.contains(&format!("[default: {default}]"));
            assert!(
                spelled || default == "0",
                "the help has no `[default: {default}]` for {}",
                row[0]
            );
        }
    }
}

#[test]
fn counters_are_those_of_the_program() {
    let members: BTreeSet<String> = rows("Counters")
        .iter()
        .flat_map(|row| quoted(&row[0]))
        .collect();
    let mut expected = BTreeSet::new();
    for (name, value) in statistics().as_object().unwrap() {
        match value.as_object() {
            Some(parts) => expected.extend(parts.keys().map(|part| format!("{name}.{part}"))),
            None => {
                expected.insert(name.clone());
            }
        }
    }
    expected.extend(server_counters());
    check_names("docs/src/counters.md, \"Counters\",", &members, &expected);
}

/// The counters of a remote store, which is sent no request.
#[cfg(feature = "remote")]
fn server_counters() -> impl Iterator<Item = String> {
    use zarr_mount::store::{DiskCacheOptions, RemoteOptions, RemoteStore, RemoteUrl, Store};

    let url = RemoteUrl::parse("http://127.0.0.1:1/a").unwrap().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let options = RemoteOptions {
        disk_cache: Some(DiskCacheOptions {
            directory: directory.path().to_owned(),
            most_bytes: 0,
            is_offline: false,
            is_immutable: false,
            begun: std::time::Instant::now(),
        }),
        ..RemoteOptions::default()
    };
    let store = RemoteStore::open(url, &options).unwrap();
    let counters = store.statistics().into_iter();
    counters.map(|(name, _)| format!("server.{name}"))
}

/// Counters that the documentation has, and that the program lacks without remote stores.
#[cfg(not(feature = "remote"))]
fn server_counters() -> impl Iterator<Item = String> {
    let rows = rows("Counters").into_iter();
    let names = rows.flat_map(|row| quoted(&row[0]));
    names.filter(|name| name.starts_with("server."))
}

/// `stats.json` of a new view.
fn statistics() -> Value {
    use std::sync::Arc;
    use zarr_mount::store::{Location, Symlinks, open_store};
    use zarr_mount::view::{View, ViewOptions, VnodeId};

    let location = Location::parse("demo:".as_ref()).unwrap();
    let store = open_store(&location, Symlinks::Inside).unwrap();
    let view = Arc::new(View::new(store, ViewOptions::default()).unwrap());
    let control = view.lookup(VnodeId::ROOT, b".zarr-mount").unwrap().unwrap();
    let file = view.lookup(control.id, b"stats.json").unwrap().unwrap();
    let opened = view.open(file.id).unwrap().unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let patience = zarr_mount::load::Patience::Waits;
    opened.file.read(0, 1 << 16, patience, None, move |read| {
        send.send(serde_json::from_slice(&read.unwrap()).unwrap())
            .unwrap();
    });
    receive.recv().unwrap()
}

#[test]
fn descriptions_are_what_the_program_prints() {
    for arguments in [
        ["--info", "demo:"].as_slice(),
        &["--info", "demo:", "air/temperature"],
        &["--info", "--sizes", "demo:", "legacy/elevation"],
        &["--info", "--at", "3,20,40", "demo:", "air/temperature"],
        &["--info", "--at", "49,99", "demo:", "legacy/elevation"],
        &[
            "--info",
            "--offset",
            "6000",
            "demo:",
            "air/temperature/c/0/0/0",
        ],
        &["--info", "--json", "demo:", "legacy/elevation"],
        &["--info", "--files", "npy,nii", "demo:", "air/temperature"],
        &["--info", "--files", "nc,mrc", "demo:", "legacy"],
    ] {
        let printed = format!(
            "$ zarr-mount {}\n{}",
            arguments.join(" "),
            output(arguments)
        );
        assert!(
            documentation().contains(&printed),
            "not in the documentation:\n{printed}"
        );
    }
}
