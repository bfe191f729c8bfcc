//! An array as a writer of some version makes it: its items, and its chunks as they are stored.

use std::collections::BTreeMap;
use std::fmt;

use zarr_mount::metadata::Target;

use super::codecs::{Codec, Number, frame};
use super::mix;
use super::types::Type;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Version {
    V2,
    V3,
    V1,
    PreV1,
    /// The drafts of 2020 to 2022.
    Protocol,
    /// The draft of December 2022.
    Core,
}

#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a choice of the writer"
)]
pub struct Model {
    pub version: Version,
    /// Where the hierarchy is in the store, and the array in it.
    pub base: &'static str,
    pub path: &'static str,
    pub shape: Vec<usize>,
    pub inner: Vec<usize>,
    /// Inner chunks per shard (of a second level, inner shards), in each dimension.
    pub per_shard: Option<Vec<usize>>,
    /// Inner chunks per inner shard.
    pub nested: Option<Vec<usize>>,
    pub item: Type,
    /// Axis `i` of what is stored is axis `axes[i]` of the array.
    pub axes: Vec<usize>,
    /// Whether axes change places before the sharding, or within the shards.
    pub transposed_outside: bool,
    pub codecs: Vec<Codec>,
    /// Whether the last codec is the compressor.
    pub last_compresses: bool,
    pub separator: char,
    pub v2_keys: bool,
    pub index_at_start: bool,
    pub index_checksum: bool,
    pub gzip_inner_shards: bool,
    pub gzip_shards: bool,
    /// `None`: null.
    pub fill: Option<Vec<u8>>,
    pub dimension_names: Option<Vec<Option<&'static str>>>,
    /// Whether there is a chunk from before the array became smaller.
    pub shrunk: bool,
    /// Documents as older writers of the version have them.
    pub older: bool,
    /// Bit i: the i-th inner chunk is absent.
    pub absent: u64,
    pub seed: u64,
}

/// All indices of a box, in C order.
pub fn indices(counts: &[usize]) -> Vec<Vec<usize>> {
    counts.iter().fold(vec![vec![]], |all, &count| {
        let longer = |first: &Vec<usize>, i| first.iter().copied().chain([i]).collect::<Vec<_>>();
        all.iter()
            .flat_map(|first| (0..count).map(move |i| longer(first, i)))
            .collect()
    })
}

pub fn times(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

fn plus(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// The indices of a box in the order that axes which change places give them.
pub fn permuted(counts: &[usize], axes: &[usize]) -> Vec<Vec<usize>> {
    let moved: Vec<usize> = axes.iter().map(|&axis| counts[axis]).collect();
    let back = |index: &Vec<usize>| {
        let mut at = vec![0; index.len()];
        for (&axis, &i) in axes.iter().zip(index) {
            at[axis] = i;
        }
        at
    };
    indices(&moved).iter().map(back).collect()
}

/// Where in a box the element is, in C order.
pub fn rank_of(at: &[usize], counts: &[usize]) -> usize {
    at.iter()
        .zip(counts)
        .fold(0, |rank, (i, count)| rank * count + i)
}

/// Prints the contents of the store, which is all that it takes to repeat a failed case.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.version)?;
        for (key, bytes) in self.objects() {
            match String::from_utf8(bytes) {
                Ok(text) if text.starts_with('{') => writeln!(f, "  {key}: {text}")?,
                Ok(text) => writeln!(f, "  {key}: {:02x?}", text.as_bytes())?,
                Err(error) => writeln!(f, "  {key}: {:02x?}", error.as_bytes())?,
            }
        }
        Ok(())
    }
}

impl Model {
    /// The shape of the second level's shards, in elements.
    pub fn middle(&self) -> Vec<usize> {
        match &self.nested {
            Some(nested) => times(&self.inner, nested),
            None => self.inner.clone(),
        }
    }

    /// The shape of what is stored under one key, in elements.
    pub fn outer(&self) -> Vec<usize> {
        match &self.per_shard {
            Some(per_shard) => times(&self.middle(), per_shard),
            None => self.inner.clone(),
        }
    }

