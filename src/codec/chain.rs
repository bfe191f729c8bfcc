//! A chain of codecs, and how it decodes and encodes a chunk.
//!
//! ```text
//! encoded --bytes-to-bytes, last first--> array bytes --array-to-bytes--> elements
//!         --array-to-array, last first--> decoded
//! ```
//!
//! Source: Zarr v3 core, section "Chunk encoding". The last step writes into the caller's buffer;
//! if all array-to-array codecs are transposes, they are one step. The size of buffers between the
//! steps is bounded by the decoded length, which the metadata gives, never by what encoded bytes
//! claim.
//!
//! Chunks of elements that differ in length ([`variable`](super::variable)) have no such length:
//! they are decoded up to a limit.

mod checks;
mod encode;
mod fill;
mod in_place;
mod parts;

use std::borrow::Cow;

pub use encode::Losses;
use fill::encode_fill;
pub(crate) use parts::{Parts, PartsPlace};

use super::{
    ArrayToArray, ArrayToBytes, BytesToBytes, ShardingCodec, Transpose,
    array_to_array::IntermediateArray,
    bytes,
    bytes_to_bytes::with_limits,
    decoded::{expect_length, owned},
};
use crate::{
    buffers::zeroed,
    dtype::{DataType, FillValue},
    error::FormatError,
    grid,
};

/// Codecs in the order of encoding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodecChain {
    /// From elements to elements, applied first.
    pub array_to_array: Vec<ArrayToArray>,
    /// From elements to bytes.
    pub array_to_bytes: ArrayToBytes,
    /// From bytes to bytes, applied last.
    pub bytes_to_bytes: Vec<BytesToBytes>,
}

/// The array that a chunk must decode to.
#[derive(Debug, Clone, Copy)]
pub struct ChunkSpec<'a> {
    /// Shape of the full chunk, in the array's axes.
    pub shape: &'a [u64],
    /// Type of its elements.
    pub dtype: &'a DataType,
    /// The value of the elements of absent inner chunks.
    pub fill: &'a FillValue,
}

impl ChunkSpec<'_> {
    /// The decoded length in bytes; `None` when it does not fit.
    pub fn decoded_len(&self) -> Option<u64> {
        grid::product(self.shape)?.checked_mul(self.dtype.item_size)
    }
}

impl CodecChain {
    /// Upper bound of the memory that decoding a chunk of `decoded_len` bytes allocates, beside the
    /// encoded bytes and the output.
    pub fn scratch_bytes(&self, decoded_len: u64) -> u64 {
        let mut length = decoded_len;
        let mut steps: u64 = 0;
        if !self.is_transposed_only() {
            // The input and output of the step that takes most.
            for codec in &self.array_to_array {
                let next = codec.encoded_len(length);
                steps = steps.max(length.saturating_add(next));
                length = next;
            }
        } else if !self.transpose().is_identity() {
            steps = decoded_len;
        }
        let straight = matches!(self.array_to_bytes, ArrayToBytes::Bytes(_));
        steps
            .saturating_add(self.array_to_bytes.state_bytes(length))
            .saturating_add(self.undo_scratch(self.array_bytes_limit(decoded_len), straight))
    }

    /// The memory that undoing the bytes-to-bytes codecs to at most `limit` bytes takes. `straight`
    /// says that the result goes to the output, or to a buffer that is counted elsewhere.
    pub(crate) fn undo_scratch(&self, limit: u64, straight: bool) -> u64 {
        let mut scratch: u64 = 0;
        for (i, (codec, limit)) in with_limits(&self.bytes_to_bytes, limit).enumerate() {
            scratch = scratch.saturating_add(codec.state_bytes(limit));
            if !codec.is_cut() && (i > 0 || !straight) {
                scratch = scratch.saturating_add(limit);
            }
        }
        scratch
    }

