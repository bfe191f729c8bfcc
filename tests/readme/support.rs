//! "What is supported": every cell, held against what the program makes of a document.
//!
//! A cell begins with `yes`, `no`, or `feature` (what this build decides); the first column has
//! names between backticks, and what a cell says holds for each of them. `–` stands where the
//! version itself is shown, so that nothing is translated.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zarr_mount::metadata::{Target, n5, pre_v1};

use super::documents::{self, Parsed, little};
use super::{quoted, table};

/// What was found otherwise than the tables say.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    /// Compares a cell with what all of `found` say.
    fn check(&mut self, name: &str, column: &str, cell: &str, found: &[bool]) {
        let word = cell.split([' ', ',', ';', ':']).next().unwrap_or_default();
        let said = match word {
            "yes" => true,
            "no" => false,
            "feature" => cfg!(feature = "pcodec"),
            _ => panic!("{name}, {column}: what does `{cell}` mean?"),
        };
        if found.is_empty() || found.iter().any(|&found| found != said) {
            let difference = format!("{name}: {column}: found {found:?}, the README says {cell}");
            self.0.push(difference);
        }
    }

    fn check_translation(
        &mut self,
        name: &str,
        (column, cell): (&str, &str),
        sources: &[&Parsed],
        translated: impl Fn((bool, bool)) -> Vec<bool>,
    ) {
        let target = if column.ends_with("v2`") {
            Target::V2
        } else {
            Target::V3
        };
        let decoded: Vec<&&Parsed> = sources.iter().filter(|it| it.is_decoded()).collect();
        let mut found: Vec<bool> = decoded
            .iter()
            .flat_map(|source| translated(source.is_written(target)))
            .collect();
        if decoded.is_empty() {
            found.push(false);
        }
        self.check(name, column, cell, &found);
    }
}

impl Drop for Differences {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "\n{}", self.0.join("\n"));
        }
    }
}

fn in_keys((keys, _): (bool, bool)) -> Vec<bool> {
    vec![keys]
}

fn in_chunks((_, chunks): (bool, bool)) -> Vec<bool> {
    vec![chunks]
}

fn in_both((keys, chunks): (bool, bool)) -> Vec<bool> {
    vec![keys, chunks]
}

/// Both views, in both versions.
fn everywhere(parsed: &Parsed) -> [bool; 4] {
    let (v2, v3) = (parsed.is_written(Target::V2), parsed.is_written(Target::V3));
    [v2.0, v2.1, v3.0, v3.1]
}

