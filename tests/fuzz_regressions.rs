//! The functions that the fuzz targets call, without a fuzzer: with the inputs that fuzzing found, `fuzz/regressions/TARGET/*`,
//! and with inputs that are made of these and of `fuzz/corpus/TARGET/*`, where that is, by random changes.
//!
//! `ZARR_MOUNT_SEQUENCES` is the number of changed inputs for each target, those before the number `ZARR_MOUNT_FROM` are
//! left out, and `ZARR_MOUNT_SEED` is the number of the only one. An input that fails is written to
//! `fuzz/artifacts/TARGET/`, under its number.

#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "the targets count what they allocate"
)]
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "modules that others share"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

#[path = "fuzz_regressions/mutation.rs"]
mod mutation;
#[path = "common/random.rs"]
mod random;
#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use self::random::{Random, for_seeds};

/// How many changed inputs an ordinary run tries for each target.
const INPUTS: u64 = 500;

/// After so many inputs that fail, the others are left out.
const MOST_FAILURES: usize = 20;

/// An input that takes more time of the processor fails. Other programs on the machine take no part of it.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs a target with all inputs of its folders, and with changed ones.
#[expect(clippy::print_stderr, reason = "shown where the test fails")]
fn check(target: &str, run: fn(&[u8])) {
    let mut inputs = inputs("regressions", target);
    assert!(!inputs.is_empty(), "no inputs for {target}");
    for (path, input) in &inputs {
        eprintln!("{}", path.display());
        run(input);
    }
    inputs.append(&mut self::inputs("corpus", target));
    let inputs: Vec<_> = inputs.into_iter().map(|(_, input)| input).collect();
    let failures = Mutex::new(Vec::new());
    let n_tried = AtomicU64::new(0);
    for_seeds(0, INPUTS, |seed| {
        if failures.lock().unwrap().len() >= MOST_FAILURES {
            return;
        }
        let input = mutation::mutated(&inputs, &mut Random::new(seed));
        let start = processor_time();
        let fails = panic::catch_unwind(|| run(&input)).is_err();
        let taken = processor_time().saturating_sub(start);
        let n = n_tried.fetch_add(1, Ordering::Relaxed) + 1;
        if n.is_multiple_of(100_000) {
            eprintln!("{target}: {n} inputs");
        }
        if fails || taken > LONGEST {
            let folder = folder("artifacts", target);
            fs::create_dir_all(&folder).unwrap();
            let path = folder.join(seed.to_string());
            fs::write(&path, &input).unwrap();
            failures.lock().unwrap().push((path, taken));
        }
    });
    eprintln!("{target}: {} inputs in all", n_tried.into_inner());
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
}

/// The time that this thread has spent on a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.try_into().unwrap()
}

/// The files of a folder of inputs, in the order of their names.
fn inputs(kind: &str, target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder(kind, target)).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let input = fs::read(&path).unwrap();
        (path, input)
    };
    paths.into_iter().map(read).collect()
}

fn folder(kind: &str, target: &str) -> PathBuf {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    fuzz.join(kind).join(target)
}

#[test]
fn metadata_documents() {
    check("metadata_documents", targets::metadata_documents::run);
}

#[test]
fn stored_chunks() {
    check("stored_chunks", targets::stored_chunks::run);
}

#[test]
fn codec_chains() {
    check("codec_chains", targets::codec_chains::run);
}

#[test]
fn n5_blocks() {
    check("n5_blocks", targets::n5_blocks::run);
}

#[test]
fn n5_attributes() {
    check("n5_attributes", targets::n5_attributes::run);
}

#[test]
fn shard_indices() {
    check("shard_indices", targets::shard_indices::run);
}

#[test]
fn reference_json() {
    check("reference_json", targets::references::run_json);
}

#[cfg(feature = "references")]
#[test]
fn reference_parquet() {
    check("reference_parquet", targets::references::run_parquet);
}

#[cfg(feature = "icechunk")]
#[test]
fn icechunk_files() {
    check("icechunk_files", targets::icechunk_files::run);
}

/// Random chains of codecs: what is decoded or encoded comes back. Fuzzing tries more of them.
#[test]
fn random_codec_chains() {
    const INPUTS: usize = 20_000;
    let mut state = 11_u64;
    for _ in 0..INPUTS {
        let mut input = Vec::new();
        for _ in 0..160 {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            input.push(state.to_be_bytes()[0]);
        }
        targets::codec_chains::run(&input);
    }
}
