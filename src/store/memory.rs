//! A store in memory: for `demo:` and for tests.
//!
//! A prefix is what keys have in common, as in an object store: it comes with the first key
//! below it and goes with the last. A key that is a prefix too is an object to
//! [`Store::stat`] and listed twice, as both.
//!
//! Each inserted object gets a number of its own in [`Version::inode`], as if it had been
//! renamed into place; prefixes carry the number of the last change anywhere in the store.

#[cfg(any(test, debug_assertions))]
mod writer;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use parking_lot::RwLock;
use rustix::process::{getegid, geteuid};

use super::{
    Arrival, Cursor, Dating, Detail, EntryKind, Key, ListEntry, Listing, NewFile, Object,
    ObjectMeta, Prefix, Profile, Stat, StatKind, Store, StoreError, Times, Version,
};
#[cfg(any(test, debug_assertions))]
pub use writer::MemoryWriter;

/// 2026-01-01T00:00:00Z: the time of objects that are inserted without one.
const DEFAULT_TIME: Duration = Duration::from_secs(1_767_225_600);

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// Nothing panics halfway through a change.
    contents: RwLock<MemoryContents>,
    #[cfg(any(test, debug_assertions))]
    has_writer: AtomicBool,
}

#[derive(Debug, Default)]
struct MemoryContents {
    objects: BTreeMap<Vec<u8>, Arc<MemoryObject>>,
    /// Number of changes so far.
    changes: u64,
}

#[derive(Debug)]
struct MemoryObject {
    key: Key,
    bytes: Bytes,
    meta: ObjectMeta,
    /// Set by [`MemoryStore::overwrite`]: readers of this version get [`StoreError::Changed`].
    overwritten: Arc<AtomicBool>,
}

struct MemoryListing {
    entries: std::vec::IntoIter<ListEntry>,
    detail: Detail,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Puts `bytes` at `key`, last changed on 2026-01-01. The bytes that were at `key` before stay
    /// readable through objects that are open, as after rename(2).
    pub fn insert(&self, key: Key, bytes: impl Into<Bytes>) {
        self.insert_at(key, bytes, default_time());
    }

    /// Like [`MemoryStore::insert`], last changed at `mtime`.
    pub fn insert_at(&self, key: Key, bytes: impl Into<Bytes>, mtime: SystemTime) {
        self.contents
            .write()
            .put(key, bytes.into(), mtime, own(0o444));
    }
}

impl MemoryContents {
    /// Puts an object, and returns the one before.
    fn put(
        &mut self,
        key: Key,
        bytes: Bytes,
        mtime: SystemTime,
        access: NewFile,
    ) -> Option<Arc<MemoryObject>> {
        self.changes += 1;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.place(MemoryObject {
            meta: self.meta(size, mtime, access),
            overwritten: Arc::default(),
            bytes,
            key,
        })
    }

    fn place(&mut self, object: MemoryObject) -> Option<Arc<MemoryObject>> {
        let name = object.key.as_bytes().to_vec();
        self.objects.insert(name, Arc::new(object))
    }

    /// The first object at or after `start`.
    fn first(&self, start: Bound<&[u8]>) -> Option<&Arc<MemoryObject>> {
        let mut range = self.objects.range::<[u8], _>((start, Bound::Unbounded));
        range.next().map(|(_, object)| object)
    }

    fn has_prefix(&self, prefix: &Prefix) -> bool {
        let first = self.first(Bound::Included(&prefix.join(b"")));
        prefix.is_root()
            || first.is_some_and(|object| prefix.strip(object.key.as_bytes()).is_some())
    }

    fn prefix_meta(&self) -> ObjectMeta {
        self.meta(0, default_time(), own(0o555))
    }

    /// Attributes as of the last change.
    fn meta(&self, size: u64, mtime: SystemTime, access: NewFile) -> ObjectMeta {
        ObjectMeta {
            version: Version {
                size,
                mtime,
                inode: self.changes,
                tag: 0,
            },
            times: Times {
                atime: mtime,
                mtime,
                ctime: mtime,
            },
            mode: access.mode,
            uid: access.uid,
            gid: access.gid,
            dating: Dating::FILE,
            arrival: Arrival::Changed,
            is_own: false,
        }
    }

