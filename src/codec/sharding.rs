//! The `sharding_indexed` codec: a chunk made of inner chunks, and an index of them.
//!
//! Spec: <https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/index.html>.
//! Name: v3 `sharding_indexed`.
//!
//! ```json
//! { "name": "sharding_indexed", "configuration": { "chunk_shape": [2, 2],
//!   "codecs": [ { "name": "bytes", "configuration": { "endian": "little" } } ],
//!   "index_codecs": [ { "name": "bytes", "configuration": { "endian": "little" } },
//!                     { "name": "crc32c" } ],
//!   "index_location": "end" } }
//! ```
//!
//! This file decodes whole shards, and `encode` encodes them; single inner chunks are found through the
//! [`IndexLayout`]. Inner chunks may be anywhere in the shard, in any order, and share bytes.

mod encode;

use super::{
    ChunkSpec, CodecChain, EntryState, IndexLayout, IndexLocation,
    strided::{StridedAxes, StridedAxis, c_strides, walk},
};
use crate::{
    buffers::zeroed,
    dtype::FillValue,
    error::FormatError,
    grid::{self, Dims},
};

const NAME: &str = "sharding_indexed";

/// A shard's shape in inner chunks, and how they and the index are encoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShardingCodec {
    /// The shape of an inner chunk, in the axes that the codec is given (after transposes).
    pub chunk_shape: Dims,
    /// Codecs of the inner chunks.
    pub codecs: CodecChain,
    /// Encoding of the index.
    pub index: IndexLayout,
    /// Which end the index is at.
    pub location: IndexLocation,
    /// Inner chunks along each axis.
    pub chunks_per_shard: Dims,
}

impl ShardingCodec {
    /// The same codec for shards of another `shape`, in the axes that the codec is given. The inner chunks
    /// have the same shape; only their number in a shard differs.
    ///
    /// # Errors
    /// When the inner chunks do not divide the shard.
    pub(super) fn for_shape(&self, shape: &[u64]) -> Result<ShardingCodec, FormatError> {
        let counts = shape.iter().zip(&self.chunk_shape);
        let counts: Option<Dims> = counts
            .map(|(shard, inner)| (shard.checked_rem(*inner)? == 0).then(|| shard / inner))
            .collect();
        let counts = counts.ok_or_else(|| refused("inner chunks do not divide the shard"))?;
        Ok(ShardingCodec {
            index: self.index.for_counts(&counts)?,
            chunks_per_shard: counts,
            ..self.clone()
        })
    }

    /// An upper bound of the memory that [`decode`](Self::decode) takes beside its buffers, for a
    /// shard of `decoded_len` bytes: one inner chunk, and the memory of its codecs.
    pub(super) fn scratch_bytes(&self, decoded_len: u64) -> u64 {
        let inner = self.inner_len(decoded_len);
        inner.saturating_add(self.codecs.scratch_bytes(inner))
    }

    /// The maximum encoded length of a shard that is accepted where the length must be bounded: the
    /// index, inner chunks that their codecs could not compress, and as much again for gaps.
    pub(super) fn encoded_limit(&self, decoded_len: u64) -> u64 {
        const HEADERS: u64 = 256;
        let inner = self.inner_len(decoded_len);
        let mut inner = self.codecs.array_bytes_limit(inner);
        for _ in &self.codecs.bytes_to_bytes {
            inner = inner.saturating_add(inner / 8).saturating_add(HEADERS);
        }
        inner
            .saturating_mul(self.index.n_slots())
            .saturating_mul(2)
            .saturating_add(self.index.encoded_len())
    }

    /// The decoded length of an inner chunk of a shard of `decoded_len` bytes.
    fn inner_len(&self, decoded_len: u64) -> u64 {
        decoded_len / self.index.n_slots().max(1)
    }

