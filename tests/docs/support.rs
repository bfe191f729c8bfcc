//! The page "What is supported": every cell is compared with the result of the program for a document.
//!
//! A cell begins with `yes`, `no`, or `feature` (it depends on the features of this build). The first
//! column has names between backticks, and the cells of the row hold for each of them. A cell has `–` if
//! the view shows the version itself, so that nothing is translated.

use serde_json::{Value, json};
use zarr_mount::metadata::{Target, pre_v1};

use super::codecs::{numcodecs, with_codec_v3, with_numcodecs};
use super::documents::{self, Parsed, little};
use super::{quoted, table};

/// The cells with which the program does not agree.
#[derive(Default)]
pub(crate) struct Differences(Vec<String>);

impl Differences {
    /// Compares a cell with what all of `found` say.
    pub(crate) fn check(&mut self, name: &str, column: &str, cell: &str, found: &[bool]) {
        let word = cell.split([' ', ',', ';', ':']).next().unwrap_or_default();
        let said = match word {
            "yes" => true,
            "no" => false,
            "feature" => cfg!(feature = "pcodec"),
            _ => panic!("{name}, {column}: what does `{cell}` mean?"),
        };
        if found.is_empty() || found.iter().any(|&found| found != said) {
            let difference =
                format!("{name}: {column}: found {found:?}, the documentation says {cell}");
            self.0.push(difference);
        }
    }

    pub(crate) fn check_translation(
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

pub(crate) fn in_keys((keys, _): (bool, bool)) -> Vec<bool> {
    vec![keys]
}

pub(crate) fn in_chunks((_, chunks): (bool, bool)) -> Vec<bool> {
    vec![chunks]
}

pub(crate) fn in_both((keys, chunks): (bool, bool)) -> Vec<bool> {
    vec![keys, chunks]
}

/// Whether the array can be written in each version, and for each view.
pub(crate) fn everywhere(parsed: &Parsed) -> [bool; 4] {
    let (v2, v3) = (parsed.is_written(Target::V2), parsed.is_written(Target::V3));
    [v2.0, v2.1, v3.0, v3.1]
}

#[test]
fn versions_and_their_compressors() {
    let mut differences = Differences::default();
    for row in table("Versions") {
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
            "N5" => |name| documents::n5(name),
            other => panic!("{other}"),
        };
        for name in quoted(&row["for example"]) {
            let parsed = make(&name);
            differences.check(&name, "read", &row["read"], &[parsed.is_decoded()]);
            let chunks = "`chunks` without `--as`";
            differences.check(&name, chunks, &row[chunks], &[parsed.is_shown_decoded()]);
            let version = &row["version"];
            let found = everywhere(&parsed);
            // Only v3 can express stored blocks of N5, and not all of them.
            let is_n5 = version == "N5";
            let as_v2 = version == "v2" || (found[0] || is_n5) && found[1];
            let as_v3 = version == "v3" || (found[2] || is_n5) && found[3];
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

#[test]
fn elements_of_any_length() {
    let mut differences = Differences::default();
    for row in table("Elements of any length") {
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
fn grids_and_keys() {
    let mut differences = Differences::default();
    for row in table("Grids, keys and the rest") {
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
                    let configuration = match name.as_str() {
                        "rectilinear" => json!({"kind": "inline", "chunk_shapes": [[3, 1]]}),
                        _ => json!({"chunk_shape": [[3, 1]]}),
                    };
                    let grid = json!({"name": name, "configuration": configuration});
                    let parsed = documents::v3_with("chunk_grid", &grid).unwrap();
                    assert_eq!(everywhere(&parsed), [false, false, true, true], "{name}");
                    parsed.is_decoded()
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
    let table = table("What a version cannot express");
    let said = |words: &str| table.iter().any(|row| row["what"].contains(words));
    let int32 = json!("int32");
    let sub_array = json!([["a", "<f4", [2]]]);
    let orders = json!([["a", "<i4"], ["b", ">i4"]]);
    let titled = json!([[["title", "a"], "<i4"]]);
    let refused_in_keys = [false, true];
    let refused_in_both = [false, false];
    for (words, parsed, target, expected) in [
        (
            "`transpose` that neither keeps",
            documents::v3_cube(&int32, &json!(0), &json!([1, 2, 0])),
            Target::V2,
            refused_in_keys,
        ),
        (
            "`bitround` of integers",
            documents::v3(
                &int32,
                &json!(0),
                &json!([{"name": "bitround", "configuration": {"keepbits": 3}}, little()]),
            ),
            Target::V2,
            refused_in_keys,
        ),
        (
            "NaN of other bits",
            documents::v3(&json!("float32"), &json!("0x7fc00001"), &json!([little()])),
            Target::V2,
            refused_in_both,
        ),
        (
            "both byte orders",
            documents::v2(&orders, &[], &Value::Null),
            Target::V3,
            refused_in_both,
        ),
        (
            "sub-arrays",
            documents::v1(&sub_array, "none"),
            Target::V3,
            refused_in_both,
        ),
        (
            "titles",
            documents::v2(&titled, &[], &Value::Null),
            Target::V3,
            refused_in_both,
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
