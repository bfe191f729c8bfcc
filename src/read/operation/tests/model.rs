//! Models of arrays, which give the stored objects and each single element.

use std::sync::{Arc, mpsc};

use proptest::prelude::*;
use serde_json::json;

use crate::buffers::{Buffer, zeroed};
use crate::codec::{BloscEncoding, blosc_compress};
use crate::error::Error;
use crate::grid::{Dims, indices_of};
use crate::load::testing::Reader;
use crate::load::{Patience, Region, Versions};
use crate::metadata::{NodeMetadata, v3};
use crate::read::{Policy, ReadOperation, RegionRun};
use crate::store::{Key, MemoryStore, Store};

impl Reader {
    /// Fills `out` with bytes of `region` from `from` on.
    pub(super) fn gather(
        &self,
        region: &Region,
        from: u64,
        out: &mut [u8],
        versions: &Arc<dyn Versions>,
        (policy, patience): (Policy, Patience),
    ) -> Result<(), Error> {
        let (send, receive) = mpsc::channel();
        let run = RegionRun {
            array: Arc::clone(&self.array),
            region: Arc::new(region.clone()),
            from,
            at: 0,
            len: out.len(),
            policy,
        };
        let room = Buffer::from(zeroed(out.len()).unwrap());
        let finish = Box::new(move |read| drop(send.send(read)));
        ReadOperation::new(&self.loader, versions, [run].into_iter(), room, finish).go_on(patience);
        out.copy_from_slice(&receive.recv().unwrap()?);
        Ok(())
    }

    /// Whether all chunks of the range are in memory.
    pub(super) fn has(
        &self,
        region: &Region,
        (from, len): (u64, usize),
        versions: &dyn Versions,
    ) -> bool {
        let layout = self.array.layout();
        let cut = region.cut(layout.shown_grid(), layout.data_type().item_size);
        let cut = cut.filter(|cut| cut.has(from, len as u64));
        cut.is_some_and(|cut| {
            let seen = cut.visit(from, len as u64, |indices, _| {
                let found = self.loader.peek(&self.array, versions, indices);
                found.map(drop).ok_or(())
            });
            seen.is_ok()
        })
    }
}

/// The parameters of an array.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) shape: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    /// Chunks in a shard along each axis; `None` without sharding.
    pub(super) per_shard: Option<Vec<u64>>,
    /// The lengths of the stored chunks along each axis, where they differ: in elements, or in the chunks of a shard.
    /// They cover the array. `None` in a regular grid.
    pub(super) lists: Option<Vec<Vec<u64>>>,
    pub(super) item: (&'static str, u64),
    pub(super) big: bool,
    /// Whether chunks are stored with their axes reversed.
    pub(super) reversed: bool,
    pub(super) compressor: Compressor,
    /// Bit i says whether the i-th chunk is absent.
    pub(super) absent: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Compressor {
    None,
    Zstd,
    Blosc {
        name: &'static std::ffi::CStr,
        level: i32,
        shuffle: i32,
        typesize: usize,
        blocksize: usize,
    },
}

impl Compressor {
    fn encode(self, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Compressor::None => bytes,
            Compressor::Zstd => {
                let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
                let n = zstd_safe::compress(&mut out[..], &bytes, 1).unwrap();
                out.truncate(n);
                out
            }
            Compressor::Blosc {
                name,
                level,
                shuffle,
                typesize,
                blocksize,
            } => {
                let encoding = BloscEncoding {
                    compressor: name,
                    level,
                    shuffle,
                    typesize,
                    blocksize,
                };
                blosc_compress(&encoding, &bytes)
            }
        }
    }
}

pub(super) fn compressor() -> impl Strategy<Value = Compressor> {
    let names = vec![c"lz4", c"zstd", c"blosclz"];
    let blosc = (
        prop::sample::select(names),
        prop::sample::select(vec![0, 1, 5]),
        0..3_i32,
        1..=16_usize,
        prop::sample::select(vec![0, 64, 256, 300, 1000, 4096]),
    );
    let blosc = blosc.prop_map(
        |(name, level, shuffle, typesize, blocksize)| Compressor::Blosc {
            name,
            level,
            shuffle,
            typesize,
            blocksize,
        },
    );
    prop_oneof![
        2 => Just(Compressor::None),
        1 => Just(Compressor::Zstd),
        5 => blosc,
    ]
}

