//! Chunks that are decoded where they lie: stored bytes are read straight to the place of the
//! decoded ones, and only their byte order and a checksum are left.
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

/// What is left to do with numbers that were read to their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InPlace<'a> {
    swap_unit: usize,
    checksum: Option<&'a Checksum>,
}

impl InPlace<'_> {
    /// Stored bytes before the numbers, and behind them. A chunk of another length than those
    /// and its decoded bytes is wrong; [`CodecChain::decode`] says how.
    pub(crate) fn around(&self) -> (u64, u64) {
        match self.checksum.map(|checksum| checksum.location) {
            None => (0, 0),
            Some(ChecksumLocation::Start) => (checksum::LEN, 0),
            Some(ChecksumLocation::End) => (0, checksum::LEN),
        }
    }

    /// Turns stored numbers into decoded ones. `around` is what lies before and behind them:
    /// the checksum, or nothing.
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
    /// Whether encoded bytes of elements of `dtype` are the decoded bytes, so that nothing is
    /// left to do but to compare the length.
    pub fn is_identity(&self, dtype: &DataType) -> bool {
        let nothing = InPlace {
            swap_unit: 1,
            checksum: None,
        };
        self.in_place(dtype) == Some(nothing)
    }

    /// How chunks of `dtype` are decoded where they lie; `None` when they are not.
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
