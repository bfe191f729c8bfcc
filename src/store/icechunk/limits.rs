//! The memory that the files of a repository may take.
//!
//! ```text
//! twice    the limit of a list of branches or a snapshot: one that is shown, and one that takes its place
//! once     the limit of manifests that are remembered
//! ```
//!
//! The sum is a part of `--cache-size`, at most three quarters of it. When the repository is opened, the limits are set by
//! the lengths of its files, with room to grow. They do not change afterwards, because the rest of the memory is in use
//! then.

use super::envelope::FileKind;

/// The least that a list of branches, or a snapshot, may take.
const LEAST_BYTES: u64 = 4 << 20;

/// Limits, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    budget: u64,
    /// The limit of a list of branches, or of a snapshot.
    snapshot: u64,
    /// The limit of all manifests that are remembered, and therefore of each of them.
    manifests: u64,
}

impl Limits {
    /// The limits until a snapshot was read, for files that may take a part of `budget`.
    pub(super) fn of_budget(budget: u64) -> Limits {
        Limits {
            budget,
            snapshot: budget / 4,
            manifests: budget / 4,
        }
    }

    /// Adapts the limits to a repository in which the list of branches and the snapshot take up to `longest`, and the
    /// manifests about `manifests`.
    pub(super) fn adapt(&mut self, longest: u64, manifests: u64) {
        let room = longest.saturating_mul(2).max(LEAST_BYTES);
        self.snapshot = room.min(self.budget / 4);
        let most = (self.budget / 4 * 3 - 2 * self.snapshot).min(self.budget / 2);
        let room = manifests.saturating_add(manifests / 2);
        self.manifests = room.max(self.budget / 8).min(most);
    }

    /// The most bytes of a file of this kind, as it is stored and as it is decoded.
    pub(super) fn most_bytes(&self, kind: FileKind) -> u64 {
        match kind {
            FileKind::Snapshot | FileKind::Repository => self.snapshot,
            FileKind::Manifest => self.manifests,
        }
    }

    /// The memory of all files.
    pub(super) fn held_bytes(&self) -> u64 {
        2 * self.snapshot + self.manifests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn memory_grows_with_the_repository_up_to_three_quarters() {
        for (longest, manifests, expected) in [
            (0, 0, (4, 32)),
            (3 * MIB, 40 * MIB, (6, 60)),
            (3 * MIB, 500 * MIB, (6, 128)),
            (200 * MIB, 0, (64, 32)),
            (u64::MAX, u64::MAX, (64, 64)),
        ] {
            let mut limits = Limits::of_budget(256 * MIB);
            limits.adapt(longest, manifests);
            let found = (limits.snapshot / MIB, limits.manifests / MIB);
            assert_eq!(found, expected, "{longest} {manifests}");
            assert!(limits.held_bytes() <= 192 * MIB);
        }
        let mut small = Limits::of_budget(MIB);
        small.adapt(MIB, MIB);
        assert_eq!((small.snapshot, small.manifests), (MIB / 4, MIB / 4));
    }
}
