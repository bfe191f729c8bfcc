//! The kernel's mount table, as this process sees it: `/proc/self/mountinfo`.
//!
//! One line a mount, the newest last (`man 5 proc_pid_mountinfo`):
//!
//! ```text
//! 36 35 0:48 / /mnt/my\040store ro,nosuid - fuse.zarr-mount /data/a.zarr ro,user_id=0
//! |  |  |    | |                |         | |               |
//! id |  |    | mountpoint       options   | type            source
//!    |  |    root of the mount in its file system
//!    |  device, major:minor     (optional fields end with the lone hyphen)
//!    parent
//! ```
//!
//! Space, tab, newline, `#` and backslash are written as a backslash and three octal digits.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

/// The file system type of zarr-mount, as `mount`, `df -T` and `findmnt` print it.
pub const FILE_SYSTEM_TYPE: &str = "fuse.zarr-mount";

/// A snapshot of the mount table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable {
    entries: Vec<MountEntry>,
}

/// One line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// The device number that `stat` gives for files of the mount.
    pub device: Device,
    /// The directory of the file system that is mounted there.
    pub root: PathBuf,
    /// Where it is mounted, absolute and free of links.
    pub mountpoint: PathBuf,
    /// The file system's type, with its subtype: `ext4`, `fuse.sshfs`.
    pub file_system_type: OsString,
    /// The source of the mount: a device, a host, or the store.
    pub source: OsString,
    /// The user who mounted it, of a file system in user space.
    pub user: Option<u32>,
}

/// The device number of a mounted file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    /// The class; 0 for a file system without a block device.
    pub major: u32,
    /// The number within the class.
    pub minor: u32,
}

impl MountTable {
    /// Reads the table of this process.
    ///
    /// # Errors
    /// When `/proc` is not mounted or cannot be read.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read("/proc/self/mountinfo")?))
    }

    /// Parses the text of a `mountinfo` file. Lines of another form are ignored.
    pub fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        MountTable {
            entries: lines.filter_map(MountEntry::parse).collect(),
        }
    }

    /// All mounts, the oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &MountEntry> {
        self.entries.iter()
    }

    /// The mount that a path walk finds at `mountpoint`: the newest one there.
    pub fn at(&self, mountpoint: &Path) -> Option<&MountEntry> {
        self.entries
            .iter()
            .rev()
            .find(|entry| entry.mountpoint == mountpoint)
    }

    /// The other paths that lead to the file at `path`, which is absolute and free of links, by mounts of the same file
    /// system. Another file system may be mounted over a part of them.
    pub fn other_paths(&self, path: &Path) -> Vec<PathBuf> {
        let leads = |entry: &&MountEntry| path.starts_with(&entry.mountpoint);
        let depth = |entry: &&MountEntry| entry.mountpoint.components().count();
        // `max_by_key` returns the last of equal entries: of the mounts at one path, the newest.
        let Some(entry) = self.entries.iter().filter(leads).max_by_key(depth) else {
            return Vec::new();
        };
        let below = path.strip_prefix(&entry.mountpoint).unwrap_or(path);
        let within = entry.root.join(below);
        let others = self.of_device(entry.device).filter_map(|other| {
            let below = within.strip_prefix(&other.root).ok()?;
            Some(other.mountpoint.join(below))
        });
        others.filter(|other| other != path).collect()
    }

    /// Every place where `device` is mounted, newest first.
    pub fn of_device(&self, device: Device) -> impl Iterator<Item = &MountEntry> {
        self.entries
            .iter()
            .rev()
            .filter(move |entry| entry.device == device)
    }
}

impl MountEntry {
    /// Whether this is a mount of zarr-mount.
    pub fn is_ours(&self) -> bool {
        self.file_system_type == FILE_SYSTEM_TYPE
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = Device::parse(fields.nth(2)?)?;
        let root = PathBuf::from(unescape(fields.next()?));
        let mountpoint = PathBuf::from(unescape(fields.next()?));
        let mut after_hyphen = fields.skip_while(|field| *field != b"-").skip(1);
        Some(MountEntry {
            device,
            root,
            mountpoint,
            file_system_type: unescape(after_hyphen.next()?),
            source: after_hyphen.next().map(unescape).unwrap_or_default(),
            user: after_hyphen.next().and_then(user_of),
        })
    }
}

impl Device {
    /// The device of this number, as stat(2) gives it.
    pub fn of(number: u64) -> Device {
        Device {
            major: major(number),
            minor: minor(number),
        }
    }

