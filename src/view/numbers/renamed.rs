//! Numbers of vnodes that were renamed, replaced or removed. The kernel keeps the inode of a file that it has renamed,
//! and of a file that it has open after its name was removed.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use lru::LruCache;

use super::interned::Interned;
use super::{FIRST_INTERNED, MOST_REMOVED, VnodeNumbers};
use crate::store::Key;
use crate::view::options::ViewKind;
use crate::view::vnode::{ChunkPlace, Vnode, VnodeKind};

impl VnodeNumbers {
    /// Gives the numbers of the file or directory at `from`, and of everything below it, to the same names at and below
    /// `to`, because the kernel keeps the inodes of files and directories that it has renamed.
    pub(in crate::view) fn rename(&self, view: ViewKind, from: &Key, to: &Key) {
        let file = |key: &Key| Vnode::Object {
            view,
            key: key.clone(),
        };
        self.remove(&file(to));
        self.remove(&Vnode::Prefix {
            view,
            path: to.to_prefix(),
        });
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let form_of = |place: &ChunkPlace| ranges.form_of(place);
        let mut interned = self.lock();
        let known = self.interned_number(&file(from), &interned).0;
        let is_file = matches!(interned.held.get(&known), Some((vnode, _)) if *vnode == file(from));
        let moved: Vec<(u64, Vnode)> = if is_file {
            vec![(known, file(to))]
        } else {
            let held = interned.held.iter();
            held.filter_map(|(number, (vnode, _))| Some((*number, vnode.moved(from, to, form_of)?)))
                .collect()
        };
        let Interned { held, renamed, .. } = &mut *interned;
        for (number, vnode) in moved {
            if let Some((known, _)) = held.get_mut(&number) {
                if renamed.get(known) == Some(&number) {
                    renamed.remove(known);
                }
                if !matches!(vnode, Vnode::Gone(_)) {
                    renamed.insert(vnode.clone(), number);
                }
                let is_chunk = matches!(vnode, Vnode::Chunk(_) | Vnode::ChunkDirectory(_));
                self.has_renamed_chunks
                    .fetch_or(is_chunk, Ordering::Relaxed);
                *known = vnode;
            }
        }
        drop(interned);
        drop(ranges);
        if !is_file {
            let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
            ranges.rename(from, to);
        }
    }

    /// Gives the number of the file `from` to `to`, the vnode of the same file after it was renamed.
    pub(in crate::view) fn replace(&self, from: &Vnode, to: &Vnode) {
        let mut interned = self.lock();
        let number = self.interned_number(from, &interned).0;
        if !matches!(interned.held.get(&number), Some((known, _)) if known == from) {
            return;
        }
        self.remove_of(&mut interned, to);
        let Interned { held, renamed, .. } = &mut *interned;
        if let Some((known, _)) = held.get_mut(&number) {
            renamed.remove(from);
            *known = to.clone();
            renamed.insert(to.clone(), number);
            self.has_renamed_chunks
                .fetch_or(matches!(to, Vnode::Chunk(_)), Ordering::Relaxed);
        }
    }

    /// Notes that the file or the empty directory `vnode` has lost its name. The kernel may still have its inode, so a
    /// new file or directory of this name gets another number.
    pub(in crate::view) fn remove(&self, vnode: &Vnode) {
        if matches!(vnode, Vnode::ChunkDirectory(_)) {
            let number = self.of(vnode).0;
            if number < FIRST_INTERNED {
                let mut removed = self.lock_removed();
                let removed = removed.get_or_insert_with(|| LruCache::new(MOST_REMOVED));
                removed.put(number, ());
                self.has_removed.store(true, Ordering::Relaxed);
                return;
            }
        }
        self.remove_of(&mut self.lock(), vnode);
    }

    fn remove_of(&self, interned: &mut Interned, vnode: &Vnode) {
        let kind = match vnode {
            Vnode::Prefix { .. } | Vnode::ChunkDirectory(_) => VnodeKind::Directory,
            _ => VnodeKind::File,
        };
        let number = self.interned_number(vnode, interned).0;
        let Interned { held, renamed, .. } = interned;
        if let Some((known, _)) = held.get_mut(&number)
            && *known == *vnode
        {
            *known = Vnode::Gone(kind);
            renamed.remove(vnode);
        }
    }
}
