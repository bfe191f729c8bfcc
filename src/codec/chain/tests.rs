use super::*;
use crate::{
    codec::{BytesCodec, Checksum, ChecksumKind, ChecksumLocation, IndexLayout, IndexLocation},
    dtype::{ByteOrder, Element, ItemLayout},
};

const BLOSC: BytesToBytes = BytesToBytes::BLOSC;
const CRC32C: BytesToBytes = BytesToBytes::CRC32C;
const GZIP: BytesToBytes = BytesToBytes::GZIP;
const ZLIB: BytesToBytes = BytesToBytes::ZLIB;
const ZSTD: BytesToBytes = BytesToBytes::ZSTD;

fn numbers(unit: usize, count: u64) -> DataType {
    DataType {
        name: "test".to_owned(),
        item_size: unit as u64 * count,
        layout: ItemLayout::Numbers { unit },
        element: Element::Bool,
    }
}

fn chain(transposes: &[&[u64]], endian: ByteOrder, last: &[BytesToBytes]) -> CodecChain {
    let transpose =
        |order: &&[u64]| ArrayToArray::Transpose(Transpose::new(order, order.len()).unwrap());
    CodecChain {
        array_to_array: transposes.iter().map(transpose).collect(),
        array_to_bytes: ArrayToBytes::Bytes(BytesCodec {
            endian: Some(endian),
        }),
        bytes_to_bytes: last.to_vec(),
    }
}

