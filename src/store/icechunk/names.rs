//! The keys of a snapshot: what each stands for, and which of them are below a prefix.
//!
//! ```text
//! zarr.json        the document of the root
//! a/b              the prefix of a node
//! a/b/zarr.json    its document
//! a/b/c/0/1        the chunk (0, 1) of an array; Icechunk knows no other spelling of chunks
//! a/b/c            the chunk of an array without dimensions
//! ```

use SearchStart::{Excluded, Included};

use super::files::{RepositoryFiles, key_of};
use super::flat::Flat;
use super::manifest::{ChunkPlace, VirtualPlace};
use super::pinned::Pinned;
use super::snapshot::{ArrayNode, DOCUMENT, Node, beginning_of};
use super::virtual_chunk::VirtualChunk;
use crate::store::targets::Targets;
use crate::store::{Access, Key, ObjectMeta, StoreError};

/// The name below which the chunks of an array are.
pub(super) const CHUNKS: &str = "c";

/// The document, chunk or prefix that a key names.
#[derive(Debug)]
pub(super) enum Named<'s> {
    /// The document of a node.
    Document(Node<'s>),
    /// A chunk that exists.
    Chunk {
        node: Node<'s>,
        index: Vec<u32>,
        place: ChunkPlace,
    },
    /// A prefix of other keys.
    Prefix,
    Nothing,
}

/// A name below a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Child<'n> {
    /// The name of a node.
    Node(&'n str),
    /// The name of a prefix that is no node, and has nodes below it.
    Above(&'n str),
}

/// Whether a search begins at a path or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchStart {
    Included,
    Excluded,
}

/// Chunks of an array whose indices begin in the same way.
#[derive(Debug, Clone)]
pub(super) struct Chunks<'s> {
    pub(super) node: Node<'s>,
    pub(super) array: ArrayNode<'s>,
    /// The beginning of their indices.
    pub(super) first: Vec<u32>,
}

/// The reader of the chunks of a snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkReader<'r> {
    pub(super) files: &'r RepositoryFiles,
    pub(super) pinned: &'r Pinned,
    pub(super) targets: &'r Targets,
    /// The access that all of the repository is shown with, if other users can reach the mount.
    pub(super) shown: Option<Access>,
}

impl<'r> ChunkReader<'r> {
    /// The document, chunk or prefix that the key `path` names.
    pub(super) fn named(&self, path: &str) -> Result<Named<'r>, StoreError> {
        let snapshot = &self.pinned.snapshot;
        if self.of_snapshot(snapshot.node(path))?.is_some() {
            return Ok(Named::Prefix);
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == DOCUMENT
            && let Some(node) = self.of_snapshot(snapshot.node(parent))?
        {
            return Ok(Named::Document(node));
        }
        if let Some(chunks) = self.chunks(path)? {
            return self.named_chunk(chunks);
        }
        let is_prefix = self.of_snapshot(snapshot.has_below(path))?;
        Ok(if is_prefix {
            Named::Prefix
        } else {
            Named::Nothing
        })
    }

