//! Where the chunks of an array are: which stored object, and which slot of which shard in it.
//!
//! A sharded array is shown as the unsharded array of its innermost chunks. All arithmetic is
//! in *array axes*; only the rank of a slot is in the axes that the sharding codec sees, after
//! the transpositions before it.
//!
//! ```text
//! shape 8, shards of 4, inner chunks of 2:
//!
//!   elements   0 1 | 2 3 | 4 5 | 6 7
//!   shown         0     1     2     3      shown chunk g covers elements g*2 ..
//!   stored           0           1         shard  = g*2 / 4
//!   slot          0     1     0     1      slot   = (g*2 mod 4) / 2
//! ```
//!
//! Source: Zarr v3 codec `sharding_indexed`.

use crate::codec::{CodecChain, IndexLayout, IndexLocation};
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::grid::{ChunkGrid, Dims, product, rank_of};
use crate::metadata::ArrayMetadata;
pub use crate::metadata::render::Shards;

/// How the shown chunks of an array lie in its stored objects.
#[derive(Debug)]
pub struct ChunkLayout {
    stored: ChunkGrid,
    shown: ChunkGrid,
    levels: Vec<ShardLevel>,
    chain: CodecChain,
    data_type: DataType,
    fill_value: FillValue,
    decoded_len: u64,
}

/// One level of sharding, outermost first.
#[derive(Debug)]
pub(super) struct ShardLevel {
    /// Its bytes-to-bytes codecs are undone once for the whole shard, before its index is read.
    pub(super) chain: CodecChain,
    pub(super) index: IndexLayout,
    pub(super) location: IndexLocation,
    /// The grid of all shards of this level, in array axes.
    shards: ChunkGrid,
    /// Shape of their inner chunks, in array axes.
    inner: Dims,
    /// Codec axis `i` is array axis `permutation[i]`.
    permutation: Vec<usize>,
    /// Inner chunks per shard, in codec axes.
    counts: Dims,
    /// Most bytes that a shard can take with its bytes-to-bytes codecs undone.
    pub(super) body_limit: u64,
}

impl ChunkLayout {
    /// The layout of an array that can be decoded.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] when a size does not fit; the metadata's own error when the
    /// array cannot be decoded.
    pub fn new(metadata: &ArrayMetadata, shards: Shards) -> Result<ChunkLayout, FormatError> {
        let decoding = metadata.decoding.as_ref().map_err(Clone::clone)?;
        let stored = grid(&metadata.shape, &metadata.chunk_shape)?;
        let mut levels = Vec::new();
        let mut chain = decoding.codecs.clone();
        let mut chunk_shape: Dims = metadata.chunk_shape.clone();
        let mut permutation: Vec<usize> = (0..stored.rank()).collect();
        let mut transposes = Vec::new();
        if shards == Shards::Expand {
            while let Some(sharding) = chain.sharding() {
                let here = chain.permutation(stored.rank());
                permutation = compose(&permutation, &here)?;
                let inner = to_array_axes(&sharding.chunk_shape, &permutation)?;
                let level = ShardLevel {
                    index: sharding.index.clone(),
                    location: sharding.location,
                    counts: sharding.chunks_per_shard.clone(),
                    body_limit: chain
                        .array_bytes_limit(decoded_len(&chunk_shape, &decoding.data_type)?),
                    shards: grid(&metadata.shape, &chunk_shape)?,
                    inner: inner.clone(),
                    permutation: permutation.clone(),
                    chain: chain.clone(),
                };
                transposes.extend(chain.array_to_array.iter().cloned());
                chain = sharding.codecs.clone();
                chunk_shape = inner;
                levels.push(level);
            }
        }
        transposes.extend(std::mem::take(&mut chain.array_to_array));
        chain.array_to_array = transposes;
        let shown = grid(&metadata.shape, &chunk_shape)?;
        let decoded_len = decoded_len(&chunk_shape, &decoding.data_type)?;
        Ok(ChunkLayout {
            stored,
            shown,
            levels,
            chain,
            data_type: decoding.data_type.clone(),
            fill_value: decoding.fill_value.clone(),
            decoded_len,
        })
    }

    /// The grid of shown chunks: the stored ones, or the innermost of the shards.
    pub fn shown_grid(&self) -> &ChunkGrid {
        &self.shown
    }

