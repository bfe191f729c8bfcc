//! The directory to mount at: it is checked, freed of dead mounts, or created before the mount.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde_json::Value;

use super::config::{MountConfig, Talk};
use super::counted::counted;
use super::ending::RunningDaemon;
use super::error::CliError;
use super::mounts::state_of;
use super::output::print_error;
use super::progress_bar::{ProgressBar, Work};
use crate::fuse::session::{is_dead, is_of_dead_mount};
use crate::fuse::session_unmount::{Unmount, UnmountError, unmount};
use crate::mount_table::MountTable;

/// A directory ready to be mounted at. If it was created here, dropping this value removes it, so
/// drop the value after the unmount.
#[derive(Debug)]
pub(crate) struct Mountpoint {
    /// Absolute, free of links.
    pub(crate) path: PathBuf,
    is_created: bool,
}

impl Mountpoint {
    /// Finds and checks the mountpoint of `config`, and creates it when it is missing.
    ///
    /// # Errors
    /// When it cannot be mounted at; nothing was created then.
    pub(crate) fn prepare(config: &MountConfig) -> Result<Self, CliError> {
        let path = find(&config.mountpoint)?;
        make_way(&path)?;
        let is_created = !is_there(&path, config)?;
        if is_created {
            fs::create_dir(&path).map_err(|error| io_error(&path, &error))?;
        }
        Ok(Mountpoint { path, is_created })
    }

    /// Checks the mountpoint of `config` as [`Mountpoint::prepare`] does, and changes nothing.
    ///
    /// # Errors
    /// When it cannot be mounted at.
    pub(crate) fn check(config: &MountConfig) -> Result<(), CliError> {
        let path = find(&config.mountpoint)?;
        // A mount would remove the dead one, which hides the directory from us.
        if !has_dead_mount(&path)? {
            is_there(&path, config)?;
        }
        Ok(())
    }
}

/// The path to mount at, as [`resolve`] finds it.
fn find(path: &Path) -> Result<PathBuf, CliError> {
    let above = path.parent().unwrap_or(path);
    let is_missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    if fs::metadata(above).is_err_and(is_missing) {
        let (path, above) = (path.display(), above.display());
        return failed(format!(
            "MOUNTPOINT {path}: the directory above it is missing; make it first: mkdir -p {above}"
        ));
    }
    resolve(path)
}

