//! A set of references as a store.
//!
//! An object is bytes of the set itself, or a range of a target ([`Targets`]). The version of the set
//! is examined by each request, and a set that was replaced is read again. A key without a reference
//! is absent; a reference whose target is missing is an error.

use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};
use std::{fmt, thread};

use bytes::Bytes;
use parking_lot::RwLock;

use super::contents::{Contents, FoundReference};
use super::json;
use super::names::{ExaminedFile, ListedName};
#[cfg(feature = "references")]
use super::parquet::ParquetSet;
use super::row::Found;
use super::text::{Progress, text_of};
use crate::store::targets::{Address, Home, Reference, Refused, Targets, sized};
use crate::store::{
    AnswerTimes, Capacity, Cursor, Detail, EntryKind, Key, ListEntry, Listing, Object, ObjectMeta,
    OpenOptions, Prefix, Profile, Stat, StatKind, Store, StoreError, ZipStore,
};

/// The memory budget where none is given.
const DEFAULT_BUDGET_BYTES: u64 = 256 << 20;

/// A set of references.
#[derive(Debug)]
pub struct ReferenceStore {
    home: Home,
    /// The set, in the store of `home`.
    key: Key,
    targets: Arc<Targets>,
    /// The most memory of the references. While they are sorted, they take nearly three times as much.
    most_bytes: u64,
    /// Memory that is held for this version of the set, and for later ones.
    held_bytes: u64,
    /// The description for `--info`, made when it is needed.
    described: OnceLock<String>,
    current: RwLock<Option<CurrentSet>>,
}

#[derive(Debug)]
struct CurrentSet {
    meta: ObjectMeta,
    /// The references, or the error, so that a broken set is not read at every request.
    contents: Result<Arc<Contents>, StoreError>,
}

impl ReferenceStore {
    /// Opens the set at `key` of `home`, and reads its references.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the set is not understood, or takes more than its part of the memory budget; other
    /// errors if it cannot be read.
    pub(in crate::store) fn open(
        home: Home,
        key: Key,
        options: &OpenOptions,
    ) -> Result<ReferenceStore, StoreError> {
        let budget = options.memory_bytes.unwrap_or(DEFAULT_BUDGET_BYTES);
        let mut store = ReferenceStore {
            targets: Arc::new(Targets::new(
                home.clone(),
                Address::parse_as_fsspec,
                options,
            )),
            home,
            key,
            most_bytes: (budget / 3 + (8 << 20)).min(budget / 2),
            held_bytes: 0,
            described: OnceLock::new(),
            current: RwLock::new(None),
        };
        let (_, contents) = store.contents()?;
        let memory = contents.memory_bytes();
        // A later version may be a little longer.
        store.held_bytes = (memory + memory / 4 + (1 << 20)).min(store.most_bytes);
        store.most_bytes = store.held_bytes;
        Ok(store)
    }

    /// Opens the set at `key` of `store`, which need not have an address. Its references may lead to keys of `store`, and
    /// to targets that `options` allow.
    ///
    /// # Errors
    /// [`StoreError`] if the set is not understood, or cannot be read.
    pub fn within(
        store: Arc<dyn Store>,
        key: Key,
        options: &OpenOptions,
    ) -> Result<ReferenceStore, StoreError> {
        ReferenceStore::open(Home::new(Address::nowhere(), store), key, options)
    }

    /// The kind of the store, and the prefixes of targets that are not read.
    fn described(&self) -> String {
        let mut refused = Refused::default();
        if let Ok((_, contents)) = self.contents() {
            for address in contents.addresses() {
                if self.targets.refusal(&address).is_some() {
                    refused.add(self.targets.directory_of(&address));
                }
            }
        }
        let form = if self.is_parquet() { "Parquet" } else { "JSON" };
        let text = format!("a set of references (kerchunk) in {form}");
        if refused.is_empty() {
            return text;
        }
        format!("{text}; targets that are not read without --allow-refs: {refused}")
    }

