//! The tables of data types.

use serde_json::{Value, json};

use super::documents::{self, little};
use super::support::{Differences, in_both};
use super::{quoted, table};

#[test]
fn data_types_of_v2() {
    let mut differences = Differences::default();
    for row in table("Data types of v2") {
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
pub(crate) fn type_v3(name: &str) -> (Value, Value) {
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

/// The codecs that turn elements of a type into bytes.
pub(crate) fn codecs_v3(name: &str) -> Value {
    match name {
        "string" => json!([{"name": "vlen-utf8"}]),
        "bytes" | "variable_length_bytes" | "binary" => json!([{"name": "vlen-bytes"}]),
        _ => json!([little()]),
    }
}

#[test]
fn data_types_of_v3() {
    let mut differences = Differences::default();
    for row in table("Data types of v3") {
        for name in quoted(&row["data_type"]) {
            let (data_type, fill_value) = type_v3(&name);
            let parsed = documents::v3(&data_type, &fill_value, &codecs_v3(&name));
            differences.check(&name, "decoded", &row["decoded"], &[parsed.is_decoded()]);
            let column = "`--as v2`";
            differences.check_translation(&name, (column, &row[column]), &[&parsed], in_both);
        }
    }
}
