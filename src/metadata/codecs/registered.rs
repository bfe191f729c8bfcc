//! The codecs of the v3 core and of zarr-extensions, a row for each, and the parsers of their
//! configurations. The parsers of codecs from bytes to bytes are in `bytes_to_bytes`.

use serde_json::value::RawValue;

use super::bitround::bitround;
use super::{
    Codec, CodecParser, Endian, Input, bytes_to_bytes, members, n5, numcodecs_parser, sharding,
    transpose_order, zfp,
};
use crate::codec::{
    ArrayToArray, ArrayToBytes, BytesCodec, CastValue, Elementwise, Number, OutOfRange, PackBits,
    PaddingEncoding, Reshape, Rounding, ScalarMap, Transpose, Value, VariableLength,
};
use crate::dtype::{ByteOrder, DataType, Element};
use crate::error::FormatError;
use crate::grid::{Dims, product};
use crate::metadata::json::{self, Json, Members};

/// A codec that readers of v3 know.
pub(in crate::metadata) struct RegisteredCodec {
    name: &'static str,
    /// The members of its configuration; `None` if they are not judged.
    pub(in crate::metadata) members: Option<&'static [&'static str]>,
    /// Parses its configuration.
    parser: CodecParser,
}

#[rustfmt::skip]
const CODECS: &[RegisteredCodec] = &[
    codec("bytes", Some(&["endian"]), bytes),
    codec("transpose", Some(&["order"]), transpose),
    codec("reshape", Some(&["shape"]), reshape),
    codec("bitround", Some(&["keepbits"]), bitround),
    codec("scale_offset", None, scale_offset),
    codec("cast_value", None, cast_value),
    codec("packbits", Some(&["padding_encoding", "first_bit", "last_bit"]), packbits),
    codec("sharding_indexed", Some(&["chunk_shape", "codecs", "index_codecs", "index_location"]), sharding::sharding),
    codec("vlen-utf8", Some(&[]), |input, _| variable_length(input, VariableLength::Text)),
    codec("vlen-bytes", Some(&[]), |input, _| variable_length(input, VariableLength::Bytes)),
    codec("gzip", Some(&["level"]), bytes_to_bytes::GZIP),
    codec("zstd", Some(&["level", "checksum"]), bytes_to_bytes::ZSTD),
    codec("blosc", Some(&["cname", "clevel", "shuffle", "typesize", "blocksize"]), bytes_to_bytes::BLOSC),
    codec("crc32c", Some(&[]), bytes_to_bytes::CRC32C),
    codec("conditional", None, bytes_to_bytes::conditional),
    codec("n5_default", Some(&["codecs"]), n5::n5_default),
    codec("zfp", None, zfp::zfp),
];

const fn codec(
    name: &'static str,
    members: Option<&'static [&'static str]>,
    parser: CodecParser,
) -> RegisteredCodec {
    RegisteredCodec {
        name,
        members,
        parser,
    }
}

impl RegisteredCodec {
    /// The codec `name`; `None` for one that is not registered, and for a codec of numcodecs.
    pub(in crate::metadata) fn of_name(name: &str) -> Option<&'static RegisteredCodec> {
        CODECS.iter().find(|codec| codec.name == name)
    }
}

/// The parser of the configuration of the codec `name`.
pub(super) fn parser(name: &str) -> Option<CodecParser> {
    // zarrs has used these names for codecs that are registered now, or that are codecs of
    // numcodecs.
    if let Some(path) = name.strip_prefix("https://codec.zarrs.dev/") {
        return match path {
            "array_to_array/bitround" | "array_to_bytes/bitround" => Some(bitround),
            "array_to_bytes/pcodec" => numcodecs_parser("pcodec"),
            "array_to_bytes/zfp" => Some(zfp::zfp),
            "array_to_bytes/zfpy" => Some(zfp::zfpy),
            "bytes_to_bytes/fletcher32" => numcodecs_parser("fletcher32"),
            "bytes_to_bytes/bz2" => numcodecs_parser("bz2"),
            _ => None,
        };
    }
    // The name of `bytes` in 2023.
    let name = if name == "endian" { "bytes" } else { name };
    RegisteredCodec::of_name(name).map(|codec| codec.parser)
}

