//! One suite that is run against every store, and then tests of what only directories have.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod directory;
mod held;
mod replaced;
mod requests;
mod writers;
mod zip;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use tempfile::TempDir;
use zarr_mount::store::{
    Cursor, Detail, DirStore, EntryKind, FetchRequest, Key, ListEntry, MemoryStore, Object, Prefix,
    StatKind, Store, StoreError, Symlinks,
};

/// A store, and how to change what it holds.
trait Fixture {
    fn store(&self) -> &dyn Store;
    /// Replaces what is at `name`, as a writer that renames into place.
    fn put(&self, name: &str, bytes: &[u8]);
    /// Writes to what is at `name`, while readers hold it open.
    fn overwrite(&self, name: &str, bytes: &[u8]);
    fn remove(&self, name: &str);
}

struct Directory {
    directory: TempDir,
    store: DirStore,
}

impl Fixture for Directory {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // The old file is kept until the new one exists, so that the inode numbers differ.
        let temporary = path.with_extension("partial");
        fs::write(&temporary, bytes).unwrap();
        fs::rename(temporary, path).unwrap();
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        fs::write(self.directory.path().join(name), bytes).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.directory.path().join(name)).unwrap();
    }
}

impl Fixture for MemoryStore {
    fn store(&self) -> &dyn Store {
        self
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        self.insert(key(name), bytes.to_vec());
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        MemoryStore::overwrite(self, key(name), bytes.to_vec());
    }

    fn remove(&self, name: &str) {
        assert!(MemoryStore::remove(self, &key(name)));
    }
}

fn fixtures() -> Vec<Box<dyn Fixture>> {
    let directory = tempfile::tempdir().unwrap();
    let store = DirStore::open(directory.path(), Symlinks::Inside).unwrap();
    vec![
        Box::new(Directory { directory, store }),
        Box::new(MemoryStore::new()),
        Box::new(zip::Zip::new(zip::STORED)),
        Box::new(zip::Zip::new(zip::DEFLATED)),
    ]
}

fn key(name: &str) -> Key {
    Key::parse(name.as_bytes()).unwrap()
}

fn prefix(name: &str) -> Prefix {
    Prefix::parse(name.as_bytes()).unwrap()
}

fn open(store: &dyn Store, name: &str) -> Arc<dyn Object> {
    store.open(&key(name)).unwrap().expect(name)
}

fn bytes(object: &dyn Object) -> Result<Vec<u8>, StoreError> {
    let mut buf = vec![0; usize::try_from(object.meta().size()).unwrap()];
    object.read_at(0, &mut buf).map(|()| buf)
}

fn entries(store: &dyn Store, name: &str, after: Cursor, detail: Detail) -> Vec<ListEntry> {
    let mut listing = store
        .list(&prefix(name), after, detail)
        .unwrap()
        .expect(name);
    std::iter::from_fn(|| listing.next_entry().unwrap()).collect()
}

fn names(entries: &[ListEntry]) -> BTreeSet<Vec<u8>> {
    entries.iter().map(|entry| entry.name.clone()).collect()
}

#[test]
fn objects_and_prefixes_are_distinguished() {
    for fixture in fixtures() {
        fixture.put("a/b/c", b"12345");
        let store = fixture.store();
        let object = store.stat(&key("a/b/c")).unwrap().unwrap();
        assert_eq!((object.kind, object.meta.size()), (StatKind::Object, 5));
        for name in ["a", "a/b"] {
            assert_eq!(
                store.stat(&key(name)).unwrap().unwrap().kind,
                StatKind::Prefix
            );
            let refused = store.open(&key(name)).unwrap_err();
            assert!(
                matches!(refused, StoreError::NotAnObject { .. }),
                "{refused}"
            );
        }
        assert_eq!(store.stat_root().unwrap().mode & 0o500, 0o500);
        assert!(
            store
                .list(&prefix("a/b/c"), Cursor::START, Detail::Names)
                .unwrap()
                .is_none()
        );
    }
}

#[test]
fn what_is_not_there_is_absent_and_no_error() {
    for fixture in fixtures() {
        fixture.put("a/b", b"1");
        let long = "n".repeat(300);
        for name in ["x", "a/x", "x/y/z", "a/b/below-an-object", "a/b/c/d", &long] {
            let store = fixture.store();
            assert!(store.stat(&key(name)).unwrap().is_none(), "{name}");
            assert!(store.open(&key(name)).unwrap().is_none(), "{name}");
            let listing = store.list(&prefix(name), Cursor::START, Detail::Names);
            assert!(listing.unwrap().is_none(), "{name}");
        }
    }
}

