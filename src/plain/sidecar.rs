//! `NAME.json`, the sidecar beside the files of an array: metadata that these files lack, for
//! people and programs.
//!
//! ```text
//! {
//!   "shape": [3, 4],
//!   "data_type": "<u2",                          as its document names it; of records, the fields
//!   "dimension_names": ["y", null],
//!   "zarr_format": 2,                            or a text, of the versions without a number
//!   "chunk_shape": [2, 2], "shard_shape": [4, 4],     the latter of sharded arrays
//!   "codecs": ["zlib"],
//!   "fill_value": 0,                             null when there is none
//!   "axes": [{"name": "y", "type": "space", "unit": "meter", "spacing": 0.5, "origin": 1.0}, …],
//!   "axes_error": "why",                         only where spacings and units are left out
//!   "georeference": {"crs": "EPSG:32632", "transform": [500000.0, 10.0, 0.0, 4600000.0, 0.0, -10.0],
//!     "y": "y", "x": "x"},                       what the documents tell of it; no coordinates are read
//!   "georeference_error": "why",                 only where a description in them is wrong
//!   "attributes": {…},                           all of them, in their order
//!   "attributes_error": "why",                   only where they cannot be read
//!   "files": {"npy": "t.npy"},
//!   "left_out": {"nii": "why"}
//! }
//! ```
//!
//! The file is valid JSON whatever the names and attributes are: NaN is written as the string that
//! Zarr v3 uses for it.

use super::{Array, Axis, AxisKind, Channel, Georeference};
use crate::dtype::{ByteOrder, DataType, Element, FillValue, Variable, element_text};
use crate::grid::ChunkLengths;
use crate::metadata::write::chunk_lengths;
use crate::metadata::{Attributes, JsonTree, ZarrFormat};

mod group;
mod pretty;

pub use group::{GroupSidecarFacts, LeftOut, group_sidecar};
pub use pretty::MOST_INDENTED;

/// The contents of a sidecar.
#[derive(Debug, Clone, Copy)]
pub struct SidecarFacts<'a> {
    /// The array, or the selected part of it.
    pub array: &'a Array,
    /// The Zarr version of its metadata document.
    pub zarr_format: ZarrFormat,
    /// Shape of a chunk in elements; for a sharded array, of an inner chunk.
    pub chunks: &'a ChunkLengths,
    /// Shape of a shard in elements.
    pub shards: Option<&'a ChunkLengths>,
    /// Names of the codecs, in encoding order.
    pub codecs: &'a [String],
    /// The reason why the axes of `array` have no spacings and units, although its documents say where the elements are.
    pub axes_error: Option<&'a str>,
    /// The reason why the place of `array` on the earth, or a part of it, is left out.
    pub georeference_error: Option<&'a str>,
    /// The attributes as compact JSON, if those of `array` are incomplete.
    pub attributes: Option<&'a str>,
    /// The reason why the attributes cannot be read; then `array` has none.
    pub attributes_error: Option<&'a str>,
    /// Format name and file name of each file beside this one.
    pub files: &'a [(String, String)],
    /// Format name and reason, for each format that cannot hold the array.
    pub left_out: &'a [(String, String)],
}

