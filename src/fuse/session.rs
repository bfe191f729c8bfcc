//! A mount from its beginning to its end.
//!
//! [`Session::mount`] returns when the mount answers. [`Session::wait`] returns when it is gone:
//! unmounted by someone else, or by us after SIGINT, SIGTERM or SIGHUP. Then it is unmounted
//! first, so that nobody finds a dead mountpoint; a mount in use gets some seconds, and is
//! detached after that, or at a second signal.
//!
//! fuser serves the requests and neither mounts nor unmounts (`session_mount` says why): its
//! session is made of a device that is mounted already, and so holds nothing to unmount.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::mount_table::{Device, MountEntry, MountTable};
use super::session_mount;
use super::session_unmount::{Unmount, UnmountError, unmount};

/// How to mount. Always read-only, without set-uid files and devices, and with permission
/// checks by the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// The source that the mount table shows.
    pub fsname: OsString,
    /// Who may look into the mount.
    pub access: Access,
    /// Whether programs may be run from it.
    pub execution: Execution,
    /// Threads that answer requests; at least one.
    pub n_threads: usize,
}

/// Who may look into a mount, file permissions aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// The user who mounted.
    #[default]
    Owner,
    /// That user and root: `-o allow_root`.
    OwnerAndRoot,
    /// Everyone: `-o allow_other`.
    Everyone,
}

/// Whether programs may be run from a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// As the file permissions say.
    #[default]
    Allowed,
    /// Never: `-o noexec`.
    Denied,
}

/// Why there is no mount.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The kernel has no FUSE.
    #[error(
        "/dev/fuse is missing; load the kernel module (modprobe fuse), or pass the device to the container (--device /dev/fuse)"
    )]
    NoDevice,
    /// Not privileged, and no helper that is.
    #[error("mounting needs root or fusermount3, and fusermount3 is not on PATH; install fuse3")]
    NoHelper,
    /// The system refused to mount at the path, in the words that follow.
    #[error("cannot mount at {}: {}", .0.display(), .1)]
    Mount(PathBuf, String),
    /// Mounted at the path, but unable to serve, for the reason that follows.
    #[error("{} is mounted but does not answer: {}; it was unmounted again", .0.display(), .1)]
    Silent(PathBuf, io::Error),
    /// Serving the path ended with an error; the mount is gone.
    #[error("serving {} ended: {}", .0.display(), .1)]
    Broken(PathBuf, io::Error),
}

/// A mount that answers.
#[derive(Debug)]
pub struct Session {
    mountpoint: PathBuf,
    device: Device,
    events: Receiver<Event>,
}

#[derive(Debug)]
enum Event {
    /// The kernel is done with us: unmounted, and no file open.
    Ended(io::Result<()>),
    /// Asked to go.
    Signal(i32),
}

/// How long a mount in use may stay after a signal.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a session after the mount left the table.
const FAREWELL: Duration = Duration::from_secs(2);
/// Stack of a thread of [`spawn`].
const SMALL_STACK_BYTES: usize = 256 << 10;
/// Between two attempts at a busy mount.
const PAUSE: Duration = Duration::from_millis(100);

impl Session {
    /// Mounts `filesystem` at `mountpoint`, an absolute path free of links, and serves it from
    /// threads of its own. The mount answers when this returns. `notify` gets what the file
    /// system tells the kernel through, before the first request.
    ///
    /// # Errors
    /// See [`SessionError`]. Nothing stays mounted then.
    pub fn mount(
        filesystem: impl fuser::Filesystem,
        notify: impl FnOnce(fuser::Notifier),
        mountpoint: &Path,
        options: &SessionOptions,
    ) -> Result<Self, SessionError> {
        let (sender, events) = mpsc::channel();
        let (first, answers) = mpsc::channel();
        // From here on a signal waits until there is something to unmount.
        listen_to_signals(sender.clone()).map_err(|error| {
            let problem = format!("signals cannot be caught: {error}");
            SessionError::Mount(mountpoint.to_owned(), problem)
        })?;
        let fuse_device = session_mount::mount(mountpoint, options)?;
        let answer = fuser::Session::from_fd(
            filesystem,
            fuse_device,
            acl(options.access),
            config(options),
        )
        .and_then(|session| {
            notify(session.notifier());
            serve(session, sender, first.clone())
        })
        .and_then(|()| await_first_answer(mountpoint, first, &answers));
        match answer {
            Ok(device) => {
                session_mount::widen_read_ahead(device);
                log::info!("mounted at {}", mountpoint.display());
                Ok(Session {
                    mountpoint: mountpoint.to_owned(),
                    device,
                    events,
                })
            }
            Err(error) => {
                log_failure(mountpoint, unmount(mountpoint, Unmount::Detach));
                // The thread that serves knows better why than whoever got no answer.
                let cause = match events.recv_timeout(FAREWELL) {
                    Ok(Event::Ended(Err(cause))) => cause,
                    _ => error,
                };
                Err(SessionError::Silent(mountpoint.to_owned(), cause))
            }
        }
    }

