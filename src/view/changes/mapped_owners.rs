//! Changes through a mount that shows other owners or modes than the store has (`--uid`, `--gid`, `--umask`).
//!
//! The kernel checks callers against the shown attributes, and the daemon makes the changes with its own rights. So a
//! caller that only seems to be the owner of an object gets none of the rights of the true owner: owners stay, and no
//! set-user-ID, set-group-ID or sticky bit is set.

use crate::error::Error;
use crate::store::{NewAttributes, NewFile, Refusal};
use crate::view::changes::refused;
use crate::view::options::ViewOptions;
use crate::view::vnode::{VnodeAttributes, VnodeKind};

impl ViewOptions {
    fn maps_owners(&self) -> bool {
        self.uid.is_some() || self.gid.is_some()
    }

    fn maps_rights(&self) -> bool {
        self.maps_owners() || self.umask.is_some()
    }

    /// The change of the file or directory `name`, which is shown with `shown`, for a caller that requests `new`.
    /// Programs that set the shown owner, as programs do that copy attributes, get no error although nothing changes.
    ///
    /// # Errors
    /// [`Refusal::Fixed`] for another owner.
    pub(in crate::view) fn settable(
        &self,
        new: &NewAttributes,
        name: &dyn std::fmt::Display,
        shown: impl FnOnce() -> Result<VnodeAttributes, Error>,
    ) -> Result<NewAttributes, Error> {
        let mut new = *new;
        if !self.maps_rights() {
            return Ok(new);
        }
        let shown = shown()?;
        if self.maps_owners() {
            let asked = (new.uid.take(), new.gid.take());
            let stays = asked.0.is_none_or(|uid| uid == shown.uid)
                && asked.1.is_none_or(|gid| gid == shown.gid);
            if !stays {
                return Err(refused(name, Refusal::Fixed));
            }
        }
        // The bits of a directory give no user a right.
        let kept = match shown.kind {
            VnodeKind::Directory => shown.mode & 0o7000,
            VnodeKind::File => 0,
        };
        new.mode = new.mode.map(|mode| mode & (0o777 | kept));
        Ok(new)
    }

    /// A new file or directory, for a caller that requests `new`.
    pub(in crate::view) fn makeable(&self, new: NewFile) -> NewFile {
        let bits = if self.maps_rights() { 0o777 } else { 0o7777 };
        let mode = new.mode & bits;
        NewFile { mode, ..new }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::store::Times;

    fn shown(kind: VnodeKind, mode: u32) -> VnodeAttributes {
        let time = SystemTime::UNIX_EPOCH;
        VnodeAttributes {
            kind,
            size: 1,
            times: Times {
                atime: time,
                mtime: time,
                ctime: time,
            },
            mode,
            uid: 7,
            gid: 8,
            fingerprint: 9,
        }
    }

    fn mapping(uid: Option<u32>, gid: Option<u32>, umask: Option<u32>) -> ViewOptions {
        ViewOptions {
            uid,
            gid,
            umask,
            ..ViewOptions::default()
        }
    }

    #[test]
    fn a_mount_that_maps_rights_sets_no_bits_that_give_those_of_the_owner() {
        use VnodeKind::{Directory, File};
        let maps = [
            mapping(Some(7), None, None),
            mapping(None, Some(8), None),
            mapping(None, None, Some(0o022)),
            mapping(None, None, Some(0)),
        ];
        for options in maps {
            for (kind, old, asked, set) in [
                (File, 0o644, 0o4755, 0o755),
                (File, 0o6755, 0o6755, 0o755),
                (File, 0o644, 0o1666, 0o666),
                (Directory, 0o2775, 0o2770, 0o2770),
                (Directory, 0o2775, 0o0770, 0o0770),
                (Directory, 0o0775, 0o3775, 0o0775),
            ] {
                let new = NewAttributes {
                    mode: Some(asked),
                    ..NewAttributes::default()
                };
                let shown = shown(kind, old);
                let settable = options.settable(&new, &"a", || Ok(shown)).unwrap();
                assert_eq!(settable.mode, Some(set), "{asked:o} of {old:o}");
            }
            let (uid, gid) = (7, 8);
            let asked = NewFile {
                mode: 0o6755,
                umask: 0,
                uid,
                gid,
            };
            let made = options.makeable(asked);
            assert_eq!((made.mode, made.uid, made.gid), (0o755, uid, gid));
        }
        let new = NewAttributes {
            mode: Some(0o6755),
            uid: Some(1),
            ..NewAttributes::default()
        };
        let as_stored = mapping(None, None, None);
        let settable = as_stored.settable(&new, &"a", || Err(Error::Stale));
        assert_eq!(settable.unwrap(), new);
    }

    #[test]
    fn a_mount_that_maps_owners_changes_none() {
        let shown = shown(VnodeKind::File, 0o644);
        for options in [mapping(Some(7), None, None), mapping(None, Some(8), None)] {
            for (uid, gid, stays) in [
                (Some(7), Some(8), true),
                (None, Some(8), true),
                (Some(0), None, false),
                (Some(7), Some(0), false),
            ] {
                let new = NewAttributes {
                    uid,
                    gid,
                    ..NewAttributes::default()
                };
                let settable = options.settable(&new, &"a", || Ok(shown));
                let expected = stays.then(NewAttributes::default);
                assert_eq!(settable.ok(), expected, "{uid:?} {gid:?}");
            }
        }
    }
}
