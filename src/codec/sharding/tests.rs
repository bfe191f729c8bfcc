use super::*;
use crate::{
    codec::{ArrayToArray, ArrayToBytes, BytesCodec, BytesToBytes, Losses, Transpose},
    dtype::{ByteOrder, DataType, Element, FillValue, ItemLayout},
};

fn dtype(unit: usize) -> DataType {
    DataType {
        name: "test".to_owned(),
        item_size: unit as u64,
        layout: ItemLayout::Numbers { unit },
        element: Element::Bool,
    }
}

fn plain(endian: ByteOrder) -> CodecChain {
    CodecChain {
        array_to_array: vec![],
        array_to_bytes: ArrayToBytes::Bytes(BytesCodec {
            endian: Some(endian),
        }),
        bytes_to_bytes: vec![],
    }
}

fn with_crc(mut chain: CodecChain) -> CodecChain {
    chain.bytes_to_bytes.push(BytesToBytes::CRC32C);
    chain
}

/// A shard of `counts` inner chunks with the usual index.
fn sharded(
    chunk_shape: &[u64],
    counts: &[u64],
    codecs: CodecChain,
    location: IndexLocation,
) -> ShardingCodec {
    let index_codecs = with_crc(plain(ByteOrder::Little));
    ShardingCodec {
        chunk_shape: chunk_shape.into(),
        codecs,
        index: IndexLayout::new(counts, &index_codecs).unwrap(),
        location,
        chunks_per_shard: counts.into(),
    }
}

fn as_chain(codec: ShardingCodec) -> CodecChain {
    CodecChain {
        array_to_array: vec![],
        array_to_bytes: ArrayToBytes::Sharding(Box::new(codec)),
        bytes_to_bytes: vec![],
    }
}

fn decode(
    chain: &CodecChain,
    shape: &[u64],
    unit: usize,
    fill: &[u8],
    shard: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let (dtype, fill) = (dtype(unit), FillValue::new(fill.to_vec(), true));
    let spec = ChunkSpec {
        shape,
        dtype: &dtype,
        fill: &fill,
    };
    let mut out = vec![0xee; usize::try_from(spec.decoded_len().unwrap()).unwrap()];
    chain.decode(&spec, shard, &mut out)?;
    Ok(out)
}

