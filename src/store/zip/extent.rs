//! Where an entry is in the zip file.

use std::ops::Range;

/// Where the bytes of an entry are in the zip file, and how they are encoded.
#[derive(Debug)]
pub(super) struct Extent {
    pub(super) bytes: Range<u64>,
    pub(super) coding: Coding,
    pub(super) crc: u32,
}

/// How the bytes of an entry are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Stored,
    Deflated,
}
