//! Random arrays of every version, against a model that is as simple as possible. The test writes
//! them as the writers of each version did, and shares no code with the crate. It then reads the
//! views of them, in their own version and in another, and decodes the chunks only by the shown
//! documents.

#![allow(unreachable_pub, reason = "no crate is made of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "small test data"
)]

#[path = "../common/mod.rs"]
mod common;

mod arrays;
mod check;
mod choices;
mod codecs;
mod damage;
mod fill;
mod kind;
mod model;
mod shown;
mod spelling;
mod types;
mod write;
mod write_v3;

use std::sync::Arc;

use proptest::prelude::*;
use zarr_mount::metadata::Target;
use zarr_mount::view::{Shards, View, ViewKind, ViewOptions};

use choices::model;
use model::{Model, Version};

const VERSIONS: [Version; 6] = [
    Version::V2,
    Version::V3,
    Version::V1,
    Version::PreV1,
    Version::Protocol,
    Version::Core,
];

const TARGETS: [Target; 2] = [Target::V2, Target::V3];

/// Scatters bits (splitmix64).
fn mix(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Some cases, or as many as `PROPTEST_CASES` says.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|text| text.parse().ok()).unwrap_or(usual),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn options(kind: ViewKind, shown_as: Option<Target>) -> ViewOptions {
    ViewOptions {
        views: vec![kind],
        shown_as,
        cache_budget_bytes: 1 << 20,
        max_chunk_bytes: 1 << 24,
        ..ViewOptions::default()
    }
}

fn view(model: &Model, kind: ViewKind, shown_as: Option<Target>) -> Arc<View> {
    common::view(Arc::new(model.store()), options(kind, shown_as))
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn encoded_chunks_in_their_own_version(model in model(&VERSIONS)) {
        model.check_native(&view(&model, ViewKind::Keys, None), ViewKind::Keys);
    }

    #[test]
    fn decoded_chunks_in_their_own_version(model in model(&VERSIONS)) {
        model.check_native(&view(&model, ViewKind::Chunks, None), ViewKind::Chunks);
    }

    #[test]
    fn encoded_chunks_in_another_version(
        model in model(&VERSIONS),
        target in prop::sample::select(&TARGETS[..]),
    ) {
        model.check_as(&view(&model, ViewKind::Keys, Some(target)), ViewKind::Keys, target);
    }

    #[test]
    fn decoded_chunks_in_another_version(
        model in model(&VERSIONS),
        target in prop::sample::select(&TARGETS[..]),
    ) {
        model.check_as(&view(&model, ViewKind::Chunks, Some(target)), ViewKind::Chunks, target);
    }

    #[test]
    fn whole_arrays(
        model in model(&VERSIONS),
        slices in prop::collection::vec((any::<u16>(), any::<u16>()), 8),
        budget in prop::sample::select(&[1 << 20, 1 << 12][..]),
    ) {
        // A JSON lines file may have a tenth of the cache.
        let budget = if model.item.is_variable() { 1 << 20 } else { budget };
        let options = ViewOptions {
            arrays: arrays::options(),
            cache_budget_bytes: budget,
            ..options(ViewKind::Arrays, None)
        };
        model.check_arrays(&common::view(Arc::new(model.store()), options), &slices);
    }

    #[test]
    fn decoded_shards_in_any_version(
        model in model(&VERSIONS),
        target in prop::option::of(prop::sample::select(&TARGETS[..])),
    ) {
        let options = ViewOptions {
            shards: Shards::Keep,
            ..options(ViewKind::Chunks, target)
        };
        model.check_kept(&common::view(Arc::new(model.store()), options), target);
    }
}