    /// Attributes of the set now, and its references.
    fn contents(&self) -> Result<(ObjectMeta, Arc<Contents>), StoreError> {
        let found = self.examine()?;
        let current = self.current.read();
        if let Some(known) = current.as_ref().filter(|known| known.is(&found)) {
            return Ok((known.meta, known.contents.clone()?));
        }
        drop(current);
        // Concurrent callers wait here, and use what the first one reads.
        let mut current = self.current.write();
        let patience = Instant::now() + found.dating.patience();
        loop {
            let object = self.opened()?;
            let meta = *object.meta();
            if let Some(known) = current.as_ref().filter(|known| known.is(&meta)) {
                return Ok((known.meta, known.contents.clone()?));
            }
            if let Some(wait) = meta.settles_in(SystemTime::now()) {
                if Instant::now() > patience {
                    return Err(StoreError::changed(&self.key));
                }
                thread::sleep(wait);
                continue;
            }
            // Two versions together would take too much memory.
            *current = None;
            let contents = self.read(&object);
            if matches!(contents, Err(StoreError::Changed { .. })) && Instant::now() < patience {
                continue;
            }
            // An error of the system may be temporary, and is not remembered.
            if contents.is_ok() || matches!(contents, Err(StoreError::Damaged { .. })) {
                *current = Some(CurrentSet {
                    meta,
                    contents: contents.clone(),
                });
            }
            return Ok((meta, contents?));
        }
    }

    fn examine(&self) -> Result<ObjectMeta, StoreError> {
        let found = self.home.store.stat_object(&self.key)?;
        found.ok_or_else(|| self.gone())
    }

    fn opened(&self) -> Result<Arc<dyn Object>, StoreError> {
        let opened = self.home.store.open(&self.key)?;
        opened.ok_or_else(|| self.gone())
    }

    /// This must not be the absence of a key, which would mean the fill value.
    fn gone(&self) -> StoreError {
        StoreError::problem(&self.key, "there is no such set of references")
    }

    /// Whether this is a directory of files in Parquet, of which the key names the metadata.
    fn is_parquet(&self) -> bool {
        self.key.name() == b".zmetadata"
    }

    fn read(&self, object: &Arc<dyn Object>) -> Result<Arc<Contents>, StoreError> {
        let progress = Progress::default();
        let contents = if self.is_parquet() {
            self.read_parquet(object, &progress)
        } else {
            self.read_json(object, &progress)
        };
        // Bytes of two versions may make no sense.
        object.verify()?;
        // An object that could not be read is not damaged.
        progress.check()?;
        contents.map(Arc::new)
    }

    fn read_json(
        &self,
        object: &Arc<dyn Object>,
        progress: &Progress,
    ) -> Result<Contents, StoreError> {
        let text = text_of(object, self.most_bytes, progress);
        let text = text.map_err(|error| StoreError::problem(&self.key, error.to_string()))?;
        let set = json::read(text, self.most_bytes, progress);
        let set = set.map_err(|problem| self.not_read(&problem))?;
        if set.n_invalid > 0 {
            let (key, n) = (&self.key, set.n_invalid);
            log::warn!("{key}: {n} keys are no names of objects, and are left out");
        }
        Ok(Contents::Json(set))
    }

    #[cfg(feature = "references")]
    fn read_parquet(
        &self,
        object: &Arc<dyn Object>,
        progress: &Progress,
    ) -> Result<Contents, StoreError> {
        let (store, root) = (&self.home.store, self.key.parent());
        let set = ParquetSet::read(store, &root, (object, progress), self.most_bytes);
        let set = set.map_err(|problem| self.not_read(&problem))?;
        Ok(Contents::Parquet(set))
    }

    fn not_read(&self, problem: &str) -> StoreError {
        let problem = format!("not read as a set of references: {problem}");
        StoreError::damaged(&self.key, problem)
    }

