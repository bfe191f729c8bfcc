//! Names to vnodes: what a name in a directory means.

use super::View;
use super::names::Name;
use super::options::ViewKind;
use super::shown::{Form, Role, Shown, ShownArray, Unusable, looks_like_a_chunk};
use super::vnode::{Attributes, ChunkPlace, Vnode};
use crate::error::Error;
use crate::grid::Dims;
use crate::hierarchy::Node;
use crate::metadata::{DocumentName, ZarrFormat};
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
                        prefix: Prefix::root(),
                    }),
                    None => Ok(None),
                }
            }
            Vnode::Control if name == STATISTICS => self.with_attributes(Vnode::Statistics),
            Vnode::Prefix { view, prefix } => {
                if self.is_hidden_by_control(prefix, name) {
                    return self.with_attributes(Vnode::Control);
                }
                match self.shown(*view, prefix)? {
                    Shown::Plain => self.find_plain(*view, prefix, name),
                    Shown::Array(array) => self.find_in_array(*view, &array, name),
                    Shown::Unusable(unusable) => {
                        self.find_in_unusable(*view, prefix, &unusable, name)
                    }
                }
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.array_of(place)?;
                let found = array.names.in_directory(&place.indices, name);
                if array.form != Form::Stored && found != Name::Other {
                    return self.find_chunk(place.view, &array, found);
                }
                let directory = array.names.directory_key(&place.indices);
                let directory = array.node.prefix.key(&directory)?.to_prefix();
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

    /// A name in a group, or in a directory that is no node.
    fn find_plain(
        &self,
        view: ViewKind,
        prefix: &Prefix,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        if self.is_edited(prefix, name)? {
            let key = prefix.key(name)?;
            return self.with_attributes(Vnode::Document { view, key });
        }
        self.find_stored(view, prefix, name)
    }

    /// Whether `name` in a group is a document that may hold copies of others.
    pub(super) fn is_edited(&self, prefix: &Prefix, name: &[u8]) -> Result<bool, Error> {
        Ok(match DocumentName::of(name) {
            Some(DocumentName::ZMetadata) => true,
            Some(DocumentName::ZarrJson) => {
                matches!(
                    self.hierarchy.node(prefix)?,
                    Node::Group(group) if group.format == ZarrFormat::V3
                )
            }
            _ => false,
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
                prefix: key.to_prefix(),
            },
        };
        Ok(Some((vnode, self.plain(&stat))))
    }

    fn find_in_array(
        &self,
        view: ViewKind,
        array: &ShownArray,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        match array.role_of(name)? {
            Some(Role::Hidden) => return Ok(None),
            Some(Role::Edited(key)) => return self.with_attributes(Vnode::Document { view, key }),
            None => {}
        }
        let found = array.names.in_array(name);
        if array.form != Form::Stored && found != Name::Other {
            return self.find_chunk(view, array, found);
        }
        let stored = self.find_stored(view, &array.node.prefix, name)?;
        Ok(stored.map(|stored| as_chunk(view, array, found, stored)))
    }

    /// A directory of chunks, or a chunk, of an array that is not shown as stored.
    fn find_chunk(
        &self,
        view: ViewKind,
        array: &ShownArray,
        name: Name,
    ) -> Result<Option<FoundVnode>, Error> {
        match name {
            Name::Directory(first) => {
                let attributes = self.chunk_directory(array, &first)?;
                let place = chunk_place(view, array, first);
                Ok(attributes.map(|attributes| (Vnode::ChunkDirectory(place), attributes)))
            }
            // Leftovers of a resize are owned by the array, and not shown.
            Name::Chunk(indices) if array.grid().contains(&indices) => {
                let stored = array.reader.stat_stored(&indices)?;
                let attributes = self.chunk(array, &indices, stored)?;
                let place = chunk_place(view, array, indices);
                Ok(attributes.map(|attributes| (Vnode::Chunk(place), attributes)))
            }
            Name::Chunk(_) | Name::Other => Ok(None),
        }
    }

    fn find_in_unusable(
        &self,
        view: ViewKind,
        prefix: &Prefix,
        unusable: &Unusable,
        name: &[u8],
    ) -> Result<Option<FoundVnode>, Error> {
        if let Some(vnode) = self.generated(view, prefix, unusable, name)? {
            return self.with_attributes(vnode);
        }
        if self.leaves_out(prefix, unusable, name)? {
            return Ok(None);
        }
        self.find_plain(view, prefix, name)
    }

    /// Whether the stored `name` is left out beside what cannot be shown. Where the document does
    /// not even tell the names of chunks, whatever could be one is: its bytes are encoded, and
    /// its reader expects them decoded. Nodes stay; a group may have children called `0` and `1`.
    pub(super) fn leaves_out(
        &self,
        prefix: &Prefix,
        unusable: &Unusable,
        name: &[u8],
    ) -> Result<bool, Error> {
        if unusable.hides(name) {
            return Ok(true);
        }
        if unusable.names.is_some() || !looks_like_a_chunk(name) {
            return Ok(false);
        }
        let child = prefix.key(name)?.to_prefix();
        Ok(matches!(self.hierarchy.node(&child)?, Node::Implicit))
    }

    /// The generated file called `name` beside what cannot be shown.
    fn generated(
        &self,
        view: ViewKind,
        prefix: &Prefix,
        unusable: &Unusable,
        name: &[u8],
    ) -> Result<Option<Vnode>, Error> {
        for (generated, vnode) in self.generated_names(view, prefix, unusable)? {
            if generated == name {
                return Ok(Some(vnode));
            }
        }
        Ok(None)
    }

    /// The names of `ERROR.txt` and of the renamed document; neither hides a stored key.
    pub(super) fn generated_names(
        &self,
        view: ViewKind,
        prefix: &Prefix,
        unusable: &Unusable,
    ) -> Result<[(Vec<u8>, Vnode); 2], Error> {
        let note = Vnode::ErrorNote {
            view,
            prefix: prefix.clone(),
        };
        let key = unusable.document.key.clone();
        let renamed = [key.name(), b".unsupported"].concat();
        Ok([
            (self.free_name(prefix, b"ERROR.txt".to_vec())?, note),
            (
                self.free_name(prefix, renamed)?,
                Vnode::Unsupported { view, key },
            ),
        ])
    }

    /// `name`, or `name` with as many `~` behind it as keep it from hiding a stored key.
    fn free_name(&self, prefix: &Prefix, mut name: Vec<u8>) -> Result<Vec<u8>, Error> {
        while self.stat(&prefix.key(&name)?)?.is_some() {
            name.push(b'~');
        }
        Ok(name)
    }
}

/// The place of a chunk or of a directory of chunks.
pub(super) fn chunk_place(view: ViewKind, array: &ShownArray, indices: Dims) -> ChunkPlace {
    ChunkPlace {
        view,
        prefix: array.node.prefix.clone(),
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
