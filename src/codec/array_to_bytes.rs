//! The array-to-bytes codecs.

use std::borrow::Cow;

#[cfg(feature = "pcodec")]
use super::Pcodec;
use super::{
    BytesCodec, ChunkSpec, N5Block, PackBits, ShardingCodec, VariableLength, Zfp, bytes,
    decoded::owned, setting::not_for_writing,
};
use crate::{buffers::zeroed, dtype::Element, error::FormatError};

/// The codec that turns elements into bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ArrayToBytes {
    /// Elements one after the other.
    Bytes(BytesCodec),
    /// Inner chunks and their index.
    Sharding(Box<ShardingCodec>),
    /// Some bits of each element.
    PackBits(PackBits),
    /// Items with their lengths; also items of a fixed size, which zarr-python 3.0 wrote in this
    /// way.
    VariableLength(VariableLength),
    /// A block of N5.
    N5Block(Box<N5Block>),
    /// Blocks of numbers, compressed by zfp.
    Zfp(Zfp),
    /// Numbers compressed by pcodec.
    #[cfg(feature = "pcodec")]
    Pcodec(Pcodec),
}

impl ArrayToBytes {
    /// Its name in a codec list.
    pub fn name(&self) -> &'static str {
        match self {
            ArrayToBytes::Bytes(_) => "bytes",
            ArrayToBytes::Sharding(_) => "sharding_indexed",
            ArrayToBytes::PackBits(_) => "packbits",
            ArrayToBytes::VariableLength(codec) => codec.name(),
            ArrayToBytes::N5Block(_) => "n5_default",
            ArrayToBytes::Zfp(codec) => codec.name(),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(_) => "numcodecs.pcodec",
        }
    }

    /// The maximum encoded length of `length` bytes of elements of `item_size` bytes: exact for
    /// `bytes`, an upper bound for others.
    pub(super) fn encoded_limit(&self, length: u64, item_size: u64) -> u64 {
        match self {
            ArrayToBytes::Bytes(_) => length,
            ArrayToBytes::Sharding(sharding) => sharding.encoded_limit(length),
            ArrayToBytes::PackBits(codec) => codec.encoded_len(length),
            ArrayToBytes::VariableLength(_) => {
                let words = (length / item_size.max(1)).saturating_add(1);
                length.saturating_add(words.saturating_mul(4))
            }
            ArrayToBytes::N5Block(codec) => codec.encoded_limit(),
            ArrayToBytes::Zfp(codec) => codec.encoded_limit(),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(_) => Pcodec::encoded_limit(length),
        }
    }

    /// An upper bound of the memory that decoding to `length` bytes takes beside input and output.
    pub(super) fn state_bytes(&self, length: u64) -> u64 {
        match self {
            ArrayToBytes::Sharding(sharding) => sharding.scratch_bytes(length),
            ArrayToBytes::N5Block(codec) => codec.scratch_bytes(),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(_) => Pcodec::state_bytes(length),
            _ => 0,
        }
    }

    /// Whether some elements decode to other values than were encoded.
    pub(super) fn can_lose(&self) -> bool {
        match self {
            ArrayToBytes::PackBits(codec) => codec.can_lose(),
            ArrayToBytes::Sharding(sharding) => sharding.codecs.can_lose(),
            ArrayToBytes::Zfp(codec) => codec.can_lose(),
            _ => false,
        }
    }

    /// Checks that chunks can be encoded.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] with the name of the codec.
    pub(super) fn check_encodes(&self) -> Result<(), FormatError> {
        match self {
            ArrayToBytes::Bytes(_) | ArrayToBytes::PackBits(_) => Ok(()),
            ArrayToBytes::VariableLength(codec) => codec.check_encodes(),
            // Elements of any length are decoded from shards, and not encoded to them yet.
            ArrayToBytes::Sharding(sharding) if sharding.codecs.variable_length().is_some() => {
                Err(not_for_writing(self.name()))
            }
            ArrayToBytes::Sharding(sharding) => sharding.codecs.check_encodes(),
            ArrayToBytes::N5Block(codec) => codec.check_encodes(),
            ArrayToBytes::Zfp(codec) => codec.check_encodes(),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(codec) => codec.check_encodes(),
        }
    }

    /// An upper bound of the memory that encoding `length` bytes takes beside input and output.
    pub(super) fn encode_state_bytes(&self, length: u64) -> u64 {
        match self {
            // For a transpose: a copy of the items, which take four bytes or more each, and two lists of their
            // positions, eight bytes each.
            ArrayToBytes::VariableLength(_) => length.saturating_mul(5),
            ArrayToBytes::Sharding(sharding) => sharding.encode_scratch_bytes(length),
            ArrayToBytes::N5Block(codec) => codec.encode_scratch_bytes(length),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(codec) => codec.encode_state_bytes(length),
            _ => 0,
        }
    }

    /// Encodes all of `elements`, which are of a fixed size.
    ///
    /// # Errors
    /// An element that the codec has no bytes for, a codec that cannot be encoded, or no memory.
    pub(super) fn encode<'e>(
        &self,
        spec: &ChunkSpec<'_>,
        elements: Cow<'e, [u8]>,
    ) -> Result<Cow<'e, [u8]>, FormatError> {
        match self {
            ArrayToBytes::Bytes(codec) => {
                let unit = codec.swap_unit(spec.dtype);
                if unit <= 1 {
                    return Ok(elements);
                }
                let mut swapped = owned(elements)?;
                bytes::swap(unit, &mut swapped);
                Ok(Cow::Owned(swapped))
            }
            ArrayToBytes::PackBits(codec) => {
                let length = codec.encoded_len(elements.len() as u64);
                let mut out = zeroed(usize::try_from(length).unwrap_or(usize::MAX))?;
                codec.encode(&elements, &mut out)?;
                Ok(Cow::Owned(out))
            }
            ArrayToBytes::VariableLength(codec) => {
                let encoded = codec.encode_padded(&elements, spec.dtype)?;
                Ok(Cow::Owned(encoded))
            }
            ArrayToBytes::Sharding(sharding) => sharding.encode(spec, &elements).map(Cow::Owned),
            ArrayToBytes::N5Block(codec) => codec.encode(spec, &elements).map(Cow::Owned),
            ArrayToBytes::Zfp(codec) => codec.encode(&elements).map(Cow::Owned),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(codec) => codec.encode(&elements).map(Cow::Owned),
        }
    }

    /// Decodes all of `encoded` to all of `out`.
    ///
    /// # Errors
    /// Encoded bytes that are not exactly one such chunk.
    pub(super) fn decode(
        &self,
        spec: &ChunkSpec<'_>,
        encoded: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        match self {
            ArrayToBytes::Bytes(codec) => {
                super::decoded::expect_length("bytes", encoded.len(), out.len() as u64)?;
                bytes::copy_swapped(codec.swap_unit(spec.dtype), encoded, out);
                Ok(())
            }
            ArrayToBytes::Sharding(sharding) => sharding.decode(spec, encoded, out),
            ArrayToBytes::PackBits(codec) => codec.decode(encoded, out),
            ArrayToBytes::VariableLength(codec) => {
                let item_size = usize::try_from(spec.dtype.item_size).unwrap_or(0);
                let utf32 = matches!(spec.dtype.element, Element::Text { .. });
                codec.decode_padded(encoded, item_size, utf32, out)
            }
            ArrayToBytes::N5Block(codec) => codec.decode(spec, encoded, out),
            ArrayToBytes::Zfp(codec) => codec.decode(encoded, out),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(codec) => codec.decode(encoded, out),
        }
    }
}
