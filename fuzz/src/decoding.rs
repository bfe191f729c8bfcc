//! One encoded chunk of an array, decoded and checked.

use zarr_mount::codec::ChunkSpec;
use zarr_mount::metadata::ArrayMetadata;

use super::heap;

/// Decoded bytes of the largest chunk that is tried: more only makes slow inputs.
const LARGEST: u64 = 1 << 16;

/// What decoding may take beyond what the chain says: messages, and lists as long as a rank.
const SMALL: u64 = 1 << 14;

/// Decodes `encoded` as a chunk of `array`: as often as it is asked for, the same comes out, and
/// it takes no more memory than the chain said. What cannot be decoded, or is large, is passed over.
pub fn check(array: &ArrayMetadata, encoded: &[u8]) {
    let Ok(decoding) = &array.decoding else {
        return;
    };
    let spec = ChunkSpec {
        shape: &array.chunk_shape,
        dtype: &decoding.data_type,
        fill: &decoding.fill_value,
    };
    let Some(length) = spec.decoded_len().filter(|&length| length <= LARGEST) else {
        return;
    };
    let decode = |background: u8| {
        let mut out = vec![background; usize::try_from(length).unwrap_or(0)];
        let (done, peak) = heap::peak_of(|| decoding.codecs.decode(&spec, encoded, &mut out));
        let promised = decoding.codecs.scratch_bytes(length);
        assert!(
            peak <= promised.saturating_add(SMALL),
            "{:?} took {peak} bytes, promised {promised}",
            array.codecs
        );
        done.map(|()| out)
    };
    // A byte that is not written would show the background.
    assert_eq!(decode(0x00), decode(0xff), "{:?}", array.codecs);
}
