//! The array-to-array codecs: transposes, reshapes and filters.

use super::{Filter, Transpose};
use crate::{
    buffers::zeroed,
    dtype::{DataType, FillValue},
    error::FormatError,
    grid::{self, Dims},
};

/// A codec from elements to elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ArrayToArray {
    /// The axes are in another order.
    Transpose(Transpose),
    /// The elements are the same in C order, in a chunk of another shape.
    Reshape(Reshape),
    /// The elements are changed.
    Filter(Filter),
}

/// The `reshape` codec: other axes, elements in the same order.
///
/// Spec: <https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/reshape>.
///
/// ```json
/// { "name": "reshape", "configuration": { "shape": [[0, 1], -1] } }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// Shape of the encoded chunk.
    pub encoded_shape: Dims,
}

/// The shape and type of the array that a codec is given.
#[derive(Debug, Clone)]
pub(super) struct IntermediateArray {
    pub(super) shape: Dims,
    pub(super) dtype: DataType,
}

impl IntermediateArray {
    /// A buffer of zeros for all elements.
    ///
    /// # Errors
    /// Too many elements, or no memory for them.
    pub(super) fn buffer(&self) -> Result<Vec<u8>, FormatError> {
        let elements = grid::product(&self.shape);
        let length = elements
            .and_then(|n| usize::try_from(n.checked_mul(self.dtype.item_size)?).ok())
            .ok_or_else(|| FormatError::encoded("chunk", "too large"))?;
        Ok(zeroed(length)?)
    }
}

impl ArrayToArray {
    /// Its name in a codec list.
    pub fn name(&self) -> &'static str {
        match self {
            ArrayToArray::Transpose(_) => "transpose",
            ArrayToArray::Reshape(_) => "reshape",
            ArrayToArray::Filter(filter) => filter.name(),
        }
    }

    /// Whether parts of the decoded chunk are parts of the encoded one, so that a shard behind this
    /// codec can be read by inner chunks.
    pub fn can_be_split(&self) -> bool {
        match self {
            ArrayToArray::Transpose(_) => true,
            ArrayToArray::Reshape(_) => false,
            ArrayToArray::Filter(filter) => filter.is_elementwise(),
        }
    }

    /// The shape and type that the next codec is given, for a chunk of `shape` of `dtype`.
    pub(crate) fn encoded_as(&self, shape: &[u64], dtype: &DataType) -> (Dims, DataType) {
        match self {
            ArrayToArray::Transpose(transpose) => (transpose.encoded_shape(shape), dtype.clone()),
            ArrayToArray::Reshape(reshape) => (reshape.encoded_shape.clone(), dtype.clone()),
            ArrayToArray::Filter(filter) => {
                (filter.encoded_shape(shape), filter.encoded_type().clone())
            }
        }
    }

    /// The number of bytes of the encoded elements, from that of the decoded ones.
    pub(super) fn encoded_len(&self, decoded_len: u64) -> u64 {
        match self {
            ArrayToArray::Transpose(_) | ArrayToArray::Reshape(_) => decoded_len,
            ArrayToArray::Filter(filter) => filter.encoded_len(decoded_len),
        }
    }

    /// Decodes `encoded` to all of `out`, a chunk of the shape and type of `decoded`.
    ///
    /// # Errors
    /// Elements that the filter refuses, or lengths that do not fit.
    pub(super) fn decode(
        &self,
        decoded: &IntermediateArray,
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
                super::decoded::expect_length("reshape", encoded.len(), out.len() as u64)?;
                out.copy_from_slice(encoded);
            }
            ArrayToArray::Filter(filter) => filter.decode(encoded, out)?,
        }
        Ok(())
    }

    /// Whether some elements decode to other values than were encoded.
    pub(super) fn can_lose(&self) -> bool {
        matches!(self, ArrayToArray::Filter(filter) if filter.can_lose())
    }

    /// Encodes `elements`, a chunk of the shape and type of `decoded`, to all of `out`.
    ///
    /// # Errors
    /// Elements that the filter refuses, or lengths that do not fit.
    pub(super) fn encode(
        &self,
        decoded: &IntermediateArray,
        elements: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        match self {
            ArrayToArray::Transpose(transpose) => {
                transpose.check_rank(&decoded.shape)?;
                let item_size = usize::try_from(decoded.dtype.item_size).unwrap_or(0);
                transpose.encode(&decoded.shape, item_size, elements, out);
            }
            ArrayToArray::Reshape(_) => {
                super::decoded::expect_length("reshape", elements.len(), out.len() as u64)?;
                out.copy_from_slice(elements);
            }
            ArrayToArray::Filter(filter) => filter.encode(elements, out)?,
        }
        Ok(())
    }

    /// The fill value as the next codec is given it.
    ///
    /// # Errors
    /// The encoded fill value does not decode to `fill`: absent inner chunks would hold another
    /// value.
    pub(super) fn encode_fill(&self, fill: &FillValue) -> Result<FillValue, FormatError> {
        let ArrayToArray::Filter(filter) = self else {
            return Ok(fill.clone());
        };
        let changed = || {
            let name = format!(
                "{} before sharding or `n5_default`, which changes the fill value",
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
        Ok(FillValue::new(encoded, fill.is_defined()).disputed_if(!fill.is_undisputed()))
    }
}
