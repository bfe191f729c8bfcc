//! The type and the fill value of a chunk behind its filters. Absent inner chunks of a shard, and the
//! elements that a truncated block of N5 lacks, have the encoded fill value.

use super::{
    super::{ArrayToArray, ArrayToBytes},
    CodecChain,
};
use crate::{
    dtype::{DataType, FillValue},
    error::FormatError,
};

impl CodecChain {
    /// The type of the elements that the array-to-bytes codec is given.
    pub fn encoded_type(&self, dtype: &DataType) -> DataType {
        let mut encoded = dtype;
        for codec in &self.array_to_array {
            if let ArrayToArray::Filter(filter) = codec {
                encoded = filter.encoded_type();
            }
        }
        encoded.clone()
    }

    /// The fill value as the array-to-bytes codec is given it.
    ///
    /// # Errors
    /// The encoded fill value does not decode to `fill`.
    pub fn encode_fill(&self, fill: &FillValue) -> Result<FillValue, FormatError> {
        encode_fill(&self.array_to_array, fill)
    }

    /// Checks that absent inner chunks, at every level of shards, and the missing elements of a truncated block decode to
    /// `fill`.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] with the name of a codec that changes `fill`.
    pub(crate) fn check_fill(&self, fill: &FillValue) -> Result<(), FormatError> {
        let mut chain = self;
        let mut fill = fill.clone();
        while let Some(sharding) = chain.sharding() {
            fill = chain.encode_fill(&fill)?;
            chain = &sharding.codecs;
        }
        if let ArrayToBytes::N5Block(_) = chain.array_to_bytes {
            chain.encode_fill(&fill)?;
        }
        Ok(())
    }
}

/// The fill value, encoded by all `codecs`.
pub(super) fn encode_fill(
    codecs: &[ArrayToArray],
    fill: &FillValue,
) -> Result<FillValue, FormatError> {
    let mut codecs = codecs.iter();
    codecs.try_fold(fill.clone(), |fill, codec| codec.encode_fill(&fill))
}
