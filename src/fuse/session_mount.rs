//! Mounting: by mount(2) for users who may use it, by `fusermount3` for all others. Either way the
//! result is an open `/dev/fuse` on which the kernel waits for answers.
//!
//! fuser 0.18 can mount as well. This crate does not let it, because it would also unmount: its mount
//! handle, when dropped, takes an ended mount for a live one (`is_mounted` in its `mnt/mod.rs`
//! reads `POLLERR` the wrong way round) and unmounts whatever is at that path by then, perhaps
//! another mount. fuser also hides the subtype from mount(2), and passes a comma in the name of
//! the source to `fusermount3` unescaped, which takes what follows for an option.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::session_options::{Execution, MountAccess, SessionError, SessionOptions};
use super::session_unmount::FUSERMOUNT;
use crate::mount_table::{Device, FILE_SYSTEM_TYPE};
use crate::store::descriptor_limit;

const DEVICE: &str = "/dev/fuse";

/// Longest read request of the kernel. Its readahead is longer, and is split into several requests,
/// which several threads answer in parallel: files of 1 MiB are read faster so than by one request
/// each. Shorter requests would be faster still, but they load more chunks repeatedly where a row
/// of chunks does not fit the cache.
pub(super) const MAX_READ_BYTES: u32 = 512 << 10;

/// Descriptors that are left for files when each thread has its own device, or when there are rings.
const DESCRIPTORS_FOR_FILES: u64 = 64;

/// Mounts at `mountpoint`, an absolute path free of links, and returns the device.
pub(super) fn mount(mountpoint: &Path, options: &SessionOptions) -> Result<OwnedFd, SessionError> {
    if !Path::new(DEVICE).exists() {
        return Err(SessionError::NoDevice);
    }
    match mount_directly(mountpoint, options) {
        Ok(device) => Ok(device),
        // This process may not mount, or may not open the device.
        Err(Errno::PERM | Errno::ACCESS) => mount_by_helper(mountpoint, options),
        Err(errno) => {
            let problem = io::Error::from(errno).to_string();
            Err(SessionError::Mount(mountpoint.to_owned(), problem))
        }
    }
}

/// Whether each of `n_threads` can have a device of its own. That requires permission to open it,
/// and enough descriptors to leave some for files.
pub(super) fn can_open_devices(n_threads: usize) -> bool {
    leaves_descriptors(n_threads) && open_device().is_ok()
}

/// Whether the process may have so many descriptors beside those of files.
pub(super) fn leaves_descriptors(n: usize) -> bool {
    let wanted = u64::try_from(n).unwrap_or(u64::MAX);
    descriptor_limit().is_none_or(|most| most >= wanted.saturating_add(DESCRIPTORS_FOR_FILES))
}

fn open_device() -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

fn mount_directly(mountpoint: &Path, options: &SessionOptions) -> rustix::io::Result<OwnedFd> {
    let device = open_device()?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    if !options.is_writable {
        flags |= MountFlags::RDONLY;
    }
    if options.execution == Execution::Denied {
        flags |= MountFlags::NOEXEC;
    }
    let mut data = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions,max_read={MAX_READ_BYTES}",
        device.as_raw_fd(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    if options.access != MountAccess::Owner {
        data.push_str(",allow_other");
    }
    let data = CString::new(data).map_err(|_| Errno::INVAL)?;
    // The source is a separate argument here, and needs no escape.
    rustix::mount::mount(
        &options.fsname,
        mountpoint,
        FILE_SYSTEM_TYPE,
        flags,
        data.as_c_str(),
    )?;
    Ok(device)
}

/// Runs `fusermount3`, which mounts, and sends the device through the socket that `_FUSE_COMMFD`
/// names. That socket is its standard input, a descriptor that a child always inherits.
fn mount_by_helper(mountpoint: &Path, options: &SessionOptions) -> Result<OwnedFd, SessionError> {
    let refused = |problem| SessionError::Mount(mountpoint.to_owned(), problem);
    for helper in FUSERMOUNT {
        let (ours, theirs) = UnixStream::pair().map_err(|error| refused(error.to_string()))?;
        let mut command = Command::new(helper);
        command.arg("-o").arg(helper_options(options)).arg("--");
        command.arg(mountpoint);
        command.env("_FUSE_COMMFD", "0").env("LC_ALL", "C");
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(refused(format!("{helper}: {error}"))),
        };
        // `command` has a copy of the child's end. While that is open, the wait for the device would not end
        // after a failure.
        drop(command);
        let device = receive_device(&ours);
        let output = child
            .wait_with_output()
            .map_err(|error| refused(format!("{helper}: {error}")))?;
        return device.ok_or_else(|| {
            let words = String::from_utf8_lossy(&output.stderr);
            refused(words.trim().lines().collect::<Vec<_>>().join("; "))
        });
    }
    Err(SessionError::NoHelper)
}

fn helper_options(options: &SessionOptions) -> OsString {
    let access = if options.is_writable { "rw" } else { "ro" };
    let mut text = OsString::from(format!("{access},nosuid,nodev,default_permissions"));
    text.push(format!(",max_read={MAX_READ_BYTES}"));
    if options.execution == Execution::Denied {
        text.push(",noexec");
    }
    if options.access != MountAccess::Owner {
        text.push(",allow_other");
    }
    text.push(",subtype=zarr-mount,fsname=");
    text.push(escaped(&options.fsname));
    text
}

/// The name with its commas and backslashes escaped: `fusermount3` ends an option at a bare comma.
fn escaped(fsname: &OsStr) -> OsString {
    let bytes = fsname.as_bytes().iter().flat_map(|&byte| {
        let backslash = matches!(byte, b',' | b'\\').then_some(b'\\');
        backslash.into_iter().chain([byte])
    });
    OsString::from_vec(bytes.collect())
}

/// Receives one byte with one descriptor; `None` when the helper ends without sending it.
fn receive_device(socket: &UnixStream) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut byte)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })
    .ok()?;
    let mut messages = control.drain();
    messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

/// Lets the kernel read ahead 1 MiB, where FUSE itself stops at 128 KiB. This needs root. Without
/// it, only large sequential reads are slower.
pub(super) fn widen_read_ahead(device: Device) {
    use std::io::Write;
    let path = format!("/sys/class/bdi/{device}/read_ahead_kb");
    let written = File::options()
        .write(true)
        .open(&path)
        .and_then(|mut file| file.write_all(b"1024"));
    if let Err(error) = written {
        log::debug!("{path}: {error}; read-ahead stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_injects_no_options() {
        let options = SessionOptions {
            is_writable: false,
            fsname: OsString::from("/a,suid\\,dev"),
            access: MountAccess::Everyone,
            execution: Execution::Denied,
            n_threads: 1,
        };
        assert_eq!(
            helper_options(&options),
            OsStr::new(
                "ro,nosuid,nodev,default_permissions,max_read=524288,noexec,allow_other,subtype=zarr-mount,\
                 fsname=/a\\,suid\\\\\\,dev"
            )
        );
    }
}
