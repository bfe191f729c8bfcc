//! Encodes the codecs from bytes to bytes.

use std::borrow::Cow;

use super::BytesToBytes;
use crate::codec::{
    base64, blosc, bz2, deflate, lz4,
    lzma::Lzma,
    setting::{known, not_for_writing},
    shuffle, zstd,
};
use crate::error::FormatError;

impl BytesToBytes {
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
            BytesToBytes::Conditional { .. } => Err(not_for_writing(name)),
        }
    }

    /// Encodes `bytes`, to no more than [`encoded_limit`](Self::encoded_limit) says.
    ///
    /// # Errors
    /// More bytes than the codec can encode, a codec that cannot be encoded, or no memory.
    pub(in crate::codec) fn encode(&self, bytes: Cow<'_, [u8]>) -> Result<Vec<u8>, FormatError> {
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
            BytesToBytes::Conditional { .. } => Err(not_for_writing(self.name())),
        }
    }

    /// An upper bound of the memory that encoding `length` bytes takes beside input and output.
    pub(in crate::codec) fn encoder_state_bytes(&self, length: u64) -> u64 {
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