fn le(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn checksummed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(::crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

const NONE: u64 = u64::MAX;

/// The shard c/1/1 that zarr-python writes of int16 5 x 5, fill 7, shards 4 x 4, inner chunks 2 x 2.
fn corner() -> Vec<u8> {
    let mut shard = vec![0x18, 0, 7, 0, 7, 0, 7, 0];
    shard.extend(le(&[0, 8, NONE, NONE, NONE, NONE, NONE, NONE]));
    shard.extend([0x60, 0xd4, 0xc8, 0xed]);
    assert_eq!(shard.len(), 76);
    shard
}

#[test]
fn shards_of_zarr_python() {
    let chain = as_chain(sharded(
        &[2, 2],
        &[2, 2],
        plain(ByteOrder::Little),
        IndexLocation::End,
    ));
    let mut expected = vec![7_u16; 16];
    expected[0] = 24;
    let expected: Vec<u8> = expected.into_iter().flat_map(u16::to_le_bytes).collect();
    assert_eq!(
        decode(&chain, &[4, 4], 2, &[7, 0], &corner()).unwrap(),
        expected,
        "end"
    );

    let mut start = le(&[0x24, 2, 0x26, 2]);
    start.extend([0x0a, 0xb5, 0xe2, 0x39, 1, 2, 3, 4]);
    let chain = as_chain(sharded(
        &[2],
        &[2],
        plain(ByteOrder::Little),
        IndexLocation::Start,
    ));
    assert_eq!(
        decode(&chain, &[4], 1, &[0], &start).unwrap(),
        [1, 2, 3, 4],
        "start"
    );

    let inner_index = [le(&[0, 2, 2, 2]), vec![0x04, 0x52, 0x6e, 0x88]].concat();
    let inner = |bytes: [u8; 4]| [&bytes[..], &inner_index].concat();
    let mut nested = [inner([1, 2, 3, 4]), inner([5, 6, 7, 8])].concat();
    nested.extend(checksummed(le(&[0, 40, 40, 40])));
    assert_eq!(nested.len(), 116);
    let innermost = sharded(&[2], &[2], plain(ByteOrder::Little), IndexLocation::End);
    let chain = as_chain(sharded(&[4], &[2], as_chain(innermost), IndexLocation::End));
    assert_eq!(
        decode(&chain, &[8], 1, &[0], &nested).unwrap(),
        [1, 2, 3, 4, 5, 6, 7, 8],
        "nested"
    );
}

#[test]
fn shards_may_have_long_gaps() {
    let inner = || sharded(&[2], &[2], plain(ByteOrder::Little), IndexLocation::End);
    let gaps = |n: usize, bytes: [u8; 4]| {
        let mut shard = vec![0xee; n];
        shard.extend(bytes);
        let start = n as u64;
        shard.extend(checksummed(le(&[start, 2, start + 2, 2])));
        shard
    };
    let shard = gaps(10_000, [1, 2, 3, 4]);
    let chain = as_chain(inner());
    assert_eq!(decode(&chain, &[4], 1, &[0], &shard).unwrap(), [1, 2, 3, 4]);
    let nested = as_chain(sharded(&[4], &[1], chain.clone(), IndexLocation::End));
    let length = shard.len() as u64;
    let whole = [shard.clone(), checksummed(le(&[0, length]))].concat();
    assert_eq!(
        decode(&nested, &[4], 1, &[0], &whole).unwrap(),
        [1, 2, 3, 4]
    );
    let summed = checksummed(shard);
    let bounded = decode(&with_crc(chain), &[4], 1, &[0], &summed);
    assert!(bounded.is_err(), "a codec encodes the whole shard");
}

#[test]
fn transposes_in_and_around_a_shard() {
    // uint8 1..=24 as 4 x 6, inner chunks 2 x 3 stored transposed: the first is 1 7 2 8 3 9.
    let mut inner = plain(ByteOrder::Little);
    inner
        .array_to_array
        .push(ArrayToArray::Transpose(Transpose::reversal(2)));
    let mut shard = Vec::new();
    for (row, column) in [(0, 0), (0, 3), (2, 0), (2, 3)] {
        for x in column..column + 3 {
            shard.extend([row * 6 + x + 1, (row + 1) * 6 + x + 1]);
        }
    }
    assert_eq!(shard[..6], [1, 7, 2, 8, 3, 9], "zarr-python");
    shard.extend(checksummed(le(&[0, 6, 6, 6, 12, 6, 18, 6])));
    let codec = sharded(&[2, 3], &[2, 2], inner, IndexLocation::End);
    let expected: Vec<u8> = (1..=24).collect();
    let mut chain = as_chain(codec);
    assert_eq!(
        decode(&chain, &[4, 6], 1, &[0], &shard).unwrap(),
        expected,
        "inside"
    );

    chain
        .array_to_array
        .push(ArrayToArray::Transpose(Transpose::reversal(2)));
    let transposed: Vec<u8> = (0..24).map(|i| (i % 4) * 6 + i / 4 + 1).collect();
    assert_eq!(
        decode(&chain, &[6, 4], 1, &[0], &shard).unwrap(),
        transposed,
        "around"
    );
    assert!(
        decode(&chain, &[4, 6], 1, &[0], &shard).is_err(),
        "other shape"
    );
}

#[test]
fn indices_in_other_encodings() {
    let mut index_codecs = plain(ByteOrder::Big);
    index_codecs
        .array_to_array
        .push(ArrayToArray::Transpose(Transpose::new(&[1, 0], 2).unwrap()));
    let mut codec = sharded(&[2], &[3], plain(ByteOrder::Big), IndexLocation::End);
    codec.index = IndexLayout::new(&[3], &index_codecs).unwrap();
    let mut shard = vec![0, 1, 0, 2, 0, 3, 0, 4];
    // Offsets of the slots, then their lengths.
    for word in [4, NONE, 0, 4, NONE, 4] {
        shard.extend(word.to_be_bytes());
    }
    let chain = as_chain(codec);
    let expected = [3, 0, 4, 0, 9, 8, 9, 8, 1, 0, 2, 0];
    assert_eq!(decode(&chain, &[6], 2, &[9, 8], &shard).unwrap(), expected);
    // Now one entry is half empty. Decoding finds that only when it uses the entry, whose words lie apart.
    let at = shard.len() - 16;
    shard[at] = 0;
    assert!(decode(&chain, &[6], 2, &[9, 8], &shard).is_err());
}

#[test]
fn rank_zero_and_shared_bytes() {
    let chain = as_chain(sharded(
        &[],
        &[],
        plain(ByteOrder::Little),
        IndexLocation::End,
    ));
    let shard = [vec![5], checksummed(le(&[0, 1]))].concat();
    assert_eq!(decode(&chain, &[], 1, &[0], &shard).unwrap(), [5]);
    let empty = checksummed(le(&[NONE, NONE]));
    assert_eq!(decode(&chain, &[], 1, &[3], &empty).unwrap(), [3]);

    let chain = as_chain(sharded(
        &[1, 2],
        &[2, 2],
        plain(ByteOrder::Little),
        IndexLocation::Start,
    ));
    let index = checksummed(le(&[68, 2, 69, 2, 68, 2, NONE, NONE]));
    let shard = [index, vec![1, 2, 3]].concat();
    let expected = [1, 2, 2, 3, 1, 2, 0, 0];
    assert_eq!(decode(&chain, &[2, 4], 1, &[0], &shard).unwrap(), expected);
}

#[test]
fn damaged_shards_are_refused() {
    let chain = as_chain(sharded(
        &[2, 2],
        &[2, 2],
        plain(ByteOrder::Little),
        IndexLocation::End,
    ));
    let whole = corner();
    for length in 0..whole.len() {
        assert!(
            decode(&chain, &[4, 4], 2, &[7, 0], &whole[..length]).is_err(),
            "cut at {length}"
        );
    }
    for at in 8..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        assert!(
            decode(&chain, &[4, 4], 2, &[7, 0], &damaged).is_err(),
            "byte {at}"
        );
    }
    for (words, why) in [
        ([0, 7], "chunk too short"),
        ([0, 9], "chunk too long"),
        ([0, 0], "empty chunk"),
        ([0, NONE], "half empty"),
        ([NONE, 8], "half empty"),
        ([NONE - 3, 8], "overflow"),
        ([70, 8], "past the end"),
    ] {
        let [offset, nbytes] = words;
        let index = checksummed(le(&[offset, nbytes, NONE, NONE, NONE, NONE, NONE, NONE]));
        let shard = [&whole[..8], &index].concat();
        assert!(
            decode(&chain, &[4, 4], 2, &[7, 0], &shard).is_err(),
            "{why}"
        );
    }
}

#[test]
fn places_agree_with_indices() {
    // Runs of every kind: single elements, rows, planes, all of it.
    for (chunk, counts) in [
        (&[2, 2, 2][..], &[2, 3, 2][..]),
        (&[2, 2, 4], &[2, 3, 1]),
        (&[2, 6, 4], &[3, 1, 1]),
        (&[4, 6, 4], &[1, 1, 1]),
        (&[1, 1, 4], &[4, 6, 1]),
        (&[1, 3, 1], &[4, 2, 4]),
        (&[2, 1, 4], &[2, 6, 1]),
    ] {
        let shape: Vec<u64> = chunk.iter().zip(counts).map(|(c, n)| c * n).collect();
        let n = grid::product(&shape).unwrap();
        let value = |rank: u64| u16::try_from(rank).unwrap().to_le_bytes();
        let expected: Vec<u8> = (0..n).flat_map(value).collect();
        let (mut shard, mut words) = (Vec::new(), Vec::new());
        for slot in 0..grid::product(counts).unwrap() {
            let at = grid::indices_of(slot, counts).unwrap();
            let nbytes = 2 * grid::product(chunk).unwrap();
            words.extend([slot * nbytes, nbytes]);
            for inner in 0..nbytes / 2 {
                let inside = grid::indices_of(inner, chunk).unwrap();
                let indices: Vec<u64> = (0..3).map(|i| at[i] * chunk[i] + inside[i]).collect();
                shard.extend(value(grid::rank_of(&indices, &shape).unwrap()));
            }
        }
        shard.extend(checksummed(le(&words)));
        let chain = as_chain(sharded(
            chunk,
            counts,
            plain(ByteOrder::Little),
            IndexLocation::End,
        ));
        assert_eq!(
            decode(&chain, &shape, 2, &[0, 0], &shard).unwrap(),
            expected,
            "{chunk:?}"
        );
        let empty = checksummed(le(&vec![NONE; words.len()]));
        let filled = [1, 2].repeat(expected.len() / 2);
        assert_eq!(
            decode(&chain, &shape, 2, &[1, 2], &empty).unwrap(),
            filled,
            "{chunk:?}"
        );
    }
}

/// The shard that has these elements.
fn encode(chain: &CodecChain, shape: &[u64], fill: &[u8], elements: &[u8]) -> Vec<u8> {
    let unit = fill.len();
    let (dtype, fill) = (dtype(unit), FillValue::new(fill.to_vec(), true));
    let spec = ChunkSpec {
        shape,
        dtype: &dtype,
        fill: &fill,
    };
    chain.encode(&spec, elements, Losses::Refused).unwrap()
}

#[test]
fn the_shards_of_zarr_python_are_encoded() {
    let chain = as_chain(sharded(
        &[2, 2],
        &[2, 2],
        plain(ByteOrder::Little),
        IndexLocation::End,
    ));
    let mut elements = vec![7_u16; 16];
    elements[0] = 24;
    let elements: Vec<u8> = elements.into_iter().flat_map(u16::to_le_bytes).collect();
    assert_eq!(encode(&chain, &[4, 4], &[7, 0], &elements), corner());
    let mut start = le(&[0x24, 2, 0x26, 2]);
    start.extend([0x0a, 0xb5, 0xe2, 0x39, 1, 2, 3, 4]);
    let chain = as_chain(sharded(
        &[2],
        &[2],
        plain(ByteOrder::Little),
        IndexLocation::Start,
    ));
    assert_eq!(encode(&chain, &[4], &[0], &[1, 2, 3, 4]), start);
}

#[test]
fn shards_decode_to_what_was_encoded() {
    for location in [IndexLocation::Start, IndexLocation::End] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut index = with_crc(with_crc(plain(order)));
            // The words of a slot lie apart.
            index.array_to_array = vec![ArrayToArray::Transpose(
                Transpose::new(&[3, 0, 2, 1], 4).unwrap(),
            )];
            let counts = [2, 3, 1];
            let inner = ShardingCodec {
                index: IndexLayout::new(&counts, &index).unwrap(),
                ..sharded(&[3, 2, 5], &counts, with_crc(plain(order)), location)
            };
            let nested = sharded(&[6, 6, 5], &[1, 2, 1], as_chain(inner.clone()), location);
            for (codec, shape) in [(inner, [6, 6, 5]), (nested, [6, 12, 5])] {
                let chain = as_chain(codec);
                let n: u64 = shape.iter().product();
                let mut elements: Vec<u8> = (0..n * 2).map(|i| (i % 251) as u8).collect();
                // Some inner chunks have only fill values.
                elements[..120].fill(0);
                let shard = encode(&chain, &shape, &[0, 0], &elements);
                assert_eq!(
                    decode(&chain, &shape, 2, &[0, 0], &shard).unwrap(),
                    elements
                );
                let empty = vec![0; elements.len()];
                let shard = encode(&chain, &shape, &[0, 0], &empty);
                assert_eq!(decode(&chain, &shape, 2, &[0, 0], &shard).unwrap(), empty);
            }
        }
    }
}
