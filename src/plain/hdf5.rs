//! HDF5: a group with its arrays, attributes and subgroups as one file, by the conventions of h5py,
//! of `NetCDF`-4 or of `AnnData` ([`Convention`]). The first of these is a valid file of `NetCDF`-4,
//! too, but its library does not read every type in it.
//!
//! ```text
//! offset 0     48                               multiple of 4096
//!        | superblock | headers, types, heaps | small payloads | large payload | …
//! ```
//!
//! Everything is written in its newest simple form: superblock 2, object headers 2, links and
//! attributes as messages, contiguous data. So there is no B-tree, no symbol table and no chunk
//! index, and every address follows from metadata alone.
//!
//! ```text
//!  0  89 'HDF' 0D 0A 1A 0A   2   8  8   0
//! 12  base 0 u64    ~0 u64   end of file u64   root header u64   checksum of all before u32
//! ```
//!
//! Dimensions are dimension scales in the form of the `NetCDF` library, which finds their names
//! there. Links and attributes keep their order. A contiguous dataset cannot grow, so no dimension
//! is unlimited. Strings of any length are in global heaps between the headers, so that their bytes
//! are known before the file is laid out.
//!
//! Sources: HDF5 File Format Specification 3.0; HDF5 Dimension Scale Specification; `NetCDF` File
//! Format Specifications, appendix "The `NetCDF`-4 Format".

mod anndata;
mod attribute;
mod block;
mod convention;
mod dataset;
mod datatype;
mod dimension;
mod header;
mod heap;
mod spelling;
mod tree;
mod types;

use super::{Array, Group, GroupFile, Layout};
use crate::codec::lookup3;
use crate::error::FormatError;
pub(super) use anndata::is_anndata;
use block::{PlacedBlocks, Pointee, UNDEFINED};
pub(super) use convention::Convention;
use dataset::Dataset;

/// Size of the superblock in bytes.
const SUPERBLOCK: u64 = 48;
const SIGNATURE: [u8; 12] = *b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00";

/// Lays out `group` as a file by `convention`.
///
/// # Errors
///
/// When the headers or the file would be too large.
pub(super) fn file(group: &Group, convention: Convention) -> Result<GroupFile, FormatError> {
    let (blocks, root, omitted) = tree::of(group, convention)?;
    let mut placed = blocks.place(SUPERBLOCK)?;
    let superblock = superblock(&placed, root);
    if let Some(start) = placed.bytes.get_mut(..superblock.len()) {
        start.copy_from_slice(&superblock);
    }

    let mut layout = Layout::builder();
    layout.bytes(placed.bytes);
    for (address, elements) in placed.payloads {
        layout.seek(address).elements(elements);
    }
    Ok(GroupFile {
        layout: layout.finish()?,
        omitted,
    })
}

/// Whether a file by `convention` can hold `array`.
pub(super) fn can_hold(array: &Array, convention: Convention) -> bool {
    Dataset::of(array, convention).is_ok()
}

fn superblock(placed: &PlacedBlocks, root: usize) -> Vec<u8> {
    let root = placed.addresses.of(Pointee::Block(root));
    let mut bytes = SIGNATURE.to_vec();
    for address in [0, UNDEFINED, placed.end, root] {
        bytes.extend(address.to_le_bytes());
    }
    let hash = lookup3(0, &[], &bytes);
    bytes.extend(hash.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;
