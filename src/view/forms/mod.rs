//! What the files of the chunks view are in the store, where the view is written to.
//!
//! A file of the keys view is its object. In the chunks view, a chunk shows the elements of its
//! object, and a document says that chunks are not encoded: both are *forms* of their objects, and
//! what is written to them is translated back. A name below an array that is no chunk and no document
//! is *scratch*, which stays in the mount: programs make such files beside the one that they replace.

mod checked;
mod chunk;
mod copies;
mod document;

use std::sync::Arc;

use super::View;
use super::find::CONTROL;
use super::names::ChunkName;
use super::options::ViewKind;
use super::shown_node::{ShownArray, ShownNode};
use super::tree::{EndedArray, Tree};
use super::vnode::{ChunkPlace, Vnode};
use super::writing::{Form, NewKind, is_document};
use crate::budget::Holding;
use crate::error::Error;
use crate::grid::Dims;
use crate::metadata::DocumentName;
use crate::store::{Cursor, Detail, Key, Prefix, Refusal, StoreError, StoredFile, Version};
use checked::{CheckedForm, is_checked};
use chunk::ChunkForm;
use document::DocumentForm;

/// A file that may be written.
#[derive(Debug)]
pub(super) struct FormedFile {
    /// The key of its object.
    pub(super) key: Key,
    /// What it shows of the object; `None` where it shows the object's own bytes.
    pub(super) form: Option<Arc<dyn Form>>,
}

/// A file, and what the store has of it.
pub(super) struct Place {
    pub(super) vnode: Vnode,
    pub(super) key: Key,
    pub(super) kind: NewKind,
}

impl View {
    /// The key of the file `vnode`, and the form in which it shows its object; `None` for what cannot
    /// be written.
    pub(super) fn form_of(self: &Arc<Self>, vnode: &Vnode) -> Result<Option<FormedFile>, Error> {
        Ok(match vnode {
            Vnode::Object { view, key } => {
                let form = match view {
                    ViewKind::Chunks if is_document(key) => Some(self.document_form(*view, key)),
                    ViewKind::Keys => self.checked_form(key),
                    _ => None,
                };
                let key = key.clone();
                Some(FormedFile { key, form })
            }
            Vnode::Document { view, key } => {
                let form = Some(self.document_form(*view, key));
                let key = key.clone();
                Some(FormedFile { key, form })
            }
            Vnode::Chunk(place) => {
                let array = self.tree.array_of(place)?;
                let key = array.chunked.stored_key(&place.indices)?;
                let form = self.chunk_form(&array, place, &key);
                form.map(|form| FormedFile {
                    key,
                    form: Some(form),
                })
            }
            _ => None,
        })
    }

    /// The array that the document at `key` describes, and the document, before it is removed.
    pub(super) fn ending(&self, key: &Key) -> Result<Option<EndedArray>, Error> {
        let Some(array) = self.array_described_by(key)? else {
            return Ok(None);
        };
        let text = self.tree.hierarchy.read(key, Holding::SOURCE)?;
        Ok(text.map(|text| EndedArray {
            array,
            document: text.bytes.clone(),
        }))
    }

    /// Whether the store has a chunk of `array`.
    fn has_chunks(&self, array: &ShownArray) -> Result<bool, Error> {
        let root = array.stored_directory(&Dims::new())?;
        self.finds_name(&root, |name| {
            array.stored.root().is_some() || array.stored.in_array(name) != ChunkName::Other
        })
    }

    /// Whether the store has other names beside the document at `key`.
    fn has_other_names(&self, key: &Key) -> Result<bool, Error> {
        self.finds_name(&key.parent(), |name| {
            name != key.name() && DocumentName::of(name).is_none() && name != CONTROL
        })
    }

