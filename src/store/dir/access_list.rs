//! Access control lists (`acl(5)`), as the system keeps them in extended attributes.
//!
//! ```text
//! 02 00 00 00                 version
//! 01 00 06 00 ff ff ff ff     tag, bits, number: the owner
//! 02 00 04 00 39 30 00 00     the user 12345
//! ```
//!
//! The mode of a file with a list has the bits of the *mask* in place of those of the group: the most that any named
//! user or group, and the owning group, has. So the mode of such a file grants too much without its list.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{Mode, XattrFlags, fchmod, fgetxattr, fremovexattr, fsetxattr, getxattr};
use rustix::io::Errno;

/// The extended attribute with the list of a file.
pub(super) const ACCESS: &str = "system.posix_acl_access";
/// The extended attribute with the list for new files in a directory.
pub(super) const DEFAULT: &str = "system.posix_acl_default";

const VERSION: [u8; 4] = 2_u32.to_le_bytes();
/// The size of a buffer for a list of about a hundred entries.
pub(super) const USUAL_BYTES: usize = 1024;
/// The longest value of an extended attribute that Linux has.
const MOST_BYTES: usize = 64 << 10;

const OWNER: u16 = 0x01;
const NAMED_USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const NAMED_GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AccessEntry {
    tag: u16,
    bits: u16,
    id: u32,
}

/// A list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccessList(Vec<AccessEntry>);

/// The entries of a list; `None` when the bytes are not a list.
fn entries(list: &[u8]) -> Option<impl Iterator<Item = AccessEntry>> {
    let (entries, rest) = list.strip_prefix(&VERSION)?.as_chunks::<8>();
    let parse = |&[t0, t1, b0, b1, id @ ..]: &[u8; 8]| AccessEntry {
        tag: u16::from_le_bytes([t0, t1]),
        bits: u16::from_le_bytes([b0, b1]) & 7,
        id: u32::from_le_bytes(id),
    };
    rest.is_empty().then(|| entries.iter().map(parse))
}

/// The bits that a list grants to all users: to others, and to each user and group that it names. `None` when the bytes
/// are not a list.
pub(super) fn granted_to_all(list: &[u8]) -> Option<u32> {
    let (mut masked, mut mask, mut others) = (7, 7, 0);
    for AccessEntry { tag, bits, .. } in entries(list)? {
        match tag {
            NAMED_USER | OWNING_GROUP | NAMED_GROUP => masked &= bits,
            MASK => mask = bits,
            OTHERS => others = bits,
            _ => {}
        }
    }
    Some(u32::from(masked & mask & others))
}

