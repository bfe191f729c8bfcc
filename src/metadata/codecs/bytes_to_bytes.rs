//! Parses the configurations of codecs from bytes to bytes. Most members only matter for encoding:
//! they are [`Setting`]s, which are no errors when they are wrong.

use serde_json::value::RawValue;

use super::members::{integer_of, setting, within};
use super::{Codec, CodecParser, Input, blosc, list, lzma, members, parsers};
use crate::codec::{BytesToBytes, Checksum, ChecksumKind, ChecksumLocation, Setting, ZstdSettings};
use crate::error::FormatError;
use crate::metadata::json::{self, Members};

/// Parses the configuration of `gzip` of v3.
pub(super) const GZIP: CodecParser = |_, members| {
    let level = setting(members, "level", None, deflate_level);
    Ok(Codec::BytesToBytes(BytesToBytes::Gzip { level }))
};

/// Parses the configuration of `zstd`, which is the same in v3 and in numcodecs.
pub(super) const ZSTD: CodecParser =
    |_, members| Ok(Codec::BytesToBytes(BytesToBytes::Zstd(zstd(members))));

/// Parses the configuration of `blosc` of v3.
pub(super) const BLOSC: CodecParser = |input, members| {
    let settings = blosc::registered(input, members);
    Ok(Codec::BytesToBytes(BytesToBytes::Blosc(settings)))
};

/// `crc32c` of v3 has no configuration.
pub(super) const CRC32C: CodecParser = |_, _| Ok(Codec::BytesToBytes(BytesToBytes::CRC32C));

/// Parses the configuration of `gzip` of numcodecs. Some writers stored zlib streams under this name.
pub(super) const NUMCODECS_GZIP: CodecParser = |_, members| {
    let level = setting(members, "level", Some(1), deflate_level);
    Ok(Codec::BytesToBytes(BytesToBytes::GzipOrZlib { level }))
};

/// Parses the configuration of `zlib`.
pub(super) const ZLIB: CodecParser = |_, members| {
    let level = setting(members, "level", Some(1), deflate_level);
    Ok(Codec::BytesToBytes(BytesToBytes::Zlib { level }))
};

/// Parses the configuration of `blosc` of numcodecs.
pub(super) const NUMCODECS_BLOSC: CodecParser = |_, members| {
    let settings = blosc::numcodecs(members);
    Ok(Codec::BytesToBytes(BytesToBytes::Blosc(settings)))
};

/// Parses the configuration of `lz4`.
pub(super) const LZ4: CodecParser = |_, members| {
    let any = within(i32::MIN..=i32::MAX);
    let acceleration = setting(members, "acceleration", Some(1), any);
    Ok(Codec::BytesToBytes(BytesToBytes::Lz4 { acceleration }))
};

/// Parses the configuration of `bz2`.
pub(super) const BZ2: CodecParser = |_, members| {
    let level = setting(members, "level", Some(1), within(1..=9));
    Ok(Codec::BytesToBytes(BytesToBytes::Bz2 { level }))
};

/// `base64` has no configuration.
pub(super) const BASE64: CodecParser = |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Base64));

/// Parses the configuration of `lzma`.
pub(super) const LZMA: CodecParser = |_, members| {
    let format = lzma::format(members)?;
    let settings = lzma::settings(&format, members);
    Ok(Codec::BytesToBytes(BytesToBytes::Lzma(format, settings)))
};

/// Parses the configuration of `crc32`.
pub(super) const CRC32: CodecParser =
    |_, members| checksum(members, ChecksumKind::Crc32, ChecksumLocation::Start);

/// Parses the configuration of `adler32`.
pub(super) const ADLER32: CodecParser =
    |_, members| checksum(members, ChecksumKind::Adler32, ChecksumLocation::Start);

/// Parses the configuration of `crc32c` of numcodecs.
pub(super) const NUMCODECS_CRC32C: CodecParser =
    |_, members| checksum(members, ChecksumKind::Crc32c, ChecksumLocation::End);

/// `fletcher32` has no configuration.
pub(super) const FLETCHER32: CodecParser = |_, _| {
    let kind = ChecksumKind::Fletcher32;
    checksum(&Members::default(), kind, ChecksumLocation::End)
};

