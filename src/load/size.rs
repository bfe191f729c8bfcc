//! Sizes in memory.

use crate::error::Error;

/// `n` bytes as the size of a block in memory.
pub(crate) fn to_usize(n: u64) -> Result<usize, Error> {
    usize::try_from(n).map_err(|_| Error::TooLarge {
        what: "a block".to_owned(),
        needed: n,
        limit: usize::MAX as u64,
    })
}
