//! An array of four small chunks, one of which is absent, in a store that hangs on demand.

use std::ops::Range;
use std::time::Duration;

use shuttle::thread::{self, JoinHandle};

use super::super::*;
use crate::buffers::zeroed;
use crate::load::testing::{InStore, Reader};
use crate::load::{CurrentVersions, GatedStore, Prefetch};
use crate::metadata::{NodeMetadata, v3};
use crate::store::{
    Cursor, Detail, Key, Listing, MemoryStore, Object, ObjectMeta, Prefix, Profile, Stat, Store,
    StoreError,
};
use crate::sync::{Condvar, mpsc};
use crate::threads::Class;

/// Whether a store is local.
pub(super) type IsLocal = bool;
pub(super) const LOCAL: IsLocal = true;
pub(super) const FAR: IsLocal = false;

const DOCUMENT: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [8],
    "data_type": "uint8", "fill_value": 1, "codecs": ["bytes"],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"}}"#;

/// The elements of the array. The third chunk is absent.
const ELEMENTS: [u8; 8] = [10, 11, 12, 13, 1, 1, 16, 17];

crate::sync::thread_local! {
    /// Whether this thread may make requests to the store.
    static PATIENCE: std::cell::Cell<Patience> = const { std::cell::Cell::new(Patience::Waits) };
}

/// The array and its reader.
#[derive(Clone)]
pub(super) struct ReadCase {
    reader: Arc<Reader>,
    store: Arc<SlowStore>,
    current: Arc<dyn Versions>,
    known: Arc<dyn Versions>,
}

/// A store whose opens and reads hang while its door is shut.
#[derive(Debug)]
struct SlowStore {
    store: Arc<MemoryStore>,
    is_local: bool,
    door: Arc<Door>,
}

#[derive(Debug, Default)]
struct Door {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

#[derive(Debug)]
struct SlowObject {
    object: Arc<dyn Object>,
    door: Arc<Door>,
}

impl ReadCase {
    pub(super) fn new(is_local: IsLocal, budget: u64) -> ReadCase {
        let store = MemoryStore::new();
        for (rank, chunk) in ELEMENTS
            .chunks(2)
            .enumerate()
            .filter(|(rank, _)| *rank != 2)
        {
            let key = Key::parse(format!("c/{rank}").as_bytes()).unwrap();
            store.insert(key, chunk.to_vec());
        }
        let store = Arc::new(SlowStore {
            store: Arc::new(store),
            is_local,
            door: Arc::default(),
        });
        let Ok(NodeMetadata::Array(metadata)) = v3::parse(DOCUMENT.as_bytes()) else {
            panic!("{DOCUMENT}");
        };
        let gated = GatedStore::wrap(Arc::clone(&store) as Arc<dyn Store>);
        ReadCase {
            reader: Arc::new(Reader::new(*metadata, gated, budget)),
            current: Arc::new(CurrentVersions),
            known: Arc::new(InStore(Arc::<MemoryStore>::clone(&store.store))),
            store,
        }
    }

    fn versions(&self, is_known: bool) -> &Arc<dyn Versions> {
        if is_known { &self.known } else { &self.current }
    }

    /// Reads elements, and checks them if the read succeeds.
    pub(super) fn spawn_read(
        &self,
        range: Range<usize>,
        policy: Policy,
        patience: Patience,
        is_known: bool,
    ) -> JoinHandle<Result<Buffer, Error>> {
        let case = self.clone();
        thread::spawn(move || {
            let (send, receive) = mpsc::channel();
            let run = RegionRun {
                array: Arc::clone(&case.reader.array),
                region: Arc::new(Region::all(&[8])),
                from: range.start as u64,
                at: 0,
                len: range.len(),
                policy,
            };
            let room = Buffer::from(zeroed(range.len()).unwrap());
            let finish = Box::new(move |bytes| send.send(bytes).unwrap());
            let versions = case.versions(is_known);
            PATIENCE.with(|own| own.set(patience));
            ReadOperation::new(
                &case.reader.loader,
                versions,
                [run].into_iter(),
                room,
                finish,
            )
            .go_on(patience);
            let bytes = receive.recv().expect("an answer");
            assert!(receive.recv().is_err(), "one answer");
            if let Ok(bytes) = &bytes {
                assert_eq!(bytes[..], ELEMENTS[range]);
            }
            bytes
        })
    }

    /// Begins to prefetch all chunks.
    pub(super) fn prefetch(&self, is_known: bool) -> Prefetch {
        let chunks = (0..4_u64).map(|rank| Dims::from_slice(&[rank]));
        let Reader { loader, array } = &*self.reader;
        loader.prefetch(array, self.versions(is_known), chunks)
    }

    /// Runs a job of the class of names, and waits for it.
    pub(super) fn look_at_names(&self) {
        let (send, receive) = mpsc::channel();
        let threads = self.reader.loader.threads();
        assert!(threads.submit(Class::Names, move || send.send(()).unwrap()));
        receive.recv().unwrap();
    }

    /// Finishes the threads.
    pub(super) fn finish(&self, patience: Duration) -> bool {
        self.reader.loader.threads().finish(patience)
    }

    /// Sets whether the store hangs.
    pub(super) fn hang(&self, is_shut: bool) {
        *lock(&self.store.door.is_shut) = is_shut;
        self.store.door.opened.notify_all();
    }

    /// Checks that the threads end and that all memory is released.
    pub(super) fn end(self, patience: Duration) {
        assert!(self.finish(patience));
        let cache = Arc::clone(self.reader.cache());
        drop(self);
        while crate::budget::Evict::evict_one(&*cache) {}
        assert_eq!(cache.budget().used_and_peak().0, 0);
    }
}

impl Door {
    fn pass(&self) {
        let patience = PATIENCE.with(std::cell::Cell::get);
        assert_eq!(patience, Patience::Waits, "asks the store on this thread");
        let mut is_shut = lock(&self.is_shut);
        while *is_shut {
            is_shut = self
                .opened
                .wait(is_shut)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Store for SlowStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        self.store.stat(key)
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.store.stat_root()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        self.door.pass();
        let opened = self.store.open(key)?;
        Ok(opened.map(|object| {
            let door = Arc::clone(&self.door);
            Arc::new(SlowObject { object, door }) as Arc<dyn Object>
        }))
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        self.store.list(prefix, after, detail)
    }

    fn profile(&self) -> Profile {
        Profile {
            is_local: self.is_local,
            most_in_flight: 2,
            request_bytes: 4,
            has_directories: true,
        }
    }
}

impl Object for SlowObject {
    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.door.pass();
        self.object.read_at(offset_bytes, buf)
    }

    fn verify(&self) -> Result<(), StoreError> {
        self.object.verify()
    }
}
