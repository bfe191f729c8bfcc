//! Files and directories by their paths, for callers other than the kernel, which keeps numbers.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use glob::Pattern;

use super::vnode::Vnode;
use super::{
    Directory, DirectoryEntry, OpenedVnode, View, ViewKind, VnodeAttributes, VnodeId, VnodeKind,
};
use crate::error::Error;
use crate::store::Prefix;

/// A file or directory of a view. Its number is known until this is dropped.
pub struct HeldVnode {
    pub(super) view: Arc<View>,
    pub(super) id: VnodeId,
    kind: VnodeKind,
}

impl View {
    /// The file or directory at `path`, whose names are separated by slashes; the root at an empty path. `None` if there
    /// is nothing.
    ///
    /// # Errors
    /// [`Error`], also when a name exists but cannot be examined.
    pub fn find_path(self: &Arc<Self>, path: &[u8]) -> Result<Option<HeldVnode>, Error> {
        let mut found = HeldVnode {
            view: Arc::clone(self),
            id: VnodeId::ROOT,
            kind: VnodeKind::Directory,
        };
        for name in path.split(|&byte| byte == b'/') {
            if name.is_empty() {
                continue;
            }
            if found.kind != VnodeKind::Directory {
                return Ok(None);
            }
            match found.child(name)? {
                Some(child) => found = child,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

impl HeldVnode {
    /// Whether it is a directory or a file.
    pub fn kind(&self) -> VnodeKind {
        self.kind
    }

    /// The child called `name`; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`View::lookup`].
    pub fn child(&self, name: &[u8]) -> Result<Option<HeldVnode>, Error> {
        let found = self.view.lookup(self.id, name)?;
        Ok(found.map(|found| HeldVnode {
            view: Arc::clone(&self.view),
            id: found.id,
            kind: found.attributes.kind,
        }))
    }

    /// The child that was listed as `entry`.
    #[must_use]
    pub fn listed(&self, entry: &DirectoryEntry) -> HeldVnode {
        HeldVnode {
            view: Arc::clone(&self.view),
            id: self.view.refer(entry),
            kind: entry.kind,
        }
    }

    /// The patterns of [`ArrayOptions::only`](super::ArrayOptions::only) that surely select no array of this directory, nor of
    /// those below it. Examines a bounded part of the store, until `deadline` at most.
    pub fn patterns_without_array(&self, deadline: Instant) -> Vec<Pattern> {
        let start = match self.view.vnode(self.id) {
            Ok(Vnode::Views) => Prefix::root(),
            Ok(Vnode::Prefix {
                view: ViewKind::Arrays,
                path,
            }) => path,
            // No pattern has an effect on other files and directories.
            _ => return Vec::new(),
        };
        self.view.arrays.patterns_without_array(&start, deadline)
    }

    /// The attributes that `stat` shows; `None` if it no longer exists.
    ///
    /// # Errors
    /// Those of [`View::attributes`].
    pub fn attributes(&self) -> Result<Option<VnodeAttributes>, Error> {
        self.view.attributes(self.id)
    }

    /// Whether the fingerprint in its attributes stands for one version, without the number of the snapshot that only an
    /// open file has ([`OpenFile::snapshot`](super::OpenFile::snapshot)).
    pub fn has_fingerprint(&self) -> bool {
        self.view.tree.options.freshness.is_immutable()
            || !matches!(self.view.vnode(self.id), Ok(Vnode::Plain(_)) | Err(_))
    }

    /// Opens the file; `None` if it no longer exists.
    ///
    /// # Errors
    /// Those of [`View::open`].
    pub fn open(&self) -> Result<Option<OpenedVnode>, Error> {
        self.view.open(self.id)
    }

    /// Opens the directory; `None` if it no longer exists.
    ///
    /// # Errors
    /// Those of [`View::open_directory`].
    pub fn list(&self) -> Result<Option<Directory>, Error> {
        self.view.open_directory(self.id)
    }
}

impl Drop for HeldVnode {
    fn drop(&mut self) {
        // The number of the root is not counted, so it is never released.
        if self.id != VnodeId::ROOT {
            self.view.forget(self.id, 1);
        }
    }
}

impl fmt::Debug for HeldVnode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldVnode").field(&self.id).finish()
    }
}
