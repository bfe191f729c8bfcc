//! Plain file formats: whole arrays as files for programs that know no Zarr.
//!
//! A file of every format is made of bytes that follow from metadata (a header, perhaps a tail) and
//! runs of array elements, at offsets that are known before any chunk is decoded. A [`Layout`] maps
//! each byte of a file to one of these. It is built from the description of an [`Array`] (or of a
//! [`Group`] of them) and never from elements. A reader of the layout supplies the elements, so
//! this module does no I/O and knows no chunks.
//!
//! A format refuses an array that it cannot hold without loss, and the error names the reason:
//! nothing is narrowed or rounded. A user may ask for narrower integers; then each integer is
//! checked when it is read.

mod array;
mod axes;
mod bigtiff;
mod cf;
mod chunk_strings;
mod envi;
mod fits;
mod format;
pub mod geo;
mod geo_tiff;
mod group_file;
mod hdf5;
mod image;
mod imagej;
pub mod jsonl;
mod layout;
mod mhd;
mod mrc;
mod narrowing;
mod netcdf;
mod nifti;
mod npy;
mod nrrd;
mod number;
mod ome_tiff;
mod packing;
mod png;
mod rational;
mod raw;
mod selection;
mod sidecar;
mod strings;
mod symbols;
#[cfg(test)]
mod testing;
mod tiff;
mod tiled;
mod too_large;
mod transform;
mod vti;
mod xml_text;

pub use array::{Array, Group, Omitted, Options};
pub use axes::{
    Ancestor, Axis, AxisKind, Channel, Surroundings, axes, axes_of_n5, coarser_levels, multiscale,
};
pub use chunk_strings::{ChunkElements, chunk_strings};
pub use format::{FileFormat, Scope};
pub use geo::{GeoFacts, GeoSources, Georeference};
pub use geo_tiff::{GeoTiff, crs_beside, geo_tiff};
pub use group_file::GroupFile;
pub use layout::{
    AxisOrder, ElementBox, Elements, Layout, LayoutPart, PartContent, Plan, PlannedRun, Slabs,
    TileAxes, TileRange, Tiles,
};
pub use narrowing::{NarrowType, Narrowing};
pub use png::{LabelColours, Preview};
pub use selection::{SIGN, Selected, Selection};
pub use sidecar::{
    GroupSidecarFacts, LeftOut, MOST_INDENTED, SidecarFacts, group_sidecar, sidecar,
};
pub use strings::{ELEMENT_BYTES, ElementKind, Strings, StringsLimit};
pub use transform::{RecordText, TextField, Transform};

use crate::error::FormatError;
use crate::metadata::Attributes;
use hdf5::Convention;
use too_large::file_too_large;

/// Whether a group with these attributes holds an `AnnData` object, which [`FileFormat::H5ad`] is for.
pub fn is_anndata(attributes: &Attributes) -> bool {
    hdf5::is_anndata(attributes)
}

/// Lays out one array as a file of `format`, which has [`Scope::Array`]. Wide integers become
/// numbers of the type `integers` in a file of an image, if it is given.
///
/// # Errors
///
/// [`FormatError`] when the format cannot hold the array without loss; it names the data type,
/// shape or name that does not fit.
pub fn array_file(
    format: FileFormat,
    array: &Array,
    integers: Option<NarrowType>,
) -> Result<Layout, FormatError> {
    let narrowed = integers.map(|to| Narrowing::of(array, format, to));
    match narrowed.transpose()?.flatten() {
        Some((narrowed, narrowing)) => {
            let layout = file_as_it_is(format, &narrowed)?;
            Ok(layout.with_transform(&narrowing.transform()))
        }
        None => file_as_it_is(format, array),
    }
}

/// Lays out one array with elements of its own type.
fn file_as_it_is(format: FileFormat, array: &Array) -> Result<Layout, FormatError> {
    match format {
        FileFormat::Raw => raw::layout(array),
        FileFormat::Npy => npy::layout(array),
        FileFormat::Nhdr => nrrd::layout(array),
        FileFormat::Mhd => mhd::layout(array),
        FileFormat::Envi => envi::layout(array),
        FileFormat::Tif => imagej::layout(array),
        FileFormat::OmeTif => ome_tiff::layout(array),
        FileFormat::GeoTif => geo_tiff(array, &[]).map(|file| file.layout),
        FileFormat::Nii => nifti::layout(array),
        FileFormat::Vti => vti::layout(array),
        FileFormat::Mrc => mrc::layout(array),
        FileFormat::Fits => fits::layout(array),
        FileFormat::Jsonl
        | FileFormat::Png
        | FileFormat::Nc
        | FileFormat::Nc4
        | FileFormat::Nc5
        | FileFormat::H5
        | FileFormat::H5ad => Err(format.refused("", array.name.as_str())),
    }
}

/// Lays out a group as a file of `format`, which has [`Scope::Group`]. The file omits what the
/// format cannot hold, and [`GroupFile::omitted`] lists it.
///
/// # Errors
///
/// [`FormatError`] when the format can hold nothing of the group.
pub fn group_file(
    format: FileFormat,
    group: &Group,
    options: &Options,
) -> Result<GroupFile, FormatError> {
    let with_maps = || cf::with_grid_mappings(group);
    match format {
        FileFormat::Nc => netcdf::file(&with_maps(), options),
        FileFormat::Nc5 => netcdf::classic_file(&with_maps(), netcdf::Cdf::Five, options),
        FileFormat::Nc4 => hdf5::file(&with_maps(), Convention::NetCdf),
        FileFormat::H5 => hdf5::file(&with_maps(), Convention::H5py),
        FileFormat::H5ad => hdf5::file(group, Convention::AnnData),
        FileFormat::OmeTif => ome_tiff::pyramid(group, options),
        _ => Err(format.refused("", group.name.as_str())),
    }
}
