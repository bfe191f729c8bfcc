//! The verbs that change a store. A store in memory is the model of a store in a directory: the same verbs have the same
//! results in both, while other programs change both.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use zarr_mount::store::{
    DirStore, DirWriter, Durability, Key, MemoryStore, MemoryWriter, NewFile, Object, RenameMode,
    Replaces, Store, StoreError, StoreWriter, Symlinks, Version, WriterOptions,
};

use crate::{Directory, Fixture, bytes, key};

/// Some keys are prefixes of others.
const KEYS: [&str; 7] = ["a", "a/b", "a/b/c", "a/d", "e", "e/f", "g"];

const NEW: NewFile = NewFile {
    mode: 0o640,
    umask: 0,
    uid: 0,
    gid: 0,
};

/// Which version a verb takes the place of.
#[derive(Debug, Clone, Copy)]
enum Which {
    Nothing,
    Anything,
    /// The version that was seen at the key last.
    Known,
    /// The version that was seen at the key first.
    First,
}

#[derive(Debug, Clone)]
enum Operation {
    Put(usize, Vec<u8>, Which),
    Erase(usize, Which),
    ErasePrefix(usize),
    Rename(usize, usize, RenameMode),
    /// Another program replaces an object, writes to it, or removes it.
    Replaced(usize, Vec<u8>),
    Overwritten(usize, Vec<u8>),
    Removed(usize),
    /// Opens what is there, to be read until the end.
    Open(usize),
    /// Drops the writer, and makes another one.
    Reopen,
}

fn operation() -> impl Strategy<Value = Operation> {
    let (key, text) = (
        || 0..KEYS.len(),
        || prop::collection::vec(any::<u8>(), 0..6),
    );
    let which = || {
        prop_oneof![
            Just(Which::Nothing),
            Just(Which::Anything),
            Just(Which::Known),
            Just(Which::First)
        ]
    };
    let mode = prop_oneof![Just(RenameMode::Replace), Just(RenameMode::Keep)];
    prop_oneof![
        6 => (key(), text(), which()).prop_map(|(key, text, which)| Operation::Put(key, text, which)),
        3 => (key(), which()).prop_map(|(key, which)| Operation::Erase(key, which)),
        1 => key().prop_map(Operation::ErasePrefix),
        4 => (key(), key(), mode).prop_map(|(from, to, mode)| Operation::Rename(from, to, mode)),
        1 => (key(), text()).prop_map(|(key, text)| Operation::Replaced(key, text)),
        1 => (key(), text()).prop_map(|(key, text)| Operation::Overwritten(key, text)),
        1 => key().prop_map(Operation::Removed),
        2 => key().prop_map(Operation::Open),
        1 => Just(Operation::Reopen),
    ]
}

/// The result of a verb, in a form that does not depend on the store.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Done(bool),
    Failed(Option<i32>),
}

fn said<T>(result: Result<T, StoreError>, is_done: impl FnOnce(T) -> bool) -> Said {
    match result {
        Ok(value) => Said::Done(is_done(value)),
        Err(StoreError::Io { errno, .. }) => Said::Failed(errno),
        Err(other) => panic!("{other}"),
    }
}

type Contents = BTreeMap<Vec<u8>, (Vec<u8>, u32)>;

/// A store with its writer.
struct Written<F: Fixture, W: StoreWriter> {
    fixture: F,
    writer: Option<W>,
    open: fn(&F) -> Result<W, StoreError>,
    /// Removes prefixes without keys, where there can be any.
    prune: fn(&F),
    /// The bytes and the mode of each object.
    contents: fn(&F) -> Contents,
    versions: BTreeMap<usize, Vec<Version>>,
    readers: Vec<(Arc<dyn Object>, Vec<u8>)>,
}

impl<F: Fixture, W: StoreWriter> Written<F, W> {
    fn store(&self) -> &dyn Store {
        self.fixture.store()
    }

    fn version(&self, at: usize) -> Option<Version> {
        let object = self.store().open(&key(KEYS[at])).ok().flatten();
        object.map(|object| object.meta().version)
    }

    fn replaces(&self, at: usize, which: Which) -> Option<Replaces> {
        let known = self.versions.get(&at);
        Some(match which {
            Which::Nothing => Replaces::Nothing,
            Which::Anything => Replaces::Anything,
            Which::Known => Replaces::Version(*known?.last()?),
            Which::First => Replaces::Version(*known?.first()?),
        })
    }

