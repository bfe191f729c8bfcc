use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use super::super::noted::tests::{array, close, find, mounted, read, write_text};
use crate::files::HandleAccess;
use crate::store::{NewAttributes, NewFile, Prefix};
use crate::view::VnodeKind;
use crate::view::changes::AttributeChange;

const THREAD: u32 = 1;

fn sharded() -> Value {
    let mut document = array(3);
    document["codecs"] = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2], "codecs": [{"name": "bytes"}], "index_codecs": [{"name": "bytes",
        "configuration": {"endian": "little"}}]}}]);
    document
}

#[test]
fn an_array_with_a_chunk_that_is_in_the_journal_becomes_no_group() {
    let folder = tempfile::tempdir().unwrap();
    let document = sharded();
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a/zarr.json"), document.to_string()).unwrap();
    let view = mounted(folder.path());
    let open = |path: &[&str]| {
        let opened = view.open_for(find(&view, path), HandleAccess::Writes, THREAD);
        opened.unwrap().unwrap().file
    };
    let chunk = open(&["a", "c", "0"]);
    write_text(&chunk, "ab");
    close(&chunk);
    let written = open(&["a", "zarr.json"]);
    written.written().unwrap().clear().unwrap();
    let group = json!({"zarr_format": 3, "node_type": "group"});
    write_text(&written, &group.to_string());
    written.written().unwrap().flush(Some(THREAD)).unwrap_err();
    assert_eq!(read(folder.path(), "a/zarr.json"), Some(document));
    view.tree.settle_below(&Prefix::root()).unwrap();
    assert!(folder.path().join("a/c/0").exists());
}

#[test]
fn a_document_that_is_made_anew_gets_attributes_before_it_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/zarr.json");
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(&path, sharded().to_string()).unwrap();
    let view = mounted(folder.path());
    let chunk = view.open_for(find(&view, &["a", "c", "0"]), HandleAccess::Writes, THREAD);
    let chunk = chunk.unwrap().unwrap().file;
    write_text(&chunk, "ab");
    close(&chunk);
    let id = find(&view, &["a", "zarr.json"]);
    let shown = view.document_of(&view.vnode(id).unwrap()).unwrap();
    let text = String::from_utf8(shown.unwrap().1.to_vec()).unwrap();
    // As `tar x` does, which replaces the files of an array and leaves its chunks there meanwhile.
    let parent = find(&view, &["a"]);
    view.remove(parent, b"zarr.json", VnodeKind::File).unwrap();
    let owner = fs::metadata(folder.path()).unwrap();
    let new = NewFile {
        mode: 0o600,
        umask: 0,
        uid: owner.uid(),
        gid: owner.gid(),
    };
    let created = view.create(parent, b"zarr.json", new, THREAD);
    let (found, opened) = created.unwrap();
    write_text(&opened.file, &text);
    let mode = Some(0o640);
    let attributes = NewAttributes {
        mode,
        ..NewAttributes::default()
    };
    let size = None;
    view.change_attributes(found.id, &AttributeChange { size, attributes })
        .unwrap();
    let shown = view.attributes(found.id).unwrap().unwrap();
    assert_eq!(shown.mode & 0o777, 0o640);
    close(&opened.file);
    let stored = fs::metadata(&path).unwrap();
    assert_eq!(stored.permissions().mode() & 0o777, 0o640);
}