    pub fn grid(&self, chunk: &[usize]) -> Vec<usize> {
        let lengths = self.shape.iter().zip(chunk);
        lengths
            .map(|(length, chunk)| length.div_ceil(*chunk))
            .collect()
    }

    /// The indices of all inner chunks.
    pub fn chunks(&self) -> Vec<Vec<usize>> {
        indices(&self.grid(&self.inner))
    }

    pub fn fill(&self) -> Vec<u8> {
        self.fill.clone().unwrap_or_else(|| self.item.no_fill())
    }

    fn element(&self, at: &[usize]) -> Vec<u8> {
        if at.iter().zip(&self.shape).any(|(i, length)| i >= length) {
            return self.fill();
        }
        let seed = at.iter().fold(self.seed, |seed, &i| mix(seed ^ i as u64));
        match self.codecs.first() {
            Some(
                Codec::Delta { from, .. } | Codec::Scale { from, .. } | Codec::AsType { from, .. },
            ) => from.put((seed % 61) as i64),
            _ => self.item.item(seed),
        }
    }

    pub fn is_absent(&self, chunk: &[usize]) -> bool {
        let counts = self.grid(&self.inner);
        if chunk.iter().zip(&counts).any(|(i, count)| i >= count) {
            return true;
        }
        self.absent >> (rank_of(chunk, &counts) % 64) & 1 == 1
    }

    /// The items of an inner chunk, in C order.
    pub fn items(&self, chunk: &[usize]) -> Vec<Vec<u8>> {
        let start = times(chunk, &self.inner);
        let item = |offset: &Vec<usize>| {
            if self.is_absent(chunk) {
                self.fill()
            } else {
                self.element(&plus(&start, offset))
            }
        };
        indices(&self.inner).iter().map(item).collect()
    }

    /// The items of what is stored under one key, in C order.
    pub fn outer_items(&self, outer: &[usize]) -> Vec<Vec<u8>> {
        let shape = self.outer();
        let start = times(outer, &shape);
        let item = |offset: &Vec<usize>| {
            let at = plus(&start, offset);
            let chunk: Vec<_> = at.iter().zip(&self.inner).map(|(i, n)| i / n).collect();
            if self.is_absent(&chunk) {
                self.fill()
            } else {
                self.element(&at)
            }
        };
        indices(&shape).iter().map(item).collect()
    }

    /// The inner chunk as it is stored; `None` when it is not.
    pub fn encoded(&self, chunk: &[usize]) -> Option<Vec<u8>> {
        if self.is_absent(chunk) {
            return None;
        }
        let items = self.items(chunk);
        let order = permuted(&self.inner, &self.axes);
        let items = order
            .iter()
            .map(|at| items[rank_of(at, &self.inner)].clone());
        Some(encode(&self.item, &self.codecs, items.collect()))
    }

    /// Counts per shard in the order of the index.
    fn slots(&self, counts: &[usize]) -> Vec<Vec<usize>> {
        if self.transposed_outside {
            permuted(counts, &self.axes)
        } else {
            indices(counts)
        }
    }

    /// One level of sharding around `parts`; `None` is an empty slot.
    fn shard(&self, parts: &[Option<Vec<u8>>]) -> Option<Vec<u8>> {
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let checksum = 4 * usize::from(self.index_checksum);
        let mut at = if self.index_at_start {
            parts.len() * 16 + checksum
        } else {
            0
        };
        let mut body = Vec::new();
        let mut entries = vec![[u64::MAX; 2]; parts.len()];
        // Any order will do, with gaps.
        for slot in (0..parts.len()).rev() {
            if let Some(part) = &parts[slot] {
                let gap = slot % 2;
                body.extend(std::iter::repeat_n(0xee, gap));
                at += gap;
                entries[slot] = [at as u64, part.len() as u64];
                body.extend(part);
                at += part.len();
            }
        }
        let numbers = entries.as_flattened().iter();
        let mut index: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        if self.index_checksum {
            index = Codec::Crc32c.encode(&index);
        }
        let parts = if self.index_at_start {
            [index, body]
        } else {
            [body, index]
        };
        Some(parts.concat())
    }

