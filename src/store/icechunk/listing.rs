//! The names below a prefix of a snapshot, one at a time.
//!
//! First comes the document of the node, then the chunks of an array, then other nodes. A cursor is the last name, after
//! a letter that says which of these it is.

use std::sync::Arc;

use super::files::RepositoryFiles;
use super::names::{CHUNKS, Child, ChunkReader, Chunks};
use super::pinned::Pinned;
use super::snapshot::{DOCUMENT, beginning_of};
use crate::store::targets::Targets;
use crate::store::{
    Access, Cursor, Detail, EntryKind, Key, ListEntry, Listing, ObjectMeta, StoreError,
};

const AFTER_DOCUMENT: u8 = b'd';
const AFTER_CHUNKS: u8 = b'c';
const AFTER_NODE: u8 = b'n';
const AFTER_INDEX: u8 = b'i';

/// The names below a prefix.
pub(super) struct SnapshotListing {
    pub(super) files: Arc<RepositoryFiles>,
    pub(super) pinned: Arc<Pinned>,
    pub(super) targets: Arc<Targets>,
    pub(super) shown: Option<Access>,
    /// The prefix, in the repository.
    pub(super) path: String,
    pub(super) after: Cursor,
    pub(super) detail: Detail,
}

impl SnapshotListing {
    fn reader(&self) -> ChunkReader<'_> {
        ChunkReader {
            files: &self.files,
            pinned: &self.pinned,
            targets: &self.targets,
            shown: self.shown,
        }
    }

    /// The next chunk of an array, or the next prefix of chunks.
    fn next_chunk(&self, chunks: &Chunks<'_>) -> Result<Option<ListEntry>, StoreError> {
        let least = match self.after.as_bytes() {
            [AFTER_INDEX, index @ ..] => {
                let index = index.first_chunk().copied().map_or(0, u32::from_le_bytes);
                let Some(next) = index.checked_add(1) else {
                    return Ok(None);
                };
                next
            }
            _ => 0,
        };
        let reader = self.reader();
        let Some(index) = reader.next(chunks, least)? else {
            return Ok(None);
        };
        let mut chunk = chunks.clone();
        chunk.first.push(index);
        let is_object = chunk.first.len() == chunk.array.rank;
        let meta = if !is_object {
            Some(self.pinned.prefix_meta())
        } else if self.detail == Detail::Attributes {
            self.chunk_meta(&chunk, &index.to_string())?
        } else {
            None
        };
        let kind = if is_object {
            EntryKind::Object
        } else {
            EntryKind::Prefix
        };
        let mut cursor = vec![AFTER_INDEX];
        cursor.extend(index.to_le_bytes());
        Ok(Some(self.entry((index.to_string(), kind), &cursor, meta)))
    }

    /// The attributes of `chunk`, which is called `name` here.
    fn chunk_meta(&self, chunk: &Chunks<'_>, name: &str) -> Result<Option<ObjectMeta>, StoreError> {
        let reader = self.reader();
        let Some(place) = reader.find(chunk)? else {
            return Ok(None);
        };
        let key = Key::parse(format!("{}{name}", beginning_of(&self.path)).as_bytes())?;
        let of = (chunk.node.path, chunk.first.as_slice());
        reader.chunk_meta(&key, of, &place).map(Some)
    }

    fn next_of_node(&self) -> Result<Option<ListEntry>, StoreError> {
        let reader = self.reader();
        let snapshot = &self.pinned.snapshot;
        let node = reader.of_snapshot(snapshot.node(&self.path))?;
        if let Some(node) = node {
            if self.after.is_start() {
                let document = reader.of_snapshot(node.document())?;
                let meta = self.pinned.document_meta(node.path, document);
                let name = (DOCUMENT.to_owned(), EntryKind::Object);
                return Ok(Some(self.entry(name, &[AFTER_DOCUMENT], Some(meta))));
            }
            if self.after.as_bytes() == [AFTER_DOCUMENT]
                && let Some(array) = reader.of_snapshot(node.array())?
                && array.has_chunks()
            {
                let first = Vec::new();
                let chunks = Chunks { node, array, first };
                let found = if array.rank == 0 {
                    let meta = self.chunk_meta(&chunks, CHUNKS)?;
                    meta.map(|meta| (EntryKind::Object, meta))
                } else {
                    Some((EntryKind::Prefix, self.pinned.prefix_meta()))
                };
                if let Some((kind, meta)) = found {
                    let name = (CHUNKS.to_owned(), kind);
                    return Ok(Some(self.entry(name, &[AFTER_CHUNKS], Some(meta))));
                }
            }
        }
        let after = match self.after.as_bytes() {
            [AFTER_NODE, name @ ..] => std::str::from_utf8(name).ok(),
            _ => None,
        };
        let after = after.map(|name| match name.strip_suffix('/') {
            Some(name) => Child::Above(name),
            None => Child::Node(name),
        });
        let Some(child) = reader.next_child(&self.path, after)? else {
            return Ok(None);
        };
        let (name, end) = match child {
            Child::Node(name) => (name, ""),
            Child::Above(name) => (name, "/"),
        };
        let cursor = [&[AFTER_NODE], name.as_bytes(), end.as_bytes()].concat();
        let meta = Some(self.pinned.prefix_meta());
        let name = (name.to_owned(), EntryKind::Prefix);
        Ok(Some(self.entry(name, &cursor, meta)))
    }

    fn entry(
        &self,
        (name, kind): (String, EntryKind),
        cursor: &[u8],
        meta: Option<ObjectMeta>,
    ) -> ListEntry {
        ListEntry {
            name: name.into_bytes(),
            kind,
            meta: meta.filter(|_| self.detail == Detail::Attributes),
            cursor: Cursor::new(cursor),
        }
    }
}

impl Listing for SnapshotListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        let chunks = self.reader().chunks(&self.path)?;
        let entry = match chunks {
            Some(chunks) if chunks.first.len() < chunks.array.rank => self.next_chunk(&chunks)?,
            _ => self.next_of_node()?,
        };
        if let Some(entry) = &entry {
            self.after = entry.cursor.clone();
        }
        Ok(entry)
    }

    fn ask_for(&mut self, detail: Detail) {
        self.detail = detail;
    }
}
