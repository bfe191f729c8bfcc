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

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::codec::{CodecChain, IndexLayout, IndexLocation, VariableLength, framed};
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::grid::{AxisChunks, ChunkGrid, ChunkLengths, Dims, product, rank_of};
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
    /// Bytes of the longest decoded chunk; `None` when elements have variable length.
    longest_len: Option<u64>,
    absent: Option<Absent>,
}

/// The decoded bytes of absent chunks.
#[derive(Debug)]
struct Absent {
    /// Whether the number of elements comes first, because the elements have variable length.
    has_count: bool,
    /// One element, as a decoded chunk has it.
    element: FillValue,
}

/// One level of sharding, outermost first.
#[derive(Debug)]
pub(super) struct ShardLevel {
    /// The codecs of the level. Its bytes-to-bytes codecs are undone once for the whole shard,
    /// before the index is read.
    pub(super) chain: CodecChain,
    /// The index of the longest shard; [`ChunkLayout::index_of`] is that of each shard.
    pub(super) index: IndexLayout,
    pub(super) location: IndexLocation,
    /// The grid of all shards of this level, in array axes.
    shards: ChunkGrid,
    /// Shape of their inner chunks, in array axes.
    inner: Dims,
    /// Codec axis `i` is array axis `permutation[i]`.
    permutation: Vec<usize>,
    /// The most bytes that a shard can have after its bytes-to-bytes codecs were undone.
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
        let stored = grid(&metadata.shape, &metadata.chunks)?;
        let mut levels = Vec::new();
        let mut chain = decoding.codecs.clone();
        let mut chunks = metadata.chunks.clone();
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
                    // For elements of variable length, only `--max-chunk` limits the number of
                    // bytes.
                    body_limit: decoded_len(&chunks.longest(), &data_type)?
                        .map_or(u64::MAX, |len| chain.array_bytes_limit(len)),
                    shards: grid(&metadata.shape, &chunks)?,
                    inner: inner.clone(),
                    permutation: permutation.clone(),
                    chain: chain.clone(),
                };
                outer.extend(chain.array_to_array.iter().cloned());
                data_type = chain.encoded_type(&data_type);
                chain = sharding.codecs.clone();
                chunks = ChunkLengths::equal(&inner);
                levels.push(level);
            }
        }
        outer.append(&mut chain.array_to_array);
        chain.array_to_array = outer;
        let shown = grid(&metadata.shape, &chunks)?;
        let longest_len = decoded_len(shown.longest_chunk(), &decoding.data_type)?;
        let absent = Absent::new(decoding, &chain, shown.longest_chunk());
        Ok(ChunkLayout {
            stored,
            shown,
            levels,
            chain,
            data_type: decoding.data_type.clone(),
            fill_value: decoding.fill_value.clone(),
            longest_len,
            absent,
        })
    }

    /// The grid of shown chunks, which are the stored chunks or the innermost chunks of the shards.
    pub fn shown_grid(&self) -> &ChunkGrid {
        &self.shown
    }

    /// The most bytes of a shard that has to be decompressed as a whole before any of its chunks; `None` if no shard
    /// has to.
    pub fn whole_shard_bytes(&self) -> Option<u64> {
        let levels = self.levels.iter();
        let compressed = levels.filter(|level| !level.chain.bytes_to_bytes.is_empty());
        compressed.map(|level| level.body_limit).max()
    }

    /// Whether stored objects are shards of shown chunks.
    pub fn is_sharded(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Bytes of the decoded chunk `indices`; `None` when elements have variable length, so that the
    /// length is known only after decoding, and where the grid does not say the shape of the chunk.
    pub fn decoded_len(&self, indices: &[u64]) -> Option<u64> {
        if self.shown.is_regular() {
            return self.longest_len;
        }
        self.longest_len?;
        product(&self.shown.chunk_shape(indices)?)?.checked_mul(self.data_type.item_size)
    }

    /// Bytes of the longest decoded chunk; `None` when elements have variable length.
    pub fn longest_decoded_len(&self) -> Option<u64> {
        self.longest_len
    }

    /// Bytes of each decoded chunk; `None` when elements have variable length, or the chunks have
    /// different shapes.
    pub fn common_decoded_len(&self) -> Option<u64> {
        self.longest_len.filter(|_| self.shown.is_regular())
    }

    /// Whether absent chunks have bytes that can be shown. Otherwise their elements cannot be encoded.
    pub fn shows_absent(&self) -> bool {
        self.absent.is_some()
    }

    /// Bytes of the chunk `indices` where it is absent; `None` when it cannot be shown.
    pub fn absent_len(&self, indices: &[u64]) -> Option<u64> {
        let absent = self.absent.as_ref()?;
        if !absent.has_count {
            return self.decoded_len(indices);
        }
        let elements = product(&self.shown.chunk_shape(indices)?)?;
        let items = elements.checked_mul(absent.element.item_size())?;
        items.checked_add(COUNT_BYTES)
    }

    /// Fills `out` with the bytes of the absent chunk `indices` from `offset` on, or with zeros where
    /// [`absent_len`](Self::absent_len) is `None`.
    pub fn fill_absent(&self, indices: &[u64], offset: u64, out: &mut [u8]) {
        let Some(absent) = &self.absent else {
            out.fill(0);
            return;
        };
        if !absent.has_count {
            absent.element.fill(offset, out);
            return;
        }
        let elements = self.shown.chunk_shape(indices);
        let elements = elements.and_then(|shape| u32::try_from(product(&shape)?).ok());
        let head = elements.unwrap_or_default().to_le_bytes();
        let from = usize::try_from(offset).ok();
        let head = from.and_then(|at| head.get(at..)).unwrap_or_default();
        let (first, rest) = out.split_at_mut(head.len().min(out.len()));
        for (to, from) in first.iter_mut().zip(head) {
            *to = *from;
        }
        let offset = offset.saturating_sub(COUNT_BYTES);
        absent.element.fill(offset, rest);
    }

    /// The fill value, which is the value of all elements of absent chunks.
    pub fn fill_value(&self) -> &FillValue {
        &self.fill_value
    }

    /// Whether the encoded bytes of a shown chunk are its decoded bytes.
    pub fn is_identity(&self) -> bool {
        self.chain.is_identity(&self.data_type)
    }

    /// The codecs of a shown chunk, including the transpositions of outer levels. The counts in a
    /// shard are those of the longest one.
    pub(super) fn chain(&self) -> &CodecChain {
        &self.chain
    }

    /// The shape and the codecs of the shown chunk `indices`.
    ///
    /// # Errors
    /// When the grid does not say the shape of such a chunk.
    pub(super) fn shape_and_chain(
        &self,
        indices: &[u64],
    ) -> Result<(Cow<'_, [u64]>, Cow<'_, CodecChain>), FormatError> {
        let shape = self.shown.chunk_shape(indices).ok_or_else(|| {
            FormatError::document("chunk_grid", format!("found no chunk {indices:?}"))
        })?;
        let chain = match &shape {
            Cow::Borrowed(_) => Cow::Borrowed(&self.chain),
            Cow::Owned(shape) => self.chain.for_shape(shape)?,
        };
        Ok((shape, chain))
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

    /// The indices of the stored chunk that holds the shown chunk `indices`. If `indices` has only the leading
    /// dimensions, so has the result. Behind the last stored chunk of a list, the index is the number of stored chunks.
    pub fn stored_indices(&self, indices: &[u64]) -> Dims {
        let axes = axes_of(&self.stored, &self.shown);
        axes.zip(indices)
            .map(|(axes, &index)| outer_of(axes, index))
            .collect()
    }

    /// The number of stored chunks in each dimension.
    pub fn stored_counts(&self) -> &[u64] {
        self.stored.counts()
    }

    /// In each dimension, the first shown chunk that is in the stored chunk `stored`, and the number of shown chunks in
    /// it, at least 1. `None` if the grid does not say the shape of such a chunk. If `stored` has only the leading
    /// dimensions, so has the result.
    pub fn shown_in(&self, stored: &[u64]) -> Option<SmallVec<[ShownInAxis; 6]>> {
        let axes = axes_of(&self.stored, &self.shown);
        axes.zip(stored)
            .map(|(axes, &index)| inner_of(axes, index))
            .collect()
    }

    /// Like [`shown_in`](Self::shown_in), along one axis, where `index` is that of the stored chunk.
    pub fn shown_along(&self, axis: usize, index: u64) -> Option<ShownInAxis> {
        inner_of((self.stored.axis(axis)?, self.shown.axis(axis)?), index)
    }

    /// Like [`shown_in`](Self::shown_in), for the shard of `level` that has the shown chunk `indices`.
    pub(super) fn shown_in_shard(
        &self,
        level: &ShardLevel,
        indices: &[u64],
    ) -> Option<SmallVec<[ShownInAxis; 6]>> {
        let axes = axes_of(&level.shards, &self.shown);
        axes.zip(indices)
            .map(|(axes, &index)| inner_of(axes, outer_of(axes, index)))
            .collect()
    }

    /// The slot of the shown chunk `indices` at nesting `level`; `None` never happens for a
    /// chunk of the grid.
    pub(super) fn slot(&self, level: &ShardLevel, indices: &[u64]) -> Option<u64> {
        let axes: Option<SmallVec<[(u64, u64); 6]>> = level
            .permutation
            .iter()
            .map(|&axis| {
                let shown = *self.shown.longest_chunk().get(axis)?;
                let start = indices.get(axis)?.checked_mul(shown)?;
                let shards = level.shards.axis(axis)?;
                let (first, length) = shards.span(shards.chunk_at(start))?;
                let inner = *level.inner.get(axis)?;
                let within = start.checked_sub(first)?.checked_div(inner)?;
                Some((within, length.checked_div(inner)?))
            })
            .collect();
        let (local, counts): (Dims, Dims) = axes?.into_iter().unzip();
        rank_of(&local, &counts)
    }

    /// The encoding of the index of the shard of `level` that has the shown chunk `indices`; `None`
    /// outside of the grid.
    pub(super) fn index_of<'a>(
        &self,
        level: &'a ShardLevel,
        indices: &[u64],
    ) -> Option<Cow<'a, IndexLayout>> {
        if level.shards.is_regular() {
            return Some(Cow::Borrowed(&level.index));
        }
        let counts = level.permutation.iter().map(|&axis| {
            let start = indices
                .get(axis)?
                .checked_mul(*self.shown.longest_chunk().get(axis)?)?;
            let shards = level.shards.axis(axis)?;
            let (_, length) = shards.span(shards.chunk_at(start))?;
            length.checked_div(*level.inner.get(axis)?)
        });
        let counts: Dims = counts.collect::<Option<_>>()?;
        level.index.for_counts(&counts).ok().map(Cow::Owned)
    }

    /// The rank, among all shards of nesting `level`, of the one that the shown chunk `indices`
    /// lies in; `None` never happens for a chunk of the grid. Outside of the grid, it is the rank among the
    /// shards of its stored chunk, after all of those in the grid.
    pub(super) fn shard_rank(&self, level: &ShardLevel, indices: &[u64]) -> Option<u64> {
        let axes = axes_of(&level.shards, &self.shown).zip(indices);
        let place: Dims = axes.map(|(axes, &index)| outer_of(axes, index)).collect();
        let counts = level.shards.counts();
        rank_of(&place, counts).or_else(|| {
            let stored = self.shown_in(&self.stored_indices(indices))?;
            let axes = axes_of(&level.shards, &self.shown).zip(stored);
            let within = axes.zip(&place).map(|((axes, shown), place)| {
                let (first, last) = (shown.first, shown.first.checked_add(shown.count - 1)?);
                let (first, last) = (outer_of(axes, first), outer_of(axes, last));
                Some((place.checked_sub(first)?, last - first + 1))
            });
            let within: Option<SmallVec<[(u64, u64); 6]>> = within.collect();
            let (within, per_stored): (Dims, Dims) = within?.into_iter().unzip();
            let all = counts.iter().copied().try_fold(1, u64::checked_mul)?;
            rank_of(&within, &per_stored)?.checked_add(all)
        })
    }
}

