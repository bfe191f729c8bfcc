//! Chunks of elements that differ in length.
//!
//! Transposes and shards move elements of a fixed size. For elements that differ in length, they move
//! positions in a pool of bytes instead of the elements themselves.
//!
//! ```text
//! pool    02000000 | 01000000 61 | 02000000 6263         positions  4 9  --transpose-->  9 4
//!         0          4             9
//! ```

use std::borrow::Cow;

use super::{
    ArrayToArray, ArrayToBytes, ChunkSpec, CodecChain, ShardingCodec, Transpose, VariableLength,
    array_to_array::IntermediateArray,
    chain::{intermediate_arrays, undo},
    decoded::{append, owned},
    sharding::InnerRuns,
    variable::{POSITION_BYTES, VariableItems, framed},
};
use crate::{buffers::zeroed, dtype::FillValue, error::FormatError, grid};

impl CodecChain {
    /// Decodes a chunk of elements that differ in length. The output is the number of items, and
    /// each item behind its length, in C order. Of categories, it is their codes in C order; of other
    /// object codecs, it is their bytes as they are. `limit` is the largest output accepted.
    ///
    /// # Errors
    /// Encoded bytes that are not exactly one such chunk, or more than `limit` decoded ones.
    pub fn decode_variable(
        &self,
        spec: &ChunkSpec<'_>,
        encoded: &[u8],
        limit: u64,
    ) -> Result<Vec<u8>, FormatError> {
        let Some(codec) = self.variable_length() else {
            let name = self.array_to_bytes.name();
            return Err(FormatError::encoded(name, "elements that differ in length"));
        };
        if let ArrayToBytes::VariableLength(codec) = self.array_to_bytes {
            let transpose = self.moving_transpose();
            if transpose.is_none() || !codec.has_items() {
                let bytes = undo(&self.bytes_to_bytes, encoded, limit)?;
                codec.check(&bytes, elements(spec.shape)?)?;
                return match codec {
                    VariableLength::Categories { code_size } => {
                        self.order_back(spec, code_size, owned(bytes)?)
                    }
                    _ => owned(bytes),
                };
            }
        }
        self.items(spec, encoded, limit)?.join(codec, limit)
    }

    /// An upper bound of the memory that [`decode_variable`](Self::decode_variable) allocates
    /// beside the encoded bytes and `limit` bytes of output.
    pub fn variable_scratch_bytes(&self, limit: u64) -> u64 {
        // An item takes four bytes or more; its position takes eight, before and after a transpose.
        const POSITIONS: u64 = 4;
        let undone = self.undo_scratch(limit, true);
        match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => undone
                .saturating_add(limit.saturating_mul(2 + POSITIONS))
                .saturating_add(limit)
                .saturating_add(sharding.codecs.variable_scratch_bytes(limit)),
            _ if self.moving_transpose().is_none() => undone,
            _ => undone.saturating_add(limit.saturating_mul(1 + POSITIONS)),
        }
    }

    /// The encoding of the elements of the innermost chunks; `None` when they have a fixed size.
    pub fn variable_length(&self) -> Option<VariableLength> {
        match &self.array_to_bytes {
            ArrayToBytes::VariableLength(codec) => Some(*codec),
            ArrayToBytes::Sharding(sharding) => sharding.codecs.variable_length(),
            _ => None,
        }
    }

    /// The transpose that moves elements, if one does.
    fn moving_transpose(&self) -> Option<&Transpose> {
        self.array_to_array.iter().find_map(|codec| match codec {
            ArrayToArray::Transpose(transpose) if !transpose.is_identity() => Some(transpose),
            _ => None,
        })
    }

    /// The items of a chunk in C order.
    fn items(
        &self,
        spec: &ChunkSpec<'_>,
        encoded: &[u8],
        limit: u64,
    ) -> Result<VariableItems, FormatError> {
        let (_, last) = intermediate_arrays(&self.array_to_array, spec.shape, spec.dtype);
        let last = ChunkSpec {
            shape: &last.shape,
            ..*spec
        };
        let mut items = match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => {
                let room = limit.saturating_mul(2);
                let room = room.saturating_add(sharding.index.encoded_len());
                let shard = undo(&self.bytes_to_bytes, encoded, room)?;
                items_of_shard(sharding, &last, &shard, limit)?
            }
            ArrayToBytes::VariableLength(codec) if codec.has_items() => {
                let bytes = undo(&self.bytes_to_bytes, encoded, limit)?;
                VariableItems::new(*codec, owned(bytes)?, elements(last.shape)?)?
            }
            other => return Err(FormatError::encoded(other.name(), "no items with lengths")),
        };
        items.positions = self.order_back(spec, POSITION_BYTES, items.positions)?;
        Ok(items)
    }

    /// Puts parts of `size` bytes, one for each element, back into their decoded order.
    fn order_back(
        &self,
        spec: &ChunkSpec<'_>,
        size: usize,
        mut parts: Vec<u8>,
    ) -> Result<Vec<u8>, FormatError> {
        let (stages, _) = intermediate_arrays(&self.array_to_array, spec.shape, spec.dtype);
        for (codec, IntermediateArray { shape, .. }) in self.array_to_array.iter().zip(stages).rev()
        {
            if let Some(transpose) = moving(codec)? {
                transpose.check_rank(&shape)?;
                let mut moved = zeroed(parts.len())?;
                transpose.decode(&shape, size, &parts, &mut moved);
                parts = moved;
            }
        }
        Ok(parts)
    }

    /// Puts parts of `size` bytes, one for each element, into their encoded order.
    fn order(
        &self,
        spec: &ChunkSpec<'_>,
        size: usize,
        mut parts: Vec<u8>,
    ) -> Result<Vec<u8>, FormatError> {
        let (stages, _) = intermediate_arrays(&self.array_to_array, spec.shape, spec.dtype);
        for (codec, IntermediateArray { shape, .. }) in self.array_to_array.iter().zip(stages) {
            if let Some(transpose) = moving(codec)? {
                transpose.check_rank(&shape)?;
                let mut moved = zeroed(parts.len())?;
                transpose.encode(&shape, size, &parts, &mut moved);
                parts = moved;
            }
        }
        Ok(parts)
    }

    /// Encodes a chunk of elements that differ in length, from what
    /// [`decode_variable`](Self::decode_variable) decodes it to.
    ///
    /// # Errors
    /// Bytes that are not exactly the elements of one chunk, a codec that cannot be encoded
    /// ([`check_encodes`](Self::check_encodes)), or no memory.
    pub fn encode_variable(
        &self,
        spec: &ChunkSpec<'_>,
        decoded: &[u8],
    ) -> Result<Vec<u8>, FormatError> {
        self.check_encodes()?;
        let ArrayToBytes::VariableLength(codec) = self.array_to_bytes else {
            let name = self.array_to_bytes.name();
            return Err(FormatError::encoded(name, "elements that differ in length"));
        };
        let expected = elements(spec.shape)?;
        codec.check_written(decoded, expected)?;
        let decoded = Cow::Borrowed(decoded);
        let array_bytes = match codec {
            _ if self.moving_transpose().is_none() => decoded,
            VariableLength::Categories { code_size } => {
                Cow::Owned(self.order(spec, code_size, owned(decoded)?)?)
            }
            // Object codecs nest items by their indices, whatever the order of the axes.
            VariableLength::Object(_) => decoded,
            _ => {
                let limit = decoded.len() as u64;
                let mut items = VariableItems::new(codec, owned(decoded)?, expected)?;
                items.positions = self.order(spec, POSITION_BYTES, items.positions)?;
                Cow::Owned(items.join(codec, limit)?)
            }
        };
        self.encode_bytes(array_bytes)
    }
}

