//! Global heaps, which hold the references to dimension scales, and strings of any length.
//!
//! ```text
//! 'GCOL'  1  0 0 0  size u64  object …  free space
//! object:      index u16  0 u16  0 u32  size u64  bytes, zeros up to 8
//! free space:  0 u16      0 u16  0 u32  its size with this header u64
//! ```
//!
//! Source: HDF5 File Format Specification 3.0, section III.E.

use super::block::{FileBlock, FileBlocks, Pointee};
use crate::error::FormatError;

/// The most objects of one heap: an index has two bytes, and readers load a whole heap at once.
const MOST_OBJECTS: u32 = 4095;
/// A heap of this many bytes gets no further object.
const FULL: usize = 64 << 10;
/// The smallest size of a heap in bytes.
const LEAST: usize = 4096;
const PREFIX: usize = 16;
const ALIGNMENT: usize = 8;

/// Collects references and strings, and writes them in heaps.
#[derive(Debug, Default)]
pub(super) struct Heap {
    /// Whether the heap has only strings of arrays, which do not count as headers of the file.
    is_of_arrays: bool,
    /// The block of the current heap.
    block: usize,
    n_objects: u32,
    /// The objects of the current heap with their headers.
    objects: FileBlock,
}

impl Heap {
    /// A heap for the strings of arrays.
    pub(super) fn of_arrays() -> Heap {
        Heap {
            is_of_arrays: true,
            ..Heap::default()
        }
    }

    /// Appends to `value` a list with one reference to the block `object`.
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
        let mut reference = FileBlock::default();
        reference.push_address(Pointee::Block(object));
        self.push(value, 1, &reference, blocks)
    }

    /// Appends `string`, which has no NUL in it, to `value`.
    ///
    /// # Errors
    ///
    /// Those of [`Heap::push_list`], or when the string is too long.
    pub(super) fn push_string(
        &mut self,
        value: &mut FileBlock,
        string: &[u8],
        blocks: &mut FileBlocks,
    ) -> Result<(), FormatError> {
        let what = "the size of a string in bytes";
        let count = u32::try_from(string.len())
            .map_err(|_| FormatError::too_large(what, string.len(), u32::MAX))?;
        self.push(value, count, &FileBlock::of(string), blocks)
    }

    /// Appends to `value` a list of `count` items, which are the bytes of `object`.
    fn push(
        &mut self,
        value: &mut FileBlock,
        count: u32,
        object: &FileBlock,
        blocks: &mut FileBlocks,
    ) -> Result<(), FormatError> {
        if self.n_objects == MOST_OBJECTS || self.objects.len() >= FULL {
            self.finish(blocks)?;
        }
        if self.n_objects == 0 {
            self.block = blocks.reserve();
        }
        self.n_objects += 1;
        // The index has two bytes, and the four bytes after it are 0.
        let index = u64::from(self.n_objects);
        self.objects.push_u64(index).push_u64(object.len() as u64);
        self.objects.push_block(object);
        let padding = object.len().next_multiple_of(ALIGNMENT) - object.len();
        let zeros = [0; ALIGNMENT];
        self.objects.push(zeros.get(..padding).unwrap_or_default());

        value.push(&count.to_le_bytes());
        value.push_address(Pointee::Block(self.block));
        value.push(&self.n_objects.to_le_bytes());
        Ok(())
    }

    /// Writes the current heap.
    ///
    /// # Errors
    ///
    /// Those of [`Heap::push_list`].
    pub(super) fn finish(&mut self, blocks: &mut FileBlocks) -> Result<(), FormatError> {
        let objects = std::mem::take(&mut self.objects);
        if std::mem::take(&mut self.n_objects) == 0 {
            return Ok(());
        }
        let used = PREFIX + objects.len();
        let size = used.max(LEAST);
        let mut block = FileBlock::default();
        block
            .push(b"GCOL")
            .push(&[1, 0, 0, 0])
            .push_u64(size as u64);
        block.push_block(&objects);
        let free = size - used;
        if free >= PREFIX {
            block.push(&[0; 8]).push_u64(free as u64);
            block.push(&vec![0; free - PREFIX]);
        } else {
            block.push(&vec![0; free]);
        }
        if self.is_of_arrays {
            blocks.put_strings(self.block, block);
            return Ok(());
        }
        blocks.put(self.block, block)
    }
}
