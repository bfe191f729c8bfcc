//! A chain of codecs, and how a chunk comes back through it.
//!
//! ```text
//! encoded --bytes-to-bytes, last first--> array bytes --array-to-bytes--> transposed
//!         --all transposes at once--> decoded
//! ```
//!
//! Source: Zarr v3 core, section "Chunk encoding". The last step of each way writes into the
//! caller's buffer. What has to be kept between the steps is bounded by the decoded length,
//! which the metadata gives, never by what encoded bytes claim.

use std::borrow::Cow;

use super::{BytesCodec, BytesToBytes, ShardingCodec, Transpose, bytes, bytes_to_bytes};
use crate::{
    dtype::{DataType, FillValue},
    error::FormatError,
    grid,
};

/// The codec that turns elements into bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrayToBytes {
    /// Elements one after the other.
    Bytes(BytesCodec),
    /// Inner chunks and their index.
    Sharding(Box<ShardingCodec>),
}

/// Codecs in the order of encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecChain {
    /// First, on elements.
    pub array_to_array: Vec<Transpose>,
    /// Then exactly one.
    pub array_to_bytes: ArrayToBytes,
    /// Last, on bytes.
    pub bytes_to_bytes: Vec<BytesToBytes>,
}

/// What a chunk must decode to.
#[derive(Debug, Clone, Copy)]
pub struct ChunkSpec<'a> {
    /// Shape of the full chunk, in the array's axes.
    pub shape: &'a [u64],
    /// Type of its elements.
    pub dtype: &'a DataType,
    /// What inner chunks that do not exist are filled with.
    pub fill: &'a FillValue,
}

impl ChunkSpec<'_> {
    /// Bytes of the decoded chunk; `None` when they do not fit.
    pub fn decoded_len(&self) -> Option<u64> {
        grid::product(self.shape)?.checked_mul(self.dtype.item_size)
    }
}

impl CodecChain {
    /// Upper bound of what decoding a chunk of `decoded_len` bytes allocates beside the
    /// encoded bytes and the output.
    pub fn scratch_bytes(&self, decoded_len: u64) -> u64 {
        let sharding = self.sharding();
        let transposed = !self.transpose().is_identity();
        let mut scratch: u64 = 0;
        let mut add = |bytes: u64| scratch = scratch.saturating_add(bytes);
        if let Some(sharding) = sharding {
            add(sharding.scratch_bytes(decoded_len));
        }
        if transposed {
            add(decoded_len);
        }
        let mut limit = self.array_bytes_limit(decoded_len);
        for (i, codec) in self.bytes_to_bytes.iter().enumerate() {
            add(codec.state_bytes(limit));
            // The last one undone writes into the output, or into the transposed buffer.
            let straight = i == 0 && sharding.is_none();
            if !straight && !codec.is_cut() {
                add(limit);
            }
            limit = codec.encoded_limit(limit);
        }
        scratch
    }

    /// Decodes `encoded` to `out`, which has exactly the length of the decoded chunk and is
    /// filled completely: C order, full shape.
    ///
    /// # Errors
    /// Encoded bytes that are not exactly such a chunk. `out` then holds anything.
    pub fn decode(
        &self,
        spec: &ChunkSpec<'_>,
        encoded: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        let item_size = usize::try_from(spec.dtype.item_size).unwrap_or(0);
        let decoded_len = spec.decoded_len().and_then(|n| usize::try_from(n).ok());
        if decoded_len != Some(out.len()) || item_size == 0 {
            let problem = format!("{} bytes of room for {:?}", out.len(), spec.shape);
            return Err(FormatError::encoded("chunk", problem));
        }
        let transpose = self.transpose();
        if transpose.is_identity() {
            return self.decode_transposed(spec, encoded, out);
        }
        if transpose.order().len() != spec.shape.len() {
            let problem = format!("order {:?} for {:?}", transpose.order(), spec.shape);
            return Err(FormatError::encoded("transpose", problem));
        }
        if let ArrayToBytes::Bytes(codec) = self.array_to_bytes {
            let elements = self.undo_to_length(encoded, out.len())?;
            transpose.decode(spec.shape, item_size, &elements, out);
            bytes::swap(codec.swap_unit(spec.dtype), out);
        } else {
            let shape = transpose.encoded_shape(spec.shape);
            let transposed_spec = ChunkSpec {
                shape: &shape,
                ..*spec
            };
            let mut transposed = vec![0; out.len()];
            self.decode_transposed(&transposed_spec, encoded, &mut transposed)?;
            transpose.decode(spec.shape, item_size, &transposed, out);
        }
        Ok(())
    }

