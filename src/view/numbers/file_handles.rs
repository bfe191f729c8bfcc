//! Vnodes by their numbers alone, for the file handles of NFS clients and of `open_by_handle_at`. The kernel may have
//! forgotten the inode since the handle was made.

use crate::error::Error;
use crate::store::Prefix;
use crate::view::lookup::FoundVnode;
use crate::view::options::ViewKind;
use crate::view::vnode::{ChunkPlace, Vnode, VnodeId};
use crate::view::{LookupResult, View};

impl View {
    /// The vnode that a number stood for at any time, with a reference as by [`View::lookup`]. `None` when it no longer
    /// exists.
    ///
    /// # Errors
    /// [`Error::Stale`] when the number was never used, or is no longer remembered.
    pub fn recall(&self, id: VnodeId) -> Result<Option<LookupResult>, Error> {
        if id == VnodeId::ROOT {
            let attributes = self.attributes(id)?;
            return Ok(attributes.map(|attributes| LookupResult { id, attributes }));
        }
        let vnode = self.tree.numbers.recall(id).ok_or(Error::Stale)?;
        let attributes = self.attributes_of(&vnode);
        if !matches!(attributes, Ok(Some(_))) {
            self.forget(id, 1);
        }
        Ok(attributes?.map(|attributes| LookupResult { id, attributes }))
    }

    /// The directory that a directory is in, with a reference as by [`View::lookup`]. `None` when it
    /// no longer exists, and for files.
    ///
    /// # Errors
    /// [`Error`], as [`View::lookup`].
    pub fn parent(&self, id: VnodeId) -> Result<Option<LookupResult>, Error> {
        let found = match self.vnode(id)? {
            Vnode::Views | Vnode::Control => self.walk(None, &Prefix::root())?,
            Vnode::Prefix { view, path } => match path.to_key() {
                Some(key) => self.walk(Some(view), &key.parent())?,
                None => self.walk(None, &path)?,
            },
            Vnode::ChunkDirectory(place) => self.parent_of_chunks(&place)?,
            _ => None,
        };
        Ok(found.map(|(vnode, attributes)| {
            let id = if self.is_root(&vnode) {
                VnodeId::ROOT
            } else {
                self.tree.numbers.refer(&vnode)
            };
            LookupResult { id, attributes }
        }))
    }

    fn parent_of_chunks(&self, place: &ChunkPlace) -> Result<Option<FoundVnode>, Error> {
        let names = self.tree.array_of(place)?.shown;
        match place.indices.split_last() {
            Some((_, first)) if !first.is_empty() || names.root().is_some() => self
                .with_attributes(Vnode::ChunkDirectory(ChunkPlace {
                    indices: first.into(),
                    ..place.clone()
                })),
            _ => self.walk(Some(place.view), &place.path),
        }
    }

    /// The directory at `path` of a view, or the root of the mount if there is no view. It is found name by name, as the
    /// kernel does, because the path does not show which kind of vnode the directory is.
    fn walk(&self, view: Option<ViewKind>, path: &Prefix) -> Result<Option<FoundVnode>, Error> {
        let root = match view {
            Some(view) => Vnode::Prefix {
                view,
                path: Prefix::root(),
            },
            None => self.vnode(VnodeId::ROOT)?,
        };
        let mut found = self.with_attributes(root)?;
        let names = path.as_bytes().split(|&byte| byte == b'/');
        for name in names.filter(|name| !name.is_empty()) {
            let Some((parent, _)) = found else { break };
            found = self.find(&parent, name)?;
        }
        Ok(found)
    }

    fn is_root(&self, vnode: &Vnode) -> bool {
        self.vnode(VnodeId::ROOT).is_ok_and(|root| root == *vnode)
    }
}
