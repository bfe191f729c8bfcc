//! The tables must have all names of codecs and data types that the program knows.

use std::collections::BTreeSet;

use super::{quoted, table};

/// The names in a table's first column.
fn named(heading: &str, column: &str) -> BTreeSet<String> {
    let rows = table(heading);
    rows.iter().flat_map(|row| quoted(&row[column])).collect()
}

/// The part of `source` from `head` to the end of the item that begins there.
fn body<'s>(source: &'s str, head: &str) -> &'s str {
    let start = source.find(head).expect(head);
    let body = &source[start..];
    let end = body.find("\n}").unwrap_or(body.len());
    &body[..end]
}

/// The names that a function of the program matches: text before `=>`.
fn matched(source: &str, function: &str) -> BTreeSet<String> {
    body(source, &format!("fn {function}("))
        .lines()
        .filter_map(|line| line.split_once(" => "))
        .map(|(patterns, _)| patterns)
        .flat_map(quoted_in)
        .collect()
}

/// The names that the rows of a table begin with: `codec("gzip", …),`.
fn in_rows(table: &str) -> BTreeSet<String> {
    let rows = table.lines().filter(|line| line.ends_with("),"));
    rows.filter_map(|row| Some(row.split('"').nth(1)?.to_owned()))
        .collect()
}

/// The texts between double quotes.
fn quoted_in(source: &str) -> BTreeSet<String> {
    let texts = source.split('"').skip(1).step_by(2);
    texts.map(str::to_owned).collect()
}

fn check_has(named: &BTreeSet<String>, name: &str, tables: &str) {
    assert!(
        named.contains(name),
        "the program knows `{name}`, but no row of {tables} in docs/src/support.md has it: add it to the first column"
    );
}

#[test]
fn no_codec_is_left_out() {
    let registered = include_str!("../../src/metadata/codecs/registered.rs");
    let known = include_str!("../../src/metadata/codecs/known.rs");
    let numcodecs = include_str!("../../src/metadata/codecs/numcodecs.rs");
    let ours = named("Codecs of v3", "name");
    let rows = in_rows(body(registered, "const CODECS"));
    assert!(rows.len() > 10, "{rows:?}");
    for name in &matched(registered, "parser") | &rows {
        // A pattern behind a prefix matches a path.
        let name = if name.contains('/') {
            format!("https://codec.zarrs.dev/{name}")
        } else {
            name
        };
        check_has(&ours, &name, "\"Codecs of v3\"");
    }
    let ours =
        &named("Codecs of numcodecs", "id") | &named("Elements of any length", "object codec");
    let theirs = &in_rows(body(known, "const CODECS")) | &matched(numcodecs, "object_codec_parser");
    assert!(theirs.len() > 20, "{theirs:?}");
    for id in theirs {
        let tables = "\"Codecs of numcodecs\" and \"Elements of any length\"";
        check_has(&ours, &id, tables);
    }
}

#[test]
fn no_data_type_is_left_out() {
    let names = include_str!("../../src/dtype/v3_name.rs");
    let spellings = include_str!("../../src/metadata/spell/read_type_v3.rs");
    let floats = include_str!("../../src/dtype/float.rs");
    let ours = named("Data types of v3", "data_type");
    let theirs = [
        matched(spellings, "parse_v3"),
        matched(spellings, "of_fixed_size"),
        matched(names, "without_parameters"),
        quoted_in(body(floats, "const FORMATS")),
    ];
    let theirs: BTreeSet<String> = theirs.into_iter().flatten().collect();
    assert!(theirs.len() > 30, "{theirs:?}");
    for name in theirs {
        check_has(&ours, &name, "\"Data types of v3\"");
    }
}