    /// Keeps the version at each key in mind.
    fn look(&mut self) {
        for at in 0..KEYS.len() {
            if let Some(version) = self.version(at) {
                let known = self.versions.entry(at).or_default();
                if known.last() != Some(&version) {
                    known.push(version);
                }
            }
        }
    }

    /// Whether an object may be at the key, because none is above and none is below it.
    fn has_room(&self, at: usize) -> bool {
        let is_object = |key: &Key| self.store().open(key).is_ok_and(|found| found.is_some());
        let this = key(KEYS[at]);
        let parent = this.parent();
        let mut above = parent.with_ancestors().filter_map(|above| above.to_key());
        !above.any(|above| is_object(&above)) && self.store().open(&this).is_ok()
    }

    fn apply(&mut self, operation: &Operation) -> Option<Said> {
        let writer = self.writer.as_ref().unwrap();
        let result = match operation {
            Operation::Put(at, text, which) => {
                let put = writer.put(&key(KEYS[*at]), text, self.replaces(*at, *which)?, NEW);
                if let Ok(Some(version)) = put {
                    assert_eq!(self.version(*at), Some(version));
                }
                said(put, |put| put.is_some())
            }
            Operation::Erase(at, which) => {
                let erased = writer.erase(&key(KEYS[*at]), self.replaces(*at, *which)?);
                said(erased, |is_erased| is_erased)
            }
            Operation::ErasePrefix(at) => said(writer.erase_prefix(&key(KEYS[*at])), |()| true),
            Operation::Rename(from, to, mode) => {
                let (from, to) = (key(KEYS[*from]), key(KEYS[*to]));
                said(writer.rename(&from, &to, *mode), |()| true)
            }
            Operation::Replaced(at, text) => {
                self.has_room(*at)
                    .then(|| self.fixture.put(KEYS[*at], text))?;
                return None;
            }
            Operation::Overwritten(at, text) => {
                self.version(*at)?;
                self.fixture.overwrite(KEYS[*at], text);
                return None;
            }
            Operation::Removed(at) => {
                self.version(*at)?;
                self.fixture.remove(KEYS[*at]);
                return None;
            }
            Operation::Open(at) => {
                let object = self.store().open(&key(KEYS[*at])).ok().flatten()?;
                let text = bytes(&*object).unwrap();
                self.readers.push((object, text));
                return None;
            }
            Operation::Reopen => {
                self.writer = None;
                self.writer = Some((self.open)(&self.fixture).unwrap());
                return None;
            }
        };
        Some(result)
    }

    fn step(&mut self, operation: &Operation) -> Option<Said> {
        let said = self.apply(operation);
        (self.prune)(&self.fixture);
        self.look();
        said
    }

    /// The bytes that programs now read from the objects that they have opened. `None` for an object to which another
    /// program has written.
    fn read(&self) -> Vec<Option<Vec<u8>>> {
        let read = self.readers.iter().map(|(object, expected)| {
            let found = bytes(&**object);
            if let Ok(found) = &found {
                assert_eq!(found, expected);
            }
            found.ok()
        });
        read.collect()
    }
}

/// A directory that other programs change, too. Each change of another program has a different time, even within one
/// grain of the clock.
struct SharedDirectory {
    shared: Directory,
    n_changes: Cell<u64>,
}

impl SharedDirectory {
    fn path(&self) -> &Path {
        self.shared.directory.path()
    }

    fn date(&self, name: &str) {
        self.n_changes.set(self.n_changes.get() + 1);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.n_changes.get());
        let file = fs::File::options().write(true).open(self.path().join(name));
        file.unwrap().set_modified(time).unwrap();
    }
}

impl Fixture for SharedDirectory {
    fn store(&self) -> &dyn Store {
        self.shared.store()
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        self.shared.put(name, bytes);
        self.date(name);
        set_mode(&self.path().join(name), 0o444);
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        self.shared.overwrite(name, bytes);
        self.date(name);
    }

