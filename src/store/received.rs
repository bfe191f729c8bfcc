//! Bytes of an object in the memory in which they were received, so that a caller copies them once,
//! and only when it needs them.

use std::ops::Range;

use bytes::Bytes;

use super::{FetchBuffer, Object, ReadRange, StoreError};

/// A shorter run of bytes is copied by [`ReceivedBytes::compact`].
const SHORT_RUN_BYTES: usize = 512 << 10;

/// Bytes of one version of an object.
#[derive(Debug, Clone, Default)]
pub struct ReceivedBytes {
    /// Parts, and where each begins in the object, in the order of these offsets. None is empty.
    parts: Vec<(u64, Bytes)>,
}

impl ReceivedBytes {
    /// Adds `bytes` that begin at `offset_bytes` of the object, which is not before the end of what
    /// was added so far.
    pub fn push(&mut self, offset_bytes: u64, bytes: Bytes) {
        if !bytes.is_empty() {
            self.parts.push((offset_bytes, bytes));
        }
    }

    /// Adds `parts` that follow each other from `offset_bytes` of the object on.
    pub fn push_all(&mut self, offset_bytes: u64, parts: impl IntoIterator<Item = Bytes>) {
        let mut at = offset_bytes;
        for part in parts {
            let len = part.len() as u64;
            self.push(at, part);
            at += len;
        }
    }

    /// Copies short runs of bytes, so that they can be kept. A part keeps all of the memory in which it is.
    pub fn compact(&mut self) {
        let follows = |(start, part): &(u64, Bytes), (next, _): &(u64, Bytes)| {
            start.saturating_add(part.len() as u64) == *next
        };
        let mut parts = Vec::with_capacity(self.parts.len());
        for run in self.parts.chunk_by(follows) {
            let len: usize = run.iter().map(|(_, part)| part.len()).sum();
            match run {
                [(start, _), ..] if len < SHORT_RUN_BYTES => {
                    let mut joined = Vec::with_capacity(len);
                    for (_, part) in run {
                        joined.extend_from_slice(part);
                    }
                    parts.push((*start, joined.into()));
                }
                long => parts.extend_from_slice(long),
            }
        }
        self.parts = parts;
    }

    /// The same bytes, each `by_bytes` nearer to the start, where all begin at or after that offset.
    #[must_use]
    pub(super) fn moved_back(mut self, by_bytes: u64) -> ReceivedBytes {
        for (start, _) in &mut self.parts {
            *start = start.saturating_sub(by_bytes);
        }
        self
    }

    /// The number of bytes.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|(_, part)| part.len() as u64).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Fills `buf` with the bytes from `offset_bytes` of the object on. Returns `false`, and leaves
    /// any bytes in `buf`, where one of them was not received.
    pub fn read(&self, offset_bytes: u64, buf: &mut [u8]) -> bool {
        self.copy(offset_bytes, buf) == buf.len()
    }

    /// The parts of `range`, in memory that is shared with this; `None` if one of its bytes was not received.
    pub fn parts_of(&self, range: &Range<u64>) -> Option<Vec<Bytes>> {
        let end_of = |(start, part): &(u64, Bytes)| start.saturating_add(part.len() as u64);
        let first = self
            .parts
            .partition_point(|part| end_of(part) <= range.start);
        let (mut at, mut found) = (range.start, Vec::new());
        for (start, part) in self.parts.iter().skip(first) {
            if at >= range.end || *start > at {
                break;
            }
            let from = usize::try_from(at - start).ok()?;
            let len = usize::try_from(range.end - start).ok()?;
            let piece = from..len.min(part.len());
            at += piece.len() as u64;
            found.push(part.slice(piece));
        }
        (at >= range.end).then_some(found)
    }

    /// Like [`ReceivedBytes::read`], for as many of the bytes as were received. Returns their number.
    pub fn copy(&self, offset_bytes: u64, buf: &mut [u8]) -> usize {
        let wanted = offset_bytes..offset_bytes.saturating_add(buf.len() as u64);
        let end_of = |(start, part): &(u64, Bytes)| start.saturating_add(part.len() as u64);
        let first = self
            .parts
            .partition_point(|part| end_of(part) <= wanted.start);
        let overlapping = self.parts.iter().skip(first);
        overlapping
            .take_while(|(start, _)| *start < wanted.end)
            .map(|(start, part)| copy_part(part, *start, &wanted, buf))
            .sum()
    }
}

