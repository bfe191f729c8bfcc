use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;
use crate::store::dir::stat::coarse;
use crate::store::{DirStore, Store, Symlinks};

mod rights;

pub(super) const NEW: NewFile = NewFile {
    mode: 0o640,
    umask: 0,
    uid: 0,
    gid: 0,
};

pub(super) struct Fixture {
    pub(super) _folder: TempDir,
    pub(super) path: PathBuf,
    pub(super) writer: DirWriter,
}

pub(super) fn fixture(durability: Durability) -> Fixture {
    fixture_in(tempfile::tempdir().unwrap(), durability)
}

pub(super) fn fixture_in(folder: TempDir, durability: Durability) -> Fixture {
    let path = folder.path().join("store");
    fs::create_dir_all(path.join("a/c")).unwrap();
    let writer = writer(&path, durability).unwrap();
    Fixture {
        _folder: folder,
        path,
        writer,
    }
}

pub(super) fn writer_with(path: &Path, options: &WriterOptions) -> Result<DirWriter, StoreError> {
    let store = DirStore::open(path, Symlinks::Inside).unwrap();
    Ok(store.writer(options)?.unwrap())
}

fn writer(path: &Path, durability: Durability) -> Result<DirWriter, StoreError> {
    let options = WriterOptions {
        durability,
        ..WriterOptions::default()
    };
    writer_with(path, &options)
}

pub(super) fn key(text: &str) -> Key {
    Key::parse(text.as_bytes()).unwrap()
}

fn errno(error: &StoreError) -> Option<i32> {
    match error {
        StoreError::Io { errno, .. } => *errno,
        _ => None,
    }
}

impl Fixture {
    /// A new draft with the bytes `text`.
    fn draft(&self, text: &str) -> Draft {
        let draft = self.writer.begin(&key("a/c/0"), NEW).unwrap();
        draft.file().write_all_at(text.as_bytes(), 0).unwrap();
        draft
    }

    fn stored(&self) -> StoredFile {
        let stored = self.writer.open_object(&key("a/c/0"), true);
        stored.unwrap().unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path.join("a/c/0")).unwrap()
    }

    fn write(&self, text: &str) {
        fs::write(self.path.join("a/c/0"), text).unwrap();
    }

    /// The number of names in the directory of this program.
    fn temporaries(&self) -> usize {
        let own = self.path.join(".zarr-mount");
        fs::read_dir(own).map_or(0, Iterator::count)
    }
}

#[test]
fn a_new_object_appears_whole_and_only_at_a_free_key() {
    for durability in [Durability::Never, Durability::Atomic, Durability::Close] {
        let f = fixture(durability);
        let mut draft = f.draft("new");
        assert!(!f.path.join("a/c/0").exists());
        let committed = f
            .writer
            .commit(&key("a/c/0"), &mut draft, Replaces::Nothing);
        assert!(matches!(committed, Ok(Commit::Done(_))));
        assert_eq!(f.text(), "new");
        let meta = fs::metadata(f.path.join("a/c/0")).unwrap();
        assert_eq!(meta.permissions().mode() & 0o7777, 0o640);
        let mut other = f.draft("other");
        let committed = f
            .writer
            .commit(&key("a/c/0"), &mut other, Replaces::Nothing);
        assert!(matches!(committed, Ok(Commit::Conflict)));
        assert_eq!(f.text(), "new");
        let committed = f
            .writer
            .commit(&key("a/c/0"), &mut other, Replaces::Anything);
        assert!(matches!(committed, Ok(Commit::Done(_))));
        assert_eq!((f.text(), f.temporaries()), ("other".to_owned(), 0));
    }
}

#[test]
fn commits_are_not_waited_for_and_no_two_are_the_same_version() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    let store = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
    let options = WriterOptions {
        durability: Durability::Never,
        ..WriterOptions::default()
    };
    let writer = store.writer(&options).unwrap().unwrap();
    let key = key("a/0");
    let mut versions = std::collections::HashSet::new();
    for n in 0..300_u32 {
        let mut draft = writer.begin(&key, NEW).unwrap();
        draft.file().write_all_at(&n.to_le_bytes(), 0).unwrap();
        let version = writer.date(&key, &mut draft).unwrap();
        let committed = writer.commit(&key, &mut draft, Replaces::Anything);
        let Ok(Commit::Done(new)) = committed else {
            panic!("not committed");
        };
        assert_eq!(new.meta.version, version);
        assert!(versions.insert(version), "{n} has the version of another");
        let found = store.open(&key).unwrap().unwrap();
        assert_eq!(found.meta().version, version);
        // On a slow machine, the version may be older than the grain of the clock here.
        for meta in [found.meta(), &new.meta] {
            assert_eq!(meta.settles_in(SystemTime::now()), None);
        }
    }
    // The times that a writer has set stay, so this version is waited for like that of another
    // program.
    let mut draft = writer.begin(&key, NEW).unwrap();
    let set = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let times = fs::FileTimes::new().set_modified(set);
    draft.file().set_times(times).unwrap();
    draft.keep_times();
    writer.commit(&key, &mut draft, Replaces::Anything).unwrap();
    let found = store.open(&key).unwrap().unwrap();
    assert_eq!(found.meta().version.mtime, set);
    assert!(!found.meta().is_own);
    // A write of another program to an object that was made here is waited for, too.
    let mut draft = writer.begin(&key, NEW).unwrap();
    writer.commit(&key, &mut draft, Replaces::Anything).unwrap();
    fs::write(folder.path().join("a/0"), "theirs").unwrap();
    assert!(!store.open(&key).unwrap().unwrap().meta().is_own);
}

