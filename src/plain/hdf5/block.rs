//! Blocks of bytes that contain addresses of other blocks, before any address is known.
//!
//! Sizes do not depend on addresses. So every block is written with placeholders (holes) for
//! addresses, then the blocks get their addresses, then the holes are filled and the checksums
//! computed.

use std::collections::HashMap;

use crate::codec::lookup3;
use crate::error::FormatError;
use crate::plain::{Elements, file_too_large};

/// The address that means "undefined" in HDF5.
pub(super) const UNDEFINED: u64 = u64::MAX;
/// The alignment of blocks and small payloads.
const ALIGNMENT: u64 = 8;
/// Payloads of this size or more begin at a multiple of it, and so does the first payload.
const PAGE: u64 = 4096;
/// The most memory of all blocks together, in bytes, without those of strings.
const MOST_BYTES: u64 = 64 << 20;

/// The block or payload that an address points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pointee {
    /// The block with this number.
    Block(usize),
    /// The payload with this number.
    Payload(usize),
}

/// Holes for the same address, at equal distances: the strings of one heap.
#[derive(Debug, Clone, Copy)]
struct Holes {
    /// The offset of the first hole in the block.
    at: usize,
    count: usize,
    target: Pointee,
}

/// The distance between the addresses of consecutive strings.
const STRING: usize = 16;

/// Bytes with holes for addresses.
#[derive(Debug, Default)]
pub(super) struct FileBlock {
    bytes: Vec<u8>,
    holes: Vec<Holes>,
    has_checksum: bool,
}

impl FileBlock {
    pub(super) fn of(bytes: &[u8]) -> FileBlock {
        let mut block = FileBlock::default();
        block.push(bytes);
        block
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> &mut FileBlock {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(super) fn push_u64(&mut self, value: u64) -> &mut FileBlock {
        self.push(&value.to_le_bytes())
    }

    /// Appends a hole of eight bytes for an address.
    pub(super) fn push_address(&mut self, target: Pointee) -> &mut FileBlock {
        let at = self.bytes.len();
        match self.holes.last_mut() {
            Some(last) if last.target == target && at == last.at + last.count * STRING => {
                last.count += 1;
            }
            _ => self.holes.push(Holes {
                at,
                count: 1,
                target,
            }),
        }
        self.push_u64(UNDEFINED)
    }

    /// Appends the bytes of another block with its holes.
    pub(super) fn push_block(&mut self, other: &FileBlock) -> &mut FileBlock {
        let start = self.bytes.len();
        let holes = other.holes.iter().map(|&holes| Holes {
            at: start + holes.at,
            ..holes
        });
        self.holes.extend(holes);
        self.push(&other.bytes)
    }

    /// Replaces the bytes at `at` by `bytes`.
    pub(super) fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        if let Some(to) = self.bytes.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    }

    /// Appends room for the checksum of all bytes before it; nothing may be appended afterwards.
    pub(super) fn push_checksum(&mut self) {
        self.has_checksum = true;
        self.push(&[0; 4]);
    }

    /// The bytes with the addresses and the checksum filled in.
    fn filled(mut self, addresses: &Addresses) -> Vec<u8> {
        for holes in std::mem::take(&mut self.holes) {
            let address = addresses.of(holes.target);
            for i in 0..holes.count {
                self.overwrite(holes.at + i * STRING, &address.to_le_bytes());
            }
        }
        if self.has_checksum {
            let (hashed, _) = self.bytes.split_at(self.bytes.len().saturating_sub(4));
            let hash = lookup3(0, &[], hashed);
            self.overwrite(self.bytes.len() - 4, &hash.to_le_bytes());
        }
        self.bytes
    }
}

/// The blocks and payloads of a file, each with a number.
#[derive(Debug, Default)]
pub(super) struct FileBlocks {
    list: Vec<FileBlock>,
    payloads: Vec<Elements>,
    bytes: u64,
}

/// The blocks and payloads of a file with their addresses.
#[derive(Debug)]
pub(super) struct PlacedBlocks {
    /// The bytes of all blocks, with zeros before `start` and between blocks.
    pub(super) bytes: Vec<u8>,
    /// The payloads with their addresses, in ascending order.
    pub(super) payloads: Vec<(u64, Elements)>,
    /// The address of each block and payload.
    pub(super) addresses: Addresses,
    /// The length of the file.
    pub(super) end: u64,
}

/// The addresses of blocks and payloads, by their numbers.
#[derive(Debug)]
pub(super) struct Addresses {
    blocks: Vec<u64>,
    payloads: Vec<u64>,
}

impl Addresses {
    /// The address of `target`, or [`UNDEFINED`].
    pub(super) fn of(&self, target: Pointee) -> u64 {
        let address = match target {
            Pointee::Block(number) => self.blocks.get(number),
            Pointee::Payload(number) => self.payloads.get(number),
        };
        address.copied().unwrap_or(UNDEFINED)
    }
}

impl FileBlocks {
    /// Reserves the number of a block that is [put](FileBlocks::put) later.
    pub(super) fn reserve(&mut self) -> usize {
        self.list.push(FileBlock::default());
        self.list.len() - 1
    }

