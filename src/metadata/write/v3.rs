//! Writes the `zarr.json` of an array of another version.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::codecs::{self, InV3, Numcodec, RegisteredCodec};
use super::super::document::{JsonDocument, list_of};
use super::super::render::{self, Shards};
use super::super::{ArrayMetadata, ChunkKeyEncoding, Decoding, KeyKind, ZarrFormat};
use super::members::document;
use super::source::{ChunkContent, StoredDocuments, Target, chunk_keys, chunks};
use super::{attributes, chain};
use crate::dtype::{DataType, ItemLayout};
use crate::error::FormatError;
use crate::grid::{AxisChunks, ChunkLengths};
use crate::metadata::JsonTree;
use crate::metadata::json::{self, Extension, Json, Members};

pub(super) fn array(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
    content: ChunkContent,
) -> Result<Vec<u8>, FormatError> {
    let decoding = array.decoding.as_ref().map_err(Clone::clone)?;
    if array.zarr_format != ZarrFormat::V3 {
        check_titles(source.document)?;
    }
    let data_type = render::stored_type(decoding);
    check_field_orders(&data_type)?;
    let codecs = match content {
        ChunkContent::Encoded(shards) => encoded(decoding, shards)?,
        ChunkContent::Decoded(_) | ChunkContent::Complete(_) => decoded(decoding, &data_type)?,
    };
    let fill_value = decoding.fill_value.spell_v3(&data_type)?;
    let (attributes, names) = attributes::array_attributes_v3(array, source)?;
    let shape = list_of(&array.shape);
    let data_type = data_type.spell_v3()?;
    let grid = chunk_grid(&chunks(array, content));
    let keys = key_encoding(chunk_keys(array.chunk_keys, Target::V3));
    let names = names.map(|names| Value::from_iter(names).to_string());
    let mut members: Vec<(&str, &[u8])> = vec![
        ("zarr_format", b"3"),
        ("node_type", b"\"array\""),
        ("shape", shape.as_bytes()),
        ("data_type", data_type.as_bytes()),
        ("chunk_grid", grid.as_bytes()),
        ("chunk_key_encoding", keys.as_bytes()),
        ("fill_value", fill_value.as_bytes()),
        ("codecs", codecs.as_bytes()),
    ];
    if let Some(names) = &names {
        members.push(("dimension_names", names.as_bytes()));
    }
    members.push(("attributes", attributes.as_deref().unwrap_or(b"{}")));
    Ok(document(&members))
}

/// The longest list of chunk lengths that is shown to people, in runs of equal ones.
const MOST_RUNS: usize = 1000;

/// The member `chunk_grid` of these chunks.
pub(in crate::metadata) fn chunk_grid(chunks: &ChunkLengths) -> String {
    if !chunks.are_equal() {
        let run = |(length, count): (u64, u64)| match count {
            1 => length.to_string(),
            _ => list_of(&[length, count]),
        };
        let spelled = |axis: &AxisChunks| match axis {
            AxisChunks::Equal(length) => length.to_string(),
            AxisChunks::Listed(runs) => {
                format!("[{}]", runs.runs().map(run).collect::<Vec<_>>().join(", "))
            }
        };
        let axes: Vec<String> = chunks.axes().iter().map(spelled).collect();
        return format!(
            "{{\"name\": \"rectilinear\", \"configuration\": \
             {{\"kind\": \"inline\", \"chunk_shapes\": [{}]}}}}",
            axes.join(", ")
        );
    }
    let lengths = list_of(&chunks.longest());
    format!("{{\"name\": \"regular\", \"configuration\": {{\"chunk_shape\": {lengths}}}}}")
}

/// The lengths of chunks as the grid `rectilinear` spells them: for each axis one length, or a list of
/// lengths, with runs as `[length, count]`. The lengths of a regular grid are a chunk shape. A list of
/// more than a thousand runs is a text that says how many lengths there are.
pub fn chunk_lengths(chunks: &ChunkLengths) -> JsonTree {
    let number = |length: u64| JsonTree::Integer(length.into());
    let run = |(length, count)| match count {
        1 => number(length),
        _ => JsonTree::List(vec![number(length), number(count)]),
    };
    let axis = |axis: &AxisChunks| match axis {
        AxisChunks::Equal(length) => number(*length),
        AxisChunks::Listed(runs) if runs.n_runs() <= MOST_RUNS => {
            JsonTree::List(runs.runs().map(run).collect())
        }
        AxisChunks::Listed(runs) => {
            JsonTree::Text(format!("{} chunks, up to {}", runs.count(), axis.longest()))
        }
    };
    JsonTree::List(chunks.axes().iter().map(axis).collect())
}

