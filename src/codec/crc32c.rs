//! The `crc32c` codec: the bytes, then their CRC-32C (Castagnoli) in little endian.
//!
//! Spec: <https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/index.html>, RFC 3720.
//! Names: v3 `crc32c`; v2 `crc32c` (its checksum at the end, too).
//!
//! ```json
//! { "name": "crc32c" }
//! ```

use crate::error::FormatError;

const NAME: &str = "crc32c";

/// Bytes that the checksum adds.
pub(super) const LEN: u64 = 4;

/// The bytes before the checksum.
///
/// # Errors
/// Too short, or the checksum differs.
pub(super) fn verified(encoded: &[u8]) -> Result<&[u8], FormatError> {
    let (bytes, stored) = encoded.split_last_chunk().ok_or_else(|| {
        let problem = format!("{} bytes, too short for a checksum", encoded.len());
        FormatError::encoded(NAME, problem)
    })?;
    compare(::crc32c::crc32c(bytes), *stored)?;
    Ok(bytes)
}

/// Compares a checksum with the stored one.
///
/// # Errors
/// They differ.
pub(super) fn compare(computed: u32, stored: [u8; 4]) -> Result<(), FormatError> {
    let stored = u32::from_le_bytes(stored);
    if computed == stored {
        return Ok(());
    }
    let problem = format!("checksum is {stored:08x}, the bytes give {computed:08x}");
    Err(FormatError::encoded(NAME, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_compared() {
        assert_eq!(
            verified(b"123456789\x83\x92\x06\xe3").unwrap(),
            b"123456789"
        );
        assert_eq!(verified(&[0; 4]).unwrap(), b"", "nothing has checksum 0");
        assert!(verified(b"123456788\x83\x92\x06\xe3").is_err());
        assert!(verified(b"\x83\x92\x06").is_err(), "short");
    }
}