    /// Decodes `encoded` to `out`, which has exactly the length of the decoded chunk and is
    /// filled completely: C order, full shape.
    ///
    /// # Errors
    /// Encoded bytes that are not exactly one such chunk. `out` then holds anything.
    pub fn decode(
        &self,
        spec: &ChunkSpec<'_>,
        encoded: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        let decoded_len = spec.decoded_len().and_then(|n| usize::try_from(n).ok());
        if decoded_len != Some(out.len()) || spec.dtype.item_size == 0 {
            let problem = format!("{} bytes of room for {:?}", out.len(), spec.shape);
            return Err(FormatError::encoded("chunk", problem));
        }
        let transpose = self.transpose();
        let is_transposed_only = self.is_transposed_only();
        if is_transposed_only && transpose.is_identity() {
            return self.decode_elements(spec, encoded, out);
        }
        let transpose = [ArrayToArray::Transpose(transpose)];
        let codecs = if is_transposed_only {
            &transpose[..]
        } else {
            &self.array_to_array
        };
        let (stages, last) = intermediate_arrays(codecs, spec.shape, spec.dtype);
        let mut elements = match self.array_to_bytes {
            // Byte orders are reversed in `out`, so that uncompressed numbers need no copy before.
            ArrayToBytes::Bytes(_) if is_transposed_only => {
                self.undo_to_length(encoded, out.len())?
            }
            _ => {
                let fill = match self.array_to_bytes {
                    ArrayToBytes::Sharding(_) | ArrayToBytes::N5Block(_) => {
                        encode_fill(codecs, spec.fill)?
                    }
                    _ => spec.fill.clone(),
                };
                let last_spec = ChunkSpec {
                    shape: &last.shape,
                    dtype: &last.dtype,
                    fill: &fill,
                };
                let mut elements = last.buffer()?;
                self.decode_elements(&last_spec, encoded, &mut elements)?;
                Cow::Owned(elements)
            }
        };
        for (i, (codec, stage)) in codecs.iter().zip(&stages).enumerate().rev() {
            if i == 0 {
                codec.decode(stage, &elements, out)?;
            } else if !matches!(codec, ArrayToArray::Reshape(_)) {
                let mut decoded = stage.buffer()?;
                codec.decode(stage, &elements, &mut decoded)?;
                elements = Cow::Owned(decoded);
            }
        }
        if let ArrayToBytes::Bytes(codec) = self.array_to_bytes
            && is_transposed_only
        {
            bytes::swap(codec.swap_unit(spec.dtype), out);
        }
        Ok(())
    }

    /// Undoes all but the array-to-array codecs; `spec` is what those encode to.
    fn decode_elements(
        &self,
        spec: &ChunkSpec<'_>,
        encoded: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        match (&self.array_to_bytes, self.compressor()) {
            (ArrayToBytes::Bytes(codec), Some(compressor)) => {
                undo_into(compressor, encoded, out)?;
                bytes::swap(codec.swap_unit(spec.dtype), out);
                Ok(())
            }
            (codec, _) => {
                let limit = if self.may_have_gaps() {
                    u64::MAX
                } else {
                    codec.encoded_limit(out.len() as u64, spec.dtype.item_size)
                };
                let array_bytes = undo(&self.bytes_to_bytes, encoded, limit)?;
                codec.decode(spec, &array_bytes, out)
            }
        }
    }

    /// Undoes only the bytes-to-bytes codecs, which gives the bytes of the elements, or a shard.
    /// `limit` is the largest output accepted, such as
    /// [`array_bytes_limit`](Self::array_bytes_limit).
    ///
    /// # Errors
    /// Wrong bytes, or more of them than `limit`.
    pub fn undo_bytes_to_bytes(&self, encoded: &[u8], limit: u64) -> Result<Vec<u8>, FormatError> {
        owned(undo(&self.bytes_to_bytes, encoded, limit)?)
    }

    /// The maximum length of what the array-to-bytes codec encodes a chunk of `decoded_len` bytes
    /// to: exact for `bytes`, an upper bound for others.
    pub fn array_bytes_limit(&self, decoded_len: u64) -> u64 {
        let codecs = self.array_to_array.iter();
        let length = codecs.fold(decoded_len, |length, codec| codec.encoded_len(length));
        // Items of one byte each have the most lengths beside them.
        self.array_to_bytes.encoded_limit(length, 1)
    }

    /// The transposes as one permutation p: encoded axis i is decoded axis p\[i\]. It is of no use
    /// for a chain with a reshape.
    pub fn permutation(&self, rank: usize) -> Vec<usize> {
        match self.transpose().order() {
            [] => (0..rank).collect(),
            order => order.to_vec(),
        }
    }

    /// All transposes combined into one. If there are none, the transpose of rank 0, which is the identity.
    fn transpose(&self) -> Transpose {
        let mut transposes = self.array_to_array.iter().filter_map(|codec| match codec {
            ArrayToArray::Transpose(transpose) => Some(transpose),
            _ => None,
        });
        let first = transposes.next().cloned();
        let first = first.unwrap_or_else(|| Transpose::reversal(0));
        transposes.fold(first, |done, next| done.then(next))
    }

