//! A manifest: where the chunks of arrays are. A large array has its chunks in several manifests.
//!
//! The file stays in memory as it is. Its arrays and chunks must be sorted, so that a binary search finds a chunk. The order
//! is checked once, when the file is read, so that a damaged manifest is an error and never hides a chunk.

use std::cmp::Ordering;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::envelope::decompress_location;
use super::flat::{Flat, MOST_TEXT_BYTES, Malformed, Record, Records, Words};
use super::object_id::{NodeId, ObjectId};
use super::snapshot::MOST_DIMENSIONS;
use crate::store::targets::Checksum;

/// The fewest bytes that a chunk takes.
const LEAST_CHUNK_BYTES: usize = 16;

/// A manifest.
#[derive(Debug)]
pub(super) struct Manifest {
    table: Bytes,
}

/// The place of the bytes of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChunkPlace {
    /// In the manifest.
    Inline(Bytes),
    /// A range of a file of the repository.
    Native {
        file: ObjectId,
        offset: u64,
        length: u64,
    },
    /// A range of an object outside the repository.
    Virtual(VirtualPlace),
}

/// A range of an object outside the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VirtualPlace {
    /// The URL of the object, or its path in a virtual chunk container.
    pub(super) location: String,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// The checksum by which the object can be recognised as the one that the reference was made for.
    pub(super) checksum: Option<Checksum>,
}

impl Manifest {
    /// Reads the table of the manifest that is called `id`.
    pub(super) fn read(table: Bytes, id: ObjectId) -> Flat<Manifest> {
        let root = Record::root(&table)?;
        let found = ObjectId(root.required_fixed(0)?);
        if found != id {
            return Err(Malformed(format!("this is the manifest {found}")));
        }
        let mut before: Option<NodeId> = None;
        let mut chunks = 0;
        for array in root.required_records(1)?.iter() {
            let array = array?;
            let node = array.required_fixed(0)?;
            if before.is_some_and(|before| before >= node) {
                return Err(Malformed("the arrays are not in order".to_owned()));
            }
            before = Some(node);
            let listed = array.required_records(1)?;
            // Arrays of a hostile file may have the same chunks, and checking these again would take far longer.
            chunks += listed.len();
            if chunks > table.len() / LEAST_CHUNK_BYTES {
                let problem = format!("{chunks} chunks in {} bytes", table.len());
                return Err(Malformed(problem));
            }
            check_order(listed)?;
        }
        Ok(Manifest { table })
    }

