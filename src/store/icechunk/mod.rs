//! An Icechunk repository as a store, read in place: the nodes and chunks of one snapshot, as the keys of Zarr v3.
//!
//! ```text
//! repo, or refs/branch.NAME/ref.json    branches    which snapshot a branch or a tag stands for
//! snapshots/ID                          snapshot    the nodes, with their documents and their manifests
//! manifests/ID                          manifest    where each chunk is
//! chunks/ID                             object      bytes of chunks
//! URLs of objects elsewhere             virtual_chunk
//! ```
//!
//! A key is found in the snapshot, or in the manifest of its chunk ([`names`]). The tables in these files are read in
//! place ([`flat`]), out of bytes that were decompressed up to a limit ([`envelope`]).
//!
//! # Snapshots
//!
//! The store shows one snapshot at a time ([`pinned`]). Each request looks whether the branch has another one, which
//! takes the place of the whole store then. Objects that were opened before stay as they were: nothing that a snapshot
//! consists of ever changes. A chunk has a version of its own, which it keeps from one snapshot to the next
//! ([`attributes`]).
//!
//! # Rights
//!
//! All of a repository is shown with one owner and mode, which grant it to those users alone who may read the files that
//! every reader needs. A file of a repository that fewer users may read is an error. A virtual chunk is shown to those who
//! may read its file too.

mod attributes;
mod branches;
mod config_file;
mod containers;
mod envelope;
mod files;
mod flat;
mod flex;
mod limits;
mod listing;
mod manifest;
mod names;
mod not_read;
mod object;
mod object_id;
mod pinned;
mod prefixes;
mod reference;
mod snapshot;
mod virtual_chunk;

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;

use self::branches::BranchFile;
pub(super) use self::branches::{MAIN_BRANCH, REPOSITORY};
use self::files::{RepositoryFiles, key_of};
use self::limits::Limits;
use self::listing::SnapshotListing;
use self::manifest::ChunkPlace;
use self::names::{ChunkReader, Named};
use self::not_read::not_read;
use self::object::{HeldObject, NativeChunk};
use self::pinned::{Pinned, Pinning};
pub use self::reference::IcechunkAddress;
use self::reference::Reference;
use super::targets::{Address, Home, Targets};
use super::{
    Access, Capacity, Cursor, Detail, Key, Listing, Object, ObjectMeta, OpenOptions, Prefix,
    Profile, Sharing, Stat, Store, StoreError,
};

/// The bytes at the start of `repo` that are read to find out whether it is a file of Icechunk.
const HEAD_BYTES: usize = 12;

/// The memory that the files of a repository may take, unless the caller says it.
const MEMORY_BYTES: u64 = 256 << 20;

/// A repository, as a store of one snapshot at a time.
#[derive(Debug)]
pub struct IcechunkStore {
    files: Arc<RepositoryFiles>,
    targets: Arc<Targets>,
    pinning: Pinning,
    /// The node that is the root of the store.
    root: Prefix,
    sharing: Sharing,
    /// The description for `--info`, made when it is needed.
    described: OnceLock<Option<String>>,
}

impl IcechunkStore {
    /// Opens the snapshot at `address` of the repository that `home` is.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] when `home` is no repository, or the repository has no such branch, tag, snapshot or
    /// node; and errors of reading its files.
    pub(super) fn open(
        home: Home,
        address: IcechunkAddress,
        options: &OpenOptions,
    ) -> Result<IcechunkStore, StoreError> {
        let IcechunkAddress { reference, root } = address;
        let store = Arc::clone(&home.store);
        let file = match &reference {
            Reference::Snapshot(_) => None,
            Reference::Branch(_) | Reference::Tag(_) => Some(find_file(&*store, &reference)?),
        };
        let budget = options.memory_bytes.unwrap_or(MEMORY_BYTES);
        let mut files = RepositoryFiles::new(store, Limits::of_budget(budget));
        let pinning = Pinning::new(reference, file);
        let pinned = pinning.current(&files)?;
        let adapted = files.adapt(&pinned.snapshot);
        let opened = IcechunkStore {
            files: Arc::new(files),
            targets: Arc::new(Targets::new(home, Address::parse, options)),
            pinning,
            root,
            sharing: options.sharing,
            described: OnceLock::new(),
        };
        opened.reader(&pinned).of_snapshot(adapted)?;
        if let Some(root) = opened.root.to_key() {
            let path = root.to_text();
            let reader = opened.reader(&pinned);
            if !matches!(reader.named(&path)?, Named::Prefix) {
                let reference = &opened.pinning.reference;
                let problem = format!("the {reference} has no node {root}");
                return Err(StoreError::Unsupported(problem));
            }
        }
        Ok(opened)
    }

