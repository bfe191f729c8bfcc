use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use proptest::prelude::*;
use rawzip::path::EntryPath;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use tempfile::TempDir;

use super::*;
use crate::store::EntryKind;

mod of_objects;

const STORED: CompressionMethod = CompressionMethod::STORE;
const DEFLATED: CompressionMethod = CompressionMethod::DEFLATE;

/// The bytes of a zip file.
fn zip(entries: &[(&[u8], &[u8], CompressionMethod)]) -> Vec<u8> {
    let mut writer = ZipArchiveWriter::new(Vec::new());
    for (name, bytes, method) in entries {
        let time = UtcDateTime::from_components(2024, 2, 29, 12, 30, 58, 0).unwrap();
        let (mut entry, config) = writer
            .new_file(EntryPath::verbatim(*name))
            .compression_method(*method)
            .last_modified(time)
            .start()
            .unwrap();
        let descriptor = if *method == DEFLATED {
            let encoder = DeflateEncoder::new(&mut entry, Compression::default());
            let mut data = config.wrap(encoder);
            data.write_all(bytes).unwrap();
            let (encoder, descriptor) = data.finish().unwrap();
            encoder.finish().unwrap();
            descriptor
        } else {
            let mut data = config.wrap(&mut entry);
            data.write_all(bytes).unwrap();
            data.finish().unwrap().1
        };
        entry.finish(descriptor).unwrap();
    }
    writer.finish().unwrap()
}

struct Opened {
    directory: TempDir,
    store: Result<ZipStore, StoreError>,
}

impl Opened {
    fn new(bytes: &[u8]) -> Opened {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.zip");
        std::fs::write(&path, bytes).unwrap();
        let store = ZipStore::open(&path);
        Opened { directory, store }
    }

    fn store(&self) -> &ZipStore {
        self.store.as_ref().unwrap()
    }

    fn refusal(&self) -> String {
        self.store.as_ref().unwrap_err().to_string()
    }
}

fn key(name: &str) -> Key {
    Key::parse(name.as_bytes()).unwrap()
}

fn read(object: &dyn Object) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; usize::try_from(object.meta().size()).unwrap()];
    object.read_at(0, &mut bytes).map(|()| bytes)
}

/// The error of opening or reading `name`.
fn failure(store: &ZipStore, name: &str) -> String {
    let read = store
        .open(&key(name))
        .and_then(|object| read(&*object.expect(name)));
    read.expect_err(name).to_string()
}

/// Every key and its contents, found by listing.
fn contents(store: &ZipStore) -> BTreeMap<String, Result<Vec<u8>, StoreError>> {
    let mut found = BTreeMap::new();
    let mut prefixes = vec![Prefix::root()];
    while let Some(prefix) = prefixes.pop() {
        let listing = store.list(&prefix, Cursor::START, Detail::Attributes);
        let mut listing = listing.unwrap().expect("listed prefixes are there");
        while let Some(entry) = listing.next_entry().unwrap() {
            let key = prefix.key(&entry.name).unwrap();
            let stat = store.stat(&key).unwrap().expect("listed keys are there");
            assert_eq!(entry.meta, Some(stat.meta), "{key}");
            if entry.kind == EntryKind::Prefix {
                assert_eq!(stat.kind, StatKind::Prefix, "{key}");
                prefixes.push(key.to_prefix());
                continue;
            }
            assert_eq!(stat.kind, StatKind::Object, "{key}");
            let object = store.open(&key);
            let bytes = object.and_then(|object| read(&*object.expect("listed keys are there")));
            let name = String::from_utf8(key.as_bytes().to_vec());
            let name = name.unwrap_or_else(|error| error.as_bytes().escape_ascii().to_string());
            assert!(found.insert(name, bytes).is_none(), "{key} is listed twice");
        }
    }
    found
}

/// The keys of a zip file with entries of these `names`, each with the position in `names` of the entry that it shows.
fn numbered(names: &[&str]) -> BTreeMap<String, usize> {
    let numbers: Vec<String> = (0..names.len()).map(|number| number.to_string()).collect();
    let entries: Vec<_> = names
        .iter()
        .zip(&numbers)
        .map(|(name, number)| (name.as_bytes(), number.as_bytes(), STORED))
        .collect();
    let opened = Opened::new(&zip(&entries));
    let found = contents(opened.store()).into_iter();
    found
        .map(|(key, bytes)| {
            let number = String::from_utf8(bytes.expect(&key)).unwrap();
            (key, number.parse().unwrap())
        })
        .collect()
}

