//! The bytes-to-bytes codecs: compressors, checksums and filters of bytes.
//!
//! A decoder writes into a buffer whose length the caller has checked, and stops when it is full.
//! Where the decoded length is unknown, the buffer is doubled up to a limit, so that memory grows
//! with the bytes that are decoded, not with the length that they claim. An encoder is given a whole
//! input, and makes no more of it than [`BytesToBytes::encoded_limit`] says.

use std::borrow::Cow;

use super::{
    base64,
    blosc::{self, BloscSettings},
    bz2,
    checksum::{self, Checksum, ChecksumKind, ChecksumLocation},
    conditional,
    decoded::{Decoded, copy, expect_length},
    deflate, lz4, lz4_blocks,
    lzma::{Lzma, LzmaSettings},
    setting::{Setting, known, not_for_writing},
    shuffle,
    zstd::{self, ZstdSettings},
};
use crate::buffers::zeroed;
use crate::error::FormatError;

/// A codec from bytes to bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BytesToBytes {
    /// Deflate in gzip members, RFC 1952.
    Gzip {
        /// From 0 to 9.
        level: Setting<u8>,
    },
    /// Deflate in a zlib stream, RFC 1950.
    Zlib {
        /// From 0 to 9.
        level: Setting<u8>,
    },
    /// Either of them: Zarr v1, v2 and drafts of v3 have used the name `gzip` for both. It is
    /// encoded to gzip.
    GzipOrZlib {
        /// From 0 to 9.
        level: Setting<u8>,
    },
    /// Zstandard frames, RFC 8878.
    Zstd(Setting<ZstdSettings>),
    /// A buffer of C-Blosc 1.
    Blosc(Setting<BloscSettings>),
    /// The decoded length and an LZ4 block.
    Lz4 {
        /// The parameter of LZ4: larger is faster, and compresses less; values below 1 mean 1.
        acceleration: Setting<i32>,
    },
    /// Streams of bzip2.
    Bz2 {
        /// From 1 to 9.
        level: Setting<u8>,
    },
    /// LZMA in one of its containers.
    Lzma(Lzma, Setting<LzmaSettings>),
    /// The first bytes of all elements, then all second bytes, and so on.
    Shuffle {
        /// Bytes of an element.
        element_size: usize,
    },
    /// Base64, RFC 4648.
    Base64,
    /// The bytes and a checksum of them.
    Checksum(Checksum),
    /// A list of codecs; each chunk says which of them were applied to it.
    Conditional {
        /// In the order of encoding.
        codecs: Vec<BytesToBytes>,
        /// The length of the header, which has a bit for each codec.
        header_bytes: u64,
    },
    /// The blocks that lz4-java writes to N5, or the decoded length and an LZ4 block.
    Lz4Blocks,
}

impl BytesToBytes {
    /// The bytes, then their CRC-32C: the codec `crc32c` of v3.
    pub const CRC32C: BytesToBytes = BytesToBytes::Checksum(Checksum {
        kind: ChecksumKind::Crc32c,
        location: ChecksumLocation::End,
    });

