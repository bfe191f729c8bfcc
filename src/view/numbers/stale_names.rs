//! The names of chunks that become stale when the document of their array changes, or a document with copies of it.

use crate::metadata::{DocumentName, n5};
use crate::store::{Key, Prefix};
use crate::view::nodes::node::ShownNode;
use crate::view::numbers::VnodeNumbers;
use crate::view::vnode::{Vnode, VnodeId};
use crate::view::{View, ViewKind};

/// The number of names of chunks that are given for an array about which nothing is known. Arrays of N5 and of the drafts,
/// which are shown as they are stored, are given the most names.
const USUAL: u64 = 64;

/// The most names of chunks that are given for any array.
const MOST: u64 = 4096;

/// The end of the names of arrays' documents in hierarchies of drafts.
const DRAFT_ARRAY: &[u8] = b".array.json";

/// A directory, and names in it.
pub(crate) type NamesIn = (VnodeId, Vec<Vec<u8>>);

impl View {
    /// Whether `id` may be the document of an array, or have copies of such documents.
    pub fn describes_arrays(&self, id: VnodeId) -> bool {
        !VnodeNumbers::is_in_range(id) && self.vnode(id).ok().and_then(document_key).is_some()
    }

    /// Whether the kernel may know names of chunks of the arrays that `document` describes.
    pub fn may_know_chunks(&self, document: VnodeId) -> bool {
        let Some(Described {
            view, path, name, ..
        }) = self.described_by(document)
        else {
            return false;
        };
        if self.tree.shows_store(view) {
            // The names are those of the store, whatever the document says.
            return true;
        }
        let numbers = &self.tree.numbers;
        let own = numbers.names_at(view, &path);
        own.is_some_and(|names| names.may_be_known)
            || name != Some(DocumentName::ZArray) && numbers.may_know_below(view, &path)
    }

    /// The names that may have stood for other vnodes before this version of `document`: those of chunks, and of
    /// directories of chunks, in the directory of each array that the document describes. Directories that the kernel does
    /// not know are left out, and so is an array that always had the same chunks.
    ///
    /// A reader may know all arrays below a group from the group's document alone, which may have copies of theirs.
    pub fn stale_names(&self, document: VnodeId) -> Vec<NamesIn> {
        let Some(Described {
            view,
            path,
            name,
            letter,
        }) = self.described_by(document)
        else {
            return Vec::new();
        };
        let (hierarchy, numbers) = (&self.tree.hierarchy, &self.tree.numbers);
        let mut stale = Vec::new();
        let mut is_group = true;
        if name != Some(DocumentName::ZMetadata) {
            if self.tree.loader.is_local() {
                let _ = hierarchy.look_again(&path);
            } else {
                hierarchy.forget(&path);
            }
            let now = self.tree.shown(view, &path);
            let now = now.ok().and_then(ShownNode::into_array);
            is_group = now.is_none();
            // The names of the current array are among them.
            let own = numbers.names_at(view, &path);
            let is_same = (own.as_ref().zip(now))
                .is_some_and(|(own, now)| own.are_all_of(now.node.chunk_identity));
            if !is_same {
                let unknown = if name.is_none() { MOST } else { USUAL };
                let n_indices = own.map_or(unknown, |names| names.n_indices);
                stale.extend(self.chunk_names(view, &path, n_indices, letter));
            }
        }
        if !is_group || name == Some(DocumentName::ZArray) {
            return stale;
        }
        if self.tree.shows_store(view) {
            // Any directory may be that of an array.
            for path in numbers.directories_below(view, &path) {
                stale.extend(self.chunk_names(view, &path, USUAL, letter));
            }
        } else {
            for (path, names) in numbers.names_below(view, &path) {
                stale.extend(self.chunk_names(view, &path, names.n_indices, ""));
            }
        }
        stale
    }

    fn described_by(&self, document: VnodeId) -> Option<Described> {
        let (view, key) = self.vnode(document).ok().and_then(document_key)?;
        let is_draft = key.name().ends_with(DRAFT_ARRAY);
        let path = if is_draft {
            self.tree.hierarchy.described_by(&key).ok()??
        } else {
            key.parent()
        };
        Some(Described {
            view,
            path,
            name: DocumentName::of(key.name()),
            letter: if is_draft { "c" } else { "" },
        })
    }

    /// The directory of the array at `path`, and the names of its chunks, or of its directories of chunks, `n_indices` of
    /// which may be made of one index. `None` if the kernel does not know the directory.
    fn chunk_names(
        &self,
        view: ViewKind,
        path: &Prefix,
        n_indices: u64,
        letter: &str,
    ) -> Option<NamesIn> {
        let is_root = path.is_root() && self.tree.options.views == [view];
        let directory = if is_root {
            VnodeId::ROOT
        } else {
            let path = path.clone();
            self.tree.numbers.known(&Vnode::Prefix { view, path })?
        };
        let indices = (0..n_indices.min(MOST)).map(|index| format!("{letter}{index}"));
        let names = ["c", "__zdata__"]
            .map(str::to_owned)
            .into_iter()
            .chain(indices);
        Some((directory, names.map(String::into_bytes).collect()))
    }
}

/// The nodes that a document describes.
struct Described {
    view: ViewKind,
    /// The path of the array or the group.
    path: Prefix,
    /// The name of the document; `None` in formats before v2 and in N5.
    name: Option<DocumentName>,
    /// The letter before the first index in the names of chunks, as in hierarchies of drafts.
    letter: &'static str,
}

/// The key of a document that may describe arrays.
fn document_key(vnode: Vnode) -> Option<(ViewKind, Key)> {
    let (view, key) = match vnode {
        Vnode::Object { view, key } | Vnode::Document { view, key } => (view, key),
        Vnode::Written { view, path, name } => (view, path.key(name.as_str().as_bytes()).ok()?),
        _ => return None,
    };
    let describes_arrays = match DocumentName::of(key.name()) {
        Some(name) => !matches!(name, DocumentName::ZGroup | DocumentName::ZAttrs),
        None => key.name() == n5::DOCUMENT.as_bytes() || key.name().ends_with(DRAFT_ARRAY),
    };
    describes_arrays.then_some((view, key))
}
