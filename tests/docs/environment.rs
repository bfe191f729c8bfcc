//! The environment variables of the man page and of "Environment": those that the source code names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{output, quoted, rows};

/// Words that look like variables, and are none.
const OTHER_WORDS: [&str; 2] = ["CARGO_PKG_VERSION", "CONTENT_RANGE"];

/// Names such as `NO_COLOR`: capital letters, digits, and at least one underscore.
fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.contains('_')
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(is_part)
}

/// The variables in string literals of the code below `folder`, without tests.
fn named_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            named_in(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests.rs" {
            let source = fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap();
            let lines = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let literals = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
            found.extend(literals.filter(|text| is_name(text)).map(str::to_owned));
        }
    }
}

fn named_in_the_code() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    named_in(&source.join("store/remote"), &mut found);
    named_in(&source.join("cli"), &mut found);
    for other in OTHER_WORDS {
        found.remove(other);
    }
    found
}

#[test]
fn variables_are_those_of_the_code() {
    let page = output(&["--man"]);
    let (_, section) = page.split_once("\n.SH ENVIRONMENT\n").unwrap();
    let (section, _) = section.split_once("\n.SH ").unwrap();
    let section = section.replace("\\fB", " ").replace("\\fR", " ");
    let words = section.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let in_page: BTreeSet<String> = words
        .filter(|word| is_name(word))
        .map(str::to_owned)
        .collect();
    let missing: Vec<_> = named_in_the_code().difference(&in_page).cloned().collect();
    assert!(missing.is_empty(), "not in the man page: {missing:?}");
    let rows = rows("Environment");
    let documented: BTreeSet<String> = rows
        .iter()
        .flat_map(|row| quoted(&row[0]))
        .filter(|name| is_name(name))
        .collect();
    assert_eq!(documented, in_page);
}
