//! The meaning of a key depends on the documents above it. Other programs write, remove and replace arrays object by
//! object, in any order, while names are looked up in several views at once: each read gives decoded elements where
//! the view decodes, a stored chunk where it does not, elements of one state in a whole array, or an error. Facts
//! that a view remembers from earlier must not change this.
//!
//! The store is a directory, or a web server with several ways to show versions. The sequences follow from seeds;
//! `ZARR_MOUNT_SEQUENCES` gives another number of them for each kind of store, and `ZARR_MOUNT_SEED` runs one of them
//! again and again.

#![cfg(feature = "remote")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![allow(clippy::cast_possible_truncation, reason = "small test data")]

mod common;
#[path = "meanings/shown.rs"]
mod shown;
#[path = "meanings/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use zarr_mount::view::ViewKind;

use self::common::random::{Random, for_seeds};
use self::common::web::{Answers, WebServer};
use self::shown::{Opened, Place, Shown};
use self::world::{CHUNKS, Kind, NAMES, Site, Ways, World};

/// Sequences for each kind of store.
const SEQUENCES: u64 = 5;

/// Steps of a sequence: one is a lookup with a read, the write of an object, or a wait.
const STEPS: usize = 80;

/// The times to live that views have. The second one ends within a sequence.
const TIMES_TO_LIVE: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(20),
    Duration::from_secs(60),
];

/// The reader of the views: this process, or programs through mounts.
#[derive(Debug, Clone, Copy)]
enum Through {
    Calls,
    Mounts,
}

/// An open file, with the path and the key by which it was opened.
struct Held {
    file: Opened,
    path: String,
    key: String,
}

/// A place in a view: its path, and the key of the store that it may stand for, or the path of its array.
fn choose(kinds: &[ViewKind], random: &mut Random) -> (String, ViewKind, String) {
    let kind = kinds[random.below(kinds.len() as u64) as usize];
    let name =
        NAMES[random.below(2 * NAMES.len() as u64) as usize % (NAMES.len() + 1) % NAMES.len()];
    let folder = match kind {
        ViewKind::Arrays => return (format!("arrays/{name}.raw"), kind, name.to_owned()),
        ViewKind::Chunks => "chunks",
        ViewKind::Keys => "keys",
    };
    let chunk = random.below(CHUNKS as u64);
    let key = match random.below(6) {
        0 => format!("{name}/zarr.json"),
        1 => format!("{name}/.zarray"),
        // A chunk of version 2.
        2 => format!("{name}/{chunk}"),
        _ => format!("{name}/c/{chunk}"),
    };
    (format!("{folder}/{key}"), kind, key)
}

/// Whether `bytes` are a right answer of a view for a result of [`choose`].
fn is_right(world: &World, kind: ViewKind, key: &str, bytes: &[u8]) -> bool {
    match kind {
        ViewKind::Arrays => world.had_array(key, bytes),
        _ if key.ends_with("zarr.json") || key.ends_with(".zarray") => true,
        ViewKind::Chunks => {
            let is_object = world.kinds_of(key).is_empty() && world.had_object(bytes);
            is_object || world.had_decoded(bytes)
        }
        ViewKind::Keys => {
            let kinds = world.kinds_of(key);
            let has_objects = kinds.iter().any(|kind| *kind != Kind::Sharded);
            let is_object = (kinds.is_empty() || has_objects) && world.had_object(bytes);
            is_object || world.had_encoded(bytes)
        }
    }
}

