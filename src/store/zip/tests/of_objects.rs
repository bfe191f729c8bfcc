//! Zip files that are objects of a store without files, as on a server.

use super::*;
use crate::store::testing::{CallKind, Failure, Fault, Faulty, Recording, wrap};
use crate::store::{FetchRequest, MemoryStore};

/// A zip file at a key of a store in memory, and the calls to that store.
struct Far {
    memory: Arc<MemoryStore>,
    calls: Arc<Recording>,
    faults: Arc<Faulty>,
    store: Result<ZipStore, StoreError>,
}

impl Far {
    fn new(bytes: &[u8]) -> Far {
        let memory = Arc::new(MemoryStore::new());
        memory.insert(key("data.zip"), bytes.to_vec());
        let (calls, faults) = (Arc::default(), Arc::default());
        let below = wrap(Arc::clone(&memory) as Arc<dyn Store>, &faults);
        let below = wrap(below, &calls);
        let object = below.open(&key("data.zip")).unwrap().unwrap();
        let opened = ZipStore::of_object(&below, &key("data.zip"), object, "the URL".to_owned());
        Far {
            memory,
            calls,
            faults,
            store: opened.map(|opened| opened.expect("a zip file")),
        }
    }

    fn store(&self) -> &ZipStore {
        self.store.as_ref().unwrap()
    }

