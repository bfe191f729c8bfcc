//! A mount from its beginning to its end.
//!
//! [`Session::mount`] returns when the mount answers. [`Session::wait`] returns when the mount is
//! gone: unmounted by another program, or by this process after SIGINT, SIGTERM, SIGQUIT or SIGHUP. After a
//! signal it is unmounted before its requests end, so that no program finds a dead mountpoint. A mount
//! in use gets some seconds, and is detached after that, or at a second signal.
//!
//! fuser serves the requests and neither mounts nor unmounts (`session_mount` says why): its
//! session gets a device that is mounted already, and so has nothing to unmount.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::Signals;

pub use super::session_options::{Execution, MountAccess, SessionError, SessionOptions};
use super::session_unmount::{Unmount, UnmountError, unmount};
use super::{ZarrFs, session_mount};
use crate::mount_table::{Device, MountEntry, MountTable};

/// A mount that answers.
#[derive(Debug)]
pub struct Session {
    mountpoint: PathBuf,
    device: Device,
    events: Receiver<SessionEvent>,
}

#[derive(Debug)]
enum SessionEvent {
    /// The kernel ended the session: it is unmounted, and no file is open.
    Ended(io::Result<()>),
    /// A signal asks to unmount.
    Signal(i32),
}

/// How long a mount in use may stay after a signal.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a session after the mount left the table.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Stack of a thread of [`spawn`].
const SMALL_STACK_BYTES: usize = 256 << 10;
/// Time between two attempts to unmount a busy mount.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

