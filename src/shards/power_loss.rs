//! Losses of power, and ends of the daemon, while inner chunks of a shard are written and packed. The calls of the file
//! system are recorded, the content that a disk would have after them is written to another directory, and a mount of
//! that directory recovers what it can.

use std::fs;

use tempfile::TempDir;

use super::tests::{DOCUMENT, Mounted, SLOTS, put};
use super::*;
use crate::store::Durability;
use crate::store::power_loss::{self, Chance, Disk, History, shown};
use crate::store::recorded::{self, Call, Lacking};

/// The number of steps of a script.
const STEPS: usize = 10;

/// The number of losses of power after each call of a script.
const LOSSES: usize = 2;

/// A script that has run.
struct Done {
    folder: TempDir,
    before: Disk,
    calls: Vec<Call>,
    histories: [History; SLOTS],
    chance: Chance,
}

/// The script of this seed.
fn done(seed: u64, durability: Durability, lacking: Lacking) -> Done {
    let folder = power_loss::folder();
    let store = folder.path().join("store");
    fs::create_dir_all(store.join("a/c/0")).unwrap();
    fs::write(store.join("a/zarr.json"), DOCUMENT).unwrap();
    // The writer finds out what the file system lacks when it begins.
    recorded::start(lacking);
    let mounted = Mounted::new(&store, durability);
    let mut chance = Chance(seed);
    let mut histories = [(); SLOTS].map(|()| History::of(None));
    let before = Disk::of(&store);
    recorded::start(lacking);
    for _ in 0..STEPS {
        let slot = chance.below(SLOTS);
        let inner = mounted.inner(slot);
        let begun = recorded::count();
        match chance.below(10) {
            0..=4 => {
                // One of few values, so that earlier values come back.
                let byte = u8::try_from(1 + chance.below(3)).unwrap();
                put(&inner, byte);
                histories[slot].add(begun, Some(vec![byte]));
            }
            5 | 6 => {
                if inner.erase().is_ok() {
                    histories[slot].add(begun, None);
                }
            }
            7 => {
                inner.sync(None, None).unwrap();
                histories[slot].sync();
            }
            _ => mounted.staging().settle(inner.shard()).unwrap(),
        }
        if durability == Durability::Close {
            histories[slot].sync();
        }
    }
    let calls = recorded::stop();
    Done {
        folder,
        before,
        calls,
        histories,
        chance,
    }
}

/// The content of each slot after a mount of `disk` has recovered the journals.
fn recovered(disk: &Disk, folder: &TempDir) -> Vec<Option<Vec<u8>>> {
    let path = tempfile::tempdir_in(folder.path()).unwrap();
    disk.write_to(path.path());
    let mounted = Mounted::new(path.path(), Durability::Never);
    let found = mounted.staging().recover().unwrap();
    assert_eq!(found.left, 0);
    let again = mounted.staging().recover().unwrap();
    // A journal whose head was not on the disk stays.
    let nothing = Recovered {
        unusable: found.unusable,
        ..Recovered::default()
    };
    assert_eq!(again, nothing, "a second recovery finds nothing");
    (0..SLOTS).map(|slot| mounted.bytes(slot)).collect()
}

#[test]
fn each_call_may_be_the_last_of_the_daemon() {
    let mut n_calls = 0;
    for seed in 0..40 {
        let durability = [Durability::Atomic, Durability::Close][usize::from(seed % 2 == 0)];
        let done = done(seed, durability, Lacking::of(seed));
        for n in 0..=done.calls.len() {
            let calls = &done.calls[..n];
            let found = recovered(&done.before.after(calls), &done.folder);
            for (slot, found) in found.iter().enumerate() {
                let allowed = done.histories[slot].latest(n);
                assert!(
                    allowed.contains(&found.as_ref()),
                    "seed {seed}, {durability:?}, slot {slot} has {found:?}, not one of {allowed:?} after {n} calls of{}",
                    shown(&done.calls)
                );
            }
        }
        n_calls += done.calls.len();
    }
    assert!(n_calls > 500, "{n_calls}");
}

/// Loses power as often as the environment variable says.
fn lose_power_often(durability: Durability) {
    const USUAL: usize = 1000;
    let wanted = std::env::var("ZARR_MOUNT_POWER_LOSSES");
    let wanted = wanted.map_or(USUAL, |text| text.parse().unwrap());
    let mut n_losses = 0;
    for seed in 0.. {
        if n_losses >= wanted {
            break;
        }
        let mut done = done(seed, durability, Lacking::of(seed));
        for n in 0..=done.calls.len() {
            for _ in 0..LOSSES {
                n_losses += 1;
                let left = done.before.after_loss(&done.calls[..n], &mut done.chance);
                let found = recovered(&left, &done.folder);
                for (slot, found) in found.iter().enumerate() {
                    let (allowed, _) = done.histories[slot].allowed(n);
                    assert!(
                        allowed.contains(&found.as_ref()),
                        "seed {seed}, {durability:?}, slot {slot} has {found:?}, not one of {allowed:?} after {n} calls of{}",
                        shown(&done.calls)
                    );
                }
            }
        }
    }
}

#[test]
fn each_inner_chunk_is_either_old_or_new() {
    lose_power_often(Durability::Atomic);
}

#[test]
fn inner_chunks_that_were_closed_are_new() {
    lose_power_often(Durability::Close);
}
