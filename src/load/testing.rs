//! A loader of the chunks of one array, for tests.

use std::time::Duration;

use super::{
    Block, Cache, ChunkedArray, Loader, LoaderParts, LocatedChunk, Shards, Sources, Versions,
};
use crate::budget::Budget;
use crate::counters::LoadCounters;
use crate::error::Error;
use crate::fresh::Freshness;
use crate::hierarchy::{ArrayNode, Document};
use crate::metadata::ArrayMetadata;
use crate::store::{Key, MemoryStore, Object, Prefix, Store, Version};
use crate::sync::Arc;
use crate::threads::{Limits, Threads};

/// An array at the root of a store, and the loader of its chunks.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) loader: Arc<Loader>,
    pub(crate) array: Arc<ChunkedArray>,
}

impl Reader {
    /// A reader of the array that `metadata` describes, whose chunks are in `store`.
    pub(crate) fn new(metadata: ArrayMetadata, store: Arc<dyn Store>, budget: u64) -> Reader {
        Reader::limited(metadata, store, budget, 1 << 30)
    }

    /// Like [`Reader::new`], with a limit to the bytes of a chunk.
    pub(crate) fn limited(
        metadata: ArrayMetadata,
        store: Arc<dyn Store>,
        budget: u64,
        max_chunk_bytes: u64,
    ) -> Reader {
        let array = ChunkedArray::new(&node_of(metadata), Shards::Expand).unwrap();
        let counters = Arc::new(LoadCounters::default());
        let limits = Limits {
            names: 2,
            changes: 1,
            reads: 4,
            prefetches: 2,
        };
        let cache = Cache::new(Budget::new(budget), Arc::clone(&counters), store.profile());
        let loader = Loader::new(LoaderParts {
            sources: Sources::new(store, Freshness::Checked(Duration::ZERO), counters),
            cache,
            threads: Threads::new(limits),
            decoders: 2,
            max_chunk_bytes,
            timeout: Duration::from_secs(30),
            readahead: None,
        });
        Reader {
            loader,
            array: Arc::new(array),
        }
    }

    pub(crate) fn cache(&self) -> &Arc<Cache> {
        self.loader.cache()
    }

    pub(crate) fn open(&self, indices: &[u64]) -> Arc<dyn Object> {
        let opened = self.loader.open_stored(&self.array, indices, None);
        opened.unwrap().unwrap()
    }

    pub(crate) fn locate(&self, object: &Arc<dyn Object>, indices: &[u64]) -> LocatedChunk {
        let located = self.loader.locate(&self.array, object, indices);
        located.unwrap().unwrap()
    }

    #[cfg_attr(feature = "model", expect(dead_code, reason = "other tests do"))]
    pub(crate) fn decoded(
        &self,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<Arc<Block>, Error> {
        self.loader.decoded(&self.array, object, indices)
    }
}

/// The current versions in a store, which count as known without a request.
pub(crate) struct InStore(pub(crate) Arc<dyn Store>);

impl Versions for InStore {
    fn known(&self, array: &ChunkedArray, indices: &[u64]) -> Option<Option<Version>> {
        let found = self.0.stat(&array.stored_key(indices).ok()?).ok()?;
        Some(found.map(|stat| stat.meta.version))
    }
}

/// The node of an array at the root of a store.
pub(crate) fn node_of(metadata: ArrayMetadata) -> ArrayNode {
    let store = MemoryStore::new();
    let key = Key::parse(b"zarr.json").unwrap();
    store.insert(key.clone(), Vec::new());
    let meta = *store.open(&key).unwrap().unwrap().meta();
    let document = Document::new(key, meta);
    ArrayNode::new(&Prefix::root(), document, None, metadata)
}
