//! Files that were made through a view, and are not in the store yet.

use crate::error::Error;
use crate::metadata::DocumentName;
use crate::store::Key;
use crate::view::View;
use crate::view::chunks::names::ChunkName;
use crate::view::nodes::directory::NodeDirectory;
use crate::view::nodes::node::ShownArray;
use crate::view::options::ViewKind;
use crate::view::vnode::Vnode;

impl View {
    /// The files in the directory `parent` that were made and are not in the store yet, if no other
    /// part of a listing has them.
    pub(in crate::view) fn made_in(&self, parent: &Vnode) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let Some(writing) = parent.view().and_then(|view| self.tree.writing(view)) else {
            return Ok(Vec::new());
        };
        let object = |view: ViewKind, key: Key| {
            let name = key.name().to_vec();
            (name, Vnode::Object { view, key })
        };
        let mut made = Vec::new();
        match parent {
            Vnode::Prefix { view, path } if self.tree.shows_store(*view) => {
                let keys = writing.made_in(path).into_iter();
                made.extend(keys.map(|key| object(*view, key)));
            }
            Vnode::Prefix { view, path } => {
                let NodeDirectory { resolved, shown } = self.tree.folder(*view, path)?;
                let array = shown.into_array();
                for key in writing.made_in(path) {
                    let document =
                        DocumentName::of(key.name()).filter(|_| resolved.is_translated());
                    match (document, &array) {
                        // The documents that a node has are listed with the node.
                        (Some(name), _) if resolved.written().contains(&name) => {}
                        (Some(name), _) => {
                            let (view, path) = (*view, path.clone());
                            let file = key.name().to_vec();
                            made.push((file, Vnode::Written { view, path, name }));
                        }
                        (None, Some(array)) if is_chunk(array, &key) => {}
                        (None, _) => made.push(object(*view, key)),
                    }
                }
                if let Some(array) = array {
                    for key in writing.made_in(&array.node.prefix) {
                        made.extend(made_chunk(&array, &array.stored.in_array(key.name())));
                    }
                }
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                for key in writing.made_in(&array.stored_prefix(&place.indices)?) {
                    let found = array.stored.in_directory(&place.indices, key.name());
                    if writing.is_scratch(&key) {
                        made.push(object(place.view, key));
                    } else {
                        made.extend(made_chunk(&array, &found));
                    }
                }
            }
            _ => {}
        }
        Ok(made)
    }
}

/// Whether the object at `key`, in the array's directory in the store, is one of its chunks.
fn is_chunk(array: &ShownArray, key: &Key) -> bool {
    key.parent() == array.node.prefix && array.stored.in_array(key.name()) != ChunkName::Other
}

/// The name and the vnode of a chunk that was made, if the grid is not listed.
fn made_chunk(array: &ShownArray, found: &ChunkName) -> Option<(Vec<u8>, Vnode)> {
    let ChunkName::Chunk(indices) = found else {
        return None;
    };
    let vnode = Vnode::Chunk(array.place(indices.clone()));
    (!array.lists_grid).then(|| (array.shown.name_of(indices), vnode))
}
