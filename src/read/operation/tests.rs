//! Reads random arrays in a memory store, as runs in any axis order, and compares them with their
//! elements.

mod model;
mod parts;

use proptest::prelude::*;

use super::*;
use crate::load::testing::{InStore, Reader};
use crate::load::{CurrentVersions, StatCallback};
use crate::store::{Key, MemoryStore, Version};
use model::{Compressor, FILL, Model, case, reader};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn runs_are_what_their_elements_are(
        (model, region) in case(),
        ranges in proptest::collection::vec(any::<(u64, u64)>(), 3),
        policy in prop::sample::select(vec![Policy::Whole, Policy::ByCost, Policy::Parts]),
        small in any::<bool>(),
        is_known in any::<bool>(),
        waits in any::<bool>(),
    ) {
        let expected = model.run(&region);
        // The budget has room for about one chunk, or for all of them.
        let (reader, store) = model.reader(if small { 2000 } else { 8 << 20 });
        let patience = if waits { Patience::Waits } else { Patience::Never };
        let how = (policy, patience);
        let versions = if is_known { current(&store) } else { Arc::new(CurrentVersions) as Arc<dyn Versions> };
        let total = expected.len() as u64;
        for range in ranges {
            let from = range.0 % (total + 1);
            let len = usize::try_from(range.1 % (total + 1 - from)).unwrap();
            let mut out = vec![0xee; len];
            reader.gather(&region, from, &mut out, &versions, how).unwrap();
            let expected = &expected[usize::try_from(from).unwrap()..][..len];
            prop_assert_eq!(&out[..], expected);
            // Empty slots of a shard are not cached.
            let is_kept = model.per_shard.is_none() && policy == Policy::Whole && !small;
            prop_assert!(!is_kept || reader.has(&region, (from, len), &InStore(store.clone())));
        }
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "internal error: /: 1 bytes at 128 of a region are out of place")]
fn a_run_past_the_end_of_a_region_is_an_internal_error() {
    let (reader, store) = simple().reader(1 << 20);
    let region = Region::all(&[8, 8]);
    let _ = reader.gather(&region, 128, &mut [0], &current(&store), WHOLE);
}

fn current(store: &Arc<MemoryStore>) -> Arc<dyn Versions> {
    Arc::new(InStore(Arc::<MemoryStore>::clone(store)))
}

const WHOLE: (Policy, Patience) = (Policy::Whole, Patience::Waits);

fn simple() -> Model {
    Model {
        shape: vec![8, 8],
        chunk: vec![4, 4],
        per_shard: None,
        lists: None,
        item: ("uint16", 2),
        big: false,
        reversed: false,
        compressor: Compressor::Zstd,
        absent: 0b0100,
    }
}

fn count(reader: &Reader) -> (u64, u64) {
    let counters = reader.cache().counters();
    (counters.decodes.get(), counters.cache_hits.get())
}

#[test]
fn each_chunk_is_asked_for_once_and_a_hit_is_counted_once() {
    let model = simple();
    let (reader, store) = model.reader(1 << 20);
    let region = Region::all(&model.shape);
    // The range begins within one row of chunks and ends in the next.
    let mut out = [0; 62];
    for (expected, why) in [((3, 0), "one is absent"), ((3, 3), "all are in memory")] {
        reader
            .gather(&region, 37, &mut out, &current(&store), WHOLE)
            .unwrap();
        assert_eq!(count(&reader), expected, "{why}");
        assert_eq!(out[..], model.run(&region)[37..][..62]);
    }
}

#[test]
fn shards_are_opened_once_for_neighbours() {
    let model = Model {
        shape: vec![16],
        chunk: vec![2],
        per_shard: Some(vec![4]),
        absent: 0,
        ..simple()
    };
    let (reader, store) = model.reader(1 << 20);
    let mut out = [0; 32];
    let region = Region::all(&model.shape);
    reader
        .gather(&region, 0, &mut out, &current(&store), WHOLE)
        .unwrap();
    let opened = reader.cache().counters().fetches.get();
    assert_eq!(opened, 2);
    assert_eq!(out[..], model.run(&region));
}

