//! The central directory in memory: entries sorted by key, 48 bytes each and the key.
//!
//! Sorted by bytes, all keys below a prefix are neighbours: a level is listed by jumping from
//! one name to the next with a binary search, whatever lies below the names.
//!
//! A zip file is not a tree. What cannot be shown as one is settled here:
//!
//! * of entries with one name, the last in the directory counts: that is how keys are
//!   overwritten in a zip file;
//! * a name that is no key is encoded as one ([`names`]);
//! * an object whose key other keys lie below, or whose encoded key is taken, gets `~` appended,
//!   as often as it takes.

use std::collections::HashSet;
use std::ops::Range;

use rawzip::{ZipArchiveEntryWayfinder, ZipFileHeaderRecord};

use super::names;
use super::time;

/// Most entries of a zip file that is opened.
const MAX_ENTRIES: usize = 20_000_000;

/// Most bytes that all keys may take together.
const MAX_NAMES_BYTES: usize = 1 << 30;

/// After so many `~` an entry is left out: only a file made for it needs more.
const MAX_TILDES: usize = 8;

/// One entry of the central directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Where its bytes are, how many, and their checksum.
    pub(super) wayfinder: ZipArchiveEntryWayfinder,
    name_start: u32,
    name_len: u32,
    /// Time of modification, in seconds since 1970.
    pub(super) seconds: u32,
    /// Compression method, as the directory has it.
    pub(super) method: u16,
    /// General purpose flags, as the directory has them.
    pub(super) flags: u16,
}

/// All entries, sorted by key; no key twice, none that is a prefix of others.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: Vec<u8>,
    entries: Vec<Entry>,
}

/// Collects entries in the order of the central directory.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    index: Index,
    /// Entries whose names were encoded.
    encoded: Vec<Entry>,
}

impl Index {
    /// The entry number `at` in the order of keys.
    pub(super) fn entry(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)
    }

    /// The key of `entry`.
    pub(super) fn name(&self, entry: &Entry) -> &[u8] {
        name(&self.names, entry)
    }

    /// The number of the entry with this key.
    pub(super) fn find(&self, key: &[u8]) -> Option<usize> {
        let found = self.entries.binary_search_by(|e| self.name(e).cmp(key));
        found.ok()
    }

    /// The numbers of all entries whose keys begin with `start`.
    pub(super) fn beginning_with(&self, start: &[u8]) -> Range<usize> {
        let first = self.entries.partition_point(|e| self.name(e) < start);
        first..self.end_of(first..self.entries.len(), start)
    }

    /// Where in `range`, whose first keys begin with `start`, the first key is that does not.
    pub(super) fn end_of(&self, range: Range<usize>, start: &[u8]) -> usize {
        let entries = self.entries.get(range.clone()).unwrap_or_default();
        range.start + entries.partition_point(|e| self.name(e).starts_with(start))
    }

    /// What of `range` follows the key `seen`, or all keys that begin with it where it ends in `/`.
    pub(super) fn after(&self, range: Range<usize>, seen: &[u8]) -> Range<usize> {
        let entries = self.entries.get(range.clone()).unwrap_or_default();
        let is_seen = |key: &[u8]| key <= seen || seen.ends_with(b"/") && key.starts_with(seen);
        let count = entries.partition_point(|e| is_seen(self.name(e)));
        range.start + count..range.end
    }

    /// Whether other keys lie below that of entry number `at`.
    fn is_prefix_too(&self, at: usize) -> bool {
        let (Some(entry), Some(next)) = (self.entries.get(at), self.entries.get(at + 1)) else {
            return false;
        };
        let name = self.name(entry);
        self.name(next).starts_with(name) && self.has_prefix(name)
    }

    fn has_prefix(&self, name: &[u8]) -> bool {
        !self.beginning_with(&[name, b"/"].concat()).is_empty()
    }

    /// Appends `name` to the names.
    fn store_name(&mut self, name: &[u8]) -> Result<(u32, u32), String> {
        let (start, len) = (self.names.len(), name.len());
        if start + len > MAX_NAMES_BYTES {
            return Err(format!(
                "the names of all entries take more than {MAX_NAMES_BYTES} bytes"
            ));
        }
        self.names.extend_from_slice(name);
        let fits = |n| u32::try_from(n).map_err(|_| "too many names".to_owned());
        Ok((fits(start)?, fits(len)?))
    }
}

