//! Detects whether the reads of a handle are sequential. All readahead uses this one rule.

use crate::load::tuning::{
    EXPECTED_BYTES, FIRST_READ_BYTES, LONG_READ_BYTES, OPEN_BYTES, OPEN_READS, SHORT_READ_BYTES,
    STRAY_BYTES, STRAY_REQUESTS,
};

/// The reads of one handle.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sequence {
    /// The offset at which the next read is expected.
    next: u64,
    /// The number of reads in order, and their bytes.
    reads: u64,
    in_order: u64,
    /// Whether one of the first reads of the handle was a long one at the beginning of the file.
    is_from_start: bool,
}

/// How a read relates to the read before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It begins a new sequence.
    First,
    /// It continues where the last one ended.
    Next,
}

impl Sequence {
    /// Notes a read of `len` bytes at `from`.
    pub fn step(&mut self, from: u64, len: u64) -> Step {
        // A read this short is an element that a longer read has cut, and is ignored.
        if len >= SHORT_READ_BYTES {
            let end = from.saturating_add(len);
            if from.abs_diff(self.next) <= self.stray(len) {
                self.reads += 1;
                self.in_order = self.in_order.saturating_add(len);
                self.next = self.next.max(end);
            } else {
                self.reads = 1;
                self.in_order = len;
                self.next = end;
            }
            // The kernel splits a long read, and its parts may come in another order.
            let is_start = from == 0 && len >= FIRST_READ_BYTES;
            self.is_from_start = is_start || self.reads > 1 && self.is_from_start;
        }
        // The first read of a file is expected at its beginning, but it may be the only one.
        if self.reads > 1 {
            Step::Next
        } else {
            Step::First
        }
    }

    /// The distance that a read of `len` bytes may have from the expected offset. Long reads
    /// overtake each other, by more when there are many of them.
    fn stray(&self, len: u64) -> u64 {
        let is_long = len >= LONG_READ_BYTES;
        match (self.reads < OPEN_READS, is_long) {
            (true, true) => 2 * len,
            (true, false) => 0,
            (false, _) => stray_bytes(len),
        }
    }

    /// The offset at which the next read is expected.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the last read continued the one before it, or is expected to be continued. In a store
    /// that is not local, that is expected of a long read at the beginning of a file.
    pub(super) fn goes_on(&self, is_local: bool) -> bool {
        self.reads > 1 || self.is_from_start && !is_local
    }

    /// Bytes that were read in order, or are expected to be; `None` while they are too few to
    /// prefetch for the reader.
    pub(super) fn in_order(&self, is_local: bool) -> Option<u64> {
        let is_known = self.reads >= OPEN_READS && self.in_order >= OPEN_BYTES;
        if self.is_from_start && !is_local {
            return Some(self.in_order.max(EXPECTED_BYTES));
        }
        is_known.then_some(self.in_order)
    }
}

/// The distance that a read of `len` bytes of a sequential reader may have from the expected
/// offset.
pub(super) fn stray_bytes(len: u64) -> u64 {
    if len >= LONG_READ_BYTES {
        STRAY_BYTES.max(len)
    } else {
        len * STRAY_REQUESTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(reads: &[(u64, u64)]) -> Vec<bool> {
        let mut sequence = Sequence::default();
        let reads = reads.iter();
        reads
            .map(|&(from, len)| sequence.step(from, len) == Step::Next)
            .collect()
    }

    #[test]
    fn reads_that_continue_where_the_last_one_ended_are_in_order() {
        let long = LONG_READ_BYTES;
        let short = 4096;
        for (reads, expected, why) in [
            ([(0, short), (short, short)], [false, true], "pages"),
            ([(0, long), (long, long)], [false, true], "long reads"),
            ([(4096, short), (8192, short)], [false, true], "anywhere"),
            ([(0, short), (8192, short)], [false, false], "further on"),
            ([(4096, short), (0, short)], [false, false], "back"),
            ([(long, long), (0, long)], [false, true], "overtaken"),
            ([(9 * long, long), (2 * long, long)], [false; 2], "jumps"),
        ] {
            assert_eq!(steps(&reads), expected, "{why}");
        }
    }

    #[test]
    fn a_read_of_a_cut_element_is_no_other_reader() {
        let reads = [(0, 4096), (4096, 4096), (8192, 100), (8192, 4096)];
        assert_eq!(steps(&reads), [false, true, true, true]);
    }

    #[test]
    fn little_is_not_enough_to_load_ahead() {
        let mut sequence = Sequence::default();
        // An image of 27 KiB, page by page.
        for page in 10..17 {
            sequence.step(page * 4096, 4096);
        }
        assert_eq!(sequence.in_order(true), None);
        for page in 17..26 {
            sequence.step(page * 4096, 4096);
        }
        assert_eq!(sequence.in_order(true), Some(64 << 10));
        // A page fault: two requests around it.
        let mut fault = Sequence::default();
        for at in [8 << 20, 9 << 20] {
            fault.step(at, 1 << 20);
        }
        assert_eq!(fault.in_order(true), None);
    }

    #[test]
    fn a_long_first_read_of_a_far_file_is_expected_to_go_on() {
        let after = |reads: &[(u64, u64)]| {
            let mut sequence = Sequence::default();
            for &(from, len) in reads {
                sequence.step(from, len);
            }
            [true, false].map(|is_local| (sequence.goes_on(is_local), sequence.in_order(is_local)))
        };
        let begun = |from, len| after(&[(from, len)]);
        let no = (false, None);
        assert_eq!(begun(0, 512 << 10), [no, (true, Some(EXPECTED_BYTES))]);
        assert_eq!(begun(0, 64 << 10), [no, no], "a look at a header");
        assert_eq!(begun(4096, 512 << 10), [no, no], "a page fault");
        let overtaken = after(&[(512 << 10, 512 << 10), (0, 512 << 10)]);
        assert_eq!(overtaken, [(true, None), (true, Some(EXPECTED_BYTES))]);
        let elsewhere = after(&[(0, 512 << 10), (1 << 30, 512 << 10)]);
        assert_eq!(elsewhere, [no, no], "a look at two places");
    }
}