#[test]
fn a_read_of_very_many_chunks_asks_for_some_at_a_time() {
    let n = 3 * MOST_CHUNKS as u64 + 7;
    let model = Model {
        shape: vec![n],
        chunk: vec![1],
        item: ("uint8", 1),
        absent: 0,
        ..simple()
    };
    let region = Region::all(&model.shape);
    for patience in [Patience::Waits, Patience::Never] {
        let (reader, _) = model.reader(64 << 20);
        let mut out = vec![0; usize::try_from(n).unwrap()];
        let how = (Policy::Whole, patience);
        reader
            .gather(
                &region,
                0,
                &mut out,
                &(Arc::new(CurrentVersions) as Arc<dyn Versions>),
                how,
            )
            .unwrap();
        assert!(out == model.run(&region), "{patience:?}");
        assert_eq!(count(&reader), (n, 0));
    }
}

#[test]
fn another_version_is_stale() {
    struct EarlierVersion(Option<Version>);
    impl Versions for EarlierVersion {
        fn known(&self, _: &ChunkedArray, _: &[u64]) -> Option<Option<Version>> {
            Some(self.0)
        }
        fn version(
            &self,
            _: &ChunkedArray,
            _: &[u64],
            _: StatCallback<'_>,
        ) -> Result<Option<Version>, Error> {
            Ok(self.0)
        }
    }
    let model = simple();
    let (reader, store) = model.reader(1 << 20);
    let known = InStore(Arc::<MemoryStore>::clone(&store)).known(&reader.array, &[0, 0]);
    let before: Arc<dyn Versions> = Arc::new(EarlierVersion(known.unwrap()));
    let key = Key::parse(b"c/0/0").unwrap();
    for bytes in [Some(model.encoded(&[1, 1])), None] {
        store.remove(&key);
        if let Some(bytes) = bytes {
            store.insert(key.clone(), bytes);
        }
        let region = Region::all(&model.shape);
        for policy in [Policy::Whole, Policy::Parts] {
            let how = (policy, Patience::Waits);
            let got = reader.gather(&region, 0, &mut [0; 4], &before, how);
            assert!(matches!(got, Err(Error::Stale)), "{got:?}");
        }
        assert!(!reader.has(&region, (0, 4), &*before));
    }
    let mut out = [0xee; 4];
    let region = Region::all(&model.shape);
    let absent: Arc<dyn Versions> = Arc::new(EarlierVersion(None));
    reader.gather(&region, 0, &mut out, &absent, WHOLE).unwrap();
    assert_eq!(out, [FILL, 0, FILL, 0]);
}

/// Reads the second row of elements of one large chunk. Returns the number of bytes fetched, of
/// chunks decoded, and of chunks decoded in part.
fn fetched(compressor: Compressor, big: bool, policy: Policy) -> (u64, u64, u64) {
    let model = Model {
        shape: vec![64, 512],
        chunk: vec![64, 512],
        item: ("uint32", 4),
        big,
        compressor,
        absent: 0,
        ..simple()
    };
    let (reader, store) = model.reader(1 << 20);
    let region = Region::all(&model.shape);
    let mut out = [0; 2048];
    let how = (policy, Patience::Waits);
    reader
        .gather(&region, 2048, &mut out, &current(&store), how)
        .unwrap();
    assert_eq!(out[..], model.run(&region)[2048..4096]);
    let counters = reader.cache().counters();
    (
        counters.fetched_bytes.get(),
        counters.decodes.get(),
        counters.decodes_partial.get(),
    )
}