    /// Waits for the end of the mount, and brings it about after a signal.
    ///
    /// # Errors
    /// [`SessionError::Broken`] when serving failed; nothing stays mounted then either.
    pub fn wait(self) -> Result<(), SessionError> {
        match self.events.recv() {
            Ok(Event::Ended(result)) => self.ended(result),
            Ok(Event::Signal(signal)) => {
                log::info!("signal {signal}: unmounting {}", self.mountpoint.display());
                self.end()
            }
            // Both threads are gone, and the serving one says goodbye unless it panicked.
            Err(mpsc::RecvError) => {
                self.ended(Err(io::Error::other("the serving thread panicked")))
            }
        }
    }

    /// Unmounts, waits while it is busy, and detaches in the end.
    ///
    /// # Errors
    /// As [`Session::wait`].
    pub fn end(self) -> Result<(), SessionError> {
        let deadline = Instant::now() + PATIENCE;
        let mut outcome = self.unmount_everywhere(Unmount::WhenIdle);
        while outcome == Err(UnmountError::Busy) {
            let patience = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(PAUSE.min(patience)) {
                Ok(Event::Ended(result)) => return self.ended(result),
                Err(RecvTimeoutError::Timeout) if !patience.is_zero() => {
                    outcome = self.unmount_everywhere(Unmount::WhenIdle);
                }
                Ok(Event::Signal(_)) | Err(_) => {
                    log::warn!("{} is in use: detaching it", self.mountpoint.display());
                    outcome = self.unmount_everywhere(Unmount::Detach);
                    break;
                }
            }
        }
        log_failure(&self.mountpoint, outcome);
        match self.events.recv_timeout(FAREWELL) {
            Ok(Event::Ended(result)) => self.ended(result),
            // Open files of a detached mount fail from now on.
            Ok(Event::Signal(_)) | Err(_) => Ok(()),
        }
    }

    /// Unmounts every mount of our device that is on top of its place: it may have been moved
    /// or bound elsewhere, and what is mounted over it is not ours to unmount.
    fn unmount_everywhere(&self, how: Unmount) -> Result<(), UnmountError> {
        let mut result = Ok(());
        for (mountpoint, is_on_top) in self.places()? {
            match is_on_top.then(|| unmount(&mountpoint, how)) {
                Some(Ok(()) | Err(UnmountError::NotMounted)) => {}
                Some(Err(error)) => result = Err(error),
                None => result = Err(UnmountError::Busy),
            }
        }
        result
    }

    /// After the last answer. A mount may remain, when the connection was aborted (through
    /// `/sys/fs/fuse/connections`) or serving failed: it is dead, and is detached. A live one is
    /// not ours any more: the kernel gives the device number of an ended mount to the next.
    fn ended(&self, result: io::Result<()>) -> Result<(), SessionError> {
        for (mountpoint, _) in self.places().unwrap_or_default() {
            if is_dead(&mountpoint) {
                log_failure(&mountpoint, unmount(&mountpoint, Unmount::Detach));
            }
        }
        log::info!("unmounted {}", self.mountpoint.display());
        match result {
            Err(error) if !is_farewell(&error) => {
                Err(SessionError::Broken(self.mountpoint.clone(), error))
            }
            _ => Ok(()),
        }
    }

