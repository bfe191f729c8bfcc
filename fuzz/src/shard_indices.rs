//! The index of a shard: verified in pieces, and its entries.

use std::ops::Range;

use serde_json::{Value, json};
use zarr_mount::codec::{EntryState, IndexLayout, IndexLocation};
use zarr_mount::metadata::{NodeMetadata, v3};

use super::choices::Choices;

/// Bytes of a CRC32C.
const CHECKSUM: usize = 4;

/// Chooses a layout and takes what is left of `data` for the shard. Every entry of an index that
/// was found right lies inside the shard, and the size of the pieces makes no difference.
pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let n_checksums = choices.below(3);
    let document = document(&mut choices, n_checksums).to_string();
    let mend = choices.flag();
    let piece = 1 + choices.below(40);
    let mut shard = choices.rest().to_vec();
    let Ok(NodeMetadata::Array(array)) = v3::parse(document.as_bytes()) else {
        return;
    };
    let Ok(decoding) = &array.decoding else {
        return;
    };
    let sharding = decoding.codecs.sharding().expect("the document has shards");
    let layout = &sharding.index;
    let shard_len = len(&shard);
    let Ok(first) = layout.position(shard_len, sharding.location) else {
        assert!(shard_len < layout.encoded_len());
        return;
    };
    let range = usize_of(first)..usize_of(first + layout.encoded_len());
    assert!(range.end <= shard.len());
    match sharding.location {
        IndexLocation::Start => assert_eq!(range.start, 0),
        IndexLocation::End => assert_eq!(range.end, shard.len()),
    }
    if mend && n_checksums == 1 {
        mend_checksum(&mut shard[range.clone()]);
    }
    check(layout, &shard, range, piece);
}

fn check(layout: &IndexLayout, shard: &[u8], range: Range<usize>, piece: usize) {
    let index = &shard[range];
    let whole = verify(layout, len(shard), index, index.len().max(1));
    let pieces = verify(layout, len(shard), index, piece);
    assert_eq!(whole.is_ok(), pieces.is_ok(), "{whole:?}, {pieces:?}");
    let mut seen = vec![false; index.len()];
    for slot in 0..layout.n_slots() {
        let (offset, nbytes) = layout.words(slot);
        let adjacent = nbytes == offset + 8;
        let [offset, nbytes] = [offset, nbytes].map(|word| {
            let word = usize_of(word);
            for byte in &mut seen[word..word + 8] {
                assert!(!std::mem::replace(byte, true), "two words share a byte");
            }
            layout.word(index[word..word + 8].try_into().expect("8 bytes"))
        });
        match layout.entry(offset, nbytes, len(shard)) {
            Ok(EntryState::Empty) => assert_eq!((offset, nbytes), (u64::MAX, u64::MAX)),
            Ok(EntryState::Present(entry)) => {
                assert!(
                    entry
                        .offset
                        .checked_add(entry.nbytes)
                        .is_some_and(|end| end <= len(shard))
                );
            }
            Err(error) => assert!(whole.is_err() || !adjacent, "passed over: {error}"),
        }
    }
}

fn verify(layout: &IndexLayout, shard_len: u64, index: &[u8], piece: usize) -> Result<(), String> {
    let mut verifier = layout.verifier(shard_len);
    for bytes in index.chunks(piece) {
        verifier.feed(bytes).map_err(|error| error.to_string())?;
    }
    verifier.finish().map_err(|error| error.to_string())
}

/// Corrects the checksum, so that entries which a wrong one would hide are checked, too.
fn mend_checksum(index: &mut [u8]) {
    let (words, checksum) = index.split_at_mut(index.len() - CHECKSUM);
    checksum.copy_from_slice(&crc32c::crc32c(words).to_le_bytes());
}

fn document(choices: &mut Choices<'_>, n_checksums: usize) -> Value {
    let shape = choices.up_to(3, |choices| 1 + choices.below(5));
    let inner: Vec<usize> = shape.iter().map(|_| 1).collect();
    let endian = choices.one_of(&["little", "big"]);
    let mut index_codecs = choices.up_to(1, |choices| {
        let mut order: Vec<usize> = (0..=shape.len()).collect();
        order.rotate_left(choices.below(shape.len() + 1));
        json!({"name": "transpose", "configuration": {"order": order}})
    });
    index_codecs.push(json!({"name": "bytes", "configuration": {"endian": endian}}));
    index_codecs.extend((0..n_checksums).map(|_| json!({"name": "crc32c"})));
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": inner, "codecs": [{"name": "bytes"}], "index_codecs": index_codecs,
            "index_location": choices.one_of(&["start", "end"]),
        }}],
    })
}

fn len(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).expect("usize is no wider than u64")
}

fn usize_of(position: u64) -> usize {
    usize::try_from(position).expect("a position inside the shard")
}
