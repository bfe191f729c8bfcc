//! The contents of a mount: a tree of vnodes, their attributes and their bytes.
//!
//! A view translates a store into vnodes, attributes and bytes, and knows nothing of FUSE. The page `docs/src/views.md`
//! is its contract. A [`View`] finds the vnode of a request (`lookup` turns names into vnodes, `attributes` turns
//! vnodes into the attributes that `stat` shows, `open_file` opens them, and `listing` lists directories as streams),
//! and passes the request on to one of its parts:
//!
//! ```text
//! Tree        nodes, keys and chunks: the vnode at a path, and its readers
//! Documents   metadata documents, edited or written in another Zarr version
//! Arrays      whole arrays and groups as files of other formats
//! Writing     open files that programs write, in a mount with `--rw` (`names` and `changes` call it)
//! ```
//!
//! | folder or file | contents |
//! |---|---|
//! | `lookup`, `attributes`, `open_file`, `listing` | requests of the kernel: a name, attributes, bytes, names |
//! | `vnode`, `numbers` | a path of a view, and its number |
//! | `tree`, `nodes`, `notes` | the nodes as a view shows them, and notes about names |
//! | `chunks`, `documents`, `arrays` | three kinds of files |
//! | `names`, `changes`, `forms` | changes: of names, from vnodes to open files, and from shown bytes to stored ones |
//! | `rights`, `xattr`, `control`, `options` | users, extended attributes, the daemon's own files, options |
//! | `description` | what a page for people says about a node |
//!
//! Each part uses those above it, and has its own state.

mod arrays;
mod attributes;
mod by_path;
mod changes;
mod chunks;
mod control;
mod description;
mod documents;
mod fingerprint;
mod forms;
mod listing;
mod lookup;
mod names;
mod nodes;
mod notes;
mod numbers;
mod open_file;
mod options;
mod rights;
mod tree;
mod vnode;
mod xattr;

use std::sync::{Arc, Weak};
use std::time::SystemTime;

pub use crate::files::HandleAccess;
pub use crate::shards::Recovered;
pub use arrays::{Arrays, FormatOutcome, GroupOutcome, UnusedDescriptions, cache_for};
pub use by_path::HeldVnode;
pub use changes::AttributeChange;
pub use control::log::OwnLog;
pub use description::{
    ArrayDescription, ChunkCell, ChunkState, ChunkWindow, DescribedKind, DimensionDescription,
    NodeDescription, NodeText, NodeTexts,
};
pub use listing::segment::DirectoryPosition;
pub use listing::{Directory, DirectoryEntry, EntrySource};
pub use open_file::{OpenFile, OpenedVnode, ReadBytes};
pub use options::{
    AbsentChunks, ArrayOptions, Conflict, FileFormat, NarrowType, Shards, Target, ViewKind,
    ViewOptions, WriteOptions,
};
pub use vnode::{VnodeAttributes, VnodeId, VnodeKind};

pub use crate::store::{Caller, NewAttributes, NewFile, NewTime, RenameMode};

use crate::budget::Budget;
use crate::counters::{LoadCounters, RequestCounters};
use crate::error::Error;
use crate::error::until_current;
use crate::files::NameLocks;
use crate::files::Writings;
use crate::hierarchy::{Hierarchy, Node};
use crate::load::{Cache, GatedStore, Loader, LoaderParts, Sources};
use crate::recent_lines::RecentLines;
use crate::store::{
    Capacity, Cursor, Detail, DirWriter, EntryKind, Prefix, Profile, Store, StoreError,
    address_limit, may_be_store_file,
};
use crate::threads::{Limits, Threads};
use documents::Documents;
use names::rename_locks::close_again;
use nodes::meaning::MeaningsInView;
use tree::Tree;
use vnode::Vnode;

/// A store as files. Each method finds the vnode of a request, and passes it on to one of the parts.
#[derive(Debug)]
pub struct View {
    tree: Arc<Tree>,
    documents: Documents,
    arrays: Arc<Arrays>,
    requests: RequestCounters,
    /// The time at which the view was made.
    since: SystemTime,
    log: OwnLog,
    /// The reasons why the last changes were refused.
    refused: Arc<RecentLines>,
    /// Held while documents that have copies of other documents are changed.
    copies: NameLocks,
}