/// Returns how many reads were right.
fn sequence(site: Site, through: Through, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let ttl = TIMES_TO_LIVE[random.below(3) as usize];
    let kinds = match random.below(3) {
        0 => vec![ViewKind::Arrays, ViewKind::Chunks],
        1 => vec![ViewKind::Arrays, ViewKind::Keys],
        _ => vec![ViewKind::Arrays, ViewKind::Chunks, ViewKind::Keys],
    };
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::new(site, folder.path().to_owned(), random.next()));
    let answers: Arc<dyn Answers> = Arc::clone(&world) as Arc<dyn Answers>;
    let server = world.is_web().then(|| WebServer::start(answers));
    let place = match &server {
        None => Place::Directory(folder.path()),
        Some(server) => Place::Url(format!("{}/z", server.url())),
    };
    let view = match through {
        Through::Calls => Shown::here(&place, kinds.clone(), ttl),
        Through::Mounts => Shown::mounted(&place, &kinds, ttl),
    };
    let what = format!("{site:?} seed {seed} ttl {ttl:?} {kinds:?}");
    let mut held: Vec<(ViewKind, Held)> = Vec::new();
    let mut reads = 0;
    for step in 0..STEPS {
        match random.below(10) {
            // Other programs write an object, or remove one.
            0..=3 => world.step(),
            4 if !ttl.is_zero() && ttl < Duration::from_secs(1) => std::thread::sleep(ttl),
            5 if !held.is_empty() => {
                let at = random.below(held.len() as u64) as usize;
                let (kind, held) = held.swap_remove(at);
                if let Some(bytes) = held.file.read() {
                    let path = &held.path;
                    // The object may have been opened before it became part of an array.
                    let was_object = kind != ViewKind::Arrays && world.had_object(&bytes);
                    assert!(
                        is_right(&world, kind, &held.key, &bytes) || was_object,
                        "{what}, step {step}: {path}, which was open, has {bytes:?}\n{world:?}"
                    );
                }
            }
            _ => {
                let (path, kind, key) = choose(&kinds, &mut random);
                let Some(file) = view.open(&path) else {
                    continue;
                };
                if random.below(4) == 0 {
                    held.push((kind, Held { file, path, key }));
                    continue;
                }
                if let Some(bytes) = file.read() {
                    reads += 1;
                    assert!(
                        is_right(&world, kind, &key, &bytes),
                        "{what}, step {step}: {path} has {bytes:?}\n{world:?}"
                    );
                }
            }
        }
    }
    world.finish();
    is_found(&view, &world, &kinds, ttl, &what);
    reads
}

/// The final state is shown once the time to live is over.
fn is_found(view: &Shown, world: &World, kinds: &[ViewKind], ttl: Duration, what: &str) {
    if ttl > Duration::from_secs(1) || !world.tells_versions() {
        return;
    }
    std::thread::sleep(ttl);
    let mut expected: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (name, array) in world.arrays() {
        // A web server that does not list has no groups without documents.
        if name != "x" && world.is_web() {
            continue;
        }
        expected.insert(format!("arrays/{name}.raw"), array.all_decoded());
        for chunk in 0..CHUNKS {
            let key = array.key_of(chunk);
            if kinds.contains(&ViewKind::Chunks) {
                expected.insert(format!("chunks/{name}/{key}"), array.decoded(chunk));
            }
            if kinds.contains(&ViewKind::Keys) && array.kind != Kind::Group {
                expected.insert(format!("keys/{name}/{key}"), array.encoded(chunk));
            }
        }
    }
    for (path, bytes) in expected {
        // Opening an object that has just changed waits, or fails once.
        let found = (0..20).find_map(|_| view.open(&path).and_then(|file| file.read()));
        assert_eq!(found, Some(bytes), "{what}: {path}\n{world:?}");
    }
}

fn sequences(sites: &[Site], through: Through) {
    for (number, site) in sites.iter().enumerate() {
        let first = 1_000_000 * number as u64;
        let reads = AtomicU64::new(0);
        for_seeds(first, SEQUENCES, |seed| {
            reads.fetch_add(sequence(*site, through, seed), Ordering::Relaxed);
        });
        assert!(
            2 * reads.into_inner() > SEQUENCES,
            "{site:?}: hardly anything was read"
        );
    }
}

const WEB: [Site; 4] = [
    Site::Web(Ways::Tags),
    Site::Web(Ways::Dates),
    Site::Web(Ways::OldDates),
    Site::Web(Ways::Lengths),
];

#[test]
fn no_key_of_a_directory_is_taken_for_something_else() {
    sequences(&[Site::Directory], Through::Calls);
}

#[test]
fn no_key_of_a_web_server_is_taken_for_something_else() {
    sequences(&WEB, Through::Calls);
}

/// An array of version 2 takes the place of a node of version 3. Its own absence is remembered, or the old
/// document.
#[test]
fn an_array_of_version_2_that_takes_the_place_of_a_node_of_version_3_is_found() {
    for seed in [676, 2827, 20174] {
        sequence(Site::Web(Ways::Tags), Through::Calls, seed);
    }
}

#[test]
#[ignore = "mounts many times: scripts/test --all runs it"]
fn no_key_is_taken_for_something_else_through_mounts() {
    sequences(&[Site::Directory], Through::Mounts);
    sequences(&WEB, Through::Mounts);
}