    /// Opens the snapshot at `address` of the repository in `store`, which need not be a place that has an address. Virtual
    /// chunks are in what `options` allow.
    ///
    /// # Errors
    /// [`StoreError`] where the repository, or the snapshot, cannot be read.
    pub fn within(
        store: Arc<dyn Store>,
        address: IcechunkAddress,
        options: &OpenOptions,
    ) -> Result<IcechunkStore, StoreError> {
        IcechunkStore::open(Home::new(Address::nowhere(), store), address, options)
    }

    /// Whether a repository is in `store`.
    ///
    /// # Errors
    /// Those of [`Store::stat`] and [`Object::read_at`].
    pub fn is_repository(store: &dyn Store) -> Result<bool, StoreError> {
        let keys = [Key::parse(REPOSITORY)?, Key::parse(MAIN_BRANCH)?];
        let [repository, main] = &keys;
        let mut found = store.stat_objects(&keys).into_iter();
        // An object that cannot be examined counts as absent: that is no reason to take the store for a repository.
        let mut is_object = || matches!(found.next(), Some(Ok(Some(_))));
        let (has_repository, has_main) = (is_object(), is_object());
        if has_repository && let Some(object) = store.open(repository)? {
            let mut head = [0; HEAD_BYTES];
            let is_long = object.meta().size() >= HEAD_BYTES as u64;
            if is_long {
                object.read_at(0, &mut head)?;
            }
            if envelope::has_magic(&head) {
                return Ok(true);
            }
        }
        if !has_main {
            return Ok(false);
        }
        let mut file = Vec::new();
        let fetched = store.fetch(main, 4096, &mut file)?;
        let is_read = fetched.is_some_and(|fetched| fetched.is_read);
        Ok(is_read && branches::in_json(&file).is_ok())
    }

    fn pinned(&self) -> Result<Arc<Pinned>, StoreError> {
        self.pinning.current(&self.files)
    }

    fn reader<'r>(&'r self, pinned: &'r Pinned) -> ChunkReader<'r> {
        ChunkReader {
            files: &self.files,
            pinned,
            targets: &self.targets,
            shown: self.shown_to_others(pinned),
        }
    }

    /// The access that the repository is shown with, if other users can reach the mount.
    fn shown_to_others(&self, pinned: &Pinned) -> Option<Access> {
        match self.sharing {
            Sharing::Nobody => None,
            Sharing::Others => Some(pinned.access),
        }
    }

    /// The path of a key in the repository; `None` if there is none, because all paths are UTF-8.
    fn path(&self, key: &[u8]) -> Option<String> {
        String::from_utf8(self.root.join(key)).ok()
    }

    fn object(
        &self,
        pinned: &Pinned,
        key: &Key,
        named: Named<'_>,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let held = |bytes: Bytes, meta: ObjectMeta| HeldObject {
            key: key.clone(),
            bytes,
            meta,
        };
        match named {
            Named::Nothing => Ok(None),
            Named::Prefix => Err(StoreError::not_an_object(key, "a prefix")),
            Named::Document(node) => {
                let document = self.reader(pinned).of_snapshot(node.document())?;
                let meta = pinned.document_meta(node.path, document);
                let bytes = pinned.snapshot.shared(document);
                Ok(Some(Arc::new(held(bytes, meta))))
            }
            Named::Chunk { node, index, place } => {
                let meta = pinned.chunk_meta(node.path, &index, &place);
                match place {
                    ChunkPlace::Inline(bytes) => Ok(Some(Arc::new(held(bytes, meta)))),
                    ChunkPlace::Native { file, offset, .. } => Ok(Some(Arc::new(NativeChunk {
                        key: key.clone(),
                        meta,
                        files: Arc::clone(&self.files),
                        file: key_of("chunks", file)?,
                        offset,
                        shown: self.shown_to_others(pinned),
                        opened: OnceLock::new(),
                    }))),
                    ChunkPlace::Virtual(place) => {
                        let reader = self.reader(pinned);
                        reader.found_virtual(&place).open(key, &meta).map(Some)
                    }
                }
            }
        }
    }
}

/// The file of the repository in `store` that has the branch or tag `reference`.
fn find_file(store: &dyn Store, reference: &Reference) -> Result<BranchFile, StoreError> {
    let repository = BranchFile::of_version_2()?;
    let single = BranchFile::of_version_1(reference)?;
    let main = Key::parse(MAIN_BRANCH)?;
    let mut keys = vec![repository.key().clone(), main];
    keys.extend(single.as_ref().map(|file| file.key().clone()));
    let mut found = store.stat_objects(&keys).into_iter();
    let mut is_there = || Ok(found.next().unwrap_or(Ok(None))?.is_some());
    let (has_repository, has_main): (bool, bool) = (is_there()?, is_there()?);
    match single {
        _ if has_repository => Ok(repository),
        Some(single) if has_main || is_there()? => Ok(single),
        _ => Err(StoreError::Unsupported(
            "this is no Icechunk repository: it has neither `repo` nor `refs/branch.main/ref.json`"
                .to_owned(),
        )),
    }
}

