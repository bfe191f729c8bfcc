//! The supported file formats, their names and their extensions.

use super::array::Array;
use crate::error::FormatError;

/// A plain file format, as `--files` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileFormat {
    /// The elements and nothing else.
    Raw,
    /// NumPy's file of one array.
    Npy,
    /// NRRD header beside a `.raw` file.
    Nhdr,
    /// MetaImage header beside a `.raw` file.
    Mhd,
    /// ENVI header beside a `.raw` file.
    Envi,
    /// The arrays directly in a group as `NetCDF`: CDF-2 where everything fits, else `NetCDF`-4.
    Nc,
    /// A group, and the groups in it, as `NetCDF`-4.
    Nc4,
    /// The arrays directly in a group as CDF-5.
    Nc5,
    /// `ImageJ`'s TIFF stack.
    Tif,
    /// BigTIFF with OME-XML.
    OmeTif,
    /// GeoTIFF in tiles.
    GeoTif,
    /// NIfTI-1, or NIfTI-2 where that is too small.
    Nii,
    /// VTK's image data.
    Vti,
    /// A group, and the groups in it, as HDF5 in the conventions of h5py.
    H5,
    /// A group that holds an `AnnData` object, as HDF5 in the conventions of `anndata`.
    H5ad,
    /// Electron microscopy's MRC2014.
    Mrc,
    /// Astronomy's FITS.
    Fits,
    /// A small picture of a plane.
    Png,
    /// Strings or bytes of any length, one JSON value a line.
    Jsonl,
}

/// The content of one file of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One array.
    Array,
    /// The arrays of a group, or the levels of an image.
    Group,
}

