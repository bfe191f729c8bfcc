//! File systems that lack calls, as simulated by the layer of recorded calls.

use std::fs;

use super::NameCalls;
use crate::store::dir::writer::calls::recorded::{self, Lacking};
use crate::store::dir::writer::tests::{Fixture, NEW, fixture, key, writer_with};
use crate::store::dir::writer::{
    Commit, Durability, RenameMode, Replaces, StoreError, WriterOptions,
};

const ALL: Lacking = Lacking {
    nameless: false,
    flags: false,
    links: false,
};

/// The file systems: a local one; bindfs; one with nameless files and links, but no flags; sshfs; one with
/// flags, but neither links nor nameless files.
const FILE_SYSTEMS: [Lacking; 5] = [
    ALL,
    Lacking {
        nameless: true,
        flags: true,
        ..ALL
    },
    Lacking { flags: true, ..ALL },
    Lacking {
        nameless: true,
        flags: true,
        links: true,
    },
    Lacking {
        nameless: true,
        links: true,
        ..ALL
    },
];

/// A store on a file system that lacks these features.
fn lacking(lacking: Lacking) -> Fixture {
    recorded::start(lacking);
    fixture(Durability::Atomic)
}

/// The content of the key; `None` if it does not exist.
fn at(f: &Fixture, name: &str) -> Option<String> {
    fs::read_to_string(f.path.join(name)).ok()
}

fn commit(f: &Fixture, text: &str, replaces: Replaces) -> Result<Commit, StoreError> {
    let key = key("a/c/0");
    let mut draft = f.writer.begin(&key, NEW)?;
    draft.fill(&key, text.as_bytes())?;
    f.writer.commit(&key, &mut draft, replaces)
}

fn is_conflict(committed: Result<Commit, StoreError>) -> bool {
    match committed {
        Ok(committed) => matches!(committed, Commit::Conflict),
        Err(error) => panic!("{error}"),
    }
}

/// Whether no temporary file is left.
fn is_clean(f: &Fixture) -> bool {
    f.writer.finish();
    recorded::stop();
    !f.path.join(".zarr-mount").exists()
}

#[test]
fn missing_calls_are_found_when_the_store_is_opened() {
    for lack in FILE_SYSTEMS {
        let f = lacking(lack);
        let expected = NameCalls {
            exchange: !lack.flags,
            keep: !lack.flags,
            link: !lack.links,
            nameless: !lack.nameless && !lack.links,
        };
        assert_eq!(f.writer.calls, expected, "{lack:?}");
        assert_eq!(f.writer.calls.warning().is_some(), lack.flags, "{lack:?}");
        assert!(is_clean(&f));
    }
}

#[test]
fn objects_are_made_replaced_and_erased_on_every_file_system() {
    for lack in FILE_SYSTEMS {
        let f = lacking(lack);
        let key = key("a/c/0");
        let Commit::Done(first) = commit(&f, "first", Replaces::Nothing).unwrap() else {
            panic!("{lack:?}");
        };
        let first = Replaces::Version(first.meta.version);
        assert!(is_conflict(commit(&f, "other", Replaces::Nothing)));
        assert_eq!(at(&f, "a/c/0").unwrap(), "first", "{lack:?}");
        let Commit::Done(second) = commit(&f, "second", first).unwrap() else {
            panic!("{lack:?}");
        };
        assert!(is_conflict(commit(&f, "late", first)), "{lack:?}");
        assert!(
            matches!(first, Replaces::Version(old) if !f.writer.erase_version(&key, old).unwrap())
        );
        assert_eq!(at(&f, "a/c/0").unwrap(), "second", "{lack:?}");
        assert!(f.writer.erase_version(&key, second.meta.version).unwrap());
        assert!(!f.writer.erase_version(&key, second.meta.version).unwrap());
        assert!(is_conflict(commit(&f, "late", first)), "{lack:?}");
        assert_eq!(at(&f, "a/c/0"), None, "{lack:?}");
        for text in ["any", "more"] {
            assert!(
                !is_conflict(commit(&f, text, Replaces::Anything)),
                "{lack:?}"
            );
            assert_eq!(at(&f, "a/c/0").unwrap(), text, "{lack:?}");
        }
        fs::remove_file(f.path.join("a/c/0")).unwrap();
        fs::create_dir(f.path.join("a/c/0")).unwrap();
        assert!(
            is_conflict(commit(&f, "any", Replaces::Anything)),
            "{lack:?}"
        );
        assert!(is_clean(&f), "{lack:?}");
    }
}

