//! The report of `--info` on a node, as JSON.

use serde_json::{Value, json};

use crate::dtype::short_name;
use crate::error::FormatError;
use crate::grid::{ChunkGrid, ChunkLengths, product};
use crate::hierarchy::ArrayNode;
use crate::load::{ChunkLayout, Region, Shards};
use crate::metadata::ZarrFormat;
use crate::metadata::write::chunk_lengths;
use crate::view::{FileFormat, FormatOutcome, GroupOutcome, cache_for};

/// The names of dimensions, with `None` for a dimension without a name; `None` if no metadata names them.
pub(super) type DimensionNames = Option<Vec<Option<String>>>;

/// The number of a Zarr version, or its name if it has no number of its own.
fn version(format: ZarrFormat) -> Value {
    match format {
        ZarrFormat::PreV1 => "pre-v1".into(),
        ZarrFormat::V1 => 1.into(),
        ZarrFormat::V2 => 2.into(),
        ZarrFormat::Draft => "v3-draft".into(),
        ZarrFormat::V3 => 3.into(),
        ZarrFormat::N5 => "N5".into(),
    }
}

pub(super) fn facts_of_group(format: ZarrFormat) -> Value {
    json!({ "node_type": "group", "zarr_format": version(format) })
}

pub(super) fn facts_of_array(array: &ArrayNode, dimension_names: &DimensionNames) -> Value {
    let metadata = &array.metadata;
    let mut facts = json!({
        "node_type": "array",
        "zarr_format": version(metadata.zarr_format),
        "shape": metadata.shape.as_slice(),
        "data_type": metadata.data_type,
        "chunk_shape": lengths_of(&metadata.chunks),
        "codecs": metadata.codecs,
        "dimension_names": dimension_names,
    });
    if let Ok(decoding) = &metadata.decoding {
        facts["short_data_type"] = short_name(&decoding.data_type).into();
    }
    match ChunkLayout::new(metadata, Shards::Expand) {
        Ok(layout) => {
            let grid = layout.shown_grid();
            if layout.is_sharded() {
                facts["shard_shape"] = facts["chunk_shape"].take();
                facts["chunk_shape"] = lengths_of(grid.chunks());
            }
            if layout.is_sharded() {
                let shards = ChunkGrid::of(&metadata.shape, metadata.chunks.clone());
                facts["shards"] = shards.and_then(|shards| shards.n_chunks()).into();
            }
            facts["chunks"] = grid.n_chunks().into();
            facts["decoded_chunk_bytes"] = layout.longest_decoded_len().into();
            let decoded = metadata.decoding.as_ref().ok().and_then(|decoding| {
                let elements = product(&metadata.shape)?;
                let size = Some(decoding.data_type.item_size).filter(|&size| size > 0);
                elements.checked_mul(size?)
            });
            facts["decoded_bytes"] = decoded.into();
            let region = Region::all(&metadata.shape);
            let row = region.row_chunks_bytes(&[], grid, layout.data_type().item_size);
            let row = row.filter(|_| decoded.is_some());
            let cache = row.map(|row| cache_for(row, &layout));
            facts["whole_array_cache_bytes"] = cache.into();
            let whole = ChunkLayout::new(metadata, Shards::Keep);
            if let Err(error) = layout.check_encodes() {
                facts["not_writable"] = error.to_string().into();
            } else if let Some(doubt) = metadata.doubts.first() {
                facts["not_writable"] = doubt.as_str().into();
            } else if let Err(error) = whole.and_then(|layout| layout.check_encodes()) {
                facts["not_writable_with_shards_keep"] = error.to_string().into();
            }
        }
        Err(error) => facts["error"] = error.to_string().into(),
    }
    facts
}

/// The file of a node in one of the requested formats.
pub(super) struct FileFacts {
    pub(super) format: FileFormat,
    /// The name of the file; `None` if there is none.
    file: Option<String>,
    /// The reason why there is no file, or the names of the parts that it leaves out, with the
    /// reasons.
    pub(super) omissions: Vec<(Option<String>, String)>,
}

impl FileFacts {
    pub(super) fn of_array((format, outcome): (FileFormat, FormatOutcome)) -> FileFacts {
        match outcome {
            FormatOutcome::File(file) => FileFacts {
                format,
                file: Some(file),
                omissions: Vec::new(),
            },
            FormatOutcome::LeftOut(error) => FileFacts::absent(format, &error),
        }
    }

    pub(super) fn of_group((format, outcome): (FileFormat, GroupOutcome)) -> FileFacts {
        match outcome {
            Ok((file, omitted)) => FileFacts {
                format,
                file: Some(file),
                omissions: omitted
                    .into_iter()
                    .map(|omitted| (Some(omitted.name), omitted.reason.to_string()))
                    .collect(),
            },
            Err(error) => FileFacts::absent(format, &error),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.file.is_some()
    }

    fn absent(format: FileFormat, error: &FormatError) -> FileFacts {
        FileFacts {
            format,
            file: None,
            omissions: vec![(None, error.to_string())],
        }
    }
}

/// Adds the files of a node in all requested formats.
pub(super) fn insert_files(facts: &mut Value, files: &[FileFacts]) {
    (facts["files"], facts["left_out"]) = (json!({}), json!({}));
    for FileFacts {
        format,
        file,
        omissions,
    } in files
    {
        if let Some(file) = file {
            facts["files"][format.name()] = file.as_str().into();
        }
        let reasons = omissions.iter().map(|(part, reason)| match part {
            Some(part) => format!("{part}: {reason}"),
            None => reason.clone(),
        });
        if !omissions.is_empty() {
            facts["left_out"][format.name()] = reasons.collect::<Vec<_>>().join("; ").into();
        }
    }
}

/// The lengths of chunks, for each dimension one length or a list.
fn lengths_of(chunks: &ChunkLengths) -> Value {
    serde_json::from_str(&chunk_lengths(chunks).to_string()).unwrap_or_default()
}
