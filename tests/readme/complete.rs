//! What the tables must not leave out: the names that the program itself has.

use std::collections::BTreeSet;

use super::{quoted, table};

/// The names in a table's first column.
fn named(heading: &str, column: &str) -> BTreeSet<String> {
    let rows = table(heading);
    rows.iter().flat_map(|row| quoted(&row[column])).collect()
}

/// The names that a function of the program matches: text before `=>`.
fn matched(source: &str, function: &str) -> BTreeSet<String> {
    let start = source.find(&format!("fn {function}(")).expect(function);
    let body = &source[start..];
    let body = &body[..body.find("\n}\n").unwrap_or(body.len())];
    body.lines()
        .filter_map(|line| line.split_once(" => "))
        .flat_map(|(patterns, _)| strings_of(patterns))
        .collect()
}

/// The strings in `source`.
fn strings_of(source: &str) -> impl Iterator<Item = String> {
    source.split('"').skip(1).step_by(2).map(str::to_owned)
}

/// The body of a constant that is a table.
fn constant_of<'s>(source: &'s str, constant: &str) -> &'s str {
    let start = source.find(&format!("const {constant}:")).expect(constant);
    let body = &source[start..];
    &body[..body.find("\n};\n").expect(constant)]
}

#[test]
fn no_codec_is_left_out() {
    let registered = include_str!("../../src/metadata/codecs/registered.rs");
    let numcodecs = include_str!("../../src/metadata/codecs/numcodecs.rs");
    let bytes_to_bytes = include_str!("../../src/metadata/codecs/bytes_to_bytes.rs");
    let ours = named("### Codecs of v3", "name");
    for name in &matched(registered, "parser") | &matched(bytes_to_bytes, "parser") {
        // What is matched behind a prefix is a path.
        let name = if name.contains('/') {
            format!("https://codec.zarrs.dev/{name}")
        } else {
            name
        };
        assert!(ours.contains(&name), "{name} is in no table");
    }
    let ours = &named("### Codecs of numcodecs", "id")
        | &named("### Elements of any length", "object codec");
    let theirs = &matched(numcodecs, "parser") | &matched(bytes_to_bytes, "numcodecs_parser");
    assert!(theirs.len() > 20, "{theirs:?}");
    for id in theirs {
        assert!(ours.contains(&id), "{id} is in no table");
    }
}

#[test]
fn no_data_type_is_left_out() {
    let names = include_str!("../../src/dtype/v3_name.rs");
    let floats = include_str!("../../src/dtype/float.rs");
    let ours = named("### Data types of v3", "data_type");
    let theirs = [
        matched(names, "parse_v3"),
        matched(names, "of_fixed_size"),
        matched(names, "without_parameters"),
        strings_of(constant_of(floats, "FORMATS")).collect(),
    ];
    let theirs: BTreeSet<String> = theirs.into_iter().flatten().collect();
    assert!(theirs.contains("float6_e3m2fn"), "{theirs:?}");
    assert!(theirs.len() > 25, "{theirs:?}");
    // The names of integers are computed.
    let bits = [2, 4, 8, 16, 32, 64].into_iter();
    let integers = bits.flat_map(|bits| [format!("int{bits}"), format!("uint{bits}")]);
    for name in theirs.into_iter().chain(integers) {
        assert!(ours.contains(&name), "{name} is in no table");
    }
}