#[test]
fn commits_of_files_with_the_same_times_are_no_two_the_same_version() {
    coarse::show_unmade();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    let store = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
    let writer = store.writer(&WriterOptions::default()).unwrap().unwrap();
    let key = key("a/0");
    let set = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let at = NewTime::At {
        seconds: 1_000_000_000,
        nanoseconds: 0,
    };
    let mut versions = std::collections::HashSet::new();
    for n in 0..20_u32 {
        let mut draft = writer.begin(&key, NEW).unwrap();
        draft.fill(&key, &n.to_le_bytes()).unwrap();
        let is_set_before = n % 2 == 0;
        if is_set_before {
            let times = fs::FileTimes::new().set_modified(set);
            draft.file().set_times(times).unwrap();
            draft.keep_times();
        }
        writer.commit(&key, &mut draft, Replaces::Anything).unwrap();
        if !is_set_before {
            let new = NewAttributes {
                mtime: Some(at),
                ..NewAttributes::default()
            };
            writer.set_attributes(&key.to_prefix(), &new).unwrap();
        }
        let found = store.open(&key).unwrap().unwrap();
        let version = found.meta().version;
        assert_eq!(version.mtime, set);
        assert!(versions.insert(version), "{n} has the version of another");
        found.verify().unwrap();
    }
}

#[test]
fn commits_of_one_second_are_no_two_the_same_version() {
    coarse::show();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    let store = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
    let writer = store.writer(&WriterOptions::default()).unwrap().unwrap();
    let key = key("a/0");
    let mut versions = std::collections::HashSet::new();
    for n in 0..100_u32 {
        let mut draft = writer.begin(&key, NEW).unwrap();
        draft.fill(&key, &n.to_le_bytes()).unwrap();
        // Other times that the writer has set do not change this.
        if n % 3 == 0 {
            draft.keep_times();
        }
        let version = writer.date(&key, &mut draft).unwrap();
        let committed = writer.commit(&key, &mut draft, Replaces::Anything);
        let Ok(Commit::Done(new)) = committed else {
            panic!("not committed");
        };
        assert_eq!(new.meta.version, version);
        assert!(versions.insert(version), "{n} has the version of another");
        let found = store.open(&key).unwrap().unwrap();
        assert_eq!(found.meta().version, version);
        assert_eq!(
            found.meta().settles_in(SystemTime::now()),
            None,
            "not waited for"
        );
        found.verify().unwrap();
        let again = writer.object_of(&key, &new.file).unwrap();
        assert_eq!(again.meta().version, version);
        let copied = writer.object_to_copy(&key, &new).unwrap();
        assert!(!versions.contains(&copied.meta().version));
        copied.verify().unwrap();
    }
    // A version of another program is waited for.
    fs::write(folder.path().join("a/0"), "theirs").unwrap();
    let found = store.open(&key).unwrap().unwrap();
    assert!(found.meta().settles_in(SystemTime::now()).is_some());
}

