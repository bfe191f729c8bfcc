//! The checksum codecs: four bytes, little-endian, before or behind the bytes that they are
//! computed of.
//!
//! Specs: <https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/index.html> and RFC 3720
//! for CRC-32C, RFC 1952 for CRC-32, RFC 1950 for Adler-32.
//!
//! | name | names in v2 and v3 | where |
//! |---|---|---|
//! | `crc32c` | v3 `crc32c`, `numcodecs.crc32c`; v2 `crc32c` | at the end |
//! | `crc32` | v2 `crc32`; v3 `numcodecs.crc32` | at the start |
//! | `adler32` | v2 `adler32`; v3 `numcodecs.adler32` | at the start |
//! | `fletcher32` | v2 `fletcher32`; v3 `numcodecs.fletcher32` | at the end |
//! | `jenkins_lookup3` | v2 `jenkins_lookup3`; v3 `numcodecs.jenkins_lookup3` | at the end |
//!
//! The first three have a `location` in numcodecs, `start` or `end`; the table gives the default.
//!
//! ```json
//! { "name": "crc32c" }
//! ```
//!
//! ```json
//! { "id": "crc32", "location": "start" }
//! ```

mod fletcher32;
mod lookup3;

use std::borrow::Cow;

use crate::buffers::{NoMemory, with_room};
use crate::error::FormatError;

pub(crate) use lookup3::lookup3;

/// The length of a checksum.
pub(super) const LEN: u64 = 4;

/// A checksum codec.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Checksum {
    /// How it is computed.
    pub kind: ChecksumKind,
    /// Where it is stored.
    pub location: ChecksumLocation,
}

/// How a checksum is computed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChecksumKind {
    /// The CRC of gzip and zlib.
    Crc32,
    /// Adler-32.
    Adler32,
    /// The CRC of Castagnoli.
    Crc32c,
    /// Fletcher's sum as HDF5 computes it.
    Fletcher32,
    /// Jenkins' hash `lookup3`.
    JenkinsLookup3 {
        /// The initial value of the hash.
        initval: u32,
        /// Bytes that are hashed before the chunk and stored nowhere.
        prefix: Vec<u8>,
    },
}

/// Where a checksum is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecksumLocation {
    /// Before the bytes.
    Start,
    /// After the bytes.
    End,
}

impl Checksum {
    /// The codec's name.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            ChecksumKind::Crc32 => "crc32",
            ChecksumKind::Adler32 => "adler32",
            ChecksumKind::Crc32c => "crc32c",
            ChecksumKind::Fletcher32 => "fletcher32",
            ChecksumKind::JenkinsLookup3 { .. } => "jenkins_lookup3",
        }
    }

    /// The bytes without the checksum, which is verified.
    ///
    /// # Errors
    /// Too short, or the checksum differs.
    pub(super) fn verified<'a>(&self, encoded: &'a [u8]) -> Result<&'a [u8], FormatError> {
        let split = match self.location {
            ChecksumLocation::Start => encoded.split_first_chunk().map(|(sum, bytes)| (bytes, sum)),
            ChecksumLocation::End => encoded.split_last_chunk(),
        };
        let (bytes, stored) = split.ok_or_else(|| self.too_short(encoded))?;
        compare(self.name(), self.kind.of(bytes), *stored)?;
        Ok(bytes)
    }

    /// Compares the checksum of `bytes` with the `stored` one.
    ///
    /// # Errors
    /// `stored` is not as long as a checksum, or it differs.
    pub(super) fn verify(&self, bytes: &[u8], stored: &[u8]) -> Result<(), FormatError> {
        let stored = <[u8; 4]>::try_from(stored).map_err(|_| self.too_short(stored))?;
        compare(self.name(), self.kind.of(bytes), stored)
    }

    fn too_short(&self, encoded: &[u8]) -> FormatError {
        let problem = format!("{} bytes, too short for a checksum", encoded.len());
        FormatError::encoded(self.name(), problem)
    }

    /// Like [`verified`](Self::verified), without a copy of owned bytes.
    ///
    /// # Errors
    /// Those of [`verified`](Self::verified).
    pub(super) fn cut<'a>(&self, encoded: Cow<'a, [u8]>) -> Result<Cow<'a, [u8]>, FormatError> {
        match encoded {
            Cow::Borrowed(encoded) => Ok(Cow::Borrowed(self.verified(encoded)?)),
            Cow::Owned(mut encoded) => {
                let length = self.verified(&encoded)?.len();
                match self.location {
                    ChecksumLocation::Start => drop(encoded.drain(..encoded.len() - length)),
                    ChecksumLocation::End => encoded.truncate(length),
                }
                Ok(Cow::Owned(encoded))
            }
        }
    }
}

