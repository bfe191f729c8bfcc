//! The texts of `--help` and of the man page that are not about one option.

/// The ways to call the program.
pub(super) const USAGE: &str = "zarr-mount [OPTIONS] STORE MOUNTPOINT
       zarr-mount --unmount MOUNTPOINT
       zarr-mount --list [--json]
       zarr-mount --status MOUNTPOINT [--json]
       zarr-mount --recover STORE
       zarr-mount --info [--as VERSION] [--files FORMATS] [--sizes] [--json] STORE [PATH]
       zarr-mount --info --at I,J,K [--json] STORE [PATH]
       zarr-mount --verify [--json] [--quiet] STORE [PATH]
       zarr-mount --export DIR [--resume] [--quiet] [OPTIONS] STORE [PATH]
       zarr-mount --cat [OPTIONS] STORE PATH
       zarr-mount --serve ADDRESS [--token-file FILE] [--quiet] [OPTIONS] STORE [PATH]
       zarr-mount --man | --completions SHELL | --version [-v]";

/// Commands and their purposes, in two columns.
pub(super) const EXAMPLES: &str = "  zarr-mount data.zarr /mnt/z                  every inner chunk of a sharded store as a file
  zarr-mount --view chunks data.zarr /mnt/z    decoded chunks: C order, little-endian
  zarr-mount --view chunks --as v2 data.zarr /mnt/z
                                               the same for readers of Zarr v2, such as GDAL
  zarr-mount --as v3 old.zarr /mnt/z           a store of v1, v2 or a draft, for readers of v3
  zarr-mount --view arrays data.zarr /mnt/z    whole arrays: t.npy, and t@3.npy for a part of it
  zarr-mount --view arrays --files nc,tif data.zarr /mnt/z
                                               each group G as NetCDF, G/G.nc; arrays as G/t.tif
  zarr-mount --view arrays --files nii --array 'scan/*' data.zarr /mnt/z
                                               the arrays in scan, and no others, as NIfTI
  zarr-mount --view keys,chunks demo: demo     both, in two directories of ./demo
  zarr-mount --info demo: air/temperature      its type, dimensions, chunks and attributes
  zarr-mount --info --at 3,20,40 demo: air/temperature    where is this element?
  zarr-mount --info --files nc,tif data.zarr   which arrays fit these formats, and why not
  zarr-mount --verify data.zarr                is every chunk sound?
  zarr-mount --export out --files nc,tif data.zarr
                                               what a mount would show, as files in ./out
  zarr-mount --export new.zarr --view chunks --as v2 data.zarr
                                               a store of v2 with uncompressed chunks
  zarr-mount --cat --files npy demo: air/temperature.npy > t.npy
                                               one file
  zarr-mount --serve 8080 --view arrays --files nc,tif,png data.zarr
                                               the files of a mount, for a browser at this machine
  zarr-mount --serve 0.0.0.0:8080 --insecure --as v3 --token-file token old.zarr
                                               a store of v3 for other machines, in a network that is trusted
  zarr-mount --rw --shards keep data.zarr /mnt/z
                                               programs write keys; a chunk is replaced whole
  zarr-mount --rw --view chunks --as v3 data.zarr /mnt/z
                                               programs write raw numbers; the store has compressed chunks
  zarr-mount --allow-refs /data/nc refs.json /mnt/z
                                               references of kerchunk, to files below /data/nc
  zarr-mount --unmount /mnt/z                  so do umount and fusermount3 -u
  zarr-mount --list                            what is mounted where, and since when
  zarr-mount --status /mnt/z                   what is it doing? Ctrl-C ends this
  zarr-mount -f -v data.zarr /mnt/z            watch it work; Ctrl-C unmounts
  mount -t fuse.zarr-mount /data/a.zarr /mnt/z -o allow_other,view=chunks
  mount -t zarr-mount /data/a.zarr /mnt/z      with a link to this program: /sbin/mount.zarr-mount";

/// Lines of `/etc/fstab`.
pub(super) const FSTAB: &str =
    "  /data/a.zarr  /mnt/a  fuse.zarr-mount  allow_other,view=chunks,cache-size=256M,nofail  0  0
  /data/b.zarr  /mnt/b  zarr-mount       allow_other,noauto,x-systemd.automount          0  0";

/// The explanation of these lines.
pub(super) const ABOUT_FSTAB: &str =
    "Lines of /etc/fstab, the second one mounted when it is first looked at, by systemd";

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
    format!(
        "Examples:\n{EXAMPLES}\n\n{ABOUT_FSTAB}:\n{FSTAB}\n\n\
         The mount options (-o) are those of mount(8), and\n{MOUNT_OPTIONS}\n{ABOUT_VALUES}"
    )
}
