//! Which process a thread belongs to.

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The process that has this thread, of whatever program; `None` where that cannot be found out.
pub fn process_of(thread: u32) -> Option<u32> {
    // The first thread of a process has the number of the process. No other thread can be opened in this
    // way, which takes a tenth of the time of the file below.
    let pid = i32::try_from(thread).ok().and_then(Pid::from_raw)?;
    if pidfd_open(pid, PidfdFlags::empty()).is_ok() {
        return Some(thread);
    }
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_thread() -> u32 {
        u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap()
    }

    #[test]
    fn threads_have_the_process_that_started_them() {
        let other = std::thread::spawn(|| (this_thread(), process_of(this_thread())));
        let (thread, process) = other.join().unwrap();
        assert_ne!(thread, std::process::id());
        assert_eq!(process, Some(std::process::id()));
        assert_eq!(process_of(std::process::id()), Some(std::process::id()));
    }

    #[test]
    fn what_is_no_thread_has_none() {
        assert_eq!(process_of(0), None);
        assert_eq!(process_of(u32::MAX), None);
    }
}
