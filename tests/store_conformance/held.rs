//! A directory that is held while other directories, or links to them, take its place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zarr_mount::store::{DirStore, HeldDirectory, Prefix, Store, StoreError, Symlinks};

use crate::{bytes, key, open, prefix};

const DOCUMENT: &str = "zarr.json";
const CHUNK: &str = "c/0";

/// A store with two arrays, whose objects have the bytes `one` and `two`.
struct Arrays {
    directory: TempDir,
}

impl Arrays {
    fn new([one, two]: [&str; 2]) -> Arrays {
        let arrays = Arrays {
            directory: tempfile::tempdir().unwrap(),
        };
        for (name, text) in [(one, "one"), (two, "two")] {
            arrays.write(&format!("{name}/{DOCUMENT}"), text);
            arrays.write(&format!("{name}/{CHUNK}"), text);
        }
        arrays
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("store").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        symlink(target, self.path(name)).unwrap();
    }

    /// Moves what is at `from` to `to`, and puts a link to `target` in its place.
    fn move_behind_link(&self, from: &str, to: &str, target: &str) {
        fs::create_dir_all(self.path(to).parent().unwrap()).unwrap();
        fs::rename(self.path(from), self.path(to)).unwrap();
        self.link(from, target);
    }

    fn exchange(&self, [one, other]: [&str; 2]) {
        for (from, to) in [(one, "between"), (other, one), ("between", other)] {
            fs::rename(self.path(from), self.path(to)).unwrap();
        }
    }

    fn open(&self, symlinks: Symlinks) -> DirStore {
        DirStore::open(&self.path(""), symlinks).unwrap()
    }
}

/// Checks that the document and the chunk of the array at `name` are found in the same directory, although a name on the
/// path to it is exchanged between the two requests.
fn check_held(arrays: &Arrays, name: &str, exchanged: [&str; 2]) {
    let [document, chunk] = [DOCUMENT, CHUNK].map(|below| format!("{name}/{below}"));
    for symlinks in [Symlinks::Inside, Symlinks::Follow] {
        let store = arrays.open(symlinks);
        for (first, second) in [(&document, &chunk), (&chunk, &document)] {
            let (found, stat) = HeldDirectory::scope(&prefix(name), || {
                assert_eq!(bytes(&*open(&store, first)).unwrap(), b"one", "{first}");
                arrays.exchange(exchanged);
                let found = bytes(&*open(&store, second)).unwrap();
                let stat = store.stat(&key(second)).unwrap().unwrap();
                (found, stat)
            });
            assert_eq!(bytes(&*open(&store, second)).unwrap(), b"two", "{second}");
            arrays.exchange(exchanged);
            assert_eq!(found, b"one", "{second}, {exchanged:?}, {symlinks:?}");
            let now = store.stat(&key(second)).unwrap().unwrap();
            assert_eq!(stat.meta.version, now.meta.version, "{second}");
        }
    }
}

#[test]
fn an_array_behind_links_is_held() {
    let arrays = Arrays::new(["r/x", "r/y"]);
    arrays.link("l", "r/x");
    arrays.link("m", "r/y");
    check_held(&arrays, "l", ["l", "m"]);
    check_held(&arrays, "l", ["r/x", "r/y"]);

    arrays.link("k/l", "../l");
    arrays.link("k/m", "../m");
    arrays.link("chain", "k/l");
    check_held(&arrays, "chain", ["k/l", "k/m"]);
}

#[test]
fn an_array_in_a_group_behind_a_link_is_held() {
    let arrays = Arrays::new(["r/g/a", "r/h/a"]);
    arrays.link("l", "r/g");
    arrays.link("m", "r/h");
    check_held(&arrays, "l/a", ["l", "m"]);
    check_held(&arrays, "l/a", ["r/g", "r/h"]);
}

#[test]
fn links_in_the_array_are_followed_from_the_directory_that_is_held() {
    let arrays = Arrays::new(["x", "y"]);
    for name in ["x", "y"] {
        arrays.move_behind_link(
            &format!("{name}/c"),
            &format!("far/{name}"),
            &format!("../far/{name}"),
        );
        let (document, far) = (format!("{name}/{DOCUMENT}"), format!("far/{name}.json"));
        arrays.move_behind_link(&document, &far, &format!("../{far}"));
    }
    check_held(&arrays, "x", ["x", "y"]);
    arrays.link("l", "x");
    arrays.link("m", "y");
    check_held(&arrays, "l", ["l", "m"]);
    check_held(&arrays, "l", ["x", "y"]);
}

