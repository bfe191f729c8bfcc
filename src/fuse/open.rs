//! Opening a file: close-to-open freshness, and who reads for it.
//!
//! The version that is there now is opened and compared with the one that the inode number
//! stands for. The same: the kernel's pages are good. Another: `ESTALE`, and the kernel looks
//! the name up again at once, which gives it a fresh number. Not known: the number stands for
//! this version from now on, once the kernel has dropped what it may hold of another.
//!
//! All of this happens under a lock that the number shares with few others, so that the first
//! open alone decides. The kernel holds no page locked that a drop could wait for: there is no
//! handle yet, and RELEASE of the last one came after all its reads were answered.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use fuser::{BackingId, Errno, FopenFlags, INodeNo, ReplyOpen};

use super::Core;
use super::inode::{Comparison, Leftovers, Mode};
use crate::load::Counters;
use crate::view::{Attributes, OpenFile, Opened};

/// Numbers are spread over so many locks.
pub(super) const STRIPES: u64 = 64;

/// An open file.
pub(super) struct OpenedFile {
    pub(super) ino: u64,
    pub(super) file: Arc<OpenFile>,
    pub(super) attributes: Attributes,
}

impl Core {
    pub(super) fn open_file(&self, ino: u64, reply: ReplyOpen) {
        Counters::add(&self.view.counters().opens);
        let opened = self
            .vnode(ino)
            .and_then(|vnode| self.present(self.view.open(vnode)));
        let Opened { attributes, file } = match opened {
            Ok(opened) => opened,
            Err(errno) => return reply.error(errno),
        };
        if file.is_uncached() {
            let handle = self.files.insert(OpenedFile {
                ino,
                file,
                attributes,
            });
            return reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO);
        }
        let alone = self.lock_number(ino);
        let flags = match self.settle(ino, attributes, &file) {
            Ok(flags) => flags,
            Err(errno) => {
                // Before the kernel asks again: this one reads nothing.
                drop(file);
                return reply.error(errno);
            }
        };
        let mode = self.mode(ino, &file, &reply);
        let handle = self.files.insert(OpenedFile {
            ino,
            file,
            attributes,
        });
        // Whoever opened this file may close it before the reply has returned.
        drop(alone);
        match mode {
            Mode::Cached => reply.opened(handle, flags),
            Mode::Passthrough(backing) => {
                Counters::add(&self.view.counters().opens_passthrough);
                // FOPEN_KEEP_CACHE beside passthrough is EIO; there are no pages to keep.
                reply.opened_passthrough(handle, FopenFlags::empty(), &backing);
            }
        }
    }

    /// Makes `ino` stand for what was opened; says whether the kernel may keep its pages.
    fn settle(
        &self,
        ino: u64,
        attributes: Attributes,
        file: &OpenFile,
    ) -> Result<FopenFlags, Errno> {
        let counters = self.view.counters();
        match self.versions.open(ino, attributes) {
            Comparison::Same if file.keeps_pages() => {
                Counters::add(&counters.opens_kept);
                Ok(FopenFlags::FOPEN_KEEP_CACHE)
            }
            // The kernel drops its pages itself, while it opens. It is not asked to from here: others
            // may be reading, and their pages are locked until they are answered.
            Comparison::Same => {
                Counters::add(&counters.opens_fresh);
                Ok(FopenFlags::empty())
            }
            Comparison::Changed => {
                Counters::add(&counters.opens_stale);
                Err(Errno::ESTALE)
            }
            Comparison::FirstOpen(leftovers) => {
                Counters::add(&counters.opens_fresh);
                let flags = self.drop_leftovers(ino, leftovers);
                if flags.contains(FopenFlags::FOPEN_KEEP_CACHE) {
                    file.pages_dropped();
                }
                Ok(flags)
            }
        }
    }

    /// Has the kernel drop what it may hold of another version. Where that fails, it drops the
    /// pages itself for want of `FOPEN_KEEP_CACHE`, and the attributes when their time is over.
    fn drop_leftovers(&self, ino: u64, leftovers: Leftovers) -> FopenFlags {
        let offset = match leftovers {
            Leftovers::Nothing => return FopenFlags::FOPEN_KEEP_CACHE,
            // To the kernel, a negative offset means no pages.
            Leftovers::Attributes => -1,
            Leftovers::PagesAndAttributes => 0,
        };
        let Some(notifier) = self.notifier.get() else {
            return FopenFlags::empty();
        };
        // A length of 0 reaches to the end.
        match notifier.inval_inode(INodeNo(ino), offset, 0) {
            Ok(()) => FopenFlags::FOPEN_KEEP_CACHE,
            Err(error) => {
                log::debug!("the kernel did not drop what it holds of inode {ino}: {error}");
                FopenFlags::empty()
            }
        }
    }

    /// Who reads for the handles of a number. The first decides until the last is released: the
    /// kernel refuses (`EIO`) to mix the two on one inode.
    fn mode(&self, ino: u64, file: &OpenFile, reply: &ReplyOpen) -> Mode<BackingId> {
        self.versions.mode(ino).unwrap_or_else(|| {
            let mode = self.choose_mode(file, reply);
            self.versions.set_mode(ino, mode.clone());
            mode
        })
    }

    fn choose_mode(&self, file: &OpenFile, reply: &ReplyOpen) -> Mode<BackingId> {
        if !self.passthrough.load(Ordering::Relaxed) {
            return Mode::Cached;
        }
        let Some(backing) = file.backing() else {
            return Mode::Cached;
        };
        match reply.open_backing(backing) {
            Ok(backing) => Mode::Passthrough(Arc::new(backing)),
            Err(error) => {
                self.passthrough_failed(&error);
                Mode::Cached
            }
        }
    }

    /// Without the privilege or the kernel's support no other file can do better. Anything else
    /// is about this file: `ELOOP` says that it lies on stacked file systems already.
    fn passthrough_failed(&self, error: &std::io::Error) {
        const FOR_ALL: [i32; 4] = [libc::EPERM, libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOTTY];
        let for_all = error.raw_os_error().is_some_and(|n| FOR_ALL.contains(&n));
        if for_all && self.passthrough.swap(false, Ordering::Relaxed) {
            log::debug!("the daemon reads all files itself: passthrough is refused: {error}");
        }
    }

    pub(super) fn release_file(&self, handle: fuser::FileHandle) {
        let Some(opened) = self.files.remove(handle) else {
            return;
        };
        if !opened.file.is_uncached() {
            let _alone = self.lock_number(opened.ino);
            drop(self.versions.close(opened.ino));
        }
    }

    fn lock_number(&self, ino: u64) -> MutexGuard<'_, ()> {
        let stripe = usize::try_from(ino % STRIPES).expect("less than 64");
        self.numbers[stripe]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
