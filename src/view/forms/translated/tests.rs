use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::noted::tests::{array, close, find, mounted_as, read, write_text};
use crate::files::HandleAccess;
use crate::metadata::Target;
use crate::store::{NewAttributes, NewFile, NewTime};
use crate::view::changes::AttributeChange;
use crate::view::{OpenFile, View, VnodeId};

const THREAD: u32 = 1;
const TIME: u32 = 1_000_000_000;

/// A mode and a time of modification, as `cp -p` sets them.
fn kept(mode: u32) -> AttributeChange {
    let (seconds, nanoseconds) = (TIME.into(), 0);
    AttributeChange {
        size: None,
        attributes: NewAttributes {
            mode: Some(mode),
            mtime: Some(NewTime::At {
                seconds,
                nanoseconds,
            }),
            ..NewAttributes::default()
        },
    }
}

/// The mode and the time of modification of a file.
fn of_file(path: &Path) -> (u32, SystemTime) {
    let found = fs::metadata(path).unwrap();
    (
        found.permissions().mode() & 0o777,
        found.modified().unwrap(),
    )
}

fn time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(TIME.into())
}

/// A store with a group of v2 and an array in it, whose document and attributes are two objects.
fn v2(root: &Path) {
    fs::write(root.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
    fs::create_dir(root.join("a")).unwrap();
    for (name, text) in [(".zarray", array(2)), (".zattrs", json!({"a": 1}))] {
        let path = root.join("a").join(name);
        fs::write(&path, text.to_string()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// The mode that is shown, and the time of modification.
fn shown(view: &View, id: VnodeId) -> (u32, SystemTime) {
    let shown = view.attributes(id).unwrap().unwrap();
    (shown.mode & 0o777, shown.times.mtime)
}

/// The shown text of a document, with other attributes.
fn text_with(view: &View, id: VnodeId, attributes: Value) -> String {
    let (_, text) = view.document_of(&view.vnode(id).unwrap()).unwrap().unwrap();
    let mut text: Value = serde_json::from_slice(&text.to_vec()).unwrap();
    text["attributes"] = attributes;
    text.to_string()
}

fn opened(view: &Arc<View>, path: &[&str]) -> Arc<OpenFile> {
    let opened = view.open_for(find(view, path), HandleAccess::Writes, THREAD);
    opened.unwrap().unwrap().file
}

fn new_file(mode: u32) -> NewFile {
    let owner = fs::metadata("/proc/self").unwrap();
    NewFile {
        mode,
        umask: 0,
        uid: owner.uid(),
        gid: owner.gid(),
    }
}

/// A directory that all users may search.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Makes a document in `a` as `tar x` does, with attributes that are set before the file is closed.
fn extract(view: &Arc<View>, name: &str, text: &Value, mode: u32) {
    let parent = find(view, &["a"]);
    let created = view.create(parent, name.as_bytes(), new_file(0o600), THREAD);
    let (found, opened) = created.unwrap();
    write_text(&opened.file, &text.to_string());
    view.change_attributes(found.id, &kept(mode)).unwrap();
    assert_eq!(shown(view, found.id), (mode, time()), "{name}");
    close(&opened.file);
}

#[test]
fn a_change_of_attributes_changes_all_objects_of_a_document() {
    let folder = folder();
    v2(folder.path());
    let view = mounted_as(folder.path(), Some(Target::V3));
    let id = find(&view, &["a", "zarr.json"]);
    let own = view.attributes(id).unwrap().unwrap().fingerprint;
    view.change_attributes(id, &kept(0o640)).unwrap();
    for name in [".zarray", ".zattrs"] {
        assert_eq!(
            of_file(&folder.path().join("a").join(name)),
            (0o640, time())
        );
    }
    assert_eq!(shown(&view, id), (0o640, time()));
    // The text is the same, so the file is.
    assert_eq!(view.attributes(id).unwrap().unwrap().fingerprint, own);
    // The same of a file that is open, and is written afterwards.
    let file = opened(&view, &["a", "zarr.json"]);
    view.change_attributes(id, &kept(0o604)).unwrap();
    file.written().unwrap().clear().unwrap();
    write_text(&file, &text_with(&view, id, json!({"b": 2})));
    close(&file);
    assert_eq!(read(folder.path(), "a/.zattrs"), Some(json!({"b": 2})));
    for name in [".zarray", ".zattrs"] {
        assert_eq!(of_file(&folder.path().join("a").join(name)).0, 0o604);
    }
}

#[test]
fn attributes_of_a_draft_are_those_of_the_objects_that_it_changes() {
    let folder = folder();
    v2(folder.path());
    let view = mounted_as(folder.path(), Some(Target::V3));
    let id = find(&view, &["a", "zarr.json"]);
    // The second text says nothing new, so the objects are not written.
    for mode in [0o640, 0o604] {
        let text = text_with(&view, id, json!({"b": 2}));
        let file = opened(&view, &["a", "zarr.json"]);
        file.written().unwrap().clear().unwrap();
        write_text(&file, &text);
        view.change_attributes(id, &kept(mode)).unwrap();
        close(&file);
        for name in [".zarray", ".zattrs"] {
            let found = of_file(&folder.path().join("a").join(name));
            assert_eq!(found, (mode, time()), "{name}");
        }
    }
}

#[test]
fn a_document_that_is_made_has_the_attributes_of_its_draft() {
    for (target, root, documents, stored) in [
        (
            Target::V2,
            ("zarr.json", json!({"zarr_format": 3, "node_type": "group"})),
            &[(".zarray", array(2)), (".zattrs", json!({"a": 1}))][..],
            &["zarr.json"][..],
        ),
        (
            Target::V3,
            (".zgroup", json!({"zarr_format": 2})),
            &[("zarr.json", new_array())],
            &[".zarray", ".zattrs"],
        ),
    ] {
        let folder = folder();
        fs::write(folder.path().join(root.0), root.1.to_string()).unwrap();
        let view = mounted_as(folder.path(), Some(target));
        view.make_directory(VnodeId::ROOT, b"a", new_file(0o755))
            .unwrap();
        let mode = 0o640;
        for (name, text) in documents {
            extract(&view, name, text, mode);
        }
        for name in stored {
            let found = of_file(&folder.path().join("a").join(name));
            assert_eq!(found, (mode, time()), "{name}");
        }
        for (name, _) in documents {
            let id = find(&view, &["a", name]);
            assert_eq!(shown(&view, id), (mode, time()), "{name}");
        }
        // Documents of one object have its attributes.
        let id = find(&view, &["a", documents[0].0]);
        view.change_attributes(id, &kept(0o600)).unwrap();
        for (name, _) in documents {
            let id = find(&view, &["a", name]);
            assert_eq!(shown(&view, id).0, 0o600, "{name}");
        }
    }
}

/// An array of v3 that v2 can express, with an attribute.
fn new_array() -> Value {
    let mut new = array(3);
    new["attributes"] = json!({"a": 1});
    new["chunk_key_encoding"] = json!({"name": "v2"});
    new
}