/// The bytes of a sidecar.
pub fn sidecar(facts: &SidecarFacts<'_>) -> Vec<u8> {
    let array = facts.array;
    let names = array
        .dimension_names
        .iter()
        .map(|name| optional(name.as_deref()));
    let codecs = facts.codecs.iter().map(|name| JsonTree::Text(name.clone()));
    let mut members = vec![
        ("shape", lengths(&array.shape)),
        ("data_type", data_type(&array.data_type)),
        ("dimension_names", JsonTree::List(names.collect())),
        ("zarr_format", zarr_format(facts.zarr_format)),
        ("chunk_shape", chunk_lengths(facts.chunks)),
    ];
    if let Some(shards) = facts.shards {
        members.push(("shard_shape", chunk_lengths(shards)));
    }
    members.extend([
        ("codecs", JsonTree::List(codecs.collect())),
        (
            "fill_value",
            fill_value(&array.data_type, &array.fill_value),
        ),
        (
            "axes",
            JsonTree::List(array.axes.iter().map(axis).collect()),
        ),
    ]);
    let mut out = pretty::PrettyObject::new();
    for (name, value) in &members {
        out.member(name, value);
    }
    if let Some(error) = facts.axes_error {
        out.member("axes_error", &JsonTree::Text(error.to_owned()));
    }
    if let Some(geo) = &array.geo {
        out.member("georeference", &georeference(array, geo));
    }
    if let Some(error) = facts.georeference_error {
        out.member("georeference_error", &JsonTree::Text(error.to_owned()));
    }
    attributes(&mut out, facts.attributes.ok_or(&array.attributes));
    attributes_error(&mut out, facts.attributes_error);
    out.member("files", &texts(facts.files));
    out.member("left_out", &texts(facts.left_out));
    out.finish()
}

/// Adds attributes, which are given as compact JSON or parsed.
fn attributes(out: &mut pretty::PrettyObject, attributes: Result<&str, &Attributes>) {
    match attributes {
        Ok(text) => out.compact("attributes", text),
        Err(parsed) => out.attributes("attributes", parsed),
    }
}

/// Adds the reason why the attributes cannot be read, if there is one.
fn attributes_error(out: &mut pretty::PrettyObject, error: Option<&str>) {
    if let Some(error) = error {
        out.member("attributes_error", &JsonTree::Text(error.to_owned()));
    }
}

fn lengths(shape: &[u64]) -> JsonTree {
    JsonTree::List(
        shape
            .iter()
            .map(|&length| JsonTree::Integer(length.into()))
            .collect(),
    )
}

fn texts(pairs: &[(String, String)]) -> JsonTree {
    let members = pairs
        .iter()
        .cloned()
        .map(|(name, text)| (name, JsonTree::Text(text)));
    JsonTree::Object(members.collect())
}

fn optional(text: Option<&str>) -> JsonTree {
    text.map_or(JsonTree::Null, |text| JsonTree::Text(text.to_owned()))
}

fn zarr_format(format: ZarrFormat) -> JsonTree {
    match format {
        ZarrFormat::PreV1 => JsonTree::Text("before 1".to_owned()),
        ZarrFormat::V1 => JsonTree::Integer(1),
        ZarrFormat::V2 => JsonTree::Integer(2),
        ZarrFormat::Draft => JsonTree::Text("draft of 3".to_owned()),
        ZarrFormat::V3 => JsonTree::Integer(3),
        ZarrFormat::N5 => JsonTree::Text("N5".to_owned()),
    }
}

/// The known parts of the place of `array` on the earth. The CRS is a code where it has one.
fn georeference(array: &Array, geo: &Georeference) -> JsonTree {
    let crs = geo.crs.as_ref().and_then(|crs| {
        let code = crs.code().map(|code| JsonTree::Text(code.to_string()));
        let wkt = || Some(JsonTree::Text(crs.wkt()?.into_owned()));
        let projjson = || Some((**crs.projjson.as_ref()?).clone());
        let parameters = || {
            let attributes = crs.grid_mapping.as_ref()?;
            Some(JsonTree::Object((**attributes).clone()))
        };
        code.or_else(wkt).or_else(projjson).or_else(parameters)
    });
    let transform = geo
        .transform
        .map(|transform| JsonTree::List(transform.map(JsonTree::Float).to_vec()));
    let axis = |axis: usize| {
        let name = array.dimension_names.get(axis).cloned().flatten();
        let number = || JsonTree::Integer(i128::try_from(axis).unwrap_or(0));
        Some(name.map_or_else(number, JsonTree::Text))
    };
    let [y, x] = geo.axes.map(axis);
    let members = [("crs", crs), ("transform", transform), ("y", y), ("x", x)];
    let known = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    JsonTree::Object(known.collect())
}

