//! A mount without a kernel: a writable view of a directory, which is made anew after its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use tempfile::TempDir;
use zarr_mount::error::{Error, ErrorKind};
use zarr_mount::fresh::Freshness;
use zarr_mount::store::{DirStore, NewFile, Store, StoreError, Symlinks, WriterOptions};
use zarr_mount::view::{OpenFile, Recovered, Shards, View, ViewKind, ViewOptions, VnodeId};

use crate::common::{read_at, walk};

/// The errno that the caller of a system call gets.
pub(crate) fn errno(error: &Error) -> i32 {
    error.errno().unwrap_or(match error.kind() {
        ErrorKind::Stale => libc::ESTALE,
        _ => libc::EIO,
    })
}

/// The attributes of new files.
pub(crate) const NEW: NewFile = NewFile {
    mode: 0o644,
    umask: 0,
    uid: 0,
    gid: 0,
};

pub(crate) struct Mount {
    folder: TempDir,
    kind: ViewKind,
    /// Whether inner chunks of shards are files.
    shards: Shards,
    /// The memory budget, in bytes.
    budget: u64,
    /// The number of mounts so far.
    n_mounts: usize,
    n_outsiders: u64,
    pub(crate) view: Arc<View>,
}

impl Mount {
    /// Mounts a store with the array `a` of this document.
    pub(crate) fn new((kind, shards): (ViewKind, Shards), budget: u64, document: &str) -> Mount {
        let folder = tempfile::tempdir().unwrap();
        let array = store_at(folder.path(), 0).join("a");
        for directory in ["c/0", "c/1"] {
            fs::create_dir_all(array.join(directory)).unwrap();
        }
        fs::write(array.join("zarr.json"), document).unwrap();
        let view = writable(&store_at(folder.path(), 0), options(kind, shards, budget));
        Mount {
            folder,
            kind,
            shards,
            budget,
            n_mounts: 0,
            n_outsiders: 0,
            view,
        }
    }

    /// The directory of the store.
    pub(crate) fn store(&self) -> PathBuf {
        store_at(self.folder.path(), self.n_mounts)
    }

    /// Makes the mount anew, as after the old one was killed. The old mount cannot be killed, and has threads that go
    /// on, so the new one gets a copy of the store. Then the old mount has no changes left to make, and `handles` are
    /// closed to release their descriptors.
    pub(crate) fn make_anew(&mut self, handles: impl Iterator<Item = Arc<OpenFile>>) {
        let old = self.store();
        self.n_mounts += 1;
        let new = self.store();
        // The journal is copied first: a part is removed from it when its shard has it.
        let journal = Path::new(".zarr-mount/journal");
        if old.join(journal).exists() {
            copy(&old.join(journal), &new.join(journal));
        }
        copy(&old, &new);
        let view = writable(&new, options(self.kind, self.shards, self.budget));
        let before = std::mem::replace(&mut self.view, view);
        for handle in handles {
            handle.close();
        }
        before.threads().finish(Duration::from_secs(10));
    }

    /// The number of the file at `path`.
    pub(crate) fn vnode(&self, path: &str) -> Result<VnodeId, i32> {
        let found = walk(&self.view, path).map_err(|error| errno(&error))?;
        found.map(|(id, _)| id).ok_or(libc::ENOENT)
    }

    /// The length of the file at `path`.
    pub(crate) fn len(&self, path: &str) -> Result<u64, i32> {
        let found = walk(&self.view, path).map_err(|error| errno(&error))?;
        found.map(|(_, shown)| shown.size).ok_or(libc::ENOENT)
    }

    /// Opens the file at `path`, reads it and closes it.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, i32> {
        let opened = self.view.open(self.vnode(path)?);
        let opened = opened.map_err(|error| errno(&error))?.ok_or(libc::ENOENT)?;
        let len = usize::try_from(opened.attributes.size).unwrap();
        let bytes = read_at(&opened.file, 0, len + 1);
        opened.file.close();
        bytes.map_err(|error| errno(&error))
    }

    /// Another program replaces the object at `key`.
    pub(crate) fn outsider_replaces(&mut self, key: &str, bytes: &[u8]) {
        let beside = self.folder.path().join("beside");
        fs::write(&beside, bytes).unwrap();
        // Each object gets a time of its own, because a model has no grain of time. Times in the future are not waited
        // for.
        self.n_outsiders += 1;
        let time = SystemTime::now() + Duration::from_secs(1_000_000 + self.n_outsiders);
        let file = fs::File::options().write(true).open(&beside).unwrap();
        file.set_modified(time).unwrap();
        fs::rename(&beside, self.store().join(key)).unwrap();
    }

    /// A view of the store in another mount.
    pub(crate) fn seen_by_others(&self, kind: ViewKind) -> Arc<View> {
        Arc::new(
            View::new(
                store(&self.store()),
                options(kind, self.shards, self.budget),
            )
            .unwrap(),
        )
    }

    /// The names that the mount has left in the store.
    pub(crate) fn leftovers(&self) -> usize {
        fs::read_dir(self.store().join(".zarr-mount")).map_or(0, Iterator::count)
    }
}

fn store_at(folder: &Path, n_mounts: usize) -> PathBuf {
    folder.join(format!("store{n_mounts}"))
}

fn store(path: &Path) -> Arc<dyn Store> {
    Arc::new(DirStore::open(path, Symlinks::Inside).unwrap())
}

/// Copies a directory, with the times of its files. Files that exist already stay.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&source, &target);
        } else if !target.exists() {
            // The old mount may have removed the file meanwhile.
            let Ok(file) = fs::File::open(&source) else {
                continue;
            };
            let time = file.metadata().unwrap().modified().unwrap();
            let mut copied = fs::File::create(&target).unwrap();
            io::copy(&mut &file, &mut copied).unwrap();
            copied.set_modified(time).unwrap();
        }
    }
}

fn options(kind: ViewKind, shards: Shards, budget: u64) -> ViewOptions {
    ViewOptions {
        views: vec![kind],
        shards,
        freshness: Freshness::Checked(Duration::ZERO),
        cache_budget_bytes: budget,
        decode_threads: 1,
        ..ViewOptions::default()
    }
}

fn writable(path: &Path, options: ViewOptions) -> Arc<View> {
    let made = || -> Result<View, StoreError> {
        let store = store(path);
        let writer = store.writer(&WriterOptions::default())?;
        View::writable(store, options, writer.expect("a directory"))
    };
    let view = made().unwrap();
    let recovered = view.recover().unwrap();
    assert_eq!((recovered.changed, recovered.left), (0, 0));
    assert_eq!(
        view.recover().unwrap(),
        Recovered::default(),
        "a second recovery finds nothing"
    );
    Arc::new(view)
}
