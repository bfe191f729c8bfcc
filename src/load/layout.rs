//! The places of the chunks of an array: their stored objects, and their slots in shards.
//!
//! A sharded array is shown as the unsharded array of its innermost chunks. All arithmetic uses
//! *array axes*. Only the rank of a slot uses *codec axes*, which are the axes after
//! the transpositions in front of the sharding codec.
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

use crate::codec::{CodecChain, IndexLayout, IndexLocation, VariableLength, framed};
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::grid::{ChunkGrid, Dims, product, rank_of};
pub use crate::metadata::render::Shards;
use crate::metadata::{ArrayMetadata, Decoding};
use crate::store::FirstRead;

/// The places of the shown chunks of an array in its stored objects.
#[derive(Debug)]
pub struct ChunkLayout {
    stored: ChunkGrid,
    shown: ChunkGrid,
    levels: Vec<ShardLevel>,
    chain: CodecChain,
    data_type: DataType,
    fill_value: FillValue,
    decoded_len: Option<u64>,
    absent: Option<Absent>,
}

/// The decoded bytes of an absent chunk.
#[derive(Debug)]
struct Absent {
    /// The number of elements, where the elements have variable length; empty otherwise.
    head: Vec<u8>,
    /// One element, as a decoded chunk has it.
    element: FillValue,
    len: u64,
}

/// One level of sharding, outermost first.
#[derive(Debug)]
pub(super) struct ShardLevel {
    /// The codecs of the level. Its bytes-to-bytes codecs are undone once for the whole shard,
    /// before the index is read.
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
    /// Most bytes that a shard can have after its bytes-to-bytes codecs were undone.
    pub(super) body_limit: u64,
}

impl ChunkLayout {
    /// The bytes of a stored object that are read first: the index, where it is a shard.
    pub(super) fn first_read(&self) -> FirstRead {
        let Some(level) = self.levels.first() else {
            return FirstRead::Start(0);
        };
        let longest = level.index.candidates().map(IndexLayout::encoded_len).max();
        let len = longest.unwrap_or(0);
        match level.location {
            IndexLocation::Start => FirstRead::Start(len),
            IndexLocation::End => FirstRead::End(len),
        }
    }

    /// The layout of the array that `metadata` describes.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] when a size does not fit its type; the error in the metadata when
    /// the array cannot be decoded.
    pub fn new(metadata: &ArrayMetadata, shards: Shards) -> Result<ChunkLayout, FormatError> {
        let decoding = metadata.decoding.as_ref().map_err(Clone::clone)?;
        let stored = grid(&metadata.shape, &metadata.chunk_shape)?;
        let mut levels = Vec::new();
        let mut chain = decoding.codecs.clone();
        let mut chunk_shape: Dims = metadata.chunk_shape.clone();
        let mut permutation: Vec<usize> = (0..stored.rank()).collect();
        let mut data_type = decoding.data_type.clone();
        let mut outer = Vec::new();
        if shards == Shards::Expand {
            while let Some(sharding) = chain.sharding() {
                if let Some(codec) = chain.array_to_array.iter().find(|c| !c.can_be_split()) {
                    let name = format!("{} before sharding", codec.name());
                    return Err(FormatError::unsupported("codecs", "codec", name));
                }
                let here = chain.permutation(stored.rank());
                permutation = compose(&permutation, &here)?;
                let inner = to_array_axes(&sharding.chunk_shape, &permutation)?;
                let level = ShardLevel {
                    index: sharding.index.clone(),
                    location: sharding.location,
                    counts: sharding.chunks_per_shard.clone(),
                    // For elements of variable length, only `--max-chunk` limits the number of
                    // bytes.
                    body_limit: decoded_len(&chunk_shape, &data_type)?
                        .map_or(u64::MAX, |len| chain.array_bytes_limit(len)),
                    shards: grid(&metadata.shape, &chunk_shape)?,
                    inner: inner.clone(),
                    permutation: permutation.clone(),
                    chain: chain.clone(),
                };
                outer.extend(chain.array_to_array.iter().cloned());
                data_type = chain.encoded_type(&data_type);
                chain = sharding.codecs.clone();
                chunk_shape = inner;
                levels.push(level);
            }
        }
        outer.append(&mut chain.array_to_array);
        chain.array_to_array = outer;
        let shown = grid(&metadata.shape, &chunk_shape)?;
        let decoded_len = decoded_len(&chunk_shape, &decoding.data_type)?;
        let absent = Absent::new(decoding, &chain, &chunk_shape, decoded_len);
        Ok(ChunkLayout {
            stored,
            shown,
            levels,
            chain,
            data_type: decoding.data_type.clone(),
            fill_value: decoding.fill_value.clone(),
            decoded_len,
            absent,
        })
    }