impl Store for IcechunkStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let pinned = self.pinned()?;
        let Some(path) = self.path(key.as_bytes()) else {
            return Ok(None);
        };
        let reader = self.reader(&pinned);
        Ok(match reader.named(&path)? {
            Named::Nothing => None,
            Named::Prefix => Some(Stat::of_prefix(pinned.prefix_meta())),
            Named::Document(node) => {
                let document = reader.of_snapshot(node.document())?;
                Some(Stat::of_object(pinned.document_meta(node.path, document)))
            }
            Named::Chunk { node, index, place } => Some(Stat::of_object(reader.chunk_meta(
                key,
                (node.path, &index),
                &place,
            )?)),
        })
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        Ok(self.pinned()?.prefix_meta())
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let pinned = self.pinned()?;
        let Some(path) = self.path(key.as_bytes()) else {
            return Ok(None);
        };
        let named = self.reader(&pinned).named(&path)?;
        self.object(&pinned, key, named)
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let pinned = self.pinned()?;
        let path = match prefix.to_key() {
            Some(key) => self.path(key.as_bytes()),
            None => {
                Some(self.root.as_bytes().to_vec()).and_then(|path| String::from_utf8(path).ok())
            }
        };
        let Some(path) = path else {
            return Ok(None);
        };
        let is_prefix = matches!(self.reader(&pinned).named(&path)?, Named::Prefix);
        if !is_prefix && !prefix.is_root() {
            return Ok(None);
        }
        let shown = self.shown_to_others(&pinned);
        Ok(Some(Box::new(SnapshotListing {
            files: Arc::clone(&self.files),
            pinned,
            targets: Arc::clone(&self.targets),
            shown,
            path,
            after,
            detail,
        })))
    }

    fn known_object(&self, key: &Key) -> Option<Option<ObjectMeta>> {
        let pinned = self.pinning.known(&self.files)?;
        let path = self.path(key.as_bytes())?;
        let reader = self.reader(&pinned);
        let chunk = reader.chunks(&path).ok()??;
        if chunk.first.len() < chunk.array.rank {
            return None;
        }
        let Some(place) = reader.find_known(&chunk)? else {
            return Some(None);
        };
        // Its own attributes may count.
        if matches!(place, ChunkPlace::Virtual(_)) {
            return None;
        }
        let meta = pinned.chunk_meta(chunk.node.path, &chunk.first, &place);
        Some(Some(meta))
    }

    fn ask_again_for(&self, _keys: &[Key]) {
        if let Some(file) = &self.pinning.file {
            self.files
                .store
                .ask_again_for(std::slice::from_ref(file.key()));
        }
    }

    fn begin_open(&self) {
        self.files.store.begin_open();
    }

    fn told_since(&self) -> Option<SystemTime> {
        self.files.store.told_since()
    }

    fn useful_in_flight(&self) -> usize {
        self.targets.useful_in_flight()
    }

    fn profile(&self) -> Profile {
        let own = self.files.store.profile();
        Profile {
            is_local: own.is_local && !self.targets.may_be_remote(),
            most_in_flight: self.targets.most_in_flight(),
            ..own
        }
    }

    fn generation(&self) -> u64 {
        self.files.store.generation()
    }

    fn statistics(&self) -> Vec<(&'static str, u64)> {
        self.files.store.statistics()
    }

    fn snapshot(&self) -> Option<String> {
        let pinned = self.pinned().ok()?;
        let specification = match &self.pinning.file {
            Some(file) => format!(" (specification {})", file.specification()),
            None => String::new(),
        };
        let id = pinned.snapshot.id;
        Some(match &self.pinning.reference {
            Reference::Snapshot(_) => format!("icechunk{specification}, snapshot {id}"),
            reference => format!("icechunk{specification}, {reference}, snapshot {id}"),
        })
    }

    fn held_bytes(&self) -> u64 {
        self.files.held_bytes()
    }

    fn description(&self) -> Option<&str> {
        let described = || {
            let pinned = self.pinned().ok()?;
            not_read(&self.reader(&pinned))
        };
        self.described.get_or_init(described).as_deref()
    }

    fn capacity(&self) -> Option<Capacity> {
        self.files.store.capacity()
    }
}
