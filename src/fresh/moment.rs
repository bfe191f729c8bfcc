//! A moment, which tells older objects from newer ones.

use std::time::{Duration, SystemTime};

use crate::store::ObjectMeta;

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

    /// Whether the object or directory may have changed after this moment. File times lag behind the
    /// clock by up to their grain. A time in the future was set by another clock, and tells nothing.
    pub fn may_precede(self, meta: &ObjectMeta) -> bool {
        const AHEAD: Duration = Duration::from_millis(100);
        let changed = meta.changed();
        changed > self.0 - meta.dating.grain() && changed <= SystemTime::now() + AHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Key, MemoryStore, Store};

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
}
