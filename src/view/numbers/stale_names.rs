//! The names of chunks beside the document of their array, which become stale with the document.

use crate::metadata::DocumentName;
use crate::store::Prefix;
use crate::view::vnode::{Vnode, VnodeId};
use crate::view::{View, ViewKind};

/// The number of names of chunks that are given for an array about which nothing is known.
const USUAL: u64 = 64;

/// The most names of chunks that are given for any array.
const MOST: u64 = 4096;

impl View {
    /// Whether `id` may be an array's own document.
    pub fn describes_array(&self, id: VnodeId) -> bool {
        self.vnode(id).ok().and_then(of_document).is_some()
    }

    /// The directory of the array that `document` describes, and the names in it that may stand for other vnodes after
    /// the document has changed: those of chunks, and of directories of chunks. `None` if no name can have changed,
    /// because the array has the same chunks, or the kernel does not know it.
    pub fn names_beside(&self, document: VnodeId) -> Option<(VnodeId, Vec<Vec<u8>>)> {
        let (view, path) = of_document(self.vnode(document).ok()?)?;
        self.tree.hierarchy.forget(&path);
        let before = self.tree.numbers.arrays_at(view, &path);
        let now = self.tree.shown(view, &path).ok();
        let now = now.and_then(|shown| Some(shown.into_array()?.node.chunk_identity));
        if !before.is_empty() && before.iter().all(|(identity, _)| Some(*identity) == now) {
            return None;
        }
        let is_root = path.is_root() && self.tree.options.views == [view];
        let directory = if is_root {
            VnodeId::ROOT
        } else {
            self.tree.numbers.known(&Vnode::Prefix { view, path })?
        };
        let n_names = before.iter().map(|(_, n_names)| *n_names).max();
        let indices = (0..n_names.unwrap_or(0).clamp(USUAL, MOST)).map(|index| index.to_string());
        let names = ["c", "__zdata__"]
            .map(str::to_owned)
            .into_iter()
            .chain(indices);
        Some((directory, names.map(String::into_bytes).collect()))
    }
}

/// The path of the node that has this document.
fn of_document(vnode: Vnode) -> Option<(ViewKind, Prefix)> {
    let is_own = |name| matches!(name, DocumentName::ZArray | DocumentName::ZarrJson);
    match vnode {
        Vnode::Object { view, key } | Vnode::Document { view, key } => {
            let name = DocumentName::of(key.name()).filter(|name| is_own(*name));
            name.map(|_| (view, key.parent()))
        }
        Vnode::Written { view, path, name } => is_own(name).then_some((view, path)),
        _ => None,
    }
}
