//! The README says what the program does: its options, what it supports, what it prints.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};
use zarr_mount::metadata::{ArrayMetadata, NodeMetadata, v2, v3};

const README: &str = include_str!("../README.md");

/// The cells of each row of the tables below a heading, up to the next heading.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let start = README.find(&format!("\n{heading}\n")).expect(heading) + heading.len() + 2;
    let section = &README[start..];
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
    rows[1..].to_vec()
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
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

#[test]
fn options_are_those_of_the_help() {
    let help = output(&["--help"]);
    let (_, list) = help.split_once("\nOptions:\n").unwrap();
    let (list, _) = list.split_once("\nExamples:\n").unwrap();
    let in_help: BTreeSet<String> = list
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'))
        // The explanation begins after two spaces.
        .flat_map(|line| options(line.split("  ").next().unwrap_or_default()))
        .collect();
    let in_readme: BTreeSet<String> = rows("## Options")
        .iter()
        .flat_map(|row| quoted(&row[0]))
        .flat_map(|text| options(&text).collect::<Vec<_>>())
        .collect();
    assert_eq!(in_readme, in_help);
    assert!(in_help.contains("--cache-size") && in_help.contains("-o"));
}

#[test]
fn mount_options_are_those_of_the_help() {
    let help = output(&["--help"]);
    let (_, list) = help.split_once("\nThe mount options (-o)").unwrap();
    let in_help: BTreeSet<&str> = list
        .lines()
        .skip(1)
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .flat_map(|line| line.split("  ").next().unwrap_or_default().split(", "))
        .collect();
    let rows = rows("### Mount options");
    let in_readme: Vec<String> = rows.iter().flat_map(|row| quoted(&row[0])).collect();
    let in_readme: BTreeSet<&str> = in_readme.iter().map(String::as_str).collect();
    assert_eq!(in_readme, in_help);
}

#[test]
fn defaults_are_those_of_the_help() {
    let help = output(&["--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in rows("## Options") {
        for default in quoted(&row[1]) {
            // The only one that the program does not spell.
            let spelled = help.contains(&format!("[default: {default}]"));
            assert!(spelled || default == "0", "{row:?}");
        }
    }
}

#[test]
fn counters_are_those_of_the_program() {
    let members: BTreeSet<String> = rows("### Counters")
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
    assert_eq!(members, expected);
}

/// `stats.json` of a view that nobody used.
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
    let mut scratch = Vec::new();
    let read = opened.file.try_read(0, 1 << 16, &mut scratch);
    serde_json::from_slice(&read.unwrap().unwrap()).unwrap()
}

#[test]
fn descriptions_are_what_the_program_prints() {
    for arguments in [
        ["--info", "demo:"].as_slice(),
        &["--info", "--sizes", "demo:", "legacy/elevation"],
        &["--info", "--json", "demo:", "legacy"],
    ] {
        let printed = format!(
            "$ zarr-mount {}\n{}",
            arguments.join(" "),
            output(arguments)
        );
        assert!(README.contains(&printed), "not in the README:\n{printed}");
    }
}

#[test]
fn codecs_are_decoded_or_refused_as_said() {
    for row in rows("### Codecs") {
        for name in quoted(&row[1]) {
            let array = match row[0].as_str() {
                "v2" => with_codec_v2(&name, row[2].contains("filter")),
                _ => with_codec_v3(&name),
            };
            check(&row, &name, &array);
        }
    }
}

#[test]
fn data_types_are_decoded_or_refused_as_said() {
    for row in rows("### Data types") {
        for name in quoted(&row[1]) {
            let array = match row[0].as_str() {
                "v2" => with_type_v2(&name),
                _ => with_type_v3(&name),
            };
            check(&row, &name, &array);
        }
    }
}