#[test]
fn an_object_is_replaced_if_it_is_the_one_that_was_read() {
    let f = fixture(Durability::Atomic);
    f.write("old");
    fs::set_permissions(f.path.join("a/c/0"), fs::Permissions::from_mode(0o604)).unwrap();
    let old = f.stored();
    let mut draft = f.writer.begin_copy(&key("a/c/0"), &old).unwrap();
    draft.file().write_all_at(b"O", 0).unwrap();
    assert_eq!(f.text(), "old");
    let replaces = Replaces::Version(old.meta.version);
    let Ok(Commit::Done(new)) = f.writer.commit(&key("a/c/0"), &mut draft, replaces) else {
        panic!("not committed");
    };
    assert_eq!(f.text(), "Old");
    let meta = fs::metadata(f.path.join("a/c/0")).unwrap();
    assert_eq!(
        (meta.permissions().mode() & 0o7777, meta.nlink()),
        (0o604, 1)
    );
    assert_eq!(new.meta.version, f.stored().meta.version);
    // The key has another version now.
    let mut late = f.writer.begin_copy(&key("a/c/0"), &old).unwrap();
    let committed = f.writer.commit(&key("a/c/0"), &mut late, replaces);
    assert!(matches!(committed, Ok(Commit::Conflict)));
    assert_eq!(f.text(), "Old", "the other object is at the key again");
    fs::remove_file(f.path.join("a/c/0")).unwrap();
    let committed = f.writer.commit(&key("a/c/0"), &mut late, replaces);
    assert!(matches!(committed, Ok(Commit::Conflict)));
    assert!(!f.path.join("a/c/0").exists());
    drop((draft, late));
    assert_eq!(f.temporaries(), 0);
    f.writer.finish();
    assert!(!f.path.join(".zarr-mount").exists());
}

#[test]
fn a_second_name_keeps_the_old_bytes() {
    let f = fixture(Durability::Never);
    f.write("old");
    fs::hard_link(f.path.join("a/c/0"), f.path.join("snapshot")).unwrap();
    let old = f.stored();
    let mut draft = f.draft("new");
    let replaces = Replaces::Version(old.meta.version);
    f.writer
        .commit(&key("a/c/0"), &mut draft, replaces)
        .unwrap();
    assert_eq!(f.text(), "new");
    assert_eq!(fs::read_to_string(f.path.join("snapshot")).unwrap(), "old");
}

#[test]
fn user_attributes_are_copied_where_the_file_system_has_them() {
    let f = fixture(Durability::Never);
    f.write("old");
    let old = f.stored();
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::fsetxattr(&old.file, "user.about", b"x", flags).is_err() {
        return;
    }
    let draft = f.writer.begin_like(&key("a/c/0"), &old).unwrap();
    let mut value = [0; 4];
    let len = rustix::fs::fgetxattr(draft.file(), "user.about", &mut value).unwrap();
    assert_eq!(&value[..len], b"x");
}

#[test]
fn a_draft_is_a_copy_of_one_version() {
    let f = fixture(Durability::Never);
    f.write("old");
    let old = f.stored();
    f.write("longer");
    let copied = f.writer.begin_copy(&key("a/c/0"), &old);
    assert!(matches!(copied, Err(StoreError::Changed { .. })));
}

#[test]
fn links_and_objects_behind_them_are_not_changed() {
    let f = fixture(Durability::Never);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("0"), "kept").unwrap();
    symlink(outside.path(), f.path.join("away")).unwrap();
    symlink(f.path.join("a"), f.path.join("inside")).unwrap();
    symlink(outside.path().join("0"), f.path.join("a/c/1")).unwrap();
    f.write("old");
    for name in ["away/0", "inside/c/0", "a/c/1"] {
        let key = key(name);
        let refusals = [
            f.writer.open_object(&key, true).map(drop),
            f.writer.unlink(&key),
            f.writer.rename(&key, &self::key("b"), RenameMode::Replace),
            f.writer
                .rename(&self::key("a/c/0"), &key, RenameMode::Replace),
            f.writer.link(&key, &self::key("b")),
            f.writer
                .set_attributes(&key.to_prefix(), &NewAttributes::default()),
        ];
        for (number, refused) in refusals.into_iter().enumerate() {
            assert!(
                matches!(refused, Err(StoreError::Denied { .. })),
                "{name} {number}"
            );
        }
    }
    for name in ["away/new", "inside/new"] {
        for made in [
            f.writer.begin(&key(name), NEW).map(drop),
            f.writer.create(&key(name), NEW).map(drop),
            f.writer.make_prefix(&key(name), NEW),
        ] {
            assert!(matches!(made, Err(StoreError::Denied { .. })), "{name}");
        }
    }
    // A link in the place of an object belongs to another program, and stays.
    let old = f.stored();
    fs::remove_file(f.path.join("a/c/0")).unwrap();
    symlink(outside.path().join("0"), f.path.join("a/c/0")).unwrap();
    let mut draft = f.draft("new");
    let replaces = Replaces::Version(old.meta.version);
    let committed = f.writer.commit(&key("a/c/0"), &mut draft, replaces);
    assert!(matches!(committed, Ok(Commit::Conflict)));
    assert_eq!(
        fs::read_to_string(outside.path().join("0")).unwrap(),
        "kept"
    );
    assert!(f.path.join("a/c/0").is_symlink());
}

