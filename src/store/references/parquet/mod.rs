//! Sets of references in Parquet, as fsspec, kerchunk and `VirtualiZarr` write them.
//!
//! ```text
//! ROOT/.zmetadata          {"metadata": {"x/.zarray": {..}, ..}, "record_size": N}
//! ROOT/x/refs.R.parq       the chunks N * R to N * R + N - 1 of x, in C order
//! ```
//!
//! A file of records is read when one of its chunks is needed, and a few are kept. Where there is none,
//! all of its chunks are absent.
//!
//! Source: `fsspec.implementations.reference.LazyReferenceMapper`

mod metadata;
mod pages;
mod records;

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;

use self::metadata::{RecordedArray, SetMetadata};
use self::records::Records;
use super::grid_key::{Indices, index};
use super::names::{AFTER_INDEX, ExaminedFile, ListedName};
use super::row::Found;
use super::text::Progress;
use crate::store::{Cursor, Key, Object, ObjectMeta, Prefix, Store, StoreError, Version};

/// The most files of records that are kept, whatever memory they take.
const MOST_FILES: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not 0");

/// The most arrays that are examined to find out which targets are refused.
const MOST_EXAMINED: usize = 64;

/// A listing looks for this many absent files of records in a row before it gives up.
const MOST_ABSENT_FILES: u64 = 100_000;

/// A set in Parquet.
#[derive(Debug)]
pub(super) struct ParquetSet {
    metadata: SetMetadata,
    store: Arc<dyn Store>,
    /// The directory of the set.
    root: Prefix,
    kept: Mutex<KeptFiles>,
    /// Held while a file is read: one at a time, because its pages take much memory.
    reading: Mutex<()>,
    /// Memory of kept files, and of one that is read.
    most_bytes: u64,
}

#[derive(Debug)]
struct KeptFiles {
    by_key: LruCache<Key, (Version, Arc<Records>)>,
    bytes: u64,
}

/// A chunk of an array: the file of its record, and the number of the record in it.
struct RecordPlace {
    file: Key,
    at: usize,
}

impl ParquetSet {
    /// Reads the metadata of the set at `root` of `store`, which is in `object`, and notes errors of `object` in
    /// `progress`. All that is kept and read later takes at most `most_bytes`.
    ///
    /// # Errors
    /// A message.
    pub(super) fn read(
        store: &Arc<dyn Store>,
        root: &Prefix,
        (object, progress): (&Arc<dyn Object>, &Progress),
        most_bytes: u64,
    ) -> Result<ParquetSet, String> {
        Ok(ParquetSet {
            metadata: SetMetadata::read(object, most_bytes / 4, progress)?,
            store: Arc::clone(store),
            root: root.clone(),
            kept: Mutex::new(KeptFiles {
                by_key: LruCache::new(MOST_FILES),
                bytes: 0,
            }),
            reading: Mutex::default(),
            most_bytes: most_bytes / 4,
        })
    }

    /// The reference at `key`, and attributes of the file that has it; `set` are those of the metadata.
    ///
    /// # Errors
    /// [`StoreError`] where the file of its record cannot be read.
    pub(super) fn get(
        &self,
        key: &Key,
        set: &ObjectMeta,
    ) -> Result<Option<(Found, ObjectMeta, Option<Key>)>, StoreError> {
        if let Some(document) = self.metadata.documents.get(key.as_bytes()) {
            return Ok(Some((document, *set, None)));
        }
        let Some(place) = self.place(key)? else {
            return Ok(None);
        };
        let Some((records, meta)) = self.records(&place.file)? else {
            return Ok(None);
        };
        let found = records.get(place.at);
        Ok(found.map(|found| (found, meta, Some(place.file))))
    }

    /// The file that has the record of the chunk `key`, or would have it; `None` for other keys.
    pub(super) fn record_file(&self, key: &Key) -> Option<Key> {
        if self.metadata.documents.get(key.as_bytes()).is_some() {
            return None;
        }
        Some(self.place(key).ok()??.file)
    }

    /// Where the reference of the chunk `key` is; `None` for other keys.
    fn place(&self, key: &Key) -> Result<Option<RecordPlace>, StoreError> {
        // Names of arrays may be numbers too, so the slashes alone separate them from the indices.
        let name = key.name();
        let head = key.as_bytes().strip_suffix(name).unwrap_or_default();
        let head = head.strip_suffix(b"/").unwrap_or(head);
        let Some(array) = self.metadata.arrays.get(head) else {
            return Ok(None);
        };
        let indices: Option<Indices> = name.split(|&byte| byte == b'.').map(index).collect();
        let Some(indices) = indices else {
            return Ok(None);
        };
        if let Some(problem) = &array.problem {
            return Err(StoreError::damaged(key, problem));
        }
        let rank = array.rank(&indices);
        rank.map(|rank| self.place_of(head, rank)).transpose()
    }

    fn place_of(&self, array: &[u8], rank: u64) -> Result<RecordPlace, StoreError> {
        let size = self.metadata.record_size;
        let file = format!("refs.{}.parq", rank / size);
        let directory = match array {
            b"" => self.root.clone(),
            array => self.root.key(array)?.to_prefix(),
        };
        Ok(RecordPlace {
            file: directory.key(file.as_bytes())?,
            at: usize::try_from(rank % size).unwrap_or(usize::MAX),
        })
    }

