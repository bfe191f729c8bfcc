//! What a path of a view is made of.
//!
//! A [`Vnode`] is a small value; its number is a [`VnodeId`] (see `numbers`), and everything
//! that is shown of it is derived from it and the store, nothing is kept per path.

use crate::grid::Dims;
use crate::metadata::DocumentName;
use crate::plain::{FileFormat, Selection};
use crate::store::{Key, Prefix, Times};

use super::options::ViewKind;

/// Number of a vnode: what FUSE calls an inode number, for the first version of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VnodeId(pub u64);

impl VnodeId {
    /// The root of the mount.
    pub const ROOT: VnodeId = VnodeId(1);
}

/// What a path of a view is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Vnode {
    /// The root, when it holds several views.
    Views,
    /// The hidden directory of the daemon itself, and what is in it.
    Control,
    /// `stats.json`.
    Statistics,
    /// A path of the tree: a group, an array, or a directory that is neither. A prefix of the
    /// store, but for nodes that are shown in another version.
    Prefix { view: ViewKind, path: Prefix },
    /// An object of the store, as it is.
    Object { view: ViewKind, key: Key },
    /// A metadata document, edited to say what the view shows.
    Document { view: ViewKind, key: Key },
    /// A document of a node of another version, written in the one that is shown.
    Written {
        view: ViewKind,
        path: Prefix,
        name: DocumentName,
    },
    /// The document of an array that cannot be decoded, under another name.
    Unsupported { view: ViewKind, key: Key },
    /// `ERROR.txt`: why the array at a path cannot be shown.
    ErrorNote { view: ViewKind, path: Prefix },
    /// The directory of the chunks whose first indices are these.
    ChunkDirectory(ChunkPlace),
    /// A chunk.
    Chunk(ChunkPlace),
    /// A file of the arrays view.
    Plain(PlainName),
}

/// A chunk of a shown array, or the directory of those that share their first indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ChunkPlace {
    pub(super) view: ViewKind,
    /// Where the array is in the tree.
    pub(super) path: Prefix,
    /// Which array: `ArrayNode::chunk_identity`.
    pub(super) identity: u64,
    /// In the shown grid; fewer than the rank for a directory.
    pub(super) indices: Dims,
}

/// A file of the arrays view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PlainName {
    /// Where the array, or the group, is in the tree.
    pub(super) path: Prefix,
    pub(super) kind: PlainKind,
}

impl PlainName {
    pub(super) fn new(path: &Prefix, kind: PlainKind) -> PlainName {
        PlainName {
            path: path.clone(),
            kind,
        }
    }

    /// Whether it must be decoded to know its size.
    pub(super) fn decodes_to_measure(&self) -> bool {
        matches!(self.kind, PlainKind::Array(FileFormat::Jsonl, _))
    }
}

/// What a file of the arrays view is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum PlainKind {
    /// An array, or a part of it.
    Array(FileFormat, Option<Selection>),
    /// A group.
    Group(FileFormat),
    /// What the files of an array do not say, as JSON.
    Sidecar,
}

/// A directory or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VnodeKind {
    /// Has entries.
    Directory,
    /// Has bytes.
    File,
}

/// What `stat` shows of a vnode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Directory or file.
    pub kind: VnodeKind,
    /// Exact size in bytes; of a directory, what the store's says.
    pub size: u64,
    /// Times of the backing object.
    pub times: Times,
    /// Permission bits, no write bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Stands for the bytes: another version of them has another one. 0 for directories, which
    /// have no versions.
    pub fingerprint: u64,
}
