//! A zip file as a store, read in place: a key is the name of an entry.
//!
//! The central directory is read once and held in memory ([`Index`]), about 50 bytes an entry and
//! its name. Stored entries are ranges of the file; deflated ones are inflated as they are read
//! (`object`). An entry of any other kind (another method, encryption, bytes that lie outside the
//! file) gives an error when it is opened.
//!
//! # Names
//!
//! Names that are not valid keys are percent-encoded (`names`); an object whose key other keys lie
//! below gets `~` appended (`index`). The last of several entries with one name counts.
//!
//! # Versions
//!
//! A version of an entry is the version of the file (size, mtime, inode, device) and the number of
//! the entry in it. Each [`Store::stat`], [`Store::open`] and [`Store::list`] checks whether the
//! file is still the one that was read, and reads its directory again when it is not. Open objects
//! keep their version: they stay readable after the file was replaced by rename(2), and return
//! [`StoreError::Changed`] after it was changed in place.
//!
//! If a file changed less than [`GRAIN`](super::GRAIN) ago, the store waits before it reads it. A second
//! change within that time would leave the version as it is, and a directory that was read between the
//! two would be trusted for ever.
//!
//! # Zip files on servers
//!
//! The zip file may be an object of a store that has no files. Its last bytes are in memory, and
//! each read of other bytes is a request ([`ZipFile`]), so a local header is read together with the
//! first bytes of its entry (`entry_read`). The store that has the object decides when it asks the
//! server for the version again.
//!
//! # Memory
//!
//! Nothing is allocated from numbers in the file: the directory grows entry by entry, up to a
//! limit, and a name takes as much memory as it has bytes.

mod archive;
mod directory;
mod entry_read;
mod extent;
mod file;
mod index;
mod inflate;
mod listing;
mod local_header;
mod memory;
mod names;
mod object;
#[cfg(test)]
mod tests;
mod time;
mod together;

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Instant, SystemTime};

use parking_lot::RwLock;

use super::{
    Access, Capacity, Cursor, Detail, FetchRequest, Fetched, Key, Listing, Object, ObjectMeta,
    Prefix, Profile, Sharing, Stat, StatKind, Store, StoreError, Version,
};
use archive::Archive;
use directory::looks_like_zip;
pub(super) use file::TAIL_BYTES;
use file::{ZipFile, ZipPath, read_error};
use index::Index;
use listing::ZipListing;
use object::ZipObject;

/// A zip file as a store.
#[derive(Debug)]
pub struct ZipStore {
    place: ZipPath,
    /// The prefix in the zip file that is the root of the store.
    root: Prefix,
    /// The prefix of keys in messages, which is the key of the zip file in another store.
    outer: Prefix,
    profile: Profile,
    /// The description of the zip file, for people.
    described: Option<String>,
    current: RwLock<Option<CurrentArchive>>,
}

/// The version that was read last.
#[derive(Debug)]
struct CurrentArchive {
    version: Version,
    /// Owner and mode of the file, with which its entries are reported.
    access: Access,
    /// The central directory, or the error, so that a broken file is not read at every request.
    archive: Result<Arc<Archive>, StoreError>,
}

/// The entry that a key names in the zip file.
enum KeyMatch {
    Entry(usize),
    Prefix,
    Nothing,
}

impl CurrentArchive {
    fn is(&self, found: &ObjectMeta) -> bool {
        self.version == found.version && self.access == found.access()
    }
}

impl ZipStore {
    /// Opens the zip file at `path` and reads its central directory.
    ///
    /// # Errors
    /// [`StoreError::Denied`], [`StoreError::NotAnObject`] or [`StoreError::Io`] when `path` is
    /// no file that can be read, or no zip file.
    pub fn open(path: &Path) -> Result<ZipStore, StoreError> {
        ZipStore::shared(path, Sharing::Nobody)
    }

    /// Like [`ZipStore::open`], reported with the mode that `sharing` asks for.
    ///
    /// # Errors
    /// Those of [`ZipStore::open`].
    pub fn shared(path: &Path, sharing: Sharing) -> Result<ZipStore, StoreError> {
        ZipStore::at(ZipPath::new(path, sharing)?, Prefix::root())
    }

    /// Opens the zip file at `key` of `store`.
    ///
    /// # Errors
    /// Those of [`ZipStore::open`].
    pub(super) fn within(store: &Arc<dyn Store>, key: &Key) -> Result<ZipStore, StoreError> {
        ZipStore::at(ZipPath::within(store, key), key.to_prefix())
    }

