//! The answer of the daemon of a mount, if it comes in time.
//!
//! Once the kernel has passed a request on, the thread that made it waits for the reply, even after SIGKILL, and its
//! process cannot end before. The kernel passes requests on even to a stopped daemon if it has rings. So a child process
//! asks, and this process does not wait for a child that gets no answer.

#![expect(unsafe_code, reason = "fork(2) and _exit(2) have no safe form")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions};

/// The most bytes of a file that are taken.
const LONGEST: usize = 16 << 20;

/// The bytes that are read at once.
const PIECE: usize = 16 << 10;

/// The bytes of the file at `path` in a mount; `None` if its daemon does not answer within `patience`.
///
/// # Errors
/// Errors of the mount, and of the system.
pub(super) fn read_in_time(path: &Path, patience: Duration) -> io::Result<Option<Vec<u8>>> {
    let end = Instant::now() + patience;
    let (child, pipe) = ask(path)?;
    let read = receive(&pipe, end);
    match read {
        Ok(Some(bytes)) => {
            let (_, status) =
                rustix::process::waitpid(Some(child), WaitOptions::empty())?.ok_or(Errno::CHILD)?;
            match status.exit_status() {
                Some(0) => Ok(Some(bytes)),
                Some(errno) => Err(io::Error::from_raw_os_error(errno)),
                None => Ok(None),
            }
        }
        late_or_failed => {
            // The child ends now, or when the daemon answers.
            rustix::process::kill_process(child, Signal::KILL).ok();
            late_or_failed
        }
    }
}

/// A child that writes the bytes of the file into a pipe, and exits with the number of its error.
fn ask(path: &Path) -> io::Result<(Pid, OwnedFd)> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: other threads may hold locks, so the child only makes system calls, and allocates nothing.
    let child = unsafe { libc::fork() };
    match Pid::from_raw(child) {
        _ if child < 0 => Err(io::Error::last_os_error()),
        Some(child) => Ok((child, reader)),
        None => {
            drop(reader);
            let copied = copy(&path, &null, &writer);
            let status = copied.map_or_else(Errno::raw_os_error, |()| 0);
            // SAFETY: this process is a copy of its parent, so it has nothing to clean up.
            unsafe { libc::_exit(status) }
        }
    }
}

/// Copies a file into a pipe. This process may wait for ever, so it gives up the standard streams first: a program that
/// reads the output of the command to its end must not wait for this process.
fn copy(path: &CStr, null: &File, pipe: &OwnedFd) -> Result<(), Errno> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    rustix::process::chdir("/")?;
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut piece = [0; PIECE];
    loop {
        let n = rustix::io::read(&file, &mut piece)?;
        let mut left = &piece[..n];
        if left.is_empty() {
            return Ok(());
        }
        while !left.is_empty() {
            left = &left[rustix::io::write(pipe, left)?..];
        }
    }
}

/// All bytes of a pipe; `None` if its end does not come before `end`.
fn receive(pipe: &OwnedFd, end: Instant) -> io::Result<Option<Vec<u8>>> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE]);
    while bytes.len() < LONGEST {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut polled = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(&left)) {
            Ok(0) => return Ok(None),
            Err(Errno::INTR) => continue,
            result => result?,
        };
        let n = rustix::io::read(pipe, &mut piece)?;
        if n == 0 {
            return Ok(Some(bytes));
        }
        bytes.extend_from_slice(&piece[..n]);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_an_error_and_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        let bytes = vec![7; 3 * PIECE + 1];
        std::fs::write(&file, &bytes).unwrap();
        let long = Duration::from_secs(60);
        assert_eq!(read_in_time(&file, long).unwrap(), Some(bytes));
        let missing = read_in_time(&folder.path().join("none"), long).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
        // The open of a named pipe without a writer waits.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let late = read_in_time(&pipe, Duration::from_millis(50));
        assert_eq!(late.unwrap(), None);
    }
}
