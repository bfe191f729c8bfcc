//! Moving to the background.
//!
//! The process forks while it has one thread. The child becomes the daemon; the parent reads a
//! pipe. Each message is a byte, a text and a NUL:
//!
//! ```text
//! w, a line          a warning, which the parent prints at once; more messages follow
//! r                  the mount answers: status 0
//! f, a line          it failed: the parent prints the line, status 1
//! end of file        the daemon died without a message: status 1
//! ```
//!
//! The daemon closes the descriptors that it has inherited at once: a process that reads a pipe to its
//! end, as `$(zarr-mount …)` does, would otherwise wait for the unmount. It also leaves its working
//! directory, which would keep that file system busy. It leaves the session of its parent (`setsid`), with its terminal, when
//! the mount answers. Until then it stays in the process group of its parent. If that group is the
//! automounter's, the kernel lets the daemon pass the trap of autofs at the mountpoint; a process of
//! another group would trigger the trap again, and wait for itself.

#![expect(unsafe_code, reason = "fork(2) and close_range(2) have no safe form")]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, WaitStatus};

/// One of the two processes after a fork.
#[derive(Debug)]
pub(crate) enum Forked {
    /// The process that was started, which waits for the daemon to mount.
    Parent(StartupResult),
    /// The daemon.
    Daemon(StartupReport),
}

/// The parent's end of the pipe.
#[derive(Debug)]
pub(crate) struct StartupResult {
    pipe: File,
    daemon: Pid,
}

/// The daemon's end of the pipe, which gets the outcome of mounting.
#[derive(Debug, Clone)]
pub(crate) struct StartupReport {
    /// `None` in the foreground, where no process waits, and after the outcome was sent.
    pipe: Arc<Mutex<Option<File>>>,
}

/// Forks. Must be called before anything is opened and before any thread exists.
///
/// # Errors
/// When the system has no process, pipe or descriptor left, or `/dev/null` cannot be opened.
pub(crate) fn fork() -> io::Result<Forked> {
    close_inherited()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: this process has one thread, so no other thread holds a lock or is in the middle of a
    // change. The child may go on like any process.
    let pid = unsafe { libc::fork() };
    match Pid::from_raw(pid) {
        _ if pid < 0 => Err(io::Error::last_os_error()),
        Some(daemon) => Ok(Forked::Parent(StartupResult {
            pipe: File::from(reader),
            daemon,
        })),
        None => {
            drop(reader);
            leave_files(&null)?;
            Ok(Forked::Daemon(StartupReport::to_parent(File::from(writer))))
        }
    }
}

fn leave_files(null: &File) -> io::Result<()> {
    rustix::process::chdir("/")?;
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}

/// Closes every descriptor but the three standard ones.
fn close_inherited() -> io::Result<()> {
    let (first, last, flags) = (3_u32, u32::MAX, 0_u32);
    // SAFETY: the command has opened nothing yet, so that no value of this program owns a
    // descriptor above 2; those that exist came with exec(2).
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if result == 0 {
        return Ok(());
    }
    // Linux before 5.9 lacks the call.
    let names = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|descriptor| *descriptor > 2);
    for descriptor in names.collect::<Vec<_>>() {
        // SAFETY: no value of this program owns these descriptors, as said above. The descriptor of the
        // listing itself was closed already, and to close its number a second time has no effect.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

/// With fewer descriptors, the daemon's own ones leave none for requests.
const LEAST_DESCRIPTORS: u64 = 16;

/// Checks that the limit of open files suffices for a mount.
///
/// # Errors
/// A message with advice, where it does not.
pub(crate) fn check_descriptor_limit() -> Result<(), String> {
    match rustix::process::getrlimit(Resource::Nofile).maximum {
        Some(most) if most < LEAST_DESCRIPTORS => Err(format!(
            "the limit of open files is {most}, and a mount needs {LEAST_DESCRIPTORS}; raise it \
             (ulimit -n 1024)"
        )),
        _ => Ok(()),
    }
}

/// Raises the limit of open files to its maximum: each open file of the mount may need a
/// descriptor.
pub(crate) fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        log::info!(
            "the limit of open files stays at {:?}: {error}",
            limit.current
        );
    }
}

