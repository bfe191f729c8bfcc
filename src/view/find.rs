//! Names to vnodes: what a name in a directory means.

use super::View;
use super::folder::{Folder, Role};
use super::names::Name;
use super::options::ViewKind;
use super::shown::{Form, Shown, ShownArray};
use super::vnode::{Attributes, ChunkPlace, Vnode};
use crate::error::Error;
use crate::grid::Dims;
use crate::store::{Prefix, StatKind};

/// The hidden directory at the root of a mount.
pub(super) const CONTROL: &[u8] = b".zarr-mount";
/// What is in it.
pub(super) const STATISTICS: &[u8] = b"stats.json";

pub(super) type FoundVnode = (Vnode, Attributes);

impl View {
    /// The vnode called `name` in `parent`.
    pub(super) fn find(&self, parent: &Vnode, name: &[u8]) -> Result<Option<FoundVnode>, Error> {
        match parent {
            Vnode::Views if name == CONTROL => self.with_attributes(Vnode::Control),
            Vnode::Views => {
                let mut views = self.options.views.iter();
                match views.find(|view| view.name().as_bytes() == name) {
                    Some(&view) => self.with_attributes(Vnode::Prefix {
                        view,
                        path: Prefix::root(),
                    }),
                    None => Ok(None),
                }
            }
            Vnode::Control if name == STATISTICS => self.with_attributes(Vnode::Statistics),
            Vnode::Prefix { view, path } => {
                if self.is_hidden_by_control(path, name) {
                    return self.with_attributes(Vnode::Control);
                }
                if *view == ViewKind::Arrays {
                    return match self.find_plain(path, name)? {
                        Some(vnode) => self.with_attributes(vnode),
                        None => Ok(None),
                    };
                }
                self.find_in_folder(&self.folder(*view, path)?, name)
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.array_of(place)?;
                let found = array.shown.in_directory(&place.indices, name);
                if array.form != Form::Stored && found != Name::Other {
                    return self.find_chunk(place.view, &array, found);
                }
                let Some(directory) = array.directory_of_same_name(&place.indices)? else {
                    return Ok(None);
                };
                let stored = self.find_stored(place.view, &directory, name)?;
                Ok(stored.map(|stored| as_chunk(place.view, &array, found, stored)))
            }
            _ => Ok(None),
        }
    }

    /// Whether `name` in `prefix` is where the daemon's own directory is.
    pub(super) fn is_hidden_by_control(&self, prefix: &Prefix, name: &[u8]) -> bool {
        name == CONTROL && prefix.is_root() && self.options.views.len() == 1
    }

    fn with_attributes(&self, vnode: Vnode) -> Result<Option<FoundVnode>, Error> {
        let attributes = self.attributes_of(&vnode)?;
        Ok(attributes.map(|attributes| (vnode, attributes)))
    }

    fn find_in_folder(&self, folder: &Folder, name: &[u8]) -> Result<Option<FoundVnode>, Error> {
        let view = folder.view;
        if let Some(vnode) = self.generated(folder, name)? {
            return self.with_attributes(vnode);
        }
        if let Shown::Array(array) = &folder.shown
            && array.form != Form::Stored
        {
            let found = array.shown.in_array(name);
            if found != Name::Other {
                return self.find_chunk(view, array, found);
            }
        }
        if let Some(child) = self.draft_child(folder, name)? {
            return self.with_attributes(Vnode::Prefix { view, path: child });
        }
        let stored = match self.role_of(folder, name)? {
            Role::Hidden | Role::Renamed(_) => return Ok(None),
            Role::Edited(key) => {
                let document = self.with_attributes(Vnode::Document { view, key })?;
                if document.is_some() {
                    return Ok(document);
                }
                // A directory of that name is none.
                self.find_stored(view, &folder.path, name)?
            }
            Role::AsStored => self.find_stored(view, &folder.path, name)?,
        };
        Ok(match (&folder.shown, stored) {
            (_, Some((Vnode::Prefix { .. }, _))) if folder.draft().is_some() => None,
            (Shown::Array(array), Some(stored)) if array.form == Form::Stored => {
                Some(as_chunk(view, array, array.shown.in_array(name), stored))
            }
            (_, stored) => stored,
        })
    }

    /// A key that nothing owns, as it is stored.
    fn find_stored(
        &self,
        view: ViewKind,
        prefix: &Prefix,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        let key = prefix.key(name)?;
        let Some(stat) = self.stat(&key)? else {
            return Ok(None);
        };
        let vnode = match stat.kind {
            StatKind::Object => Vnode::Object { view, key },
            StatKind::Prefix => Vnode::Prefix {
                view,
                path: key.to_prefix(),
            },
        };
        Ok(Some((vnode, self.plain(&stat))))
    }

    /// A directory of chunks, or a chunk, of an array that is not shown as stored.
    fn find_chunk(
        &self,
        view: ViewKind,
        array: &ShownArray,
        name: Name,
    ) -> Result<Option<FoundVnode>, Error> {
        let found = match name {
            Name::Directory(first) => {
                let attributes = self.chunk_directory(array, &first)?;
                let place = chunk_place(view, array, first);
                attributes.map(|attributes| (Vnode::ChunkDirectory(place), attributes))
            }
            // Leftovers of a resize are owned by the array, and not shown.
            Name::Chunk(indices) if array.grid().contains(&indices) => {
                let stored = self.loader.stat_stored(&array.chunked, &indices)?;
                let attributes = self.chunk(array, &indices, stored)?;
                let place = chunk_place(view, array, indices);
                attributes.map(|attributes| (Vnode::Chunk(place), attributes))
            }
            Name::Chunk(_) | Name::Other => None,
        };
        if found.is_none() {
            // It may be absent from another array than the one that is there by now.
            self.check_current(array)?;
        }
        Ok(found)
    }
}

/// The place of a chunk or of a directory of chunks.
pub(super) fn chunk_place(view: ViewKind, array: &ShownArray, indices: Dims) -> ChunkPlace {
    ChunkPlace {
        view,
        path: array.path.clone(),
        identity: array.node.chunk_identity,
        indices,
    }
}

/// What was found in the store, as [`stored_vnode`] has it.
fn as_chunk(view: ViewKind, array: &ShownArray, name: Name, stored: FoundVnode) -> FoundVnode {
    let (found, attributes) = stored;
    (stored_vnode(view, array, name, found), attributes)
}

/// `found` in an array that is shown as stored, as a chunk where it is one of the grid.
pub(super) fn stored_vnode(view: ViewKind, array: &ShownArray, name: Name, found: Vnode) -> Vnode {
    match (name, &found) {
        (Name::Directory(first), Vnode::Prefix { .. }) if array.has_directory(&first) => {
            Vnode::ChunkDirectory(chunk_place(view, array, first))
        }
        (Name::Chunk(indices), Vnode::Object { .. }) if array.grid().contains(&indices) => {
            Vnode::Chunk(chunk_place(view, array, indices))
        }
        _ => found,
    }
}