    /// Undoes all but the transposes. `spec.shape` is the one that they encode to.
    fn decode_transposed(
        &self,
        spec: &ChunkSpec<'_>,
        encoded: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => {
                let limit = u64::try_from(out.len()).unwrap_or(u64::MAX);
                let shard = undo(&self.bytes_to_bytes, encoded, self.array_bytes_limit(limit))?;
                sharding.decode(spec, &shard, out)
            }
            ArrayToBytes::Bytes(codec) => {
                let unit = codec.swap_unit(spec.dtype);
                if self.ends_in_compressor() {
                    self.undo_into(encoded, out)?;
                    bytes::swap(unit, out);
                } else {
                    let elements = self.undo_to_length(encoded, out.len())?;
                    bytes::copy_swapped(unit, &elements, out);
                }
                Ok(())
            }
        }
    }

    /// Undoes only the bytes-to-bytes codecs: the elements' bytes, or a shard. `limit` is the
    /// largest output accepted, such as [`array_bytes_limit`](Self::array_bytes_limit).
    ///
    /// # Errors
    /// Wrong bytes, or more of them than `limit`.
    pub fn undo_bytes_to_bytes(&self, encoded: &[u8], limit: u64) -> Result<Vec<u8>, FormatError> {
        Ok(undo(&self.bytes_to_bytes, encoded, limit)?.into_owned())
    }

    /// The most bytes that the array-to-bytes codec makes of a chunk of `decoded_len` bytes:
    /// exact without sharding, generous with it.
    pub fn array_bytes_limit(&self, decoded_len: u64) -> u64 {
        match &self.array_to_bytes {
            ArrayToBytes::Bytes(_) => decoded_len,
            ArrayToBytes::Sharding(sharding) => sharding.encoded_limit(decoded_len),
        }
    }

    /// The array-to-array codecs as one permutation p: encoded axis i is decoded axis p\[i\].
    pub fn permutation(&self, rank: usize) -> Vec<usize> {
        if self.array_to_array.is_empty() {
            return (0..rank).collect();
        }
        self.transpose().order().to_vec()
    }

    /// All transposes as one; of rank 0, hence the identity, when there are none.
    fn transpose(&self) -> Transpose {
        let mut transposes = self.array_to_array.iter();
        let first = transposes.next().cloned();
        let first = first.unwrap_or_else(|| Transpose::reversal(0));
        transposes.fold(first, |done, next| done.then(next))
    }

    /// The sharding codec, when that is what turns elements into bytes.
    pub fn sharding(&self) -> Option<&ShardingCodec> {
        match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => Some(sharding),
            ArrayToBytes::Bytes(_) => None,
        }
    }

    /// Whether encoded bytes of elements of `dtype` are the decoded bytes, so that nothing is
    /// left to do but to compare the length.
    pub fn is_identity(&self, dtype: &DataType) -> bool {
        let in_order = match self.array_to_bytes {
            ArrayToBytes::Bytes(codec) => codec.swap_unit(dtype) == 1,
            ArrayToBytes::Sharding(_) => false,
        };
        in_order && self.bytes_to_bytes.is_empty() && self.transpose().is_identity()
    }

    /// Whether the codec undone last makes new bytes, instead of cutting a checksum off.
    fn ends_in_compressor(&self) -> bool {
        let first = self.bytes_to_bytes.first();
        first.is_some_and(|codec| !codec.is_cut())
    }

    /// Undoes the bytes-to-bytes codecs straight into `out`, exactly.
    fn undo_into(&self, encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let Some((first, others)) = self.bytes_to_bytes.split_first() else {
            bytes_to_bytes::expect_length("bytes", encoded.len(), out.len())?;
            out.copy_from_slice(encoded);
            return Ok(());
        };
        let limit = u64::try_from(out.len()).unwrap_or(u64::MAX);
        let inner = undo(others, encoded, first.encoded_limit(limit))?;
        first.undo_exactly(&inner, out)
    }

    /// Undoes the bytes-to-bytes codecs to exactly `length` bytes, borrowed where they only
    /// had to be cut out.
    fn undo_to_length<'a>(
        &self,
        encoded: &'a [u8],
        length: usize,
    ) -> Result<Cow<'a, [u8]>, FormatError> {
        if self.ends_in_compressor() {
            let mut out = vec![0; length];
            self.undo_into(encoded, &mut out)?;
            return Ok(Cow::Owned(out));
        }
        let limit = u64::try_from(length).unwrap_or(u64::MAX);
        let found = undo(&self.bytes_to_bytes, encoded, limit)?;
        bytes_to_bytes::expect_length("bytes", found.len(), length)?;
        Ok(found)
    }
}

/// Undoes `codecs`, last first, to at most `limit` bytes.
fn undo<'a>(
    codecs: &[BytesToBytes],
    encoded: &'a [u8],
    limit: u64,
) -> Result<Cow<'a, [u8]>, FormatError> {
    let Some((first, others)) = codecs.split_first() else {
        if u64::try_from(encoded.len()).map_or(true, |n| n > limit) {
            let problem = format!("{} bytes, no more than {limit} are allowed", encoded.len());
            return Err(FormatError::encoded("bytes", problem));
        }
        return Ok(Cow::Borrowed(encoded));
    };
    let inner = undo(others, encoded, first.encoded_limit(limit))?;
    first.undo_cow(inner, limit)
}

#[cfg(test)]
mod tests;
