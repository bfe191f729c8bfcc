//! Tests of the observations that are trusted, of those that are repeated, and of the number of requests.

use super::*;
use crate::store::testing::{CallKind, Recording, wrap};
use crate::store::{Access, Key, MemoryStore, Prefix, Store};
use std::sync::Arc;
use std::time::SystemTime;

const HOUR: Duration = Duration::from_secs(3600);

struct Watched {
    memory: Arc<MemoryStore>,
    store: Arc<dyn Store>,
    recording: Arc<Recording>,
}

fn key(text: &str) -> Key {
    Key::parse(text.as_bytes()).unwrap()
}

/// A store of objects that are an hour old.
fn watched(objects: &[&'static str]) -> Watched {
    let memory = Arc::new(MemoryStore::new());
    for object in objects {
        memory.insert_at(key(object), *object, SystemTime::now() - HOUR);
    }
    let recording = Arc::new(Recording::default());
    let store = wrap(Arc::clone(&memory) as Arc<dyn Store>, &recording);
    Watched {
        memory,
        store,
        recording,
    }
}

impl Watched {
    /// Looks at objects.
    fn observe(&self, objects: &[&str]) -> Observations {
        let mut observations = Observations::default();
        for object in objects {
            let stat = self.store.stat(&key(object)).unwrap();
            observations.add_object(&key(object), stat.map(|stat| stat.meta).as_ref());
        }
        self.recording.clear();
        observations
    }

    fn holds(&self, freshness: Freshness, seen: &Observations, last: &LastCheck) -> bool {
        let ask = |subjects: &[&Subject]| look(&*self.store, subjects).into_iter().collect();
        freshness.holds(seen, last, ask).unwrap()
    }
}

#[test]
fn within_the_time_to_live_nothing_is_asked() {
    let watched = watched(&["a"]);
    let seen = watched.observe(&["a"]);
    watched.memory.insert(key("a"), "changed");
    assert!(watched.holds(Freshness::Checked(HOUR), &seen, &LastCheck::now()));
    assert!(watched.holds(Freshness::Immutable, &seen, &LastCheck::never()));
    assert_eq!(watched.recording.calls(), []);
}

#[test]
fn after_it_all_is_asked_in_one_call_and_the_check_is_noted() {
    let watched = watched(&["a", "b/c", "d"]);
    let seen = watched.observe(&["a", "b/c", "d", "absent"]);
    let last = LastCheck::never();
    assert!(watched.holds(Freshness::Checked(HOUR), &seen, &last));
    let calls = watched.recording.calls();
    assert_eq!(calls.len(), 4, "{calls:?}");
    assert!(
        calls.iter().all(|call| call.kind == CallKind::Stat),
        "{calls:?}"
    );
    watched.recording.clear();
    assert!(last.is_within(HOUR));
    assert!(watched.holds(Freshness::Checked(HOUR), &seen, &last));
    assert_eq!(watched.recording.calls(), []);
}

#[test]
fn every_kind_of_change_is_noticed() {
    type Change = fn(&MemoryStore);
    let changes: [(&str, Change); 4] = [
        ("replaced", |store| store.insert(key("a"), "new")),
        ("removed", |store| assert!(store.remove(&key("b/c")))),
        ("created", |store| store.insert(key("absent"), "")),
        ("overwritten", |store| store.overwrite(key("a"), "z")),
    ];
    for (why, change) in changes {
        let watched = watched(&["a", "b/c"]);
        let seen = watched.observe(&["a", "b/c", "absent"]);
        let last = LastCheck::never();
        let zero = Freshness::Checked(Duration::ZERO);
        assert!(watched.holds(zero, &seen, &last), "{why}: not yet");
        change(&watched.memory);
        assert!(!watched.holds(zero, &seen, &last), "{why}");
    }
}

#[test]
fn observations_younger_than_the_grain_of_the_clock_prove_nothing() {
    let watched = watched(&["a"]);
    // On a machine under load, an object may have grown old before it is examined.
    let young = || {
        let now = SystemTime::now();
        watched.memory.insert_at(key("b"), "young", now);
        let seen = watched.observe(&["a", "b"]);
        (!seen.are_settled()).then_some(seen)
    };
    let seen = (0..100).find_map(|_| young()).expect("a young object");
    let mut all = watched.observe(&["a"]);
    assert!(all.are_settled());
    all.add_all(&seen);
    assert!(!all.are_settled());
    let last = LastCheck::now();
    assert!(
        watched.holds(Freshness::Checked(HOUR), &seen, &last),
        "trusted"
    );
    assert!(!watched.holds(Freshness::Checked(Duration::ZERO), &seen, &last));
}

#[test]
fn results_with_unobserved_inputs_are_trusted_for_the_time_to_live_only() {
    let watched = watched(&["a"]);
    let mut seen = watched.observe(&["a"]);
    seen.add_unobserved();
    let (zero, last) = (Freshness::Checked(Duration::ZERO), LastCheck::now());
    assert!(watched.holds(Freshness::Checked(HOUR), &seen, &last));
    assert!(!watched.holds(zero, &seen, &last));
    assert_eq!(watched.recording.calls(), [], "asking would prove nothing");
}

#[test]
fn a_directory_is_seen_by_its_version_or_only_by_its_mode() {
    let watched = watched(&["a/b"]);
    let (root, a) = (Prefix::root(), key("a/b").parent());
    let meta = |prefix: &Prefix| match prefix.to_key() {
        Some(key) => watched.store.stat(&key).unwrap().unwrap().meta,
        None => watched.store.stat_root().unwrap(),
    };
    let (mut names, mut passages) = (Observations::default(), Observations::default());
    for prefix in [&root, &a] {
        names.add_directory(prefix, Some(&meta(prefix)));
        passages.add_passage(prefix, Some(meta(prefix).access()));
    }
    let both = [&names, &passages];
    let zero = Freshness::Checked(Duration::ZERO);
    let ask = |subjects: &[&Subject]| look(&*watched.store, subjects).into_iter().collect();
    for seen in both {
        assert!(seen.are_unchanged(ask).unwrap());
    }
    assert_ne!(names.fingerprint(), passages.fingerprint());
    assert_eq!(names.prefixes(), passages.prefixes());
    // An object takes the place of the directory.
    watched.memory.remove(&key("a/b"));
    watched.memory.insert(key("a"), "");
    for seen in both {
        assert!(!watched.holds(zero, seen, &LastCheck::never()));
    }
}

#[test]
fn owners_of_directories_are_remembered_for_the_time_to_live() {
    let access = Access {
        mode: 0o755,
        uid: 1,
        gid: 2,
    };
    let root = Prefix::root();
    let known = DirectoryAccess::new(Freshness::Checked(HOUR));
    assert_eq!(known.get(&root), None);
    known.put(&root, LastCheck::now(), Some(access));
    assert_eq!(known.get(&root), Some(Some(access)));
    let forgetful = DirectoryAccess::new(Freshness::Checked(Duration::ZERO));
    forgetful.put(&root, LastCheck::now(), Some(access));
    assert_eq!(forgetful.get(&root), None);
}

#[test]
fn periods_follow_each_other_unless_nothing_changes() {
    assert_eq!(Freshness::Immutable.period(Duration::ZERO, 1), 0);
    let long = Freshness::Checked(HOUR).period(Duration::ZERO, u64::MAX);
    assert_eq!(long, 0, "no overflow");
    assert!(!LastCheck::never().is_within(HOUR));
    let copy = LastCheck::now().clone();
    assert!(copy.is_within(HOUR) && !copy.is_within(Duration::ZERO));
}

#[test]
fn a_subject_found_in_two_versions_proves_nothing() {
    let watched = watched(&["a", "b"]);
    let mut seen = watched.observe(&["a", "b"]);
    let again = watched.observe(&["a"]);
    seen.add_all(&again);
    assert!(seen.are_settled());
    let later = SystemTime::now() - HOUR / 2;
    watched.memory.insert_at(key("a"), "another", later);
    // The store shows only the later version.
    let newer = watched.observe(&["a"]);
    seen.add_all(&newer);
    assert!(!seen.are_settled());
    let ask = |subjects: &[&Subject]| look(&*watched.store, subjects).into_iter().collect();
    assert!(!seen.are_unchanged(ask).unwrap());
    assert!(newer.are_unchanged(ask).unwrap());
}

#[test]
fn a_check_does_not_count_where_answers_must_be_newer() {
    let freshness = Freshness::Checked(HOUR);
    // Times of checks are counted from the first one of the process, and have a grain of a millisecond.
    let _first = LastCheck::now();
    let before = Instant::now();
    std::thread::sleep(Duration::from_millis(5));
    let last = LastCheck::now();
    let later = Instant::now() + Duration::from_millis(3);
    for (since, expected) in [(None, true), (Some(before), true), (Some(later), false)] {
        let trusts = crate::store::Recency::scope(since, || freshness.trusts(&last));
        assert_eq!(trusts, expected, "{since:?}");
    }
    let immutable =
        crate::store::Recency::scope(Some(later), || Freshness::Immutable.trusts(&last));
    assert!(immutable);
}

#[test]
fn observations_that_are_shared_count_as_copies_do() {
    let watched = watched(&["a", "b/c", "d"]);
    let [one, two] = [&["a", "b/c"][..], &["b/c", "d", "absent"]].map(|all| watched.observe(all));
    let (mut copied, mut shared) = (one.clone(), one.clone().shared());
    copied.add_all(&two);
    shared.add_all(&two.clone().shared());
    shared.add_all(&two);
    assert_eq!(shared.fingerprint(), copied.fingerprint());
    assert_eq!(shared.prefixes(), copied.prefixes());
    assert_ne!(shared.fingerprint(), one.fingerprint());
    let zero = Freshness::Checked(Duration::ZERO);
    let last = LastCheck::never();
    assert!(watched.holds(zero, &shared, &last));
    assert_eq!(watched.recording.calls().len(), 4, "each is asked for once");
    watched
        .memory
        .insert_at(key("d"), "new", SystemTime::now() - HOUR);
    assert!(!watched.holds(zero, &shared, &last));
    // Observations with two versions of a subject never hold, whichever version is current.
    let mut both = two.shared();
    both.add_all(&watched.observe(&["d"]));
    assert!(!watched.holds(zero, &both, &last));
}
