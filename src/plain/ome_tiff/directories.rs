//! The header and the directories of a `BigTIFF`, by arithmetic.

use super::super::tiff::{self, FieldType, Sample};
use super::ALIGNMENT;

/// Bytes of the header.
const HEADER: u64 = 16;
/// Bytes of a directory of 11 entries, and of one of 12.
const DIRECTORY: u64 = 8 + 11 * 20 + 8;
const FIRST: u64 = DIRECTORY + 20;

/// A directory for each plane, the first with a description behind all of them.
#[derive(Debug)]
pub struct Directories {
    plane_shape: [u64; 2],
    n_planes: u64,
    plane_bytes: u64,
    sample: Sample,
    description_len: u64,
    /// Where the first plane is.
    payload: u64,
}

impl Directories {
    /// Of `n_planes` planes, 1 to 2^31 of them, that together have `bytes`.
    pub(super) fn new(
        plane_shape: [u64; 2],
        n_planes: u64,
        bytes: u64,
        sample: Sample,
        description_len: usize,
    ) -> Directories {
        let mut directories = Directories {
            plane_shape,
            n_planes,
            plane_bytes: bytes / n_planes.max(1),
            sample,
            description_len: description_len as u64,
            payload: 0,
        };
        let end = directories.len() + directories.description_len;
        directories.payload = end.next_multiple_of(ALIGNMENT);
        directories
    }

    /// Where directory `index` is.
    fn place(index: u64) -> u64 {
        match index {
            0 => HEADER,
            _ => HEADER + FIRST + (index - 1) * DIRECTORY,
        }
    }

    /// The last directory that begins at `offset` or before, which is not before the first.
    fn index_at(&self, offset: u64) -> u64 {
        let index = match offset.checked_sub(HEADER + FIRST) {
            None => 0,
            Some(behind) => 1 + behind / DIRECTORY,
        };
        index.min(self.n_planes - 1)
    }

    fn directory(&self, index: u64) -> Vec<u8> {
        let description = (index == 0).then(|| (self.description_len, self.len()));
        // The layout is refused where this would not fit.
        let before = index.wrapping_mul(self.plane_bytes);
        let strip = (self.payload.wrapping_add(before), self.plane_bytes);
        let entries = tiff::entries(
            self.plane_shape,
            self.sample,
            description,
            strip,
            FieldType::Long8,
        );
        let mut bytes = (entries.len() as u64).to_le_bytes().to_vec();
        for entry in entries {
            bytes.extend(entry.big());
        }
        let next = match index + 1 {
            next if next < self.n_planes => Directories::place(next),
            _ => 0,
        };
        bytes.extend(next.to_le_bytes());
        bytes
    }

    /// Bytes of the header and all directories.
    pub(in crate::plain) fn len(&self) -> u64 {
        HEADER + FIRST + (self.n_planes - 1) * DIRECTORY
    }

    /// Fills `out`, which begins at `offset` and ends where the directories do or before.
    pub(in crate::plain) fn fill(&self, offset: u64, out: &mut [u8]) {
        let mut header = b"II\x2b\0\x08\0\0\0".to_vec();
        header.extend(HEADER.to_le_bytes());
        copy(&header, 0, offset, out);
        let end = offset.saturating_add(out.len() as u64);
        let mut index = self.index_at(offset);
        while index < self.n_planes && Directories::place(index) < end {
            let place = Directories::place(index);
            copy(&self.directory(index), place, offset, out);
            index += 1;
        }
    }
}

/// Copies what `bytes` at `place` and `out` at `offset` share.
fn copy(bytes: &[u8], place: u64, offset: u64, out: &mut [u8]) {
    let skip = |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let bytes = bytes.get(skip(place, offset)..).unwrap_or_default();
    let out = out.get_mut(skip(offset, place)..).unwrap_or_default();
    let n = bytes.len().min(out.len());
    out[..n].copy_from_slice(&bytes[..n]);
}
