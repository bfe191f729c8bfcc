//! The users who may read a file that is made from several objects.
//!
//! A file that is shown has one owner, one group and one set of permission bits; its parts may
//! have others. A class of users (owner, group, others) of the shown file may read it only if each
//! user in that class may read every part and search every directory on the way to it.
//!
//! ```text
//! shown file           a part                what the classes of the file may do with the part
//! owner 1, group 5     owner 1, group 5      as its own classes: owner, group, others
//! owner 1, group 5     owner 2, group 5      user 1 is not its owner: group or others
//! owner 1, group 5     owner 2, group 7      all three classes: what its others may do, at most
//! ```
//!
//! A class is granted a bit only if every class of the part that one of its users can be in has the
//! bit. So a mode such as 0604, which grants others more than the group, exposes nothing.

use std::collections::BTreeSet;

use super::ObjectMeta;

/// Owner, group and permission bits of an object or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Permission bits (`0o777`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Read bits of all three classes.
const READ: u32 = 0o444;

impl ObjectMeta {
    /// The owner, group and permission bits of the object.
    pub fn access(&self) -> Access {
        Access {
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
        }
    }
}

impl Access {
    /// The same owner and group, with other bits.
    #[must_use]
    pub fn with_mode(self, mode: u32) -> Access {
        Access { mode, ..self }
    }

    /// The write bits of those classes of a file with this owner and group whose users all may make files in
    /// `directory`.
    pub fn makers_in(self, directory: Access) -> u32 {
        let made = directory.mode & (directory.mode << 1) & 0o222;
        ReadRight(directory.with_mode(made << 1)).bits_for(self) >> 1
    }

    /// Whether all users who may read an object of this access may read `part` too.
    pub fn is_within(self, part: ReadRight) -> bool {
        self.mode & READ & !part.bits_for(self) == 0
    }
}

/// A right that is needed before a part can be read: to read an object, or to search a
/// directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadRight(Access);

impl ReadRight {
    /// The right to read an object.
    pub fn of_object(object: Access) -> ReadRight {
        ReadRight(object.with_mode(object.mode & READ))
    }

    /// The right to go through a directory.
    pub fn of_directory(directory: Access) -> ReadRight {
        ReadRight(directory.with_mode((directory.mode & 0o111) << 2))
    }

    /// The right to list a directory and to go through it.
    pub fn of_listed_directory(directory: Access) -> ReadRight {
        let listed = directory.mode & (directory.mode << 2) & READ;
        ReadRight(directory.with_mode(listed))
    }

    /// The read bits of those classes of a file with the owner and group of `shown` whose users all
    /// have this right.
    fn bits_for(self, shown: Access) -> u32 {
        let Access { mode, uid, gid } = self.0;
        let [owner, group, others] = [6, 3, 0].map(|shift| mode >> shift & 4);
        let is_owner = uid == shown.uid;
        let is_group = gid == shown.gid;
        // A user who does not own the part may be in its group.
        let others_or_group = if is_group { others } else { others & group };
        let group_or_others = if is_group { group } else { others & group };
        // A user who does not own the shown file may own the part.
        let perhaps_owner = if is_owner { 4 } else { owner };
        let owner = if is_owner { owner } else { group & others };
        let group = group_or_others & perhaps_owner;
        let others = others_or_group & perhaps_owner;
        owner << 6 | group << 3 | others
    }
}

/// The users who have all of a set of rights, and so may read a file that is made of several parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Readers {
    /// A set, because most parts of a store have the same owner and bits.
    rights: BTreeSet<ReadRight>,
}

impl Readers {
    /// Requires `right` too.
    pub fn add(&mut self, right: ReadRight) {
        self.rights.insert(right);
    }

    /// Requires all rights of `others` too.
    pub fn add_all(&mut self, others: &Readers) {
        self.rights.extend(&others.rights);
    }

    /// The read bits of a file that is made of these parts and is shown with the owner and group
    /// of `shown`, and with no more than its bits.
    pub fn bits_for(&self, shown: Access) -> u32 {
        let bits = self.rights.iter().map(|right| right.bits_for(shown));
        bits.fold(shown.mode & READ, |all, each| all & each)
    }

