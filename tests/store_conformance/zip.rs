//! A zip file as a fixture; then zip64, files made by others, and how a store in one is found.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use tempfile::TempDir;
use zarr_mount::store::{
    Cursor, Detail, Location, Store, StoreError, Symlinks, ZipStore, open_store,
};

use crate::{Fixture, bytes, entries, key, names, open};

pub(crate) const STORED: CompressionMethod = CompressionMethod::STORE;
pub(crate) const DEFLATED: CompressionMethod = CompressionMethod::DEFLATE;

/// A zip file that is written anew at each change.
pub(crate) struct Zip {
    directory: TempDir,
    method: CompressionMethod,
    contents: RefCell<BTreeMap<String, Vec<u8>>>,
    store: ZipStore,
}

impl Zip {
    pub(crate) fn new(method: CompressionMethod) -> Zip {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.zip");
        fs::write(&path, pack(&BTreeMap::new(), method)).unwrap();
        let store = ZipStore::open(&path).unwrap();
        Zip {
            directory,
            method,
            contents: RefCell::default(),
            store,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store.zip")
    }

    fn packed(&self) -> Vec<u8> {
        pack(&self.contents.borrow(), self.method)
    }

    fn replace(&self) {
        let temporary = self.directory.path().join("partial");
        fs::write(&temporary, self.packed()).unwrap();
        fs::rename(temporary, self.path()).unwrap();
    }

    fn insert(&self, name: &str, bytes: &[u8]) {
        let mut contents = self.contents.borrow_mut();
        contents.insert(name.to_owned(), bytes.to_vec());
    }
}

impl Fixture for Zip {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        self.insert(name, bytes);
        self.replace();
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        self.insert(name, bytes);
        fs::write(self.path(), self.packed()).unwrap();
    }

    fn remove(&self, name: &str) {
        assert!(self.contents.borrow_mut().remove(name).is_some());
        self.replace();
    }
}

