//! The chunks that are prefetched, and for which readers.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::grid::indices_of;
use crate::load::testing::{InStore, Reader};
use crate::metadata::{NodeMetadata, v3};
use crate::store::{Key, MemoryStore};

const CHUNK: u64 = 64 << 10;
const CHUNKS: u64 = 64;

/// A reader of an array of chunks of 64 KiB in a row, and its reads.
struct Scan {
    reader: Reader,
    readahead: Readahead,
    region: Region,
    tile: Vec<u64>,
    versions: Arc<dyn Versions>,
}

impl Scan {
    fn new(budget_bytes: u64) -> Scan {
        Scan::of([1, CHUNKS], [1, CHUNK], Vec::new(), budget_bytes)
    }

    /// A reader of an array of `chunks` chunks of `chunk` along each axis, in tiles of the lengths `tile`.
    fn of(chunks: [u64; 2], chunk: [u64; 2], tile: Vec<u64>, budget_bytes: u64) -> Scan {
        let store = Arc::new(MemoryStore::new());
        for row in 0..chunks[0] {
            for column in 0..chunks[1] {
                let key = Key::parse(format!("{row}.{column}").as_bytes()).unwrap();
                store.insert(key, vec![1; usize::try_from(CHUNK).unwrap()]);
            }
        }
        let shape = [chunks[0] * chunk[0], chunks[1] * chunk[1]];
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "v2"}, "fill_value": 0, "codecs": [{"name": "bytes"}],
        });
        let parsed = v3::parse(document.to_string().as_bytes()).unwrap();
        let NodeMetadata::Array(metadata) = parsed else {
            panic!("an array");
        };
        let shared = Arc::<MemoryStore>::clone(&store);
        Scan {
            reader: Reader::new(*metadata, shared, budget_bytes),
            readahead: Readahead::default(),
            region: Region::all(&shape),
            tile,
            versions: Arc::new(InStore(store)),
        }
    }

    /// Notes a read of `len` bytes at `from`, and prefetches where it continues the one before it.
    fn read(&self, from: u64, len: u64) -> bool {
        let goes_on = self.readahead.goes_on(&self.reader.loader, from, len);
        if goes_on {
            let range = RegionRange {
                array: &self.reader.array,
                region: &self.region,
                tile: &self.tile,
                from,
                len,
            };
            let loader = &self.reader.loader;
            self.readahead.advance(loader, range, &self.versions);
        }
        goes_on
    }

    /// The number after the last chunk that was planned.
    fn planned(&self) -> u64 {
        lock(&self.readahead.plan).window.planned
    }

    /// Waits until the planned loads have begun, so that more can be planned.
    fn begin(&self) {
        while lock(&self.readahead.plan).window.is_full() {
            std::thread::yield_now();
        }
    }

    /// The chunks that were loaded, when all prefetches have ended.
    fn loaded(self) -> Vec<u64> {
        self.begin();
        let (loader, array) = (&self.reader.loader, &self.reader.array);
        assert!(loader.threads().finish(Duration::from_secs(60)));
        let grid = array.layout().shown_grid();
        let is_here = |chunk: &u64| {
            let indices = indices_of(*chunk, grid.counts()).unwrap();
            loader.peek(array, &*self.versions, &indices).is_some()
        };
        (0..CHUNKS).filter(is_here).collect()
    }
}

#[test]
fn a_window_opens_late_and_is_as_long_as_what_was_read_in_order() {
    let scan = Scan::new(64 << 20);
    for (chunk, expected) in [(0, 0), (1, 0), (2, 6), (3, 8), (4, 10)] {
        scan.read(chunk * CHUNK, CHUNK);
        assert_eq!(scan.planned(), expected, "after chunk {chunk}");
        scan.begin();
    }
    // Chunks that the reader has met are left to its own reads.
    assert_eq!(scan.loaded(), (3..10).collect::<Vec<_>>());
}

#[test]
fn tiles_that_are_chunks_are_prefetched_like_chunks_in_a_row() {
    let scan = Scan::of([8, 8], [256, 256], vec![256, 256], 64 << 20);
    for (tile, expected) in [(0, 0), (1, 0), (2, 6), (3, 8), (4, 10)] {
        scan.read(tile * CHUNK, CHUNK);
        assert_eq!(scan.planned(), expected, "after tile {tile}");
        scan.begin();
    }
    assert_eq!(scan.loaded(), (3..10).collect::<Vec<_>>());
}

/// Each tile reaches into two chunks, and each chunk into tiles of two rows.
#[test]
fn chunks_are_prefetched_with_the_tiles_that_they_reach_into() {
    let scan = Scan::of([8, 8], [256, 256], vec![128, 512], 64 << 20);
    for (tile, expected) in [(0, 0), (1, 0), (2, 12), (3, 16), (4, 16)] {
        scan.read(tile * CHUNK, CHUNK);
        assert_eq!(scan.planned(), expected, "after tile {tile}");
        scan.begin();
    }
    assert_eq!(scan.loaded(), (6..16).collect::<Vec<_>>());
}

#[test]
fn nothing_is_prefetched_for_random_reads() {
    let scan = Scan::new(64 << 20);
    for chunk in [5, 60, 12, 33, 7, 50] {
        assert!(!scan.read(chunk * CHUNK, 4096));
    }
    assert_eq!(scan.planned(), 0);
    assert_eq!(scan.loaded(), [0_u64; 0]);
}

#[test]
fn a_jump_ends_the_window() {
    let scan = Scan::new(64 << 20);
    for chunk in 0..5 {
        scan.read(chunk * CHUNK, CHUNK);
        scan.begin();
    }
    assert!(scan.planned() > 5);
    // Short reads, because long ones overtake each other.
    assert!(!scan.read(60 * CHUNK, 4096));
    assert_eq!(scan.planned(), 0);
}

#[test]
fn no_more_is_prefetched_than_the_cache_holds() {
    let scan = Scan::new(12 * CHUNK);
    for chunk in 0..20 {
        scan.read(chunk * CHUNK, CHUNK);
        let ahead = scan.planned().saturating_sub(chunk);
        assert!(ahead <= 12, "{ahead} chunks ahead of chunk {chunk}");
        scan.begin();
    }
}

#[test]
fn while_one_read_plans_another_one_does_not_wait() {
    let scan = Scan::new(64 << 20);
    for chunk in 0..2 {
        scan.read(chunk * CHUNK, CHUNK);
    }
    let plan = lock(&scan.readahead.plan);
    assert!(scan.read(2 * CHUNK, CHUNK));
    assert_eq!(plan.window.planned, 0);
    drop(plan);
    scan.read(3 * CHUNK, CHUNK);
    assert!(scan.planned() > 4);
}
