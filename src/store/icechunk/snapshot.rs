//! A snapshot: the nodes of a repository at one moment.
//!
//! The file stays in memory as it is. Beside it there is one number for each node, in the order of the paths, so that a
//! path is found by halving. All nodes are read once for that, so that a damaged snapshot is an error when it is
//! opened, and never the absence of a node.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::flat::{Flat, Malformed, Record, Records};
use super::object_id::{NodeId, ObjectId};
use crate::store::Key;

/// The name of the document of a node.
pub(super) const DOCUMENT: &str = "zarr.json";

/// The most dimensions of an array. An index of a chunk has as many numbers.
pub(super) const MOST_DIMENSIONS: usize = 64;

/// The fewest bytes that a node takes, with its path.
const LEAST_NODE_BYTES: usize = 32;

/// The fewest bytes that an array takes for each of its manifests, and for each dimension of these.
const LEAST_MANIFEST_BYTES: usize = 24;
const EXTENT_BYTES: usize = 8;

/// The bytes that a chunk takes in a manifest, without its content or location.
const CHUNK_BYTES: u64 = 80;

/// Times later than this, at the end of the year 9999, are not shown.
const LATEST: Duration = Duration::from_secs(253_402_300_799);

/// A snapshot.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) id: ObjectId,
    /// When it was committed.
    pub(super) committed: SystemTime,
    table: Bytes,
    /// The number of each node, in the order of the paths.
    by_path: Vec<u32>,
}

/// A node of a snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'s> {
    record: Record<'s>,
    /// Its path, as the prefix of its keys: without the `/` in front, so that the root is empty.
    pub(super) path: &'s str,
}

/// The description of an array in a snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrayNode<'s> {
    pub(super) id: NodeId,
    /// The number of its dimensions.
    pub(super) rank: usize,
    manifests: Records<'s>,
}

/// A manifest, and the chunks that it is about: for each dimension, the first index and the one after the last.
#[derive(Debug, Clone)]
pub(super) struct ManifestPart {
    pub(super) id: ObjectId,
    pub(super) extents: Vec<(u32, u32)>,
}

impl Snapshot {
    /// Reads the table of the snapshot that is called `id`.
    pub(super) fn read(table: Bytes, id: ObjectId) -> Flat<Snapshot> {
        let root = Record::root(&table)?;
        let found = ObjectId(root.required_fixed(0)?);
        if found != id {
            return Err(Malformed(format!("this is the snapshot {found}")));
        }
        let nodes = root.required_records(2)?;
        // A hostile file may refer to one node many times, so that its nodes would take more memory than the file.
        if nodes.len() > table.len() / LEAST_NODE_BYTES {
            let problem = format!("{} nodes in {} bytes", nodes.len(), table.len());
            return Err(Malformed(problem));
        }
        let mut by_path = Vec::with_capacity(nodes.len());
        for (at, record) in nodes.iter().enumerate() {
            let node = Node::of(record?)?;
            node.check(table.len())?;
            by_path.push((node.path, u32::try_from(at).unwrap_or(u32::MAX)));
        }
        by_path.sort_unstable();
        if let Some(twice) = by_path.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(Malformed(format!(
                "two nodes have the path /{}",
                twice[0].0
            )));
        }
        let by_path = by_path.into_iter().map(|(_, at)| at).collect();
        let since_epoch = Duration::from_micros(root.u64(3)?);
        Ok(Snapshot {
            id,
            committed: SystemTime::UNIX_EPOCH + since_epoch.min(LATEST),
            by_path,
            table,
        })
    }

    /// About how much memory all its manifests take together, as the snapshot says.
    pub(super) fn manifest_bytes(&self) -> Flat<u64> {
        let root = Record::root(&self.table)?;
        let mut sum: u64 = 0;
        let mut add = |stored: u64, chunks: u32| {
            sum = sum.saturating_add(stored);
            sum = sum.saturating_add(CHUNK_BYTES * u64::from(chunks));
        };
        for (stored, chunks) in root.required_file_sizes(6)?.iter() {
            add(stored, chunks);
        }
        // Version 2 of the specification has them in another place.
        if let Some(files) = root.records(7)? {
            for file in files.iter() {
                let file = file?;
                add(file.u64(1)?, file.u32(2)?);
            }
        }
        Ok(sum)
    }

    /// The bytes `part` of the snapshot, which are not copied.
    pub(super) fn shared(&self, part: &[u8]) -> Bytes {
        self.table.slice_ref(part)
    }

    /// The node at `path`.
    pub(super) fn node(&self, path: &str) -> Flat<Option<Node<'_>>> {
        let node = self.at_or_after(path)?;
        Ok(node.filter(|node| node.path == path))
    }

    /// The first node whose path is `path` or comes after it.
    pub(super) fn at_or_after(&self, path: &str) -> Flat<Option<Node<'_>>> {
        self.first(|node| node < path)
    }

    /// The first node, in the order of the paths, for whose path `is_before` is false.
    pub(super) fn first(&self, is_before: impl Fn(&str) -> bool) -> Flat<Option<Node<'_>>> {
        let nodes = Record::root(&self.table)?.required_records(2)?;
        let node = |at: u32| Node::of(nodes.get(usize::try_from(at).unwrap_or(usize::MAX))?);
        // All nodes were read without an error when the snapshot was opened.
        let before = |&at: &u32| node(at).is_ok_and(|node| is_before(node.path));
        let first = self.by_path.partition_point(before);
        self.by_path.get(first).map(|&at| node(at)).transpose()
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Flat<Node<'_>>> {
        let nodes = Record::root(&self.table).and_then(|root| root.required_records(2));
        let nodes = nodes.into_iter().flat_map(Records::iter);
        nodes.map(|node| Node::of(node?))
    }

    /// Whether there are nodes below `path`.
    pub(super) fn has_below(&self, path: &str) -> Flat<bool> {
        let start = beginning_of(path);
        let first = self.at_or_after(&start)?;
        Ok(first.is_some_and(|node| node.path.starts_with(&start)))
    }
}

