//! Decodes single blocks of a buffer.
//!
//! A block behind a header of its own is a buffer, which is checked and decoded as any other:
//!
//! ```text
//! 0 as in the whole buffer | 4 nbytes: of the block | 8 blocksize: as nbytes | 12 cbytes: 20 + n
//! 16 bstarts: 20
//! 20 the n bytes of the block
//! ```
//!
//! The end of a block is stored nowhere. Encoders put the next block there. If a buffer differs
//! from that, parts cannot be decoded, and decoding the whole buffer reports the error.

use super::header::{BloscLayout, FLAG_MEMCPY, FLAG_NOT_SPLIT, HEADER_LEN, VERSION, length_of};
use super::{state_bytes, undo};
use crate::codec::decoded::Decoded;

/// The number of bytes before the block in a buffer of one block.
const PREFIX_LEN: usize = HEADER_LEN + 4;

/// A buffer, and where its blocks begin.
#[derive(Debug)]
pub(crate) struct BloscBlocks {
    header: BloscLayout,
    starts: Vec<u64>,
    /// The numbers of `starts`, sorted.
    sorted: Vec<u64>,
}

/// The place of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BloscBlock {
    /// Its first byte in the buffer.
    pub(crate) offset: u64,
    /// Its length in the buffer, of which the last bytes may be unused.
    pub(crate) len: u64,
    /// Its decoded length.
    pub(crate) decoded_len: u64,
    /// The bytes to put before it, to make a buffer that [`undo_block`] takes.
    pub(crate) prefix: [u8; PREFIX_LEN],
}

impl BloscLayout {
    /// The length of the header.
    pub(crate) const HEADER_LEN: usize = HEADER_LEN;

    /// The layout of a buffer of `encoded_len` bytes that begins with `header`; `None` when that is
    /// damaged, or does not decode to `decoded_len` bytes.
    pub(crate) fn parse(
        header: &[u8; HEADER_LEN],
        encoded_len: u64,
        decoded_len: u64,
    ) -> Option<BloscLayout> {
        let header = BloscLayout::read(header, usize::try_from(encoded_len).ok()?).ok()?;
        let decodes = header.nbytes as u64 == decoded_len && decoded_len > 0;
        decodes.then_some(header)
    }

    /// The offset of the decoded bytes, if the buffer holds them uncompressed.
    pub(crate) fn copied_at(&self) -> Option<u64> {
        let is_copied = self.flags & FLAG_MEMCPY != 0 && self.nbytes + HEADER_LEN == self.cbytes;
        is_copied.then_some(HEADER_LEN as u64)
    }

    /// The number of blocks.
    pub(crate) fn n_blocks(&self) -> u64 {
        self.nbytes.div_ceil(self.blocksize) as u64
    }

    /// The decoded length of a block; the last one may be shorter.
    pub(crate) fn block_len(&self) -> u64 {
        self.blocksize as u64
    }

    /// The length of the list, behind the header, of where blocks begin.
    pub(crate) fn starts_len(&self) -> u64 {
        self.n_blocks() * 4
    }

    /// An upper bound of the memory that decoding one block takes: the encoded block, the decoded
    /// one, and scratch.
    pub(crate) fn block_scratch(&self) -> u64 {
        let block = self.block_len();
        block
            .saturating_add(self.most_encoded())
            .saturating_add(state_bytes(block))
    }

    /// The maximum length of a block behind its prefix, as encoders make it.
    fn most_encoded(&self) -> u64 {
        let splits = self.splits(self.blocksize) as u64;
        let block = self.block_len();
        PREFIX_LEN as u64 + block + block / 6 + splits * (4 + 64)
    }

    /// The blocks, which begin where `starts` says; `None` when they cannot begin there, when the
    /// buffer has no blocks, or without memory for the list.
    pub(crate) fn blocks(self, starts: &[u8]) -> Option<BloscBlocks> {
        let (words, _) = starts.as_chunks::<4>();
        let first = HEADER_LEN.checked_add(starts.len())?;
        let start = |word: &[u8; 4]| {
            let start = length_of(*word)?;
            let inside = (first..self.cbytes).contains(&start);
            inside.then_some(start as u64)
        };
        let has_blocks = self.flags & FLAG_MEMCPY == 0;
        (has_blocks && words.len() as u64 == self.n_blocks()).then_some(())?;
        let (mut starts, mut sorted) = (Vec::new(), Vec::new());
        starts.try_reserve_exact(words.len()).ok()?;
        sorted.try_reserve_exact(words.len()).ok()?;
        for word in words {
            starts.push(start(word)?);
        }
        sorted.extend_from_slice(&starts);
        sorted.sort_unstable();
        Some(BloscBlocks {
            header: self,
            starts,
            sorted,
        })
    }
}

impl BloscBlocks {
    /// The place of block `number`; `None` when no encoder puts one there.
    pub(crate) fn block(&self, number: u64) -> Option<BloscBlock> {
        let header = &self.header;
        let number = usize::try_from(number).ok()?;
        let offset = *self.starts.get(number)?;
        let next = self.sorted.partition_point(|&start| start <= offset);
        let end = self.sorted.get(next).copied();
        let len = end.unwrap_or(header.cbytes as u64).checked_sub(offset)?;
        let before = number.checked_mul(header.blocksize)?;
        let decoded_len = header.nbytes.checked_sub(before)?.min(header.blocksize);
        (len <= header.most_encoded()).then_some(())?;
        let mut flags = header.flags;
        if decoded_len < header.blocksize {
            // A shorter block, the last one, is never split.
            flags |= FLAG_NOT_SPLIT;
        }
        let typesize = u8::try_from(header.typesize).ok()?;
        let word = |n: u64| i32::try_from(n).ok().map(i32::to_le_bytes);
        let decoded_len = decoded_len as u64;
        let mut prefix = [0; PREFIX_LEN];
        prefix.as_chunks_mut().0.copy_from_slice(&[
            [VERSION, header.inner_version, flags, typesize],
            word(decoded_len)?,
            word(decoded_len)?,
            word(len.checked_add(PREFIX_LEN as u64)?)?,
            word(PREFIX_LEN as u64)?,
        ]);
        Some(BloscBlock {
            offset,
            len,
            decoded_len,
            prefix,
        })
    }
}

/// Decodes a block behind its prefix to all of `out`. `None` when it is damaged; `out` then holds
/// anything.
pub(crate) fn undo_block(buffer: &[u8], out: &mut [u8]) -> Option<()> {
    (undo(buffer, out) == Ok(Decoded::Whole(out.len()))).then_some(())
}
