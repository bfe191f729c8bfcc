//! Opening a file: close-to-open freshness, and whether the daemon or the kernel reads it.
//!
//! The current version is opened and compared with the one that the inode number stands for. If they are the same, the
//! kernel's pages are valid. If they differ, the reply is `ESTALE`, and the kernel looks the name up again at once,
//! which gives it a fresh number. If the number stands for no version yet, it stands for this one from now on, once the
//! kernel has dropped its cache of another version.
//!
//! All of this happens under a lock that the inode shares with few others, so that only the first
//! open decides. Dropping pages cannot wait for a locked page: there is no handle yet, and the
//! RELEASE of the last one came after all its reads were answered.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use fuser::{Errno, FopenFlags, INodeNo, Notifier};
use lru::LruCache;

use super::Core;
use super::backing::Backing;
use super::callers::AwaitedReply;
use super::inode::{Comparison, ReadMode, StaleCache};
use super::notices::Notice;
use super::opened::{OpenedFile, STRIPES};
use super::reply::{Opened, Reply};
use crate::files::KeyHandle;
use crate::view::{OpenFile, OpenedVnode, VnodeAttributes, VnodeId};

/// To the kernel, a negative offset means no pages.
const ATTRIBUTES_ALONE: i64 = -1;

impl Core {
    pub(super) fn open_file(self: &Arc<Self>, ino: u64, reply: AwaitedReply<Reply<Opened>>) {
        self.view.requests().opens.add(1);
        let opened = self
            .vnode(ino)
            .and_then(|vnode| self.present(self.view.open(vnode)));
        match Core::looked_up_again(opened) {
            Ok(opened) => self.reply_opened(ino, opened, false, reply),
            Err(errno) => reply.refuse(errno),
        }
    }

