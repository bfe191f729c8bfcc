//! Numbers that distinguish files that have had the same inode number one after the other (`name_to_handle_at`).
//!
//! ext2, ext3 and ext4 give each new inode a number, its *generation*, for servers of NFS. It is a part of the handle
//! of a file, and distinguishes files like the time at which a file was made, if inodes have no room for that time.

#![expect(unsafe_code, reason = "no safe interface has handles of files")]

use std::ffi::{CStr, c_int};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::AtFlags;

/// The kind of handle that is an inode number and a generation (`FILEID_INO32_GEN`). File systems of FUSE and of
/// networks have other kinds, and may give one file several handles.
const INODE_AND_GENERATION: c_int = 1;

/// The bytes of such a handle. The call fails if a handle has more.
const HANDLE_BYTES: u32 = 8;

/// `struct file_handle`, with room for a handle.
#[repr(C)]
struct Handle {
    len: u32,
    kind: c_int,
    inode: u32,
    generation: u32,
}

/// The generation of the file `name` of an open directory, if it has this inode number and its file system has
/// generations.
pub(super) fn generation(
    directory: BorrowedFd<'_>,
    name: &CStr,
    flags: AtFlags,
    inode: u64,
) -> Option<u32> {
    let mut flags_of_handle = 0;
    if flags.contains(AtFlags::EMPTY_PATH) {
        flags_of_handle |= libc::AT_EMPTY_PATH;
    }
    if !flags.contains(AtFlags::SYMLINK_NOFOLLOW) {
        flags_of_handle |= libc::AT_SYMLINK_FOLLOW;
    }
    let mut handle = Handle {
        len: HANDLE_BYTES,
        kind: 0,
        inode: 0,
        generation: 0,
    };
    let mut mount: c_int = 0;
    // SAFETY: the descriptor is open, the name ends with 0, and the kernel writes at most as many bytes behind the head
    // of the structure as that says, for which there is room.
    let found = unsafe {
        libc::name_to_handle_at(
            directory.as_raw_fd(),
            name.as_ptr(),
            (&raw mut handle).cast(),
            &raw mut mount,
            flags_of_handle,
        )
    };
    let is_told = found == 0 && handle.kind == INODE_AND_GENERATION && handle.len == HANDLE_BYTES;
    // Another file may have the name meanwhile.
    (is_told && u64::from(handle.inode) == inode).then_some(handle.generation)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_has_one_generation_by_its_name_and_by_its_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        let file = File::create(folder.path().join("a")).unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        let inode = file.metadata().unwrap().ino();
        let of_file = generation(file.as_fd(), c"", AtFlags::EMPTY_PATH, inode);
        let in_directory = |name, flags| generation(directory.as_fd(), name, flags, inode);
        assert_eq!(in_directory(c"a", AtFlags::SYMLINK_NOFOLLOW), of_file);
        assert_eq!(in_directory(c"link", AtFlags::empty()), of_file);
        assert_eq!(in_directory(c"link", AtFlags::SYMLINK_NOFOLLOW), None);
        assert_eq!(in_directory(c"none", AtFlags::empty()), None);
    }
}
