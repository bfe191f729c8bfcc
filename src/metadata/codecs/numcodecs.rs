//! Parses the configurations of the filters and object codecs of numcodecs.
//!
//! An absent member has the default of numcodecs, except that an absent type is the type of the
//! input, as in zarr-python. Unknown members are ignored.

use super::{Codec, CodecParser, Input, members};
use crate::codec::{ArrayToBytes, Categories, Elementwise, FilterKind, Number, VariableLength};
use crate::dtype::element_bytes::utf32;
use crate::dtype::{DataType, Element};
use crate::error::FormatError;
use crate::metadata::json::{self, Members};

/// The parser of the configuration of the object codec `numcodecs.ID`.
pub(super) fn object_codec_parser(id: &str) -> Option<CodecParser> {
    Some(match id {
        "vlen-array" => vlen_array,
        "json" => |input, _| object_codec(input, "numcodecs.json"),
        "json2" => |input, _| object_codec(input, "numcodecs.json2"),
        "msgpack" => |input, _| object_codec(input, "numcodecs.msgpack"),
        "msgpack2" => |input, _| object_codec(input, "numcodecs.msgpack2"),
        _ => return None,
    })
}

/// The type of a filter's input, and the type of its output, which `astype` names.
fn types(input: &Input, configuration: &Members<'_>) -> Result<(DataType, DataType), FormatError> {
    let own = members::own_type(input, configuration, "dtype")?;
    let encoded = members::data_type(configuration, "astype")?;
    let encoded = encoded.unwrap_or_else(|| own.clone());
    Ok((own, encoded))
}

/// Parses the configuration of `delta`.
pub(super) fn delta(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let (own, encoded) = types(input, configuration)?;
    let numbers = (members::arithmetic(&own)?, members::arithmetic(&encoded)?);
    if let (Number::Integer(_), Number::Float(_)) = numbers {
        // How such a filter rounds is not specified.
        let name = format!("{} for differences of {}", encoded.name, own.name);
        return Err(FormatError::unsupported("astype", "data type", name));
    }
    let kind = FilterKind::Delta {
        decoded: numbers.0,
        encoded: numbers.1,
    };
    Ok(members::filter(input, kind, encoded))
}

/// Parses the configuration of `fixedscaleoffset`.
pub(super) fn fixed_scale_offset(
    input: &Input,
    configuration: &Members<'_>,
) -> Result<Codec, FormatError> {
    let (own, encoded) = types(input, configuration)?;
    let operation = Elementwise::FixedScaleOffset {
        offset: members::value(configuration, "offset")?,
        scale: members::value(configuration, "scale")?,
    };
    members::elementwise(input, operation, members::arithmetic(&own)?, encoded)
}

/// Parses the configuration of `quantize`.
pub(super) fn quantize(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let (own, encoded) = types(input, configuration)?;
    for data_type in [&own, &encoded] {
        if !matches!(members::number(data_type)?, Number::Float(_)) {
            let name = format!("{} with quantize", data_type.name);
            return Err(FormatError::unsupported("", "data type", name));
        }
    }
    let digits = members::integer(configuration, "digits", (-400, 400))?
        .ok_or_else(|| json::missing("digits"))?;
    let operation = Elementwise::Quantize { digits };
    members::elementwise(input, operation, members::number(&own)?, encoded)
}

/// Parses the configuration of `astype`.
pub(super) fn astype(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let own = members::own_type(input, configuration, "decode_dtype")?;
    let encoded = members::data_type(configuration, "encode_dtype")?
        .ok_or_else(|| json::missing("encode_dtype"))?;
    if members::number(&encoded).is_err() {
        let name = format!("astype to {}", encoded.name);
        return Err(FormatError::unsupported("", "codec", name));
    }
    members::elementwise(input, Elementwise::AsType, members::number(&own)?, encoded)
}

/// `packbits` has no configuration.
pub(super) fn packbits(input: &Input, _: &Members<'_>) -> Result<Codec, FormatError> {
    if input.data_type.item_size != 1 {
        let name = format!("{} with packbits", input.data_type.name);
        return Err(FormatError::unsupported("", "data type", name));
    }
    Ok(members::filter(
        input,
        FilterKind::Mask,
        DataType::unsigned(1),
    ))
}

/// Parses the configuration of `categorize`: a filter for strings of a fixed length, or an object codec.
pub(super) fn categorize(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let code = members::data_type(configuration, "astype")?;
    let code = code.unwrap_or_else(|| DataType::unsigned(1));
    let Ok(number @ Number::Integer(_)) = members::number(&code) else {
        let name = code.name;
        return Err(FormatError::unsupported("astype", "type of codes", name));
    };
    if input.data_type.is_variable() {
        let code_size = number.size();
        return kept(input, VariableLength::Categories { code_size });
    }
    let label = |raw| {
        let label = json::string(raw, "a label")?;
        Ok(match input.data_type.element {
            Element::Text { .. } => utf32(&label),
            _ => label.into_bytes(),
        })
    };
    let labels = configuration.require("labels")?;
    let labels = json::array(labels, "a list of labels")
        .and_then(|labels| labels.into_iter().map(label).collect::<Result<Vec<_>, _>>())
        .map_err(|error| error.within("labels"))?;
    if !matches!(
        input.data_type.element,
        Element::Text { .. } | Element::Bytes { .. }
    ) {
        let name = format!("{} with categorize", input.data_type.name);
        return Err(FormatError::unsupported("", "data type", name));
    }
    members::own_type(input, configuration, "dtype")?;
    let kind = FilterKind::Categories(Categories::new(labels, number));
    Ok(members::filter(input, kind, code))
}

fn vlen_array(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    let item = members::data_type(configuration, "dtype")?.ok_or_else(|| json::missing("dtype"))?;
    let item_size = item.item_size;
    kept(input, VariableLength::Array { item_size })
}

fn object_codec(input: &Input, name: &'static str) -> Result<Codec, FormatError> {
    kept(input, VariableLength::Object(name))
}

/// An object codec, whose encoded bytes also serve as the decoded chunk. Inside a shard it must
/// store item after item, because the inner chunks are joined.
fn kept(input: &Input, codec: VariableLength) -> Result<Codec, FormatError> {
    if !input.data_type.is_variable() {
        let name = format!("{} with {}", input.data_type.name, codec.name());
        return Err(FormatError::unsupported("", "data type", name));
    }
    if input.depth > 0 && !codec.has_items() {
        let name = format!("{} inside shards", codec.name());
        return Err(FormatError::unsupported("", "codec", name));
    }
    Ok(Codec::ArrayToBytes(ArrayToBytes::VariableLength(codec)))
}
