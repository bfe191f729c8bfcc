//! The objects that are known to be absent. After several objects of one prefix were absent, its
//! names are listed: one page answers for a thousand objects, which would otherwise take a request
//! each.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use lru::LruCache;
use parking_lot::Mutex;

use super::trust::Trust;
use crate::store::{AnswerTimes, Key, Prefix};

/// The most prefixes that are watched, each with some thousand names at most.
const MOST_PREFIXES: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");

/// The most keys of which is remembered that answers about them were doubted.
const MOST_DOUBTS: NonZeroUsize = NonZeroUsize::new(1 << 10).expect("1024 is not 0");

/// After this many absent objects, names are listed.
const FIRST_MISSES: u32 = 3;

/// The number of absent objects before the next listing doubles up to this.
const MOST_MISSES: u32 = 1 << 10;

/// The absent objects that are known, by their prefix.
#[derive(Debug)]
pub(super) struct Absences {
    /// How long a listing is trusted.
    trust: Arc<Trust>,
    by_prefix: Mutex<LruCache<Prefix, Watched>>,
    /// Keys about which earlier answers do not count.
    doubts: Mutex<LruCache<Key, Instant>>,
}

/// The names below one prefix.
#[derive(Debug)]
struct Watched {
    /// Absent objects since the last listing, which did not show their absence.
    misses: u32,
    /// This many of them cause the next listing.
    most_misses: u32,
    /// Whether the names are being listed.
    is_listing: bool,
    listed: Option<ListedNames>,
}

/// The task of listing names below a prefix. It is dropped unfinished if the requests of its caller are cancelled.
#[derive(Debug)]
pub(super) struct ListingTask<'a> {
    absences: &'a Absences,
    pub(super) prefix: Prefix,
}

impl ListingTask<'_> {
    /// Remembers the listing, which may have failed.
    pub(super) fn finish(self, listed: Option<ListedNames>) {
        let listed = listed.map(|listed| self.absences.without_doubts(&self.prefix, listed));
        if let Some(watched) = self.absences.by_prefix.lock().peek_mut(&self.prefix) {
            watched.most_misses = watched.most_misses.saturating_mul(2).min(MOST_MISSES);
            watched.misses = 0;
            watched.listed = listed;
        }
    }
}

impl Drop for ListingTask<'_> {
    fn drop(&mut self) {
        if let Some(watched) = self.absences.by_prefix.lock().peek_mut(&self.prefix) {
            watched.is_listing = false;
        }
    }
}

/// A part of the names below a prefix, in their order: all from one to another.
#[derive(Debug)]
pub(super) struct ListedNames {
    /// When the first request for names was sent.
    pub(super) checked: Instant,
    /// When the last answer arrived.
    pub(super) answered: Instant,
    /// Only names after this one were listed.
    pub(super) after: Vec<u8>,
    /// The last name that was listed; `None` if no other name follows.
    pub(super) last: Option<Vec<u8>>,
    pub(super) names: HashSet<Vec<u8>>,
    /// Whether pages of it were kept on disk, so that the disk may have later answers.
    pub(super) is_kept: bool,
}

impl Watched {
    fn new() -> Watched {
        Watched {
            misses: 0,
            most_misses: FIRST_MISSES,
            is_listing: false,
            listed: None,
        }
    }
}

impl ListedNames {
    pub(super) fn covers(&self, name: &[u8]) -> bool {
        let is_before_end = |last: &Vec<u8>| name <= last.as_slice();
        name > self.after.as_slice() && self.last.as_ref().is_none_or(is_before_end)
    }
}

impl Absences {
    pub(super) fn new(trust: Arc<Trust>) -> Absences {
        Absences {
            trust,
            by_prefix: Mutex::new(LruCache::new(MOST_PREFIXES)),
            doubts: Mutex::new(LruCache::new(MOST_DOUBTS)),
        }
    }

