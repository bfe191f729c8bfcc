//! Small documents of every version, to ask the program what it makes of them.

use serde_json::{Value, json};
use zarr_mount::error::FormatError;
use zarr_mount::metadata::draft::Generation;
use zarr_mount::metadata::render::{self, ArrayForm, Shards};
use zarr_mount::metadata::write::{self, ChunkContent, StoredDocuments};
use zarr_mount::metadata::{
    ArrayMetadata, NodeMetadata, Target, ZarrFormat, draft, n5, pre_v1, v1, v2, v3,
};

/// A document, and the array that it was read as.
pub(crate) struct Parsed {
    text: String,
    pub(crate) array: ArrayMetadata,
}

impl Parsed {
    fn of(document: &Value, parse: impl Fn(&[u8]) -> Result<ArrayMetadata, FormatError>) -> Parsed {
        let text = document.to_string();
        let array = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        Parsed { text, array }
    }

    /// The document.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_decoded(&self) -> bool {
        match &self.array.decoding {
            Ok(_) => {
                let format = self.array.zarr_format;
                let is_only_of_others = matches!(format, ZarrFormat::PreV1 | ZarrFormat::N5);
                assert!(
                    self.is_shown_decoded() || is_only_of_others,
                    "{}",
                    self.text
                );
                true
            }
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("unsupported"), "{}: {error}", self.text);
                false
            }
        }
    }

    /// Whether the `chunks` view has the array in its own version.
    pub(crate) fn is_shown_decoded(&self) -> bool {
        let shown = ArrayForm::Decoded(Shards::Expand);
        render::array(self.text.as_bytes(), &self.array, shown).is_ok()
    }

    /// Whether the `keys` view has the array in that version, and the `chunks` view with `--missing hide`.
    pub(crate) fn is_written(&self, target: Target) -> (bool, bool) {
        let source = StoredDocuments {
            document: self.text.as_bytes(),
            attributes: None,
        };
        let is_written = |content| match write::array(&self.array, &source, content, target) {
            Ok(document) => {
                assert!(reads_back(&document, target), "{}", self.text);
                true
            }
            Err(_) => false,
        };
        (
            is_written(ChunkContent::Encoded(Shards::Expand)),
            is_written(ChunkContent::Decoded(Shards::Expand)),
        )
    }
}

/// Whether what was written is a document that can be decoded.
fn reads_back(document: &[u8], target: Target) -> bool {
    match target {
        Target::V2 => v2::parse_array(document).is_ok_and(|array| array.decoding.is_ok()),
        Target::V3 => matches!(
            v3::parse(document),
            Ok(NodeMetadata::Array(array)) if array.decoding.is_ok()
        ),
    }
}

/// A dataset of N5 with this compression.
pub(crate) fn n5(compression: &str) -> Parsed {
    let document = json!({
        "dimensions": [4], "blockSize": [2], "dataType": "int32",
        "compression": {"type": compression},
    });
    Parsed::of(&document, n5::parse_array)
}

pub(crate) fn pre_v1(cname: &str) -> Parsed {
    let document = json!({
        "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": 0,
        "cname": cname, "clevel": 5, "shuffle": 1,
    });
    Parsed::of(&document, pre_v1::parse_array)
}

pub(crate) fn v1(dtype: &Value, compression: &str) -> Parsed {
    let options = match compression {
        "blosc" => json!({"cname": "lz4", "clevel": 5, "shuffle": 1}),
        "lzma" => json!({"format": 1, "check": 0, "preset": 1, "filters": null}),
        "zlib" | "gzip" | "bz2" => json!(1),
        _ => Value::Null,
    };
    let document = json!({
        "zarr_format": 1, "shape": [4], "chunks": [2], "dtype": dtype, "fill_value": null,
        "order": "C", "compression": compression, "compression_opts": options,
    });
    Parsed::of(&document, v1::parse_array)
}

/// A v2 array whose codecs are objects with an `id`.
pub(crate) fn v2(dtype: &Value, filters: &[Value], compressor: &Value) -> Parsed {
    Parsed::of(&v2_text(dtype, filters, compressor), v2::parse_array)
}

fn v2_text(dtype: &Value, filters: &[Value], compressor: &Value) -> Value {
    json!({
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": dtype, "fill_value": null,
        "order": "C", "compressor": compressor, "filters": filters,
    })
}

