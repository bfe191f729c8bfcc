//! The process that a thread belongs to, and whether it is about to end.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

/// The process, of any program, that has this thread; `None` if that cannot be found out.
pub fn process_of(thread: u32) -> Option<u32> {
    // The first thread of a process has the number of the process. Other threads cannot be opened in
    // this way, which takes a tenth of the time of reading the file below.
    let pid = i32::try_from(thread).ok().and_then(Pid::from_raw)?;
    if pidfd_open(pid, PidfdFlags::empty()).is_ok() {
        return Some(thread);
    }
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Signals that end no process by default: they are ignored, or stop a process, or continue it.
const HARMLESS: [Signal; 8] = [
    Signal::CHILD,
    Signal::CONT,
    Signal::STOP,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
    Signal::URG,
    Signal::WINCH,
];

/// Whether the process of this thread ends as soon as the thread returns from its system call, because a signal that
/// ends it is pending. `false` where that cannot be found out.
pub fn is_dying(thread: u32) -> bool {
    let status = status_of(thread);
    status.is_some_and(|status| has_fatal_signal(&status).unwrap_or(false))
}

/// Whether this thread may be waiting for a page of a file, which no signal but a fatal one ends. `true` where that
/// cannot be found out.
pub fn may_wait_for_page(thread: u32) -> bool {
    let status = status_of(thread);
    let waits = status.and_then(|status| is_uninterruptible(&status));
    waits.unwrap_or(true)
}

/// The status file of a thread; `None` if it cannot be read.
fn status_of(thread: u32) -> Option<String> {
    // If `/proc` belongs to another PID namespace, such as the host's in a container, these numbers are
    // those of other threads.
    let ourselves = std::fs::read_link("/proc/self");
    if !ourselves.is_ok_and(|number| number.as_os_str() == &*std::process::id().to_string()) {
        return None;
    }
    std::fs::read_to_string(format!("/proc/{thread}/status")).ok()
}

/// Whether the lines of a status file show a sleep that no harmless signal ends. `None` if they do not say.
fn is_uninterruptible(status: &str) -> Option<bool> {
    let mut lines = status.lines();
    let state = lines.find_map(|line| line.strip_prefix("State:"))?;
    Some(state.trim_start().starts_with('D'))
}

/// Whether the lines of a status file show a pending signal that ends the process. `None` if they do not say.
fn has_fatal_signal(status: &str) -> Option<bool> {
    let signals = |name| {
        let mut lines = status.lines();
        let bits = lines.find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(bits.trim(), 16).ok()
    };
    let pending = signals("SigPnd:")? | signals("ShdPnd:")?;
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))?;
    if tracer.trim() != "0" {
        // A debugger may keep all signals but SIGKILL from the process.
        return Some(pending & 1 << (Signal::KILL.as_raw() - 1) != 0);
    }
    let survived = signals("SigBlk:")? | signals("SigIgn:")? | signals("SigCgt:")?;
    let harmless = HARMLESS
        .iter()
        .fold(0, |bits, signal| bits | 1 << (signal.as_raw() - 1));
    Some(pending & !survived & !harmless != 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::process::kill_process;

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
    fn a_number_of_no_thread_has_no_process() {
        assert_eq!(process_of(0), None);
        assert_eq!(process_of(u32::MAX), None);
    }

    #[test]
    fn signals_that_are_survived_are_not_fatal() {
        const QUIT: &str = "0000000000000004";
        const KILL: &str = "0000000000000100";
        const WINCH: &str = "0000000008000000";
        const NONE: &str = "0000000000000000";
        let cases = [
            (NONE, NONE, NONE, false),
            (KILL, NONE, NONE, true),
            (NONE, KILL, NONE, true),
            (NONE, QUIT, NONE, true),
            (NONE, QUIT, QUIT, false),
            (QUIT, KILL, QUIT, true),
            (WINCH, NONE, NONE, false),
        ];
        for (own, shared, survived, is_fatal) in cases {
            for (blocked, ignored, caught) in [
                (survived, NONE, NONE),
                (NONE, survived, NONE),
                (NONE, NONE, survived),
            ] {
                let status = format!(
                    "Name:\tcat\nTracerPid:\t0\nSigPnd:\t{own}\nShdPnd:\t{shared}\n\
                     SigBlk:\t{blocked}\nSigIgn:\t{ignored}\nSigCgt:\t{caught}\n"
                );
                assert_eq!(has_fatal_signal(&status), Some(is_fatal), "{status}");
            }
        }
        assert_eq!(has_fatal_signal("Name:\tcat\n"), None);
        // A debugger decides which signals reach the process, but for SIGKILL.
        for (pending, is_fatal) in [(QUIT, false), (KILL, true)] {
            let status = format!(
                "TracerPid:\t7\nSigPnd:\t{pending}\nShdPnd:\t{NONE}\n\
                 SigBlk:\t{NONE}\nSigIgn:\t{NONE}\nSigCgt:\t{NONE}\n"
            );
            assert_eq!(has_fatal_signal(&status), Some(is_fatal), "{status}");
        }
    }

    #[test]
    fn a_thread_in_another_sleep_waits_for_no_page() {
        let cases = [
            ("Name:\tcat\nState:\tD (disk sleep)\n", Some(true)),
            ("State:\tS (sleeping)\n", Some(false)),
            ("State:\tR (running)\n", Some(false)),
            ("Name:\tcat\n", None),
        ];
        for (status, waits) in cases {
            assert_eq!(is_uninterruptible(status), waits, "{status}");
        }
        assert!(!may_wait_for_page(this_thread()));
        assert!(may_wait_for_page(0) && may_wait_for_page(u32::MAX));
    }

    #[test]
    fn a_process_is_dying_once_a_signal_that_ends_it_is_pending() {
        /// Ends the process, even after a panic.
        struct Ended(Child);

        impl Drop for Ended {
            fn drop(&mut self) {
                let _ = self.0.kill();
                let _ = self.0.wait();
            }
        }

        let child = Ended(Command::new("sleep").arg("600").spawn().unwrap());
        let pid = Pid::from_child(&child.0);
        // A signal is pending for as long as its process is stopped. SIGKILL, and most others that end a process, would
        // continue it.
        kill_process(pid, Signal::STOP).unwrap();
        while !std::fs::read_to_string(format!("/proc/{}/stat", child.0.id()))
            .unwrap()
            .contains(") T ")
        {
            std::thread::yield_now();
        }
        assert!(!is_dying(child.0.id()));
        kill_process(pid, Signal::ABORT).unwrap();
        assert!(is_dying(child.0.id()));
        assert!(!is_dying(std::process::id()) && !is_dying(0) && !is_dying(u32::MAX));
    }
}