    /// The number of reads that `ask` causes, and the number of their bytes.
    fn reads(&self, ask: impl FnOnce(&ZipStore)) -> (usize, u64) {
        self.calls.clear();
        ask(self.store());
        let calls = self.calls.calls().into_iter();
        let reads: Vec<_> = calls.filter(|call| call.kind == CallKind::Read).collect();
        let ranges = reads.iter().flat_map(|call| &call.ranges);
        let bytes = ranges.map(|range| range.end - range.start).sum();
        (reads.len(), bytes)
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut seed = 7_u32;
    let next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn zip_files_in_a_store_have_the_entries_of_files() {
    let sample = sample();
    let entries: Vec<_> = sample
        .iter()
        .map(|(name, bytes, method)| (name.as_bytes(), bytes.as_slice(), *method))
        .chain([
            (&b"../x"[..], &b"encoded"[..], STORED),
            (b"group/1", b"a prefix too", DEFLATED),
        ])
        .collect();
    let whole = zip(&entries);
    for bytes in [whole.clone(), [b"#!/bin/sh\n", whole.as_slice()].concat()] {
        let unwrapped = |store: &ZipStore| -> BTreeMap<String, Vec<u8>> {
            let found = contents(store).into_iter();
            found.map(|(key, bytes)| (key, bytes.unwrap())).collect()
        };
        let (local, far) = (Opened::new(&bytes), Far::new(&bytes));
        assert_eq!(unwrapped(far.store()), unwrapped(local.store()));
        assert_eq!(unwrapped(far.store()).len(), 10);
    }
}

#[test]
fn an_entry_is_one_read() {
    let (stored, deflated) = (noise(100_000), noise(50_000));
    let far = Far::new(&zip(&[
        (b"a", &stored, STORED),
        (b"b", &deflated, DEFLATED),
        (b"z", &noise(100_000), STORED),
    ]));
    for (name, expected) in [("a", &stored), ("b", &deflated)] {
        let (reads, bytes) = far.reads(|store| {
            let object = store.open(&key(name)).unwrap().unwrap();
            assert_eq!(read(&*object).unwrap(), *expected);
            object.verify().unwrap();
        });
        assert_eq!(reads, 1, "{name}");
        assert!(bytes <= expected.len() as u64 + 200, "{name}: {bytes}");
    }
    // The header is known now, also when the entry is opened again.
    let (reads, bytes) = far.reads(|store| {
        let object = store.open(&key("a")).unwrap().unwrap();
        let mut part = [0; 100];
        object.read_at(99_900, &mut part).unwrap();
        assert_eq!(part, stored[99_900..]);
    });
    assert_eq!((reads, bytes), (1, 100));
    // The last bytes are in memory.
    let (reads, _) = far.reads(|store| {
        let object = store.open(&key("z")).unwrap().unwrap();
        object.read_at(0, &mut [0]).unwrap();
        object.read_at(90_000, &mut [0; 10]).unwrap();
    });
    assert_eq!(reads, 1);
}

#[test]
fn a_part_is_read_with_the_local_header() {
    let stored = noise(200_000);
    let far = Far::new(&zip(&[
        (b"a", &stored, STORED),
        (b"b", &noise(80_000), STORED),
    ]));
    let object = far.store().open(&key("a")).unwrap().unwrap();
    let (mut index, mut chunk) = ([0; 20], [0; 1000]);
    let (reads, _) = far.reads(|_| object.read_at(199_980, &mut index).unwrap());
    assert_eq!((reads, &index[..]), (1, &stored[199_980..]));
    let (reads, bytes) = far.reads(|_| object.read_at(5000, &mut chunk).unwrap());
    assert_eq!((reads, bytes), (1, 1000));
    assert_eq!(chunk, stored[5000..6000]);
}

#[test]
fn a_long_directory_is_one_read_more() {
    let names: Vec<String> = (0..3000).map(|n| format!("a/directory/c/{n:06}")).collect();
    let entries: Vec<_> = names
        .iter()
        .map(|name| (name.as_bytes(), name.as_bytes(), STORED))
        .collect();
    let far = Far::new(&zip(&entries));
    assert_eq!(far.calls.count(CallKind::Read), 2);
    assert_eq!(contents(far.store()).len(), 3000);
}

#[test]
fn several_are_fetched_in_one_read() {
    let texts: Vec<Vec<u8>> = (0..4).map(|n| vec![b'a' + n; 500]).collect();
    let padding = noise(50_000);
    let far = Far::new(&zip(&[
        (b"0", &texts[0], STORED),
        (b"1", &texts[1], DEFLATED),
        (b"p", &padding, STORED),
        (b"2", &texts[2], STORED),
        (b"3", &texts[3], STORED),
        (b"q", &padding, STORED),
        (b"r", &padding, STORED),
    ]));
    let keys = ["0", "1", "none", "2", "3"].map(key);
    let mut buffers = vec![Vec::new(); keys.len()];
    let (reads, bytes) = far.reads(|store| {
        let zipped = keys.iter().zip(&mut buffers);
        let mut requests: Vec<_> = zipped
            .map(|(key, buffer)| FetchRequest {
                key,
                // The last one is longer.
                most_bytes: if key.name() == b"3" { 499 } else { 500 },
                buffer,
            })
            .collect();
        let fetched = store.fetch_many(&mut requests).into_iter();
        let is_read: Vec<_> = fetched
            .map(|fetched| fetched.unwrap().map(|fetched| fetched.is_read))
            .collect();
        let expected = [Some(true), Some(true), None, Some(true), Some(false)];
        assert_eq!(is_read, expected);
    });
    assert_eq!(reads, 1);
    assert!(bytes < 2000, "{bytes}");
    for (at, number) in [(0, 0), (1, 1), (3, 2)] {
        assert_eq!(buffers[at], texts[number]);
    }
}

#[test]
fn entries_fetched_with_a_damaged_one_are_right() {
    let text = [b'x'; 300];
    let mut bytes = zip(&[
        (b"a", &text, STORED),
        (b"b", &text, STORED),
        (b"c", &text, DEFLATED),
        (b"z", &noise(70_000), STORED),
    ]);
    let local = position(&bytes, b"PK\x03\x04", 1);
    bytes[local + 26] = 9;
    let at = position(&bytes, &text, 0);
    bytes[at] = b'y';
    let far = Far::new(&bytes);
    let keys = ["a", "b", "c"].map(key);
    let mut buffers = vec![Vec::new(); 3];
    let zipped = keys.iter().zip(&mut buffers);
    let mut requests: Vec<_> = zipped
        .map(|(key, buffer)| FetchRequest {
            key,
            most_bytes: 1000,
            buffer,
        })
        .collect();
    let fetched = far.store().fetch_many(&mut requests);
    let said: Vec<_> = fetched
        .into_iter()
        .map(|fetched| fetched.err().map(|error| error.to_string()))
        .collect();
    assert!(said[0].as_ref().unwrap().starts_with("a: checksum"));
    assert!(said[1].as_ref().unwrap().contains("of another entry"));
    assert_eq!(said[2], None);
    assert_eq!(buffers[2], text);
}

#[test]
fn a_replaced_one_is_read_anew_and_open_entries_keep_their_version() {
    let version = |byte: u8| zip(&[(b"a", &vec![byte; 70_000], STORED), (b"b", b"b", STORED)]);
    let far = Far::new(&version(1));
    let old = far.store().open(&key("a")).unwrap().unwrap();
    far.memory.insert(key("data.zip"), version(2));
    let new = far.store().open(&key("a")).unwrap().unwrap();
    assert_eq!(read(&*old).unwrap(), vec![1; 70_000]);
    assert_eq!(read(&*new).unwrap(), vec![2; 70_000]);
    far.memory.overwrite(key("data.zip"), version(3));
    let error = read(&*new).unwrap_err();
    assert!(
        matches!(&error, StoreError::Changed { key } if key == "a"),
        "{error}"
    );
    assert!(new.verify().is_err());
    let newest = far.store().open(&key("a")).unwrap().unwrap();
    assert_eq!(read(&*newest).unwrap(), vec![3; 70_000]);
    far.memory.remove(&key("data.zip"));
    let error = far.store().stat(&key("a")).unwrap_err().to_string();
    assert!(error.contains("the URL: the zip file is gone"), "{error}");
}

#[test]
fn a_read_that_fails_is_no_damage() {
    let names: Vec<String> = (0..2000).map(|n| format!("a/directory/c/{n:06}")).collect();
    let entries: Vec<_> = names
        .iter()
        .map(|name| (name.as_bytes(), name.as_bytes(), STORED))
        .collect();
    let bytes = zip(&entries);
    let far = Far::new(&bytes);
    for failing in 1..=3 {
        far.memory.insert(key("data.zip"), bytes.clone());
        let fault = Fault::Fails(Failure::Io);
        far.faults.at(CallKind::Read, failing, fault);
        // The first two reads are those of the directory.
        for attempt in 0..2 {
            let found = far
                .store()
                .open(&key(&names[5]))
                .and_then(|object| read(&*object.unwrap()));
            if attempt == 0 {
                let error = found.unwrap_err();
                assert!(matches!(error, StoreError::Io { .. }), "{error}");
            } else {
                assert_eq!(found.unwrap(), names[5].as_bytes(), "{failing}");
            }
        }
    }
}

#[test]
fn other_files_are_recognised_by_their_beginning_and_end() {
    let whole = zip(&[(b"a", &noise(100_000), STORED)]);
    let prefixed = [b"#!/bin/sh\n", whole.as_slice()].concat();
    for (bytes, expected) in [
        (whole.as_slice(), Some(true)),
        (&prefixed, Some(true)),
        (&zip(&[]), Some(true)),
        // The bytes begin like a zip file.
        (&whole[..90_000], Some(false)),
        (b"PK", None),
        (b"", None),
        (&vec![0; 100_000], None),
        (b"<html>", None),
    ] {
        let store: Arc<dyn Store> = Arc::new({
            let memory = MemoryStore::new();
            memory.insert(key("x"), bytes.to_vec());
            memory
        });
        let object = store.open(&key("x")).unwrap().unwrap();
        let opened = ZipStore::of_object(&store, &key("x"), object, "URL".to_owned());
        assert_eq!(
            opened.map_or(Some(false), |found| found.map(|_| true)),
            expected
        );
    }
}

#[test]
fn parts_of_deflated_entries_are_right() {
    let bytes = noise(600_000);
    let far = Far::new(&zip(&[(b"a", &bytes, DEFLATED), (b"b", b"", STORED)]));
    let object = far.store().open(&key("a")).unwrap().unwrap();
    for (offset, len) in [(5, 9), (100_000, 70_000), (500_000, 100_000), (0, 3)] {
        let mut buf = vec![0; len];
        object.read_at(offset as u64, &mut buf).unwrap();
        assert_eq!(buf, bytes[offset..offset + len], "{len} at {offset}");
    }
    assert_eq!(read(&*object).unwrap(), bytes);
    let empty = far.store().open(&key("b")).unwrap().unwrap();
    assert_eq!(read(&*empty).unwrap(), b"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever is damaged, an entry that is read whole is right, or an error.
    #[test]
    fn damage_gives_an_error_or_the_right_bytes(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_directory in any::<bool>(),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let sample = sample();
        let padding = noise(70_000);
        let entries: Vec<_> = sample
            .iter()
            .map(|(name, bytes, method)| (name.as_bytes(), bytes.as_slice(), *method))
            .chain([(&b"z"[..], padding.as_slice(), STORED)])
            .collect();
        let mut bytes = zip(&entries);
        let start = if in_directory { position(&bytes, b"PK\x01\x02", 0) } else { 0 };
        for (at, value) in changes {
            let at = start + at.index(bytes.len() - start);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let memory: Arc<dyn Store> = Arc::new({
            let memory = MemoryStore::new();
            memory.insert(key("x"), bytes);
            memory
        });
        let object = memory.open(&key("x")).unwrap().unwrap();
        let opened = ZipStore::of_object(&memory, &key("x"), object, "URL".to_owned());
        let Ok(Some(store)) = opened else {
            return Ok(());
        };
        for (name, read) in contents(&store) {
            let Ok(read) = read else { continue };
            let original = sample.iter().find(|(original, ..)| *original == name);
            let expected = original.map_or(&padding, |(_, bytes, _)| bytes);
            prop_assert!(*expected == read, "{}", name);
        }
    }
}
