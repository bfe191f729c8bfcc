//! Another directory takes the place of the store's directory while the store is open.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use zarr_mount::store::{Cursor, Detail, DirStore, Store, StoreError, Symlinks};

use crate::{bytes, entries, key, names, open, prefix};

/// `top/store`, which holds what the test wants.
struct Site {
    directory: TempDir,
}

impl Site {
    fn new(files: &[(&str, &str)]) -> Site {
        let site = Site {
            directory: tempfile::tempdir().unwrap(),
        };
        site.make("store", files);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("top").join(name)
    }

    /// Makes a store called `name`.
    fn make(&self, name: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(self.path(name)).unwrap();
        for (file, bytes) in files {
            put(&self.path(name).join(file), bytes);
        }
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_dir_all(self.path(name)).unwrap();
    }

    fn open(&self) -> DirStore {
        DirStore::open(&self.path("store"), Symlinks::Inside).unwrap()
    }
}

fn put(path: &Path, bytes: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The message of every way to look at the store, each of which must be an error of EIO.
fn refused(store: &DirStore) -> String {
    let list = |name| match store.list(&prefix(name), Cursor::START, Detail::Names) {
        Ok(listing) => panic!("{name:?} was listed: {}", listing.is_some()),
        Err(error) => error,
    };
    let errors = [
        store.stat(&key("a/b")).unwrap_err(),
        store.stat(&key("absent")).unwrap_err(),
        store.open(&key("a/b")).unwrap_err(),
        list("a"),
        list(""),
        store.stat_root().unwrap_err(),
    ];
    for error in &errors {
        assert!(
            matches!(error, StoreError::Io { errno: None, .. }),
            "{error}"
        );
        assert_eq!(error.to_string(), errors[0].to_string());
    }
    errors[0].to_string()
}

#[test]
fn a_store_that_is_deleted_and_made_again_is_the_new_one() {
    let site = Site::new(&[("a/b", "old")]);
    let store = site.open();
    let before = open(&store, "a/b");
    for text in ["new", "newer"] {
        site.remove("store");
        assert!(refused(&store).contains("was deleted"));
        site.make("store", &[("a/b", text), ("c", "2")]);
        assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), text.as_bytes());
        let listed = names(&entries(&store, "", Cursor::START, Detail::Attributes));
        assert_eq!(listed, [b"a".to_vec(), b"c".to_vec()].into());
        assert!(store.stat(&key("absent")).unwrap().is_none());
    }
    assert_eq!(
        bytes(&*before).unwrap(),
        b"old",
        "a version that is held goes on"
    );
}

#[test]
fn a_store_that_is_renamed_into_place_is_the_new_one() {
    let site = Site::new(&[("a/b", "old")]);
    site.make("other", &[("a/b", "new")]);
    let store = site.open();
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"old");
    site.rename("store", "away");
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"old", "moved");
    site.rename("other", "store");
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"new");
    let root = store.stat_root().unwrap().version;
    site.rename("store", "other");
    site.rename("away", "store");
    assert_ne!(store.stat_root().unwrap().version, root);
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"old");
}

/// File systems give the inode number of a deleted file to the next one, and `tar` and `rsync` set
/// times: all attributes that distinguish two files may be the same.
#[test]
fn no_version_of_a_replaced_store_comes_back() {
    let site = Site::new(&[("a/b", "old")]);
    let store = site.open();
    let of = |name: &str| store.stat(&key(name)).unwrap().unwrap().meta;
    let listed = || {
        let entries = entries(&store, "a", Cursor::START, Detail::Attributes);
        entries[0].meta.unwrap()
    };
    let before = (of("a/b"), listed(), *open(&store, "a/b").meta());
    site.rename("store", "away");
    site.make("store", &[]);
    store.stat_root().unwrap();
    site.remove("store");
    site.rename("away", "store");
    let after = (of("a/b"), listed(), *open(&store, "a/b").meta());
    assert_eq!(
        after.0.version.inode, before.0.version.inode,
        "the same file"
    );
    assert_ne!(after.0.version, before.0.version);
    assert_ne!(after.1.version, before.1.version);
    assert_ne!(after.2.version, before.2.version);
    assert_eq!(after.0.version, after.1.version);
    assert_eq!(after.0.version, after.2.version);
}

#[test]
fn the_first_absence_in_an_emptied_store_is_no_fill_value() {
    let site = Site::new(&[("a/b", "old")]);
    let store = site.open();
    for delete in [true, false] {
        if delete {
            site.remove("store");
        } else {
            site.rename("store", "away");
        }
        site.make("store", &[]);
        let error = store.open(&key("a/b")).unwrap_err();
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
        assert!(store.open(&key("a/b")).unwrap().is_none());
    }
}