#[test]
fn no_more_is_read_of_a_chunk_than_is_wanted() {
    let blosc = |level, blocksize| Compressor::Blosc {
        // The other codecs make blocks of at least 64 KiB.
        name: c"zstd",
        level,
        shuffle: 1,
        typesize: 4,
        blocksize,
    };
    let whole = 64 * 512 * 4;
    assert_eq!(
        fetched(Compressor::None, false, Policy::Whole),
        (whole, 1, 0)
    );
    for (compressor, big, most) in [
        (Compressor::None, false, 2048),
        (Compressor::None, true, 2048),
        // One read has the header and the starts of 32 blocks, and another one has one or two
        // blocks.
        (blosc(5, 4096), false, 4096 + 2 * 4200),
        (blosc(5, 4096), true, 4096 + 2 * 4200),
        // This level only copies the bytes.
        (blosc(0, 4096), false, 16 + 2048),
    ] {
        let (bytes, decodes, parts) = fetched(compressor, big, Policy::Parts);
        assert!(bytes <= most, "{bytes} of {compressor:?}");
        assert_eq!((decodes, parts), (0, 1), "{compressor:?}");
    }
    for (compressor, big) in [(Compressor::Zstd, false), (blosc(5, 128 << 10), false)] {
        let (_, decodes, parts) = fetched(compressor, big, Policy::Parts);
        assert_eq!((decodes, parts), (1, 0), "{compressor:?}");
    }
}

#[test]
fn damaged_chunks_give_an_error_or_the_right_bytes() {
    let blosc = Compressor::Blosc {
        name: c"lz4",
        level: 5,
        shuffle: 0,
        typesize: 1,
        blocksize: 256,
    };
    let model = Model {
        shape: vec![4096],
        chunk: vec![4096],
        item: ("uint8", 1),
        compressor: blosc,
        absent: 0,
        ..simple()
    };
    let region = Region::all(&model.shape);
    let (_, store) = model.reader(1 << 20);
    let good = model.encoded(&[0]);
    let key = Key::parse(b"c/0").unwrap();
    let mut errors = [0; 2];
    // These bytes are the header, the starts, and the first block, which begins with its lengths.
    for at in 0..120 {
        for flip in [1, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            store.insert(key.clone(), bad);
            let mut got = [Policy::Whole, Policy::Parts].map(|policy| {
                let mut out = [0xee; 100];
                let reader = reader(&model.document(), &store, 1 << 20);
                let how = (policy, Patience::Waits);
                let done = reader.gather(&region, 50, &mut out, &current(&store), how);
                done.ok().map(|()| out)
            });
            for (got, errors) in got.iter().zip(&mut errors) {
                *errors += u32::from(got.is_none());
            }
            let [whole, parts] = &mut got;
            // A part may be right although the chunk is damaged elsewhere.
            if whole.is_some() {
                assert_eq!(parts, whole, "byte {at} ^ {flip}");
            }
        }
    }
    let [whole, parts] = errors;
    assert!(0 < parts && parts <= whole, "{parts} and {whole} errors");
}

struct PanicsAtFirst;

impl Versions for PanicsAtFirst {
    fn known(&self, _: &ChunkedArray, _: &[u64]) -> Option<Option<Version>> {
        None
    }

    fn version(
        &self,
        array: &ChunkedArray,
        indices: &[u64],
        look: StatCallback<'_>,
    ) -> Result<Option<Version>, Error> {
        assert!(indices[0] != 0, "a panic in one load");
        CurrentVersions.version(array, indices, look)
    }
}

#[test]
fn a_panic_in_one_load_ends_the_read() {
    let model = Model {
        shape: vec![16],
        chunk: vec![2],
        absent: 0,
        ..simple()
    };
    let (reader, _) = model.reader(1 << 20);
    let versions: Arc<dyn Versions> = Arc::new(PanicsAtFirst);
    let run = RegionRun {
        array: Arc::clone(&reader.array),
        region: Arc::new(Region::all(&model.shape)),
        from: 0,
        at: 0,
        len: 32,
        policy: Policy::Whole,
    };
    let (send, receive) = std::sync::mpsc::channel();
    let out = Buffer::from(vec![0; 32]);
    let finish = Box::new(move |read: Result<Buffer, Error>| send.send(read.is_ok()).unwrap());
    ReadOperation::new(&reader.loader, &versions, [run].into_iter(), out, finish)
        .go_on(Patience::Never);
    let told = receive.recv_timeout(std::time::Duration::from_secs(5));
    assert!(matches!(told, Ok(false)), "{told:?}");
}