    /// The zip file at `key` of `store`, where `object` was opened; `None` if that is not a zip
    /// file. Messages call it `shown`.
    ///
    /// # Errors
    /// Those of [`ZipStore::open`].
    pub(super) fn of_object(
        store: &Arc<dyn Store>,
        key: &Key,
        object: Arc<dyn Object>,
        shown: String,
    ) -> Result<Option<ZipStore>, StoreError> {
        let place = ZipPath::within(store, key).shown_as(shown);
        ZipStore::opened(place, key, object, Prefix::root())
    }

    /// Like [`ZipStore::within`], with an `object` that is already open. `None` if it is not a zip file.
    ///
    /// # Errors
    /// Those of [`ZipStore::open`].
    pub(super) fn within_opened(
        store: &Arc<dyn Store>,
        key: &Key,
        object: Arc<dyn Object>,
    ) -> Result<Option<ZipStore>, StoreError> {
        let place = ZipPath::within(store, key);
        ZipStore::opened(place, key, object, key.to_prefix())
    }

    fn opened(
        place: ZipPath,
        key: &Key,
        object: Arc<dyn Object>,
        outer: Prefix,
    ) -> Result<Option<ZipStore>, StoreError> {
        let file = ZipFile::of_object(object)?;
        if !looks_like_zip(&file).map_err(|error| read_error(key, &error))? {
            return Ok(None);
        }
        let mut current = None;
        // A file that may still change without a trace is opened again, once it cannot do that any
        // more.
        if file.meta.settles_in(SystemTime::now()).is_none() {
            current = Some(CurrentArchive {
                version: file.meta.version,
                access: file.meta.access(),
                archive: Ok(Arc::new(Archive::read(&place, file)?)),
            });
        }
        ZipStore::with_current(place, outer, current).map(Some)
    }

    fn at(place: ZipPath, outer: Prefix) -> Result<ZipStore, StoreError> {
        ZipStore::with_current(place, outer, None)
    }

    fn with_current(
        place: ZipPath,
        outer: Prefix,
        current: Option<CurrentArchive>,
    ) -> Result<ZipStore, StoreError> {
        let store = ZipStore {
            place,
            root: Prefix::root(),
            outer,
            profile: Profile::local(),
            described: None,
            current: RwLock::new(current),
        };
        let archive = store.archive()?;
        let profile = match (archive.file.descriptor(), store.place.store()) {
            (Some(file), _) => Profile::of_file_system(file),
            // Reading a document takes a request, as in the store that has the zip file.
            (None, Some(below)) => below.profile(),
            (None, None) => Profile::local(),
        };
        Ok(ZipStore { profile, ..store })
    }

    /// The store whose root is the prefix `root` of this zip file.
    #[must_use]
    pub fn below(self, root: Prefix) -> ZipStore {
        ZipStore { root, ..self }
    }

    /// The same store, with the description `described` of its zip file and, where the file tells it, the version of
    /// OME-Zarr.
    pub(super) fn described_as(self, mut described: String) -> ZipStore {
        let version = self.archive().ok();
        if let Some(version) = version.and_then(|archive| archive.ome_version.clone()) {
            described = format!("{described}, with OME-Zarr {version}");
        }
        let described = Some(described);
        ZipStore { described, ..self }
    }

    /// Whether the file at `path` begins or ends as a zip file does.
    ///
    /// # Errors
    /// Those of [`ZipStore::open`], when it cannot be read.
    pub fn is_zip(path: &Path) -> Result<bool, StoreError> {
        let file = ZipPath::new(path, Sharing::Nobody)?.open()?;
        looks_like_zip(&file).map_err(|error| StoreError::io(path.display(), &error))
    }

    /// Like [`ZipStore::is_zip`], for the file at `key` of `store`.
    ///
    /// # Errors
    /// Those of [`ZipStore::open`], when it cannot be read.
    pub(super) fn is_zip_in(store: &Arc<dyn Store>, key: &Key) -> Result<bool, StoreError> {
        let file = ZipPath::within(store, key).open()?;
        looks_like_zip(&file).map_err(|error| read_error(key, &error))
    }

    /// Attributes of the root prefix of a zip file with the attributes `file`.
    pub(super) fn prefix_meta_of(file: &ObjectMeta) -> ObjectMeta {
        archive::prefix_meta(file)
    }

