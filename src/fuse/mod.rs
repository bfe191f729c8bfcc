//! The interface to the kernel: inode numbers, handles, replies, errno. This module knows neither Zarr nor stores.
//!
//! * `operations`: the operations of the kernel, a few lines each; `request` and `reply`; `device` and `ring`: the two
//!   ways by which requests come and replies go;
//! * `inode`: the version of a vnode that an inode number stands for, and what the kernel may
//!   cache;
//! * `changes`: writing, and changes of names and attributes; `notices`: pages that the kernel must drop;
//! * `open`: how a file is opened, with freshness and passthrough; `read`; `listing`;
//! * `directory`: directory streams, which the kernel may read again from any entry;
//! * `closing`: files that are being closed; `callers`: callers that are killed while they wait; `late_reads`: reads that ran out of time;
//! * `handles`: open files and directories, by the file handle that the kernel was given;
//! * `session`, with `session_mount` and `session_unmount`: a mount from its
//!   beginning to its end;
//! * `attr`, `xattr`, `errno`: conversions to the types of the kernel.
//!
//! `events` decides which requests are answered by the thread that took them, and which by others.
//! A panic is confined to its request: the reply, dropped unanswered, becomes `EIO`.

/// The newest version of the FUSE protocol that `fuser` speaks, major and minor. `fuser` does not export this
/// number. `Cargo.toml` pins the version of `fuser`, so the number cannot change unnoticed.
pub const PROTOCOL: (u32, u32) = (7, 40);

mod attr;
mod backing;
mod callers;
mod changes;
mod closing;
mod device;
mod directory;
mod errno;
mod events;
mod handles;
mod inode;
mod late_reads;
mod listing;
mod notices;
mod open;
mod opened;
mod operations;
mod read;
mod reply;
mod request;
mod ring;
pub mod session;
mod session_mount;
mod session_options;
pub mod session_unmount;
mod xattr;

use std::ffi::OsStr;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use fuser::{Errno, FileHandle, Notifier};
use lru::LruCache;

use crate::error::{Error, ErrorLog};
use crate::threads::{Class, as_class, confine};
use crate::view::{LookupResult, View, VnodeAttributes, VnodeId};

use attr::{Generations, NOT_KEPT, Reported, file_attr};
use backing::Backing;
use callers::{AwaitedReply, Callers, Unanswered};
use closing::Closing;
use events::EventThreads;
use handles::Handles;
use inode::InodeVersions;
use notices::Notices;
use opened::{OpenedDirectory, OpenedFile, STRIPES};
use reply::{Answer, Reply};
use ring::{Accepted, NoRings, Prepared};
use session::MountAccess;

/// How a mount behaves, apart from its contents.
#[derive(Debug, Clone, Copy)]
pub struct FsOptions {
    /// How long the kernel may use names and attributes without a request; about a year if nothing changes.
    pub ttl: Duration,
    /// Whether the kernel may cache listings, because nothing changes.
    pub keep_listings: bool,
    /// Whether the kernel reads plain store files itself, where it can.
    pub passthrough: bool,
    /// Whether extended attributes are answered, at the cost of two requests for each file in `ls
    /// -l`.
    pub xattr: bool,
    /// Threads that take requests from the kernel.
    pub event_threads: usize,
    /// How requests come from the kernel.
    pub transport: Transport,
}

/// How requests come from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// Through rings if the kernel offers them and the store is local, else through the device.
    Auto,
    /// Through the device `/dev/fuse`.
    #[default]
    Device,
    /// Through rings of `io_uring`.
    Ring,
}

/// The most documents of arrays of which the version is remembered that was opened last.
const MOST_DOCUMENTS: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("16384 is not 0");

/// A view as a file system.
pub struct ZarrFs(Arc<Core>);

/// The state that all requests share.
struct Core {
    view: Arc<View>,
    options: FsOptions,
    /// Whether passthrough was requested, and the kernel has not refused it so far.
    passthrough: AtomicBool,
    /// Whether the kernel leaves `O_TRUNC` to the open.
    truncates: AtomicBool,
    /// Whether rings are ready for the kernel.
    offers_rings: AtomicBool,
    /// Whether the kernel will send its requests through rings.
    has_rings: AtomicBool,
    notifier: Arc<OnceLock<Notifier>>,
    notices: Notices,
    /// The fingerprints of the documents of arrays that were opened last.
    documents: Mutex<LruCache<VnodeId, u64>>,
    errors: ErrorLog,
    generations: Generations,
    versions: InodeVersions<Arc<Backing>>,
    /// The locks of inodes, which are held while one is opened or released. Few inodes share a lock.
    inode_locks: Vec<Mutex<()>>,
    files: Handles<OpenedFile>,
    directories: Handles<OpenedDirectory>,
    events: EventThreads,
    callers: Callers,
    closing: Closing,
}

