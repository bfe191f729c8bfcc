//! A mount and its model side by side.

mod names;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use zarr_mount::error::Error;
use zarr_mount::files::KeyHandle;
use zarr_mount::store::{Detail, FileChange, NewAttributes, NewTime};
use zarr_mount::view::{AttributeChange, HandleAccess, OpenFile, Shards, ViewKind, VnodeId};

use crate::codecs::{ChunkCodec, LEN};
use crate::common::{list, read, read_at};
use crate::model::{Manner, Model, Readable};
use crate::mount::{Mount, NEW, errno};
use crate::operations::{Operation, Setting};
use crate::shard::{self, SLOTS};

/// The files of the chunks view.
const CHUNKS: [(&str, Manner); 4] = [
    ("a/c/0/0", Manner::Chunk),
    ("a/c/0/1", Manner::Chunk),
    ("a/c/1/0", Manner::Chunk),
    ("a/c/1/1", Manner::Chunk),
];

/// The files of the keys view.
const KEYS: [(&str, Manner); 4] = [
    ("a/c/0/0", Manner::Whole),
    ("a/c/1/1", Manner::Whole),
    ("a/notes", Manner::InPlace),
    ("note", Manner::InPlace),
];

/// The shard that has all chunks, if there is one.
const SHARD: &str = "a/c/0/0";

/// Another process than this one.
const OTHER_PROCESS: u32 = 1;

