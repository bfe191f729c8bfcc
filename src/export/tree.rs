//! All files below a path of a view, written side by side.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::target::{FinishedFile, Target, is_unfinished};
use super::{ExportError, FileError, pieces};
use crate::error::Error;
use crate::store::Detail;
use crate::view::{Directory, EntrySource, HeldVnode, View, VnodeKind};

/// The files that are found before they are written. More of them would be remembered for nothing.
const MOST_FOUND: usize = 4096;

/// The files that get their names together. All of them have to be on disk before, which takes some ten milliseconds
/// whether there is one of them or a thousand.
const MOST_UNNAMED: usize = 1024;
/// The time after which files get their names even if they are few. After an interrupted export, files without names
/// are written anew.
const LONGEST_UNNAMED: Duration = Duration::from_secs(5);

/// An export of the files below a path.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    /// The path in the view; a file, or a directory.
    pub path: &'a [u8],
    /// The directory that gets the files.
    pub directory: &'a Path,
    /// Whether an earlier export was interrupted: files that it has written are left as they are.
    pub resume: bool,
    /// The store and the options of what is exported. An export can be resumed only by one of the same subject.
    pub subject: &'a [u8],
    /// The files that are written at once.
    pub n_files_at_once: usize,
}

/// The progress of an export, for another thread.
#[derive(Debug, Default)]
pub struct Counters {
    /// The files that were found so far.
    pub found: AtomicU64,
    /// Whether all files were found.
    pub is_found: AtomicBool,
    /// The files that were written.
    pub written: AtomicU64,
    /// The files that an earlier export has written.
    pub kept: AtomicU64,
    /// The files and directories that could not be exported.
    pub failed: AtomicU64,
    /// The bytes that were read and written.
    pub bytes: AtomicU64,
}

/// A file that is to be written.
struct Found {
    /// Its path below the directory.
    path: Vec<u8>,
    vnode: HeldVnode,
}

/// A directory that is being listed.
struct Listed {
    path: Vec<u8>,
    vnode: HeldVnode,
    entries: Directory,
}

/// Files that are whole, and have no names yet.
#[derive(Debug, Default)]
struct Unnamed {
    files: Vec<FinishedFile>,
    /// The time when the first of them came.
    since: Option<Instant>,
}

impl Unnamed {
    /// Adds `file`, and returns the files that are to get their names.
    fn add(&mut self, file: FinishedFile) -> Vec<FinishedFile> {
        self.files.push(file);
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.files.len() < MOST_UNNAMED && since.elapsed() < LONGEST_UNNAMED {
            return Vec::new();
        }
        std::mem::take(self).files
    }
}

/// The state of an export.
struct Run<'a> {
    export: Export<'a>,
    target: Target,
    unnamed: Mutex<Unnamed>,
    counters: &'a Counters,
    /// Called with the path of each file that could not be exported, and the reason.
    failed: &'a (dyn Fn(&[u8], &FileError) + Sync),
    /// Set where no other file can be written either.
    ends: AtomicBool,
}

impl Export<'_> {
    /// Writes the files. Those that cannot be exported are passed to `failed`, and the others are written, unless the
    /// disk is full.
    ///
    /// # Errors
    /// [`ExportError`] when the export cannot begin or end.
    pub fn run(
        self,
        view: &Arc<View>,
        counters: &Counters,
        failed: &(dyn Fn(&[u8], &FileError) + Sync),
    ) -> Result<(), ExportError> {
        let start = view.find_path(self.path)?.ok_or(ExportError::Missing)?;
        let run = Run {
            target: Target::prepare(self.directory, self.resume, self.subject)?,
            unnamed: Mutex::default(),
            export: self,
            counters,
            failed,
            ends: AtomicBool::new(false),
        };
        let (sender, receiver) = sync_channel(MOST_FOUND);
        let receiver = Mutex::new(receiver);
        thread::scope(|scope| {
            for _ in 0..self.n_files_at_once.max(1) {
                scope.spawn(|| run.write_all(&receiver));
            }
            run.find_all(start, &sender);
            counters.is_found.store(true, Ordering::Relaxed);
            // The threads end after the last file.
            drop(sender);
        });
        let rest = std::mem::take(&mut *run.unnamed());
        run.name_all(rest.files);
        if run.ends.load(Ordering::Relaxed) {
            // It can be resumed when the disk has room again.
            return Ok(());
        }
        run.target.finish()
    }
}

