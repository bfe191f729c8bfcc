//! A store of the benchmark, as `scripts/bench` describes it: one array, regular chunks, all of
//! them present, one codec, perhaps in shards with the index at their end.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde::Deserialize;

use crate::codec::Codec;

/// Bytes of an index entry: offset and length.
const ENTRY_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;

/// The description of a store.
#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    /// Directory of the array.
    pub store: PathBuf,
    /// Shape of the array.
    pub shape: Vec<usize>,
    /// Shape of a chunk (of an inner one, in shards).
    pub chunks: Vec<usize>,
    /// Shape of a shard, where there are shards.
    pub shards: Option<Vec<usize>>,
    /// Bytes of an element.
    pub item: usize,
    /// How chunks are encoded.
    pub codec: Codec,
    /// The beginning of chunk keys: `c/` in v3, nothing in v2.
    pub prefix: String,
    /// The text between the indices of a chunk key.
    pub separator: String,
}

/// Where the encoded bytes of a chunk are.
#[derive(Debug, Clone)]
pub struct Place {
    /// Which file of [`Stored`].
    pub file: usize,
    /// Offset and length; the whole file where there are no shards.
    pub range: Option<(u64, u64)>,
    /// Indices of the chunk's first element.
    pub origin: Vec<usize>,
}

/// The object that a chunk is in.
#[derive(Debug, Clone)]
pub struct ChunkPlace {
    /// Which object of the array, in C order.
    pub object: usize,
    /// Its key.
    pub key: String,
    /// Which chunk of the shard; `None` where there are no shards.
    pub number_in_shard: Option<usize>,
}

/// The files of a store and all chunks in them.
pub struct Stored {
    /// Paths, in C order.
    pub paths: Vec<PathBuf>,
    /// Opened shards; chunk files are opened when they are read.
    shards: Vec<File>,
    /// Chunks, file by file.
    pub places: Vec<Place>,
}

impl Spec {
    /// The specification in the program's first argument.
    ///
    /// # Errors
    /// When there is none, or it is no specification.
    pub fn from_args() -> io::Result<Spec> {
        let text = std::env::args().nth(1).unwrap_or_default();
        serde_json::from_str(&text).map_err(io::Error::other)
    }

