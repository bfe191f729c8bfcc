//! Maps each byte of a file to its source.
//!
//! ```text
//! offset 0        H                P                  P+L      P+stride             len
//!        | header | zeros to align | elements, slab 0 | zeros  | slab 1 | … | tail |
//! ```
//!
//! A layout is a sequence of parts that do not overlap, sorted by offset; bytes that no part covers
//! are zero. Between the slabs of one part there may be slabs of others (the records of NetCDF).
//! Images have elements in [`Tiles`], too.

mod builder;
mod plan;
mod tiles;

use std::sync::Arc;

use smallvec::SmallVec;

pub(super) use builder::LayoutBuilder;
pub use plan::{Plan, PlannedRun, TileRange};
pub use tiles::{TileAxes, Tiles};

use super::array::Array;
use super::bigtiff::Directories;
use super::transform::Transform;
use crate::error::FormatError;
use crate::grid::Dims;

/// The array axes in the order of the axes of the file, slowest first.
pub type AxisOrder = SmallVec<[usize; 6]>;

/// The sources of the bytes of a file.
#[derive(Debug, Clone)]
pub struct Layout {
    parts: Vec<LayoutPart>,
    len: u64,
}

/// A part of a file whose bytes have one source.
#[derive(Debug, Clone)]
pub struct LayoutPart {
    /// Offset of the part in the file.
    pub offset: u64,
    /// The source of the bytes.
    pub content: PartContent,
}

/// The source of the bytes of a part.
#[derive(Debug, Clone)]
pub enum PartContent {
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// Bytes that are computed on each read, because there may be too many to keep.
    Computed(Arc<Directories>),
    /// Elements of an array.
    Elements(Elements),
    /// All elements of an array, in tiles.
    Tiles(Arc<Tiles>),
}

/// A run of elements of an array. All elements, or those in `bounds`, in the axis order `order` and in
/// the width that they have in the file, form one sequence of bytes; the run is the `len` bytes of it
/// after the first `skip`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elements {
    /// The array, by its [`Array::id`].
    pub array: usize,
    /// The array axes in the order of the axes of the file, slowest first.
    pub order: AxisOrder,
    /// The box of the array that has the elements; `None` for all of it.
    pub bounds: Option<Box<ElementBox>>,
    /// Bytes of the sequence before the run.
    pub skip: u64,
    /// Length of the run in bytes.
    pub len: u64,
    /// The transform from decoded elements to the bytes of the file.
    pub transform: Transform,
    /// If the run is split into slabs, their length and distance.
    pub slabs: Option<Slabs>,
}

/// A box of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementBox {
    /// The first element along each axis of the array.
    pub start: Dims,
    /// The number of elements along each axis of the array.
    pub shape: Dims,
}

/// Elements in slabs of equal length with gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slabs {
    /// Bytes of elements in each slab; divides [`Elements::len`].
    pub len: u64,
    /// Bytes from the start of one slab to the start of the next; `len` or more.
    pub stride: u64,
}

impl Elements {
    /// All elements of `array` in C order.
    ///
    /// # Errors
    ///
    /// When they exceed the greatest file offset.
    pub fn all(array: &Array, transform: Transform) -> Result<Elements, FormatError> {
        Ok(Elements {
            array: array.id,
            order: (0..array.rank()).collect(),
            bounds: None,
            skip: 0,
            len: array.n_bytes()?,
            transform,
            slabs: None,
        })
    }

    /// Bytes from the first to the last, gaps included; `None` when that does not fit 64 bits.
    fn span(&self) -> Option<u64> {
        match self.slabs {
            _ if self.len == 0 => Some(0),
            None => Some(self.len),
            Some(slabs) => (self.len / slabs.len - 1)
                .checked_mul(slabs.stride)?
                .checked_add(slabs.len),
        }
    }
}

