//! The conventions of the libraries that a file is for. They spell the same array in different
//! ways.
//!
//! | | h5py | `NetCDF`-4 | `AnnData` |
//! |---|---|---|---|
//! | truth values | enum `FALSE`, `TRUE` | int8, and `dtype = "bool"` | as h5py |
//! | complex numbers | compound of `r` and `i` | floats, and a dimension `ri` of 2 | as h5py |
//! | text of a fixed length | one string | chars, and a dimension `string12`; single bytes are chars | as h5py |
//! | strings of any length | variable-length strings | the same | the same |
//! | dimensions | dimension scales | the same | none |
//! | attributes that are text | strings of a fixed length | the same | variable-length strings |
//! | names | as `NetCDF` allows them | the same | as they are |

use crate::plain::FileFormat;

/// A convention of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plain) enum Convention {
    /// As h5py writes elements, with the dimensions of `NetCDF`-4.
    H5py,
    /// As the `NetCDF` library writes files of `NetCDF`-4.
    NetCdf,
    /// As `anndata` writes files `.h5ad`.
    AnnData,
}

impl Convention {
    /// The format of the file, for error messages.
    pub(super) fn format(self) -> FileFormat {
        match self {
            Convention::H5py => FileFormat::H5,
            Convention::NetCdf => FileFormat::Nc4,
            Convention::AnnData => FileFormat::H5ad,
        }
    }

    /// Whether the file has dimension scales and named types, and only names that the `NetCDF`
    /// library can read.
    pub(super) fn is_for_netcdf(self) -> bool {
        self != Convention::AnnData
    }
}