fn expected(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let pairs = pairs.iter();
    pairs.map(|(key, n)| ((*key).to_owned(), *n)).collect()
}

#[test]
fn the_last_of_one_name_counts() {
    assert_eq!(
        numbered(&["a", "b", "a", "c/", "a", "/b", "/b"]),
        expected(&[("a", 4), ("b", 1), ("%2F/b", 6)])
    );
}

#[test]
fn backslashes_separate_names_where_no_name_has_a_slash() {
    assert_eq!(
        numbered(&["zarr.json", "a\\", "a\\zarr.json", "..\\x", "a\\c\\0\\1"]),
        expected(&[
            ("zarr.json", 0),
            ("a/zarr.json", 2),
            ("%2E%2E/x", 3),
            ("a/c/0/1", 4),
        ])
    );
    assert_eq!(
        numbered(&["a\\b", "a/c"]),
        expected(&[("a\\b", 0), ("a/c", 1)])
    );
}

#[test]
fn hostile_names_stay_inside() {
    assert_eq!(
        numbered(&[
            "../../etc/passwd",
            "/etc/passwd",
            "a\\..\\b",
            "x//y",
            "n\0",
            "",
            "./."
        ]),
        expected(&[
            ("%2E%2E/%2E%2E/etc/passwd", 0),
            ("%2F/etc/passwd", 1),
            ("a\\..\\b", 2),
            ("x/%2F/y", 3),
            ("n%00", 4),
            ("%2F", 5),
            ("%2E/%2E", 6),
        ])
        .into_iter()
        // `%2F` is a prefix too.
        .map(|(key, n)| if key == "%2F" {
            ("%2F~".to_owned(), n)
        } else {
            (key, n)
        })
        .collect()
    );
}

#[test]
fn an_object_that_is_a_prefix_too_gets_another_name() {
    assert_eq!(
        numbered(&["a", "a/b", "a-", "a~", "a/b/c", "a~~/x", "a0"]),
        expected(&[
            ("a~~~", 0),
            ("a/b~", 1),
            ("a-", 2),
            ("a~", 3),
            ("a/b/c", 4),
            ("a~~/x", 5),
            ("a0", 6),
        ])
    );
    // The encoded name gets another key, whichever entry comes first.
    for names in [["%2F/a", "/a"], ["/a", "%2F/a"]] {
        let plain = names.iter().position(|name| name.starts_with('%')).unwrap();
        assert_eq!(
            numbered(&names),
            expected(&[("%2F/a", plain), ("%2F/a~", 1 - plain)])
        );
    }
    // Only a file that is made for this case leaves no free name.
    let tildes: Vec<String> = (0..10).map(|n| format!("a{}", "~".repeat(n))).collect();
    let mut names: Vec<&str> = tildes.iter().map(String::as_str).collect();
    names.push("a/b");
    let found = numbered(&names);
    assert_eq!(found.len(), 10);
    assert!(!found.contains_key("a"));
}

#[test]
fn every_range_of_a_deflated_entry_is_right() {
    let bytes: Vec<u8> = (0..200_000u32)
        .flat_map(|n| (n / 7).to_le_bytes())
        .collect();
    let opened = Opened::new(&zip(&[(b"a", &bytes, DEFLATED), (b"b", &bytes, STORED)]));
    for (name, sequential) in [("a", true), ("b", false)] {
        let object = opened.store().open(&key(name)).unwrap().unwrap();
        assert_eq!(object.is_sequential(), sequential);
        for (offset, len) in [
            (5, 9),
            (5, 9),
            (100_000, 70_000),
            (170_000, 1),
            (0, 3),
            (799_990, 10),
        ] {
            let mut buf = vec![0; len];
            object.read_at(offset as u64, &mut buf).unwrap();
            assert_eq!(buf, bytes[offset..offset + len], "{len} at {offset}");
        }
        assert_eq!(read(&*object).unwrap(), bytes);
    }
}

