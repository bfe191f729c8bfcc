//! Each read gets one right answer, although other threads load or cancel its chunks or end the
//! mount meanwhile.

mod array;

use std::time::Duration;

use shuttle::thread;

use super::*;
use crate::sync::schedules::check;
use array::{FAR, LOCAL, ReadCase};

/// A wait for ever, so that a missed notification is found as a deadlock.
const FOR_EVER: Duration = Duration::MAX;

/// Budgets for all chunks, and for hardly more than one.
const BUDGETS: [u64; 2] = [1 << 20, 1000];

const BOTH: [Patience; 2] = [Patience::Waits, Patience::Never];

/// Overlapping reads, by readers that know the versions of chunks and by one that does not.
fn readers_side_by_side(profile: array::IsLocal, policy: Policy) {
    check(move || {
        for budget in BUDGETS {
            let case = ReadCase::new(profile, budget);
            let readers = [
                case.spawn_read(1..7, policy, Patience::Waits, true),
                case.spawn_read(0..5, policy, Patience::Never, false),
                case.spawn_read(3..8, policy, Patience::Never, true),
            ];
            for reader in readers {
                reader.join().unwrap().expect("bytes");
            }
            case.end(FOR_EVER);
        }
    });
}

#[test]
fn whole_chunks_of_a_local_store() {
    readers_side_by_side(LOCAL, Policy::Whole);
}

#[test]
fn whole_chunks_of_a_store_that_is_far_away() {
    readers_side_by_side(FAR, Policy::Whole);
}

#[test]
fn parts_of_chunks_of_a_local_store() {
    readers_side_by_side(LOCAL, Policy::ByCost);
}

#[test]
fn parts_of_chunks_of_a_store_that_is_far_away() {
    readers_side_by_side(FAR, Policy::Parts);
}

#[test]
fn a_prefetch_may_be_cancelled_at_any_moment() {
    check(|| {
        for budget in BUDGETS {
            for is_known in [true, false] {
                let case = ReadCase::new(FAR, budget);
                let prefetching = case.clone();
                let prefetcher = thread::spawn(move || {
                    let prefetch = prefetching.prefetch(is_known);
                    thread::yield_now();
                    drop(prefetch);
                });
                let readers =
                    BOTH.map(|patience| case.spawn_read(0..8, Policy::Whole, patience, is_known));
                for reader in readers {
                    reader.join().unwrap().expect("bytes");
                }
                prefetcher.join().unwrap();
                case.end(FOR_EVER);
            }
        }
    });
}

#[test]
fn every_read_is_answered_when_the_mount_ends_in_between() {
    for policy in [Policy::Whole, Policy::Parts] {
        check(move || {
            let case = ReadCase::new(FAR, BUDGETS[1]);
            let prefetching = case.clone();
            let prefetcher = thread::spawn(move || drop(prefetching.prefetch(true)));
            let readers = [
                case.spawn_read(0..8, policy, Patience::Never, false),
                case.spawn_read(2..6, policy, Patience::Never, true),
                case.spawn_read(1..8, policy, Patience::Waits, true),
            ];
            assert!(case.finish(FOR_EVER));
            for reader in readers {
                // `spawn_read` has checked the bytes; a read may also have failed.
                drop(reader.join().unwrap());
            }
            prefetcher.join().unwrap();
            case.end(FOR_EVER);
        });
    }
}

#[test]
fn the_mount_ends_although_the_store_hangs() {
    check(|| {
        let case = ReadCase::new(FAR, BUDGETS[0]);
        case.hang(true);
        let readers = BOTH.map(|patience| case.spawn_read(0..8, Policy::Whole, patience, false));
        let prefetch = case.prefetch(true);
        case.look_at_names();
        drop(prefetch);
        case.finish(Duration::ZERO);
        // The read fails at once, or shares a load that hangs.
        let late = case.spawn_read(0..8, Policy::Whole, Patience::Never, true);
        case.hang(false);
        for reader in readers.into_iter().chain([late]) {
            drop(reader.join().unwrap());
        }
        case.end(FOR_EVER);
    });
}