    /// The grid of shown chunks, which are the stored chunks or the innermost chunks of the shards.
    pub fn shown_grid(&self) -> &ChunkGrid {
        &self.shown
    }

    /// Whether stored objects are shards of shown chunks.
    pub fn is_sharded(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Bytes of every decoded chunk; `None` when elements have variable length, so that the length
    /// is known only after decoding.
    pub fn decoded_len(&self) -> Option<u64> {
        self.decoded_len
    }

    /// Bytes of an absent chunk; `None` when its elements cannot be encoded, so that it is not
    /// shown.
    pub fn absent_len(&self) -> Option<u64> {
        self.absent.as_ref().map(|absent| absent.len)
    }

    /// Fills `out` with the bytes of an absent chunk from `offset` on, or with zeros where
    /// [`absent_len`](Self::absent_len) is `None`.
    pub fn fill_absent(&self, offset: u64, out: &mut [u8]) {
        match &self.absent {
            Some(absent) => absent.fill(offset, out),
            None => out.fill(0),
        }
    }

    /// The fill value, which is the value of all elements of absent chunks.
    pub fn fill_value(&self) -> &FillValue {
        &self.fill_value
    }

    /// Whether the encoded bytes of a shown chunk are its decoded bytes.
    pub fn is_identity(&self) -> bool {
        self.chain.is_identity(&self.data_type)
    }

    /// The codecs of a shown chunk, including the transpositions of outer levels.
    pub(super) fn chain(&self) -> &CodecChain {
        &self.chain
    }

    /// The layout of variable-length elements in a decoded chunk; `None` for elements of a fixed
    /// size.
    pub fn variable_length(&self) -> Option<VariableLength> {
        self.chain.variable_length()
    }

    /// The data type of the elements.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    pub(super) fn levels(&self) -> &[ShardLevel] {
        &self.levels
    }

    /// The indices of the stored chunk that holds the shown chunk `indices`. Where `indices` are
    /// only those of the leading dimensions, so is the result.
    pub fn stored_indices(&self, indices: &[u64]) -> Dims {
        self.shown_per_stored()
            .zip(indices)
            .map(|(per_stored, &index)| index / per_stored)
            .collect()
    }

