//! Modes, owners and access lists of what is written.

use super::*;

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
fn what_is_committed_gives_nobody_the_rights_of_its_owner() {
    let f = fixture(Durability::Never);
    let (path, key) = (f.path.join("a/c/0"), key("a/c/0"));
    f.write("old");
    set_mode(&path, 0o6755);
    let mut draft = f.writer.begin_copy(&key, &f.stored()).unwrap();
    assert_eq!(mode(&path), 0o6755, "nothing is committed yet");
    let commit = |draft: &mut Draft| {
        let committed = f.writer.commit(&key, draft, Replaces::Anything);
        assert!(matches!(committed, Ok(Commit::Done(_))));
        mode(&path)
    };
    assert_eq!(commit(&mut draft), 0o755);
    // Nor does a new object, or one whose mode was set while it was written.
    let (uid, gid) = own();
    for new_mode in [0o6755, 0o2745] {
        let new = NewFile {
            mode: new_mode,
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
fn what_is_written_in_place_gives_nobody_the_rights_of_its_owner() {
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
            uid,
            gid,
        };
        f.writer.create(&key(name), new).unwrap();
        assert_eq!(mode(&f.path.join(name)), bits, "{name}");
    }
}