    /// The entries of one level after `after`, in the order of their keys. Subtrees are
    /// skipped.
    fn entries(&self, prefix: &Prefix, after: &Cursor) -> Vec<ListEntry> {
        let mut entries = Vec::new();
        let mut start = match after.as_bytes() {
            b"" => Bound::Included(prefix.join(b"")),
            [name @ .., b'/'] => behind_all_below(prefix, name),
            name => Bound::Excluded(prefix.join(name)),
        };
        while let Some(object) = self.first(start.as_ref().map(Vec::as_slice)) {
            let Some(rest) = prefix.strip(object.key.as_bytes()) else {
                break;
            };
            let mut segments = rest.splitn(2, |&byte| byte == b'/');
            let name = segments.next().unwrap_or_default().to_vec();
            let (kind, meta) = if segments.next().is_some() {
                start = behind_all_below(prefix, &name);
                (EntryKind::Prefix, self.prefix_meta())
            } else {
                start = Bound::Excluded(object.key.as_bytes().to_vec());
                (EntryKind::Object, object.meta)
            };
            entries.push(ListEntry {
                cursor: Cursor::after(&name, kind == EntryKind::Prefix),
                name,
                kind,
                meta: Some(meta),
            });
        }
        entries
    }
}

impl Store for MemoryStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let contents = self.contents.read();
        if let Some(object) = contents.objects.get(key.as_bytes()) {
            return Ok(Some(Stat::new(StatKind::Object, object.meta)));
        }
        let found = contents.has_prefix(&key.to_prefix());
        Ok(found.then(|| Stat::new(StatKind::Prefix, contents.prefix_meta())))
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        Ok(self.contents.read().prefix_meta())
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let contents = self.contents.read();
        match contents.objects.get(key.as_bytes()) {
            Some(object) => Ok(Some(Arc::clone(object) as Arc<dyn Object>)),
            None if contents.has_prefix(&key.to_prefix()) => {
                Err(StoreError::not_an_object(key, "a prefix"))
            }
            None => Ok(None),
        }
    }

    /// A [`Cursor`] is the name that was seen last: names that come or go do not shift it.
    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let contents = self.contents.read();
        if !contents.has_prefix(prefix) {
            return Ok(None);
        }
        Ok(Some(Box::new(MemoryListing {
            entries: contents.entries(prefix, &after).into_iter(),
            detail,
        })))
    }

    fn profile(&self) -> Profile {
        Profile::local()
    }
}

impl Object for MemoryObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.verify()?;
        self.meta.check_range(&self.key, offset_bytes, buf.len())?;
        // The range is inside `bytes`, so its start fits a `usize`.
        let start = usize::try_from(offset_bytes).unwrap_or(usize::MAX);
        buf.copy_from_slice(&self.bytes[start..start + buf.len()]);
        Ok(())
    }

    fn verify(&self) -> Result<(), StoreError> {
        if self.overwritten.load(Ordering::Acquire) {
            return Err(StoreError::changed(&self.key));
        }
        Ok(())
    }
}

impl Listing for MemoryListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        Ok(self.entries.next().map(|entry| ListEntry {
            meta: entry.meta.filter(|_| self.detail == Detail::Attributes),
            ..entry
        }))
    }

    fn ask_for(&mut self, detail: Detail) {
        self.detail = detail;
    }
}

/// This mode, and the user and the group of this process.
fn own(mode: u32) -> NewFile {
    NewFile {
        mode,
        umask: 0,
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
    }
}

fn default_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + DEFAULT_TIME
}

/// The bound after all keys below `name/`: `0` is the byte that follows `/`.
fn behind_all_below(prefix: &Prefix, name: &[u8]) -> Bound<Vec<u8>> {
    Bound::Included(prefix.join(&[name, b"0"].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_a_prefix_too_is_an_object_first() {
        let store = MemoryStore::new();
        for key in ["a", "a-1", "a/b", "a/c/d", "a0"] {
            store.insert(Key::parse(key.as_bytes()).unwrap(), key);
        }
        let a = Key::parse(b"a").unwrap();
        assert_eq!(store.stat(&a).unwrap().unwrap().kind, StatKind::Object);

        let names = |prefix: &[u8]| {
            let prefix = Prefix::parse(prefix).unwrap();
            let entries = store.contents.read().entries(&prefix, &Cursor::START);
            let named = entries.into_iter().map(|entry| (entry.name, entry.kind));
            named.collect::<Vec<_>>()
        };
        assert_eq!(
            names(b""),
            [
                (b"a".to_vec(), EntryKind::Object),
                (b"a-1".to_vec(), EntryKind::Object),
                (b"a".to_vec(), EntryKind::Prefix),
                (b"a0".to_vec(), EntryKind::Object),
            ]
        );
        assert_eq!(
            names(b"a"),
            [
                (b"b".to_vec(), EntryKind::Object),
                (b"c".to_vec(), EntryKind::Prefix),
            ]
        );
    }
}