    fn finds_name(&self, prefix: &Prefix, wanted: impl Fn(&[u8]) -> bool) -> Result<bool, Error> {
        let listing = self
            .tree
            .store()
            .list(prefix, Cursor::START, Detail::Names)?;
        let Some(mut listing) = listing else {
            return Ok(false);
        };
        while let Some(entry) = listing.next_entry()? {
            if wanted(&entry.name) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The form of a file of the keys view, whose chunks may have to be checked.
    fn checked_form(self: &Arc<Self>, key: &Key) -> Option<Arc<dyn Form>> {
        let is_asked = self.tree.options.writes.checks;
        let is_checked = is_asked && is_checked(key);
        is_checked.then(|| -> Arc<dyn Form> {
            Arc::new(CheckedForm {
                view: Arc::clone(self),
                key: key.clone(),
            })
        })
    }

    /// The array that the document at `key` describes in the chunks view.
    pub(super) fn array_described_by(&self, key: &Key) -> Result<Option<Arc<ShownArray>>, Error> {
        let Some(prefix) = self.tree.hierarchy.described_by(key)? else {
            return Ok(None);
        };
        Ok(self.tree.shown(ViewKind::Chunks, &prefix)?.into_array())
    }

    fn document_form(self: &Arc<Self>, view: ViewKind, key: &Key) -> Arc<dyn Form> {
        Arc::new(DocumentForm {
            view: Arc::clone(self),
            kind: view,
            key: key.clone(),
        })
    }

    fn chunk_form(
        self: &Arc<Self>,
        array: &ShownArray,
        place: &ChunkPlace,
        key: &Key,
    ) -> Option<Arc<dyn Form>> {
        if array.unwritable.is_some() {
            return None;
        }
        let form = ChunkForm {
            view: Arc::clone(self),
            place: place.clone(),
            key: key.clone(),
            len: array.decoded_len(),
        };
        Some(Arc::new(form))
    }

    /// The file that `name` in the directory `parent` is, or would be.
    ///
    /// # Errors
    /// [`Refusal::Fixed`] for names that nothing can have, and [`Refusal::OutsideGrid`].
    pub(super) fn place_of(self: &Arc<Self>, parent: &Vnode, name: &[u8]) -> Result<Place, Error> {
        let refused = |refusal| {
            let name = String::from_utf8_lossy(name);
            Err(StoreError::refused(name, refusal).into())
        };
        if name == CONTROL {
            return refused(Refusal::Fixed);
        }
        let (view, key, array, found) = match parent {
            Vnode::Prefix { view, path } => {
                let key = path.key(name)?;
                if *view == ViewKind::Keys {
                    let form = self.checked_form(&key);
                    let kind = form.map_or(NewKind::Stored, NewKind::Formed);
                    return Ok(Place {
                        kind,
                        ..stored(*view, key)
                    });
                }
                match self.tree.folder(*view, path)?.shown {
                    ShownNode::Array(array) => {
                        let found = array.shown.in_array(name);
                        (*view, key, array, found)
                    }
                    ShownNode::Plain if is_document(&key) => {
                        return Ok(self.document_place(*view, key));
                    }
                    ShownNode::Plain => return Ok(stored(*view, key)),
                    ShownNode::Unusable(_) => return refused(Refusal::Fixed),
                }
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                let found = array.shown.in_directory(&place.indices, name);
                let key = array.stored_prefix(&place.indices)?.key(name)?;
                (place.view, key, array, found)
            }
            _ => return refused(Refusal::Fixed),
        };
        match found {
            ChunkName::Chunk(indices) if !array.grid().contains(&indices) => {
                refused(Refusal::OutsideGrid)
            }
            ChunkName::Chunk(indices) => {
                let place = array.place(indices);
                let key = array.chunked.stored_key(&place.indices)?;
                let Some(form) = self.chunk_form(&array, &place, &key) else {
                    return refused(Refusal::Fixed);
                };
                let (vnode, kind) = (Vnode::Chunk(place), NewKind::Formed(form));
                Ok(Place { vnode, key, kind })
            }
            ChunkName::Directory(_) => refused(Refusal::OutsideGrid),
            ChunkName::Other if array.node.document.key == key => {
                Ok(self.document_place(view, key))
            }
            ChunkName::Other if array.node.attributes.as_ref() == Some(&key) => {
                Ok(if is_document(&key) {
                    self.document_place(view, key)
                } else {
                    stored(view, key)
                })
            }
            // Another document would describe other chunks than those that are here.
            ChunkName::Other if is_document(&key) => refused(Refusal::Fixed),
            ChunkName::Other if self.tree.object_meta(&key)?.is_some() => Ok(stored(view, key)),
            ChunkName::Other => {
                let kind = NewKind::Scratch;
                Ok(Place {
                    kind,
                    ..stored(view, key)
                })
            }
        }
    }

    fn document_place(self: &Arc<Self>, view: ViewKind, key: Key) -> Place {
        let kind = NewKind::Formed(self.document_form(view, &key));
        Place {
            kind,
            ..stored(view, key)
        }
    }

    /// The directory of the store that `name` in `parent` would be.
    ///
    /// # Errors
    /// [`Refusal::Fixed`] where none can be.
    pub(super) fn directory_place(&self, parent: &Vnode, name: &[u8]) -> Result<Key, Error> {
        let refused = || {
            let name = String::from_utf8_lossy(name);
            Err(StoreError::refused(name, Refusal::Fixed).into())
        };
        if name == CONTROL {
            return refused();
        }
        let of_array = |array: &ShownArray, found| {
            let ChunkName::Directory(first) = found else {
                return refused();
            };
            array.directory_key(&first)
        };
        match parent {
            Vnode::Prefix { view, path } if *view == ViewKind::Keys => Ok(path.key(name)?),
            Vnode::Prefix { view, path } => match self.tree.folder(*view, path)?.shown {
                ShownNode::Plain => Ok(path.key(name)?),
                ShownNode::Array(array) => of_array(&array, array.shown.in_array(name)),
                ShownNode::Unusable(_) => refused(),
            },
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                of_array(&array, array.shown.in_directory(&place.indices, name))
            }
            _ => refused(),
        }
    }

    /// The files in the directory `parent` that were made and are not in the store, where no other
    /// part of a listing has them.
    pub(super) fn made_in(&self, parent: &Vnode) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let Some(writing) = &self.tree.writing else {
            return Ok(Vec::new());
        };
        let (view, directory, array, first) = match parent {
            Vnode::Prefix { view, path } => {
                let shown = match *view {
                    ViewKind::Keys => ShownNode::Plain,
                    _ => self.tree.folder(*view, path)?.shown,
                };
                (*view, path.clone(), shown.into_array(), None)
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                let directory = array.stored_prefix(&place.indices)?;
                (place.view, directory, Some(array), Some(&place.indices))
            }
            _ => return Ok(Vec::new()),
        };
        let mut made = Vec::new();
        for key in writing.made_in(&directory) {
            let name = key.name().to_vec();
            let found = array.as_ref().map(|array| match first {
                Some(first) => (array, array.shown.in_directory(first, &name)),
                None => (array, array.shown.in_array(&name)),
            });
            match found {
                Some((array, ChunkName::Chunk(indices))) => {
                    if !array.lists_grid {
                        made.push((name, Vnode::Chunk(array.place(indices))));
                    }
                }
                _ => made.push((name, Vnode::Object { view, key })),
            }
        }
        Ok(made)
    }
}

impl ShownArray {
    /// The key of the store's directory of the chunks that begin with `first`.
    pub(super) fn directory_key(&self, first: &Dims) -> Result<Key, Error> {
        let key = self.stored_directory(first)?.to_key();
        let key = key.filter(|_| self.has_directory(first));
        let outside = || StoreError::refused(&self.path, Refusal::OutsideGrid);
        Ok(key.ok_or_else(outside)?)
    }
}

impl Tree {
    /// The version of an open object now.
    pub(super) fn version_of(&self, key: &Key, stored: &StoredFile) -> Result<Version, Error> {
        let writing = self.writing.as_ref().ok_or(Error::Stale)?;
        Ok(writing.meta_of(key, stored)?.version)
    }
}

/// A file that is its object.
fn stored(view: ViewKind, key: Key) -> Place {
    Place {
        vnode: Vnode::Object {
            view,
            key: key.clone(),
        },
        key,
        kind: NewKind::Stored,
    }
}