const ITEMS: [(&str, u64); 6] = [
    ("uint8", 1),
    ("uint16", 2),
    ("r24", 3),
    ("uint32", 4),
    ("uint64", 8),
    ("r128", 16),
];

pub(super) const FILL: u8 = 1;

impl Model {
    /// First element and length of chunk `number` along `axis`.
    fn span(&self, axis: usize, number: u64) -> (u64, u64) {
        match &self.lists {
            Some(lists) if self.per_shard.is_none() => list_span(&lists[axis], number),
            _ => (number * self.chunk[axis], self.chunk[axis]),
        }
    }

    /// First chunk and number of chunks of shard `number` along `axis`.
    fn shard_span(&self, axis: usize, number: u64, per_shard: &[u64]) -> (u64, u64) {
        match &self.lists {
            Some(lists) => list_span(&lists[axis], number),
            None => (number * per_shard[axis], per_shard[axis]),
        }
    }

    /// The number of chunks that begin in the array along each axis, by `span`.
    fn counts(&self, span: impl Fn(usize, u64) -> (u64, u64)) -> Vec<u64> {
        let axes = self.shape.iter().enumerate();
        axes.map(|(axis, &length)| {
            let inside = (0..).take_while(|&number| span(axis, number).0 < length);
            inside.count() as u64
        })
        .collect()
    }

    fn chunk_counts(&self) -> Vec<u64> {
        if self.lists.is_none() {
            // The chunks are not counted one by one, because their number is needed for each element.
            let axes = self.shape.iter().zip(&self.chunk);
            return axes.map(|(shape, chunk)| shape.div_ceil(*chunk)).collect();
        }
        self.counts(|axis, number| self.span(axis, number))
    }

    fn stored_counts(&self) -> Vec<u64> {
        let Some(per_shard) = &self.per_shard else {
            return self.chunk_counts();
        };
        self.counts(|axis, number| {
            let (first, count) = self.shard_span(axis, number, per_shard);
            (first * self.chunk[axis], count)
        })
    }

    fn is_absent(&self, chunk: &[u64]) -> bool {
        match crate::grid::rank_of(chunk, &self.chunk_counts()) {
            Some(rank) => self.absent >> (rank % 64) & 1 == 1,
            None => true,
        }
    }

    fn fill(&self) -> Vec<u8> {
        let mut fill = vec![0; usize::try_from(self.item.1).unwrap()];
        fill[0] = FILL;
        fill
    }

    fn element(&self, at: &[u64]) -> Vec<u8> {
        let axes = at.iter().enumerate();
        let chunk = axes.map(|(axis, &at)| {
            let mut numbers = match self.lists {
                Some(_) => 0..,
                None => at / self.chunk[axis]..,
            };
            let found = numbers.find(|&number| {
                let (first, length) = self.span(axis, number);
                at < first + length
            });
            found.unwrap()
        });
        let chunk: Vec<u64> = chunk.collect();
        if self.is_absent(&chunk) {
            return self.fill();
        }
        let seed = at.iter().fold(7, |sum: u64, i| sum * 31 + i);
        (0..self.item.1)
            .map(|k| (seed + k * 57).to_le_bytes()[0])
            .collect()
    }

    pub(super) fn encoded(&self, chunk: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let spans = chunk.iter().enumerate();
        let spans: Vec<(u64, u64)> = spans.map(|(axis, &i)| self.span(axis, i)).collect();
        let mut stored: Vec<u64> = spans.iter().map(|span| span.1).collect();
        if self.reversed {
            stored.reverse();
        }
        for mut within in points(&stored) {
            if self.reversed {
                within.reverse();
            }
            let corner = spans.iter().zip(&within);
            let at: Vec<u64> = corner.map(|((first, _), j)| first + j).collect();
            let mut element = self.element(&at);
            if self.big {
                element.reverse();
            }
            bytes.extend(element);
        }
        self.compressor.encode(bytes)
    }

