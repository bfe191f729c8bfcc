//! The elements that a preview shows, if they can be read at a bearable cost.

use crate::error::FormatError;
use crate::load::ChunkLayout;
use crate::plain::Preview;
use crate::read::Samples;

/// The most chunks that are decoded for a preview.
const MOST_CHUNKS: u64 = 256;
/// The most bytes of these chunks when they are decoded.
const MOST_DECODED_BYTES: u64 = 64 << 20;
/// A preview may take this fraction of the cache while it is made, so that chunks can be decoded meanwhile.
const LIMIT_PARTS: u64 = 2;

/// A preview, and the places of its elements in the chunks.
#[derive(Debug)]
pub(super) struct SampledPreview {
    pub(super) preview: Preview,
    pub(super) samples: Samples,
}

impl SampledPreview {
    /// `preview`, with the places of its elements in an array of this `layout`.
    ///
    /// # Errors
    /// When too much would have to be decoded for a preview, or it takes too much memory of a cache of `cache_bytes`.
    pub(super) fn of(
        preview: Preview,
        layout: &ChunkLayout,
        cache_bytes: u64,
    ) -> Result<SampledPreview, FormatError> {
        let (grid, item_size) = (layout.shown_grid(), layout.data_type().item_size);
        let samples = Samples::of(preview.samples(), grid, item_size);
        let samples =
            samples.ok_or_else(|| FormatError::document("shape", "no place in the chunks"))?;
        let n_chunks = samples.n_chunks().unwrap_or(u64::MAX);
        let what = "the number of chunks to decode for a preview";
        FormatError::check_limit(what, n_chunks, MOST_CHUNKS)?;
        let decoded = layout.longest_decoded_len().unwrap_or(u64::MAX);
        let what = "the size of the chunks to decode for a preview in bytes";
        let shards = layout.whole_shard_bytes().map_or(0, |bytes| {
            let n_shards = samples.n_different(|indices| layout.stored_indices(indices));
            bytes.saturating_mul(n_shards)
        });
        let decoded = decoded.saturating_mul(n_chunks).saturating_add(shards);
        FormatError::check_limit(what, decoded, MOST_DECODED_BYTES)?;
        let what = "the memory of a preview in bytes (see --cache-size)";
        FormatError::check_limit(what, preview.memory_bytes(), cache_bytes / LIMIT_PARTS)?;
        Ok(SampledPreview { preview, samples })
    }
}
