//! The thread of a ring.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};

use super::Accepted;
use super::dispatch::Request;
use super::kernel::{Arrival, Queue};
use super::shared::{EventFd, RingKind, SharedRing};
use super::slot::Slot;
use crate::fuse::ZarrFs;

/// The descriptors of a ring: its own, and the one through which its thread is woken.
pub(super) const N_DESCRIPTORS: usize = 2;

/// The message with which a thread begins.
pub(super) struct Start {
    pub(super) filesystem: ZarrFs,
    pub(super) device: Arc<OwnedFd>,
    pub(super) accepted: Accepted,
    /// Gets the result once the kernel knows the entries.
    pub(super) started: Sender<io::Result<()>>,
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

    fn parts(&self, payload_bytes: usize) -> io::Result<(Queue, EventFd)> {
        let queue = Queue::new(self.queues.len(), payload_bytes)?;
        Ok((queue, EventFd(eventfd(0, EventfdFlags::CLOEXEC)?)))
    }

    /// Answers requests from the start until the mount ends.
    fn serve(self, (queue, wake): (Queue, EventFd), starts: &Receiver<Start>) {
        let Ok(start) = starts.recv() else { return };
        let memory = Arc::clone(queue.memory());
        let ring = SharedRing::of_this_thread(self, memory, start.device, wake);
        let mut serving = Serving {
            queue,
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
    queue: Queue,
    ring: Arc<SharedRing>,
    /// How many entries the kernel knows.
    n_live: usize,
}

impl Serving {
    /// Gives the entries to the kernel.
    fn begin(&mut self) -> io::Result<()> {
        let (ring, wake) = (&self.ring, self.ring.replies.wake.0.as_fd());
        self.queue
            .begin(ring.device.as_fd(), &ring.kind.queues, wake)
    }

    /// Answers requests until the mount ends.
    fn run(&mut self, filesystem: &ZarrFs, accepted: Accepted) -> io::Result<()> {
        let (mut arrived, mut answered) = (Vec::new(), Vec::new());
        while self.n_live > 0 {
            self.queue.wait(&mut arrived)?;
            for arrival in arrived.drain(..) {
                match arrival {
                    Arrival::Wake => self.queue.await_wake(self.ring.replies.wake.0.as_fd())?,
                    Arrival::End => self.n_live -= 1,
                    Arrival::Request(entry) => {
                        let slot = Arc::new(Slot::new(Arc::clone(&self.ring), entry));
                        if let Some(request) = Request::of(slot) {
                            request.answer(filesystem, accepted);
                        }
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
        let processor = self.ring.kind.queues[entry];
        self.queue
            .commit(self.ring.device.as_fd(), entry, processor)
    }
}
