//! Simulated losses of power. Scripts of changes run while their system calls are recorded. Then each beginning of the
//! record counts as done, and a part of the changes that were not synced by then is lost.
//!
//! ```text
//! bytes of a file    survive an fdatasync of the file; else any part of them is there
//! names              survive an fsync of a directory that the call has changed; else each call may have
//!                    been done or not, independently of the others
//! ```
//!
//! Real file systems lose less, because they keep most of the order. `ZARR_MOUNT_POWER_LOSSES` is
//! the number of losses.

mod disk;
mod history;
mod script;

use tempfile::TempDir;

use super::Durability;
use super::calls::recorded::{self, Call, Lacking};
pub(crate) use disk::{Chance, Disk, shown};
pub(crate) use history::History;
use script::{KEYS, Script};

/// The number of steps of a script.
const STEPS: usize = 8;

/// The number of losses after each call of a script.
const LOSSES: usize = 4;

/// A folder in memory if there is one. The record shows which changes are synced, so no disk is needed, which would
/// take most of the time of these tests.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// The results of losses of power.
#[derive(Debug, Default)]
struct Losses {
    n_losses: usize,
    /// Objects that were neither old nor new.
    torn: Vec<String>,
}

/// The script of this seed after all its steps, the contents of the disk before the script, and the
/// recorded calls.
fn done(seed: u64, durability: Durability, lacking: Lacking) -> (Script, Disk, Vec<Call>) {
    // The writer tries out the file system when it is opened.
    recorded::start(lacking);
    let mut script = Script::new(seed, durability);
    let before = Disk::of(&script.fixture.path);
    recorded::start(lacking);
    for _ in 0..STEPS {
        script.step();
    }
    (script, before, recorded::stop())
}

/// Loses power after each call of the script of this seed.
fn lose_power(seed: u64, (durability, lacking): (Durability, Lacking), losses: &mut Losses) {
    let (mut script, before, calls) = done(seed, durability, lacking);
    for n_calls in 0..=calls.len() {
        for _ in 0..LOSSES {
            losses.n_losses += 1;
            let left = before.after_loss(&calls[..n_calls], &mut script.chance);
            for (key, history) in KEYS.iter().zip(&script.histories) {
                let (allowed, is_certain) = history.allowed(n_calls);
                let found = left.object(key);
                if allowed.contains(&found) {
                    continue;
                }
                let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
                let message = format!(
                    "seed {seed}, {durability:?}, {lacking:?}, {n_calls} calls of {}: {key} has {:?}, not one of {:?}",
                    shown(&calls),
                    found.map(text),
                    allowed
                        .iter()
                        .map(|bytes| bytes.map(text))
                        .collect::<Vec<_>>()
                );
                assert!(!(is_certain || found.is_none()), "{message}");
                losses.torn.push(message);
            }
        }
    }
}

/// Kills the script of this seed after each of its calls. Returns the number of calls.
fn kill_after_each_call(seed: u64, (durability, lacking): (Durability, Lacking)) -> usize {
    let (script, before, calls) = done(seed, durability, lacking);
    for n_calls in 0..=calls.len() {
        let left = before.after(&calls[..n_calls]);
        for (key, history) in KEYS.iter().zip(&script.histories) {
            let (allowed, found) = (history.latest(n_calls), left.object(key));
            assert!(
                allowed.contains(&found),
                "seed {seed}, {durability:?}, {lacking:?}, {n_calls} calls of {}: {key} has {found:?}, \
                 not one of {allowed:?}",
                shown(&calls)
            );
        }
    }
    calls.len()
}

#[test]
fn each_call_of_a_script_may_be_the_last() {
    const SCRIPTS: u64 = 200;
    // The bytes of a draft are recorded only when they are synced.
    for durability in [Durability::Atomic, Durability::Close] {
        let n_calls: usize = (0..SCRIPTS)
            .map(|seed| kill_after_each_call(seed, (durability, Lacking::of(seed))))
            .sum();
        assert!(n_calls > 2000, "{n_calls}");
    }
}

/// Loses power as many times as the environment variable says.
fn lose_power_often(durability: Durability) -> Losses {
    const USUAL: usize = 3000;
    let wanted = std::env::var("ZARR_MOUNT_POWER_LOSSES");
    let wanted = wanted.map_or(USUAL, |text| text.parse().unwrap());
    let mut losses = Losses::default();
    for seed in 0.. {
        if losses.n_losses >= wanted {
            break;
        }
        lose_power(seed, (durability, Lacking::of(seed)), &mut losses);
    }
    losses
}

#[test]
fn each_object_is_wholly_old_or_wholly_new() {
    let losses = lose_power_often(Durability::Atomic);
    assert!(losses.torn.is_empty(), "{}", losses.torn[0]);
}

#[test]
fn what_was_committed_is_new() {
    let losses = lose_power_often(Durability::Close);
    assert!(losses.torn.is_empty(), "{}", losses.torn[0]);
}

#[test]
fn objects_that_are_not_synced_are_found_torn() {
    let losses = lose_power_often(Durability::Never);
    assert!(losses.torn.len() > losses.n_losses / 100);
}
