//! The daemon of a mount that ends. The command `--unmount` waits for it.
//!
//! The kernel ends a mount at once. The daemon then saves the remaining drafts, releases the store, and removes the
//! directory that it made as mountpoint.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

/// A daemon that is running.
#[derive(Debug)]
pub(super) struct RunningDaemon(OwnedFd);

impl RunningDaemon {
    /// The daemon of the mount at `mountpoint`; `None` if it cannot be found: the mount is dead or another user's, or
    /// its daemon runs in another container.
    pub(super) fn of(mountpoint: &Path) -> Option<RunningDaemon> {
        let counters = fs::read(mountpoint.join(".zarr-mount/stats.json")).ok()?;
        let counters: Value = serde_json::from_slice(&counters).ok()?;
        let pid = i32::try_from(counters.get("pid")?.as_u64()?).ok()?;
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        // The number of a daemon in another container may be another process here.
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        name.contains("zarr-mo").then_some(RunningDaemon(process))
    }

    /// Waits until the daemon has ended, at most for `patience`. Returns whether it has.
    pub(super) fn has_ended_within(&self, patience: Duration) -> bool {
        let mut process = [PollFd::new(&self.0, PollFlags::IN)];
        let limit = Timespec::try_from(patience).ok();
        poll(&mut process, limit.as_ref()).is_ok_and(|n| n > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_waited_for() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let running = RunningDaemon(pidfd_open(pid, PidfdFlags::empty()).unwrap());
        assert!(!running.has_ended_within(Duration::from_millis(1)));
        child.kill().unwrap();
        assert!(running.has_ended_within(Duration::from_secs(60)));
        child.wait().unwrap();
    }

    #[test]
    fn no_daemon_is_where_no_counters_are() {
        let folder = tempfile::tempdir().unwrap();
        assert!(RunningDaemon::of(folder.path()).is_none());
        let control = folder.path().join(".zarr-mount");
        fs::create_dir(&control).unwrap();
        for text in [
            "",
            "{}",
            r#"{"pid": 0}"#,
            r#"{"pid": -1}"#,
            r#"{"pid": 1e99}"#,
        ] {
            fs::write(control.join("stats.json"), text).unwrap();
            assert!(RunningDaemon::of(folder.path()).is_none(), "{text}");
        }
    }
}