    /// Replies with a handle of the opened file, if `ino` stands for this version. If `is_cut`, the file is made
    /// empty. If the caller was killed, the file is closed again.
    pub(super) fn reply_opened(
        self: &Arc<Self>,
        ino: u64,
        opened: OpenedVnode,
        is_cut: bool,
        mut reply: AwaitedReply<Reply<Opened>>,
    ) {
        let OpenedVnode { attributes, file } = opened;
        if file.is_uncached() {
            let Some(reply) = reply.take() else {
                return file.close();
            };
            let handle = self.files.insert(OpenedFile::new(ino, file, attributes));
            return reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO);
        }
        if reply.is_abandoned() {
            return file.close();
        }
        let lock = self.lock_inode(ino);
        let flags = match self.settle_and_cut(ino, attributes, &file, is_cut) {
            Ok(flags) => flags,
            Err(errno) => {
                // The file is closed before the kernel opens it again, because this handle is not read.
                file.close();
                drop((file, lock));
                let refuse = move |_| reply.refuse(errno);
                // If a document has changed, the notice makes the view look at its array again, so that the next lookup
                // finds the current one.
                return match self.awaited_document(ino) {
                    Some(vnode) => self.notices.after(Notice::StaleNames(vnode), refuse),
                    None => refuse(true),
                };
            }
        };
        let mode = reply.with(|reply| self.mode(ino, &file, reply));
        // The file may be closed, which takes the lock, before the reply has returned.
        drop(lock);
        let opened = OpenedFile::new(ino, file, attributes);
        let Some(vnode) = self.awaited_document(ino) else {
            return self.reply_settled(opened, flags, mode, reply);
        };
        let core = Arc::clone(self);
        // A program that reads a new document looks the new names up.
        (self.notices).after(Notice::StaleNames(vnode), move |are_dropped| {
            if are_dropped {
                return core.reply_settled(opened, flags, mode, reply);
            }
            log::warn!("the kernel keeps the old names of chunks of a document that has changed");
            core.close_unanswered(&opened);
            // With the old names, the program could take a chunk for absent.
            reply.refuse(Errno::ESTALE);
        });
    }

    /// The vnode of `ino`, if there may be a notice for it that was not sent yet.
    fn awaited_document(&self, ino: u64) -> Option<VnodeId> {
        let vnode = (self.notices.are_behind()).then(|| self.versions.vnode(ino));
        vnode.flatten()
    }

    /// Replies with a handle of `opened`, the inode of which stands for the version that was opened.
    fn reply_settled(
        &self,
        opened: OpenedFile,
        flags: FopenFlags,
        mode: Option<ReadMode<Arc<Backing>>>,
        reply: AwaitedReply<Reply<Opened>>,
    ) {
        let (Some(reply), Some(mode)) = (reply.take(), mode) else {
            return self.close_unanswered(&opened);
        };
        let is_only_read = opened.file.is_only_read();
        let handle = self.files.insert(opened);
        match mode {
            ReadMode::Cached if is_only_read => {
                // There is nothing to commit when it is closed.
                reply.opened(handle, flags | FopenFlags::FOPEN_NOFLUSH);
            }
            ReadMode::Cached => reply.opened(handle, flags),
            ReadMode::Passthrough(backing) => {
                self.view.requests().opens_passthrough.add(1);
                reply.opened_passthrough(handle, &backing);
            }
        }
    }

    /// Closes a file of which the kernel gets no handle.
    fn close_unanswered(&self, opened: &OpenedFile) {
        opened.file.close();
        let _lock = self.lock_inode(opened.ino);
        drop(self.versions.close(opened.ino));
    }

    /// Like [`Core::settle`], and then makes the file empty if `is_cut`. The file must not be made empty before `ino`
    /// stands for it: the kernel repeats an open that finds another version, and would not know of the change.
    pub(super) fn settle_and_cut(
        &self,
        ino: u64,
        attributes: VnodeAttributes,
        file: &OpenFile,
        is_cut: bool,
    ) -> Result<FopenFlags, Errno> {
        let flags = self.settle(ino, attributes, file)?;
        if !is_cut {
            return Ok(flags);
        }
        let cleared = file.written().map(KeyHandle::clear);
        match cleared.ok_or(Errno::EBADF)? {
            Ok(()) => {
                self.note_change(ino, file);
                Ok(flags)
            }
            Err(error) => {
                drop(self.versions.close(ino));
                Err(self.errno_of_change(&error))
            }
        }
    }

    /// Makes `ino` stand for the version that was opened; returns whether the kernel may keep its
    /// pages.
    fn settle(
        &self,
        ino: u64,
        attributes: VnodeAttributes,
        file: &OpenFile,
    ) -> Result<FopenFlags, Errno> {
        let counters = self.view.requests();
        let compared = self.versions.open(ino, attributes);
        if let Some(vnode) = self.versions.vnode(ino) {
            self.drop_stale_names(vnode, attributes.fingerprint);
        }
        match compared {
            Comparison::Same if file.keeps_pages() => {
                counters.opens_kept.add(1);
                Ok(FopenFlags::FOPEN_KEEP_CACHE)
            }
            // Without FOPEN_KEEP_CACHE, the kernel drops its pages itself. An invalidation from
            // here could wait for other readers, whose pages are locked until they are answered.
            Comparison::Same => {
                counters.opens_fresh.add(1);
                Ok(FopenFlags::empty())
            }
            Comparison::Changed => {
                counters.opens_stale.add(1);
                Err(Errno::ESTALE)
            }
            Comparison::FirstOpen(leftovers) => {
                counters.opens_fresh.add(1);
                let flags = self.drop_leftovers(ino, leftovers);
                if flags.contains(FopenFlags::FOPEN_KEEP_CACHE) {
                    file.pages_dropped();
                }
                Ok(flags)
            }
        }
    }

    /// Makes the kernel drop its cache of another version. If that fails, the kernel drops the pages on its own
    /// for want of `FOPEN_KEEP_CACHE`, and the attributes when they expire.
    fn drop_leftovers(&self, ino: u64, leftovers: StaleCache) -> FopenFlags {
        let offset = match leftovers {
            StaleCache::Nothing => return FopenFlags::FOPEN_KEEP_CACHE,
            StaleCache::Attributes => ATTRIBUTES_ALONE,
            StaleCache::PagesAndAttributes => 0,
        };
        if self.invalidate(ino, offset) {
            FopenFlags::FOPEN_KEEP_CACHE
        } else {
            FopenFlags::empty()
        }
    }

    /// Makes the kernel request the attributes of `ino` the next time that it needs them.
    pub(super) fn drop_attributes(&self, ino: u64) {
        self.invalidate(ino, ATTRIBUTES_ALONE);
    }

    /// Makes the kernel drop the attributes of `ino` now, and its pages soon, so that open handles read the current
    /// bytes.
    pub(super) fn drop_all(&self, ino: u64) {
        self.drop_attributes(ino);
        self.notify(Notice::Pages(ino));
    }

    /// If `vnode` is a document of arrays, and the version that is opened is not the one that was opened last, this makes
    /// the kernel soon forget the names of their chunks. If an array has another number of dimensions now, a directory may
    /// have become a file, and the kernel would answer by itself that there is no such chunk. If no version was opened
    /// before, the kernel may know names nevertheless: a reader may have known the document from a copy. If the kernel
    /// keeps listings, nothing in the store changes.
    fn drop_stale_names(&self, vnode: VnodeId, fingerprint: u64) {
        if self.options.keep_listings || !self.view.describes_arrays(vnode) {
            return;
        }
        let mut opened = self.lock_documents();
        let before = opened.put(vnode, fingerprint);
        drop(opened);
        let may_be_stale = match before {
            Some(before) => before != fingerprint,
            None => self.view.may_know_chunks(vnode),
        };
        if may_be_stale {
            self.notify(Notice::StaleNames(vnode));
        }
    }

    fn lock_documents(&self) -> MutexGuard<'_, LruCache<VnodeId, u64>> {
        let documents = self.documents.lock();
        documents.unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, notice: Notice) {
        let (notifier, view) = (Arc::clone(&self.notifier), Arc::downgrade(&self.view));
        self.notices.add(notice, move |notice| match notice {
            Notice::Pages(ino) => {
                invalidate(&notifier, ino, 0);
            }
            Notice::StaleNames(document) => {
                let (Some(view), Some(notifier)) = (view.upgrade(), notifier.get()) else {
                    return;
                };
                for (directory, names) in view.stale_names(document) {
                    for name in names {
                        // The kernel does not know most of them.
                        let name = OsStr::from_bytes(&name);
                        let _ = notifier.inval_entry(INodeNo(directory.0), name);
                    }
                }
            }
        });
    }

    fn invalidate(&self, ino: u64, offset: i64) -> bool {
        invalidate(&self.notifier, ino, offset)
    }

    /// How the handles of an inode are read. The first decides until the last is released: the
    /// kernel refuses (`EIO`) to mix the two modes on one inode.
    fn mode(&self, ino: u64, file: &OpenFile, reply: &Reply<Opened>) -> ReadMode<Arc<Backing>> {
        self.versions.mode(ino).unwrap_or_else(|| {
            let mode = self.choose_mode(file, reply);
            self.versions.set_mode(ino, mode.clone());
            mode
        })
    }

    fn choose_mode(&self, file: &OpenFile, reply: &Reply<Opened>) -> ReadMode<Arc<Backing>> {
        if !self.passthrough.load(Ordering::Relaxed) {
            return ReadMode::Cached;
        }
        let Some(backing) = file.backing() else {
            return ReadMode::Cached;
        };
        match reply.open_backing(backing) {
            Ok(backing) => ReadMode::Passthrough(Arc::new(backing)),
            Err(error) => {
                self.passthrough_failed(&error);
                ReadMode::Cached
            }
        }
    }

    /// Disables passthrough if the privilege or the kernel's support is missing. Other errors
    /// concern this file alone: `ELOOP` means that it is on stacked file systems already.
    fn passthrough_failed(&self, error: &std::io::Error) {
        const GENERAL: [i32; 4] = [libc::EPERM, libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOTTY];
        let is_general = error.raw_os_error().is_some_and(|n| GENERAL.contains(&n));
        if is_general && self.passthrough.swap(false, Ordering::Relaxed) {
            log::debug!("the daemon reads all files itself: passthrough is refused: {error}");
        }
    }

    pub(super) fn release_file(&self, handle: fuser::FileHandle) {
        let Some(opened) = self.files.remove(handle) else {
            return;
        };
        opened.file.close();
        if !opened.file.is_uncached() {
            let _lock = self.lock_inode(opened.ino);
            drop(self.versions.close(opened.ino));
        }
        if opened.file.shows_other_bytes() {
            // The file may show the stored bytes again, because its draft was dropped.
            self.drop_all(opened.ino);
        }
    }

    pub(super) fn lock_inode(&self, ino: u64) -> MutexGuard<'_, ()> {
        let stripe = usize::try_from(ino % STRIPES).expect("less than 64");
        self.inode_locks[stripe]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the kernel drop the attributes of `ino`, and its pages from `offset` on. Returns whether it has.
fn invalidate(notifier: &OnceLock<Notifier>, ino: u64, offset: i64) -> bool {
    let Some(notifier) = notifier.get() else {
        return false;
    };
    // A length of 0 reaches to the end.
    let dropped = notifier.inval_inode(INodeNo(ino), offset, 0);
    if let Err(error) = &dropped {
        log::debug!("the kernel did not drop what it holds of inode {ino}: {error}");
    }
    dropped.is_ok()
}