#[test]
fn objects_are_fetched_together_as_they_are_one_by_one() {
    for fixture in fixtures() {
        fixture.put("a/b", b"0123456789");
        fixture.put("c", b"");
        let keys = ["a/b", "absent", "c", "a/b"].map(key);
        let most = [10, 10, 0, 9];
        let mut buffers = vec![Vec::new(); keys.len()];
        let requests = keys.iter().zip(most).zip(&mut buffers);
        let requests = requests.map(|((key, most_bytes), buffer)| FetchRequest {
            key,
            most_bytes,
            buffer,
        });
        let mut requests: Vec<_> = requests.collect();
        let fetched = fixture.store().fetch_many(&mut requests);
        let is_read = fetched.into_iter().map(|fetched| {
            let fetched = fetched.unwrap();
            fetched.map(|fetched| fetched.is_read)
        });
        let is_read: Vec<_> = is_read.collect();
        assert_eq!(is_read, [Some(true), None, Some(true), Some(false)]);
        assert_eq!(buffers[0], b"0123456789");
        assert!(fixture.store().fetch_many(&mut []).is_empty());
    }
}

#[test]
fn an_empty_store_has_a_root_without_entries() {
    for fixture in fixtures() {
        assert!(entries(fixture.store(), "", Cursor::START, Detail::Attributes).is_empty());
    }
}

#[test]
fn ranges_are_read_in_full_or_not_at_all() {
    for fixture in fixtures() {
        fixture.put("a", b"0123456789");
        fixture.put("empty", b"");
        let object = open(fixture.store(), "a");
        for (offset, len, expected) in [
            (0, 10, Some("0123456789")),
            (3, 4, Some("3456")),
            (9, 1, Some("9")),
            (10, 0, Some("")),
            (0, 11, None),
            (9, 2, None),
            (11, 0, None),
            (u64::MAX, 1, None),
            (u64::MAX - 1, 2, None),
        ] {
            let mut buf = vec![0; len];
            let read = object.read_at(offset, &mut buf);
            if let Some(expected) = expected {
                read.unwrap();
                assert_eq!(buf, expected.as_bytes());
            } else {
                let error = read.unwrap_err();
                assert!(
                    matches!(error, StoreError::Short { size: 10, .. }),
                    "{error}"
                );
            }
        }
        assert_eq!(bytes(&*open(fixture.store(), "empty")).unwrap(), b"");
    }
}

#[test]
fn a_listing_resumes_after_every_entry() {
    for fixture in fixtures() {
        for number in 0..40 {
            fixture.put(&format!("a/object-{number}"), b"12");
            fixture.put(&format!("a/prefix-{number}/below"), b"1");
        }
        let store = fixture.store();
        let all = entries(store, "a", Cursor::START, Detail::Names);
        assert_eq!(names(&all).len(), 80);
        for (seen, entry) in all.iter().enumerate() {
            let rest = entries(store, "a", entry.cursor.clone(), Detail::Names);
            assert_eq!(rest, all[seen + 1..], "after {:?}", entry.name);
        }
    }
}

#[test]
fn a_listing_has_the_attributes_of_stat() {
    for fixture in fixtures() {
        fixture.put("a/b", b"123");
        fixture.put("a/c/d", b"1");
        let store = fixture.store();
        let listed = entries(store, "a", Cursor::START, Detail::Attributes);
        assert_eq!(listed.len(), 2);
        for entry in listed {
            let key = prefix("a").key(&entry.name).unwrap();
            let stat = store.stat(&key).unwrap().unwrap();
            let kind = match stat.kind {
                StatKind::Object => EntryKind::Object,
                StatKind::Prefix => EntryKind::Prefix,
            };
            assert_eq!((entry.kind, entry.meta), (kind, Some(stat.meta)));
            if kind == EntryKind::Object {
                assert_eq!(*store.open(&key).unwrap().unwrap().meta(), stat.meta);
            }
        }
    }
}

#[test]
fn a_replacement_is_another_version_and_the_old_one_stays_readable() {
    for fixture in fixtures() {
        fixture.put("a", b"old bytes");
        let before = open(fixture.store(), "a");
        fixture.put("a", b"new bytes");
        let after = open(fixture.store(), "a");
        assert_ne!(before.meta().version, after.meta().version);
        assert_eq!(bytes(&*before).unwrap(), b"old bytes");
        assert_eq!(bytes(&*after).unwrap(), b"new bytes");

        fixture.remove("a");
        assert!(fixture.store().stat(&key("a")).unwrap().is_none());
        assert_eq!(bytes(&*after).unwrap(), b"new bytes");
    }
}

#[test]
fn a_change_in_place_ends_the_version() {
    for changed in [b"longer than before".as_slice(), b"short"] {
        for fixture in fixtures() {
            fixture.put("a", b"old bytes");
            let before = open(fixture.store(), "a");
            fixture.overwrite("a", changed);
            for len in [1, 9] {
                let error = before.read_at(0, &mut vec![0; len]).unwrap_err();
                assert!(matches!(error, StoreError::Changed { .. }), "{error}");
            }
            assert_eq!(bytes(&*open(fixture.store(), "a")).unwrap(), changed);
        }
    }
}