impl Session {
    /// Mounts `filesystem` at `mountpoint`, an absolute path free of links, and serves it from
    /// threads of its own. The mount answers when this returns.
    ///
    /// # Errors
    /// See [`SessionError`]. Nothing is left mounted then.
    pub fn mount(
        filesystem: ZarrFs,
        mountpoint: &Path,
        options: &SessionOptions,
    ) -> Result<Self, SessionError> {
        let (sender, events) = mpsc::channel();
        let (first, answers) = mpsc::channel();
        // From here on, a signal is kept until there is a mount to unmount.
        listen_to_signals(sender.clone()).map_err(|error| {
            let problem = format!("signals cannot be caught: {error}");
            SessionError::Mount(mountpoint.to_owned(), problem)
        })?;
        let core = Arc::clone(&filesystem.0);
        let rings = filesystem.prepare_rings().map_err(SessionError::NoRings)?;
        let fuse_device = session_mount::mount(mountpoint, options)?;
        let answer = fuser::Session::from_fd(
            filesystem,
            fuse_device,
            acl(options.access),
            config(options),
        )
        .and_then(|session| {
            // By it, the file system can drop what the kernel caches, before the first request.
            drop(core.notifier.set(session.notifier()));
            let device = session.as_fd().try_clone_to_owned()?;
            ZarrFs::start_rings(&core, rings, device, options.access)?;
            serve(session, sender, first.clone())
        })
        .and_then(|()| await_first_reply(mountpoint, first, &answers));
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
                // The error of the serving thread says more than that of the request.
                let cause = match events.recv_timeout(END_TIMEOUT) {
                    Ok(SessionEvent::Ended(Err(cause))) => cause,
                    _ => error,
                };
                Err(SessionError::Silent(mountpoint.to_owned(), cause))
            }
        }
    }

    /// Waits for the end of the mount, and unmounts it after a signal. Before it unmounts, it calls `signalled`.
    ///
    /// # Errors
    /// [`SessionError::Broken`] when serving failed; nothing is left mounted then either.
    pub fn wait(self, signalled: impl FnOnce()) -> Result<(), SessionError> {
        match self.events.recv() {
            Ok(SessionEvent::Ended(result)) => self.ended(result),
            Ok(SessionEvent::Signal(signal)) => {
                log::info!("signal {signal}: unmounting {}", self.mountpoint.display());
                signalled();
                self.end()
            }
            // Both threads have ended, and the serving one sends its result unless it panicked.
            Err(mpsc::RecvError) => {
                self.ended(Err(io::Error::other("the serving thread panicked")))
            }
        }
    }

    /// Unmounts, waits while it is busy, and detaches in the end.
    ///
    /// # Errors
    /// Those of [`Session::wait`].
    pub fn end(self) -> Result<(), SessionError> {
        let deadline = Instant::now() + BUSY_TIMEOUT;
        let mut outcome = self.unmount_everywhere(Unmount::WhenIdle);
        while outcome == Err(UnmountError::Busy) {
            let patience = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(RETRY_INTERVAL.min(patience)) {
                Ok(SessionEvent::Ended(result)) => return self.ended(result),
                Err(RecvTimeoutError::Timeout) if !patience.is_zero() => {
                    outcome = self.unmount_everywhere(Unmount::WhenIdle);
                }
                Ok(SessionEvent::Signal(_)) | Err(_) => {
                    log::warn!("{} is in use: detaching it", self.mountpoint.display());
                    outcome = self.unmount_everywhere(Unmount::Detach);
                    break;
                }
            }
        }
        log_failure(&self.mountpoint, outcome);
        match self.events.recv_timeout(END_TIMEOUT) {
            Ok(SessionEvent::Ended(result)) => self.ended(result),
            // Open files of a detached mount fail from now on.
            Ok(SessionEvent::Signal(_)) | Err(_) => Ok(()),
        }
    }

    /// Unmounts every mount of this device, which may have been moved or bound elsewhere. A mount
    /// with another one on top of it counts as busy, because that one must not be unmounted here.
    fn unmount_everywhere(&self, how: Unmount) -> Result<(), UnmountError> {
        let mut result = Ok(());
        for (mountpoint, is_on_top) in self.mountpoints()? {
            match is_on_top.then(|| unmount(&mountpoint, how)) {
                Some(Ok(()) | Err(UnmountError::NotMounted)) => {}
                Some(Err(error)) => result = Err(error),
                None => result = Err(UnmountError::Busy),
            }
        }
        result
    }

    /// Cleans up after the session has ended. If the connection was aborted (through
    /// `/sys/fs/fuse/connections`) or serving failed, a dead mount remains, and is detached. A live
    /// mount belongs to another process: the kernel reuses the device number of a mount that ended.
    fn ended(&self, result: io::Result<()>) -> Result<(), SessionError> {
        for (mountpoint, _) in self.mountpoints().unwrap_or_default() {
            if is_dead(&mountpoint) {
                log_failure(&mountpoint, unmount(&mountpoint, Unmount::Detach));
            }
        }
        log::info!("unmounted {}", self.mountpoint.display());
        match result {
            Err(error) if !is_session_end(&error) => {
                Err(SessionError::Broken(self.mountpoint.clone(), error))
            }
            _ => Ok(()),
        }
    }

    /// Where this device is mounted, newest first, and whether a path walk finds it there, because
    /// nothing is mounted over it.
    fn mountpoints(&self) -> Result<Vec<(PathBuf, bool)>, UnmountError> {
        let table = MountTable::read().map_err(|error| UnmountError::Refused(error.to_string()))?;
        let ours = table.of_device(self.device).filter(|entry| entry.is_ours());
        let place = |entry: &MountEntry| {
            let found = table.at(&entry.mountpoint);
            (entry.mountpoint.clone(), found == Some(entry))
        };
        Ok(ours.map(place).collect())
    }
}

/// Whether the FUSE mount at `mountpoint` is dead, because its daemon is gone. `stat` does not show
/// that, because the kernel answers it from its cache.
pub fn is_dead(mountpoint: &Path) -> bool {
    rustix::fs::statvfs(mountpoint).is_err_and(is_of_dead_mount)
}