#[test]
fn a_rename_keeps_the_file_with_the_new_name_on_every_file_system() {
    for lack in FILE_SYSTEMS {
        let f = lacking(lack);
        let rename = |from, to| f.writer.rename(&key(from), &key(to), RenameMode::Keep);
        fs::write(f.path.join("a/one"), "one").unwrap();
        fs::write(f.path.join("a/two"), "two").unwrap();
        fs::create_dir(f.path.join("b")).unwrap();
        for (from, to) in [
            ("a/one", "a/two"),
            ("a", "b"),
            ("a", "a/one"),
            ("b", "a/one"),
        ] {
            let error = rename(from, to).unwrap_err();
            assert!(error.is_taken(), "{lack:?}: {from} to {to}: {error}");
        }
        rename("a/none", "a/new").unwrap_err();
        rename("a", "a/new").unwrap_err();
        assert!(!f.path.join("a/new").exists(), "{lack:?}");
        rename("a/one", "b/one").unwrap();
        rename("a", "d").unwrap();
        assert_eq!(at(&f, "b/one").unwrap(), "one", "{lack:?}");
        assert_eq!(at(&f, "d/two").unwrap(), "two", "{lack:?}");
        assert!(!f.path.join("a").exists() && !f.path.join("d/one").exists());
        assert!(is_clean(&f));
    }
}

#[test]
fn an_object_that_is_written_in_place_while_it_is_replaced_comes_back() {
    let f = lacking(FILE_SYSTEMS[1]);
    let Commit::Done(first) = commit(&f, "first", Replaces::Nothing).unwrap() else {
        panic!("not committed");
    };
    let path = f.path.join("a/c/0");
    recorded::before_rename(move || fs::write(path, "by others").unwrap());
    let replaces = Replaces::Version(first.meta.version);
    assert!(is_conflict(commit(&f, "second", replaces)));
    assert_eq!(at(&f, "a/c/0").unwrap(), "by others");
    assert!(is_clean(&f));
}

#[test]
fn an_object_that_another_program_makes_during_an_erase_stays() {
    for lack in FILE_SYSTEMS {
        let f = lacking(lack);
        let Commit::Done(first) = commit(&f, "first", Replaces::Nothing).unwrap() else {
            panic!("not committed");
        };
        let path = f.path.join("a/c/0");
        let theirs = path.with_file_name("theirs");
        fs::write(&theirs, "by others").unwrap();
        recorded::before_rename(move || fs::rename(theirs, path).unwrap());
        assert!(
            !f.writer
                .erase_version(&key("a/c/0"), first.meta.version)
                .unwrap()
        );
        assert_eq!(at(&f, "a/c/0").unwrap(), "by others", "{lack:?}");
        assert!(is_clean(&f));
    }
}

#[test]
fn an_object_that_cannot_be_put_back_is_kept() {
    for (lack, is_erase) in [(ALL, true), (ALL, false), (FILE_SYSTEMS[2], false)] {
        let f = lacking(lack);
        let Commit::Done(first) = commit(&f, "first", Replaces::Nothing).unwrap() else {
            panic!("not committed");
        };
        let version = first.meta.version;
        let path = f.path.join("a/c/0");
        if is_erase || lack.flags {
            recorded::before_rename(move || fs::write(path, "by others").unwrap());
        } else {
            fs::write(path, "by others").unwrap();
        }
        recorded::fail_rename(2);
        if is_erase {
            f.writer.erase_version(&key("a/c/0"), version).unwrap_err();
            assert_eq!(at(&f, "a/c/0"), None);
        } else {
            let committed = commit(&f, "second", Replaces::Version(version));
            assert!(is_conflict(committed));
            assert_eq!(at(&f, "a/c/0").unwrap(), "second", "{lack:?}");
        }
        recorded::stop();
        let Fixture {
            _folder,
            path,
            writer,
        } = f;
        drop(writer);
        // Another mount removes what was left.
        drop(writer_with(&path, &WriterOptions::default()).unwrap());
        let files = fs::read_dir(path.join(".zarr-mount")).unwrap();
        let kept = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        assert_eq!(kept.collect::<Vec<_>>(), ["by others"], "{lack:?}");
    }
}

#[test]
fn an_object_that_is_another_one_already_is_not_touched_by_an_erase() {
    let f = lacking(ALL);
    let Commit::Done(first) = commit(&f, "first", Replaces::Nothing).unwrap() else {
        panic!("not committed");
    };
    fs::write(f.path.join("a/c/0"), "by others").unwrap();
    recorded::fail_rename(1);
    let erased = f
        .writer
        .erase_version(&key("a/c/0"), first.meta.version)
        .unwrap();
    assert!(!erased && at(&f, "a/c/0").unwrap() == "by others");
    assert!(is_clean(&f));
}
