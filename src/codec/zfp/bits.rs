//! A stream of bits, the lowest bit of the first byte first.

use crate::error::FormatError;

/// Bits of a word. A stream is written in whole words.
const WORD_BITS: u32 = u64::BITS;

/// Reads bits from bytes. Behind the last byte there are zeros, and [`is_overrun`](Self::is_overrun)
/// says that such a bit was read, so that no read needs a check of its own.
pub(super) struct BitReader<'a> {
    /// The bytes after those in `word`.
    rest: &'a [u8],
    /// The next bits, of which the lowest `left` count; the others are zeros.
    word: u64,
    left: u32,
    /// The bits of `word` that are behind the last byte.
    past: u32,
    is_overrun: bool,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader {
            rest: bytes,
            word: 0,
            left: 0,
            past: 0,
            is_overrun: false,
        }
    }

    /// Whether a bit behind the last byte was read.
    pub(super) fn is_overrun(&self) -> bool {
        self.is_overrun || self.left < self.past
    }

    /// The bits that were not read yet.
    pub(super) fn remaining(&self) -> u64 {
        8 * self.rest.len() as u64 + u64::from(self.left.saturating_sub(self.past))
    }

    /// The next bit.
    #[inline]
    pub(super) fn bit(&mut self) -> bool {
        if self.left == 0 {
            self.next_word();
        }
        let bit = self.word & 1 != 0;
        self.word >>= 1;
        self.left -= 1;
        bit
    }

    /// The next `count` bits, 64 at most, as a number whose lowest bit is the first one.
    #[inline]
    pub(super) fn bits(&mut self, count: u32) -> u64 {
        if count <= self.left {
            let value = self.word & ones(count);
            self.consume(count);
            return value;
        }
        let (low, read) = (self.word, self.left);
        self.next_word();
        let count = count - read;
        let high = self.word & ones(count);
        self.consume(count);
        low | (high << read)
    }

    /// The number of zeros before the next one bit, which is read too, and true; or false after
    /// `limit` zeros.
    #[inline]
    pub(super) fn zeros(&mut self, limit: u32) -> (u32, bool) {
        let mut zeros = 0;
        while zeros < limit {
            if self.left == 0 {
                self.next_word();
            }
            let at_most = self.left.min(limit - zeros);
            let found = self.word.trailing_zeros();
            if found < at_most {
                self.consume(found + 1);
                return (zeros + found, true);
            }
            self.consume(at_most);
            zeros += at_most;
        }
        (zeros, false)
    }

    /// Passes over `count` bits.
    pub(super) fn skip(&mut self, count: u32) {
        if count <= self.left {
            return self.consume(count);
        }
        let count = count - self.left;
        let bytes = usize::try_from(count / WORD_BITS * 8).unwrap_or(usize::MAX);
        self.consume(self.left);
        self.is_overrun |= self.past > 0 || bytes > self.rest.len();
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        if !count.is_multiple_of(WORD_BITS) {
            self.next_word();
            self.consume(count % WORD_BITS);
        }
    }

    /// Drops bits of `word`, which has as many.
    #[inline]
    fn consume(&mut self, count: u32) {
        self.word = self.word.checked_shr(count).unwrap_or(0);
        self.left -= count;
    }

    #[inline]
    fn next_word(&mut self) {
        if let Some((word, rest)) = self.rest.split_first_chunk() {
            self.word = u64::from_le_bytes(*word);
            self.rest = rest;
        } else {
            self.last_word();
        }
        self.left = WORD_BITS;
    }

    /// The word of the bytes at the end, which are fewer than eight.
    #[cold]
    fn last_word(&mut self) {
        self.is_overrun |= self.past > 0 || self.rest.is_empty();
        let mut word = [0; 8];
        super::copy_start(self.rest, &mut word);
        self.word = u64::from_le_bytes(word);
        self.past = WORD_BITS - 8 * u32::try_from(self.rest.len()).unwrap_or(0);
        self.rest = &[];
    }
}

