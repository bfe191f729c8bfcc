use std::fs;
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

use super::super::noted::tests::{
    array, close, find, mounted, mounted_as, read, store, write_text,
};
use crate::metadata::Target;
use crate::store::recorded::{self, Lacking};
use crate::store::{NewFile, RenameMode};
use crate::view::{Caller, HandleAccess, OpenedVnode, View, VnodeId};

const THREAD: u32 = 1;

/// The documents with copies in [`store`], with the list in each, and a document that a new node below it has.
fn holders() -> [(&'static [&'static str], Value, &'static str, Value); 2] {
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let mut v3 = group.clone();
    v3["consolidated_metadata"] =
        json!({"kind": "inline", "must_understand": false, "metadata": {"g": group}});
    let v2 = json!({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}}});
    [
        (&["zarr.json"], v3, "zarr.json", array(3)),
        (&["old", ".zmetadata"], v2, ".zarray", array(2)),
    ]
}

/// The name of the copy of the document at `path` in `holder`, and whether it is there.
fn has_copy(holder: &Value, node: &str, name: &str) -> bool {
    match name {
        "zarr.json" => holder["consolidated_metadata"]["metadata"]
            .get(node)
            .is_some(),
        _ => holder["metadata"].get(format!("{node}/{name}")).is_some(),
    }
}

/// Opens a file to write it anew, as `O_WRONLY | O_TRUNC` does, and writes `document`.
fn begin(view: &Arc<View>, path: &[&str], document: &Value) -> OpenedVnode {
    let id = find(view, path);
    let opened = view.open_for(id, HandleAccess::Writes, THREAD);
    let opened = opened.unwrap().unwrap();
    opened.file.written().unwrap().clear().unwrap();
    write_text(&opened.file, &document.to_string());
    opened
}

fn make_node(view: &Arc<View>, group: VnodeId, node: &str, (name, document): (&str, &Value)) {
    let new = |mode| NewFile {
        mode,
        umask: 0,
        uid: 0,
        gid: 0,
    };
    let made = view
        .make_directory(group, node.as_bytes(), new(0o755))
        .unwrap();
    let (_, made) = view
        .create(made.id, name.as_bytes(), new(0o644), THREAD)
        .unwrap();
    write_text(&made.file, &document.to_string());
    close(&made.file);
}

#[test]
fn a_node_that_is_made_while_a_program_consolidates_is_in_the_copies() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let view = mounted(folder.path());
    for (path, listed, name, document) in holders() {
        let opened = begin(&view, path, &listed);
        let group = find(&view, &path[..path.len() - 1]);
        make_node(&view, group, "late", (name, &document));
        // The mount has changed the copies since they were opened, and a program that writes all of them has not seen
        // that.
        close(&opened.file);
        let holder = read(folder.path(), &path.join("/")).unwrap();
        assert!(has_copy(&holder, "late", name), "{holder}");
    }
}

#[test]
fn no_copy_is_missing_however_many_programs_write_documents() {
    const N_WRITERS: usize = 5;
    const N_NODES: usize = 6;
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let view = mounted(folder.path());
    for (path, listed, name, document) in holders() {
        let group = find(&view, &path[..path.len() - 1]);
        thread::scope(|scope| {
            for writer in 0..N_WRITERS {
                let (view, document) = (&view, &document);
                scope.spawn(move || {
                    for node in 0..N_NODES {
                        make_node(view, group, &format!("{writer}.{node}x"), (name, document));
                    }
                });
            }
            for _ in 0..N_NODES {
                let opened = begin(&view, path, &listed);
                close(&opened.file);
            }
        });
        let holder = read(folder.path(), &path.join("/")).unwrap();
        for writer in 0..N_WRITERS {
            for node in 0..N_NODES {
                let node = format!("{writer}.{node}x");
                assert!(has_copy(&holder, &node, name), "{node} of {name}");
            }
        }
    }
}