impl ZarrFs {
    /// A file system of `view`. Starts no thread before it is mounted.
    pub fn new(view: Arc<View>, options: FsOptions) -> ZarrFs {
        let is_local = view.loader().is_local();
        ZarrFs(Arc::new(Core {
            view,
            options,
            passthrough: AtomicBool::new(options.passthrough),
            truncates: AtomicBool::new(false),
            offers_rings: AtomicBool::new(false),
            has_rings: AtomicBool::new(false),
            notifier: Arc::default(),
            notices: Notices::default(),
            documents: Mutex::new(LruCache::new(MOST_DOCUMENTS)),
            errors: ErrorLog::new(),
            generations: Generations::default(),
            versions: InodeVersions::new(),
            inode_locks: (0..STRIPES).map(|_| Mutex::default()).collect(),
            files: Handles::new(),
            directories: Handles::new(),
            events: EventThreads::new(options.event_threads, is_local),
            callers: Callers::new(),
            closing: Closing::default(),
        }))
    }

    /// The view.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.0.view)
    }

    /// The longest read or write that the kernel requests, in bytes.
    fn payload_bytes(&self) -> u32 {
        if self.0.view.is_writable() {
            1 << 20
        } else {
            session_mount::MAX_READ_BYTES
        }
    }

    /// Makes the rings of this mount, if it is to have some. The kernel is offered them when it mounts.
    ///
    /// # Errors
    /// The reason why there are none, if they were requested.
    fn prepare_rings(&self) -> Result<Option<Prepared>, NoRings> {
        let (core, transport) = (&self.0, self.0.options.transport);
        let is_local = core.view.loader().is_local();
        if transport == Transport::Device || (transport == Transport::Auto && !is_local) {
            return Ok(None);
        }
        let payload_bytes = usize::try_from(self.payload_bytes()).unwrap_or(usize::MAX);
        let budget = core.view.loader().cache().budget();
        match ring::prepare(budget, payload_bytes, is_local) {
            Ok(prepared) => {
                core.offers_rings.store(true, Ordering::Relaxed);
                Ok(Some(prepared))
            }
            Err(reason) if transport == Transport::Ring => Err(reason),
            Err(reason) => {
                log::info!("no rings of io_uring: {reason}");
                Ok(None)
            }
        }
    }

    /// Starts `rings` if the kernel behind `device` has taken the offer. Requests of users other than those with
    /// `access` are refused.
    ///
    /// # Errors
    /// Those of the kernel. The mount answers no request in this case.
    fn start_rings(
        core: &Arc<Core>,
        rings: Option<Prepared>,
        device: OwnedFd,
        access: MountAccess,
    ) -> io::Result<()> {
        let Some(rings) = rings.filter(|_| core.has_rings.load(Ordering::Relaxed)) else {
            if core.options.transport == Transport::Ring {
                return Err(io::Error::other("the kernel refuses rings of io_uring"));
            }
            log::info!("requests come through /dev/fuse");
            return Ok(());
        };
        let user = rustix::process::geteuid().as_raw();
        let accepted = match access {
            MountAccess::Owner => Accepted::User(user),
            MountAccess::OwnerAndRoot => Accepted::UserAndRoot(user),
            MountAccess::Everyone => Accepted::All,
        };
        let depth = rings.depth();
        rings.start(&ZarrFs(Arc::clone(core)), device, accepted)?;
        let counters = core.view.requests();
        counters.rings.add(depth.n_rings() as u64);
        counters.ring_bytes.add(depth.bytes());
        log::info!(
            "requests come through {} rings of io_uring, {} at once, in {} MiB of memory",
            depth.n_rings(),
            depth.n_entries(),
            depth.bytes() >> 20,
        );
        Ok(())
    }

    /// Answers a question for names and attributes.
    fn answer<A: Answer>(
        &self,
        what: &'static str,
        unanswered: Unanswered<Reply<A>>,
        request: impl FnOnce(&Arc<Core>, AwaitedReply<Reply<A>>) + Send + 'static,
    ) {
        self.answer_as((Class::Names, what), unanswered, request);
    }

    /// Runs `request`, which may wait for the store and whose caller may be killed meanwhile, on this thread if this
    /// thread may wait, else on another one.
    fn answer_as<A: Answer>(
        &self,
        (class, what): (Class, &'static str),
        unanswered: Unanswered<Reply<A>>,
        request: impl FnOnce(&Arc<Core>, AwaitedReply<Reply<A>>) + Send + 'static,
    ) {
        if let Some(_permit) = unanswered.may_wait(&self.0.events) {
            let reply = AwaitedReply::own(unanswered);
            return confine(what, || as_class(class, || request(&self.0, reply)));
        }
        let awaits_closing = unanswered.awaits_closing();
        let (reply, unwatched) = Callers::share(unanswered);
        self.0.callers.watch(unwatched);
        let core = Arc::clone(&self.0);
        self.0.view.threads().submit(class, move || {
            if awaits_closing {
                core.closing.wait();
            }
            if !reply.is_abandoned() {
                request(&core, reply);
            }
        });
    }

    /// Like [`ZarrFs::answer_as`], for a change, which goes on when its caller is killed.
    fn change<A: Answer>(
        &self,
        what: &'static str,
        reply: Reply<A>,
        request: impl FnOnce(&Arc<Core>, Reply<A>) + Send + 'static,
    ) {
        if let Some(_permit) = reply.may_wait(&self.0.events) {
            return confine(what, || {
                as_class(Class::Changes, || request(&self.0, reply));
            });
        }
        let core = Arc::clone(&self.0);
        let threads = self.0.view.threads();
        threads.submit(Class::Changes, move || {
            if reply.awaits_closing() {
                core.closing.wait();
            }
            request(&core, reply);
        });
    }
}

