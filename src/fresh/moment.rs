//! A moment, which separates older objects from newer ones.

use std::time::{Duration, SystemTime};

use crate::store::{Arrival, Dating, ObjectMeta, Store};

/// A time at which the store was examined.
///
/// The time at which an object came to its key ([`Arrival`]), and the directories above it, show whether it is older: a
/// directory that is replaced brings older files along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(SystemTime);

impl Moment {
    /// This moment.
    pub fn now() -> Moment {
        Moment(SystemTime::now())
    }

    /// The moment that all remembered answers of `store` cover: the time of the earliest of them, or
    /// this moment, if it remembers none.
    pub fn known_to(store: &dyn Store) -> Moment {
        store.told_since().map_or_else(Moment::now, Moment)
    }

    /// Whether the object or directory may have changed after this moment. File times lag behind the clock by up to
    /// their grain. The clock of a file server may be ahead of ours, by the difference of two time zones if one of
    /// them is set wrong. A time that is even later was set by a clock that is right by now, or by hand where a file
    /// system lets programs do that, and a change would have replaced it.
    pub fn may_precede(self, meta: &ObjectMeta) -> bool {
        const AHEAD: Duration = Duration::from_secs(24 * 3600);
        if meta.dating == Dating::Nothing {
            // Prefixes of object stores have no times.
            return false;
        }
        let is_later = |changed: SystemTime| changed > self.0 - meta.dating.grain();
        match meta.arrival {
            Arrival::Changed => {
                let changed = meta.changed();
                is_later(changed) && changed <= SystemTime::now() + AHEAD
            }
            Arrival::Uploaded(here) => is_later(here),
            Arrival::Untold => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Key, MemoryStore};

    #[test]
    fn only_what_changed_since_is_later() {
        let key = Key::parse(b"a").unwrap();
        let store = MemoryStore::new();
        store.insert(key.clone(), "");
        let mut meta = store.stat(&key).unwrap().unwrap().meta;
        let now = SystemTime::now();
        let second = Duration::from_secs(1);
        let day = 86_400 * second;
        for (changed, moment, expected, why) in [
            (now, now, true, "within the grain"),
            (now - second, now, false, "before"),
            (now, now - second, true, "after"),
            (
                now + 60 * second,
                now,
                true,
                "the clock of a server is ahead",
            ),
            (now + 2 * day, now, false, "a time that no clock shows"),
        ] {
            meta.times.ctime = changed;
            assert_eq!(Moment(moment).may_precede(&meta), expected, "{why}");
        }
    }

    #[test]
    fn a_change_on_a_server_is_judged_by_our_clock() {
        let key = Key::parse(b"a").unwrap();
        let store = MemoryStore::new();
        store.insert(key.clone(), "");
        let mut meta = store.stat(&key).unwrap().unwrap().meta;
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
        for skewed in [now - hour, now + hour] {
            meta.times.ctime = skewed;
            for (here, expected) in [(now + hour, true), (now, true), (now - hour, false)] {
                meta.arrival = Arrival::Uploaded(here);
                assert_eq!(Moment(now).may_precede(&meta), expected);
            }
        }
    }

    #[test]
    fn a_file_of_a_web_server_is_not_known_to_be_older() {
        let key = Key::parse(b"a").unwrap();
        let store = MemoryStore::new();
        store.insert(key.clone(), "");
        let mut meta = store.stat(&key).unwrap().unwrap().meta;
        meta.times.ctime = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        meta.arrival = Arrival::Untold;
        assert!(Moment::now().may_precede(&meta));
    }
}
