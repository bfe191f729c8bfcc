//! Parses the configurations of codecs from bytes to bytes. Most members only matter for encoding
//! and are ignored.

use serde_json::value::RawValue;

use super::{Codec, CodecParser, Input, MAX_NESTING, list, members, parsers};
use crate::codec::{
    BytesToBytes, Checksum, ChecksumKind, ChecksumLocation, Lzma, LzmaArchitecture, LzmaFilter,
};
use crate::error::FormatError;
use crate::metadata::json::{self, Json, Members};

/// The parser of the configuration of the codec `name`.
pub(super) fn parser(name: &str) -> Option<CodecParser> {
    Some(match name {
        "gzip" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Gzip)),
        "zstd" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Zstd)),
        "blosc" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Blosc)),
        "crc32c" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::CRC32C)),
        "conditional" => conditional,
        _ => return None,
    })
}

/// The parser of the configuration of the codec `numcodecs.ID`.
pub(super) fn numcodecs_parser(id: &str) -> Option<CodecParser> {
    use ChecksumKind::{Adler32, Crc32, Crc32c, Fletcher32};
    use ChecksumLocation::{End, Start};
    Some(match id {
        // Some writers stored zlib streams under this name.
        "gzip" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::GzipOrZlib)),
        "zlib" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Zlib)),
        "zstd" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Zstd)),
        "blosc" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Blosc)),
        "lz4" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Lz4)),
        "bz2" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Bz2)),
        "base64" => |_, _| Ok(Codec::BytesToBytes(BytesToBytes::Base64)),
        "lzma" => |_, configuration| {
            Ok(Codec::BytesToBytes(BytesToBytes::Lzma(lzma(
                configuration,
            )?)))
        },
        "shuffle" => shuffle,
        "crc32" => |_, configuration| checksum(configuration, Crc32, Start),
        "adler32" => |_, configuration| checksum(configuration, Adler32, Start),
        "crc32c" => |_, configuration| checksum(configuration, Crc32c, End),
        "fletcher32" => |_, _| checksum(&Members::default(), Fletcher32, End),
        "jenkins_lookup3" => jenkins_lookup3,
        _ => return None,
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

fn jenkins_lookup3(_: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
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

fn shuffle(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let size = members::integer(configuration, "elementsize", (0, 0x7fff_ffff))?;
    // zarr-python uses the element size of the array when the configuration has none.
    let size = size.unwrap_or(input.data_type.item_size);
    Ok(Codec::BytesToBytes(BytesToBytes::Shuffle {
        element_size: usize::try_from(size).unwrap_or(1).max(1),
    }))
}

fn lzma(configuration: &Members<'_>) -> Result<Lzma, FormatError> {
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
    const LZMA1: i128 = 0x4000_0000_0000_0001;
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
        Some(0x21) => return Ok(LzmaFilter::Lzma2),
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

fn conditional(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    if input.depth >= MAX_NESTING {
        let problem = format!("found codecs nested more than {MAX_NESTING} levels deep");
        return Err(FormatError::document("", problem));
    }
    let inside = input.inside(input.shape.clone());
    let codecs = configuration.read("codecs", |value| {
        let specs = list(value)?;
        let mut codecs = Vec::new();
        for (i, (spec, parser)) in specs.iter().zip(parsers(&specs)?).enumerate() {
            let Codec::BytesToBytes(codec) = inside.codec(i, spec, parser)? else {
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
