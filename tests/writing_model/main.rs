//! Random calls on a writable view of a directory, without a kernel, beside a model.
//!
//! The model decides which bytes each handle reads, which errors are due, and what the store has
//! after each call. Other programs change the store meanwhile; mounts end, and are killed, and are
//! made anew. `PROPTEST_CASES` is the number of sequences of calls.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

#[path = "../common/mod.rs"]
mod common;

mod codecs;
mod faults;
mod model;
mod mount;
mod operations;
mod run;
mod shard;

use proptest::prelude::*;
use zarr_mount::view::ViewKind;

use operations::script;
use run::Run;

/// The longest sequence of calls.
const LONGEST: usize = 30;

fn config() -> ProptestConfig {
    ProptestConfig {
        // The default reads the variable.
        cases: if std::env::var_os("PROPTEST_CASES").is_some() {
            ProptestConfig::default().cases
        } else {
            40
        },
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn decoded_chunks_are_as_the_model_says((setting, operations) in script(LONGEST)) {
        Run::new(ViewKind::Chunks, setting).run(&operations);
    }

    #[test]
    fn inner_chunks_of_a_shard_are_as_the_model_says((setting, operations) in script(LONGEST)) {
        Run::of_shard(setting).run(&operations);
    }

    #[test]
    fn keys_are_as_the_model_says((setting, operations) in script(LONGEST)) {
        Run::new(ViewKind::Keys, setting).run(&operations);
    }
}