    /// The stored object of the chunk or shard `stored`.
    fn object(&self, stored: &[u64]) -> Option<Vec<u8>> {
        let Some(per_shard) = &self.per_shard else {
            return (!self.is_absent(stored)).then(|| self.encoded(stored));
        };
        let (mut body, mut index) = (Vec::new(), Vec::new());
        let spans = stored.iter().enumerate();
        let spans = spans.map(|(axis, &i)| self.shard_span(axis, i, per_shard));
        let (corner, counts): (Vec<u64>, Vec<u64>) = spans.unzip();
        for local in points(&counts) {
            let corner = corner.iter().zip(&local);
            let chunk: Vec<u64> = corner.map(|(first, j)| first + j).collect();
            let entry = if self.is_absent(&chunk) {
                [u64::MAX; 2]
            } else {
                let encoded = self.encoded(&chunk);
                let entry = [body.len() as u64, encoded.len() as u64];
                body.extend(encoded);
                entry
            };
            index.extend(entry.map(u64::to_le_bytes).concat());
        }
        let any = !body.is_empty();
        body.extend(index);
        any.then_some(body)
    }

    pub(super) fn document(&self) -> String {
        let mut codecs = vec![if self.item.0.starts_with("uint") && self.item.1 > 1 {
            let endian = if self.big { "big" } else { "little" };
            json!({"name": "bytes", "configuration": {"endian": endian}})
        } else {
            json!("bytes")
        }];
        if self.reversed {
            let order: Vec<usize> = (0..self.chunk.len()).rev().collect();
            let transpose = json!({"name": "transpose", "configuration": {"order": order}});
            codecs.insert(0, transpose);
        }
        match self.compressor {
            Compressor::None => {}
            Compressor::Zstd => codecs.push(json!({
                "name": "zstd", "configuration": {"level": 1, "checksum": false}
            })),
            // The decoder takes these parameters from the header of each buffer.
            Compressor::Blosc { .. } => codecs.push(json!({"name": "blosc", "configuration": {
                "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0
            }})),
        }
        if self.per_shard.is_some() {
            let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
            codecs = vec![json!({"name": "sharding_indexed", "configuration": {
                "chunk_shape": self.chunk, "codecs": codecs, "index_codecs": index
            }})];
        }
        let fill_value = if self.item.0.starts_with("uint") {
            json!(FILL)
        } else {
            json!(self.fill())
        };
        let per_shard = self.per_shard.clone();
        let per_shard = per_shard.unwrap_or_else(|| vec![1; self.chunk.len()]);
        let chunk_grid = match &self.lists {
            None => {
                let shape = self.chunk.iter().zip(&per_shard);
                let shape: Vec<u64> = shape.map(|(chunk, n)| chunk * n).collect();
                json!({"name": "regular", "configuration": {"chunk_shape": shape}})
            }
            Some(lists) => {
                let unit = |axis: usize| self.per_shard.as_ref().map_or(1, |_| self.chunk[axis]);
                let axes = lists.iter().enumerate().map(|(axis, list)| {
                    list.iter()
                        .map(|length| length * unit(axis))
                        .collect::<Vec<_>>()
                });
                let shapes: Vec<Vec<u64>> = axes.collect();
                json!({"name": "rectilinear", "configuration": {
                    "kind": "inline", "chunk_shapes": shapes
                }})
            }
        };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape, "codecs": codecs,
            "data_type": self.item.0, "fill_value": fill_value,
            "chunk_grid": chunk_grid,
            "chunk_key_encoding": {"name": "default"},
        })
        .to_string()
    }

    pub(super) fn reader(&self, budget: u64) -> (Reader, Arc<MemoryStore>) {
        let store = Arc::new(MemoryStore::new());
        for stored in points(&self.stored_counts()) {
            if let Some(bytes) = self.object(&stored) {
                let parts: Vec<String> = stored.iter().map(u64::to_string).collect();
                let key = [&["c".to_owned()], &parts[..]].concat().join("/");
                store.insert(Key::parse(key.as_bytes()).unwrap(), bytes);
            }
        }
        (reader(&self.document(), &store, budget), store)
    }

    pub(super) fn run(&self, region: &Region) -> Vec<u8> {
        let lengths: Vec<u64> = region.order.iter().map(|&a| region.shape[a]).collect();
        let mut bytes = Vec::new();
        for file in points(&lengths) {
            let mut at = region.start.clone();
            for (&axis, i) in region.order.iter().zip(file) {
                at[axis] += i;
            }
            bytes.extend(self.element(&at));
        }
        bytes
    }
}