    /// Whether every user of `readers` who may read a file with the access `shown` is one of these
    /// users.
    pub fn include(&self, shown: Access, readers: &Readers) -> bool {
        let mut others = self.rights.difference(&readers.rights);
        others.all(|&right| shown.is_within(right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user, and whether she is in the groups 1 and 2.
    type User = (u32, [bool; 2]);

    fn users() -> impl Iterator<Item = User> {
        (1..=3).flat_map(|uid| {
            [false, true]
                .into_iter()
                .flat_map(move |one| [false, true].map(|two| (uid, [one, two])))
        })
    }

    /// The kernel's rule: the first class that a user is in counts.
    fn may_read(user: User, object: Access) -> bool {
        let (uid, [one, two]) = user;
        let is_member = (object.gid == 1 && one) || (object.gid == 2 && two);
        let shift = match (uid == object.uid, is_member) {
            (true, _) => 6,
            (false, true) => 3,
            (false, false) => 0,
        };
        object.mode >> shift & 4 != 0
    }

    fn class(user: User, object: Access) -> u32 {
        [0o400, 0o040, 0o004]
            .into_iter()
            .find(|&bit| may_read(user, object.with_mode(bit)))
            .unwrap_or(0)
    }

    fn all_parts() -> impl Iterator<Item = Access> {
        (0..8_u32).flat_map(|bits| {
            let mode = (bits & 4) << 6 | (bits & 2) << 4 | (bits & 1) << 2;
            [1, 2]
                .into_iter()
                .flat_map(move |uid| [1, 2].map(|gid| Access { mode, uid, gid }))
        })
    }

    const SHOWN: Access = Access {
        mode: READ,
        uid: 1,
        gid: 1,
    };

    #[test]
    fn a_class_may_read_when_each_of_its_users_may_read_the_part() {
        for part in all_parts() {
            let bits = ReadRight::of_object(part).bits_for(SHOWN);
            for bit in [0o400, 0o040, 0o004] {
                let mut of_class = users().filter(|&user| class(user, SHOWN) == bit);
                let all = of_class.all(|user| may_read(user, part));
                assert_eq!(bits & bit != 0, all, "{part:?}: {bits:o}, {bit:o}");
            }
        }
    }

    #[test]
    fn a_user_who_may_read_a_file_of_several_parts_may_read_each() {
        let parts: Vec<Access> = all_parts().collect();
        for &first in &parts {
            for &second in &parts {
                let mut readers = Readers::default();
                readers.add(ReadRight::of_object(first));
                readers.add(ReadRight::of_object(second));
                let file = SHOWN.with_mode(readers.bits_for(SHOWN));
                for user in users().filter(|&user| may_read(user, file)) {
                    assert!(may_read(user, first) && may_read(user, second));
                }
                assert!(readers.include(file, &Readers::default()));
            }
        }
    }

    #[test]
    fn a_part_is_included_where_its_right_is_granted_or_asked_for_already() {
        let closed = SHOWN.with_mode(0o700);
        let mut way = Readers::default();
        way.add(ReadRight::of_directory(closed));
        assert!(!way.include(SHOWN, &Readers::default()));
        assert!(way.include(SHOWN, &way), "those who come this way");
        assert!(way.include(SHOWN.with_mode(0o400), &Readers::default()));
        let other_owner = Access {
            uid: 2,
            ..SHOWN.with_mode(0o400)
        };
        assert!(!way.include(other_owner, &Readers::default()));
    }

    #[test]
    fn directories_are_searched_and_some_are_listed() {
        let bits = |right: ReadRight| right.bits_for(SHOWN);
        for (mode, searched, listed) in [
            (0o755, 0o444, 0o444),
            (0o711, 0o444, 0o400),
            (0o744, 0o400, 0o400),
            (0o700, 0o400, 0o400),
        ] {
            let directory = SHOWN.with_mode(mode);
            assert_eq!(
                bits(ReadRight::of_directory(directory)),
                searched,
                "{mode:o}"
            );
            assert_eq!(
                bits(ReadRight::of_listed_directory(directory)),
                listed,
                "{mode:o}"
            );
        }
    }
}