#[test]
fn grids_and_keys_are_decoded_or_refused_as_said() {
    for row in rows("### Grids, keys and the rest") {
        for name in quoted(&row[1]) {
            let mut document = document_v3();
            let array = if row[1].starts_with("chunk grid") {
                document["chunk_grid"]["name"] = json!(name);
                parse_v3(&document)
            } else if row[1].starts_with("chunk key encoding") {
                document["chunk_key_encoding"] = json!({"name": name});
                parse_v3(&document)
            } else if row[1].starts_with("dimension separator") {
                let mut document = document_v2();
                document["dimension_separator"] = json!(name);
                parse_v2(&document)
            } else {
                continue;
            };
            check(&row, &name, &array);
        }
    }
    for (member, value) in [
        ("storage_transformers", json!([{"name": "any"}])),
        ("unknown", json!({"name": "any"})),
    ] {
        let mut document = document_v3();
        document[member] = value;
        assert!(v3::parse(document.to_string().as_bytes()).is_err());
    }
}

/// Holds the last cell of a row against what became of a document with `name` in it.
fn check(row: &[String], name: &str, array: &ArrayMetadata) {
    match (row[2].split([' ', ',', ';', ':']).next(), &array.decoding) {
        (Some("yes"), Ok(_)) => {}
        (Some("no"), Err(error)) => {
            assert!(error.to_string().contains("unsupported"), "{name}: {error}");
        }
        (_, Ok(_)) => panic!("{name}: decoded, but the README says: {row:?}"),
        (_, Err(error)) => panic!("{name}: {error}, but the README says: {row:?}"),
    }
}

fn parse_v2(document: &Value) -> ArrayMetadata {
    v2::parse_array(document.to_string().as_bytes()).unwrap()
}

fn parse_v3(document: &Value) -> ArrayMetadata {
    match v3::parse(document.to_string().as_bytes()).unwrap() {
        NodeMetadata::Array(array) => *array,
        NodeMetadata::Group(_) => panic!("no array: {document}"),
    }
}

fn document_v2() -> Value {
    json!({
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": null,
        "order": "C", "compressor": null, "filters": null,
    })
}

fn document_v3() -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    })
}

fn with_codec_v2(name: &str, is_filter: bool) -> ArrayMetadata {
    let mut document = document_v2();
    if is_filter {
        document["filters"] = json!([{"id": name}]);
    } else {
        document["compressor"] = json!({"id": name});
    }
    parse_v2(&document)
}

fn with_codec_v3(name: &str) -> ArrayMetadata {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let mut document = document_v3();
    document["codecs"] = match name {
        "bytes" => json!([bytes]),
        "transpose" => json!([{"name": name, "configuration": {"order": [0]}}, bytes]),
        "sharding_indexed" => json!([{"name": name, "configuration": {
            "chunk_shape": [1], "codecs": [bytes], "index_codecs": [bytes],
        }}]),
        "vlen-utf8" | "vlen-bytes" | "packbits" | "zfp" | "pcodec" => json!([{"name": name}]),
        _ => json!([bytes, {"name": name, "configuration": {}}]),
    };
    parse_v3(&document)
}

fn with_type_v2(name: &str) -> ArrayMetadata {
    let mut document = document_v2();
    // A list of fields is JSON, anything else a name.
    document["dtype"] = serde_json::from_str(name).unwrap_or_else(|_| json!(name));
    parse_v2(&document)
}

fn with_type_v3(name: &str) -> ArrayMetadata {
    let length = json!({"length_bytes": 4});
    let fields = json!([{"name": "a", "data_type": "int32"}]);
    let (configuration, fill_value) = match name {
        "numpy.datetime64" | "numpy.timedelta64" => {
            (json!({"unit": "s", "scale_factor": 1}), json!(0))
        }
        "null_terminated_bytes" | "raw_bytes" => (length, json!("AAAAAA==")),
        "fixed_length_utf32" => (length, json!("")),
        "struct" => (json!({"fields": fields}), json!({"a": 0})),
        "structured" => (json!({"fields": [["a", "int32"]]}), json!("AAAAAA==")),
        "bool" => (Value::Null, json!(false)),
        "r8" => (Value::Null, json!([0])),
        "r24" => (Value::Null, json!([0, 0, 0])),
        // 1 is a value of every other number; 0 is none of `float8_e8m0fnu`.
        name if name.starts_with("complex") => (Value::Null, json!([1.0, 1.0])),
        _ => (Value::Null, json!(1)),
    };
    let mut document = document_v3();
    document["fill_value"] = fill_value;
    document["data_type"] = match configuration {
        Value::Null => json!(name),
        configuration => json!({"name": name, "configuration": configuration}),
    };
    parse_v3(&document)
}