    /// The number of stored chunks in each dimension.
    pub fn stored_counts(&self) -> &[u64] {
        self.stored.counts()
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

    /// Shown chunks in each shard of `level`, in each dimension, at least 1.
    pub(super) fn shown_per_shard(&self, level: &ShardLevel) -> impl Iterator<Item = u64> {
        let shard = level.shards.chunk_shape().iter();
        shard
            .zip(self.shown.chunk_shape())
            .map(|(&shard, &shown)| (shard / shown).max(1))
    }

    /// The rank, among all shards of nesting `level`, of the one that the shown chunk `indices`
    /// lies in; `None` never happens for a chunk of the grid. Outside of the grid, it is the rank among the
    /// shards of its stored chunk, after all of those in the grid.
    pub(super) fn shard_rank(&self, level: &ShardLevel, indices: &[u64]) -> Option<u64> {
        let chunk = self.shown.chunk_shape().iter();
        let place: Option<Dims> = indices
            .iter()
            .zip(chunk)
            .zip(level.shards.chunk_shape())
            .map(|((&index, &chunk), &outer)| index.checked_mul(chunk)?.checked_div(outer))
            .collect();
        let (place, counts) = (place?, level.shards.counts());
        rank_of(&place, counts).or_else(|| {
            let stored = self.stored.chunk_shape().iter();
            let per_stored = stored.zip(level.shards.chunk_shape());
            let per_stored: Dims = per_stored
                .map(|(&stored, &shard)| (stored / shard).max(1))
                .collect();
            let within = place.iter().zip(&per_stored);
            let within: Dims = within.map(|(index, count)| index % count).collect();
            let all = counts.iter().copied().try_fold(1, u64::checked_mul)?;
            rank_of(&within, &per_stored)?.checked_add(all)
        })
    }
}

impl Absent {
    fn new(
        decoding: &Decoding,
        chain: &CodecChain,
        chunk_shape: &[u64],
        decoded_len: Option<u64>,
    ) -> Option<Absent> {
        if let Some(len) = decoded_len {
            return Some(Absent {
                head: Vec::new(),
                element: decoding.fill_value.clone(),
                len,
            });
        }
        match chain.variable_length()? {
            VariableLength::Text | VariableLength::Bytes => {}
            _ => return None,
        }
        let count = u32::try_from(product(chunk_shape)?).ok()?;
        let head = count.to_le_bytes().to_vec();
        let element = FillValue::new(framed(decoding.fill_value.bytes())?, true);
        let items = u64::from(count).checked_mul(element.item_size())?;
        Some(Absent {
            len: items.checked_add(head.len() as u64)?,
            head,
            element,
        })
    }

    fn fill(&self, offset: u64, out: &mut [u8]) {
        let head = usize::try_from(offset).ok();
        let head = head.and_then(|at| self.head.get(at..)).unwrap_or_default();
        let (first, rest) = out.split_at_mut(head.len().min(out.len()));
        for (to, from) in first.iter_mut().zip(head) {
            *to = *from;
        }
        let offset = offset.saturating_sub(self.head.len() as u64);
        self.element.fill(offset, rest);
    }
}

fn grid(shape: &[u64], chunk_shape: &[u64]) -> Result<ChunkGrid, FormatError> {
    let grid = ChunkGrid::new(shape, chunk_shape)
        .ok_or_else(|| FormatError::document("chunk_grid", "a chunk length is zero"))?;
    // Ranks are `u64`, and the vnode numbers of all chunks must fit into one `u64` space.
    match grid.n_chunks() {
        Some(n) if n <= MAX_CHUNKS => Ok(grid),
        n => {
            let found = n.map_or_else(|| "more than 2^64".to_owned(), |n| n.to_string());
            Err(FormatError::too_large(
                "the number of chunks",
                found,
                MAX_CHUNKS,
            ))
        }
    }
}

/// Most chunks of an array that can be decoded. An array with more is shown only by its stored
/// keys.
const MAX_CHUNKS: u64 = 1 << 60;

fn decoded_len(chunk_shape: &[u64], data_type: &DataType) -> Result<Option<u64>, FormatError> {
    if data_type.is_variable() {
        return Ok(None);
    }
    product(chunk_shape)
        .and_then(|elements| elements.checked_mul(data_type.item_size))
        .filter(|&len| i64::try_from(len).is_ok())
        .map(Some)
        .ok_or_else(|| {
            let found = format!("{chunk_shape:?} x {} bytes", data_type.item_size);
            let limit = i64::MAX.unsigned_abs();
            FormatError::too_large("the size of a decoded chunk", found, limit)
        })
}

/// The array axis of each axis after the permutation `first` and then the permutation `then`.
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

#[cfg(test)]
mod tests;
