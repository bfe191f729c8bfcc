//! A store with the zip stores in it: a zip file that holds a Zarr hierarchy is an object, and also
//! the prefix of its entries.
//!
//! ```text
//! key            stat                        list
//! a/x.zip        an object, keys are below   what is at the root of the hierarchy in the file
//! a/x.zip/t/0    an entry of the zip file
//! a/notes.zip    an object                   None: it holds no hierarchy
//! ```
//!
//! Listings of `a` name `x.zip` once, as an object. Zip files within zip files are objects only.
//!
//! Each request examines the version of the zip file first, so that a file that is replaced is
//! examined again. The kind of a file of one version is remembered for many files; the directories
//! of few zip files are in memory, because they may be large.
//!
//! A zip file that is damaged is a prefix too, in which every request gets the error: it might hold
//! a hierarchy, and absence would mean the fill value.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use lru::LruCache;

use super::location::find_hierarchy;
use super::{
    AnswerTimes, Cursor, Detail, FetchBuffer, FetchRequest, Fetched, Key, Listing, Object,
    ObjectMeta, Prefix, Profile, Stat, StatKind, Store, StoreError, Version, ZipStore,
};

/// The end of the names of zip files that are looked into.
const EXTENSION: &[u8] = b".zip";
/// The most files whose kinds are remembered.
const MOST_KNOWN: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");
/// The most zip files that are held open, and the most memory of their directories, unless a single
/// one takes more.
const MOST_OPEN: NonZeroUsize = NonZeroUsize::new(32).expect("32 is not 0");
const MOST_OPEN_BYTES: u64 = 64 << 20;

/// A store with the zip stores in it.
#[derive(Debug)]
pub struct NestedZips {
    within: Arc<dyn Store>,
    known: Mutex<LruCache<Key, (Version, Contents)>>,
    open: Mutex<OpenZips>,
    /// Held while a file is examined: one at a time, because its directory may take much memory.
    examining: Mutex<()>,
}

/// The kind of a file.
#[derive(Debug, Clone)]
enum Contents {
    /// Not a zip file, or one without a hierarchy.
    Other,
    /// A zip file with a hierarchy at this prefix.
    Hierarchy(Prefix),
    /// A zip file that cannot be read.
    Damaged(StoreError),
}

/// Zip files that were used lately.
#[derive(Debug)]
struct OpenZips {
    by_key: LruCache<Key, OpenZip>,
    bytes: u64,
}

#[derive(Debug, Clone)]
struct OpenZip {
    version: Version,
    store: Arc<ZipStore>,
    bytes: u64,
}

/// Where a path lies.
enum Place {
    /// In the outer store.
    Outside,
    /// In a zip store, at this path.
    Within(Arc<ZipStore>, Prefix),
}

impl NestedZips {
    /// `within`, with the zip stores in it.
    pub fn new(within: Arc<dyn Store>) -> NestedZips {
        NestedZips {
            within,
            known: Mutex::new(LruCache::new(MOST_KNOWN)),
            open: Mutex::new(OpenZips {
                by_key: LruCache::new(MOST_OPEN),
                bytes: 0,
            }),
            examining: Mutex::default(),
        }
    }

    /// Where `path` lies. A zip file itself is the root of its own store.
    fn place(&self, path: &Prefix) -> Result<Place, StoreError> {
        let bytes = path.as_bytes();
        let ends =
            (1..=bytes.len()).filter(|&at| at == bytes.len() || bytes.get(at) == Some(&b'/'));
        for end in ends {
            let (file, rest) = bytes.split_at(end);
            if !is_named_as_zip(file) {
                continue;
            }
            let key = Key::parse(file)?;
            if let Some(zip) = self.zip_at(&key)? {
                return Ok(Place::Within(zip, Prefix::parse(rest)?));
            }
        }
        Ok(Place::Outside)
    }

    /// As [`NestedZips::place`], of a key: a zip file itself is an object of the outer store.
    fn place_of(&self, key: &Key) -> Result<Place, StoreError> {
        match self.place(&key.parent())? {
            Place::Within(zip, parent) => {
                Ok(Place::Within(zip, parent.key(key.name())?.to_prefix()))
            }
            Place::Outside => Ok(Place::Outside),
        }
    }

    /// The store in the zip file at `key`; `None` where there is none.
    fn zip_at(&self, key: &Key) -> Result<Option<Arc<ZipStore>>, StoreError> {
        let stat = self.within.stat(key)?;
        let Some(stat) = stat.filter(|stat| stat.kind == StatKind::Object) else {
            return Ok(None);
        };
        match self.contents(key, &stat.meta)? {
            Contents::Other => Ok(None),
            Contents::Damaged(error) => Err(error),
            Contents::Hierarchy(root) => self.opened(key, stat.meta.version, root).map(Some),
        }
    }

    /// The kind of the file at `key`, which has the attributes `meta`.
    fn contents(&self, key: &Key, meta: &ObjectMeta) -> Result<Contents, StoreError> {
        let known = || {
            let mut known = lock(&self.known);
            let (version, contents) = known.get(key)?;
            (*version == meta.version).then(|| contents.clone())
        };
        if let Some(contents) = known() {
            return Ok(contents);
        }
        let _one_at_a_time = lock(&self.examining);
        if let Some(contents) = known() {
            return Ok(contents);
        }
        let contents = match self.examine(key) {
            Ok(contents) => contents,
            // A file that may not be read stays a file.
            Err(StoreError::Denied { .. } | StoreError::NotAnObject { .. }) => Contents::Other,
            // The file is damaged, not the system in trouble.
            Err(error @ StoreError::Damaged { .. }) => {
                log::warn!("{error}");
                Contents::Damaged(error)
            }
            Err(error) => return Err(error),
        };
        // A version that may still change without a trace is examined again.
        if meta.settles_in(SystemTime::now()).is_none() {
            lock(&self.known).put(key.clone(), (meta.version, contents.clone()));
        }
        Ok(contents)
    }