/// First element and length of item `number` of a list of lengths. Behind the list are items that are in no array.
fn list_span(list: &[u64], number: u64) -> (u64, u64) {
    let number = usize::try_from(number).unwrap();
    let first = list.iter().take(number).sum();
    match list.get(number) {
        Some(length) => (first, *length),
        None => (1 << 40, 0),
    }
}

/// All points of a box, in C order.
fn points(lengths: &[u64]) -> Vec<Dims> {
    let n = crate::grid::product(lengths).unwrap();
    (0..n)
        .map(|rank| indices_of(rank, lengths).unwrap())
        .collect()
}

pub(super) fn reader(document: &str, store: &Arc<MemoryStore>, budget: u64) -> Reader {
    let Ok(NodeMetadata::Array(array)) = v3::parse(document.as_bytes()) else {
        panic!("{document}");
    };
    Reader::new(*array, Arc::clone(store) as Arc<dyn Store>, budget)
}

pub(super) fn case() -> impl Strategy<Value = (Model, Region)> {
    // For each axis: its length, the length of a chunk, the chunks of a shard, and numbers for the
    // region.
    let one = (0..8_u64, 1..5_u64, 1..3_u64, any::<(u64, u64, u64)>());
    let axes = proptest::collection::vec(one, 0..=5);
    let flags = any::<(bool, bool, bool, bool)>();
    // Numbers for the lengths of chunks, which differ in a third of the cases.
    let lists = proptest::option::weighted(0.33, proptest::collection::vec(1..9_u64, 9));
    let coding = (flags, compressor(), lists);
    let item = prop::sample::select(ITEMS.to_vec());
    (axes, coding, item, any::<(u64, u64)>()).prop_map(|(axes, coding, item, absent)| {
        let ((sharded, large, big, reversed), compressor, lists) = coding;
        // Arrays of five axes stay small.
        let most = [8, 8, 8, 7, 5, 4][axes.len()];
        // Large chunks have many blocks, and few axes.
        let scale = if large {
            [1, 400, 16, 6, 1, 1][axes.len()]
        } else {
            1
        };
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0.min(most) * scale).collect();
        let start: Dims = axes
            .iter()
            .zip(&shape)
            .map(|(axis, length)| axis.3.0 % (length + 1))
            .collect();
        let lengths = axes.iter().zip(&shape).zip(&start);
        let lengths = lengths.map(|((axis, length), start)| {
            let most = length - start;
            (axis.3.1 % (most + 3)).min(most)
        });
        let mut order: smallvec::SmallVec<[usize; 6]> = (0..axes.len()).collect();
        order.sort_by_key(|&axis| axes[axis].3.2);
        let region = Region {
            shape: lengths.collect(),
            start,
            order,
        };
        let chunk: Vec<u64> = axes.iter().map(|axis| axis.1 * scale).collect();
        let lists = lists.map(|numbers| {
            let units = shape.iter().zip(&chunk).zip(&axes);
            let lists = units.map(|((&length, &chunk), axis)| {
                // Inner chunks are long already.
                let (step, unit) = if sharded { (1, chunk) } else { (scale, 1) };
                let (mut list, mut covered) = (Vec::new(), 0);
                let most = usize::try_from(axis.2).unwrap();
                let mut numbers = numbers.iter().cycle().skip(most);
                // There may be a chunk past the end.
                while covered < length || list.is_empty() || list.len() < most {
                    let number = numbers.next().unwrap() % if sharded { 3 } else { 8 } + 1;
                    list.push(number * step);
                    covered += number * step * unit;
                }
                list
            });
            lists.collect()
        });
        let model = Model {
            shape,
            chunk,
            lists,
            per_shard: sharded.then(|| axes.iter().map(|axis| axis.2).collect()),
            reversed,
            big: big && item.0.starts_with("uint"),
            item,
            compressor,
            absent: absent.0 & absent.1,
        };
        (model, region)
    })
}