    /// The length of the zip file.
    ///
    /// # Errors
    /// Those of [`ZipStore::open`].
    pub(super) fn file_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.archive()?.file.meta.size())
    }

    /// Memory of the central directory, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let current = self.current.read();
        let archive = current
            .as_ref()
            .and_then(|current| current.archive.as_ref().ok());
        archive.map_or(0, |archive| archive.index.memory_bytes())
    }

    /// The current version of the zip file.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it is written into all the time.
    fn archive(&self) -> Result<Arc<Archive>, StoreError> {
        let found = self.place.stat()?;
        let current = self.current.read();
        if let Some(current) = current.as_ref().filter(|c| c.is(&found)) {
            return current.archive.clone();
        }
        drop(current);
        // Concurrent callers wait here, and use the archive that the first one reads.
        let mut current = self.current.write();
        let patience = Instant::now() + found.dating.patience();
        loop {
            let file = self.open_settled(patience)?;
            let (version, access) = (file.meta.version, file.meta.access());
            if let Some(current) = current.as_ref().filter(|c| c.is(&file.meta)) {
                return current.archive.clone();
            }
            let archive = Archive::read(&self.place, file).map(Arc::new);
            if self.place.stat()?.version != version {
                if Instant::now() > patience {
                    return Err(StoreError::changed(&self.place.shown));
                }
                continue;
            }
            // An error of the system may be temporary, and is not remembered.
            if archive.is_ok() || matches!(archive, Err(StoreError::Damaged { .. })) {
                *current = Some(CurrentArchive {
                    version,
                    access,
                    archive: archive.clone(),
                });
            }
            return archive;
        }
    }

    /// Opens the file, and waits until its version can be trusted.
    fn open_settled(&self, patience: Instant) -> Result<ZipFile, StoreError> {
        loop {
            let file = self.place.open()?;
            let Some(wait) = file.meta.settles_in(SystemTime::now()) else {
                return Ok(file);
            };
            if Instant::now() > patience {
                return Err(StoreError::changed(&self.place.shown));
            }
            thread::sleep(wait);
        }
    }

    fn open_entry(
        &self,
        archive: &Arc<Archive>,
        key: &Key,
    ) -> Result<Option<Arc<ZipObject>>, StoreError> {
        match self.find(&archive.index, key) {
            KeyMatch::Entry(at) => {
                let shown = self.outer.key(key.as_bytes())?;
                Ok(ZipObject::open(archive, at, &shown)?.map(Arc::new))
            }
            KeyMatch::Prefix => Err(StoreError::not_an_object(key, "a prefix")),
            KeyMatch::Nothing => Ok(None),
        }
    }

    /// The prefix of the names of all keys below `prefix` in the zip file.
    fn start_of(&self, prefix: &Prefix) -> Vec<u8> {
        self.root.join(&prefix.join(b""))
    }

    /// The number of the entry with this key, or else whether the key is a prefix of others.
    fn find(&self, index: &Index, key: &Key) -> KeyMatch {
        if let Some(at) = index.find(&self.root.join(key.as_bytes())) {
            return KeyMatch::Entry(at);
        }
        let below = index.beginning_with(&self.start_of(&key.to_prefix()));
        if below.is_empty() {
            KeyMatch::Nothing
        } else {
            KeyMatch::Prefix
        }
    }
}

impl Store for ZipStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let archive = self.archive()?;
        let (kind, meta) = match self.find(&archive.index, key) {
            KeyMatch::Entry(at) => (StatKind::Object, archive.meta(at)),
            KeyMatch::Prefix => (StatKind::Prefix, Some(archive.prefix_meta())),
            KeyMatch::Nothing => return Ok(None),
        };
        Ok(meta.map(|meta| Stat::new(kind, meta)))
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        Ok(self.archive()?.prefix_meta())
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let entry = self.open_entry(&self.archive()?, key)?;
        Ok(entry.map(|entry| entry as Arc<dyn Object>))
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        match self.archive() {
            Ok(archive) if archive.file.object().is_some() => {
                let keys = requests.iter().map(|request| request.key);
                let opened = keys.map(|key| self.open_entry(&archive, key)).collect();
                together::fetch(&archive, opened, requests)
            }
            _ => {
                let each = requests.iter_mut();
                each.map(|request| self.fetch(request.key, request.most_bytes, request.buffer))
                    .collect()
            }
        }
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let archive = self.archive()?;
        let start = self.start_of(prefix);
        let below = archive.index.beginning_with(&start);
        if below.is_empty() && !prefix.is_root() {
            return Ok(None);
        }
        let listing = ZipListing::new(archive, start, below, &after, detail);
        Ok(Some(Box::new(listing)))
    }

    fn told_since(&self) -> Option<SystemTime> {
        self.place.store()?.told_since()
    }

    fn profile(&self) -> Profile {
        self.profile
    }

    fn statistics(&self) -> Vec<(&'static str, u64)> {
        let below = self.place.store().map(|store| store.statistics());
        below.unwrap_or_default()
    }

    fn description(&self) -> Option<&str> {
        self.described.as_deref()
    }

    fn capacity(&self) -> Option<Capacity> {
        Capacity::of_file_system(self.archive().ok()?.file.descriptor()?)
    }
}