impl LayoutPart {
    /// Whether the part covers every byte from its offset up to `end`.
    fn has_no_gap_before(&self, end: u64) -> bool {
        let is_slabs =
            matches!(&self.content, PartContent::Elements(elements) if elements.slabs.is_some());
        !is_slabs && self.end().is_some_and(|last| last >= end)
    }

    /// Offset of the end of the part; `None` when it does not fit 64 bits.
    fn end(&self) -> Option<u64> {
        let span = match &self.content {
            PartContent::Bytes(bytes) => bytes.len() as u64,
            PartContent::Computed(computed) => computed.len(),
            PartContent::Elements(elements) => elements.span()?,
            PartContent::Tiles(tiles) => tiles.len(),
        };
        self.offset.checked_add(span)
    }
}

impl Layout {
    /// Starts to build a layout.
    pub(super) fn builder() -> LayoutBuilder {
        LayoutBuilder::default()
    }

    /// A file that consists of these bytes.
    pub fn of_bytes(bytes: impl Into<Arc<[u8]>>) -> Layout {
        let bytes = bytes.into();
        Layout {
            len: bytes.len() as u64,
            parts: vec![LayoutPart {
                offset: 0,
                content: PartContent::Bytes(bytes),
            }],
        }
    }

    /// A file that consists of `header`, zeros up to a multiple of `alignment`, and `elements`.
    ///
    /// # Errors
    ///
    /// When the file would exceed the greatest file offset.
    pub(super) fn of_header(
        header: Vec<u8>,
        alignment: u64,
        elements: Elements,
    ) -> Result<Layout, FormatError> {
        let mut builder = Layout::builder();
        builder.bytes(header).align(alignment).elements(elements);
        builder.finish()
    }

    /// The same file, with `transform` for all its elements, which must not have a transform yet.
    pub(super) fn with_transform(mut self, transform: &Transform) -> Layout {
        for part in &mut self.parts {
            match &mut part.content {
                PartContent::Elements(elements) => {
                    debug_assert_eq!(elements.transform, Transform::None);
                    elements.transform = transform.clone();
                }
                PartContent::Tiles(tiles) => {
                    debug_assert_eq!(tiles.transform, Transform::None);
                    Arc::make_mut(tiles).transform = transform.clone();
                }
                PartContent::Bytes(_) | PartContent::Computed(_) => {}
            }
        }
        self
    }

    /// Length of the file in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parts, sorted by offset.
    pub fn parts(&self) -> &[LayoutPart] {
        &self.parts
    }

    /// The runs of elements in the file that are not in tiles.
    pub fn elements(&self) -> impl Iterator<Item = &Elements> {
        self.parts.iter().filter_map(|part| match &part.content {
            PartContent::Elements(elements) => Some(elements),
            PartContent::Bytes(_) | PartContent::Computed(_) | PartContent::Tiles(_) => None,
        })
    }

    /// The arrays in the file that are in tiles.
    pub fn tiles(&self) -> impl Iterator<Item = &Tiles> {
        self.parts.iter().filter_map(|part| match &part.content {
            PartContent::Tiles(tiles) => Some(&**tiles),
            PartContent::Bytes(_) | PartContent::Computed(_) | PartContent::Elements(_) => None,
        })
    }

    /// Estimate of the memory that the layout takes, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let kept = |part: &LayoutPart| match &part.content {
            PartContent::Bytes(bytes) => bytes.len() as u64,
            PartContent::Computed(computed) => computed.memory_bytes(),
            PartContent::Tiles(_) => size_of::<Tiles>() as u64,
            PartContent::Elements(_) => 0,
        };
        let parts = (self.parts.len() * size_of::<LayoutPart>()) as u64;
        parts + self.parts.iter().map(kept).sum::<u64>()
    }

    /// Plans a read of `len` bytes at `offset`; the range must not exceed the file.
    pub fn plan(&self, offset: u64, len: usize) -> Plan {
        Plan::new(self, offset, len)
    }
}

#[cfg(test)]
mod tests;