    /// Keys of the stored chunks and shards, relative to the array's data, and their bytes.
    pub fn stored(&self) -> BTreeMap<String, Vec<u8>> {
        let gzip_if = |gzip: bool, bytes: Vec<u8>| {
            if gzip {
                Codec::Gzip.encode(&bytes)
            } else {
                bytes
            }
        };
        let inner_shard = |middle: &[usize]| {
            let Some(nested) = &self.nested else {
                return self.encoded(middle);
            };
            let first = times(middle, nested);
            let parts = self.slots(nested);
            let parts: Vec<_> = parts
                .iter()
                .map(|at| self.encoded(&plus(&first, at)))
                .collect();
            let bytes = self.shard(&parts)?;
            Some(gzip_if(self.gzip_inner_shards, bytes))
        };
        let shard = |outer: &[usize]| {
            let Some(per_shard) = &self.per_shard else {
                return self.encoded(outer);
            };
            let first = times(outer, per_shard);
            let parts = self.slots(per_shard);
            let parts: Vec<_> = parts
                .iter()
                .map(|at| inner_shard(&plus(&first, at)))
                .collect();
            let bytes = self.shard(&parts)?;
            Some(gzip_if(self.gzip_shards, bytes))
        };
        indices(&self.grid(&self.outer()))
            .iter()
            .filter_map(|outer| Some((self.key(outer), shard(outer)?)))
            .collect()
    }

    /// The key of what is left of a larger array.
    pub fn left_over(&self) -> Option<String> {
        let last = *self.grid(&self.outer()).last()?;
        let mut outside = vec![0; self.shape.len()];
        *outside.last_mut()? = last;
        self.shrunk.then(|| self.key(&outside))
    }

    /// The key of a chunk in the array's own version.
    pub fn key(&self, chunk: &[usize]) -> String {
        let joined = self.joined(chunk);
        match self.version {
            Version::PreV1 => format!("__zdata__/{joined}.blosc"),
            Version::Protocol | Version::Core => format!("c{joined}"),
            Version::V3 if !self.v2_keys => self.default_key(chunk),
            _ if chunk.is_empty() => "0".to_owned(),
            _ => joined,
        }
    }

    /// The key of a chunk where the array is shown in another version.
    pub fn key_as(&self, target: Target, chunk: &[usize]) -> String {
        let default = match self.version {
            Version::V3 => !self.v2_keys,
            Version::Protocol | Version::Core => true,
            _ => false,
        };
        match target {
            Target::V3 if default => self.default_key(chunk),
            _ if chunk.is_empty() => "0".to_owned(),
            _ => self.joined(chunk),
        }
    }

    fn joined(&self, chunk: &[usize]) -> String {
        let numbers: Vec<String> = chunk.iter().map(ToString::to_string).collect();
        numbers.join(&self.separator.to_string())
    }

    fn default_key(&self, chunk: &[usize]) -> String {
        match chunk {
            [] => "c".to_owned(),
            _ => format!("c{}{}", self.separator, self.joined(chunk)),
        }
    }

    /// Whether axes change places in a way that v2 has no order for.
    pub fn has_odd_axes(&self) -> bool {
        !self.axes.is_sorted() && !self.axes.iter().rev().is_sorted()
    }
}

/// Items, in the order of storage, through filters and compressors.
pub fn encode(item: &Type, codecs: &[Codec], items: Vec<Vec<u8>>) -> Vec<u8> {
    let mut bytes = match (codecs.iter().rev().find_map(Codec::to), item) {
        (Some(last), Type::Plain(field)) => {
            let first = Number {
                kind: field.kind.clone(),
                big: field.big,
            };
            let numbers: Vec<i64> = items.iter().map(|item| first.get(item)).collect();
            let numbers = codecs
                .iter()
                .fold(numbers, |numbers, codec| codec.encode_numbers(&numbers));
            let swapped = numbers.iter().flat_map(|&number| {
                let mut bytes = last.put(number);
                if last.big {
                    bytes.reverse();
                }
                bytes
            });
            swapped.collect()
        }
        _ if item.is_variable() => frame(&items),
        _ => {
            let mut items = items;
            for bytes in &mut items {
                item.swap(bytes);
            }
            items.concat()
        }
    };
    for codec in codecs {
        bytes = codec.encode(&bytes);
    }
    bytes
}
