//! A store: bytes by key, in one place with one address.
//!
//! The traits here are all that the rest of the crate knows of storage. Directories, zip files and
//! memory implement them, and they suit an object store as well:
//!
//! * An [`Object`] is one *version* of the bytes of a key. It is opened once, and everything
//!   that must agree (a shard's index and its chunks) is read through it; when the version is
//!   gone, reads fail with [`StoreError::Changed`] and never mix two versions.
//! * A listing is a stream. Its entries carry what the store knows anyway (sizes and times), and it
//!   resumes at a [`Cursor`], so that a directory of any size costs no memory.
//! * Nothing here knows Zarr.
//!
//! Absence is `Ok(None)`. Any other reason for missing bytes is an error, because a Zarr reader
//! takes absence for the fill value.

mod access;
mod cancel;
mod chain;
mod cursor;
mod demo;
mod dir;
#[cfg(feature = "remote")]
mod disk_cache;
mod error;
mod fetch;
#[cfg(feature = "icechunk")]
mod icechunk;
mod key;
mod kinds;
mod limits;
mod listing;
mod location;
mod memory;
mod meta;
mod nested;
mod opening;
mod packed;
mod profile;
mod received;
mod recency;
mod references;
#[cfg(feature = "remote")]
mod remote;
mod stat;
mod targets;
#[cfg(any(test, debug_assertions))]
pub mod testing;
mod writer;
mod zip;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::fstatvfs;

pub use access::{Access, ReadRight, Readers};
pub use cancel::CancelToken;
pub use chain::{spelled_with_steps, split_step_off};
pub use cursor::Cursor;
pub use dir::{
    Allocation, Caller, ChangeNote, Commit, DirStore, DirWriter, DocumentChange, Draft, Durability,
    FileChange, HeldDirectory, JOURNAL_DIRECTORY, Journal, JournalFile, JournalRecord,
    KeptDirectory, LeftJournal, NewAttributes, NewFile, NewTime, OWN_DIRECTORY, PartContent,
    PartHasher, RenameMode, Replaces, Sharing, StoredFile, Symlinks, WriterOptions, copy_range,
};
#[cfg(all(test, not(feature = "model")))]
pub(crate) use dir::{coarse, power_loss, recorded};
#[cfg(feature = "remote")]
pub use disk_cache::DEFAULT_DISK_CACHE_BYTES;
pub(crate) use error::unless_absent;
pub use error::{Refusal, StoreError};
pub use fetch::{FetchBuffer, FetchRequest, Fetched, FirstRead, ObjectStart, OpenedPart};
#[cfg(feature = "icechunk")]
pub use icechunk::{IcechunkAddress, IcechunkStore};
pub use key::{Key, Prefix};
pub use limits::{address_limit, descriptor_limit};
pub use listing::{Detail, EntryKind, ListEntry, Listing};
#[cfg(feature = "icechunk")]
use location::percent_decoded;
use location::spelled_path_of_file_url;
pub use location::{Location, path_of_file_url};
pub use memory::MemoryStore;
#[cfg(any(test, debug_assertions))]
pub use memory::MemoryWriter;
pub use meta::{Arrival, Dating, FileIdentity, GRAIN, ObjectMeta, SERVER_YOUTH, Times, Version};
pub use nested::{NestedForms, NestedStores, is_named_as_zip, may_be_store_file};
pub use opening::{OpenOptions, open_directory_of_stores, open_store, open_store_for};
pub use profile::Profile;
pub use received::ReceivedBytes;
pub use recency::{AnswerTimes, Recency};
pub use references::ReferenceStore;
#[cfg(feature = "remote")]
pub use remote::{
    DEFAULT_REQUESTS, DiskCacheOptions, HeaderOption, PrivateAddresses, RemoteOptions,
    RemoteStatistics, RemoteStore, RemoteUrl, Service,
};
pub use stat::{Stat, StatKind};
pub use targets::AllowedPrefix;
pub use writer::StoreWriter;
pub use zip::ZipStore;