    /// Whether the decoded elements are the encoded ones, perhaps in another order.
    fn is_transposed_only(&self) -> bool {
        self.array_to_array.iter().all(|codec| match codec {
            ArrayToArray::Transpose(_) => true,
            ArrayToArray::Filter(filter) => filter.is_identity(),
            ArrayToArray::Reshape(_) => false,
        })
    }

    /// The codecs of a chunk of `shape`, where these are the codecs of a chunk of other lengths in the
    /// same grid. No `reshape` is among them.
    ///
    /// # Errors
    /// When the inner chunks of a shard do not divide a shard of this shape.
    pub fn for_shape(&self, shape: &[u64]) -> Result<Cow<'_, CodecChain>, FormatError> {
        let order = self.permutation(shape.len());
        let encoded = order.iter().map(|&axis| shape.get(axis).copied());
        let encoded: Option<grid::Dims> = encoded.collect();
        let encoded = encoded.ok_or_else(|| FormatError::encoded("transpose", "another rank"))?;
        let array_to_bytes = match &self.array_to_bytes {
            ArrayToBytes::Sharding(codec) => {
                ArrayToBytes::Sharding(Box::new(codec.for_shape(&encoded)?))
            }
            ArrayToBytes::Zfp(codec) => ArrayToBytes::Zfp(codec.for_shape(&encoded)?),
            ArrayToBytes::Bytes(_)
            | ArrayToBytes::N5Block(_)
            | ArrayToBytes::PackBits(_)
            | ArrayToBytes::VariableLength(_) => return Ok(Cow::Borrowed(self)),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(_) => return Ok(Cow::Borrowed(self)),
        };
        Ok(Cow::Owned(CodecChain {
            array_to_bytes,
            ..self.clone()
        }))
    }

    /// The sharding codec, if that is the array-to-bytes codec.
    pub fn sharding(&self) -> Option<&ShardingCodec> {
        match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => Some(sharding),
            _ => None,
        }
    }

    /// Whether encoded chunks may be of any length: a shard, between whose inner chunks there may be gaps. Where other
    /// codecs encode the whole shard, its length is bounded, because they are undone in memory.
    pub fn may_have_gaps(&self) -> bool {
        self.sharding().is_some() && self.bytes_to_bytes.is_empty()
    }

    /// The first bytes-to-bytes codec, which is undone last, and the others; `None` when there is
    /// none, or when it is a checksum, which makes no new bytes.
    fn compressor(&self) -> Option<(&BytesToBytes, &[BytesToBytes])> {
        let codecs = self.bytes_to_bytes.split_first();
        codecs.filter(|(first, _)| !first.is_cut())
    }

    /// Undoes the bytes-to-bytes codecs to exactly `length` bytes, which are borrowed where
    /// checksums only had to be removed.
    fn undo_to_length<'a>(
        &self,
        encoded: &'a [u8],
        length: usize,
    ) -> Result<Cow<'a, [u8]>, FormatError> {
        if let Some(compressor) = self.compressor() {
            let mut out = zeroed(length)?;
            undo_into(compressor, encoded, &mut out)?;
            return Ok(Cow::Owned(out));
        }
        let found = undo(&self.bytes_to_bytes, encoded, length as u64)?;
        expect_length("bytes", found.len(), length as u64)?;
        Ok(found)
    }
}

/// The arrays that each of `codecs` is given, and the array that the last one makes.
pub(super) fn intermediate_arrays(
    codecs: &[ArrayToArray],
    shape: &[u64],
    dtype: &DataType,
) -> (Vec<IntermediateArray>, IntermediateArray) {
    let mut stages = Vec::new();
    let mut stage = IntermediateArray {
        shape: shape.into(),
        dtype: dtype.clone(),
    };
    for codec in codecs {
        let (shape, dtype) = codec.encoded_as(&stage.shape, &stage.dtype);
        stages.push(std::mem::replace(
            &mut stage,
            IntermediateArray { shape, dtype },
        ));
    }
    (stages, stage)
}

/// Undoes the first codec and the others straight into `out`, exactly.
fn undo_into(
    (first, others): (&BytesToBytes, &[BytesToBytes]),
    encoded: &[u8],
    out: &mut [u8],
) -> Result<(), FormatError> {
    let inner = undo(others, encoded, first.encoded_limit(out.len() as u64))?;
    first.undo_exactly(&inner, out)
}

/// Undoes `codecs`, last first, to at most `limit` bytes.
pub(super) fn undo<'a>(
    codecs: &[BytesToBytes],
    encoded: &'a [u8],
    limit: u64,
) -> Result<Cow<'a, [u8]>, FormatError> {
    let Some((first, others)) = codecs.split_first() else {
        if encoded.len() as u64 > limit {
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
