//! "Whole arrays": what formats there are, and which types each can hold.
//!
//! A cell of the table of types is `no`, or the word (or number) that the file itself has for the
//! type, taken out of the bytes of the file; `yes` where the format has no word of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use zarr_mount::plain::{FileFormat, Scope};
use zarr_mount::store::{Detail, Location, Symlinks, open_store};
use zarr_mount::view::{ArrayOptions, EntrySource, View, ViewKind, ViewOptions, VnodeId};

use super::documents::Parsed;
use super::plain_files::{file_of, found, offset_of_elements, shaped, with_type};
use super::{check_names, documentation, quoted, rows, table};

const FORMATS: &str = "File formats";
const TYPES: &str = "Data types of whole-array files";

#[test]
fn formats_are_those_of_the_program() {
    let table = table(FORMATS);
    let named: Vec<String> = table
        .iter()
        .flat_map(|row| quoted(&row["`--files`"]))
        .collect();
    let ours: BTreeSet<String> = named.iter().cloned().collect();
    let theirs = FileFormat::ALL.map(|format| format.name().to_owned());
    let theirs = BTreeSet::from(theirs);
    check_names("docs/src/arrays.md, \"File formats\",", &ours, &theirs);
    assert_eq!(named.len(), theirs.len(), "one is there twice");
    for row in &table {
        for name in quoted(&row["`--files`"]) {
            let format = FileFormat::of_name(&name).unwrap();
            let stem = if format.has(Scope::Array) { "t" } else { "G/G" };
            let file = format!("{stem}.{}", format.extension());
            let said = quoted(&row["file"]);
            assert_eq!(said.first(), Some(&file), "{name}");
            let needs_raw = said.get(1).is_some_and(|other| other == "t.raw");
            assert_eq!(needs_raw, format.points_to_raw(), "{name}");
        }
    }
}

/// An array of a type that `format` holds with two axes.
fn held_by(format: FileFormat) -> Parsed {
    let mut tried = ["int16", "uint8"].map(with_type).into_iter();
    let held = tried.find(|parsed| file_of(format, parsed).is_ok());
    held.unwrap_or_else(|| {
        panic!(
            "{} holds neither int16 nor uint8 with two axes: add a type to `held_by`",
            format.name()
        )
    })
}

/// A cell such as `multiple of 4096`, `0`, or `–` for a file without elements of its own. A header of any length is
/// followed by a `multiple of 1`.
#[test]
fn elements_begin_where_the_table_says() {
    for row in table(FORMATS) {
        for name in quoted(&row["`--files`"]) {
            let format = FileFormat::of_name(&name).unwrap();
            let is_made_whole = matches!(format, FileFormat::Jsonl | FileFormat::Png);
            if is_made_whole || format.points_to_raw() {
                assert_eq!(row["elements at"], "–", "{name}");
                continue;
            }
            // Long enough not to be packed with other small ones.
            let layout = file_of(format, &held_by(format)).unwrap();
            let offset = offset_of_elements(&layout).unwrap();
            let cell = &row["elements at"];
            let is_so = match cell.strip_prefix("multiple of ") {
                Some(number) => offset > 0 && offset.is_multiple_of(number.parse().unwrap()),
                None => cell.parse() == Ok(offset),
            };
            assert!(is_so, "{name}: at {offset}, the documentation says {cell}");
        }
    }
}

/// A cell such as `any`, `2 or more` or `1 to 7`.
#[test]
fn numbers_of_axes_are_those_of_the_table() {
    for row in table(FORMATS) {
        let words: Vec<&str> = row["axes"].split(' ').collect();
        let number = |word: &str| word.parse::<usize>().unwrap();
        let said = match words.as_slice() {
            ["any"] => 0..=usize::MAX,
            [first, "or", "more"] => number(first)..=usize::MAX,
            [first, "to", last] => number(first)..=number(last),
            _ => panic!("{words:?}"),
        };
        for name in quoted(&row["`--files`"]) {
            let format = FileFormat::of_name(&name).unwrap();
            if format == FileFormat::Jsonl {
                continue;
            }
            let parsed = held_by(format);
            for rank in 0..=33 {
                // Not so many elements that their number is what is refused.
                let length = |axis| if axis + 17 < rank { 1 } else { 2 };
                let shape: Vec<u64> = (0..rank).map(length).collect();
                let is_held = shaped(format, &parsed, &shape).is_ok();
                let is_so = is_held == said.contains(&rank);
                assert!(
                    is_so,
                    "{name}: {rank} axes: {is_held}, the documentation says {words:?}"
                );
            }
        }
    }
}