#[test]
fn an_error_of_one_entry_names_that_entry() {
    let text = b"0123456789 0123456789 0123456789";
    let whole = zip(&[(b"other", b"fine", STORED), (b"a", text, DEFLATED)]);
    let directory = position(&whole, b"PK\x01\x02", 1);
    let local = position(&whole, b"PK\x03\x04", 1);
    for (at, bytes, expected) in [
        (directory + 8, &[9][..], "encrypted entries"),
        (directory + 8, &[0x28], "patched data"),
        (directory + 10, &[12], "method 12 (BZIP2) is not supported"),
        (directory + 10, &[0], "bytes stored, 32 expected"),
        (directory + 16, &[0, 0], "checksum"),
        (directory + 20, &[0xff, 0xff, 0xff], "central directory"),
        (
            directory + 24,
            &[0xff, 0xff, 0xff, 0x7f],
            "at most 1073741824",
        ),
        (directory + 24, &[0xff, 0xff, 0xff], "cannot be inflated"),
        (directory + 24, &[31], "longer than expected"),
        (directory + 24, &[33], "ends too early"),
        (
            directory + 42,
            &[0],
            "local header is that of another entry",
        ),
        (directory + 42, &[0xff, 0xff], "local header"),
        (local + 8, &[0], "local header is that of another entry"),
        (local + 26, &[0xff, 0xff], "local header"),
        (local + 31, &[0xff; 4], "deflate stream"),
    ] {
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        let opened = Opened::new(&damaged);
        let message = failure(opened.store(), "a");
        assert!(message.starts_with("a: "), "{message}");
        assert!(message.contains(expected), "{expected}: {message}");
        let other = opened.store().open(&key("other")).unwrap().unwrap();
        assert_eq!(read(&*other).unwrap(), b"fine", "{expected}");
    }
}

/// The offset of the signature after `skip` earlier ones.
fn position(bytes: &[u8], signature: &[u8], skip: usize) -> usize {
    let mut windows = bytes.windows(signature.len()).enumerate();
    let mut found = windows.by_ref().filter(|(_, window)| *window == signature);
    found.nth(skip).unwrap().0
}

#[test]
fn a_damaged_checksum_spoils_ranges_of_deflated_entries_too() {
    let mut bytes = zip(&[(b"a", &[7; 5000], DEFLATED)]);
    let directory = position(&bytes, b"PK\x01\x02", 0);
    bytes[directory + 16] ^= 1;
    let opened = Opened::new(&bytes);
    let object = opened.store().open(&key("a")).unwrap().unwrap();
    for (offset, len) in [(0, 10), (10, 10), (4990, 10)] {
        let error = object.read_at(offset, &mut vec![0; len]).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    }
}

#[test]
fn names_that_are_too_deep_are_refused() {
    let name = |n_directories| ["d/".repeat(n_directories).as_bytes(), b"x"].concat();
    let opened = Opened::new(&zip(&[(&name(255), b"1", STORED)]));
    let key = Key::parse(&name(255)).unwrap();
    assert!(opened.store().open(&key).unwrap().is_some());
    let message = Opened::new(&zip(&[(&name(256), b"1", STORED)])).refusal();
    assert!(message.contains("more than 255 directories"), "{message}");
}

#[test]
fn a_file_that_is_no_zip_file_says_why() {
    let whole = zip(&[(b"a", b"0123456789", STORED), (b"b", b"0123456789", STORED)]);
    for cut in [whole.len() - 1, whole.len() - 22, whole.len() / 2, 30, 4, 0] {
        let message = Opened::new(&whole[..cut]).refusal();
        assert!(message.contains("data.zip: "), "{message}");
    }
    // One record of the directory is gone.
    let second = position(&whole, b"PK\x01\x02", 1);
    let end = position(&whole, b"PK\x05\x06", 0);
    let mut short = [&whole[..second], &whole[end..]].concat();
    let message = Opened::new(&short).refusal();
    assert!(
        message.contains("1 entries in the central directory, 2 expected"),
        "{message}"
    );
    // Bytes in front of a zip file do no harm.
    short = [b"#!/bin/sh\n", whole.as_slice()].concat();
    assert_eq!(contents(Opened::new(&short).store()).len(), 2);
}

#[test]
fn a_zip_file_is_recognised_by_its_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let whole = zip(&[(b"a", b"0123456789", STORED)]);
    let prefixed = [b"#!/bin/sh\n", whole.as_slice()].concat();
    let empty = zip(&[]);
    for (bytes, expected) in [
        (whole.as_slice(), true),
        (&prefixed, true),
        (&empty, true),
        (&whole[..20], true),
        (b"PK", false),
        (b"", false),
        (&vec![0; 100_000], false),
        (b"{\"zarr_format\": 3}", false),
    ] {
        let path = directory.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(ZipStore::is_zip(&path).unwrap(), expected);
    }
}

