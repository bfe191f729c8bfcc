//! What a view is asked to show, as the command line says it.

use std::time::Duration;

use glob::Pattern;

pub use crate::load::Shards;
pub use crate::metadata::Target;
pub use crate::plain::FileFormat;

/// A way to show a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViewKind {
    /// Store keys with their encoded bytes.
    Keys,
    /// The same tree, each chunk decoded.
    Chunks,
    /// Plain files, one or several for each array.
    Arrays,
}

impl ViewKind {
    /// The name of `--view`, and of the directory when several views are shown.
    pub fn name(self) -> &'static str {
        match self {
            ViewKind::Keys => "keys",
            ViewKind::Chunks => "chunks",
            ViewKind::Arrays => "arrays",
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

/// What the arrays view shows of each array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayOptions {
    /// The formats, each once.
    pub files: Vec<FileFormat>,
    /// Only arrays whose path, or name for a pattern without a slash, matches one of these; all
    /// when there are none.
    pub only: Vec<Pattern>,
    /// The dimension that is the record dimension of NetCDF files.
    pub unlimited: Option<String>,
    /// What the root is called: the name of the store.
    pub root_name: String,
    /// Whether users other than the daemon's can look: then no file shows what they may not read.
    pub others_look: bool,
}

impl ArrayOptions {
    /// Whether the array at `path` (of bytes, for names are) is shown; `name` is its name.
    pub(super) fn shows(&self, path: &[u8], name: &str) -> bool {
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..glob::MatchOptions::new()
        };
        let path = String::from_utf8_lossy(path);
        let matches = |pattern: &Pattern| {
            let text = if pattern.as_str().contains('/') {
                path.as_ref()
            } else {
                name
            };
            pattern.matches_with(text.trim_start_matches('/'), options)
        };
        self.only.is_empty() || self.only.iter().any(matches)
    }
}

impl Default for ArrayOptions {
    fn default() -> Self {
        ArrayOptions {
            files: vec![FileFormat::Npy],
            only: Vec::new(),
            unlimited: None,
            root_name: "array".to_owned(),
            others_look: false,
        }
    }
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
    /// Files of the arrays view.
    pub arrays: ArrayOptions,
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
    /// Most decoded bytes that are loaded before a reader asks for them; `None` leaves it to the view.
    pub readahead: Option<u64>,
    /// Chunks that are decoded at once for those who wait for them.
    pub decode_threads: usize,
    /// The time that a request may take before it is given up.
    pub timeout: Duration,
}

impl Default for ViewOptions {
    fn default() -> Self {
        ViewOptions {
            views: vec![ViewKind::Keys],
            shown_as: None,
            shards: Shards::Expand,
            missing: Missing::Fill,
            arrays: ArrayOptions::default(),
            uid: None,
            gid: None,
            umask: 0,
            ttl: Duration::from_secs(1),
            immutable: false,
            cache_budget_bytes: 256 << 20,
            max_chunk_bytes: 1 << 30,
            readahead: None,
            decode_threads: crate::threads::cores(),
            timeout: crate::budget::PATIENCE,
        }
    }
}