/// The bytes of `ranges` of `object`, each in memory of its own.
///
/// # Errors
/// Those of [`Object::read_ranges`].
pub(super) fn copied<O: Object + ?Sized>(
    object: &O,
    ranges: &[Range<u64>],
) -> Result<ReceivedBytes, StoreError> {
    let mut buffers = Vec::with_capacity(ranges.len());
    for range in ranges {
        let mut buffer = Vec::new();
        let len = range.end.saturating_sub(range.start);
        if buffer.of_len(len).is_none() {
            let problem = "the system has no memory for a part of an object";
            return Err(StoreError::problem("memory", problem));
        }
        buffers.push(buffer);
    }
    let each = ranges.iter().zip(&mut buffers);
    let mut wanted: Vec<_> = each
        .map(|(range, buf)| ReadRange {
            offset_bytes: range.start,
            buf,
        })
        .collect();
    object.read_ranges(&mut wanted)?;
    let mut received = ReceivedBytes::default();
    for (range, buffer) in ranges.iter().zip(buffers) {
        received.push(range.start, buffer.into());
    }
    Ok(received)
}

/// Copies what `part`, which begins at `start` in the object, has of `wanted`, and returns how many
/// bytes that are.
fn copy_part(part: &Bytes, start: u64, wanted: &Range<u64>, buf: &mut [u8]) -> usize {
    let (from, to) = (
        wanted.start.max(start),
        wanted.end.min(start + part.len() as u64),
    );
    if from >= to {
        return 0;
    }
    let index = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let source = part.get(index(from - start)..index(to - start));
    let target = buf.get_mut(index(from - wanted.start)..index(to - wanted.start));
    match (source, target) {
        (Some(source), Some(target)) => {
            target.copy_from_slice(source);
            source.len()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_are_copied_and_long_ones_are_not() {
        let buffer = Bytes::from(vec![7; 2 * SHORT_RUN_BYTES]);
        let mut received = ReceivedBytes::default();
        received.push_all(5, [buffer.slice(..2), buffer.slice(..3)]);
        received.push_all(20, [buffer.slice(..4), buffer.slice(..SHORT_RUN_BYTES)]);
        received.compact();
        let found: Vec<_> = received
            .parts
            .iter()
            .map(|(at, part)| (*at, part.len()))
            .collect();
        assert_eq!(found, [(5, 5), (20, 4), (24, SHORT_RUN_BYTES)]);
        let is_shared = |part: &Bytes| part.as_ptr() == buffer.as_ptr();
        let shared: Vec<_> = received
            .parts
            .iter()
            .map(|(_, part)| is_shared(part))
            .collect();
        assert_eq!(shared, [false, true, true]);
    }

    #[test]
    fn ranges_are_read_from_one_part_or_several() {
        let mut received = ReceivedBytes::default();
        for (offset, part) in [(10, "abc"), (13, ""), (13, "de"), (20, "xyz")] {
            received.push(offset, Bytes::from_static(part.as_bytes()));
        }
        assert_eq!(received.len(), 8);
        for (offset, len, expected) in [
            (10, 5, Some("abcde")),
            (11, 2, Some("bc")),
            (12, 2, Some("cd")),
            (14, 0, Some("")),
            (20, 3, Some("xyz")),
            (22, 1, Some("z")),
            (9, 3, None),
            (14, 2, None),
            (15, 1, None),
            (21, 3, None),
            (u64::MAX, 1, None),
        ] {
            let mut buf = vec![0; len];
            let is_read = received.read(offset, &mut buf);
            assert_eq!(is_read, expected.is_some(), "{len} bytes at {offset}");
            if let Some(expected) = expected {
                assert_eq!(buf, expected.as_bytes());
            }
        }
    }
}
