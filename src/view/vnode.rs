//! A vnode is a path of a view, described by the store's data that it shows.
//!
//! A [`Vnode`] is a small value with a number, its [`VnodeId`] (see `numbers`). Everything that is shown of a vnode is
//! derived from this value and the store. A view keeps nothing for each path.

use crate::files::CleanAttributes;
use crate::grid::Dims;
use crate::hierarchy::chunk_identity_at;
use crate::metadata::DocumentName;
use crate::plain::{FileFormat, Selection};
use crate::store::{Key, Prefix, Times};

use super::options::ViewKind;

/// The name of the daemon's own directory, which is hidden. A segment of a key with this name is not shown: writers of
/// a store keep data there that they have not stored yet.
pub(super) const CONTROL: &[u8] = b".zarr-mount";

/// The number of a vnode, which is the inode number of the first version of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VnodeId(pub u64);

impl VnodeId {
    /// The root of the mount.
    pub const ROOT: VnodeId = VnodeId(1);
}

/// A path of a view, by the part of the store that it shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Vnode {
    /// The root of a mount of several views.
    Views,
    /// The hidden directory `.zarr-mount` of the daemon itself.
    Control,
    /// `stats.json`.
    Statistics,
    /// `metrics`.
    Metrics,
    /// `log`.
    Log,
    /// `snapshot`: the state that the store shows now.
    Snapshot,
    /// `refused`: the reasons why changes were refused.
    Refused,
    /// `sync`: fsync(2) of it commits all changes that were made through the mount.
    Sync,
    /// A file or directory whose name was removed, or given to another file. Open handles may have it.
    Gone(VnodeKind),
    /// A group, an array, or a directory that is neither. `path` is a prefix of the store, or the
    /// path of a node where nodes are shown in another version.
    Prefix { view: ViewKind, path: Prefix },
    /// An object of the store, with its stored bytes.
    Object { view: ViewKind, key: Key },
    /// A metadata document, edited to describe the files that the view shows.
    Document { view: ViewKind, key: Key },
    /// A metadata document in the version that is shown, for a node of another version.
    Written {
        view: ViewKind,
        path: Prefix,
        name: DocumentName,
    },
    /// The document of an array that cannot be decoded, under a name that no reader looks for.
    Unsupported { view: ViewKind, key: Key },
    /// `ERROR.txt`, which gives the reason why the array at this path cannot be shown.
    ErrorNote { view: ViewKind, path: Prefix },
    /// The directory of the chunks whose indices begin with some indices.
    ChunkDirectory(ChunkPlace),
    /// A chunk.
    Chunk(ChunkPlace),
    /// A whole-array file of the arrays view.
    Plain(PlainName),
}

impl Vnode {
    /// The view that shows it; `None` for a vnode of all views, or of none.
    pub(super) fn view(&self) -> Option<ViewKind> {
        match self {
            Vnode::Prefix { view, .. }
            | Vnode::Object { view, .. }
            | Vnode::Document { view, .. }
            | Vnode::Written { view, .. }
            | Vnode::Unsupported { view, .. }
            | Vnode::ErrorNote { view, .. } => Some(*view),
            Vnode::Chunk(place) | Vnode::ChunkDirectory(place) => Some(place.view),
            Vnode::Plain(_) => Some(ViewKind::Arrays),
            Vnode::Views
            | Vnode::Control
            | Vnode::Statistics
            | Vnode::Metrics
            | Vnode::Log
            | Vnode::Snapshot
            | Vnode::Refused
            | Vnode::Sync
            | Vnode::Gone(_) => None,
        }
    }

    /// This vnode after `from` was renamed to `to`; `None` if it is not at or below `from`. `form_of` gives the
    /// `ArrayNode::chunk_form` of the array of a chunk, if it is known.
    pub(super) fn moved(
        &self,
        from: &Key,
        to: &Key,
        form_of: impl Fn(&ChunkPlace) -> Option<u64>,
    ) -> Option<Vnode> {
        let moved_place = |place: &ChunkPlace| {
            let path = place.path.moved(from, to)?;
            Some(form_of(place).map(|form| ChunkPlace {
                identity: chunk_identity_at(&path, form),
                path,
                ..place.clone()
            }))
        };
        Some(match self {
            Vnode::Prefix { view, path } => Vnode::Prefix {
                view: *view,
                path: path.moved(from, to)?,
            },
            Vnode::Object { view, key } => Vnode::Object {
                view: *view,
                key: key.moved(from, to)?,
            },
            Vnode::Document { view, key } => Vnode::Document {
                view: *view,
                key: key.moved(from, to)?,
            },
            Vnode::Unsupported { view, key } => Vnode::Unsupported {
                view: *view,
                key: key.moved(from, to)?,
            },
            Vnode::Written { view, path, name } => Vnode::Written {
                view: *view,
                path: path.moved(from, to)?,
                name: *name,
            },
            Vnode::ErrorNote { view, path } => Vnode::ErrorNote {
                view: *view,
                path: path.moved(from, to)?,
            },
            // If the array is not known, its chunks are gone, and the kernel looks their names up again.
            Vnode::Chunk(place) => {
                moved_place(place)?.map_or(Vnode::Gone(VnodeKind::File), Vnode::Chunk)
            }
            Vnode::ChunkDirectory(place) => {
                moved_place(place)?.map_or(Vnode::Gone(VnodeKind::Directory), Vnode::ChunkDirectory)
            }
            // The name of a whole-array file is not that of the array, and the other vnodes have fixed names.
            Vnode::Plain(_)
            | Vnode::Views
            | Vnode::Control
            | Vnode::Statistics
            | Vnode::Metrics
            | Vnode::Log
            | Vnode::Snapshot
            | Vnode::Refused
            | Vnode::Sync
            | Vnode::Gone(_) => return None,
        })
    }
}