    /// The memory that it takes, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.table.len() as u64
    }

    /// The chunk at `index` of the array `node`.
    pub(super) fn find(&self, node: NodeId, index: &[u32]) -> Flat<Option<ChunkPlace>> {
        let Some(chunks) = self.chunks(node, index.len())? else {
            return Ok(None);
        };
        let first = chunks.partition(|chunk| Ok(order(chunk, index)? == Ordering::Less))?;
        if first == chunks.len() {
            return Ok(None);
        }
        let chunk = chunks.get(first)?;
        if order(chunk, index)? != Ordering::Equal {
            return Ok(None);
        }
        self.place(chunk).map(Some)
    }

    /// The least number, from `least` on, that follows `first` in the index of a chunk. Only chunks in `extents` count.
    pub(super) fn next(
        &self,
        node: NodeId,
        (first, least): (&[u32], u32),
        extents: &[(u32, u32)],
    ) -> Flat<Option<u32>> {
        let Some(chunks) = self.chunks(node, extents.len())? else {
            return Ok(None);
        };
        let start = [first, &[least]].concat();
        let at = chunks.partition(|chunk| Ok(order(chunk, &start)? == Ordering::Less))?;
        for at in at..chunks.len() {
            let index = chunks.get(at)?.required_words(0)?;
            let mut numbers = index.iter();
            if !first.iter().all(|&wanted| numbers.next() == Some(wanted)) {
                return Ok(None);
            }
            let mut each = index.iter().zip(extents);
            if each.all(|(number, (from, to))| (from..to).contains(&&number)) {
                return Ok(numbers.next());
            }
        }
        Ok(None)
    }

    /// The places of all virtual chunks.
    pub(super) fn virtual_places(&self) -> impl Iterator<Item = Flat<VirtualPlace>> {
        let arrays = Record::root(&self.table).and_then(|root| root.required_records(1));
        let arrays = arrays.into_iter().flat_map(Records::iter);
        // Damage of these was found when the manifest was read.
        let chunks = arrays.filter_map(|array| array.ok()?.required_records(1).ok());
        let places = chunks.flat_map(Records::iter);
        places.filter_map(|chunk| match chunk.and_then(|chunk| self.place(chunk)) {
            Ok(ChunkPlace::Virtual(place)) => Some(Ok(place)),
            Ok(ChunkPlace::Inline(_) | ChunkPlace::Native { .. }) => None,
            Err(problem) => Some(Err(problem)),
        })
    }

    /// The chunks of an array, which has `rank` dimensions.
    fn chunks(&self, node: NodeId, rank: usize) -> Flat<Option<Records<'_>>> {
        let arrays = Record::root(&self.table)?.required_records(1)?;
        let id = |array: Record<'_>| array.required_fixed::<8>(0);
        let at = arrays.partition(|array| Ok(id(array)? < node))?;
        if at == arrays.len() {
            return Ok(None);
        }
        let array = arrays.get(at)?;
        if id(array)? != node {
            return Ok(None);
        }
        let chunks = array.required_records(1)?;
        // All have indices of the same length.
        if chunks.len() > 0 {
            let found = chunks.get(0)?.required_words(0)?.len();
            if found != rank {
                return Err(Malformed(format!(
                    "the chunks of an array of {rank} dimensions have indices in {found}"
                )));
            }
        }
        Ok(Some(chunks))
    }

    fn place(&self, chunk: Record<'_>) -> Flat<ChunkPlace> {
        let inline = chunk.bytes(1)?;
        let (offset, length) = (chunk.u64(2)?, chunk.u64(3)?);
        if offset.checked_add(length).is_none() {
            return Err(Malformed(format!(
                "{length} bytes of a chunk at {offset}, which is past any end"
            )));
        }
        let file: Option<[u8; 12]> = chunk.fixed(4)?;
        let location = self.location(chunk)?;
        match (inline, file, location) {
            (Some(bytes), None, None) => Ok(ChunkPlace::Inline(self.table.slice_ref(bytes))),
            (None, Some(file), None) => Ok(ChunkPlace::Native {
                file: ObjectId(file),
                offset,
                length,
            }),
            (None, None, Some(location)) => {
                let tag = chunk.text(6)?.map(|tag| Checksum::Tag(tag.to_owned()));
                let modified = Some(chunk.u32(7)?).filter(|&seconds| seconds != 0);
                let modified = modified.map(|seconds| {
                    let since_epoch = Duration::from_secs(seconds.into());
                    Checksum::UnchangedSince(SystemTime::UNIX_EPOCH + since_epoch)
                });
                Ok(ChunkPlace::Virtual(VirtualPlace {
                    location,
                    offset,
                    length,
                    checksum: tag.or(modified),
                }))
            }
            _ => Err(Malformed(
                "a chunk is in none of the three places, or in several".to_owned(),
            )),
        }
    }

    fn location(&self, chunk: Record<'_>) -> Flat<Option<String>> {
        if let Some(location) = chunk.text(5)? {
            return Ok(Some(location.to_owned()));
        }
        let Some(compressed) = chunk.bytes(8)? else {
            return Ok(None);
        };
        let root = Record::root(&self.table)?;
        let dictionary = root.bytes(2)?.unwrap_or_default();
        decompress_location(compressed, dictionary, MOST_TEXT_BYTES).map(Some)
    }
}

/// Checks that the chunks of an array are in the order of their indices, which have the same length.
fn check_order(chunks: Records<'_>) -> Flat<()> {
    let mut before: Option<Words<'_>> = None;
    for chunk in chunks.iter() {
        let index = chunk?.required_words(0)?;
        if index.len() > MOST_DIMENSIONS {
            let problem = format!("a chunk has an index in {} dimensions", index.len());
            return Err(Malformed(problem));
        }
        let is_next =
            |before: Words<'_>| before.len() == index.len() && before.iter().lt(index.iter());
        if before.is_some_and(|before| !is_next(before)) {
            return Err(Malformed(
                "the chunks of an array are not in order".to_owned(),
            ));
        }
        before = Some(index);
    }
    Ok(())
}

/// How the index of `chunk` compares with `index`.
fn order(chunk: Record<'_>, index: &[u32]) -> Flat<Ordering> {
    let found = chunk.required_words(0)?;
    Ok(found.iter().cmp(index.iter().copied()))
}
