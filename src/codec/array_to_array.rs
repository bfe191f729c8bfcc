//! The array-to-array codecs: transposes, reshapes and filters.

use super::{Filter, Transpose};
use crate::{
    buffers::zeroed,
    dtype::{DataType, FillValue},
    error::FormatError,
    grid::{self, Dims},
};

/// A codec from elements to elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrayToArray {
    /// Axes in another order.
    Transpose(Transpose),
    /// The same elements in C order, in a chunk of another shape.
    Reshape(Reshape),
    /// Other elements.
    Filter(Filter),
}

/// The `reshape` codec: other axes, elements in the same order.
///
/// Spec: <https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/reshape>.
///
/// ```json
/// { "name": "reshape", "configuration": { "shape": [[0, 1], -1] } }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reshape {
    /// Shape of the encoded chunk.
    pub encoded_shape: Dims,
}

/// What an array-to-array codec sees.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) shape: Dims,
    pub(super) dtype: DataType,
}

impl Stage {
    /// Zeros for all elements.
    ///
    /// # Errors
    /// They do not fit, or there is no memory for them.
    pub(super) fn buffer(&self) -> Result<Vec<u8>, FormatError> {
        let elements = grid::product(&self.shape);
        let length = elements
            .and_then(|n| usize::try_from(n.checked_mul(self.dtype.item_size)?).ok())
            .ok_or_else(|| FormatError::encoded("chunk", "too large"))?;
        Ok(zeroed(length)?)
    }
}

impl ArrayToArray {
    /// Its name in a pipeline.
    pub fn name(&self) -> &'static str {
        match self {
            ArrayToArray::Transpose(_) => "transpose",
            ArrayToArray::Reshape(_) => "reshape",
            ArrayToArray::Filter(filter) => filter.name(),
        }
    }

    /// Whether the chunk can be cut in pieces before this codec as well as after it.
    pub fn can_be_split(&self) -> bool {
        match self {
            ArrayToArray::Transpose(_) => true,
            ArrayToArray::Reshape(_) => false,
            ArrayToArray::Filter(filter) => filter.is_elementwise(),
        }
    }

    /// Shape and type that the next codec sees, of a chunk of `shape` of `dtype`.
    pub(crate) fn encoded_as(&self, shape: &[u64], dtype: &DataType) -> (Dims, DataType) {
        match self {
            ArrayToArray::Transpose(transpose) => (transpose.encoded_shape(shape), dtype.clone()),
            ArrayToArray::Reshape(reshape) => (reshape.encoded_shape.clone(), dtype.clone()),
            ArrayToArray::Filter(filter) => {
                (filter.encoded_shape(shape), filter.encoded_type().clone())
            }
        }
    }

    /// Bytes of the encoded elements, from those of the decoded ones.
    pub(super) fn encoded_len(&self, decoded_len: u64) -> u64 {
        match self {
            ArrayToArray::Transpose(_) | ArrayToArray::Reshape(_) => decoded_len,
            ArrayToArray::Filter(filter) => filter.encoded_len(decoded_len),
        }
    }

    /// Decodes `encoded` to all of `out`, which is a chunk of `decoded`.
    ///
    /// # Errors
    /// What the filter refuses, and lengths that do not fit.
    pub(super) fn decode(
        &self,
        decoded: &Stage,
        encoded: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        match self {
            ArrayToArray::Transpose(transpose) => {
                transpose.check_rank(&decoded.shape)?;
                let item_size = usize::try_from(decoded.dtype.item_size).unwrap_or(0);
                transpose.decode(&decoded.shape, item_size, encoded, out);
            }
            ArrayToArray::Reshape(_) => {
                super::bytes_to_bytes::expect_length("reshape", encoded.len(), out.len() as u64)?;
                out.copy_from_slice(encoded);
            }
            ArrayToArray::Filter(filter) => filter.decode(encoded, out)?,
        }
        Ok(())
    }

    /// The fill value as the next codec sees it, provided that it comes back as it is.
    ///
    /// # Errors
    /// It does not: an absent inner chunk would hold something else.
    pub(super) fn encode_fill(&self, fill: &FillValue) -> Result<FillValue, FormatError> {
        let ArrayToArray::Filter(filter) = self else {
            return Ok(fill.clone());
        };
        let changed = || {
            let name = format!(
                "{} before sharding, which changes the fill value",
                self.name()
            );
            FormatError::unsupported("", "codec", name)
        };
        let encoded = filter.encode_element(fill.bytes()).ok_or_else(changed)?;
        let mut back = vec![0; fill.bytes().len()];
        filter.decode(&encoded, &mut back).map_err(|_| changed())?;
        if back != fill.bytes() {
            return Err(changed());
        }
        Ok(FillValue::new(encoded, fill.is_defined()))
    }
}