    /// Stores the block with the number `number`.
    ///
    /// # Errors
    ///
    /// When all blocks together would exceed the memory limit.
    pub(super) fn put(&mut self, number: usize, block: FileBlock) -> Result<(), FormatError> {
        // A block takes the memory of its bytes and of its list of holes.
        let holes = block.holes.len() * size_of::<Holes>();
        self.count((block.len() + holes) as u64 + ALIGNMENT)?;
        if let Some(reserved) = self.list.get_mut(number) {
            *reserved = block;
        }
        Ok(())
    }

    /// Stores a block of the strings of an array, which the caller keeps within its own limit.
    pub(super) fn put_strings(&mut self, number: usize, block: FileBlock) {
        if let Some(reserved) = self.list.get_mut(number) {
            *reserved = block;
        }
    }

    /// Counts `bytes` of memory that a future block takes elsewhere.
    ///
    /// # Errors
    ///
    /// Those of [`FileBlocks::put`].
    pub(super) fn count(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_BYTES {
            let what = "the size of the HDF5 headers in bytes";
            return Err(FormatError::above_limit(what, MOST_BYTES));
        }
        Ok(())
    }

    /// Reserves a number and stores the block.
    ///
    /// # Errors
    ///
    /// Those of [`FileBlocks::put`].
    pub(super) fn add(&mut self, block: FileBlock) -> Result<usize, FormatError> {
        let number = self.reserve();
        self.put(number, block)?;
        Ok(number)
    }

    /// Adds a payload and returns its number.
    pub(super) fn add_payload(&mut self, elements: Elements) -> usize {
        self.payloads.push(elements);
        self.payloads.len() - 1
    }

    /// How often each block and payload is referred to.
    pub(super) fn uses(&self) -> HashMap<Pointee, u32> {
        let mut uses = HashMap::new();
        for holes in self.list.iter().flat_map(|block| &block.holes) {
            let count = u32::try_from(holes.count).unwrap_or(u32::MAX);
            *uses.entry(holes.target).or_insert(0) += count;
        }
        uses
    }

