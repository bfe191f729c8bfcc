use std::fs;

use serde_json::json;

use super::super::noted::tests::{array, close, find, mounted, read, write_text};
use crate::files::HandleAccess;
use crate::store::Prefix;

const THREAD: u32 = 1;

#[test]
fn an_array_with_a_chunk_that_is_in_the_journal_becomes_no_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut document = array(3);
    document["codecs"] = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2], "codecs": [{"name": "bytes"}], "index_codecs": [{"name": "bytes",
        "configuration": {"endian": "little"}}]}}]);
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