#[test]
fn versions_and_their_compressors() {
    let mut differences = Differences::default();
    for row in table("### Versions") {
        let make: fn(&str) -> Parsed = match row["version"].as_str() {
            "before v1" => |name| {
                assert_eq!(name, "blosc");
                documents::pre_v1("lz4")
            },
            "v1" => |name| documents::v1(&json!("<i4"), name),
            "v2" => |name| with_numcodecs(name).remove(0),
            "drafts of 2019 to 2022" => |name| with_numcodecs(name).remove(2),
            "draft of December 2022" => {
                |name| documents::draft_of_2022("int32", Some((name, &configuration_of_2022(name))))
            }
            "v3" => |name| with_codec_v3(name),
            "zarr-python 0.3" => {
                let is_read = pre_v1::parse_array(b"\x80\x02}q\x01.").is_ok();
                differences.check("pickle", "read", &row["read"], &[is_read]);
                continue;
            }
            // Told from the other versions so that it can be refused by name.
            "N5" => {
                let is_read = !n5::is_attributes(br#"{"n5": "2.5.0"}"#);
                differences.check("n5", "read", &row["read"], &[is_read]);
                continue;
            }
            other => panic!("{other}"),
        };
        for name in quoted(&row["for example"]) {
            let parsed = make(&name);
            differences.check(&name, "read", &row["read"], &[parsed.is_decoded()]);
            let chunks = "`chunks` without `--as`";
            differences.check(&name, chunks, &row[chunks], &[parsed.is_shown_decoded()]);
            let version = &row["version"];
            let found = everywhere(&parsed);
            let as_v2 = version == "v2" || found[0] && found[1];
            let as_v3 = version == "v3" || found[2] && found[3];
            assert!(as_v2 && as_v3, "{version}: {name}: {found:?}");
        }
    }
}

fn configuration_of_2022(name: &str) -> Value {
    match name {
        "endian" => json!({"endian": "big"}),
        "blosc" => json!({"cname": "lz4", "clevel": 5, "shuffle": 1}),
        _ => json!({"level": 1}),
    }
}

/// The data type to try a codec of numcodecs with, and its parameters.
fn numcodecs(id: &str) -> (&'static str, Value) {
    match id {
        "delta" => ("<i4", json!({"dtype": "<i4"})),
        "fixedscaleoffset" => (
            "<f4",
            json!({"offset": 0, "scale": 10, "dtype": "<f4", "astype": "<i2"}),
        ),
        "quantize" => ("<f4", json!({"digits": 1, "dtype": "<f4"})),
        "bitround" => ("<f4", json!({"keepbits": 3})),
        "astype" => ("<i4", json!({"encode_dtype": "<i2", "decode_dtype": "<i4"})),
        "packbits" => ("|b1", json!({})),
        "categorize" => ("<U2", json!({"labels": ["a"], "dtype": "<U2"})),
        "vlen-array" => ("|O", json!({"dtype": "<i4"})),
        "vlen-utf8" | "vlen-bytes" | "json2" | "json" | "msgpack2" | "msgpack" | "pickle" => {
            ("|O", json!({}))
        }
        "pcodec" => ("<i4", json!({"level": 8})),
        "zfpy" => ("<f4", json!({"mode": 4, "tolerance": 0.1})),
        _ => ("<i4", json!({})),
    }
}

/// Arrays of v2 and of a draft, the codec as a filter and as the compressor; then one of v3.
fn with_numcodecs(id: &str) -> Vec<Parsed> {
    let (dtype, parameters) = numcodecs(id);
    let mut config = parameters.clone();
    config["id"] = json!(id);
    let dtype_v2 = json!(dtype);
    let filters = [config.clone()];
    vec![
        documents::v2(&dtype_v2, &[], &config),
        documents::v2(&dtype_v2, &filters, &Value::Null),
        documents::draft(&dtype_v2, &[], Some((id, &parameters))),
        documents::draft(&dtype_v2, &filters, None),
        numcodecs_v3(id, dtype, &parameters),
    ]
}

fn numcodecs_v3(id: &str, dtype: &str, parameters: &Value) -> Parsed {
    let (data_type, fill_value) = match dtype {
        "<f4" => (json!("float32"), json!(0.0)),
        "|b1" => (json!("bool"), json!(false)),
        "<U2" => (
            json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}),
            json!(""),
        ),
        "|O" => (json!("string"), json!("")),
        _ => (json!("int32"), json!(0)),
    };
    let codec = json!({"name": format!("numcodecs.{id}"), "configuration": parameters});
    let codecs = match id {
        "delta" | "fixedscaleoffset" | "quantize" | "bitround" | "astype" | "packbits"
        | "categorize" => json!([codec, little()]),
        "pcodec" | "zfpy" => json!([codec]),
        _ if dtype == "|O" => json!([codec]),
        _ => json!([little(), codec]),
    };
    documents::v3(&data_type, &fill_value, &codecs)
}

#[test]
fn codecs_of_numcodecs() {
    let mut differences = Differences::default();
    for row in table("### Codecs of numcodecs") {
        for id in quoted(&row["id"]) {
            let all = with_numcodecs(&id);
            let [v2, v2_filter, draft, draft_filter, v3] = all.as_slice() else {
                panic!("{id}");
            };
            let columns: [(&str, &[&Parsed]); 3] = [
                ("v2", &[v2, v2_filter]),
                ("drafts", &[draft, draft_filter]),
                ("v3", &[v3]),
            ];
            for (column, sources) in columns {
                let found: Vec<bool> = sources.iter().map(|source| source.is_decoded()).collect();
                differences.check(&id, column, &row[column], &found);
            }
            for (column, sources) in [
                ("`keys --as v2`", [draft, draft_filter, v3].as_slice()),
                ("`keys --as v3`", &[v2, v2_filter, draft, draft_filter]),
            ] {
                differences.check_translation(&id, (column, &row[column]), sources, in_keys);
            }
            // Decoded chunks have no such codec any more.
            for parsed in all.iter().filter(|parsed| parsed.is_decoded()) {
                let [_, as_v2, _, as_v3] = everywhere(parsed);
                assert!(as_v2 && as_v3, "{id}");
            }
        }
    }
}

