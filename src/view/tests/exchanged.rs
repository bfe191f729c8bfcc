//! Directories that are exchanged while a chunk is looked up, and exchanged again before its document is checked.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::store::testing::{Call, Layer, wrap};
use crate::store::{DirStore, StoreError, Symlinks};

/// While it is on, exchanges two directories of a store before and after each call that is about `key`.
#[derive(Debug)]
struct Exchanging {
    directories: [PathBuf; 2],
    key: Key,
    is_on: AtomicBool,
}

impl Exchanging {
    fn exchange(&self) {
        let [one, other] = &self.directories;
        let between = one.with_extension("between");
        for (from, to) in [(one, &between), (other, one), (&between, other)] {
            std::fs::rename(from, to).unwrap();
        }
    }
}

impl Layer for Exchanging {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if call.path != self.key.to_prefix() || !self.is_on.load(Ordering::SeqCst) {
            return ask();
        }
        self.exchange();
        let answer = ask();
        self.exchange();
        answer
    }
}

/// Writes an array of one chunk below `folder`. The chunk is stored if there are `bytes`.
fn write(folder: &Path, codecs: &Value, bytes: Option<&[u8]>) {
    std::fs::create_dir_all(folder.join("c")).unwrap();
    std::fs::write(folder.join("zarr.json"), text(&array(&[2], &[2], codecs))).unwrap();
    if let Some(bytes) = bytes {
        std::fs::write(folder.join("c/0"), bytes).unwrap();
    }
}

/// A view of the group `g` with the array `a`, and its layer, which exchanges the array for one without codecs whose
/// chunk has the bytes `other`.
fn exchanging(folder: &Path, view: ViewKind, other: Option<&[u8]>) -> (Fixture, Arc<Exchanging>) {
    exchanging_in(folder, view, other, |_| {})
}

/// Like [`exchanging`], after `arrange` has moved parts of the two arrays, for example behind links.
fn exchanging_in(
    folder: &Path,
    view: ViewKind,
    other: Option<&[u8]>,
    arrange: impl FnOnce(&[PathBuf; 2]),
) -> (Fixture, Arc<Exchanging>) {
    let mut encoded = b"ab".to_vec();
    encoded.extend(crc32c::crc32c(b"ab").to_le_bytes());
    let directories = [folder.join("g/a"), folder.join("g/b")];
    write(&directories[0], &crc32c(), Some(&encoded));
    write(&directories[1], &plain(), other);
    arrange(&directories);
    let layer = Arc::new(Exchanging {
        directories,
        key: Key::parse(b"g/a/c/0").unwrap(),
        is_on: AtomicBool::new(false),
    });
    let store = DirStore::open(folder, Symlinks::Inside).unwrap();
    let options = ViewOptions {
        views: vec![view],
        freshness: Freshness::Checked(Duration::from_secs(3600)),
        missing: AbsentChunks::Hide,
        shown_as: (view == ViewKind::Keys).then_some(Target::V2),
        ..ViewOptions::default()
    };
    let view = Arc::new(View::new(wrap(Arc::new(store), &layer), options).unwrap());
    let store = Arc::new(MemoryStore::new());
    (Fixture { store, view }, layer)
}

#[test]
fn a_chunk_of_a_directory_that_was_there_in_between_is_not_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let (fixture, layer) = exchanging(folder.path(), ViewKind::Chunks, Some(b"wrong!"));
    assert_eq!(fixture.read("g/a/c/0").unwrap(), b"ab");
    let found = fixture.find("g/a/c/0").unwrap().unwrap();
    layer.is_on.store(true, Ordering::SeqCst);
    let opened = fixture.view.open(found.id);
    assert!(matches!(opened, Err(Error::Stale)), "{opened:?}");
    layer.is_on.store(false, Ordering::SeqCst);
    assert_eq!(fixture.read("g/a/c/0").unwrap(), b"ab");
}

#[test]
fn a_chunk_that_a_directory_in_between_has_not_is_not_absent() {
    for (view, name) in [(ViewKind::Chunks, "g/a/c/0"), (ViewKind::Keys, "g/a/0")] {
        let folder = tempfile::tempdir().unwrap();
        let (fixture, layer) = exchanging(folder.path(), view, None);
        assert!(fixture.find(name).unwrap().is_some(), "{view:?}");
        layer.is_on.store(true, Ordering::SeqCst);
        let found = fixture.find(name);
        assert!(matches!(found, Err(Error::Stale)), "{view:?}: {found:?}");
    }
}

/// Moves the directory `below` in both `directories` elsewhere, behind links; the directories themselves if it is
/// empty.
fn put_behind_links(directories: &[PathBuf; 2], below: &str) {
    for directory in directories {
        let name = directory.file_name().unwrap().to_str().unwrap();
        let (from, up) = match below {
            "" => (directory.clone(), ""),
            below => (directory.join(below), "../"),
        };
        let moved = format!("moved-{name}");
        std::fs::rename(&from, directory.with_file_name(&moved)).unwrap();
        std::os::unix::fs::symlink(format!("{up}{moved}"), from).unwrap();
    }
}

#[test]
fn a_chunk_behind_a_link_that_was_there_in_between_is_not_decoded() {
    for below in ["", "zarr.json", "c"] {
        let folder = tempfile::tempdir().unwrap();
        let arrange = |directories: &_| put_behind_links(directories, below);
        let (fixture, layer) =
            exchanging_in(folder.path(), ViewKind::Chunks, Some(b"wrong!"), arrange);
        assert_eq!(fixture.read("g/a/c/0").unwrap(), b"ab", "{below}");
        let found = fixture.find("g/a/c/0").unwrap().unwrap();
        layer.is_on.store(true, Ordering::SeqCst);
        let opened = fixture.view.open(found.id);
        assert!(matches!(opened, Err(Error::Stale)), "{below}: {opened:?}");
        layer.is_on.store(false, Ordering::SeqCst);
        assert_eq!(fixture.read("g/a/c/0").unwrap(), b"ab", "{below}");
    }
}

#[test]
fn a_chunk_that_a_link_in_between_does_not_lead_to_is_not_absent() {
    for (view, name) in [(ViewKind::Chunks, "g/a/c/0"), (ViewKind::Keys, "g/a/0")] {
        for below in ["", "zarr.json", "c"] {
            let folder = tempfile::tempdir().unwrap();
            let arrange = |directories: &_| put_behind_links(directories, below);
            let (fixture, layer) = exchanging_in(folder.path(), view, None, arrange);
            assert!(fixture.find(name).unwrap().is_some(), "{view:?}: {below}");
            layer.is_on.store(true, Ordering::SeqCst);
            let found = fixture.find(name);
            assert!(
                matches!(found, Err(Error::Stale)),
                "{view:?}, {below}: {found:?}"
            );
        }
    }
}

#[test]
fn an_array_behind_a_symbolic_link_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (fixture, _) = exchanging(folder.path(), ViewKind::Chunks, None);
    std::os::unix::fs::symlink("g", folder.path().join("linked")).unwrap();
    assert_eq!(fixture.read("linked/a/c/0").unwrap(), b"ab");
    std::fs::rename(
        folder.path().join("g/a/zarr.json"),
        folder.path().join("g/moved"),
    )
    .unwrap();
    std::os::unix::fs::symlink("../moved", folder.path().join("g/a/zarr.json")).unwrap();
    let read = || fixture.read("g/a/c/0");
    assert_eq!(read().or_else(|_| read()).unwrap(), b"ab");
}
