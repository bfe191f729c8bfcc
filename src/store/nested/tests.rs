use std::fs;
use std::io::Write;
use std::path::Path;

use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use tempfile::TempDir;

use super::opened::MOST_OPEN;
use super::*;
use crate::store::testing::{Flat, Recording, wrap};
use crate::store::{Cursor, Detail, DirStore, EntryKind, MemoryStore, Symlinks};

fn zip_of(entries: &[(&str, &str)]) -> Vec<u8> {
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
    writer.finish().unwrap()
}

fn write_zip(path: &Path, entries: &[(&str, &str)]) {
    // As a program that replaces a file does it.
    let new = path.with_extension("new");
    fs::write(&new, zip_of(entries)).unwrap();
    fs::rename(new, path).unwrap();
}

/// A set of references in JSON, with one chunk in `a.nc`.
const JSON: &str = r#"{".zgroup": "{}", "x/0": ["a.nc", 1, 3]}"#;
/// The metadata of a set in Parquet.
const METADATA: &str = r#"{"metadata": {".zgroup": {}, "x/.zattrs": {}}, "record_size": 10}"#;

struct Directory {
    files: TempDir,
    store: NestedStores,
}

impl Directory {
    fn new() -> Directory {
        let files = tempfile::tempdir().unwrap();
        let path = files.path().canonicalize().unwrap();
        let store = DirStore::open(&path, Symlinks::Inside).unwrap();
        let address = Address::of_path(&path).ok();
        let options = OpenOptions::default();
        let store = NestedStores::new(Arc::new(store), NestedForms::All, address, &options);
        Directory { files, store }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.files.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn zip(&self, path: &str, entries: &[(&str, &str)]) {
        write_zip(&self.files.path().join(path), entries);
    }

    fn stat(&self, path: &str) -> Option<Stat> {
        self.store.stat(&key(path)).unwrap()
    }

    fn read(&self, path: &str) -> Option<String> {
        read(&self.store, path)
    }

    fn list(&self, path: &str) -> Option<Vec<(String, EntryKind)>> {
        list(&self.store, path)
    }
}

fn read(store: &NestedStores, path: &str) -> Option<String> {
    let object = store.open(&key(path)).unwrap()?;
    let mut bytes = vec![0; usize::try_from(object.meta().size()).unwrap()];
    object.read_at(0, &mut bytes).unwrap();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn list(store: &NestedStores, path: &str) -> Option<Vec<(String, EntryKind)>> {
    let prefix = Prefix::parse(path.as_bytes()).unwrap();
    let listing = store.list(&prefix, Cursor::START, Detail::Names);
    let mut listing = listing.unwrap()?;
    let mut names = Vec::new();
    while let Some(entry) = listing.next_entry().unwrap() {
        names.push((String::from_utf8(entry.name).unwrap(), entry.kind));
    }
    names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Some(names)
}

/// The names in a listing, without their kinds.
fn names(listed: Option<Vec<(String, EntryKind)>>) -> Vec<String> {
    listed
        .unwrap_or_default()
        .into_iter()
        .map(|(name, _)| name)
        .collect()
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
    assert_eq!(directory.store.open.counted(), (MOST_OPEN.get(), true));
}

#[test]
fn sets_of_references_are_stores() {
    let directory = Directory::new();
    directory.write("a/r.json", JSON);
    directory.write("a/a.nc", "0123456789");
    directory.write("a/r.parq/.zmetadata", METADATA);
    directory.write("notes.json", r#"{"version": 1, "notes": []}"#);
    directory.write("r.json/inner.json", JSON);
    let file = directory.stat("a/r.json").unwrap();
    assert!(file.kind == StatKind::Object && file.below.is_some());
    assert_eq!(names(directory.list("a/r.json")), [".zgroup", "x"]);
    // Its targets lie beside the set, not at the root of the store.
    assert_eq!(directory.read("a/r.json/x/0").unwrap(), "123");
    assert_eq!(directory.read("a/r.json").unwrap(), JSON);
    assert_eq!(directory.stat("a/r.parq").unwrap().kind, StatKind::Prefix);
    assert_eq!(names(directory.list("a/r.parq")), [".zgroup", "x"]);
    assert_eq!(directory.read("a/r.parq/x/.zattrs").unwrap(), "{}");
    assert_eq!(directory.read("a/r.parq/.zmetadata"), None);
    let keys = ["a/r.json", "a/r.json/x/0", "a/r.parq/.zgroup", "notes.json"].map(key);
    let found = directory.store.stat_many(&keys).into_iter();
    let below: Vec<_> = found
        .map(|stat| stat.unwrap().unwrap().below.is_some())
        .collect();
    assert_eq!(below, [true, false, false, false]);
    // A directory may have the name of a set, and another file too.
    assert_eq!(names(directory.list("r.json/inner.json")), [".zgroup", "x"]);
    assert_eq!(directory.list("notes.json"), None);
}

#[test]
fn a_set_in_parquet_beside_documents_of_zarr_is_none() {
    let directory = Directory::new();
    directory.write("r.parq/.zmetadata", METADATA);
    directory.write("r.parq/zarr.json", "{}");
    assert_eq!(names(directory.list("r.parq")), [".zmetadata", "zarr.json"]);
    directory.write("s.parq/.zmetadata", r#"{"metadata": {}}"#);
    assert_eq!(names(directory.list("s.parq")), [".zmetadata"]);
    // As soon as the set is there, it is seen.
    directory.write("s.parq/.zmetadata", METADATA);
    assert_eq!(names(directory.list("s.parq")), [".zgroup", "x"]);
}

#[test]
fn a_damaged_set_is_an_error_below_itself_only() {
    let directory = Directory::new();
    directory.write("r.json", r#"{".zgroup": "{}", "x/0": ["a.nc", 1,"#);
    directory.write(
        "r.parq/.zmetadata",
        r#"{"metadata": [], "record_size": 10}"#,
    );
    assert!(directory.stat("r.json").unwrap().below.is_some());
    for key_in_set in ["r.json/.zgroup", "r.parq/.zgroup"] {
        let error = directory.store.open(&key(key_in_set)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("by itself"), "{error}");
    }
    assert!(directory.read("r.json").is_some());
}

#[test]
fn only_directories_are_looked_into_if_files_are_shown() {
    let directory = Directory::new();
    directory.write("r.json", JSON);
    directory.write("r.parq/.zmetadata", METADATA);
    directory.zip("x.zip", &[("zarr.json", "{}")]);
    let within = Arc::clone(&directory.store.within);
    let (forms, options) = (NestedForms::Directories, OpenOptions::default());
    let address = directory.store.address.clone();
    let store = NestedStores::new(within, forms, address, &options);
    for file in ["r.json", "x.zip"] {
        assert!(store.stat(&key(file)).unwrap().unwrap().below.is_none());
        assert_eq!(list(&store, file), None);
    }
    assert_eq!(names(list(&store, "r.parq")), [".zgroup", "x"]);
}

/// A store on a server, and a recording of the calls to it.
fn server(objects: &[(&str, &[u8])]) -> (NestedStores, Arc<Recording>) {
    let memory = MemoryStore::new();
    for (path, bytes) in objects {
        memory.insert(key(path), bytes.to_vec());
    }
    let recording = Arc::<Recording>::default();
    let within = wrap(Arc::new(Flat::new(Arc::new(memory))), &recording);
    let (address, options) = (
        Address::of_path(Path::new("/s")).ok(),
        OpenOptions::default(),
    );
    let store = NestedStores::new(within, NestedForms::All, address, &options);
    (store, recording)
}

#[test]
fn on_a_server_zip_files_are_recognized_by_their_names() {
    let zip = zip_of(&[("in/.zgroup", "{}"), ("in/k", "value")]);
    let notes = zip_of(&[("a.txt", "text")]);
    let (store, recording) = server(&[
        ("d/x.ozx", &zip),
        ("d/notes.zip", &notes),
        ("d/cut.zip", &zip[..40]),
        ("d/text.zip", b"this is no zip file"),
        ("d/t/zarr.json", b"{}"),
    ]);
    let all = ["cut.zip", "notes.zip", "t", "text.zip", "x.ozx"];
    assert_eq!(names(list(&store, "d")), all);
    let listed = recording.calls();
    assert!(
        listed.iter().all(|call| !call.to_string().contains(".zip")),
        "{listed:?}"
    );
    for name in all {
        let stat = store.stat(&key(&format!("d/{name}"))).unwrap().unwrap();
        assert!(stat.prefix_meta().is_some(), "{name}");
    }
    assert_eq!(read(&store, "d/x.ozx/k").unwrap(), "value");
    // Without a hierarchy, all entries are shown.
    assert_eq!(names(list(&store, "d/notes.zip")), ["a.txt"]);
    for name in ["cut.zip", "text.zip"] {
        let error = store
            .stat(&key(&format!("d/{name}/zarr.json")))
            .unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("d/{name}: ")),
            "{error}"
        );
    }
    assert!(store.stat(&key("d/none.zip")).unwrap().is_none());
    // A zip file that was opened is in memory.
    recording.clear();
    assert_eq!(names(list(&store, "d/notes.zip")), ["a.txt"]);
    let opened = recording.calls();
    assert!(
        opened
            .iter()
            .all(|call| !call.to_string().starts_with("read")),
        "{opened:?}"
    );
}

#[test]
fn on_a_server_the_first_bytes_tell_sets_of_references() {
    let (store, recording) = server(&[
        ("r.json", JSON.as_bytes()),
        ("a.nc", b"0123456789"),
        ("notes.json", b"{}"),
        ("empty.json", b""),
        ("r.parq/.zmetadata", METADATA.as_bytes()),
    ]);
    let all = ["a.nc", "empty.json", "notes.json", "r.json", "r.parq"];
    assert_eq!(names(list(&store, "")), all);
    recording.clear();
    let is_store = |name| store.stat(&key(name)).unwrap().unwrap().below.is_some();
    assert_eq!(
        ["r.json", "notes.json", "empty.json"].map(is_store),
        [true, false, false]
    );
    let looked = recording.calls();
    assert!(
        looked
            .iter()
            .all(|call| !call.to_string().starts_with("read")),
        "{looked:?}"
    );
    assert_eq!(read(&store, "r.json/x/0").unwrap(), "123");
    assert_eq!(names(list(&store, "r.parq")), [".zgroup", "x"]);
}