    /// Its name in documents, without the prefix `numcodecs.`.
    pub fn name(&self) -> &'static str {
        match self {
            BytesToBytes::Gzip { .. } | BytesToBytes::GzipOrZlib { .. } => "gzip",
            BytesToBytes::Zlib { .. } => "zlib",
            BytesToBytes::Zstd(_) => "zstd",
            BytesToBytes::Blosc(_) => "blosc",
            BytesToBytes::Lz4 { .. } | BytesToBytes::Lz4Blocks => "lz4",
            BytesToBytes::Bz2 { .. } => "bz2",
            BytesToBytes::Lzma(..) => "lzma",
            BytesToBytes::Shuffle { .. } => "shuffle",
            BytesToBytes::Base64 => "base64",
            BytesToBytes::Checksum(checksum) => checksum.name(),
            BytesToBytes::Conditional { .. } => "conditional",
        }
    }

    /// The number of codecs that it may apply to a chunk.
    pub(crate) fn count(&self) -> u64 {
        match self {
            BytesToBytes::Conditional { codecs, .. } => {
                codecs.iter().map(BytesToBytes::count).sum()
            }
            _ => 1,
        }
    }

    /// Whether decoding only removes bytes at the beginning or end, which needs no copy.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self, BytesToBytes::Checksum(_))
    }

    /// Decodes into all of `out`.
    ///
    /// # Errors
    /// Damaged bytes, or fewer or more decoded bytes than `out` takes.
    pub(super) fn undo_exactly(&self, encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let expected = out.len();
        match self.undo(encoded, out)? {
            Decoded::Whole(n) => expect_length(self.name(), n, expected as u64),
            Decoded::Overflow => {
                let problem = format!("decodes to more than the {expected} bytes expected");
                Err(FormatError::encoded(self.name(), problem))
            }
        }
    }

    /// Decodes at most `limit` bytes.
    ///
    /// # Errors
    /// Wrong bytes, or more of them than `limit`.
    pub(super) fn undo_within(&self, encoded: &[u8], limit: u64) -> Result<Vec<u8>, FormatError> {
        self.undo_growing(encoded, limit)?.ok_or_else(|| {
            let problem = format!("decodes to more than the {limit} bytes allowed");
            FormatError::encoded(self.name(), problem)
        })
    }

    /// Decodes; `None` when that makes more than `limit` bytes.
    ///
    /// # Errors
    /// Wrong bytes.
    pub(super) fn undo_growing(
        &self,
        encoded: &[u8],
        limit: u64,
    ) -> Result<Option<Vec<u8>>, FormatError> {
        const SMALLEST: usize = 4096;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut room = encoded.len().saturating_mul(4).max(SMALLEST).min(most);
        loop {
            let mut out = zeroed(room)?;
            match self.undo(encoded, &mut out)? {
                Decoded::Whole(n) => {
                    out.truncate(n);
                    return Ok(Some(out));
                }
                Decoded::Overflow if room < most => room = room.saturating_mul(2).min(most),
                Decoded::Overflow => return Ok(None),
            }
        }
    }

    /// Decodes at most `limit` bytes; a checksum is removed without a copy.
    ///
    /// # Errors
    /// Those of [`undo_within`](Self::undo_within).
    pub(super) fn undo_cow<'a>(
        &self,
        encoded: Cow<'a, [u8]>,
        limit: u64,
    ) -> Result<Cow<'a, [u8]>, FormatError> {
        match self {
            BytesToBytes::Checksum(checksum) => checksum.cut(encoded),
            _ => Ok(Cow::Owned(self.undo_within(&encoded, limit)?)),
        }
    }

    /// The maximum encoded length of `length` bytes that is accepted: more than any encoder of
    /// these formats makes of bytes that it cannot compress.
    pub(super) fn encoded_limit(&self, length: u64) -> u64 {
        const HEADERS: u64 = 64 << 10;
        match self {
            BytesToBytes::Checksum(_) => length.saturating_add(checksum::LEN),
            BytesToBytes::Shuffle { .. } => length,
            BytesToBytes::Base64 => base64::encoded_len(length),
            BytesToBytes::Conditional {
                codecs,
                header_bytes,
            } => {
                let all = codecs.iter();
                all.fold(length, |length, codec| codec.encoded_limit(length))
                    .saturating_add(*header_bytes)
            }
            _ => length.saturating_add(length / 8).saturating_add(HEADERS),
        }
    }

    /// An upper bound of the memory that decoding to `length` bytes takes beside input and output.
    pub(super) fn state_bytes(&self, length: u64) -> u64 {
        match self {
            BytesToBytes::Gzip { .. }
            | BytesToBytes::Zlib { .. }
            | BytesToBytes::GzipOrZlib { .. } => deflate::STATE_BYTES,
            BytesToBytes::Zstd(_) => zstd::STATE_BYTES,
            BytesToBytes::Blosc(_) => blosc::state_bytes(length),
            BytesToBytes::Bz2 { .. } => bz2::STATE_BYTES,
            BytesToBytes::Lzma(..) => Lzma::state_bytes(length),
            BytesToBytes::Conditional { codecs, .. } => states_bytes(codecs, length),
            _ => 0,
        }
    }

    /// Decodes into the beginning of `out`.
    ///
    /// # Errors
    /// Wrong bytes.
    pub(super) fn undo(&self, encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
        match self {
            BytesToBytes::Gzip { .. } => deflate::undo_gzip(encoded, out),
            BytesToBytes::Zlib { .. } => deflate::undo_zlib(encoded, out),
            BytesToBytes::GzipOrZlib { .. } => deflate::undo_gzip_or_zlib(encoded, out),
            BytesToBytes::Zstd(_) => zstd::undo(encoded, out),
            BytesToBytes::Blosc(_) => blosc::undo(encoded, out),
            BytesToBytes::Lz4 { .. } => lz4::undo(encoded, out),
            BytesToBytes::Lz4Blocks => lz4_blocks::undo(encoded, out),
            BytesToBytes::Bz2 { .. } => bz2::undo(encoded, out),
            BytesToBytes::Lzma(lzma, _) => lzma.undo(encoded, out),
            BytesToBytes::Shuffle { element_size } => {
                Ok(shuffle::undo(*element_size, encoded, out))
            }
            BytesToBytes::Base64 => base64::undo(encoded, out),
            BytesToBytes::Checksum(checksum) => Ok(copy(checksum.verified(encoded)?, out)),
            BytesToBytes::Conditional {
                codecs,
                header_bytes,
            } => undo_conditional(codecs, *header_bytes, encoded, out),
        }
    }

    /// Checks that chunks can be encoded.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] with the name of the codec, and why it cannot.
    pub fn check_encodes(&self) -> Result<(), FormatError> {
        let name = self.name();
        match self {
            BytesToBytes::Gzip { level }
            | BytesToBytes::Zlib { level }
            | BytesToBytes::GzipOrZlib { level }
            | BytesToBytes::Bz2 { level } => known(name, level).map(drop),
            BytesToBytes::Zstd(settings) => known(name, settings).map(drop),
            BytesToBytes::Blosc(settings) => known(name, settings).map(drop),
            BytesToBytes::Lz4 { acceleration } => known(name, acceleration).map(drop),
            BytesToBytes::Lzma(lzma, settings) => lzma.check_encodes(settings),
            BytesToBytes::Shuffle { .. } | BytesToBytes::Base64 | BytesToBytes::Checksum(_) => {
                Ok(())
            }
            BytesToBytes::Lz4Blocks | BytesToBytes::Conditional { .. } => {
                Err(not_for_writing(name))
            }
        }
    }

    /// Encodes `bytes`, to no more than [`encoded_limit`](Self::encoded_limit) says.
    ///
    /// # Errors
    /// More bytes than the codec can encode, a codec that cannot be encoded, or no memory.
    pub(super) fn encode(&self, bytes: Cow<'_, [u8]>) -> Result<Vec<u8>, FormatError> {
        let limit = self.encoded_limit(bytes.len() as u64);
        match self {
            BytesToBytes::Gzip { level } | BytesToBytes::GzipOrZlib { level } => {
                deflate::encode_gzip(level, &bytes)
            }
            BytesToBytes::Zlib { level } => deflate::encode_zlib(level, &bytes),
            BytesToBytes::Zstd(settings) => zstd::encode(settings, &bytes),
            BytesToBytes::Blosc(settings) => blosc::encode(settings, &bytes),
            BytesToBytes::Lz4 { acceleration } => lz4::encode(acceleration, &bytes),
            BytesToBytes::Bz2 { level } => bz2::encode(level, &bytes, limit),
            BytesToBytes::Lzma(lzma, settings) => lzma.encode(settings, &bytes, limit),
            BytesToBytes::Shuffle { element_size } => shuffle::encode(*element_size, &bytes),
            BytesToBytes::Base64 => base64::encode(&bytes),
            BytesToBytes::Checksum(checksum) => checksum.encode(bytes),
            BytesToBytes::Lz4Blocks | BytesToBytes::Conditional { .. } => {
                Err(not_for_writing(self.name()))
            }
        }
    }

    /// An upper bound of the memory that encoding `length` bytes takes beside input and output.
    pub(super) fn encoder_state_bytes(&self, length: u64) -> u64 {
        match self {
            BytesToBytes::Gzip { .. }
            | BytesToBytes::Zlib { .. }
            | BytesToBytes::GzipOrZlib { .. } => deflate::ENCODER_STATE_BYTES,
            BytesToBytes::Zstd(settings) => {
                let level = settings.map_or(0, |settings| settings.level);
                zstd::encoder_state_bytes(level, length)
            }
            BytesToBytes::Blosc(settings) => blosc::encoder_state_bytes(settings, length),
            BytesToBytes::Bz2 { .. } => bz2::ENCODER_STATE_BYTES,
            BytesToBytes::Lzma(_, settings) => Lzma::encoder_state_bytes(settings),
            _ => 0,
        }
    }
}

