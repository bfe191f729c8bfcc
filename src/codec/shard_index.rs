//! The index of a shard: where each inner chunk lies, and whether it exists.
//!
//! Spec: <https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/index.html>.
//! The index is an array of `u64` of shape `chunks_per_shard + [2]`, encoded by `index_codecs`.
//!
//! ```json
//! [ { "name": "bytes", "configuration": { "endian": "little" } }, { "name": "crc32c" } ]
//! ```
//!
//! ```text
//! 2 inner chunks:   0        8        16       24       32
//!                   | offset | nbytes | offset | nbytes | crc32c |     36 bytes
//!                         slot 0            slot 1
//! ```
//!
//! Only codecs of fixed size are accepted, so that the position of each word is known without
//! decoding. A transpose moves the words, and may separate those of a slot.

mod encode;

use super::{ArrayToArray, ArrayToBytes, BytesCodec, BytesToBytes, CodecChain, checksum};
use crate::{
    dtype::ByteOrder,
    error::FormatError,
    grid::{self, Dims},
};

const NAME: &str = "sharding_indexed";
const CRC32C: &str = "crc32c";
const WORD: u64 = 8;

/// The end of the shard that the index is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexLocation {
    /// Its first bytes.
    Start,
    /// Its last bytes.
    End,
}

/// The content of a slot of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    /// There is no chunk: all elements have the fill value.
    Empty,
    /// An encoded chunk.
    Present(ShardEntry),
}

/// The range of an encoded inner chunk, inside the shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardEntry {
    /// First byte, from the start of the shard.
    pub offset: u64,
    /// Number of bytes.
    pub nbytes: u64,
}

/// The encoding of an index: its length, and the position of every word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexLayout {
    chunks_per_shard: Dims,
    /// The distance in words between adjacent slots along each axis.
    strides: Dims,
    nbytes_stride: u64,
    n_slots: u64,
    /// The axes of slots and words in the order in which they are stored.
    permutation: Vec<usize>,
    byte_order: ByteOrder,
    n_checksums: u64,
    /// The layout to try when this one does not fit.
    otherwise: Option<Box<IndexLayout>>,
}

impl IndexLayout {
    /// The layout of an index of `chunks_per_shard` slots, encoded by `index_codecs`.
    ///
    /// # Errors
    /// A codec without a fixed size, `bytes` without a byte order, a transpose of another
    /// rank, or an index that is too large to count its bytes.
    pub fn new(
        chunks_per_shard: &[u64],
        index_codecs: &CodecChain,
    ) -> Result<IndexLayout, FormatError> {
        let refused = |name| FormatError::unsupported("index_codecs", "index codec", name);
        let byte_order = match &index_codecs.array_to_bytes {
            ArrayToBytes::Bytes(bytes) => bytes.endian.ok_or_else(|| {
                FormatError::document("index_codecs", "codec `bytes` without `endian`")
            })?,
            codec => return Err(refused(codec.name())),
        };
        for codec in &index_codecs.bytes_to_bytes {
            if *codec != BytesToBytes::CRC32C {
                return Err(refused(codec.name()));
            }
        }
        let rank = chunks_per_shard.len() + 1;
        for codec in &index_codecs.array_to_array {
            let ArrayToArray::Transpose(transpose) = codec else {
                return Err(refused(codec.name()));
            };
            if transpose.order().len() != rank {
                let problem = format!("transpose of another rank than {rank}");
                return Err(FormatError::document("index_codecs", problem));
            }
        }
        let layout = IndexLayout {
            chunks_per_shard: Dims::new(),
            strides: Dims::new(),
            nbytes_stride: 0,
            n_slots: 0,
            permutation: index_codecs.permutation(rank),
            byte_order,
            n_checksums: index_codecs.bytes_to_bytes.len() as u64,
            otherwise: None,
        };
        layout.for_counts(chunks_per_shard)
    }

    /// The layout of the index of a shard of `chunks_per_shard` slots that is encoded alike.
    ///
    /// # Errors
    /// When the index is too large to count its bytes.
    pub fn for_counts(&self, chunks_per_shard: &[u64]) -> Result<IndexLayout, FormatError> {
        let too_large = || {
            let found = format!("{chunks_per_shard:?}");
            FormatError::too_large("number of inner chunks per shard", found, u64::MAX / 32)
        };
        let mut shape = Dims::from_slice(chunks_per_shard);
        shape.push(2);
        let n_slots = grid::product(chunks_per_shard)
            .filter(|&n| n <= u64::MAX / 32)
            .ok_or_else(too_large)?;
        let mut strides = word_strides(&shape, &self.permutation).ok_or_else(too_large)?;
        let nbytes_stride = strides.pop().ok_or_else(too_large)?;
        let otherwise = self.otherwise.as_deref();
        let otherwise = otherwise.map(|other| other.for_counts(chunks_per_shard).map(Box::new));
        Ok(IndexLayout {
            chunks_per_shard: chunks_per_shard.into(),
            strides,
            nbytes_stride,
            n_slots,
            permutation: self.permutation.clone(),
            byte_order: self.byte_order,
            n_checksums: self.n_checksums,
            otherwise: otherwise.transpose()?,
        })
    }

