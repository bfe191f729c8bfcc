//! Lookup: from a name in a directory to a vnode.

use crate::error::Error;
use crate::grid::Dims;
use crate::hierarchy::Node;
use crate::store::{Key, Prefix, StatKind};
use crate::view::View;
use crate::view::chunks::names::ChunkName;
use crate::view::nodes::damaged::NameUse;
use crate::view::nodes::directory::{NameRole, NodeDirectory};
use crate::view::nodes::node::{FileForm, ShownArray, ShownNode};
use crate::view::options::ViewKind;
use crate::view::tree::Tree;
use crate::view::vnode::{CONTROL, ChunkPlace, Vnode, VnodeAttributes};

/// The file of the counters, in the daemon's own directory like the following ones.
pub(in crate::view) const STATISTICS: &[u8] = b"stats.json";
/// The file of the same counters for Prometheus.
pub(in crate::view) const METRICS: &[u8] = b"metrics";
pub(in crate::view) const LOG: &[u8] = b"log";
/// The file with a description of the state that the store shows now, if its states have names.
pub(in crate::view) const SNAPSHOT: &[u8] = b"snapshot";
pub(in crate::view) const SYNC: &[u8] = b"sync";
pub(in crate::view) const REFUSED: &[u8] = b"refused";

pub(in crate::view) type FoundVnode = (Vnode, VnodeAttributes);

impl View {
    /// The vnode called `name` in `parent`.
    pub(in crate::view) fn find(
        &self,
        parent: &Vnode,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        if name == CONTROL {
            return match parent {
                Vnode::Views => self.with_attributes(Vnode::Control),
                Vnode::Prefix { path, .. } if path.is_root() && self.tree.has_one_view() => {
                    self.with_attributes(Vnode::Control)
                }
                // In the store, a directory of this name has the files of a writer, which are not shown.
                _ => Ok(None),
            };
        }
        match parent {
            Vnode::Views => {
                let mut views = self.tree.options.views.iter();
                match views.find(|view| view.name().as_bytes() == name) {
                    Some(&view) => self.with_attributes(Vnode::Prefix {
                        view,
                        path: Prefix::root(),
                    }),
                    None => Ok(None),
                }
            }
            Vnode::Control if name == SYNC && self.tree.is_writable() => {
                self.with_attributes(Vnode::Sync)
            }
            Vnode::Control if name == REFUSED && self.tree.is_writable() => {
                self.with_attributes(Vnode::Refused)
            }
            Vnode::Control if name == STATISTICS => self.with_attributes(Vnode::Statistics),
            Vnode::Control if name == METRICS => self.with_attributes(Vnode::Metrics),
            Vnode::Control if name == LOG => self.with_attributes(Vnode::Log),
            Vnode::Control if name == SNAPSHOT => self.with_attributes(Vnode::Snapshot),
            Vnode::Prefix { view, path } => {
                if self.tree.shows_store(*view) {
                    return self.tree.find_stored(*view, path, name);
                }
                if *view == ViewKind::Arrays {
                    let find = || {
                        let vnode = self.arrays.find_plain(path, name)?;
                        vnode.map_or(Ok(None), |vnode| self.with_attributes(vnode))
                    };
                    let mut found = find()?;
                    // A program may have made the array just now.
                    let may_change = !self.tree.options.freshness.is_immutable();
                    if found.is_none() && may_change && self.tree.loader.is_local() {
                        found = self.tree.looking_now(find)?;
                    }
                    if found.is_none() {
                        self.arrays.check_undamaged(path, name)?;
                    }
                    return Ok(found);
                }
                if let Some(found) = self.find_scratch(*view, path, name)? {
                    return Ok(Some(found));
                }
                match self.find_in_folder(&self.tree.folder(*view, path)?, name) {
                    Ok(None) => {
                        let path = path.key(name)?.to_prefix();
                        self.tree.check_no_array_before(*view, &path)?;
                        Ok(None)
                    }
                    Err(error) => match self.directory_now(*view, path, error)? {
                        Some(now) => self.find(&now, name),
                        None => Err(Error::Stale),
                    },
                    found => found,
                }
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                let directory = array.stored_prefix(&place.indices)?;
                if let Some(found) = self.find_scratch(place.view, &directory, name)? {
                    return Ok(Some(found));
                }
                let found = array.shown.in_directory(&place.indices, name);
                if array.form != FileForm::Stored && found != ChunkName::Other
                    || self.tree.is_untold(&array, &found)
                {
                    return self.tree.find_chunk(&array, found);
                }
                if self.tree.hides_lock(&array, name) {
                    return Ok(None);
                }
                let Some(directory) = array.directory_of_same_name(&place.indices)? else {
                    return Ok(None);
                };
                let look = || match found {
                    ChunkName::Chunk(_) => {
                        let key = directory.key(name)?;
                        self.tree
                            .asking_anew(&array, || self.tree.find_stored_object(place.view, key))
                    }
                    _ => self.tree.find_stored(place.view, &directory, name),
                };
                let stored = self.tree.found_in_array(&array, &found, look)?;
                Ok(stored.map(|(stored, attributes)| {
                    (self.tree.stored_vnode(&array, found, stored), attributes)
                }))
            }
            _ => Ok(None),
        }
    }

