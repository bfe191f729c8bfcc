//! What filters make of the type of elements, and of the fill value: inner chunks of a shard
//! that are absent are full of the encoded one.

use super::{super::ArrayToArray, CodecChain};
use crate::{
    dtype::{DataType, FillValue},
    error::FormatError,
};

impl CodecChain {
    /// The type of the elements that the array-to-bytes codec sees.
    pub fn encoded_type(&self, dtype: &DataType) -> DataType {
        let mut encoded = dtype;
        for codec in &self.array_to_array {
            if let ArrayToArray::Filter(filter) = codec {
                encoded = filter.encoded_type();
            }
        }
        encoded.clone()
    }

    /// The fill value as the array-to-bytes codec sees it.
    ///
    /// # Errors
    /// It would not come back as it is.
    pub fn encode_fill(&self, fill: &FillValue) -> Result<FillValue, FormatError> {
        encode_fill(&self.array_to_array, fill)
    }

    /// Checks that inner chunks that are absent are full of `fill`, at every level of shards.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] with the name of a codec that changes it.
    pub(crate) fn check_fill(&self, fill: &FillValue) -> Result<(), FormatError> {
        let mut chain = self;
        let mut fill = fill.clone();
        while let Some(sharding) = chain.sharding() {
            fill = chain.encode_fill(&fill)?;
            chain = &sharding.codecs;
        }
        Ok(())
    }
}

/// The fill value behind all `codecs`.
pub(super) fn encode_fill(
    codecs: &[ArrayToArray],
    fill: &FillValue,
) -> Result<FillValue, FormatError> {
    let mut codecs = codecs.iter();
    codecs.try_fold(fill.clone(), |fill, codec| codec.encode_fill(&fill))
}
