//! A store in memory: for the built-in `demo:` and for tests.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::{
    Cursor, Detail, EntryKind, Key, ListEntry, Listing, Object, ObjectMeta, Prefix, Stat, StatKind,
    Store, StoreError, Times, Version,
};

/// Bytes by key, in memory. A clone is the same store.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    objects: Arc<RwLock<Objects>>,
    mtime: SystemTime,
}

#[derive(Debug, Default)]
struct Objects {
    by_key: BTreeMap<Key, MemoryObject>,
    inserted: u64,
}

#[derive(Debug, Clone)]
struct MemoryObject {
    key: Key,
    bytes: Bytes,
    meta: ObjectMeta,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// An empty store. Its objects are dated 2026-01-01, so that a listing is the same each time.
    pub fn new() -> MemoryStore {
        MemoryStore {
            objects: Arc::default(),
            mtime: SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600),
        }
    }

    /// Puts `bytes` at `key`, in place of what is there.
    pub fn insert(&self, key: Key, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.inserted += 1;
        let meta = self.meta(bytes.len() as u64, objects.inserted, 0o644);
        let object = MemoryObject {
            key: key.clone(),
            bytes,
            meta,
        };
        objects.by_key.insert(key, object);
    }

    /// Removes what is at `key`.
    pub fn remove(&self, key: &Key) {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.by_key.remove(key);
    }

    fn meta(&self, size: u64, inode: u64, mode: u32) -> ObjectMeta {
        ObjectMeta {
            version: Version {
                size,
                mtime: self.mtime,
                inode,
                tag: 0,
            },
            times: Times {
                atime: self.mtime,
                mtime: self.mtime,
                ctime: self.mtime,
            },
            mode,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
        }
    }

    fn object(&self, key: &Key) -> Option<MemoryObject> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.by_key.get(key).cloned()
    }

    /// Names and kinds of one level, sorted.
    fn children(&self, prefix: &Prefix) -> Vec<(Vec<u8>, Option<ObjectMeta>)> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let mut children: BTreeMap<Vec<u8>, Option<ObjectMeta>> = BTreeMap::new();
        let start = match prefix.to_key() {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        for (key, object) in objects.by_key.range((start, Bound::Unbounded)) {
            let Some(below) = prefix.strip(key.as_bytes()) else {
                // `a-b` and `a.b` sort before `a/b`; `b` ends the prefix.
                if key.as_bytes().starts_with(prefix.as_bytes()) {
                    continue;
                }
                break;
            };
            match below.iter().position(|&byte| byte == b'/') {
                None => drop(children.insert(below.to_vec(), Some(object.meta))),
                Some(end) => {
                    let name = below.get(..end).unwrap_or_default().to_vec();
                    children.entry(name).or_insert(None);
                }
            }
        }
        children.into_iter().collect()
    }
}

impl Store for MemoryStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        if let Some(object) = self.object(key) {
            return Ok(Some(Stat {
                kind: StatKind::Object,
                meta: object.meta,
            }));
        }
        if self.children(&key.to_prefix()).is_empty() {
            return Ok(None);
        }
        Ok(Some(Stat {
            kind: StatKind::Prefix,
            meta: self.meta(0, 0, 0o755),
        }))
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        Ok(self.meta(0, 0, 0o755))
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        if let Some(object) = self.object(key) {
            return Ok(Some(Arc::new(object)));
        }
        match self.stat(key)? {
            None => Ok(None),
            Some(_) => Err(StoreError::NotAnObject {
                key: key.to_string(),
                found: "a directory",
            }),
        }
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let children = self.children(prefix);
        if children.is_empty() && !prefix.is_root() {
            return Ok(None);
        }
        let directory = self.meta(0, 0, 0o755);
        // A cursor counts the sorted names that were seen.
        let skip = usize::try_from(after.0).unwrap_or(usize::MAX);
        let entries = (1_u64..).zip(children).skip(skip).map(move |(number, (name, meta))| {
            let kind = match meta {
                Some(_) => EntryKind::Object,
                None => EntryKind::Prefix,
            };
            ListEntry {
                name,
                kind,
                meta: Some(meta.unwrap_or(directory)).filter(|_| detail == Detail::Attributes),
                cursor: Cursor(number),
            }
        });
        Ok(Some(Box::new(MemoryListing(Box::new(entries)))))
    }
}

struct MemoryListing(Box<dyn Iterator<Item = ListEntry> + Send>);

impl Listing for MemoryListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        Ok(self.0.next())
    }
}

impl Object for MemoryObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let found = usize::try_from(offset_bytes)
            .ok()
            .and_then(|start| self.bytes.get(start..start.checked_add(buf.len())?));
        match found {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(StoreError::Short {
                key: self.key.to_string(),
                offset: offset_bytes,
                len: buf.len() as u64,
                size: self.meta.size(),
            }),
        }
    }
}