/// The number of refused changes that are remembered.
const MOST_REFUSED: usize = 100;

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
    /// Changes of the store mostly wait, for the disk or for the lock of another program.
    const CHANGES: usize = 64;
    if profile.is_local {
        return Limits {
            names: 4 * decoders,
            changes: CHANGES,
            reads: 2 * decoders,
            prefetches: decoders,
        };
    }
    Limits {
        names: profile.most_in_flight,
        changes: CHANGES,
        reads: profile.most_in_flight + decoders,
        prefetches: profile.most_in_flight,
    }
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupResult {
    /// The number of the vnode.
    pub id: VnodeId,
    /// The attributes that `stat` shows.
    pub attributes: VnodeAttributes,
}

impl View {
    /// A view of `store`. Reads the attributes of the store's root, and nothing else.
    ///
    /// # Errors
    /// [`StoreError`] when the root cannot be examined.
    pub fn new(store: Arc<dyn Store>, options: ViewOptions) -> Result<View, StoreError> {
        View::build(store, options, None)
    }

    /// Like [`View::new`], of a store that `writer` changes. The arrays view stays read-only.
    ///
    /// # Errors
    /// Those of [`View::new`].
    pub fn writable(
        store: Arc<dyn Store>,
        options: ViewOptions,
        writer: DirWriter,
    ) -> Result<View, StoreError> {
        View::build(store, options, Some(writer))
    }

    fn build(
        store: Arc<dyn Store>,
        options: ViewOptions,
        writer: Option<DirWriter>,
    ) -> Result<View, StoreError> {
        let counters = Arc::new(LoadCounters::default());
        let budget = Budget::with_patience(options.cache_budget_bytes, options.timeout);
        let store = GatedStore::wrap(store);
        let profile = store.profile();
        let (freshness, read_as) = (options.freshness, options.read_as);
        let hierarchy = Hierarchy::of_format(store, Arc::clone(&budget), freshness, read_as);
        let root = hierarchy.store().stat_root()?;
        let sources = |store: &Arc<dyn Store>| {
            let sources = Sources::new(Arc::clone(store), options.freshness, Arc::clone(&counters));
            if options.arrays.others_look {
                return sources.for_others();
            }
            sources
        };
        let stored_keys = hierarchy.stored_keys().as_ref().map(sources);
        let sources = sources(hierarchy.store());
        let cache = Cache::new(Arc::clone(&budget), counters, profile);
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
        let evictable = hierarchy.evictable();
        let hierarchy = Arc::new(hierarchy);
        let refused = Arc::new(RecentLines::new(MOST_REFUSED));
        let writings = writer.map(|writer| Writings::new(writer, &loader, &hierarchy, &refused));
        let tree = Tree::new(options, hierarchy, loader, root).with_stored_keys(stored_keys);
        let tree = tree.with_writings(|tree| {
            let meanings = |view| MeaningsInView {
                tree: Weak::clone(tree),
                view,
            };
            let [keys, chunks] = [ViewKind::Keys, ViewKind::Chunks].map(meanings);
            writings.map(|writings| writings.with_meanings(keys, chunks))
        });
        let arrays = Arc::new(Arrays::new(Arc::clone(&tree)));
        let documents = Documents::new(Arc::clone(&tree), Arc::clone(&arrays));
        // Evicted after cached chunks: making a header again costs more than decoding a chunk
        // again.
        budget.evict_from(arrays.idle());
        evictable.for_each(|evictable| budget.evict_from(evictable));
        Ok(View {
            tree,
            documents,
            arrays,
            requests: RequestCounters::default(),
            since: SystemTime::now(),
            log: OwnLog::default(),
            refused,
            copies: NameLocks::default(),
        })
    }

    /// Writes the inner chunks that an earlier mount left in journals into their shards, and updates the consolidated
    /// metadata that it did not update. The caller calls this before it uses the view.
    ///
    /// # Errors
    /// [`Error`] when the journals or the notes of the store cannot be listed.
    pub fn recover(&self) -> Result<Recovered, Error> {
        let Some(writings) = &self.tree.writings else {
            return Ok(Recovered::default());
        };
        let found = writings.staging().recover()?;
        let (copied, stale) = self.recover_copies()?;
        Ok(Recovered {
            copied,
            stale,
            ..found
        })
    }

    /// The number of chunks that [`View::recover`] has found in journals, and of those that it has handled so far.
    pub fn recovery(&self) -> (u64, u64) {
        let writings = self.tree.writings.as_ref();
        writings.map_or((0, 0), |writings| writings.staging().recovery())
    }

    /// This view with `.zarr-mount/log` showing `log`, which is empty otherwise.
    #[must_use]
    pub fn with_log(self, log: OwnLog) -> View {
        View { log, ..self }
    }

