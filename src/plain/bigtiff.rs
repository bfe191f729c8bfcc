//! Computes the header and the directories of a `BigTIFF`.

use super::tiff::{self, FieldType, Sample};

/// The alignment of the first plane.
pub(super) const ALIGNMENT: u64 = 4096;

/// Size of the header in bytes.
const HEADER: u64 = 16;
/// Size of an entry in bytes.
const ENTRY: u64 = 20;

/// The directories of a file, one for each plane; the description, to which the first directory
/// points, follows the last directory.
#[derive(Debug)]
pub struct Directories {
    plane_shape: [u64; 2],
    n_planes: u64,
    plane_bytes: u64,
    sample: Sample,
    description_len: u64,
    /// Offset of the first plane.
    payload: u64,
}

impl Directories {
    /// The directories of `n_planes` (1 to 2^31) planes that have `bytes` bytes together.
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

    /// Size of a directory in bytes; the first one has one more entry.
    fn directory_bytes(&self) -> u64 {
        8 + self.sample.n_entries() * ENTRY + 8
    }

    fn first_bytes(&self) -> u64 {
        self.directory_bytes() + ENTRY
    }

    /// Offset of directory `index`.
    fn place(&self, index: u64) -> u64 {
        match index {
            0 => HEADER,
            _ => HEADER + self.first_bytes() + (index - 1) * self.directory_bytes(),
        }
    }

    /// The last directory that begins at or before `offset`; the first if there is none.
    fn index_at(&self, offset: u64) -> u64 {
        let index = match offset.checked_sub(HEADER + self.first_bytes()) {
            None => 0,
            Some(behind) => 1 + behind / self.directory_bytes(),
        };
        index.min(self.n_planes - 1)
    }

    fn directory(&self, index: u64) -> Vec<u8> {
        let description = (index == 0).then(|| (self.description_len, self.len()));
        // `LayoutBuilder::finish` refuses a file in which this does not fit.
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
            next if next < self.n_planes => self.place(next),
            _ => 0,
        };
        bytes.extend(next.to_le_bytes());
        bytes
    }

    /// Length of the header and all directories in bytes.
    pub(super) fn len(&self) -> u64 {
        HEADER + self.first_bytes() + (self.n_planes - 1) * self.directory_bytes()
    }

    /// Fills `out` with the bytes at `offset`; the range must not exceed [`Directories::len`].
    pub(super) fn fill(&self, offset: u64, out: &mut [u8]) {
        let mut header = b"II\x2b\0\x08\0\0\0".to_vec();
        header.extend(HEADER.to_le_bytes());
        copy(&header, 0, offset, out);
        let end = offset.saturating_add(out.len() as u64);
        let mut index = self.index_at(offset);
        while index < self.n_planes && self.place(index) < end {
            let place = self.place(index);
            copy(&self.directory(index), place, offset, out);
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