impl Core {
    /// The vnode of an inode number. A number that the kernel has forgotten is stale, which makes the kernel look the
    /// name up again.
    fn vnode(&self, ino: u64) -> Result<VnodeId, Errno> {
        self.versions.vnode(ino).ok_or(Errno::ESTALE)
    }

    /// Like [`Core::errno`], for a change.
    fn errno_of_change(&self, error: &Error) -> Errno {
        if error.is_refusal() || error.is_failed_save() {
            self.view.note_refused(error);
        }
        let Some((errno, is_logged)) = errno::of_change(error) else {
            return self.errno(error);
        };
        if is_logged {
            self.errors.report(error, self.view.requests());
        }
        errno
    }

    /// Counts and logs an error, and returns the errno to reply.
    fn errno(&self, error: &Error) -> Errno {
        self.errors.report(error, self.view.requests());
        errno::errno_of(error.kind())
    }

    /// The result of the view; `ENOENT` if it is `None`.
    fn present<T>(&self, found: Result<Option<T>, Error>) -> Result<T, Errno> {
        let found = found.map_err(|error| self.errno(&error))?;
        found.ok_or(Errno::ENOENT)
    }

    /// The `answer` to a request for names in the directory `ino`. If the directory is gone from a mount with `--rw`,
    /// `ESTALE` becomes `ENOENT`, because a new lookup would not find it. In a read-only mount, the names could be
    /// those of chunks, which must not pass for absent.
    fn of_directory<T>(&self, ino: u64, answer: Result<T, Errno>) -> Result<T, Errno> {
        let is_gone = || (self.vnode(ino)).is_ok_and(|directory| self.view.is_gone(directory));
        match answer {
            Err(Errno::ESTALE) if self.view.is_writable() && is_gone() => Err(Errno::ENOENT),
            answer => answer,
        }
    }

    /// How long the kernel may use attributes without a request.
    fn ttl(&self, ino: u64, attributes: &VnodeAttributes) -> Duration {
        // The kernel needs the root's attributes for a path to the mount's own files. Those files show whether a server
        // answers, so they must not wait for it.
        if ino == VnodeId::ROOT.0 && self.view.keeps_root_attributes() {
            return attr::FOREVER;
        }
        if attributes.is_momentary() {
            return NOT_KEPT;
        }
        self.options.ttl
    }

    fn find(&self, parent: u64, name: &OsStr) -> Result<Reported, Errno> {
        self.view.requests().lookups.add(1);
        if name.len() > attr::NAME_BYTES {
            return Err(Errno::ENAMETOOLONG);
        }
        match name.as_bytes() {
            b"." => return self.find_again(parent),
            b".." => return self.find_parent(parent),
            _ => {}
        }
        let directory = self.vnode(parent)?;
        // Absence is never cached: another process may create the file at any time.
        let found = self.present(self.view.lookup(directory, name.as_bytes()));
        Ok(self.reported_entry(self.of_directory(parent, found)?))
    }

