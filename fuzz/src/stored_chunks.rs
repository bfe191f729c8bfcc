//! An array document, NUL, and an encoded chunk of that array, as stores hold them.

use zarr_mount::metadata::{NodeMetadata, n5, v2, v3};

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
    for parse in [v2::parse_array, n5::parse_array] {
        if let Ok(array) = parse(document) {
            decoding::check(&array, encoded);
        }
    }
}