#[test]
fn attributes_are_those_of_the_file_and_times_those_of_entries() {
    let opened = Opened::new(&zip(&[(b"a/b", b"12345", STORED)]));
    let path = opened.directory.path().join("data.zip");
    let permissions = std::fs::Permissions::from_mode(0o750);
    std::fs::set_permissions(&path, permissions).unwrap();
    let store = ZipStore::open(&path).unwrap();
    let stat = store.stat(&key("a/b")).unwrap().unwrap();
    let seconds = stat.meta.times.mtime.duration_since(SystemTime::UNIX_EPOCH);
    assert_eq!(seconds.unwrap().as_secs(), 1_709_209_858);
    assert_eq!((stat.meta.mode, stat.meta.size()), (0o640, 5));
    assert_eq!(store.stat(&key("a")).unwrap().unwrap().meta.mode, 0o550);
    assert_eq!(store.stat_root().unwrap().mode, 0o550);
    assert!(store.capacity().unwrap().total_bytes > 0);
}

#[test]
fn a_part_of_the_file_can_be_the_store() {
    let opened = Opened::new(&zip(&[
        (b"a.zarr/g/x", b"x", STORED),
        (b"a.zarr/z", b"z", STORED),
        (b"a.zarr-", b"-", STORED),
        (b"readme", b"r", STORED),
    ]));
    let store = opened
        .store
        .unwrap()
        .below(Prefix::parse(b"a.zarr").unwrap());
    let keys: Vec<String> = contents(&store).into_keys().collect();
    assert_eq!(keys, ["g/x", "z"]);
    assert!(store.open(&key("readme")).unwrap().is_none());
}

#[test]
fn a_file_that_was_broken_comes_back() {
    let opened = Opened::new(&zip(&[(b"a", b"12345", STORED)]));
    let path = opened.directory.path().join("data.zip");
    let put = |bytes: &[u8]| {
        let fresh = opened.directory.path().join("fresh");
        std::fs::write(&fresh, bytes).unwrap();
        std::fs::rename(fresh, &path).unwrap();
    };
    let store = opened.store();
    put(b"PK\x03\x04 half of it");
    for _ in 0..2 {
        let error = store.stat(&key("a")).unwrap_err();
        assert!(error.to_string().contains("cut short"), "{error}");
    }
    put(&zip(&[(b"b", b"12345", STORED)]));
    assert!(store.stat(&key("a")).unwrap().is_none());
    assert!(store.stat(&key("b")).unwrap().is_some());
    std::fs::remove_file(&path).unwrap();
    assert!(
        store
            .stat(&key("a"))
            .unwrap_err()
            .to_string()
            .contains("is gone")
    );
}

/// Entries of both kinds, their bytes different from each other.
fn sample() -> Vec<(String, Vec<u8>, CompressionMethod)> {
    (0..8_usize)
        .map(|n| {
            let bytes = (0..40 * n * n).map(|i| u8::try_from((i * i + n) % 251).unwrap());
            let method = if n % 2 == 0 { STORED } else { DEFLATED };
            (format!("group/{n}/chunk"), bytes.collect(), method)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever is damaged, an entry that is read whole is right, or an error.
    #[test]
    fn damage_gives_an_error_or_the_right_bytes(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_directory in any::<bool>(),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let sample = sample();
        let entries: Vec<_> = sample
            .iter()
            .map(|(name, bytes, method)| (name.as_bytes(), bytes.as_slice(), *method))
            .collect();
        let mut bytes = zip(&entries);
        let start = if in_directory { position(&bytes, b"PK\x01\x02", 0) } else { 0 };
        for (at, value) in changes {
            let at = start + at.index(bytes.len() - start);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let opened = Opened::new(&bytes);
        let Ok(store) = &opened.store else {
            return Ok(());
        };
        for (name, read) in contents(store) {
            let Ok(read) = read else { continue };
            let original = sample.iter().find(|(original, ..)| *original == name);
            prop_assert!(original.is_some_and(|(_, bytes, _)| *bytes == read), "{}", name);
        }
    }
}
