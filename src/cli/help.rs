//! The texts of `--help` and of the man page that are not about one option.

/// The ways to call the program.
pub(super) const USAGE: &str = "zarr-mount [OPTIONS] STORE MOUNTPOINT
       zarr-mount --unmount MOUNTPOINT
       zarr-mount --list [--json | --quiet]
       zarr-mount --status MOUNTPOINT [--json]
       zarr-mount --recover STORE
       zarr-mount --info [--as VERSION] [--files FORMATS] [--sizes] [--json] [--quiet] STORE [PATH]
       zarr-mount --info --at I,J,K [--json] STORE [PATH]
       zarr-mount --info --offset BYTE [--json] STORE KEY
       zarr-mount --verify [--array GLOB] [--json] [--quiet] STORE [PATH]
       zarr-mount --warm --disk-cache DIR [--array GLOB] [--json] [--quiet] STORE [PATH]
       zarr-mount --export DIR [--resume] [--quiet] [OPTIONS] STORE [PATH]
       zarr-mount --cat [OPTIONS] STORE PATH
       zarr-mount --serve ADDRESS [--token-file FILE] [--quiet] [OPTIONS] STORE [PATH]
       zarr-mount --man | --completions SHELL | --version [-v]";

/// A task of users.
pub(super) struct Task {
    /// Its title.
    pub(super) title: &'static str,
    /// The text of the man page about it.
    pub(super) about: &'static str,
    /// Commands and their purposes, in two columns.
    pub(super) examples: &'static str,
}

/// The tasks of users, as sections of the man page. `--help` has the commands.
pub(super) const TASKS: [Task; 11] = [
    Task {
        title: "Look into a store",
        about: "--info describes a store, or one array, without a mount: types, dimensions, chunks, codecs and attributes. \
                With --sizes it lists every chunk and adds their stored sizes. --json has all of it for programs.",
        examples: "  zarr-mount --info demo: air/temperature      its type, dimensions, chunks and attributes
  zarr-mount --info --at 3,20,40 demo: air/temperature    where is this element?
  zarr-mount --info --offset 6000 demo: air/temperature/c/0/0/0    which chunk has this byte?
  zarr-mount --info --files nc,tif data.zarr   which arrays fit these formats, and why not",
    },
    Task {
        title: "Read whole arrays as files",
        about: "With --view arrays, each array is one file of each format of --files, and each group can be one file of NetCDF or \
                HDF5. Nothing is converted before a program reads it.",
        examples: "  zarr-mount --view arrays data.zarr /mnt/z    whole arrays: t.npy, and t@3.npy for a part of it
  zarr-mount --view arrays --files nc,tif data.zarr /mnt/z
                                               each group G as NetCDF, G/G.nc; arrays as G/t.tif
  zarr-mount --view arrays --files nii --array 'scan/*' data.zarr /mnt/z
                                               the arrays in scan, and no others, as NIfTI",
    },
    Task {
        title: "Read chunks",
        about: "The keys view shows what the store has, with each inner chunk of a shard as a file; the chunks view shows decoded \
                chunks.",
        examples: "  zarr-mount data.zarr /mnt/z                  every inner chunk of a sharded store as a file
  zarr-mount --view chunks data.zarr /mnt/z    decoded chunks: C order, little-endian
  zarr-mount --view keys,chunks demo: demo     both, in two directories of ./demo",
    },
    Task {
        title: "Use a library for another version of Zarr",
        about: "With --as, the mount is a store of Zarr v2 or v3, whatever the version of STORE is. The documents are translated; \
                --info --as says what that version cannot express.",
        examples: "  zarr-mount --view chunks --as v2 data.zarr /mnt/z
                                               for readers of Zarr v2, such as GDAL
  zarr-mount --as v3 old.zarr /mnt/z           a store of v1, v2 or a draft, for readers of v3",
    },
    Task {
        title: "Find damage",
        about: "--verify decodes every chunk and names each one that is damaged. The exit status is 0 if all is sound, 1 for damage, \
                and 2 if the store, or something in it, could not be examined.",
        examples: "  zarr-mount --verify data.zarr                is every chunk sound?",
    },
    Task {
        title: "Copy and convert",
        about: "--export writes what a mount would show to a directory, and needs no FUSE; --resume goes on with an export that was \
                interrupted. --cat writes one file to standard output.",
        examples: "  zarr-mount --export out --files nc,tif data.zarr
                                               what a mount would show, as files in ./out
  zarr-mount --export new.zarr --view chunks --as v2 data.zarr
                                               a store of v2 with uncompressed chunks
  zarr-mount --cat --files npy demo: air/temperature.npy > t.npy
                                               one file",
    },
    Task {
        title: "Serve over HTTP",
        about: "--serve shows what a mount would show to browsers, programs and WebDAV clients, without FUSE. Clients need a token, \
                which is printed or is in the file of --token-file.",
        examples: "  zarr-mount --serve 8080 --view arrays --files nc,tif,png data.zarr
                                               the files of a mount, for a browser at this machine
  zarr-mount --serve 0.0.0.0:8080 --insecure --as v3 --token-file token old.zarr
                                               a store of v3 for other machines, in a network that is trusted",
    },
    Task {
        title: "Write",
        about: "With --rw, programs write through the keys and chunks views. A chunk is replaced whole when its file is closed. \
                --recover saves what a daemon that was killed has left.",
        examples: "  zarr-mount --rw --shards keep data.zarr /mnt/z
                                               programs write keys; a chunk is replaced whole
  zarr-mount --rw --view chunks --as v3 data.zarr /mnt/z
                                               programs write raw numbers; the store has compressed chunks",
    },
    Task {
        title: "Read stores elsewhere",
        about: "STORE may be a URL: s3://, gs://, az://, https://, or an Icechunk repository or a set of references at one. Credentials \
                come from where the tools of the cloud have them; see ENVIRONMENT. --disk-cache keeps what is read on the disk, for all \
                mounts of this user; --warm reads all of it beforehand, and --offline sends no request.",
        examples: "  zarr-mount --anonymous --immutable s3://bucket/data.zarr /mnt/z
                                               a public bucket that does not change
  zarr-mount --warm --disk-cache /scratch/cache --array temperature s3://bucket/data.zarr
                                               one array is in the cache from now on
  zarr-mount --allow-refs /data/nc refs.json /mnt/z
                                               references of kerchunk, to files below /data/nc",
    },
    Task {
        title: "See what mounts do, and unmount",
        about: "--unmount returns when all that was written is in the store and the daemon has ended. In bash, zsh and fish, the scripts \
                of --completions complete the mountpoints of --status and --unmount.",
        examples: "  zarr-mount --list                            what is mounted where, and since when
  zarr-mount --status /mnt/z                   what is it doing? Ctrl-C ends this
  zarr-mount --unmount /mnt/z                  so do umount and fusermount3 -u
  zarr-mount -f -v data.zarr /mnt/z            watch it work; Ctrl-C unmounts",
    },
    Task {
        title: "Mount by the system",
        about: "mount(8), /etc/fstab and systemd run zarr-mount as a helper. allow_other lets other users look into the mount.",
        examples: "  mount -t fuse.zarr-mount /data/a.zarr /mnt/z -o allow_other,view=chunks
  mount -t zarr-mount /data/a.zarr /mnt/z      with a link to this program: /sbin/mount.zarr-mount",
    },
];

