//! The commands of a ring on their way to the kernel, and the requests that come back.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use io_uring::cqueue::Entry as Completion;
use io_uring::squeue::{Entry, Entry128};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode};

use super::commands;
use super::memory::Memory;

/// The number of the command that completes when another thread has added a reply.
const WAKE: u64 = u64::MAX;

/// A completion, which the kernel reports.
#[derive(Debug, Clone, Copy)]
pub(in crate::fuse::ring) enum Arrival {
    /// The entry has a request.
    Request(usize),
    /// Another thread wakes this one, which has to wait for the next wake.
    Wake,
    /// The kernel gives an entry back without a request, because the mount has ended.
    End,
}

/// A ring of the kernel, with the memory of its entries. Only the thread that makes it may use it.
pub(in crate::fuse::ring) struct Queue {
    uring: IoUring<Entry128, Completion>,
    /// The number that was written to the descriptor of the wake.
    woken: Box<[u8; 8]>,
    /// The places of each entry.
    vectors: Box<[[libc::iovec; 2]]>,
    memory: Arc<Memory>,
}

impl Queue {
    /// A ring of `n` entries, with payloads of this length.
    ///
    /// # Errors
    /// Those of the system, which may forbid rings.
    pub(in crate::fuse::ring) fn new(n: usize, payload_bytes: usize) -> io::Result<Queue> {
        // One more command waits for the wake.
        let n_commands = u32::try_from((n + 1).next_power_of_two()).map_err(io::Error::other)?;
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(n_commands)?;
        let memory = Memory::new(n, payload_bytes)?;
        Ok(Queue {
            uring,
            woken: Box::default(),
            vectors: (0..n).map(|entry| memory.vectors(entry)).collect(),
            memory: Arc::new(memory),
        })
    }

    /// The memory of the entries.
    pub(in crate::fuse::ring) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Gives the entries to the kernel behind `device`, each to the queue of a processor, and asks for the first wake.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(in crate::fuse::ring) fn begin(
        &mut self,
        device: BorrowedFd<'_>,
        processors: &[u16],
        wake: BorrowedFd<'_>,
    ) -> io::Result<()> {
        for (entry, processor) in processors.iter().enumerate() {
            let command = commands::register(device, *processor, &self.vectors[entry]);
            self.push(&command.user_data(entry as u64))?;
        }
        self.await_wake(wake)?;
        self.uring.submit()?;
        let mut completed = self.uring.completion();
        let refused = completed.find(|done| done.user_data() != WAKE && done.result() < 0);
        match refused {
            Some(refused) => Err(io::Error::from_raw_os_error(-refused.result())),
            None => Ok(()),
        }
    }

    /// Sends the reply in an entry with the next [`Queue::wait`].
    ///
    /// # Errors
    /// When the ring is full.
    pub(in crate::fuse::ring) fn commit(
        &mut self,
        device: BorrowedFd<'_>,
        entry: usize,
        processor: u16,
    ) -> io::Result<()> {
        let command = commands::commit(device, processor, &self.memory.header(entry));
        self.push(&command.user_data(entry as u64))
    }

    /// Asks for a wake, which arrives when the descriptor `wake` is written to.
    ///
    /// # Errors
    /// When the ring is full.
    pub(in crate::fuse::ring) fn await_wake(&mut self, wake: BorrowedFd<'_>) -> io::Result<()> {
        let wake = Fd(wake.as_raw_fd());
        let read: Entry = opcode::Read::new(wake, self.woken.as_mut_ptr(), 8).build();
        self.push(&read.user_data(WAKE).into())
    }

    /// Sends what is to be sent, waits until something arrives, and adds it to `arrived`.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(in crate::fuse::ring) fn wait(&mut self, arrived: &mut Vec<Arrival>) -> io::Result<()> {
        match self.uring.submit_and_wait(1) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for done in self.uring.completion() {
            arrived.push(match done.user_data() {
                WAKE => Arrival::Wake,
                _ if done.result() < 0 => Arrival::End,
                entry => Arrival::Request(usize::try_from(entry).map_err(io::Error::other)?),
            });
        }
        Ok(())
    }

    fn push(&mut self, command: &Entry128) -> io::Result<()> {
        // SAFETY: commands point to `memory`, `vectors` and `woken` only, which live as long as the ring.
        let pushed = unsafe { self.uring.submission().push(command) };
        pushed.map_err(io::Error::other)
    }
}
