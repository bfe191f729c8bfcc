//! Dimension scales, by which the `NetCDF` library finds the dimensions of a dataset.
//!
//! ```text
//! time(time)        CLASS = DIMENSION_SCALE, NAME = time, _Netcdf4Dimid = 0
//! y, no variable    the same, of >f4 without data: NAME = "This is a netCDF dimension but …"
//! air(time, y)      DIMENSION_LIST = [[reference to time], [reference to y]]
//!                   _Netcdf4Coordinates = [0, 1], in files of `NetCDF`-4
//! ```
//!
//! Sources: HDF5 Dimension Scale Specification; `NetCDF` File Format Specifications, appendix
//! "The `NetCDF`-4 Format", section "Dimensions".

use super::attribute;
use super::block::{FileBlock, FileBlocks};
use super::datatype;
use super::header::{Datatype, ObjectHeader};
use super::heap::Heap;
use crate::dtype::ByteOrder;
use crate::error::FormatError;

/// The longest dimension: the size of its scale in bytes must fit 63 bits.
pub(super) const MOST_LENGTH: u64 = 1 << 60;

/// The dimension scale of one dimension of a group.
#[derive(Debug)]
pub(super) struct Scale {
    /// The block of the dataset that is the scale.
    pub(super) block: usize,
    /// The number of the dimension in the file.
    pub(super) id: i64,
}

impl Scale {
    /// Marks the dataset of `header`, which is called `name`, as this scale.
    pub(super) fn mark(&self, header: &mut ObjectHeader, name: &str) -> Result<(), FormatError> {
        attribute::add_c_string(header, "CLASS", "DIMENSION_SCALE")?;
        attribute::add_c_string(header, "NAME", name)?;
        // The `NetCDF` library writes a scalar here and not a list.
        let value = FileBlock::of(&self.number()?);
        header.attribute("_Netcdf4Dimid", &number_type()?, Some(&[]), &value)
    }

    /// The number of the dimension, as it is in the file.
    fn number(&self) -> Result<[u8; 4], FormatError> {
        let most = i32::MAX.unsigned_abs();
        let number = i32::try_from(self.id)
            .map_err(|_| FormatError::too_large("the number of dimensions", self.id, most))?;
        Ok(number.to_le_bytes())
    }

    /// The dataset for a dimension of length `len` without a coordinate variable.
    pub(super) fn without_variable(&self, len: u64) -> Result<FileBlock, FormatError> {
        let mut header = ObjectHeader::new();
        header
            .dataspace(Some(&[len]))?
            .datatype(&Datatype::Inline(datatype::ieee(4, ByteOrder::Big)?))?
            .fill_value(None)?
            .layout(None, len.saturating_mul(4))?;
        let name = format!("This is a netCDF dimension but not a netCDF variable.{len:10}");
        self.mark(&mut header, &name)?;
        header.finish()
    }
}

fn number_type() -> Result<Datatype, FormatError> {
    datatype::integer(4, true, ByteOrder::Little).map(Datatype::Inline)
}

/// Lists the numbers of the dimensions of a dataset. Without this list the `NetCDF` library
/// examines every scale, and cannot find the dimensions of a scale that has several, such as a
/// coordinate variable of text.
pub(super) fn number(
    header: &mut ObjectHeader,
    dimensions: &[usize],
    scales: &[Scale],
) -> Result<(), FormatError> {
    let mut value = FileBlock::default();
    for scale in dimensions.iter().filter_map(|&own| scales.get(own)) {
        value.push(&scale.number()?);
    }
    let space = [dimensions.len() as u64];
    header.attribute("_Netcdf4Coordinates", &number_type()?, Some(&space), &value)
}

/// Attaches `scales` to the dimensions of the dataset of `header`.
pub(super) fn attach(
    header: &mut ObjectHeader,
    dimensions: &[usize],
    scales: &[Scale],
    heap: &mut Heap,
    blocks: &mut FileBlocks,
) -> Result<(), FormatError> {
    let mut value = FileBlock::default();
    for &dimension in dimensions {
        if let Some(scale) = scales.get(dimension) {
            // References are not shared, so that a program that edits a copy of the file can free
            // each of them.
            heap.push_list(&mut value, scale.block, blocks)?;
        }
    }
    let datatype = Datatype::Inline(datatype::reference_lists()?);
    let space = [dimensions.len() as u64];
    header.attribute("DIMENSION_LIST", &datatype, Some(&space), &value)
}