fn with_codec_v3(name: &str) -> Parsed {
    let bytes = little();
    let codec = |configuration: Value| json!({"name": name, "configuration": configuration});
    let (data_type, codecs) = match name {
        "bytes" => ("int32", json!([bytes])),
        "endian" => ("int32", json!([codec(json!({"endian": "big"}))])),
        "transpose" => ("int32", json!([codec(json!({"order": [0]})), bytes])),
        "reshape" => ("int32", json!([codec(json!({"shape": [2]})), bytes])),
        "bitround"
        | "https://codec.zarrs.dev/array_to_array/bitround"
        | "https://codec.zarrs.dev/array_to_bytes/bitround" => {
            ("float32", json!([codec(json!({"keepbits": 3})), bytes]))
        }
        "scale_offset" => (
            "float32",
            json!([codec(json!({"offset": 1, "scale": 10})), bytes]),
        ),
        "cast_value" => (
            "int32",
            json!([codec(json!({"data_type": "int16"})), bytes]),
        ),
        "sharding_indexed" => (
            "int32",
            json!([codec(json!({
                "chunk_shape": [1], "codecs": [bytes], "index_codecs": [bytes],
            }))]),
        ),
        "https://codec.zarrs.dev/array_to_bytes/pcodec" => ("int32", json!([codec(json!({}))])),
        "packbits" => ("bool", json!([{"name": name}])),
        "vlen-utf8" => ("string", json!([{"name": name}])),
        "vlen-bytes" => ("bytes", json!([{"name": name}])),
        "conditional" => ("int32", json!([bytes, codec(json!({"codecs": ["gzip"]}))])),
        _ => ("int32", json!([bytes, codec(json!({}))])),
    };
    let fill_value = match data_type {
        "bool" => json!(false),
        "string" => json!(""),
        "bytes" => json!([]),
        _ => json!(0),
    };
    documents::v3(&json!(data_type), &fill_value, &codecs)
}

#[test]
fn codecs_of_v3() {
    let mut differences = Differences::default();
    for row in table("### Codecs of v3") {
        for name in quoted(&row["name"]) {
            let parsed = with_codec_v3(&name);
            differences.check(&name, "decoded", &row["decoded"], &[parsed.is_decoded()]);
            for (column, view) in [
                ("`keys --as v2`", in_keys as fn((bool, bool)) -> Vec<bool>),
                ("`chunks --as v2`", in_chunks),
            ] {
                differences.check_translation(&name, (column, &row[column]), &[&parsed], view);
            }
        }
    }
}

#[test]
fn elements_of_any_length() {
    let mut differences = Differences::default();
    for row in table("### Elements of any length") {
        for id in quoted(&row["object codec"]) {
            let (dtype, parameters) = match id.as_str() {
                "categorize" => ("|O", json!({"labels": ["a"], "dtype": "|O"})),
                id => numcodecs(id),
            };
            let mut config = parameters.clone();
            config["id"] = json!(id);
            let v2 = documents::v2(&json!(dtype), &[config.clone()], &Value::Null);
            let draft = documents::draft(&json!(dtype), &[config], None);
            differences.check(&id, "v2", &row["v2"], &[v2.is_decoded()]);
            differences.check(&id, "drafts", &row["drafts"], &[draft.is_decoded()]);
            for (column, sources) in [
                ("`--as v2`", [&draft].as_slice()),
                ("`--as v3`", &[&v2, &draft]),
            ] {
                differences.check_translation(&id, (column, &row[column]), sources, in_both);
            }
        }
    }
}

#[test]
fn data_types_of_v2() {
    let mut differences = Differences::default();
    for row in table("### Data types of v2") {
        for name in quoted(&row["dtype"]) {
            // A list of fields is JSON, anything else a name.
            let dtype = serde_json::from_str(&name).unwrap_or_else(|_| json!(name));
            let v1 = documents::v1(&dtype, "none");
            let v2 = documents::v2(&dtype, &[], &Value::Null);
            let draft = documents::draft(&dtype, &[], None);
            let decoded = [v1.is_decoded(), v2.is_decoded(), draft.is_decoded()];
            differences.check(&name, "decoded", &row["decoded"], &decoded);
            for (column, sources) in [
                ("`--as v2`", [&v1, &draft].as_slice()),
                ("`--as v3`", &[&v1, &v2, &draft]),
            ] {
                differences.check_translation(&name, (column, &row[column]), sources, in_both);
            }
        }
    }
}

/// The `data_type` of a name, and a fill value.
fn type_v3(name: &str) -> (Value, Value) {
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
        "string" | "bytes" | "variable_length_bytes" | "binary" => (Value::Null, json!("")),
        "bool" => (Value::Null, json!(false)),
        "r8" => (Value::Null, json!([0])),
        "r24" => (Value::Null, json!([0, 0, 0])),
        // 1 is a value of every other number; 0 is none of `float8_e8m0fnu`.
        name if name.starts_with("complex") => (Value::Null, json!([1.0, 1.0])),
        _ => (Value::Null, json!(1)),
    };
    let data_type = match configuration {
        Value::Null => json!(name),
        configuration => json!({"name": name, "configuration": configuration}),
    };
    (data_type, fill_value)
}

