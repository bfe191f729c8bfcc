//! Links, special files, permissions, names and sizes that only directories have.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;
use zarr_mount::store::{
    Cursor, Detail, DirStore, EntryKind, Key, StatKind, Store, StoreError, Symlinks,
};

use crate::{bytes, entries, key, names, open, prefix};

/// `outside/secret` beside a store that holds `a/b`.
struct Tree {
    directory: TempDir,
}

impl Tree {
    fn new() -> Tree {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("outside")).unwrap();
        fs::write(directory.path().join("outside/secret"), b"secret").unwrap();
        fs::create_dir_all(directory.path().join("store/a")).unwrap();
        fs::write(directory.path().join("store/a/b"), b"12345").unwrap();
        Tree { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("store").join(name)
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(name)).unwrap();
    }

    fn open(&self, symlinks: Symlinks) -> DirStore {
        DirStore::open(&self.path(""), symlinks).unwrap()
    }
}

/// The error that all three ways to `name` give.
fn refused(store: &DirStore, name: &str) -> StoreError {
    let error = store.stat(&key(name)).expect_err(name);
    let other = store.open(&key(name)).expect_err(name);
    assert_eq!(error.to_string(), other.to_string());
    let listed = store.list(&prefix(name), Cursor::START, Detail::Names);
    match listed {
        Err(listed) => assert_eq!(error.to_string(), listed.to_string()),
        Ok(listing) => assert!(listing.is_none(), "{name} was listed"),
    }
    error
}

fn kinds(store: &DirStore, name: &str) -> BTreeMap<String, EntryKind> {
    let of = |detail| {
        let listed = entries(store, name, Cursor::START, detail).into_iter();
        listed
            .map(|entry| {
                let readable = entry.kind != EntryKind::Unreadable;
                let wanted = detail == Detail::Attributes && readable;
                assert_eq!(entry.meta.is_some(), wanted, "{entry:?}");
                (String::from_utf8(entry.name).unwrap(), entry.kind)
            })
            .collect::<BTreeMap<_, _>>()
    };
    let kinds = of(Detail::Names);
    assert_eq!(kinds, of(Detail::Attributes));
    kinds
}

#[test]
fn links_inside_the_store_are_followed() {
    let tree = Tree::new();
    tree.link("file", "a/b");
    tree.link("directory", "a");
    tree.link("a/up-and-down", "../a/b");
    tree.link("chain", "directory/up-and-down");
    for symlinks in [Symlinks::Inside, Symlinks::Follow] {
        let store = tree.open(symlinks);
        for name in ["file", "directory/b", "a/up-and-down", "chain"] {
            assert_eq!(bytes(&*open(&store, name)).unwrap(), b"12345", "{name}");
            assert_eq!(
                store.stat(&key(name)).unwrap().unwrap().kind,
                StatKind::Object
            );
        }
        assert!(store.stat(&key("directory/absent")).unwrap().is_none());
        assert!(store.stat(&key("file/below")).unwrap().is_none());
        let kinds = kinds(&store, "");
        assert_eq!(kinds["file"], EntryKind::Object);
        assert_eq!(kinds["directory"], EntryKind::Prefix);
        assert_eq!(kinds["chain"], EntryKind::Object);
        assert_eq!(
            names(&entries(&store, "directory", Cursor::START, Detail::Names)).len(),
            2
        );
    }
}

#[test]
fn no_link_leaves_the_store() {
    let tree = Tree::new();
    let outside = tree.directory.path().join("outside");
    tree.link("absolute-file", outside.join("secret"));
    tree.link("absolute-directory", &outside);
    tree.link("relative-file", "../outside/secret");
    tree.link("relative-directory", "../outside");
    tree.link("a/nested", "../../outside/secret");
    tree.link("twice", "a/nested");
    tree.link("root", "/");
    let store = tree.open(Symlinks::Inside);
    for name in [
        "absolute-file",
        "absolute-directory",
        "absolute-directory/secret",
        "relative-file",
        "relative-directory",
        "relative-directory/secret",
        "relative-directory/absent",
        "a/nested",
        "twice",
        "root",
        "root/etc/passwd",
    ] {
        let error = refused(&store, name);
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        assert!(error.to_string().contains("--follow-symlinks"), "{error}");
    }
    let mut kinds = kinds(&store, "");
    assert_eq!(kinds.remove("a"), Some(EntryKind::Prefix));
    assert!(
        kinds.values().all(|kind| *kind == EntryKind::Unreadable),
        "{kinds:?}"
    );

    let store = tree.open(Symlinks::Follow);
    for name in [
        "absolute-directory/secret",
        "relative-file",
        "a/nested",
        "twice",
    ] {
        assert_eq!(bytes(&*open(&store, name)).unwrap(), b"secret", "{name}");
    }
}

