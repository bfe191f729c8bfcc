//! A place to mount in, and the command under test.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use zarr_mount::mount_table::{MountEntry, MountTable};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_zarr-mount");
pub(crate) const NOBODY: u32 = 65534;

/// The output of the command, and its exit status.
pub(crate) struct Outcome {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn run(mut command: Command) -> Outcome {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn zarr_mount<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Outcome {
    let mut command = Command::new(PROGRAM);
    command.args(args);
    run(command)
}

impl Outcome {
    #[track_caller]
    pub(crate) fn succeeds(&self) {
        assert_eq!((self.status, self.stderr.as_str()), (Some(0), ""));
    }

    #[track_caller]
    pub(crate) fn fails(&self, status: i32, part: &str) {
        let stderr = &self.stderr;
        assert_eq!(self.status, Some(status), "{stderr}");
        assert!(stderr.starts_with("zarr-mount: "), "{stderr}");
        assert!(stderr.contains(part), "{stderr:?} does not say {part:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

/// A directory with a store and a mountpoint, all unmounted in the end.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    _keep: tempfile::TempDir,
}

impl Place {
    /// `None` if mounting is left out on request.
    pub(crate) fn new() -> Option<Self> {
        if std::env::var_os("ZARR_MOUNT_TEST_NO_FUSE").is_some() {
            return None;
        }
        assert!(
            Path::new("/dev/fuse").exists(),
            "no /dev/fuse; ZARR_MOUNT_TEST_NO_FUSE=1 leaves the mount tests out"
        );
        Some(Self::without_fuse())
    }

    pub(crate) fn without_fuse() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(root.join("store")).unwrap();
        // An empty version 2 group.
        fs::write(root.join("store/.zgroup"), r#"{"zarr_format":2}"#).unwrap();
        fs::create_dir(root.join("m")).unwrap();
        Place { root, _keep: keep }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }

    pub(crate) fn mount(&self, name: &str, options: &[&str]) -> Outcome {
        let mut command = Command::new(PROGRAM);
        command.arg(self.store()).arg(self.path(name)).args(options);
        run(command)
    }

    /// Mounts with the default action for SIGHUP, even if the tests themselves run under nohup(1): a child
    /// inherits that SIGHUP is ignored.
    pub(crate) fn mount_hearing_hangups(&self, name: &str) -> Outcome {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", PROGRAM]);
        command.arg(self.store()).arg(self.path(name));
        run(command)
    }

    pub(crate) fn unmount(&self, name: &str) -> Outcome {
        zarr_mount([OsStr::new("--unmount"), self.path(name).as_os_str()])
    }

    pub(crate) fn entry(&self, name: &str) -> Option<MountEntry> {
        let table = MountTable::read().unwrap();
        table.at(&self.path(name)).cloned()
    }

    /// The daemon behind a mount: the process with the mountpoint in its command line.
    pub(crate) fn daemon(&self, name: &str) -> u32 {
        let wanted = self.path(name);
        let processes = fs::read_dir("/proc").unwrap();
        let found = processes.filter_map(|entry| {
            let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let words = fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let mut words = words.split(|byte| *byte == 0);
            let ours = words.next()? == PROGRAM.as_bytes();
            let mounts = words.any(|word| word == wanted.as_os_str().as_encoded_bytes());
            (ours && mounts).then_some(id)
        });
        let found: Vec<_> = found.collect();
        assert_eq!(found.len(), 1, "daemons at {}", wanted.display());
        found[0]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let table = MountTable::read().unwrap();
        for name in ["m", "new", "u/m"] {
            if table.at(&self.path(name)).is_some() {
                let mut umount = Command::new("umount");
                umount.arg("-l").arg(self.path(name)).status().unwrap();
            }
        }
    }
}

pub(crate) fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    kill.args(["-s", name, &process.to_string()]);
    assert!(kill.status().unwrap().success());
}

/// Waits until `done` returns true, which another process brings about.
#[track_caller]
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Whether there is no such process, or only a zombie.
pub(crate) fn has_ended(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status
        .rsplit(')')
        .next()
        .is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
}

/// A process with its working directory in the mount.
pub(crate) fn occupy(mountpoint: &Path) -> Child {
    let mut command = Command::new("cat");
    command.current_dir(mountpoint);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}

pub(crate) fn leave(mut occupant: Child) {
    drop(occupant.stdin.take());
    occupant.wait().unwrap();
}

/// Like `run`, for a user without privileges.
pub(crate) fn as_nobody(mut command: Command) -> Outcome {
    command.uid(NOBODY).gid(NOBODY);
    run(command)
}

/// A place for mounts of the user `nobody`. `None` if this test does not run as root, and so cannot become `nobody`.
pub(crate) fn place_of_nobody() -> Option<Place> {
    let place = Place::new()?;
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None; // All tests of this run are then those of a user without privileges.
    }
    // A container may lack udev, which otherwise sets this mode.
    fs::set_permissions("/dev/fuse", fs::Permissions::from_mode(0o666)).unwrap();
    fs::create_dir(place.path("u")).unwrap();
    std::os::unix::fs::chown(place.path("u"), Some(NOBODY), Some(NOBODY)).unwrap();
    // The user `nobody` may not search the directory that this program was built in.
    fs::copy(PROGRAM, place.path("zarr-mount")).unwrap();
    Some(place)
}