/// The known properties of an axis; the name is always present.
fn axis(axis: &Axis) -> JsonTree {
    let kind = match axis.kind {
        AxisKind::Space => Some("space"),
        AxisKind::Time => Some("time"),
        AxisKind::Channel => Some("channel"),
        AxisKind::Other => None,
    };
    let number = |value: Option<f64>| value.map(JsonTree::Float);
    let text = |text: Option<&str>| text.map(|text| JsonTree::Text(text.to_owned()));
    let members = [
        ("name", Some(optional(axis.name.as_deref()))),
        ("type", text(kind)),
        ("unit", text(axis.unit.as_deref())),
        ("spacing", number(axis.spacing)),
        ("origin", number(axis.origin)),
        ("channels", channels(&axis.channels)),
    ];
    let known = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    JsonTree::Object(known.collect())
}

/// The known properties of channels, if there are any.
fn channels(channels: &[Channel]) -> Option<JsonTree> {
    let all = channels.iter().map(|channel| {
        let color = channel
            .color
            .map(|[red, green, blue]| format!("{red:02X}{green:02X}{blue:02X}"));
        let window = channel
            .window
            .map(|window| JsonTree::List(window.map(JsonTree::Float).to_vec()));
        let members = [
            ("label", channel.label.clone().map(JsonTree::Text)),
            ("color", color.map(JsonTree::Text)),
            ("window", window),
        ];
        let known = members
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        JsonTree::Object(known.collect())
    });
    (!channels.is_empty()).then(|| JsonTree::List(all.collect()))
}

/// The name of a data type if it is unambiguous; else the fields of a record, or the object of v3.
fn data_type(data_type: &DataType) -> JsonTree {
    let spelled = match &data_type.element {
        // The fields are listed with the byte order that they have in `.raw`.
        Element::Record(_) => data_type
            .spell_v2(ByteOrder::Little)
            .or_else(|_| data_type.spell_v3()),
        // Names of v3 that need parameters: `numpy.datetime64`, `raw_bytes` and others. Typestrings
        // of v2 never contain these characters.
        Element::Time(_) | Element::Bytes { .. } | Element::Raw { .. } | Element::Text { .. }
            if data_type.name.contains(['_', '.']) =>
        {
            data_type.spell_v3()
        }
        _ => return JsonTree::Text(data_type.name.clone()),
    };
    let parsed = spelled
        .ok()
        .and_then(|text| Attributes::parse(format!("{{\"\": {text}}}").as_bytes()).ok())
        .and_then(|members| members.get("").cloned());
    parsed.unwrap_or_else(|| JsonTree::Text(data_type.name.clone()))
}

/// The fill value: numbers and text as such, other values in words.
fn fill_value(data_type: &DataType, fill_value: &FillValue) -> JsonTree {
    if !fill_value.is_defined() {
        return JsonTree::Null;
    }
    let text = element_text(data_type, fill_value.bytes());
    let value = match &data_type.element {
        Element::Bool => text.parse().ok().map(JsonTree::Bool),
        Element::Integer(_) => text.parse().ok().map(JsonTree::Integer),
        Element::Float(_) => text.parse().ok().map(JsonTree::Float),
        Element::Variable(Variable::Text) => {
            let text = str::from_utf8(fill_value.bytes()).ok();
            text.map(|text| JsonTree::Text(text.to_owned()))
        }
        Element::Text { .. } => utf32(fill_value.bytes()).map(JsonTree::Text),
        _ => None,
    };
    value.unwrap_or(JsonTree::Text(text))
}

