//! The objects of the store that the files of a writable view stand for.
//!
//! A view that shows the store as it is has the store's own files. In any other view a file may be a *form* of its
//! object: a document describes the files that the view shows, and a chunk may have the elements of its object. Bytes
//! that are written to a form are translated back. A name below an array that is neither a chunk nor a document is
//! *scratch*, and stays in the mount: programs make such files beside the file that they replace.

mod chunk;
mod copies;
mod document;
mod documents_below;
mod earlier_chunks;
mod groups_above;
mod made;
mod noted;
mod objects;
mod removed;
mod stored_bytes;
mod translated;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::View;
use super::options::ViewKind;
use super::tree::{EndedArray, Tree};
use super::vnode::{CONTROL, ChunkPlace, Vnode};
use crate::budget::Holding;
use crate::error::Error;
use crate::files::{
    Form, NewKind, is_document, is_replaced_whole, looks_like_a_chunk, may_be_old_document,
};
use crate::grid::Dims;
use crate::hierarchy::Node;
use crate::metadata::DocumentName;
use crate::shards::ChunkObject;
use crate::store::{
    Cursor, Detail, DirWriter, EntryKind, Key, ListEntry, Prefix, Refusal, StoreError,
};
use crate::translate::Rules;
use crate::view::chunks::names::ChunkName;
use crate::view::nodes::directory::NodeDirectory;
use crate::view::nodes::node::{FileForm, ShownArray, ShownNode};
use chunk::{ChunkForm, is_checked};
use document::DocumentForm;
use translated::TranslatedForm;

/// A file that may be written.
#[derive(Debug)]
pub(super) struct FormedFile {
    /// The key of its object.
    pub(super) key: Key,
    /// The form in which it shows the object; `None` if it shows the object's own bytes.
    pub(super) form: Option<Arc<dyn Form>>,
}

/// A file, and its place in the store.
pub(super) struct Place {
    pub(super) vnode: Vnode,
    pub(super) key: Key,
    pub(super) kind: NewKind,
}

impl View {
    /// The key of the file `vnode`, and the form in which it shows its object; `None` for a vnode that cannot be
    /// written.
    pub(super) fn form_of(self: &Arc<Self>, vnode: &Vnode) -> Result<Option<FormedFile>, Error> {
        Ok(match vnode {
            Vnode::Object { view, key } => {
                let form = if self.tree.shows_store(*view) {
                    self.checked_form(key)
                } else {
                    (self.is_document(key)?).then(|| self.document_form(*view, key))
                };
                if form.is_none() && self.is_of_keys_view(*view, key) {
                    return Ok(None);
                }
                let key = key.clone();
                Some(FormedFile { key, form })
            }
            Vnode::Document { view, key } => {
                let form = Some(self.document_form(*view, key));
                let key = key.clone();
                Some(FormedFile { key, form })
            }
            Vnode::Written { view, path, name } => {
                let resolved = self.tree.resolve(*view, path)?;
                let form = self.translated_form(&resolved, name.as_str().as_bytes());
                let form = form.ok_or(Error::Stale)?;
                let key = form.key()?;
                let form: Arc<dyn Form> = Arc::new(form);
                Some(FormedFile {
                    key,
                    form: Some(form),
                })
            }
            Vnode::Chunk(place) => {
                let array = self.tree.array_of(place)?;
                let key = array.file_key(&place.indices)?;
                let form = self.chunk_form(&array, place, &key)?;
                form.map(|form| FormedFile {
                    key,
                    form: Some(form),
                })
            }
            _ => None,
        })
    }

    /// The array that the document at `key` describes, and the document, before it is removed.
    pub(super) fn ending(&self, view: ViewKind, key: &Key) -> Result<Option<EndedArray>, Error> {
        let Some(array) = self.array_described_by(view, key)? else {
            return Ok(None);
        };
        self.check_ends(&array)?;
        let text = self.tree.hierarchy.read(key, Holding::SOURCE)?;
        Ok(text.map(|text| EndedArray {
            array,
            document: text.bytes.clone(),
        }))
    }