    /// The file `name` in `directory` that is in the mount, and not in the store.
    fn find_scratch(
        &self,
        view: ViewKind,
        directory: &Prefix,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        let Some(writing) = self.tree.writing(view) else {
            return Ok(None);
        };
        let key = directory.key(name)?;
        if !writing.is_scratch(&key) {
            return Ok(None);
        }
        self.with_attributes(Vnode::Object { view, key })
    }

    pub(in crate::view) fn with_attributes(
        &self,
        vnode: Vnode,
    ) -> Result<Option<FoundVnode>, Error> {
        let attributes = self.attributes_of(&vnode)?;
        Ok(attributes.map(|attributes| (vnode, attributes)))
    }

    fn find_in_folder(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        let view = folder.resolved.view;
        if let Some(vnode) = self.tree.generated(folder, name)? {
            return self.with_attributes(vnode);
        }
        if let ShownNode::Unusable(_) = &folder.shown {
            self.tree.check_undamaged(folder, name, NameUse::Found)?;
        }
        if let ShownNode::Array(array) = &folder.shown {
            let found = array.shown.in_array(name);
            if array.form != FileForm::Stored && found != ChunkName::Other
                || self.tree.is_untold(array, &found)
            {
                return self.tree.find_chunk(array, found);
            }
            if self.tree.hides_lock(array, name) {
                return Ok(None);
            }
        }
        if let Some(meta) = self.tree.store_directory(folder, name)? {
            let path = folder.resolved.path.key(name)?.to_prefix();
            let attributes = self.tree.directory(&meta);
            return Ok(Some((Vnode::Prefix { view, path }, attributes)));
        }
        if let Some(child) = self.tree.draft_child(folder, name)? {
            return self.with_attributes(Vnode::Prefix { view, path: child });
        }
        let stored = match self.tree.role_of(folder, name)? {
            NameRole::Hidden | NameRole::Renamed(_) => return Ok(None),
            NameRole::Edited(key) => {
                let document = self.with_attributes(Vnode::Document { view, key })?;
                if document.is_some() {
                    return Ok(document);
                }
                // The key is a directory with the name of a document.
                self.tree.find_stored(view, &folder.resolved.path, name)?
            }
            NameRole::AsStored => {
                let look = || self.tree.find_stored(view, &folder.resolved.path, name);
                match &folder.shown {
                    ShownNode::Array(array) => {
                        let found = array.shown.in_array(name);
                        self.tree.found_in_array(array, &found, look)?
                    }
                    _ => look()?,
                }
            }
        };
        if !matches!(folder.shown, ShownNode::Array(_)) {
            let key = folder.resolved.path.key(name)?;
            match &stored {
                Some((Vnode::Object { .. }, _)) => self.tree.check_plain(view, &key)?,
                None => {
                    if self.tree.depends_on_documents(view)
                        && matches!(folder.resolved.node, Node::Broken(_))
                    {
                        self.tree.check_undamaged(folder, name, NameUse::Absent)?;
                    }
                    self.tree.check_absent(view, &key)?;
                }
                // A name below a directory is checked when it is found.
                Some(_) => {}
            }
        }
        Ok(match (&folder.shown, stored) {
            (ShownNode::Array(_), None) => None,
            (_, None) if folder.resolved.draft().is_none() => {
                let path = folder.resolved.path.key(name)?.to_prefix();
                let meta = self.tree.stat_untold(&path)?;
                meta.map(|meta| (Vnode::Prefix { view, path }, self.tree.directory(&meta)))
            }
            (_, Some((Vnode::Prefix { .. }, _))) if folder.resolved.draft().is_some() => None,
            (ShownNode::Array(array), Some((stored, attributes)))
                if array.form == FileForm::Stored =>
            {
                let name = array.shown.in_array(name);
                let vnode = self.tree.stored_vnode(array, name, stored);
                Some((vnode, attributes))
            }
            (_, stored) => stored,
        })
    }
}

impl Tree {
    /// Whether the mount shows one view, at its root.
    fn has_one_view(&self) -> bool {
        self.options.views.len() == 1
    }

    /// Like [`Tree::find_stored`], of a key that is likely to be an object. In a store without directories, it
    /// takes another request to find out whether the key is a prefix. That is sent only if there is no object.
    fn find_stored_object(&self, view: ViewKind, key: Key) -> Result<Option<FoundVnode>, Error> {
        let sources = self.sources_of(view);
        if sources.store().profile().has_directories {
            return self.find_stored(view, &key.parent(), key.name());
        }
        match sources.stat(&key)? {
            Some(meta) => Ok(Some((Vnode::Object { view, key }, self.object(&meta)))),
            None => self.find_stored(view, &key.parent(), key.name()),
        }
    }

