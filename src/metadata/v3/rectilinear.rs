//! Chunk grids of chunks that may have different lengths.
//!
//! ```json
//! {"name": "rectilinear", "configuration": {"kind": "inline",
//!  "chunk_shapes": [4, [4, 4, 2], [[4, 2], 3]]}}
//! ```
//!
//! A dimension has one length for all its chunks, or a list of lengths, with runs as `[length,
//! count]`. The last chunk may extend past the array, and there may be chunks behind it. The draft of
//! ZEP 3, `rectangular`, has the lists in `chunk_shape`, without `kind` and runs.
//!
//! Source: zarr-extensions, `chunk-grids/rectilinear`; ZEP 3.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::codec::{ArrayToArray, CodecChain};
use crate::error::FormatError;
use crate::grid::{AxisChunks, ChunkLengths};
use crate::metadata::document::{Edits, JsonDocument, lengths_or_one, list_of};
use crate::metadata::json::{self, Extension, Json, Members};

/// The spelling of the lengths of a dimension in a grid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// `rectilinear`.
    Runs,
    /// `rectangular`.
    Lengths,
}

/// The chunks of a `rectilinear` grid of an array of `shape`.
pub(super) fn rectilinear(
    configuration: &Members<'_>,
    shape: &[u64],
) -> Result<ChunkLengths, FormatError> {
    let kind = configuration.require("kind")?;
    if kind.get() != "\"inline\"" {
        return Err(json::mismatch(kind, "\"inline\"").within("kind"));
    }
    let read = |value| axes(value, shape, Spelling::Runs);
    configuration.read("chunk_shapes", read)
}

/// The chunks of a `rectangular` grid of an array of `shape`.
pub(super) fn rectangular(
    configuration: &Members<'_>,
    shape: &[u64],
) -> Result<ChunkLengths, FormatError> {
    let read = |value| axes(value, shape, Spelling::Lengths);
    configuration.read("chunk_shape", read)
}

/// The document `text` of an array, in which the lists of its `rectilinear` grid cover its shape. A list that is too short
/// gets as many more chunks of its last length as it lacks. In this way, an array can grow if its grid is shown as a
/// regular one.
///
/// # Errors
/// When the text is no JSON object.
pub fn covering(text: &[u8]) -> Result<Cow<'_, [u8]>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let grid = root.get("chunk_grid");
    let grid = grid.and_then(|grid| Extension::of(grid, "a chunk grid").ok());
    let Some(grid) = grid.filter(|grid| grid.name == "rectilinear") else {
        return Ok(Cow::Borrowed(text));
    };
    let axes = grid.configuration.get("chunk_shapes");
    let axes = axes.and_then(|axes| json::array(axes, "a list").ok());
    let shape = root
        .get("shape")
        .and_then(|shape| lengths_or_one(shape).ok());
    let mut edits = Edits::default();
    for (axis, length) in axes.iter().flatten().zip(shape.iter().flatten()) {
        // If this is not a list of lengths, the parser refuses it later.
        let Some((covered, last)) = end_of(axis).filter(|end| end.0 < *length) else {
            continue;
        };
        let end = document.span(axis).end - 1;
        let run = list_of(&[last, (length - covered).div_ceil(last)]);
        edits.replace(end..end, format!(", {run}"));
    }
    Ok(Cow::Owned(edits.apply(text)))
}

/// The number of elements that the chunks of a list cover, and the length of the last chunk; `None` if `axis` is no
/// list of lengths.
fn end_of(axis: &RawValue) -> Option<(u64, u64)> {
    let Ok(Json::Array(items)) = Json::of(axis) else {
        return None;
    };
    let mut covered = 0_u64;
    let mut last = None;
    for item in items {
        let (length, count) = run(item, Spelling::Runs)?;
        covered = covered.checked_add(length.checked_mul(count)?)?;
        last = Some(length);
    }
    Some((covered, last?))
}