pub(crate) struct Run {
    codec: ChunkCodec,
    kind: ViewKind,
    is_sharded: bool,
    names: [(&'static str, Manner); 4],
    mount: Mount,
    model: Model,
    /// The handles, in the order of the model.
    handles: Vec<Arc<OpenFile>>,
    /// The attribute of the array.
    n: u8,
    n_times: u32,
    /// The contents of each inner chunk since its shard was last surely written.
    since: [Vec<Option<Vec<u8>>>; SLOTS],
}

fn done<T>(result: Result<T, Error>) -> Result<T, i32> {
    result.map_err(|error| errno(&error))
}

/// The handle by which the file is written.
fn by(file: &OpenFile) -> &KeyHandle {
    file.written().expect("the mount is writable")
}

fn write(file: &OpenFile, offset: u64, data: &[u8]) -> Result<(), i32> {
    done(by(file).change(&FileChange::Write { offset, data }))
}

/// The vnode of the directory of `path` in the view, and the name there.
fn parent(mount: &Mount, path: &str) -> (VnodeId, Vec<u8>) {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    (mount.vnode(directory).unwrap(), name.as_bytes().to_vec())
}

impl Run {
    pub(crate) fn new(kind: ViewKind, setting: Setting) -> Run {
        Run::of(kind, setting, false)
    }

    /// Decoded chunks that are in one shard.
    pub(crate) fn of_shard(setting: Setting) -> Run {
        Run::of(ViewKind::Chunks, setting, true)
    }

    fn of(kind: ViewKind, setting: Setting, is_sharded: bool) -> Run {
        let Setting { codec, budget } = setting;
        let shards = if is_sharded {
            Shards::Expand
        } else {
            Shards::Keep
        };
        let names = if kind == ViewKind::Chunks {
            CHUNKS
        } else {
            KEYS
        };
        Run {
            codec,
            kind,
            is_sharded,
            names,
            mount: Mount::new((kind, shards), budget, &codec.document(is_sharded)),
            model: Model::new(
                names.iter().map(|(_, manner)| *manner).collect(),
                is_sharded,
                codec.is_encoded_alike(),
            ),
            handles: Vec::new(),
            n: 0,
            n_times: 0,
            since: [(); SLOTS].map(|()| vec![None]),
        }
    }

    fn path(&self, file: usize) -> &'static str {
        self.names[file].0
    }

    /// Does one operation. Compares its result with the model, and then the store and the shown file.
    fn step(&mut self, operation: &Operation) {
        match operation {
            Operation::Open {
                file,
                access,
                is_cut,
            } => self.open(*file, *access, *is_cut),
            Operation::Truncate { file, len } => self.truncate(*file, *len),
            Operation::Unlink { file } => self.unlink(*file),
            Operation::Place {
                file,
                text,
                placing,
            } => self.place(*file, text.bytes(), *placing),
            Operation::Move { file, to, placing } => self.move_file((*file, *to), *placing),
            Operation::Document { n, is_whole } => self.document(*n, *is_whole),
            Operation::SyncDirectory => self.sync_directory(),
            Operation::OutsiderReplaces { file, text } => {
                let bytes = text.bytes();
                let encoded = match self.names[*file].1 {
                    Manner::Chunk => self.codec.encode(&bytes),
                    _ => bytes.clone(),
                };
                self.outsider_changes(*file, Some(encoded));
                self.model.outsider_replaces(*file, bytes);
            }
            Operation::OutsiderDeletes { file } => {
                self.outsider_changes(*file, None);
                self.model.outsider_deletes(*file);
            }
            Operation::Remount => {
                self.mount.view.finish_writing();
                assert_eq!(self.mount.leftovers(), 0);
                self.model.finish();
                self.end();
            }
            Operation::Crash => self.end(),
            of_handle => self.step_of_handle(of_handle),
        }
        let writes_shard = matches!(
            operation,
            Operation::OutsiderReplaces { .. }
                | Operation::OutsiderDeletes { .. }
                | Operation::SyncDirectory
                | Operation::Remount
                | Operation::Crash
        );
        if writes_shard {
            self.shard_is_written();
        }
        self.check_store();
        for file in 0..self.names.len() {
            self.check_shown(file);
        }
    }

    /// Another program stores a chunk, or removes it.
    fn outsider_changes(&mut self, file: usize, encoded: Option<Vec<u8>>) {
        let mut object = (self.path(file), encoded);
        if self.is_sharded {
            // A listing writes the staged parts to their shards. A program that changes a shard with staged parts loses
            // nothing, but the mount may lose them.
            list(&self.mount.view, "a/c/0", Detail::Names);
            let stored = fs::read(self.mount.store().join(SHARD)).ok();
            let mut chunks = shard::read(stored.as_deref());
            chunks[file] = object.1;
            object = (SHARD, shard::write(&chunks));
        }
        match object {
            (key, Some(bytes)) => self.mount.outsider_replaces(key, &bytes),
            (key, None) => drop(fs::remove_file(self.mount.store().join(key))),
        }
    }

    fn step_of_handle(&mut self, operation: &Operation) {
        let wanted = match operation {
            Operation::Write { handle, .. }
            | Operation::SetLen { handle, .. }
            | Operation::Read { handle, .. }
            | Operation::Flush { handle, .. }
            | Operation::Sync { handle }
            | Operation::Close { handle }
            | Operation::Touch { handle } => *handle,
            _ => return,
        };
        let Some(at) = wanted.checked_rem(self.handles.len()) else {
            return;
        };
        let (file, model) = (Arc::clone(&self.handles[at]), &mut self.model);
        let before = model.read(at);
        match operation {
            Operation::Write { offset, text, .. } => {
                let written = write(&file, *offset as u64, &text.bytes());
                assert_eq!(written, model.write(at, *offset, &text.bytes()));
            }
            Operation::SetLen { len, .. } => {
                let change = AttributeChange {
                    size: Some(*len as u64),
                    ..AttributeChange::default()
                };
                let cut = done(file.change_attributes(&change));
                // The length of the changed bytes is not always known.
                let may_be_stale = !matches!(before, Readable::Bytes(_));
                if cut == Err(libc::ESTALE) && may_be_stale {
                    model.tried_to_write(at);
                } else {
                    assert_eq!(cut, model.set_len(at, *len));
                }
            }
            Operation::Read { offset, .. } => self.compare_read(at, *offset),
            Operation::Flush { is_by_child, .. } => {
                let flushed = done(by(&file).flush(Some(thread(*is_by_child))));
                assert_eq!(flushed, model.flush(at, *is_by_child));
            }
            Operation::Sync { .. } => assert_eq!(done(file.sync(0)), model.sync(at)),
            Operation::Close { .. } => self.close(at),
            _ => {
                self.n_times += 1;
                let touched = done(file.change_attributes(&self.times()));
                let is_refused = before == Readable::Lost && touched == Err(libc::ESTALE);
                assert!(is_refused || touched.is_ok(), "{touched:?}");
                self.model.touch(at);
            }
        }
    }

    /// Times that no file has had. They are in the future, so that the mount does not wait for them to become old.
    fn times(&self) -> AttributeChange {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = i64::try_from(now.unwrap().as_secs()).unwrap();
        let mtime = NewTime::At {
            seconds: seconds + 2_000_000,
            nanoseconds: self.n_times,
        };
        AttributeChange {
            size: None,
            attributes: NewAttributes {
                mtime: Some(mtime),
                ..NewAttributes::default()
            },
        }
    }

    fn open(&mut self, file: usize, access: HandleAccess, is_cut: bool) {
        const MOST_HANDLES: usize = 6;
        if self.handles.len() == MOST_HANDLES {
            return;
        }
        let path = self.path(file);
        if self.model.shown(file).is_none() {
            let (directory, name) = parent(&self.mount, path);
            let made = self.mount.view.create(directory, &name, NEW, thread(false));
            self.handles.push(done(made).unwrap().1.file);
            self.model.create(file);
            return;
        }
        let id = self.mount.vnode(path).unwrap();
        let opened = match access {
            HandleAccess::Reads => self.mount.view.open(id),
            _ => self.mount.view.open_for(id, access, thread(false)),
        };
        let opened = done(opened).unwrap().expect("it is shown").file;
        self.model.open(file, access);
        self.handles.push(opened);
        let last = self.handles.len() - 1;
        if is_cut && access.writes() {
            let cleared = done(by(&self.handles[last]).clear());
            assert_eq!(cleared, self.model.clear(last));
        }
    }

    fn compare_read(&self, at: usize, offset: usize) {
        if !self.model.handles[at].reads() {
            return;
        }
        let found = done(read_at(&self.handles[at], offset as u64, 4 * LEN));
        let after = |bytes: &[u8]| bytes.get(offset..).unwrap_or_default().to_vec();
        match self.model.read(at) {
            Readable::Bytes(bytes) => assert_eq!(found, Ok(after(&bytes))),
            Readable::BytesOrStale(bytes) if found != Err(libc::ESTALE) => {
                assert_eq!(found, Ok(after(&bytes)));
            }
            Readable::BytesOrStale(_) => {}
            Readable::Lost => assert!(found.is_ok() || found == Err(libc::ESTALE)),
        }
    }

    fn close(&mut self, at: usize) {
        let handle = self.handles.remove(at);
        let flushed = done(by(&handle).flush(Some(thread(false))));
        handle.close();
        assert_eq!(flushed, self.model.close(at));
    }

    fn sync_directory(&mut self) {
        let synced = done(self.mount.view.sync_directory(VnodeId::ROOT));
        let errors = self.model.sync_all();
        match synced {
            Ok(()) => assert!(errors.is_empty(), "{errors:?}"),
            // Another handle got the error that the draft of a file was dropped, and this one may get it, too.
            Err(libc::ESTALE) if self.model.has_lost() => {}
            Err(errno) => assert!(errors.contains(&errno), "{errno}, {errors:?}"),
        }
    }

    /// Ends the mount and makes it anew.
    fn end(&mut self) {
        self.mount.make_anew(self.handles.drain(..));
        self.model.crash();
    }

    /// Compares the shard of the store, which may have earlier contents of its inner chunks.
    fn check_shard(&mut self) {
        let stored = fs::read(self.mount.store().join(SHARD)).ok();
        let chunks = shard::read(stored.as_deref());
        for (slot, chunk) in chunks.into_iter().enumerate() {
            let now = self.model.stored(slot).map(<[u8]>::to_vec);
            let since = &mut self.since[slot];
            since.push(now);
            let found = match chunk {
                Some(chunk) => match self.codec.decode(&chunk) {
                    Some(decoded) => Some(decoded),
                    None => continue,
                },
                None => None,
            };
            assert!(
                since.contains(&found),
                "{found:?} is in slot {slot}, not one of {since:?}"
            );
        }
    }

    /// Notes that the shard surely has the contents of the model.
    fn shard_is_written(&mut self) {
        for (slot, since) in self.since.iter_mut().enumerate() {
            *since = vec![self.model.stored(slot).map(<[u8]>::to_vec)];
        }
    }

    /// Compares the objects of the store.
    fn check_store(&mut self) {
        if self.is_sharded {
            self.check_shard();
        }
        for (file, (path, manner)) in self.names.into_iter().enumerate() {
            if self.is_sharded {
                break;
            }
            let stored = fs::read(self.mount.store().join(path)).ok();
            let wanted = self.model.stored(file);
            assert_eq!(stored.is_some(), wanted.is_some(), "{path} is in the store");
            let decoded = match manner {
                Manner::Chunk => stored.and_then(|bytes| self.codec.decode(&bytes)),
                _ => stored,
            };
            if let Some(decoded) = decoded {
                assert_eq!(Some(&*decoded), wanted, "{path} in the store");
            }
        }
        let stored = fs::read(self.mount.store().join("a/zarr.json")).unwrap();
        let stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
        let mut wanted: serde_json::Value =
            serde_json::from_str(&self.codec.document(self.is_sharded)).unwrap();
        wanted["attributes"]["n"] = self.n.into();
        assert_eq!(stored, wanted);
    }

    /// Compares the bytes that another open of the file shows.
    fn check_shown(&mut self, file: usize) {
        let path = self.path(file);
        let wanted = self.model.shown(file);
        let len = self.mount.len(path);
        let wanted_len = wanted.as_ref().map(|bytes| bytes.len() as u64);
        assert_eq!(len, wanted_len.ok_or(libc::ENOENT), "the length of {path}");
        let Some(wanted) = wanted else { return };
        let id = self.mount.vnode(path).unwrap();
        let opened = done(self.mount.view.open(id))
            .unwrap()
            .expect("it is shown");
        let handle = self.model.open(file, HandleAccess::Reads);
        assert_eq!(opened.attributes.size, wanted.len() as u64);
        let found = done(read_at(&opened.file, 0, 4 * LEN));
        opened.file.close();
        assert_eq!(found, Ok(wanted), "what {path} shows");
        assert_eq!(self.model.close(handle), Ok(()));
    }

    /// Does the operations, then closes all handles and compares the contents with the model.
    pub(crate) fn run(mut self, operations: &[Operation]) {
        for operation in operations {
            self.step(operation);
        }
        self.finish();
    }

    fn finish(mut self) {
        while !self.handles.is_empty() {
            self.close(0);
        }
        self.step(&Operation::Remount);
        let others = self.mount.seen_by_others(self.kind);
        for (file, (path, _)) in self.names.into_iter().enumerate() {
            let found = done(read(&others, path)).unwrap();
            assert_eq!(found, self.model.shown(file), "{path}, seen by others");
        }
        for directory in ["a", "a/c/0", "a/c/1"] {
            let names = fs::read_dir(self.mount.store().join(directory)).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name());
            let is_left = |name: std::ffi::OsString| name.to_string_lossy().contains("partial");
            assert!(!names.any(is_left), "a file of a writer is left");
        }
        others.threads().finish(Duration::from_secs(10));
    }
}

/// A thread of the process that opens files, or of another one.
fn thread(is_by_child: bool) -> u32 {
    if is_by_child {
        OTHER_PROCESS
    } else {
        std::process::id()
    }
}