/// Whether the error is one of a mount whose daemon is gone: `ENOTCONN` ("Transport endpoint is not connected"), or
/// `ECONNABORTED` or `ECANCELED` for a request that was on its way when the daemon ended. With rings the kernel ends
/// the mount a little later than the daemon, so that a request may still be on its way.
pub fn is_of_dead_mount(errno: Errno) -> bool {
    matches!(errno, Errno::NOTCONN | Errno::CONNABORTED | Errno::CANCELED)
}

/// Whether the error only means that the kernel ended the session. A thread that waits for a
/// request gets `ENODEV` then, which fuser handles; a thread that is taking its last request, such
/// as the release of a file of a detached mount, gets `ECONNABORTED` (`fuse_dev_do_read`).
fn is_session_end(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::CONNABORTED.raw_os_error())
}

/// After this call, a write that would make a file of the store longer than the limit of this process fails (EFBIG),
/// and does not end the program.
pub fn outlive_long_files() {
    outlive(SIGXFSZ, "a limit of file sizes (ulimit -f)");
}

/// Ignores `signal`, which would otherwise end the program, and leave a dead mount.
fn outlive(signal: i32, cause: &str) {
    if let Err(error) = signal_hook::flag::register(signal, Arc::default()) {
        log::warn!("{cause} ends this program: {error}");
    }
}

fn listen_to_signals(events: Sender<SessionEvent>) -> io::Result<()> {
    for (signal, name) in [
        (SIGUSR1, "SIGUSR1"),
        (SIGUSR2, "SIGUSR2"),
        (SIGALRM, "SIGALRM"),
    ] {
        outlive(signal, name);
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGQUIT])?;
    if !hangup_is_ignored() {
        signals.add_signal(SIGHUP)?;
    }
    spawn("signals", move || {
        let mut signals = signals.forever();
        signals.all(|signal| events.send(SessionEvent::Signal(signal)).is_ok());
    })
}

/// Starts a thread that needs little stack.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.stack_size(SMALL_STACK_BYTES).spawn(work).map(drop)
}

/// Whether this process was started by nohup(1), so that a hangup must not end it.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    // A bit for each signal, the lowest for signal 1, which is SIGHUP.
    let bits = lines
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & 1 != 0)
}

fn acl(access: MountAccess) -> fuser::SessionACL {
    match access {
        MountAccess::Owner => fuser::SessionACL::Owner,
        MountAccess::OwnerAndRoot => fuser::SessionACL::RootAndOwner,
        MountAccess::Everyone => fuser::SessionACL::All,
    }
}

fn config(options: &SessionOptions) -> fuser::Config {
    let mut config = fuser::Config::default();
    config.acl = acl(options.access);
    config.n_threads = Some(options.n_threads.max(1));
    config.clone_fd = session_mount::can_open_devices(options.n_threads);
    config
}

/// Answers requests until the session ends. An error is sent to `first` too.
fn serve<F: fuser::Filesystem>(
    session: fuser::Session<F>,
    events: Sender<SessionEvent>,
    first: Sender<io::Result<Device>>,
) -> io::Result<()> {
    spawn("session", move || {
        let result = session.run();
        if let Err(error) = &result {
            let error = io::Error::new(error.kind(), error.to_string());
            first.send(Err(error)).ok();
        }
        // The receiver is gone if the process is about to end.
        events.send(SessionEvent::Ended(result)).ok();
    })
}

/// Waits until the mount answers, or cannot be served. A thread of its own sends the request, because it would hang if
/// the mount was not served: as long as this process lives, the notifier of the file system keeps the device open.
fn await_first_reply(
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
        .unwrap_or_else(|_| Err(io::Error::other("it is not served")))
}

/// Requests the attributes of the mount, through the kernel. A thread that serves the mount must not call this.
fn device_behind(mountpoint: &Path) -> io::Result<Device> {
    rustix::fs::statvfs(mountpoint)?;
    Ok(Device::of(rustix::fs::stat(mountpoint)?.st_dev))
}

fn log_failure(mountpoint: &Path, result: Result<(), UnmountError>) {
    if let Err(error) = result {
        log::error!("{} stays mounted: {error}", mountpoint.display());
    }
}
