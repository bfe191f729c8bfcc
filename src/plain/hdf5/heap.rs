//! Global heaps, which hold the references to dimension scales.
//!
//! ```text
//! 'GCOL'  1  0 0 0  size u64  object …  free space
//! object:      index u16  0 u16  0 u32  8 u64  address of the scale u64
//! free space:  0 u16      0 u16  0 u32  its size with this header u64
//! ```
//!
//! Source: HDF5 File Format Specification 3.0, section III.E.

use super::block::{FileBlock, FileBlocks, Pointee};
use crate::error::FormatError;

/// The most objects of one heap: an index has two bytes, and readers load a whole heap at once.
const MOST_OBJECTS: usize = 4095;
/// The smallest size of a heap in bytes.
const LEAST: usize = 4096;
const PREFIX: usize = 16;
const OBJECT: usize = 24;

/// Collects references to objects, and writes them in heaps.
#[derive(Debug, Default)]
pub(super) struct Heap {
    /// The block of the current heap, and the objects that it refers to.
    block: usize,
    objects: Vec<usize>,
}

impl Heap {
    /// Appends to `value` a list with one reference to `object`.
    ///
    /// # Errors
    ///
    /// When the headers of the file become too large.
    pub(super) fn push_list(
        &mut self,
        value: &mut FileBlock,
        object: usize,
        blocks: &mut FileBlocks,
    ) -> Result<(), FormatError> {
        if self.objects.len() == MOST_OBJECTS {
            self.finish(blocks)?;
        }
        if self.objects.is_empty() {
            self.block = blocks.reserve();
        }
        self.objects.push(object);
        // There are at most `MOST_OBJECTS`.
        let index = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
        value.push(&1_u32.to_le_bytes());
        value.push_address(Pointee::Block(self.block));
        value.push(&index.to_le_bytes());
        Ok(())
    }

    /// Writes the current heap.
    ///
    /// # Errors
    ///
    /// As [`Heap::push_list`].
    pub(super) fn finish(&mut self, blocks: &mut FileBlocks) -> Result<(), FormatError> {
        let objects = std::mem::take(&mut self.objects);
        if objects.is_empty() {
            return Ok(());
        }
        let used = PREFIX + OBJECT * objects.len();
        let size = used.max(LEAST);
        let mut block = FileBlock::default();
        block
            .push(b"GCOL")
            .push(&[1, 0, 0, 0])
            .push_u64(size as u64);
        for (index, object) in (1_u16..).zip(objects) {
            block.push(&index.to_le_bytes()).push(&[0; 6]).push_u64(8);
            block.push_address(Pointee::Block(object));
        }
        let free = size - used;
        if free >= PREFIX {
            block.push(&[0; 8]).push_u64(free as u64);
            block.push(&vec![0; free - PREFIX]);
        } else {
            block.push(&vec![0; free]);
        }
        blocks.put(self.block, block)
    }
}
