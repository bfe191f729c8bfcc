//! The cost of a request to a store, and the number of requests that may be in flight.

use std::os::fd::AsFd;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use rustix::fs::{FsWord, fstatfs};

/// The most requests in flight to a file system that is served by another machine or process.
const NETWORK_IN_FLIGHT: usize = 64;

/// Bytes that a network file system reads in the time of one request: a millisecond or less, at some
/// hundred megabytes a second.
const NETWORK_REQUEST_BYTES: u64 = 256 << 10;

/// Bytes that a disk or the page cache reads in the time of a system call.
const LOCAL_REQUEST_BYTES: u64 = 8 << 10;

/// Concurrent requests per core to a local file system: one computes while others wait for the
/// disk.
const LOCAL_IN_FLIGHT_PER_CORE: usize = 4;

/// File systems that are served by another machine or process, by their magic numbers in statfs(2).
const NETWORK_FILE_SYSTEMS: [(FsWord, &str); 13] = [
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0x517b, "smb"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x1983_0326, "beegfs"),
];

/// The cost of a request to a store. It is constant while the store is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Whether a request takes no longer than a system call, as on a disk or in memory. If so,
    /// asking again is cheaper than caching the answer, and prefetching gains nothing.
    pub is_local: bool,
    /// How many requests may be in flight at once; more would be no faster, or refused.
    pub most_in_flight: usize,
    /// The cost of a request: how many bytes could be read in its time. Ranges that are no farther
    /// apart are better read as one.
    pub request_bytes: u64,
    /// Whether prefixes have attributes of their own, as directories do. Prefixes of an object store
    /// have none: no attribute shows when names in a prefix changed, all have the same owner and
    /// mode, and only a listing shows whether a prefix exists.
    pub has_directories: bool,
}

impl Profile {
    /// The profile of memory and of local disks.
    pub fn local() -> Profile {
        static CORES: LazyLock<usize> =
            LazyLock::new(|| available_parallelism().map_or(1, usize::from));
        Profile {
            is_local: true,
            most_in_flight: CORES.saturating_mul(LOCAL_IN_FLIGHT_PER_CORE),
            request_bytes: LOCAL_REQUEST_BYTES,
            has_directories: true,
        }
    }

    /// The profile of the file system that `file` is on; the local profile if statfs(2) fails.
    pub fn of_file_system(file: impl AsFd) -> Profile {
        fstatfs(file).map_or_else(|_| Profile::local(), |stat| Profile::of_type(stat.f_type))
    }

    fn of_type(magic: FsWord) -> Profile {
        if !NETWORK_FILE_SYSTEMS
            .iter()
            .any(|(known, _)| *known == magic)
        {
            return Profile::local();
        }
        Profile {
            is_local: false,
            most_in_flight: NETWORK_IN_FLIGHT,
            request_bytes: NETWORK_REQUEST_BYTES,
            has_directories: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_local() {
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::open(directory.path()).unwrap();
        let profile = Profile::of_file_system(file);
        assert_eq!(profile, Profile::local());
        assert!(profile.is_local && profile.most_in_flight >= LOCAL_IN_FLIGHT_PER_CORE);
    }

    #[test]
    fn file_systems_are_distinguished_by_their_numbers() {
        assert!(NETWORK_FILE_SYSTEMS.contains(&(rustix::fs::NFS_SUPER_MAGIC, "nfs")));
        for (magic, name) in NETWORK_FILE_SYSTEMS {
            let profile = Profile::of_type(magic);
            assert!(!profile.is_local, "{name}");
            assert_eq!(profile.most_in_flight, 64, "{name}");
        }
        let local = [
            ("ext4", 0xef53),
            ("tmpfs", 0x0102_1994),
            ("xfs", 0x5846_5342),
            ("btrfs", 0x9123_683e),
            ("overlayfs", 0x794c_7630),
            ("zfs", 0x2fc1_2fc1),
        ];
        for (name, magic) in local {
            assert_eq!(Profile::of_type(magic), Profile::local(), "{name}");
        }
    }
}
