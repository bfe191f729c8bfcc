//! Permissions that the mode of a file does not show: those of access control lists, and of the
//! directories that symbolic links lead through.
//!
//! They matter where users other than the daemon's may use the mount ([`Sharing::Others`]): the
//! kernel checks these users only against the reported mode. So the reported mode grants no more than
//! the file itself does:
//!
//! * With an access control list (`acl(5)`), the group bits of the mode are a mask: the most that
//!   any entry grants. The reported mode has no group bits. Its bits for others are those granted
//!   to others and to every named user and group, because the kernel takes the named ones for
//!   others.
//! * A symbolic link can be followed only by users who may search the directories that it leads
//!   through, which are not on the path in the mount.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::getxattr;
use rustix::io::Errno;

use super::access_list::{ACCESS, USUAL_BYTES, granted_to_all};
use crate::store::{Access, ObjectMeta, Prefix, ReadRight, Readers};

/// The users whom the reported modes are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Only the user of the daemon: modes are reported as they are stored.
    #[default]
    Nobody,
    /// Other users too, whom the kernel checks against the reported modes.
    Others,
}

/// The most links that the kernel follows.
const MOST_LINKS: usize = 40;

/// `meta` of the open file `fd`, with its mode restricted by the access control list.
pub(super) fn restrict_by_list(fd: BorrowedFd<'_>, meta: ObjectMeta) -> ObjectMeta {
    let mode = mode_under_list(meta.mode, || path_of(fd));
    ObjectMeta { mode, ..meta }
}

/// Like [`restrict_by_list`], for the entry `name` of the open directory `fd`.
pub(in crate::store) fn restrict_entry_by_list(
    fd: BorrowedFd<'_>,
    name: &[u8],
    meta: ObjectMeta,
) -> ObjectMeta {
    let path = || [path_of(fd).as_bytes(), b"/", name].concat();
    let mode = mode_under_list(meta.mode, path);
    ObjectMeta { mode, ..meta }
}

/// The bits of `mode` that the access control list of the file at `path` leaves. Of a very long list, only the
/// owner's bits are left. A list does not change the sticky bit and the like.
fn mode_under_list<P: rustix::path::Arg>(mode: u32, path: impl FnOnce() -> P) -> u32 {
    // The mask of a list is the group's bits: without any, no entry of the list grants anything.
    if mode | 0o7700 == 0o7700 {
        return mode;
    }
    let mut list = [0; USUAL_BYTES];
    let others = match getxattr(path(), ACCESS, &mut list) {
        Err(Errno::NODATA | Errno::NOTSUP) => return mode,
        Ok(len) => list.get(..len).and_then(granted_to_all).unwrap_or(0),
        // An unknown right is not granted.
        Err(_) => 0,
    };
    mode & (0o7700 | others)
}

/// `meta` of the target of `path`, which contains symbolic links, below the directory `root`: with
/// its mode restricted to the users who may search every directory on the way.
pub(super) fn through_links(root: BorrowedFd<'_>, path: &Prefix, meta: ObjectMeta) -> ObjectMeta {
    let readers = fs::read_link(path_of(root))
        .ok()
        .and_then(|root| readers_through(&root, path));
    let shown = meta.access().with_mode(0o444);
    // An unknown right is granted only to the owner.
    let all = readers.map_or(0o400, |readers| readers.bits_for(shown));
    ObjectMeta {
        // Reading, listing and searching the target all require to search the way to it.
        mode: meta.mode & (all | all >> 1 | all >> 2),
        ..meta
    }
}

/// The users who may go from the directory `root` to `path`; `None` when that is unknown.
pub(in crate::store) fn readers_through(root: &Path, path: &Prefix) -> Option<Readers> {
    let mut readers = Readers::default();
    for directory in directories_through(root, path)? {
        let metadata = fs::symlink_metadata(&directory).ok()?;
        let mode = metadata.mode() & 0o777;
        readers.add(ReadRight::of_directory(Access {
            mode: mode_under_list(mode, || &directory),
            uid: metadata.uid(),
            gid: metadata.gid(),
        }));
    }
    Some(readers)
}

/// The directories on the way from the directory `root` to `path`, with links followed. `None` when
/// one of them is gone.
fn directories_through(root: &Path, path: &Prefix) -> Option<Vec<PathBuf>> {
    let mut here = root.to_owned();
    let mut through = Vec::new();
    let names = path.as_bytes().split(|&byte| byte == b'/');
    let names = names.filter(|name| !name.is_empty());
    let mut rest: VecDeque<OsString> = names.map(|n| OsString::from_vec(n.to_vec())).collect();
    let mut n_links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            here.pop();
        } else {
            let next = here.join(&name);
            let found = fs::symlink_metadata(&next).ok()?;
            if found.is_symlink() {
                n_links += 1;
                if n_links > MOST_LINKS {
                    return None;
                }
                let target = fs::read_link(&next).ok()?;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                    through.push(here.clone());
                }
                for component in target.components().rev() {
                    if let Component::Normal(_) | Component::ParentDir = component {
                        rest.push_front(component.as_os_str().to_owned());
                    }
                }
                continue;
            }
            if !found.is_dir() {
                break;
            }
            here = next;
        }
        // The target itself is not part of the way.
        if !rest.is_empty() {
            through.push(here.clone());
        }
    }
    Some(through)
}

/// A path of an open file that also works for descriptors opened with `O_PATH`.
fn path_of(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_leads_through_the_directories_of_its_target_and_of_further_links() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        for directory in ["a", "private/b/c", "hidden"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("private/b/c/file"), "").unwrap();
        symlink("../hidden/link", root.join("a/link")).unwrap();
        symlink("../private/b", root.join("hidden/link")).unwrap();
        let path = Prefix::parse(b"a/link/c/file").unwrap();
        let through = directories_through(&root, &path).unwrap();
        let mut through: Vec<&str> = through
            .iter()
            .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap())
            .collect();
        through.sort_unstable();
        through.dedup();
        assert_eq!(
            through,
            ["", "a", "hidden", "private", "private/b", "private/b/c"]
        );
        let gone = Prefix::parse(b"a/link/d").unwrap();
        assert_eq!(directories_through(&root, &gone), None);
    }
}
