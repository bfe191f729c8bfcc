//! Listings of chunks that are stored, damaged or replaced meanwhile.

use super::*;
use crate::store::{DirStore, Symlinks};
use crate::view::chunks::unreadable_shards::MOST_UNKNOWN;

/// The codecs of a shard of inner chunks of this shape.
fn sharded_in(inner: &[u64]) -> Value {
    let mut codecs = sharded();
    codecs[0]["configuration"]["chunk_shape"] = json!(inner);
    codecs
}

/// The names in a directory, and the error that the listing ended with, if it did.
fn names(directory: &mut Directory) -> (Vec<String>, Option<ErrorKind>) {
    let mut names = Vec::new();
    loop {
        match directory.next_entry(Detail::Names) {
            Ok(Some(entry)) => names.push(String::from_utf8(entry.name).unwrap()),
            Ok(None) => return (names, None),
            Err(error) => return (names, Some(error.kind())),
        }
    }
}

fn directory(fixture: &Fixture, path: &str) -> Directory {
    let found = fixture.find(path).unwrap().unwrap();
    fixture.view.open_directory(found.id).unwrap().unwrap()
}

fn hidden(view: ViewKind) -> ViewOptions {
    ViewOptions {
        views: vec![view],
        missing: AbsentChunks::Hide,
        freshness: Freshness::Checked(Duration::ZERO),
        ..ViewOptions::default()
    }
}

#[test]
fn a_directory_of_chunks_that_cannot_be_examined_is_listed() {
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().to_str().unwrap();
    let document = text(&array(&[4, 4], &[2, 4], &sharded_in(&[1, 4])));
    for view in [ViewKind::Keys, ViewKind::Chunks] {
        for target in [outside, "..", "1", "nowhere"] {
            let folder = tempfile::tempdir().unwrap();
            let chunks = folder.path().join("a/c");
            std::fs::create_dir_all(chunks.join("0")).unwrap();
            std::fs::write(folder.path().join("a/zarr.json"), &document).unwrap();
            std::os::unix::fs::symlink(target, chunks.join("1")).unwrap();
            let store = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
            let fixture = Fixture {
                view: Arc::new(View::new(Arc::new(store), hidden(view)).unwrap()),
                store: Arc::new(MemoryStore::new()),
            };
            let context = format!("{view:?}: {target}");
            assert_eq!(fixture.list("a/c"), ["0", "1", "2", "3"], "{context}");
            for name in ["a/c/2", "a/c/3"] {
                let found = fixture.find(name);
                assert!(found.is_err(), "{context}: {name}: {found:?}");
            }
        }
    }
}

#[test]
fn a_large_shard_is_looked_for_in_its_own_directory() {
    let many = MOST_UNKNOWN + 1;
    let codecs = sharded_in(&[1, 1, 1]);
    let document = text(&array(&[4, many, 1], &[2, many, 1], &codecs));
    let objects: [(&str, &[u8]); 3] = [
        ("zarr.json", &document),
        ("c/0/0/0", b"no index"),
        ("c/1/0/other", b"no chunk"),
    ];
    for view in [ViewKind::Keys, ViewKind::Chunks] {
        let fixture = Fixture::new(hidden(view), &objects);
        for (path, expected) in [
            ("c/0", Some(ErrorKind::Io)),
            ("c/1", Some(ErrorKind::Io)),
            ("c/2", None),
            ("c/3", None),
        ] {
            let listed = names(&mut directory(&fixture, path));
            assert_eq!(listed.1, expected, "{view:?}: {path}");
            assert!(listed.0.is_empty(), "{view:?}: {path}: {:?}", listed.0);
        }
    }
}

#[test]
fn the_attributes_of_listed_chunks_are_those_of_the_current_shard() {
    let document = text(&array(&[4], &[4], &sharded()));
    let fixture = Fixture::new(chunks(), &[("zarr.json", &document)]);
    let put = |age_seconds: u64| {
        let written = SystemTime::now() - Duration::from_secs(age_seconds);
        let key = Key::parse(b"c/0").unwrap();
        fixture.store.insert_at(key, shard((2, 2)), written);
    };
    put(3 * 3600);
    let mut listing = directory(&fixture, "c");
    let assert_current = |listing: &mut Directory, path: &str| {
        let entry = listing.next_entry(Detail::Attributes).unwrap().unwrap();
        let found = fixture.find(path).unwrap().unwrap();
        assert_eq!(entry.attributes, Some(found.attributes), "{path}");
    };
    assert_current(&mut listing, "c/0");
    listing.release();
    put(2 * 3600);
    assert_current(&mut listing, "c/1");
    listing.seek(DirectoryPosition::START).unwrap();
    assert_current(&mut listing, "c/0");
    put(3600);
    listing.seek(DirectoryPosition::START).unwrap();
    assert_current(&mut listing, "c/0");
}

#[test]
fn a_listing_ends_with_the_error_of_a_shard_until_it_is_read_again_without_that_shard() {
    let many = MOST_UNKNOWN + 1;
    let document = text(&array(&[many + 1], &[many], &sharded_in(&[1])));
    let objects: [(&str, &[u8]); 3] = [
        ("zarr.json", &document),
        ("c/0", b"no index"),
        ("c/1", b"no index"),
    ];
    let fixture = Fixture::new(hidden(ViewKind::Keys), &objects);
    let last = vec![many.to_string()];
    let mut listing = directory(&fixture, "c");
    assert!(listing.next_entry(Detail::Names).unwrap().is_some());
    let position = listing.position();
    assert_eq!(names(&mut listing), (Vec::new(), Some(ErrorKind::Io)));
    listing.seek(position).unwrap();
    assert_eq!(names(&mut listing), (Vec::new(), Some(ErrorKind::Io)));
    assert!(fixture.store.remove(&Key::parse(b"c/0").unwrap()));
    listing.seek(DirectoryPosition::START).unwrap();
    assert_eq!(names(&mut listing), (last, None));
}