    /// Assigns all addresses: the blocks from `start` on, then the small payloads close together,
    /// then each large payload at a multiple of [`PAGE`].
    ///
    /// # Errors
    ///
    /// When the file would exceed the greatest file offset.
    pub(super) fn place(self, start: u64) -> Result<PlacedBlocks, FormatError> {
        let mut addresses = Addresses {
            blocks: Vec::with_capacity(self.list.len()),
            payloads: vec![UNDEFINED; self.payloads.len()],
        };
        let mut end = start;
        for block in &self.list {
            end = end.next_multiple_of(ALIGNMENT);
            addresses.blocks.push(end);
            end += block.len() as u64;
        }

        let end_of_blocks = end;
        let (large, small): (Vec<_>, Vec<_>) = self
            .payloads
            .into_iter()
            .enumerate()
            .partition(|(_, elements)| elements.len >= PAGE);
        let mut payloads = Vec::with_capacity(large.len() + small.len());
        for (number, elements) in small.into_iter().chain(large) {
            let is_paged = payloads.is_empty() || elements.len >= PAGE;
            let alignment = if is_paged { PAGE } else { ALIGNMENT };
            let address = end
                .checked_next_multiple_of(alignment)
                .ok_or_else(file_too_large)?;
            end = address
                .checked_add(elements.len)
                .ok_or_else(file_too_large)?;
            if let Some(placed) = addresses.payloads.get_mut(number) {
                *placed = address;
            }
            payloads.push((address, elements));
        }
        if i64::try_from(end).is_err() {
            return Err(file_too_large());
        }

        let to_usize = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(to_usize(end_of_blocks));
        bytes.resize(to_usize(start), 0);
        for block in self.list {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes.extend(block.filled(&addresses));
        }
        Ok(PlacedBlocks {
            bytes,
            payloads,
            addresses,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::Transform;

    fn payload(len: u64) -> Elements {
        Elements {
            array: 0,
            order: [0].into_iter().collect(),
            bounds: None,
            skip: 0,
            len,
            transform: Transform::None,
            slabs: None,
        }
    }

    #[test]
    fn holes_are_filled_before_the_checksum_is_taken() {
        let mut blocks = FileBlocks::default();
        let mut block = FileBlock::default();
        block.push(b"abc");
        block.push_address(Pointee::Block(1));
        block.push_checksum();
        blocks.add(block).unwrap();
        let mut other = FileBlock::default();
        other.push_address(Pointee::Payload(0));
        blocks.add(other).unwrap();
        blocks.add_payload(payload(3));
        let placed = blocks.place(48).unwrap();
        // 15 bytes, one of padding, and the second block at 48 + 16.
        assert_eq!(placed.bytes[..48], [0; 48]);
        let bytes = &placed.bytes[48..];
        assert_eq!(bytes[..3], *b"abc");
        assert_eq!(bytes[3..11], 64_u64.to_le_bytes());
        let sum = lookup3(0, &[], &bytes[..11]);
        assert_eq!(bytes[11..15], sum.to_le_bytes());
        assert_eq!(bytes[16..24], 4096_u64.to_le_bytes());
        assert_eq!(placed.end, 4099);
    }

    #[test]
    fn addresses_at_equal_distances_are_all_filled() {
        let mut blocks = FileBlocks::default();
        let mut block = FileBlock::default();
        for target in [1, 1, 1, 2, 1] {
            block.push_u64(7).push_address(Pointee::Block(target));
        }
        let mut outer = FileBlock::of(b"12345678");
        outer.push_block(&block);
        assert_eq!(outer.holes.len(), 3);
        blocks.add(outer).unwrap();
        blocks.add(FileBlock::of(b"x")).unwrap();
        blocks.add(FileBlock::of(b"y")).unwrap();
        assert_eq!(blocks.uses()[&Pointee::Block(1)], 4);
        let bytes = blocks.place(0).unwrap().bytes;
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        assert_eq!(words[1..11], [7, 88, 7, 88, 7, 88, 7, 96, 7, 88]);
    }

    #[test]
    fn large_payloads_begin_at_pages_and_small_ones_share() {
        let mut blocks = FileBlocks::default();
        for len in [5000, 3, 4096, 7] {
            blocks.add_payload(payload(len));
        }
        let placed = blocks.place(48).unwrap();
        let spots: Vec<_> = placed
            .payloads
            .iter()
            .map(|(at, elements)| (*at, elements.len))
            .collect();
        assert_eq!(spots, [(4096, 3), (4104, 7), (8192, 5000), (16384, 4096)]);
        assert_eq!(placed.end, 20480);
    }

    #[test]
    fn too_much_is_refused() {
        let mut blocks = FileBlocks::default();
        let mut block = FileBlock::default();
        block.push(&vec![0; 33 << 20]);
        blocks.add(block).unwrap();
        let mut block = FileBlock::default();
        block.push(&vec![0; 33 << 20]);
        assert!(blocks.add(block).is_err());
        let mut blocks = FileBlocks::default();
        blocks.add_payload(payload(1 << 62));
        blocks.add_payload(payload(1 << 62));
        assert!(blocks.place(48).is_err());
    }
}