/// A level of deflate; -1 is zlib's name for 6.
fn deflate_level(raw: &RawValue) -> Option<u8> {
    match integer_of(raw)? {
        -1 => Some(6),
        level => u8::try_from(level).ok().filter(|level| *level <= 9),
    }
}

/// Early documents have no `checksum`.
fn zstd(members: &Members<'_>) -> Setting<ZstdSettings> {
    Ok(ZstdSettings {
        level: setting(members, "level", Some(0), within(-131_072..=22))?,
        checksum: setting(members, "checksum", Some(false), |raw| match raw.get() {
            "false" => Some(false),
            "true" => Some(true),
            _ => None,
        })?,
    })
}

fn checksum(
    configuration: &Members<'_>,
    kind: ChecksumKind,
    default: ChecksumLocation,
) -> Result<Codec, FormatError> {
    let locations = [
        ("start", ChecksumLocation::Start),
        ("end", ChecksumLocation::End),
    ];
    let location = members::word(configuration, "location", &locations)?;
    Ok(Codec::BytesToBytes(BytesToBytes::Checksum(Checksum {
        kind,
        location: location.unwrap_or(default),
    })))
}

/// Parses the configuration of `jenkins_lookup3`.
pub(super) fn jenkins_lookup3(
    _: &Input,
    configuration: &Members<'_>,
) -> Result<Codec, FormatError> {
    let initval = members::integer(configuration, "initval", (0, u32::MAX))?;
    let prefix = match configuration.get_some("prefix") {
        // The prefix is a bytes object of Python, which has no defined spelling in JSON.
        Some(raw) => return Err(FormatError::unsupported("prefix", "prefix", raw.get())),
        None => Vec::new(),
    };
    let kind = ChecksumKind::JenkinsLookup3 {
        initval: initval.unwrap_or(0),
        prefix,
    };
    checksum(&Members::default(), kind, ChecksumLocation::End)
}

/// Parses the configuration of `shuffle`.
pub(super) fn shuffle(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let size = members::integer(configuration, "elementsize", (0, 0x7fff_ffff))?;
    // zarr-python uses the element size of the array when the configuration has none.
    let size = size.unwrap_or(input.data_type.item_size);
    Ok(Codec::BytesToBytes(BytesToBytes::Shuffle {
        element_size: usize::try_from(size).unwrap_or(1).max(1),
    }))
}

/// Parses the configuration of `conditional`.
pub(super) fn conditional(
    input: &Input,
    configuration: &Members<'_>,
) -> Result<Codec, FormatError> {
    let codecs = configuration.read("codecs", |value| {
        let specs = list(value)?;
        // Each level would undo all levels inside of it again whenever its own buffer grows.
        if let Some(i) = specs.iter().position(|spec| spec.name == "conditional") {
            let what = "codec inside of `conditional`";
            return Err(FormatError::unsupported(
                format!("[{i}]"),
                what,
                "conditional",
            ));
        }
        let mut codecs = Vec::new();
        for (i, (spec, parser)) in specs.iter().zip(parsers(&specs)?).enumerate() {
            let Codec::BytesToBytes(codec) = input.codec(i, spec, parser)? else {
                let problem = format!(
                    "found `{}`, expected a codec from bytes to bytes",
                    spec.name
                );
                return Err(FormatError::document(format!("[{i}]"), problem));
            };
            codecs.push(codec);
        }
        Ok(codecs)
    })?;
    let count = u64::try_from(codecs.len()).unwrap_or(u64::MAX);
    let bits = configuration.read_some("header_bits", |raw| match json::length(raw) {
        Ok(bits) if bits >= count && bits <= 1 << 16 && bits.is_multiple_of(8) => Ok(bits),
        _ => Err(json::mismatch(
            raw,
            &format!("a multiple of 8 from {count} to 2^16"),
        )),
    })?;
    Ok(Codec::BytesToBytes(BytesToBytes::Conditional {
        codecs,
        header_bytes: bits.unwrap_or(count).div_ceil(8),
    }))
}