/// The member `chunk_key_encoding` of chunks with these keys.
pub(in crate::metadata) fn key_encoding(keys: ChunkKeyEncoding) -> String {
    let name = match keys.kind {
        KeyKind::Default | KeyKind::Draft | KeyKind::DraftScalar => "default",
        KeyKind::V2 | KeyKind::PreV1 | KeyKind::N5 => "v2",
    };
    let separator = char::from(keys.separator);
    format!("{{\"name\": \"{name}\", \"configuration\": {{\"separator\": \"{separator}\"}}}}")
}

/// The codec list of decoded chunks, which has one codec.
fn decoded(decoding: &Decoding, data_type: &DataType) -> Result<String, FormatError> {
    if data_type.layout == ItemLayout::Variable {
        let codec = chain::object_codec(codecs::parse(&decoding.pipeline)?)?;
        return Ok(format!("[{}]", codec_text(&codec, data_type)?));
    }
    let order = data_type.element.field_orders().first().copied();
    Ok(render::bytes_codec(&data_type.layout, order).to_owned())
}

/// The codec list of chunks as they are stored.
fn encoded(decoding: &Decoding, shards: Shards) -> Result<String, FormatError> {
    let pipeline = codecs::parse(&decoding.pipeline)?;
    list_text(&chain::specs(pipeline, shards)?, &decoding.data_type)
}

fn list_text(specs: &[Extension<'_>], data_type: &DataType) -> Result<String, FormatError> {
    let texts = specs
        .iter()
        .map(|spec| codec_text(spec, data_type))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[{}]", texts.join(", ")))
}

/// The JSON of a codec under a name that v3 readers know.
fn codec_text(spec: &Extension<'_>, data_type: &DataType) -> Result<String, FormatError> {
    chain::check_frames(spec, data_type, "v3")?;
    let name = match spec.name.as_str() {
        "numcodecs.gzip" => "gzip",
        "endian" => "bytes",
        name if is_known(name) => name,
        name => return Err(FormatError::inexpressible("codecs", name, "v3")),
    };
    let configuration = if codecs::has_inner_codecs(spec) {
        let inner = codecs::list(spec.configuration.require("codecs")?)?;
        let inner = list_text(&inner, data_type)?;
        chain::object_text(&[("codecs", inner)], &spec.configuration, &["codecs"])?
    } else if name == "gzip" {
        let level = ("level", gzip_level(&spec.configuration).to_string());
        chain::object_text(&[level], &spec.configuration, &["level"])?
    } else if spec.configuration.iter().next().is_none() && !name.starts_with("numcodecs.") {
        return Ok(format!("{{\"name\": \"{name}\"}}"));
    } else {
        // zarr-python requires a configuration for every codec of numcodecs, even an empty one.
        chain::object_text(&[], &spec.configuration, &[])?
    };
    Ok(format!(
        "{{\"name\": \"{name}\", \"configuration\": {configuration}}}"
    ))
}

/// A compression level that v3 accepts. numcodecs also has `-1` for the default. Decoding does not
/// need the level.
fn gzip_level(configuration: &Members<'_>) -> u64 {
    const DEFAULT: u64 = 6;
    let level = configuration.get("level").map(json::length);
    match level {
        Some(Ok(level @ 0..=9)) => level,
        _ => DEFAULT,
    }
}

/// Whether v3 readers know the codec: it is in the specification or its registry, or it is a codec of
/// numcodecs that zarr-python offers for v3. These do not include `base64` and the object codecs.
fn is_known(name: &str) -> bool {
    match name.strip_prefix("numcodecs.") {
        Some(id) => Numcodec::of_id(id).is_some_and(|codec| codec.in_v3 == InV3::Known),
        None => RegisteredCodec::of_name(name).is_some(),
    }
}

/// Fails on a record with fields in both byte orders: a v3 record has the one order of its `bytes`
/// codec.
fn check_field_orders(data_type: &DataType) -> Result<(), FormatError> {
    if data_type.element.field_orders().len() > 1 {
        let name = "a record of fields in both byte orders";
        return Err(FormatError::inexpressible("data_type", name, "v3"));
    }
    Ok(())
}

/// Fails on a record with a field that has a title beside its name, which v3 cannot express.
fn check_titles(text: &[u8]) -> Result<(), FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let mut pending: Vec<&RawValue> = root.get("dtype").into_iter().collect();
    // In a draft the type may be inside an extension.
    if let Some(Json::Object(extension)) = root.get("data_type").map(Json::of).transpose()? {
        pending.extend(extension.get("type"));
    }
    // The type has been parsed before, so it is not nested too deeply.
    while let Some(dtype) = pending.pop() {
        let Json::Array(fields) = Json::of(dtype)? else {
            continue;
        };
        for field in fields {
            let parts = json::array(field, "a field")?;
            if let Some(name) = parts.first().filter(|name| name.get().starts_with('[')) {
                let name = format!("field {} with a title", name.get());
                return Err(FormatError::inexpressible("dtype", name, "v3"));
            }
            pending.extend(parts.get(1));
        }
    }
    Ok(())
}
