"""Cases of pjdfstest that cannot pass through a mount: (reason, message of the case, patterns of names), and cases that are not judged.

Every case of FAILURES must fail with this message. A case that passes must be removed from the list.
"""

FAILURES = [
    ("there are no devices and FIFOs in a store: mknod(2) of them is refused", r"EPERM|mknod\(",
     ["*::block", "*::char", "*::fifo", "open::fifo_nonblock_wronly"]),
    ("there are no sockets in a store; their path may also be too long for the suite", "EPERM|ENAMETOOLONG",
     ["*::socket", "open::socket_error"]),
    ("there are no FIFOs in a store: these cases make one by mkfifo(2) or mknod(2)", r"EPERM|f\(&path, .*\)\.is_ok\(\)",
     [f"{call}::{case}" for call in ("mkfifo", "mknod")
      for case in ("changed_time_fields_success", "permission_bits_from_mode", "uid_gid_eq_euid_egid")]),
    ("symbolic links are not made in a store: symlink(2) is refused", r"EPERM|Operation not permitted|symlink\(",
     ["*::symlink", "*::eloop_comp", "*::eloop_final_comp", "*::enoent_symlink", "open::open_nofollow", "rename::preserve_metadata_symlink",
      "symlink::create_symlink::regular", "symlink::create_symlink::dir", "symlink::create_symlink_to_symlink",
      "symlink::changed_parent_time_success", "utimensat::follow_symlink"]),
    ("symbolic links are not made in a store: these cases change a mode, which works, and then the mode behind such a link", "EPERM",
     ["chmod::change_perm::regular", "chmod::change_perm::dir"]),
    ("each file is shown with one link, also one that has two names in the store", r"left: 1\s+right: 2",
     ["link::remove_link::regular", "link::share_metadata::regular", "rename::to_multiply_linked::regular"]),
    ("each directory is shown with one link", r"left: 1\s+right: 3", ["rename::updates_link_parent"]),
    ("a file that has lost its name is shown with one link", r"left: 1\s+right: 0", ["unlink::open_file_not_freed"]),
    ("a second name is a file with a number of its own", r"(?s)st_ino: (\d+),.*st_ino: (?!\1)", ["rename::preserve_metadata::regular"]),
]

# The clock decides whether these pass.
VARYING = {
    "link::changed_ctime_success::regular": "a second name is another file, and for a second the kernel keeps what it knows of the first",
    "unlink::update_ctime_success::regular": "as in link::changed_ctime_success::regular",
    "open::etxtbsy": "O_RDONLY | O_TRUNC: the kernel has FUSE empty the program, and looks only then whether it still runs",
}

SKIPPED = {
    "*::erofs_*": "mount(8) hands a remount to zarr-mount, which refuses it",
    "link::link_count_max": "the C library knows no limit of links for FUSE",
}
