//! Zip stores in a directory of stores, which are directories in the chunks and arrays views.
//!
//! Such a file is an object, and the store has keys below it too
//! ([`NestedZips`](crate::store::NestedZips)). It is shown as a directory only where no node is
//! above it: a group has no children that its store does not have.

use crate::error::Error;
use crate::hierarchy::Node;
use crate::store::{ObjectMeta, is_named_as_zip};
use crate::view::nodes::directory::NodeDirectory;
use crate::view::options::ViewKind;
use crate::view::tree::Tree;

impl Tree {
    /// The attributes of the directory as which the stored object `name` in `folder` is shown;
    /// `None` if it is shown as a file, or does not exist.
    pub(in crate::view) fn zip_directory(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
    ) -> Result<Option<ObjectMeta>, Error> {
        if folder.resolved.view == ViewKind::Keys || !is_named_as_zip(name) {
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
    pub(in crate::view) fn is_closed_zip(
        &self,
        folder: &NodeDirectory,
        name: &[u8],
    ) -> Result<bool, Error> {
        Ok(is_named_as_zip(name)
            && self.stat_below(folder, name)?.is_some()
            && self.zip_directory(folder, name)?.is_none())
    }

    /// The attributes of the directory of the keys below the object `name` in `folder`.
    fn stat_below(&self, folder: &NodeDirectory, name: &[u8]) -> Result<Option<ObjectMeta>, Error> {
        let Ok(key) = folder.resolved.path.key(name) else {
            return Ok(None);
        };
        Ok(self.stat(&key)?.and_then(|stat| stat.below))
    }
}