    fn remove(&self, name: &str) {
        self.shared.remove(name);
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Removes empty directories below `path`, which a store in memory does not have.
fn prune(path: &Path) {
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            prune(&entry.path());
            // One that is not empty stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn directory() -> Written<SharedDirectory, DirWriter> {
    let directory = tempfile::tempdir().unwrap();
    let store = DirStore::open(directory.path(), Symlinks::Inside).unwrap();
    let fixture = SharedDirectory {
        shared: Directory { directory, store },
        n_changes: Cell::new(0),
    };
    let open = |fixture: &SharedDirectory| {
        let options = WriterOptions {
            durability: Durability::Never,
            ..WriterOptions::default()
        };
        let writer = fixture.shared.store.writer(&options)?;
        Ok(writer.expect("a directory is written to"))
    };
    Written {
        writer: Some(open(&fixture).unwrap()),
        fixture,
        open,
        prune: |fixture| prune(fixture.path()),
        contents: |fixture| {
            let mut found = BTreeMap::new();
            let names = KEYS
                .into_iter()
                .map(|name| (name, fixture.path().join(name)));
            for (name, path) in names.filter(|(_, path)| path.is_file()) {
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
                let content = (fs::read(path).unwrap(), mode);
                found.insert(name.as_bytes().to_vec(), content);
            }
            found
        },
        versions: BTreeMap::new(),
        readers: Vec::new(),
    }
}

/// A store in memory that other programs change, too, without a writer.
impl Fixture for Arc<MemoryStore> {
    fn store(&self) -> &dyn Store {
        &**self
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        Fixture::put(&**self, name, bytes);
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        Fixture::overwrite(&**self, name, bytes);
    }

    fn remove(&self, name: &str) {
        Fixture::remove(&**self, name);
    }
}

fn memory() -> Written<Arc<MemoryStore>, MemoryWriter> {
    let fixture = Arc::new(MemoryStore::new());
    Written {
        writer: Some(fixture.writer().unwrap()),
        fixture,
        open: |store| store.writer(),
        prune: |_| {},
        contents: |store| {
            let mut found = BTreeMap::new();
            for name in KEYS {
                if let Ok(Some(object)) = store.open(&key(name)) {
                    let content = (bytes(&*object).unwrap(), object.meta().mode);
                    found.insert(name.as_bytes().to_vec(), content);
                }
            }
            found
        },
        versions: BTreeMap::new(),
        readers: Vec::new(),
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_directory_is_changed_as_memory_is(operations in prop::collection::vec(operation(), 1..30)) {
        let (mut directory, mut memory) = (directory(), memory());
        for operation in &operations {
            let said = (directory.step(operation), memory.step(operation));
            prop_assert_eq!(&said.0, &said.1, "{:?}", operation);
            let contents = (directory.contents)(&directory.fixture);
            prop_assert_eq!(contents, (memory.contents)(&memory.fixture), "{:?}", operation);
        }
        prop_assert_eq!(directory.read(), memory.read());
    }
}

#[test]
fn of_three_that_replace_a_version_one_does() {
    fn check<F: Fixture, W: StoreWriter + Sync>(written: &Written<F, W>) {
        let (writer, key) = (written.writer.as_ref().unwrap(), key("a/b"));
        let first = writer.put(&key, b"0", Replaces::Nothing, NEW).unwrap();
        let mut replaced = Replaces::Version(first.unwrap());
        for round in 0..50_u8 {
            let put = |n: u8| {
                let text = [round, n];
                writer
                    .put(&key, &text, replaced, NEW)
                    .unwrap()
                    .map(|version| (version, text))
            };
            let put = std::thread::scope(|scope| {
                let threads = [0, 1, 2].map(|n| scope.spawn(move || put(n)));
                threads.map(|thread| thread.join().unwrap())
            });
            let done: Vec<_> = put.into_iter().flatten().collect();
            let [(version, text)] = done[..] else {
                panic!("{} of three have replaced it", done.len());
            };
            let object = written.store().open(&key).unwrap().unwrap();
            assert_eq!(bytes(&*object).unwrap(), text);
            replaced = Replaces::Version(version);
        }
    }
    check(&directory());
    check(&memory());
}

#[test]
fn a_store_has_one_writer() {
    fn check<F: Fixture, W: StoreWriter>(written: &Written<F, W>) {
        let other = (written.open)(&written.fixture).err();
        assert!(
            matches!(other, Some(StoreError::Denied { .. })),
            "{other:?}"
        );
    }
    check(&directory());
    check(&memory());
}