    /// The chunks that `path` is the name of, or a prefix of.
    pub(super) fn chunks(&self, path: &str) -> Result<Option<Chunks<'r>>, StoreError> {
        let mut first = Vec::new();
        let mut rest = path;
        loop {
            let (before, last) = match rest.rsplit_once('/') {
                Some((before, last)) => (before, last),
                None => ("", rest),
            };
            if last == CHUNKS {
                let node = self.of_snapshot(self.pinned.snapshot.node(before))?;
                let Some(node) = node else {
                    return Ok(None);
                };
                let array = self.of_snapshot(node.array())?;
                first.reverse();
                let array = array.filter(|array| first.len() <= array.rank);
                return Ok(array.map(|array| Chunks { node, array, first }));
            }
            match index_of(last) {
                Some(index) if !before.is_empty() => first.push(index),
                _ => return Ok(None),
            }
            rest = before;
        }
    }

    fn named_chunk(&self, chunks: Chunks<'r>) -> Result<Named<'r>, StoreError> {
        if chunks.first.len() < chunks.array.rank {
            // Whether the array has chunks at all is known without a manifest.
            let has_chunks = if chunks.first.is_empty() {
                chunks.array.has_chunks()
            } else {
                self.next(&chunks, 0)?.is_some()
            };
            return Ok(if has_chunks {
                Named::Prefix
            } else {
                Named::Nothing
            });
        }
        let found = self.find(&chunks)?;
        Ok(found.map_or(Named::Nothing, |place| Named::Chunk {
            node: chunks.node,
            index: chunks.first,
            place,
        }))
    }

    /// The place of the chunk whose index is all of [`Chunks::first`].
    pub(super) fn find(&self, chunk: &Chunks<'_>) -> Result<Option<ChunkPlace>, StoreError> {
        for part in self.of_snapshot(chunk.array.manifests_of(&chunk.first))? {
            let manifest = self.files.manifest(part.id, self.shown)?;
            let found = manifest.find(chunk.array.id, &chunk.first);
            let key = key_of("manifests", part.id)?;
            if let Some(place) = found.map_err(|problem| problem.of(&key))? {
                if let ChunkPlace::Virtual(place) = &place {
                    self.prepare(place)?;
                }
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Reads what it takes to find the virtual chunk at `place`.
    pub(super) fn prepare(&self, place: &VirtualPlace) -> Result<(), StoreError> {
        let (containers, store) = (&self.pinned.containers, &self.files.store);
        containers.prepare(&place.location, &**store, self.shown)
    }

    /// Like [`ChunkReader::find`], without a request; `None` if that takes one.
    #[expect(clippy::option_option, reason = "as in `Store::known_object`")]
    pub(super) fn find_known(&self, chunk: &Chunks<'_>) -> Option<Option<ChunkPlace>> {
        for part in chunk.array.manifests_of(&chunk.first).ok()? {
            let manifest = self.files.known_manifest(part.id)?;
            if let Some(place) = manifest.find(chunk.array.id, &chunk.first).ok()? {
                return Some(Some(place));
            }
        }
        Some(None)
    }

    /// The least number, from `least` on, that follows [`Chunks::first`] in the index of a chunk. Manifests that only
    /// have later chunks are not read.
    pub(super) fn next(&self, chunks: &Chunks<'_>, least: u32) -> Result<Option<u32>, StoreError> {
        let mut parts = self.of_snapshot(chunks.array.manifests_of(&chunks.first))?;
        let at = chunks.first.len();
        let extent = |extents: &[(u32, u32)]| extents.get(at).copied().unwrap_or((0, 0));
        parts.retain(|part| extent(&part.extents).1 > least);
        parts.sort_by_key(|part| extent(&part.extents).0);
        let mut nearest: Option<u32> = None;
        for part in parts {
            if nearest.is_some_and(|nearest| extent(&part.extents).0 > nearest) {
                break;
            }
            let manifest = self.files.manifest(part.id, self.shown)?;
            let start = (chunks.first.as_slice(), least);
            let found = manifest.next(chunks.array.id, start, &part.extents);
            let key = key_of("manifests", part.id)?;
            let found = found.map_err(|problem| problem.of(&key))?;
            nearest = match (nearest, found) {
                (Some(nearest), Some(found)) => Some(nearest.min(found)),
                (nearest, found) => nearest.or(found),
            };
        }
        Ok(nearest)
    }

    /// The attributes of the chunk `index` of the array at `path`, which is the object `key`.
    pub(super) fn chunk_meta(
        &self,
        key: &Key,
        (path, index): (&str, &[u32]),
        place: &ChunkPlace,
    ) -> Result<ObjectMeta, StoreError> {
        let meta = self.pinned.chunk_meta(path, index, place);
        match place {
            ChunkPlace::Inline(_) | ChunkPlace::Native { .. } => Ok(meta),
            ChunkPlace::Virtual(place) => self.found_virtual(place).stat(key, &meta),
        }
    }

    /// The virtual chunk at `place`.
    pub(super) fn found_virtual<'p>(&self, place: &'p VirtualPlace) -> VirtualChunk<'p>
    where
        'r: 'p,
    {
        VirtualChunk {
            targets: self.targets,
            containers: &self.pinned.containers,
            place,
        }
    }

    /// An answer of the snapshot. Errors name the key of the snapshot.
    pub(super) fn of_snapshot<T>(&self, answer: Flat<T>) -> Result<T, StoreError> {
        let key = key_of("snapshots", self.pinned.snapshot.id)?;
        answer.map_err(|problem| problem.of(&key))
    }

    /// The first name below `path` that comes after `after`.
    pub(super) fn next_child(
        &self,
        path: &str,
        after: Option<Child<'_>>,
    ) -> Result<Option<Child<'r>>, StoreError> {
        let start = beginning_of(path);
        let snapshot = &self.pinned.snapshot;
        // `0` is the byte that follows `/`, so that this is past all nodes below `name`.
        let past_all_below = |name: &str| (format!("{start}{name}0"), Included);
        let mut from = match after {
            None => (start.clone(), Excluded),
            Some(Child::Node(name)) => (format!("{start}{name}"), Excluded),
            Some(Child::Above(name)) => past_all_below(name),
        };
        loop {
            let (least, bound) = &from;
            let is_before =
                |node: &str| node < least.as_str() || bound == &Excluded && node == least;
            let Some(node) = self.of_snapshot(snapshot.first(is_before))? else {
                return Ok(None);
            };
            let Some(rest) = node.path.strip_prefix(&start) else {
                return Ok(None);
            };
            let Some((name, _)) = rest.split_once('/') else {
                return Ok(Some(Child::Node(rest)));
            };
            // Names such as `a-b` come between `a` and `a/b`, so that the node itself came before.
            let itself = self.of_snapshot(snapshot.node(&format!("{start}{name}")))?;
            if itself.is_none() {
                return Ok(Some(Child::Above(name)));
            }
            from = past_all_below(name);
        }
    }
}

/// The number that a segment of a key spells, without leading zeros and without a sign.
fn index_of(segment: &str) -> Option<u32> {
    let is_plain = segment == "0" || !segment.starts_with(['0', '+']);
    segment.parse().ok().filter(|_| is_plain)
}
