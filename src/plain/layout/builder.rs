//! Builds layouts from front to back.

use std::sync::Arc;

use super::{Directories, Elements, Layout, LayoutPart, PartContent, Tiles};
use crate::error::FormatError;
use crate::plain::file_too_large;

/// Collects parts, each after the one before it.
#[derive(Debug, Default)]
pub(in crate::plain) struct LayoutBuilder {
    parts: Vec<LayoutPart>,
    len: u64,
}

impl LayoutBuilder {
    /// Offset of the next part.
    pub(in crate::plain) fn len(&self) -> u64 {
        self.len
    }

    /// Moves on to the next multiple of `to`; the bytes between are zero.
    pub(in crate::plain) fn align(&mut self, to: u64) -> &mut Self {
        self.len = self.len.next_multiple_of(to.max(1));
        self
    }

    /// Moves on to `offset`, which must not be before the end of the last part; the bytes between
    /// are zero.
    pub(in crate::plain) fn seek(&mut self, offset: u64) -> &mut Self {
        debug_assert!(offset >= self.len, "parts would overlap");
        self.len = self.len.max(offset);
        self
    }

    /// Adds bytes.
    pub(in crate::plain) fn bytes(&mut self, bytes: impl Into<Arc<[u8]>>) -> &mut Self {
        self.push(PartContent::Bytes(bytes.into()))
    }

    /// Adds bytes that are computed on each read.
    pub(in crate::plain) fn computed(&mut self, directories: Directories) -> &mut Self {
        self.push(PartContent::Computed(Arc::new(directories)))
    }

    /// Adds a run of elements. After a run in slabs, the next part begins after the first slab, so
    /// that records of other runs can lie between its slabs; [`LayoutBuilder::seek`] moves past all
    /// of them.
    pub(in crate::plain) fn elements(&mut self, elements: Elements) -> &mut Self {
        self.push(PartContent::Elements(elements))
    }

    /// Adds an array in tiles.
    pub(in crate::plain) fn tiles(&mut self, tiles: Tiles) -> &mut Self {
        self.push(PartContent::Tiles(Arc::new(tiles)))
    }

    fn push(&mut self, content: PartContent) -> &mut Self {
        let part = LayoutPart {
            offset: self.len,
            content,
        };
        self.len = match &part.content {
            PartContent::Elements(Elements {
                slabs: Some(slabs),
                len: 1..,
                ..
            }) => part.offset.saturating_add(slabs.len),
            // `finish` refuses a file that is too long.
            _ => part.end().unwrap_or(u64::MAX),
        };
        self.parts.push(part);
        self
    }

    /// Builds the layout; the file ends where its last part ends.
    ///
    /// # Errors
    ///
    /// When the file would exceed the greatest file offset.
    pub(in crate::plain) fn finish(self) -> Result<Layout, FormatError> {
        let mut len = self.len;
        for part in &self.parts {
            len = len.max(part.end().unwrap_or(u64::MAX));
        }
        if i64::try_from(len).is_err() {
            return Err(file_too_large());
        }
        let mut parts = self.parts;
        // An empty part covers nothing, and could break the order of the ends.
        parts.retain(|part| part.end() != Some(part.offset));
        Ok(Layout { parts, len })
    }
}
