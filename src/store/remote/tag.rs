//! Versions of objects, as servers describe them.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use object_store::ObjectMeta as ServerMeta;
use rustix::process::{getegid, geteuid};

use crate::store::{Arrival, Dating, ObjectMeta, SERVER_YOUTH, Times, Version};

/// A version of an object: its attributes, and the conditions by which requests demand this
/// version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pinned {
    pub(super) meta: ObjectMeta,
    /// A strong `ETag`, in quotes.
    pub(super) tag: Option<String>,
    /// Whether the server may give the same `ETag` to a later version: many web servers make it of the length and the time,
    /// and this version was not older than the grain of that time.
    pub(super) is_young: bool,
}

/// The meaning of the time of modification that a server reports of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastModified {
    /// The time of the upload by the server's own clock, as in a bucket.
    OfUpload,
    /// The time of modification of a file, which the publisher of the file may set.
    OfFile,
}

impl LastModified {
    /// When a version that was modified at `mtime` came to its key, if the clock of the server
    /// shows `date` now.
    fn arrival(self, tag: Option<&str>, mtime: SystemTime, date: Option<SystemTime>) -> Arrival {
        let date = date.filter(|_| self == LastModified::OfUpload && !tag.is_some_and(is_of_parts));
        let here = date.and_then(|date| by_our_clock(mtime, date, SystemTime::now()));
        here.map_or(Arrival::Untold, Arrival::Uploaded)
    }
}

impl Pinned {
    /// The version that a server describes, at a time when its clock shows `date`. The time of
    /// modification is cut to whole seconds, because a listing may have a finer time than the
    /// object's own answer.
    pub(super) fn new(
        found: &ServerMeta,
        date: Option<SystemTime>,
        last_modified: LastModified,
    ) -> Pinned {
        let seconds = u64::try_from(found.last_modified.timestamp()).unwrap_or(0);
        let mtime = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let tag = found.e_tag.as_deref().and_then(strong);
        let dating = if tag.is_some() {
            Dating::Tag
        } else if mtime > SystemTime::UNIX_EPOCH {
            dating_by(date, mtime)
        } else {
            // There was no time in the answer.
            Dating::Length
        };
        let version = Version {
            size: found.size,
            mtime,
            inode: 0,
            tag: tag.as_deref().map_or(0, hash),
        };
        let meta = ObjectMeta {
            arrival: last_modified.arrival(tag.as_deref(), mtime, date),
            ..attributes(version, 0o444, dating)
        };
        // An answer without a date is compared with our clock.
        let is_settled = || {
            let age = date.unwrap_or_else(SystemTime::now).duration_since(mtime);
            age.is_ok_and(|age| age >= SERVER_YOUTH)
        };
        Pinned {
            meta,
            tag,
            is_young: last_modified == LastModified::OfFile && !is_settled(),
        }
    }

    /// Whether `other` is the same version.
    pub(super) fn is_same(&self, other: &Pinned) -> bool {
        self.meta.version == other.meta.version && self.tag == other.tag
    }

    /// Whether an attribute distinguishes this version from a later one of the same length.
    pub(super) fn is_identified(&self) -> bool {
        self.meta.dating.tells_changes()
    }
}

/// How finely a time of modification distinguishes changes, if no other attribute does. It is
/// compared with the clock that has set it, and with ours only if the server sends no date.
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

/// The time `changed` of a clock that shows `date` while ours shows `now`. The clocks of servers
/// that answer for each other differ a little, so a change may seem to lie a little in the future.
fn by_our_clock(changed: SystemTime, date: SystemTime, now: SystemTime) -> Option<SystemTime> {
    match date.duration_since(changed) {
        Ok(age) => now.checked_sub(age),
        Err(ahead) if ahead.duration() <= SERVER_YOUTH => Some(now),
        Err(ahead) => now.checked_add(ahead.duration()),
    }
}

/// The attributes that all prefixes have.
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
        arrival: Arrival::Untold,
        is_own: false,
    }
}