impl AccessList {
    /// The list `name` of an open file; `None` when it has none.
    ///
    /// # Errors
    /// Those of getxattr(2); [`Errno::INVAL`] for bytes that are not a list.
    pub(super) fn of(file: impl AsFd, name: &str) -> Result<Option<AccessList>, Errno> {
        let read_into = |list: &mut [u8]| match fgetxattr(&file, name, &mut *list) {
            // A descriptor that was opened with O_PATH is read by this path, which takes the system longer.
            Err(Errno::BADF) => {
                let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
                getxattr(path.as_str(), name, list)
            }
            read => read,
        };
        let mut usual = [0; USUAL_BYTES];
        let mut long = Vec::new();
        let mut read = read_into(&mut usual).map(|len| usual.get(..len));
        if read == Err(Errno::RANGE) {
            long.resize(MOST_BYTES, 0);
            read = read_into(&mut long).map(|len| long.get(..len));
        }
        match read {
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
            read => {
                let list = read?.and_then(entries).ok_or(Errno::INVAL)?;
                Ok(Some(AccessList(list.collect())))
            }
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_vec();
        for AccessEntry { tag, bits, id } in &self.0 {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(bits.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }

    /// The bits of the entry with this tag; `None` if there is none.
    fn bits(&self, tag: u16) -> Option<u16> {
        let entry = self.0.iter().find(|entry| entry.tag == tag);
        entry.map(|entry| entry.bits)
    }

    /// Removes all bits but these from the entries with this tag.
    fn keep(&mut self, tag: u16, bits: u16) {
        let entries = self.0.iter_mut().filter(|entry| entry.tag == tag);
        entries.for_each(|entry| entry.bits &= bits);
    }

    /// The list of a new file with this mode in a directory with this default list. The mode limits the bits of the
    /// owner, the mask and others, and no umask applies.
    pub(super) fn of_new(mut self, mode: u32) -> AccessList {
        let group = self.bits(MASK).map_or(OWNING_GROUP, |_| MASK);
        for (tag, shift) in [(OWNER, 6), (group, 3), (OTHERS, 0)] {
            self.keep(tag, low_bits(mode >> shift));
        }
        self
    }

    /// The list of a file that got another group, which gets no more bits than all others have.
    pub(super) fn of_other_group(mut self) -> AccessList {
        self.keep(OWNING_GROUP, self.bits(OTHERS).unwrap_or(0));
        self
    }

    /// Whether the list `other` grants no user more than this one, as far as this can be told: users whom only one of
    /// the lists names may have more.
    pub(super) fn grants_all_of(&self, other: &AccessList) -> bool {
        let is_masked = |tag| [NAMED_USER, OWNING_GROUP, NAMED_GROUP].contains(&tag);
        let granted = |list: &AccessList| {
            let mask = list.bits(MASK).unwrap_or(7);
            let entries = list.0.iter().filter(|entry| entry.tag != MASK);
            let granted = entries.map(|entry| {
                let bits = if is_masked(entry.tag) {
                    entry.bits & mask
                } else {
                    entry.bits
                };
                ((entry.tag, entry.id), bits)
            });
            granted.collect::<BTreeMap<_, _>>()
        };
        let (own, other) = (granted(self), granted(other));
        own.len() == other.len()
            && (own.iter().zip(&other))
                .all(|(own, other)| own.0 == other.0 && other.1 & !own.1 == 0)
    }

    /// The mode of a file with this list.
    fn mode(&self) -> u32 {
        let group = self.bits(MASK).or_else(|| self.bits(OWNING_GROUP));
        self.mode_of(group.unwrap_or(0), self.bits(OTHERS).unwrap_or(0))
    }

    /// The mode that grants no user more than this list does. Without the list, the users whom it names belong to the
    /// group or to others.
    pub(super) fn mode_without(&self) -> u32 {
        let is_named = |entry: &&AccessEntry| [NAMED_USER, NAMED_GROUP].contains(&entry.tag);
        let named = self.0.iter().filter(is_named).map(|entry| entry.bits);
        let named = named.reduce(|all, bits| all & bits);
        let mask = self.bits(MASK).unwrap_or(7);
        let group = self.bits(OWNING_GROUP).unwrap_or(0) & mask & named.unwrap_or(7);
        let others = self.bits(OTHERS).unwrap_or(0);
        // Without a named user or group, the mask does not limit others.
        let others = named.map_or(others, |named| others & named & mask);
        self.mode_of(group, others)
    }

    fn mode_of(&self, group: u16, others: u16) -> u32 {
        let owner = self.bits(OWNER).unwrap_or(0);
        u32::from(owner << 6 | group << 3 | others)
    }
}

fn low_bits(bits: u32) -> u16 {
    u16::try_from(bits & 7).unwrap_or(0)
}

/// The mode of a file that got another group, which gets no more bits than all others have.
pub(super) fn mode_of_other_group(mode: u32) -> u32 {
    let others = (mode & 7) << 3;
    mode & !0o2070 | mode & others
}

/// Gives `file` this mode, or the list from which its other bits come. If the file system keeps no list, the mode
/// grants no user more. A list that the file has from its directory is removed.
pub(super) fn set_access(
    file: impl AsFd,
    mode: u32,
    list: Option<&AccessList>,
) -> Result<(), Errno> {
    let special = mode & 0o7000;
    let mode = if let Some(list) = list {
        match fsetxattr(&file, ACCESS, &list.to_bytes(), XattrFlags::empty()) {
            Ok(()) if special == 0 => return Ok(()),
            Ok(()) => list.mode() | special,
            Err(Errno::NOTSUP) => list.mode_without() | special,
            Err(errno) => return Err(errno),
        }
    } else {
        if AccessList::of(&file, ACCESS)?.is_some() {
            fremovexattr(&file, ACCESS)?;
        }
        mode
    };
    fchmod(&file, Mode::from_raw_mode(mode & 0o7777))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A list with these tags and bits.
    pub(in crate::store::dir) fn list(entries: &[(u16, u16)]) -> AccessList {
        let entry = |&(tag, bits)| AccessEntry {
            tag,
            bits,
            id: if [NAMED_USER, NAMED_GROUP].contains(&tag) {
                12345
            } else {
                u32::MAX
            },
        };
        AccessList(entries.iter().map(entry).collect())
    }

    #[test]
    fn others_have_the_bits_that_every_named_user_and_group_has() {
        for (entries, granted, why) in [
            (
                &[(1, 6), (4, 4), (0x20, 4)][..],
                4,
                "no entry but those of the mode",
            ),
            (
                &[(1, 6), (2, 4), (4, 4), (0x10, 4), (0x20, 4)],
                4,
                "a user who may read",
            ),
            (
                &[(1, 6), (2, 0), (4, 4), (0x10, 4), (0x20, 4)],
                0,
                "a user who may not",
            ),
            (
                &[(1, 6), (4, 4), (8, 0), (0x10, 4), (0x20, 4)],
                0,
                "a group that may not",
            ),
            (
                &[(1, 7), (2, 7), (4, 7), (0x10, 5), (0x20, 7)],
                5,
                "the mask",
            ),
            (
                &[(1, 6), (2, 4), (4, 0), (0x10, 4), (0x20, 0)],
                0,
                "others may not",
            ),
        ] {
            let bytes = list(entries).to_bytes();
            assert_eq!(granted_to_all(&bytes), Some(granted), "{why}");
        }
        assert_eq!(granted_to_all(&[1, 0, 0, 0]), None, "another version");
        assert_eq!(granted_to_all(&[2, 0, 0, 0, 1]), None, "cut off");
        assert_eq!(granted_to_all(&[]), None);
    }

    #[test]
    fn a_mode_without_its_list_grants_no_user_more() {
        for (entries, mode, without, why) in [
            (
                &[(1, 6), (4, 4), (0x20, 4)][..],
                0o644,
                0o644,
                "it is the mode",
            ),
            (
                &[(1, 6), (2, 4), (4, 0), (0x10, 4), (0x20, 0)],
                0o640,
                0o600,
                "a group that is denied what the mask has",
            ),
            (
                &[(1, 6), (2, 0), (4, 4), (0x10, 4), (0x20, 4)],
                0o644,
                0o600,
                "a user who is denied what others have",
            ),
            (
                &[(1, 6), (4, 6), (8, 4), (0x10, 4), (0x20, 6)],
                0o646,
                0o644,
                "a group that only reads",
            ),
            (
                &[(1, 7), (2, 7), (4, 7), (0x10, 4), (0x20, 7)],
                0o747,
                0o744,
                "a user whom the mask keeps from writing",
            ),
            (
                &[(1, 7), (4, 7), (0x10, 5), (0x20, 7)],
                0o757,
                0o757,
                "a mask without a name",
            ),
        ] {
            let list = list(entries);
            assert_eq!((list.mode(), list.mode_without()), (mode, without), "{why}");
        }
    }

    #[test]
    fn a_new_file_has_the_bits_that_both_the_default_list_and_its_maker_give() {
        let masked = &[(1, 7), (2, 6), (4, 5), (0x10, 7), (0x20, 4)];
        let new = list(masked).of_new(0o640);
        assert_eq!(new, list(&[(1, 6), (2, 6), (4, 5), (0x10, 4), (0x20, 0)]));
        let plain = list(&[(1, 7), (4, 5), (0x20, 4)]).of_new(0o624);
        assert_eq!(plain, list(&[(1, 6), (4, 0), (0x20, 4)]));
    }

    #[test]
    fn a_list_grants_all_of_a_list_that_grants_no_user_more() {
        let entries = [(1, 6), (2, 6), (4, 0), (0x10, 6), (0x20, 0)];
        let own = list(&entries);
        for (other, is_covered, why) in [
            (&entries[..], true, "itself"),
            (
                &[(1, 6), (2, 7), (4, 0), (0x10, 6), (0x20, 0)],
                true,
                "the mask takes it away",
            ),
            (
                &[(1, 6), (2, 4), (4, 0), (0x10, 4), (0x20, 0)],
                true,
                "less",
            ),
            (
                &[(1, 6), (2, 6), (4, 4), (0x10, 6), (0x20, 0)],
                false,
                "the group reads",
            ),
            (
                &[(1, 6), (2, 6), (4, 0), (0x10, 6), (0x20, 4)],
                false,
                "others read",
            ),
            (
                &[(1, 6), (8, 6), (4, 0), (0x10, 6), (0x20, 0)],
                false,
                "a group is named",
            ),
            (&[(1, 6), (4, 0), (0x20, 0)], false, "no user is named"),
        ] {
            assert_eq!(own.grants_all_of(&list(other)), is_covered, "{why}");
        }
    }

    #[test]
    fn another_group_has_no_more_than_others() {
        let other = list(&[(1, 7), (2, 6), (4, 6), (0x10, 7), (0x20, 4)]).of_other_group();
        assert_eq!(other, list(&[(1, 7), (2, 6), (4, 4), (0x10, 7), (0x20, 4)]));
        for (mode, other) in [(0o660, 0o600), (0o664, 0o644), (0o2676, 0o666)] {
            assert_eq!(mode_of_other_group(mode), other);
        }
    }
}