    fn examine(&self, key: &Key) -> Result<Contents, StoreError> {
        if !ZipStore::is_zip_in(&self.within, key)? {
            return Ok(Contents::Other);
        }
        let zip = ZipStore::within(&self.within, key)?;
        Ok(find_hierarchy(&zip)?.map_or(Contents::Other, Contents::Hierarchy))
    }

    /// The zip store whose hierarchy is at `root` of the file at `key`, which has this version.
    fn opened(
        &self,
        key: &Key,
        version: Version,
        root: Prefix,
    ) -> Result<Arc<ZipStore>, StoreError> {
        let known = || {
            let mut open = lock(&self.open);
            let known = open.by_key.get(key).cloned();
            known.filter(|known| known.version == version)
        };
        if let Some(known) = known() {
            return Ok(known.store);
        }
        let _one_at_a_time = lock(&self.examining);
        if let Some(known) = known() {
            return Ok(known.store);
        }
        let store = Arc::new(ZipStore::within(&self.within, key)?.below(root));
        let bytes = store.memory_bytes();
        let zip = OpenZip {
            version,
            store: Arc::clone(&store),
            bytes,
        };
        let closed = lock(&self.open).add(key.clone(), zip);
        drop(closed);
        Ok(store)
    }

    /// The attributes of the prefix of the same name, where `stat` is of an object at `key` that is
    /// looked into.
    fn prefix_below(&self, key: &Key, stat: &Stat) -> Option<ObjectMeta> {
        if stat.kind != StatKind::Object || !is_named_as_zip(key.as_bytes()) {
            return stat.below;
        }
        match self.contents(key, &stat.meta) {
            Ok(Contents::Other) => None,
            Ok(Contents::Hierarchy(_) | Contents::Damaged(_)) | Err(_) => {
                Some(ZipStore::prefix_meta_of(&stat.meta))
            }
        }
    }
}

impl OpenZips {
    /// Adds `zip`, and returns those that it replaces.
    fn add(&mut self, key: Key, zip: OpenZip) -> Vec<OpenZip> {
        self.bytes = self.bytes.saturating_add(zip.bytes);
        let mut closed: Vec<OpenZip> = Vec::new();
        closed.extend(self.by_key.push(key, zip).map(|(_, zip)| zip));
        let mut open_bytes = self.bytes - closed.iter().map(|zip| zip.bytes).sum::<u64>();
        while open_bytes > MOST_OPEN_BYTES
            && self.by_key.len() > 1
            && let Some((_, zip)) = self.by_key.pop_lru()
        {
            open_bytes -= zip.bytes;
            closed.push(zip);
        }
        self.bytes = open_bytes;
        closed
    }
}

/// Whether a path ends as those of zip files do.
pub fn is_named_as_zip(path: &[u8]) -> bool {
    let start = path.len().saturating_sub(EXTENSION.len());
    path.get(start..)
        .is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION))
        && path
            .get(start.wrapping_sub(1))
            .is_some_and(|&byte| byte != b'/')
}

/// Whether a zip file may be at `key` or above it.
fn may_be_nested(key: &Key) -> bool {
    let bytes = key.as_bytes();
    bytes.split(|&byte| byte == b'/').any(is_named_as_zip)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path in a zip store as a key. It is never the root: a zip file itself is an object of the
/// outer store.
fn inner(path: &Prefix) -> Result<Key, StoreError> {
    Key::parse(path.as_bytes())
}

impl Store for NestedZips {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.within)
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        match self.place_of(key)? {
            Place::Within(zip, path) => zip.stat(&inner(&path)?),
            Place::Outside => {
                let stat = self.within.stat(key)?;
                Ok(stat.map(|stat| Stat {
                    below: self.prefix_below(key, &stat),
                    ..stat
                }))
            }
        }
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        if keys.iter().any(may_be_nested) {
            return keys.iter().map(|key| self.stat(key)).collect();
        }
        self.within.stat_many(keys)
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.within.stat_root()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        match self.place_of(key)? {
            Place::Within(zip, path) => zip.open(&inner(&path)?),
            Place::Outside => self.within.open(key),
        }
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        match self.place_of(key)? {
            Place::Within(zip, path) => zip.fetch(&inner(&path)?, most_bytes, buffer),
            Place::Outside => self.within.fetch(key, most_bytes, buffer),
        }
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        if requests.iter().any(|request| may_be_nested(request.key)) {
            let each = requests.iter_mut();
            return each
                .map(|request| self.fetch(request.key, request.most_bytes, request.buffer))
                .collect();
        }
        self.within.fetch_many(requests)
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        match self.place(prefix)? {
            Place::Within(zip, path) => zip.list(&path, after, detail),
            Place::Outside => self.within.list(prefix, after, detail),
        }
    }

    fn profile(&self) -> Profile {
        self.within.profile()
    }

    fn known_object(&self, key: &Key) -> Option<Option<ObjectMeta>> {
        if may_be_nested(key) {
            return None;
        }
        self.within.known_object(key)
    }

    fn told_at(&self, key: &Key) -> Option<AnswerTimes> {
        match self.place_of(key) {
            // All of a zip file is of one version.
            Ok(Place::Within(..)) => None,
            Ok(Place::Outside) | Err(_) => self.within.told_at(key),
        }
    }
}

#[cfg(test)]
mod tests;