    /// Decodes all inner chunks to their places in `out`; empty slots become the fill value.
    /// `spec.shape` is the shape of the shard, in the axes that this codec is given.
    ///
    /// # Errors
    /// A wrong index, or an inner chunk that its codecs refuse.
    pub(super) fn decode(
        &self,
        spec: &ChunkSpec<'_>,
        shard: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        let entries = self.verified_index(shard)?;
        let (inner, places) = self.inner_chunks(spec)?;
        let mut scratch = Vec::new();
        for slot in 0..self.index.n_slots() {
            let start = places.start(slot).ok_or_else(|| refused("slot outside"))?;
            match entries.entry(slot)? {
                None => places.fill(spec.fill, start, out),
                Some(encoded) if places.is_one_run() => {
                    let out = out.get_mut(start..start + places.run_len);
                    self.codecs
                        .decode(&inner, encoded, out.unwrap_or_default())?;
                }
                Some(encoded) => {
                    if scratch.len() != places.inner_len {
                        scratch = zeroed(places.inner_len)?;
                    }
                    self.codecs.decode(&inner, encoded, &mut scratch)?;
                    places.scatter(&scratch, start, out);
                }
            }
        }
        Ok(())
    }

    /// The specification of the inner chunks of a shard, and their places in it.
    fn inner_chunks<'a>(
        &'a self,
        spec: &ChunkSpec<'a>,
    ) -> Result<(ChunkSpec<'a>, InnerRuns), FormatError> {
        let inner = ChunkSpec {
            shape: &self.chunk_shape,
            ..*spec
        };
        let item_size = usize::try_from(spec.dtype.item_size).unwrap_or(0);
        let places = InnerRuns::new(self, spec.shape, item_size)
            .ok_or_else(|| refused("inner chunks do not fit"))?;
        Ok((inner, places))
    }

    pub(super) fn verified_index<'a>(
        &'a self,
        shard: &'a [u8],
    ) -> Result<VerifiedIndex<'a>, FormatError> {
        let mut refusal = refused("no index");
        for layout in self.index.candidates() {
            match self.entries(layout, shard) {
                Ok(entries) => return Ok(entries),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    /// The index, if it has this layout.
    fn entries<'a>(
        &self,
        layout: &'a IndexLayout,
        shard: &'a [u8],
    ) -> Result<VerifiedIndex<'a>, FormatError> {
        let shard_len = shard.len() as u64;
        let start = layout.position(shard_len, self.location)?;
        let index =
            range_of(shard, start, layout.encoded_len()).ok_or_else(|| refused("index outside"))?;
        let mut verifier = layout.verifier(shard_len);
        verifier.feed(index)?;
        verifier.finish()?;
        Ok(VerifiedIndex {
            layout,
            index,
            shard,
        })
    }
}

/// The verified index of a shard in memory.
pub(super) struct VerifiedIndex<'a> {
    layout: &'a IndexLayout,
    index: &'a [u8],
    shard: &'a [u8],
}

impl<'a> VerifiedIndex<'a> {
    /// The encoded chunk of a slot; `None` when the slot is empty.
    pub(super) fn entry(&self, slot: u64) -> Result<Option<&'a [u8]>, FormatError> {
        let (offset, nbytes) = self.layout.words(slot);
        let word = |position: u64| {
            let position = usize::try_from(position).ok()?;
            let bytes = self.index.get(position..)?.first_chunk()?;
            Some(self.layout.word(*bytes))
        };
        let words = word(offset).zip(word(nbytes));
        let (offset, nbytes) = words.ok_or_else(|| refused("slot outside the index"))?;
        match self.layout.entry(offset, nbytes, self.shard.len() as u64)? {
            EntryState::Empty => Ok(None),
            EntryState::Present(entry) => {
                let encoded = range_of(self.shard, entry.offset, entry.nbytes);
                encoded.map(Some).ok_or_else(|| refused("chunk outside"))
            }
        }
    }
}

/// An inner chunk is several runs of `run_len` contiguous bytes in the decoded shard. The runs of all
/// inner chunks are alike; only their first byte differs.
pub(super) struct InnerRuns {
    counts: Dims,
    /// The number of bytes between the starts of adjacent inner chunks, for each axis.
    steps: Vec<usize>,
    /// The axes of runs, with strides in bytes: from the inner chunk to the shard.
    axes: StridedAxes,
    run_len: usize,
    inner_len: usize,
}

