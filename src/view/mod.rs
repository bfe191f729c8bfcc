//! What a mount shows: a tree of vnodes, their attributes and their bytes.
//!
//! A view translates a store into vnodes, attributes and bytes, and knows nothing of FUSE. `find`
//! turns names into vnodes, `attributes` turns vnodes into what `stat` shows, `file` opens them,
//! and `listing` lists directories as streams. `documents` edits metadata documents, and
//! `foreign_documents` writes them in another Zarr version. The contract is the section "Views" of
//! the README.

mod arrays;
mod attributes;
mod chunk_file;
mod chunk_listing;
mod consolidate;
mod current;
mod documents;
mod file;
mod find;
mod folder;
mod foreign_documents;
mod grid_listing;
mod listing;
mod names;
mod node_path;
mod numbers;
mod odometer;
mod options;
mod read_buffer;
mod rights;
mod shown_node;
mod shown_node_cache;
mod side_by_side;
mod statistics;
mod stored_listing;
mod unreadable_shards;
mod vnode;
mod xattr;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

pub use arrays::{GroupOutcome, Outcome, cache_for};
pub use file::{OpenFile, Opened};
pub use listing::{Directory, DirectoryEntry, EntrySource, Position};
pub use options::{ArrayOptions, FileFormat, Missing, Shards, Target, ViewKind, ViewOptions};
pub use vnode::{Attributes, VnodeId, VnodeKind};

use crate::budget::Budget;
use crate::error::Error;
use crate::hierarchy::{Hierarchy, Node, Recheck};
use crate::load::{Cache, Counters, Freshness, GatedStore, Loader, LoaderParts, Sources};
use crate::store::{
    Capacity, Cursor, Detail, ObjectMeta, Prefix, Profile, Store, StoreError, address_limit,
};
use crate::threads::{Limits, Threads};
use documents::in_document;
use node_path::NodePath;
use numbers::VnodeNumbers;
use shown_node::{ShownArray, ShownNode, Unusable};
use shown_node_cache::ShownNodeCache;
use vnode::{ChunkPlace, Vnode};

/// A store as files.
#[derive(Debug)]
pub struct View {
    options: ViewOptions,
    hierarchy: Hierarchy,
    loader: Arc<Loader>,
    counters: Arc<Counters>,
    numbers: VnodeNumbers,
    shown: Mutex<ShownNodeCache>,
    arrays: arrays::Arrays,
    /// Whether the warning about too many nodes to consolidate has been logged.
    gave_up_walking: AtomicBool,
    root: ObjectMeta,
    started: Instant,
}

/// The number of chunks that are decoded at once: `wanted`, or fewer where the address space of the
/// process is limited to `addresses` bytes (`ulimit -v`), which thread stacks take.
fn decoders(addresses: Option<u64>, wanted: usize) -> usize {
    /// Address space for the stacks of a few threads, and the working memory of a decoder.
    const BYTES_PER_DECODER: u64 = 32 << 20;
    let most = addresses.map_or(u64::MAX, |bytes| bytes / BYTES_PER_DECODER);
    wanted
        .min(usize::try_from(most).unwrap_or(usize::MAX))
        .max(1)
}

/// The most threads of each class: a few for each decoder where requests to the store are short,
/// and as many as the store takes requests at once where each request takes long.
fn limits(decoders: usize, profile: Profile) -> Limits {
    if profile.is_local {
        return Limits {
            names: 4 * decoders,
            reads: 2 * decoders,
            prefetches: decoders,
        };
    }
    Limits {
        names: profile.most_in_flight,
        reads: profile.most_in_flight + decoders,
        prefetches: profile.most_in_flight,
    }
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The number of the vnode.
    pub id: VnodeId,
    /// What `stat` shows.
    pub attributes: Attributes,
}

impl View {
    /// A view of `store`. Reads the attributes of the store's root, and nothing else.
    ///
    /// # Errors
    /// [`StoreError`] when the root cannot be examined.
    pub fn new(store: Arc<dyn Store>, options: ViewOptions) -> Result<View, StoreError> {
        let counters = Arc::new(Counters::default());
        let budget = Budget::with_patience(options.cache_budget_bytes, options.timeout);
        let (freshness, recheck) = if options.immutable {
            (Freshness::Immutable, Recheck::Never)
        } else {
            (Freshness::Checked, Recheck::After(options.ttl))
        };
        let store = GatedStore::wrap(store);
        let profile = store.profile();
        let root = store.stat_root()?;
        let hierarchy = Hierarchy::new(Arc::clone(&store), Arc::clone(&budget), recheck);
        let mut sources = Sources::new(store, freshness, Arc::clone(&counters));
        if options.arrays.others_look {
            sources = sources.for_others(options.ttl);
        }
        let cache = Cache::new(Arc::clone(&budget), Arc::clone(&counters), profile);
        let arrays = arrays::Arrays::default();
        // Evicted after cached chunks: making a header again costs more than decoding a chunk
        // again.
        budget.evict_from(arrays.idle());
        let decoders = decoders(address_limit(), options.decode_threads);
        let loader = Loader::new(LoaderParts {
            sources,
            cache,
            threads: Threads::new(limits(decoders, profile)),
            decoders,
            max_chunk_bytes: options.max_chunk_bytes,
            timeout: options.timeout,
            readahead: options.readahead,
        });
        Ok(View {
            hierarchy,
            loader,
            counters,
            numbers: VnodeNumbers::default(),
            shown: Mutex::default(),
            arrays,
            gave_up_walking: AtomicBool::new(false),
            root,
            started: Instant::now(),
            options,
        })
    }

