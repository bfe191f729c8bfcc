//! Files that references name: which of them are read, and by whom.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::process::geteuid;

use super::target::Checksum;
use super::*;
use crate::store::Arrival;

/// The directory `set` of a set of references, two other directories, and a file in each of them.
struct Sample(tempfile::TempDir);

impl Sample {
    fn new() -> Sample {
        let sample = Sample(tempfile::tempdir().unwrap());
        for directory in ["set/data", "other/deep", "others"] {
            fs::create_dir_all(sample.path(directory)).unwrap();
        }
        for file in ["set/data/a", "other/deep/b", "others/c"] {
            fs::write(sample.path(file), "0123456789").unwrap();
        }
        symlink(sample.path("others/c"), sample.path("other/link")).unwrap();
        sample
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn text(&self, below: &str) -> String {
        self.path(below).to_str().unwrap().to_owned()
    }

    fn targets(&self, allowed: &[&str], sharing: Sharing) -> Targets {
        let path = self.path("set");
        let home = Home::new(
            Address::of_path(&path).unwrap(),
            Arc::new(DirStore::shared(&path, Symlinks::Inside, sharing).unwrap()),
        );
        let allowed = allowed
            .iter()
            .map(|it| AllowedPrefix::parse(&self.text(it)));
        let options = OpenOptions {
            allowed_references: allowed.collect::<Result<_, _>>().unwrap(),
            sharing,
            ..OpenOptions::default()
        };
        Targets::new(home, Address::parse, &options)
    }

    fn set(&self) -> ObjectMeta {
        let store = DirStore::open(&self.path("set"), Symlinks::Inside).unwrap();
        let meta = store.stat_root().unwrap();
        ObjectMeta {
            mode: 0o644,
            ..meta
        }
    }

    fn read(&self, targets: &Targets, reference: &Reference<'_>) -> Result<String, StoreError> {
        let key = Key::parse(b"x/0").unwrap();
        let object = targets.open(&key, reference, &self.set())?;
        let mut bytes = vec![0; usize::try_from(object.meta().size()).unwrap()];
        object.read_at(0, &mut bytes)?;
        let received = object.receive(&[0..1, 1..3])?;
        let mut again = [0; 2];
        assert!(received.read(1, &mut again));
        assert_eq!(again, bytes[1..3]);
        object.verify()?;
        Ok(String::from_utf8(bytes).unwrap())
    }
}

fn whole(address: &str) -> Reference<'_> {
    Reference {
        address,
        range: None,
        checksum: None,
    }
}

fn part(address: &str, offset: u64, len: u64) -> Reference<'_> {
    Reference {
        range: Some((offset, len)),
        ..whole(address)
    }
}

#[test]
fn files_beside_the_set_and_below_prefixes_are_read() {
    let sample = Sample::new();
    let targets = sample.targets(&["other", "others/c"], Sharing::Nobody);
    for (address, expected) in [
        ("data/a".to_owned(), "234"),
        (sample.text("set/data/a"), "234"),
        ("../other/deep/b".to_owned(), "234"),
        (format!("file://{}", sample.text("other/deep/b")), "234"),
        (sample.text("others/c"), "234"),
    ] {
        let read = sample.read(&targets, &part(&address, 2, 3));
        assert_eq!(read.unwrap(), expected, "{address}");
    }
    assert_eq!(
        sample.read(&targets, &whole("data/a")).unwrap(),
        "0123456789"
    );
}

#[test]
fn a_set_may_lie_below_the_root_of_its_store() {
    let sample = Sample::new();
    let store = DirStore::open(&sample.path(""), Symlinks::Inside).unwrap();
    let home = Home {
        path: Prefix::parse(b"set").unwrap(),
        ..Home::new(
            Address::of_path(&sample.path("set")).unwrap(),
            Arc::new(store),
        )
    };
    let targets = Targets::new(home, Address::parse, &OpenOptions::default());
    for address in ["data/a", &sample.text("set/data/a")] {
        let read = sample.read(&targets, &whole(address));
        assert_eq!(read.unwrap(), "0123456789", "{address}");
    }
    for address in ["../others/c", &sample.text("other/deep/b")] {
        let error = sample.read(&targets, &whole(address)).unwrap_err();
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    }
}