impl Run<'_> {
    fn fail(&self, path: &[u8], error: &FileError) {
        self.counters.failed.fetch_add(1, Ordering::Relaxed);
        (self.failed)(path, error);
        if error.ends_all() {
            self.ends.store(true, Ordering::Relaxed);
        }
    }

    fn unnamed(&self) -> MutexGuard<'_, Unnamed> {
        self.unnamed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name_all(&self, files: Vec<FinishedFile>) {
        self.target.name_all(files, |path, named| match named {
            Ok(()) => drop(self.counters.written.fetch_add(1, Ordering::Relaxed)),
            Err(error) => self.fail(path, &FileError::Written(error)),
        });
    }

    /// Finds the files at and below `start`, makes their directories, and sends the files.
    fn find_all(&self, start: HeldVnode, found: &SyncSender<Found>) {
        if start.kind() == VnodeKind::File {
            let mut names = self.export.path.split(|&byte| byte == b'/').rev();
            let name = names.find(|name| !name.is_empty()).unwrap_or_default();
            self.send(name.to_vec(), start, found);
            return;
        }
        // The directories from the first one to that which is being listed, so that memory does not depend on the
        // number of names.
        let mut open = Vec::new();
        open.extend(self.list(Vec::new(), start));
        while let Some(Listed {
            path,
            vnode,
            entries,
        }) = open.last_mut()
        {
            if self.ends.load(Ordering::Relaxed) {
                return;
            }
            let entry = match entries.next_entry(Detail::Names) {
                Ok(Some(entry)) => entry,
                Ok(None) => {
                    if let Some(error) = entries.left_out() {
                        self.fail(path, &error.into());
                    }
                    open.pop();
                    continue;
                }
                Err(error) => {
                    self.fail(path, &error.into());
                    open.pop();
                    continue;
                }
            };
            let below = if path.is_empty() {
                entry.name.clone()
            } else {
                [&path[..], b"/", &entry.name].concat()
            };
            if !is_name(&entry.name) {
                self.fail(&below, &FileError::Name);
                continue;
            }
            if is_unfinished(&below) {
                self.fail(&below, &FileError::Unfinished);
                continue;
            }
            let child = vnode.listed(&entry);
            match entry.kind {
                VnodeKind::File => self.send(below, child, found),
                VnodeKind::Directory => match self.target.make_directory(&below) {
                    Ok(()) => open.extend(self.list(below, child)),
                    Err(error) => self.fail(&below, &FileError::Written(error)),
                },
            }
        }
    }

    fn list(&self, path: Vec<u8>, vnode: HeldVnode) -> Option<Listed> {
        match vnode.list() {
            Ok(Some(entries)) => Some(Listed {
                path,
                vnode,
                entries,
            }),
            Ok(None) => {
                self.fail(&path, &Error::Stale.into());
                None
            }
            Err(error) => {
                self.fail(&path, &error.into());
                None
            }
        }
    }

    fn send(&self, path: Vec<u8>, vnode: HeldVnode, found: &SyncSender<Found>) {
        self.counters.found.fetch_add(1, Ordering::Relaxed);
        // All threads end early only after a panic, which ends this one, too.
        drop(found.send(Found { path, vnode }));
    }

    /// Writes files until there are no more.
    fn write_all(&self, found: &Mutex<Receiver<Found>>) {
        loop {
            let next = found.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(file) = next else { return };
            if self.ends.load(Ordering::Relaxed) {
                continue;
            }
            match self.write(&file) {
                Ok(None) => drop(self.counters.kept.fetch_add(1, Ordering::Relaxed)),
                Ok(Some(file)) => {
                    let files = self.unnamed().add(file);
                    self.name_all(files);
                }
                Err(error) => self.fail(&file.path, &error),
            }
        }
    }

    /// Writes a file; `None` if an earlier export has written it.
    fn write(&self, file: &Found) -> Result<Option<FinishedFile>, FileError> {
        let opened = file.vnode.open()?.ok_or(Error::Stale)?;
        let (len, mtime) = (opened.attributes.size, opened.attributes.times.mtime);
        if self.export.resume && self.target.has(&file.path, len, mtime) {
            return Ok(None);
        }
        let unfinished = self.target.begin(len).map_err(FileError::Written)?;
        let writer = unfinished.writer().map_err(FileError::Written)?;
        pieces::for_each(
            &opened.file,
            writer,
            |written: io::Result<u64>| match written {
                Ok(bytes) => {
                    self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
                    Ok(())
                }
                Err(error) => Err(FileError::Written(error)),
            },
        )?;
        let finished = unfinished.finish(file.path.clone(), mtime);
        finished.map(Some).map_err(FileError::Written)
    }
}

/// Whether a file on disk can have this name. Names come from stores, so that none may lead out of the directory.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use super::{Counters, Export, is_name};
    use crate::store::testing::{Flat, Refusal};
    use crate::store::{Key, MemoryStore};
    use crate::view::{View, ViewKind, ViewOptions};

    #[test]
    fn a_directory_with_unknown_names_is_not_exported() {
        let group = r#"{"zarr_format": 3, "node_type": "group"}"#;
        for view in [ViewKind::Keys, ViewKind::Chunks, ViewKind::Arrays] {
            for (is_listed, expected) in [(true, 0), (false, 1)] {
                let memory = MemoryStore::new();
                memory.insert(Key::parse(b"zarr.json").unwrap(), group);
                let memory = Arc::new(memory);
                let store = if is_listed {
                    Flat::new(memory)
                } else {
                    Flat::unlisted(memory, Refusal::Unlisted)
                };
                let options = ViewOptions {
                    views: vec![view],
                    ..ViewOptions::default()
                };
                let view = Arc::new(View::new(Arc::new(store), options).unwrap());
                let (counters, folder) = (Counters::default(), tempfile::tempdir().unwrap());
                let export = Export {
                    path: b"",
                    directory: &folder.path().join("out"),
                    resume: false,
                    subject: b"",
                    n_files_at_once: 1,
                };
                export.run(&view, &counters, &|_, _| {}).unwrap();
                assert_eq!(counters.failed.load(Ordering::Relaxed), expected);
            }
        }
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        let names: [&[u8]; 7] = [b"", b".", b"..", b"a/b", b"/", b"a\0", b"../x"];
        assert!(!names.into_iter().any(is_name));
        assert!(
            [&b"a"[..], b"...", b"0.0", b"\xff"]
                .into_iter()
                .all(is_name)
        );
    }
}