/// Whether the directory `path` exists. It is an error if it cannot be mounted at.
fn is_there(path: &Path, config: &MountConfig) -> Result<bool, CliError> {
    if let Some(store) = config.store.local_path() {
        check_apart(path, store)?;
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            return failed(format!(
                "MOUNTPOINT {} is not a directory; name a directory, or one that is to be created",
                path.display()
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(io_error(path, &error)),
    }
    if !config.nonempty {
        check_empty(path)?;
    }
    Ok(true)
}

fn check_empty(path: &Path) -> Result<(), CliError> {
    let mut entries = fs::read_dir(path).map_err(|error| io_error(path, &error))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => failed(format!(
            "MOUNTPOINT {} is not empty; its files would be hidden: use an empty directory, or -o \
             nonempty",
            path.display()
        )),
    }
}

impl Drop for Mountpoint {
    fn drop(&mut self) {
        if self.is_created
            && let Err(error) = fs::remove_dir(&self.path)
        {
            log::info!("{} was created and stays: {error}", self.path.display());
        }
    }
}

/// The longest wait for a daemon that ends, after closed files are saved.
const MOST_ENDING: Duration = Duration::from_secs(10);

/// The user gets a message about a daemon that does not answer for this long.
const SILENCE: Duration = Duration::from_secs(2);

/// Unmounts what zarr-mount mounted at `mountpoint`, and waits until its daemon has ended.
///
/// # Errors
/// When nothing, or another file system, is mounted there, or when the mount is in use.
pub(crate) fn unmount_ours(mountpoint: &Path, talk: Talk) -> Result<(), CliError> {
    let path = resolve(mountpoint)?;
    let shown = path.display();
    let table = MountTable::read().map_err(|error| io_error(&path, &error))?;
    let not_mounted = || failed(format!("nothing is mounted at {shown}"));
    let Some(entry) = table.at(&path) else {
        return not_mounted();
    };
    if !entry.is_ours() {
        return failed(format!(
            "{shown} is a mount of type {}, not of zarr-mount; use umount",
            entry.file_system_type.to_string_lossy()
        ));
    }
    let ask = || (save(&path), RunningDaemon::of(&path));
    let (saved, daemon) = told_when_slow(&path, talk, ask);
    // The daemon goes on if the mount is also bound to another place.
    let is_last = table.of_device(entry.device).count() == 1;
    let daemon = daemon.filter(|_| is_last);
    match unmount_when_idle(&path) {
        Ok(()) => {
            let has_ended = daemon.is_none_or(|daemon| daemon.has_ended_within(MOST_ENDING));
            if let Err(what) = saved {
                return failed(format!(
                    "{shown} is unmounted, but not all that was written is in the store: {what}"
                ));
            }
            if !has_ended {
                print_error(&format_args!(
                    "warning: {shown} is unmounted, but its daemon goes on: another mount namespace, such as that \
                     of a container, may have the mount still"
                ));
            }
            Ok(())
        }
        Err(UnmountError::Busy) => failed(format!(
            "{shown} is busy; close the programs that use it (fuser -vm {shown} lists them), or \
             detach it with umount -l {shown}"
        )),
        // It is mounted, but fusermount3 does not find the mounts of other users.
        Err(UnmountError::NotMounted) if is_mounted(&path) => failed(format!(
            "{shown} was mounted by another user; unmount it as that user, or as root"
        )),
        Err(UnmountError::NotMounted) => not_mounted(),
        Err(error) => failed(format!("cannot unmount {shown}: {error}")),
    }
}

/// Returns the result of `ask`, a request to the daemon of the mount at `path`. Prints a message if the daemon is
/// slow, because it saves files, waits for a server, or is stopped, and then how much it still has to save.
fn told_when_slow<T>(path: &Path, talk: Talk, ask: impl FnOnce() -> T) -> T {
    if talk == Talk::Quiet {
        return ask();
    }
    std::thread::scope(|scope| {
        let (answered, answer) = mpsc::channel::<()>();
        scope.spawn(move || {
            if answer.recv_timeout(SILENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let shown = path.display();
            print_error(&format_args!(
                "waiting for the daemon of {shown}, which saves closed files, or does not answer; umount -l {shown} \
                 detaches the mount at once"
            ));
            let path = path.to_owned();
            let unsaved = move || unsaved_of(&path);
            let bar = ProgressBar::new(talk, "changes are not in the store yet", unsaved);
            // The channel is closed after the answer.
            answer.recv().ok();
            bar.end();
        });
        let found = ask();
        drop(answered);
        found
    })
}

/// The number of changes that the daemon of the mount at `path` still has to save.
fn unsaved_of(path: &Path) -> Work {
    let state = state_of(path);
    let n = |member: &str| state.number(member).unwrap_or(0);
    Work {
        found: None,
        done: n("/writes/drafts").saturating_add(n("/writes/staged")),
        bytes: 0,
        is_found: false,
    }
}

/// Makes a mount write closed files to the store. After an unmount, the daemon would still do that, and the user would
/// not know when it has ended.
///
/// # Errors
/// A text that says how many changes are not in the store, and why.
fn save(mountpoint: &Path) -> Result<(), String> {
    let sync = match fs::File::open(mountpoint.join(".zarr-mount/sync")) {
        Ok(sync) => sync,
        // The mount is dead, or another user's.
        Err(error) if is_out_of_reach(&error) => return Ok(()),
        // The mount is read-only.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(format!(
                "it is not known whether the store has all closed files: {error}"
            ));
        }
    };
    let synced = sync.sync_all();
    synced.map_err(|error| {
        let text = fs::read(mountpoint.join(".zarr-mount/stats.json")).unwrap_or_default();
        format!("{}: {error}", not_saved(&text))
    })
}

/// Whether `error` is that of a mount that has no daemon any more, or does not answer this user.
fn is_out_of_reach(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| {
        is_of_dead_mount(errno) || [Errno::ACCESS, Errno::PERM].contains(&errno)
    })
}

/// A text that says how many files and inner chunks are not in the store, from the counters of the mount.
fn not_saved(statistics: &[u8]) -> String {
    let counters: Value = serde_json::from_slice(statistics).unwrap_or_default();
    let n = |name: &str| {
        let found = counters.get("writes").and_then(|writes| writes.get(name));
        let n = found.and_then(Value::as_u64).unwrap_or(0);
        usize::try_from(n).unwrap_or(usize::MAX)
    };
    let of = |n, one, more| (n > 0).then(|| counted(n, one, more));
    let files = of(n("drafts"), "file is not saved", "files are not saved");
    let deleted = of(
        n("deleted"),
        "inner chunk is lost, because its journal was deleted",
        "inner chunks are lost, because their journals were deleted",
    );
    let chunks = of(
        n("staged").saturating_sub(n("deleted")),
        "inner chunk is in the journal only, for the next mount with --rw, or zarr-mount --recover",
        "inner chunks are in the journal only, for the next mount with --rw, or zarr-mount --recover",
    );
    let found: Vec<String> = files.into_iter().chain(deleted).chain(chunks).collect();
    if found.is_empty() {
        return "it cannot be synced".to_owned();
    }
    found.join(", and ")
}

