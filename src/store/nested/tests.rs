use std::fs;
use std::io::Write;
use std::path::Path;

use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use tempfile::TempDir;

use super::*;
use crate::store::{DirStore, EntryKind, Symlinks};

fn write_zip(path: &Path, entries: &[(&str, &str)]) {
    let mut writer = ZipArchiveWriter::new(Vec::new());
    for (name, text) in entries {
        let (mut entry, config) = writer
            .new_file(EntryPath::verbatim(name.as_bytes()))
            .compression_method(CompressionMethod::STORE)
            .start()
            .unwrap();
        let mut data = config.wrap(&mut entry);
        data.write_all(text.as_bytes()).unwrap();
        let (_, descriptor) = data.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    // As a program that replaces a file does it.
    let new = path.with_extension("new");
    fs::write(&new, writer.finish().unwrap()).unwrap();
    fs::rename(new, path).unwrap();
}

struct Directory {
    files: TempDir,
    store: NestedZips,
}

impl Directory {
    fn new() -> Directory {
        let files = tempfile::tempdir().unwrap();
        let store = DirStore::open(files.path(), Symlinks::Inside).unwrap();
        let store = NestedZips::new(Arc::new(store));
        Directory { files, store }
    }

    fn zip(&self, path: &str, entries: &[(&str, &str)]) {
        write_zip(&self.files.path().join(path), entries);
    }

    fn stat(&self, path: &str) -> Option<Stat> {
        self.store.stat(&key(path)).unwrap()
    }

    fn read(&self, path: &str) -> Option<String> {
        let object = self.store.open(&key(path)).unwrap()?;
        let mut bytes = vec![0; usize::try_from(object.meta().size()).unwrap()];
        object.read_at(0, &mut bytes).unwrap();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, path: &str) -> Option<Vec<(String, EntryKind)>> {
        let prefix = Prefix::parse(path.as_bytes()).unwrap();
        let listing = self.store.list(&prefix, Cursor::START, Detail::Names);
        let mut listing = listing.unwrap()?;
        let mut names = Vec::new();
        while let Some(entry) = listing.next_entry().unwrap() {
            names.push((String::from_utf8(entry.name).unwrap(), entry.kind));
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Some(names)
    }
}

fn key(path: &str) -> Key {
    Key::parse(path.as_bytes()).unwrap()
}

#[test]
fn a_zip_store_is_an_object_with_keys_below_it() {
    let directory = Directory::new();
    fs::create_dir(directory.files.path().join("a")).unwrap();
    directory.zip("a/x.zip", &[("zarr.json", "{}"), ("t/0", "chunk")]);
    let file = directory.stat("a/x.zip").unwrap();
    assert_eq!(file.kind, StatKind::Object);
    assert!(file.prefix_meta().is_some() && file.object_meta().is_some());
    let names = [("x.zip".to_owned(), EntryKind::Object)];
    assert_eq!(directory.list("a").unwrap(), names);
    let names = ["t", "zarr.json"].map(str::to_owned);
    let kinds = [EntryKind::Prefix, EntryKind::Object];
    let listed: Vec<_> = names.into_iter().zip(kinds).collect();
    assert_eq!(directory.list("a/x.zip").unwrap(), listed);
    assert_eq!(directory.read("a/x.zip/t/0").unwrap(), "chunk");
    assert_eq!(directory.stat("a/x.zip/t").unwrap().kind, StatKind::Prefix);
    assert!(directory.stat("a/x.zip/u").is_none());
    assert!(directory.read("a/x.zip").unwrap().starts_with("PK"));
    // The file of the outer store, as it is.
    let keys = ["a/x.zip", "a/x.zip/t/0", "a"].map(key);
    let found = directory.store.stat_many(&keys);
    assert!(found.into_iter().all(|stat| stat.unwrap().is_some()));
}

#[test]
fn a_hierarchy_in_the_only_directory_is_the_root() {
    let directory = Directory::new();
    directory.zip("x.zip", &[("x.zarr/.zgroup", "{}"), ("notes", "n")]);
    assert_eq!(directory.read("x.zip/.zgroup").unwrap(), "{}");
    directory.zip("y.zip", &[("a/.zgroup", "{}"), ("b/.zgroup", "{}")]);
    assert_eq!(directory.read("y.zip/b/.zgroup").unwrap(), "{}");
}

#[test]
fn other_files_stay_files() {
    let directory = Directory::new();
    directory.zip("notes.zip", &[("a.txt", "text")]);
    fs::write(directory.files.path().join("text.zip"), "no zip").unwrap();
    fs::write(directory.files.path().join("empty.zip"), "").unwrap();
    fs::create_dir(directory.files.path().join("d.zip")).unwrap();
    fs::write(directory.files.path().join("d.zip/k"), "v").unwrap();
    directory.zip("d.zip/x.zip", &[(".zgroup", "{}"), ("y.zip", "PK")]);
    for name in ["notes.zip", "text.zip", "empty.zip"] {
        assert!(directory.stat(name).unwrap().below.is_none(), "{name}");
        assert!(directory.list(name).is_none(), "{name}");
        assert!(directory.read(&format!("{name}/a.txt")).is_none());
    }
    assert_eq!(directory.read("d.zip/k").unwrap(), "v");
    assert_eq!(directory.read("d.zip/x.zip/.zgroup").unwrap(), "{}");
    assert!(directory.stat("d.zip/x.zip/y.zip").unwrap().below.is_none());
}

#[test]
fn a_replaced_zip_file_is_noticed() {
    let directory = Directory::new();
    directory.zip("x.zip", &[(".zgroup", "{}"), ("k", "old")]);
    let old = directory.store.open(&key("x.zip/k")).unwrap().unwrap();
    assert_eq!(directory.read("x.zip/k").unwrap(), "old");
    directory.zip("x.zip", &[("in/.zgroup", "{}"), ("in/k", "new!")]);
    assert_eq!(directory.read("x.zip/k").unwrap(), "new!");
    let mut bytes = [0; 3];
    old.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"old", "an open object keeps its version");
    directory.zip("x.zip", &[("k", "no Zarr")]);
    assert!(directory.read("x.zip/k").is_none());
    fs::remove_file(directory.files.path().join("x.zip")).unwrap();
    assert!(directory.read("x.zip/k").is_none());
    assert!(directory.stat("x.zip").is_none());
}

#[test]
fn a_damaged_zip_file_is_an_error_below_itself_only() {
    let directory = Directory::new();
    let path = directory.files.path().join("x.zip");
    directory.zip("x.zip", &[(".zgroup", "{}"), ("k", "value")]);
    let whole = fs::read(&path).unwrap();
    for damaged in [&whole[..whole.len() - 1], &whole[..30]] {
        fs::write(&path, damaged).unwrap();
        assert!(directory.stat("x.zip").unwrap().below.is_some());
        let error = directory.store.stat(&key("x.zip/k")).unwrap_err();
        assert!(error.to_string().starts_with("x.zip: "), "{error}");
        assert!(directory.store.open(&key("x.zip/.zgroup")).is_err());
        let root = Prefix::parse(b"x.zip").unwrap();
        let listed = directory.store.list(&root, Cursor::START, Detail::Names);
        assert!(listed.is_err());
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(directory.read("x.zip/k").unwrap(), "value");
}

#[test]
fn few_of_many_zip_files_are_held_open() {
    let directory = Directory::new();
    let names: Vec<_> = (0..2 * MOST_OPEN.get())
        .map(|i| format!("{i}.zip"))
        .collect();
    for _ in 0..2 {
        for name in &names {
            directory.zip(name, &[(".zgroup", name)]);
            assert_eq!(&directory.read(&format!("{name}/.zgroup")).unwrap(), name);
        }
    }
    let open = lock(&directory.store.open);
    assert_eq!(open.by_key.len(), MOST_OPEN.get());
    let bytes: u64 = open.by_key.iter().map(|(_, zip)| zip.bytes).sum();
    assert_eq!(bytes, open.bytes);
}

#[test]
fn names_of_zip_files() {
    for name in ["a.zip", "a/b.ZIP", ".a.zip"] {
        assert!(is_named_as_zip(name.as_bytes()), "{name}");
    }
    for name in ["zip", ".zip", "a/.zip", "a.zip.txt", ""] {
        assert!(!is_named_as_zip(name.as_bytes()), "{name}");
    }
}
