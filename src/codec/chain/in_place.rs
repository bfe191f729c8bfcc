//! Chunks that are decoded in place: their stored bytes are read straight into the output, where
//! only a checksum is verified and byte orders are reversed.
//!
//! ```text
//! stored   | checksum | numbers, big-endian         |      or the checksum behind them
//! read to     before    out --verify, swap--> decoded
//! ```

use super::CodecChain;
use crate::{
    codec::{ArrayToBytes, BytesToBytes, Checksum, ChecksumLocation, bytes, checksum},
    dtype::DataType,
    error::FormatError,
};

/// The work that is left once the stored numbers are in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InPlace<'a> {
    swap_unit: usize,
    checksum: Option<&'a Checksum>,
}

impl InPlace<'_> {
    /// The number of stored bytes before the numbers, and of those behind them. A chunk of another
    /// length than these and its decoded length is wrong; [`CodecChain::decode`] reports it.
    pub(crate) fn around(&self) -> (u64, u64) {
        match self.checksum.map(|checksum| checksum.location) {
            None => (0, 0),
            Some(ChecksumLocation::Start) => (checksum::LEN, 0),
            Some(ChecksumLocation::End) => (0, checksum::LEN),
        }
    }

    /// Turns stored numbers into decoded ones. `around` holds the bytes before and behind them: the
    /// checksum, or nothing.
    ///
    /// # Errors
    /// The checksum differs. `numbers` then holds anything.
    pub(crate) fn finish(&self, around: &[u8], numbers: &mut [u8]) -> Result<(), FormatError> {
        if let Some(checksum) = self.checksum {
            checksum.verify(numbers, around)?;
        }
        bytes::swap(self.swap_unit, numbers);
        Ok(())
    }
}

impl CodecChain {
    /// Whether the encoded bytes of elements of `dtype` are the decoded ones, so that only the
    /// length has to be compared.
    pub fn is_identity(&self, dtype: &DataType) -> bool {
        let nothing = InPlace {
            swap_unit: 1,
            checksum: None,
        };
        self.in_place(dtype) == Some(nothing)
    }

    /// How chunks of `dtype` are decoded in place; `None` when they cannot be.
    pub(crate) fn in_place(&self, dtype: &DataType) -> Option<InPlace<'_>> {
        let ArrayToBytes::Bytes(codec) = self.array_to_bytes else {
            return None;
        };
        if !self.is_transposed_only() || !self.transpose().is_identity() {
            return None;
        }
        let checksum = match &self.bytes_to_bytes[..] {
            [] => None,
            [BytesToBytes::Checksum(checksum)] => Some(checksum),
            _ => return None,
        };
        Some(InPlace {
            swap_unit: codec.swap_unit(dtype),
            checksum,
        })
    }
}