impl Checksum {
    /// The bytes with their checksum.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn encode(&self, bytes: Cow<'_, [u8]>) -> Result<Vec<u8>, FormatError> {
        let sum = self.kind.of(&bytes).to_le_bytes();
        let room = bytes.len().saturating_add(sum.len());
        let mut out = match (bytes, self.location) {
            (Cow::Owned(mut bytes), ChecksumLocation::End) => {
                let reserved = bytes.try_reserve_exact(sum.len());
                reserved.map_err(|_| NoMemory { needed: room })?;
                bytes
            }
            (bytes, location) => {
                let mut out = with_room(room)?;
                if location == ChecksumLocation::Start {
                    out.extend(sum);
                }
                out.extend_from_slice(&bytes);
                out
            }
        };
        if self.location == ChecksumLocation::End {
            out.extend(sum);
        }
        Ok(out)
    }
}

impl ChecksumKind {
    fn of(&self, bytes: &[u8]) -> u32 {
        match self {
            ChecksumKind::Crc32 => crc32fast::hash(bytes),
            ChecksumKind::Adler32 => simd_adler32::adler32(&bytes),
            ChecksumKind::Crc32c => crc32c::crc32c(bytes),
            ChecksumKind::Fletcher32 => fletcher32::fletcher32(bytes),
            ChecksumKind::JenkinsLookup3 { initval, prefix } => lookup3(*initval, prefix, bytes),
        }
    }
}

/// Compares a checksum of `codec` with the stored one.
///
/// # Errors
/// They differ.
pub(super) fn compare(
    codec: &'static str,
    computed: u32,
    stored: [u8; 4],
) -> Result<(), FormatError> {
    let stored = u32::from_le_bytes(stored);
    if computed == stored {
        return Ok(());
    }
    let problem = format!("checksum is {stored:08x}, the bytes give {computed:08x}");
    Err(FormatError::encoded(codec, problem))
}

#[cfg(test)]
mod tests {
    use super::{ChecksumKind::*, ChecksumLocation::*, *};

    fn jenkins() -> ChecksumKind {
        JenkinsLookup3 {
            initval: 0,
            prefix: Vec::new(),
        }
    }

    /// As numcodecs has them.
    const NUMBERS: &[u8] = b"\x0a\0\0\0\x0b\0\0\0\x0c\0\0\0\x0d\0\0\0";
    const DIGITS: &[u8] = b"123456789";

    #[test]
    fn checksums_are_those_of_numcodecs() {
        for (kind, location, bytes, sum) in [
            (Crc32, Start, NUMBERS, 0xe598_5fcc_u32),
            (Crc32, Start, DIGITS, 0x2639_f4cb),
            (Crc32, End, DIGITS, 0x2639_f4cb),
            (Adler32, Start, NUMBERS, 0x2f00_c801),
            (Adler32, Start, DIGITS, 0xde01_1e09),
            (Crc32c, End, NUMBERS, 0xfb0d_94c4),
            (Crc32c, End, DIGITS, 0x8392_06e3),
            (Crc32c, Start, DIGITS, 0x8392_06e3),
            (Crc32c, End, b"", 0),
            (Fletcher32, End, NUMBERS, 0x002e_00dc),
            (jenkins(), End, NUMBERS, 0xa87c_ef63),
        ] {
            let checksum = Checksum { kind, location };
            let sum = sum.to_be_bytes();
            let encoded = match location {
                Start => [&sum, bytes].concat(),
                End => [bytes, &sum].concat(),
            };
            assert_eq!(checksum.verified(&encoded).unwrap(), bytes, "{checksum:?}");
            let borrowed = checksum.cut(Cow::Borrowed(&encoded)).unwrap();
            assert!(matches!(borrowed, Cow::Borrowed(cut) if cut == bytes));
            let owned = checksum.cut(Cow::Owned(encoded.clone())).unwrap();
            assert_eq!(&*owned, bytes, "{checksum:?}");

            for at in 0..encoded.len() {
                let mut damaged = encoded.clone();
                damaged[at] ^= 0x10;
                assert!(checksum.verified(&damaged).is_err(), "{checksum:?} at {at}");
            }
            let longer = [&encoded[..], b"x"].concat();
            assert!(checksum.verified(&longer).is_err(), "{checksum:?}, longer");
        }
    }

    #[test]
    fn short_values_are_refused() {
        for kind in [Crc32, Adler32, Crc32c, Fletcher32, jenkins()] {
            for location in [Start, End] {
                let kind = kind.clone();
                let checksum = Checksum { kind, location };
                for length in 0..4 {
                    assert!(checksum.verified(&[0; 4][..length]).is_err());
                }
            }
        }
    }
}