fn bytes(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    if input.data_type.is_variable() {
        let name = &input.data_type.name;
        let what = "data type before `bytes`";
        return Err(FormatError::unsupported("", what, name));
    }
    let order = members::word(configuration, "endian", &ByteOrder::NAMES)?;
    if order.is_none() && input.endian() == Endian::Required {
        let problem = "missing, but required for a data type of several bytes";
        return Err(FormatError::document("endian", problem));
    }
    let endian = order.filter(|_| input.endian() != Endian::Meaningless);
    Ok(Codec::ArrayToBytes(ArrayToBytes::Bytes(BytesCodec {
        endian,
    })))
}

fn transpose(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let rank = input.shape.len();
    let transpose = configuration.read("order", |value| {
        let order = transpose_order(value, rank)?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank as u64) {
            let expected = format!("a permutation of {rank} axes, counted from 0");
            return Err(json::mismatch(value, &expected));
        }
        Transpose::new(&order, rank)
    })?;
    Ok(Codec::ArrayToArray(ArrayToArray::Transpose(transpose)))
}

fn reshape(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let encoded_shape = configuration.read("shape", |value| reshaped(&input.shape, value))?;
    Ok(Codec::ArrayToArray(ArrayToArray::Reshape(Reshape {
        encoded_shape,
    })))
}

/// The shape of chunks of `shape` after a reshape. An item is a length, `-1` for the length that
/// follows from the others, or a list of dimensions whose lengths are multiplied.
fn reshaped(shape: &[u64], value: &RawValue) -> Result<Dims, FormatError> {
    const MOST_DIMENSIONS: usize = 64;
    let expected = format!("a shape of as many elements as {shape:?}, its dimensions in order");
    let mismatch = || json::mismatch(value, &expected);
    let items = json::array(value, "a list of lengths or lists of dimensions")?;
    if items.len() > MOST_DIMENSIONS {
        return Err(mismatch());
    }
    let mut lengths = Dims::new();
    let mut left_over = None;
    // For each dimension of the result that joins others: its index, the first of these and one
    // past the last.
    let mut joined = Vec::new();
    let mut next = 0;
    for (i, item) in items.into_iter().enumerate() {
        match Json::of(item)? {
            Json::Number(text) if json::integer(text) == Some(-1) && left_over.is_none() => {
                left_over = Some(i);
                lengths.push(1);
            }
            Json::Array(dimensions) => {
                let mut length = Some(1_u64);
                let mut ends = None;
                for dimension in dimensions {
                    let axis = usize::try_from(json::length(dimension)?).map_err(|_| mismatch())?;
                    let own = shape.get(axis).filter(|_| axis >= next);
                    let own = own.ok_or_else(mismatch)?;
                    length = length.and_then(|length| length.checked_mul(*own));
                    ends = Some((ends.map_or(axis, |(first, _)| first), axis + 1));
                    next = axis + 1;
                }
                lengths.push(length.ok_or_else(mismatch)?);
                joined.extend(ends.map(|(first, past)| (i, first, past)));
            }
            _ => match json::length(item)? {
                0 => return Err(mismatch()),
                length => lengths.push(length),
            },
        }
    }
    let all = product(shape).ok_or_else(mismatch)?;
    let known = product(&lengths).ok_or_else(mismatch)?;
    if let Some(place) = left_over.and_then(|i| lengths.get_mut(i)) {
        *place = all.checked_div(known).ok_or_else(mismatch)?;
    }
    // The dimensions before and after a joined one must have the same product in both shapes.
    let outside = |lengths: &[u64], first: usize, past: usize| {
        Some((
            product(lengths.get(..first)?)?,
            product(lengths.get(past..)?)?,
        ))
    };
    let in_place = joined.iter().all(|&(i, first, past)| {
        let found = outside(&lengths, i, i + 1);
        found.is_some() && found == outside(shape, first, past)
    });
    if product(&lengths) == Some(all) && in_place {
        return Ok(lengths);
    }
    Err(mismatch())
}

fn scale_offset(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    members::check_known(configuration, &["offset", "scale"])?;
    let number = members::arithmetic(&input.data_type)?;
    let read = |name: &str, default| match configuration.get(name) {
        Some(raw) => members::scalar(&input.data_type, raw).map_err(|error| error.within(name)),
        None => Ok(match number {
            Number::Float(_) => Value::Float(f64::from(default)),
            _ => Value::Int(i128::from(default)),
        }),
    };
    let (offset, scale) = (read("offset", 0_u8)?, read("scale", 1_u8)?);
    if scale.is_same(Value::Int(0)) {
        let problem = "found 0, which nothing can be divided by";
        return Err(FormatError::document("scale", problem));
    }
    let operation = Elementwise::ScaleOffset { offset, scale };
    members::elementwise(input, operation, number, input.data_type.clone())
}

