//! Helpers of the integration tests, which walk a view by path and read its files.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![allow(missing_docs, unreachable_pub, reason = "tests")]

pub mod random;
pub mod web;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use zarr_mount::error::Error;
use zarr_mount::fresh::Freshness;
use zarr_mount::load::Patience;
use zarr_mount::plain::FileFormat;
use zarr_mount::store::{Detail, Store};
use zarr_mount::view::{
    ArrayOptions, DirectoryEntry, EntrySource, OpenFile, View, ViewKind, ViewOptions,
    VnodeAttributes, VnodeId,
};

pub fn view(store: Arc<dyn Store>, options: ViewOptions) -> Arc<View> {
    Arc::new(View::new(store, options).unwrap())
}

/// Views that read nothing ahead, in which the array at the root is the file `z.raw`.
pub fn view_of_raw_files(store: Arc<dyn Store>, kinds: Vec<ViewKind>, ttl: Duration) -> Arc<View> {
    let options = ViewOptions {
        views: kinds,
        arrays: ArrayOptions {
            files: vec![FileFormat::Raw],
            root_name: "z".to_owned(),
            ..ArrayOptions::default()
        },
        freshness: Freshness::Checked(ttl),
        readahead: Some(0),
        ..ViewOptions::default()
    };
    view(store, options)
}

/// The vnode at `path`, `/`-separated; references are not given back.
pub fn walk(view: &View, path: &str) -> Result<Option<(VnodeId, VnodeAttributes)>, Error> {
    let mut id = VnodeId::ROOT;
    let mut attributes = view.attributes(id)?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let Some(found) = view.lookup(id, name.as_bytes())? else {
            return Ok(None);
        };
        id = found.id;
        attributes = Some(found.attributes);
    }
    Ok(attributes.map(|attributes| (id, attributes)))
}

/// Opens the file at `path`. One that has changed since its name was looked up is looked up again, once, as the kernel does
/// it.
pub fn open(view: &Arc<View>, path: &str) -> Result<Option<Arc<OpenFile>>, Error> {
    for _ in 0..2 {
        let Some((id, attributes)) = walk(view, path)? else {
            return Ok(None);
        };
        let Some(opened) = view.open(id)? else {
            return Ok(None);
        };
        if opened.attributes.fingerprint == attributes.fingerprint {
            let sizes = (opened.attributes.size, attributes.size);
            assert_eq!(sizes.0, sizes.1, "{path}: sizes differ");
            return Ok(Some(opened.file));
        }
        opened.file.close();
    }
    Err(Error::Stale)
}

/// As a read(2) of the mount.
pub fn read_at(file: &Arc<OpenFile>, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
    // A file is read in both ways: by this thread, and by one that may wait for the store.
    let patience = if offset.is_multiple_of(2) {
        Patience::Waits
    } else {
        Patience::Never
    };
    let (send, receive) = mpsc::channel();
    file.read(offset, len, patience, None, move |bytes| {
        send.send(bytes.map(|bytes| bytes.to_vec())).unwrap();
    });
    receive.recv().unwrap()
}

/// All bytes of the file at `path`; `None` when there is none.
pub fn read(view: &Arc<View>, path: &str) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = open(view, path)? else {
        return Ok(None);
    };
    let len = usize::try_from(file.len()).unwrap();
    let bytes = read_at(&file, 0, len + 1)?;
    assert_eq!(bytes.len(), len, "{path}: a read is short before the end");
    Ok(Some(bytes))
}

pub fn list(view: &Arc<View>, path: &str, detail: Detail) -> Vec<DirectoryEntry> {
    let (id, _) = walk(view, path).unwrap().unwrap();
    let mut directory = view.open_directory(id).unwrap().unwrap();
    let mut entries = Vec::new();
    while let Some(entry) = directory.next_entry(detail).unwrap() {
        entries.push(entry);
    }
    entries
}

/// Paths of all files below `path`, sorted. Every listed name must be found by name with the
/// attributes and the number that the listing gave.
pub fn files(view: &Arc<View>, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        for entry in list(view, &path, Detail::Attributes) {
            let name = String::from_utf8(entry.name.clone()).unwrap();
            let child = format!("{path}/{name}").trim_start_matches('/').to_owned();
            let (id, attributes) = walk(view, &child)
                .unwrap()
                .unwrap_or_else(|| panic!("{child} is listed and not found"));
            assert_eq!(id, entry.id, "{child}: number");
            // A size that is known only after decoding is left out.
            if let Some(listed) = entry.attributes {
                assert_eq!(attributes, listed, "{child}: attributes");
            }
            match attributes.kind {
                zarr_mount::view::VnodeKind::Directory => pending.push(child),
                zarr_mount::view::VnodeKind::File => found.push(child),
            }
        }
    }
    found.sort_unstable();
    found
}
