//! Versions and attributes of the keys of a snapshot.
//!
//! The version of a document or a chunk is made from what the snapshot says of it: its bytes, or the place of its bytes,
//! which never change. So a chunk that a commit leaves as it is has the same version before and after it, and stays in
//! the caches. A prefix has another version in each snapshot.
//!
//! The version does not tell which bytes a key had at an earlier moment. All keys of a snapshot count as having come
//! to their places when the snapshot took the place of another one.

use std::time::{Duration, SystemTime};

use twox_hash::XxHash3_128;

use super::manifest::ChunkPlace;
use super::pinned::Pinned;
use crate::store::{Dating, ObjectMeta, Times, Version};

impl Pinned {
    /// The attributes of the document at `path`, which has these bytes.
    pub(super) fn document_meta(&self, path: &str, document: &[u8]) -> ObjectMeta {
        let content = [b"document\0", document].concat();
        self.object_meta(document.len() as u64, (path, &[]), &content)
    }

    /// The attributes of the chunk `index` of the array at `path`.
    pub(super) fn chunk_meta(&self, path: &str, index: &[u32], chunk: &ChunkPlace) -> ObjectMeta {
        let content = match chunk {
            ChunkPlace::Inline(bytes) => [b"inline\0", &**bytes].concat(),
            ChunkPlace::Native {
                file,
                offset,
                length,
            } => {
                let range = [offset.to_le_bytes(), length.to_le_bytes()].concat();
                [b"native\0".as_slice(), &file.0, &range].concat()
            }
            ChunkPlace::Virtual(place) => {
                // Another configuration of the repository may put the same location elsewhere.
                let resolved = self.containers.resolve(&place.location);
                format!("virtual\0{place:?}{resolved:?}").into_bytes()
            }
        };
        self.object_meta(chunk.len(), (path, index), &content)
    }

    fn object_meta(&self, size: u64, (path, index): (&str, &[u32]), content: &[u8]) -> ObjectMeta {
        let index = index.iter().flat_map(|number| number.to_le_bytes());
        let mut identity = path.as_bytes().to_vec();
        identity.push(0);
        identity.extend(index);
        identity.push(0);
        identity.extend(content);
        let [high, low] = halves(XxHash3_128::oneshot(&identity));
        let version = Version {
            size,
            mtime: SystemTime::UNIX_EPOCH,
            inode: high,
            tag: low,
        };
        self.meta(version, self.access.mode)
    }

    /// The attributes of each prefix. A prefix stays the same directory from one snapshot to the next.
    pub(super) fn prefix_meta(&self) -> ObjectMeta {
        let [high, _] = halves(XxHash3_128::oneshot(&self.snapshot.id.0));
        let version = Version {
            size: 0,
            // This is not a time, but a number that stands for the snapshot.
            mtime: SystemTime::UNIX_EPOCH + Duration::from_nanos(high >> 1),
            inode: 0,
            tag: 0,
        };
        // A class of users that may read the objects may search their prefixes.
        self.meta(version, self.access.mode | self.access.mode >> 2)
    }

    fn meta(&self, version: Version, mode: u32) -> ObjectMeta {
        let committed = self.snapshot.committed;
        ObjectMeta {
            version,
            times: Times {
                atime: committed,
                mtime: committed,
                ctime: committed,
            },
            mode,
            uid: self.access.uid,
            gid: self.access.gid,
            dating: Dating::Tag,
            arrival: self.arrival,
            is_own: false,
        }
    }
}

impl ChunkPlace {
    /// The number of bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            ChunkPlace::Inline(bytes) => bytes.len() as u64,
            ChunkPlace::Native { length, .. } => *length,
            ChunkPlace::Virtual(place) => place.length,
        }
    }
}

fn halves(hash: u128) -> [u64; 2] {
    let low: u128 = u64::MAX.into();
    [hash >> 64, hash & low].map(|half| u64::try_from(half).unwrap_or(0))
}