    /// Whether stored objects are shards of shown chunks.
    pub fn is_sharded(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Bytes of every decoded chunk.
    pub fn decoded_len(&self) -> Option<u64> {
        Some(self.decoded_len)
    }

    /// Bytes of an absent chunk.
    pub fn absent_len(&self) -> Option<u64> {
        Some(self.decoded_len)
    }

    /// Fills `buf` with what an absent chunk holds at `offset`.
    pub fn fill_absent(&self, offset: u64, buf: &mut [u8]) {
        self.fill_value.fill(offset, buf);
    }

    /// What absent chunks hold.
    pub fn fill_value(&self) -> &FillValue {
        &self.fill_value
    }

    /// Whether the encoded bytes of a shown chunk are its decoded bytes.
    pub fn is_identity(&self) -> bool {
        self.chain.is_identity(&self.data_type)
    }

    /// The codecs of a shown chunk, transpositions of outer levels included.
    pub(super) fn chain(&self) -> &CodecChain {
        &self.chain
    }

    pub(super) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    pub(super) fn levels(&self) -> &[ShardLevel] {
        &self.levels
    }

    /// The stored chunk that holds the shown chunk `indices`; of its first indices, the first ones.
    pub fn stored_indices(&self, indices: &[u64]) -> Dims {
        self.shown_per_stored()
            .zip(indices)
            .map(|(per_stored, &index)| index / per_stored)
            .collect()
    }

    /// Shown chunks per stored chunk in each dimension, at least 1.
    pub fn shown_per_stored(&self) -> impl Iterator<Item = u64> {
        self.stored
            .chunk_shape()
            .iter()
            .zip(self.shown.chunk_shape())
            .map(|(&stored, &shown)| (stored / shown).max(1))
    }

    /// The slot of the shown chunk `indices` at nesting `level`; `None` never happens for a
    /// chunk of the grid.
    pub(super) fn slot(&self, level: &ShardLevel, indices: &[u64]) -> Option<u64> {
        let local: Option<Dims> = level
            .permutation
            .iter()
            .map(|&axis| {
                let start = indices
                    .get(axis)?
                    .checked_mul(*self.shown.chunk_shape().get(axis)?)?;
                let within = start.checked_rem(*level.shards.chunk_shape().get(axis)?)?;
                within.checked_div(*level.inner.get(axis)?)
            })
            .collect();
        rank_of(&local?, &level.counts)
    }

    /// The rank, among all shards of nesting `level`, of the one that the shown chunk `indices`
    /// lies in; `None` never happens for a chunk of the grid.
    pub(super) fn shard_rank(&self, level: &ShardLevel, indices: &[u64]) -> Option<u64> {
        let chunk = self.shown.chunk_shape().iter();
        let place: Option<Dims> = indices
            .iter()
            .zip(chunk)
            .zip(level.shards.chunk_shape())
            .map(|((&index, &chunk), &outer)| index.checked_mul(chunk)?.checked_div(outer))
            .collect();
        rank_of(&place?, level.shards.counts())
    }
}

fn grid(shape: &[u64], chunk_shape: &[u64]) -> Result<ChunkGrid, FormatError> {
    let grid = ChunkGrid::new(shape, chunk_shape)
        .ok_or_else(|| FormatError::document("chunk_grid", "a chunk length is zero"))?;
    // Ranks are u64, and chunk numbers must fit beside each other in one space of numbers.
    match grid.n_chunks() {
        Some(n) if n <= MAX_CHUNKS => Ok(grid),
        n => Err(FormatError::TooLarge {
            what: "the number of chunks",
            found: n.map_or_else(|| "more than 2^64".to_owned(), |n| n.to_string()),
            limit: MAX_CHUNKS,
        }),
    }
}

/// Most chunks that an array may have and be more than its stored keys.
const MAX_CHUNKS: u64 = 1 << 60;

fn decoded_len(chunk_shape: &[u64], data_type: &DataType) -> Result<u64, FormatError> {
    product(chunk_shape)
        .and_then(|elements| elements.checked_mul(data_type.item_size))
        .filter(|&len| i64::try_from(len).is_ok())
        .ok_or_else(|| FormatError::TooLarge {
            what: "the size of a decoded chunk",
            found: format!("{chunk_shape:?} x {} bytes", data_type.item_size),
            limit: i64::MAX.unsigned_abs(),
        })
}

/// `first` then `then`: the array axis of each axis after both.
fn compose(first: &[usize], then: &[usize]) -> Result<Vec<usize>, FormatError> {
    then.iter()
        .map(|&axis| first.get(axis).copied())
        .collect::<Option<_>>()
        .ok_or_else(|| FormatError::document("codecs", "a transposition of another rank"))
}

fn to_array_axes(codec_axes: &[u64], permutation: &[usize]) -> Result<Dims, FormatError> {
    let mut array_axes: Dims = codec_axes.iter().map(|_| 0).collect();
    for (&length, &axis) in codec_axes.iter().zip(permutation) {
        *array_axes
            .get_mut(axis)
            .ok_or_else(|| FormatError::document("codecs", "an inner chunk of another rank"))? =
            length;
    }
    Ok(array_axes)
}