impl std::fmt::Display for Vnode {
    /// A name for messages: the key or the path, and for a chunk the path of its array and its indices.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Vnode::Prefix { path, .. } | Vnode::ErrorNote { path, .. } => write!(f, "{path}"),
            Vnode::Object { key, .. }
            | Vnode::Document { key, .. }
            | Vnode::Unsupported { key, .. } => write!(f, "{key}"),
            Vnode::Written { path, name, .. } => write!(f, "{path}: {}", name.as_str()),
            Vnode::Chunk(place) => write!(f, "{}: chunk {:?}", place.path, place.indices),
            Vnode::ChunkDirectory(place) => {
                write!(f, "{}: chunks {:?}", place.path, place.indices)
            }
            Vnode::Plain(name) => write!(f, "{}: a file of the arrays view", name.path),
            Vnode::Control
            | Vnode::Statistics
            | Vnode::Metrics
            | Vnode::Log
            | Vnode::Snapshot
            | Vnode::Refused
            | Vnode::Sync => f.write_str("a file of the mount itself"),
            Vnode::Views => f.write_str("the directory of the views"),
            Vnode::Gone(_) => f.write_str("a file without a name"),
        }
    }
}

/// A chunk of a shown array, or the directory of all chunks whose indices begin with the same indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ChunkPlace {
    pub(super) view: ViewKind,
    /// The path of the array in the view.
    pub(super) path: Prefix,
    /// The array's `ArrayNode::chunk_identity`.
    pub(super) identity: u64,
    /// Indices in the shown grid. A directory has fewer of them than the array has dimensions.
    pub(super) indices: Dims,
}

/// A file of the arrays view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PlainName {
    /// The path of the array, or of the group, in the view.
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

    /// Whether the size of the file is known only after decoding.
    pub(super) fn decodes_to_measure(&self) -> bool {
        matches!(self.kind, PlainKind::Array(FileFormat::Jsonl, _))
    }

    /// Whether the file is that of a group, in the group's own directory.
    pub(super) fn is_of_group(&self) -> bool {
        matches!(self.kind, PlainKind::Group(_) | PlainKind::GroupSidecar)
    }

    /// Whether the file is a JSON file with facts about a node.
    pub(super) fn is_sidecar(&self) -> bool {
        matches!(self.kind, PlainKind::Sidecar | PlainKind::GroupSidecar)
    }
}

/// The kind of a file of the arrays view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum PlainKind {
    /// An array, or a part of it.
    Array(FileFormat, Option<Selection>),
    /// A group.
    Group(FileFormat),
    /// A JSON file with the facts about an array that its other files do not have.
    Sidecar,
    /// A JSON file with the attributes of a group.
    GroupSidecar,
    /// A file of GDAL beside the GeoTIFF of an array, or of a part of it, that has the CRS of the GeoTIFF.
    Crs(Option<Selection>),
}

/// A directory or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VnodeKind {
    /// A directory has entries.
    Directory,
    /// A file has bytes.
    File,
}

/// The attributes that `stat` shows of a vnode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VnodeAttributes {
    /// Whether it is a directory or a file.
    pub kind: VnodeKind,
    /// Exact size of a file in bytes; for a directory, the size of the store's directory.
    pub size: u64,
    /// Times of the backing object.
    pub times: Times,
    /// Permission bits, without write bits if it cannot be written.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// A fingerprint of the bytes, which is different for every version of a file. Directories, and files of the daemon
    /// itself, have no versions and the fingerprint 0.
    pub fingerprint: u64,
}

impl From<VnodeAttributes> for CleanAttributes {
    fn from(shown: VnodeAttributes) -> CleanAttributes {
        let VnodeAttributes {
            kind: _,
            size,
            times,
            mode,
            uid,
            gid,
            fingerprint,
        } = shown;
        CleanAttributes {
            size,
            times,
            mode,
            uid,
            gid,
            fingerprint,
        }
    }
}

impl VnodeAttributes {
    /// The attributes of a file with this fingerprint, without a draft.
    pub(super) fn of_clean(clean: CleanAttributes, fingerprint: u64) -> VnodeAttributes {
        let CleanAttributes {
            size,
            times,
            mode,
            uid,
            gid,
            fingerprint: _,
        } = clean;
        VnodeAttributes {
            kind: VnodeKind::File,
            size,
            times,
            mode,
            uid,
            gid,
            fingerprint,
        }
    }

    /// The same attributes with another fingerprint, if there is one.
    #[must_use]
    pub(super) fn with_fingerprint(self, fingerprint: Option<u64>) -> VnodeAttributes {
        VnodeAttributes {
            fingerprint: fingerprint.unwrap_or(self.fingerprint),
            ..self
        }
    }

    /// Whether each open shows other bytes, so that the kernel must cache neither them nor their number.
    pub fn is_momentary(&self) -> bool {
        self.kind == VnodeKind::File && self.fingerprint == 0
    }
}
