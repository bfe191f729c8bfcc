//! Which byte of a file is which.
//!
//! ```text
//! offset 0        H                P                  P+L      P+stride             len
//!        | header | zeros to align | elements, slab 0 | zeros  | slab 1 | … | tail |
//! ```
//!
//! A layout is a sequence of parts that do not overlap, in the order of their offsets; every byte
//! that no part covers is zero. The slabs of one part may have those of others between them (the
//! records of NetCDF).

mod builder;
mod plan;

use std::sync::Arc;

use smallvec::SmallVec;

pub(super) use builder::LayoutBuilder;
pub use plan::{Plan, PlannedRun};

use super::array::Array;
use super::ome_tiff::Directories;
use super::transform::Transform;
use crate::error::FormatError;

/// Which array axis each axis of the file is, slowest first.
pub type AxisOrder = SmallVec<[usize; 6]>;

/// The bytes of a file.
#[derive(Debug, Clone)]
pub struct Layout {
    parts: Vec<Part>,
    len: u64,
}

/// Bytes that come from one place.
#[derive(Debug, Clone)]
pub struct Part {
    /// Where they begin.
    pub offset: u64,
    /// What they are.
    pub content: Content,
}

/// What the bytes of a part are.
#[derive(Debug, Clone)]
pub enum Content {
    /// These.
    Bytes(Arc<[u8]>),
    /// Made when they are read, because there may be too many to keep.
    Computed(Arc<Directories>),
    /// Elements of an array.
    Elements(Elements),
}

/// A run of the elements of an array: all of them in some order of its axes, or the part of that
/// which begins after `skip` bytes and has `len`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elements {
    /// Which array: [`Array::id`].
    pub array: usize,
    /// Which array axis each axis of the file is, slowest first.
    pub order: AxisOrder,
    /// Bytes of the run that come before these.
    pub skip: u64,
    /// Bytes.
    pub len: u64,
    /// What becomes of them.
    pub transform: Transform,
    /// Whether they lie apart.
    pub slabs: Option<Slabs>,
}

/// Elements in slabs of equal length with gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slabs {
    /// Bytes of elements in each; divides [`Elements::len`].
    pub len: u64,
    /// From the beginning of one to that of the next; `len` or more.
    pub stride: u64,
}

impl Elements {
    /// All elements of `array` in C order.
    ///
    /// # Errors
    ///
    /// When they are more than a file can hold.
    pub fn all(array: &Array, transform: Transform) -> Result<Elements, FormatError> {
        Ok(Elements {
            array: array.id,
            order: (0..array.rank()).collect(),
            skip: 0,
            len: array.n_bytes()?,
            transform,
            slabs: None,
        })
    }

    /// Bytes from the first to the last, gaps included; `None` when 64 bits cannot say.
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

impl Part {
    /// Whether it is all there is from where it begins up to `end`.
    fn has_no_gap_before(&self, end: u64) -> bool {
        let is_slabs =
            matches!(&self.content, Content::Elements(elements) if elements.slabs.is_some());
        !is_slabs && self.end().is_some_and(|last| last >= end)
    }

    /// One past its last byte; `None` when 64 bits cannot say.
    fn end(&self) -> Option<u64> {
        let span = match &self.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Computed(computed) => computed.len(),
            Content::Elements(elements) => elements.span()?,
        };
        self.offset.checked_add(span)
    }
}

impl Layout {
    /// Begins a layout.
    pub(super) fn builder() -> LayoutBuilder {
        LayoutBuilder::default()
    }

    /// A file that is these bytes.
    pub fn of_bytes(bytes: impl Into<Arc<[u8]>>) -> Layout {
        let bytes = bytes.into();
        Layout {
            len: bytes.len() as u64,
            parts: vec![Part {
                offset: 0,
                content: Content::Bytes(bytes),
            }],
        }
    }

    /// A file that is `header`, zeros up to a multiple of `alignment`, and `elements`.
    ///
    /// # Errors
    ///
    /// When a file cannot be so long.
    pub(super) fn of_header(
        header: Vec<u8>,
        alignment: u64,
        elements: Elements,
    ) -> Result<Layout, FormatError> {
        let mut builder = Layout::builder();
        builder.bytes(header).align(alignment).elements(elements);
        builder.finish()
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parts, by their offsets.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The runs of elements in it.
    pub fn elements(&self) -> impl Iterator<Item = &Elements> {
        self.parts.iter().filter_map(|part| match &part.content {
            Content::Elements(elements) => Some(elements),
            Content::Bytes(_) | Content::Computed(_) => None,
        })
    }

    /// Memory that the layout takes, about.
    pub fn memory_bytes(&self) -> u64 {
        let kept = |part: &Part| match &part.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Computed(_) | Content::Elements(_) => 0,
        };
        let parts = (self.parts.len() * size_of::<Part>()) as u64;
        parts + self.parts.iter().map(kept).sum::<u64>()
    }

    /// How `len` bytes at `offset`, which end at the end of the file or before, are read.
    pub fn plan(&self, offset: u64, len: usize) -> Plan {
        Plan::new(self, offset, len)
    }
}

#[cfg(test)]
mod tests;