#[test]
fn a_directory_is_not_replaced() {
    let f = fixture(Durability::Never);
    fs::create_dir(f.path.join("a/c/0")).unwrap();
    let mut draft = f.draft("new");
    for replaces in [Replaces::Nothing, Replaces::Anything] {
        let committed = f.writer.commit(&key("a/c/0"), &mut draft, replaces);
        assert!(matches!(committed, Ok(Commit::Conflict)), "{replaces:?}");
        assert!(f.path.join("a/c/0").is_dir());
    }
}

#[test]
fn one_writer_at_a_time_of_a_hierarchy() {
    let f = fixture(Durability::Never);
    let above = f.path.parent().unwrap().to_path_buf();
    for path in [f.path.clone(), f.path.join("a"), f.path.join("a/c"), above] {
        let error = writer(&path, Durability::Never).unwrap_err().to_string();
        let own = format!("process {}", std::process::id());
        assert!(
            error.contains(&own) && error.contains("for writing"),
            "{error}"
        );
    }
    let inner = f.path.join("a");
    drop(f.writer);
    let held = writer(&inner, Durability::Never).unwrap();
    assert!(writer(&f.path, Durability::Never).is_err());
    // Stores beside each other have a writer each.
    fs::create_dir(f.path.join("b")).unwrap();
    let beside = writer(&f.path.join("b"), Durability::Never).unwrap();
    drop(held);
    assert!(writer(&f.path, Durability::Never).is_err());
    drop(beside);
    writer(&f.path, Durability::Never).unwrap();
}

#[test]
fn temporary_files_of_a_killed_writer_are_removed_and_no_others() {
    let f = fixture(Durability::Never);
    drop(f.writer);
    let own = f.path.join(".zarr-mount");
    fs::create_dir(&own).unwrap();
    for name in ["0123456789abcdef.tmp", "notes", "0123.tmp"] {
        fs::write(own.join(name), "x").unwrap();
    }
    fs::create_dir(own.join("fedcba9876543210.tmp")).unwrap();
    assert_eq!(writer(&f.path, Durability::Never).unwrap().recovered(), 1);
    let mut left: Vec<_> = fs::read_dir(&own)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["0123.tmp", "fedcba9876543210.tmp", "notes"]);
}

#[test]
fn a_directory_that_takes_the_place_of_the_store_is_not_changed() {
    let f = fixture(Durability::Never);
    f.write("old");
    fs::rename(&f.path, f.path.with_extension("moved")).unwrap();
    fs::create_dir_all(f.path.join("a/c")).unwrap();
    let made = f.writer.create(&key("a/c/note"), NEW);
    assert!(made.is_err_and(|error| error.to_string().contains("mount again")));
    assert!(!f.path.join("a/c/note").exists());
}

#[test]
fn names_are_made_moved_and_removed() {
    let f = fixture(Durability::Never);
    let w = &f.writer;
    w.make_prefix(&key("g"), NewFile { mode: 0o750, ..NEW })
        .unwrap();
    let again = w.make_prefix(&key("g"), NEW).unwrap_err();
    assert_eq!(errno(&again), Some(libc::EEXIST));
    w.create(&key("g/t"), NEW).unwrap();
    assert_eq!(
        errno(&w.create(&key("g/t"), NEW).unwrap_err()),
        Some(libc::EEXIST)
    );
    assert_eq!(
        errno(&w.remove_prefix(&key("g")).unwrap_err()),
        Some(libc::ENOTEMPTY)
    );
    w.link(&key("g/t"), &key("g/u")).unwrap();
    let kept = w
        .rename(&key("g/t"), &key("g/u"), RenameMode::Keep)
        .unwrap_err();
    assert_eq!(errno(&kept), Some(libc::EEXIST));
    w.rename(&key("g"), &key("h"), RenameMode::Replace).unwrap();
    w.unlink(&key("h/t")).unwrap();
    assert_eq!(
        errno(&w.unlink(&key("h/t")).unwrap_err()),
        Some(libc::ENOENT)
    );
    let new = NewAttributes {
        mode: Some(0o600),
        mtime: Some(NewTime::At {
            seconds: -1,
            nanoseconds: 5,
        }),
        ..NewAttributes::default()
    };
    w.set_attributes(&key("h/u").to_prefix(), &new).unwrap();
    let meta = fs::metadata(f.path.join("h/u")).unwrap();
    assert_eq!(
        (meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec()),
        (0o600, -1, 5)
    );
    w.sync_names(&key("h/u").parent()).unwrap();
    w.unlink(&key("h/u")).unwrap();
    w.remove_prefix(&key("h")).unwrap();
}