    /// The vnode of a stored key that is shown as it is stored.
    fn find_stored(
        &self,
        view: ViewKind,
        prefix: &Prefix,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        let key = prefix.key(name)?;
        let stat = self.sources_of(view).store().stat(&key)?;
        if let Some(writing) = self.writing(view)
            && stat.is_none_or(|stat| stat.kind == StatKind::Object)
        {
            let shown = self.written_file(writing.shown(&key, stat.map(|stat| stat.meta))?);
            return Ok(shown.map(|shown| (Vnode::Object { view, key }, shown)));
        }
        let Some(stat) = stat else {
            return Ok(None);
        };
        Ok(Some(match stat.kind {
            StatKind::Object => (Vnode::Object { view, key }, self.object(&stat.meta)),
            StatKind::Prefix => {
                let path = key.to_prefix();
                (Vnode::Prefix { view, path }, self.directory(&stat.meta))
            }
        }))
    }

    /// Whether `name` in a directory of `array` is a lock file of this mount in the store, which is hidden if chunks
    /// have other names in the store: the file of this name is then the lock of another chunk, or of a shard.
    pub(in crate::view) fn hides_lock(&self, array: &ShownArray, name: &[u8]) -> bool {
        let writing = self.writings.as_ref();
        array.form != FileForm::Stored
            && writing.is_some_and(|writing| writing.writer().is_lock(name))
    }

    /// Whether `name` is that of a directory of chunks of an array that is shown as stored, in a store without
    /// directories. The store would have to list names to find out whether it exists.
    fn is_untold(&self, array: &ShownArray, name: &ChunkName) -> bool {
        let is_directory =
            matches!(name, ChunkName::Directory(first) if array.has_directory(first));
        let store = self.sources_of(array.view).store();
        is_directory && array.form == FileForm::Stored && !store.profile().has_directories
    }

    /// `found` as a chunk, or as a directory of chunks, if it is in the grid of `array`, which is shown as stored.
    pub(in crate::view) fn stored_vnode(
        &self,
        array: &ShownArray,
        name: ChunkName,
        found: Vnode,
    ) -> Vnode {
        let is_directory = matches!(found, Vnode::Prefix { .. });
        let is_object = matches!(found, Vnode::Object { .. });
        match name {
            ChunkName::Directory(first) if array.has_directory(&first) => {
                if is_directory {
                    return Vnode::ChunkDirectory(array.place(first));
                }
                self.numbers.note_others(array.view, &array.path);
            }
            ChunkName::Chunk(indices) if array.grid().contains(&indices) => {
                if is_object {
                    return Vnode::Chunk(array.place(indices));
                }
                self.numbers.note_others(array.view, &array.path);
            }
            _ => {}
        }
        found
    }

    /// The vnode of a chunk, or of a directory of chunks, of an array.
    fn find_chunk(&self, array: &ShownArray, name: ChunkName) -> Result<Option<FoundVnode>, Error> {
        let look = || match &name {
            ChunkName::Directory(first) => self.chunk_directory(array, first),
            ChunkName::Chunk(indices) => self.asking_anew(array, || self.chunk(array, indices)),
            ChunkName::Other => Ok(None),
        };
        let attributes = self.found_in_array(array, &name, look)?;
        Ok(attributes
            .zip(array.vnode(name))
            .map(|(attributes, vnode)| (vnode, attributes)))
    }
}

impl ShownArray {
    /// The place of a chunk, or of a directory of chunks.
    pub(in crate::view) fn place(&self, indices: Dims) -> ChunkPlace {
        ChunkPlace {
            view: self.view,
            path: self.path.clone(),
            identity: self.node.chunk_identity,
            indices,
        }
    }

    /// The vnode of the chunk, or of the directory of chunks, that is called `name`.
    fn vnode(&self, name: ChunkName) -> Option<Vnode> {
        match name {
            ChunkName::Directory(first) => Some(Vnode::ChunkDirectory(self.place(first))),
            ChunkName::Chunk(indices) => Some(Vnode::Chunk(self.place(indices))),
            ChunkName::Other => None,
        }
    }

    /// Name and vnode of the chunk `indices`, or of the directory of the chunks that begin with
    /// `indices`.
    pub(in crate::view) fn entry(&self, indices: Dims) -> (Vec<u8>, Vnode) {
        let name = self.shown.name_of(&indices);
        let vnode = if indices.len() == self.grid().rank() {
            Vnode::Chunk(self.place(indices))
        } else {
            Vnode::ChunkDirectory(self.place(indices))
        };
        (name, vnode)
    }
}
