//! The facts in the central directory about the bytes of an entry.

/// How the bytes of an entry are stored. The local header says where they begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Where the local header begins.
    pub(super) header_offset: u64,
    /// The length of the local header without extra fields, or more.
    pub(super) header_len: usize,
    /// The number of bytes in the zip file.
    pub(super) stored: u64,
    pub(super) coding: Coding,
    pub(super) crc: u32,
}

/// How the bytes of an entry are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Stored,
    Deflated,
}