#[test]
fn links_back_to_where_the_path_came_from_are_loops() {
    let tree = Tree::new();
    fs::create_dir_all(tree.path("x/y")).unwrap();
    tree.link("self", ".");
    tree.link("a/up", "..");
    tree.link("ring", "ring");
    tree.link("around", "a");
    tree.link("into", "x/y");
    tree.link("x/y/up", "..");
    for symlinks in [Symlinks::Inside, Symlinks::Follow] {
        let store = tree.open(symlinks);
        for name in [
            "self",
            "self/a/b",
            "a/up",
            "a/up/a/b",
            "around/up",
            "ring",
            "into/up/y",
        ] {
            let error = refused(&store, name);
            assert!(matches!(error, StoreError::Loop { .. }), "{name}: {error}");
        }
        assert_eq!(kinds(&store, "")["self"], EntryKind::Unreadable);
        assert_eq!(kinds(&store, "")["ring"], EntryKind::Unreadable);
        assert_eq!(kinds(&store, "a")["up"], EntryKind::Unreadable);
        assert_eq!(kinds(&store, "around")["up"], EntryKind::Unreadable);
        // The directory `y` is no link, but the path came through it by the link `into`.
        assert_eq!(kinds(&store, "into")["up"], EntryKind::Prefix);
        assert_eq!(kinds(&store, "into/up")["y"], EntryKind::Unreadable);
        assert_eq!(walk(&store, "", 0), 8);
    }
}

/// The number of objects and prefixes below `name`. Panics if a listed prefix cannot be listed itself.
fn walk(store: &DirStore, name: &str, depth: usize) -> usize {
    assert!(depth < 20, "no end: {name}");
    let below = kinds(store, name).into_iter();
    below
        .map(|(child, kind)| {
            let path = format!("{name}/{child}");
            match kind {
                EntryKind::Prefix => 1 + walk(store, &path, depth + 1),
                EntryKind::Object => 1,
                EntryKind::Unreadable => 0,
            }
        })
        .sum()
}

#[test]
fn a_link_that_leads_nowhere_is_never_absent() {
    let tree = Tree::new();
    tree.link("dangling", "nothing/here");
    tree.link("below-a-file", "a/b/c");
    tree.link("long", "n".repeat(300));
    let store = tree.open(Symlinks::Inside);
    for name in ["dangling", "dangling/below", "below-a-file", "long"] {
        let error = refused(&store, name);
        assert!(
            error.to_string().contains("leads nowhere"),
            "{name}: {error}"
        );
        assert_eq!(kinds(&store, "").len(), 4);
    }
    assert_eq!(kinds(&store, "")["dangling"], EntryKind::Unreadable);
}

