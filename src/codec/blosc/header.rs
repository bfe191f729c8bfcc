//! The header of a buffer of C-Blosc 1.

use crate::error::FormatError;

const NAME: &str = "blosc";

/// The header of a buffer: its first 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BloscLayout {
    pub(super) inner_version: u8,
    pub(super) flags: u8,
    pub(super) typesize: usize,
    pub(super) nbytes: usize,
    pub(super) blocksize: usize,
    pub(super) cbytes: usize,
}

pub(super) const VERSION: u8 = 2;
pub(super) const HEADER_LEN: usize = 16;
pub(super) const FLAG_MEMCPY: u8 = 1 << 1;
pub(super) const FLAG_RESERVED: u8 = 1 << 3;
pub(super) const FLAG_NOT_SPLIT: u8 = 1 << 4;

impl BloscLayout {
    /// The header at the beginning of `encoded`, for a buffer in `encoded_len` bytes.
    pub(super) fn read(encoded: &[u8], encoded_len: usize) -> Result<BloscLayout, FormatError> {
        let Some(
            &[
                [version, inner_version, flags, typesize],
                nbytes,
                blocksize,
                cbytes,
            ],
        ) = encoded.as_chunks().0.first_chunk()
        else {
            let problem = format!("{encoded_len} bytes, too short for a header");
            return Err(refused(problem));
        };
        let header = BloscLayout {
            inner_version,
            flags,
            typesize: usize::from(typesize),
            nbytes: length_of(nbytes).ok_or_else(|| refused("length over 2 GiB"))?,
            blocksize: length_of(blocksize).ok_or_else(|| refused("block over 2 GiB"))?,
            cbytes: length_of(cbytes).ok_or_else(|| refused("size over 2 GiB"))?,
        };
        let problem = if version != VERSION {
            format!("version {version}, expected {VERSION}")
        } else if flags & FLAG_RESERVED != 0 {
            format!("unknown flags {flags:#04x}")
        } else if typesize == 0 {
            "element size 0".to_owned()
        } else if header.nbytes > 0 && !(1..=header.nbytes).contains(&header.blocksize) {
            format!("blocks of {} bytes in {}", header.blocksize, header.nbytes)
        } else if !(HEADER_LEN..=encoded_len).contains(&header.cbytes) {
            format!("{encoded_len} bytes, the header says {}", header.cbytes)
        } else {
            return Ok(header);
        };
        Err(refused(problem))
    }

    /// The number of splits of a block of `length` bytes, computed as `blosc_d` does.
    pub(super) fn splits(&self, length: usize) -> usize {
        const MAX_SPLITS: usize = 16;
        const MIN_BUFFERSIZE: usize = 128;
        let split = self.flags & FLAG_NOT_SPLIT == 0
            && self.typesize <= MAX_SPLITS
            && length / self.typesize >= MIN_BUFFERSIZE
            && length == self.blocksize;
        if split { self.typesize } else { 1 }
    }
}

/// A length, which is an `i32`; `None` when it is negative.
pub(super) fn length_of(bytes: [u8; 4]) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(bytes)).ok()
}

pub(super) fn refused(problem: impl Into<String>) -> FormatError {
    FormatError::encoded(NAME, problem)
}