/// Bytes by key. Shared by every thread; an implementation locks as little as it can.
///
/// A store around another one has it as [`Store::inner`], and passes on the requests itself. All other methods ask
/// the inner store unless it says otherwise.
pub trait Store: Send + Sync + fmt::Debug {
    /// The store that this one wraps, which has the same keys. `None` if it wraps no store.
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    /// The object or prefix at `key`, without opening it. `None` when there is neither.
    ///
    /// # Errors
    /// [`StoreError::Denied`] when the store refuses to say or a link leaves the store,
    /// [`StoreError::NotAnObject`] for a FIFO, socket or device, [`StoreError::Io`] otherwise.
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError>;

    /// [`Store::stat`] of each of `keys`, in their order. A remote store sends the requests
    /// concurrently.
    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        keys.iter().map(|key| self.stat(key)).collect()
    }

    /// The attributes of each of `keys` that is an object, in their order; `None` if nothing is.
    /// In a remote store this takes one request for each key, and [`Store::stat_many`] takes two.
    fn stat_objects(&self, keys: &[Key]) -> Vec<Result<Option<ObjectMeta>, StoreError>> {
        let found = keys.iter().zip(self.stat_many(keys));
        found
            .map(|(key, stat)| match stat? {
                None => Ok(None),
                Some(stat) => match stat.object_meta() {
                    Some(meta) => Ok(Some(meta)),
                    None => Err(StoreError::not_an_object(key, "a directory")),
                },
            })
            .collect()
    }

    /// Like [`Store::stat_objects`], for one key.
    ///
    /// # Errors
    /// As [`Store::stat`], and [`StoreError::NotAnObject`] for a prefix.
    fn stat_object(&self, key: &Key) -> Result<Option<ObjectMeta>, StoreError> {
        let mut found = self.stat_objects(std::slice::from_ref(key));
        found.pop().unwrap_or(Ok(None))
    }

    /// The attributes of the root prefix.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the store has gone away.
    fn stat_root(&self) -> Result<ObjectMeta, StoreError>;

    /// Opens the current version of the object at `key`. `None` when nothing is there.
    ///
    /// # Errors
    /// Those of [`Store::stat`]; [`StoreError::NotAnObject`] also when `key` is a prefix.
    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError>;

    /// Like [`Store::open`], where the bytes `first` are read first. A remote store may get them in the
    /// request that opens the object.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    fn open_reading(
        &self,
        key: &Key,
        _first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        self.open(key)
    }

    /// Like [`Store::open`], for a caller that has memory for the bytes `part`, which it reads next. A remote store that
    /// knows nothing of the object gets them in the request that opens it.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    fn open_part(&self, key: &Key, _part: &Range<u64>) -> Result<Option<OpenedPart>, StoreError> {
        let opened = self.open(key)?;
        let bytes = None;
        Ok(opened.map(|object| OpenedPart { object, bytes }))
    }

    /// The object at `key`, if that is known without a request. The inner `None` means that there is no object.
    fn known_object(&self, key: &Key) -> Option<Option<ObjectMeta>> {
        self.inner()?.known_object(key)
    }

    /// When the answer about `key`, or its absence, was requested and arrived; the present time, if no answer is
    /// remembered.
    /// `None` if the store examines the key each time, or if all its answers are about one version.
    fn told_at(&self, key: &Key) -> Option<AnswerTimes> {
        self.inner()?.told_at(key)
    }

    /// The time before which no remembered answer about objects was given, so that the store need not be asked. `None`
    /// if the store remembers no answers, or never changes.
    fn told_since(&self) -> Option<SystemTime> {
        self.inner()?.told_since()
    }

    /// Forgets what the store remembers of the objects at `keys`, which may be absent.
    fn ask_again_for(&self, keys: &[Key]) {
        if let Some(inner) = self.inner() {
            inner.ask_again_for(keys);
        }
    }

    /// Tells that a file is about to be opened. Before that, the store has to check that no other store has taken its
    /// place.
    fn begin_open(&self) {
        if let Some(inner) = self.inner() {
            inner.begin_open();
        }
    }

    /// Opens the object as [`Store::open`] does and, if it has at most `most_bytes`, reads all of
    /// it into `buffer`; in a single request where the store supports that.
    ///
    /// # Errors
    /// Those of [`Store::open`] and [`Object::read_at`].
    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        let opened = self.open(key)?;
        let fetched = opened.map(|object| Fetched::of_object(object, most_bytes, buffer));
        fetched.transpose()
    }

    /// [`Store::fetch`] of each of `requests`, in their order. A remote store sends the requests
    /// concurrently.
    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let each = requests.iter_mut();
        each.map(|request| self.fetch(request.key, request.most_bytes, request.buffer))
            .collect()
    }

    /// Whether [`Store::fetch_many`] sends its requests concurrently, so that several objects take no longer than one.
    fn fetches_at_once(&self) -> bool {
        self.inner().is_some_and(Store::fetches_at_once)
    }

    /// The attributes of each of the objects at `keys`, and its first bytes, up to `most_bytes`; `None` if nothing
    /// is. A remote store sends the requests concurrently.
    fn starts_of(&self, keys: &[Key], most_bytes: u64) -> Vec<Result<ObjectStart, StoreError>> {
        keys.iter()
            .map(|key| fetch::start_of(self.open(key)?, most_bytes))
            .collect()
    }

    /// Whether `path` is an object that is a prefix too, because a store is in it, and this store is not open. Opening
    /// it takes requests, or much time, so a listing leaves it closed.
    fn is_unopened(&self, path: &Prefix) -> bool {
        self.inner().is_some_and(|inner| inner.is_unopened(path))
    }

    /// Lists one level below `prefix`, in any order that stays the same while nothing changes.
    /// `after` is [`Cursor::START`] or the cursor of the last entry already seen. `None` when
    /// there is no such prefix.
    ///
    /// # Errors
    /// Those of [`Store::stat`].
    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError>;

    /// The cost of a request to this store. Sends no request.
    fn profile(&self) -> Profile;

    /// Whether the last reads of a store on a server needed no request, because what they read was in the cache on
    /// disk. Sends no request.
    fn reads_from_disk(&self) -> bool {
        self.inner().is_some_and(Store::reads_from_disk)
    }

    /// A number that changes when the store as a whole was replaced, for example by another directory at the same path.
    /// Data that was cached from the old one is invalid then. Sends no request.
    fn generation(&self) -> u64 {
        self.inner().map_or(0, Store::generation)
    }

    /// Counters of the requests to a server by their names, in the order in which they are shown;
    /// empty where there is no server.
    fn statistics(&self) -> Vec<(&'static str, u64)> {
        self.inner().map_or_else(Vec::new, Store::statistics)
    }

    /// How many requests it is worth to have in flight now: more would queue. At most [`Profile::most_in_flight`].
    fn useful_in_flight(&self) -> usize {
        let by_profile = || self.profile().most_in_flight;
        self.inner()
            .map_or_else(by_profile, Store::useful_in_flight)
    }

    /// A description of the store, as a line for people: of the zip file that contains all of it, of the set of
    /// references that it consists of, or of virtual chunks that are not read. `None` for other stores.
    fn description(&self) -> Option<&str> {
        self.inner()?.description()
    }

    /// A description of the state that the store shows now, as a line for people; `None` if the store has no states
    /// that have names.
    fn snapshot(&self) -> Option<String> {
        self.inner()?.snapshot()
    }

    /// Memory that the store holds while it is open, and that the budget for other memory has to leave it.
    fn held_bytes(&self) -> u64 {
        self.inner().map_or(0, Store::held_bytes)
    }

    /// Whether a server answers the URL of the store itself, as that of a directory.
    fn is_page(&self) -> bool {
        self.inner().is_some_and(Store::is_page)
    }

    /// Opens the store for changes. No other process may make changes meanwhile. `None` if the store cannot be
    /// changed, and in a store around another one, which would not see the changes.
    ///
    /// # Errors
    /// [`StoreError::Denied`] when another process has opened it for changes; [`StoreError::Io`] when
    /// it cannot be locked.
    fn writer(&self, _options: &WriterOptions) -> Result<Option<DirWriter>, StoreError> {
        Ok(None)
    }

    /// The parts of objects that an earlier mount has written, and has not put into the objects.
    ///
    /// # Errors
    /// [`StoreError`] when that cannot be found out.
    fn waiting(&self) -> Result<WaitingParts, StoreError> {
        self.inner()
            .map_or_else(|| Ok(WaitingParts::new()), Store::waiting)
    }

    /// Size and free space of the file system that holds the store, where there is one.
    fn capacity(&self) -> Option<Capacity> {
        self.inner()?.capacity()
    }
}