#[test]
fn special_files_are_refused_without_waiting() {
    let tree = Tree::new();
    mkfifoat(CWD, tree.path("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    let _listener = UnixListener::bind(tree.path("socket")).unwrap();
    tree.link("link", "fifo");
    tree.link("device", "/dev/null");
    let store = tree.open(Symlinks::Follow);
    for name in ["fifo", "socket", "link", "device"] {
        let error = store.open(&key(name)).expect_err(name);
        assert!(matches!(error, StoreError::NotAnObject { .. }), "{error}");
        let error = store.stat(&key(name)).expect_err(name);
        assert!(matches!(error, StoreError::NotAnObject { .. }), "{error}");
        assert_eq!(kinds(&store, "")[name], EntryKind::Unreadable);
    }
}

#[test]
fn denied_is_not_absent() {
    let tree = Tree::new();
    fs::set_permissions(tree.path("a/b"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::create_dir(tree.path("closed")).unwrap();
    fs::write(tree.path("closed/b"), b"12345").unwrap();
    fs::set_permissions(tree.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let store = tree.open(Symlinks::Inside);
    for name in ["a/b", "closed/b"] {
        // Root may read everything.
        match store.open(&key(name)) {
            Ok(object) => assert_eq!(bytes(&*object.expect(name)).unwrap(), b"12345"),
            Err(error) => assert!(matches!(error, StoreError::Denied { .. }), "{error}"),
        }
    }
    match store.list(&prefix("closed"), Cursor::START, Detail::Names) {
        Ok(listing) => assert!(listing.is_some()),
        Err(error) => assert!(matches!(error, StoreError::Denied { .. }), "{error}"),
    }
    assert_eq!(store.stat(&key("a/b")).unwrap().unwrap().meta.mode, 0);
    fs::set_permissions(tree.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_deleted_store_is_an_error_not_absence() {
    let tree = Tree::new();
    let store = tree.open(Symlinks::Inside);
    fs::rename(tree.path(""), tree.directory.path().join("moved")).unwrap();
    assert_eq!(bytes(&*open(&store, "a/b")).unwrap(), b"12345");
    fs::remove_dir_all(tree.directory.path().join("moved")).unwrap();
    let error = refused(&store, "a/b");
    assert!(error.to_string().contains("was deleted"), "{error}");
    assert!(store.stat_root().is_err());
}

#[test]
fn bytes_changed_in_place_with_the_same_size_are_noticed() {
    let tree = Tree::new();
    let store = tree.open(Symlinks::Inside);
    let before = open(&store, "a/b");
    fs::write(tree.path("a/b"), b"54321").unwrap();
    let file = fs::File::open(tree.path("a/b")).unwrap();
    // The time is set in place of a sleep until the clock of the file system ticks.
    let later = SystemTime::now() + Duration::from_secs(5);
    file.set_modified(later).unwrap();
    let error = bytes(&*before).unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    assert_eq!(open(&store, "a/b").meta().times.mtime, later);
    assert!(before.as_file().is_some());
}

#[test]
fn unlinking_and_changed_permissions_leave_the_version() {
    let tree = Tree::new();
    let store = tree.open(Symlinks::Inside);
    let object = open(&store, "a/b");
    fs::set_permissions(tree.path("a/b"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(open(&store, "a/b").meta().version, object.meta().version);
    fs::remove_file(tree.path("a/b")).unwrap();
    assert_eq!(bytes(&*object).unwrap(), b"12345");
}

#[test]
fn names_are_bytes() {
    let tree = Tree::new();
    let odd: [&[u8]; 4] = [b"a\nb", b"latin\xe9", b" ", b"...partial"];
    for name in odd {
        fs::write(tree.path("a").join(OsStr::from_bytes(name)), name).unwrap();
    }
    let store = tree.open(Symlinks::Inside);
    let listed = names(&entries(&store, "a", Cursor::START, Detail::Names));
    assert_eq!(listed.len(), 5);
    for name in odd {
        assert!(listed.contains(name));
        let object = store
            .open(&prefix("a").key(name).unwrap())
            .unwrap()
            .unwrap();
        assert_eq!(bytes(&*object).unwrap(), name);
    }
    let newline = Key::parse(b"a/a\nb/absent").unwrap();
    assert!(store.stat(&newline).unwrap().is_none());
}

#[test]
fn ten_thousand_entries_stream_and_resume() {
    let tree = Tree::new();
    for number in 0..10_000 {
        fs::File::create(tree.path("a").join(format!("chunk-{number}"))).unwrap();
    }
    let store = tree.open(Symlinks::Inside);
    let all = entries(&store, "a", Cursor::START, Detail::Names);
    assert_eq!(all.len(), 10_001);
    assert_eq!(names(&all).len(), 10_001);
    for seen in (0..all.len()).step_by(997) {
        let rest = entries(&store, "a", all[seen].cursor.clone(), Detail::Attributes);
        assert_eq!(names(&rest), names(&all[seen + 1..]));
    }
    // A name that is removed or added elsewhere does not move a cursor.
    let middle = &all[5_000];
    fs::remove_file(tree.path("a").join(OsStr::from_bytes(&all[10].name))).unwrap();
    fs::remove_file(tree.path("a").join(OsStr::from_bytes(&middle.name))).unwrap();
    let rest = entries(&store, "a", middle.cursor.clone(), Detail::Names);
    assert_eq!(names(&rest), names(&all[5_001..]));
}

#[test]
fn a_path_longer_than_the_system_takes_is_not_absent() {
    let tree = Tree::new();
    let store = tree.open(Symlinks::Inside);
    let long = vec!["n".repeat(200); 30].join("/");
    let error = store.stat(&key(&long)).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
}

#[test]
fn capacity_is_what_the_file_system_says() {
    let tree = Tree::new();
    let capacity = tree.open(Symlinks::Inside).capacity().unwrap();
    assert!(capacity.total_bytes >= capacity.free_bytes);
}

#[test]
fn a_store_must_be_a_directory() {
    let tree = Tree::new();
    for name in ["a/b", "absent"] {
        let error = DirStore::open(&tree.path(name), Symlinks::Inside).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    tree.link("link", "a");
    let store = DirStore::open(&tree.path("link"), Symlinks::Inside).unwrap();
    assert_eq!(bytes(&*open(&store, "b")).unwrap(), b"12345");
}