    /// The layout for documents that do not give one, such as those of early 2023: little-endian,
    /// with or without a CRC-32C behind it. Only the bytes of a shard show which.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn undocumented(chunks_per_shard: &[u64]) -> Result<IndexLayout, FormatError> {
        let layout = |bytes_to_bytes| {
            let index_codecs = CodecChain {
                array_to_array: Vec::new(),
                array_to_bytes: ArrayToBytes::Bytes(BytesCodec {
                    endian: Some(ByteOrder::Little),
                }),
                bytes_to_bytes,
            };
            IndexLayout::new(chunks_per_shard, &index_codecs)
        };
        Ok(IndexLayout {
            otherwise: Some(Box::new(layout(Vec::new())?)),
            ..layout(vec![BytesToBytes::CRC32C])?
        })
    }

    /// The layouts that an index may have; the first one that fits the index of a shard is used for
    /// that shard.
    pub fn candidates(&self) -> impl Iterator<Item = &IndexLayout> {
        std::iter::successors(Some(self), |layout| layout.otherwise.as_deref())
    }

    /// Number of slots, one for each inner chunk of a full shard.
    pub fn n_slots(&self) -> u64 {
        self.n_slots
    }

    /// Bytes of the encoded index, checksums included.
    pub fn encoded_len(&self) -> u64 {
        self.words_len() + checksum::LEN * self.n_checksums
    }

    /// Bytes of all words.
    fn words_len(&self) -> u64 {
        2 * WORD * self.n_slots
    }

    /// First byte of the encoded index in a shard of `shard_len` bytes.
    ///
    /// # Errors
    /// The shard is shorter than its index.
    pub fn position(&self, shard_len: u64, location: IndexLocation) -> Result<u64, FormatError> {
        let before = shard_len.checked_sub(self.encoded_len()).ok_or_else(|| {
            let expected = self.encoded_len();
            let problem =
                format!("a truncated shard of {shard_len} bytes, its index alone has {expected}");
            FormatError::encoded(NAME, problem)
        })?;
        Ok(match location {
            IndexLocation::Start => 0,
            IndexLocation::End => before,
        })
    }

    /// The positions of the words (offset, nbytes) of a slot, in bytes from the start of the
    /// encoded index. Slots are in C order over `chunks_per_shard`.
    ///
    /// # Panics
    /// When `slot` is none of the `n_slots()`.
    pub fn words(&self, slot: u64) -> (u64, u64) {
        let indices = grid::indices_of(slot, &self.chunks_per_shard);
        let indices = indices.expect("callers count slots below n_slots()");
        let word: u64 = indices.iter().zip(&self.strides).map(|(i, n)| i * n).sum();
        (WORD * word, WORD * (word + self.nbytes_stride))
    }

    /// The value of an encoded word.
    pub fn word(&self, bytes: [u8; 8]) -> u64 {
        match self.byte_order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }

    /// The meaning of the two words of a slot in a shard of `shard_len` bytes.
    ///
    /// # Errors
    /// Only one of the words says that the slot is empty, or the chunk ends past the end of the
    /// shard.
    pub fn entry(
        &self,
        offset: u64,
        nbytes: u64,
        shard_len: u64,
    ) -> Result<EntryState, FormatError> {
        const NONE: u64 = u64::MAX;
        if (offset, nbytes) == (NONE, NONE) {
            return Ok(EntryState::Empty);
        }
        let end = offset.checked_add(nbytes);
        if end.is_some_and(|end| end <= shard_len) && offset != NONE && nbytes != NONE {
            return Ok(EntryState::Present(ShardEntry { offset, nbytes }));
        }
        let problem = format!(
            "a truncated shard of {shard_len} bytes, or a false index, which has an entry of {nbytes} bytes at {offset}"
        );
        Err(FormatError::encoded(NAME, problem))
    }

    /// A verifier for the encoded index of a shard of `shard_len` bytes.
    pub fn verifier(&self, shard_len: u64) -> IndexVerifier {
        IndexVerifier {
            layout: self.clone(),
            shard_len,
            position: 0,
            checksum: 0,
            pending: [0; 16],
            n_pending: 0,
            wrong_entry: None,
        }
    }
}

/// For each axis of `shape`, the distance in words between adjacent elements when the axes are
/// stored in the order of `permutation`.
fn word_strides(shape: &[u64], permutation: &[usize]) -> Option<Dims> {
    let mut strides: Dims = shape.iter().map(|_| 0).collect();
    let mut stride = 1_u64;
    for &axis in permutation.iter().rev() {
        *strides.get_mut(axis)? = stride;
        stride = stride.checked_mul(*shape.get(axis)?)?;
    }
    Some(strides)
}