#[test]
fn data_types_of_v3() {
    let mut differences = Differences::default();
    for row in table("### Data types of v3") {
        for name in quoted(&row["data_type"]) {
            let (data_type, fill_value) = type_v3(&name);
            let codecs = match name.as_str() {
                "string" => json!([{"name": "vlen-utf8"}]),
                "bytes" | "variable_length_bytes" | "binary" => json!([{"name": "vlen-bytes"}]),
                _ => json!([little()]),
            };
            let parsed = documents::v3(&data_type, &fill_value, &codecs);
            differences.check(&name, "decoded", &row["decoded"], &[parsed.is_decoded()]);
            let column = "`--as v2`";
            differences.check_translation(&name, (column, &row[column]), &[&parsed], in_both);
        }
    }
}

#[test]
fn grids_and_keys() {
    let mut differences = Differences::default();
    for row in table("### Grids, keys and the rest") {
        let what = row["what"].split(" `").next().unwrap();
        for name in quoted(&row["what"]) {
            let shown = |parsed: &Parsed| parsed.is_decoded() && everywhere(parsed) == [true; 4];
            let found = match (row["version"].as_str(), what) {
                ("v3", "chunk grid") => {
                    let configuration = match name.as_str() {
                        "rectilinear" => json!({"kind": "inline", "chunk_shapes": [[2, 2]]}),
                        _ => json!({"chunk_shape": [2]}),
                    };
                    let grid = json!({"name": name, "configuration": configuration});
                    shown(&documents::v3_with("chunk_grid", &grid).unwrap())
                }
                ("v3", "chunk grid, chunks that differ:") => {
                    let configuration = json!({"kind": "inline", "chunk_shapes": [[3, 1]]});
                    let grid = json!({"name": name, "configuration": configuration});
                    shown(&documents::v3_with("chunk_grid", &grid).unwrap())
                }
                ("v3", "chunk key encoding") => {
                    let encoding = json!({"name": name});
                    shown(&documents::v3_with("chunk_key_encoding", &encoding).unwrap())
                }
                ("v3", "member") => documents::v3_with(&name, &json!([{"name": "any"}])).is_ok(),
                ("v2", "dimension separator") => {
                    shown(&documents::v2_with("dimension_separator", &json!(name)))
                }
                ("v2", "order") => shown(&documents::v2_with("order", &json!(name))),
                ("drafts", "storage transformer") => {
                    documents::draft_with_transformer(&name).is_ok_and(|parsed| shown(&parsed))
                }
                (version, what) => panic!("{version}: {what}"),
            };
            differences.check(&name, what, &row["shown"], &[found]);
        }
    }
}

#[test]
fn what_cannot_be_expressed_is_refused() {
    let table = table("### What a version cannot express");
    let said = |words: &str| table.iter().any(|row| row["what"].contains(words));
    let int32 = json!("int32");
    let sub_array = json!([["a", "<f4", [2]]]);
    let orders = json!([["a", "<i4"], ["b", ">i4"]]);
    let titled = json!([[["title", "a"], "<i4"]]);
    let in_keys_only = [false, true];
    let in_neither = [false, false];
    for (words, parsed, target, expected) in [
        (
            "`transpose` that neither keeps",
            documents::v3_cube(&int32, &json!(0), &json!([1, 2, 0])),
            Target::V2,
            in_keys_only,
        ),
        (
            "`bitround` of integers",
            documents::v3(
                &int32,
                &json!(0),
                &json!([{"name": "bitround", "configuration": {"keepbits": 3}}, little()]),
            ),
            Target::V2,
            in_keys_only,
        ),
        (
            "NaN of other bits",
            documents::v3(&json!("float32"), &json!("0x7fc00001"), &json!([little()])),
            Target::V2,
            in_neither,
        ),
        (
            "both byte orders",
            documents::v2(&orders, &[], &Value::Null),
            Target::V3,
            in_neither,
        ),
        (
            "sub-arrays",
            documents::v1(&sub_array, "none"),
            Target::V3,
            in_neither,
        ),
        (
            "titles",
            documents::v2(&titled, &[], &Value::Null),
            Target::V3,
            in_neither,
        ),
    ] {
        assert!(said(words), "{words}");
        assert!(parsed.is_decoded(), "{words}");
        let (keys, chunks) = parsed.is_written(target);
        assert_eq!([keys, chunks], expected, "{words}");
    }
    let reversed = documents::v3_cube(&int32, &json!(0), &json!([2, 1, 0]));
    assert_eq!(reversed.is_written(Target::V2), (true, true));
}

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
        .map(|(patterns, _)| patterns)
        .flat_map(|patterns| patterns.split('"').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
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
        matched(names, "parse"),
        matched(names, "parse_nested"),
        matched(names, "without_parameters"),
        matched(floats, "of_name"),
    ];
    let theirs: BTreeSet<String> = theirs.into_iter().flatten().collect();
    assert!(theirs.len() > 30, "{theirs:?}");
    for name in theirs {
        assert!(ours.contains(&name), "{name} is in no table");
    }
}