    #[cfg(not(feature = "references"))]
    fn read_parquet(
        &self,
        _object: &Arc<dyn Object>,
        _progress: &Progress,
    ) -> Result<Contents, StoreError> {
        Err(StoreError::Unsupported(format!(
            "{}: these are references in Parquet, and this program was built without them (the feature \
             `references`)",
            self.key
        )))
    }

    /// The file that has the record of the chunk `key`, in the version of the set that was read last. `None` for keys
    /// whose references are in the set itself.
    fn record_file(&self, key: &Key) -> Option<Key> {
        let current = self.current.read();
        let contents = current.as_ref()?.contents.as_ref().ok()?;
        contents.record_file(key)
    }

    /// The reference at `key`, and attributes of the object that has it, with the rights of those who may reach it.
    fn find(
        &self,
        key: &Key,
        (set, contents): (&ObjectMeta, &Contents),
    ) -> Result<Option<(Found, ObjectMeta)>, StoreError> {
        let found = contents.get(key, set)?;
        Ok(found.map(|FoundReference { found, set, file }| {
            let set = match file {
                Some(file) => self.targets.reachable(&file, set),
                None => set,
            };
            (found, set)
        }))
    }
}

impl CurrentSet {
    fn is(&self, found: &ObjectMeta) -> bool {
        self.meta.version == found.version && self.meta.access() == found.access()
    }
}

fn reference(address: &str, range: Option<(u64, u64)>) -> Reference<'_> {
    Reference {
        address,
        range,
        checksum: None,
    }
}

impl Store for ReferenceStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let (set, contents) = self.contents()?;
        let below = contents.has_prefix(&key.to_prefix());
        let below = below.then(|| ZipStore::prefix_meta_of(&set));
        let Some((found, source)) = self.find(key, (&set, &contents))? else {
            return Ok(below.map(Stat::of_prefix));
        };
        let meta = match found {
            Found::Inline(bytes) => sized(bytes.len() as u64, &source),
            Found::At(address, range) => {
                let reference = reference(&address, range);
                self.targets.stat(key, &reference, &source)?
            }
            Found::Bad(_) => sized(0, &source),
        };
        Ok(Some(Stat {
            kind: StatKind::Object,
            meta,
            below,
        }))
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        let (set, _) = self.contents()?;
        Ok(ZipStore::prefix_meta_of(&set))
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let (set, contents) = self.contents()?;
        match self.find(key, (&set, &contents))? {
            Some((Found::Inline(bytes), source)) => Ok(Some(Arc::new(InlineObject {
                key: key.clone(),
                meta: sized(bytes.len() as u64, &source),
                bytes,
            }))),
            Some((Found::At(address, range), source)) => {
                let reference = reference(&address, range);
                self.targets.open(key, &reference, &source).map(Some)
            }
            Some((Found::Bad(problem), _)) => Err(StoreError::damaged(key, problem)),
            None if contents.has_prefix(&key.to_prefix()) => {
                Err(StoreError::not_an_object(key, "a prefix"))
            }
            None => Ok(None),
        }
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let (set, contents) = self.contents()?;
        if !contents.has_prefix(prefix) {
            return Ok(None);
        }
        Ok(Some(Box::new(ReferenceListing {
            targets: Arc::clone(&self.targets),
            contents,
            set,
            prefix: prefix.clone(),
            after,
            examined: None,
            detail,
        })))
    }

    fn begin_open(&self) {
        self.home.store.begin_open();
    }

    fn generation(&self) -> u64 {
        self.home.store.generation()
    }

    fn told_since(&self) -> Option<SystemTime> {
        self.home.store.told_since()
    }

    fn told_at(&self, key: &Key) -> Option<AnswerTimes> {
        let set = self.home.store.told_at(&self.key)?;
        let Some(file) = self.record_file(key) else {
            return Some(set);
        };
        // Whether a chunk is there follows from both answers.
        let records = self.home.store.told_at(&file)?;
        Some(AnswerTimes {
            asked: set.asked.min(records.asked),
            answered: set.answered.max(records.answered),
        })
    }

    fn ask_again_for(&self, keys: &[Key]) {
        let files = keys.iter().filter_map(|key| self.record_file(key));
        let all: Vec<Key> = files.chain([self.key.clone()]).collect();
        self.home.store.ask_again_for(&all);
    }

    fn useful_in_flight(&self) -> usize {
        self.targets.useful_in_flight()
    }

    fn profile(&self) -> Profile {
        let home = self.home.store.profile();
        Profile {
            is_local: home.is_local && !self.targets.may_be_remote(),
            most_in_flight: self.targets.most_in_flight(),
            // The set has all names.
            has_directories: true,
            ..home
        }
    }

    fn statistics(&self) -> Vec<(&'static str, u64)> {
        self.home.store.statistics()
    }

    fn description(&self) -> Option<&str> {
        Some(self.described.get_or_init(|| self.described()))
    }

    fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    fn capacity(&self) -> Option<Capacity> {
        self.home.store.capacity()
    }
}