/// The common beginning of all paths below `path`.
pub(super) fn beginning_of(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("{path}/")
    }
}

impl<'s> Node<'s> {
    fn of(record: Record<'s>) -> Flat<Node<'s>> {
        let path = record.required_text(1)?;
        let relative = path.strip_prefix('/').ok_or_else(|| {
            Malformed(format!("the path {path:?} of a node does not begin with /"))
        })?;
        Ok(Node {
            record,
            path: relative,
        })
    }

    /// Checks a node of a table of so many bytes.
    fn check(&self, table_bytes: usize) -> Flat<()> {
        let is_document = self.path.split('/').any(|name| name == DOCUMENT);
        let is_key = self.path.is_empty() || Key::parse(self.path.as_bytes()).is_ok();
        if is_document || !is_key {
            return Err(Malformed(format!(
                "/{} cannot be the path of a node",
                self.path
            )));
        }
        self.document()?;
        let Some(array) = self.array()? else {
            return Ok(());
        };
        // A hostile file may refer to one manifest many times, too.
        let each = LEAST_MANIFEST_BYTES + EXTENT_BYTES * array.rank;
        if array.manifests.len() > table_bytes / each {
            return Err(Malformed(format!(
                "/{}: {} manifests in {table_bytes} bytes",
                self.path,
                array.manifests.len()
            )));
        }
        Ok(())
    }

    /// Its `zarr.json`.
    pub(super) fn document(&self) -> Flat<&'s [u8]> {
        self.record.required_bytes(2)
    }

    /// The array; `None` for a group.
    pub(super) fn array(&self) -> Flat<Option<ArrayNode<'s>>> {
        let array = match self.record.u8(3)? {
            1 => self.record.required_record(4)?,
            2 => return Ok(None),
            other => {
                let problem = format!("/{}: a node of kind {other}, not 1 or 2", self.path);
                return Err(Malformed(problem));
            }
        };
        // Version 2 of the specification has the shape in another place.
        let rank = match array.records(3)? {
            Some(shape) => shape.len(),
            None => array.len_of_structures(0)?,
        };
        if rank > MOST_DIMENSIONS {
            return Err(Malformed(format!(
                "/{}: an array of {rank} dimensions, of which at most {MOST_DIMENSIONS} are supported",
                self.path
            )));
        }
        Ok(Some(ArrayNode {
            id: self.record.required_fixed(0)?,
            rank,
            manifests: array.required_records(2)?,
        }))
    }
}

impl ArrayNode<'_> {
    /// Whether it has chunks.
    pub(super) fn has_chunks(&self) -> bool {
        self.manifests.len() > 0
    }

    /// The manifests that may have chunks whose indices begin with `first`, in the order of the snapshot.
    pub(super) fn manifests_of(&self, first: &[u32]) -> Flat<Vec<ManifestPart>> {
        let mut parts = Vec::new();
        for manifest in self.manifests.iter() {
            let manifest = manifest?;
            let extents = manifest.required_pairs(1)?;
            if extents.len() != self.rank {
                return Err(Malformed(format!(
                    "a manifest has extents in {} dimensions, and the array has {}",
                    extents.len(),
                    self.rank
                )));
            }
            let mut each = extents.iter().zip(first);
            if each.all(|((from, to), index)| (from..to).contains(index)) {
                parts.push(ManifestPart {
                    id: ObjectId(manifest.required_fixed(0)?),
                    extents: extents.iter().collect(),
                });
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::flat::testing::snapshot_with_array;
    use super::*;

    #[test]
    fn one_manifest_is_not_referred_to_many_times() {
        let id = ObjectId([1; 12]);
        let table = |n_manifests, n_shared| snapshot_with_array(id, n_manifests, n_shared).into();
        let snapshot = Snapshot::read(table(1000, 0), id).unwrap();
        let array = snapshot.node("a").unwrap().unwrap().array().unwrap();
        let parts = array.unwrap().manifests_of(&[7]).unwrap();
        assert_eq!(parts.len(), 1000);
        let Malformed(problem) = Snapshot::read(table(1, 10_000), id).unwrap_err();
        assert!(problem.contains("10001 manifests"), "{problem}");
    }
}