/// Verifies an index that is read in pieces: its length, its checksums, and its entries if their
/// words are adjacent (others are checked when they are used).
#[derive(Debug)]
pub struct IndexVerifier {
    layout: IndexLayout,
    shard_len: u64,
    position: u64,
    checksum: u32,
    /// The beginning of an entry or a checksum whose end is in the next piece.
    pending: [u8; 16],
    n_pending: usize,
    /// The error of the first wrong entry. It counts if the checksum is right.
    wrong_entry: Option<FormatError>,
}

impl IndexVerifier {
    /// Takes the next piece, of any size.
    ///
    /// # Errors
    /// Bytes past the end of the index, a wrong entry, or a checksum that differs.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let left = self.layout.encoded_len() - self.position;
        if bytes.len() as u64 > left {
            let problem = format!("index longer than {} bytes", self.layout.encoded_len());
            return Err(FormatError::encoded(NAME, problem));
        }
        let words_left = self.layout.words_len().saturating_sub(self.position);
        let words_left = usize::try_from(words_left).unwrap_or(usize::MAX);
        let (words, checksums) = bytes.split_at(words_left.min(bytes.len()));
        self.feed_words(words)?;
        self.feed_checksums(checksums)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Ends the index.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn finish(self) -> Result<(), FormatError> {
        let expected = self.layout.encoded_len();
        if let Some(error) = self.wrong_entry {
            return Err(error);
        }
        if self.position == expected {
            return Ok(());
        }
        let problem = format!("index of {} bytes, expected {expected}", self.position);
        Err(FormatError::encoded(NAME, problem))
    }

    fn feed_words(&mut self, mut words: &[u8]) -> Result<(), FormatError> {
        if self.layout.n_checksums > 0 {
            self.checksum = crc32c::crc32c_append(self.checksum, words);
        }
        if self.layout.nbytes_stride != 1 {
            return Ok(());
        }
        while !words.is_empty() {
            if self.n_pending == 0 {
                let (entries, rest) = words.as_chunks();
                for entry in entries {
                    self.check_entry(entry)?;
                }
                words = rest;
            }
            if let Some(entry) = self.complete(&mut words) {
                self.check_entry(&entry)?;
            }
        }
        Ok(())
    }

    fn feed_checksums(&mut self, mut bytes: &[u8]) -> Result<(), FormatError> {
        // An empty piece must not get here: until the words end, the pending bytes are those of an
        // entry.
        while !bytes.is_empty() {
            if let Some(stored) = self.complete::<4>(&mut bytes) {
                checksum::compare(CRC32C, self.checksum, stored)
                    .map_err(|error| self.wrong_checksum(&error))?;
                // The next checksum covers this one, too.
                self.checksum = crc32c::crc32c_append(self.checksum, &stored);
            }
        }
        Ok(())
    }

    /// Moves bytes to the pending bytes. When there are `N` pending bytes, returns and clears them.
    fn complete<const N: usize>(&mut self, bytes: &mut &[u8]) -> Option<[u8; N]> {
        let wanted = N.saturating_sub(self.n_pending).min(bytes.len());
        let (taken, rest) = bytes.split_at(wanted);
        *bytes = rest;
        let end = self.n_pending + taken.len();
        let free = self.pending.get_mut(self.n_pending..end)?;
        free.copy_from_slice(taken);
        self.n_pending = end;
        let whole = *self.pending.first_chunk()?;
        (end == N).then(|| {
            self.n_pending = 0;
            whole
        })
    }

    /// Checks an entry. The error of a wrong one waits for the checksum, if the index has one.
    fn check_entry(&mut self, entry: &[u8; 16]) -> Result<(), FormatError> {
        let ([offset, nbytes], _) = entry.as_chunks() else {
            return Ok(());
        };
        let (offset, nbytes) = (self.layout.word(*offset), self.layout.word(*nbytes));
        match self.layout.entry(offset, nbytes, self.shard_len) {
            Err(error) if self.layout.n_checksums > 0 => {
                self.wrong_entry.get_or_insert(error);
                Ok(())
            }
            checked => checked.map(|_| ()),
        }
    }

    /// The error of a checksum that differs. The last bytes of a truncated shard are no index, so that entries in them
    /// are wrong, too.
    fn wrong_checksum(&self, error: &FormatError) -> FormatError {
        let shard = self.shard_len;
        let problem = match self.wrong_entry {
            Some(_) => format!("a truncated shard of {shard} bytes, or a damaged index: {error}"),
            None => format!("the checksum of the index is wrong: {error}"),
        };
        FormatError::encoded(NAME, problem)
    }
}

#[cfg(test)]
mod tests;