#[test]
fn nothing_but_a_directory_takes_the_place() {
    let site = Site::new(&[("a/b", "old")]);
    site.make("other", &[("a/b", "private")]);
    let store = site.open();
    site.rename("store", "away");
    let link = |target: &str| symlink(site.path(target), site.path("store")).unwrap();

    link("other");
    assert!(refused(&store).contains("a symbolic link"));
    fs::remove_file(site.path("store")).unwrap();
    link("nowhere");
    assert!(refused(&store).contains("a symbolic link"));
    fs::remove_file(site.path("store")).unwrap();
    put(&site.path("store"), "a file");
    assert!(refused(&store).contains("no directory"));
    fs::remove_file(site.path("store")).unwrap();

    // A link to the same directory leads nowhere else.
    link("away");
    assert!(refused(&store).contains("a symbolic link"));
    fs::remove_file(site.path("store")).unwrap();

    // Nor is a link followed on the way.
    let (top, elsewhere) = (site.path(""), site.directory.path().join("elsewhere"));
    put(&elsewhere.join("store/a/b"), "private");
    fs::rename(&top, site.directory.path().join("top-away")).unwrap();
    symlink(&elsewhere, site.directory.path().join("top")).unwrap();
    assert!(refused(&store).contains("a symbolic link"));
    fs::remove_file(site.directory.path().join("top")).unwrap();
    fs::rename(site.directory.path().join("top-away"), &top).unwrap();

    site.rename("away", "store");
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"old");
}

#[test]
fn a_directory_of_another_owner_does_not_take_the_place() {
    let site = Site::new(&[("a/b", "old")]);
    let store = site.open();
    site.remove("store");
    site.make("store", &[("a/b", "private")]);
    if chown(site.path("store"), Some(4711), None).is_err() {
        return; // Only root can give a directory away.
    }
    assert!(refused(&store).contains("owned by user 4711"));
    site.remove("store");
    site.make("store", &[("a/b", "new")]);
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"new");
}

#[test]
fn a_link_to_the_store_is_resolved_once() {
    let site = Site::new(&[("a/b", "old")]);
    site.make("other", &[("a/b", "other")]);
    let link = site.path("link");
    symlink("store", &link).unwrap();
    let store = DirStore::open(&link, Symlinks::Inside).unwrap();
    fs::remove_file(&link).unwrap();
    symlink("other", &link).unwrap();
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"old");
    site.remove("store");
    site.make("store", &[("a/b", "new")]);
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"new");
}

/// A thing that happens to the directory at the path, or to those beside it.
#[derive(Debug, Clone)]
enum Happens {
    Put(usize, String),
    Take(usize),
    Delete,
    Make,
    /// The directory at the path and the one beside it change places, as far as they exist.
    Exchange,
}

const KEYS: [&str; 3] = ["a/b", "a/c", "d"];

/// A directory, which its number distinguishes from other directories.
#[derive(Default)]
struct Dir {
    number: usize,
    files: BTreeMap<usize, String>,
}

/// The directories at the path and beside it.
struct Model {
    here: Option<Dir>,
    beside: Option<Dir>,
    /// The directory that was at the path when the store was last asked.
    held: usize,
    made: usize,
}

impl Model {
    fn happens(&mut self, site: &Site, event: &Happens) {
        let path = site.path("store");
        match (event, &mut self.here) {
            (Happens::Put(at, text), Some(dir)) => {
                put(&path.join(KEYS[*at]), text);
                dir.files.insert(*at, text.clone());
            }
            (Happens::Take(at), Some(dir)) => {
                let taken = dir.files.remove(at);
                if taken.is_some() {
                    fs::remove_file(path.join(KEYS[*at])).unwrap();
                }
            }
            (Happens::Delete, Some(_)) => {
                site.remove("store");
                self.here = None;
            }
            (Happens::Make, None) => {
                site.make("store", &[]);
                self.made += 1;
                self.here = Some(Dir {
                    number: self.made,
                    ..Dir::default()
                });
            }
            (Happens::Exchange, _) => {
                for (from, to) in [
                    ("store", "between"),
                    ("beside", "store"),
                    ("between", "beside"),
                ] {
                    if site.path(from).exists() {
                        site.rename(from, to);
                    }
                }
                std::mem::swap(&mut self.here, &mut self.beside);
            }
            _ => {}
        }
    }

    /// The directory that a request sees now; `None` if the store must say that its directory is gone.
    fn ask(&mut self) -> Option<&Dir> {
        if let Some(here) = &self.here {
            self.held = here.number;
        }
        let is_held = |dir: &&Dir| dir.number == self.held;
        self.here.as_ref().or(self.beside.as_ref().filter(is_held))
    }
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (0..KEYS.len(), "[xyz]{1,3}").prop_map(|(at, text)| Happens::Put(at, text)),
        2 => (0..KEYS.len()).prop_map(Happens::Take),
        2 => Just(Happens::Delete),
        3 => Just(Happens::Make),
        2 => Just(Happens::Exchange),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_store_shows_the_directory_at_its_path(
        events in proptest::collection::vec((happens(), any::<bool>()), 1..24),
    ) {
        let site = Site::new(&[]);
        let store = site.open();
        let here = Some(Dir::default());
        let mut model = Model { here, beside: None, held: 0, made: 0 };
        for (event, is_looked_at) in events {
            model.happens(&site, &event);
            if !is_looked_at {
                continue;
            }
            for (at, name) in KEYS.iter().enumerate() {
                let mut found = store.open(&key(name));
                if matches!(found, Err(StoreError::Changed { .. })) {
                    // Said at most once, in place of absence.
                    found = store.open(&key(name));
                }
                let found = found.map(|object| object.map(|object| bytes(&*object).unwrap()));
                match model.ask() {
                    Some(dir) => {
                        let expected = dir.files.get(&at).map(|text| text.clone().into_bytes());
                        prop_assert_eq!(found.unwrap(), expected, "{} after {:?}", name, event);
                    }
                    None => prop_assert!(found.is_err(), "{name} after {event:?}: {found:?}"),
                }
            }
        }
    }
}