/// Each codec with the maximum length of its decoded bytes, when the first one decodes to `length`.
pub(super) fn with_limits<'a>(
    codecs: impl IntoIterator<Item = &'a BytesToBytes>,
    length: u64,
) -> impl Iterator<Item = (&'a BytesToBytes, u64)> {
    let mut next = length;
    codecs.into_iter().map(move |codec| {
        let limit = next;
        next = codec.encoded_limit(limit);
        (codec, limit)
    })
}

/// Decodes a chunk of the codec `conditional` into the beginning of `out`.
///
/// # Errors
/// The header is cut short, it has bits of codecs that do not exist, or a codec refuses its bytes.
fn undo_conditional(
    codecs: &[BytesToBytes],
    header_bytes: u64,
    encoded: &[u8],
    out: &mut [u8],
) -> Result<Decoded, FormatError> {
    let (applied, body) = conditional::split(codecs, header_bytes, encoded)?;
    let applied: Vec<_> = with_limits(applied, out.len() as u64).collect();
    let Some(((first, _), others)) = applied.split_first() else {
        return Ok(copy(body, out));
    };
    let mut bytes = Cow::Borrowed(body);
    for (codec, limit) in others.iter().rev() {
        match codec.undo_growing(&bytes, *limit)? {
            Some(undone) => bytes = Cow::Owned(undone),
            None => return Ok(Decoded::Overflow),
        }
    }
    first.undo(&bytes, out)
}