    /// Where our device is mounted, newest first, and whether a path walk finds it there: nothing is
    /// mounted over it.
    fn places(&self) -> Result<Vec<(PathBuf, bool)>, UnmountError> {
        let table = MountTable::read().map_err(|error| UnmountError::Refused(error.to_string()))?;
        let ours = table.of_device(self.device).filter(|entry| entry.is_ours());
        let place = |entry: &MountEntry| {
            let found = table.at(&entry.mountpoint);
            (entry.mountpoint.clone(), found == Some(entry))
        };
        Ok(ours.map(place).collect())
    }
}

/// Whether a FUSE mount is left at `mountpoint` whose daemon is gone: "Transport endpoint is
/// not connected". `stat` does not tell: the kernel answers it from its cache.
pub fn is_dead(mountpoint: &Path) -> bool {
    matches!(rustix::fs::statvfs(mountpoint), Err(Errno::NOTCONN))
}

/// Whether the kernel ended the session, and nothing failed. A thread that waits for a request is
/// told so by `ENODEV`, which fuser knows; one that was just taking its last request, such as the
/// release of a file of a detached mount, by `ECONNABORTED` (`fuse_dev_do_read`).
fn is_farewell(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::CONNABORTED.raw_os_error())
}

fn listen_to_signals(events: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !hangup_is_ignored() {
        signals.add_signal(SIGHUP)?;
    }
    spawn("signals", move || {
        let mut signals = signals.forever();
        signals.all(|signal| events.send(Event::Signal(signal)).is_ok());
    })
}

/// Starts a thread that does next to nothing.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.stack_size(SMALL_STACK_BYTES).spawn(work).map(drop)
}

/// Whether this was started by nohup(1), which wants a hangup to change nothing.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    // One bit a signal, the lowest for signal 1, which is SIGHUP.
    let bits = lines
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & 1 != 0)
}

fn acl(access: Access) -> fuser::SessionACL {
    match access {
        Access::Owner => fuser::SessionACL::Owner,
        Access::OwnerAndRoot => fuser::SessionACL::RootAndOwner,
        Access::Everyone => fuser::SessionACL::All,
    }
}

fn config(options: &SessionOptions) -> fuser::Config {
    let mut config = fuser::Config::default();
    config.acl = acl(options.access);
    config.n_threads = Some(options.n_threads.max(1));
    config.clone_fd = session_mount::can_open_devices(options.n_threads);
    config
}

/// Answers requests until the kernel has no more. `first` is told if it cannot.
fn serve<F: fuser::Filesystem>(
    session: fuser::Session<F>,
    events: Sender<Event>,
    first: Sender<io::Result<Device>>,
) -> io::Result<()> {
    spawn("session", move || {
        let result = session.run();
        if let Err(error) = &result {
            let error = io::Error::new(error.kind(), error.to_string());
            first.send(Err(error)).ok();
        }
        // Nobody listens any more when the process is about to end.
        events.send(Event::Ended(result)).ok();
    })
}

/// Waits until the mount answers, or cannot be served. A thread of its own asks, because what is
/// asked of a mount that nobody serves has no answer for as long as this process lives: the file
/// system holds the device open too, through its notifier.
fn await_first_answer(
    mountpoint: &Path,
    first: Sender<io::Result<Device>>,
    answers: &Receiver<io::Result<Device>>,
) -> io::Result<Device> {
    let mountpoint = mountpoint.to_owned();
    spawn("first-look", move || {
        first.send(device_behind(&mountpoint)).ok();
    })?;
    answers
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("nobody serves it")))
}

/// Asks the mount for its attributes, through the kernel. Not to be called by a thread that
/// has to give the answer.
fn device_behind(mountpoint: &Path) -> io::Result<Device> {
    rustix::fs::statvfs(mountpoint)?;
    let device = rustix::fs::stat(mountpoint)?.st_dev;
    Ok(Device {
        major: major(device),
        minor: minor(device),
    })
}

fn log_failure(mountpoint: &Path, result: Result<(), UnmountError>) {
    if let Err(error) = result {
        log::error!("{} stays mounted: {error}", mountpoint.display());
    }
}