fn encode(codec: &BytesToBytes, bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    match *codec {
        BytesToBytes::Gzip { .. } => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        BytesToBytes::Zlib { .. } => {
            let mut encoder =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        BytesToBytes::Zstd(_) => {
            let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
            let n = zstd_safe::compress(&mut out[..], bytes, 1).unwrap();
            out.truncate(n);
            out
        }
        // Copied bytes: header only.
        BytesToBytes::Blosc(_) => {
            let n = u32::try_from(bytes.len()).unwrap();
            let header = [
                [2, 1, 0x33, 4],
                n.to_le_bytes(),
                n.to_le_bytes(),
                (n + 16).to_le_bytes(),
            ];
            [&header.concat(), bytes].concat()
        }
        CRC32C => [bytes, &::crc32c::crc32c(bytes).to_le_bytes()].concat(),
        ref other => unreachable!("{other:?} has tests of its own"),
    }
}

fn decode(
    chain: &CodecChain,
    shape: &[u64],
    dtype: &DataType,
    encoded: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let fill = FillValue::new(vec![0], true);
    let spec = ChunkSpec {
        shape,
        dtype,
        fill: &fill,
    };
    let mut out = vec![0xee; usize::try_from(spec.decoded_len().unwrap()).unwrap()];
    chain.decode(&spec, encoded, &mut out)?;
    Ok(out)
}

#[test]
fn any_codecs_in_any_order() {
    // 2 x 3 of int16, transposed and big-endian: 0 3 1 4 2 5.
    let elements: Vec<u8> = [0_u16, 3, 1, 4, 2, 5]
        .into_iter()
        .flat_map(u16::to_be_bytes)
        .collect();
    let expected: Vec<u8> = (0..6_u16).flat_map(u16::to_le_bytes).collect();
    let all = [GZIP, ZLIB, ZSTD, BLOSC, CRC32C];
    let mut lists: Vec<Vec<BytesToBytes>> = vec![vec![]];
    for a in &all {
        lists.push(vec![a.clone()]);
        for b in &all {
            lists.push(vec![a.clone(), b.clone()]);
            lists.push(vec![a.clone(), b.clone(), CRC32C]);
        }
    }
    for list in lists {
        let encoded = list
            .iter()
            .fold(elements.clone(), |bytes, codec| encode(codec, &bytes));
        let transposed = chain(&[&[1, 0]], ByteOrder::Big, &list);
        let dtype = numbers(2, 1);
        assert_eq!(
            decode(&transposed, &[2, 3], &dtype, &encoded).unwrap(),
            expected,
            "{list:?}"
        );
        let straight = chain(&[], ByteOrder::Little, &list);
        assert_eq!(
            decode(&straight, &[6], &dtype, &encoded).unwrap(),
            elements,
            "{list:?}"
        );
        assert_eq!(
            straight.undo_bytes_to_bytes(&encoded, 12).unwrap(),
            elements
        );
        assert!(
            straight.undo_bytes_to_bytes(&encoded, 11).is_err(),
            "{list:?}"
        );
        for shape in [[5], [7]] {
            assert!(
                decode(&straight, &shape, &dtype, &encoded).is_err(),
                "{list:?} as {shape:?}"
            );
            assert!(decode(&transposed, &[shape[0], 1], &dtype, &encoded).is_err());
        }
        for length in 0..encoded.len() {
            let result = decode(&straight, &[6], &dtype, &encoded[..length]);
            assert!(result.is_err(), "{list:?} cut at {length}");
        }
        let longer = [&encoded[..], b"!"].concat();
        // A blosc buffer says how long it is; what follows it is not read.
        if list.last() != Some(&BLOSC) {
            assert!(
                decode(&straight, &[6], &dtype, &longer).is_err(),
                "{list:?}"
            );
        }
    }
}

#[test]
fn swaps_follow_the_number_and_not_the_element() {
    let encoded: Vec<u8> = (0..16).collect();
    let big = chain(&[], ByteOrder::Big, &[]);
    let complex = decode(&big, &[2], &numbers(4, 2), &encoded).unwrap();
    assert_eq!(complex[..4], [3, 2, 1, 0]);
    assert_eq!(
        decode(&big, &[2], &numbers(8, 1), &encoded).unwrap()[..3],
        [7, 6, 5]
    );
    let structured = DataType {
        name: "test".to_owned(),
        item_size: 8,
        layout: ItemLayout::Structured { multi_byte: true },
        element: Element::Bool,
    };
    assert_eq!(decode(&big, &[2], &structured, &encoded).unwrap(), encoded);
    assert_eq!(
        decode(&big, &[], &numbers(8, 2), &encoded).unwrap()[..2],
        [7, 6],
        "rank 0"
    );
}

#[test]
fn identity_means_the_same_bytes() {
    let little = chain(&[], ByteOrder::Little, &[]);
    let big = chain(&[], ByteOrder::Big, &[]);
    assert!(little.is_identity(&numbers(4, 1)));
    assert!(!big.is_identity(&numbers(4, 1)) && big.is_identity(&numbers(1, 3)));
    assert!(!chain(&[], ByteOrder::Little, &[CRC32C]).is_identity(&numbers(1, 1)));
    assert!(!chain(&[&[1, 0]], ByteOrder::Little, &[]).is_identity(&numbers(1, 1)));
    let there_and_back = chain(&[&[1, 0], &[1, 0]], ByteOrder::Little, &[]);
    assert!(there_and_back.is_identity(&numbers(4, 1)));
    assert_eq!(there_and_back.permutation(2), [0, 1]);
    assert_eq!(little.permutation(3), [0, 1, 2]);
    let twice = chain(&[&[1, 2, 0], &[1, 2, 0]], ByteOrder::Little, &[]);
    assert_eq!(twice.permutation(3), [2, 0, 1], "p[i] := p[o[i]]");
}

#[test]
fn bombs_stop_at_the_limit() {
    let zeros = vec![0; 1 << 22];
    let dtype = numbers(1, 1);
    for codec in [GZIP, ZLIB, ZSTD, BLOSC] {
        let bomb = encode(&codec, &zeros);
        for list in [vec![], vec![CRC32C], vec![ZSTD]] {
            let list = [list, vec![codec.clone()]].concat();
            let chain = chain(&[], ByteOrder::Little, &list);
            assert!(decode(&chain, &[10], &dtype, &bomb).is_err(), "{list:?}");
            assert!(chain.undo_bytes_to_bytes(&bomb, 10).is_err(), "{list:?}");
        }
    }
}

#[test]
fn scratch_covers_what_is_kept() {
    let bytes = |transposes: &[&[u64]], last: &[BytesToBytes]| {
        chain(transposes, ByteOrder::Big, last).scratch_bytes(1 << 20)
    };
    assert_eq!(bytes(&[], &[]), 0);
    assert_eq!(bytes(&[], &[CRC32C, CRC32C]), 0, "cut off, not copied");
    assert_eq!(bytes(&[&[1, 0]], &[]), 1 << 20);
    assert!(
        (1..1 << 20).contains(&bytes(&[], &[ZSTD])),
        "straight into the output"
    );
    assert!(bytes(&[], &[BLOSC]) > 1 << 20, "a block");
    assert!(bytes(&[], &[ZSTD, GZIP]) > 1 << 20, "what lies between");
    assert!(bytes(&[&[1, 0]], &[CRC32C, GZIP]) > 2 << 20);
    assert_eq!(
        chain(&[], ByteOrder::Big, &[BLOSC]).scratch_bytes(u64::MAX),
        u64::MAX
    );
}

#[test]
fn compressed_shards_are_bounded_by_their_metadata() {
    let inner = chain(&[], ByteOrder::Little, &[GZIP]);
    let index = IndexLayout::new(&[2], &chain(&[], ByteOrder::Little, &[CRC32C])).unwrap();
    let sharding = ShardingCodec {
        chunk_shape: [2][..].into(),
        codecs: inner,
        index,
        location: IndexLocation::End,
        chunks_per_shard: [2][..].into(),
    };
    let chain = CodecChain {
        array_to_array: vec![],
        array_to_bytes: ArrayToBytes::Sharding(Box::new(sharding)),
        bytes_to_bytes: vec![ZSTD],
    };
    let (first, second) = (encode(&GZIP, &[1, 2]), encode(&GZIP, &[3, 4]));
    let (a, b) = (first.len() as u64, second.len() as u64);
    let index: Vec<u8> = [0, a, a, b]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    let shard = [first, second, encode(&CRC32C, &index)].concat();
    let encoded = encode(&ZSTD, &shard);
    assert_eq!(
        decode(&chain, &[4], &numbers(1, 1), &encoded).unwrap(),
        [1, 2, 3, 4]
    );
    let limit = chain.array_bytes_limit(4);
    assert_eq!(chain.undo_bytes_to_bytes(&encoded, limit).unwrap(), shard);
    assert!(chain.scratch_bytes(4) >= limit);
    let bomb = encode(&ZSTD, &vec![0; 1 << 20]);
    assert!(decode(&chain, &[4], &numbers(1, 1), &bomb).is_err());
}

/// Nested shards without checksums, so that damage gets past the index.
fn nested_shards() -> (CodecChain, Vec<u8>) {
    let little = || chain(&[], ByteOrder::Little, &[]);
    let level = |chunk: u64, codecs: CodecChain| CodecChain {
        array_to_array: vec![],
        array_to_bytes: ArrayToBytes::Sharding(Box::new(ShardingCodec {
            chunk_shape: [chunk][..].into(),
            codecs,
            index: IndexLayout::new(&[2], &little()).unwrap(),
            location: IndexLocation::End,
            chunks_per_shard: [2][..].into(),
        })),
        bytes_to_bytes: vec![],
    };
    let shard = |parts: [Vec<u8>; 2]| {
        let lengths = [parts[0].len() as u64, parts[1].len() as u64];
        let words = [0, lengths[0], lengths[0], lengths[1]];
        let index = words.into_iter().flat_map(u64::to_le_bytes).collect();
        [parts.concat(), index].concat()
    };
    let inner = || shard([encode(&ZSTD, &[1, 2]), encode(&ZSTD, &[3, 4])]);
    let codecs = level(2, chain(&[], ByteOrder::Little, &[ZSTD]));
    (level(4, codecs), shard([inner(), inner()]))
}

#[test]
fn damage_is_never_more_than_an_error() {
    let mut state = 3_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    let elements: Vec<u8> = (0..200).map(|i| i / 3).collect();
    let mut cases = vec![];
    for codec in [GZIP, ZLIB, ZSTD, BLOSC, CRC32C] {
        let codecs = chain(&[&[1, 0]], ByteOrder::Big, std::slice::from_ref(&codec));
        cases.push((
            codecs,
            vec![10, 10],
            numbers(2, 1),
            encode(&codec, &elements),
        ));
    }
    let (codecs, shard) = nested_shards();
    let whole = decode(&codecs, &[8], &numbers(1, 1), &shard).unwrap();
    assert_eq!(whole, [1, 2, 3, 4, 1, 2, 3, 4]);
    cases.push((codecs, vec![8], numbers(1, 1), shard));
    for round in 0..6000 {
        let (codecs, shape, dtype, encoded) = &cases[round % cases.len()];
        let mut damaged = encoded.clone();
        for _ in 0..=random(3) {
            let at = random(damaged.len());
            damaged[at] = [0, 1, 255, damaged[at] ^ (1 << random(8))][random(4)];
        }
        let _ = decode(codecs, shape, dtype, &damaged);
    }
}

/// The bytes that are read to their place and finished are the decoded bytes.
#[test]
fn numbers_are_decoded_in_place() {
    let stored: Vec<u8> = (0..48).collect();
    let fill = FillValue::new(vec![0], true);
    let start = BytesToBytes::Checksum(Checksum {
        kind: ChecksumKind::Crc32,
        location: ChecksumLocation::Start,
    });
    let start_of = |bytes: &[u8]| crc32fast::hash(bytes).to_le_bytes();
    let dtype = numbers(4, 1);
    let spec = ChunkSpec {
        shape: &[3, 4],
        dtype: &dtype,
        fill: &fill,
    };
    for endian in [ByteOrder::Little, ByteOrder::Big] {
        for (codecs, encoded) in [
            (vec![], stored.clone()),
            (vec![CRC32C], encode(&CRC32C, &stored)),
            (
                vec![start.clone()],
                [&start_of(&stored)[..], &stored].concat(),
            ),
        ] {
            let chain = chain(&[&[1, 0], &[1, 0]], endian, &codecs);
            let mut decoded = vec![0xee; 48];
            chain.decode(&spec, &encoded, &mut decoded).unwrap();
            let step = chain.in_place(&dtype).unwrap();
            let (before, after) = step.around();
            assert_eq!(before + 48 + after, encoded.len() as u64, "{codecs:?}");
            let (before, rest) = encoded.split_at(usize::try_from(before).unwrap());
            let (body, after) = rest.split_at(48);
            let around = [before, after].concat();
            let mut out = body.to_vec();
            step.finish(&around, &mut out).unwrap();
            assert_eq!(out, decoded, "{codecs:?} {endian:?}");
            let mut damaged = body.to_vec();
            damaged[7] ^= 1;
            assert_eq!(
                step.finish(&around, &mut damaged).is_err(),
                !codecs.is_empty()
            );
            assert!(step.finish(&[0; 3], &mut out).is_err() || codecs.is_empty());
        }
    }
    for other in [
        chain(&[&[1, 0]], ByteOrder::Little, &[]),
        chain(&[], ByteOrder::Little, &[ZSTD]),
        chain(&[], ByteOrder::Little, &[CRC32C, CRC32C]),
    ] {
        assert_eq!(other.in_place(&dtype), None);
    }
}
