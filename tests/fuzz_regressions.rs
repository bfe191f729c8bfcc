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
fn shard_indices() {
    replay("shard_indices", targets::shard_indices::run);
}