    /// Bytes of the array.
    pub fn array_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.item
    }

    /// Bytes of a decoded chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.chunks.iter().product::<usize>() * self.item
    }

    /// Key and first element of each object, in C order.
    pub fn objects(&self) -> impl Iterator<Item = (String, Vec<usize>)> + '_ {
        let outer = self.shards.as_ref().unwrap_or(&self.chunks);
        grid(&self.shape, outer).map(move |indices| {
            let names: Vec<String> = indices.iter().map(usize::to_string).collect();
            let origin = indices.iter().zip(outer).map(|(i, n)| i * n).collect();
            (
                format!("{}{}", self.prefix, names.join(&self.separator)),
                origin,
            )
        })
    }

    /// Where each chunk of the array is, in C order.
    pub fn chunk_places(&self) -> impl Iterator<Item = ChunkPlace> + '_ {
        let outer = self.shards.as_ref().unwrap_or(&self.chunks);
        let keys: Vec<String> = self.objects().map(|(key, _)| key).collect();
        grid(&self.shape, &self.chunks).map(move |indices| {
            let (mut object, mut inside) = (0, 0);
            for (axis, index) in indices.iter().enumerate() {
                let a_shard = outer[axis] / self.chunks[axis];
                object = object * self.shape[axis].div_ceil(outer[axis]) + index / a_shard;
                inside = inside * a_shard + index % a_shard;
            }
            ChunkPlace {
                object,
                key: keys[object].clone(),
                number_in_shard: self.shards.is_some().then_some(inside),
            }
        })
    }

    /// How many chunks a shard has; 1 where there are no shards.
    pub fn chunks_a_shard(&self) -> usize {
        let outer = self.shards.as_ref().unwrap_or(&self.chunks);
        outer.iter().zip(&self.chunks).map(|(o, c)| o / c).product()
    }

    /// The first elements of the chunks of the shard that begins at `shard_origin`, in C order.
    pub fn origins_in_shard(
        &self,
        shard_origin: &[usize],
    ) -> impl Iterator<Item = Vec<usize>> + '_ {
        let outer = self.shards.as_ref().unwrap_or(&self.chunks);
        let shard_origin = shard_origin.to_vec();
        grid(outer, &self.chunks).map(move |indices| {
            let axes = shard_origin.iter().zip(&indices).zip(&self.chunks);
            axes.map(|((origin, i), n)| origin + i * n).collect()
        })
    }

    /// Finds every chunk; reads the indices of shards.
    ///
    /// # Errors
    /// Those of reading shards.
    pub fn open(&self) -> io::Result<Stored> {
        let outer = self.shards.as_ref().unwrap_or(&self.chunks);
        let mut stored = Stored {
            paths: Vec::new(),
            shards: Vec::new(),
            places: Vec::new(),
        };
        for indices in grid(&self.shape, outer) {
            let file = stored.paths.len();
            let names: Vec<String> = indices.iter().map(usize::to_string).collect();
            let key = format!("{}{}", self.prefix, names.join(&self.separator));
            let origin: Vec<usize> = indices.iter().zip(outer).map(|(i, n)| i * n).collect();
            stored.paths.push(self.store.join(key));
            if self.shards.is_some() {
                self.open_shard(&mut stored, file, &origin, outer)?;
            } else {
                stored.places.push(Place {
                    file,
                    range: None,
                    origin,
                });
            }
        }
        Ok(stored)
    }

    fn open_shard(
        &self,
        stored: &mut Stored,
        file: usize,
        shard_origin: &[usize],
        shard_shape: &[usize],
    ) -> io::Result<()> {
        let shard = File::open(&stored.paths[file])?;
        let inner: Vec<Vec<usize>> = grid(shard_shape, &self.chunks).collect();
        let mut index = vec![0; inner.len() * ENTRY_BYTES];
        let index_bytes = (index.len() + CHECKSUM_BYTES) as u64;
        shard.read_exact_at(&mut index, shard.metadata()?.len() - index_bytes)?;
        for (indices, entry) in inner.iter().zip(index.chunks_exact(ENTRY_BYTES)) {
            let origin = (0..indices.len())
                .map(|axis| shard_origin[axis] + indices[axis] * self.chunks[axis])
                .collect::<Vec<_>>();
            let range = (number(&entry[..8]), number(&entry[8..]));
            if origin.iter().zip(&self.shape).all(|(at, end)| at < end) && range.1 != u64::MAX {
                stored.places.push(Place {
                    file,
                    range: Some(range),
                    origin,
                });
            }
        }
        stored.shards.push(shard);
        Ok(())
    }
}

impl Stored {
    /// Reads the encoded bytes of a chunk into `buffer`, which is made to fit.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(&self, place: &Place, buffer: &mut Vec<u8>) -> io::Result<()> {
        if let Some((offset, len)) = place.range {
            buffer.resize(usize::try_from(len).map_err(io::Error::other)?, 0);
            return self.shards[place.file].read_exact_at(buffer, offset);
        }
        let file = File::open(&self.paths[place.file])?;
        buffer.resize(
            usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?,
            0,
        );
        file.read_exact_at(buffer, 0)
    }

    /// Reads a part of the encoded bytes of a chunk.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_part(&self, place: &Place, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        match place.range {
            Some((offset, _)) => self.shards[place.file].read_exact_at(buffer, offset + from),
            None => File::open(&self.paths[place.file])?.read_exact_at(buffer, from),
        }
    }
}

/// Bytes of the index of a shard of `chunks`, with its checksum.
pub fn index_bytes(chunks: usize) -> usize {
    chunks * ENTRY_BYTES + CHECKSUM_BYTES
}

/// The ranges in the index of a shard whose chunks are all present.
pub fn index_ranges(index: &[u8]) -> Vec<Range<u64>> {
    let entries = index.chunks_exact(ENTRY_BYTES);
    let ranges = entries.map(|entry| {
        let offset = number(&entry[..8]);
        offset..offset.saturating_add(number(&entry[8..]))
    });
    ranges.collect()
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// Indices of all cells of `cell` in `shape`, in C order.
fn grid(shape: &[usize], cell: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let counts: Vec<usize> = shape
        .iter()
        .zip(cell)
        .map(|(n, c)| n.div_ceil(*c))
        .collect();
    (0..counts.iter().product()).map(move |mut rank| {
        let mut indices = vec![0; counts.len()];
        for axis in (0..counts.len()).rev() {
            indices[axis] = rank % counts[axis];
            rank /= counts[axis];
        }
        indices
    })
}
