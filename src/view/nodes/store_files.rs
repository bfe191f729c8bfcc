//! Zip files and sets of references in a directory of stores, which are directories in the chunks and arrays views.
//!
//! Such a file is an object, and there are also keys below it
//! ([`NestedStores`](crate::store::NestedStores)). It is shown as a directory only if no node is above it,
//! because the children of a group are those of its own store.

use crate::error::Error;
use crate::hierarchy::Node;
use crate::store::{ObjectMeta, may_be_store_file};
use crate::view::nodes::directory::NodeDirectory;
use crate::view::options::ViewKind;
use crate::view::tree::Tree;

impl Tree {
    /// The attributes of the directory that stands for the stored object `name` in `folder`;
    /// `None` if the object is shown as a file, or does not exist.
    pub(in crate::view) fn store_directory(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
    ) -> Result<Option<ObjectMeta>, Error> {
        // The cheap checks come first, because the next one reads the file.
        if folder.resolved.view == ViewKind::Keys
            || !may_be_store_file(name)
            || !matches!(folder.resolved.node, Node::Implicit)
        {
            return Ok(None);
        }
        let Some(meta) = self.stat_below(folder, name)? else {
            return Ok(None);
        };
        for ancestor in folder.resolved.path.with_ancestors() {
            if !matches!(self.hierarchy.node(&ancestor)?, Node::Implicit) {
                return Ok(None);
            }
        }
        Ok(Some(meta))
    }

    /// Whether `name` in `folder` is a file that has keys below it, but is shown only as a file.
    pub(in crate::view) fn is_closed_store(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
    ) -> Result<bool, Error> {
        // A store without directories does not look into files in a hierarchy, so that it need not be asked.
        let is_never = !self.store().profile().has_directories
            && !matches!(folder.resolved.node, Node::Implicit);
        Ok(may_be_store_file(name)
            && !is_never
            && self.stat_below(folder, name)?.is_some()
            && self.store_directory(folder, name)?.is_none())
    }

    /// The attributes of the directory of the keys below the object `name` in `folder`.
    fn stat_below(&self, folder: &NodeDirectory, name: &[u8]) -> Result<Option<ObjectMeta>, Error> {
        let Ok(key) = folder.resolved.path.key(name) else {
            return Ok(None);
        };
        Ok(self.stat(&key)?.and_then(|stat| stat.below))
    }
}
