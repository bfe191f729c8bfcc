//! Modes, owners and access lists of written files.

use std::os::unix::net::UnixListener;

use rustix::fs::{XattrFlags, setxattr};

use super::*;
use crate::store::dir::access_list::tests::list;
use crate::store::dir::access_list::{ACCESS, AccessList, DEFAULT, set_access};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The user and the group of the tests, so that the system lets them set all bits.
fn own() -> (u32, u32) {
    let folder = tempfile::tempdir().unwrap();
    let found = fs::metadata(folder.path()).unwrap();
    (found.uid(), found.gid())
}

#[test]
fn a_committed_object_gives_no_user_the_rights_of_its_owner() {
    let f = fixture(Durability::Never);
    let (path, key) = (f.path.join("a/c/0"), key("a/c/0"));
    f.write("old");
    set_mode(&path, 0o6755);
    let mut draft = f.writer.begin_copy(&key, &f.stored()).unwrap();
    assert_eq!(mode(&path), 0o6755, "the draft is not committed yet");
    let commit = |draft: &mut Draft| {
        let committed = f.writer.commit(&key, draft, Replaces::Anything);
        assert!(matches!(committed, Ok(Commit::Done(_))));
        mode(&path)
    };
    assert_eq!(commit(&mut draft), 0o755);
    // The same holds for a new object, and for one whose mode was set while it was written.
    let (uid, gid) = own();
    for new_mode in [0o6755, 0o2745] {
        let new = NewFile {
            mode: new_mode,
            umask: 0,
            uid,
            gid,
        };
        let mut draft = f.writer.begin(&key, new).unwrap();
        let begun = draft.file().metadata().unwrap().mode();
        assert_eq!(begun & 0o7777, new_mode, "its maker's, as asked");
        let left = if new_mode == 0o6755 { 0o755 } else { 0o2745 };
        assert_eq!(commit(&mut draft), left);
    }
    let mut draft = f.draft("new");
    let all = fs::Permissions::from_mode(0o6711);
    draft.file().set_permissions(all).unwrap();
    let dated = f.writer.date(&key, &mut draft).unwrap();
    assert_eq!(commit(&mut draft), 0o711);
    assert_eq!(dated, f.stored().meta.version);
}

#[test]
fn an_object_written_in_place_gives_no_user_the_rights_of_its_owner() {
    let f = fixture(Durability::Never);
    let path = f.path.join("a/c/0");
    f.write("old");
    set_mode(&path, 0o6755);
    let mut stored = f.writer.open_object(&key("a/c/0"), false).unwrap().unwrap();
    let version = f.writer.begin_in_place(&"a/c/0", &mut stored).unwrap();
    assert_eq!(version, stored.meta.version, "the bytes are the same");
    assert!(stored.is_writable);
    assert_eq!(mode(&path), 0o755);
}

#[test]
fn a_new_file_has_the_bits_that_its_maker_asks_for_if_it_is_the_makers() {
    let f = fixture(Durability::Never);
    let (uid, gid) = own();
    let is_root = uid == 0;
    for (name, uid, bits) in [
        ("own", uid, 0o6755),
        // A daemon that is not root keeps the file for itself.
        ("given", uid + 1, if is_root { 0o6755 } else { 0o755 }),
    ] {
        let new = NewFile {
            mode: 0o6755,
            umask: 0,
            uid,
            gid,
        };
        f.writer.create(&key(name), new).unwrap();
        assert_eq!(mode(&f.path.join(name)), bits, "{name}");
    }
}

#[test]
fn a_new_directory_may_be_unreadable_for_its_owner() {
    let f = fixture(Durability::Never);
    let (uid, gid) = own();
    let new = NewFile {
        mode: 0o300,
        umask: 0,
        uid,
        gid,
    };
    f.writer.make_prefix(&key("d"), new).unwrap();
    assert_eq!(mode(&f.path.join("d")), 0o300);
}

/// A list that lets the user 12345 read, but not the group. Without the list, the mode would let the group
/// read.
fn named() -> AccessList {
    list(&[(1, 6), (2, 4), (4, 0), (0x10, 4), (0x20, 0)])
}

/// Gives the file or directory at `path` a list; `false` where its file system keeps none.
fn set_list(path: &Path, name: &str, list: &AccessList) -> bool {
    match setxattr(path, name, &list.to_bytes(), XattrFlags::empty()) {
        Ok(()) => true,
        Err(Errno::NOTSUP) => false,
        Err(errno) => panic!("{errno}"),
    }
}

fn list_of(path: &Path) -> Option<AccessList> {
    AccessList::of(fs::File::open(path).unwrap(), ACCESS).unwrap()
}

#[test]
fn where_a_list_cannot_be_kept_the_mode_grants_no_user_more() {
    let f = fixture(Durability::Never);
    let path = f.path.join("a/c/0");
    f.write("old");
    let keeps = set_list(&path, ACCESS, &named());
    set_access(fs::File::open(&path).unwrap(), 0o2640, Some(&named())).unwrap();
    let expected = if keeps {
        (0o2640, Some(named()))
    } else {
        (0o2600, None)
    };
    assert_eq!((mode(&path), list_of(&path)), expected);
    // Without a list, the mode is the given one.
    set_access(fs::File::open(&path).unwrap(), 0o604, None).unwrap();
    assert_eq!((mode(&path), list_of(&path)), (0o604, None));
}

