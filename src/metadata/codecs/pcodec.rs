//! Parses the configuration of `numcodecs.pcodec`, which only encoding needs.

use super::{Codec, Input, members};
use crate::codec::{ArrayToBytes, Pcodec, PcodecDelta, PcodecSettings, Setting};
use crate::error::FormatError;
use crate::metadata::json::{self, Members};

/// The most numbers of a page where the document does not say it.
const PAGE: usize = 1 << 18;

/// The most numbers that pco compresses together.
const MOST_OF_A_PAGE: usize = 1 << 24;

pub(super) fn pcodec(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let codec = Pcodec::new(&input.data_type, settings(configuration))?;
    Ok(Codec::ArrayToBytes(ArrayToBytes::Pcodec(codec)))
}

/// The settings, with the defaults of numcodecs.
fn settings(configuration: &Members<'_>) -> Setting<PcodecSettings> {
    let level = members::setting(configuration, "level", Some(8), members::within(0..=12))?;
    let modes = [("auto", true), ("classic", false)];
    let finds_mode = members::setting(configuration, "mode_spec", Some(true), |raw| {
        json::word(raw, &modes).ok()
    })?;
    let pagings = [("equal_pages_up_to", ())];
    members::setting(configuration, "paging_spec", Some(()), |raw| {
        json::word(raw, &pagings).ok()
    })?;
    let page = members::setting(
        configuration,
        "equal_pages_up_to",
        Some(PAGE),
        members::within(1..=MOST_OF_A_PAGE),
    )?;
    Ok(PcodecSettings {
        level,
        finds_mode,
        delta: delta(configuration)?,
        page,
    })
}

fn delta(configuration: &Members<'_>) -> Setting<PcodecDelta> {
    // An order without a word is one of `try_consecutive`.
    let order = members::setting(configuration, "delta_encoding_order", Some(None), |raw| {
        members::within(0..=7)(raw).map(Some)
    })?;
    let consecutive = order.map(PcodecDelta::Consecutive);
    let deltas = [
        ("auto", Some(consecutive.unwrap_or(PcodecDelta::Auto))),
        ("try_consecutive", consecutive),
        ("none", Some(PcodecDelta::None)),
        ("try_lookback", Some(PcodecDelta::Lookback)),
    ];
    let default = consecutive.unwrap_or(PcodecDelta::Auto);
    members::setting(configuration, "delta_spec", Some(default), |raw| {
        json::word(raw, &deltas).ok().flatten()
    })
}