fn cast_value(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let known = ["data_type", "rounding", "out_of_range", "scalar_map"];
    members::check_known(configuration, &known)?;
    let encoded_type = configuration.read("data_type", DataType::parse_v3)?;
    let decoded = members::arithmetic(&input.data_type)?;
    let encoded = members::arithmetic(&encoded_type).map_err(|error| error.within("data_type"))?;
    let roundings = [
        ("nearest-even", Rounding::NearestEven),
        ("towards-zero", Rounding::TowardsZero),
        ("towards-positive", Rounding::TowardsPositive),
        ("towards-negative", Rounding::TowardsNegative),
        ("nearest-away", Rounding::NearestAway),
    ];
    let ranges = [("clamp", OutOfRange::Clamp), ("wrap", OutOfRange::Wrap)];
    let rounding = members::word(configuration, "rounding", &roundings)?;
    let out_of_range = members::word(configuration, "out_of_range", &ranges)?;
    if out_of_range == Some(OutOfRange::Wrap) && !matches!(encoded, Number::Integer(_)) {
        let problem = format!("found \"wrap\" with `{}`, no integer", encoded_type.name);
        return Err(FormatError::document("out_of_range", problem));
    }
    let maps = |value| scalar_maps(value, &input.data_type, &encoded_type);
    let (encode, decode) = configuration
        .read_some("scalar_map", maps)?
        .unwrap_or_default();
    let cast = CastValue {
        rounding: rounding.unwrap_or(Rounding::NearestEven),
        out_of_range: out_of_range.unwrap_or(OutOfRange::Refuse),
        encode,
        decode,
    };
    let operation = Elementwise::CastValue(Box::new(cast));
    members::elementwise(input, operation, decoded, encoded_type)
}

/// The lists `encode` and `decode` of `scalar_map`.
fn scalar_maps(
    value: &RawValue,
    decoded: &DataType,
    encoded: &DataType,
) -> Result<(ScalarMap, ScalarMap), FormatError> {
    let maps = json::object(value, "an object")?;
    members::check_known(&maps, &["encode", "decode"])?;
    let map = |name: &str, from: &DataType, to: &DataType| {
        let pair = |item| match json::array(item, "a pair")?.as_slice() {
            [one, other] => Ok((members::scalar(from, one)?, members::scalar(to, other)?)),
            _ => Err(json::mismatch(
                item,
                "a pair of a number and what it becomes",
            )),
        };
        let Some(list) = maps.get_some(name) else {
            return Ok(ScalarMap::default());
        };
        let pairs = json::array(list, "a list of pairs")?.into_iter().map(pair);
        let pairs: Result<Vec<_>, FormatError> = pairs.collect();
        pairs
            .map(ScalarMap::new)
            .map_err(|error| error.within(name))
    };
    Ok((
        map("encode", decoded, encoded)?,
        map("decode", encoded, decoded)?,
    ))
}

fn packbits(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let encodings = [
        ("none", PaddingEncoding::None),
        ("first_byte", PaddingEncoding::FirstByte),
        ("last_byte", PaddingEncoding::LastByte),
    ];
    let padding = members::word(configuration, "padding_encoding", &encodings)?;
    let bit = |name| configuration.read_some(name, json::length);
    let codec = PackBits::new(
        &input.data_type,
        padding.unwrap_or(PaddingEncoding::None),
        bit("first_bit")?,
        bit("last_bit")?,
    )?;
    Ok(Codec::ArrayToBytes(ArrayToBytes::PackBits(codec)))
}

/// A codec that stores items after their lengths. Elements of a fixed size may be stored so too, as
/// by zarr-python 3.0.
fn variable_length(input: &Input, codec: VariableLength) -> Result<Codec, FormatError> {
    let is_possible = match input.data_type.element {
        Element::Variable(_) | Element::Bytes { .. } | Element::Raw { .. } => true,
        Element::Text { .. } => codec == VariableLength::Text,
        _ => false,
    };
    if !is_possible {
        let name = format!("{} with {}", input.data_type.name, codec.name());
        return Err(FormatError::unsupported("", "data type", name));
    }
    Ok(Codec::ArrayToBytes(ArrayToBytes::VariableLength(codec)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_codec_has_one_row() {
        let mut names: Vec<_> = CODECS.iter().map(|codec| codec.name).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    }
}
