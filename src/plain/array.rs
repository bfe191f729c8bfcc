//! Descriptions of arrays and groups, from which the formats build their files. They hold metadata
//! and no elements, except strings of any length, whose sizes are a part of the layout.

use std::sync::Arc;

use super::axes::{Axis, AxisKind};
use super::geo::Georeference;
use super::narrowing::NarrowType;
use super::strings::Strings;
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::grid::{Dims, product};
use crate::metadata::Attributes;

/// An array, or a selection of one, that becomes a file or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The number by which [`Elements::array`](super::Elements::array) refers to it.
    pub id: usize,
    /// The last segment of its path; for a root array, the name of the store.
    pub name: String,
    /// The name of the image of which the array is a level, if it is one.
    pub image: Option<String>,
    /// Length in each dimension, in elements.
    pub shape: Dims,
    /// The type of the decoded elements: little-endian, except that fields of records keep their
    /// stored byte order. They differ in length only if there are `strings`.
    pub data_type: DataType,
    /// The elements of an array of strings of any length, for formats whose sizes depend on them.
    pub strings: Option<Arc<Strings>>,
    /// The value of every element of a chunk that the store lacks.
    pub fill_value: FillValue,
    /// The name of each dimension, if it has one; as long as `shape`.
    pub dimension_names: Vec<Option<String>>,
    /// The user attributes, in the order of the metadata document.
    pub attributes: Attributes,
    /// The spacing, origin, unit and kind of each dimension; as long as `shape`.
    pub axes: Vec<Axis>,
    /// Its place on the earth, if anything is known of that.
    pub geo: Option<Arc<Georeference>>,
    /// Whether the fill value marks missing data, as xarray interprets it in Zarr v2.
    pub fill_is_missing: bool,
    /// The length of a chunk (in a sharded array, of an inner chunk) in each dimension; the longest one where
    /// they differ. `None` if chunks do not matter.
    pub chunk: Option<Dims>,
}

/// A group, or a directory of the store that is no group, with its children.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// The last segment of its path; for the root, the name of the store.
    pub name: String,
    /// The user attributes, in the order of the metadata document.
    pub attributes: Attributes,
    /// The arrays directly in the group, sorted by name. For formats of images, the levels, the finest one first.
    pub arrays: Vec<Array>,
    /// The groups directly in the group, sorted by name. Empty for formats that hold no subgroups.
    pub groups: Vec<Group>,
    /// Children that were left out before any format was asked, for example those that cannot be
    /// decoded.
    pub omitted: Vec<Omitted>,
}

/// An array, group or attribute that a file does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// The path of the array (or group), relative to the group of the file.
    pub name: String,
    /// The reason.
    pub reason: FormatError,
}

/// The user's options for group files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The dimension that becomes the record dimension of NetCDF.
    pub unlimited: Option<String>,
    /// The type that wide integers become in files of images.
    pub integers: Option<NarrowType>,
}

impl Array {
    /// An array of which only the shape and the elements are described.
    pub fn of_elements(shape: Dims, data_type: DataType, fill_value: FillValue) -> Array {
        Array {
            id: 0,
            name: String::new(),
            image: None,
            dimension_names: vec![None; shape.len()],
            axes: vec![Axis::default(); shape.len()],
            shape,
            data_type,
            strings: None,
            fill_value,
            attributes: Attributes::default(),
            geo: None,
            fill_is_missing: false,
            chunk: None,
        }
    }

    /// The bytes of the fill value, if it marks missing data. The attribute `_FillValue` does not count then, because
    /// xarray replaces it by the fill value.
    pub(super) fn missing_fill(&self) -> Option<&[u8]> {
        let marks = self.fill_is_missing && self.fill_value.is_defined();
        marks.then(|| self.fill_value.bytes())
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The kind of dimension `axis`; [`AxisKind::Other`] if there is no such dimension.
    pub(super) fn kind(&self, axis: usize) -> AxisKind {
        let axis = self.axes.get(axis);
        axis.map(|axis| axis.kind).unwrap_or_default()
    }

    /// Number of elements.
    ///
    /// # Errors
    ///
    /// When the number does not fit 64 bits.
    pub fn n_elements(&self) -> Result<u64, FormatError> {
        product(&self.shape).ok_or_else(|| self.too_large())
    }

    /// The size of all elements in bytes.
    ///
    /// # Errors
    ///
    /// When the size exceeds the greatest file offset.
    pub fn n_bytes(&self) -> Result<u64, FormatError> {
        self.n_elements()?
            .checked_mul(self.data_type.item_size)
            .filter(|&bytes| i64::try_from(bytes).is_ok())
            .ok_or_else(|| self.too_large())
    }

    /// An error: the array has no planes that could be cut into tiles.
    pub(super) fn without_planes(&self) -> FormatError {
        FormatError::inexpressible("shape", format!("{:?}", self.shape), "images")
    }

    fn too_large(&self) -> FormatError {
        let found = format!("{:?} x {}", self.shape, self.data_type.item_size);
        let what = "the size of the array in bytes";
        FormatError::too_large(what, found, i64::MAX.unsigned_abs())
    }
}