    /// The records in `file`, and the attributes of the file; `None` if there is none.
    fn records(&self, file: &Key) -> Result<Option<(Arc<Records>, ObjectMeta)>, StoreError> {
        let Some(meta) = self.store.stat_object(file)? else {
            return Ok(None);
        };
        if let Some(records) = self.kept(file, &meta) {
            return Ok(Some((records, meta)));
        }
        let _one_at_a_time = self.reading.lock();
        if let Some(records) = self.kept(file, &meta) {
            return Ok(Some((records, meta)));
        }
        let Some(object) = self.store.open(file)? else {
            return Ok(None);
        };
        let meta = *object.meta();
        let records = Arc::new(self.read_records(file, &*object)?);
        if meta.settles_in(std::time::SystemTime::now()).is_none() {
            let kept = (meta.version, Arc::clone(&records));
            self.kept.lock().add(file.clone(), kept, self.most_bytes);
        }
        Ok(Some((records, meta)))
    }

    /// The records in this version of `file`, if they are kept in memory.
    fn kept(&self, file: &Key, meta: &ObjectMeta) -> Option<Arc<Records>> {
        let mut kept = self.kept.lock();
        let (version, records) = kept.by_key.get(file)?;
        (*version == meta.version).then(|| Arc::clone(records))
    }

    /// Like [`ParquetSet::records`], for a listing that may have examined `file` before.
    fn listed_records(
        &self,
        file: &Key,
        examined: &mut ExaminedFile,
    ) -> Result<Option<Arc<Records>>, StoreError> {
        let same = examined.as_ref().filter(|(key, _)| key == file);
        if let Some(records) = same.and_then(|(key, meta)| self.kept(key, meta)) {
            return Ok(Some(records));
        }
        let records = self.records(file)?;
        *examined = records.as_ref().map(|(_, meta)| (file.clone(), *meta));
        Ok(records.map(|(records, _)| records))
    }

    fn read_records(&self, file: &Key, object: &dyn Object) -> Result<Records, StoreError> {
        let most = self.most_bytes;
        let size = object.meta().size();
        let too_long = || {
            let problem = format!(
                "this file of references takes more than {} MiB of memory; give more with --cache-size",
                most >> 20
            );
            StoreError::damaged(file, problem)
        };
        let len = usize::try_from(size).ok().filter(|_| size <= most);
        let mut bytes = vec![0; len.ok_or_else(too_long)?];
        object.read_at(0, &mut bytes)?;
        let n = usize::try_from(self.metadata.record_size).unwrap_or(usize::MAX);
        records::read(&Bytes::from(bytes), n, most).map_err(|problem| {
            StoreError::damaged(file, format!("not read as references: {problem}"))
        })
    }

    /// Addresses of the first targets of some arrays.
    pub(super) fn some_addresses(&self) -> Vec<String> {
        let mut addresses = Vec::new();
        for array in self.metadata.arrays.keys().take(MOST_EXAMINED) {
            let place = self.place_of(array, 0);
            if let Ok(Some((records, _))) = place.and_then(|place| self.records(&place.file)) {
                addresses.extend(records.addresses());
            }
        }
        addresses
    }

    /// Whether keys lie below `prefix`.
    pub(super) fn has_prefix(&self, prefix: &Prefix) -> bool {
        self.metadata.documents.has_prefix(prefix)
    }

    /// The first name below `prefix` after `after`.
    ///
    /// # Errors
    /// [`StoreError`] where a file of records cannot be read.
    pub(super) fn next(
        &self,
        prefix: &Prefix,
        after: &Cursor,
        examined: &mut ExaminedFile,
    ) -> Result<Option<ListedName>, StoreError> {
        let mut rank = match after.as_bytes() {
            [AFTER_INDEX, rank @ ..] => {
                let rank = rank.try_into().map_or(u64::MAX, u64::from_be_bytes);
                rank.saturating_add(1)
            }
            _ => match self.metadata.documents.next(prefix, after) {
                Some(name) => return Ok(Some(name)),
                None => 0,
            },
        };
        let array = self.metadata.arrays.get(prefix.as_bytes());
        let Some(array) = array.filter(|array| array.problem.is_none()) else {
            return Ok(None);
        };
        let size = self.metadata.record_size;
        let mut n_absent = 0;
        while rank < array.n_chunks {
            let place = self.place_of(prefix.as_bytes(), rank)?;
            let records = self.listed_records(&place.file, examined)?;
            let next = records.as_ref();
            let next = next.and_then(|records| records.first_from(place.at));
            if let Some(found) = next {
                let rank = rank - rank % size + found as u64;
                return Ok((rank < array.n_chunks).then(|| listed(array, rank)));
            }
            n_absent = if records.is_some() { 0 } else { n_absent + 1 };
            if n_absent > MOST_ABSENT_FILES {
                return Err(StoreError::Unlisted {
                    key: prefix.to_text(),
                    reason: format!("{n_absent} files of references in a row are absent"),
                });
            }
            rank = (rank - rank % size).saturating_add(size);
        }
        Ok(None)
    }

    /// Memory of the metadata, of kept files, and of one that is read.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.metadata.memory_bytes() + 3 * self.most_bytes
    }
}

fn listed(array: &RecordedArray, rank: u64) -> ListedName {
    let cursor = [[AFTER_INDEX].as_slice(), &rank.to_be_bytes()].concat();
    ListedName {
        bytes: array.name(rank),
        is_prefix: false,
        cursor: Cursor::new(&cursor),
    }
}

impl KeptFiles {
    /// Keeps a file, and drops those that were not used for longest.
    fn add(&mut self, key: Key, file: (Version, Arc<Records>), most_bytes: u64) {
        self.bytes += file.1.memory_bytes();
        if let Some((_, (_, replaced))) = self.by_key.push(key, file) {
            self.bytes = self.bytes.saturating_sub(replaced.memory_bytes());
        }
        while self.bytes > most_bytes
            && let Some((_, (_, oldest))) = self.by_key.pop_lru()
        {
            self.bytes = self.bytes.saturating_sub(oldest.memory_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
