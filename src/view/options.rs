//! The options of a view, as the command line gives them.

use crate::fresh::Freshness;
use std::time::Duration;

use glob::Pattern;

pub use crate::load::Shards;
pub use crate::metadata::Target;
use crate::metadata::ZarrFormat;
pub use crate::plain::{FileFormat, NarrowType};
use crate::translate::Presentation;
pub use crate::translate::{Conflict, WriteOptions};

/// A way to show a hierarchy as files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ViewKind {
    /// The keys of the store, with their stored bytes; shards may be expanded.
    Keys,
    /// The same names as in the keys view, with decoded chunks.
    Chunks,
    /// One or several files of other formats for each array.
    Arrays,
}

impl ViewKind {
    /// The value of `--view`, and the name of the directory where several views are shown.
    pub fn name(self) -> &'static str {
        match self {
            ViewKind::Keys => "keys",
            ViewKind::Chunks => "chunks",
            ViewKind::Arrays => "arrays",
        }
    }
}

/// How the chunks view shows chunks that are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentChunks {
    /// They are shown as files of fill values.
    Fill,
    /// They are not shown.
    Hide,
}

/// The files that the arrays view shows of each array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayOptions {
    /// The formats, each once.
    pub files: Vec<FileFormat>,
    /// Only arrays that match one of these patterns are shown, or all arrays if there are none. A pattern without a
    /// slash is matched against the name of an array, and a pattern with one against its path.
    pub only: Vec<Pattern>,
    /// Whether each array has a sidecar, with the facts that its other files do not have.
    pub sidecars: bool,
    /// The dimension that becomes the record dimension of NetCDF files.
    pub unlimited: Option<String>,
    /// The most bytes of strings of variable length that are read for one file of a group; `None` lets the format
    /// decide.
    pub strings: Option<u64>,
    /// The type that images use for integers of 32 and 64 bits; `None` if they keep their type.
    pub integers: Option<NarrowType>,
    /// The name of the root node: the name of the store.
    pub root_name: String,
    /// Whether users other than the daemon's own may see the mount. If so, a file shows no data that its readers may
    /// not read in the store.
    pub others_look: bool,
}

/// Whether `pattern` selects the array at `path`, whose last segment is `name`.
pub(super) fn selects(pattern: &Pattern, path: &[u8], name: &str) -> bool {
    let options = glob::MatchOptions {
        require_literal_separator: true,
        ..glob::MatchOptions::new()
    };
    let path = String::from_utf8_lossy(path);
    let text = if pattern.as_str().contains('/') {
        path.as_ref()
    } else {
        name
    };
    pattern.matches_with(text.trim_start_matches('/'), options)
}

impl Default for ArrayOptions {
    fn default() -> Self {
        ArrayOptions {
            files: vec![FileFormat::Npy],
            only: Vec::new(),
            sidecars: true,
            unlimited: None,
            strings: None,
            integers: None,
            root_name: "array".to_owned(),
            others_look: false,
        }
    }
}

/// The options that decide what a mount shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewOptions {
    /// The views. A single view is the root of the mount; several are directories in it.
    pub views: Vec<ViewKind>,
    /// The only format whose documents are looked at; `None` for all formats.
    pub read_as: Option<ZarrFormat>,
    /// The Zarr version in which all nodes are shown; `None` shows each node in its own version.
    pub shown_as: Option<Target>,
    /// Whether shards are shown as their inner chunks, or as they are stored.
    pub shards: Shards,
    /// How the chunks view shows chunks that are not stored.
    pub missing: AbsentChunks,
    /// Options of the arrays view.
    pub arrays: ArrayOptions,
    /// The owner that is shown instead of the store's.
    pub uid: Option<u32>,
    /// The group that is shown instead of the store's.
    pub gid: Option<u32>,
    /// Permission bits that are removed from all modes; `None` if the store's modes are shown.
    pub umask: Option<u32>,
    /// When the store is asked again for documents, names and attributes.
    pub freshness: Freshness,
    /// The memory budget for chunks, index pages and buffers, in bytes.
    pub cache_budget_bytes: u64,
    /// The largest decoded chunk, in bytes, that is loaded.
    pub max_chunk_bytes: u64,
    /// The most decoded bytes that are prefetched for a reader; `None` lets the reader's window
    /// decide.
    pub readahead: Option<u64>,
    /// The most chunks that are decoded at once for reads.
    pub decode_threads: usize,
    /// The longest time that one request may take.
    pub timeout: Duration,
    /// Whether the log has the elements and attributes that files of the arrays view leave out.
    pub logs_omissions: bool,
    /// How chunks are written.
    pub writes: WriteOptions,
}

impl ViewOptions {
    /// Whether a view lists chunks by their names in the store, and not all chunks of the grid.
    pub fn lists_stored_chunks(&self) -> bool {
        self.views.iter().any(|view| match view {
            ViewKind::Keys => true,
            ViewKind::Chunks => self.missing == AbsentChunks::Hide,
            ViewKind::Arrays => false,
        })
    }

    /// The options on which the names and bytes of files depend, as text to compare.
    pub fn text(&self) -> String {
        let ViewOptions {
            views,
            read_as,
            shown_as,
            shards,
            missing,
            arrays,
            ..
        } = self;
        format!("{views:?} {read_as:?} {shown_as:?} {shards:?} {missing:?} {arrays:?}")
    }

    /// How `view` shows arrays.
    pub(super) fn presentation(&self, view: ViewKind) -> Presentation {
        let is_of_arrays = view == ViewKind::Arrays;
        Presentation {
            is_decoded: view != ViewKind::Keys,
            shards: if is_of_arrays {
                Shards::Expand
            } else {
                self.shards
            },
            fills_absent: view == ViewKind::Chunks && self.missing == AbsentChunks::Fill,
            shown_as: self.shown_as,
            max_chunk_bytes: self.max_chunk_bytes,
        }
    }
}

impl Default for ViewOptions {
    fn default() -> Self {
        ViewOptions {
            views: vec![ViewKind::Keys],
            read_as: None,
            shown_as: None,
            shards: Shards::Expand,
            missing: AbsentChunks::Fill,
            arrays: ArrayOptions::default(),
            uid: None,
            gid: None,
            umask: None,
            freshness: Freshness::Checked(Duration::from_secs(1)),
            cache_budget_bytes: 256 << 20,
            max_chunk_bytes: 1 << 30,
            readahead: None,
            decode_threads: crate::threads::cores(),
            timeout: crate::budget::PATIENCE,
            logs_omissions: true,
            writes: WriteOptions::default(),
        }
    }
}