#[test]
fn an_object_keeps_its_access_list_when_it_is_replaced() {
    let f = fixture(Durability::Never);
    let (path, key) = (f.path.join("a/c/0"), key("a/c/0"));
    f.write("old");
    set_mode(&path, 0o640);
    let keeps = set_list(&path, ACCESS, &named());
    let replace = || {
        let mut draft = f.writer.begin_copy(&key, &f.stored()).unwrap();
        let committed = f.writer.commit(&key, &mut draft, Replaces::Anything);
        assert!(matches!(committed, Ok(Commit::Done(_))));
        (mode(&path), list_of(&path))
    };
    assert_eq!(replace(), (0o640, keeps.then(named)));
    // An object without a list does not get the default list of its directory when it is replaced.
    fs::remove_file(&path).unwrap();
    f.write("old");
    set_mode(&path, 0o644);
    set_list(&f.path.join("a/c"), DEFAULT, &named());
    assert_eq!(replace(), (0o644, None));
}

#[test]
fn a_new_file_has_the_default_list_of_its_directory() {
    let f = fixture(Durability::Never);
    let default = list(&[(1, 7), (2, 7), (4, 5), (0x10, 7), (0x20, 0)]);
    set_mode(&f.path.join("a/c"), 0o755);
    let keeps = set_list(&f.path.join("a/c"), DEFAULT, &default);
    let (uid, gid) = own();
    let new = NewFile {
        mode: 0o664,
        umask: 0o022,
        uid,
        gid,
    };
    // The umask has no effect where there is a list.
    let expected = if keeps {
        (0o660, Some(default.clone().of_new(0o664)))
    } else {
        (0o644, None)
    };
    let mut draft = f.writer.begin(&key("a/c/0"), new).unwrap();
    let replaces = Replaces::Nothing;
    f.writer
        .commit(&key("a/c/0"), &mut draft, replaces)
        .unwrap();
    f.writer.create(&key("a/c/notes"), new).unwrap();
    for name in ["a/c/0", "a/c/notes"] {
        let path = f.path.join(name);
        assert_eq!((mode(&path), list_of(&path)), expected, "{name}");
    }
    let memory = f.writer.begin_in_memory(&key("a/c/1"), new).unwrap();
    let shown = memory.file().metadata().unwrap().mode() & 0o7777;
    // Where files in memory keep no list, the mode grants no user more.
    let without = default.clone().of_new(0o664).mode_without();
    assert!(
        shown == expected.0 || keeps && shown == without,
        "{shown:o}"
    );
    let directory = NewFile { mode: 0o775, ..new };
    f.writer.make_prefix(&key("a/c/d"), directory).unwrap();
    f.writer.make_parents(&key("a/c/e/f/0")).unwrap();
    for (name, mode) in [("a/c/d", 0o775), ("a/c/e/f", 0o755)] {
        let list = list_of(&f.path.join(name));
        let expected = keeps.then(|| default.clone().of_new(mode));
        assert_eq!(list, expected, "{name}");
    }
}

#[test]
fn an_object_that_is_made_like_another_has_the_mask_of_their_common_default_list() {
    let f = fixture(Durability::Never);
    let default = list(&[(1, 7), (2, 6), (4, 0), (0x10, 7), (0x20, 0)]);
    if !set_list(&f.path.join("a/c"), DEFAULT, &default) {
        return;
    }
    f.write("old");
    let path = f.path.join("a/c/0");
    let (old, meta) = (key("a/c/0"), f.stored().meta);
    let expected = list(&[(1, 6), (2, 6), (4, 0), (0x10, 6), (0x20, 0)]);
    assert_eq!(list_of(&path), Some(expected.clone()));
    let new = f.writer.new_like((&old, &meta), &key("a/c/2")).unwrap();
    f.writer.create(&key("a/c/2"), new).unwrap();
    assert_eq!(list_of(&f.path.join("a/c/2")), Some(expected));
    // Where the older object denies a right to a user, the default list of the directory does not
    // grant it.
    let denied = list(&[(1, 6), (2, 0), (4, 0), (0x10, 6), (0x20, 0)]);
    set_list(&path, ACCESS, &denied);
    let new = f
        .writer
        .new_like((&old, &f.stored().meta), &key("a/c/3"))
        .unwrap();
    assert_eq!(new.mode, 0o600);
}

#[test]
fn a_directory_that_is_made_like_another_grants_no_more_than_its_list() {
    let f = fixture(Durability::Never);
    let path = f.path.join("a/c");
    set_mode(&path, 0o750);
    let of_directory = list(&[(1, 7), (2, 5), (4, 0), (0x10, 5), (0x20, 0)]);
    let keeps = set_list(&path, ACCESS, &of_directory);
    f.writer.make_parents(&key("a/c/1/0")).unwrap();
    let made = f.path.join("a/c/1");
    let expected = if keeps { 0o700 } else { 0o750 };
    assert_eq!((mode(&made), list_of(&made)), (expected, None));
    // The same holds for an object that is made like another one.
    f.write("old");
    set_mode(&f.path.join("a/c/0"), 0o640);
    let keeps = set_list(&f.path.join("a/c/0"), ACCESS, &named());
    let (old, meta) = (key("a/c/0"), f.stored().meta);
    let new = f.writer.new_like((&old, &meta), &key("a/c/2")).unwrap();
    assert_eq!(new.mode, if keeps { 0o600 } else { 0o640 });
}

#[test]
fn the_list_of_a_file_that_cannot_be_opened_for_reading_counts_too() {
    let f = fixture(Durability::Never);
    let path = f.path.join("a/c/0");
    f.write("old");
    set_mode(&path, 0o640);
    let (old, meta) = (key("a/c/0"), f.stored().meta);
    fs::remove_file(&path).unwrap();
    let _socket = UnixListener::bind(&path).unwrap();
    set_mode(&path, 0o640);
    let keeps = set_list(&path, ACCESS, &named());
    let new = f.writer.new_like((&old, &meta), &key("a/c/2")).unwrap();
    assert_eq!(new.mode, if keeps { 0o600 } else { 0o640 });
}