    /// Whether the root has a metadata document, or any entry at all: a directory of stores is an
    /// implicit group.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    pub fn finds_anything(&self) -> Result<bool, Error> {
        let root = Prefix::root();
        if !matches!(self.hierarchy.node(&root)?, Node::Implicit) {
            return Ok(true);
        }
        let store = self.loader.sources().store();
        match store.list(&root, Cursor::START, Detail::Names)? {
            Some(mut listing) => Ok(listing.next_entry()?.is_some()),
            None => Ok(false),
        }
    }

    /// The vnode called `name` in `parent`, with a reference that the caller gives back with
    /// [`View::forget`]. `None` when there is no such name.
    ///
    /// # Errors
    /// [`Error`], also when the name exists but cannot be examined.
    pub fn lookup(&self, parent: VnodeId, name: &[u8]) -> Result<Option<Found>, Error> {
        let parent = self.vnode(parent)?;
        let Some((vnode, attributes)) = self.find(&parent, name)? else {
            return Ok(None);
        };
        let id = self.numbers.refer(&vnode);
        Ok(Some(Found { id, attributes }))
    }

    /// Gives back `times` references to `id`.
    pub fn forget(&self, id: VnodeId, times: u64) {
        self.numbers.forget(id, times);
    }

    /// Takes a reference to a listed entry, as [`View::lookup`] does.
    pub fn refer(&self, entry: &DirectoryEntry) -> VnodeId {
        self.numbers.refer(&entry.vnode)
    }

    /// What `stat` shows of `id`; `None` when it no longer exists.
    ///
    /// # Errors
    /// [`Error::Stale`] when `id` is unknown, or stands for another layout of its array.
    pub fn attributes(&self, id: VnodeId) -> Result<Option<Attributes>, Error> {
        self.attributes_of(&self.vnode(id)?)
    }

    /// Opens the current version of the bytes of `id`; `None` when it no longer exists.
    ///
    /// # Errors
    /// [`Error`]. A version younger than the grain of file times is waited for, until it can be
    /// told from the next one.
    pub fn open(self: &Arc<Self>, id: VnodeId) -> Result<Option<Opened>, Error> {
        self.open_vnode(&self.vnode(id)?)
    }

    /// Opens the directory `id`; `None` when it no longer exists.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open_directory(self: &Arc<Self>, id: VnodeId) -> Result<Option<Directory>, Error> {
        self.list(&self.vnode(id)?)
    }

    /// Size and free space of the device that holds the store, where the store knows them.
    pub fn capacity(&self) -> Option<Capacity> {
        self.loader.sources().store().capacity()
    }

    /// The loader of chunks.
    pub fn loader(&self) -> &Arc<Loader> {
        &self.loader
    }

    /// The threads of the loader. They must have finished before the view is dropped.
    pub fn threads(&self) -> &Arc<Threads> {
        self.loader.threads()
    }

    /// The counters of requests, loads and errors.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn vnode(&self, id: VnodeId) -> Result<Vnode, Error> {
        if id != VnodeId::ROOT {
            return self.numbers.vnode(id).ok_or(Error::Stale);
        }
        Ok(match self.options.views.as_slice() {
            [view] => Vnode::Prefix {
                view: *view,
                path: Prefix::root(),
            },
            _ => Vnode::Views,
        })
    }

    /// The node at `path` as `view` shows it.
    fn shown(&self, view: ViewKind, path: &Prefix) -> Result<ShownNode, Error> {
        self.shown_at(&self.resolve(view, path)?)
    }

    /// As [`View::shown`], of a path that is resolved already.
    fn shown_at(&self, resolved: &NodePath) -> Result<ShownNode, Error> {
        let node = match &resolved.node {
            Node::Group(_) | Node::Implicit => return Ok(ShownNode::Plain),
            Node::Broken(broken) => {
                let unusable = Unusable::new(resolved, &broken.document, &broken.error);
                return Ok(ShownNode::Unusable(Arc::new(unusable)).in_view(resolved));
            }
            Node::Array(node) => node,
        };
        let key = (resolved.view, resolved.path.clone());
        let mut known = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&key) {
            Some(ShownNode::Array(array)) if Arc::ptr_eq(&array.node, node) => {
                return Ok(ShownNode::Array(Arc::clone(array)));
            }
            Some(ShownNode::Unusable(unusable)) if unusable.identity == node.identity => {
                return Ok(ShownNode::Unusable(Arc::clone(unusable)).in_view(resolved));
            }
            _ => {}
        }
        drop(known);
        let made = ShownArray::new(Arc::clone(node), resolved, &self.options)
            .map_err(|error| in_document(&node.document.key, error));
        // No chunk is shown before its array's document is known to be writable for this view:
        // readers would take chunks without a matching document for something else.
        let shown = match made.and_then(|array| self.check_document(&array).map(|()| array)) {
            Ok(array) => {
                if array.view != ViewKind::Arrays {
                    let (path, counts) = (&array.path, array.grid().counts());
                    let identity = node.chunk_identity;
                    self.numbers.add_array(array.view, path, identity, counts);
                }
                ShownNode::Array(Arc::new(array))
            }
            Err(Error::Metadata { error, .. }) => {
                log::warn!("{}: {error}", node.document.key);
                let unusable = Unusable::new(resolved, &node.document, &error);
                ShownNode::Unusable(Arc::new(unusable))
            }
            Err(error) => return Err(error),
        };
        known = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = known.put(key, shown.clone());
        drop(known);
        drop(replaced);
        Ok(shown.in_view(resolved))
    }

    /// The array that has the chunk, or the directory of chunks, at `place`.
    fn array_of(&self, place: &ChunkPlace) -> Result<Arc<ShownArray>, Error> {
        match self.shown(place.view, &place.path)? {
            ShownNode::Array(array) if array.node.chunk_identity == place.identity => Ok(array),
            _ => Err(Error::Stale),
        }
    }
}

#[cfg(test)]
mod tests;
