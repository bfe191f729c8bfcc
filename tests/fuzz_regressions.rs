//! Inputs that fuzzing found, replayed: `fuzz/regressions/TARGET/*` through the functions that the
//! fuzz targets call.

#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "the targets count what they allocate"
)]
#![allow(unreachable_pub, reason = "the targets are a library elsewhere")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::Path;

#[expect(clippy::print_stderr, reason = "shown where the test fails")]
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/regressions")
        .join(target);
    let mut inputs: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "no inputs in {}", folder.display());
    for input in inputs {
        eprintln!("{}", input.display());
        run(&fs::read(&input).unwrap());
    }
}

#[test]
fn metadata_documents() {
    replay("metadata_documents", targets::metadata_documents::run);
}

#[test]
fn stored_chunks() {
    replay("stored_chunks", targets::stored_chunks::run);
}

#[test]
fn codec_chains() {
    replay("codec_chains", targets::codec_chains::run);
}

#[test]
fn n5_blocks() {
    replay("n5_blocks", targets::n5_blocks::run);
}

#[test]
fn n5_attributes() {
    replay("n5_attributes", targets::n5_attributes::run);
}

#[test]
fn shard_indices() {
    replay("shard_indices", targets::shard_indices::run);
}

#[test]
fn reference_json() {
    replay("reference_json", targets::references::run_json);
}

#[cfg(feature = "references")]
#[test]
fn reference_parquet() {
    replay("reference_parquet", targets::references::run_parquet);
}

#[cfg(feature = "icechunk")]
#[test]
fn icechunk_files() {
    replay("icechunk_files", targets::icechunk_files::run);
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
