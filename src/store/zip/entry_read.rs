//! Reads parts of an entry of an object whose local header may not be known yet.
//!
//! Each read of an object is a request, so the header is read together with the bytes, before it is
//! known where these begin. Without extra fields the bytes begin right after the name. So some more
//! bytes are read from there on, and then all are moved to their places.
//!
//! ```text
//! in the file   | header, name | extra | bytes of the entry   |
//! read          | header       | part that is wanted  | over  |
//! moved                        | <---- | part that is wanted  |
//! ```

use super::extent::Extent;
use crate::store::ReadRange;

/// The most bytes of extra fields that cost no request of their own.
const MOST_EXTRA_BYTES: usize = 64;

/// Parts of an entry that are to be read.
pub(super) struct EntryRead<'b> {
    extent: Extent,
    /// The offset of the bytes of the entry; if the header is read too, their offset without extra
    /// fields.
    start: u64,
    header: Option<Vec<u8>>,
    parts: Vec<EntryPart<'b>>,
}

/// A part of an entry.
struct EntryPart<'b> {
    /// The offset of the part in the entry.
    offset: u64,
    buf: &'b mut [u8],
    /// The bytes that follow it.
    over: Vec<u8>,
}

impl<'b> EntryRead<'b> {
    /// A read of an entry whose bytes begin at `start`.
    pub(super) fn new(extent: Extent, start: u64) -> EntryRead<'b> {
        EntryRead {
            extent,
            start,
            header: None,
            parts: Vec::new(),
        }
    }

    /// A read of an entry whose local header is read too.
    pub(super) fn with_header(extent: Extent) -> EntryRead<'b> {
        let header = vec![0; extent.header_len];
        EntryRead {
            start: extent.header_offset.saturating_add(header.len() as u64),
            header: Some(header),
            extent,
            parts: Vec::new(),
        }
    }

    /// Adds the part at `offset` of the entry, which fills `buf`. All entries end at
    /// `end_of_entries`.
    pub(super) fn add(&mut self, offset: u64, buf: &'b mut [u8], end_of_entries: u64) {
        let mut over = 0;
        if self.header.is_some() {
            let end = self.start.saturating_add(offset);
            let left = end_of_entries.saturating_sub(end.saturating_add(buf.len() as u64));
            over =
                usize::try_from(left).map_or(MOST_EXTRA_BYTES, |left| left.min(MOST_EXTRA_BYTES));
        }
        self.parts.push(EntryPart {
            offset,
            buf,
            over: vec![0; over],
        });
    }

    /// The ranges of the file that have to be read.
    pub(super) fn ranges(&mut self, end_of_entries: u64) -> impl Iterator<Item = ReadRange<'_>> {
        let start = self.start;
        let header = self.header.as_mut().map(|header| ReadRange {
            offset_bytes: self.extent.header_offset,
            buf: header.as_mut_slice(),
        });
        // An entry whose key is longer than its name may seem to lie beyond the end.
        let is_before = start.saturating_add(self.extent.stored) <= end_of_entries;
        let parts = self.parts.iter_mut().filter(move |_| is_before);
        let parts = parts.flat_map(move |part| {
            let offset_bytes = start.saturating_add(part.offset);
            let end = offset_bytes.saturating_add(part.buf.len() as u64);
            let over = ReadRange {
                offset_bytes: end,
                buf: &mut part.over,
            };
            let buf = &mut *part.buf;
            [ReadRange { offset_bytes, buf }, over]
        });
        header.into_iter().chain(parts)
    }

    /// The local header that was read, if it was not known.
    pub(super) fn header(&self) -> Option<&[u8]> {
        self.header.as_deref()
    }

    /// Moves the bytes to their places, now that the header shows that the bytes of the entry begin at `start`. If that
    /// is too far away, returns the parts that must be read again.
    pub(super) fn moved_to(mut self, start: u64) -> Option<EntryRead<'b>> {
        let shift = start.checked_sub(self.start);
        let shift = shift.and_then(|shift| usize::try_from(shift).ok());
        let is_near = |shift: &usize| self.parts.iter().all(|part| *shift <= part.over.len());
        let Some(shift) = shift.filter(is_near) else {
            for part in &mut self.parts {
                part.over = Vec::new();
            }
            return Some(EntryRead {
                start,
                header: None,
                ..self
            });
        };
        for part in self.parts {
            shift_left(part.buf, &part.over, shift);
        }
        None
    }
}

/// Moves the bytes of `buf`, which `over` follow, to the left by `shift`.
fn shift_left(buf: &mut [u8], over: &[u8], shift: usize) {
    let len = buf.len();
    let kept = len.saturating_sub(shift);
    if kept > 0 {
        buf.copy_within(shift.., 0);
    }
    let from = shift.saturating_sub(len);
    let filled = buf.get_mut(kept..).unwrap_or_default();
    let found = over.get(from..).and_then(|over| over.get(..filled.len()));
    if let Some(found) = found {
        filled.copy_from_slice(found);
    }
}

#[cfg(test)]
mod tests {
    use super::super::extent::Coding;
    use super::*;

    /// Reads `parts` of an entry of 100 bytes, with `extra` bytes of extra fields, in a file of
    /// which each byte is its offset. Returns the bytes, and the number of reads.
    fn read(extra: u64, parts: &[(u64, usize)]) -> (Vec<Vec<u8>>, usize) {
        let extent = Extent {
            header_offset: 10,
            header_len: 35,
            stored: 100,
            coding: Coding::Stored,
            crc: 0,
        };
        let end_of_entries = 45 + extra + 100;
        let mut bufs: Vec<Vec<u8>> = parts.iter().map(|(_, len)| vec![0; *len]).collect();
        let mut read = EntryRead::with_header(extent);
        for (buf, (offset, _)) in bufs.iter_mut().zip(parts) {
            read.add(*offset, buf, end_of_entries);
        }
        let fill = |read: &mut EntryRead<'_>| {
            for range in read.ranges(end_of_entries) {
                let end = range.offset_bytes + range.buf.len() as u64;
                assert!(end <= end_of_entries, "{end}");
                for (byte, at) in range.buf.iter_mut().zip(range.offset_bytes..) {
                    *byte = u8::try_from(at % 251).unwrap();
                }
            }
        };
        fill(&mut read);
        assert_eq!(read.header().unwrap().len(), 35);
        assert_eq!(read.header().unwrap().first(), Some(&10));
        let mut reads = 1;
        if let Some(mut again) = read.moved_to(45 + extra) {
            fill(&mut again);
            assert!(again.header().is_none());
            reads += 1;
        }
        (bufs, reads)
    }

    #[test]
    fn bytes_are_moved_to_their_places() {
        for (extra, reads) in [(0, 1), (1, 1), (20, 1), (64, 1), (65, 2), (60_000, 2)] {
            for parts in [&[(0, 100)][..], &[(90, 10), (3, 5), (50, 0)], &[(99, 1)]] {
                let (found, count) = read(extra, parts);
                assert_eq!(count, reads, "{extra}");
                for (bytes, (offset, len)) in found.iter().zip(parts) {
                    let start = 45 + extra + offset;
                    let expected: Vec<u8> = (start..start + *len as u64)
                        .map(|at| u8::try_from(at % 251).unwrap())
                        .collect();
                    assert_eq!(*bytes, expected, "{extra}: {len} at {offset}");
                }
            }
        }
    }
}