    fn parse(field: &[u8]) -> Option<Self> {
        let (major, minor) = std::str::from_utf8(field).ok()?.split_once(':')?;
        Some(Device {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The number in the option `user_id` of a file system in user space.
fn user_of(options: &[u8]) -> Option<u32> {
    let mut options = options.split(|byte| *byte == b',');
    let number = options.find_map(|option| option.strip_prefix(b"user_id="))?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Replaces octal escapes by their characters, such as `\040` by a space. Any other backslash stays.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let escape = octal_escape(rest);
        bytes.push(escape.unwrap_or(*first));
        rest = if escape.is_some() { &rest[4..] } else { tail };
    }
    OsString::from_vec(bytes)
}

fn octal_escape(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"\\")?.first_chunk::<3>()?;
    digits.iter().try_fold(0_u8, |value, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 8)?;
        value.checked_mul(8)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    const TABLE: &[u8] = b"\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 22 0:48 / /mnt/my\\040store ro,nosuid shared:7 master:1 - fuse.zarr-mount /a\\134b\\011c ro
37 22 0:49 / /mnt/x rw - tmpfs tmpfs rw
38 37 0:50 / /mnt/x ro - fuse.zarr-mount demo: ro
39 22 0:50 /sub /mnt/bound ro - fuse.zarr-mount  ro,user_id=1000,group_id=0
nonsense
40 22 0:x / /mnt/y rw - tmpfs tmpfs rw
";

    #[test]
    fn fields_are_found_and_unescaped() {
        let table = MountTable::parse(TABLE);
        assert_eq!(table.entries.len(), 5, "lines of another form are left out");
        let entry = table.at(Path::new("/mnt/my store")).unwrap();
        assert!(entry.is_ours());
        assert_eq!(entry.source, OsStr::new("/a\\b\tc"));
        let (major, minor) = (0, 48);
        assert_eq!(entry.device, Device { major, minor });
        assert_eq!(entry.user, None);
        let bound = table.at(Path::new("/mnt/bound")).unwrap();
        assert_eq!(bound.user, Some(1000));
        assert_eq!(bound.source, OsStr::new(""), "a source may be empty");
    }

    #[test]
    fn the_newest_mount_at_a_place_counts() {
        let table = MountTable::parse(TABLE);
        assert!(table.at(Path::new("/mnt/x")).unwrap().is_ours());
        assert!(!table.at(Path::new("/")).unwrap().is_ours());
        assert_eq!(table.at(Path::new("/mnt")), None);
    }

    #[test]
    fn a_device_is_found_wherever_it_is_mounted() {
        let table = MountTable::parse(TABLE);
        let (major, minor) = (0, 50);
        let places: Vec<_> = table
            .of_device(Device { major, minor })
            .map(|entry| entry.mountpoint.as_path())
            .collect();
        assert_eq!(places, [Path::new("/mnt/bound"), Path::new("/mnt/x")]);
    }

    #[test]
    fn a_path_is_found_by_every_mount_of_its_file_system() {
        let table = MountTable::parse(
            b"\
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 254:0 /data/store/sub /else/where rw - ext4 /dev/vda rw
24 22 254:0 /data /d rw - ext4 /dev/vda rw
25 22 0:50 / /mnt rw - tmpfs tmpfs rw
26 22 254:0 /data/store /mnt rw - ext4 /dev/vda rw
",
        );
        for (path, others) in [
            (
                "/else/where",
                &["/mnt/sub", "/d/store/sub", "/data/store/sub"][..],
            ),
            (
                "/else/where/x",
                &["/mnt/sub/x", "/d/store/sub/x", "/data/store/sub/x"],
            ),
            ("/data/store", &["/mnt", "/d/store"]),
            ("/mnt", &["/d/store", "/data/store"]),
            ("/data/storey", &["/d/storey"]),
            ("/else", &[]),
        ] {
            let others = others.iter().map(PathBuf::from).collect::<Vec<_>>();
            assert_eq!(table.other_paths(Path::new(path)), others, "{path}");
        }
    }

    #[test]
    fn escapes() {
        let cases: [(&[u8], &[u8]); 5] = [
            (b"a\\040b", b"a b"),
            (b"\\134040", b"\\040"), // an escaped backslash starts nothing
            (b"\\9", b"\\9"),
            (b"\\777", b"\\777"), // more than a byte
            (b"\xff\\012", b"\xff\n"),
        ];
        for (escaped, plain) in cases {
            assert_eq!(unescape(escaped).as_bytes(), plain);
        }
    }

    #[test]
    fn the_table_of_this_process_has_a_root() {
        let table = MountTable::read().unwrap();
        assert!(table.at(Path::new("/")).is_some());
    }
}
