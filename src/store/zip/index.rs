//! The central directory in memory: entries sorted by key, 48 bytes each and the key.
//!
//! Sorted by bytes, all keys below a prefix are adjacent: one level is listed by a binary search
//! from each name to the next, whatever the size of the subtrees.
//!
//! A zip file need not be a tree. Conflicts are resolved here:
//!
//! * of entries with one name, the last in the directory counts, because programs overwrite a key
//!   by adding another entry;
//! * a name that is not a valid key is percent-encoded ([`names`]);
//! * an object whose key is a prefix of other keys, or whose encoded key is taken, gets `~`
//!   appended until its key is unique.

use std::collections::HashSet;
use std::ops::Range;

use rawzip::ZipFileHeaderRecord;

use super::names::{self, Separator};
use super::time;
use crate::store::key::{MOST_SEGMENTS, is_too_deep};

/// Most entries of a zip file that is opened.
const MAX_ENTRIES: usize = 20_000_000;

/// Most bytes that all keys may take together.
const MAX_NAMES_BYTES: usize = 1 << 30;

/// An entry whose key needs more `~` is left out. Only a malicious file has one.
const MAX_TILDES: usize = 8;

/// One entry of the central directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexEntry {
    /// Its length when it is decoded.
    pub(super) size: u64,
    /// Its length in the zip file.
    pub(super) stored: u64,
    /// The offset of its local header in the zip file.
    pub(super) header_offset: u64,
    /// The checksum of the decoded bytes.
    pub(super) crc: u32,
    name_start: u32,
    name_len: u32,
    /// Time of modification, in seconds since 1970.
    pub(super) seconds: u32,
    /// Compression method, as the directory has it.
    pub(super) method: u16,
    /// General purpose flags, as the directory has them.
    pub(super) flags: u16,
}

/// All entries, sorted by key. Keys are unique, and none is a prefix of another.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: Vec<u8>,
    entries: Vec<IndexEntry>,
    separator: Separator,
}

/// Collects entries in the order of the central directory.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    index: Index,
    /// Entries whose names were encoded.
    encoded: Vec<IndexEntry>,
    has_slash: bool,
    has_backslash: bool,
}

impl Index {
    /// The byte that separates the segments of the names in the zip file.
    pub(super) fn separator(&self) -> Separator {
        self.separator
    }

    /// The entry number `at` in the order of keys.
    pub(super) fn entry(&self, at: usize) -> Option<&IndexEntry> {
        self.entries.get(at)
    }

