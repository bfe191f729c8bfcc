//! The copies of documents in one consolidated document, by their keys.

use std::ops::Range;

use crate::budget::Reservation;
use crate::error::FormatError;
use crate::metadata::consolidated::{CopiedDocument, copies_v2, copies_v3};
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::Key;

/// The text of a consolidated document, and where the copies are in it.
#[derive(Debug)]
pub(super) struct Copies {
    text: Vec<u8>,
    /// In the order of their keys, which are relative to the group.
    entries: Vec<CopyEntry>,
    _memory: Reservation,
}

/// One copy.
#[derive(Debug)]
pub(super) struct CopyEntry {
    pub(super) key: Box<[u8]>,
    pub(super) span: Range<usize>,
    is_array: bool,
}

/// The kind of node at a path below the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopiedNode {
    /// An array.
    Array,
    /// A group, perhaps one without a document.
    Group,
}

impl Copies {
    /// The copies in `text`, for which `memory` is reserved; `None` if it has none. Entries
    /// whose names are no keys are left out.
    ///
    /// # Errors
    /// [`FormatError`] when the text is no consolidated metadata.
    pub(super) fn parse(
        text: Vec<u8>,
        format: ZarrFormat,
        mut memory: Reservation,
    ) -> Result<Option<Copies>, FormatError> {
        let copied = match format {
            ZarrFormat::V2 => copies_v2(&text)?,
            _ => copies_v3(&text)?,
        };
        let Some(copied) = copied else {
            return Ok(None);
        };
        let mut entries: Vec<_> = copied.into_iter().filter_map(CopyEntry::of).collect();
        // The sort is stable, and the last of several entries of one key counts.
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        entries.reverse();
        entries.dedup_by(|one, other| one.key == other.key);
        entries.reverse();
        entries.shrink_to_fit();
        let keys: usize = entries.iter().map(|entry| entry.key.len()).sum();
        let bytes = text.len() + keys + entries.len() * size_of::<CopyEntry>();
        memory.shrink_to(bytes as u64);
        memory.keep();
        Ok(Some(Copies {
            text,
            entries,
            _memory: memory,
        }))
    }

    /// The copy of the document at `key`.
    pub(super) fn get(&self, key: &[u8]) -> Option<&CopyEntry> {
        let at = self.entries.binary_search_by(|entry| (*entry.key).cmp(key));
        self.entries.get(at.ok()?)
    }

    /// The node at `path`, which is not empty; `None` if there is no copy at or below it.
    pub(super) fn node_at(&self, path: &[u8]) -> Option<CopiedNode> {
        let below = [path, b"/"].concat();
        self.entries
            .get(self.first_from(&below))
            .filter(|entry| entry.key.starts_with(&below))?;
        let is_array = |name: DocumentName| {
            let key = [&below[..], name.as_str().as_bytes()].concat();
            self.get(&key).is_some_and(|entry| entry.is_array)
        };
        let is_array = is_array(DocumentName::ZarrJson) || is_array(DocumentName::ZArray);
        Some(if is_array {
            CopiedNode::Array
        } else {
            CopiedNode::Group
        })
    }

    /// The number of the first entry whose key is not before `key`.
    pub(super) fn first_from(&self, key: &[u8]) -> usize {
        self.entries.partition_point(|entry| *entry.key < *key)
    }

    /// The entry of this number.
    pub(super) fn entry(&self, number: usize) -> Option<&CopyEntry> {
        self.entries.get(number)
    }

    /// The span of the whole document.
    pub(super) fn whole(&self) -> Range<usize> {
        0..self.text.len()
    }

    /// The text of a copy.
    pub(super) fn text_of(&self, span: &Range<usize>) -> &[u8] {
        self.text.get(span.clone()).unwrap_or_default()
    }
}

impl CopyEntry {
    fn of(copied: CopiedDocument) -> Option<CopyEntry> {
        let CopiedDocument {
            key,
            span,
            is_array,
        } = copied;
        Key::parse(key.as_bytes()).ok()?;
        // The group's own documents are beside the consolidated one, except for its attributes.
        let is_own = !key.contains('/') && key != DocumentName::ZAttrs.as_str();
        (!is_own).then(|| CopyEntry {
            key: key.into_bytes().into(),
            span,
            is_array,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Holding};

    fn copies(text: &str) -> Copies {
        let memory = Budget::new(1 << 20).reserve(1 << 16, Holding::NOTHING);
        let text = text.as_bytes().to_vec();
        let copies = Copies::parse(text, ZarrFormat::V2, memory.unwrap());
        copies.unwrap().unwrap()
    }

    #[test]
    fn entries_are_found_by_their_keys_and_nodes_by_their_paths() {
        let copies = copies(
            r#"{"zarr_consolidated_format": 1, "metadata": {
            ".zgroup": {"own": 1}, ".zattrs": {"own": 2}, "a/.zarray": 1, "a/.zarray": 2,
            "a-b/.zgroup": 3, "g/h/.zarray": 4, "../.zarray": 5, "/x/.zarray": 6}}"#,
        );
        let text = |key: &str| {
            let entry = copies.get(key.as_bytes())?;
            str::from_utf8(copies.text_of(&entry.span)).ok()
        };
        assert_eq!(text(".zgroup"), None);
        assert_eq!(text(".zattrs"), Some("{\"own\": 2}"));
        assert_eq!(text("a/.zarray"), Some("2"), "the last one counts");
        assert_eq!(text("../.zarray"), None);
        for (path, node) in [
            ("a", Some(CopiedNode::Array)),
            ("a-b", Some(CopiedNode::Group)),
            ("g", Some(CopiedNode::Group)),
            ("g/h", Some(CopiedNode::Array)),
            ("g/i", None),
            ("x", None),
        ] {
            assert_eq!(copies.node_at(path.as_bytes()), node, "{path}");
        }
    }
}
