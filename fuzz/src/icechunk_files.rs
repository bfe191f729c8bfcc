//! Files of an Icechunk repository: one is the input, and the others are as `seeds.py` has made them.

use std::sync::Arc;

use zarr_mount::store::{IcechunkAddress, IcechunkStore, Key, MemoryStore, OpenOptions, Store};

use super::heap::peak_of;
use super::walk::each_object;

/// The memory budget.
const BUDGET_BYTES: u64 = 4 << 20;

/// The heap also holds the input, documents and the attributes of keys, which are not in the budget.
const BESIDE_BYTES: u64 = 2 << 20;

/// Objects that are longer are not read.
const MOST_BYTES: u64 = 1 << 16;

/// The bytes before the flatbuffer of a file. Its kind is 0 here, and is filled in for each kind of file.
const HEADER: &[u8] = b"ICE\xf0\x9f\xa7\x8aCHUNK                        \x02\x00\x00";

/// The files, and the numbers of their kinds.
const KINDS: [(&str, u8, &[u8]); 3] = [
    ("repo", 6, include_bytes!("icechunk_files/repo")),
    (
        "snapshots/TFS7DKR4EXTMQWJYH6V0",
        1,
        include_bytes!("icechunk_files/snapshot"),
    ),
    (
        "manifests/N0A2CH0SXBZMJMT5W5H0",
        2,
        include_bytes!("icechunk_files/manifest"),
    ),
];

/// Takes `data` for the table of a file, or for a file. The first byte says which.
pub fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let store = MemoryStore::new();
    for (name, _, file) in KINDS {
        store.insert(key(name), file.to_vec());
    }
    let (name, kind, _) = KINDS[usize::from(choice % 3)];
    let mut input = Vec::new();
    if choice / 3 % 2 == 0 {
        input.extend(HEADER);
        input[37] = kind;
    }
    input.extend(data);
    store.insert(key(name), input);
    store.insert(key("target"), vec![7; 1000]);
    let ((), peak) = peak_of(|| walk(store));
    let most = BUDGET_BYTES + BESIDE_BYTES + 4 * data.len() as u64;
    assert!(peak <= most, "{peak} bytes of memory, not {most}");
}

fn key(name: &str) -> Key {
    Key::parse(name.as_bytes()).expect("a key")
}

/// Everything that is listed can be examined, and has the length that was told.
fn walk(store: MemoryStore) {
    let options = OpenOptions {
        memory_bytes: Some(BUDGET_BYTES),
        ..OpenOptions::default()
    };
    let address = IcechunkAddress::default();
    let Ok(repository) = IcechunkStore::within(Arc::new(store), address, &options) else {
        return;
    };
    assert!(repository.held_bytes() <= BUDGET_BYTES);
    let _ = repository.description();
    each_object(&repository, |key, meta| {
        let Ok(Some(object)) = repository.open(key) else {
            return;
        };
        assert_eq!(object.meta().size(), meta.size());
        if meta.size() <= MOST_BYTES {
            let mut bytes = vec![0; usize::try_from(meta.size()).expect("it is short")];
            let _ = object.read_at(0, &mut bytes);
        }
    });
}