/// Lines of `/etc/fstab`.
pub(super) const FSTAB: &str =
    "  /data/a.zarr  /mnt/a  fuse.zarr-mount  allow_other,view=chunks,cache-size=256M,nofail  0  0
  /data/b.zarr  /mnt/b  zarr-mount       allow_other,noauto,x-systemd.automount          0  0";

/// The explanation of [`FSTAB`].
pub(super) const ABOUT_FSTAB: &str =
    "Lines of /etc/fstab; systemd makes the second mount when a program first looks into it";

/// The values of `-o` that are no long options, in two columns.
pub(super) const MOUNT_OPTIONS: &str =
    "  allow_other, allow_root   let everyone, or root, look into the mount
  nonempty                  mount over a directory that is not empty
  noexec                    run no programs from the mount
  writable                  as --rw; ro wins over it
  fsname=NAME               the source that df and findmnt show [default: STORE]
  xattr                     extended attributes user.zarr.*, at the price of slower listings";

/// The explanation of the values of `-o`.
pub(super) const ABOUT_VALUES: &str = "A comma in a value is written \\, and a backslash \\\\.";

/// The end of `--help`.
pub(super) fn after_options() -> String {
    let examples = TASKS.map(|task| task.examples).join("\n");
    format!(
        "Examples:\n{examples}\n\n{ABOUT_FSTAB}:\n{FSTAB}\n\n\
         The mount options (-o) are those of mount(8), and\n{MOUNT_OPTIONS}\n{ABOUT_VALUES}"
    )
}
