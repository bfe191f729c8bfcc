//! The memory that this process may use: the least of the machine's memory, the limits of its
//! control groups (both versions, every level up to the root), and its address space limit.

use std::path::{Component, Path, PathBuf};

use crate::store::address_limit;

/// The default of `--cache-size`: a quarter of the memory that may be used, and 1 GiB at most.
pub(crate) fn default_cache_bytes() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    cache_bytes(usable_bytes(read, address_limit()))
}

fn cache_bytes(usable: Option<u64>) -> u64 {
    const MOST: u64 = 1 << 30;
    usable.map_or(MOST, |bytes| (bytes / 4).min(MOST))
}

/// `read` returns the text of a file of `/proc` or `/sys`; `None` when it is absent.
fn usable_bytes(read: impl Fn(&Path) -> Option<String>, address_space: Option<u64>) -> Option<u64> {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| total_memory(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    // The word "max" in such a file is no limit, and no number.
    let group_limits = limit_files(&groups)
        .into_iter()
        .filter_map(|path| read(&path)?.trim().parse().ok());
    group_limits.chain(machine).chain(address_space).min()
}

/// The bytes in the line `MemTotal:       24576000 kB`.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The files that may hold a limit, for the lines of `/proc/self/cgroup`:
/// `0::/user.slice/a.scope` (version 2), `9:cpuset,memory:/docker/1f` (version 1).
///
/// In a container, the root of the mounted tree often is the container's own group, and the path in
/// `/proc/self/cgroup` does not exist below it; the walk up to the root finds the limit all the same.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (roots, names): (&[&str], &[&str]) = if controllers.is_empty() {
            (
                &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
                &["memory.max", "memory.high"],
            )
        } else if controllers.split(',').any(|name| name == "memory") {
            (&["/sys/fs/cgroup/memory"], &["memory.limit_in_bytes"])
        } else {
            continue;
        };
        // A group outside our namespace is shown with `..`, which leads nowhere here.
        let group: PathBuf = Path::new(group)
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        for level in group.ancestors() {
            for directory in roots.iter().map(|root| Path::new(root).join(level)) {
                files.extend(names.iter().map(|name| directory.join(name)));
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn usable(files: &[(&str, &str)], address_space: Option<u64>) -> Option<u64> {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| path == Path::new(name));
            found.map(|(_, text)| (*text).to_owned())
        };
        usable_bytes(read, address_space)
    }

    const MEMINFO: (&str, &str) = (
        "/proc/meminfo",
        "MemTotal:        8388608 kB\nMemFree: 1 kB\n",
    );

    #[test]
    fn without_groups_it_is_the_memory_of_the_machine() {
        assert_eq!(usable(&[MEMINFO], None), Some(8 * GIB));
        assert_eq!(usable(&[], None), None);
        assert_eq!(usable(&[MEMINFO], Some(GIB)), Some(GIB));
    }

    #[test]
    fn version_2_limits_count_at_every_level() {
        let group = ("/proc/self/cgroup", "0::/a.slice/b.scope\n");
        let unlimited = ("/sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
        let above = ("/sys/fs/cgroup/a.slice/memory.max", "4294967296\n");
        let high = ("/sys/fs/cgroup/a.slice/b.scope/memory.high", "2147483648\n");
        assert_eq!(
            usable(&[MEMINFO, group, unlimited], None),
            Some(8 * GIB),
            "max is no limit"
        );
        assert_eq!(
            usable(&[MEMINFO, group, unlimited, above], None),
            Some(4 * GIB)
        );
        assert_eq!(
            usable(&[MEMINFO, group, unlimited, above, high], None),
            Some(2 * GIB)
        );
    }

    #[test]
    fn version_1_in_a_container_is_found_at_the_root() {
        let group = (
            "/proc/self/cgroup",
            "5:cpuset:/docker/1f\n4:blkio,memory:/docker/1f\n",
        );
        let limit = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
        assert_eq!(usable(&[MEMINFO, group, limit], None), Some(GIB / 2));
        let none = (
            "/sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(usable(&[MEMINFO, group, none], None), Some(8 * GIB));
    }

    #[test]
    fn a_group_outside_the_namespace_leads_nowhere() {
        assert_eq!(
            limit_files("0::/../../other\n").first().unwrap(),
            Path::new("/sys/fs/cgroup/other/memory.max")
        );
    }

    #[test]
    fn the_cache_is_a_quarter_up_to_one_gib() {
        assert_eq!(cache_bytes(Some(GIB)), GIB / 4);
        assert_eq!(cache_bytes(Some(64 * GIB)), GIB);
        assert_eq!(cache_bytes(None), GIB);
    }
}