impl InnerRuns {
    /// `None` when the inner chunks do not make up the shard.
    pub(super) fn new(codec: &ShardingCodec, shape: &[u64], item: usize) -> Option<InnerRuns> {
        let counts = &codec.chunks_per_shard;
        let rank = shape.len();
        let mut whole = shape.iter().zip(&codec.chunk_shape).zip(counts);
        let made_up = whole.all(|((&all, &chunk), &n)| chunk.checked_mul(n) == Some(all));
        let ranks = [codec.chunk_shape.len(), counts.len()] == [rank; 2];
        (ranks && made_up && grid::product(counts) == Some(codec.index.n_slots())).then_some(())?;

        let lengths = |shape: &[u64]| -> Option<Vec<usize>> {
            shape.iter().map(|&n| usize::try_from(n).ok()).collect()
        };
        let (shard, inner) = (lengths(shape)?, lengths(&codec.chunk_shape)?);
        let (to, from) = (c_strides(&shard, item)?, c_strides(&inner, item)?);
        let steps = to
            .iter()
            .zip(&inner)
            .map(|(n, length)| n.checked_mul(*length));
        let steps = steps.collect::<Option<Vec<usize>>>()?;
        let mut lengths = inner.iter();
        let inner_len = lengths.try_fold(item, |n, &length| n.checked_mul(length))?;

        let axes = inner.iter().zip(from).zip(to);
        let mut axes: StridedAxes = axes
            .map(|((&length, from), to)| StridedAxis { length, from, to })
            .collect();
        // Innermost axes belong to the run as long as they are contiguous on both sides.
        let mut run_len = item;
        while let Some(&axis) = axes.last()
            && (axis.to == run_len || axis.length == 1)
        {
            run_len *= axis.length;
            axes.pop();
        }
        Some(InnerRuns {
            counts: counts.clone(),
            steps,
            axes,
            run_len,
            inner_len,
        })
    }

    fn is_one_run(&self) -> bool {
        self.run_len == self.inner_len
    }

    /// The first byte of an inner chunk in the decoded shard.
    pub(super) fn start(&self, slot: u64) -> Option<usize> {
        let indices = grid::indices_of(slot, &self.counts)?;
        let mut offsets = indices.iter().zip(&self.steps);
        offsets.try_fold(0_usize, |start, (&index, step)| {
            start.checked_add(usize::try_from(index).ok()?.checked_mul(*step)?)
        })
    }

    pub(super) fn fill(&self, fill: &FillValue, start: usize, out: &mut [u8]) {
        for (_, to) in walk(&self.axes, (0, start)) {
            let run = out.get_mut(to..to + self.run_len).unwrap_or_default();
            fill.fill(0, run);
        }
    }

    /// Takes the bytes of an inner chunk out of the elements of the shard.
    fn gather(&self, elements: &[u8], start: usize, inner: &mut [u8]) {
        for (to, from) in walk(&self.axes, (0, start)) {
            let from = elements.get(from..from + self.run_len);
            let to = inner.get_mut(to..to + self.run_len);
            if let (Some(from), Some(to)) = (from, to) {
                to.copy_from_slice(from);
            }
        }
    }

    pub(super) fn scatter(&self, inner: &[u8], start: usize, out: &mut [u8]) {
        for (from, to) in walk(&self.axes, (0, start)) {
            let from = inner.get(from..from + self.run_len);
            let to = out.get_mut(to..to + self.run_len);
            if let (Some(from), Some(to)) = (from, to) {
                to.copy_from_slice(from);
            }
        }
    }
}

fn range_of(bytes: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(start).ok()?;
    let length = usize::try_from(length).ok()?;
    bytes.get(start..)?.get(..length)
}

fn refused(problem: &str) -> FormatError {
    FormatError::encoded(NAME, problem)
}

#[cfg(test)]
mod tests;
