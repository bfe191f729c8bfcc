//! Decoding where the decoded length is not stored.

use super::block::Block;
use crate::error::Error;

/// Decodes `encoded_len` bytes whose decoded length is unknown except for the limit `most`. The
/// first try has room for a few times the encoded length, which is enough for most chunks. Each
/// further try has more room. So a small chunk does not wait for memory that only a large one
/// needs.
pub(super) fn growing(
    encoded_len: u64,
    most: u64,
    decode: impl Fn(u64) -> Result<Block, Error>,
) -> Result<Block, Error> {
    const TIMES: u64 = 8;
    const MORE: u64 = 64 << 10;
    let mut limit = encoded_len
        .saturating_mul(TIMES)
        .saturating_add(MORE)
        .min(most);
    loop {
        match decode(limit) {
            // The room may have been too small.
            Err(Error::Chunk { .. }) if limit < most => {
                limit = limit.saturating_mul(TIMES).min(most);
            }
            decoded => return decoded,
        }
    }
}