/// The text without the NULs at its end.
fn utf32(bytes: &[u8]) -> Option<String> {
    let (units, _) = bytes.as_chunks::<4>();
    let text: Option<String> = units
        .iter()
        .map(|unit| char::from_u32(u32::from_le_bytes(*unit)))
        .collect();
    Some(text?.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{array, attributes};
    use super::*;

    fn parsed(array: &Array) -> Value {
        let facts = SidecarFacts {
            array,
            zarr_format: ZarrFormat::V3,
            chunks: &ChunkLengths::equal(&[2, 2]),
            shards: Some(&ChunkLengths::equal(&[4, 4])),
            codecs: &["bytes".to_owned(), "zstd".to_owned()],
            attributes: None,
            axes_error: None,
            georeference_error: None,
            attributes_error: None,
            files: &[("npy".to_owned(), "a\"\n.npy".to_owned())],
            left_out: &[("nii".to_owned(), "no such type".to_owned())],
        };
        serde_json::from_slice(&sidecar(&facts)).unwrap()
    }

    #[test]
    fn all_facts_are_written() {
        let mut array = array("t", r#""<f4""#, &[8, 9]);
        array.dimension_names[0] = Some("y\u{1}\"".to_owned());
        array.axes[0] = Axis {
            name: Some("y".to_owned()),
            kind: AxisKind::Space,
            spacing: Some(0.5),
            origin: Some(f64::NAN),
            unit: Some("meter".to_owned()),
            channels: Vec::new(),
        };
        array.attributes =
            attributes(r#"{"z": [NaN, -Infinity, 1e400], "a": {"b": [[1, 2], {}]}}"#);
        array.fill_value = FillValue::new(0.1_f32.to_le_bytes().to_vec(), true);
        let expected = json!({
            "shape": [8, 9],
            "data_type": "<f4",
            "dimension_names": ["y\u{1}\"", null],
            "zarr_format": 3,
            "chunk_shape": [2, 2],
            "shard_shape": [4, 4],
            "codecs": ["bytes", "zstd"],
            "fill_value": 0.1,
            "axes": [
                {"name": "y", "type": "space", "unit": "meter", "spacing": 0.5, "origin": "NaN"},
                {"name": null},
            ],
            "attributes": {"z": ["NaN", "-Infinity", "Infinity"], "a": {"b": [[1, 2], {}]}},
            "files": {"npy": "a\"\n.npy"},
            "left_out": {"nii": "no such type"},
        });
        assert_eq!(parsed(&array), expected);
    }

    #[test]
    fn types_and_fill_values_are_complete() {
        let utf32 = ['é', '\0'].map(|c| u32::from(c).to_le_bytes()).concat();
        for (typestr, fill, data_type, fill_value) in [
            (r#"">i2""#, &[1, 255][..], json!(">i2"), json!(-255)),
            (r#""|b1""#, &[1], json!("|b1"), json!(true)),
            (r#""<f2""#, &[0, 0xfc], json!("<f2"), json!("-Infinity")),
            (r#""<U2""#, &utf32, json!("<U2"), json!("é")),
            (r#""|S2""#, b"a\0", json!("|S2"), json!("b\"a\"")),
            (
                r#"[["a",">i2"],["","|V1"]]"#,
                &[0, 1, 0],
                json!([["a", ">i2"], ["", "|V1"]]),
                json!("{a: 1}"),
            ),
        ] {
            let mut array = array("t", typestr, &[1]);
            array.fill_value = FillValue::new(fill.to_vec(), true);
            let told = parsed(&array);
            assert_eq!(told["data_type"], data_type);
            assert_eq!(told["fill_value"], fill_value, "{typestr}");
        }
        let mut array = array("t", r#""<u1""#, &[]);
        let text = r#"{"name":"numpy.datetime64","configuration":{"scale_factor":10,"unit":"s"}}"#;
        let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        array.data_type = DataType::parse_v3(&raw).unwrap();
        array.fill_value = FillValue::new(vec![0; 8], false);
        let told = parsed(&array);
        assert_eq!(
            told["data_type"],
            serde_json::from_str::<Value>(text).unwrap()
        );
        assert_eq!(told["fill_value"], Value::Null);
    }
}
