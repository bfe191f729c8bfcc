//! The facts in the central directory about the bytes of an entry.

/// The place and coding of the bytes of an entry. Only the local header shows at which offset the bytes begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// The offset of the local header.
    pub(super) header_offset: u64,
    /// The number of bytes to read as the local header: at least its length without extra fields.
    pub(super) header_len: usize,
    /// The number of bytes that the entry has in the zip file.
    pub(super) stored: u64,
    pub(super) coding: Coding,
    pub(super) crc: u32,
}

/// The coding of the bytes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Stored,
    Deflated,
}
