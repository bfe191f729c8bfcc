//! Parses the configuration of `blosc`, which is for its encoder alone.

use serde_json::value::RawValue;

use super::Input;
use super::members::{integer_of, setting, within};
use crate::codec::{BloscCompressor, BloscSettings, BloscShuffle, Setting};
use crate::metadata::json::{self, Members};

/// The codec `blosc` of v3, with the words of v3 or, in old documents, the numbers of numcodecs.
/// `typesize` is the size of an element by default, as in zarr-python and tensorstore.
pub(super) fn registered(input: &Input, members: &Members<'_>) -> Setting<BloscSettings> {
    let item_size = u8::try_from(input.data_type.item_size).unwrap_or(1).max(1);
    let typesize = setting(members, "typesize", Some(item_size), typesize)?;
    settings(members, typesize, (None, None, None))
}

/// The codec `numcodecs.blosc`, with the defaults of numcodecs. It is given bytes, of which each is
/// an element.
pub(super) fn numcodecs(members: &Members<'_>) -> Setting<BloscSettings> {
    let typesize = setting(members, "typesize", Some(1), typesize)?;
    let defaults = (
        Some(BloscCompressor::Lz4),
        Some(5),
        Some(BloscShuffle::Byte),
    );
    settings(members, typesize, defaults)
}

fn settings(
    members: &Members<'_>,
    typesize: u8,
    (compressor, level, shuffle): (Option<BloscCompressor>, Option<u8>, Option<BloscShuffle>),
) -> Setting<BloscSettings> {
    let most = u32::MAX >> 1;
    Ok(BloscSettings {
        compressor: setting(members, "cname", compressor, |raw| {
            json::word(raw, &COMPRESSORS).ok()
        })?,
        level: setting(members, "clevel", level, within(0..=9))?,
        shuffle: setting(members, "shuffle", shuffle, |raw| shuffle_of(raw, typesize))?,
        typesize,
        blocksize: setting(members, "blocksize", Some(0), within(0..=most))?,
    })
}

const COMPRESSORS: [(&str, BloscCompressor); 6] = [
    ("blosclz", BloscCompressor::BloscLz),
    ("lz4", BloscCompressor::Lz4),
    ("lz4hc", BloscCompressor::Lz4Hc),
    ("snappy", BloscCompressor::Snappy),
    ("zlib", BloscCompressor::Zlib),
    ("zstd", BloscCompressor::Zstd),
];

/// The number of bytes of an element; the library takes more than 255 for 1.
fn typesize(raw: &RawValue) -> Option<u8> {
    let size = integer_of(raw).filter(|size| *size > 0)?;
    Some(u8::try_from(size).unwrap_or(1))
}

/// A shuffle by its word, or by its number, of which -1 is numcodecs' choice.
fn shuffle_of(raw: &RawValue, typesize: u8) -> Option<BloscShuffle> {
    let words = [
        ("noshuffle", BloscShuffle::None),
        ("shuffle", BloscShuffle::Byte),
        ("bitshuffle", BloscShuffle::Bit),
    ];
    match integer_of(raw) {
        Some(0) => Some(BloscShuffle::None),
        Some(-1) if typesize == 1 => Some(BloscShuffle::Bit),
        Some(1 | -1) => Some(BloscShuffle::Byte),
        Some(2) => Some(BloscShuffle::Bit),
        Some(_) => None,
        None => json::word(raw, &words).ok(),
    }
}