    /// The entry of a name that was found or made, with its reference.
    fn reported_entry(&self, found: LookupResult) -> Reported {
        let LookupResult { id, attributes } = found;
        let ino = self.versions.number_to_report(id, attributes.fingerprint);
        self.reported(ino, &attributes)
    }

    /// Finds an inode that the kernel has forgotten, but that an NFS client still names by a file handle. Such a handle
    /// is for one version, so it is stale if the file has another version, or is gone.
    fn find_again(&self, ino: u64) -> Result<Reported, Errno> {
        let vnode = self.versions.recall(ino).ok_or(Errno::ESTALE)?;
        let found = self
            .view
            .recall(vnode)
            .map_err(|error| self.errno(&error))?;
        let LookupResult { id, attributes } = found.ok_or(Errno::ESTALE)?;
        if !self.versions.report_again(ino, id, attributes.fingerprint) {
            self.view.forget(id, 1);
            return Err(Errno::ESTALE);
        }
        Ok(self.reported(ino, &attributes))
    }

    /// The parent of a directory that an NFS client names by a file handle.
    fn find_parent(&self, ino: u64) -> Result<Reported, Errno> {
        let child = self.versions.recall(ino).ok_or(Errno::ESTALE)?;
        let found = self.present(self.view.parent(child))?;
        Ok(self.reported(found.id.0, &found.attributes))
    }

    fn reported(&self, ino: u64, attributes: &VnodeAttributes) -> Reported {
        Reported {
            attr: file_attr(ino, attributes),
            ttl: self.ttl(ino, attributes),
            generation: self.generations.of(ino, attributes.fingerprint),
        }
    }

    fn forget_inode(&self, ino: u64, times: u64) {
        if let Some(vnode) = self.versions.forget(ino, times) {
            self.view.forget(vnode, times);
        }
    }

    /// The attributes that an open file was opened with, else the current ones.
    fn stat(&self, ino: u64, handle: Option<FileHandle>) -> Result<Reported, Errno> {
        self.view.requests().getattrs.add(1);
        let opened = handle.and_then(|handle| self.files.get(handle));
        if let Some(opened) = opened {
            let now = opened.file.written_now();
            if let Some(now) = now.map_err(|error| self.errno(&error))? {
                return Ok(self.reported(ino, &now));
            }
            return Ok(self.reported(ino, &opened.attributes));
        }
        if let Some(pinned) = self.versions.pinned_attributes(ino) {
            return Ok(self.reported(ino, &self.with_current_mode(ino, pinned)));
        }
        let current = self.present(self.view.attributes(self.vnode(ino)?));
        let current = Core::looked_up_again(current)?;
        if !self.versions.may_report(ino, current.fingerprint) {
            // The kernel would combine a new size under the old inode number with the old pages.
            return Err(Errno::ESTALE);
        }
        Ok(self.reported(ino, &current))
    }

    /// `found` for an inode. `ESTALE` replaces `ENOENT`, so that the kernel looks the name up again. A lookup alone says
    /// that a name is absent: it checks that no array has a chunk of this name, which a reader would take for fill
    /// values. In a mount with `--rw`, the file may have been renamed, and a program may have asked to make it.
    fn looked_up_again<T>(found: Result<T, Errno>) -> Result<T, Errno> {
        match found {
            Err(Errno::ENOENT) => Err(Errno::ESTALE),
            found => found,
        }
    }

    /// The attributes of a version that is open, with its current mode: permissions can change
    /// while the bytes stay the same.
    fn with_current_mode(&self, ino: u64, pinned: VnodeAttributes) -> VnodeAttributes {
        let current = self.vnode(ino).ok();
        let current = current.and_then(|vnode| self.view.attributes(vnode).ok().flatten());
        current
            .filter(|current| current.fingerprint == pinned.fingerprint)
            .unwrap_or(pinned)
    }

    fn extended_attributes(&self, ino: u64) -> Result<xattr::ExtendedAttributes, Errno> {
        if !self.options.xattr {
            return Err(Errno::ENOSYS);
        }
        let vnode = self.vnode(ino)?;
        let attributes = self.view.extended_attributes(vnode);
        attributes.map_err(|error| self.errno(&error))
    }

    fn extended_attribute(&self, ino: u64, name: &[u8]) -> Result<Vec<u8>, Errno> {
        if self.options.xattr && !xattr::is_ours(name) {
            return Err(Errno::NO_XATTR);
        }
        xattr::value(self.extended_attributes(ino)?, name).ok_or(Errno::NO_XATTR)
    }
}
