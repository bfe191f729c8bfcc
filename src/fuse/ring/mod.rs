//! Requests that come through rings of `io_uring`.
//!
//! Through the device, each request costs a read(2) and a write(2). A ring has memory into which the kernel writes a
//! request, and into which this program writes the reply. One system call sends the reply and waits for the next request.
//!
//! ```text
//! processor 0 -- queue 0 --+-- direct ring: 1 entry, its thread may wait for the store
//!                          +-- direct ring ...
//!                          +-- deferring ring: many entries, its thread never waits
//! processor 1 -- queue 1 --+-- ...
//! ```
//!
//! The kernel has a queue for each processor, and gives a request to a free entry of the queue of the caller's processor.
//! Among free entries it prefers the one that was freed last. An *entry* holds one request until its reply is sent. The
//! thread of a *direct ring* answers its request itself, however long that takes: nothing else depends on this thread.
//! While all of these threads wait, requests go to the *deferring ring*. Its thread hands requests that need the store
//! to the threads of [`crate::threads`], as the threads of the device do.
//!
//! FORGET and INTERRUPT still come through the device, and notifications still go through it.
//!
//! [`prepare`] makes everything that can fail before there is a mount. [`Prepared::start`] gives the rings to the kernel.
//!
//! | file | what it has |
//! |---|---|
//! | `depth` | how many rings and entries a mount gets |
//! | `kernel` | the memory of entries, and the commands for the kernel: the only unsafe code of rings |
//! | `slot` | an entry that belongs to this program |
//! | `worker` | the thread of a ring |
//! | `shared` | the part of a ring that other threads use |
//! | `replies` | replies of other threads, which the thread of the ring sends |
//! | `reply` | a reply in the memory of an entry |
//! | `dispatch` | the operation of a request |
//! | `encode` | structures of replies |

mod depth;
mod dispatch;
mod encode;
mod kernel;
mod replies;
mod reply;
mod shared;
mod slot;
mod worker;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

pub(super) use depth::Depth;
pub(super) use encode::{attributes, entry, opened, statistics, written, xattr_len};
pub(super) use reply::RingReply;
use shared::RingKind;
use worker::Start;

use super::ZarrFs;
use super::session_mount::leaves_descriptors;
use crate::budget::{Budget, Holding};
use crate::store::address_limit;

/// The switch of the kernel: `Y` if FUSE may use rings.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

/// Requests that are accepted, of those that the kernel passes on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Accepted {
    /// Those of all users.
    All,
    /// Those of this user.
    User(u32),
    /// Those of this user, and of root.
    UserAndRoot(u32),
}

/// Rings that no kernel uses yet. Their threads wait for [`Prepared::start`], and end when this is dropped.
#[derive(Debug)]
pub(super) struct Prepared {
    threads: Vec<Sender<Start>>,
    depth: Depth,
}

/// The reason why a mount has no rings, for the user.
pub(super) type NoRings = String;

/// Makes the rings of a mount, whose requests and replies have payloads of at most `payload_bytes`. Their memory is
/// reserved from `budget`.
///
/// # Errors
/// The reason why this kernel or this process may not have rings.
pub(super) fn prepare(
    budget: &Arc<Budget>,
    payload_bytes: usize,
    is_local: bool,
) -> Result<Prepared, NoRings> {
    let switch = std::fs::read_to_string(SWITCH).unwrap_or_default();
    if switch.trim() != "Y" {
        return Err(format!(
            "{SWITCH} is not Y (it needs Linux 6.14; root sets it with: echo Y > {SWITCH})"
        ));
    }
    if address_limit().is_some() {
        return Err(
            "the address space is limited, and they take much of it: ulimit -v unlimited"
                .to_owned(),
        );
    }
    make(budget, payload_bytes, is_local).map_err(|error| error.to_string())
}

fn make(budget: &Arc<Budget>, payload_bytes: usize, is_local: bool) -> io::Result<Prepared> {
    let (present, possible) = (processors("present")?, processors("possible")?);
    let mut absent = possible.clone();
    absent.retain(|processor| !present.contains(processor));
    let entry_bytes = kernel::entry_bytes(payload_bytes);
    let depth = Depth::choose(budget.limit(), entry_bytes, present.len(), is_local)?;
    if !leaves_descriptors(depth.n_rings() * worker::N_DESCRIPTORS) {
        let problem = "the limit of open files leaves no descriptors for them: ulimit -n 1024";
        return Err(io::Error::other(problem));
    }
    let holding = Holding::NOTHING.to_hold("requests of the kernel");
    let reserved = budget.reserve_kept_if_spare(depth.bytes(), holding);
    let no_memory = || io::Error::other("the memory budget has no room for them: --cache-size");
    let reserved = Arc::new(reserved.ok_or_else(no_memory)?);
    let mut rings = Vec::new();
    for &processor in &present {
        let ring = |n_entries, may_wait| RingKind {
            queues: vec![processor; n_entries],
            may_wait,
            _reserved: Arc::clone(&reserved),
        };
        rings.push(ring(depth.deferring, false));
        rings.extend((0..depth.direct).map(|_| ring(1, true)));
    }
    // The kernel waits for an entry of each processor that it could ever get. No request comes to these queues.
    if !absent.is_empty() {
        rings.push(RingKind {
            queues: absent,
            may_wait: false,
            _reserved: Arc::clone(&reserved),
        });
    }
    let spawn = |ring: RingKind| ring.spawn(payload_bytes);
    let threads = rings.into_iter().map(spawn);
    Ok(Prepared {
        threads: threads.collect::<io::Result<_>>()?,
        depth,
    })
}

impl Prepared {
    /// How many rings and entries there are.
    pub(super) fn depth(&self) -> Depth {
        self.depth
    }

    /// Starts to answer the requests of the kernel behind `device`, to which rings were promised. The kernel begins to
    /// use them when each queue has an entry.
    ///
    /// # Errors
    /// Those of the kernel. Requests would never be answered in this case, so the mount has to end.
    pub(super) fn start(
        self,
        filesystem: &ZarrFs,
        device: OwnedFd,
        accepted: Accepted,
    ) -> io::Result<()> {
        let device = Arc::new(device);
        // The threads are started one after the other, because the kernel takes the free entry that was registered last.
        for thread in self.threads {
            let (started, result) = mpsc::channel();
            let start = Start {
                filesystem: ZarrFs(Arc::clone(&filesystem.0)),
                device: Arc::clone(&device),
                accepted,
                started,
            };
            thread.send(start).map_err(io::Error::other)?;
            result.recv().map_err(io::Error::other)??;
        }
        Ok(())
    }
}

/// The numbers of the processors that the system has, or may get.
fn processors(which: &str) -> io::Result<Vec<u16>> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/{which}"))?;
    let unknown = || io::Error::other(format!("processors are listed as {text:?}"));
    numbers(&text).ok_or_else(unknown)
}

/// The numbers in a list of the kernel, such as `0-3,8`.
fn numbers(list: &str) -> Option<Vec<u16>> {
    let mut found = Vec::new();
    for range in list.trim().split(',') {
        let (first, end) = range.split_once('-').unwrap_or((range, range));
        found.extend(first.parse::<u16>().ok()?..=end.parse::<u16>().ok()?);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(numbers("0\n"), Some(vec![0]));
        assert_eq!(numbers("0-2,7,9-10\n"), Some(vec![0, 1, 2, 7, 9, 10]));
        for other in ["", "0-", "a", "0,,1", "70000"] {
            assert_eq!(numbers(other), None, "{other:?}");
        }
    }
}