impl IndexBuilder {
    /// Takes what the central directory says of an entry.
    ///
    /// # Errors
    /// There are more entries or longer names than a store may have.
    pub(super) fn push(&mut self, record: &ZipFileHeaderRecord<'_>) -> Result<(), String> {
        let name = record.file_path().as_bytes();
        // An empty directory: a prefix is what keys lie below.
        if name.ends_with(b"/") {
            return Ok(());
        }
        if self.index.entries.len() + self.encoded.len() >= MAX_ENTRIES {
            return Err(format!("more than {MAX_ENTRIES} entries"));
        }
        let key = names::to_key(name);
        let (name_start, name_len) = self.index.store_name(&key)?;
        let entry = Entry {
            wayfinder: record.wayfinder(),
            name_start,
            name_len,
            seconds: time::seconds_since_1970(&record.last_modified()),
            method: record.compression_method().as_u16(),
            flags: record.flags().bits(),
        };
        if key == name {
            self.index.entries.push(entry);
        } else {
            self.encoded.push(entry);
        }
        Ok(())
    }

    /// The index, and a sentence about entries that are shown under other names, if any are.
    ///
    /// # Errors
    /// As [`IndexBuilder::push`].
    pub(super) fn finish(self) -> Result<(Index, Option<String>), String> {
        let IndexBuilder {
            mut index,
            mut encoded,
        } = self;
        keep_last(&index.names, &mut index.entries);
        keep_last(&index.names, &mut encoded);
        let mut renamed = Renamed::default();
        renamed.add_encoded(&mut index, encoded);
        renamed.move_prefixes(&mut index);
        renamed.place(&mut index)?;
        index.names.shrink_to_fit();
        index.entries.shrink_to_fit();
        Ok((index, renamed.sentence()))
    }
}

fn name<'n>(names: &'n [u8], entry: &Entry) -> &'n [u8] {
    let start = entry.name_start as usize;
    let end = start + entry.name_len as usize;
    names.get(start..end).unwrap_or_default()
}

fn sort(names: &[u8], entries: &mut [Entry]) {
    // Entries of one name stay in the order in which they came.
    let key = |e: &Entry| (name(names, e), e.name_start);
    entries.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
}

/// Sorts, and keeps the last of each name.
fn keep_last(names: &[u8], entries: &mut Vec<Entry>) {
    sort(names, entries);
    entries.dedup_by(|next, kept| {
        let same = name(names, next) == name(names, kept);
        if same {
            *kept = *next;
        }
        same
    });
}

/// Entries that cannot keep their names.
#[derive(Debug, Default)]
struct Renamed {
    /// Those that need another name.
    homeless: Vec<Entry>,
    encoded: usize,
    moved: usize,
    left_out: usize,
    /// A key that one of them is shown under.
    example: String,
}

impl Renamed {
    /// Puts entries with encoded names into `index`, where that is free.
    fn add_encoded(&mut self, index: &mut Index, encoded: Vec<Entry>) {
        let (taken, mut free): (Vec<Entry>, Vec<Entry>) = encoded
            .into_iter()
            .partition(|entry| index.find(index.name(entry)).is_some());
        self.homeless = taken;
        if let Some(first) = free.first() {
            self.encoded = free.len();
            self.example = shown(index.name(first));
            index.entries.append(&mut free);
            sort(&index.names, &mut index.entries);
        }
    }

    /// Takes entries out of `index` whose names other keys lie below.
    fn move_prefixes(&mut self, index: &mut Index) {
        let moving: HashSet<usize> = (0..index.entries.len())
            .filter(|&at| index.is_prefix_too(at))
            .collect();
        if moving.is_empty() {
            return;
        }
        let mut at = 0;
        index.entries.retain(|entry| {
            let stays = !moving.contains(&at);
            if !stays {
                self.homeless.push(*entry);
            }
            at += 1;
            stays
        });
    }

    /// Puts all entries that need another name back into `index`.
    fn place(&mut self, index: &mut Index) -> Result<(), String> {
        let mut taken: HashSet<Vec<u8>> = HashSet::new();
        let mut placed = Vec::with_capacity(self.homeless.len());
        for entry in std::mem::take(&mut self.homeless) {
            let mut name = index.name(&entry).to_vec();
            let free = (0..MAX_TILDES).any(|_| {
                name.push(b'~');
                index.find(&name).is_none() && !index.has_prefix(&name) && !taken.contains(&name)
            });
            if !free {
                self.left_out += 1;
                continue;
            }
            self.moved += 1;
            self.example = shown(&name);
            let (name_start, name_len) = index.store_name(&name)?;
            placed.push(Entry {
                name_start,
                name_len,
                ..entry
            });
            taken.insert(name);
        }
        if !placed.is_empty() {
            index.entries.append(&mut placed);
            sort(&index.names, &mut index.entries);
        }
        Ok(())
    }

    fn sentence(&self) -> Option<String> {
        let Renamed {
            encoded,
            moved,
            left_out,
            example,
            ..
        } = self;
        (encoded + moved + left_out > 0).then(|| {
            format!(
                "entries whose names are no keys, or prefixes of others: {encoded} are shown \
                 percent-encoded, {moved} with `~` (such as {example}), {left_out} are left out"
            )
        })
    }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}
