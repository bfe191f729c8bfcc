//! The name and the header of an entry of the disk cache.
//!
//! ```text
//! bytes
//! 8    magic
//! 4    length of the header with its checksum, little endian like all numbers
//! 8    time of validation, ms since 1970
//! 8    length of the payload
//! 8    length of the object
//! 8    time of modification of the object, s since 1970
//! 1    kind of entry
//! 8+8  offset and length of the range
//! 5 x  4 bytes of length, and text: endpoint, bucket, key, ETag, version
//! 4    CRC-32C of all of the header before it
//! ...  payload
//! 4 x  CRC-32C of each block of 64 KiB of the payload
//! ```

use std::ops::Range;
use std::sync::Arc;

use ring::digest::{SHA256, digest};

const MAGIC: &[u8; 8] = b"ZMCACHE1";

/// The most bytes of one entry. Longer ranges are kept in parts.
pub(super) const MOST_ENTRY_BYTES: u64 = 8 << 20;

/// A block of the payload, which has a checksum of its own.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;

/// The position of the facts in the header.
const FACTS: Range<usize> = 12..44;

/// The kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum EntryKind {
    /// Bytes of a version of an object.
    Range = 1,
    /// An answer of the server about a key.
    Answer = 2,
    /// A page of names.
    Names = 3,
}

/// The server and the bucket of a key. Credentials are no part of it, because they may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Origin {
    /// The server.
    pub(in crate::store) endpoint: Arc<str>,
    /// The bucket; empty on a web server.
    pub(in crate::store) bucket: Arc<str>,
}

/// The fields that distinguish an entry from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct EntryName {
    /// The kind of the entry.
    pub(in crate::store) kind: EntryKind,
    /// The server and the bucket of the object.
    pub(in crate::store) origin: Origin,
    /// The key in the bucket.
    pub(in crate::store) key: String,
    /// The strong `ETag`; empty without one.
    pub(in crate::store) tag: String,
    /// The attributes that distinguish versions without an `ETag`, as text.
    pub(in crate::store) version: String,
    /// The bytes of the object; empty if the entry is something else.
    pub(in crate::store) range: Range<u64>,
}

/// The facts about the object of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct EntryFacts {
    /// When the server was asked last, in ms since 1970.
    pub(in crate::store) validated_ms: u64,
    /// The length of the object.
    pub(in crate::store) object_bytes: u64,
    /// When the object was modified, in s since 1970.
    pub(in crate::store) modified_s: u64,
}

/// The path of the file of an entry, below the directory of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place(String);

impl Place {
    /// The digits of the hash.
    pub(super) fn digits(&self) -> &str {
        &self.0
    }

    /// The path of the file below the directory of all subdirectories.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.subdirectory(), self.file())
    }

    /// The name of the subdirectory.
    pub(super) fn subdirectory(&self) -> &str {
        self.0.get(..2).unwrap_or_default()
    }

    /// The name of the file in it.
    pub(super) fn file(&self) -> &str {
        self.0.get(2..).unwrap_or_default()
    }
}

impl EntryName {
    /// The number of bytes of the range.
    pub(super) fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// The path of the file.
    pub(super) fn place(&self) -> Place {
        let hash = digest(&SHA256, &self.encoded());
        let halves = hash.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits = halves.filter_map(|half| char::from_digit(half.into(), 16));
        Place(digits.collect())
    }

    /// The fields of the name, in a form from which each field can be read back.
    fn encoded(&self) -> Vec<u8> {
        let texts = [
            &*self.origin.endpoint,
            &*self.origin.bucket,
            &self.key,
            &self.tag,
            &self.version,
        ];
        let mut bytes = vec![self.kind as u8];
        bytes.extend(self.range.start.to_le_bytes());
        bytes.extend(self.len().to_le_bytes());
        for text in texts {
            // No text here is near this length.
            let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
            bytes.extend(len.to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    /// The header of an entry of this name.
    pub(super) fn header(&self, facts: EntryFacts, payload_len: u64) -> Vec<u8> {
        let name = self.encoded();
        let len = FACTS.end + name.len() + 4;
        let mut bytes = Vec::with_capacity(len);
        bytes.extend(MAGIC);
        bytes.extend(u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
        for number in [
            facts.validated_ms,
            payload_len,
            facts.object_bytes,
            facts.modified_s,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(name);
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// The facts and the length of the payload in `header`, which must be one of this name.
    pub(super) fn facts_in(&self, header: &[u8]) -> Option<(EntryFacts, u64)> {
        let facts = header.get(FACTS)?;
        let number = |at: usize| {
            let bytes = facts.get(at * 8..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let found = EntryFacts {
            validated_ms: number(0)?,
            object_bytes: number(2)?,
            modified_s: number(3)?,
        };
        let payload_len = number(1)?;
        // All other bytes follow from the name, and the checksum from all of them.
        (self.header(found, payload_len) == header).then_some((found, payload_len))
    }

    /// The length of the header.
    pub(super) fn header_len(&self) -> usize {
        FACTS.end + self.encoded().len() + 4
    }
}

/// The number of blocks of a payload.
pub(super) fn n_blocks(payload_len: u64) -> u64 {
    payload_len.div_ceil(BLOCK_BYTES)
}

/// The length of a file with this header and payload; `None` if no file has it.
pub(super) fn file_len(header_len: u64, payload_len: u64) -> Option<u64> {
    let table = n_blocks(payload_len).checked_mul(4)?;
    header_len.checked_add(payload_len)?.checked_add(table)
}