    /// The memory that the index takes, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let entries = self.entries.len() * size_of::<IndexEntry>();
        (self.names.len() + entries) as u64
    }

    /// The key of `entry`.
    pub(super) fn name(&self, entry: &IndexEntry) -> &[u8] {
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

    /// The number of the first entry in `range` whose key does not begin with `start`. The entries
    /// whose keys begin with it are the first ones of the range.
    pub(super) fn end_of(&self, range: Range<usize>, start: &[u8]) -> usize {
        let entries = self.entries.get(range.clone()).unwrap_or_default();
        range.start + entries.partition_point(|e| self.name(e).starts_with(start))
    }

    /// The part of `range` after the key `seen` or, if `seen` ends in `/`, after all keys that
    /// begin with it.
    pub(super) fn after(&self, range: Range<usize>, seen: &[u8]) -> Range<usize> {
        let entries = self.entries.get(range.clone()).unwrap_or_default();
        let is_seen = |key: &[u8]| key <= seen || seen.ends_with(b"/") && key.starts_with(seen);
        let count = entries.partition_point(|e| is_seen(self.name(e)));
        range.start + count..range.end
    }

    /// Whether the key of entry number `at` is a prefix of other keys.
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
    /// Collects entries whose names `separator` separates.
    pub(super) fn new(separator: Separator) -> IndexBuilder {
        let index = Index {
            separator,
            ..Index::default()
        };
        IndexBuilder {
            index,
            ..IndexBuilder::default()
        }
    }

    /// Whether `\` seems to separate the segments of the names of all entries that were added.
    pub(super) fn has_only_backslashes(&self) -> bool {
        self.has_backslash && !self.has_slash
    }

    /// Adds an entry of the central directory.
    ///
    /// # Errors
    /// When there are more entries or longer names than a store may have.
    pub(super) fn push(&mut self, record: &ZipFileHeaderRecord<'_>) -> Result<(), String> {
        let path = record.file_path();
        let name = path.as_bytes();
        self.has_slash |= name.contains(&b'/');
        self.has_backslash |= name.contains(&b'\\');
        let name = self.index.separator.slashed(name);
        // A directory has no entry: prefixes follow from the keys below them.
        if name.ends_with(b"/") {
            return Ok(());
        }
        if self.index.entries.len() + self.encoded.len() >= MAX_ENTRIES {
            return Err(format!("more than {MAX_ENTRIES} entries"));
        }
        let key = names::to_key(&name);
        if is_too_deep(&key) {
            return Err(format!(
                "an entry is in more than {} directories",
                MOST_SEGMENTS - 1
            ));
        }
        let (name_start, name_len) = self.index.store_name(&key)?;
        let entry = IndexEntry {
            size: record.uncompressed_size_hint(),
            stored: record.compressed_size_hint(),
            header_offset: record.local_header_offset(),
            crc: record.crc32(),
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

    /// The index, and a message about entries that are shown under other names, if there are any.
    ///
    /// # Errors
    /// Those of [`IndexBuilder::push`].
    pub(super) fn finish(mut self) -> Result<(Index, Option<String>), String> {
        let index = &mut self.index;
        keep_last(&index.names, &mut index.entries);
        keep_last(&index.names, &mut self.encoded);
        let mut renamed = RenamedEntries::default();
        renamed.add_encoded(index, self.encoded);
        renamed.move_prefixes(index);
        renamed.place(index)?;
        index.names.shrink_to_fit();
        index.entries.shrink_to_fit();
        Ok((self.index, renamed.sentence()))
    }
}

fn name<'n>(names: &'n [u8], entry: &IndexEntry) -> &'n [u8] {
    let start = entry.name_start as usize;
    let end = start + entry.name_len as usize;
    names.get(start..end).unwrap_or_default()
}

fn sort(names: &[u8], entries: &mut [IndexEntry]) {
    // Entries of one name stay in the order in which they came.
    let key = |e: &IndexEntry| (name(names, e), e.name_start);
    entries.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
}

/// Sorts `entries`, and keeps the last of each name.
fn keep_last(names: &[u8], entries: &mut Vec<IndexEntry>) {
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
struct RenamedEntries {
    /// Entries without a key so far.
    without_key: Vec<IndexEntry>,
    encoded: usize,
    moved: usize,
    left_out: usize,
    /// One of their new keys, as an example.
    example: String,
}

impl RenamedEntries {
    /// Adds entries with encoded names to `index`, where the encoded name is free.
    fn add_encoded(&mut self, index: &mut Index, encoded: Vec<IndexEntry>) {
        let (taken, mut free): (Vec<IndexEntry>, Vec<IndexEntry>) = encoded
            .into_iter()
            .partition(|entry| index.find(index.name(entry)).is_some());
        self.without_key = taken;
        if let Some(first) = free.first() {
            self.encoded = free.len();
            self.example = shown(index.name(first));
            index.entries.append(&mut free);
            sort(&index.names, &mut index.entries);
        }
    }

    /// Removes entries from `index` whose keys are prefixes of other keys.
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
                self.without_key.push(*entry);
            }
            at += 1;
            stays
        });
    }

    /// Adds the entries without a key to `index`, under keys that are free.
    fn place(&mut self, index: &mut Index) -> Result<(), String> {
        let mut taken: HashSet<Vec<u8>> = HashSet::new();
        let mut placed = Vec::with_capacity(self.without_key.len());
        for entry in std::mem::take(&mut self.without_key) {
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
            placed.push(IndexEntry {
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
        let RenamedEntries {
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