    /// Writes the staged chunks of an array's shards before its document is removed. Refuses the removal if chunks are
    /// there that could not be removed afterwards.
    pub(super) fn check_ends(&self, array: &ShownArray) -> Result<(), Error> {
        if !array.can_lose_chunks() && self.has_chunks(array)? {
            return Err(StoreError::refused(&array.path, Refusal::Fixed).into());
        }
        self.tree
            .settle_below(&array.stored_directory(&Dims::new())?)
    }

    /// Whether the store has a chunk of `array` after all staged chunks of its shards are written.
    fn has_chunks(&self, array: &ShownArray) -> Result<bool, Error> {
        let root = array.stored_directory(&Dims::new())?;
        self.tree.settle_below(&root)?;
        self.finds_object(&root, &|name| {
            array.stored.root().is_some() || array.stored.in_array(name) != ChunkName::Other
        })
    }

    /// The node `shown`, before a program makes a name in its directory; `of_array` is the meaning of that name in the
    /// array there. An array whose document was removed through the mount goes on as long as the store has something of
    /// it. A program that has removed everything except the directory makes something new there, whose chunks may come
    /// before their document.
    fn before_new_names(
        &self,
        shown: ShownNode,
        of_array: impl FnOnce(&ShownArray) -> ChunkName,
    ) -> Result<ShownNode, Error> {
        let ShownNode::Array(array) = &shown else {
            return Ok(shown);
        };
        let is_kept = !array.has_ended.load(Ordering::Relaxed)
            || of_array(array) == ChunkName::Other
            || self.has_something_of(array)?;
        if is_kept {
            return Ok(shown);
        }
        self.tree.forget_ended(&array.path);
        (self.tree.translated).forget(&(array.view, array.path.clone()));
        Ok(ShownNode::Plain)
    }

    /// Whether the store has something of `array`, or a program has written something of it that is not in the store
    /// yet.
    pub(super) fn has_something_of(&self, array: &ShownArray) -> Result<bool, Error> {
        let prefix = &array.node.prefix;
        let Some(writings) = self.tree.writings.as_ref() else {
            return Ok(true);
        };
        Ok(writings.has_made_chunks_below(prefix)
            || writings.staging().has_chunks_below(prefix)
            || self.finds_name(prefix, |name| {
                array.stored.in_array(name) != ChunkName::Other
            })?)
    }

    /// Whether the object at `key`, which is written in place, may be written only through the keys view: the kernel
    /// has separate pages and a separate length of the object for each view.
    fn is_of_keys_view(&self, view: ViewKind, key: &Key) -> bool {
        let has_keys = self.tree.options.views.contains(&ViewKind::Keys);
        let is_scratch = || (self.tree.writing(view)).is_some_and(|made| made.is_scratch(key));
        has_keys && view != ViewKind::Keys && !is_replaced_whole(key) && !is_scratch()
    }

    /// Whether the store has a name beside the document at `key` that is no document.
    fn has_other_names(&self, key: &Key) -> Result<bool, Error> {
        self.finds_name(&key.parent(), |name| {
            name != key.name() && DocumentName::of(name).is_none() && name != CONTROL
        })
    }

    /// Whether there is an object with a wanted name in `prefix`, or any object below a wanted name. A directory alone
    /// does not count.
    fn finds_object(&self, prefix: &Prefix, wanted: &dyn Fn(&[u8]) -> bool) -> Result<bool, Error> {
        self.finds_entry(prefix, &mut |entry| {
            if entry.kind != EntryKind::Prefix || !wanted(&entry.name) {
                return Ok(wanted(&entry.name));
            }
            let below = prefix.key(&entry.name)?.to_prefix();
            self.finds_object(&below, &|_| true)
        })
    }

    fn finds_name(&self, prefix: &Prefix, wanted: impl Fn(&[u8]) -> bool) -> Result<bool, Error> {
        self.finds_entry(prefix, &mut |entry| Ok(wanted(&entry.name)))
    }