/// Parts of objects that wait in journals: the key of each object, and the number of the part. The number is the rank
/// of an inner chunk in its shard, in C order, or 0 for an object without parts.
pub type WaitingParts = BTreeSet<(Key, u64)>;

/// One version of the bytes of a key, held open.
pub trait Object: Send + Sync + fmt::Debug {
    /// Attributes of this version.
    fn meta(&self) -> &ObjectMeta;

    /// Fills `buf` from `offset_bytes`. Checks after reading that the version is still this
    /// one, so that bytes of two versions are never handed out as one.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when the version is gone, [`StoreError::Short`] when the range
    /// passes the end, [`StoreError::Io`] otherwise.
    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError>;

    /// Reads each of `ranges` as [`Object::read_at`] does, all from one version. The version may be
    /// checked once for all of them, and a remote store may send one request.
    ///
    /// # Errors
    /// Those of [`Object::read_at`]; the contents of the buffers are unspecified then.
    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        let mut ranges = ranges.iter_mut();
        ranges.try_for_each(|range| self.read_at(range.offset_bytes, range.buf))
    }

    /// Like [`Object::read_ranges`], but hands over the memory in which the bytes were received. The
    /// ranges are in order, and none begins before the end of the one before it.
    ///
    /// # Errors
    /// Those of [`Object::read_at`].
    fn receive(&self, ranges: &[Range<u64>]) -> Result<ReceivedBytes, StoreError> {
        received::copied(self, ranges)
    }

    /// Whether the version is still the one that was opened.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it is not, [`StoreError::Io`] when that cannot be found out.
    fn verify(&self) -> Result<(), StoreError>;

    /// Notes that the bytes of this version make no sense. A server may have sent a wrong answer about the key, so the
    /// store forgets its answers and asks again.
    fn doubt(&self) {}

    /// Whether the bytes `ranges` are on a disk of this machine, where other objects of the store need a request.
    fn is_at_hand(&self, ranges: &[Range<u64>]) -> bool {
        let _ = ranges;
        false
    }

    /// Whether reading a range costs as much as reading all bytes before it, as in a compressed
    /// object. Such an object is best read whole and cached.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Whether this is one encoded inner chunk of a shard, which is not in its shard yet.
    fn is_part(&self) -> bool {
        false
    }

    /// The open file that has the bytes of this object, where there is one.
    fn as_file(&self) -> Option<&Arc<File>> {
        None
    }
}

/// A range of an object, and the buffer for its bytes.
#[derive(Debug)]
pub struct ReadRange<'b> {
    /// The first byte.
    pub offset_bytes: u64,
    /// Receives the bytes; its length is the length of the range.
    pub buf: &'b mut [u8],
}

/// Size of the file system that holds a store, as statvfs(3) reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Total size.
    pub total_bytes: u64,
    /// Free space, for any user.
    pub free_bytes: u64,
}

impl Capacity {
    /// The capacity of the file system that `file` lies on.
    fn of_file_system(file: impl AsFd) -> Option<Capacity> {
        let stat = fstatvfs(file).ok()?;
        Some(Capacity {
            total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }
}
