//! Computes the header and the directories of a `BigTIFF`, and the values that have no room in them.
//!
//! ```text
//! 0      "II", 43, 8, 0, offset of the first directory
//! 16     bytes for readers that look for them (the ghost area of a COG); none elsewhere
//! .      for each plane, its directories: the image, then its levels, each with what differs from plane to plane
//! .        entries, then the arrays of offsets and sizes of strips or tiles, and the offsets of the levels
//! .      the values that are the same in all planes: descriptions, names, coordinate systems
//! P      the elements, at a multiple of 4096
//! ```
//!
//! The directories and the arrays of a large image take many megabytes, so they are computed when they are
//! read. All planes have directories of one size, except the first, which has fields of its own.
//! <https://www.awaresystems.be/imaging/tiff/bigtiff.html>

mod block;
mod shared;

use super::file_too_large;
use super::tiff::Field;
use crate::error::FormatError;
use block::Block;
use shared::SharedValues;

/// The alignment of the first plane.
pub(super) const ALIGNMENT: u64 = 4096;

/// Size of the header in bytes.
const HEADER: u64 = 16;

/// The links that lead from an image to its levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Linking {
    /// The image points to its levels with [`FieldValues::Levels`](super::tiff::FieldValues::Levels), and
    /// to the next image.
    ByField,
    /// Each directory points to the next one.
    InChain,
}

/// The directories of a file.
#[derive(Debug, Hash)]
pub struct Directories {
    ghost: Vec<u8>,
    /// The directories of the first plane, and of each plane after it.
    first: Block,
    others: Block,
    n_planes: u64,
    linking: Linking,
    /// The values that have no room in their entries and are the same in all planes.
    shared: Vec<u8>,
    /// Offset of the first plane.
    payload: u64,
}

impl Directories {
    /// The directories of `n_planes` planes (at least one). Each has the fields of its image, and of each
    /// level of the image, in `levels`. The image of the first plane also has the fields `own`.
    ///
    /// # Errors
    ///
    /// When they exceed the greatest file offset.
    pub(super) fn new(
        ghost: Vec<u8>,
        levels: &[Vec<Field>],
        own: &[Field],
        n_planes: u64,
        linking: Linking,
    ) -> Result<Directories, FormatError> {
        let mut shared = SharedValues::default();
        let mut first = levels.to_vec();
        if let Some(image) = first.first_mut() {
            image.extend_from_slice(own);
        }
        let first = Block::new(&first, &mut shared);
        let others = Block::new(levels, &mut shared);
        let (Some(first), Some(others)) = (first, others) else {
            return Err(file_too_large());
        };
        let directories = Directories {
            ghost,
            first,
            others,
            n_planes,
            linking,
            shared: shared.into_bytes(),
            payload: 0,
        };
        let blocks = (n_planes.saturating_sub(1)).checked_mul(directories.others.bytes());
        let all = [
            HEADER,
            directories.ghost.len() as u64,
            directories.first.bytes(),
            directories.shared.len() as u64,
            ALIGNMENT,
        ];
        let end = all.into_iter().try_fold(0_u64, u64::checked_add);
        let end = end
            .zip(blocks)
            .and_then(|(end, blocks)| end.checked_add(blocks));
        end.filter(|&end| i64::try_from(end).is_ok())
            .ok_or_else(file_too_large)?;
        let payload = directories.len().next_multiple_of(ALIGNMENT);
        Ok(Directories {
            payload,
            ..directories
        })
    }

    /// Offset of the first plane.
    pub(super) fn payload(&self) -> u64 {
        self.payload
    }

    /// Length of everything before the elements in bytes.
    pub(super) fn len(&self) -> u64 {
        self.shared_place() + self.shared.len() as u64
    }

    /// Estimate of the memory that the directories take, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.shared.len() as u64 + self.first.memory_bytes() + self.others.memory_bytes()
    }

    /// Offset of the first directory of plane `index`.
    fn place(&self, index: u64) -> u64 {
        let first = HEADER + self.ghost.len() as u64;
        match index.checked_sub(1) {
            None => first,
            Some(before) => first + self.first.bytes() + before * self.others.bytes(),
        }
    }

    /// Offset of the values that all planes share.
    fn shared_place(&self) -> u64 {
        self.place(self.n_planes)
    }

    /// The last plane whose directories begin at or before `offset`; the first if there is none.
    fn index_at(&self, offset: u64) -> u64 {
        let index = match offset.checked_sub(self.place(1)) {
            None => 0,
            Some(behind) => 1 + behind / self.others.bytes().max(1),
        };
        index.min(self.n_planes - 1)
    }

    /// Fills `out` with the bytes at `offset`; the range must not exceed [`Directories::len`].
    pub(super) fn fill(&self, offset: u64, out: &mut [u8]) {
        let mut header = b"II\x2b\0\x08\0\0\0".to_vec();
        header.extend(self.place(0).to_le_bytes());
        copy(&header, 0, offset, out);
        copy(&self.ghost, HEADER, offset, out);
        copy(&self.shared, self.shared_place(), offset, out);
        let end = offset.saturating_add(out.len() as u64);
        let mut index = self.index_at(offset);
        while index < self.n_planes && self.place(index) < end {
            let block = if index == 0 {
                &self.first
            } else {
                &self.others
            };
            let next = match index + 1 {
                next if next < self.n_planes => self.place(next),
                _ => 0,
            };
            let plane = block::Plane {
                index,
                place: self.place(index),
                next,
                shared: self.shared_place(),
                payload: self.payload,
            };
            block.fill(&plane, self.linking, offset, out);
            index += 1;
        }
    }
}

/// Copies the overlap of `bytes`, which have the offset `place` in the file, with `out`, which has
/// `offset`.
fn copy(bytes: &[u8], place: u64, offset: u64, out: &mut [u8]) {
    let skip = |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let bytes = bytes.get(skip(place, offset)..).unwrap_or_default();
    let out = out.get_mut(skip(offset, place)..).unwrap_or_default();
    let n = bytes.len().min(out.len());
    out[..n].copy_from_slice(&bytes[..n]);
}
