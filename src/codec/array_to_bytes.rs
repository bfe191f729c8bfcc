//! The array-to-bytes codecs.

#[cfg(feature = "pcodec")]
use super::Pcodec;
use super::{BytesCodec, ChunkSpec, PackBits, ShardingCodec, VariableLength, bytes};
use crate::{dtype::Element, error::FormatError};

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
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(_) => Pcodec::encoded_limit(length),
        }
    }

    /// An upper bound of the memory that decoding to `length` bytes takes beside input and output.
    pub(super) fn state_bytes(&self, length: u64) -> u64 {
        match self {
            ArrayToBytes::Sharding(sharding) => sharding.scratch_bytes(length),
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(_) => Pcodec::state_bytes(length),
            _ => 0,
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
            #[cfg(feature = "pcodec")]
            ArrayToBytes::Pcodec(codec) => codec.decode(encoded, out),
        }
    }
}
