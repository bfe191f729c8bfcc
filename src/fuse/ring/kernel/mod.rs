//! The memory and the commands that a ring shares with the kernel. No other code of rings is unsafe, for these reasons:
//!
//! - The kernel writes into the memory of an entry, and reads it, while no thread of this program is in a call. So this
//!   memory is mapped by hand ([`memory`]), and the bytes of a payload are reached through its only [`Lease`].
//! - A command has addresses of memory that must outlive it. So a [`Queue`] keeps all memory to which its commands point.
//!
//! | file | what it has |
//! |---|---|
//! | `memory` | the memory of entries |
//! | `commands` | the commands, as the kernel reads them |
//! | `queue` | gives commands to the kernel, and takes requests |

#![allow(unsafe_code, reason = "memory is shared with the kernel")]

mod commands;
mod memory;
mod queue;

pub(super) use memory::{HEADER_BYTES, Lease, Memory, entry_bytes};
pub(super) use queue::{Arrival, Queue};