#[test]
fn a_byte_order_mark_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let attributes = "\u{feff}{\"a\": 1}";
    std::fs::write(folder.path().join("old/t/.zattrs"), attributes).unwrap();
    let view = mounted(folder.path());
    let (path, listed, _, _) = &holders()[1];
    let opened = begin(&view, path, listed);
    close(&opened.file);
    let holder = read(folder.path(), "old/.zmetadata").unwrap();
    assert_eq!(holder["metadata"]["t/.zattrs"], json!({"a": 1}));
}

#[test]
fn a_document_that_is_not_an_object_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    std::fs::create_dir(folder.path().join("old/bad")).unwrap();
    std::fs::write(folder.path().join("old/bad/.zgroup"), "{").unwrap();
    let view = mounted(folder.path());
    let (path, listed, _, _) = &holders()[1];
    let opened = begin(&view, path, listed);
    close(&opened.file);
    let holder = read(folder.path(), "old/.zmetadata").unwrap();
    assert!(has_copy(&holder, "t", ".zarray"));
    assert!(!has_copy(&holder, "bad", ".zgroup"));
}

#[test]
fn the_copies_of_nodes_below_a_damaged_group_follow_its_rename() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    fs::write(folder.path().join("g/zarr.json"), "{").unwrap();
    let view = mounted(folder.path());
    let caller = Caller { uid: 0, gid: 0 };
    let (from, to) = ((VnodeId::ROOT, &b"g"[..]), (VnodeId::ROOT, &b"h"[..]));
    view.rename(from, to, RenameMode::Keep, caller).unwrap();
    let holder = read(folder.path(), "zarr.json").unwrap();
    assert!(!has_copy(&holder, "g/t", "zarr.json"), "{holder}");
    assert!(has_copy(&holder, "h/t", "zarr.json"), "{holder}");
}

#[test]
fn a_group_that_becomes_an_array_has_no_copy_as_a_group() {
    let folder = tempfile::tempdir().unwrap();
    let group = json!({"zarr_format": 2});
    let copies = json!({".zgroup": group, "g/.zgroup": group});
    fs::create_dir(folder.path().join("g")).unwrap();
    for (key, document) in [
        (".zgroup", &group),
        ("g/.zgroup", &group),
        (
            ".zmetadata",
            &json!({"zarr_consolidated_format": 1, "metadata": copies}),
        ),
    ] {
        fs::write(folder.path().join(key), document.to_string()).unwrap();
    }
    let view = mounted_as(folder.path(), Some(Target::V3));
    let mut document = array(3);
    document["chunk_key_encoding"] = json!({"name": "v2"});
    let opened = begin(&view, &["g", "zarr.json"], &document);
    close(&opened.file);
    assert_eq!(read(folder.path(), "g/.zgroup"), None);
    let copies = &read(folder.path(), ".zmetadata").unwrap()["metadata"];
    assert_eq!(copies.get("g/.zgroup"), None);
    let stored = read(folder.path(), "g/.zarray");
    assert!(stored.is_some());
    assert_eq!(copies.get("g/.zarray").cloned(), stored);
}

#[test]
fn the_copies_follow_a_change_of_which_a_part_is_made() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let attributes = folder.path().join("old/t/.zattrs");
    fs::write(&attributes, "{}").unwrap();
    let view = mounted_as(folder.path(), Some(Target::V3));
    let mut document = array(3);
    (document["shape"], document["attributes"]) = (json!([8]), json!({"a": 1}));
    document["chunk_key_encoding"] = json!({"name": "v2"});
    let opened = begin(&view, &["old", "t", "zarr.json"], &document);
    recorded::start(Lacking::default());
    recorded::fail_rename(2);
    let written = opened.file.written().unwrap();
    written.flush(Some(THREAD)).unwrap_err();
    recorded::stop();
    let copies = read(folder.path(), "old/.zmetadata").unwrap();
    for name in [".zattrs", ".zarray"] {
        let stored = read(folder.path(), &format!("old/t/{name}"));
        assert_eq!(copies["metadata"].get(format!("t/{name}")).cloned(), stored);
    }
    let attributes = read(folder.path(), "old/t/.zattrs");
    assert_eq!(attributes, Some(json!({"a": 1})), "a part is made");
    assert_eq!(read(folder.path(), "old/t/.zarray"), Some(array(2)));
}
