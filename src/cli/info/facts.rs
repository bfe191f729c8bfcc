//! What `--info` reports of a node, as JSON.

use serde_json::{Value, json};

use crate::grid::product;
use crate::hierarchy::ArrayNode;
use crate::load::{ChunkLayout, Region, Shards};
use crate::metadata::ZarrFormat;
use crate::view::{FileFormat, FormatOutcome, GroupOutcome, cache_for};

/// The number of a Zarr version, or its name if it has no number of its own.
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
            let grid = layout.shown_grid();
            if layout.is_sharded() {
                facts["shard_shape"] = facts["chunk_shape"].take();
                facts["chunk_shape"] = grid.chunk_shape().into();
            }
            facts["chunks"] = grid.n_chunks().into();
            facts["decoded_chunk_bytes"] = layout.decoded_len().into();
            let decoded = metadata.decoding.as_ref().ok().and_then(|decoding| {
                let elements = product(&metadata.shape)?;
                let size = Some(decoding.data_type.item_size).filter(|&size| size > 0);
                elements.checked_mul(size?)
            });
            facts["decoded_bytes"] = decoded.into();
            let region = Region::all(&metadata.shape);
            let row = region.row_chunks_bytes(grid, layout.data_type().item_size);
            let row = row.filter(|_| decoded.is_some());
            let cache = row.map(|row| cache_for(row, &layout));
            facts["whole_array_cache_bytes"] = cache.into();
        }
        Err(error) => facts["error"] = error.to_string().into(),
    }
    facts
}

/// The file of a node in one of the formats that were asked for.
pub(super) struct FileFacts {
    format: FileFormat,
    file: Option<String>,
    /// Why there is no file, or what it does not hold.
    left_out: Option<String>,
}

impl FileFacts {
    pub(super) fn of_array((format, outcome): (FileFormat, FormatOutcome)) -> FileFacts {
        let (file, left_out) = match outcome {
            FormatOutcome::File(file) => (Some(file), None),
            FormatOutcome::LeftOut(error) => (None, Some(error.to_string())),
        };
        FileFacts {
            format,
            file,
            left_out,
        }
    }

    pub(super) fn of_group((format, outcome): (FileFormat, GroupOutcome)) -> FileFacts {
        let (file, left_out) = match outcome {
            Ok((file, omitted)) => {
                let reasons = omitted.iter().map(|o| format!("{}: {}", o.name, o.reason));
                let reasons: Vec<String> = reasons.collect();
                (
                    Some(file),
                    (!reasons.is_empty()).then(|| reasons.join("; ")),
                )
            }
            Err(error) => (None, Some(error.to_string())),
        };
        FileFacts {
            format,
            file,
            left_out,
        }
    }
}

/// Adds the files of a node in all formats that were asked for.
pub(super) fn insert_files(facts: &mut Value, files: Vec<FileFacts>) {
    (facts["files"], facts["left_out"]) = (json!({}), json!({}));
    for FileFacts {
        format,
        file,
        left_out,
    } in files
    {
        if let Some(file) = file {
            facts["files"][format.name()] = file.into();
        }
        if let Some(reason) = left_out {
            facts["left_out"][format.name()] = reason.into();
        }
    }
}
