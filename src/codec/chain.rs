//! A chain of codecs, and how a chunk comes back through it.
//!
//! ```text
//! encoded --bytes-to-bytes, last first--> array bytes --array-to-bytes--> elements
//!         --array-to-array, last first--> decoded
//! ```
//!
//! Source: Zarr v3 core, section "Chunk encoding". The last step of each way writes into the
//! caller's buffer; where all array-to-array codecs are transposes, they are one step. What has
//! to be kept between the steps is bounded by the decoded length, which the metadata gives,
//! never by what encoded bytes claim.
//!
//! A chunk of elements that differ in length has no such length: [`variable`](super::variable)
//! elements are decoded to at most a limit.

mod fill;
mod in_place;
mod parts;

use std::borrow::Cow;

use fill::encode_fill;
pub(crate) use parts::{Parts, PartsPlace};

use super::{
    ArrayToArray, ArrayToBytes, BytesToBytes, ShardingCodec, Transpose,
    array_to_array::Stage,
    bytes,
    bytes_to_bytes::{self, with_limits},
};
use crate::{
    buffers::zeroed,
    dtype::{DataType, FillValue},
    error::FormatError,
    grid,
};

/// Codecs in the order of encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecChain {
    /// First, on elements.
    pub array_to_array: Vec<ArrayToArray>,
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
        let mut length = decoded_len;
        let mut steps: u64 = 0;
        if !self.is_transposed_only() {
            // Input and output of a step, whichever takes most.
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

    /// What undoing the bytes-to-bytes codecs to at most `limit` bytes takes. `straight` says
    /// that those are the output, or another buffer that is counted already.
    pub(super) fn undo_scratch(&self, limit: u64, straight: bool) -> u64 {
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
    /// Encoded bytes that are not exactly such a chunk. `out` then holds anything.
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
        let (stages, last) = stages(codecs, spec.shape, spec.dtype);
        let mut elements = match self.array_to_bytes {
            // The numbers are reversed where they end: they need not be copied before.
            ArrayToBytes::Bytes(_) if is_transposed_only => {
                self.undo_to_length(encoded, out.len())?
            }
            _ => {
                let fill = match self.array_to_bytes {
                    ArrayToBytes::Sharding(_) => encode_fill(codecs, spec.fill)?,
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

    /// Undoes all but the array-to-array codecs. `spec` is what they encode to.
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
                let limit = codec.encoded_limit(out.len() as u64, spec.dtype.item_size);
                let array_bytes = undo(&self.bytes_to_bytes, encoded, limit)?;
                codec.decode(spec, &array_bytes, out)
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
    /// exact with `bytes`, generous with others.
    pub fn array_bytes_limit(&self, decoded_len: u64) -> u64 {
        let codecs = self.array_to_array.iter();
        let length = codecs.fold(decoded_len, |length, codec| codec.encoded_len(length));
        // An item of one byte at least: the most lengths that there can be.
        self.array_to_bytes.encoded_limit(length, 1)
    }

    /// The transposes as one permutation p: encoded axis i is decoded axis p\[i\]. Of a chain
    /// with a reshape it says nothing.
    pub fn permutation(&self, rank: usize) -> Vec<usize> {
        match self.transpose().order() {
            [] => (0..rank).collect(),
            order => order.to_vec(),
        }
    }

    /// All transposes as one; of rank 0, hence the identity, when there are none.
    fn transpose(&self) -> Transpose {
        let mut transposes = self.array_to_array.iter().filter_map(|codec| match codec {
            ArrayToArray::Transpose(transpose) => Some(transpose),
            _ => None,
        });
        let first = transposes.next().cloned();
        let first = first.unwrap_or_else(|| Transpose::reversal(0));
        transposes.fold(first, |done, next| done.then(next))
    }

    /// Whether decoded elements are the encoded ones, in another order perhaps.
    fn is_transposed_only(&self) -> bool {
        self.array_to_array.iter().all(|codec| match codec {
            ArrayToArray::Transpose(_) => true,
            ArrayToArray::Filter(filter) => filter.is_identity(),
            ArrayToArray::Reshape(_) => false,
        })
    }

    /// The sharding codec, when that is what turns elements into bytes.
    pub fn sharding(&self) -> Option<&ShardingCodec> {
        match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => Some(sharding),
            _ => None,
        }
    }

    /// The codec that is undone last, and those before it, when it makes new bytes instead of
    /// cutting a checksum off.
    fn compressor(&self) -> Option<(&BytesToBytes, &[BytesToBytes])> {
        let codecs = self.bytes_to_bytes.split_first();
        codecs.filter(|(first, _)| !first.is_cut())
    }

    /// Undoes the bytes-to-bytes codecs to exactly `length` bytes, borrowed where they only
    /// had to be cut out.
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
        bytes_to_bytes::expect_length("bytes", found.len(), length as u64)?;
        Ok(found)
    }
}

/// What each of `codecs` sees, and what is behind the last one.
pub(super) fn stages(
    codecs: &[ArrayToArray],
    shape: &[u64],
    dtype: &DataType,
) -> (Vec<Stage>, Stage) {
    let mut stages = Vec::new();
    let mut stage = Stage {
        shape: shape.into(),
        dtype: dtype.clone(),
    };
    for codec in codecs {
        let (shape, dtype) = codec.encoded_as(&stage.shape, &stage.dtype);
        stages.push(std::mem::replace(&mut stage, Stage { shape, dtype }));
    }
    (stages, stage)
}

/// Undoes bytes-to-bytes codecs straight into `out`, exactly.
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