fn pack(contents: &BTreeMap<String, Vec<u8>>, method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in contents {
        let builder = writer.new_file(name).compression_method(method);
        let (mut entry, config) = builder.start().unwrap();
        let descriptor = if method == DEFLATED {
            let encoder = DeflateEncoder::new(&mut entry, Compression::default());
            let mut data = config.wrap(encoder);
            data.write_all(bytes).unwrap();
            let (encoder, descriptor) = data.finish().unwrap();
            encoder.finish().unwrap();
            descriptor
        } else {
            let mut data = config.wrap(&mut entry);
            data.write_all(bytes).unwrap();
            data.finish().unwrap().1
        };
        entry.finish(descriptor).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn more_entries_than_fit_without_zip64() {
    let names_of = |range: std::ops::Range<u32>| range.map(|n| format!("c/{}/{n}", n % 7));
    let contents = names_of(0..70_000).map(|name| (name, b"chunk".to_vec()));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.zip");
    fs::write(&path, pack(&contents.collect(), STORED)).unwrap();
    let store = ZipStore::open(&path).unwrap();
    let listed = entries(&store, "c", Cursor::START, Detail::Names);
    assert_eq!(names(&listed).len(), 7);
    let all = entries(&store, "c/3", Cursor::START, Detail::Attributes);
    assert_eq!(all.len(), 10_000);
    for seen in (0..all.len()).step_by(997) {
        let rest = entries(&store, "c/3", all[seen].cursor.clone(), Detail::Attributes);
        assert_eq!(rest, all[seen + 1..]);
    }
    for name in names_of(0..70_000).step_by(4999) {
        assert_eq!(bytes(&*open(&store, &name)).unwrap(), b"chunk");
    }
}

/// A file of 4 GiB with a hole in it: sizes and offsets are in zip64 fields.
#[test]
fn an_entry_behind_four_gibibytes() {
    const HOLE: u64 = (1 << 32) + 5;
    let entry = |name: &[u8; 4], size: u64, offset: u64, start: &[u8], is_local: bool| {
        // Version, flags, method, time, date; no checksum is compared of a range.
        let mut header = [
            start,
            &[45, 0, 0, 0, 0, 0, 0, 0, 0x21, 0],
            &[0; 4],
            &[0xff; 8],
        ]
        .concat();
        let extra_len = if is_local { 16 } else { 24 };
        header.extend_from_slice(&[4, 0, 4 + extra_len, 0]);
        if !is_local {
            header.extend_from_slice(&[0; 10]);
            header.extend_from_slice(&[0xff; 4]);
        }
        header.extend_from_slice(name);
        header.extend_from_slice(&[1, 0, extra_len, 0]);
        header.extend_from_slice(&size.to_le_bytes());
        header.extend_from_slice(&size.to_le_bytes());
        if !is_local {
            header.extend_from_slice(&offset.to_le_bytes());
        }
        header
    };
    let first = entry(b"hole", HOLE, 0, b"PK\x03\x04", true);
    let second_at = first.len() as u64 + HOLE;
    let mut rest = entry(b"last", 5, second_at, b"PK\x03\x04", true);
    rest.extend_from_slice(b"bytes");
    let directory_at = second_at + rest.len() as u64;
    let mut directory = entry(b"hole", HOLE, 0, b"PK\x01\x02\x2d\0", false);
    directory.extend(entry(b"last", 5, second_at, b"PK\x01\x02\x2d\0", false));
    let end_at = directory_at + directory.len() as u64;
    let directory_len = directory.len() as u64;
    rest.extend(directory);
    rest.extend_from_slice(b"PK\x06\x06");
    rest.extend_from_slice(&44_u64.to_le_bytes());
    rest.extend_from_slice(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for value in [2, 2, directory_len, directory_at] {
        rest.extend_from_slice(&value.to_le_bytes());
    }
    rest.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    rest.extend_from_slice(&end_at.to_le_bytes());
    rest.extend_from_slice(&[1, 0, 0, 0]);
    rest.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    rest.extend_from_slice(&[0xff; 12]);
    rest.extend_from_slice(&[0, 0]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.zip");
    let file = fs::File::create(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &first, 0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &rest, second_at).unwrap();
    drop(file);
    let store = ZipStore::open(&path).unwrap();
    let hole = open(&store, "hole");
    assert_eq!(hole.meta().size(), HOLE);
    let mut end = [1; 7];
    hole.read_at(HOLE - 7, &mut end).unwrap();
    assert_eq!(end, [0; 7]);
    let mut bytes = [0; 4];
    open(&store, "last").read_at(1, &mut bytes).unwrap();
    assert_eq!(&bytes, b"ytes");
}

#[test]
fn what_was_inserted_in_place_with_the_same_size_is_noticed() {
    for method in [STORED, DEFLATED] {
        let zip = Zip::new(method);
        zip.put("a", b"old bytes");
        let before = open(&zip.store, "a");
        let old = zip.packed();
        zip.insert("a", b"new bytes");
        assert_eq!(old.len(), zip.packed().len());
        fs::write(zip.path(), zip.packed()).unwrap();
        let file = fs::File::open(zip.path()).unwrap();
        // In place of a sleep until the clock of the file system ticks.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        file.set_modified(later).unwrap();
        let error = bytes(&*before).unwrap_err();
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
        assert_eq!(bytes(&*open(&zip.store, "a")).unwrap(), b"new bytes");
    }
}

/// The names at the root of the store that a zip file with these keys is.
fn root_of(keys: &[&str]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    // The name says nothing.
    let path = directory.path().join("data");
    let contents = keys.iter().map(|key| ((*key).to_owned(), b"{}".to_vec()));
    fs::write(&path, pack(&contents.collect(), STORED)).unwrap();
    let location = Location::parse(path.as_os_str()).unwrap();
    assert_eq!(location, Location::Zip(path));
    let store = open_store(&location, Symlinks::Inside).unwrap();
    let root = names(&entries(&*store, "", Cursor::START, Detail::Names));
    let root = root.into_iter();
    root.map(|name| String::from_utf8(name).unwrap()).collect()
}

#[test]
fn the_only_directory_that_holds_a_hierarchy_is_the_store() {
    for (keys, expected) in [
        (
            &["a.zarr/zarr.json", "a.zarr/c/0", "__MACOSX/x"][..],
            &["c", "zarr.json"][..],
        ),
        (&["a/.zgroup", "notes.txt"], &[".zgroup"]),
        (
            &["a/meta/root.group.json", "a/zarr.json"],
            &["meta", "zarr.json"],
        ),
        (&["zarr.json", "a/zarr.json"], &["a", "zarr.json"]),
        (&["a/zarr.json", "b/.zarray"], &["a", "b"]),
        (&["a/b/zarr.json"], &["a"]),
        (&["notes.txt"], &["notes.txt"]),
        (&[], &[]),
    ] {
        assert_eq!(root_of(keys), expected, "{keys:?}");
    }
}

#[test]
fn keys_are_found_below_the_directory_that_is_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.zip");
    let contents = [
        ("a.zarr/zarr.json", "{}"),
        ("a.zarr/c/0", "chunk"),
        ("b", ""),
    ];
    let contents = contents.map(|(key, bytes)| (key.to_owned(), bytes.as_bytes().to_vec()));
    fs::write(&path, pack(&contents.into(), DEFLATED)).unwrap();
    let store = open_store(&Location::Zip(path), Symlinks::Inside).unwrap();
    assert_eq!(bytes(&*open(&*store, "c/0")).unwrap(), b"chunk");
    assert!(store.stat(&key("a.zarr")).unwrap().is_none());
    assert!(store.stat(&key("b")).unwrap().is_none());
}
