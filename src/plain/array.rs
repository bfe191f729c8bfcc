//! What the formats are told of arrays and groups: no elements, only what they are.

use super::axes::{Axis, AxisKind};
use super::layout::Layout;
use super::too_large;
use crate::dtype::{DataType, FillValue};
use crate::error::FormatError;
use crate::grid::{Dims, product};
use crate::metadata::Attributes;

/// An array, or a selection of one, that is to be a file or part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// What [`Elements::array`](super::Elements::array) calls it.
    pub id: usize,
    /// The last part of its path; of a root array, the name of the store.
    pub name: String,
    /// Length in each dimension, in elements.
    pub shape: Dims,
    /// The type of the decoded elements: little-endian, records as stored. Never of variable
    /// length.
    pub data_type: DataType,
    /// What absent chunks are full of.
    pub fill_value: FillValue,
    /// A name for each dimension, where there is one; as long as `shape`.
    pub dimension_names: Vec<Option<String>>,
    /// What its metadata say beside that, in their order.
    pub attributes: Attributes,
    /// Its dimensions in space and time; as long as `shape`.
    pub axes: Vec<Axis>,
    /// Whether its fill value stands for missing data, as xarray means it in v2.
    pub fill_is_missing: bool,
}

/// A group, or a directory that is none, with what is in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// The last part of its path; of the root, the name of the store.
    pub name: String,
    /// Its attributes, in their order.
    pub attributes: Attributes,
    /// The arrays in it, by name.
    pub arrays: Vec<Array>,
    /// The groups in it, by name. Empty for formats that have none.
    pub groups: Vec<Group>,
    /// What was left out before any format was asked, such as what cannot be decoded.
    pub omitted: Vec<Omitted>,
}

/// The file of a group.
#[derive(Debug)]
pub struct GroupFile {
    /// Its bytes.
    pub layout: Layout,
    /// What it does not hold.
    pub omitted: Vec<Omitted>,
}

/// Something that a file does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// The path of the array (or group) below the group of the file.
    pub name: String,
    /// Why.
    pub reason: FormatError,
}

/// What is asked of group files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The dimension that is to be the record dimension of NetCDF.
    pub unlimited: Option<String>,
}

impl Array {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// What dimension `axis` goes along.
    pub(super) fn kind(&self, axis: usize) -> AxisKind {
        let axis = self.axes.get(axis);
        axis.map(|axis| axis.kind).unwrap_or_default()
    }

    /// Number of elements.
    ///
    /// # Errors
    ///
    /// When 64 bits cannot say it.
    pub fn n_elements(&self) -> Result<u64, FormatError> {
        product(&self.shape).ok_or_else(|| self.too_large())
    }

    /// Bytes of all elements.
    ///
    /// # Errors
    ///
    /// When a file cannot be so long.
    pub fn n_bytes(&self) -> Result<u64, FormatError> {
        self.n_elements()?
            .checked_mul(self.data_type.item_size)
            .filter(|&bytes| i64::try_from(bytes).is_ok())
            .ok_or_else(|| self.too_large())
    }

    fn too_large(&self) -> FormatError {
        let found = format!("{:?} x {}", self.shape, self.data_type.item_size);
        let what = "the size of the array in bytes";
        too_large(what, &found, i64::MAX.unsigned_abs())
    }
}