pub(crate) fn v2_with(member: &str, value: &Value) -> Parsed {
    let mut document = v2_text(&json!("<i4"), &[], &Value::Null);
    document[member] = value.clone();
    Parsed::of(&document, v2::parse_array)
}

/// A draft's array with filters among its attributes, as zarr-python 2 wrote it.
pub(crate) fn draft(
    dtype: &Value,
    filters: &[Value],
    compressor: Option<(&str, &Value)>,
) -> Parsed {
    let data_type = match dtype.as_str() {
        // Only these are types of the draft itself.
        Some(name) if !name.contains(['O', 'S', 'U', 'V', 'M', 'm', 'c']) => dtype.clone(),
        _ => json!({"extension": "TODO", "type": dtype, "fallback": null}),
    };
    let mut document = json!({
        "shape": [4], "data_type": data_type, "fill_value": null, "chunk_memory_layout": "C",
        "chunk_grid": {"type": "regular", "chunk_shape": [2], "separator": "/"},
        "attributes": {"filters": filters}, "extensions": [],
    });
    if let Some((name, configuration)) = compressor {
        let uri = format!("https://purl.org/zarr/spec/codec/{name}/1.0");
        document["compressor"] = json!({"codec": uri, "configuration": configuration});
    }
    Parsed::of(&document, |text| {
        draft::parse_array(text, Generation::Protocol)
    })
}

/// An array of the text of December 2022.
pub(crate) fn draft_of_2022(data_type: &str, codec: Option<(&str, &Value)>) -> Parsed {
    let codecs: Vec<Value> = codec
        .into_iter()
        .map(|(name, configuration)| {
            let uri = format!("https://purl.org/zarr/spec/codecs/{name}/1.0");
            json!({"type": uri, "configuration": configuration})
        })
        .collect();
    let document = json!({
        "shape": [4], "data_type": data_type, "fill_value": 0, "chunk_memory_layout": "C",
        "chunk_grid": {"type": "regular", "chunk_shape": [2], "separator": "/"},
        "codecs": codecs, "attributes": {}, "extensions": [],
    });
    Parsed::of(&document, |text| draft::parse_array(text, Generation::Core))
}

/// A draft's array in shards.
pub(crate) fn draft_with_transformer(name: &str) -> Result<Parsed, FormatError> {
    let uri = format!("https://purl.org/zarr/spec/storage_transformers/{name}/1.0");
    let document = json!({
        "shape": [4], "data_type": "<i4", "fill_value": 0, "chunk_memory_layout": "C",
        "chunk_grid": {"type": "regular", "chunk_shape": [1], "separator": "/"},
        "attributes": {}, "extensions": [],
        "storage_transformers": [{
            "extension": uri, "type": "indexed", "configuration": {"chunks_per_shard": [2]},
        }],
    });
    let text = document.to_string();
    let array = draft::parse_array(text.as_bytes(), Generation::Protocol)?;
    Ok(Parsed { text, array })
}

pub(crate) fn v3(data_type: &Value, fill_value: &Value, codecs: &Value) -> Parsed {
    let document = v3_text(data_type, fill_value, codecs);
    parse_v3(&document).unwrap_or_else(|error| panic!("{document}: {error}"))
}

fn v3_text(data_type: &Value, fill_value: &Value, codecs: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill_value, "codecs": codecs,
    })
}

/// An array of three dimensions that are transposed.
pub(crate) fn v3_cube(data_type: &Value, fill_value: &Value, order: &Value) -> Parsed {
    let transpose = json!({"name": "transpose", "configuration": {"order": order}});
    let mut document = v3_text(data_type, fill_value, &json!([transpose, little()]));
    document["shape"] = json!([4, 6, 8]);
    document["chunk_grid"]["configuration"]["chunk_shape"] = json!([2, 3, 4]);
    parse_v3(&document).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// An array of int32 with another member.
pub(crate) fn v3_with(member: &str, value: &Value) -> Result<Parsed, FormatError> {
    let mut document = v3_text(&json!("int32"), &json!(0), &json!([little()]));
    document[member] = value.clone();
    parse_v3(&document)
}

fn parse_v3(document: &Value) -> Result<Parsed, FormatError> {
    let text = document.to_string();
    match v3::parse(text.as_bytes())? {
        NodeMetadata::Array(array) => Ok(Parsed {
            text,
            array: *array,
        }),
        NodeMetadata::Group => panic!("no array: {document}"),
    }
}

pub(crate) fn little() -> Value {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}