/// Unmounts, and retries while the mount is busy: a program that just ended may use it for a moment more.
fn unmount_when_idle(path: &Path) -> Result<(), UnmountError> {
    let patience = Instant::now() + Duration::from_secs(1);
    loop {
        match unmount(path, Unmount::WhenIdle) {
            Err(UnmountError::Busy) if Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(50));
            }
            outcome => return outcome,
        }
    }
}

fn is_mounted(path: &Path) -> bool {
    MountTable::read().is_ok_and(|table| table.at(path).is_some())
}

/// `path` as the mount table spells it. The last name need not exist, and may be a dead mount,
/// at which even `stat` fails.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, CliError> {
    let error = match fs::canonicalize(path) {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let missing = error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err(); // a link that leads nowhere is there
    let dead = Errno::from_io_error(&error).is_some_and(is_of_dead_mount);
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if missing || dead => {
            let parent = fs::canonicalize(parent).map_err(|error| io_error(parent, &error))?;
            Ok(parent.join(name))
        }
        _ => Err(io_error(path, &error)),
    }
}

/// Removes dead mounts of zarr-mount, also several on top of each other: as long as they exist,
/// nothing can be mounted at the path.
fn make_way(path: &Path) -> Result<(), CliError> {
    let shown = path.display();
    while has_dead_mount(path)? {
        log::warn!("removing the dead mount at {shown}");
        if let Err(error) = unmount(path, Unmount::Detach) {
            return failed(format!(
                "the dead mount at {shown} cannot be removed: {error}; try umount -l as root"
            ));
        }
    }
    Ok(())
}

/// Whether a dead mount of zarr-mount is at the path. A live one there is an error, and so is a
/// dead one of another program.
fn has_dead_mount(path: &Path) -> Result<bool, CliError> {
    let shown = path.display();
    let table = MountTable::read().map_err(|error| io_error(path, &error))?;
    let Some(entry) = table.at(path) else {
        return Ok(false);
    };
    match (entry.is_ours(), is_dead(path)) {
        (true, true) => Ok(true),
        (true, false) => failed(format!(
            "{} is already mounted at {shown}; zarr-mount --unmount it first",
            entry.source.to_string_lossy()
        )),
        (false, true) => failed(format!(
            "a dead mount of type {} is at {shown}; fusermount3 -u it first",
            entry.file_system_type.to_string_lossy()
        )),
        (false, false) => Ok(false),
    }
}

fn check_apart(path: &Path, store: &Path) -> Result<(), CliError> {
    let (path_shown, store_shown) = (path.display(), store.display());
    if path.starts_with(store) {
        failed(format!(
            "MOUNTPOINT {path_shown} is inside STORE {store_shown}; mount outside it"
        ))
    } else if store.starts_with(path) {
        failed(format!(
            "STORE {store_shown} is inside MOUNTPOINT {path_shown}, which would hide it; mount \
             elsewhere"
        ))
    } else {
        Ok(())
    }
}

fn io_error(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("MOUNTPOINT {}: {error}", path.display()))
}

fn failed<T>(message: String) -> Result<T, CliError> {
    Err(CliError::Failed(message))
}

#[cfg(test)]
mod tests {
    use super::not_saved;

    #[test]
    fn changes_that_are_not_saved_are_counted() {
        let files = r#"{"writes": {"drafts": 1, "staged": 0}}"#;
        assert_eq!(not_saved(files.as_bytes()), "1 file is not saved");
        let both = not_saved(br#"{"writes": {"drafts": 2, "staged": 3}}"#);
        assert!(both.starts_with("2 files are not saved, and 3 inner chunks are in the journal"));
        let deleted = not_saved(br#"{"writes": {"staged": 3, "deleted": 3}}"#);
        assert_eq!(
            deleted,
            "3 inner chunks are lost, because their journals were deleted"
        );
        assert_eq!(not_saved(b""), "it cannot be synced");
    }
}
