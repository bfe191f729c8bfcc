//! Views of a zip file are views of what was packed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use common::{files, read, view};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use zarr_mount::load::Shards;
use zarr_mount::store::{
    Cursor, Detail, EntryKind, Key, Location, Prefix, Store, Symlinks, open_store,
};
use zarr_mount::view::{ViewKind, ViewOptions};

fn objects(store: &dyn Store) -> Vec<(Key, Vec<u8>)> {
    let mut found = Vec::new();
    let mut prefixes = vec![Prefix::root()];
    while let Some(prefix) = prefixes.pop() {
        let listing = store.list(&prefix, Cursor::START, Detail::Names).unwrap();
        let mut listing = listing.unwrap();
        while let Some(entry) = listing.next_entry().unwrap() {
            let key = prefix.key(&entry.name).unwrap();
            if entry.kind == EntryKind::Prefix {
                prefixes.push(key.to_prefix());
                continue;
            }
            let object = store.open(&key).unwrap().unwrap();
            let mut bytes = vec![0; usize::try_from(object.meta().size()).unwrap()];
            object.read_at(0, &mut bytes).unwrap();
            found.push((key, bytes));
        }
    }
    found
}

/// Packs objects into the zip file `path`, below `folder`, and deflates all of them or every other one.
fn pack(objects: &[(Key, Vec<u8>)], folder: &str, all: bool, path: &Path) {
    let mut writer = ZipArchiveWriter::new(fs::File::create(path).unwrap());
    for (number, (key, bytes)) in objects.iter().enumerate() {
        let deflate = all || number % 2 == 0;
        let method = if deflate {
            CompressionMethod::DEFLATE
        } else {
            CompressionMethod::STORE
        };
        let name = format!("{folder}{key}");
        let builder = writer.new_file(&name).compression_method(method);
        let (mut entry, config) = builder.start().unwrap();
        let descriptor = if deflate {
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
    writer.finish().unwrap();
}

fn options(kind: ViewKind, shards: Shards) -> ViewOptions {
    ViewOptions {
        views: vec![kind],
        shards,
        ..ViewOptions::default()
    }
}

#[test]
fn a_packed_store_is_shown_as_the_store() {
    let demo = open_store(&Location::Demo, Symlinks::Inside).unwrap();
    let objects = objects(&*demo);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.zip");
    for (folder, all) in [("", true), ("demo.zarr/", false)] {
        pack(&objects, folder, all, &path);
        let packed = open_store(&Location::Zip(path.clone()), Symlinks::Inside).unwrap();
        for kind in [ViewKind::Keys, ViewKind::Chunks] {
            for shards in [Shards::Expand, Shards::Keep] {
                let plain = view(Arc::clone(&demo), options(kind, shards));
                let zipped = view(Arc::clone(&packed), options(kind, shards));
                let names = files(&plain, "");
                assert_eq!(files(&zipped, ""), names);
                for name in names {
                    let expected = read(&plain, &name).unwrap();
                    assert_eq!(read(&zipped, &name).unwrap(), expected, "{kind:?} {name}");
                }
            }
        }
    }
}

#[test]
fn a_deflated_shard_is_inflated_once_for_all_its_chunks() {
    let demo = open_store(&Location::Demo, Symlinks::Inside).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.zip");
    pack(&objects(&*demo), "", true, &path);
    let packed = open_store(&Location::Zip(path), Symlinks::Inside).unwrap();
    let view = view(packed, options(ViewKind::Keys, Shards::Expand));
    let before = view.loader().cache().counters().cache_misses.get();
    for name in ["0/0/0", "0/0/1", "0/1/0", "0/1/1", "1/1/1"] {
        let name = format!("air/temperature/c/{name}");
        assert!(read(&view, &name).unwrap().is_some());
    }
    let misses = view.loader().cache().counters().cache_misses.get() - before;
    // The cache loads the shard, the verdict on its index, a page of the index, five chunks, and a document or two.
    assert!(misses < 12, "{misses} loads");
}
