//! Plain file formats: whole arrays as files for programs that know no Zarr.
//!
//! Every format here is bytes made from metadata (a header, perhaps a tail) around runs of the
//! elements of arrays, at places that are known before anything is decoded. A [`Layout`] says
//! which byte of the file is which; it is made of what an [`Array`] (or a [`Group`] of them) is
//! said to be, never of elements. Reading one asks its caller for elements, so that this module
//! does no I/O and knows no chunks.
//!
//! A format that cannot hold an array without loss refuses it, by name: nothing is narrowed,
//! nothing is rounded.

mod array;
mod axes;
mod cf;
mod envi;
mod fits;
mod format;
mod hdf5;
mod image;
mod imagej;
pub mod jsonl;
mod layout;
mod mhd;
mod mrc;
mod netcdf;
mod nifti;
mod npy;
mod nrrd;
mod number;
mod ome_tiff;
mod packing;
mod raw;
mod selection;
mod sidecar;
mod symbols;
#[cfg(test)]
mod testing;
mod tiff;
mod transform;
mod vti;
mod xml_text;

pub use array::{Array, Group, GroupFile, Omitted, Options};
pub use axes::{Axis, AxisKind, axes};
pub use format::{FileFormat, Scope};
pub use layout::{AxisOrder, Content, Elements, Layout, Part, Plan, PlannedRun, Slabs};
pub use selection::{SIGN, Selected, Selection};
pub use sidecar::{MOST_INDENTED, SidecarFacts, sidecar};
pub use transform::Transform;

use std::fmt::Display;

use crate::error::FormatError;

/// The file of one array in `format`, whose scope is [`Scope::Array`].
///
/// # Errors
///
/// [`FormatError`] when the format cannot hold the array without loss; it names what it cannot.
pub fn array_file(format: FileFormat, array: &Array) -> Result<Layout, FormatError> {
    match format {
        FileFormat::Raw => raw::layout(array),
        FileFormat::Npy => npy::layout(array),
        FileFormat::Nhdr => nrrd::layout(array),
        FileFormat::Mhd => mhd::layout(array),
        FileFormat::Envi => envi::layout(array),
        FileFormat::Tif => imagej::layout(array),
        FileFormat::OmeTif => ome_tiff::layout(array),
        FileFormat::Nii => nifti::layout(array),
        FileFormat::Vti => vti::layout(array),
        FileFormat::Mrc => mrc::layout(array),
        FileFormat::Fits => fits::layout(array),
        FileFormat::Jsonl | FileFormat::Nc | FileFormat::Nc5 | FileFormat::H5 => {
            Err(format.refused("", array.name.as_str()))
        }
    }
}

/// The file of a group in `format`, whose scope is [`Scope::Group`]. What the format cannot hold
/// of the group is left out, and named.
///
/// # Errors
///
/// [`FormatError`] when nothing of the group can be held.
pub fn group_file(
    format: FileFormat,
    group: &Group,
    options: &Options,
) -> Result<GroupFile, FormatError> {
    match format {
        FileFormat::Nc => netcdf::file(group, netcdf::Cdf::Two, options),
        FileFormat::Nc5 => netcdf::file(group, netcdf::Cdf::Five, options),
        FileFormat::H5 => hdf5::file(group, options),
        _ => Err(format.refused("", group.name.as_str())),
    }
}

/// The error that `what` is `found`, and must not be more than `limit`.
fn too_large(what: &'static str, found: &dyn Display, limit: impl Into<u64>) -> FormatError {
    FormatError::TooLarge {
        what,
        found: found.to_string(),
        limit: limit.into(),
    }
}

/// The error that a file would be longer than its length can be.
fn file_too_large() -> FormatError {
    let what = "the size of the file in bytes";
    too_large(what, &"more", i64::MAX.unsigned_abs())
}