/// An upper bound of the memory that undoing all of `codecs` to `length` bytes takes: their states,
/// and all buffers between them.
fn states_bytes(codecs: &[BytesToBytes], length: u64) -> u64 {
    let states = with_limits(codecs, length)
        .enumerate()
        .map(|(i, (codec, limit))| {
            let between = if i == 0 { 0 } else { limit };
            codec.state_bytes(limit).saturating_add(between)
        });
    states.fold(0, u64::saturating_add)
}

/// Codecs for tests, with the default parameters of numcodecs.
#[cfg(test)]
impl BytesToBytes {
    pub(crate) const GZIP: BytesToBytes = BytesToBytes::Gzip { level: Ok(1) };
    pub(crate) const ZLIB: BytesToBytes = BytesToBytes::Zlib { level: Ok(1) };
    pub(crate) const GZIP_OR_ZLIB: BytesToBytes = BytesToBytes::GzipOrZlib { level: Ok(1) };
    pub(crate) const ZSTD: BytesToBytes = BytesToBytes::Zstd(Ok(ZstdSettings {
        level: 0,
        checksum: false,
    }));
    pub(crate) const BLOSC: BytesToBytes = BytesToBytes::Blosc(Ok(BloscSettings {
        compressor: super::BloscCompressor::Lz4,
        level: 5,
        shuffle: super::BloscShuffle::Byte,
        typesize: 4,
        blocksize: 0,
    }));
    pub(crate) const LZ4: BytesToBytes = BytesToBytes::Lz4 {
        acceleration: Ok(1),
    };
    pub(crate) const BZ2: BytesToBytes = BytesToBytes::Bz2 { level: Ok(1) };
}

#[cfg(test)]
mod tests;
