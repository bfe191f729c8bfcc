use std::ffi::CStr;

use super::{
    blosclz::longest_run_of_255,
    library::{Encoding, compress},
    *,
};

const COMPRESSORS: [&CStr; 6] = [c"blosclz", c"lz4", c"lz4hc", c"snappy", c"zlib", c"zstd"];

/// int32 0..40, lz4, byte shuffle, one block; numcodecs.
const NUMCODECS: &[u8] = b"\x02\x01\x31\x04\xa0\0\0\0\xa0\0\0\0\x50\0\0\0\x14\0\0\0\x38\0\0\0\
    \xff\x1e\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\
    \x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x20\x21\x22\x23\x24\x25\x26\x27\
    \0\0\0\0\0\x05\0\x5b\x50\0\0\0\0\0";

fn decoded(encoded: &[u8], room: usize) -> Result<Option<Vec<u8>>, FormatError> {
    let mut out = vec![0xee; room];
    Ok(match undo(encoded, &mut out)? {
        Decoded::Whole(n) => Some(out[..n].to_vec()),
        Decoded::Overflow => None,
    })
}

/// Numbers that compress, with enough noise to have literals and matches of many lengths.
fn sample(length: usize, random: &mut impl FnMut() -> u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut value = 0_u32;
    while bytes.len() < length {
        if random().is_multiple_of(50) {
            value = value.wrapping_add(u32::from(random().to_le_bytes()[0]));
        }
        bytes.extend(value.wrapping_add(3).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn generator(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// Buffers of all compressors, shuffles, and several sizes of elements and blocks.
fn buffers() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut random = generator(1);
    let mut buffers = Vec::new();
    for compressor in COMPRESSORS {
        for shuffle in 0..3 {
            for (typesize, blocksize, length) in [
                (4, 0, 4000),
                (2, 0, 70_000),
                (4, 0, 100_002),
                (16, 0, 40_000),
                (1, 256, 1000),
                (8, 2048, 9001),
                (3, 600, 2500),
                (17, 0, 3000),
                (255, 1024, 5000),
            ] {
                let bytes = sample(length, &mut random);
                let encoding = Encoding {
                    compressor,
                    level: 5,
                    shuffle,
                    typesize,
                    blocksize,
                };
                let name = format!("{compressor:?} shuffle {shuffle} of {typesize} in {blocksize}");
                buffers.push((name, compress(&encoding, &bytes), bytes));
            }
        }
    }
    buffers
}

#[test]
fn buffers_of_numcodecs() {
    let numbers: Vec<u8> = (0..40_u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(decoded(NUMCODECS, 160).unwrap(), Some(numbers));
    let copied = [
        &b"\x02\x01\x33\x04\x18\0\0\0\x18\0\0\0\x28\0\0\0"[..],
        &[7; 24],
    ]
    .concat();
    assert_eq!(
        decoded(&copied, 24).unwrap(),
        Some(vec![7; 24]),
        "copied, despite shuffle"
    );
    assert_eq!(decoded(&copied, 23).unwrap(), None);
    assert!(decoded(&copied[..39], 24).is_err());
    let empty = b"\x02\x01\x33\x04\0\0\0\0\0\0\0\0\x10\0\0\0";
    assert_eq!(decoded(empty, 0).unwrap(), Some(vec![]));
}

#[test]
fn buffers_of_all_kinds() {
    for (name, encoded, bytes) in buffers() {
        assert_eq!(
            decoded(&encoded, bytes.len()).unwrap(),
            Some(bytes.clone()),
            "{name}"
        );
        let followed = [&encoded[..], b"more"].concat();
        assert_eq!(
            decoded(&followed, bytes.len() + 1).unwrap(),
            Some(bytes.clone()),
            "{name}"
        );
        assert_eq!(decoded(&encoded, bytes.len() - 1).unwrap(), None, "{name}");
    }
}

/// The library C-Blosc, which has made the buffers of all kinds, decodes them to the same bytes as the code of this
/// program.
#[test]
fn the_library_agrees() {
    for (name, encoded, bytes) in buffers() {
        let header = BloscLayout::read(&encoded, encoded.len()).unwrap();
        if header.flags & FLAG_MEMCPY == 0 {
            let mut out = vec![0xa5; bytes.len()];
            assert_eq!(
                library::decompress(&encoded, &mut out),
                Some(out.len()),
                "{name}"
            );
            assert!(out == bytes, "{name}");
        }
    }
}

/// A flag of a byte shuffle has no effect on elements of one byte, and a flag of a bit shuffle none on
/// blocks that are shorter than an element.
#[test]
fn shuffles_that_do_nothing() {
    for (flags, typesize) in [(0x31, 1), (0x34, 9)] {
        let mut buffer = one_split(flags, 8, b"abcdefgh");
        buffer[3] = typesize;
        assert_eq!(decoded(&buffer, 8).unwrap(), Some(b"abcdefgh".to_vec()));
    }
}

#[test]
fn other_versions_of_the_inner_format_are_refused() {
    let mut other = NUMCODECS.to_vec();
    other[1] = 2;
    assert!(decoded(&other, 160).is_err());
}

#[test]
fn cut_buffers_are_refused() {
    for length in 0..NUMCODECS.len() {
        assert!(
            decoded(&NUMCODECS[..length], 160).is_err(),
            "cut at {length}"
        );
        // The same with a header that gives the length of the cut buffer.
        let mut shorter = NUMCODECS[..length].to_vec();
        if let Some(cbytes) = shorter.get_mut(12..16) {
            cbytes.copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
        }
        assert!(decoded(&shorter, 160).is_err(), "really cut at {length}");
    }
}

#[test]
fn hostile_headers_are_refused() {
    for (at, bytes, why) in [
        (0, &[3][..], "version"),
        (2, &[0x39], "reserved flag"),
        (2, &[0xa0], "unknown compressor"),
        (3, &[0], "element size"),
        (4, &[0xff; 4], "negative length"),
        (8, &[0; 4], "no blocks"),
        (8, &[0xff; 4], "negative block"),
        (8, &[0xa1, 0], "block past the end"),
        (8, &[1, 0], "more blocks than bytes"),
        (12, &[0x51], "longer than it is"),
        (12, &[0xff; 4], "negative size"),
        (16, &[0xff; 4], "negative start"),
        (16, &[0x50], "start at the end"),
        (20, &[0xff; 4], "negative split"),
        (20, &[0x39], "split past the end"),
    ] {
        let mut hostile = NUMCODECS.to_vec();
        hostile[at..at + bytes.len()].copy_from_slice(bytes);
        assert!(decoded(&hostile, 160).is_err(), "{why}");
    }
}

/// One block of one split.
fn one_split(flags: u8, length: u32, split: &[u8]) -> Vec<u8> {
    let cbytes = u32::try_from(24 + split.len()).unwrap();
    let mut buffer = vec![2, 1, flags, 1];
    for word in [length, length, cbytes, 20, cbytes - 24] {
        buffer.extend(word.to_le_bytes());
    }
    buffer.extend(split);
    buffer
}

#[test]
fn match_lengths_that_wrap_are_refused() {
    // A literal, then a match whose length bytes sum up past 2^31: the library passes its
    // negative sum to memset.
    let mut split = vec![0, b'a', 0xe0];
    split.extend(vec![255; 8_500_000]);
    split.extend([0, 0, 0, b'a']);
    assert!(decoded(&one_split(0x10, 9_000_000, &split), 9_000_000).is_err());
    // A valid match of this length has this many bytes 255.
    let n = 1_000_000;
    let encoding = Encoding {
        compressor: c"blosclz",
        level: 9,
        shuffle: 0,
        typesize: 1,
        blocksize: n,
    };
    let run = vec![9; n];
    let encoded = compress(&encoding, &run);
    assert!(longest_run_of_255(&encoded) > 100);
    assert_eq!(decoded(&encoded, n).unwrap(), Some(run));
}

#[test]
fn blocks_that_share_a_long_split_are_refused_at_once() {
    // 250,000 blocks of a byte, all with the same split of a megabyte behind their starts.
    let blocks = 250_000_u32;
    let split = 1_000_000;
    let cbytes = 16 + 4 * blocks + 4 + split;
    let mut buffer = vec![2, 1, 0x10, 1];
    for word in [blocks, 1, cbytes] {
        buffer.extend(word.to_le_bytes());
    }
    buffer.extend((16 + 4 * blocks).to_le_bytes().repeat(blocks as usize));
    buffer.extend(split.to_le_bytes());
    buffer.resize(cbytes as usize, 0);
    assert!(decoded(&buffer, blocks as usize).is_err());
}

#[test]
fn old_zstd_formats_never_reach_the_library() {
    let mut frame = vec![0; 100];
    let n = zstd_safe::compress(&mut frame[..], &[5; 100], 1).unwrap();
    frame.truncate(n);
    let good = one_split(0x90, 100, &frame);
    assert_eq!(decoded(&good, 100).unwrap(), Some(vec![5; 100]));
    let old = b"\x25\xb5\x2f\xfd\0\0\0\0\0\0\0\0";
    assert!(decoded(&one_split(0x90, 100, old), 100).is_err());
    let second = [&frame[..], old].concat();
    assert!(decoded(&one_split(0x90, 100, &second), 100).is_err());
}

/// After a change of the codec, this test should be run with more rounds (`BLOSC_ROUNDS=100000`), and under valgrind.
#[test]
fn damaged_buffers_never_crash() {
    let rounds = std::env::var("BLOSC_ROUNDS").ok();
    let rounds = rounds.map_or(4000_usize, |n| n.parse().unwrap());
    let mut random = generator(2);
    let buffers = buffers();
    let mut reached = 0;
    for _ in 0..rounds {
        let mut pick = |n: usize| usize::try_from(random()).unwrap() % n;
        let (_, encoded, bytes) = &buffers[pick(buffers.len())];
        let mut damaged = encoded.clone();
        for _ in 0..=pick(4) {
            // Each sixth change is in the header, the starts of blocks or the first lengths of splits.
            let whole = damaged.len();
            let region = if pick(6) == 0 { whole.min(48) } else { whole };
            let at = pick(region);
            let value = [
                0,
                1,
                127,
                128,
                255,
                pick(256),
                usize::from(damaged[at]) ^ (1 << pick(8)),
            ];
            damaged[at] = value[pick(value.len())].to_le_bytes()[0];
        }
        let mut out = vec![0xa5; bytes.len()];
        // Exactly as long as the slice, so that a checker sees every byte past it.
        let damaged = damaged.into_boxed_slice();
        reached += usize::from(match undo(&damaged, &mut out) {
            Ok(_) => true,
            Err(error) => error.to_string().contains("damaged"),
        });
    }
    assert!(
        reached > rounds / 4,
        "decoders saw only {reached} of {rounds}"
    );
}

/// The decoded bytes of each block, or `None` for a block that can only be decoded with the whole
/// buffer. The result is `None` if the buffer has no blocks.
fn blocks_of(encoded: &[u8], length: usize) -> Option<Vec<Option<Vec<u8>>>> {
    let length = u64::try_from(length).unwrap();
    let encoded_len = u64::try_from(encoded.len()).unwrap();
    let layout = BloscLayout::parse(encoded.first_chunk()?, encoded_len, length)?;
    let starts = usize::try_from(layout.starts_len()).unwrap();
    let blocks = layout.blocks(encoded.get(HEADER_LEN..HEADER_LEN + starts)?)?;
    let decode = |number| {
        let block = blocks.block(number)?;
        let at = usize::try_from(block.offset).unwrap();
        let stored = encoded.get(at..at + usize::try_from(block.len).unwrap())?;
        let mut out = vec![0xee; usize::try_from(block.decoded_len).unwrap()];
        undo_block(&[&block.prefix, stored].concat(), &mut out)?;
        Some(out)
    };
    Some((0..layout.n_blocks()).map(decode).collect())
}

/// Buffers of several blocks, most of them split, the last one shorter: the library makes such
/// blocks of 64 KiB or more.
fn split_buffers() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut random = generator(4);
    let mut buffers = Vec::new();
    for compressor in [c"blosclz", c"lz4", c"zlib", c"zstd"] {
        for shuffle in 0..3 {
            for (typesize, length) in [(2, 150_000), (4, 300_004), (8, 262_144), (16, 200_001)] {
                let bytes = sample(length, &mut random);
                let encoding = Encoding {
                    compressor,
                    level: 5,
                    shuffle,
                    typesize,
                    blocksize: 4096,
                };
                let name = format!("{compressor:?} shuffle {shuffle}, splits of {typesize}");
                buffers.push((name, compress(&encoding, &bytes), bytes));
            }
        }
    }
    buffers
}

#[test]
fn blocks_are_what_they_are_in_the_whole() {
    let mut in_blocks = 0;
    for (name, encoded, bytes) in buffers().into_iter().chain(split_buffers()) {
        let layout = BloscLayout::parse(
            encoded.first_chunk().unwrap(),
            encoded.len() as u64,
            bytes.len() as u64,
        );
        let layout = layout.unwrap();
        if let Some(at) = layout.copied_at() {
            let at = usize::try_from(at).unwrap();
            assert_eq!(encoded[at..], bytes, "{name}");
            assert!(blocks_of(&encoded, bytes.len()).is_none(), "{name}");
            continue;
        }
        let blocks = blocks_of(&encoded, bytes.len()).unwrap();
        in_blocks += usize::from(blocks.len() > 1);
        let blocks: Option<Vec<_>> = blocks.into_iter().collect();
        assert_eq!(blocks.expect(&name).concat(), bytes, "{name}");
        assert!(blocks_of(&encoded, bytes.len() + 1).is_none(), "{name}");
        assert!(blocks_of(&encoded[..20], bytes.len()).is_none(), "{name}");
    }
    assert!(in_blocks > 40, "{in_blocks}");
}

#[test]
fn damaged_blocks_are_nothing_or_what_they_are_in_the_whole() {
    let mut random = generator(3);
    let buffers = buffers();
    let (mut same, mut refused) = (0, 0);
    for _ in 0..3000 {
        let mut pick = |n: usize| usize::try_from(random()).unwrap() % n;
        let (name, encoded, bytes) = &buffers[pick(buffers.len())];
        let mut damaged = encoded.clone();
        let region = [damaged.len(), 48][pick(2)].min(damaged.len());
        damaged[pick(region)] ^= 1 << pick(8);
        let whole = decoded(&damaged, bytes.len());
        let Some(blocks) = blocks_of(&damaged, bytes.len()) else {
            continue;
        };
        let mut at = 0;
        for block in &blocks {
            let (Some(block), Ok(Some(whole))) = (block, &whole) else {
                refused += usize::from(block.is_none());
                break;
            };
            assert_eq!(block[..], whole[at..][..block.len()], "{name}");
            same += 1;
            at += block.len();
        }
        let all = blocks.iter().all(Option::is_some);
        // If each block can be decoded, so can the whole buffer.
        assert!(!all || whole.is_ok(), "{name}: {whole:?}");
    }
    assert!(same > 500 && refused > 500, "{same} {refused}");
}
