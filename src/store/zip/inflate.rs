//! A deflated entry, inflated from its start in pieces.

use std::io;
use std::ops::Range;

use flate2::{Crc, Decompress, FlushDecompress, Status};
use rawzip::ReaderAt;

/// Bytes of a file that are read at once.
const INPUT_BYTES: usize = 16 << 10;

/// A position in a deflate stream. It takes about 45 KiB and its input, however long the stream is.
pub(super) struct EntryInflater {
    state: Decompress,
    /// The range of the file with the compressed bytes that were not read yet.
    remaining: Range<u64>,
    input: Vec<u8>,
    /// The part of `input` that is not inflated yet.
    unread: Range<usize>,
    crc: Crc,
    ended: bool,
}

impl EntryInflater {
    /// The start of the stream that is in `bytes` of the file.
    pub(super) fn new(bytes: Range<u64>) -> EntryInflater {
        EntryInflater {
            unread: 0..0,
            ..EntryInflater::with_input(vec![0; INPUT_BYTES], bytes)
        }
    }

    /// The start of a stream that begins with `input`, and goes on in `remaining` of the file.
    /// Later reads are as long as `input`.
    pub(super) fn with_input(input: Vec<u8>, remaining: Range<u64>) -> EntryInflater {
        EntryInflater {
            state: Decompress::new(false),
            remaining,
            unread: 0..input.len(),
            input,
            crc: Crc::new(),
            ended: false,
        }
    }

    /// Bytes inflated so far.
    pub(super) fn produced(&self) -> u64 {
        self.state.total_out()
    }

    /// Fills `out` with the bytes that follow.
    ///
    /// # Errors
    /// When the stream is damaged or ends too early.
    pub(super) fn fill(&mut self, file: &impl ReaderAt, out: &mut [u8]) -> io::Result<()> {
        let mut written = 0;
        while let Some(room) = out.get_mut(written..)
            && !room.is_empty()
        {
            if self.ended {
                return Err(damaged("deflate stream: ends too early"));
            }
            written += self.step(file, room)?;
        }
        self.crc.update(out);
        Ok(())
    }

    /// Skips `count` bytes.
    ///
    /// # Errors
    /// Those of [`EntryInflater::fill`].
    pub(super) fn skip(&mut self, file: &impl ReaderAt, count: u64) -> io::Result<()> {
        let mut scratch = vec![0; INPUT_BYTES.min(usize::try_from(count).unwrap_or(INPUT_BYTES))];
        let mut left = count;
        while left > 0 {
            let len = scratch
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            let part = scratch.get_mut(..len).unwrap_or_default();
            self.fill(file, part)?;
            left -= u64::try_from(len).unwrap_or(left);
        }
        Ok(())
    }

    /// Checks that the stream ends here, and that its bytes have the checksum `crc`.
    ///
    /// # Errors
    /// When the stream goes on, or the checksum differs.
    pub(super) fn finish(mut self, file: &impl ReaderAt, crc: u32) -> io::Result<()> {
        while !self.ended {
            if self.step(file, &mut [0])? > 0 {
                return Err(damaged("deflate stream: longer than expected"));
            }
        }
        check_crc(&self.crc, crc)
    }

    /// Inflates as much as fits `out`. Returns the number of bytes.
    fn step(&mut self, file: &impl ReaderAt, out: &mut [u8]) -> io::Result<usize> {
        if self.unread.is_empty() && !self.remaining.is_empty() {
            self.refill(file)?;
        }
        let input = self.input.get(self.unread.clone()).unwrap_or_default();
        let (read, written) = (self.state.total_in(), self.state.total_out());
        let status = self
            .state
            .decompress(input, out, FlushDecompress::None)
            .map_err(|error| damaged(format!("deflate stream: {error}")))?;
        let advanced = |now: u64, before: u64| {
            usize::try_from(now - before).expect("a step is no longer than its buffers")
        };
        let read = advanced(self.state.total_in(), read);
        let written = advanced(self.state.total_out(), written);
        self.unread.start += read;
        self.ended = status == Status::StreamEnd;
        if !self.ended && read == 0 && written == 0 {
            return Err(damaged("deflate stream: cut short"));
        }
        Ok(written)
    }

    fn refill(&mut self, file: &impl ReaderAt) -> io::Result<()> {
        let left = self.remaining.end - self.remaining.start;
        let most = self.input.len();
        let len = most.min(usize::try_from(left).unwrap_or(most));
        let input = self.input.get_mut(..len).unwrap_or_default();
        file.read_exact_at(input, self.remaining.start)?;
        self.remaining.start += u64::try_from(len).unwrap_or(left);
        self.unread = 0..len;
        Ok(())
    }
}

/// Compares a checksum with the one that the central directory has.
///
/// # Errors
/// When they differ.
pub(super) fn check_crc(found: &Crc, expected: u32) -> io::Result<()> {
    let found = found.sum();
    if found == expected {
        return Ok(());
    }
    Err(damaged(format!(
        "checksum {found:08x}, {expected:08x} expected"
    )))
}

fn damaged(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}
