//! The readers of the views: this process, or the kernel through a mount.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use zarr_mount::error::ErrorKind;
use zarr_mount::store::{DirStore, RemoteOptions, RemoteStore, RemoteUrl, Store, Symlinks};
use zarr_mount::view::{OpenFile, View, ViewKind};

use crate::common;

const PROGRAM: &str = env!("CARGO_BIN_EXE_zarr-mount");

/// Where a store is: a directory, or a URL.
#[derive(Debug)]
pub(crate) enum Place<'p> {
    Directory(&'p Path),
    Url(String),
}

/// Views of a store.
pub(crate) enum Shown {
    Here(Arc<View>),
    /// A mount at this directory, which is unmounted on drop.
    Mounted(TempDir),
}

/// An open file of a view.
pub(crate) enum Opened {
    Here(Arc<OpenFile>),
    Mounted(File),
}

impl Shown {
    pub(crate) fn here(place: &Place<'_>, kinds: Vec<ViewKind>, ttl: Duration) -> Shown {
        let store: Arc<dyn Store> = match place {
            Place::Directory(path) => Arc::new(DirStore::open(path, Symlinks::Inside).unwrap()),
            Place::Url(url) => {
                let url = RemoteUrl::parse(url).unwrap().unwrap();
                let options = RemoteOptions {
                    anonymous: true,
                    time_to_live: Some(ttl),
                    ..RemoteOptions::default()
                };
                Arc::new(RemoteStore::open(url, &options).unwrap())
            }
        };
        Shown::Here(common::view_of_raw_files(store, kinds, ttl))
    }

    pub(crate) fn mounted(place: &Place<'_>, kinds: &[ViewKind], ttl: Duration) -> Shown {
        let folder = tempfile::tempdir().unwrap();
        let store = match place {
            Place::Directory(path) => path.to_str().unwrap(),
            Place::Url(url) => url,
        };
        let views: Vec<_> = kinds.iter().map(|kind| name_of(*kind)).collect();
        let ttl = ttl.as_secs_f64().to_string();
        let mut command = Command::new(PROGRAM);
        command.args([store, folder.path().to_str().unwrap()]);
        command.args(["--view", &views.join(","), "--files", "raw"]);
        command.args(["--readahead", "0", "--ttl", &ttl]);
        if matches!(place, Place::Url(_)) {
            command.arg("--anonymous");
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        Shown::Mounted(folder)
    }

    /// The file at a path, if there is one that can be opened.
    pub(crate) fn open(&self, path: &str) -> Option<Opened> {
        match self {
            Shown::Here(view) => {
                let opened = match common::open(view, path) {
                    // The kernel looks the path up again.
                    Err(error) if error.kind() == ErrorKind::Stale => common::open(view, path),
                    opened => opened,
                };
                opened.ok().flatten().map(Opened::Here)
            }
            Shown::Mounted(folder) => {
                let file = File::open(folder.path().join(path)).ok();
                let file = file.filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()));
                file.map(Opened::Mounted)
            }
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Shown::Mounted(folder) = self {
            let mut command = Command::new(PROGRAM);
            let done = command.arg("--unmount").arg(folder.path());
            let done = done.output().unwrap();
            let what = (done.status.code(), done.status.signal());
            // Another panic would hide the first one.
            if !std::thread::panicking() {
                assert_eq!(what, (Some(0), None), "{done:?}");
            }
        }
    }
}

impl Opened {
    /// All bytes; `None` if the read is refused.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        match self {
            Opened::Here(file) => {
                let len = usize::try_from(file.len()).unwrap();
                common::read_at(file, 0, len + 1).ok()
            }
            Opened::Mounted(file) => {
                let (mut file, mut bytes) = (file, Vec::new());
                file.read_to_end(&mut bytes).ok()?;
                Some(bytes)
            }
        }
    }
}

fn name_of(kind: ViewKind) -> &'static str {
    match kind {
        ViewKind::Arrays => "arrays",
        ViewKind::Chunks => "chunks",
        ViewKind::Keys => "keys",
    }
}
