//! What `--info` tells of a node, as JSON.

use serde_json::{Map, Value, json};

use crate::grid::product;
use crate::hierarchy::ArrayNode;
use crate::load::{ChunkLayout, Region, Shards};
use crate::metadata::ZarrFormat;
use crate::view::{FileFormat, GroupOutcome, Outcome, cache_for};

/// Adds a member.
pub(super) fn insert(facts: &mut Value, name: &str, value: Value) {
    facts
        .as_object_mut()
        .unwrap_or(&mut Map::new())
        .insert(name.to_owned(), value);
}

/// The number of a version, or its name where it never had one of its own.
fn version(format: ZarrFormat) -> Value {
    match format {
        ZarrFormat::PreV1 => "pre-v1".into(),
        ZarrFormat::V1 => 1.into(),
        ZarrFormat::V2 => 2.into(),
        ZarrFormat::Draft => "v3-draft".into(),
        ZarrFormat::V3 => 3.into(),
    }
}

pub(super) fn facts_of_group(format: ZarrFormat) -> Value {
    json!({ "node_type": "group", "zarr_format": version(format) })
}

pub(super) fn facts_of_array(array: &ArrayNode) -> Value {
    let metadata = &array.metadata;
    let mut facts = json!({
        "node_type": "array",
        "zarr_format": version(metadata.zarr_format),
        "shape": metadata.shape.as_slice(),
        "data_type": metadata.data_type,
        "chunk_shape": metadata.chunk_shape.as_slice(),
        "codecs": metadata.codecs,
        "dimension_names": metadata.dimension_names,
    });
    match ChunkLayout::new(metadata, Shards::Expand) {
        Ok(layout) => {
            if layout.is_sharded() {
                insert(
                    &mut facts,
                    "shard_shape",
                    metadata.chunk_shape.as_slice().into(),
                );
                let inner = layout.shown_grid().chunk_shape();
                insert(&mut facts, "chunk_shape", inner.into());
            }
            insert(&mut facts, "chunks", layout.shown_grid().n_chunks().into());
            insert(
                &mut facts,
                "decoded_chunk_bytes",
                layout.decoded_len().into(),
            );
            let decoded = metadata.decoding.as_ref().ok().and_then(|decoding| {
                let elements = product(&metadata.shape)?;
                let size = Some(decoding.data_type.item_size).filter(|&size| size > 0);
                elements.checked_mul(size?)
            });
            insert(&mut facts, "decoded_bytes", decoded.into());
            let region = Region::all(&metadata.shape);
            let item_size = layout.data_type().item_size;
            let row = region.row_chunks_bytes(layout.shown_grid(), item_size);
            let row = row.filter(|_| decoded.is_some());
            insert(
                &mut facts,
                "whole_array_cache_bytes",
                row.map(|row| cache_for(row, &layout)).into(),
            );
        }
        Err(error) => insert(&mut facts, "error", error.to_string().into()),
    }
    facts
}

/// The files of an array in the formats that were asked for, and why there are not more.
pub(super) fn insert_outcomes(facts: &mut Value, outcomes: Vec<(FileFormat, Outcome)>) {
    let (mut files, mut left_out) = (Map::new(), Map::new());
    for (format, outcome) in outcomes {
        let name = format.name().to_owned();
        match outcome {
            Outcome::File(file) => files.insert(name, file.into()),
            Outcome::LeftOut(error) => left_out.insert(name, error.to_string().into()),
        };
    }
    insert(facts, "files", files.into());
    insert(facts, "left_out", left_out.into());
}

/// The files of a group in the formats that were asked for, and what they do not hold.
pub(super) fn insert_group_outcomes(facts: &mut Value, outcomes: Vec<(FileFormat, GroupOutcome)>) {
    let (mut files, mut left_out) = (Map::new(), Map::new());
    for (format, outcome) in outcomes {
        let name = format.name().to_owned();
        match outcome {
            Ok((file, omitted)) => {
                files.insert(name.clone(), file.into());
                let reasons = omitted.into_iter();
                let reasons: Vec<String> = reasons
                    .map(|omitted| format!("{}: {}", omitted.name, omitted.reason))
                    .collect();
                if !reasons.is_empty() {
                    left_out.insert(name, reasons.join("; ").into());
                }
            }
            Err(error) => {
                left_out.insert(name, error.to_string().into());
            }
        }
    }
    insert(facts, "files", files.into());
    insert(facts, "left_out", left_out.into());
}
