//! What a view is asked to show, as the command line says it.

use std::time::Duration;

pub use crate::chunk::Shards;
pub use crate::metadata::Target;

/// A way to show a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViewKind {
    /// Store keys with their encoded bytes.
    Keys,
    /// The same tree, each chunk decoded.
    Chunks,
}

impl ViewKind {
    /// The name of `--view`, and of the directory when several views are shown.
    pub fn name(self) -> &'static str {
        match self {
            ViewKind::Keys => "keys",
            ViewKind::Chunks => "chunks",
        }
    }
}

/// Whether decoded chunks that the store lacks are files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// They hold the fill value.
    Fill,
    /// They are left out.
    Hide,
}

/// Everything that decides what a mount shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewOptions {
    /// The views; one alone is the root, several are directories in it.
    pub views: Vec<ViewKind>,
    /// The Zarr version that is shown; `None` shows each node in its own.
    pub shown_as: Option<Target>,
    /// Shards as inner chunks or as they are.
    pub shards: Shards,
    /// Absent chunks in the chunks view.
    pub missing: Missing,
    /// Shown owner, in place of the backing object's.
    pub uid: Option<u32>,
    /// Shown group, in place of the backing object's.
    pub gid: Option<u32>,
    /// Permission bits that are not shown.
    pub umask: u32,
    /// How long documents, names and attributes are trusted.
    pub ttl: Duration,
    /// Nothing in the store changes: no checks.
    pub immutable: bool,
    /// Memory for chunks, index pages and buffers, in bytes.
    pub cache_budget_bytes: u64,
    /// Most bytes of a decoded chunk.
    pub max_chunk_bytes: u64,
}

impl Default for ViewOptions {
    fn default() -> Self {
        ViewOptions {
            views: vec![ViewKind::Keys],
            shown_as: None,
            shards: Shards::Expand,
            missing: Missing::Fill,
            uid: None,
            gid: None,
            umask: 0,
            ttl: Duration::from_secs(1),
            immutable: false,
            cache_budget_bytes: 256 << 20,
            max_chunk_bytes: 1 << 30,
        }
    }
}
