//! Reads the bytes of the object versions that open files hold.

use crate::error::Error;
use crate::load::{ChunkLayout, Loader, Slice};

/// Reads the encoded bytes of a chunk. If there is a `layout`, it limits their length.
///
/// # Errors
/// [`Error::Chunk`] when there are too many, [`Error::Store`] when they cannot be read.
pub(super) fn read_encoded(
    loader: &Loader,
    encoded: &Slice,
    layout: Option<&ChunkLayout>,
) -> Result<Vec<u8>, Error> {
    let most = loader.max_chunk_bytes();
    let checked = layout.map_or(Ok(()), |layout| {
        layout.check_encoded_len(encoded.len(), most)
    });
    checked.map_err(|error| encoded.error(error))?;
    encoded.read_all()
}