/// Bytes that the set itself has.
struct InlineObject {
    key: Key,
    meta: ObjectMeta,
    bytes: Bytes,
}

impl Object for InlineObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.meta.check_range(&self.key, offset_bytes, buf.len())?;
        let start = usize::try_from(offset_bytes).unwrap_or(usize::MAX);
        let end = start.saturating_add(buf.len());
        let found = self.bytes.get(start..end);
        let found = found.ok_or_else(|| self.meta.short(&self.key, offset_bytes, 0))?;
        buf.copy_from_slice(found);
        Ok(())
    }

    /// The bytes are in memory, so they stay those of one version.
    fn verify(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl fmt::Debug for InlineObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineObject")
            .field("key", &self.key)
            .field("len", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// The names below a prefix of one version of a set.
struct ReferenceListing {
    targets: Arc<Targets>,
    contents: Arc<Contents>,
    set: ObjectMeta,
    prefix: Prefix,
    after: Cursor,
    examined: ExaminedFile,
    detail: Detail,
}

impl ReferenceListing {
    /// Attributes of an object; `None` if its target cannot be examined.
    fn meta_of(&self, key: &Key) -> Option<ObjectMeta> {
        let FoundReference { found, set, file } = self.contents.get(key, &self.set).ok()??;
        let source = match file {
            Some(file) => self.targets.reachable(&file, set),
            None => set,
        };
        match found {
            Found::Inline(bytes) => Some(sized(bytes.len() as u64, &source)),
            Found::At(address, range) => {
                let reference = reference(&address, range);
                // The length of a whole object of a server takes a request.
                let found = self.targets.stat_at_once(key, &reference, &source);
                found.ok()?
            }
            Found::Bad(_) => Some(sized(0, &source)),
        }
    }
}

impl Listing for ReferenceListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        let Some(found) = self
            .contents
            .next(&self.prefix, &self.after, &mut self.examined)?
        else {
            return Ok(None);
        };
        let ListedName {
            bytes,
            is_prefix,
            cursor,
        } = found;
        self.after = cursor.clone();
        let (kind, meta) = if is_prefix {
            (EntryKind::Prefix, Some(ZipStore::prefix_meta_of(&self.set)))
        } else if self.detail == Detail::Attributes {
            (EntryKind::Object, self.meta_of(&self.prefix.key(&bytes)?))
        } else {
            (EntryKind::Object, None)
        };
        Ok(Some(ListEntry {
            name: bytes,
            kind,
            meta: meta.filter(|_| self.detail == Detail::Attributes),
            cursor,
        }))
    }

    fn ask_for(&mut self, detail: Detail) {
        self.detail = detail;
    }
}

#[cfg(test)]
mod tests;
