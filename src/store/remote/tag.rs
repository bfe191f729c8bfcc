//! Versions of objects, as servers tell them.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use object_store::ObjectMeta as ServerMeta;
use rustix::process::{getegid, geteuid};

use crate::store::{Dating, ObjectMeta, SERVER_YOUTH, Times, Version};

/// A version of an object: its attributes, and how requests ask for this version alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pinned {
    pub(super) meta: ObjectMeta,
    /// A strong `ETag`, in quotes.
    pub(super) tag: Option<String>,
}

impl Pinned {
    /// The version that a server describes, whose clock shows `date` then. Its time is cut to whole
    /// seconds, because a listing may have a finer one than the object's own answer.
    pub(super) fn new(found: &ServerMeta, date: Option<SystemTime>) -> Pinned {
        let seconds = u64::try_from(found.last_modified.timestamp()).unwrap_or(0);
        let mtime = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let tag = found.e_tag.as_deref().and_then(strong);
        let dating = if tag.is_some() {
            Dating::Tag
        } else {
            dating_by(date, mtime)
        };
        let version = Version {
            size: found.size,
            mtime,
            inode: 0,
            tag: tag.as_deref().map_or(0, hash),
        };
        let meta = ObjectMeta {
            changed_here: date.and_then(|date| by_our_clock(mtime, date, SystemTime::now())),
            is_own: false,
            ..attributes(version, 0o444, dating)
        };
        Pinned { meta, tag }
    }

    /// Whether `other` is the same version.
    pub(super) fn is_same(&self, other: &Pinned) -> bool {
        self.meta.version == other.meta.version && self.tag == other.tag
    }

    /// Whether something tells this version from a later one of the same length.
    pub(super) fn is_identified(&self) -> bool {
        self.tag.is_some() || self.meta.version.mtime > SystemTime::UNIX_EPOCH
    }
}

/// How finely a time of modification tells changes apart, where nothing else does. It is compared
/// with the clock that it is of, and with ours only where the server tells no date.
fn dating_by(date: Option<SystemTime>, mtime: SystemTime) -> Dating {
    match date {
        None => Dating::Times(SERVER_YOUTH),
        Some(date)
            if date
                .duration_since(mtime)
                .is_ok_and(|age| age < SERVER_YOUTH) =>
        {
            Dating::Young
        }
        Some(_) => Dating::Old,
    }
}

/// The time `changed` of a clock that shows `date` while ours shows `now`. Servers that answer for
/// each other have clocks that differ a little, so that a change may be dated a little ahead.
fn by_our_clock(changed: SystemTime, date: SystemTime, now: SystemTime) -> Option<SystemTime> {
    match date.duration_since(changed) {
        Ok(age) => now.checked_sub(age),
        Err(ahead) if ahead.duration() <= SERVER_YOUTH => Some(now),
        Err(ahead) => now.checked_add(ahead.duration()),
    }
}

/// Attributes of a prefix, which all prefixes have.
pub(super) fn prefix_attributes(mounted: SystemTime) -> ObjectMeta {
    let version = Version {
        size: 0,
        mtime: mounted,
        inode: 0,
        tag: 0,
    };
    attributes(version, 0o555, Dating::Nothing)
}

fn attributes(version: Version, mode: u32, dating: Dating) -> ObjectMeta {
    let mtime = version.mtime;
    ObjectMeta {
        version,
        times: Times {
            atime: mtime,
            mtime,
            ctime: mtime,
        },
        mode,
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        dating,
        changed_here: None,
        is_own: false,
    }
}

/// The strong `ETag` in `text`, in quotes; `None` for a weak one. Listings of some servers leave
/// the quotes out.
fn strong(text: &str) -> Option<String> {
    let text = text.trim();
    if text.starts_with("W/") || text.is_empty() {
        return None;
    }
    Some(format!("\"{}\"", text.trim_matches('"')))
}

/// A hash with a key of this process, so that nobody can choose two tags with the same one.
fn hash(tag: &str) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(tag: Option<&str>, time: &str) -> ServerMeta {
        ServerMeta {
            location: "a".into(),
            last_modified: time.parse().unwrap(),
            size: 5,
            e_tag: tag.map(str::to_owned),
            version: None,
        }
    }

    #[test]
    fn a_listing_and_an_answer_tell_the_same_version() {
        let listed = Pinned::new(&meta(Some("0x1"), "2026-01-01T00:00:00.123Z"), None);
        let answered = Pinned::new(&meta(Some("\"0x1\""), "2026-01-01T00:00:00Z"), None);
        assert!(listed.is_same(&answered));
        assert_eq!(listed.meta.dating, Dating::Tag);
        let other = Pinned::new(&meta(Some("\"0x2\""), "2026-01-01T00:00:00Z"), None);
        assert!(!listed.is_same(&other));
    }

    #[test]
    fn the_same_bytes_put_once_more_are_another_version_and_no_wrong_answer() {
        use super::super::failure::Failure;
        let asked = Pinned::new(&meta(Some("\"1\""), "2026-01-01T00:00:00Z"), None);
        let later = meta(Some("\"1\""), "2026-01-01T00:01:00Z");
        let again = Pinned::new(&later, None);
        let check = again.check_is(&asked, true);
        assert!(matches!(check, Err(Failure::Changed)), "{check:?}");
        let cut = Pinned::new(&ServerMeta { size: 4, ..later }, None);
        let check = cut.check_is(&asked, true);
        assert!(matches!(check, Err(Failure::Unusable(_))), "{check:?}");
    }

    #[test]
    fn the_age_of_a_version_is_told_by_the_server() {
        let found = meta(None, "2026-01-01T00:00:00Z");
        let written = SystemTime::from(found.last_modified);
        for (seconds, expected, why) in [
            (0, Dating::Young, "just now"),
            (1, Dating::Young, "within the grain"),
            (2, Dating::Old, "before"),
        ] {
            let date = written + Duration::from_secs(seconds);
            assert_eq!(
                Pinned::new(&found, Some(date)).meta.dating,
                expected,
                "{why}"
            );
        }
    }

    #[test]
    fn a_weak_tag_tells_nothing() {
        let weak = Pinned::new(&meta(Some("W/\"1\""), "2026-01-01T00:00:00Z"), None);
        assert_eq!(weak.tag, None);
        assert!(weak.is_identified(), "by its time");
        assert_ne!(weak.meta.dating, Dating::Tag);
        let none = Pinned::new(&meta(None, "1970-01-01T00:00:00Z"), None);
        assert!(!none.is_identified());
    }

    #[test]
    fn a_change_is_dated_by_our_clock() {
        let seconds = Duration::from_secs;
        let (date, changed) = (SystemTime::UNIX_EPOCH + seconds(1000), |n| {
            SystemTime::UNIX_EPOCH + seconds(n)
        });
        let now = SystemTime::now();
        for (told, expected, why) in [
            (400, now - seconds(600), "before"),
            (1000, now, "just now"),
            (1001, now, "by a clock that is a little ahead"),
            (1600, now + seconds(600), "set by hand"),
        ] {
            let found = by_our_clock(changed(told), date, now);
            assert_eq!(found, Some(expected), "{why}");
        }
    }
}
