//! Chunks of elements that differ in length.
//!
//! What moves elements of a fixed size moves these, too: not themselves, but their places in a
//! pool of bytes. So a transpose is undone, and inner chunks find their places in a shard.
//!
//! ```text
//! pool    02000000 | 01000000 61 | 02000000 6263         places  4 9  --transpose-->  9 4
//!         0          4             9
//! ```

use super::{
    ArrayToArray, ArrayToBytes, ChunkSpec, CodecChain, ShardingCodec, Transpose, VariableLength,
    array_to_array::Stage,
    chain::{stages, undo},
    sharding::Places,
    variable::{Items, PLACE, framed},
};
use crate::{buffers::zeroed, dtype::FillValue, error::FormatError, grid};

impl CodecChain {
    /// Decodes a chunk of elements that differ in length: a count, then each item behind its
    /// length, in C order. The bytes of other object codecs stay as they are. `limit` is the
    /// largest output accepted.
    ///
    /// # Errors
    /// Encoded bytes that are not exactly such a chunk, or more than `limit` decoded ones.
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
                return match (transpose, codec) {
                    (Some(transpose), VariableLength::Categories { code_size }) => {
                        let mut out = vec![0; bytes.len()];
                        transpose.check_rank(spec.shape)?;
                        transpose.decode(spec.shape, code_size, &bytes, &mut out);
                        Ok(out)
                    }
                    _ => Ok(bytes.into_owned()),
                };
            }
        }
        self.items(spec, encoded, limit)?.join(codec, limit)
    }

    /// Upper bound of what [`decode_variable`](Self::decode_variable) allocates beside the
    /// encoded bytes and `limit` bytes of output.
    pub fn variable_scratch_bytes(&self, limit: u64) -> u64 {
        // An item takes four bytes or more, and its place eight, before and after a transpose.
        const PLACES: u64 = 4;
        let undone = self.undo_scratch(limit, true);
        match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => undone
                .saturating_add(limit.saturating_mul(2 + PLACES))
                .saturating_add(limit)
                .saturating_add(sharding.codecs.variable_scratch_bytes(limit)),
            _ if self.moving_transpose().is_none() => undone,
            _ => undone.saturating_add(limit.saturating_mul(1 + PLACES)),
        }
    }

    /// How the innermost elements become bytes; `None` when they are of a fixed size.
    pub fn variable_length(&self) -> Option<VariableLength> {
        match &self.array_to_bytes {
            ArrayToBytes::VariableLength(codec) => Some(*codec),
            ArrayToBytes::Sharding(sharding) => sharding.codecs.variable_length(),
            _ => None,
        }
    }

    /// The transpose that moves elements, if any does.
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
    ) -> Result<Items, FormatError> {
        let (stages, last) = stages(&self.array_to_array, spec.shape, spec.dtype);
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
                Items::new(*codec, bytes.into_owned(), elements(last.shape)?)?
            }
            other => return Err(FormatError::encoded(other.name(), "no items with lengths")),
        };
        for (codec, Stage { shape, .. }) in self.array_to_array.iter().zip(stages).rev() {
            match codec {
                ArrayToArray::Transpose(transpose) => {
                    transpose.check_rank(&shape)?;
                    let mut places = zeroed(items.places.len())?;
                    transpose.decode(&shape, PLACE, &items.places, &mut places);
                    items.places = places;
                }
                ArrayToArray::Reshape(_) => {}
                ArrayToArray::Filter(filter) => {
                    return Err(FormatError::encoded(
                        filter.name(),
                        "elements without a size",
                    ));
                }
            }
        }
        Ok(items)
    }
}

/// The items of all inner chunks; those of absent ones are the fill value.
fn items_of_shard(
    sharding: &ShardingCodec,
    spec: &ChunkSpec<'_>,
    shard: &[u8],
    limit: u64,
) -> Result<Items, FormatError> {
    let refused = |problem| FormatError::encoded("sharding_indexed", problem);
    let entries = sharding.verified_index(shard)?;
    // Each item takes four bytes at least.
    let count = elements(spec.shape)?;
    let room = count
        .checked_mul(PLACE as u64)
        .filter(|room| room / 2 <= limit)
        .and_then(|room| usize::try_from(room).ok())
        .ok_or_else(|| refused("more elements than the bytes allowed have room for"))?;
    let to = Places::new(sharding, spec.shape, PLACE)
        .ok_or_else(|| refused("inner chunks do not fit"))?;
    let inner = ChunkSpec {
        shape: &sharding.chunk_shape,
        ..*spec
    };
    let mut items = Items {
        pool: Vec::new(),
        places: zeroed(room)?,
    };
    let mut absent: Option<FillValue> = None;
    for slot in 0..sharding.index.n_slots() {
        let start = to.start(slot).ok_or_else(|| refused("slot outside"))?;
        let end = items.pool.len() as u64;
        if let Some(encoded) = entries.entry(slot)? {
            let left = limit.saturating_sub(end);
            let mut chunk = sharding.codecs.items(&inner, encoded, left)?;
            for place in chunk.places.as_chunks_mut::<PLACE>().0 {
                *place = (u64::from_le_bytes(*place) + end).to_le_bytes();
            }
            items.pool.append(&mut chunk.pool);
            to.scatter(&chunk.places, start, &mut items.places);
            continue;
        }
        if absent.is_none() {
            let element =
                framed(spec.fill.bytes()).ok_or_else(|| refused("a fill value too long"))?;
            items.pool.extend(element);
        }
        let place = absent.get_or_insert_with(|| FillValue::new(end.to_le_bytes().to_vec(), true));
        to.fill(place, start, &mut items.places);
    }
    Ok(items)
}

fn elements(shape: &[u64]) -> Result<u64, FormatError> {
    grid::product(shape).ok_or_else(|| FormatError::encoded("chunk", "too many elements"))
}