/// Whether a strong tag is that of an object that was uploaded in several parts. The tag then ends
/// in the number of parts. S3 dates such an object by the beginning of its upload, which may have
/// ended much later.
fn is_of_parts(tag: &str) -> bool {
    let text = tag.trim_matches('"');
    text.rsplit_once('-').is_some_and(|(_, parts)| {
        !parts.is_empty() && parts.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A longer `ETag` is not used, because the tags of many objects are remembered.
const MOST_TAG_BYTES: usize = 1 << 10;

/// The strong `ETag` in `text`, in quotes; `None` for a weak one, and for one that is too long or that no header of a
/// request can have. Listings of some servers leave the quotes out.
fn strong(text: &str) -> Option<String> {
    let text = text.trim();
    if text.starts_with("W/") || text.is_empty() || text.len() > MOST_TAG_BYTES {
        return None;
    }
    if text.chars().any(char::is_control) {
        return None;
    }
    Some(format!("\"{}\"", text.trim_matches('"')))
}

/// The number that stands for the strong `ETag` in `text` in versions; `None` for a weak one.
pub(in crate::store) fn tag_number(text: &str) -> Option<u64> {
    strong(text).as_deref().map(hash)
}

/// A hash with a key of this process, so that two tags with the same hash cannot be constructed.
fn hash(tag: &str) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(found: &ServerMeta, date: Option<SystemTime>) -> Pinned {
        Pinned::new(found, date, LastModified::OfFile)
    }

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
    fn a_listing_and_an_answer_have_the_same_version() {
        let listed = pinned(&meta(Some("0x1"), "2026-01-01T00:00:00.123Z"), None);
        let answered = pinned(&meta(Some("\"0x1\""), "2026-01-01T00:00:00Z"), None);
        assert!(listed.is_same(&answered));
        assert_eq!(listed.meta.dating, Dating::Tag);
        let other = pinned(&meta(Some("\"0x2\""), "2026-01-01T00:00:00Z"), None);
        assert!(!listed.is_same(&other));
    }

    #[test]
    fn bytes_that_are_uploaded_once_more_are_another_version() {
        use super::super::failure::Failure;
        let asked = pinned(&meta(Some("\"1\""), "2026-01-01T00:00:00Z"), None);
        let later = meta(Some("\"1\""), "2026-01-01T00:01:00Z");
        let again = pinned(&later, None);
        let check = again.check_is(&asked, true);
        assert!(matches!(check, Err(Failure::Changed)), "{check:?}");
        let cut = pinned(&ServerMeta { size: 4, ..later }, None);
        let check = cut.check_is(&asked, true);
        assert!(matches!(check, Err(Failure::Unusable(_))), "{check:?}");
    }

    #[test]
    fn the_clock_of_the_server_decides_the_age_of_a_version() {
        let found = meta(None, "2026-01-01T00:00:00Z");
        let written = SystemTime::from(found.last_modified);
        for (seconds, expected, why) in [
            (0, Dating::Young, "just now"),
            (1, Dating::Young, "within the grain"),
            (2, Dating::Old, "before"),
        ] {
            let date = written + Duration::from_secs(seconds);
            assert_eq!(pinned(&found, Some(date)).meta.dating, expected, "{why}");
        }
    }

    #[test]
    fn a_version_of_a_web_server_without_a_date_is_young_by_our_clock() {
        let now = SystemTime::now();
        for (seconds, is_young) in [(0, true), (60, false)] {
            let found = ServerMeta {
                last_modified: (now - Duration::from_secs(seconds)).into(),
                ..meta(Some("\"1\""), "2026-01-01T00:00:00Z")
            };
            assert_eq!(pinned(&found, None).is_young, is_young, "{seconds}");
            let of_bucket = Pinned::new(&found, None, LastModified::OfUpload);
            assert!(!of_bucket.is_young, "{seconds}");
        }
    }

    #[test]
    fn only_times_of_whole_uploads_are_times_of_arrival() {
        let time = "2026-01-01T00:00:00Z";
        let date = Some(SystemTime::from(meta(None, time).last_modified) + SERVER_YOUTH);
        for (tag, date, last_modified, is_told) in [
            ("\"0aF-1b\"", date, LastModified::OfUpload, true),
            ("\"0aF-12\"", date, LastModified::OfUpload, false),
            ("\"0aF\"", None, LastModified::OfUpload, false),
            ("\"0aF\"", date, LastModified::OfFile, false),
        ] {
            let found = Pinned::new(&meta(Some(tag), time), date, last_modified);
            let arrival = found.meta.arrival;
            let is_upload = matches!(arrival, Arrival::Uploaded(_));
            assert_eq!(is_upload, is_told, "{tag} {date:?} {last_modified:?}");
            assert!(is_told || arrival == Arrival::Untold);
        }
    }

    #[test]
    fn a_weak_tag_does_not_identify_a_version() {
        let weak = pinned(&meta(Some("W/\"1\""), "2026-01-01T00:00:00Z"), None);
        assert_eq!(weak.tag, None);
        assert!(weak.is_identified(), "by its time");
        assert_ne!(weak.meta.dating, Dating::Tag);
        let none = pinned(&meta(None, "1970-01-01T00:00:00Z"), None);
        assert!(!none.is_identified());
    }

    #[test]
    fn a_tag_that_no_request_can_have_is_not_used() {
        let long = "1".repeat(MOST_TAG_BYTES);
        for tag in ["0\n1", "0\u{7f}", "\0", &format!("{long}1")] {
            let found = pinned(&meta(Some(tag), "2026-01-01T00:00:00Z"), None);
            assert_eq!(found.tag, None, "{tag:?}");
            assert!(found.is_identified(), "by its time");
        }
        let found = pinned(&meta(Some(&long), "2026-01-01T00:00:00Z"), None);
        let tag = found.tag.unwrap();
        assert!(http::HeaderValue::try_from(tag).is_ok());
        let other = pinned(&meta(Some("\u{fc}"), "2026-01-01T00:00:00Z"), None);
        assert!(http::HeaderValue::try_from(other.tag.unwrap()).is_ok());
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
