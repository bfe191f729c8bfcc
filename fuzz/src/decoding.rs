//! One encoded chunk of an array, decoded and checked.

use zarr_mount::codec::{BytesToBytes, ChunkSpec, CodecChain, Losses};
use zarr_mount::metadata::ArrayMetadata;

use super::heap;

/// Decoded bytes of the largest chunk that is tried: more only makes slow inputs.
const LARGEST: u64 = 1 << 16;

/// Memory of the largest encoder that is tried: high presets of LZMA take hundreds of megabytes.
const MOST_SCRATCH: u64 = 32 << 20;

/// The memory that decoding may take beyond the amount that the chain says: messages, and lists as long as a rank.
const SMALL: u64 = 1 << 14;

/// Decodes `encoded` as a chunk of `array`: each time the result is the same, and decoding takes no more memory than
/// the chain said. Bytes that cannot be decoded, or that are large, are passed over.
pub fn check(array: &ArrayMetadata, encoded: &[u8]) {
    let Ok(decoding) = &array.decoding else {
        return;
    };
    let longest = array.chunks.longest();
    let spec = ChunkSpec {
        shape: &longest,
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
    let decoded = decode(0x00);
    assert_eq!(decoded, decode(0xff), "{:?}", array.codecs);
    if decoding.codecs.encode_scratch_bytes(LARGEST) > MOST_SCRATCH {
        return;
    }
    if let Ok(decoded) = decoded {
        let is_stored = encode(array, &spec, &decoded, Losses::Refused).is_some();
        let codecs = &decoding.codecs;
        let may_fail = codecs.can_lose() || may_refuse(codecs);
        assert!(is_stored || may_fail, "{:?} does not encode", array.codecs);
    }
    let any = encoded.iter().chain(&[0; 9]).cycle();
    let any: Vec<u8> = any
        .take(usize::try_from(length).unwrap_or(0))
        .copied()
        .collect();
    encode(array, &spec, &any, Losses::Refused);
    if let Some(rounded) = encode(array, &spec, &any, Losses::Allowed) {
        encode(array, &spec, &rounded, Losses::Refused);
    }
    check_variable(array, &spec, encoded);
}

/// Encodes `decoded`, if that is possible, and decodes it again. The result is the same if losses are refused. Encoding
/// takes no more memory than the chain said.
fn encode(
    array: &ArrayMetadata,
    spec: &ChunkSpec<'_>,
    decoded: &[u8],
    losses: Losses,
) -> Option<Vec<u8>> {
    let codecs = &array.decoding.as_ref().ok()?.codecs;
    let (encoded, peak) = heap::peak_of(|| codecs.encode(spec, decoded, losses));
    check_peak(array, decoded, peak);
    let mut again = vec![0xee; decoded.len()];
    let done = codecs.decode(spec, &encoded.ok()?, &mut again);
    assert_eq!(done, Ok(()), "{:?}", array.codecs);
    let may_differ = losses == Losses::Allowed && codecs.can_lose();
    assert!(may_differ || again == decoded, "{:?}", array.codecs);
    Some(again)
}

/// Whether some chunks cannot be encoded, though nothing is lost: a shuffle of compressed bytes needs
/// whole elements.
fn may_refuse(codecs: &CodecChain) -> bool {
    let shuffles = |codec: &BytesToBytes| matches!(codec, BytesToBytes::Shuffle { .. });
    codecs.check_encodes().is_err() || codecs.bytes_to_bytes.iter().any(shuffles)
}

fn check_peak(array: &ArrayMetadata, decoded: &[u8], peak: u64) {
    let Ok(decoding) = &array.decoding else {
        return;
    };
    let promised = decoding.codecs.encode_scratch_bytes(decoded.len() as u64);
    assert!(
        peak <= promised.saturating_add(SMALL),
        "encoding {:?} took {peak} bytes, promised {promised}",
        array.codecs
    );
}

/// The same for elements that differ in length: those that are decoded, any bytes, and items whose
/// lengths are made of any bytes.
fn check_variable(array: &ArrayMetadata, spec: &ChunkSpec<'_>, encoded: &[u8]) {
    let Ok(decoding) = &array.decoding else {
        return;
    };
    let codecs = &decoding.codecs;
    let Some(codec) = codecs.variable_length() else {
        return;
    };
    let decode = |encoded: &[u8]| codecs.decode_variable(spec, encoded, LARGEST);
    let encode = |decoded: &[u8]| {
        let (encoded, peak) = heap::peak_of(|| codecs.encode_variable(spec, decoded));
        check_peak(array, decoded, peak);
        if let Ok(encoded) = &encoded {
            assert_eq!(
                decode(encoded).as_deref(),
                Ok(decoded),
                "{:?}",
                array.codecs
            );
        }
        encoded.is_ok()
    };
    if let Ok(decoded) = decode(encoded) {
        encode(&decoded);
    }
    encode(encoded);
    encode(encoded);
    let count = spec.shape.iter().product::<u64>();
    let count = u32::try_from(count).ok().filter(|count| *count < 1000);
    if let Some(count) = count.filter(|_| codec.has_items()) {
        let mut items = count.to_le_bytes().to_vec();
        let lengths = encoded.iter().chain(&[0]).cycle();
        for (_, byte) in (0..count).zip(lengths) {
            let length = u32::from(byte % 3) * 8;
            items.extend(length.to_le_bytes());
            items.extend((0..length).map(|_| b'a'));
        }
        assert!(encode(&items) || may_refuse(codecs), "{:?}", array.codecs);
    }
}