impl StartupResult {
    /// Waits until the mount answers, and hands each warning to `warn` when it comes.
    ///
    /// # Errors
    /// The message of the daemon, or its end.
    pub(crate) fn wait(&self, mut warn: impl FnMut(String)) -> Result<(), String> {
        let mut pipe = BufReader::new(&self.pipe);
        loop {
            let mut message = Vec::new();
            let read = pipe.read_until(END, &mut message);
            let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
            match (read, &message[..]) {
                (Ok(_), [b'w', line @ .., END]) => warn(text(line)),
                (Ok(_), [b'r', END]) => return Ok(()),
                (Ok(_), [b'f', line @ .., END]) => {
                    // Waits, so that the daemon has ended too when this process ends.
                    self.end_of_daemon();
                    return Err(text(line));
                }
                _ => return Err(self.cause_of_death()),
            }
        }
    }

    fn end_of_daemon(&self) -> Option<WaitStatus> {
        let ended = rustix::process::waitpid(Some(self.daemon), WaitOptions::empty());
        ended.ok().flatten().map(|(_, status)| status)
    }

    fn cause_of_death(&self) -> String {
        let status = self.end_of_daemon();
        match status.and_then(WaitStatus::terminating_signal) {
            Some(signal) => format!("the daemon was killed by signal {signal} before it mounted"),
            None => "the daemon ended before it mounted; try -f to see why".to_owned(),
        }
    }
}

impl StartupReport {
    /// A report for the foreground, where no process waits.
    pub(crate) fn to_nobody() -> Self {
        StartupReport {
            pipe: Arc::default(),
        }
    }

    fn to_parent(pipe: File) -> Self {
        StartupReport {
            pipe: Arc::new(Mutex::new(Some(pipe))),
        }
    }

    /// Has the parent print a warning of one line, unless the outcome was sent.
    pub(crate) fn warn(&self, line: &str) {
        // If the parent is gone, sending the outcome fails too.
        self.send(b'w', line, false).ok();
    }

    /// Leaves the session of the parent, and reports that the mount answers, with warnings of one line each. From here
    /// on, this process may wait for an automounter that waits for the parent, so it must not examine the mountpoint
    /// before the report is sent.
    ///
    /// # Errors
    /// When the parent is gone: an interrupted command must leave no mount behind.
    pub(crate) fn ready(&self, warnings: &[String]) -> io::Result<()> {
        if self.lock().is_some() {
            rustix::process::setsid()?;
        }
        for line in warnings {
            self.warn(line);
        }
        self.send(b'r', "", true)
    }

    /// Reports an error.
    pub(crate) fn failed(&self, line: &str) {
        // If the parent is gone, the message is lost.
        self.send(b'f', line, true).ok();
    }

    fn send(&self, kind: u8, line: &str, is_outcome: bool) -> io::Result<()> {
        let mut pipe = self.lock();
        let Some(open) = pipe.as_mut() else {
            return Ok(());
        };
        // Lines may have all characters but NUL, as paths do.
        let line = line.replace('\0', " ");
        let sent = open.write_all(&[&[kind], line.as_bytes(), &[END]].concat());
        if is_outcome {
            *pipe = None;
        }
        sent
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<File>> {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a message.
const END: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tell: impl FnOnce(StartupReport)) -> Result<Vec<String>, String> {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        tell(StartupReport::to_parent(File::from(writer)));
        let verdict = StartupResult {
            pipe: File::from(reader),
            daemon: Pid::INIT, // no child of this process
        };
        let mut warnings = Vec::new();
        verdict.wait(|line| warnings.push(line)).map(|()| warnings)
    }

    #[test]
    fn the_three_outcomes() {
        let ready = |report: StartupReport| report.send(b'r', "", true).unwrap();
        assert_eq!(told(ready), Ok(Vec::new()));
        let found = told(|report| {
            report.warn("one");
            report.warn("two\nlines");
            ready(report.clone());
            report.warn("too late");
        });
        assert_eq!(found.unwrap(), ["one", "two\nlines"]);
        let failed = told(|report| {
            report.warn("before");
            report.failed("no");
        });
        assert_eq!(failed, Err("no".to_owned()));
        let silent = told(drop).unwrap_err();
        assert!(silent.contains("ended before"), "{silent}");
    }
}