#[test]
fn a_link_to_a_directory_beside_the_array_leads_to_the_one_beside_it() {
    let arrays = Arrays::new(["g/a", "h/a"]);
    for group in ["g", "h"] {
        // A name, a link, and a way down and up again.
        arrays.move_behind_link(
            &format!("{group}/a/c"),
            &format!("{group}/beside"),
            "n/../../beside",
        );
        fs::create_dir(arrays.path(&format!("{group}/a/n"))).unwrap();
        let (document, beside) = (
            format!("{group}/a/{DOCUMENT}"),
            format!("{group}/beside.json"),
        );
        arrays.move_behind_link(&document, &beside, ".././/./beside.json");
    }
    check_held(&arrays, "g/a", ["g", "h"]);
}

#[test]
fn links_out_of_the_store_are_held_where_they_are_followed() {
    let arrays = Arrays::new(["x", "y"]);
    let outside = arrays.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["x", "y"] {
        fs::rename(arrays.path(name), outside.join(name)).unwrap();
        arrays.link(name, outside.join(name));
    }
    let store = arrays.open(Symlinks::Follow);
    let found = HeldDirectory::scope(&prefix("x"), || {
        assert_eq!(bytes(&*open(&store, "x/zarr.json")).unwrap(), b"one");
        arrays.exchange(["x", "y"]);
        bytes(&*open(&store, "x/c/0")).unwrap()
    });
    assert_eq!(found, b"one");
    assert_eq!(bytes(&*open(&store, "x/c/0")).unwrap(), b"two");
}

#[test]
fn a_link_is_not_followed_from_a_directory_that_was_moved_out_of_the_store() {
    let arrays = Arrays::new(["x", "y"]);
    arrays.move_behind_link("x/c", "far", "../far");
    let moved = arrays.directory.path().join("moved");
    let store = arrays.open(Symlinks::Inside);
    fs::create_dir(arrays.directory.path().join("far")).unwrap();
    fs::write(arrays.directory.path().join("far/0"), "secret").unwrap();
    HeldDirectory::scope(&prefix("x"), || {
        assert_eq!(bytes(&*open(&store, "x/zarr.json")).unwrap(), b"one");
        fs::rename(arrays.path("x"), &moved).unwrap();
        for found in [
            store.open(&key("x/c/0")).map(drop),
            store.stat(&key("x/c")).map(drop),
        ] {
            let error = found.unwrap_err();
            assert!(matches!(error, StoreError::Changed { .. }), "{error}");
        }
        // An object whose path has no link can still be read.
        assert_eq!(bytes(&*open(&store, "x/zarr.json")).unwrap(), b"one");
    });
    assert!(store.open(&key("x/c/0")).unwrap().is_none());
}

#[test]
fn what_links_may_not_do_they_may_not_do_in_a_held_directory() {
    let arrays = Arrays::new(["x", "y"]);
    let secret = arrays.directory.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    arrays.link("x/up", "..");
    arrays.link("x/self", ".");
    arrays.link("x/round", "../l");
    arrays.link("x/ring", "ring");
    arrays.link("x/out", "../../secret");
    arrays.link("x/far-out", "../".repeat(100));
    arrays.link("x/out-and-in", "../../store/y/zarr.json");
    arrays.link("x/absolute", &secret);
    arrays.link("x/nowhere", "../y/nothing");
    arrays.link("x/below-a-file", "zarr.json/");
    arrays.link("l", "x");
    let store = arrays.open(Symlinks::Inside);
    for array in ["x", "l"] {
        for name in [
            "up",
            "up/x",
            "self",
            "self/zarr.json",
            "round",
            "ring",
            "ring/0",
            "out",
            "far-out",
            "out-and-in",
            "absolute",
            "nowhere",
            "nowhere/0",
            "below-a-file",
        ] {
            let path = key(&format!("{array}/{name}"));
            let refused = || {
                let errors = [store.open(&path).map(drop), store.stat(&path).map(drop)];
                errors.map(|found| found.expect_err(name).to_string())
            };
            let anew = refused();
            for held in [Prefix::root(), prefix(array)] {
                assert_eq!(HeldDirectory::scope(&held, refused), anew);
            }
        }
        let nothing = key(&format!("{array}/zarr.json/below"));
        HeldDirectory::scope(&prefix(array), || {
            assert!(store.open(&nothing).unwrap().is_none());
        });
    }
}
