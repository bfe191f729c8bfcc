use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::noted::tests::{array, close, find, write_text};
use crate::metadata::Target;
use crate::store::{Detail, DirStore, NewFile, Store, Symlinks, WriterOptions};
use crate::view::{EntrySource, View, ViewKind, ViewOptions, VnodeId, VnodeKind};

const THREAD: u32 = 1;

fn mounted(path: &Path, target: Target) -> Arc<View> {
    let store: Arc<dyn Store> = Arc::new(DirStore::open(path, Symlinks::Inside).unwrap());
    let writer = store.writer(&WriterOptions::default()).unwrap().unwrap();
    let options = ViewOptions {
        views: vec![ViewKind::Chunks],
        shown_as: Some(target),
        cache_budget_bytes: 16 << 20,
        decode_threads: 1,
        ..ViewOptions::default()
    };
    Arc::new(View::writable(store, options, writer).unwrap())
}

const fn new(mode: u32) -> NewFile {
    NewFile {
        mode,
        umask: 0,
        uid: 0,
        gid: 0,
    }
}

fn make_directory(view: &Arc<View>, path: &[&str]) {
    let (name, above) = path.split_last().unwrap();
    view.make_directory(find(view, above), name.as_bytes(), new(0o755))
        .unwrap();
}

/// Makes a document as `cp -r` does, which fails if the document exists.
fn make_document(view: &Arc<View>, directory: &[&str], name: &str, text: &Value) {
    let parent = find(view, directory);
    assert!(!names(view, directory).contains(&name.to_owned()));
    assert!(view.lookup(parent, name.as_bytes()).unwrap().is_none());
    let (_, made) = view
        .create(parent, name.as_bytes(), new(0o644), THREAD)
        .unwrap_or_else(|error| panic!("{directory:?}: {name}: {error}"));
    // The document exists before it is closed.
    assert!(view.lookup(parent, name.as_bytes()).unwrap().is_some());
    write_text(&made.file, &text.to_string());
    close(&made.file);
    assert!(names(view, directory).contains(&name.to_owned()));
}

fn names(view: &Arc<View>, directory: &[&str]) -> Vec<String> {
    let mut directory = view.open_directory(find(view, directory)).unwrap().unwrap();
    let mut names = Vec::new();
    while let Some(entry) = directory.next_entry(Detail::Names).unwrap() {
        names.push(String::from_utf8_lossy(&entry.name).into_owned());
    }
    names
}

/// The document of a group with an attribute, and the document of an array, in each version.
fn documents(target: Target) -> (&'static str, Value, &'static str, Value) {
    match target {
        Target::V2 => (".zgroup", json!({"zarr_format": 2}), ".zarray", array(2)),
        Target::V3 => {
            let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}});
            ("zarr.json", group, "zarr.json", array(3))
        }
    }
}

#[test]
fn groups_may_be_copied_after_their_members() {
    for target in [Target::V2, Target::V3] {
        let folder = tempfile::tempdir().unwrap();
        let view = mounted(folder.path(), target);
        let (of_group, group, of_array, array) = documents(target);
        let directories = [&["t"][..], &["t", "g"], &["t", "g", "h"]];
        for directory in directories {
            make_directory(&view, directory);
        }
        make_directory(&view, &["t", "g", "h", "a"]);
        make_document(&view, &["t", "g", "h", "a"], of_array, &array);
        // The mount has stored the documents of the groups that the program has made.
        assert!(folder.path().join("t/g/h").join(of_group).exists());
        for directory in directories.iter().rev() {
            make_document(&view, directory, of_group, &group);
            let stored = folder.path().join(directory.join("/")).join(of_group);
            let stored: Value = serde_json::from_slice(&fs::read(stored).unwrap()).unwrap();
            assert_eq!(stored, group);
        }
    }
}

#[test]
fn a_directory_goes_with_the_document_that_no_program_has_written() {
    for target in [Target::V2, Target::V3] {
        let folder = tempfile::tempdir().unwrap();
        let view = mounted(folder.path(), target);
        let (_, _, of_array, array) = documents(target);
        make_directory(&view, &["t"]);
        make_directory(&view, &["t", "a"]);
        make_document(&view, &["t", "a"], of_array, &array);
        let array = find(&view, &["t", "a"]);
        view.remove(array, of_array.as_bytes(), VnodeKind::File)
            .unwrap();
        view.remove(find(&view, &["t"]), b"a", VnodeKind::Directory)
            .unwrap();
        view.remove(VnodeId::ROOT, b"t", VnodeKind::Directory)
            .unwrap();
        assert!(!folder.path().join("t").exists());
    }
}
