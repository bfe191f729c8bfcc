//! A moment, which tells older objects from newer ones.

use std::time::{Duration, SystemTime};

use crate::store::{Dating, ObjectMeta, Store};

/// A time at which the store was looked at.
///
/// Whether an object is older is told by the time of its last change ([`ObjectMeta::changed`]), and
/// by the directories above it: a directory that is replaced brings older files along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(SystemTime);

impl Moment {
    /// This moment.
    pub fn now() -> Moment {
        Moment(SystemTime::now())
    }

    /// The moment of which everything is known that `store` remembers: this moment, where it
    /// remembers nothing.
    pub fn known_to(store: &dyn Store) -> Moment {
        store.told_since().map_or_else(Moment::now, Moment)
    }

    /// Whether the object or directory may have changed after this moment. File times lag behind the
    /// clock by up to their grain. A time in the future was set by another clock, and tells nothing.
    /// A server has another clock, and its times are compared by ours where it tells its own.
    pub fn may_precede(self, meta: &ObjectMeta) -> bool {
        const AHEAD: Duration = Duration::from_millis(100);
        if meta.dating == Dating::Nothing {
            // Prefixes of object stores have no times.
            return false;
        }
        let changed = meta.changed_here.unwrap_or_else(|| meta.changed());
        changed > self.0 - meta.dating.grain() && changed <= SystemTime::now() + AHEAD
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
        for (changed, moment, expected, why) in [
            (now, now, true, "within the grain"),
            (now - second, now, false, "before"),
            (now, now - second, true, "after"),
            (now + 60 * second, now, false, "another clock"),
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
            meta.changed_here = Some(now);
            assert!(Moment(now).may_precede(&meta));
            meta.changed_here = Some(now - hour);
            assert!(!Moment(now).may_precede(&meta));
        }
    }
}