/// Fails where the codecs of `chain` cannot encode all of `chunks`. The chain was made for the
/// longest chunk, which is not the only one.
pub(super) fn check_codecs(chunks: &ChunkLengths, chain: &CodecChain) -> Result<(), FormatError> {
    if chunks.are_equal() {
        return Ok(());
    }
    let mut before = chain.array_to_array.iter().enumerate();
    if let Some((i, codec)) = before.find(|(_, codec)| matches!(codec, ArrayToArray::Reshape(_))) {
        let name = format!("{} of chunks of different lengths", codec.name());
        return Err(FormatError::unsupported(format!("[{i}]"), "codec", name));
    }
    let Some(sharding) = chain.sharding() else {
        return Ok(());
    };
    let order = chain.permutation(chunks.axes().len());
    for (&inner, &axis) in sharding.chunk_shape.iter().zip(&order) {
        let axis = chunks.axes().get(axis);
        if let Some(shard) = axis.and_then(|axis| axis.not_divided_by(inner)) {
            let place = format!("[{}].configuration.chunk_shape", chain.array_to_array.len());
            let problem = format!(
                "found inner chunks of {inner} elements, which do not divide a shard of {shard}"
            );
            return Err(FormatError::document(place, problem));
        }
    }
    Ok(())
}

fn axes(value: &RawValue, shape: &[u64], spelling: Spelling) -> Result<ChunkLengths, FormatError> {
    let dimensions = json::array(value, "a list")?;
    if dimensions.len() != shape.len() {
        let problem = format!(
            "found {} lists, expected {}, one for each dimension of the shape",
            dimensions.len(),
            shape.len()
        );
        return Err(FormatError::document("", problem));
    }
    let mut lengths = shape.iter().copied();
    json::each(dimensions, |chunks| {
        axis(chunks, lengths.next().unwrap_or_default(), spelling)
    })
}

/// The chunks of one dimension, which has `length` elements.
fn axis(chunks: &RawValue, length: u64, spelling: Spelling) -> Result<AxisChunks, FormatError> {
    let expected = match spelling {
        Spelling::Runs => "chunk lengths of 1 or more, or runs [length, count] of them",
        Spelling::Lengths => "chunk lengths of 1 or more",
    };
    let Json::Array(items) = Json::of(chunks)? else {
        let length = positive(chunks).ok_or_else(|| json::mismatch(chunks, expected))?;
        return Ok(AxisChunks::Equal(length));
    };
    let run = |item| run(item, spelling).ok_or_else(|| json::mismatch(item, expected));
    // A list may have a million lengths, so that they are kept only once.
    let (mut covered, mut refusal) = (Some(0_u64), None);
    let runs = items.iter().map_while(|item| match run(item) {
        Ok((length, count)) => {
            let elements = length.checked_mul(count);
            covered = covered
                .zip(elements)
                .and_then(|(sum, run)| sum.checked_add(run));
            Some((length, count))
        }
        Err(error) => {
            refusal = Some(error);
            None
        }
    });
    let axis = AxisChunks::listed(runs);
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    axis.filter(|_| covered.is_some_and(|covered| covered >= length))
        .ok_or_else(|| {
            let expected = format!("chunks that cover {length} elements, and fewer than 2^64");
            json::mismatch(chunks, &expected)
        })
}

/// The length of the chunks that an item of a list stands for, and their number; `None` if it is neither a length
/// nor a run.
fn run(item: &RawValue, spelling: Spelling) -> Option<(u64, u64)> {
    match Json::of(item).ok()? {
        Json::Array(parts) if spelling == Spelling::Runs => match parts.as_slice() {
            [length, count] => positive(length).zip(positive(count)),
            _ => None,
        },
        _ => positive(item).map(|length| (length, 1)),
    }
}

fn positive(value: &RawValue) -> Option<u64> {
    json::length(value).ok().filter(|&length| length > 0)
}
