//! The thread of a ring.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use io_uring::cqueue::Entry as Completion;
use io_uring::squeue::{Entry, Entry128};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use rustix::event::{EventfdFlags, eventfd};

use super::dispatch::Request;
use super::memory::Memory;
use super::shared::{EventFd, RingKind, SharedRing};
use super::slot::Slot;
use super::{Accepted, commands};
use crate::fuse::ZarrFs;

/// The number of the command that completes when another thread has added a reply.
const WAKE: u64 = u64::MAX;

/// The descriptors of a ring: its own, and the one through which its thread is woken.
pub(super) const N_DESCRIPTORS: usize = 2;

type Uring = IoUring<Entry128, Completion>;

/// The message with which a thread begins.
pub(super) struct Start {
    pub(super) filesystem: ZarrFs,
    pub(super) device: Arc<OwnedFd>,
    pub(super) accepted: Accepted,
    /// Gets the result once the kernel knows the entries.
    pub(super) started: Sender<io::Result<()>>,
}

/// A ring with room for so many commands at once.
///
/// # Errors
/// Those of the system, which may forbid rings.
fn build(n_commands: usize) -> io::Result<Uring> {
    let n_commands = u32::try_from(n_commands.next_power_of_two()).map_err(io::Error::other)?;
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(n_commands)
}

impl RingKind {
    /// Starts the thread with its ring. It waits for a [`Start`], and ends if there will be none.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn spawn(self, payload_bytes: usize) -> io::Result<Sender<Start>> {
        let (sender, starts) = mpsc::channel();
        let (made, result) = mpsc::channel();
        let builder = thread::Builder::new().name("ring".to_owned());
        builder.spawn(move || {
            // The thread that makes a ring is the only one that may use it.
            let parts = self.parts(payload_bytes);
            match parts {
                Ok(parts) => {
                    let _ = made.send(Ok(()));
                    self.serve(parts, &starts);
                }
                Err(error) => drop(made.send(Err(error))),
            }
        })?;
        result.recv().map_err(io::Error::other)??;
        Ok(sender)
    }

    fn parts(&self, payload_bytes: usize) -> io::Result<(Uring, Memory, EventFd)> {
        let n = self.queues.len();
        Ok((
            // One more command waits for the wake.
            build(n + 1)?,
            Memory::new(n, payload_bytes)?,
            EventFd(eventfd(0, EventfdFlags::CLOEXEC)?),
        ))
    }

    /// Answers requests from the start until the mount ends.
    fn serve(self, (uring, memory, wake): (Uring, Memory, EventFd), starts: &Receiver<Start>) {
        let Ok(start) = starts.recv() else { return };
        let ring = SharedRing::of_this_thread(self, memory, start.device, wake);
        let mut serving = Serving {
            uring,
            woken: Box::default(),
            n_live: ring.kind.queues.len(),
            ring: Arc::clone(&ring),
        };
        let begun = serving.begin();
        let is_begun = begun.is_ok();
        let _ = start.started.send(begun);
        drop(start.started);
        if !is_begun {
            return;
        }
        if let Err(error) = serving.run(&start.filesystem, start.accepted) {
            log::error!("a ring answers no more requests: {error}");
            // The kernel may still write into the entries, so their memory stays.
            std::mem::forget(ring);
        }
    }
}

/// The work of the thread.
struct Serving {
    uring: Uring,
    ring: Arc<SharedRing>,
    /// The number that was written to the descriptor of [`EventFd`].
    woken: Box<[u8; 8]>,
    /// How many entries the kernel knows.
    n_live: usize,
}

impl Serving {
    /// Registers the entries.
    fn begin(&mut self) -> io::Result<()> {
        let ring = Arc::clone(&self.ring);
        let entries = 0..ring.kind.queues.len();
        let vectors: Vec<_> = entries.map(|entry| ring.memory.vectors(entry)).collect();
        for (entry, vectors) in vectors.iter().enumerate() {
            self.push(&commands::register(&ring, entry, vectors))?;
        }
        self.await_wake()?;
        self.uring.submit()?;
        let mut completed = self.uring.completion();
        let refused = completed.find(|done| done.user_data() != WAKE && done.result() < 0);
        match refused {
            Some(refused) => Err(io::Error::from_raw_os_error(-refused.result())),
            None => Ok(()),
        }
    }

    /// Answers requests until the mount ends.
    fn run(&mut self, filesystem: &ZarrFs, accepted: Accepted) -> io::Result<()> {
        let (mut completed, mut answered) = (Vec::new(), Vec::new());
        while self.n_live > 0 {
            match self.uring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            let completions = self.uring.completion();
            completed.extend(completions.map(|done| (done.user_data(), done.result())));
            for (what, result) in completed.drain(..) {
                if what == WAKE {
                    self.await_wake()?;
                } else if result < 0 {
                    // The mount has ended.
                    self.n_live -= 1;
                } else {
                    let entry = usize::try_from(what).map_err(io::Error::other)?;
                    let ring = Arc::clone(&self.ring);
                    let slot = Arc::new(Slot::new(ring, entry));
                    if let Some(request) = Request::of(slot) {
                        request.answer(filesystem, accepted);
                    }
                }
                self.ring.replies.take(&mut answered);
                for entry in answered.drain(..) {
                    self.send(entry)?;
                }
            }
        }
        Ok(())
    }

    /// Sends the reply in `entry` with the next system call.
    fn send(&mut self, entry: usize) -> io::Result<()> {
        self.push(&commands::commit(&self.ring, entry))
    }

    fn await_wake(&mut self) -> io::Result<()> {
        let wake = Fd(self.ring.replies.wake.0.as_fd().as_raw_fd());
        let read: Entry = opcode::Read::new(wake, self.woken.as_mut_ptr(), 8).build();
        self.push(&read.user_data(WAKE).into())
    }

    fn push(&mut self, command: &Entry128) -> io::Result<()> {
        #[allow(unsafe_code, reason = "the kernel reads what a command points to")]
        // SAFETY: the memory of entries and `woken` live as long as the ring, and the vectors until they are submitted.
        let pushed = unsafe { self.uring.submission().push(command) };
        pushed.map_err(io::Error::other)
    }
}
