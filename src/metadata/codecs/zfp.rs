//! Parses the configurations of `zfp` and `numcodecs.zfpy`.

use serde_json::value::RawValue;

use super::{Codec, Input, members};
use crate::codec::{ArrayToBytes, Setting, Zfp, ZfpMode};
use crate::error::FormatError;
use crate::metadata::json::{self, Json, Members};

/// The names of modes in the configuration of `zfp`.
#[derive(Clone, Copy)]
enum Mode {
    Expert,
    Rate,
    Precision,
    Accuracy,
    Reversible,
}

/// `zfp`, whose parameters are needed for decoding.
pub(super) fn zfp(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let modes = [
        ("expert", Mode::Expert),
        ("fixed_rate", Mode::Rate),
        ("fixed_precision", Mode::Precision),
        ("fixed_accuracy", Mode::Accuracy),
        ("reversible", Mode::Reversible),
    ];
    let bits = |name| {
        members::integer(configuration, name, (0_u32, u32::MAX))?.ok_or_else(|| json::missing(name))
    };
    let mode = members::word(configuration, "mode", &modes)?;
    let mode = match mode.ok_or_else(|| json::missing("mode"))? {
        Mode::Expert => ZfpMode::Expert {
            min_bits: bits("minbits")?,
            max_bits: bits("maxbits")?,
            max_precision: bits("maxprec")?,
            min_exponent: members::integer(configuration, "minexp", (i32::MIN / 2, i32::MAX / 2))?
                .ok_or_else(|| json::missing("minexp"))?,
        },
        Mode::Rate => ZfpMode::Rate(members::value(configuration, "rate")?.as_f64()),
        Mode::Precision => ZfpMode::Precision(bits("precision")?),
        Mode::Accuracy => ZfpMode::Accuracy(members::value(configuration, "tolerance")?.as_f64()),
        Mode::Reversible => ZfpMode::Reversible,
    };
    // zarrs wrote this member until 2025.
    let has_header = configuration.read_some("write_header", |raw| match Json::of(raw)? {
        Json::Bool(has_header) => Ok(has_header),
        _ => Err(json::mismatch(raw, "true or false")),
    })?;
    let (data_type, shape) = (&input.data_type, &input.shape);
    let codec = if has_header == Some(true) {
        Zfp::with_header(data_type, shape, Ok(mode))?
    } else {
        Zfp::bare(data_type, shape, mode)?
    };
    Ok(Codec::ArrayToBytes(ArrayToBytes::Zfp(codec)))
}

/// `zfpy`, whose streams say their parameters.
pub(super) fn zfpy(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let codec = Zfp::with_header(&input.data_type, &input.shape, mode_of_zfpy(configuration))?;
    Ok(Codec::ArrayToBytes(ArrayToBytes::Zfp(codec)))
}

/// The mode by its number in zfp. A parameter below zero means that it was not given, and numcodecs then writes in the
/// reversible mode.
fn mode_of_zfpy(configuration: &Members<'_>) -> Setting<ZfpMode> {
    let number = |name| {
        let value = members::setting(configuration, name, Some(-1.0), |raw: &RawValue| {
            let Ok(Json::Number(text)) = Json::of(raw) else {
                return None;
            };
            text.parse::<f64>().ok()
        })?;
        let is_given: Setting<Option<f64>> = Ok((value >= 0.0).then_some(value));
        is_given
    };
    let mode = members::setting(configuration, "mode", Some(4), members::within(2..=5_u8))?;
    let mode = match mode {
        2 => number("rate")?.map(ZfpMode::Rate),
        3 => {
            let planes = members::within(-1..=i32::MAX);
            let planes = members::setting(configuration, "precision", Some(-1), planes)?;
            u32::try_from(planes).ok().map(ZfpMode::Precision)
        }
        4 => number("tolerance")?.map(ZfpMode::Accuracy),
        _ => None,
    };
    Ok(mode.unwrap_or(ZfpMode::Reversible))
}
