//! The names that zarr-extensions registers, which `registry.json` has with the date of the list: each is in the tables of what is
//! supported, and other tests hold those tables against the program.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{quoted, table};

/// The names of a list in `registry.json` that are not in the first column of a table.
fn missing(list: &str, heading: &str, column: &str) -> Vec<String> {
    let registry: Value = serde_json::from_str(include_str!("registry.json")).unwrap();
    let rows = table(heading);
    let in_table: BTreeSet<String> = rows.iter().flat_map(|row| quoted(&row[column])).collect();
    let names = registry[list].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
    assert!(names.len() > 10, "{list}: {names:?}");
    let missing = names.into_iter().filter(|name| match *name {
        // The name of a family: `r8`, `r16` and so on.
        "r" => !in_table.contains("r8"),
        name => !in_table.contains(name),
    });
    missing.map(str::to_owned).collect()
}

#[test]
fn registered_codecs_are_in_the_table() {
    let none: [String; 0] = [];
    assert_eq!(missing("codecs", "Codecs of v3", "name"), none);
}

#[test]
fn registered_data_types_are_in_the_table() {
    let none: [String; 0] = [];
    assert_eq!(missing("data_types", "Data types of v3", "data_type"), none);
}