    /// Whether an entry of `prefix` is `wanted`. The entries after the first wanted one are not read.
    fn finds_entry(
        &self,
        prefix: &Prefix,
        wanted: &mut dyn FnMut(&ListEntry) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let (store, start) = (self.tree.store(), Cursor::START);
        let Some(mut listing) = store.list(prefix, start, Detail::Names)? else {
            return Ok(false);
        };
        while let Some(entry) = listing.next_entry()? {
            if wanted(&entry)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The form of a file in a view that shows the store as it is, if its chunks may have to be checked.
    fn checked_form(self: &Arc<Self>, key: &Key) -> Option<Arc<dyn Form>> {
        let is_asked = self.tree.options.writes.checks;
        let writings = self.tree.writings.as_ref();
        let writings = writings.filter(|_| is_asked && is_checked(key))?;
        Some(Arc::new(ChunkForm {
            view: Arc::clone(self),
            key: key.clone(),
            place: None,
            object: ChunkObject::at(writings.staging(), key),
            rules: Rules::of_encoded(self.tree.options.writes),
            is_decoded: false,
        }))
    }

    /// The array that the document at `key` describes in `view`.
    pub(super) fn array_described_by(
        &self,
        view: ViewKind,
        key: &Key,
    ) -> Result<Option<Arc<ShownArray>>, Error> {
        let Some(prefix) = self.tree.hierarchy.described_by(key)? else {
            return Ok(None);
        };
        Ok(self.tree.shown(view, &prefix)?.into_array())
    }

    /// Whether the object at `key` describes a node, or describes an existing array of Zarr before v2.
    fn is_document(&self, key: &Key) -> Result<bool, Error> {
        if is_document(key) || !may_be_old_document(key) {
            return Ok(is_document(key));
        }
        Ok(match self.tree.hierarchy.node(&key.parent())? {
            Node::Array(array) => {
                array.document.key == *key || array.attributes.as_ref() == Some(key)
            }
            Node::Broken(broken) => broken.document.key == *key,
            Node::Group(_) | Node::Implicit => false,
        })
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
    ) -> Result<Option<Arc<dyn Form>>, Error> {
        if array.unwritable.is_some() {
            return Ok(None);
        }
        let object = self.tree.chunk_object(array, &place.indices)?;
        let object = object.ok_or(Error::Stale)?;
        let is_decoded = array.form == FileForm::Decoded;
        let options = &self.tree.options;
        Ok(Some(Arc::new(ChunkForm {
            view: Arc::clone(self),
            key: key.clone(),
            place: Some(place.clone()),
            rules: if is_decoded {
                let presentation = options.presentation(array.view);
                let layout = array.chunked.layout();
                Rules::of_elements((layout, &place.indices), &presentation, options.writes)
            } else {
                Rules::of_encoded(options.writes)
            },
            object,
            is_decoded,
        })))
    }

    /// The file that `name` in the directory `parent` stands for, or would stand for once it is made.
    ///
    /// # Errors
    /// [`Refusal::Fixed`] for names that no file can have, and [`Refusal::OutsideGrid`].
    pub(super) fn place_of(self: &Arc<Self>, parent: &Vnode, name: &[u8]) -> Result<Place, Error> {
        let refused = |refusal| {
            let name = String::from_utf8_lossy(name);
            Err(StoreError::refused(format!("{parent}: {name}"), refusal).into())
        };
        if name == CONTROL {
            return refused(Refusal::Fixed);
        }
        let (view, key, array, found) = match parent {
            Vnode::Prefix { view, path } => {
                let key = path.key(name)?;
                if self.tree.shows_store(*view) {
                    let form = self.checked_form(&key);
                    let kind = form.map_or(NewKind::Stored, NewKind::Formed);
                    return Ok(Place {
                        kind,
                        ..stored(*view, key)
                    });
                }
                if let Err(error) = self.tree.check_directory(*view, &key) {
                    return match self.directory_now(*view, path, error)? {
                        Some(now) => self.place_of(&now, name),
                        None => Err(Error::Stale),
                    };
                }
                let NodeDirectory { resolved, shown } = self.tree.folder(*view, path)?;
                if let Some(form) = self.translated_form(&resolved, name) {
                    return Ok(translated_place(key, form));
                }
                if resolved.replaces(name) {
                    return refused(Refusal::Fixed);
                }
                // The hierarchy of a draft shows only the keys of nodes.
                let is_node_only = resolved.draft().is_some_and(|draft| !draft.path.is_root());
                match self.before_new_names(shown, |array| array.shown.in_array(name))? {
                    ShownNode::Array(array) => {
                        let found = array.shown.in_array(name);
                        (*view, key, array, found)
                    }
                    // A chunk whose array has no document yet could be stored nowhere.
                    ShownNode::Plain if is_node_only && looks_like_a_chunk(name) => {
                        return refused(Refusal::Fixed);
                    }
                    ShownNode::Plain if is_node_only => return Ok(scratch(*view, key)),
                    ShownNode::Plain if is_document(&key) => {
                        return Ok(self.document_place(*view, key));
                    }
                    ShownNode::Plain if self.is_of_keys_view(*view, &key) => {
                        return refused(Refusal::Fixed);
                    }
                    ShownNode::Plain => return Ok(stored(*view, key)),
                    ShownNode::Unusable(_) => return refused(Refusal::Fixed),
                }
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_now(place)?;
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
                let key = array.file_key(&place.indices)?;
                let Some(form) = self.chunk_form(&array, &place, &key)? else {
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
                Ok(self.document_place(view, key))
            }
            // Another document would describe other chunks than those that are stored.
            ChunkName::Other if is_document(&key) => refused(Refusal::Fixed),
            ChunkName::Other if self.tree.hides_lock(&array, name) => Ok(scratch(view, key)),
            ChunkName::Other if self.tree.object_meta(&key)?.is_some() => Ok(stored(view, key)),
            ChunkName::Other => Ok(scratch(view, key)),
        }
    }

    /// If `error` says that the directory at `path` has got another meaning, the directory of chunks that it is now.
    ///
    /// # Errors
    /// `error`, if it says something else.
    pub(super) fn directory_now(
        &self,
        view: ViewKind,
        path: &Prefix,
        error: Error,
    ) -> Result<Option<Vnode>, Error> {
        match error {
            Error::Stale => self.tree.chunk_directory_at(view, path),
            error => Err(error),
        }
    }

    fn document_place(self: &Arc<Self>, view: ViewKind, key: Key) -> Place {
        let kind = NewKind::Formed(self.document_form(view, &key));
        Place {
            kind,
            ..stored(view, key)
        }
    }

    /// The directory of the store that `name` in `parent` would make.
    ///
    /// # Errors
    /// [`Refusal::Fixed`] where no directory can be made.
    pub(super) fn directory_place(&self, parent: &Vnode, name: &[u8]) -> Result<Key, Error> {
        let refused = || {
            let name = String::from_utf8_lossy(name);
            Err(StoreError::refused(format!("{parent}: {name}"), Refusal::Fixed).into())
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
            Vnode::Prefix { view, path } if self.tree.shows_store(*view) => Ok(path.key(name)?),
            Vnode::Prefix { view, path } => {
                if let Err(error) = self.tree.check_directory(*view, &path.key(name)?) {
                    return match self.directory_now(*view, path, error)? {
                        Some(now) => self.directory_place(&now, name),
                        None => Err(Error::Stale),
                    };
                }
                let NodeDirectory { resolved, shown } = self.tree.folder(*view, path)?;
                let shown = self.before_new_names(shown, |_| ChunkName::Directory(Dims::new()))?;
                match (shown, resolved.draft()) {
                    // A directory among the children of a node makes that node a group.
                    (ShownNode::Plain, Some(draft)) => Ok(draft.children()?.key(name)?),
                    (ShownNode::Plain, None) => Ok(path.key(name)?),
                    (ShownNode::Array(array), _) => of_array(&array, array.shown.in_array(name)),
                    (ShownNode::Unusable(_), _) => refused(),
                }
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_now(place)?;
                of_array(&array, array.shown.in_directory(&place.indices, name))
            }
            _ => refused(),
        }
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
    /// The writer that changes the store.
    pub(super) fn writer(&self) -> Result<&DirWriter, Error> {
        let writings = self.writings.as_ref().ok_or(Error::Stale)?;
        Ok(writings.writer())
    }
}

/// A file that exists only in the mount.
fn scratch(view: ViewKind, key: Key) -> Place {
    let kind = NewKind::Scratch;
    Place {
        kind,
        ..stored(view, key)
    }
}

/// A document that is shown in another version than its node has.
fn translated_place(key: Key, form: TranslatedForm) -> Place {
    let vnode = Vnode::Written {
        view: form.kind,
        path: form.path.clone(),
        name: form.name,
    };
    let kind = NewKind::Formed(Arc::new(form));
    Place { vnode, key, kind }
}

/// A file that shows the bytes of its object.
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