/// The shown chunks that a stored chunk, or a shard, has along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownInAxis {
    /// The first of them.
    pub first: u64,
    /// How many there are, at least 1.
    pub count: u64,
}

/// The lengths of outer chunks, and of the shown chunks that they consist of, along one axis.
type AxisOfBoth<'a> = (&'a AxisChunks, &'a AxisChunks);

/// The axes of a grid of stored chunks or shards, and of the shown chunks.
fn axes_of<'a>(outer: &'a ChunkGrid, shown: &'a ChunkGrid) -> impl Iterator<Item = AxisOfBoth<'a>> {
    outer.chunks().axes().iter().zip(shown.chunks().axes())
}

/// The outer chunk that shown chunk `index` is in.
fn outer_of((outer, shown): AxisOfBoth<'_>, index: u64) -> u64 {
    match (outer, shown) {
        (AxisChunks::Equal(outer), AxisChunks::Equal(shown)) => index / (outer / shown).max(1),
        (AxisChunks::Listed(_), AxisChunks::Equal(shown)) => {
            outer.chunk_at(index.saturating_mul(*shown))
        }
        // A list of lengths occurs only where chunks are shown as they are stored.
        (_, AxisChunks::Listed(_)) => index,
    }
}

/// The shown chunks that outer chunk `index` has.
fn inner_of((outer, shown): AxisOfBoth<'_>, index: u64) -> Option<ShownInAxis> {
    let (first, count) = match (outer, shown) {
        (AxisChunks::Equal(outer), AxisChunks::Equal(shown)) => {
            let count = (outer / shown).max(1);
            (index.checked_mul(count)?, count)
        }
        (AxisChunks::Listed(_), AxisChunks::Equal(shown)) => {
            let (start, length) = outer.span(index)?;
            (start / shown, (length / shown).max(1))
        }
        (_, AxisChunks::Listed(_)) => (index, 1),
    };
    Some(ShownInAxis { first, count })
}