/// The transpose that `codec` is, if it moves elements.
fn moving(codec: &ArrayToArray) -> Result<Option<&Transpose>, FormatError> {
    match codec {
        ArrayToArray::Transpose(transpose) => {
            Ok(Some(transpose).filter(|transpose| !transpose.is_identity()))
        }
        ArrayToArray::Reshape(_) => Ok(None),
        ArrayToArray::Filter(filter) => Err(FormatError::encoded(
            filter.name(),
            "elements without a size",
        )),
    }
}

/// The items of all inner chunks; those of absent inner chunks are the fill value.
fn items_of_shard(
    sharding: &ShardingCodec,
    spec: &ChunkSpec<'_>,
    shard: &[u8],
    limit: u64,
) -> Result<VariableItems, FormatError> {
    let refused = |problem| FormatError::encoded("sharding_indexed", problem);
    let entries = sharding.verified_index(shard)?;
    // Each item takes four bytes at least.
    let count = elements(spec.shape)?;
    let room = count
        .checked_mul(POSITION_BYTES as u64)
        .filter(|room| room / 2 <= limit)
        .and_then(|room| usize::try_from(room).ok())
        .ok_or_else(|| refused("more elements than the bytes allowed have room for"))?;
    let to = InnerRuns::new(sharding, spec.shape, POSITION_BYTES)
        .ok_or_else(|| refused("inner chunks do not fit"))?;
    let inner = ChunkSpec {
        shape: &sharding.chunk_shape,
        ..*spec
    };
    let mut items = VariableItems {
        pool: Vec::new(),
        positions: zeroed(room)?,
    };
    let mut absent: Option<FillValue> = None;
    for slot in 0..sharding.index.n_slots() {
        let start = to.start(slot).ok_or_else(|| refused("slot outside"))?;
        let end = items.pool.len() as u64;
        if let Some(encoded) = entries.entry(slot)? {
            let left = limit.saturating_sub(end);
            let mut chunk = sharding.codecs.items(&inner, encoded, left)?;
            for position in chunk.positions.as_chunks_mut::<POSITION_BYTES>().0 {
                *position = (u64::from_le_bytes(*position) + end).to_le_bytes();
            }
            append(&mut items.pool, &chunk.pool)?;
            to.scatter(&chunk.positions, start, &mut items.positions);
            continue;
        }
        if absent.is_none() {
            let element =
                framed(spec.fill.bytes()).ok_or_else(|| refused("a fill value too long"))?;
            append(&mut items.pool, &element)?;
        }
        let position =
            absent.get_or_insert_with(|| FillValue::new(end.to_le_bytes().to_vec(), true));
        to.fill(position, start, &mut items.positions);
    }
    Ok(items)
}

fn elements(shape: &[u64]) -> Result<u64, FormatError> {
    grid::product(shape).ok_or_else(|| FormatError::encoded("chunk", "too many elements"))
}
