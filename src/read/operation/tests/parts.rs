//! Tests partial decodes by cost, of arrays and of single chunks: the bytes are right, and the work
//! is bounded.

use proptest::prelude::*;

use super::current;
use super::model::{Compressor, Model, compressor};
use crate::load::testing::Reader;
use crate::load::{Patience, Region};
use crate::read::Policy;
use crate::store::FirstRead;

/// Reads by cost, on this thread.
const BY_COST: (Policy, Patience) = (Policy::ByCost, Patience::Waits);

/// Arrays of 2 x 1 x 1 chunks that are large enough for parts of them to be worth it.
fn case() -> impl Strategy<Value = Model> {
    let lengths = (12..20_u64, 20..30_u64, 20..30_u64);
    let items = [("uint16", 2), ("uint32", 4), ("r24", 3), ("uint64", 8)];
    let item = prop::sample::select(items.to_vec());
    let flags = any::<(bool, bool, bool)>();
    (lengths, item, compressor(), flags).prop_map(
        |((a, b, c), item, compressor, (big, reversed, sharded))| Model {
            shape: vec![2 * a, b, c],
            chunk: vec![a, b, c],
            per_shard: sharded.then(|| vec![2, 1, 1]),
            lists: None,
            big: big && item.0.starts_with("uint"),
            reversed,
            item,
            compressor,
            absent: 0,
        },
    )
}

/// The beginnings and lengths of reads, as fractions. Most reads are short.
fn ranges() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let len = prop_oneof![4 => 1..300_u64, 1 => 1..20_000_u64];
    proptest::collection::vec((any::<u64>(), len), 1..40)
}

/// The number of bytes decoded in part, and of chunks decoded whole.
fn done(reader: &Reader) -> (u64, u64) {
    let counters = reader.cache().counters();
    (counters.partial_bytes.get(), counters.decodes.get())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_reads_of_an_array_cost_no_more_than_its_chunks_twice(
        model in case(),
        ranges in ranges(),
    ) {
        let region = Region::all(&model.shape);
        let expected = model.run(&region);
        let (reader, store) = model.reader(8 << 20);
        let total = expected.len() as u64;
        for (from, len) in ranges {
            let from = from % total;
            let len = usize::try_from(len.min(total - from)).unwrap();
            let mut out = vec![0xee; len];
            reader.gather(&region, from, &mut out, &current(&store), BY_COST).unwrap();
            prop_assert_eq!(&out[..], &expected[usize::try_from(from).unwrap()..][..len]);
        }
        let (parts, decodes) = done(&reader);
        prop_assert!(parts < total, "{} of {}", parts, total);
        prop_assert!(decodes <= 2, "{} of 2", decodes);
    }

    #[test]
    fn parts_of_a_chunk_are_slices_of_it(model in case(), ranges in ranges()) {
        let (reader, _store) = model.reader(8 << 20);
        let at = [1, 0, 0];
        let object = reader.open(&at);
        let whole = reader.decoded(&object, &at).unwrap();
        let key = reader.array.block_key(object.meta().version, &at).unwrap();
        let chunk = reader.locate(&object, &at);
        let total = whole.len() as u64;
        let mut spent = 0;
        for (from, len) in ranges {
            let from = from % total;
            let len = usize::try_from(len.min(total - from)).unwrap();
            let mut out = vec![0xee; len];
            let before = done(&reader).0;
            if reader.loader.read_part((&reader.array, &at), key, &chunk, from, &mut out).unwrap() {
                prop_assert_eq!(&out[..], &whole[usize::try_from(from).unwrap()..][..len]);
                spent += done(&reader).0 - before;
            } else {
                spent = 0;
            }
            prop_assert!(spent < total);
        }
        let mut past = vec![0; 2];
        prop_assert!(!reader.loader.read_part((&reader.array, &at), key, &chunk, total - 1, &mut past).unwrap());
        prop_assert!(!reader.loader.read_part((&reader.array, &at), key, &chunk, u64::MAX, &mut past).unwrap());
    }
}

fn one_chunk(compressor: Compressor, reversed: bool) -> Model {
    Model {
        shape: vec![64, 512],
        chunk: vec![64, 512],
        per_shard: None,
        lists: None,
        item: ("uint32", 4),
        big: true,
        reversed,
        compressor,
        absent: 0,
    }
}

#[test]
fn a_chunk_that_is_read_again_and_again_is_decoded_whole_at_last() {
    let blosc = Compressor::Blosc {
        name: c"zstd",
        level: 5,
        shuffle: 1,
        typesize: 4,
        blocksize: 32 << 10,
    };
    // The chunk has 128 KiB, and each part costs 8 KiB more. So blocks of 32 KiB are decoded three
    // times, and short ranges are read 15 times.
    for (compressor, parts) in [
        (blosc, 3),
        (Compressor::None, 15),
        // This codec has no parts.
        (Compressor::Zstd, 0),
    ] {
        let model = one_chunk(compressor, false);
        let (reader, store) = model.reader(1 << 20);
        let region = Region::all(&model.shape);
        let expected = model.run(&region);
        let mut decodes = Vec::new();
        for read in 0..20 {
            let from = (read * 7919) % 1000 * 128;
            let mut out = [0; 64];
            let to = u64::try_from(from).unwrap();
            reader
                .gather(&region, to, &mut out, &current(&store), BY_COST)
                .unwrap();
            assert_eq!(out[..], expected[from..][..64]);
            decodes.push(done(&reader).1);
        }
        let whole = decodes.iter().position(|&decodes| decodes == 1);
        assert_eq!(whole, Some(parts), "{compressor:?}");
        assert_eq!(decodes.last(), Some(&1), "and once only");
        let opened = reader.cache().counters().fetches.get();
        assert_eq!(opened, 1, "kept open");
    }
}

#[test]
fn a_transposed_chunk_is_read_where_its_elements_are() {
    let model = one_chunk(Compressor::None, true);
    let (reader, store) = model.reader(1 << 20);
    let region = Region {
        start: [0, 7].into_iter().collect(),
        shape: [64, 1].into_iter().collect(),
        order: (0..2).collect(),
    };
    let mut out = [0; 256];
    reader
        .gather(&region, 0, &mut out, &current(&store), BY_COST)
        .unwrap();
    assert_eq!(out[..], model.run(&region));
    assert_eq!(done(&reader), (256, 0), "a column lies in one range");
}

#[test]
fn parts_of_another_version_are_not_read() {
    let model = one_chunk(Compressor::None, false);
    let (reader, store) = model.reader(1 << 20);
    let at = [0, 0];
    let object = reader.open(&at);
    let version = object.meta().version;
    let key = reader.array.stored_key(&at).unwrap();
    let open = || {
        reader
            .loader
            .sources()
            .open_version(&key, version, FirstRead::Start(0))
            .unwrap()
    };
    assert!(open().is_some());
    store.insert(key.clone(), model.encoded(&at));
    let kept = open().expect("is kept");
    assert_eq!(kept.meta().version, version);
    let again = reader.open(&at);
    let now = again.meta().version;
    let opened = reader
        .loader
        .sources()
        .open_version(&key, now, FirstRead::Start(0))
        .unwrap();
    assert_eq!(opened.unwrap().meta().version, now);
    assert!(open().is_none(), "it took the place of the first");
}