#[test]
fn other_files_are_denied_and_named_with_the_option() {
    let sample = Sample::new();
    let targets = sample.targets(&["other"], Sharing::Nobody);
    for address in [
        sample.text("others/c"),
        "../others/c".to_owned(),
        sample.text("other/../others/c"),
        "/etc/passwd".to_owned(),
    ] {
        let error = sample.read(&targets, &whole(&address)).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, StoreError::Denied { .. }), "{message}");
        assert!(message.contains("--allow-refs /"), "{message}");
        assert!(targets.refusal(&address).is_some());
    }
    // A link within the prefix leads out of it.
    let link = sample.text("other/link");
    let error = sample.read(&targets, &whole(&link)).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
}

#[test]
fn what_is_missing_or_too_short_is_an_error() {
    let sample = Sample::new();
    let targets = sample.targets(&[], Sharing::Nobody);
    let error = sample.read(&targets, &whole("data/none")).unwrap_err();
    assert!(!error.is_absent(), "{error}");
    assert!(error.to_string().contains("is missing"), "{error}");
    for (offset, len) in [(8, 3), (11, 0), (u64::MAX, 2), (0, u64::MAX)] {
        let error = sample
            .read(&targets, &part("data/a", offset, len))
            .unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
    let error = sample.read(&targets, &whole("data")).unwrap_err();
    assert!(matches!(error, StoreError::NotAnObject { .. }), "{error}");
}

#[test]
fn a_target_comes_to_its_key_with_the_set() {
    let sample = Sample::new();
    let targets = sample.targets(&[], Sharing::Nobody);
    let key = Key::parse(b"x/0").unwrap();
    let arrival = |of_set| {
        let set = ObjectMeta {
            arrival: of_set,
            ..sample.set()
        };
        let reference = part("data/a", 2, 3);
        let found = targets.stat(&key, &reference, &set).unwrap();
        let opened = targets.open(&key, &reference, &set).unwrap();
        assert_eq!(opened.meta().arrival, found.arrival);
        found.arrival
    };
    let later = Arrival::Uploaded(UNIX_EPOCH + Duration::from_secs(1 << 33));
    assert_eq!(arrival(later), later);
    assert_eq!(arrival(Arrival::Uploaded(UNIX_EPOCH)), Arrival::Changed);
    assert_eq!(arrival(Arrival::Untold), Arrival::Untold);
}

#[test]
fn a_checksum_names_one_version() {
    let sample = Sample::new();
    let targets = sample.targets(&[], Sharing::Nobody);
    let time = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    let file = fs::File::open(sample.path("set/data/a")).unwrap();
    file.set_modified(time(1_000_000)).unwrap();
    for (checksum, is_same) in [
        (Checksum::UnchangedSince(time(1_000_000)), true),
        (Checksum::UnchangedSince(time(999_999)), false),
        (Checksum::Tag("\"0-0-0\"".to_owned()), false),
    ] {
        let reference = Reference {
            checksum: Some(checksum.clone()),
            ..whole("data/a")
        };
        let read = sample.read(&targets, &reference);
        assert_eq!(read.is_ok(), is_same, "{checksum:?}");
    }
}

#[test]
fn a_file_is_shown_to_those_who_may_reach_it() {
    let sample = Sample::new();
    let targets = sample.targets(&["other"], Sharing::Others);
    let mode = |address: &str| {
        let key = Key::parse(b"x/0").unwrap();
        let found = targets.stat(&key, &part(address, 2, 3), &sample.set());
        found.unwrap().mode
    };
    let set = |path: &str, mode| {
        fs::set_permissions(sample.path(path), Permissions::from_mode(mode)).unwrap();
    };
    // The modes of all directories above a file count, and a temporary directory is private.
    set("", 0o755);
    set("set/data/a", 0o644);
    assert_eq!(mode("data/a"), 0o444);
    set("set/data", 0o700);
    assert_eq!(mode("data/a"), 0o400);
    let other = sample.text("other/deep/b");
    set("other/deep/b", 0o640);
    let is_root = geteuid().is_root();
    assert!(!is_root || mode(&other) == 0o440);
    set("other", 0o700);
    assert_eq!(mode(&other) & 0o044, 0);
}

#[test]
fn a_prefix_is_an_absolute_path_or_a_url() {
    for text in ["data", "./data", "", "ftp://h/"] {
        assert!(AllowedPrefix::parse(text).is_err(), "{text}");
    }
    assert_eq!(AllowedPrefix::parse("/data/").unwrap().to_string(), "/data");
    assert!(Address::of_path(Path::new("/a/../../b")).is_err());
}
