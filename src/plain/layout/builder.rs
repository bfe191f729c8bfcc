//! Layouts, made from front to back.

use std::sync::Arc;

use super::{Content, Directories, Elements, Layout, Part};
use crate::error::FormatError;
use crate::plain::file_too_large;

/// Puts parts one behind the other.
#[derive(Debug, Default)]
pub(in crate::plain) struct LayoutBuilder {
    parts: Vec<Part>,
    len: u64,
}

impl LayoutBuilder {
    /// Where the next part begins.
    pub(in crate::plain) fn len(&self) -> u64 {
        self.len
    }

    /// Zeros up to a multiple of `to`.
    pub(in crate::plain) fn align(&mut self, to: u64) -> &mut Self {
        self.len = self.len.next_multiple_of(to.max(1));
        self
    }

    /// Zeros up to `offset`, which is not behind what is there.
    pub(in crate::plain) fn seek(&mut self, offset: u64) -> &mut Self {
        debug_assert!(offset >= self.len, "parts would overlap");
        self.len = self.len.max(offset);
        self
    }

    /// Bytes.
    pub(in crate::plain) fn bytes(&mut self, bytes: impl Into<Arc<[u8]>>) -> &mut Self {
        self.push(Content::Bytes(bytes.into()))
    }

    /// Bytes by arithmetic.
    pub(in crate::plain) fn computed(&mut self, directories: Directories) -> &mut Self {
        self.push(Content::Computed(Arc::new(directories)))
    }

    /// A run of elements. Of slabs, the next part begins behind the first one, so that the
    /// records of others can lie between them: [`LayoutBuilder::seek`] goes on behind all.
    pub(in crate::plain) fn elements(&mut self, elements: Elements) -> &mut Self {
        self.push(Content::Elements(elements))
    }

    fn push(&mut self, content: Content) -> &mut Self {
        let part = Part {
            offset: self.len,
            content,
        };
        self.len = match &part.content {
            Content::Elements(Elements {
                slabs: Some(slabs),
                len: 1..,
                ..
            }) => part.offset.saturating_add(slabs.len),
            // Too long is found at the end.
            _ => part.end().unwrap_or(u64::MAX),
        };
        self.parts.push(part);
        self
    }

    /// The layout, as long as its last part.
    ///
    /// # Errors
    ///
    /// When a file cannot be so long.
    pub(in crate::plain) fn finish(self) -> Result<Layout, FormatError> {
        let mut len = self.len;
        for part in &self.parts {
            len = len.max(part.end().unwrap_or(u64::MAX));
        }
        if i64::try_from(len).is_err() {
            return Err(file_too_large());
        }
        let mut parts = self.parts;
        // What is empty covers nothing, and would disturb the order of the ends.
        parts.retain(|part| part.end() != Some(part.offset));
        Ok(Layout { parts, len })
    }
}