#[test]
fn types_of_whole_array_files() {
    let mut differences = Vec::new();
    let mut columns: BTreeSet<FileFormat> = FileFormat::ALL.into_iter().collect();
    // They hold what `nc` and `h5` do, but for records in CDF-5.
    for other in [FileFormat::Nc4, FileFormat::Nc5, FileFormat::H5ad] {
        columns.remove(&other);
    }
    for row in table(TYPES) {
        let named = row.keys().filter(|name| *name != "data type");
        let named: BTreeSet<FileFormat> = named
            .map(|name| FileFormat::of_name(name.trim_matches('`')).unwrap())
            .collect();
        let others: Vec<_> = named.difference(&columns).collect();
        assert!(others.is_empty(), "columns of no format: {others:?}");
        for name in quoted(&row["data type"]) {
            let parsed = with_type(&name);
            assert!(parsed.is_decoded(), "{name}");
            let [nc, nc4, nc5] = [FileFormat::Nc, FileFormat::Nc4, FileFormat::Nc5]
                .map(|format| found(format, &parsed));
            assert_eq!(nc4 == "yes", nc != "no", "{name}: {nc4}");
            let is_record = name.starts_with('[');
            let is_held = nc != "no" && !is_record;
            assert_eq!(nc5.starts_with("CDF-5"), is_held, "{name}: {nc5}");
            let [h5, h5ad] = [FileFormat::H5, FileFormat::H5ad].map(|it| found(it, &parsed));
            assert_eq!(h5, h5ad, "{name}");
            for &format in &columns {
                let cell = row.get(&format!("`{}`", format.name()));
                let cell =
                    cell.map_or_else(|| "no column".to_owned(), |cell| cell.replace('`', ""));
                let found = found(format, &parsed);
                if cell != found {
                    let format = format.name();
                    differences.push(format!(
                        "{name}, {format}: {found}; the documentation: {cell}"
                    ));
                }
            }
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// Each data type of the other tables is in this one, or is said to be like those that are.
#[test]
fn no_type_of_whole_array_files_is_left_out() {
    let named: BTreeSet<String> = table(TYPES)
        .iter()
        .flat_map(|row| quoted(&row["data type"]))
        .collect();
    for row in rows("Data types of v3") {
        for name in quoted(&row[0]) {
            let is_spelled_otherwise = ["numpy.", "null_terminated", "fixed_length", "struct"]
                .iter()
                .any(|start| name.starts_with(start))
                || ["complex_float32", "complex_float64", "raw_bytes", "r24"]
                    .contains(&name.as_str());
            let like_bytes = ["variable_length_bytes", "binary"].contains(&name.as_str());
            let is_refused = row[1].starts_with("no");
            if !(is_spelled_otherwise || like_bytes || is_refused) {
                assert!(named.contains(&name), "{name} is not in {TYPES}");
            }
        }
    }
}

/// "An axis of length 0 fits …".
#[test]
fn formats_without_elements_are_those_said() {
    let (_, said) = documentation()
        .split_once("An axis of length 0 fits ")
        .unwrap();
    let (said, _) = said.split_once('.').unwrap();
    let (anywhere, first) = said.split_once(", and").unwrap();
    let (anywhere, first) = (quoted(anywhere), quoted(first));
    for format in FileFormat::ALL {
        if format == FileFormat::Jsonl {
            continue;
        }
        let parsed = held_by(format);
        let is_held = |shape: &[u64]| shaped(format, &parsed, shape).is_ok();
        let name = format.name().to_owned();
        let in_any = anywhere.contains(&name);
        let sentence = "\"An axis of length 0 fits\" in docs/src/arrays.md";
        assert_eq!(is_held(&[4, 0]), in_any, "{name}: {sentence}");
        let in_first = in_any || first.contains(&name);
        assert_eq!(is_held(&[0, 4]), in_first, "{name}: {sentence}");
    }
}

#[test]
fn parts_have_the_names_of_the_table() {
    let (view, air) = air_of_the_demo();
    let is_there = |name: &str| {
        let found = view.lookup(air, name.as_bytes()).unwrap();
        found.is_some()
    };
    for row in table("Parts of arrays") {
        for name in quoted(&row["file"]) {
            assert!(is_there(&name.replace("t@", "temperature@")), "{name}");
        }
    }
    assert!(!is_there("temperature@8.npy"));
}

/// The view of "Two minutes", and a group in it.
fn air_of_the_demo() -> (Arc<View>, VnodeId) {
    let location = Location::parse("demo:".as_ref()).unwrap();
    let store = open_store(&location, Symlinks::Inside).unwrap();
    let options = ViewOptions {
        views: vec![ViewKind::Arrays],
        arrays: ArrayOptions {
            files: vec![FileFormat::Npy, FileFormat::Nc],
            root_name: "demo".to_owned(),
            ..ArrayOptions::default()
        },
        ..ViewOptions::default()
    };
    let view = Arc::new(View::new(store, options).unwrap());
    let air = view.lookup(VnodeId::ROOT, b"air").unwrap().unwrap();
    (view, air.id)
}

/// Names and sizes of the files in "Two minutes".
#[test]
fn the_listing_is_that_of_the_demo() {
    let (view, air) = air_of_the_demo();
    let mut directory = view.open_directory(air).unwrap().unwrap();
    let mut shown = BTreeSet::new();
    while let Some(entry) = directory.next_entry(Detail::Attributes).unwrap() {
        let name = String::from_utf8(entry.name).unwrap();
        let size = entry.attributes.unwrap().size;
        shown.insert(format!("{size} {name}"));
    }
    let (_, listing) = documentation().split_once("$ ls -l demo/air\n").unwrap();
    let listed: BTreeSet<String> = listing
        .lines()
        .take_while(|line| !line.starts_with("```"))
        .skip(1)
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{} {}", words[4], words[8])
        })
        .collect();
    assert_eq!(listed, shown);
}