/// The lowest `count` bits, 64 at most.
#[inline]
fn ones(count: u32) -> u64 {
    u64::MAX.checked_shr(WORD_BITS - count).unwrap_or(0)
}

/// Writes bits to bytes.
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that are not in `bytes` yet, of which the lowest `used` count.
    word: u64,
    used: u32,
}

impl BitWriter {
    /// A writer of at most `most` bytes, whose memory is taken at once.
    pub(super) fn new(most: usize) -> Result<BitWriter, FormatError> {
        Ok(BitWriter {
            bytes: crate::buffers::with_room(most)?,
            word: 0,
            used: 0,
        })
    }

    #[inline]
    pub(super) fn bit(&mut self, bit: bool) {
        self.bits(u64::from(bit), 1);
    }

    /// Writes the lowest `count` bits of `value`, 64 at most.
    #[inline]
    pub(super) fn bits(&mut self, value: u64, count: u32) {
        let value = value & ones(count);
        self.word |= value.wrapping_shl(self.used);
        let used = self.used + count;
        if used < WORD_BITS {
            self.used = used;
            return;
        }
        self.bytes.extend_from_slice(&self.word.to_le_bytes());
        self.word = value.checked_shr(WORD_BITS - self.used).unwrap_or(0);
        self.used = used - WORD_BITS;
    }

    /// Writes a one bit, `zeros` zeros and a one bit.
    #[inline]
    pub(super) fn run(&mut self, zeros: u32) {
        if zeros + 2 <= WORD_BITS {
            return self.bits(1 | (2 << zeros), zeros + 2);
        }
        self.bit(true);
        self.zeros(zeros);
        self.bit(true);
    }

    /// Writes `count` zeros.
    pub(super) fn zeros(&mut self, mut count: u32) {
        while count > 0 {
            let some = count.min(WORD_BITS);
            self.bits(0, some);
            count -= some;
        }
    }

    /// The bytes, whose last word ends in zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.used > 0 {
            self.bytes.extend_from_slice(&self.word.to_le_bytes());
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits in groups of many lengths come back, by whichever method they are read.
    #[test]
    fn bits_come_back_in_groups_of_any_length() {
        let mut writer = BitWriter::new(0).unwrap();
        for count in 0..=64 {
            writer.bits(0x9e37_79b9_7f4a_7c15, count);
            writer.zeros(count);
            writer.bit(true);
        }
        let written = writer.finish();
        assert_eq!(written.len(), (65 * 64 + 65_usize).div_ceil(64) * 8);
        let mut reader = BitReader::new(&written);
        for count in 0..=64 {
            assert_eq!(reader.bits(count), 0x9e37_79b9_7f4a_7c15 & ones(count));
            if count % 2 == 0 {
                assert_eq!(reader.zeros(100), (count, true));
            } else {
                reader.skip(count);
                assert!(reader.bit());
            }
        }
        assert!(!reader.is_overrun() && reader.remaining() < 64);
        assert_eq!(reader.zeros(100), (100, false));
        assert!(reader.is_overrun() && reader.remaining() == 0);
    }

    #[test]
    fn bits_behind_the_end_are_zeros_and_noticed() {
        for length in 0..20_u32 {
            let bytes = vec![0xff; length as usize];
            let whole = 8 * length;
            for past in [false, true] {
                let mut reader = BitReader::new(&bytes);
                reader.skip(whole + u32::from(past));
                assert_eq!(reader.is_overrun(), past, "skip of {length}");
                let mut reader = BitReader::new(&bytes);
                assert!((0..whole).all(|_| reader.bit()));
                assert_eq!(reader.remaining(), 0);
                assert!(!past || !reader.bit());
                assert_eq!(reader.is_overrun(), past, "bits of {length}");
            }
            let mut reader = BitReader::new(&bytes);
            reader.skip(u32::MAX);
            assert!(reader.is_overrun() && reader.remaining() == 0);
            assert_eq!((reader.bits(64), reader.zeros(9)), (0, (9, false)));
        }
    }
}
