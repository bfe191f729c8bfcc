use super::*;
use crate::codec::BytesCodec;
use crate::codec::Transpose;

fn chain(transposes: &[&[u64]], endian: Option<ByteOrder>, last: &[BytesToBytes]) -> CodecChain {
    let transpose =
        |order: &&[u64]| ArrayToArray::Transpose(Transpose::new(order, order.len()).unwrap());
    CodecChain {
        array_to_array: transposes.iter().map(transpose).collect(),
        array_to_bytes: ArrayToBytes::Bytes(BytesCodec { endian }),
        bytes_to_bytes: last.to_vec(),
    }
}

const LITTLE: Option<ByteOrder> = Some(ByteOrder::Little);

#[test]
fn lengths_and_places_of_words() {
    const CRC: BytesToBytes = BytesToBytes::CRC32C;
    let usual = IndexLayout::new(&[2, 3], &chain(&[], LITTLE, &[CRC])).unwrap();
    assert_eq!((usual.n_slots(), usual.encoded_len()), (6, 100));
    assert_eq!((usual.words(0), usual.words(5)), ((0, 8), (80, 88)));
    assert_eq!(usual.position(100, IndexLocation::End).unwrap(), 0);
    assert_eq!(usual.position(150, IndexLocation::End).unwrap(), 50);
    assert_eq!(usual.position(150, IndexLocation::Start).unwrap(), 0);
    assert!(usual.position(99, IndexLocation::End).is_err());
    assert!(usual.position(99, IndexLocation::Start).is_err());

    let twice = IndexLayout::new(&[], &chain(&[], LITTLE, &[CRC, CRC])).unwrap();
    assert_eq!((twice.n_slots(), twice.encoded_len()), (1, 24), "rank 0");
    assert_eq!(twice.words(0), (0, 8));

    // All offsets, then all lengths.
    let torn = IndexLayout::new(&[2, 3], &chain(&[&[2, 0, 1]], LITTLE, &[])).unwrap();
    assert_eq!((torn.words(0), torn.words(4)), ((0, 48), (32, 80)));
    // Slots in Fortran order.
    let swapped = IndexLayout::new(&[2, 3], &chain(&[&[1, 0, 2]], LITTLE, &[])).unwrap();
    assert_eq!((swapped.words(1), swapped.words(3)), ((32, 40), (16, 24)));
    // Both, one after the other.
    let both = IndexLayout::new(&[2, 3], &chain(&[&[1, 0, 2], &[2, 0, 1]], LITTLE, &[])).unwrap();
    assert_eq!(both.words(1), (16, 64));

    let big = IndexLayout::new(&[1], &chain(&[], Some(ByteOrder::Big), &[])).unwrap();
    assert_eq!(big.word([0, 0, 0, 0, 0, 0, 1, 2]), 258);
}

#[test]
fn codecs_without_a_fixed_size_are_refused_by_name() {
    for (codecs, name) in [
        (chain(&[], None, &[]), "endian"),
        (
            chain(&[], LITTLE, &[BytesToBytes::CRC32C, BytesToBytes::ZSTD]),
            "zstd",
        ),
        (chain(&[], LITTLE, &[BytesToBytes::BLOSC]), "blosc"),
        (chain(&[&[1, 0]], LITTLE, &[]), "transpose"),
    ] {
        let message = IndexLayout::new(&[2, 3], &codecs).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
    }
    let usual = chain(&[], LITTLE, &[]);
    for counts in [&[u64::MAX][..], &[1 << 60], &[1 << 32, 1 << 32]] {
        assert!(IndexLayout::new(counts, &usual).is_err(), "{counts:?}");
    }
    assert!(
        IndexLayout::new(&[1 << 40], &usual).is_ok(),
        "nothing is allocated"
    );
}

#[test]
fn entries_are_checked_against_the_shard() {
    const NONE: u64 = u64::MAX;
    let layout = IndexLayout::new(&[1], &chain(&[], LITTLE, &[])).unwrap();
    let present = |offset, nbytes| EntryState::Present(ShardEntry { offset, nbytes });
    for (offset, nbytes, expected, why) in [
        (NONE, NONE, Some(EntryState::Empty), "empty"),
        (0, 50, Some(present(0, 50)), "all of it"),
        (50, 0, Some(present(50, 0)), "nothing, at the end"),
        (NONE, 0, None, "half empty"),
        (0, NONE, None, "half empty"),
        (1, 50, None, "past the end"),
        (51, 0, None, "behind the end"),
        (NONE - 1, 2, None, "overflow"),
        (2, NONE - 1, None, "overflow"),
    ] {
        assert_eq!(layout.entry(offset, nbytes, 50).ok(), expected, "{why}");
    }
    assert!(
        layout.entry(NONE, 0, NONE).is_err(),
        "half empty in the largest shard"
    );
}

/// Feeds an index in pieces of `step` bytes.
fn verify(layout: &IndexLayout, index: &[u8], step: usize, shard_len: u64) -> bool {
    let mut verifier = layout.verifier(shard_len);
    index.chunks(step).all(|piece| verifier.feed(piece).is_ok()) && verifier.finish().is_ok()
}

#[test]
fn indices_are_verified_in_pieces() {
    let words: Vec<u8> = [0_u64, 10, u64::MAX, u64::MAX, 10, 20]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    for n_checksums in 0..3 {
        let codecs = chain(&[], LITTLE, &vec![BytesToBytes::CRC32C; n_checksums]);
        let layout = IndexLayout::new(&[3], &codecs).unwrap();
        let mut index = words.clone();
        for _ in 0..n_checksums {
            index.extend(::crc32c::crc32c(&index).to_le_bytes());
        }
        for step in 1..=index.len() {
            assert!(verify(&layout, &index, step, 30), "pieces of {step}");
            assert!(!verify(&layout, &index, step, 29), "past the end, {step}");
            let longer = [&index[..], &[0]].concat();
            assert!(!verify(&layout, &longer, step, 30), "too long");
        }
        for length in 0..index.len() {
            assert!(!verify(&layout, &index[..length], 7, 30), "cut at {length}");
        }
        for at in 0..index.len() {
            let mut damaged = index.clone();
            damaged[at] ^= 0x80;
            let harmless = n_checksums == 0 && verify(&layout, &damaged, 5, u64::MAX);
            assert_eq!(
                verify(&layout, &damaged, 5, u64::MAX),
                harmless,
                "byte {at}"
            );
            if n_checksums > 0 {
                assert!(!verify(&layout, &damaged, 5, u64::MAX), "byte {at}");
            }
        }
    }
}

#[test]
fn torn_entries_are_left_to_their_use() {
    let codecs = chain(&[&[1, 0]], LITTLE, &[BytesToBytes::CRC32C]);
    let layout = IndexLayout::new(&[2], &codecs).unwrap();
    // Offsets 0 and 5, lengths 5 and 5.
    let mut index: Vec<u8> = [0_u64, 5, 5, 5]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    index.extend(::crc32c::crc32c(&index).to_le_bytes());
    for step in 1..=index.len() {
        assert!(verify(&layout, &index, step, 10));
    }
    index[3] ^= 1;
    assert!(!verify(&layout, &index, 3, 10), "checksum");
}