impl FileFormat {
    /// All formats, in the order in which they are listed.
    pub const ALL: [FileFormat; 19] = [
        FileFormat::Npy,
        FileFormat::Raw,
        FileFormat::Nhdr,
        FileFormat::Mhd,
        FileFormat::Envi,
        FileFormat::Nc,
        FileFormat::Nc4,
        FileFormat::Nc5,
        FileFormat::H5,
        FileFormat::H5ad,
        FileFormat::Tif,
        FileFormat::OmeTif,
        FileFormat::GeoTif,
        FileFormat::Nii,
        FileFormat::Vti,
        FileFormat::Mrc,
        FileFormat::Fits,
        FileFormat::Png,
        FileFormat::Jsonl,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            FileFormat::Envi => "envi",
            FileFormat::Nc4 => "nc4",
            FileFormat::Nc5 => "nc5",
            other => other.extension(),
        }
    }

    /// Other words by which users know the format.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            FileFormat::Npy => &["numpy"],
            FileFormat::Nhdr => &["nrrd"],
            FileFormat::Nc => &["netcdf"],
            FileFormat::H5 => &["hdf5"],
            FileFormat::Tif => &["tiff"],
            FileFormat::OmeTif => &["ome.tiff"],
            FileFormat::GeoTif => &["geotiff"],
            FileFormat::Nii => &["nifti"],
            _ => &[],
        }
    }

    /// The format called `name`, or known by it.
    pub fn of_name(name: &str) -> Option<FileFormat> {
        FileFormat::ALL
            .into_iter()
            .find(|format| format.name() == name || format.aliases().contains(&name))
    }

    /// The file name extension, without the dot in front of it.
    pub fn extension(self) -> &'static str {
        self.words().0
    }

    /// The name in error messages.
    pub fn title(self) -> &'static str {
        self.words().1
    }

    /// The extension and the name in error messages.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            FileFormat::Raw => ("raw", "raw binary"),
            FileFormat::Npy => ("npy", "npy"),
            FileFormat::Nhdr => ("nhdr", "NRRD"),
            FileFormat::Mhd => ("mhd", "MetaImage"),
            // The extension is never `hdr`: where `a.hdr` exists, GDAL reads any other `a.*` as
            // ENVI.
            FileFormat::Envi => ("raw.hdr", "ENVI"),
            FileFormat::Nc => ("nc", "NetCDF"),
            FileFormat::Nc4 => ("nc", "NetCDF-4"),
            FileFormat::Nc5 => ("nc", "CDF-5"),
            FileFormat::Tif => ("tif", "ImageJ TIFF"),
            FileFormat::OmeTif => ("ome.tif", "OME-TIFF"),
            FileFormat::GeoTif => ("geo.tif", "GeoTIFF"),
            FileFormat::Nii => ("nii", "NIfTI"),
            FileFormat::Vti => ("vti", "VTK image data"),
            FileFormat::H5 => ("h5", "HDF5"),
            FileFormat::H5ad => ("h5ad", "AnnData HDF5"),
            FileFormat::Mrc => ("mrc", "MRC"),
            FileFormat::Fits => ("fits", "FITS"),
            FileFormat::Png => ("png", "PNG"),
            FileFormat::Jsonl => ("jsonl", "JSON lines"),
        }
    }

    /// Whether there are files of this format with such a content. An array and an image of several arrays can both be an
    /// OME-TIFF.
    pub fn has(self, scope: Scope) -> bool {
        let is_of_groups = matches!(
            self,
            FileFormat::Nc | FileFormat::Nc4 | FileFormat::Nc5 | FileFormat::H5 | FileFormat::H5ad
        );
        match scope {
            Scope::Array => !is_of_groups,
            Scope::Group => is_of_groups || self.holds_levels(),
        }
    }

    /// Whether a file of this format holds the levels of an image: arrays that are one picture, each coarser than the one before it.
    pub fn holds_levels(self) -> bool {
        self == FileFormat::OmeTif
    }

    /// Whether a file of this format holds the groups in a group, too.
    pub fn holds_subgroups(self) -> bool {
        matches!(self, FileFormat::Nc4 | FileFormat::H5 | FileFormat::H5ad)
    }

    /// Whether a file of this format has the elements, their type and the shape, and nothing that comes from
    /// attributes.
    pub fn tells_only_elements(self) -> bool {
        matches!(self, FileFormat::Raw | FileFormat::Npy)
    }

    /// Whether a user may have integers narrowed in files of this format: those of images, because
    /// some programs for images open no wide integers.
    pub fn takes_narrowed(self) -> bool {
        matches!(
            self,
            FileFormat::Tif | FileFormat::OmeTif | FileFormat::Nii | FileFormat::Mrc
        )
    }

    /// Whether a file of this format can have a record dimension.
    pub fn has_records(self) -> bool {
        matches!(self, FileFormat::Nc | FileFormat::Nc5)
    }

    /// Whether a file of this format is only a header that refers to the `.raw` file.
    pub fn points_to_raw(self) -> bool {
        matches!(self, FileFormat::Nhdr | FileFormat::Mhd | FileFormat::Envi)
    }

    /// Whether a file of this format holds the transform of its pixels, for which coordinates may have to be read. `NetCDF`
    /// and HDF5 hold the coordinates themselves.
    pub fn tells_transform(self) -> bool {
        matches!(self, FileFormat::Envi | FileFormat::GeoTif)
    }

    /// An error: the format cannot express `name`, which stands at `place`.
    pub(super) fn refused(self, place: &str, name: impl Into<String>) -> FormatError {
        FormatError::inexpressible(place, name, self.title())
    }

    /// An error: the format lacks the data type of `array`.
    pub(super) fn refused_type(self, array: &Array) -> FormatError {
        self.refused("data type", array.data_type.name.as_str())
    }

    /// An error: the format cannot hold the shape of `array`.
    pub(super) fn refused_shape(self, array: &Array) -> FormatError {
        self.refused("shape", format!("{:?}", array.shape))
    }

    /// An error: the format has fewer dimensions than `array`, without those of length 1, which a file can leave out.
    pub(super) fn too_many_dimensions(self, array: &Array) -> FormatError {
        let n = array.shape.iter().filter(|&&length| length > 1).count();
        self.refused("shape", format!("{n} dimensions longer than 1"))
    }
}

/// The beginning of a name or unit, for an error: those of a store may be of any length.
pub(super) fn shortened(word: &str) -> String {
    const LONGEST: usize = 32;
    word.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for format in FileFormat::ALL {
            assert_eq!(FileFormat::of_name(format.name()), Some(format));
            for alias in format.aliases() {
                assert_eq!(FileFormat::of_name(alias), Some(format));
            }
        }
        assert_eq!(FileFormat::of_name("raw.hdr"), None);
    }
}
