//! The arrays view: every array as one file in each requested format.
//!
//! ```text
//! store            facts               file                    opened
//! documents   ->   what a format  ->   a layout and     ->     a snapshot: which version
//!                  needs to know       where each array        of each chunk this handle
//!                                      is read                 shows
//! ```
//!
//! Groups are directories. The meaning of a name is computed from the name (`names`), so that a
//! listing (`listing`) remembers nothing.

mod audience;
mod chosen;
mod coarser;
mod context;
mod facts;
mod file;
mod georeference;
mod group_reads;
mod group_sidecar;
mod groups;
mod inputs;
mod json_lines;
mod kept;
mod listed;
pub(super) mod listing;
mod long_text;
mod names;
mod overviews;
pub(in crate::view) mod parallel;
mod preview;
mod preview_file;
mod preview_samples;
mod reading;
mod sidecar;
mod snapshot;
mod snapshots;
mod strings;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lru::LruCache;

use super::notes::Notes;
use super::tree::Tree;
use super::vnode::PlainName;
use crate::budget::Evict;
use crate::load::Block;
use crate::store::{Prefix, Version};
use context::GroupFacts;
use facts::ArrayFacts;
use file::PlainFile;
use group_reads::GroupReads;
use groups::{KEPT_MEMBERS_BYTES, Members};
use kept::KeptByPath;
use listed::{KEPT_NAMES_BYTES, ListedNames};
pub(super) use preview::PreviewOpen;
pub use reading::cache_for;
pub(super) use reading::{PlainContent, PlainOpen};
pub use sidecar::{FormatOutcome, GroupOutcome, UnusedDescriptions};
use snapshots::Snapshots;

/// The most memory of the facts of arrays that are kept.
const KEPT_FACTS_BYTES: u64 = 12 << 20;
/// The most memory of the attributes of groups that are kept.
const KEPT_GROUPS_BYTES: u64 = 6 << 20;
/// The most files whose layouts are kept in memory.
const KEPT_FILES: NonZeroUsize = NonZeroUsize::new(128).expect("128 is not 0");
/// The most large layouts among them.
const KEPT_LARGE: NonZeroUsize = NonZeroUsize::new(4).expect("4 is not 0");

/// An open file. If it takes little memory, it is kept after it is closed, too.
type KeptFile = (Weak<PlainFile>, Option<Arc<PlainFile>>);

/// The files of the arrays view. Every part of the state is bounded.
#[derive(Debug)]
pub struct Arrays {
    tree: Arc<Tree>,
    facts: Mutex<KeptByPath<Arc<ArrayFacts>>>,
    groups: Mutex<KeptByPath<Arc<GroupFacts>>>,
    group_reads: GroupReads,
    files: Mutex<LruCache<PlainName, KeptFile>>,
    listed: Mutex<KeptByPath<Arc<ListedNames>>>,
    idle: Arc<IdleFiles>,
    /// Long texts of open files, by the identity of the file.
    texts: Mutex<HashMap<u64, Weak<Block>>>,
    snapshots: Mutex<Snapshots>,
    /// Arrays of strings that are too long for one file, with the versions of their documents.
    too_long: Notes<Prefix, Version>,
    gathering: Mutex<()>,
    writing: Mutex<()>,
}

/// Large files and facts, and the members of groups, kept for the next request. The budget evicts them when it is full.
#[derive(Debug)]
struct IdleFiles {
    facts: Mutex<Option<Arc<ArrayFacts>>>,
    files: Mutex<LruCache<PlainName, Arc<PlainFile>>>,
    /// A part of the members takes no memory of the budget, and is not evicted.
    members: Mutex<KeptByPath<Arc<Members>>>,
}

impl Evict for IdleFiles {
    fn evict_one(&self) -> bool {
        // They are dropped after the lock is released.
        let facts = lock(&self.facts).take();
        if facts.is_some() {
            return true;
        }
        let file = lock(&self.files).pop_lru();
        if file.is_some() {
            return true;
        }
        let members = lock(&self.members).give_back();
        members.is_some()
    }

    fn evict_kept(&self) -> bool {
        self.evict_one()
    }
}

impl Arrays {
    /// The memory that the budget evicts when it is full.
    pub(super) fn idle(&self) -> Weak<dyn Evict> {
        Arc::downgrade(&(Arc::clone(&self.idle) as Arc<dyn Evict>))
    }
}

impl Arrays {
    /// The files of the arrays in `tree`, none of which was examined yet.
    pub(super) fn new(tree: Arc<Tree>) -> Arrays {
        Arrays {
            tree,
            facts: Mutex::new(KeptByPath::new(KEPT_FACTS_BYTES)),
            groups: Mutex::new(KeptByPath::new(KEPT_GROUPS_BYTES)),
            group_reads: GroupReads::default(),
            files: Mutex::new(LruCache::new(KEPT_FILES)),
            listed: Mutex::new(KeptByPath::new(KEPT_NAMES_BYTES)),
            texts: Mutex::default(),
            idle: Arc::new(IdleFiles {
                facts: Mutex::default(),
                files: Mutex::new(LruCache::new(KEPT_LARGE)),
                members: Mutex::new(KeptByPath::new(KEPT_MEMBERS_BYTES)),
            }),
            snapshots: Mutex::default(),
            too_long: Notes::new(json_lines::MOST_NOTED),
            gathering: Mutex::default(),
            writing: Mutex::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
