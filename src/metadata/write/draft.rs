//! Writes the documents of new nodes of the drafts of v3.
//!
//! The document of an array says the same as that of v2, under other names.

use super::super::ArrayMetadata;
use super::super::document::{JsonDocument, object_text};
use super::super::draft::Generation;
use super::super::render::Shards;
use super::attributes::array_attributes;
use super::members::document;
use super::source::{ChunkContent, StoredDocuments};
use super::v2;
use crate::error::FormatError;
use crate::metadata::carry::with_member;
use crate::metadata::json;

/// The member among the attributes that has the filters, as zarr-python 2 writes it.
const FILTERS: &str = "filters";

/// The document of `array`, whose documents in v2 or v3 are `source`.
///
/// # Errors
///
/// When the draft cannot express a feature of it, which the error names.
pub fn array_draft(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
    generation: Generation,
) -> Result<Vec<u8>, FormatError> {
    check(generation)?;
    let text = v2::array(array, source, ChunkContent::Encoded(Shards::Keep))?;
    let v2 = JsonDocument::parse(&text)?;
    let root = v2.root()?;
    let member = |name: &str| root.require(name).map(|value| v2.text_of(value));
    let attributes = array_attributes(array, source)?;
    let mut attributes = attributes.unwrap_or_else(|| b"{}".to_vec());
    let filters = root.get_some(FILTERS);
    let compressor = root.get_some("compressor");
    let compressor = compressor
        .map(|value| codec(value, generation))
        .transpose()?;
    if let Some(filters) = filters {
        let is_taken = JsonDocument::parse(&attributes)?
            .root()?
            .get(FILTERS)
            .is_some();
        if is_taken || generation == Generation::Core {
            return Err(FormatError::inexpressible(FILTERS, "filters", "this draft"));
        }
        attributes = with_member(&attributes, FILTERS, Some(v2.text_of(filters)))?;
    }
    if generation == Generation::Core && member("dtype")?.contains(&b'>') {
        return Err(FormatError::inexpressible(
            "data_type",
            "big-endian",
            "this draft",
        ));
    }
    let separator = char::from(array.chunk_keys.separator).to_string();
    let grid = object_text([
        ("type", "\"regular\"".to_owned()),
        (
            "chunk_shape",
            String::from_utf8_lossy(member("chunks")?).into_owned(),
        ),
        ("separator", format!("\"{separator}\"")),
    ]);
    let mut members: Vec<(&str, &[u8])> = vec![
        ("shape", member("shape")?),
        ("data_type", member("dtype")?),
        ("chunk_grid", grid.as_bytes()),
        ("chunk_memory_layout", member("order")?),
        ("fill_value", member("fill_value")?),
    ];
    let codecs;
    match (generation, &compressor) {
        (Generation::Core, compressor) => {
            codecs = format!("[{}]", compressor.as_deref().unwrap_or_default());
            members.push(("codecs", codecs.as_bytes()));
        }
        (_, Some(compressor)) => members.push(("compressor", compressor.as_bytes())),
        (_, None) => {}
    }
    members.push(("extensions", b"[]"));
    members.push(("attributes", &attributes));
    Ok(document(&members))
}

/// The document of a group with the object `attributes`.
///
/// # Errors
///
/// When the draft has no documents of groups that others read.
pub fn group_draft(attributes: &[u8], generation: Generation) -> Result<Vec<u8>, FormatError> {
    check(generation)?;
    Ok(document(&[
        ("extensions", b"[]"),
        ("attributes", attributes),
    ]))
}

fn check(generation: Generation) -> Result<(), FormatError> {
    if generation == Generation::Early {
        let problem = "new nodes are not written in the draft of 2019";
        return Err(FormatError::document("zarr_format", problem));
    }
    Ok(())
}

/// The compressor of v2 `{"id": .., ..}` as a codec of a draft.
fn codec(
    compressor: &serde_json::value::RawValue,
    generation: Generation,
) -> Result<String, FormatError> {
    let members = json::object(compressor, "an object")?;
    let name = members.read("id", |id| json::string(id, "a name"))?;
    let configuration = members.iter().filter(|(name, _)| *name != "id");
    let configuration = object_text(configuration.map(|(name, value)| (name, value.get())));
    let (key, codecs) = match generation {
        Generation::Core if name == "gzip" => ("type", "codecs"),
        Generation::Core => return Err(FormatError::inexpressible("codecs", name, "this draft")),
        _ => ("codec", "codec"),
    };
    let uri = format!("\"https://purl.org/zarr/spec/{codecs}/{name}/1.0\"");
    Ok(object_text([(key, uri), ("configuration", configuration)]))
}