/// The length of the number of elements, which comes first in a chunk of elements of variable length.
const COUNT_BYTES: u64 = size_of::<u32>() as u64;

impl Absent {
    /// `longest` is the shape of the longest chunk.
    fn new(decoding: &Decoding, chain: &CodecChain, longest: &[u64]) -> Option<Absent> {
        if !decoding.data_type.is_variable() {
            return Some(Absent {
                has_count: false,
                element: decoding.fill_value.clone(),
            });
        }
        match chain.variable_length()? {
            VariableLength::Text | VariableLength::Bytes => {}
            _ => return None,
        }
        let count = u32::try_from(product(longest)?).ok()?;
        let element = FillValue::new(framed(decoding.fill_value.bytes())?, true);
        let items = u64::from(count).checked_mul(element.item_size())?;
        items.checked_add(COUNT_BYTES)?;
        Some(Absent {
            has_count: true,
            element,
        })
    }
}

fn grid(shape: &[u64], chunks: &ChunkLengths) -> Result<ChunkGrid, FormatError> {
    let grid = ChunkGrid::of(shape, chunks.clone())
        .ok_or_else(|| FormatError::document("chunk_grid", "no chunks that cover the array"))?;
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

/// The most chunks that an array can have to be decoded. An array with more is shown only by its
/// stored keys.
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
