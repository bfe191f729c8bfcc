//! Log records that the user is to see at once.
//!
//! A mount starts in the background, where its log is a file or that of the system. A record with the
//! target [`TOLD`] is also printed by the command that waits for the mount, until the mount answers.

/// The target of such a record: `log::warn!(target: TOLD, …)`.
pub const TOLD: &str = "zarr_mount::told";
