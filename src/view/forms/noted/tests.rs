use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::files::HandleAccess;
use crate::metadata::Target;
use crate::store::power_loss::{self, Disk};
use crate::store::recorded::{self, Lacking};
use crate::store::{DirStore, FileChange, RenameMode, Store, Symlinks, WriterOptions};
use crate::translate::MAX_DOCUMENT_BYTES;
use crate::view::{OpenFile, Recovered, ViewKind, ViewOptions, VnodeId, VnodeKind};

const THREAD: u32 = 1;

pub(in crate::view::forms) fn mounted(path: &Path) -> Arc<View> {
    mounted_as(path, None)
}

/// Like [`mounted`], with the documents of another version.
pub(in crate::view::forms) fn mounted_as(path: &Path, target: Option<Target>) -> Arc<View> {
    let store: Arc<dyn Store> = Arc::new(DirStore::open(path, Symlinks::Inside).unwrap());
    let writer = store.writer(&WriterOptions::default()).unwrap().unwrap();
    let options = ViewOptions {
        views: vec![ViewKind::Chunks],
        shown_as: target,
        cache_budget_bytes: 16 << 20,
        decode_threads: 1,
        ..ViewOptions::default()
    };
    Arc::new(View::writable(store, options, writer).unwrap())
}

pub(in crate::view::forms) fn array(version: u64) -> Value {
    match version {
        2 => {
            json!({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": null,
            "fill_value": 0, "order": "C", "filters": null})
        }
        _ => {
            json!({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}, "attributes": {},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]})
        }
    }
}

/// A store of groups with consolidated metadata of v2 and of v3, with an array in each.
pub(in crate::view::forms) fn store(path: &Path) {
    let copies =
        json!({"g/t": array(3), "g": {"zarr_format": 3, "node_type": "group", "attributes": {}}});
    let inline = json!({"kind": "inline", "must_understand": false, "metadata": copies});
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let mut root = group.clone();
    root["consolidated_metadata"] = inline;
    let copies = json!({".zgroup": {"zarr_format": 2}, "t/.zarray": array(2)});
    for (key, document) in [
        ("zarr.json", root),
        ("g/zarr.json", group),
        ("g/t/zarr.json", array(3)),
        ("old/.zgroup", json!({"zarr_format": 2})),
        ("old/t/.zarray", array(2)),
        (
            "old/.zmetadata",
            json!({"zarr_consolidated_format": 1, "metadata": copies}),
        ),
    ] {
        let file = path.join(key);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, document.to_string()).unwrap();
    }
}

pub(in crate::view::forms) fn find(view: &View, path: &[&str]) -> VnodeId {
    path.iter().fold(VnodeId::ROOT, |id, name| {
        view.lookup(id, name.as_bytes()).unwrap().unwrap().id
    })
}

fn write(view: &Arc<View>, path: &[&str], document: &Value) {
    let id = find(view, path);
    let opened = view
        .open_for(id, HandleAccess::Writes, THREAD)
        .unwrap()
        .unwrap();
    opened.file.written().unwrap().clear().unwrap();
    write_text(&opened.file, &document.to_string());
    close(&opened.file);
}

/// Writes the first bytes of the file.
pub(in crate::view::forms) fn write_text(file: &OpenFile, text: &str) {
    let data = text.as_bytes();
    let written = file.written().unwrap();
    written
        .change(&FileChange::Write { offset: 0, data })
        .unwrap();
}

/// Closes the file as a program does.
pub(in crate::view::forms) fn close(file: &OpenFile) {
    file.written().unwrap().flush(Some(THREAD)).unwrap();
    file.close();
}

/// Changes documents of each group: attributes are written, an array is resized, a directory is renamed, and
/// documents are removed.
fn change_all(view: &Arc<View>) {
    let mut new = array(3);
    new["attributes"] = json!({"a": 1});
    write(view, &["g", "t", "zarr.json"], &new);
    let mut new = array(2);
    new["shape"] = json!([8]);
    write(view, &["old", "t", ".zarray"], &new);
    let caller = crate::view::Caller { uid: 0, gid: 0 };
    let (from, to) = ((VnodeId::ROOT, &b"g"[..]), (VnodeId::ROOT, &b"h"[..]));
    view.rename(from, to, RenameMode::Keep, caller).unwrap();
    view.remove(find(view, &["old", "t"]), b".zarray", VnodeKind::File)
        .unwrap();
    view.remove(find(view, &["h", "t"]), b"zarr.json", VnodeKind::File)
        .unwrap();
}

pub(in crate::view::forms) fn read(path: &Path, key: &str) -> Option<Value> {
    let text = fs::read(path.join(key)).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

/// Whether all copies equal the stored documents.
fn are_copies_right(path: &Path) -> bool {
    let v3 = &read(path, "zarr.json").unwrap()["consolidated_metadata"]["metadata"];
    let v2 = &read(path, "old/.zmetadata").unwrap()["metadata"];
    ["g", "g/t", "h", "h/t"].iter().all(|node| {
        let copy = v3.get(node).cloned();
        copy == read(path, &format!("{node}/zarr.json"))
    }) && v2.get("t/.zarray").cloned() == read(path, "old/t/.zarray")
}

#[test]
fn copies_are_those_of_the_store_whichever_call_is_the_last_of_the_daemon() {
    let folder = power_loss::folder();
    let path = folder.path().join("store");
    store(&path);
    let before = Disk::of(&path);
    let view = mounted(&path);
    recorded::start(Lacking::default());
    change_all(&view);
    let calls = recorded::stop();
    assert!(are_copies_right(&path));
    assert_eq!(
        view.recover().unwrap(),
        Recovered::default(),
        "no note is left"
    );
    let mut n_stale = 0;
    for n in 0..=calls.len() {
        let left = folder.path().join(n.to_string());
        before.after(&calls[..n]).write_to(&left);
        let is_right = are_copies_right(&left);
        n_stale += usize::from(!is_right);
        let view = mounted(&left);
        let found = view.recover().unwrap();
        assert!(are_copies_right(&left), "after {n} calls of {calls:?}");
        assert!(is_right || found.copied > 0);
        assert_eq!(
            view.recover().unwrap(),
            Recovered::default(),
            "a second recovery changes nothing"
        );
    }
    assert!(n_stale >= 5, "{n_stale}");
}

#[test]
fn copies_that_are_too_long_hinder_no_change() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let holder = fs::File::options()
        .append(true)
        .open(folder.path().join("old/.zmetadata"));
    holder.unwrap().set_len(MAX_DOCUMENT_BYTES + 1).unwrap();
    let view = mounted(folder.path());
    let mut new = array(2);
    new["shape"] = json!([8]);
    write(&view, &["old", "t", ".zarray"], &new);
    assert_eq!(read(folder.path(), "old/t/.zarray"), Some(new));
    assert_eq!(view.recover().unwrap().stale, 1, "the note is left");
}

#[test]
fn changes_of_documents_without_copies_are_not_noted() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    fs::remove_file(folder.path().join("old/.zmetadata")).unwrap();
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    fs::write(folder.path().join("zarr.json"), group.to_string()).unwrap();
    let view = mounted(folder.path());
    let path = Prefix::parse(b"old/t").unwrap();
    assert!(view.note_change(&path, &[b"{}"]).unwrap().is_none());
    let marked = br#"{"consolidated_metadata": {}}"#;
    assert!(view.note_change(&path, &[marked]).unwrap().is_some());
}