    /// Whether a listing shows that no object is at `key`.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.told_at(key).is_some()
    }

    /// The listing that shows that no object is at `key`, if one does.
    pub(super) fn told_at(&self, key: &Key) -> Option<AnswerTimes> {
        Some(self.told(key)?.0)
    }

    /// Like [`Absences::told_at`], and whether pages of that listing were kept on disk.
    pub(super) fn told(&self, key: &Key) -> Option<(AnswerTimes, bool)> {
        let mut by_prefix = self.by_prefix.lock();
        self.tells(by_prefix.get(&key.parent())?, key)
    }

    fn tells(&self, watched: &Watched, key: &Key) -> Option<(AnswerTimes, bool)> {
        let listed = watched.listed.as_ref();
        let listed = listed.filter(|listed| self.trust.covers(listed.checked))?;
        let tells = listed.covers(key.name()) && !listed.names.contains(key.name());
        let times = AnswerTimes {
            asked: listed.checked,
            answered: listed.answered,
        };
        tells.then_some((times, listed.is_kept))
    }

    /// Notes that no object is at `key`, by the answer to a request.
    pub(super) fn add(&self, key: &Key) {
        let mut by_prefix = self.by_prefix.lock();
        let watched = by_prefix.get_or_insert_mut(key.parent(), Watched::new);
        // The request may have been under way when the names were listed.
        let is_told = self.tells(watched, key).is_some();
        watched.misses = watched.misses.saturating_add(u32::from(!is_told));
    }

    /// Notes that an object is at `key`, or may be. It may be newer than the listing.
    pub(super) fn remove(&self, key: &Key) {
        let mut by_prefix = self.by_prefix.lock();
        if let Some(watched) = by_prefix.peek_mut(&key.parent())
            && let Some(listed) = &mut watched.listed
            && listed.covers(key.name())
        {
            listed.names.insert(key.name().to_vec());
        }
    }

    /// Notes that an object may be at `key`, whatever a listing shows that was requested before.
    pub(super) fn doubt(&self, key: &Key) {
        self.doubts.lock().put(key.clone(), Instant::now());
        self.remove(key);
    }

    /// `listed` with the names of keys that were doubted since it was requested: an object may be there.
    fn without_doubts(&self, prefix: &Prefix, mut listed: ListedNames) -> ListedNames {
        for (key, at) in self.doubts.lock().iter() {
            if *at >= listed.checked && key.parent() == *prefix {
                listed.names.insert(key.name().to_vec());
            }
        }
        listed
    }

    /// The task of listing the names around `key`, if they should be listed now. Until it is done or dropped, other
    /// callers get `None`.
    pub(super) fn take_listing(&self, key: &Key) -> Option<ListingTask<'_>> {
        let mut by_prefix = self.by_prefix.lock();
        let watched = by_prefix.peek_mut(&key.parent())?;
        if watched.is_listing || watched.misses < watched.most_misses {
            return None;
        }
        watched.is_listing = true;
        Some(ListingTask {
            absences: self,
            prefix: key.parent(),
        })
    }

    /// Whether names below `prefix` were listed, and the listing is trusted.
    pub(super) fn has_listing(&self, prefix: &Prefix) -> bool {
        let by_prefix = self.by_prefix.lock();
        let watched = by_prefix.peek(prefix);
        let listed = watched.and_then(|watched| watched.listed.as_ref());
        listed.is_some_and(|listed| self.trust.covers(listed.checked))
    }

    /// Whether a trusted listing of the names around `name`, in `prefix`, has it; `None` if there is no such listing. The
    /// name of a prefix has a slash at its end.
    pub(super) fn lists(&self, prefix: &Prefix, name: &[u8]) -> Option<bool> {
        let by_prefix = self.by_prefix.lock();
        let listed = by_prefix.peek(prefix)?.listed.as_ref()?;
        let is_here = self.trust.covers(listed.checked) && listed.covers(name);
        is_here.then(|| listed.names.contains(name))
    }

    /// Remembers a listing of names below `prefix`.
    pub(super) fn put_all(&self, prefix: &Prefix, listed: ListedNames) {
        let listed = self.without_doubts(prefix, listed);
        let mut by_prefix = self.by_prefix.lock();
        by_prefix
            .get_or_insert_mut(prefix.clone(), Watched::new)
            .listed = Some(listed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text.as_bytes()).unwrap()
    }

    fn listed(after: &str, last: Option<&str>, names: &[&str]) -> ListedNames {
        ListedNames {
            checked: Instant::now(),
            answered: Instant::now(),
            after: after.into(),
            last: last.map(Into::into),
            names: names.iter().map(|name| name.as_bytes().to_vec()).collect(),
            is_kept: false,
        }
    }

    #[test]
    fn names_are_listed_after_three_absent_ones_and_then_less_and_less_often() {
        let absences = Absences::new(Arc::new(Trust::new(None, false)));
        let mut since_last = 0;
        let mut listings = Vec::new();
        for number in 0..100 {
            let key = key(&format!("a/c/{number}"));
            if let Some(task) = absences.take_listing(&key) {
                listings.push(since_last);
                since_last = 0;
                assert!(absences.take_listing(&key).is_none(), "being listed");
                drop(task);
                let task = absences.take_listing(&key);
                task.expect("the first task was dropped").finish(None);
            }
            absences.add(&key);
            since_last += 1;
        }
        assert_eq!(listings, [3, 6, 12, 24, 48]);
        let of_another = absences.take_listing(&key("a/d/0"));
        assert!(of_another.is_none(), "of another prefix");
    }

    #[test]
    fn a_listing_tells_only_of_the_names_that_it_covers() {
        let absences = Absences::new(Arc::new(Trust::new(None, false)));
        absences.add(&key("c/0"));
        assert!(!absences.has(&key("c/0")), "nothing is listed");
        let some = listed("1", Some("3"), &["10", "3"]);
        absences.put_all(&key("c").to_prefix(), some);
        let absent = ["0", "1", "10", "11", "2", "3", "30", "4"];
        let absent = absent.map(|name| (name, absences.has(&key(&format!("c/{name}")))));
        let told: Vec<&str> = absent
            .iter()
            .filter(|(_, is)| *is)
            .map(|(n, _)| *n)
            .collect();
        assert_eq!(told, ["11", "2"]);
        absences.remove(&key("c/11"));
        assert!(!absences.has(&key("c/11")), "it was found since");
        absences.put_all(&key("c").to_prefix(), listed("", None, &[]));
        assert!(absences.has(&key("c/4")), "nothing follows");
        assert!(!absences.has(&key("d/4")));
    }

    #[test]
    fn a_listing_tells_nothing_of_a_key_that_was_doubted_since_it_was_requested() {
        let absences = Absences::new(Arc::new(Trust::new(None, false)));
        let (doubted, prefix) = (key("c/9"), key("c").to_prefix());
        for is_task in [true, false] {
            let of_before = listed("", None, &[]);
            absences.doubt(&doubted);
            if is_task {
                (0..FIRST_MISSES).for_each(|n| absences.add(&key(&format!("c/{n}"))));
                let task = absences.take_listing(&doubted);
                task.unwrap().finish(Some(of_before));
            } else {
                absences.put_all(&prefix, of_before);
            }
            let told = ["c/8", "c/9"].map(|name| absences.has(&key(name)));
            assert_eq!(told, [true, false], "{is_task}");
            // This listing is later.
            absences.put_all(&prefix, listed("", None, &["8"]));
            assert!(absences.has(&doubted));
        }
    }

    #[test]
    fn a_listing_is_trusted_for_the_time_to_live() {
        let absences = Absences::new(Arc::new(Trust::new(Some(Duration::ZERO), false)));
        absences.add(&key("c/0"));
        absences.put_all(&key("c").to_prefix(), listed("", None, &[]));
        assert!(!absences.has(&key("c/0")));
    }
}
