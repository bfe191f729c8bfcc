//! Arrays of float32 that compress as weather does, in chunks of 64^3, and readers of them.

use zarr_mount::metadata::{ArrayMetadata, NodeMetadata, v3};
use zarr_mount_benches::codec::{Codec, encode};

/// Elements along each axis of a chunk.
pub(crate) const EDGE: u64 = 64;
/// Bytes of a decoded chunk.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// A decoded chunk, whose values differ between chunks.
pub(crate) fn chunk(seed: u64) -> Vec<u8> {
    let mut noise = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let elements = (0..CHUNK_BYTES / 4).map(|i| {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        #[expect(clippy::cast_precision_loss, reason = "any value does")]
        let value = 280.0 + (i as f32 / 300.0).sin() * 10.0 + (noise % 64) as f32 / 100.0;
        (value * 100.0).round() / 100.0
    });
    elements.flat_map(f32::to_le_bytes).collect()
}

/// The same, encoded.
pub(crate) fn encoded(codec: Codec, seed: u64) -> Vec<u8> {
    encode(codec, &chunk(seed), 4).expect("made above")
}

/// An array of `chunks_per_axis`^3 chunks.
pub(crate) fn array(codec: Codec, chunks_per_axis: u64) -> ArrayMetadata {
    let length = EDGE * chunks_per_axis;
    let compressor = match codec {
        Codec::None => "",
        Codec::Blosc => {
            r#", {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5,
            "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}"#
        }
        Codec::Zlib => r#", {"name": "numcodecs.zlib", "configuration": {"level": 1}}"#,
        Codec::Gzip => r#", {"name": "gzip", "configuration": {"level": 1}}"#,
        Codec::Zstd => r#", {"name": "zstd", "configuration": {"level": 3, "checksum": false}}"#,
    };
    let text = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "data_type": "float32", "fill_value": 0,
        "shape": [{length}, {length}, {length}],
        "chunk_grid": {{"name": "regular",
            "configuration": {{"chunk_shape": [{EDGE}, {EDGE}, {EDGE}]}}}},
        "chunk_key_encoding": {{"name": "default"}},
        "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}{compressor}]}}"#
    );
    match v3::parse(text.as_bytes()) {
        Ok(NodeMetadata::Array(array)) => *array,
        other => panic!("{other:?}: {text}"),
    }
}