    /// The lines of `vnode`, which is `.zarr-mount/refused` or the log.
    fn log_lines(&self, vnode: &Vnode) -> &RecentLines {
        match vnode {
            Vnode::Refused => &self.refused,
            _ => &self.log.lines,
        }
    }

    /// Notes the reason why a change was refused.
    pub fn note_refused(&self, reason: &Error) {
        if let Some(writings) = &self.tree.writings {
            writings.counters().refused.add(1);
        }
        self.refused.push(&reason.to_string());
    }

    /// Whether the root has a metadata document, or any entry at all: a directory of stores is an
    /// implicit group.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    pub fn finds_anything(&self) -> Result<bool, Error> {
        let root = Prefix::root();
        if !matches!(self.tree.hierarchy.node(&root)?, Node::Implicit) {
            return Ok(true);
        }
        let store = self.tree.loader.sources().store();
        match store.list(&root, Cursor::START, Detail::Names)? {
            Some(mut listing) => Ok(listing.next_entry()?.is_some()),
            None => Ok(false),
        }
    }

    /// The paths of arrays that are not shown, because the store has only copies of their documents, in the
    /// consolidated metadata of the root. If the root is a local directory of stores, these are the arrays in the first
    /// of them that has any.
    pub fn only_copied(&self) -> Vec<Prefix> {
        let found = self.tree.only_copied();
        if !found.is_empty() || !self.tree.loader.is_local() {
            return found.to_vec();
        }
        // An error counts as no such arrays.
        self.only_copied_in_stores().unwrap_or_default()
    }

    fn only_copied_in_stores(&self) -> Result<Vec<Prefix>, Error> {
        /// The most names that are listed, and the most stores that are examined.
        const MOST_NAMES: usize = 1000;
        const MOST_STORES: usize = 16;
        let (root, hierarchy) = (Prefix::root(), &self.tree.hierarchy);
        let mut found = Vec::new();
        if self.is_node(&root)? {
            return Ok(found);
        }
        let store = self.tree.loader.sources().store();
        let Some(mut listing) = store.list(&root, Cursor::START, Detail::Names)? else {
            return Ok(found);
        };
        let mut n_stores = 0;
        for _ in 0..MOST_NAMES {
            let Some(entry) = listing.next_entry()? else {
                break;
            };
            if entry.kind != EntryKind::Prefix {
                continue;
            }
            found.extend(hierarchy.only_copied(&root.key(&entry.name)?.to_prefix())?);
            n_stores += 1;
            if n_stores == MOST_STORES {
                break;
            }
        }
        Ok(found)
    }

    /// Whether a node is at the root or directly below it; `None` if there are too many names to examine.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    pub fn finds_nodes(&self) -> Result<Option<bool>, Error> {
        /// The most names that are listed, and the most of them that are examined.
        const MOST_NAMES: usize = 10_000;
        const MOST_PREFIXES: usize = 100;
        let root = Prefix::root();
        if self.is_node(&root)? {
            return Ok(Some(true));
        }
        let store = self.tree.loader.sources().store();
        let Some(mut listing) = store.list(&root, Cursor::START, Detail::Names)? else {
            return Ok(Some(false));
        };
        let mut n_prefixes = 0;
        for _ in 0..MOST_NAMES {
            let Some(entry) = listing.next_entry()? else {
                return Ok(Some(false));
            };
            let key = root.key(&entry.name)?;
            // A store that cannot be read is not a node, and its own file gives the reason.
            let file = || store.stat(&key).ok().flatten();
            if may_be_store_file(&entry.name) && file().is_some_and(|stat| stat.below.is_some()) {
                return Ok(Some(true));
            }
            if entry.kind != EntryKind::Prefix {
                continue;
            }
            // A path that cannot be read may be a node.
            let child = key.to_prefix();
            if self.is_node(&child).unwrap_or(true) {
                return Ok(Some(true));
            }
            n_prefixes += 1;
            if n_prefixes == MOST_PREFIXES {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Whether the root is a node of N5.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    pub fn is_of_n5(&self) -> Result<bool, Error> {
        let root = Prefix::root();
        let node = self.tree.hierarchy.node(&root)?;
        self.tree.is_of_n5(&root, &node)
    }

    fn is_node(&self, path: &Prefix) -> Result<bool, Error> {
        Ok(match self.tree.hierarchy.node(path)? {
            Node::Implicit => false,
            Node::Broken(_) | Node::Array(_) | Node::Group(_) => true,
        })
    }

    /// The files of the arrays view.
    pub fn arrays(&self) -> &Arrays {
        &self.arrays
    }

    /// Whether the names in the root are known without a listing of the store: it is an array, or its consolidated
    /// metadata has the names of the nodes below it.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
    pub fn knows_names_of_root(&self) -> Result<bool, Error> {
        let root = Prefix::root();
        let hierarchy = &self.tree.hierarchy;
        Ok(matches!(hierarchy.node(&root)?, Node::Array(_))
            || hierarchy.has_copied_child(&root, b"zarr.json")?.is_some())
    }

    /// The vnode called `name` in `parent`, with a reference that the caller releases with [`View::forget`]. `None`
    /// when there is no such name.
    ///
    /// # Errors
    /// [`Error`], also when the name exists but cannot be examined.
    pub fn lookup(&self, parent: VnodeId, name: &[u8]) -> Result<Option<LookupResult>, Error> {
        let find = || until_current(|| self.find(&self.vnode(parent)?, name));
        let Some((vnode, attributes)) = self.between_renames(find, drop)? else {
            return Ok(None);
        };
        let id = self.tree.numbers.refer(&vnode);
        Ok(Some(LookupResult { id, attributes }))
    }

    /// Releases `times` references to `id`.
    pub fn forget(&self, id: VnodeId, times: u64) {
        self.tree.numbers.forget(id, times);
    }

    /// Takes a reference to a listed entry, as [`View::lookup`] does.
    pub fn refer(&self, entry: &DirectoryEntry) -> VnodeId {
        self.tree.numbers.refer(&entry.vnode)
    }

    /// The attributes that `stat` shows of `id`; `None` when it no longer exists.
    ///
    /// # Errors
    /// [`Error::Stale`] when `id` is unknown, or stands for another layout of its array.
    pub fn attributes(&self, id: VnodeId) -> Result<Option<VnodeAttributes>, Error> {
        self.between_renames(|| self.attributes_of(&self.vnode(id)?), drop)
    }

    /// Opens the current version of the bytes of `id`; `None` when it no longer exists.
    ///
    /// # Errors
    /// [`Error`]. A version younger than the grain of file times is waited for, until it can be distinguished from the
    /// next one.
    pub fn open(self: &Arc<Self>, id: VnodeId) -> Result<Option<OpenedVnode>, Error> {
        self.tree.loader.sources().store().begin_open();
        self.between_renames(|| self.open_vnode(&self.vnode(id)?), close_again)
    }

    /// Opens the directory `id`; `None` when it no longer exists.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open_directory(self: &Arc<Self>, id: VnodeId) -> Result<Option<Directory>, Error> {
        let list = || until_current(|| self.list(&self.vnode(id)?));
        self.between_renames(list, drop)
    }

    /// Whether the directory `id`, or the array whose chunks are in it, no longer exists.
    pub fn is_gone(&self, id: VnodeId) -> bool {
        let vnode = match self.vnode(id) {
            Ok(Vnode::Gone(_)) => return true,
            Ok(Vnode::ChunkDirectory(place)) => Vnode::Prefix {
                view: place.view,
                path: place.path,
            },
            Ok(vnode) => vnode,
            Err(_) => return false,
        };
        matches!(self.attributes_of(&vnode), Ok(None))
    }

    /// Whether the attributes of the root never change, because no directory of the store gives them.
    pub fn keeps_root_attributes(&self) -> bool {
        !self.tree.store().profile().has_directories
    }

    /// Size and free space of the device that holds the store, if the store knows them.
    pub fn capacity(&self) -> Option<Capacity> {
        self.tree.loader.sources().store().capacity()
    }

    /// The loader of chunks.
    pub fn loader(&self) -> &Arc<Loader> {
        &self.tree.loader
    }

    /// The threads of the loader. They must have finished before the view is dropped.
    pub fn threads(&self) -> &Arc<Threads> {
        self.tree.loader.threads()
    }

    /// The counters in the text of `OpenMetrics`, as `.zarr-mount/metrics` shows them.
    pub fn metrics(&self) -> Vec<u8> {
        control::metrics::text(&self.counters())
    }

    /// The counters of requests, which the caller of the view counts.
    pub fn requests(&self) -> &RequestCounters {
        &self.requests
    }

    fn vnode(&self, id: VnodeId) -> Result<Vnode, Error> {
        if id != VnodeId::ROOT {
            return self.tree.numbers.vnode(id).ok_or(Error::Stale);
        }
        Ok(match self.tree.options.views.as_slice() {
            [view] => Vnode::Prefix {
                view: *view,
                path: Prefix::root(),
            },
            _ => Vnode::Views,
        })
    }
}

#[cfg(test)]
mod tests;
