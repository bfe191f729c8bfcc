//! Parses the configuration of `lzma`, with the rules of Python's module of that name.

use serde_json::value::RawValue;

use super::members::{self, integer_of, setting, within};
use crate::codec::{
    Lzma, LzmaArchitecture, LzmaEncoderFilter, LzmaFilter, LzmaParameters, LzmaSettings, Setting,
};
use crate::error::FormatError;
use crate::metadata::json::{self, Json, Members};

/// `FILTER_LZMA1`.
const LZMA1: i128 = 0x4000_0000_0000_0001;
/// `FILTER_LZMA2`.
const LZMA2: i128 = 0x21;
/// `PRESET_DEFAULT`.
const DEFAULT_PRESET: u32 = 6;

/// The container, and the filters that a decoder of bare LZMA needs.
pub(super) fn format(configuration: &Members<'_>) -> Result<Lzma, FormatError> {
    let format = members::integer(configuration, "format", (1, 3))?;
    match format.unwrap_or(1) {
        1 => Ok(Lzma::Xz),
        2 => Ok(Lzma::Alone),
        _ => configuration.read("filters", |raw| {
            match json::array(raw, "a list of filters")? {
                none if none.is_empty() => Err(json::mismatch(raw, "a filter")),
                filters => json::each(filters, lzma_filter).map(Lzma::Raw),
            }
        }),
    }
}

/// Parses a filter, whose `id` is its number in Python's module `lzma`.
fn lzma_filter(filter: &RawValue) -> Result<LzmaFilter, FormatError> {
    let filter = json::object(filter, "a filter")?;
    let id = filter.require("id")?;
    let option = |name, most: u32, default| {
        let value = members::integer(&filter, name, (0, most))?;
        Ok::<u32, FormatError>(value.unwrap_or(default))
    };
    let architecture = match Json::of(id)?.integer() {
        Some(LZMA1) => {
            return Ok(LzmaFilter::Lzma1 {
                lc: option("lc", 4, 3)?,
                lp: option("lp", 4, 0)?,
                pb: option("pb", 4, 2)?,
            });
        }
        Some(LZMA2) => return Ok(LzmaFilter::Lzma2),
        Some(0x03) => {
            let dist = members::integer(&filter, "dist", (1, 256))?;
            let dist = dist.unwrap_or(1);
            return Ok(LzmaFilter::Delta { dist });
        }
        Some(0x04) => LzmaArchitecture::X86,
        Some(0x05) => LzmaArchitecture::PowerPc,
        Some(0x06) => LzmaArchitecture::Ia64,
        Some(0x07) => LzmaArchitecture::Arm,
        Some(0x08) => LzmaArchitecture::ArmThumb,
        Some(0x09) => LzmaArchitecture::Sparc,
        _ => return Err(json::mismatch(id, "the number of a filter of LZMA").within("id")),
    };
    Ok(LzmaFilter::Branch {
        architecture,
        start_offset: option("start_offset", u32::MAX, 0)?,
    })
}

/// The parameters of the encoder: a preset or filters, and a check, which only an XZ file has.
pub(super) fn settings(format: &Lzma, members: &Members<'_>) -> Setting<LzmaSettings> {
    let is_xz = *format == Lzma::Xz;
    let check = match setting(members, "check", Some(-1), within(-1..=10))? {
        -1 if is_xz => 4,
        -1 | 0 => 0,
        check @ (1 | 4 | 10) if is_xz => u8::try_from(check).unwrap_or(0),
        _ => return Err("check"),
    };
    let filters = match members.get_some("filters") {
        Some(_) if members.get_some("preset").is_some() => return Err("preset"),
        Some(raw) => json::list(raw, "a list of filters", encoder_filter).map_err(|_| "filters")?,
        None => {
            let parameters = LzmaParameters::preset(preset(members)?);
            vec![match format {
                Lzma::Xz => LzmaEncoderFilter::Lzma2(parameters),
                Lzma::Alone | Lzma::Raw(_) => LzmaEncoderFilter::Lzma1(parameters),
            }]
        }
    };
    Ok(LzmaSettings { check, filters })
}

/// A preset from 0 to 9, perhaps with the bit `PRESET_EXTREME`.
fn preset(members: &Members<'_>) -> Setting<u32> {
    const EXTREME: u32 = 1 << 31;
    setting(members, "preset", Some(DEFAULT_PRESET), |raw| {
        let preset = u32::try_from(integer_of(raw)?).ok()?;
        (preset & !EXTREME <= 9).then_some(preset)
    })
}

fn encoder_filter(raw: &RawValue) -> Result<LzmaEncoderFilter, FormatError> {
    let filter = json::object(raw, "a filter")?;
    let id = filter.require("id")?;
    let make = match Json::of(id)?.integer() {
        Some(LZMA1) => LzmaEncoderFilter::Lzma1,
        Some(LZMA2) => LzmaEncoderFilter::Lzma2,
        _ => return lzma_filter(raw).map(LzmaEncoderFilter::Other),
    };
    let option = |name, most: u32| members::integer(&filter, name, (0, most));
    Ok(make(LzmaParameters {
        preset: preset(&filter).map_err(|name| json::mismatch(raw, name))?,
        dict_size: option("dict_size", u32::MAX)?,
        lc: option("lc", 4)?,
        lp: option("lp", 4)?,
        pb: option("pb", 4)?,
        mode: option("mode", 2)?,
        nice_len: option("nice_len", 273)?,
        mf: option("mf", 0x14)?,
        depth: option("depth", u32::MAX)?,
    }))
}
