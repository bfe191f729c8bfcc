//! An array document, NUL, and an encoded chunk of that array, as stores hold them.

use zarr_mount::metadata::{NodeMetadata, v2, v3};

use super::decoding;

/// Decodes the chunk.
pub fn run(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == 0) else {
        return;
    };
    let (document, encoded) = (&data[..end], &data[end + 1..]);
    if let Ok(NodeMetadata::Array(array)) = v3::parse(document) {
        decoding::check(&array, encoded);
    }
    if let Ok(array) = v2::parse_array(document) {
        decoding::check(&array, encoded);
    }
}
